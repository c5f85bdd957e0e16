//! Set and Get System Boot Options (sections 28.12 to 28.14): one-shot boot device, and what came of it.

use std::fmt;

use super::message::{Command, NetFn};
use crate::wire::{DecodeError, Reader};

/// Number of parameter 0, set in progress: a lock between programs of one BMC. volund sets none; `ipmitool` does.
pub const SET_IN_PROGRESS: u8 = 0;
/// Number of parameter 3, when the boot flags lose their validity.
pub const FLAG_VALIDITY: u8 = 3;
/// Number of parameter 4, who has handled the boot flags.
pub const INFO_ACKNOWLEDGE: u8 = 4;
/// Number of parameter 5, the boot flags.
pub const BOOT_FLAGS: u8 = 5;

/// Boot device selector (table 28-14, parameter 5, data 2, bits 5 to 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BootDevice {
    /// 0: no override.
    None,
    /// 1: network.
    Pxe,
    /// 2: default disk.
    Disk,
    /// 3: default disk, safe mode.
    DiskSafeMode,
    /// 4: diagnostic partition.
    Diagnostic,
    /// 5: CD or DVD.
    Cd,
    /// 6: firmware setup.
    Setup,
    /// Any other selector, four bits.
    Other(u8),
}

impl BootDevice {
    /// As the wire has it, four bits.
    #[must_use]
    pub const fn selector(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Pxe => 1,
            Self::Disk => 2,
            Self::DiskSafeMode => 3,
            Self::Diagnostic => 4,
            Self::Cd => 5,
            Self::Setup => 6,
            Self::Other(selector) => selector & 0x0f,
        }
    }

    /// By its four bits.
    #[must_use]
    pub const fn from_selector(selector: u8) -> Self {
        match selector & 0x0f {
            0 => Self::None,
            1 => Self::Pxe,
            2 => Self::Disk,
            3 => Self::DiskSafeMode,
            4 => Self::Diagnostic,
            5 => Self::Cd,
            6 => Self::Setup,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for BootDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "no override",
            Self::Pxe => "network",
            Self::Disk => "disk",
            Self::DiskSafeMode => "disk in safe mode",
            Self::Diagnostic => "diagnostic partition",
            Self::Cd => "CD",
            Self::Setup => "firmware setup",
            Self::Other(selector) => return write!(f, "boot device {selector}"),
        })
    }
}

/// How the machine's firmware boots. A known property of the machine, never a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FirmwareMode {
    /// BIOS.
    Legacy,
    /// UEFI.
    Uefi,
}

/// For how many boots an override holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The next one.
    Once,
    /// All until it is cleared.
    Persistent,
}

/// Parameter 5 without the fields volund leaves at zero (console redirection, lock-outs, mux).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BootFlags {
    /// The rest means something.
    pub valid: bool,
    /// For how many boots.
    pub reach: Reach,
    /// For which firmware.
    pub mode: FirmwareMode,
    /// From what.
    pub device: BootDevice,
}

impl BootFlags {
    /// No override: five zero bytes.
    pub const CLEAR: Self = Self {
        valid: false,
        reach: Reach::Once,
        mode: FirmwareMode::Legacy,
        device: BootDevice::None,
    };

    /// The five bytes of parameter 5.
    #[must_use]
    pub fn encode(&self) -> [u8; 5] {
        let valid = if self.valid { 0x80 } else { 0 };
        let reach = match self.reach {
            Reach::Once => 0,
            Reach::Persistent => 0x40,
        };
        let mode = match self.mode {
            FirmwareMode::Legacy => 0,
            FirmwareMode::Uefi => 0x20,
        };
        [valid | reach | mode, self.device.selector() << 2, 0, 0, 0]
    }

    /// From parameter 5. Longer data is cut: one old BMC answers 12 bytes more.
    ///
    /// # Errors
    /// When it has less than five bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let [flags, device, ..] = Reader::new("boot flags", data).array::<5>()?;
        Ok(Self {
            valid: flags & 0x80 != 0,
            reach: if flags & 0x40 != 0 { Reach::Persistent } else { Reach::Once },
            mode: if flags & 0x20 != 0 { FirmwareMode::Uefi } else { FirmwareMode::Legacy },
            device: BootDevice::from_selector(device >> 2),
        })
    }

    /// What of `self`, which was sent, is not in `got`, which was read back.
    #[must_use]
    pub fn lost_in(&self, got: &Self) -> Vec<LostBit> {
        let mut lost = Vec::new();
        if self.valid && !got.valid {
            lost.push(LostBit::Valid);
        }
        if !self.valid && got.valid {
            lost.push(LostBit::StillValid);
        }
        if self.reach == Reach::Persistent && got.reach == Reach::Once {
            lost.push(LostBit::Persistent);
        }
        if self.reach == Reach::Once && got.reach == Reach::Persistent && got.valid {
            lost.push(LostBit::Once);
        }
        if self.mode == FirmwareMode::Uefi && got.mode == FirmwareMode::Legacy {
            lost.push(LostBit::Uefi);
        }
        if self.valid && self.mode == FirmwareMode::Legacy && got.mode == FirmwareMode::Uefi {
            lost.push(LostBit::Legacy);
        }
        if self.valid && self.device != got.device {
            lost.push(LostBit::Device { sent: self.device, got: got.device });
        }
        lost
    }
}

