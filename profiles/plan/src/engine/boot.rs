//! Nodes that boot: scripts, documents, agents.

use std::net::Ipv4Addr;

use model::{
    BootAnswer, NodeName, Permit, RootKind, Ticket, UnixMillis, Verb,
    agent::{Claimed, Order},
    boot::BootAsk,
    permit::{self, AuditLine, ObservedIdentity, Refusal, Warrant},
};

use crate::{
    Act, AgentSays, Cause, Effect, Engine, Issued, NodeState, Output, Phase, ProfileSpec, Record,
    Replied, Reply, SwitchId, Token,
    boot::{Asking, Verdict, decide},
    input::{AgentAnswer, DocumentGrant, Refused},
    step::Event,
};

/// Seconds an idle agent waits between two questions.
pub const AGENT_WAIT_S: u32 = 5;

impl Engine {
    pub(crate) fn asked(
        &mut self,
        token: Token,
        ask: &BootAsk,
        now: UnixMillis,
        chance: [u8; 16],
        output: &mut Output,
    ) {
        let answer = self.answer(token, ask, now, chance, output);
        output.replies.push(Reply { token, what: Replied::Boot(answer) });
    }

    fn answer(
        &mut self,
        token: Token,
        ask: &BootAsk,
        now: UnixMillis,
        chance: [u8; 16],
        output: &mut Output,
    ) -> BootAnswer {
        let Some(state) = self.nodes.get(&ask.node) else {
            return BootAnswer::Local { why: format!("there is no node {}", ask.node) };
        };
        if let Some(own) = state.spec.address.filter(|own| *own != ask.from) {
            let why = format!("{} asks from {}, and its address is {own}", ask.node, ask.from);
            return BootAnswer::Local { why };
        }
        let settled = state.settled.as_ref().and_then(|name| self.profiles.get(name));
        let verdict = decide(Asking {
            attempt: ask.attempt,
            now,
            switch: state.open_switch(),
            settled,
            last: state.last.as_ref(),
            power: state.power,
            alive: state.alive,
            ordered: state.ordered,
            held: state.is_held(),
        });
        match verdict {
            Verdict::Local(why) => {
                self.spend(&ask.node, ask, output);
                BootAnswer::Local { why }
            }
            Verdict::Wait(why) => {
                // It asks again in half a minute; a reading of power must not be older than that by then, however
                // seldom the sampler reads. Nobody waits for this observation.
                let (node, cause) = (ask.node.clone(), Cause::Order(token));
                output.effects.push(Effect { node, cause, act: Act::ReadPower, not_before: now });
                BootAnswer::Wait { why }
            }
            Verdict::Repeat => self.repeat(ask, now, output),
            Verdict::Loop(reason) => {
                let remedy = "look at its console: the kernel does not start".to_owned();
                self.advance(
                    &ask.node,
                    Event::Hold { reason: reason.clone(), remedy },
                    now,
                    output,
                );
                BootAnswer::Local { why: reason }
            }
            Verdict::Issue { profile, switch, renewal } => {
                let ticket = Ticket::from_random(chance);
                self.issue(ask, New { profile, switch, renewal, ticket }, now, output)
            }
        }
    }

    fn repeat(&mut self, ask: &BootAsk, now: UnixMillis, output: &mut Output) -> BootAnswer {
        if let Err(why) = self.follow(ask, output) {
            return BootAnswer::Local { why };
        }
        let last = self.nodes.get(&ask.node).and_then(|state| state.last.clone());
        self.advance(&ask.node, Event::ScriptGiven, now, output);
        match last {
            Some(last) => last.answer(),
            None => BootAnswer::Local { why: "nothing was ordered".to_owned() },
        }
    }

    /// Where another server gives the addresses, ROM and iPXE of one boot may get two: the ticket follows to the
    /// second, as long as nobody can have used it at the first.
    fn follow(&mut self, ask: &BootAsk, output: &mut Output) -> Result<(), String> {
        let Some(state) = self.nodes.get_mut(&ask.node) else { return Ok(()) };
        let Some(last) = state.last.as_mut().filter(|last| last.from != ask.from) else {
            return Ok(());
        };
        if last.nonce.is_some() || last.kernel_whole.is_some() {
            return Err(format!("this boot was answered at {} and has begun there", last.from));
        }
        let script = self.render.script(&state.spec, &last.profile, &last.ticket, ask.from);
        last.script = script.map_err(|fault| format!("its boot script cannot be made: {fault}"))?;
        last.from = ask.from;
        output.records.push(Record::Issued(Box::new(last.clone())));
        Ok(())
    }

    /// A later attempt was told to boot locally: the ticket of the earlier one opens nothing any more.
    fn spend(&mut self, node: &NodeName, ask: &BootAsk, output: &mut Output) {
        let last = self.nodes.get_mut(node).and_then(|state| state.last.as_mut());
        if let Some(last) = last.filter(|last| last.live && last.attempt < ask.attempt) {
            last.live = false;
            output.records.push(Record::Issued(Box::new(last.clone())));
        }
    }

