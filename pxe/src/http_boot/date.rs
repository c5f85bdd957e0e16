//! Dates of HTTP (RFC 9110, section 5.6.7), in the one form that is still written: `Sun, 06 Nov 1994 08:49:37 GMT`.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: u64 = 86_400;
/// The end of the year 9999: later dates have no such form, and are broken clocks.
const LAST: u64 = 253_402_300_799;

/// The date of `seconds` after the beginning of 1970, UTC, at most the last of the year 9999.
pub(super) fn text(seconds: u64) -> String {
    let seconds = seconds.min(LAST);
    let (mut days, time) = (seconds / DAY, seconds % DAY);
    let name = usize::try_from(days % 7).ok().and_then(|day| DAYS.get(day)).unwrap_or(&"Thu");
    let mut year = 1970;
    while days >= year_days(year) {
        days -= year_days(year);
        year += 1;
    }
    let mut month = "Dec";
    for (number, name) in (0..).zip(MONTHS) {
        month = name;
        if days < month_days(year, number) {
            break;
        }
        days -= month_days(year, number);
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{name}, {:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT", days + 1)
}

/// The seconds of a date in this form, from 1970 to 9999; `None` for anything else.
pub(super) fn read(text: &str) -> Option<u64> {
    let (_day, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    let mut parts = time.split(':').map(|part| part.parse::<u64>().ok().filter(|part| *part <= 60));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let (day, year) = (day.parse::<u64>().ok()?, year.parse::<u64>().ok()?);
    let month = MONTHS.iter().position(|name| *name == month)?;
    if zone != "GMT" || hour > 23 || !(1..=31).contains(&day) || !(1970..=9999).contains(&year) {
        return None;
    }
    let years: u64 = (1970..year).map(year_days).sum();
    let months: u64 = (0..month).map(|number| month_days(year, number)).sum();
    Some((years + months + day - 1) * DAY + hour * 3600 + minute * 60 + second)
}

fn year_days(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days of a month, counted from 0.
fn month_days(year: u64, month: usize) -> u64 {
    match month {
        1 => 28 + u64::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_those_date_prints() {
        // LC_ALL=C date -u -d @SECONDS +'%a, %d %b %Y %T GMT'
        let cases = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ];
        for (seconds, want) in cases {
            assert_eq!((text(seconds).as_str(), read(want)), (want, Some(seconds)));
        }
    }

    #[test]
    fn other_forms_are_no_dates() {
        for text in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 99999999999 08:49:37 GMT",
            "Sun, 06 Now 1994 08:49:37 GMT",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(seconds in 0..=LAST) {
            prop_assert_eq!(read(&text(seconds)), Some(seconds));
        }

        #[test]
        fn no_text_and_no_number_makes_it_panic(words: String, seconds: u64) {
            let _date = (read(&words), text(seconds));
        }
    }
}
