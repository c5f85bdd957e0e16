//! The last hour of power, or as much of it as anybody watched, as SVG, drawn on the server: line, band of the margin,
//! hatched gaps.
//!
//! Geometry travels in attributes: x in per cent of the unscaled drawing, paths in a nested view box of 1000
//! by [`HEIGHT`], stretched.

use api::Quantity;
use askama::Template;

use super::{
    figure::rounded,
    time::{Clock, duration},
};

const HOUR_MS: i64 = 3_600_000;
/// A lab that was started just now gets a window of this length, not an hour of hatching.
const LEAST_MS: i64 = 120_000;
const HEIGHT: f64 = 150.0;

/// Two readings as near as this never have a gap between them.
const LEAST_GAP_MS: i64 = 30_000;

/// At most this many points in a line.
const MAX_POINTS: usize = 400;

/// Rows of the table: five minutes each.
const ROW_MS: i64 = 300_000;

/// The time that is drawn.
#[derive(Debug, Clone, Copy)]
struct Window {
    start: i64,
    end: i64,
}

impl Window {
    /// The last hour, from where somebody began to watch; absent readings count as watching.
    fn of(readings: &[Quantity], end: i64) -> Self {
        let hour = end.saturating_sub(HOUR_MS);
        let first = readings.iter().filter_map(|reading| reading.to_ms).min();
        let latest = end.saturating_sub(LEAST_MS);
        Self { start: first.map_or(hour, |first| first.clamp(hour, latest)), end }
    }

    fn length(self) -> i64 {
        self.end.saturating_sub(self.start).max(1)
    }

    /// A moment, in parts of `whole` of the width.
    fn place(self, at: i64, whole: i64) -> i64 {
        at.saturating_sub(self.start).clamp(0, self.length()) * whole / self.length()
    }
}

/// One reading that has a value.
#[derive(Debug, Clone, Copy)]
struct Point {
    from: i64,
    to: i64,
    value: f64,
    margin: f64,
}

/// A run of readings without a gap.
struct Line {
    band: String,
    path: String,
}

struct TableRow {
    from: String,
    low: String,
    mean: String,
    high: String,
    margin: String,
    count: usize,
}

/// `#power`: the chart and its table.
#[derive(Template)]
#[template(path = "power.html")]
pub(crate) struct Plot {
    title: String,
    /// `last hour`, or `since 14:20`.
    span: String,
    kind: String,
    y_marks: Vec<(String, String)>,
    x_marks: Vec<(&'static str, &'static str, String)>,
    gaps: Vec<(String, String)>,
    lines: Vec<Line>,
    rows: Vec<TableRow>,
    json_href: String,
}

impl Plot {
    pub(crate) fn of(name: &str, readings: &[Quantity], clock: &Clock) -> Self {
        let end = clock.now.0;
        let window = Window::of(readings, end);
        let start = window.start;
        let points = points(readings, start, end);
        let gap = gap_ms(readings);
        let runs: Vec<&[Point]> =
            points.chunk_by(|left, right| right.to - left.to <= gap).collect();
        let top = top_mark(&points);
        let lines = runs.iter().map(|run| draw(&thinned(run), window, top)).collect();
        let said = readings.iter().rev().find(|reading| reading.value.is_some());
        Self {
            title: title(name, &points, runs.len(), start, clock),
            span: if window.length() == HOUR_MS {
                "last hour".to_owned()
            } else {
                format!("since {}", clock.minute(start))
            },
            kind: said.map_or_else(String::new, said_by),
            y_marks: y_marks(top),
            x_marks: x_marks(window, clock),
            gaps: gaps(&runs, window, gap),
            lines,
            rows: rows(&points, start, clock),
            json_href: format!("/api/v1/nodes/{}", super::url_part(name)),
        }
    }
}

