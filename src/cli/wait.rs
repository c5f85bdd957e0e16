//! Follows switches until each has ended: done, held or failed.

use std::{collections::BTreeMap, time::Duration};

use api::{NodeView, SwitchRef};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    ExitCode, Trouble,
    client::Client,
    count,
    terminal::{Terminal, clean, now_ms},
};

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(500);
/// A look may take this long, even when time is nearly up.
const LOOK: Duration = Duration::from_secs(2);

/// Switches to follow, and for how long.
pub(super) struct Wait {
    hostlist: String,
    /// Those not ended yet: node to switch.
    open: BTreeMap<String, String>,
    /// What was last said of a node.
    said: BTreeMap<String, String>,
    deadline: Instant,
    worst: ExitCode,
}

/// What a look at one node gave.
enum Seen {
    Nothing,
    /// A line to say.
    News(String),
    /// Its newest switch is not ours: how ours ended stands in its history.
    Replaced,
}

impl Wait {
    /// Follows `switches` of the nodes in `hostlist` for `timeout` from now.
    pub(super) fn new(hostlist: &str, switches: Vec<SwitchRef>, timeout: Duration) -> Self {
        Self {
            hostlist: hostlist.to_owned(),
            open: switches.into_iter().map(|switch| (switch.node, switch.id)).collect(),
            said: BTreeMap::new(),
            deadline: Instant::now() + timeout,
            worst: ExitCode::Ok,
        }
    }

    /// Takes in what a node looks like.
    fn observe(&mut self, node: &NodeView) -> Seen {
        let Some(ours) = self.open.get(&node.name) else { return Seen::Nothing };
        let phase = &node.phase;
        if phase.switch_id.as_ref() != Some(ours) {
            // An older switch that has ended: the answer is older than the order.
            let old = !phase.open && !self.said.contains_key(&node.name);
            return if old { Seen::Nothing } else { Seen::Replaced };
        }
        if !phase.open {
            self.end(&node.name, &phase.name);
        }
        let mut line = format!("{}  {}", node.name, phase.name);
        for part in [phase.reason.as_ref(), phase.remedy.as_ref().filter(|_| !phase.open)] {
            line.push_str(&part.map(|part| format!(": {part}")).unwrap_or_default());
        }
        let before = self.said.insert(node.name.clone(), line.clone());
        if before.as_ref() == Some(&line) { Seen::Nothing } else { Seen::News(line) }
    }

    /// Notes that the switch of `node` ended in `phase`.
    fn end(&mut self, node: &str, phase: &str) {
        let end = match phase {
            "done" => ExitCode::Ok,
            "held" => ExitCode::Held,
            _ => ExitCode::Failed,
        };
        self.open.remove(node);
        self.worst = worse(self.worst, end);
    }

    /// Looks at every node once.
    async fn look(&mut self, client: &Client, terminal: &mut Terminal) -> Result<(), Trouble> {
        let answer = client.nodes(Some(&self.hostlist)).await?;
        for node in &answer.value.nodes {
            let line = match self.observe(node) {
                Seen::Nothing => continue,
                Seen::News(line) => line,
                Seen::Replaced => self.read_end(client, &node.name).await?,
            };
            let now = now_ms();
            terminal.say(format!("{}  {}", terminal.time(now, now), clean(&line)))?;
        }
        Ok(())
    }

    /// How our switch of `node` ended before another one began.
    async fn read_end(&mut self, client: &Client, node: &str) -> Result<String, Trouble> {
        let name = node.parse().map_err(|error| {
            Trouble::new(ExitCode::Failed, format!("the server names a node oddly: {error}"))
        })?;
        let history = client.history(&name).await?.value;
        let ours = self.open.get(node);
        let last = history
            .iter()
            .filter(|event| Some(&event.switch_id) == ours)
            .max_by_key(|event| event.at_ms);
        let phase = last.map_or("lost", |event| event.phase.as_str());
        self.end(node, phase);
        Ok(format!("{node}  {phase}; another switch took its place"))
    }
}

/// Failed before held before not done in time before done.
pub(super) fn worse(left: ExitCode, right: ExitCode) -> ExitCode {
    let weight = |code: ExitCode| match code {
        ExitCode::Ok => 0,
        ExitCode::TimedOut => 1,
        ExitCode::Held => 2,
        ExitCode::Failed | ExitCode::Usage | ExitCode::Refused | ExitCode::Unreachable => 3,
    };
    if weight(right) > weight(left) { right } else { left }
}

/// Looks until every switch has ended, time is up, or somebody presses Ctrl-C. A server that restarts meanwhile is
/// waited for.
pub(super) async fn until_all_end(
    client: &Client,
    terminal: &mut Terminal,
    mut wait: Wait,
) -> Result<ExitCode, Trouble> {
    tokio::select! {
        ended = follow(client, terminal, &mut wait) => ended,
        // Where nobody can listen to the signal, it ends the process as it always did.
        Ok(()) = tokio::signal::ctrl_c() => left_alone(terminal, &wait, "no longer watched"),
    }
}

async fn follow(
    client: &Client,
    terminal: &mut Terminal,
    wait: &mut Wait,
) -> Result<ExitCode, Trouble> {
    let mut silent = None;
    loop {
        let bound = wait.deadline.max(Instant::now() + LOOK);
        match timeout_at(bound, wait.look(client, terminal)).await {
            Ok(Ok(())) => silent = None,
            Ok(Err(trouble)) if trouble.exit == ExitCode::Unreachable => {
                if silent.is_none() {
                    terminal.tell(trouble.to_string())?;
                    terminal.tell("the switch goes on by itself; waiting for the server")?;
                }
                silent = Some(trouble);
            }
            Ok(Err(trouble)) => return Err(trouble),
            Err(_) => return left_alone(terminal, wait, "time is up"),
        }
        if wait.open.is_empty() {
            return Ok(wait.worst);
        }
        if Instant::now() >= wait.deadline {
            return silent.map_or_else(|| left_alone(terminal, wait, "time is up"), Err);
        }
        sleep(PERIOD.min(wait.deadline.saturating_duration_since(Instant::now()))).await;
    }
}

/// The switches go on without us; says how to look after them.
fn left_alone(terminal: &mut Terminal, wait: &Wait, why: &str) -> Result<ExitCode, Trouble> {
    let names: Vec<&str> = wait.open.keys().map(String::as_str).collect();
    terminal.tell(format!(
        "volund: {why}; {} not done: {}\n  the switch goes on; follow it with `volund node NAME`",
        count(names.len(), "node"),
        clean(&names.join(", "))
    ))?;
    Ok(worse(wait.worst, ExitCode::TimedOut))
}
