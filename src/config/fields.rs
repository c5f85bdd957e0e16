//! Reads one TOML table key by key, and notes everything that is wrong with it instead of stopping.
//!
//! serde stops at the first fault; a person with twenty wants to see twenty. The keys a reader asks for are
//! the keys that exist: whatever is left over is unknown and refused, with the nearest known key.

mod values;

use std::{
    borrow::Cow,
    cell::RefCell,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use super::{
    fault::{Place, Sink, Spot},
    secret::{SecretRef, SecretRefError},
    source::Source,
    suggest::nearest,
};

/// How an address is written.
pub(super) const ADDRESS_FORM: &str =
    "write an IP address, such as 192.0.2.1; names are not looked up";

/// Keys whose values are never repeated in a message.
const SECRET_KEYS: [&str; 5] = ["password", "password_hash", "secret", "sha256", "token"];

#[cfg(test)]
thread_local! {
    /// The keys that were asked for, by subject, so that a test can hold the reference against them.
    pub(super) static KNOWN: RefCell<Vec<(String, Vec<&'static str>)>> = const { RefCell::new(vec![]) };
}

type Value<'a> = Spanned<DeValue<'a>>;

/// A text as a message may repeat it: what stands before an `@` as user and password in a URL does is left out.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    match text.rsplit_once('@') {
        Some((before, after)) if before.contains(':') => Cow::Owned(format!("…@{after}")),
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// One table while it is read.
pub(super) struct Fields<'a> {
    source: &'a Source,
    sink: &'a Sink,
    /// How messages name it: `node "bld-003"`, `[lab]`.
    pub(super) subject: String,
    table: &'a DeTable<'a>,
    /// Where it starts.
    pub(super) place: Place,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    /// The document of a file.
    pub(super) fn root(source: &'a Source, sink: &'a Sink, table: &'a DeTable<'a>) -> Self {
        Self::new(source, sink, "this file".to_owned(), table, source.place(0))
    }

    fn new(
        source: &'a Source,
        sink: &'a Sink,
        subject: String,
        table: &'a DeTable<'a>,
        place: Place,
    ) -> Self {
        Self { source, sink, subject, table, place, asked: RefCell::default() }
    }

    fn value(&self, key: &'static str) -> Option<&'a Value<'a>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    fn place_of(&self, value: &Value<'_>) -> Place {
        self.source.place(value.span().start)
    }

    /// Notes a fault of this table at `place`; `text` goes after the table's name.
    pub(super) fn fault(&self, place: &Place, text: impl fmt::Display, hint: impl Into<String>) {
        self.sink.fault(place, format!("{}: {text}", self.subject), hint);
    }

    fn wrong_type(&self, key: &str, value: &Value<'_>, want: &str) {
        let found = value.get_ref().type_str();
        let text = match value.get_ref() {
            DeValue::Table(_) | DeValue::Array(_) => format!("{key} is of type {found}"),
            _ if SECRET_KEYS.contains(&key) => format!("{key} is of type {found}"),
            _ => format!("{key} {} is of type {found}", self.excerpt(value)),
        };
        self.fault(&self.place_of(value), text, format!("write {want}"));
    }

    /// The value as it is written, cut where it is long.
    fn excerpt(&self, value: &Value<'_>) -> String {
        let written = self.source.text.get(value.span()).unwrap_or_default();
        let line: String = written.chars().take_while(|c| !c.is_control()).collect();
        let line = shown(&line);
        let cut: String = line.chars().take(40).collect();
        if cut.len() < written.len() { format!("{cut}…") } else { cut }
    }

    /// Notes that `key` is missing.
    pub(super) fn missing(&self, key: &str, hint: &str) {
        self.fault(&self.place, format!("{key} is missing"), hint);
    }

    /// A text.
    pub(super) fn text(&self, key: &'static str) -> Option<Spot<String>> {
        let value = self.value(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, value, "a text in quotes");
        }
        text.map(|text| Spot::new(text.to_owned(), self.place_of(value)))
    }

    /// A text that says a `T`.
    pub(super) fn parse<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
    ) -> Option<Spot<T>> {
        let text = self.text(key)?;
        self.parse_spot(key, &text, None)
    }

    /// A text that says a `T` whose own error explains nothing; `form` shows how to write it.
    pub(super) fn parse_as<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
        form: &str,
    ) -> Option<Spot<T>> {
        let text = self.text(key)?;
        self.parse_spot(key, &text, Some(form))
    }

    /// An IP address that has to be there.
    pub(super) fn need_address<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
        hint: &str,
    ) -> Option<Spot<T>> {
        if !self.has(key) {
            self.missing(key, hint);
        }
        self.parse_as(key, ADDRESS_FORM)
    }

    /// A text that says a `T` and has to be there.
    pub(super) fn need<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
        hint: &str,
    ) -> Option<Spot<T>> {
        if !self.table.contains_key(key) {
            self.missing(key, hint);
        }
        self.parse(key)
    }

    fn parse_spot<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &str,
        text: &Spot<String>,
        form: Option<&str>,
    ) -> Option<Spot<T>> {
        match text.value.parse() {
            Ok(value) => Some(Spot::new(value, text.place.clone())),
            Err(error) => {
                let text_is = format!("{key} {:?} cannot be used", shown(&text.value));
                let hint = form.map_or_else(|| error.to_string(), ToOwned::to_owned);
                self.fault(&text.place, text_is, hint);
                None
            }
        }
    }

    /// A list of texts; a single text is no list.
    pub(super) fn texts(&self, key: &'static str) -> Option<Vec<Spot<String>>> {
        let value = self.value(key)?;
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(key, value, "a list, such as [\"…\"]");
            return None;
        };
        let mut texts = Vec::new();
        for item in list.iter() {
            match item.get_ref().as_str() {
                Some(text) => texts.push(Spot::new(text.to_owned(), self.place_of(item))),
                None => self.wrong_type(key, item, "texts in quotes"),
            }
        }
        Some(texts)
    }

    /// A list of texts that each say a `T`; those that do not are noted and left out.
    pub(super) fn parse_list<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
        form: Option<&str>,
    ) -> Option<Vec<Spot<T>>> {
        let texts = self.texts(key)?;
        Some(texts.iter().filter_map(|text| self.parse_spot(key, text, form)).collect())
    }

    /// A table inside this one.
    pub(super) fn table(&self, key: &'static str, subject: String) -> Option<Self> {
        let value = self.value(key)?;
        self.inner(key, value, subject)
    }

    fn inner(&self, key: &str, value: &'a Value<'a>, subject: String) -> Option<Self> {
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, value, "a table");
            return None;
        };
        Some(Self::new(self.source, self.sink, subject, table, self.place_of(value)))
    }

    /// The tables `[key.NAME]` with their names.
    pub(super) fn named_tables(&self, key: &'static str) -> Vec<(Spot<String>, Self)> {
        let Some(outer) = self.table(key, key.to_owned()) else { return Vec::new() };
        let named = |(name, table): (_, Option<Self>)| table.map(|table| (name, table));
        outer.entries().into_iter().filter_map(named).collect()
    }

    /// The tables `[[key]]`.
    pub(super) fn list_of_tables(&self, key: &'static str) -> Vec<Self> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(key, value, &format!("[[{key}]] above each, or a list of tables"));
            return Vec::new();
        };
        list.iter().filter_map(|item| self.inner(key, item, format!("[[{key}]]"))).collect()
    }

    /// The value of `key` as it is, where it stands, for keys that take more than one type.
    pub(super) fn raw(&self, key: &'static str) -> Option<(&'a DeValue<'a>, Place)> {
        let value = self.value(key)?;
        Some((value.get_ref(), self.place_of(value)))
    }

    /// A reference to a secret. What is no reference is never repeated: it may be the secret.
    pub(super) fn secret(&self, key: &'static str) -> Option<Spot<SecretRef>> {
        let text = self.text(key)?;
        match text.value.parse() {
            Ok(value) => Some(Spot::new(value, text.place)),
            Err(SecretRefError) => {
                let what = format!("{key} is no reference to a secret");
                self.fault(&text.place, what, SecretRefError.to_string());
                None
            }
        }
    }

    /// A title: one line of 1 to 63 characters, no control characters.
    pub(super) fn title(&self, key: &'static str) -> Option<Spot<String>> {
        let text = self.text(key)?;
        let good = (1..=63).contains(&text.value.trim().chars().count())
            && !text.value.chars().any(char::is_control);
        if !good {
            let what = format!("{key} {:?} cannot be used", text.value);
            self.fault(&text.place, what, "write one line of 1 to 63 characters");
        }
        good.then_some(text)
    }

    /// A title that has to be there.
    pub(super) fn need_title(&self, key: &'static str, hint: &str) -> Option<Spot<String>> {
        if !self.has(key) {
            self.missing(key, hint);
        }
        self.title(key)
    }

    /// A file on this machine, relative paths against `dir`.
    pub(super) fn path(&self, key: &'static str, dir: &Path) -> Option<Spot<PathBuf>> {
        let text = self.text(key)?;
        if text.value.trim().is_empty() {
            self.fault(&text.place, format!("{key} is empty"), "name a file");
            return None;
        }
        Some(Spot::new(dir.join(&text.value), text.place))
    }

    /// Files on this machine, relative paths against `dir`.
    pub(super) fn paths(&self, key: &'static str, dir: &Path) -> Vec<Spot<PathBuf>> {
        let texts = self.texts(key).unwrap_or_default();
        texts.into_iter().map(|text| Spot::new(dir.join(text.value), text.place)).collect()
    }

    /// The keys and tables of a table whose keys are the user's own names.
    pub(super) fn entries(&self) -> Vec<(Spot<String>, Option<Self>)> {
        let entry = |(name, value): (&'a Spanned<DeString<'a>>, &'a Value<'a>)| {
            let place = self.source.place(name.span().start);
            let text = name.get_ref().clone().into_owned();
            let inner = self.inner(&text, value, format!("{} {text:?}", self.subject));
            (Spot::new(text, place), inner)
        };
        self.table.iter().map(entry).collect()
    }

    /// Keys and values of a table whose keys are the user's own, each value with its place.
    pub(super) fn each(&self) -> Vec<(Spot<String>, &'a DeValue<'a>, Place)> {
        let entry = |(name, value): (&'a Spanned<DeString<'a>>, &'a Value<'a>)| {
            let key = name.get_ref().clone().into_owned();
            let key = Spot::new(key, self.source.place(name.span().start));
            (key, value.get_ref(), self.place_of(value))
        };
        self.table.iter().map(entry).collect()
    }

    /// A text, or a list of texts.
    pub(super) fn text_or_texts(&self, key: &'static str) -> Option<Vec<Spot<String>>> {
        match self.value(key)?.get_ref() {
            DeValue::String(_) => self.text(key).map(|text| vec![text]),
            _ => self.texts(key),
        }
    }

    /// Whether `key` is there at all.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.table.contains_key(key)
    }

    /// Refuses `key` with a hint of its own, whatever it holds; the value is never repeated.
    pub(super) fn refuse(&self, key: &'static str, text: &str, hint: &str) {
        if let Some(value) = self.value(key) {
            self.fault(&self.place_of(value), text, hint);
        }
    }

    /// Takes keys as known that cannot be judged after another fault.
    pub(super) fn skip(&self, keys: &[&'static str]) {
        self.asked.borrow_mut().extend(keys);
    }

    /// Ends the reading: whatever key nobody asked for is unknown.
    pub(super) fn done(self) {
        let asked = self.asked.borrow();
        #[cfg(test)]
        KNOWN.with_borrow_mut(|known| known.push((self.subject.clone(), asked.clone())));
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if asked.contains(&name) {
                continue;
            }
            let hint = match nearest(name, asked.iter().copied()) {
                Some(known) => format!("did you mean {known:?}?"),
                None => format!("remove it; known here: {}", asked.join(", ")),
            };
            let place = self.source.place(key.span().start);
            self.fault(&place, format!("unknown key {name:?}"), hint);
        }
    }
}
