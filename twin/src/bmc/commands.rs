//! What a twin BMC answers to commands, and what they do to the board.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bmc_proto::ipmi::{
    Command, CompletionCode, NetFn,
    boot_options::{self, BootFlags, BootOption, GetBootOption, SetBootOption},
    channel::{
        CloseSession, GetAuthCapabilities, GetCipherSuites, SetSessionPrivilege, SuiteRecord,
    },
    chassis::{ChassisControl, ChassisStatus, GetChassisStatus},
    dcmi::{self, GetPowerReading, PowerReadingRecord},
    device_id::{GetDeviceId, GetSystemGuid},
    message::LanMessage,
    rakp::Privilege,
    server::ServerSession,
};

use super::{IpmiConfig, IpmiControl};
use crate::board::{Board, BootOverride};

/// The LAN channel's number.
const CHANNEL: u8 = 1;

/// Response data, or the completion code of a refusal.
type Outcome = Result<Vec<u8>, CompletionCode>;

/// A response, and the session it closes.
pub(super) struct Answered {
    pub(super) response: Vec<u8>,
    pub(super) closes: Option<u32>,
}

pub(super) struct Commands {
    board: Arc<dyn Board>,
    config: IpmiConfig,
    /// Boot option parameters other than 5, as set.
    options: BTreeMap<u8, Vec<u8>>,
    /// Parameter 5 as set, and what it meant to the board.
    flags: Option<([u8; 5], Option<BootOverride>)>,
    meter: Meter,
}

/// Statistics of the readings given so far, as DCMI reports them.
#[derive(Default)]
struct Meter {
    min: u16,
    max: u16,
    sum: u64,
    count: u64,
}

impl Meter {
    fn note(&mut self, watts: u16) -> PowerReadingRecord {
        self.min = if self.count == 0 { watts } else { self.min.min(watts) };
        self.max = self.max.max(watts);
        self.sum += u64::from(watts);
        self.count += 1;
        let average = self.sum / self.count;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        PowerReadingRecord {
            now: watts,
            min: self.min,
            max: self.max,
            average: u16::try_from(average).unwrap_or(u16::MAX),
            timestamp: u32::try_from(since.as_secs()).unwrap_or(u32::MAX),
            period_ms: 60_000,
            active: true,
        }
    }

    /// What BMCs without a working meter answer: zeros, and "not active".
    fn nothing() -> PowerReadingRecord {
        let (now, min, max, average, timestamp, period_ms) = (0, 0, 0, 0, 0, 0);
        PowerReadingRecord { now, min, max, average, timestamp, period_ms, active: false }
    }
}

impl Commands {
    pub(super) fn new(board: Arc<dyn Board>, config: IpmiConfig) -> Self {
        let options = BTreeMap::from([
            (boot_options::SET_IN_PROGRESS, vec![0]),
            (1, vec![0]),
            (2, vec![0]),
            (boot_options::FLAG_VALIDITY, vec![0]),
            (boot_options::INFO_ACKNOWLEDGE, vec![0, 0]),
            (6, vec![0; 9]),
            (7, vec![0; 17]),
        ]);
        Self { board, config, options, flags: None, meter: Meter::default() }
    }

    /// Commands that need no session.
    pub(super) fn before_session(&self, message: &[u8]) -> Option<Vec<u8>> {
        let request = request(message)?;
        let outcome = match (request.netfn, request.command) {
            (NetFn::APP, GetAuthCapabilities::NUMBER) => auth_capabilities(request.body),
            (NetFn::APP, GetCipherSuites::CODE) => self.cipher_suites(request.body),
            (NetFn::APP, GetSystemGuid::CODE) => Ok(self.board.guid().to_vec()),
            _ => Err(CompletionCode::PRIVILEGE),
        };
        Some(respond(&request, outcome))
    }

