//! The boot flight recorder: sightings of the last boot, gathered into stages.

use api::{DiagnosisView, SightingView};
use askama::Template;

use super::{
    node_href, sentence,
    time::{Clock, duration},
};

/// More sightings than this are not written into the page; the API has all.
const MAX_LINES: usize = 200;

/// A run of sightings of one kind.
struct Stage {
    state: &'static str,
    icon: &'static str,
    word: &'static str,
    text: String,
    from: String,
    width: String,
    took: String,
}

/// One sighting.
struct Line {
    at: String,
    text: String,
    state: &'static str,
}

/// What the doctor says of a boot.
pub(crate) struct Said {
    pub(crate) cause: String,
    pub(crate) remedy: String,
    pub(crate) confidence: String,
}

/// `#flight`.
#[derive(Template)]
#[template(path = "flight.html")]
pub(crate) struct Flight {
    started: String,
    stages: Vec<Stage>,
    lines: Vec<Line>,
    hidden: usize,
    /// All sightings.
    total: usize,
    ticks: Vec<(String, String)>,
    /// Address of the list of boots; empty on a boot's own page.
    boots: String,
    /// What is wrong with the boot, and what to do.
    said: Option<Said>,
}

impl Flight {
    /// The last boot, on the page of its node.
    pub(crate) fn of_node(
        name: &str,
        timeline: &[SightingView],
        diagnoses: &[DiagnosisView],
        clock: &Clock,
    ) -> Self {
        let boots = format!("{}/boots", node_href(name));
        Self { boots, said: diagnoses.first().map(Said::of), ..Self::of(timeline, clock) }
    }

    /// A boot on a page of its own: its lines have the time since its beginning.
    pub(crate) fn of_boot(timeline: &[SightingView], clock: &Clock) -> Self {
        let first = timeline.first().map_or(0, |seen| seen.at_ms);
        Self::told(timeline, clock, |at_ms| since(at_ms.saturating_sub(first)))
    }

    fn of(timeline: &[SightingView], clock: &Clock) -> Self {
        Self::told(timeline, clock, |at_ms| clock.second(at_ms))
    }

    fn told(timeline: &[SightingView], clock: &Clock, time: impl Fn(i64) -> String) -> Self {
        let (waits, boot): (Vec<&SightingView>, Vec<&SightingView>) =
            timeline.iter().partition(|seen| is_wait(seen));
        let folded = fold(&boot);
        let hidden = folded.len().saturating_sub(MAX_LINES);
        let lines = folded.iter().skip(hidden).map(|(seen, times)| Line {
            at: time(seen.at_ms),
            text: match times {
                1 => seen.text.clone(),
                times => format!("{} ({times} times)", seen.text),
            },
            state: if is_fault(seen) { "fail" } else { "done" },
        });
        let first = boot.first().map_or(0, |seen| seen.at_ms);
        let span = boot.last().map_or(0, |seen| seen.at_ms).saturating_sub(first).max(1);
        Self {
            started: timeline.first().map_or_else(String::new, |seen| clock.second(seen.at_ms)),
            stages: stages(&boot, first, span),
            lines: lines.chain(waiting(&waits, &time)).collect(),
            hidden,
            total: timeline.len(),
            ticks: ticks(span),
            boots: String::new(),
            said: None,
        }
    }
}

impl Said {
    pub(crate) fn of(diagnosis: &DiagnosisView) -> Self {
        Self {
            cause: sentence(&diagnosis.cause),
            remedy: sentence(&diagnosis.remedy),
            confidence: diagnosis.confidence.clone(),
        }
    }
}

/// The same thing said several times on end is one line, with how often.
fn fold<'a>(boot: &[&'a SightingView]) -> Vec<(&'a SightingView, usize)> {
    let mut folded: Vec<(&SightingView, usize)> = Vec::new();
    for seen in boot {
        match folded.last_mut().filter(|(last, _)| last.text == seen.text) {
            Some((_, times)) => *times += 1,
            None => folded.push((seen, 1)),
        }
    }
    folded
}

/// `+12.3 s` after the beginning.
fn since(millis: i64) -> String {
    let millis = millis.max(0);
    format!("+{}.{} s", millis / 1_000, millis % 1_000 / 100)
}

