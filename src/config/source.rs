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
        // A link that leads nowhere is taken along: it is a fault, not a file that may be left out.
        let is_meant = name.ends_with(".toml") && !name.starts_with('.');
        if is_meant && !entry.path().is_dir() {
            names.push(format!("{prefix}{name}"));
        }
    }
    names.sort();
    Ok(names)
}

fn read_one(dir: &Path, name: String, sink: &Sink) -> Option<Source> {
    let path = dir.join(&name);
    let (is_file, size) = match fs::metadata(&path) {
        Ok(meta) => (meta.is_file(), meta.len()),
        // Reading says why.
        Err(_) => (true, 0),
    };
    if !is_file {
        let hint = "put a file in its place, or move it out of the directory";
        sink.fault(&Place::whole(&name), "is no regular file".to_owned(), hint);
        return None;
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_named_like_a_file_but_is_none_is_a_fault_and_nothing_is_waited_for() {
        let dir = std::env::temp_dir().join(format!("volund-source-{}", std::process::id()));
        fs::create_dir_all(dir.join("folder.toml")).unwrap();
        fs::write(dir.join(MAIN), "schema = 1").unwrap();
        symlink("gone.toml", dir.join("dangling.toml")).unwrap();
        symlink("loop.toml", dir.join("loop.toml")).unwrap();
        symlink("/dev/zero", dir.join("zero.toml")).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(dir.join("fifo.toml")).status();
        assert!(fifo.unwrap().success());
        let sink = Sink::default();
        let read = read(&dir, &sink);
        let faults = sink.outcome().unwrap_err().to_string();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(read.len(), 1);
        for name in ["dangling.toml", "loop.toml", "zero.toml", "fifo.toml"] {
            assert!(faults.contains(&format!("{name}: ")), "{name}: {faults}");
        }
    }
}
