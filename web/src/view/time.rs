//! Times and durations as people read them.

use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};
use model::UnixMillis;

use crate::App;

/// Writes times as of one moment: today without a date, other days with it.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    zone: TimeZone,
    pub(crate) now: UnixMillis,
}

impl Clock {
    pub(crate) fn new(zone: TimeZone, now: UnixMillis) -> Self {
        Self { zone, now }
    }

    pub(crate) fn of(app: &App) -> Self {
        Self::new(app.zone.clone(), (app.now)())
    }

    /// `14:32`, or `9 Dec 14:32`.
    pub(crate) fn minute(&self, at_ms: i64) -> String {
        self.write(at_ms, "%H:%M")
    }

    /// `14:32:06`, or `9 Dec 14:32:06`.
    pub(crate) fn second(&self, at_ms: i64) -> String {
        self.write(at_ms, "%H:%M:%S")
    }

    /// `Sat 12 Dec 2026`.
    pub(crate) fn day(&self) -> String {
        let now = self.zoned(self.now.0);
        now.map_or_else(String::new, |now| now.strftime("%a %-d %b %Y").to_string())
    }

    fn write(&self, at_ms: i64, format: &str) -> String {
        let Some(at) = self.zoned(at_ms) else { return "–".to_owned() };
        let today = self.zoned(self.now.0).is_some_and(|now| now.date() == at.date());
        let time = at.strftime(format);
        if today { time.to_string() } else { format!("{} {time}", at.strftime("%-d %b")) }
    }

    fn zoned(&self, at_ms: i64) -> Option<ZonedDateTime> {
        let at = Timestamp::from_millisecond(at_ms).ok()?;
        Some(at.to_zoned_datetime(self.zone.clone()))
    }
}

/// `12 ms`, `0.6 s`, `38 s`, `1 min 42 s`, `2 h 5 min`. Negative spans, from a clock that stepped back, are `0 s`.
pub(crate) fn duration(millis: i64) -> String {
    let seconds = millis.max(0) / 1_000;
    match seconds {
        0 if (1..100).contains(&millis) => format!("{millis} ms"),
        0 if millis > 0 => format!("0.{} s", millis / 100),
        0..60 => format!("{seconds} s"),
        60..3_600 if seconds % 60 == 0 => format!("{} min", seconds / 60),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_has_no_date() {
        // 2026-12-12T14:32:06Z
        let now = 1_797_085_926_000;
        let clock = Clock::new(TimeZone::UTC, UnixMillis(now));
        assert_eq!(clock.minute(now), "14:32");
        assert_eq!(clock.second(now - 86_400_000), "11 Dec 14:32:06");
        assert_eq!(clock.day(), "Sat 12 Dec 2026");
        assert_eq!(clock.minute(i64::MAX), "–");
    }

    #[test]
    fn durations_read_as_people_say_them() {
        let cases = [
            (-5, "0 s"),
            (0, "0 s"),
            (12, "12 ms"),
            (640, "0.6 s"),
            (38_000, "38 s"),
            (102_000, "1 min 42 s"),
            (120_000, "2 min"),
            (7_500_000, "2 h 5 min"),
        ];
        for (millis, want) in cases {
            assert_eq!(duration(millis), want, "{millis}");
        }
    }
}
