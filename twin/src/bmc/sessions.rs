//! The session table of a twin BMC: bounded, half-open and idle sessions make room.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use bmc_proto::ipmi::{
    Suite,
    rakp::{OpenSessionRequest, Rakp1, Rakp3, RakpStatus},
    server::{self, Account, ServerSession},
    session::Packet,
};

use super::{IpmiConfig, IpmiControl, SuiteRefusal, chance};

/// A handshake that stands still for so long gives its place up.
const HALF_OPEN: Duration = Duration::from_secs(3);

pub(super) struct Sessions {
    accounts: Vec<Account>,
    suites: Vec<Suite>,
    guid: [u8; 16],
    max: usize,
    idle: Duration,
    table: BTreeMap<u32, Entry>,
}

struct Entry {
    session: ServerSession,
    peer: SocketAddr,
    request: OpenSessionRequest,
    used: Instant,
}

impl Sessions {
    pub(super) fn new(config: &IpmiConfig, guid: [u8; 16]) -> Self {
        Self {
            accounts: config.accounts.clone(),
            suites: config.suites.clone(),
            guid,
            max: config.max_sessions,
            idle: config.idle,
            table: BTreeMap::new(),
        }
    }

    pub(super) fn open(
        &mut self,
        packet: &Packet<'_>,
        peer: SocketAddr,
        control: &IpmiControl,
    ) -> Option<Vec<u8>> {
        let request = OpenSessionRequest::decode(packet.payload).ok()?;
        // The three algorithms must be those of one suite, not mixed from two.
        let suite = Suite::from_algorithms(request.algorithms);
        let listed = suite.filter(|suite| self.suites.contains(suite));
        let Some(mut suite) = listed else {
            return Some(server::refuse_open(&request, RakpStatus::NoCipherSuiteMatch));
        };
        match control.refusal(suite) {
            Some(SuiteRefusal::Status(status)) => {
                return Some(server::refuse_open(&request, status));
            }
            Some(SuiteRefusal::AnswersWith(other)) => suite = other,
            None => (),
        }
        let repeated = self.table.values().find(|entry| {
            entry.peer == peer && entry.request == request && entry.session.is_unclaimed()
        });
        if let Some(entry) = repeated {
            return Some(entry.session.open_answer(&request));
        }
        if !self.has_room() {
            return Some(server::refuse_open(&request, RakpStatus::InsufficientResources));
        }
        let id = self.free_id();
        let (session, answer) = ServerSession::open(&request, suite, id);
        self.table.insert(id, Entry { session, peer, request, used: Instant::now() });
        Some(answer)
    }

    fn has_room(&mut self) -> bool {
        if self.table.len() >= self.max {
            let idle = self.idle;
            self.table.retain(|_, entry| {
                let limit = if entry.session.is_active() { idle } else { HALF_OPEN };
                entry.used.elapsed() < limit
            });
        }
        self.table.len() < self.max
    }

    fn free_id(&self) -> u32 {
        loop {
            let id = u32::from_le_bytes(chance());
            if id != 0 && !self.table.contains_key(&id) {
                return id;
            }
        }
    }

    pub(super) fn rakp1(&mut self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let rakp1 = Rakp1::decode(packet.payload).ok()?;
        let Some(entry) = self.table.get_mut(&rakp1.bmc_id) else {
            return Some(server::unknown_session(&rakp1));
        };
        entry.used = Instant::now();
        let account = self.accounts.iter().find(|account| *account.login.user() == rakp1.user);
        Some(entry.session.rakp1(&rakp1, account, chance(), self.guid))
    }

    pub(super) fn rakp3(&mut self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let rakp3 = Rakp3::decode(packet.payload).ok()?;
        let entry = self.table.get_mut(&rakp3.bmc_id)?;
        entry.used = Instant::now();
        let answer = entry.session.rakp3(&rakp3);
        if answer.is_none() {
            self.table.remove(&rakp3.bmc_id);
        }
        answer
    }

    pub(super) fn active(&mut self, id: u32) -> Option<&mut ServerSession> {
        let entry = self.table.get_mut(&id).filter(|entry| entry.session.is_active())?;
        entry.used = Instant::now();
        Some(&mut entry.session)
    }

    pub(super) fn close(&mut self, id: u32) {
        self.table.remove(&id);
    }

    pub(super) fn forget_all(&mut self) {
        self.table.clear();
    }
}
