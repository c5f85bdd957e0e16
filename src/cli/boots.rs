//! `volund boots NODE` and `volund boot NODE [BOOT]`: what became of its boots, and all that was seen of one.

use std::{fs, path::PathBuf};

use api::{BootDetail, BootList, BootStage, BootView, DiagnosisView, SightingView};
use model::NodeName;

use super::{
    ExitCode, Trouble,
    client::Client,
    table::{self, Cell, Look},
    terminal::{DASH, Terminal, clean, now_ms},
};

/// Arguments of `volund boots`.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Which node, such as bld-003
    name: NodeName,
    /// Print the API's answer
    #[arg(long)]
    json: bool,
}

/// Arguments of `volund boot`.
#[derive(Debug, clap::Args)]
pub(super) struct OneArgs {
    /// Which node, such as bld-003
    name: NodeName,
    /// Which boot, by its number in `volund boots`; the last one if none is named
    boot: Option<i64>,
    /// Print the API's answer
    #[arg(long, conflicts_with = "pcap")]
    json: bool,
    /// Save its packets as a pcap file, for tcpdump and Wireshark: DHCP whole, of TFTP the head of each packet; HTTP is
    /// not in it
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

/// Runs `volund boots`.
pub(super) async fn list(
    args: ListArgs,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let answer = boots(client, &args.name).await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print_list(terminal, &answer.value, now_ms())?;
    }
    Ok(ExitCode::Ok)
}

/// Runs `volund boot`.
pub(super) async fn one(
    args: OneArgs,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let name = &args.name;
    let id = match args.boot {
        Some(id) => id,
        None => last(client, name).await?,
    };
    let path = format!("/api/v1/nodes/{name}/boots/{id}");
    if let Some(file) = args.pcap {
        let what = format!("save the packets of boot {id} of {name}");
        let packets = client.download(&format!("{path}/pcap"), &what).await?;
        fs::write(&file, packets).map_err(|error| {
            let text = format!("cannot write {}: {error}", file.display());
            Trouble::new(ExitCode::Failed, text).remedy("name a file that can be written")
        })?;
        terminal.say(format!("saved {}; HTTP is not in it", file.display()))?;
        return Ok(ExitCode::Ok);
    }
    let answer = client.get::<BootDetail>(&path, &format!("show boot {id} of {name}")).await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print_one(terminal, &answer.value, now_ms())?;
    }
    Ok(ExitCode::Ok)
}

async fn boots(
    client: &Client,
    name: &NodeName,
) -> Result<super::client::Answer<BootList>, Trouble> {
    let path = format!("/api/v1/nodes/{name}/boots");
    client.get(&path, &format!("list the boots of {name}")).await
}

async fn last(client: &Client, name: &NodeName) -> Result<i64, Trouble> {
    let boots = boots(client, name).await?.value.boots;
    boots.first().map(|boot| boot.id).ok_or_else(|| {
        let text = format!("{name} has not been seen booting yet");
        Trouble::new(ExitCode::Failed, text).remedy(format!("ask `volund doctor {name}` why"))
    })
}

fn print_list(terminal: &mut Terminal, list: &BootList, now: i64) -> Result<(), Trouble> {
    if list.boots.is_empty() {
        return terminal.say("no boot seen yet");
    }
    let row = |boot: &BootView| -> Vec<Cell> {
        let why = boot.diagnoses.first().map(|first| first.cause.clone()).unwrap_or_default();
        vec![
            boot.id.to_string().into(),
            terminal.time(boot.from_ms, now).into(),
            span(boot.from_ms, boot.to_ms).into(),
            Cell::new(&boot.text, look(boot)),
            stages(&boot.stages).into(),
            if boot.packets { "pcap" } else { "" }.to_owned().into(),
            why.into(),
        ]
    };
    let rows: Vec<_> = list.boots.iter().map(row).collect();
    let head = ["BOOT", "WHEN", "TOOK", "WHAT BECAME OF IT", "STAGES", "PACKETS", "WHY"];
    table::print(terminal, &head, &rows)
}

fn look(boot: &BootView) -> Look {
    match boot.outcome.as_str() {
        "failed" | "looped" => Look::Bad,
        "under-way" => Look::Busy,
        "booted" => Look::Good,
        _ => Look::Plain,
    }
}

