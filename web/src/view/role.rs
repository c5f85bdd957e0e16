//! Roles: colour, shape and word of what a node is. The word is always the profile's own name.

use api::{NodeView, PowerState};
use askama::Template;

/// A role's shape and word.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(
    ext = "html",
    source = r##"<span class="role" data-role="{{ role }}"><svg class="i" aria-hidden="true"><use href="#r-{{ role }}"/></svg>{{ word }}</span>"##
)]
pub(crate) struct RoleTag {
    /// Key of colour and shape.
    pub(crate) role: &'static str,
    /// The word beside it.
    pub(crate) word: String,
}

impl askama::filters::HtmlSafe for RoleTag {}

impl RoleTag {
    /// Of a profile, or of none.
    pub(crate) fn of_profile(profile: Option<&str>) -> Self {
        match profile {
            Some(name) => Self { role: role_of(name), word: name.to_owned() },
            None => Self { role: "foreign", word: "no profile".to_owned() },
        }
    }

    /// Of a node as it stands: held and off come before what it is.
    pub(crate) fn of_node(node: &NodeView) -> Self {
        match Standing::of(node) {
            Standing::Held => Self { role: "held", word: "Held".to_owned() },
            Standing::Failed => Self { role: "held", word: "Failed".to_owned() },
            Standing::Off => Self { role: "off", word: "Off".to_owned() },
            Standing::Switching => {
                Self::of_profile(node.wanted.as_deref().or(node.profile.as_deref()))
            }
            Standing::On | Standing::Silent => Self::of_profile(node.profile.as_deref()),
        }
    }
}

/// The role whose colour and shape a profile takes, by its name; all others look like a machine of its own.
fn role_of(profile: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["talos", "openstack", "slurm", "ceph", "inspect", "ram", "install"];
    let of_name = |role: &&&str| profile.split('-').any(|part| part == **role);
    KNOWN.iter().find(of_name).copied().unwrap_or("local")
}

/// The state of a node, as its bay is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Powered on, no switch under way.
    On,
    /// Powered off, no switch under way.
    Off,
    /// A switch is under way.
    Switching,
    /// Stopped safely, waits for a person.
    Held,
    /// A destructive step did not finish.
    Failed,
    /// Nobody could read its power.
    Silent,
}

impl Standing {
    pub(crate) fn of(node: &NodeView) -> Self {
        match (node.phase.name.as_str(), node.phase.open, node.power) {
            ("held", _, _) => Self::Held,
            ("failed", _, _) => Self::Failed,
            (_, true, _) => Self::Switching,
            (_, false, PowerState::On) => Self::On,
            (_, false, PowerState::Off) => Self::Off,
            (_, false, PowerState::Unknown) => Self::Silent,
        }
    }

    /// `data-state` of the bay.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Switching => "switching",
            Self::Held | Self::Failed => "held",
            Self::Silent => "silent",
        }
    }

    /// Whether a person has to do something.
    pub(crate) fn needs_a_person(self) -> bool {
        matches!(self, Self::Held | Self::Failed)
    }
}

/// `on`, `off`, `unknown`.
pub(crate) fn power_word(power: PowerState) -> &'static str {
    match power {
        PowerState::On => "on",
        PowerState::Off => "off",
        PowerState::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_told_by_the_parts_of_a_profiles_name() {
        let cases = [
            ("slurm-debian", "slurm"),
            ("talos", "talos"),
            ("ceph-osd", "ceph"),
            ("inspect", "inspect"),
            ("debian-install", "install"),
            ("rescue", "local"),
            ("notslurm", "local"),
        ];
        for (profile, want) in cases {
            assert_eq!(role_of(profile), want, "{profile}");
        }
    }
}