/// The agent that has reported and asks what to do now, every few seconds as long as it waits: no part of the
/// boot, and no line each.
fn is_wait(seen: &SightingView) -> bool {
    let says = |key: &str, what: &str| seen.detail.get(key).is_some_and(|value| value == what);
    (says("verb", "next") || says("path", "/agent/v1/next")) && !is_fault(seen)
}

fn waiting(waits: &[&SightingView], time: impl Fn(i64) -> String) -> Option<Line> {
    let last = waits.last()?;
    let text = "agent waits and has asked for orders again".to_owned();
    Some(Line { at: time(last.at_ms), text, state: "done" })
}

fn stages(timeline: &[&SightingView], first: i64, span: i64) -> Vec<Stage> {
    let runs = runs(timeline);
    let begins = runs.iter().skip(1).map(|run| run.first().map(|seen| seen.at_ms));
    let ends: Vec<Option<i64>> = begins.chain([None]).collect();
    let stage = |(run, next): (&Vec<&SightingView>, Option<i64>)| {
        let (begin, last) = (run.first()?, run.last()?);
        let end = next.unwrap_or(last.at_ms).max(last.at_ms);
        let took = end.saturating_sub(begin.at_ms).max(0);
        let fault = run.iter().any(|seen| is_fault(seen));
        Some(Stage {
            state: if fault { "fail" } else { "done" },
            icon: if fault { "r-held" } else { "i-check" },
            word: stage_word(begin),
            text: run.iter().rfind(|seen| !fault || is_fault(seen))?.text.clone(),
            from: per_cent(begin.at_ms.saturating_sub(first), span),
            width: per_cent(took.max(span / 200), span),
            took: if took == 0 { "< 1 ms".to_owned() } else { duration(took) },
        })
    };
    runs.iter().zip(ends).filter_map(stage).collect()
}

/// Neighbours of one kind. The end of a transfer is told when the next stage may have begun already; it
/// belongs to the stage that began it.
fn runs<'a>(timeline: &[&'a SightingView]) -> Vec<Vec<&'a SightingView>> {
    let mut runs: Vec<Vec<&SightingView>> = Vec::new();
    for seen in timeline.iter().copied() {
        let same = |run: &&mut Vec<&SightingView>| {
            run.first().is_some_and(|begin| stage_word(begin) == stage_word(seen))
        };
        let is_end = matches!(seen.kind.as_str(), "tftp-done" | "tftp-failed" | "tftp-probe");
        let back = if is_end { runs.len() } else { 1 };
        match runs.iter_mut().rev().take(back).find(same) {
            Some(run) => run.push(seen),
            None => runs.push(vec![seen]),
        }
    }
    runs
}

fn per_cent(part: i64, whole: i64) -> String {
    let tenths = part.clamp(0, whole).saturating_mul(1_000) / whole;
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// Round times on the axis, five at most.
fn ticks(span: i64) -> Vec<(String, String)> {
    const STEPS: [i64; 15] = [
        5, 10, 20, 50, 200, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000,
        1_800_000,
    ];
    let step = STEPS.into_iter().find(|step| span / step <= 4).unwrap_or(span);
    let marks = (0..=4).map(|number| number * step).take_while(|at| *at <= span);
    marks.map(|at| (per_cent(at, span), duration(at))).collect()
}

/// The stage of a boot that a sighting belongs to.
pub(crate) fn stage_word(seen: &SightingView) -> &'static str {
    let kind = seen.kind.as_str();
    match kind.split_once('-').map_or(kind, |(family, _)| family) {
        "dhcp" => "DHCP",
        "tftp" => "Loader by TFTP",
        // The agent's calls are HTTP as well.
        "http" if seen.text.contains(" /agent/") => "Agent",
        "http" if seen.text.contains(" /t/") && seen.text.contains("/done ") => "Call-back",
        "http" | "kernel" => "Files by HTTP",
        "script" => "Boot script",
        "agent" => "Agent",
        "refused" => "Refused",
        _ => "Seen",
    }
}