    /// A command in a session.
    pub(super) fn in_session(
        &mut self,
        message: &[u8],
        session: &mut ServerSession,
        control: &IpmiControl,
    ) -> Option<Answered> {
        let request = request(message)?;
        let privilege = session.privilege()?;
        let mut closes = None;
        let outcome = if control.is_busy() {
            Err(CompletionCode::NODE_BUSY)
        } else if privilege < needed(request.netfn, request.command) {
            Err(CompletionCode::PRIVILEGE)
        } else {
            match (request.netfn, request.command) {
                (NetFn::APP, SetSessionPrivilege::NUMBER) => set_privilege(request.body, session),
                (NetFn::APP, CloseSession::CODE) => CloseSession::decode(request.body)
                    .map(|close| {
                        closes = Some(close.bmc_id);
                        vec![]
                    })
                    .map_err(|_| CompletionCode::LENGTH),
                _ => self.command(&request, control),
            }
        };
        Some(Answered { response: respond(&request, outcome), closes })
    }

    fn command(&mut self, request: &LanMessage<'_>, control: &IpmiControl) -> Outcome {
        let data = request.body;
        match (request.netfn, request.command) {
            (NetFn::APP, GetDeviceId::CODE) => {
                let mut id = self.config.device.encode();
                if control.device_id_is_short() {
                    id.truncate(11);
                }
                Ok(id)
            }
            (NetFn::APP, GetSystemGuid::CODE) => Ok(self.board.guid().to_vec()),
            (NetFn::APP, GetAuthCapabilities::NUMBER) => auth_capabilities(data),
            (NetFn::APP, GetCipherSuites::CODE) => self.cipher_suites(data),
            (NetFn::CHASSIS, GetChassisStatus::CODE) => {
                let power_on = control.power_said(self.board.power());
                let status =
                    ChassisStatus { power_on, restore_policy: 2, ..ChassisStatus::default() };
                Ok(status.encode().to_vec())
            }
            (NetFn::CHASSIS, ChassisControl::CODE) => self.control(data, control),
            (NetFn::CHASSIS, SetBootOption::CODE) => self.set_boot_option(data, control),
            (NetFn::CHASSIS, GetBootOption::CODE) => self.boot_option(data),
            (NetFn::GROUP, GetPowerReading::CODE) if self.config.dcmi => self.power_reading(data),
            _ => Err(CompletionCode::INVALID_COMMAND),
        }
    }

    fn cipher_suites(&self, data: &[u8]) -> Outcome {
        let asked = GetCipherSuites::decode(data).map_err(|_| CompletionCode::LENGTH)?;
        let records: Vec<u8> =
            self.config.suites.iter().flat_map(|suite| SuiteRecord::of(*suite).encode()).collect();
        Ok(asked.encode_answer(CHANNEL, &records))
    }

    fn control(&self, data: &[u8], control: &IpmiControl) -> Outcome {
        let verb = ChassisControl::decode(data).map_err(|_| CompletionCode::INVALID_FIELD)?;
        control.count(verb);
        tracing::debug!(%verb, "chassis control");
        let on = self.board.power();
        match verb {
            ChassisControl::Off => self.board.power_off(),
            ChassisControl::On => self.board.power_on(),
            ChassisControl::Cycle if on => self.board.power_cycle(),
            ChassisControl::Reset if on => self.board.reset(),
            ChassisControl::SoftOff if on => self.board.soft_off(),
            ChassisControl::Cycle | ChassisControl::Reset | ChassisControl::SoftOff => {
                return Err(CompletionCode::NOT_IN_THIS_STATE);
            }
            ChassisControl::DiagnosticInterrupt => return Err(CompletionCode::INVALID_FIELD),
        }
        Ok(vec![])
    }

    fn set_boot_option(&mut self, data: &[u8], control: &IpmiControl) -> Outcome {
        let (parameter, value) =
            boot_options::decode_set(data).map_err(|_| CompletionCode::LENGTH)?;
        if parameter == boot_options::BOOT_FLAGS {
            return self.set_flags(value, control);
        }
        let Some(held) = self.options.get_mut(&parameter) else {
            return Err(CompletionCode::PARAMETER_NOT_SUPPORTED);
        };
        if value.is_empty() {
            // Only marks the parameter valid or invalid.
            return Ok(vec![]);
        }
        if parameter == boot_options::SET_IN_PROGRESS {
            // Table 28-14: a second party may not begin while one is at it; 2 commits and ends.
            let wanted = value.first().map_or(0, |state| state & 3);
            if wanted == 1 && held.first() == Some(&1) {
                return Err(CompletionCode(0x81));
            }
            *held = vec![if wanted == 2 { 0 } else { wanted }];
            return Ok(vec![]);
        }
        *held = value.iter().copied().take(17).collect();
        Ok(vec![])
    }

