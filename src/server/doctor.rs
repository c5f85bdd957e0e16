//! The doctor's rounds: what is known of a node is put together, and the rules of pxe-proto say what is wrong.

use std::{collections::BTreeSet, time::Duration};

use api::{DiagnosisView, LabDoctor, NodeDoctor};
use model::{MacAddr, NodeName, Sighted, Sighting, UnixMillis, boot::DhcpMode};
use plan::{NodeState, Phase, Switch};
use profiles::world::now;
use pxe_proto::doctor::{self, Diagnosis, Facts, Network, NetworkRival, Power};
use web::lab::Fault;

use super::lab::{LiveLab, store};

/// Sightings of one boot the rules look at.
const LOOKED_AT: u32 = 2_000;
/// Sightings of strangers that are looked through for one that might be the node.
const STRANGERS: u32 = 200;
/// Longest POST of a machine no switch says more of.
const POST: Duration = Duration::from_secs(4 * 60);
/// A boot that ended longer ago is history, and no trouble of now.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);

impl LiveLab {
    /// What is wrong with a node now.
    pub(super) async fn examine(&self, name: &str) -> Result<NodeDoctor, Fault> {
        let node = self.get(name)?.name.clone();
        let awaited = self.state_of(&node).as_ref().and_then(awaited);
        let last = inventory::sighting::last_boot(&self.store, &node).await.map_err(store)?;
        // A boot before the one that is waited for says nothing about it.
        let boot = last.filter(|last| awaited.is_none_or(|since| *last >= since));
        let seen = match boot {
            Some(boot) => {
                let seen = inventory::sighting::of_attempt(&self.store, &node, boot, LOOKED_AT);
                seen.await.map_err(store)?
            }
            None => Vec::new(),
        };
        let facts = self.facts(&node, seen.is_empty()).await?;
        let diagnoses = diagnosed(&seen, &facts);
        Ok(NodeDoctor { node: node.to_string(), boot: boot.map(|boot| boot.0), diagnoses })
    }

    /// Nodes with trouble of now, and what is wrong with the networks.
    pub(super) async fn rounds(&self) -> Result<LabDoctor, Fault> {
        let last = inventory::sighting::last_per_node(&self.store).await.map_err(store)?;
        let recent = last.into_iter().filter(|one| now().since(one.at) < RECENT);
        let mut looked_at: BTreeSet<NodeName> = recent.filter_map(|one| one.node).collect();
        looked_at.extend(self.engine.states().iter().filter_map(|state| {
            awaited(state)?;
            Some(state.spec.name.clone())
        }));
        let mut nodes = Vec::new();
        for name in looked_at.iter().filter(|name| self.config.nodes.contains_key(name.as_str())) {
            let said = self.examine(name.as_str()).await?;
            nodes.extend(Some(said).filter(|said| !said.diagnoses.is_empty()));
        }
        Ok(LabDoctor { nodes, networks: self.networks() })
    }

    /// What is known of a node besides its sightings. `is_silent`: there are none, and what may explain that is asked
    /// for as well.
    pub(super) async fn facts(&self, node: &NodeName, is_silent: bool) -> Result<Facts, Fault> {
        let state = self.state_of(node);
        let awaited = state.as_ref().and_then(awaited);
        let switch = state.as_ref().and_then(|state| state.switch.as_ref());
        let power = self.power(node, switch).await?;
        let (heard_before, strangers) = match is_silent {
            true => (self.was_heard(node).await?, self.strangers(power).await?),
            false => (true, Vec::new()),
        };
        let reported = inventory::facts::find(&self.store, node).await.map_err(store)?;
        let reported = reported.as_ref().and_then(super::views::facts);
        Ok(Facts {
            now: now(),
            power,
            awaited,
            // Half of what the switch allows: the doctor speaks before the switch is held.
            post_limit: switch.map_or(POST, |switch| switch.to.bounds.post / 2),
            heard_before,
            is_over: false,
            is_proxy: self.is_proxy(node),
            strangers,
            memory_mib: reported.and_then(|facts| facts.memory_mib),
        })
    }

    fn state_of(&self, node: &NodeName) -> Option<NodeState> {
        self.engine.state(node)
    }

