//! What was seen, of effects, of BMCs and on the wire, and what a switch makes of it.

use std::time::Duration;

use model::{NodeName, Sighted, Sighting, UnixMillis, Uuid, sighting::DhcpKind};

use crate::{Cause, Engine, NodeState, Observation, Observed, Output, Phase, Record, step::Event};

/// A machine that has read off this long is off, not restarting.
const OFF_FOR_GOOD: Duration = Duration::from_secs(8);

impl Engine {
    pub(super) fn observed(
        &mut self,
        observation: Observation,
        now: UnixMillis,
        output: &mut Output,
    ) {
        let Observation { node, cause, what } = observation;
        if let Observed::Power(reading) = &what {
            self.power_seen(node.clone(), reading.as_ref().ok().copied(), now, output);
        }
        match cause {
            Cause::Switch(id) => {
                let open = self.nodes.get(&node).and_then(NodeState::open_switch);
                if open.is_some_and(|switch| switch.id == id) {
                    self.advance(&node, Event::Observed(what), now, output);
                }
            }
            Cause::Order(token) => self.order_observed(&node, token, what, now, output),
        }
    }

    pub(super) fn power_seen(
        &mut self,
        node: NodeName,
        on: Option<bool>,
        at: UnixMillis,
        output: &mut Output,
    ) {
        self.touched.insert(node.clone());
        let Some(state) = self.nodes.get_mut(&node) else { return };
        let before = state.power.map(|(on, _)| on);
        state.power = on.map(|on| (on, at));
        state.off_since = match on {
            Some(false) => state.off_since.or(Some(at)),
            Some(true) | None => None,
        };
        if before != on {
            output.records.push(Record::Power { node: node.clone(), on, at });
        }
        self.lost_power(&node, at, output);
    }

    /// A machine that was switched on and has read off for a while will not ask DHCP, nor call back.
    fn lost_power(&mut self, node: &NodeName, at: UnixMillis, output: &mut Output) {
        let Some(state) = self.nodes.get(node) else { return };
        let waits = state
            .open_switch()
            .filter(|switch| matches!(switch.phase, Phase::Booting | Phase::Installing));
        let Some((switch, off)) = waits.zip(state.off_since) else { return };
        // One reading may be the moment between off and on of a restart.
        if at.since(off.max(switch.since)) < OFF_FOR_GOOD {
            return;
        }
        let reason = format!("power has read off for {} s", at.since(off).as_secs());
        let remedy = "look at the machine and its BMC's log: it lost power or was switched off; then switch again";
        self.advance(node, Event::Hold { reason, remedy: remedy.to_owned() }, at, output);
    }

    /// The first GUID a BMC tells is the one on record; a later one never replaces it by itself.
    pub(super) fn bmc_seen(
        &mut self,
        node: NodeName,
        guid: Option<Uuid>,
        suite: Option<u8>,
        trouble: Option<String>,
        at: UnixMillis,
        output: &mut Output,
    ) {
        let Some(state) = self.nodes.get_mut(&node) else { return };
        let guid = guid.filter(|guid| !guid.is_junk());
        state.told = guid.or(state.told);
        state.recorded = state.recorded.or(guid);
        state.suite = suite.or(state.suite);
        state.bmc_trouble.clone_from(&trouble);
        let (guid, suite) = (state.recorded, state.suite);
        self.touched.insert(node.clone());
        output.records.push(Record::Bmc { node, guid, suite, trouble, at });
    }

    pub(super) fn sighted(&mut self, sighting: Sighting, now: UnixMillis, output: &mut Output) {
        let node = sighting.node.clone();
        let event =
            match &sighting.what {
                Sighted::DhcpIn {
                    kind: DhcpKind::Discover | DhcpKind::Request, client, ..
                } if !client.is_empty() => Some(Event::DhcpSeen),
                Sighted::KernelWhole { .. } => Some(Event::KernelWhole),
                Sighted::Looped { what, times } => self.looped(node.as_ref(), what, *times),
                Sighted::DhcpIn { .. }
                | Sighted::DhcpOut { .. }
                | Sighted::DhcpSilent { .. }
                | Sighted::Rival { .. }
                | Sighted::AddressTaken { .. }
                | Sighted::Menu { .. }
                | Sighted::Learnt { .. }
                | Sighted::TftpRead { .. }
                | Sighted::TftpDone { .. }
                | Sighted::TftpProbe { .. }
                | Sighted::TftpFailed { .. }
                | Sighted::HttpDone { .. }
                | Sighted::HttpShort { .. }
                | Sighted::Script { .. }
                | Sighted::Refused { .. }
                | Sighted::Agent { .. } => None,
            };
        if event == Some(Event::KernelWhole) {
            self.kernel_whole(&sighting, output);
        }
        output.records.push(Record::Sighting(Box::new(sighting)));
        self.touched.extend(node.clone());
        if let (Some(node), Some(event)) = (node, event) {
            self.advance(&node, event, now, output);
        }
    }

    /// A machine that is kept out of a boot loop gets no boot file: a switch that waits for its boot would wait in vain.
    /// In other phases it may still be the boot before.
    fn looped(&self, node: Option<&NodeName>, what: &str, times: u32) -> Option<Event> {
        let switch = node.and_then(|node| self.nodes.get(node)).and_then(NodeState::open_switch)?;
        matches!(switch.phase, Phase::Booting | Phase::Installing).then(|| Event::Hold {
            reason: format!("boot loop: {what} {times} times"),
            remedy: "look at its console: what it loads does not start; then switch again"
                .to_owned(),
        })
    }

    fn kernel_whole(&mut self, sighting: &Sighting, output: &mut Output) {
        let state = sighting.node.as_ref().and_then(|node| self.nodes.get_mut(node));
        let last = state.and_then(|state| state.last.as_mut());
        if let Some(last) = last.filter(|last| Some(last.attempt.0) == sighting.attempt)
            && last.kernel_whole.is_none()
        {
            last.kernel_whole = Some(sighting.at);
            output.records.push(Record::Issued(Box::new(last.clone())));
        }
    }
}