    fn issue(
        &mut self,
        ask: &BootAsk,
        new: New,
        now: UnixMillis,
        output: &mut Output,
    ) -> BootAnswer {
        let New { profile, switch, renewal, ticket } = new;
        let Some(state) = self.nodes.get_mut(&ask.node) else {
            return BootAnswer::Local { why: format!("there is no node {}", ask.node) };
        };
        let script = match self.render.script(&state.spec, &profile, &ticket, ask.from) {
            Ok(script) => script,
            Err(fault) => {
                let reason = format!("the boot script of {profile} cannot be made: {fault}");
                let remedy = "correct the profile; then switch again".to_owned();
                let event = Event::Hold { reason: reason.clone(), remedy };
                self.advance(&ask.node, event, now, output);
                return BootAnswer::Local { why: reason };
            }
        };
        let audit = match state.permit_install(self.profiles.get(&profile), now).transpose() {
            Ok(audit) => audit,
            Err(refusal) => {
                let reason = format!("{profile} may not be installed: {refusal}");
                let remedy = "settle what the reason names; then switch again".to_owned();
                let event = Event::Hold { reason: reason.clone(), remedy };
                self.advance(&ask.node, event, now, output);
                return BootAnswer::Local { why: reason };
            }
        };
        output.records.extend(audit.map(Record::Audit));
        let issued = Issued {
            node: ask.node.clone(),
            attempt: ask.attempt,
            switch,
            profile,
            ticket,
            from: ask.from,
            script,
            live: true,
            nonce: None,
            kernel_whole: None,
            done: None,
            at: now,
        };
        if renewal && let Some(switch) = state.switch.as_mut() {
            switch.renewals += 1;
            switch.version += 1;
            output.records.push(Record::Switch(Box::new(switch.clone())));
        }
        let answer = issued.answer();
        // The ticket before this one opens nothing any more, and its row says so.
        if let Some(old) = state.last.take().filter(|old| old.live) {
            output.records.push(Record::Issued(Box::new(Issued { live: false, ..old })));
        }
        output.records.push(Record::Issued(Box::new(issued.clone())));
        state.last = Some(issued);
        self.advance(&ask.node, Event::ScriptGiven, now, output);
        answer
    }

    pub(crate) fn document(
        &mut self,
        token: Token,
        ticket: &Ticket,
        name: String,
        from: Ipv4Addr,
        now: UnixMillis,
        output: &mut Output,
    ) {
        let what = self.holder(ticket, from).and_then(|(state, last)| {
            if !last.opens(state.open_switch().map(|switch| &switch.id), now) {
                return Err(spent(&state.spec.name));
            }
            let (node, profile) = (state.spec.name.clone(), last.profile.clone());
            Ok(DocumentGrant { node, profile, name, ticket: ticket.clone(), from })
        });
        output.replies.push(Reply { token, what: Replied::Document(what) });
    }

    /// The node whose last ticket this is, if it is used from the address it was given to.
    fn holder(&self, ticket: &Ticket, from: Ipv4Addr) -> Result<(&NodeState, &Issued), Refused> {
        let all = self.nodes.values();
        let mut held = all.filter_map(|state| state.last.as_ref().map(|last| (state, last)));
        let found = held.find(|(_, last)| last.ticket == *ticket);
        let (state, last) = found.ok_or_else(|| {
            Refused::Forbidden(format!("ticket {ticket} is unknown or belongs to an earlier boot"))
        })?;
        if last.from != from {
            let node = &state.spec.name;
            let text = format!("ticket {ticket} of {node} is not good from {from}");
            return Err(Refused::Forbidden(text));
        }
        Ok((state, last))
    }

    pub(crate) fn agent(
        &mut self,
        token: Token,
        ticket: &Ticket,
        from: Ipv4Addr,
        says: AgentSays,
        now: UnixMillis,
        output: &mut Output,
    ) {
        let node = self.holder(ticket, from).map(|(state, _)| state.spec.name.clone());
        let what = node.and_then(|node| match says {
            AgentSays::Claim { nonce } => self.claim(&node, nonce, now, output),
            AgentSays::Report(report) => {
                self.check_nonce(&node, &report.nonce)?;
                output.records.push(Record::Facts { node: node.clone(), at: now, report });
                self.payload_done(&node, now, output);
                Ok(AgentAnswer::Order(self.next_order(&node)))
            }
            AgentSays::Next { nonce } => {
                self.check_nonce(&node, &nonce)?;
                self.spoke(&node, now);
                Ok(AgentAnswer::Order(self.next_order(&node)))
            }
            AgentSays::Done => self.call_back(&node, now, output),
        });
        output.replies.push(Reply { token, what: Replied::Agent(what) });
    }

