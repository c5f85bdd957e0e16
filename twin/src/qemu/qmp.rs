//! QMP, QEMU's machine protocol: JSON lines over a unix socket.
//!
//! One owner sends commands and reads events; there is no task behind it. Events that come while a command
//! waits for its answer are kept for [`Qmp::event`].

use std::{collections::VecDeque, io, path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Events kept while nobody reads them; beyond it the oldest go.
const MOST_EVENTS: usize = 256;

/// A connection that has passed its greeting.
#[derive(Debug)]
pub struct Qmp {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    events: VecDeque<String>,
    next_id: u64,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// The socket broke, or QEMU is gone.
    #[error("QMP connection broke")]
    Broken(#[source] io::Error),
    /// No answer in time.
    #[error("QEMU did not answer {0} in time")]
    Silent(&'static str),
    /// QEMU refused.
    #[error("QEMU refused {0}: {1}")]
    Refused(&'static str, String),
}

impl Qmp {
    /// Connects and leaves the capabilities mode.
    ///
    /// # Errors
    /// When there is no socket yet, or no greeting.
    pub async fn connect(path: &Path) -> Result<Self, QmpError> {
        let stream = UnixStream::connect(path).await.map_err(QmpError::Broken)?;
        let (reader, writer) = stream.into_split();
        let lines = BufReader::new(reader).lines();
        let mut qmp = Self { lines, writer, events: VecDeque::new(), next_id: 1 };
        let greeting = timeout(PATIENCE, qmp.line()).await;
        greeting.map_err(|_| QmpError::Silent("greeting"))??;
        qmp.execute("qmp_capabilities", json!({})).await?;
        Ok(qmp)
    }

    /// Runs a command and waits for its answer, at most 5 s.
    ///
    /// # Errors
    /// When QEMU refuses, is silent, or is gone (the ordinary end of `quit`).
    pub async fn execute(
        &mut self,
        command: &'static str,
        arguments: Value,
    ) -> Result<Value, QmpError> {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({ "execute": command, "arguments": arguments, "id": id });
        let line = format!("{request}\n");
        self.writer.write_all(line.as_bytes()).await.map_err(QmpError::Broken)?;
        let answer = timeout(PATIENCE, self.answer(id)).await;
        let mut answer = answer.map_err(|_| QmpError::Silent(command))??;
        match answer.pointer("/error/desc").and_then(Value::as_str) {
            Some(why) => Err(QmpError::Refused(command, why.to_owned())),
            None => Ok(answer.get_mut("return").map_or(Value::Null, Value::take)),
        }
    }

    /// The name of the next event. May be dropped at any time without losing one.
    ///
    /// # Errors
    /// When QEMU is gone.
    pub async fn event(&mut self) -> Result<String, QmpError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let line = self.line().await?;
            self.keep_event(&line);
        }
    }

    async fn answer(&mut self, id: u64) -> Result<Value, QmpError> {
        loop {
            let line = self.line().await?;
            if line.get("id").and_then(Value::as_u64) == Some(id) {
                return Ok(line);
            }
            self.keep_event(&line);
        }
    }

    fn keep_event(&mut self, line: &Value) {
        if let Some(name) = line.get("event").and_then(Value::as_str) {
            if self.events.len() == MOST_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(name.to_owned());
        }
    }

    async fn line(&mut self) -> Result<Value, QmpError> {
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let line = self.lines.next_line().await.map_err(QmpError::Broken)?;
        let line = line.ok_or_else(|| QmpError::Broken(gone()))?;
        serde_json::from_str(&line).map_err(|error| QmpError::Broken(error.into()))
    }
}