    /// Power as the book has it, with the moment it changed: not earlier than the switch turned it on.
    async fn power(
        &self,
        node: &NodeName,
        switch: Option<&Switch>,
    ) -> Result<Option<Power>, Fault> {
        let rows = inventory::power_state::find(&self.store, node).await.map_err(store)?;
        let turned_on = switch.and_then(|switch| switch.on_sent);
        Ok(rows.and_then(|row| {
            let since = turned_on.map_or(row.at, |on| row.at.max(on));
            Some(Power { is_on: row.on?, since })
        }))
    }

    async fn was_heard(&self, node: &NodeName) -> Result<bool, Fault> {
        let heard = inventory::sighting::latest(&self.store, Some(node), 1).await;
        Ok(!heard.map_err(store)?.is_empty())
    }

    /// Machines nobody knows that asked for an address since the node was switched on.
    async fn strangers(&self, power: Option<Power>) -> Result<Vec<MacAddr>, Fault> {
        let Some(power) = power.filter(|power| power.is_on) else { return Ok(Vec::new()) };
        let seen = inventory::sighting::latest(&self.store, None, STRANGERS).await;
        let asked = seen.map_err(store)?.into_iter().filter(|one| {
            one.at >= power.since
                && matches!(one.what, Sighted::DhcpSilent { .. } | Sighted::DhcpIn { .. })
        });
        let macs: BTreeSet<MacAddr> = asked.filter_map(|one| one.mac).collect();
        Ok(macs.into_iter().collect())
    }

    fn is_proxy(&self, node: &NodeName) -> bool {
        let Some(node) = self.config.nodes.get(node.as_str()) else { return false };
        // A node without an address is one whose address another server chooses.
        node.address.is_none_or(|address| {
            let mut networks = self.config.networks.iter();
            networks.any(|one| one.dhcp == DhcpMode::Proxy && one.subnet.contains(address))
        })
    }

    /// What is wrong with the networks and this machine.
    fn networks(&self) -> Vec<DiagnosisView> {
        let known = self.config.networks.iter().zip(self.status.networks());
        let network = |(network, status): (&crate::config::Network, pxe::NetworkStatus)| Network {
            name: network.name.clone(),
            is_proxy: network.dhcp == DhcpMode::Proxy,
            rivals: status
                .rivals
                .into_iter()
                .map(|rival| NetworkRival { server: rival.server, file: rival.file })
                .collect(),
            findings: status
                .findings
                .into_iter()
                .map(|finding| (finding.what, finding.remedy))
                .collect(),
            acks: status.dhcp.acks,
            late_acks: status.dhcp.late_acks,
            dropped_requests: status.dhcp.dropped_requests,
            pool: status.pool.map(|pool| {
                (pool.size, pool.size.saturating_sub(pool.bound).saturating_sub(pool.taken))
            }),
        };
        known.flat_map(|one| doctor::network(&network(one))).map(|one| view(one, &[])).collect()
    }
}

/// Since when a node is to show itself on the boot network: it was switched on for a switch that still waits for it, or
/// that was held while it waited.
fn awaited(state: &NodeState) -> Option<UnixMillis> {
    let switch = state.switch.as_ref()?;
    match switch.phase {
        Phase::Booting | Phase::Installing => Some(switch.on_sent.unwrap_or(switch.since)),
        Phase::Held => switch.on_sent.filter(|_| state.power.is_some_and(|(on, _)| on)),
        Phase::Guarding
        | Phase::PoweringOff
        | Phase::Arming
        | Phase::PoweringOn
        | Phase::Verifying
        | Phase::Done
        | Phase::Failed => None,
    }
}

/// What the rules say of these sightings.
pub(super) fn diagnosed(seen: &[Sighting], facts: &Facts) -> Vec<DiagnosisView> {
    doctor::diagnose(seen, facts).into_iter().map(|one| view(one, seen)).collect()
}

fn view(said: Diagnosis, seen: &[Sighting]) -> DiagnosisView {
    let shows = |place: &usize| seen.get(*place).map(|one| one.what.to_string());
    DiagnosisView {
        id: said.id.to_owned(),
        cause: said.cause,
        remedy: said.remedy,
        confidence: said.confidence.word().to_owned(),
        evidence: said.evidence.iter().filter_map(shows).collect(),
    }
}