    /// One compare-and-set: the first nonce owns the ticket, and gets the same answer as often as it asks.
    fn claim(
        &mut self,
        node: &NodeName,
        nonce: String,
        now: UnixMillis,
        output: &mut Output,
    ) -> Result<AgentAnswer, Refused> {
        let unknown = || Refused::Unknown(format!("there is no node {node}"));
        let state = self.nodes.get_mut(node).ok_or_else(unknown)?;
        let in_flight = state.open_switch().map(|switch| switch.id.clone());
        let last = state.last.as_mut().ok_or_else(unknown)?;
        match &last.nonce {
            Some(owner) if *owner == nonce => (),
            Some(_) => {
                let reason = format!("a second machine claimed the ticket of {node}");
                let remedy = "find out which machine uses this node's address; then switch again";
                let event = Event::Hold { reason: reason.clone(), remedy: remedy.to_owned() };
                self.advance(node, event, now, output);
                return Err(Refused::Conflict(format!("{reason}; it is refused")));
            }
            None if !last.opens(in_flight.as_ref(), now) => return Err(spent(node)),
            None => {
                last.nonce = Some(nonce);
                output.records.push(Record::Issued(Box::new(last.clone())));
            }
        }
        self.spoke(node, now);
        self.advance(node, Event::PayloadSpoke, now, output);
        Ok(AgentAnswer::Claimed(Claimed { node: node.to_string(), order: Order::Report }))
    }

    fn check_nonce(&self, node: &NodeName, nonce: &str) -> Result<(), Refused> {
        let last = self.nodes.get(node).and_then(|state| state.last.as_ref());
        match last.and_then(|last| last.nonce.as_deref()) {
            Some(owner) if owner == nonce => Ok(()),
            Some(_) => Err(Refused::Conflict(format!("the ticket of {node} has another owner"))),
            None => Err(Refused::Conflict(format!("the ticket of {node} was not claimed yet"))),
        }
    }

    fn spoke(&mut self, node: &NodeName, now: UnixMillis) {
        if let Some(state) = self.nodes.get_mut(node) {
            state.alive = Some(now);
        }
    }

    fn payload_done(&mut self, node: &NodeName, now: UnixMillis, output: &mut Output) {
        self.spoke(node, now);
        let last = self.nodes.get_mut(node).and_then(|state| state.last.as_mut());
        if let Some(last) = last.filter(|last| last.done.is_none()) {
            last.done = Some(now);
            output.records.push(Record::Issued(Box::new(last.clone())));
        }
        self.advance(node, Event::PayloadDone, now, output);
    }

    /// A foreign payload calls back. A repeated call, its answer having been lost, is thanked again.
    fn call_back(
        &mut self,
        node: &NodeName,
        now: UnixMillis,
        output: &mut Output,
    ) -> Result<AgentAnswer, Refused> {
        let state = self.nodes.get(node);
        let last = state.and_then(|state| state.last.as_ref());
        let in_flight = state.and_then(NodeState::open_switch).map(|switch| &switch.id);
        let good = last.is_some_and(|last| {
            last.done.is_some()
                || last.live
                || in_flight.is_some_and(|id| last.switch.as_ref() == Some(id))
        });
        if !good {
            return Err(spent(node));
        }
        self.payload_done(node, now, output);
        Ok(AgentAnswer::Thanks)
    }

    /// Only harmless orders, and power off when a switch is about to take power away anyway.
    fn next_order(&self, node: &NodeName) -> Order {
        let open = self.nodes.get(node).and_then(NodeState::open_switch);
        match open.map(|switch| switch.phase) {
            Some(Phase::PoweringOff) => Order::PowerOff,
            Some(Phase::Guarding) => Order::Wait { seconds: 1 },
            Some(
                Phase::Arming
                | Phase::PoweringOn
                | Phase::Booting
                | Phase::Installing
                | Phase::Verifying
                | Phase::Done
                | Phase::Held
                | Phase::Failed,
            )
            | None => Order::Wait { seconds: AGENT_WAIT_S },
        }
    }
}

impl NodeState {
    /// What starts an installer writes a disk: it takes a permit, and leaves the permit's line. Nothing for other
    /// profiles. The identity is what the BMC told last, since a node that waits for its script cannot wait for its
    /// BMC too; where it has told nothing since the start, nothing speaks against the one on record.
    fn permit_install(
        &self,
        profile: Option<&ProfileSpec>,
        now: UnixMillis,
    ) -> Option<Result<AuditLine, Refusal>> {
        profile.filter(|profile| profile.root == RootKind::Installer)?;
        let switch = self.open_switch()?;
        let (node, by) = (self.spec.name.clone(), switch.by.clone());
        let (plan_hash, deadline) = (switch.plan_hash.clone(), switch.until);
        let warrant =
            Warrant { id: switch.id.0.clone(), node: switch.node.clone(), expires: deadline };
        let verb = Verb::Install;
        let order = permit::Order { node, verb, disks: vec![], plan_hash, by, deadline };
        let identity =
            ObservedIdentity { seen: self.told.or(self.recorded), recorded: self.recorded };
        let permit = Permit::issue(order, identity, &self.protection(), &warrant, now);
        Some(permit.and_then(|permit| permit.spend(&self.spec.name, verb, now)))
    }
}

struct New {
    profile: model::ProfileName,
    switch: Option<SwitchId>,
    renewal: bool,
    ticket: Ticket,
}

fn spent(node: &NodeName) -> Refused {
    Refused::Conflict(format!("the ticket of {node} is spent"))
}
