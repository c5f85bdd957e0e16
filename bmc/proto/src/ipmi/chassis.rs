//! Chassis commands: status and control (sections 28.2 and 28.3).

use std::fmt;

use super::message::{Command, NetFn};
use crate::wire::{DecodeError, Reader};

/// Get Chassis Status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetChassisStatus;

/// What Get Chassis Status says, as far as volund uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChassisStatus {
    /// The system's power is on.
    pub power_on: bool,
    /// Shut down because of overload.
    pub overload: bool,
    /// Main power subsystem has a fault.
    pub power_fault: bool,
    /// The last attempt to change power failed.
    pub control_fault: bool,
    /// What happens when mains come back, two bits: 0 off, 1 as before, 2 on, 3 unknown.
    pub restore_policy: u8,
    /// Last power event, raw.
    pub last_event: u8,
    /// Miscellaneous state, raw.
    pub misc: u8,
}

impl ChassisStatus {
    /// Value in, response data out.
    #[must_use]
    pub fn encode(&self) -> [u8; 3] {
        let bit = |set: bool, mask: u8| if set { mask } else { 0 };
        let power = bit(self.power_on, 0x01)
            | bit(self.overload, 0x02)
            | bit(self.power_fault, 0x08)
            | bit(self.control_fault, 0x10)
            | (self.restore_policy & 3) << 5;
        [power, self.last_event, self.misc]
    }
}

impl Command for GetChassisStatus {
    const NAME: &'static str = "Get Chassis Status";
    const NETFN: NetFn = NetFn::CHASSIS;
    const CODE: u8 = 0x01;
    type Answer = ChassisStatus;

    fn data(&self) -> Vec<u8> {
        vec![]
    }

    fn answer(&self, data: &[u8]) -> Result<ChassisStatus, DecodeError> {
        let [power, last_event, misc] = Reader::new(Self::NAME, data).array()?;
        Ok(ChassisStatus {
            power_on: power & 0x01 != 0,
            overload: power & 0x02 != 0,
            power_fault: power & 0x08 != 0,
            control_fault: power & 0x10 != 0,
            restore_policy: power >> 5 & 3,
            last_event,
            misc,
        })
    }
}

/// Chassis Control: what to do with the power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChassisControl {
    /// 0: hard off.
    Off,
    /// 1: on.
    On,
    /// 2: off, at least a second, on.
    Cycle,
    /// 3: hard reset.
    Reset,
    /// 4: pulse a diagnostic interrupt.
    DiagnosticInterrupt,
    /// 5: ask the operating system to shut down (ACPI).
    SoftOff,
}

impl ChassisControl {
    /// Every verb, in the order of its number.
    pub const ALL: [Self; 6] =
        [Self::Off, Self::On, Self::Cycle, Self::Reset, Self::DiagnosticInterrupt, Self::SoftOff];

    /// As the wire has it.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::On => 1,
            Self::Cycle => 2,
            Self::Reset => 3,
            Self::DiagnosticInterrupt => 4,
            Self::SoftOff => 5,
        }
    }

    /// From request data.
    ///
    /// # Errors
    /// When it is empty or names no verb.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(Self::NAME, data);
        let number = reader.u8()? & 0x0f;
        let known = Self::ALL.into_iter().find(|verb| verb.number() == number);
        known.ok_or_else(|| reader.value("verb", number.into()))
    }
}

impl fmt::Display for ChassisControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Off => "power off",
            Self::On => "power on",
            Self::Cycle => "power cycle",
            Self::Reset => "reset",
            Self::DiagnosticInterrupt => "diagnostic interrupt",
            Self::SoftOff => "soft off",
        })
    }
}

impl Command for ChassisControl {
    const NAME: &'static str = "Chassis Control";
    const NETFN: NetFn = NetFn::CHASSIS;
    const CODE: u8 = 0x02;
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        vec![self.number()]
    }

    fn answer(&self, _data: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_two_peers_is_read() {
        // A peer of ours and OpenIPMI's ipmi_sim.
        let on = GetChassisStatus.answer(&[0x41, 0x00, 0x40]).unwrap();
        assert!(on.power_on && on.restore_policy == 2 && on.encode() == [0x41, 0, 0x40]);
        let plain = GetChassisStatus.answer(&[0x01, 0, 0]).unwrap();
        assert_eq!(plain, ChassisStatus { power_on: true, ..ChassisStatus::default() });
        assert!(GetChassisStatus.answer(&[0x01, 0]).is_err());
    }

    #[test]
    fn each_verb_comes_back_from_its_byte() {
        for verb in ChassisControl::ALL {
            assert_eq!(ChassisControl::decode(&verb.data()), Ok(verb));
        }
        assert!(ChassisControl::decode(&[6]).is_err());
        assert!(ChassisControl::decode(&[]).is_err());
    }
}