/// Something a BMC did not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostBit {
    /// The override is not in force.
    Valid,
    /// The override was to be cleared and is still in force.
    StillValid,
    /// It will not stay.
    Persistent,
    /// It will stay, though it was meant once.
    Once,
    /// The machine will be told to boot as BIOS.
    Uefi,
    /// The machine will be told to boot by UEFI, though it boots as BIOS.
    Legacy,
    /// Another device.
    Device {
        /// What was asked for.
        sent: BootDevice,
        /// What the BMC says.
        got: BootDevice,
    },
}

impl fmt::Display for LostBit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => f.write_str("the BMC dropped the valid bit"),
            Self::StillValid => f.write_str("the BMC kept the valid bit"),
            Self::Persistent => f.write_str("the BMC dropped the persistent bit"),
            Self::Once => f.write_str("the BMC made the override persistent"),
            Self::Uefi => f.write_str("the BMC dropped the UEFI bit"),
            Self::Legacy => f.write_str("the BMC kept the UEFI bit of an earlier override"),
            Self::Device { sent, got } => write!(f, "the BMC chose {got} instead of {sent}"),
        }
    }
}

/// Set System Boot Options, one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBootOption {
    /// Parameter 3: a set bit keeps the flags valid. 0x08: do not expire after 60 s without a reset.
    FlagValidity(u8),
    /// Parameter 4: which parties' bits to write, and what to write into them. 01 01: the BIOS has handled it.
    InfoAcknowledge {
        /// Write mask.
        mask: u8,
        /// Values.
        data: u8,
    },
    /// Parameter 5.
    Flags(BootFlags),
}

impl SetBootOption {
    /// "Do not expire after 60 s": what lets the power command come later or from somebody else.
    pub const NO_EXPIRY: Self = Self::FlagValidity(0x08);
}

impl Command for SetBootOption {
    const NAME: &'static str = "Set System Boot Options";
    const NETFN: NetFn = NetFn::CHASSIS;
    const CODE: u8 = 0x08;
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        match self {
            Self::FlagValidity(keep) => vec![FLAG_VALIDITY, *keep],
            Self::InfoAcknowledge { mask, data } => vec![INFO_ACKNOWLEDGE, *mask, *data],
            Self::Flags(flags) => [&[BOOT_FLAGS], flags.encode().as_slice()].concat(),
        }
    }

    fn answer(&self, _data: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Splits request data of Set System Boot Options into parameter number and its bytes.
///
/// # Errors
/// When it is empty.
pub fn decode_set(data: &[u8]) -> Result<(u8, &[u8]), DecodeError> {
    let mut reader = Reader::new(SetBootOption::NAME, data);
    let parameter = reader.u8()? & 0x7f;
    Ok((parameter, reader.rest()))
}

/// Get System Boot Options, one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetBootOption {
    /// Which.
    pub parameter: u8,
}

/// A boot option parameter as the BMC holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootOption {
    /// Which.
    pub parameter: u8,
    /// The BMC marks it invalid or locked.
    pub invalid: bool,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl BootOption {
    /// Value in, response data out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let invalid = if self.invalid { 0x80 } else { 0 };
        [&[0x01, self.parameter & 0x7f | invalid], self.data.as_slice()].concat()
    }

    /// The boot flags, if this is parameter 5. Flags the BMC marks invalid or locked are in force for nobody,
    /// whatever their own valid bit says.
    ///
    /// # Errors
    /// When there are less than five bytes.
    pub fn flags(&self) -> Result<BootFlags, DecodeError> {
        let flags = BootFlags::decode(&self.data)?;
        Ok(BootFlags { valid: flags.valid && !self.invalid, ..flags })
    }
}

impl GetBootOption {
    /// From request data: parameter, set selector, block selector.
    ///
    /// # Errors
    /// When it is empty.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { parameter: Reader::new(Self::NAME, data).u8()? & 0x7f })
    }
}

