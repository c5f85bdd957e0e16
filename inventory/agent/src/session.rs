//! The conversation with the server: claim, report, then orders until one of them ends it.
//!
//! A refusal ends it at once and nothing is done. A server that does not answer is asked again, every ten
//! seconds for half an hour.

use std::time::Duration;

use model::agent::{Claim, Claimed, Next, Order, Report};
use serde::{Serialize, de::DeserializeOwned};

use crate::http::{HttpError, Reply};

/// Pauses grow 1, 2, 4, 8 seconds and stay at this.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Tries of one question: half an hour of [`LONGEST_PAUSE`].
const TRIES: u32 = 180;
/// Longest wait an order can ask for (`model::agent::Order::Wait`), in seconds.
const LONGEST_WAIT_S: u32 = 60;

/// What the conversation needs of the machine.
pub(crate) trait World {
    /// Posts to `/agent/v1/VERB`.
    fn post(&mut self, verb: &str, body: &str) -> Result<Reply, HttpError>;
    /// Looks at the hardware.
    fn look(&mut self, nonce: &str) -> Report;
    /// Lets time pass.
    fn pause(&mut self, span: Duration);
    /// Tells the person at the console.
    fn say(&mut self, line: &str);
}

/// How the conversation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The server ordered a restart.
    Reboot,
    /// The server ordered power off.
    PowerOff,
    /// The server refused; nothing may be done.
    Refused { reason: String },
    /// The server did not answer in half an hour.
    Unanswered,
}

/// Claims with `nonce` and obeys until an order, a refusal or silence ends it.
pub(crate) fn run(world: &mut impl World, nonce: &str) -> Ending {
    match converse(world, nonce) {
        Ok(never) => match never {},
        Err(ending) => ending,
    }
}

/// There is no way out of the conversation but an ending.
enum Never {}

fn converse(world: &mut impl World, nonce: &str) -> Result<Never, Ending> {
    let claimed: Claimed = ask(world, "claim", &Claim { nonce: nonce.to_owned() })?;
    world.say(&format!("this is node {}", claimed.node));
    let mut order = claimed.order;
    loop {
        order = match order {
            Order::Report => report(world, nonce)?,
            Order::Wait { seconds } => {
                let seconds = seconds.clamp(1, LONGEST_WAIT_S);
                world.say(&format!("told to wait {seconds} s"));
                world.pause(Duration::from_secs(seconds.into()));
                ask(world, "next", &Next { nonce: nonce.to_owned() })?
            }
            Order::Reboot => return Err(Ending::Reboot),
            Order::PowerOff => return Err(Ending::PowerOff),
        };
    }
}

fn report(world: &mut impl World, nonce: &str) -> Result<Order, Ending> {
    let report = world.look(nonce);
    let (disks, nics) = (report.disks.len(), report.nics.len());
    world.say(&format!(
        "found {disks} disks, {nics} network interfaces, {} MiB of memory",
        report.memory_kib / 1024
    ));
    let order = ask(world, "report", &report)?;
    world.say("hardware reported");
    if order == Order::Report {
        // A server that wants one report after the other gets them at a pace both can bear.
        world.pause(Duration::from_secs(1));
    }
    Ok(order)
}

