//! The files of a configuration directory, in an order that never changes.

use std::{
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use toml::{
    Spanned,
    de::{DeTable, Error},
};

use super::fault::{Place, Sink};

/// The file every configuration directory has.
pub(super) const MAIN: &str = "volund.toml";
/// A file above this size is no configuration.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// One configuration file.
pub(super) struct Source {
    /// Its name, relative to the configuration directory.
    pub(super) name: Arc<str>,
    /// Its text.
    pub(super) text: String,
}

impl Source {
    /// The place of a byte offset.
    pub(super) fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Place { file: Arc::clone(&self.name), line, column }
    }

    /// The document, or `None` after its syntax errors went into `sink`, all of them.
    pub(super) fn parse(&self, sink: &Sink) -> Option<Spanned<DeTable<'_>>> {
        let (document, errors) = DeTable::parse_recoverable(&self.text);
        for error in &errors {
            sink.fault(&self.place(offset(error)), syntax_text(error), "see https://toml.io");
        }
        errors.is_empty().then_some(document)
    }
}

fn offset(error: &Error) -> usize {
    let Range { start, .. } = error.span().unwrap_or_default();
    start
}

fn syntax_text(error: &Error) -> String {
    format!("not TOML: {}", error.message().replace('\n', ", "))
}

/// `volund.toml`, the other `*.toml` by name, then `*.d/*.toml` by name. Hidden files are left out.
///
/// A folder or file that cannot be read is a fault; so is a missing `volund.toml`.
pub(super) fn read(dir: &Path, sink: &Sink) -> Vec<Source> {
    let names = match list(dir) {
        Ok(names) => names,
        Err(error) => {
            let place = Place::whole(&dir.display().to_string());
            let text = format!("cannot read the configuration directory: {error}");
            sink.fault(&place, text, "name a readable directory that holds volund.toml");
            return Vec::new();
        }
    };
    if names.first().map(String::as_str) != Some(MAIN) {
        let text = format!("{} has no {MAIN}", dir.display());
        sink.fault(&Place::whole(MAIN), text, "create it; examples/asgard shows one");
    }
    names.into_iter().filter_map(|name| read_one(dir, name, sink)).collect()
}

fn list(dir: &Path) -> io::Result<Vec<String>> {
    let mut files = toml_names(dir, "")?;
    files.sort_by_key(|name| name != MAIN);
    let mut folders: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".d") && !name.starts_with('.') && entry.path().is_dir() {
            folders.push((name, entry.path()));
        }
    }
    folders.sort();
    for (name, folder) in folders {
        files.extend(toml_names(&folder, &format!("{name}/"))?);
    }
    Ok(files)
}

/// Names of the `*.toml` in `dir`, sorted, each after `prefix`.
fn toml_names(dir: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".toml") && !name.starts_with('.') && entry.path().is_file() {
            names.push(format!("{prefix}{name}"));
        }
    }
    names.sort();
    Ok(names)
}

fn read_one(dir: &Path, name: String, sink: &Sink) -> Option<Source> {
    let path = dir.join(&name);
    let size = fs::metadata(&path).map_or(0, |meta| meta.len());
    if size > MAX_BYTES {
        let text = format!("has {size} bytes, more than a configuration file may have");
        sink.fault(&Place::whole(&name), text, "split it; the limit is 4 MiB a file");
        return None;
    }
    match fs::read_to_string(&path) {
        Ok(text) => Some(Source { name: Arc::from(name), text }),
        Err(error) => {
            let hint = "make it readable UTF-8 text, or move it out of the directory";
            sink.fault(&Place::whole(&name), format!("cannot be read: {error}"), hint);
            None
        }
    }
}