fn stages(stages: &[BootStage]) -> String {
    let one = |stage: &BootStage| format!("{} {}", stage.name, span(stage.from_ms, stage.to_ms));
    stages.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `12.3 s`, `1 min 5 s`, `< 0.1 s`; a dash where the clock stepped back.
fn span(from_ms: i64, to_ms: i64) -> String {
    match to_ms.saturating_sub(from_ms) {
        ..=-1 => DASH.to_owned(),
        0..100 => "< 0.1 s".to_owned(),
        millis @ ..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        millis => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

fn print_one(terminal: &mut Terminal, detail: &BootDetail, now: i64) -> Result<(), Trouble> {
    let BootDetail { node, boot, timeline } = detail;
    let when = terminal.time(boot.from_ms, now);
    terminal.say(clean(&format!("{node}, boot {} at {when}: {}", boot.id, boot.text)))?;
    if !boot.stages.is_empty() {
        terminal.say(clean(&stages(&boot.stages)))?;
    }
    for diagnosis in &boot.diagnoses {
        print_diagnosis(terminal, diagnosis)?;
    }
    terminal.say("")?;
    for (seen, times, last_ms) in fold(timeline) {
        let at = seen.at_ms.saturating_sub(boot.from_ms).max(0);
        let again = match times {
            1 => String::new(),
            times => format!(" ({times} times in {})", span(seen.at_ms, last_ms)),
        };
        let text = clean(&seen.text);
        terminal.say(format!("{:>9}.{} s  {text}{again}", at / 1_000, at % 1_000 / 100))?;
    }
    Ok(())
}

/// Cause, remedy and how sure, a line each.
pub(super) fn print_diagnosis(
    terminal: &mut Terminal,
    diagnosis: &DiagnosisView,
) -> Result<(), Trouble> {
    let DiagnosisView { cause, remedy, confidence, .. } = diagnosis;
    terminal.say(clean(&format!("{confidence}: {cause}")))?;
    terminal.say(clean(&format!("  do: {remedy}")))
}

/// What was said several times is one line, with how often and until when. An agent that waits says two things by
/// turns, each time it asks: these are one line too.
fn fold(timeline: &[SightingView]) -> Vec<(&SightingView, usize, i64)> {
    let mut folded: Vec<(&SightingView, usize, i64)> = Vec::new();
    for seen in timeline {
        let waits = is_wait(seen);
        let same = |(other, _, _): &&mut (&SightingView, usize, i64)| match waits {
            // How long the answer took is told with it, and no news.
            true => is_wait(other) && other.kind == seen.kind,
            false => other.text == seen.text,
        };
        let back = if waits { 2 } else { 1 };
        match folded.iter_mut().rev().take(back).find(same) {
            Some((_, times, last)) => (*times, *last) = (*times + 1, seen.at_ms),
            None => folded.push((seen, 1, seen.at_ms)),
        }
    }
    folded
}

fn is_wait(seen: &SightingView) -> bool {
    let says = |key: &str, what: &str| seen.detail.get(key).is_some_and(|value| value == what);
    says("verb", "next") || says("path", "/agent/v1/next")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(at_ms: i64, text: &str, detail: serde_json::Value) -> SightingView {
        let kind = text.split(' ').next().unwrap().to_owned();
        let text = text.to_owned();
        SightingView { at_ms, attempt_ms: None, kind, text, detail }
    }

    #[test]
    fn repetitions_are_folded_and_an_agent_that_waits_is_two_lines() {
        let next = |at_ms| seen(at_ms, "agent: next", json!({ "verb": "next" }));
        let call = |at_ms, millis: u64| {
            let text = format!("HTTP POST /agent/v1/next 200, 25 bytes in {millis} ms");
            seen(at_ms, &text, json!({ "path": "/agent/v1/next" }))
        };
        let timeline = [
            seen(0, "DHCP DISCOVER", json!({})),
            seen(1, "DHCP DISCOVER", json!({})),
            seen(2, "DHCP OFFER", json!({})),
            seen(3, "DHCP DISCOVER", json!({})),
            next(5_000),
            call(5_001, 0),
            next(10_000),
            call(10_001, 3),
        ];
        let folded: Vec<(i64, usize, i64)> = fold(&timeline)
            .into_iter()
            .map(|(seen, times, last)| (seen.at_ms, times, last))
            .collect();
        assert_eq!(
            folded,
            [(0, 2, 1), (2, 1, 2), (3, 1, 3), (5_000, 2, 10_000), (5_001, 2, 10_001)]
        );
    }

    #[test]
    fn spans_are_short() {
        let cases =
            [(0, "< 0.1 s"), (99, "< 0.1 s"), (-5, "–"), (12_345, "12.3 s"), (65_000, "1 min 5 s")];
        for (millis, want) in cases {
            assert_eq!(span(0, millis), want);
        }
    }
}