fn ask<A: DeserializeOwned>(
    world: &mut impl World,
    verb: &str,
    question: &impl Serialize,
) -> Result<A, Ending> {
    let body = serde_json::to_string(question).expect("these types have no map and no foreign key");
    let mut pause = Duration::from_secs(1);
    for _ in 0..TRIES {
        let why = match world.post(verb, &body) {
            Ok(reply) => match understand(&reply) {
                Heard::Answer(answer) => return Ok(answer),
                Heard::Refusal(reason) => return Err(Ending::Refused { reason }),
                Heard::Trouble(why) => why,
            },
            Err(error) => error.to_string(),
        };
        world.say(&format!("{verb}: {why}; next try in {} s", pause.as_secs()));
        world.pause(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Err(Ending::Unanswered)
}

enum Heard<A> {
    Answer(A),
    Refusal(String),
    Trouble(String),
}

/// 2xx is an answer, 408 and 429 and 5xx pass, every other 4xx is a refusal: asking again would not help.
fn understand<A: DeserializeOwned>(reply: &Reply) -> Heard<A> {
    let said = format!("{} (HTTP {})", printable(&reply.body), reply.status);
    match reply.status {
        200..=299 => match serde_json::from_str(&reply.body) {
            Ok(answer) => Heard::Answer(answer),
            Err(error) => Heard::Trouble(format!("the answer makes no sense to me: {error}")),
        },
        408 | 429 => Heard::Trouble(said),
        400..=499 => Heard::Refusal(said),
        _ => Heard::Trouble(said),
    }
}

/// The start of what the server said, as one line a console can show.
fn printable(text: &str) -> String {
    let one_line = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    one_line.take(200).collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, io};

    use super::*;

    /// A server that answers from a list, and a machine whose pauses take no time.
    struct Script {
        replies: VecDeque<Option<(u16, &'static str)>>,
        asked: Vec<String>,
        paused: Vec<u64>,
        said: Vec<String>,
    }

    impl Script {
        fn new(replies: &[Option<(u16, &'static str)>]) -> Self {
            let replies = replies.iter().copied().collect();
            Self { replies, asked: vec![], paused: vec![], said: vec![] }
        }
    }

    impl World for Script {
        fn post(&mut self, verb: &str, body: &str) -> Result<Reply, HttpError> {
            assert!(body.contains(r#""nonce":"n1""#), "every question carries the nonce: {body}");
            self.asked.push(verb.to_owned());
            let server = "192.0.2.1:8067".parse().unwrap();
            let cause = io::ErrorKind::ConnectionRefused.into();
            match self.replies.pop_front().flatten() {
                Some((status, body)) => Ok(Reply { status, body: body.to_owned() }),
                None => Err(HttpError::Connect { server, cause }),
            }
        }

        fn look(&mut self, nonce: &str) -> Report {
            crate::collect::report(std::path::Path::new("/nonexistent"), nonce)
        }

        fn pause(&mut self, span: Duration) {
            self.paused.push(span.as_secs());
        }

        fn say(&mut self, line: &str) {
            self.said.push(line.to_owned());
        }
    }

    const CLAIMED: Option<(u16, &str)> =
        Some((200, r#"{"node":"bld-001","order":{"do":"report"}}"#));
    const WAIT: Option<(u16, &str)> = Some((200, r#"{"do":"wait","seconds":5}"#));
    const OFF: Option<(u16, &str)> = Some((200, r#"{"do":"power-off"}"#));
    const REBOOT: Option<(u16, &str)> = Some((200, r#"{"do":"reboot"}"#));

    #[test]
    fn an_inspection_claims_reports_waits_and_powers_off() {
        let mut world = Script::new(&[CLAIMED, WAIT, WAIT, OFF]);
        assert_eq!(run(&mut world, "n1"), Ending::PowerOff);
        assert_eq!(world.asked, ["claim", "report", "next", "next"]);
        assert_eq!(world.paused, [5, 5]);
    }

    #[test]
    fn a_reboot_order_ends_it() {
        let mut world = Script::new(&[CLAIMED, REBOOT]);
        assert_eq!(run(&mut world, "n1"), Ending::Reboot);
    }

    #[test]
    fn a_lost_answer_is_asked_for_again_with_the_same_nonce() {
        let mut world = Script::new(&[None, None, Some((503, "busy")), CLAIMED, OFF]);
        assert_eq!(run(&mut world, "n1"), Ending::PowerOff);
        assert_eq!(world.asked, ["claim", "claim", "claim", "claim", "report"]);
        assert_eq!(world.paused, [1, 2, 4]);
    }

    #[test]
    fn every_refusal_ends_it_without_an_act_and_keeps_the_reason() {
        for status in [400, 401, 403, 404, 409, 410] {
            let mut world = Script::new(&[Some((status, "ticket is spent\n"))]);
            let reason = format!("ticket is spent (HTTP {status})");
            assert_eq!(run(&mut world, "n1"), Ending::Refused { reason });
            assert_eq!(world.asked, ["claim"]);
        }
    }

    #[test]
    fn silence_ends_after_half_an_hour_of_tries() {
        let mut world = Script::new(&[]);
        assert_eq!(run(&mut world, "n1"), Ending::Unanswered);
        assert_eq!(world.asked.len(), 180);
        let total: u64 = world.paused.iter().sum();
        assert!((1_700..=1_800).contains(&total), "{total} s");
    }

    #[test]
    fn a_senseless_answer_is_trouble_and_not_an_order() {
        let odd = Some((200, r#"{"do":"wipe"}"#));
        let mut world = Script::new(&[CLAIMED, odd, OFF]);
        assert_eq!(run(&mut world, "n1"), Ending::PowerOff);
        assert!(world.said.iter().any(|line| line.contains("makes no sense")), "{:?}", world.said);
    }

    #[test]
    fn an_absurd_wait_is_cut_to_a_minute() {
        let mut world = Script::new(&[CLAIMED, Some((200, r#"{"do":"wait","seconds":0}"#)), OFF]);
        run(&mut world, "n1");
        let long = Some((200, r#"{"do":"wait","seconds":4000000000}"#));
        let mut slow = Script::new(&[CLAIMED, long, OFF]);
        run(&mut slow, "n1");
        assert_eq!((world.paused, slow.paused), (vec![1], vec![60]));
    }
}
