//! People in front of the simulated lab: they ask, and ask again until they are answered.

use std::time::Duration;

use model::{NodeName, ProfileName};
use plan::{
    Input, Replied, SwitchId,
    input::{PowerVerb, Refused},
};

use super::{Happening, SimWorld, Waiter};

/// How long a person waits for an answer before asking again.
const IMPATIENCE: Duration = Duration::from_secs(10);

/// A person with a wish.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Person {
    node: NodeName,
    wish: Wished,
}

/// What is wished for.
#[derive(Debug, Clone, PartialEq)]
enum Wished {
    Profile(ProfileName),
    Power(PowerVerb),
}

impl SimWorld {
    /// A person wants `node` to become `profile`; asks again until answered. Gives the number of the wish.
    pub fn wish(&mut self, node: &NodeName, profile: &ProfileName, after: Duration) -> usize {
        self.person(node, Wished::Profile(profile.clone()), after)
    }

    /// A person uses a power verb. Gives the number of the wish.
    pub fn power(&mut self, node: &NodeName, verb: PowerVerb, after: Duration) -> usize {
        self.person(node, Wished::Power(verb), after)
    }

    fn person(&mut self, node: &NodeName, wish: Wished, after: Duration) -> usize {
        let person = Person { node: node.clone(), wish };
        self.people.push((person.clone(), None));
        self.schedule(after, Happening::Person(person));
        self.people.len() - 1
    }

    /// What the person of that number was answered.
    #[must_use]
    pub fn answer(&self, wish: usize) -> Option<&Replied> {
        self.people.get(wish)?.1.as_ref()
    }

    /// A person asks. Until there is an answer the question is put again: the process may have died over it.
    pub(super) fn ask(&mut self, person: Person) {
        let Some(number) =
            self.people.iter().position(|(other, answer)| answer.is_none() && *other == person)
        else {
            return;
        };
        self.schedule(IMPATIENCE, Happening::Person(person.clone()));
        if !self.up {
            return;
        }
        let token = self.token(Waiter::Person(number));
        let (node, by) = (person.node, "simulated person".to_owned());
        self.arrived.push_back(match person.wish {
            Wished::Profile(profile) => {
                let id = SwitchId(format!("sw-{}", token.0));
                Input::Wish { token, node, profile, by, plan_hash: None, id }
            }
            Wished::Power(verb) => Input::Power { token, node, verb, by },
        });
    }

    /// A person whose first question made it to the disk, and whose answer was lost, hears "already on its way"
    /// the second time. That is an answer too. A power verb that finds another under way was not taken: it is put
    /// again.
    pub(super) fn answered(&mut self, number: usize, what: Replied) {
        if let Replied::Power(Err(Refused::Conflict(_))) = &what {
            return;
        }
        if let Some((_, answer)) = self.people.get_mut(number) {
            *answer = Some(what);
        }
    }
}