fn is_fault(seen: &SightingView) -> bool {
    let status = seen.detail.get("status").and_then(serde_json::Value::as_u64);
    let is_refused = status.is_some_and(|status| status >= 400);
    is_refused
        || matches!(seen.kind.as_str(), "refused" | "tftp-failed" | "http-short" | "dhcp-silent")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at_ms: i64, kind: &str) -> SightingView {
        SightingView {
            at_ms,
            attempt_ms: Some(0),
            kind: kind.to_owned(),
            text: format!("{kind} at {at_ms}"),
            detail: serde_json::Value::Null,
        }
    }

    #[test]
    fn neighbours_of_one_kind_are_one_stage_that_lasts_until_the_next() {
        let timeline = [
            seen(0, "dhcp-in"),
            seen(10, "dhcp-out"),
            seen(1_000, "tftp-read"),
            seen(1_600, "tftp-failed"),
            seen(4_000, "dhcp-in"),
        ];
        let stages = stages(&timeline.each_ref(), 0, 4_000);
        let shown: Vec<String> = stages
            .iter()
            .map(|s| format!("{} {} {} {} {}", s.word, s.state, s.from, s.width, s.took))
            .collect();
        assert_eq!(
            shown,
            [
                "DHCP done 0.0% 25.0% 1 s",
                "Loader by TFTP fail 25.0% 75.0% 3 s",
                "DHCP done 100.0% 0.5% < 1 ms",
            ]
        );
        assert_eq!(stages.get(1).unwrap().text, "tftp-failed at 1600");
    }

    #[test]
    fn what_was_said_several_times_on_end_is_one_line_with_the_time_since_the_beginning() {
        let same =
            |at_ms| SightingView { text: "boot script: wait".to_owned(), ..seen(at_ms, "script") };
        let timeline = [seen(500, "dhcp-in"), same(1_500), same(31_500), same(61_590)];
        let clock = Clock::new(jiff::tz::TimeZone::UTC, model::UnixMillis(90_000));
        let flight = Flight::of_boot(&timeline, &clock);
        let lines: Vec<String> =
            flight.lines.iter().map(|line| format!("{} {}", line.at, line.text)).collect();
        assert_eq!(lines, ["+0.0 s dhcp-in at 500", "+1.0 s boot script: wait (3 times)"]);
        assert_eq!(flight.total, 4);
    }

    #[test]
    fn the_end_of_a_transfer_belongs_to_where_it_began() {
        let timeline = [
            seen(0, "tftp-read"),
            seen(10, "dhcp-in"),
            seen(20, "tftp-done"),
            seen(30, "dhcp-out"),
            seen(40, "http-done"),
            seen(50, "kernel-whole"),
        ];
        let words: Vec<&str> =
            stages(&timeline.each_ref(), 0, 50).iter().map(|stage| stage.word).collect();
        assert_eq!(words, ["Loader by TFTP", "DHCP", "Files by HTTP"]);
    }

    #[test]
    fn an_agent_that_waits_does_not_stretch_the_boot_and_a_refused_call_is_a_fault() {
        let call = |at_ms, kind: &str, detail| SightingView { detail, ..seen(at_ms, kind) };
        let timeline = [
            seen(0, "dhcp-in"),
            call(90, "agent", serde_json::json!({ "verb": "report" })),
            call(5_000, "agent", serde_json::json!({ "verb": "next" })),
            call(
                5_000,
                "http-done",
                serde_json::json!({ "path": "/agent/v1/next", "status": 200 }),
            ),
            call(10_000, "agent", serde_json::json!({ "verb": "next" })),
        ];
        let clock = Clock::new(jiff::tz::TimeZone::UTC, model::UnixMillis(20_000));
        let flight = Flight::of(&timeline, &clock);
        assert_eq!(flight.stages.len(), 2);
        assert_eq!(flight.ticks.last().unwrap().1, "80 ms");
        assert_eq!((flight.lines.len(), flight.total), (3, 5));
        assert_eq!(flight.lines[2].text, "agent waits and has asked for orders again");

        let refused = call(9, "http-done", serde_json::json!({ "status": 409 }));
        assert_eq!(Flight::of(&[refused], &clock).stages[0].state, "fail");
    }
}
