//! What a started kernel does, told by its arguments: volund's agent, a foreign system that calls back, or a
//! system that just runs.

use std::{net::Ipv4Addr, time::Duration};

use model::{
    agent::{Claim, Claimed, Next, Order, Report},
    boot::{ADDRESS_ARG, TICKET_ARG, URL_ARG},
    hex,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::sleep;

use super::{End, Machine, strikes, system};
use crate::{
    draw::Stage,
    http::{Answer, HttpClient, HttpError, Keep, Request, Url},
    smbios,
};

/// Kernel argument of a foreign system: the URL it calls when it is installed or up.
pub const DONE_ARG: &str = "volund.done";
/// Tries of one question; pauses grow from 1 to 10 s.
const TRIES: u32 = 60;

/// The conversation is over, and this is what the machine does.
type Over = End;

/// An agent's means to speak.
struct Session {
    client: HttpClient,
    base: Url,
    ticket: String,
    nonce: String,
}

impl Machine<'_> {
    /// The system that was booted, until it ends the machine's run.
    pub(super) async fn payload(&mut self, args: &str) -> End {
        let (blade, power) = (self.blade, self.power.clone());
        system(blade, power, self.chosen(args)).await
    }

    async fn chosen(&mut self, args: &str) -> End {
        self.blade.set_stage(Stage::Busy);
        let find = |name| argument(args, name);
        let from = find(ADDRESS_ARG).and_then(|text| text.split('/').next()?.parse().ok());
        let from = from.unwrap_or(self.blade.spec.address);
        match (find(DONE_ARG), find(TICKET_ARG), find(URL_ARG)) {
            (Some(done), _, _) => self.linux(from, done).await,
            (None, Some(ticket), Some(url)) => self.agent(from, ticket, url).await,
            _ => self.run_on("system started").await,
        }
    }

    /// Stays up with nothing to do.
    async fn run_on(&mut self, step: &str) -> End {
        self.blade.log.step(step);
        self.blade.set_stage(Stage::Idle);
        std::future::pending().await
    }

    /// A foreign system: installs itself or starts, calls back, stays up.
    async fn linux(&mut self, from: Ipv4Addr, done: &str) -> End {
        self.blade.log.step("linux started");
        sleep(self.blade.spec.pace.install).await;
        let mut client = HttpClient::new(from, "linux (modelled)");
        let url = match Url::parse(done) {
            Ok(url) => url,
            Err(error) => {
                self.failed("linux done", &error.to_string());
                return self.run_on("linux runs").await;
            }
        };
        for attempt in 0..TRIES {
            match client.send(&url, &Request::default(), Keep::Body).await {
                Ok(answer) if answer.status < 300 => {
                    self.blade.log.step("linux done");
                    break;
                }
                Ok(answer) if is_refusal(answer.status) => {
                    self.failed("linux done", &format!("HTTP status {}", answer.status));
                    break;
                }
                Ok(answer) => self.blade.log.console(format!("HTTP status {}", answer.status)),
                Err(error) => self.blade.log.console(error.to_string()),
            }
            sleep(self.pause(attempt)).await;
        }
        self.run_on("linux runs").await
    }

    /// The agent: claim, report, then orders until one of them ends it.
    async fn agent(&mut self, from: Ipv4Addr, ticket: &str, url: &str) -> End {
        let base = match Url::parse(url) {
            Ok(base) => base,
            Err(error) => {
                self.failed("agent", &error.to_string());
                return self.run_on("agent stays").await;
            }
        };
        let mut nonce = [0; 16];
        if getrandom::fill(&mut nonce).is_err() {
            nonce = self.chance.bytes();
        }
        let client = HttpClient::new(from, "volund-agent (modelled)");
        let nonce = hex::encode(&nonce);
        let mut session = Session { client, base, ticket: ticket.to_owned(), nonce };
        match self.converse(&mut session).await {
            Ok(never) | Err(Some(never)) => never,
            Err(None) => self.run_on("agent stays").await,
        }
    }

    /// `Err(Some(_))` is an order that ends the run, `Err(None)` a refusal: nothing is done.
    async fn converse(&mut self, session: &mut Session) -> Result<Over, Option<Over>> {
        let nonce = session.nonce.clone();
        let claim = Claim { nonce: nonce.clone() };
        let claimed: Claimed = self.ask(session, "claim", &claim).await?;
        self.blade.log.console(format!("this is node {}", claimed.node));
        let mut order = claimed.order;
        loop {
            order = match order {
                Order::Report => {
                    let report = self.report(&nonce);
                    self.ask(session, "report", &report).await?
                }
                Order::Wait { seconds } => {
                    self.blade.set_stage(Stage::Idle);
                    sleep(self.blade.spec.pace.scaled(seconds.clamp(1, 60))).await;
                    let next = Next { nonce: nonce.clone() };
                    self.ask(session, "next", &next).await?
                }
                Order::Reboot => {
                    self.blade.log.step("agent reboots");
                    return Ok(End::Reset);
                }
                Order::PowerOff => {
                    self.blade.log.step("agent powers off");
                    return Ok(End::Off);
                }
            };
        }
    }

    fn report(&self, nonce: &str) -> Report {
        let hardware = &self.blade.spec.hardware;
        let (table, entry) = smbios::build(hardware);
        Report {
            nonce: nonce.to_owned(),
            dmi: hex::encode(&table),
            dmi_entry: hex::encode(&entry),
            cpuinfo: hardware.cpuinfo(),
            memory_kib: hardware.memory_kib(),
            efi: false,
            kernel: "6.1.0-twin-amd64".to_owned(),
            disks: hardware.disk_facts(),
            nics: hardware.nic_facts(),
        }
    }

    /// One question, asked with the same body until it is answered; `None` after a refusal, and the machine goes
    /// off when nobody answers.
    async fn ask<A: DeserializeOwned>(
        &mut self,
        session: &mut Session,
        verb: &str,
        question: &impl Serialize,
    ) -> Result<A, Option<Over>> {
        let body = serde_json::to_vec(question).expect("these types have only string keys");
        for attempt in 0..TRIES {
            self.blade.log.step(format!("agent {verb}"));
            match self.post(session, verb, body.clone()).await {
                Ok(answer) if answer.status < 300 => match serde_json::from_slice(&answer.body) {
                    Ok(understood) => return Ok(understood),
                    Err(error) => self.blade.log.console(format!("{verb}: {error}")),
                },
                Ok(answer) if is_refusal(answer.status) => {
                    let said = String::from_utf8_lossy(&answer.body).into_owned();
                    self.blade.log.step(format!("agent refused {}", answer.status));
                    self.blade.log.console(format!("{verb}: {said}"));
                    return Err(None);
                }
                Ok(answer) => self.blade.log.console(format!("{verb}: HTTP {}", answer.status)),
                Err(error) => self.blade.log.console(format!("{verb}: {error}")),
            }
            sleep(self.pause(attempt)).await;
        }
        self.blade.log.step("agent unanswered");
        Err(Some(End::Off))
    }

    async fn post(
        &self,
        session: &mut Session,
        verb: &str,
        body: Vec<u8>,
    ) -> Result<Answer, HttpError> {
        let url = session.base.join(&format!("/agent/v1/{verb}"))?;
        let authorization = Some(format!("Ticket {}", session.ticket));
        let request = Request { method: "POST", authorization, json: Some(body) };
        let answer = session.client.send(&url, &request, Keep::Body).await?;
        if strikes(&self.blade.faults.lose_agent_answers) {
            self.blade.log.step("answer lost");
            return Err(HttpError::Silent(url.host));
        }
        Ok(answer)
    }

    fn pause(&self, attempt: u32) -> Duration {
        self.blade.spec.pace.scaled((1 << attempt.min(4)).min(10))
    }
}

/// 408 and 429 pass; every other 4xx is for ever.
fn is_refusal(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 408 | 429)
}

/// The value of the last `name=value`, as the kernel has it.
fn argument<'a>(args: &'a str, name: &str) -> Option<&'a str> {
    let words = args.split_whitespace().filter_map(|word| word.split_once('='));
    words.filter(|(have, _)| *have == name).map(|(_, value)| value).next_back()
}
