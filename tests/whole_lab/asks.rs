//! Questions to volund's API, and waiting for what it answers.

use std::{fmt::Write as _, time::Instant};

use api::{
    NodeDetail, NodeList, NodeView, PowerOutcome, PowerRequest, PowerVerb, Problem, SwitchAccepted,
    SwitchPreview, SwitchRequest,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::rig::{BOUND, LOOK, Rig, until};

impl Rig {
    async fn answer<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<T, (u16, Problem)> {
        let answer = request.bearer_auth(&self.token).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        if status.is_success() {
            return Ok(
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
            );
        }
        let problem = serde_json::from_str(&text);
        Err((status.as_u16(), problem.unwrap_or_else(|error| panic!("{error}: {text}"))))
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.operator())
    }

    /// The event stream of the API, as far as this text.
    pub(crate) async fn events_until(&self, text: &str) -> String {
        let request = self.client.get(self.url("/api/v1/events")).bearer_auth(&self.token);
        let mut answer = request.send().await.unwrap();
        let mut seen = String::new();
        while !seen.contains(text) {
            let chunk = answer.chunk().await.unwrap().expect("the stream goes on");
            seen.push_str(&String::from_utf8_lossy(&chunk));
        }
        seen
    }

    /// GET of the API; the text as it came.
    pub(crate) async fn text(&self, path: &str) -> String {
        let answer = self.client.get(self.url(path)).bearer_auth(&self.token).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// GET of a file of the API.
    pub(crate) async fn bytes(&self, path: &str) -> Vec<u8> {
        let answer = self.client.get(self.url(path)).bearer_auth(&self.token).send().await.unwrap();
        answer.error_for_status().unwrap().bytes().await.unwrap().to_vec()
    }

    /// GET of the API, understood.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> T {
        self.answer(self.client.get(self.url(path))).await.unwrap()
    }

    pub(crate) async fn nodes(&self) -> NodeList {
        self.answer(self.client.get(self.url("/api/v1/nodes"))).await.unwrap()
    }

    pub(crate) async fn node(&self, name: &str) -> NodeDetail {
        self.answer(self.client.get(self.url(&format!("/api/v1/nodes/{name}")))).await.unwrap()
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, (u16, Problem)> {
        self.answer(self.client.post(self.url(path)).json(body)).await
    }

    /// Previews, confirms, begins; once more when something changed in between.
    pub(crate) async fn try_switch(
        &self,
        nodes: &str,
        profile: &str,
    ) -> Result<SwitchAccepted, (u16, Problem)> {
        let (nodes, profile) = (nodes.to_owned(), profile.to_owned());
        let mut request = SwitchRequest { nodes, profile, confirm: None };
        let mut tries = 0..10;
        loop {
            request.confirm = None;
            let preview: SwitchPreview = self.post("/api/v1/switch/preview", &request).await?;
            request.confirm = Some(preview.hash);
            match self.post("/api/v1/switch", &request).await {
                Err((409, problem))
                    if problem.error.contains("preview") && tries.next().is_some() => {}
                outcome => return outcome,
            }
        }
    }

    /// Uses a power verb, confirmed.
    pub(crate) async fn power(
        &self,
        nodes: &str,
        verb: PowerVerb,
    ) -> Result<PowerOutcome, (u16, Problem)> {
        let request = PowerRequest { nodes: nodes.to_owned(), verb, confirmed: true };
        self.post("/api/v1/power", &request).await
    }

    /// Begins a switch that must be accepted.
    pub(crate) async fn switch(&self, nodes: &str, profile: &str) {
        self.try_switch(nodes, profile).await.unwrap();
    }

    /// Waits until a node is as it should be; shows what happened when it is not in time.
    pub(crate) async fn node_is(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&NodeView) -> bool,
    ) -> NodeView {
        let end = Instant::now() + BOUND;
        loop {
            let detail = self.node(name).await;
            if is(&detail.node) {
                return detail.node;
            }
            assert!(Instant::now() < end, "{name}: not {what} in time\n{}", self.story(&detail));
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a node is in this phase.
    pub(crate) async fn in_phase(&self, name: &str, phase: plan::Phase) -> NodeView {
        self.node_is(name, phase.name(), |node| node.phase.name == phase.name()).await
    }

    /// Waits until volund has read a node's power so often since `from_ms`: what it would have done by itself, it has
    /// done.
    pub(crate) async fn sampled(&self, name: &str, from_ms: i64, times: usize) {
        until("some readings", BOUND, async || {
            let power = self.node(name).await.power;
            let later = power.iter().filter(|reading| reading.to_ms.is_some_and(|at| at > from_ms));
            (later.count() >= times).then_some(())
        })
        .await;
    }

    /// Waits for a step in a blade's log.
    pub(crate) async fn step(&self, bay: u8, step: &str, times: u64) {
        let log = self.blade(bay).blade.log().clone();
        let end = Instant::now() + BOUND;
        while log.count(step) < times {
            assert!(
                Instant::now() < end,
                "bay {bay}: no {step:?} in time: {:?}\n{:?}",
                log.steps(),
                log.console_lines()
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Everything known of a node, for people.
    pub(crate) fn story(&self, detail: &NodeDetail) -> String {
        let mut text = format!("{:?}\nBMC {:?}\n", detail.node.phase, detail.node.bmc);
        for event in detail.history.iter().rev() {
            writeln!(text, "  {} {} {}", event.at_ms, event.phase, event.reason).unwrap();
        }
        for seen in &detail.timeline {
            writeln!(text, "  {} {}", seen.at_ms, seen.text).unwrap();
        }
        if let Some(blade) =
            self.lab.blades.iter().find(|blade| blade.name.as_str() == detail.node.name)
        {
            let log = blade.blade.log();
            writeln!(text, "blade {:?}\nconsole {:#?}", log.steps(), log.console_lines()).unwrap();
        }
        text + &self.log_text()
    }
}
