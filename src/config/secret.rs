//! Secrets: named by reference in the configuration, resolved once at load, shown to nobody.

use std::{
    env, fmt, fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    str::FromStr,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A secret value. It has no `Debug`, `Display` or `Serialize`, so that no message can hold it by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Where a secret is to be found: `file:PATH`, `env:NAME`, `cmd:PROGRAM ARG…`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretRef {
    /// The content of a file, without the newline at its end. Relative to the configuration directory.
    File(PathBuf),
    /// An environment variable of the volund process.
    Env(String),
    /// What a program prints. Words are separated by blanks; no shell is involved.
    Cmd(String),
}

/// The text is no reference. It is not repeated here: it may be the secret itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is given by reference only: file:PATH, env:NAME or cmd:PROGRAM ARG")]
pub struct SecretRefError;

/// Why a secret could not be had. Never holds any part of it.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read secret file {}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why, in the system's words: part of the message, which stands in a list of faults.
        error: std::io::Error,
    },
    /// The variable is not set.
    #[error("environment variable {0} is not set")]
    Env(String),
    /// The program could not be run, failed, or took too long.
    #[error("secret command {0:?} {1}")]
    Cmd(String, String),
    /// Nothing in it.
    #[error("the secret from {0} is empty")]
    Empty(SecretRef),
    /// More than any password, or no text.
    #[error("the secret from {0} is no text of at most 4096 bytes")]
    NoText(SecretRef),
}

/// At most this much is read of a secret.
const MAX_BYTES: u64 = 4_096;
/// A secret command has this long.
const CMD_TIMEOUT: Duration = Duration::from_secs(10);

impl Secret {
    /// A secret out of its text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret itself, for the one place that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl SecretRef {
    /// Fetches the secret; relative files are looked for in `dir`. Blocks for at most ten seconds (`cmd:`).
    ///
    /// # Errors
    /// [`SecretError`], without any part of the secret.
    pub fn resolve(&self, dir: &Path) -> Result<Secret, SecretError> {
        let bytes = match self {
            Self::File(path) => {
                let path = dir.join(path);
                read_file(&path).map_err(|error| SecretError::File { path, error })?
            }
            Self::Env(name) => env::var_os(name)
                .ok_or_else(|| SecretError::Env(name.clone()))?
                .into_encoded_bytes(),
            Self::Cmd(line) => run(line).map_err(|why| SecretError::Cmd(program(line), why))?,
        };
        let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= 4_096);
        let text = text.ok_or_else(|| SecretError::NoText(self.clone()))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Err(SecretError::Empty(self.clone()));
        }
        Ok(Secret(text.to_owned()))
    }

    /// Whether the file it names can be read by everybody on this machine.
    #[must_use]
    pub fn is_world_readable(&self, dir: &Path) -> bool {
        use std::os::unix::fs::PermissionsExt;
        let Self::File(path) = self else { return false };
        fs::metadata(dir.join(path)).is_ok_and(|meta| meta.permissions().mode() & 0o004 != 0)
    }
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    // Opening a pipe would wait for whoever writes into it, for ever.
    let kind = fs::metadata(path)?.file_type();
    if std::os::unix::fs::FileTypeExt::is_fifo(&kind) {
        return Err(std::io::Error::other("it is a pipe, not a file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES + 2).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The program of a command line, without its arguments: they may be private.
fn program(line: &str) -> String {
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

fn run(line: &str) -> Result<Vec<u8>, String> {
    let mut words = line.split_whitespace();
    let name = words.next().ok_or("names no program")?;
    let mut child = Command::new(name)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let deadline = Instant::now() + CMD_TIMEOUT;
    let output = child.stdout.take().map(read_in_thread).ok_or("has no output")?;
    let late = || format!("did not end within {} s", CMD_TIMEOUT.as_secs());
    let status = wait_until(&mut child, deadline)?.ok_or_else(late)?;
    if !status.success() {
        return Err(format!("failed with {status}"));
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let bytes = output.recv_timeout(left).map_err(|_| late())?;
    bytes.map_err(|error| format!("could not be read: {error}"))
}

/// Its own thread, so that a program which keeps its output open cannot hold up the start.
fn read_in_thread(stdout: ChildStdout) -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let outcome = stdout.take(MAX_BYTES + 2).read_to_end(&mut bytes);
        sender.send(outcome.map(|_| bytes)).ok();
    });
    receiver
}

/// The status, or `None` after the child was killed at the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>, String> {
    let fault = |error: std::io::Error| format!("cannot be waited for: {error}");
    loop {
        if let Some(status) = child.try_wait().map_err(fault)? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill().ok();
            child.wait().map_err(fault)?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

impl FromStr for SecretRef {
    type Err = SecretRefError;
    fn from_str(text: &str) -> Result<Self, SecretRefError> {
        let (kind, rest) = text.split_once(':').ok_or(SecretRefError)?;
        if rest.trim().is_empty() {
            return Err(SecretRefError);
        }
        match kind {
            "file" => Ok(Self::File(PathBuf::from(rest))),
            "env" if !rest.contains(['=', '\0']) => Ok(Self::Env(rest.to_owned())),
            "cmd" => Ok(Self::Cmd(rest.to_owned())),
            _ => Err(SecretRefError),
        }
    }
}

impl fmt::Display for SecretRef {
    /// `file:PATH`, `env:NAME`, `cmd:PROGRAM`: a command's arguments are left out, they may be private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Env(name) => write!(f, "env:{name}"),
            Self::Cmd(line) => write!(f, "cmd:{}", program(line)),
        }
    }
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<Secret, String> {
        let reference: SecretRef =
            text.parse().map_err(|error: SecretRefError| error.to_string())?;
        reference.resolve(Path::new("/nonexistent")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_pipe_in_place_of_a_secret_file_is_refused_and_not_waited_for() {
        let path = env::temp_dir().join(format!("volund-secret-{}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let said = resolve(&format!("file:{}", path.display())).err().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(said.contains("it is a pipe"), "{said}");
    }

    #[test]
    fn a_command_gives_its_output_without_the_newline() {
        assert_eq!(resolve("cmd:echo s3cret").ok().unwrap().reveal(), "s3cret");
    }

    #[test]
    fn what_goes_wrong_is_said_without_arguments_or_secrets() {
        let cases = [
            (
                "hunter2",
                "a secret is given by reference only: file:PATH, env:NAME or cmd:PROGRAM ARG",
            ),
            (
                "vault:x",
                "a secret is given by reference only: file:PATH, env:NAME or cmd:PROGRAM ARG",
            ),
            (
                "file:",
                "a secret is given by reference only: file:PATH, env:NAME or cmd:PROGRAM ARG",
            ),
            ("env:VOLUND_TEST_UNSET", "environment variable VOLUND_TEST_UNSET is not set"),
            ("cmd:false hunter2", "secret command \"false\" failed with exit status: 1"),
            ("cmd:true hunter2", "the secret from cmd:true is empty"),
            (
                "file:pw",
                "cannot read secret file /nonexistent/pw: No such file or directory (os error 2)",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(resolve(text).err().as_deref(), Some(want), "{text}");
        }
    }
}