impl Command for GetBootOption {
    const NAME: &'static str = "Get System Boot Options";
    const NETFN: NetFn = NetFn::CHASSIS;
    const CODE: u8 = 0x09;
    type Answer = BootOption;

    fn data(&self) -> Vec<u8> {
        vec![self.parameter, 0, 0]
    }

    fn answer(&self, data: &[u8]) -> Result<BootOption, DecodeError> {
        let mut reader = Reader::new(Self::NAME, data);
        let (_version, parameter) = (reader.u8()?, reader.u8()?);
        if parameter & 0x7f != self.parameter {
            return Err(reader.value("parameter", (parameter & 0x7f).into()));
        }
        let invalid = parameter & 0x80 != 0;
        Ok(BootOption { parameter: self.parameter, invalid, data: reader.rest().to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(reach: Reach, mode: FirmwareMode, device: BootDevice) -> BootFlags {
        BootFlags { valid: true, reach, mode, device }
    }

    #[test]
    fn requests_have_the_bytes_of_case_26() {
        use BootDevice::{Disk, Pxe, Setup};
        use FirmwareMode::{Legacy, Uefi};
        use Reach::{Once, Persistent};
        let cases = [
            ("netboot once, UEFI", flags(Once, Uefi, Pxe), [5, 0xa0, 0x04, 0, 0, 0]),
            ("netboot once, legacy", flags(Once, Legacy, Pxe), [5, 0x80, 0x04, 0, 0, 0]),
            ("disk always, UEFI", flags(Persistent, Uefi, Disk), [5, 0xe0, 0x08, 0, 0, 0]),
            ("BIOS setup once, UEFI", flags(Once, Uefi, Setup), [5, 0xa0, 0x18, 0, 0, 0]),
            ("clear override", BootFlags::CLEAR, [5, 0, 0, 0, 0, 0]),
        ];
        for (name, flags, want) in cases {
            assert_eq!(SetBootOption::Flags(flags).data(), want, "{name}");
            assert_eq!(BootFlags::decode(&want[1..]), Ok(flags), "{name}");
        }
        assert_eq!(SetBootOption::NO_EXPIRY.data(), [3, 8]);
        assert_eq!(SetBootOption::InfoAcknowledge { mask: 1, data: 1 }.data(), [4, 1, 1]);
        assert_eq!(GetBootOption { parameter: 5 }.data(), [5, 0, 0]);
    }

    #[test]
    fn reading_back_names_what_the_bmc_lost() {
        let sent = flags(Reach::Once, FirmwareMode::Uefi, BootDevice::Pxe);
        let device = |got| LostBit::Device { sent: BootDevice::Pxe, got };
        let cases: [(&str, &[u8], Vec<LostBit>); 7] = [
            ("marked invalid", &[1, 0x85, 0xa0, 0x04, 0, 0, 0], vec![LostBit::Valid]),
            ("persistent", &[1, 5, 0xe0, 0x04, 0, 0, 0], vec![LostBit::Once]),
            ("kept", &[0x01, 0x05, 0xa0, 0x04, 0, 0, 0], vec![]),
            ("second BMC of case 26", &[1, 5, 0x80, 0x04, 0, 0, 0], vec![LostBit::Uefi]),
            ("ipmi_sim", &[1, 5, 0, 0x04, 0, 0, 0], vec![LostBit::Valid, LostBit::Uefi]),
            ("vbmc", &[1, 5, 0xa0, 0x08, 0, 0, 0], vec![device(BootDevice::Disk)]),
            ("12 bytes longer", &[1, 5, 0xa0, 4, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9], vec![]),
        ];
        for (name, answer, want) in cases {
            let option = GetBootOption { parameter: 5 }.answer(answer).unwrap();
            assert_eq!(sent.lost_in(&option.flags().unwrap()), want, "{name}");
        }
        let legacy = flags(Reach::Once, FirmwareMode::Legacy, BootDevice::Pxe);
        assert_eq!(legacy.lost_in(&sent), [LostBit::Legacy], "UEFI left on from before");
        assert_eq!(legacy.lost_in(&legacy), []);
        let cleared = BootFlags { valid: false, ..sent };
        assert_eq!(BootFlags::CLEAR.lost_in(&cleared), [], "nothing of it is in force");
        assert_eq!(BootFlags::CLEAR.lost_in(&sent), [LostBit::StillValid]);
        assert_eq!(LostBit::Uefi.to_string(), "the BMC dropped the UEFI bit");
        assert!(GetBootOption { parameter: 5 }.answer(&[1, 4, 0, 0]).is_err());
    }
}