fn said_by(reading: &Quantity) -> String {
    let parts = [reading.source.as_deref(), reading.kind.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Readings further apart than this have a gap between them: three of the distances usual here, since how often is
/// asked is a setting. Absent readings count: they were asked for.
fn gap_ms(readings: &[Quantity]) -> i64 {
    let mut times: Vec<i64> = readings.iter().filter_map(|reading| reading.to_ms).collect();
    times.sort_unstable();
    let mut apart: Vec<i64> =
        times.iter().zip(times.iter().skip(1)).map(|(left, right)| right - left).collect();
    apart.sort_unstable();
    let usual = apart.get(apart.len() / 2).copied().unwrap_or(0);
    LEAST_GAP_MS.max(usual.saturating_mul(3))
}

fn points(readings: &[Quantity], start: i64, end: i64) -> Vec<Point> {
    let point = |reading: &Quantity| {
        let to = reading.to_ms?;
        let value = reading.value.filter(|value| value.is_finite())?;
        let margin = reading.margin.filter(|margin| margin.is_finite()).unwrap_or(0.0);
        let from = reading.from_ms.unwrap_or(to).clamp(start, end);
        (start..=end).contains(&to).then_some(Point { from, to, value, margin })
    };
    let mut points: Vec<Point> = readings.iter().filter_map(point).collect();
    points.sort_by_key(|point| point.to);
    points
}

/// The lowest and the highest point of each stretch, so that peaks stay.
fn thinned(run: &[Point]) -> Vec<Point> {
    if run.len() <= MAX_POINTS {
        return run.to_vec();
    }
    let stretch = run.len().div_ceil(MAX_POINTS / 2);
    let extremes = |part: &[Point]| {
        let by_value = |left: &&Point, right: &&Point| left.value.total_cmp(&right.value);
        let low = part.iter().min_by(by_value).copied();
        let high = part.iter().max_by(by_value).copied();
        let mut both: Vec<Point> = low.into_iter().chain(high).collect();
        both.sort_by_key(|point| point.to);
        both
    };
    run.chunks(stretch).flat_map(extremes).collect()
}

/// The highest mark of the axis: a round number above every point and its margin.
fn top_mark(points: &[Point]) -> f64 {
    const TOPS: [f64; 9] = [50.0, 100.0, 150.0, 200.0, 300.0, 400.0, 600.0, 1_000.0, 2_000.0];
    let highest = points.iter().map(|point| point.value + point.margin).fold(0.0, f64::max);
    let fits = TOPS.into_iter().find(|top| highest <= *top);
    fits.unwrap_or_else(|| (highest / 1_000.0).ceil() * 1_000.0)
}

fn draw(run: &[Point], window: Window, top: f64) -> Line {
    let y = |watts: f64| HEIGHT * (1.0 - watts.clamp(0.0, top) / top);
    let x = |at: i64| thousandths(window, at);
    let Some(first) = run.first() else { return Line { band: String::new(), path: String::new() } };
    let at = |point: &Point, watts: f64| format!("{} {:.1}", x(point.to), y(watts));
    // A reading speaks for its whole window, so the line begins where the first window does.
    let begin = |watts: f64| format!("{} {:.1}", x(first.from.min(first.to - 1_000)), y(watts));
    let join = |parts: Vec<String>| parts.join("L");
    let middle = std::iter::once(begin(first.value)).chain(run.iter().map(|p| at(p, p.value)));
    let upper = std::iter::once(begin(first.value + first.margin))
        .chain(run.iter().map(|p| at(p, p.value + p.margin)));
    let lower = run
        .iter()
        .rev()
        .map(|p| at(p, p.value - p.margin))
        .chain(std::iter::once(begin(first.value - first.margin)));
    Line {
        band: format!("M{}Z", join(upper.chain(lower).collect())),
        path: format!("M{}", join(middle.collect())),
    }
}

/// A moment, in thousandths of the width.
fn thousandths(window: Window, at: i64) -> String {
    let tenths = window.place(at, 10_000);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn gaps(runs: &[&[Point]], window: Window, least: i64) -> Vec<(String, String)> {
    let mut gaps = Vec::new();
    let mut covered = window.start;
    for run in runs {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        gaps.push((covered, first.from));
        covered = last.to;
    }
    gaps.push((covered, window.end));
    let per_cent = |hundredths: i64| format!("{}.{:02}%", hundredths / 100, hundredths % 100);
    let wide = gaps.into_iter().filter(|(from, to)| to - from > least);
    wide.map(|(from, to)| {
        let (from, to) = (window.place(from, 10_000), window.place(to, 10_000));
        (per_cent(from), per_cent(to - from))
    })
    .collect()
}

fn y_marks(top: f64) -> Vec<(String, String)> {
    let mark =
        |share: f64| (format!("{:.1}", HEIGHT * (1.0 - share)), format!("{:.0}", top * share));
    [0.0, 0.5, 1.0].into_iter().map(mark).collect()
}

fn x_marks(window: Window, clock: &Clock) -> Vec<(&'static str, &'static str, String)> {
    let half = window.start + window.length() / 2;
    let marks =
        [("0%", "start", window.start), ("50%", "middle", half), ("100%", "end", window.end)];
    marks.into_iter().map(|(place, anchor, at)| (place, anchor, clock.minute(at))).collect()
}

fn title(name: &str, points: &[Point], runs: usize, start: i64, clock: &Clock) -> String {
    let Some(last) = points.last() else {
        return format!("No power reading of {name} in the last hour");
    };
    let by_value = |left: &f64, right: &f64| left.total_cmp(right);
    let low = points.iter().map(|point| point.value).min_by(by_value).unwrap_or(last.value);
    let high = points.iter().map(|point| point.value).max_by(by_value).unwrap_or(last.value);
    let (value, margin) = rounded(last.value, Some(last.margin));
    let from = clock.minute(points.first().map_or(start, |point| point.from));
    let gaps = match runs.saturating_sub(1) {
        0 => "no gap".to_owned(),
        1 => "1 gap".to_owned(),
        gaps => format!("{gaps} gaps"),
    };
    let ago = duration(clock.now.0.saturating_sub(last.to));
    format!(
        "Watts of {name} since {from}: between {low:.0} and {high:.0}, last {value} plus or minus \
         {margin}, {ago} ago; {gaps}"
    )
}

fn rows(points: &[Point], start: i64, clock: &Clock) -> Vec<TableRow> {
    let slot = |point: &Point| (point.to - start) / ROW_MS;
    let row = |part: &[Point]| {
        let first = part.first()?;
        let (mut low, mut high, mut sum, mut margin) = (f64::MAX, f64::MIN, 0.0, 0.0_f64);
        let mut number = 0.0;
        for point in part {
            low = low.min(point.value);
            high = high.max(point.value);
            sum += point.value;
            margin = margin.max(point.margin);
            number += 1.0;
        }
        let (mean, shown) = rounded(sum / number, Some(margin));
        Some(TableRow {
            from: clock.minute(start + slot(first) * ROW_MS),
            low: rounded(low, Some(margin)).0,
            mean,
            high: rounded(high, Some(margin)).0,
            margin: shown,
            count: part.len(),
        })
    };
    points.chunk_by(|left, right| slot(left) == slot(right)).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use model::UnixMillis;

    use super::*;
    use crate::view::figure::watts;

    const END: i64 = 1_797_085_926_000;

    fn reading(ago_s: i64, value: f64) -> Quantity {
        let mut quantity = watts(value, Some(value * 0.05), "blade input");
        quantity.to_ms = Some(END - ago_s * 1_000);
        quantity.from_ms = Some(END - ago_s * 1_000 - 10_000);
        quantity
    }

    fn plot(readings: &[Quantity]) -> Plot {
        Plot::of("bld-003", readings, &Clock::new(TimeZone::UTC, UnixMillis(END)))
    }

    #[test]
    fn a_missing_reading_breaks_the_line_and_leaves_a_gap() {
        let mut readings: Vec<Quantity> =
            (0..360).rev().map(|number| reading(number * 10, 67.0)).collect();
        assert_eq!((plot(&readings).lines.len(), plot(&readings).gaps.len()), (1, 0));
        for absent in readings.iter_mut().skip(100).take(6) {
            absent.value = None;
        }
        let plot = plot(&readings);
        assert_eq!(plot.lines.len(), 2);
        assert_eq!(plot.gaps.len(), 1);
        assert!(plot.title.ends_with("last 67 plus or minus 3, 0 s ago; 1 gap"), "{}", plot.title);
    }

    #[test]
    fn readings_a_minute_apart_have_no_gaps_where_that_is_how_often_is_asked() {
        let mut readings: Vec<Quantity> =
            (0..60).rev().map(|number| reading(number * 60, 67.0)).collect();
        assert_eq!((plot(&readings).lines.len(), plot(&readings).gaps.len()), (1, 0));
        for absent in readings.iter_mut().skip(20).take(4) {
            absent.value = None;
        }
        assert_eq!((plot(&readings).lines.len(), plot(&readings).gaps.len()), (2, 1));
    }

    #[test]
    fn a_lab_of_two_minutes_is_not_drawn_as_an_hour_of_gaps() {
        let readings: Vec<Quantity> =
            (0..12).rev().map(|number| reading(number * 10, 67.0)).collect();
        let plot = plot(&readings);
        assert_eq!(plot.span, "since 14:30");
        assert_eq!(plot.gaps, []);
    }

    #[test]
    fn an_empty_hour_is_one_gap_and_says_so() {
        let plot = plot(&[]);
        assert_eq!(plot.title, "No power reading of bld-003 in the last hour");
        assert_eq!(plot.gaps, [("0.00%".to_owned(), "100.00%".to_owned())]);
    }

    #[test]
    fn a_long_series_is_thinned_and_keeps_its_peak() {
        let run: Vec<Point> = (0..3_600)
            .map(|at| Point {
                from: at,
                to: at,
                value: if at == 1_234 { 240.0 } else { 67.0 },
                margin: 1.0,
            })
            .collect();
        let thin = thinned(&run);
        assert!(thin.len() <= MAX_POINTS, "{}", thin.len());
        assert!(thin.iter().any(|point| point.value > 200.0));
    }

    #[test]
    fn readings_from_outside_the_hour_and_odd_numbers_are_left_out() {
        let readings = [reading(4_000, 67.0), reading(-50, 67.0), reading(10, f64::NAN)];
        assert!(plot(&readings).lines.is_empty());
    }
}