    fn set_flags(&mut self, value: &[u8], control: &IpmiControl) -> Outcome {
        if value.is_empty() || control.forgets_boot_override() {
            return Ok(vec![]);
        }
        let raw = *value.first_chunk::<5>().ok_or(CompletionCode::LENGTH)?;
        let flags = BootFlags::decode(&raw).map_err(|_| CompletionCode::LENGTH)?;
        let BootFlags { valid, reach, mode, device } = flags;
        let wanted = (valid && device != boot_options::BootDevice::None).then_some(BootOverride {
            device,
            mode,
            reach,
        });
        self.board.set_boot_override(wanted);
        self.flags = Some((raw, wanted));
        Ok(vec![])
    }

    fn boot_option(&self, data: &[u8]) -> Outcome {
        let GetBootOption { parameter } =
            GetBootOption::decode(data).map_err(|_| CompletionCode::LENGTH)?;
        let value = if parameter == boot_options::BOOT_FLAGS {
            Some(self.flags_now().to_vec())
        } else {
            self.options.get(&parameter).cloned()
        };
        let data = value.ok_or(CompletionCode::PARAMETER_NOT_SUPPORTED)?;
        Ok(BootOption { parameter, invalid: false, data }.encode())
    }

    /// Bytes as they were set, as long as the board still holds to them; else what the board says.
    fn flags_now(&self) -> [u8; 5] {
        let now = self.board.boot_override();
        match (self.flags, now) {
            (Some((raw, meant)), now) if meant == now => raw,
            (_, None) => BootFlags::CLEAR.encode(),
            (_, Some(BootOverride { device, mode, reach })) => {
                BootFlags { valid: true, reach, mode, device }.encode()
            }
        }
    }

    fn power_reading(&mut self, data: &[u8]) -> Outcome {
        let [group, mode, ..] = *data.first_chunk::<4>().ok_or(CompletionCode::LENGTH)?;
        if group != dcmi::GROUP {
            return Err(CompletionCode::INVALID_COMMAND);
        }
        if mode != 1 {
            return Err(CompletionCode::INVALID_FIELD);
        }
        let record = self.board.watts().map_or_else(Meter::nothing, |w| self.meter.note(w));
        Ok(record.encode())
    }
}

/// The request in a message, unless it is broken or a response.
fn request(message: &[u8]) -> Option<LanMessage<'_>> {
    LanMessage::decode(message).ok().filter(|request| request.netfn.0 & 1 == 0)
}

fn respond(request: &LanMessage<'_>, outcome: Outcome) -> Vec<u8> {
    match outcome {
        Ok(data) => request.response(CompletionCode::OK, &data),
        Err(code) => request.response(code, &[]),
    }
}

/// The privilege a command needs (appendix G).
fn needed(netfn: NetFn, command: u8) -> Privilege {
    match (netfn, command) {
        (NetFn::CHASSIS, ChassisControl::CODE | SetBootOption::CODE | GetBootOption::CODE) => {
            Privilege::Operator
        }
        (NetFn::APP, CloseSession::CODE) => Privilege::Callback,
        _ => Privilege::User,
    }
}

fn auth_capabilities(data: &[u8]) -> Outcome {
    let asked = GetAuthCapabilities::decode(data).map_err(|_| CompletionCode::LENGTH)?;
    Ok(asked.encode_answer(CHANNEL).to_vec())
}

fn set_privilege(data: &[u8], session: &mut ServerSession) -> Outcome {
    let level = data.first().ok_or(CompletionCode::LENGTH)? & 0x0f;
    let now = if level == 0 {
        // 0 asks which level it is.
        session.privilege()
    } else {
        let wanted = Privilege::from_number(level).ok_or(CompletionCode::INVALID_FIELD)?;
        session.set_privilege(wanted)
    };
    now.map(|level| vec![level.number()]).ok_or(CompletionCode::PRIVILEGE_LIMIT)
}
