//! A server that answers what a test wants, and `volund` as a process that asks it.

use std::{
    collections::{HashMap, VecDeque},
    io::Write,
    net::TcpListener,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use api::Problem;
use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use serde_json::Value;

pub(crate) const TOKEN: &str = "vlnd_0123456789abcdef";

type Answers = HashMap<String, VecDeque<(u16, Vec<u8>)>>;

/// A server that gives prepared answers, the last one of each kind for ever, and notes what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Prepares the next answer to `request`, such as `GET /api/v1/nodes`.
    pub(crate) fn answers(self, request: &str, status: u16, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).unwrap();
        let mut answers = self.answers.lock().unwrap();
        answers.entry(request.to_owned()).or_default().push_back((status, body));
        drop(answers);
        self
    }

    /// Serves on a free port of the loopback; returns its URL.
    pub(crate) fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let fake = self.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let app = Router::new().fallback(move |request| fake.clone().answer(request));
                axum::serve(listener, app).await.unwrap();
            });
        });
        url
    }

    async fn answer(self, request: Request) -> impl IntoResponse {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, 65_536).await.unwrap();
        let token = parts.headers.get(header::AUTHORIZATION);
        let known = token.is_some_and(|token| token == &format!("Bearer {TOKEN}"));
        let text = format!("{} {} {}", parts.method, parts.uri, String::from_utf8_lossy(&body));
        self.asked.lock().unwrap().push(text.trim().to_owned());
        let json = [(header::CONTENT_TYPE, "application/json")];
        if !known {
            let problem = problem("log in, or send an API token", &[]);
            return (StatusCode::UNAUTHORIZED, json, Bytes::from(problem.to_string()));
        }
        let key = format!("{} {}", parts.method, parts.uri.path());
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = answers.get_mut(&key).unwrap_or_else(|| panic!("nobody prepared {key}"));
        let (status, body) = match queue.len() {
            1 => queue[0].clone(),
            _ => queue.pop_front().unwrap(),
        };
        drop(answers);
        assert_ne!(status, 0, "the test wants this connection dropped: a panic does it");
        (StatusCode::from_u16(status).unwrap(), json, Bytes::from(body))
    }

    /// Runs `volund ARGS` against it.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let url = self.serve();
        let output = volund(args, &[("VOLUND_URL", &url), ("VOLUND_TOKEN", TOKEN)], "");
        let asked = self.asked.lock().unwrap().join("\n");
        Ran { asked, ..Ran::new(output, &url) }
    }
}

/// What came of a process.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) asked: String,
}

impl Ran {
    pub(crate) fn new(output: Output, url: &str) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(url, "URL");
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(!out.contains(TOKEN) && !err.contains(TOKEN), "the token was shown");
        Self { code: output.status.code().unwrap(), out, err, asked: String::new() }
    }

    /// All of it, for a snapshot.
    pub(crate) fn story(&self) -> String {
        let Self { code, out, err, asked } = self;
        format!("{out}--- stderr\n{err}--- asked\n{asked}\n--- exit {code}")
    }
}

pub(crate) fn volund(args: &[&str], variables: &[(&str, &str)], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_volund"))
        .args(args)
        .env_clear()
        .env("TZ", "UTC")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}
pub(crate) fn problem(error: &str, faults: &[&str]) -> Value {
    let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
    serde_json::to_value(Problem { error: error.to_owned(), faults }).unwrap()
}
