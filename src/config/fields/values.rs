//! Numbers, durations and words of a table.

use std::{fmt, ops::RangeInclusive, time::Duration};

use toml::de::DeValue;

use super::{Fields, shown};
use crate::config::{duration, fault::Spot, suggest::nearest};

impl Fields<'_> {
    /// A whole number within `range`.
    pub(in crate::config) fn integer<T>(
        &self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<Spot<T>>
    where
        T: TryFrom<i64> + PartialOrd + fmt::Display,
    {
        let value = self.value(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            let want = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong_type(key, value, &want);
            return None;
        };
        let digits = integer.as_str().replace('_', "");
        let number = i64::from_str_radix(&digits, integer.radix()).ok();
        let number = number.and_then(|number| T::try_from(number).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let text = format!("{key} {} is out of range", integer.as_str());
            let hint = format!("use {} to {}", range.start(), range.end());
            self.fault(&self.place_of(value), text, hint);
        }
        number.map(|number| Spot::new(number, self.place_of(value)))
    }

    /// A number, whole or not, within `range`.
    pub(in crate::config) fn number(
        &self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Option<f64> {
        let value = self.value(key)?;
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => {
                self.wrong_type(key, value, "a number");
                return None;
            }
        };
        let number = text.replace('_', "").parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let hint = format!("use {} to {}", range.start(), range.end());
            self.fault(&self.place_of(value), format!("{key} {text} is out of range"), hint);
        }
        number
    }

    /// `true` or `false`.
    pub(in crate::config) fn boolean(&self, key: &'static str) -> Option<bool> {
        self.boolean_spot(key).map(|boolean| boolean.value)
    }

    /// `true` or `false`, and where it stands.
    pub(in crate::config) fn boolean_spot(&self, key: &'static str) -> Option<Spot<bool>> {
        let value = self.value(key)?;
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.wrong_type(key, value, "true or false");
        }
        boolean.map(|boolean| Spot::new(boolean, self.place_of(value)))
    }

    /// A duration such as `"8m"`, one second to a day.
    pub(in crate::config) fn duration(&self, key: &'static str) -> Option<Duration> {
        let text = self.text(key)?;
        let range = Duration::from_secs(1)..=Duration::from_secs(86_400);
        match duration::parse(&text.value) {
            Ok(span) if range.contains(&span) => Some(span),
            Ok(_) => {
                let text_is = format!("{key} {:?} is out of range", text.value);
                self.fault(&text.place, text_is, "use 1s to 24h");
                None
            }
            Err(error) => {
                let text_is = format!("{key} {:?} cannot be used", text.value);
                self.fault(&text.place, text_is, error.to_string());
                None
            }
        }
    }

    /// One of a few words.
    pub(in crate::config) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<Spot<T>> {
        let text = self.text(key)?;
        let found = choices.iter().find(|(word, _)| *word == text.value);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let hint = match nearest(&text.value, words.iter().copied()) {
                Some(word) => format!("did you mean {word:?}?"),
                None => format!("use {}", words.join(" or ")),
            };
            self.fault(&text.place, format!("{key} {:?} is not known", shown(&text.value)), hint);
        }
        found.map(|(_, value)| Spot::new(*value, text.place))
    }
}
