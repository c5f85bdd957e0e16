//! Event streams: patches for pages, nodes for the API.

use std::time::{Duration, Instant};

use axum::{
    body::{Body, BodyDataStream},
    http::{Method, Request, StatusCode, header},
};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::support::{Server, between, request};

/// Reads a stream event by event, each within a bound.
struct Reader {
    body: BodyDataStream,
    rest: String,
}

impl Reader {
    async fn open(server: &Server, request: Request<Body>) -> Self {
        let response = server.send(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Self { body: response.into_body().into_data_stream(), rest: String::new() }
    }

    /// The next event as `(name, data)`; `None` at the end.
    async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = event.lines().filter_map(|line| line.strip_prefix(name));
                    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>()
                };
                let found = (field("event:").concat(), field("data:").join("\n"));
                self.rest = rest.to_owned();
                if found.0.is_empty() {
                    continue;
                }
                return Some(found);
            }
            let chunk = timeout(Duration::from_secs(5), self.body.next()).await.unwrap()?;
            self.rest.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }

    async fn until_beat(&mut self) -> Vec<(String, String)> {
        let mut patches = Vec::new();
        loop {
            let (name, data) = self.next().await.unwrap();
            if name == "beat" {
                return patches;
            }
            let (id, html) = data.split_once('\n').unwrap();
            patches.push((id.to_owned(), html.to_owned()));
        }
    }
}

/// The address of the stream, as the page names it.
fn live_of(page: &str) -> String {
    let live = between(page, "data-live=\"", "\">");
    live.trim_start_matches("data-live=\"").trim_end_matches("\">").replace("&#38;", "&")
}

#[tokio::test]
async fn a_page_that_shows_the_present_state_gets_only_what_changes() {
    let server = Server::start();
    let browser = server.browser().await;
    let live = live_of(&browser.get("/").await.text);
    let request = browser.request(Method::GET, &live).body(Body::empty()).unwrap();
    let mut reader = Reader::open(&server, request).await;
    assert_eq!(reader.until_beat().await, [], "nothing to do at first");
    let begin = Instant::now();
    server.lab.change("bld-014", |node| node.power = api::PowerState::On);
    let patches = reader.until_beat().await;
    let ids: Vec<&str> = patches.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["figs", "legend", "encl-c7000-1", "bay-bld-014"]);
    assert!(patches[3].1.contains("data-power=\"on\""), "{}", patches[2].1);
    assert!(begin.elapsed() < Duration::from_secs(10), "it did not wait for the next beat");
}

#[tokio::test]
async fn a_page_from_another_moment_is_brought_up_to_date_at_once() {
    let server = Server::start();
    let browser = server.browser().await;
    let live = live_of(&browser.get("/nodes/bld-011").await.text);
    server.lab.change("bld-011", |node| node.phase.name = "installing".to_owned());
    let request = browser.request(Method::GET, &live).body(Body::empty()).unwrap();
    let mut reader = Reader::open(&server, request).await;
    let patches = reader.until_beat().await;
    assert!(patches.iter().any(|(id, html)| id == "phases" && html.contains("installing")));
}

#[tokio::test]
async fn many_changes_at_once_are_one_patch() {
    let server = Server::start();
    let browser = server.browser().await;
    let live = live_of(&browser.get("/").await.text);
    let request = browser.request(Method::GET, &live).body(Body::empty()).unwrap();
    let mut reader = Reader::open(&server, request).await;
    reader.until_beat().await;
    let begin = Instant::now();
    // More than the channel holds: the reader has lost some and looks at everything.
    for watts in 0..200 {
        server.lab.change("bld-002", |node| node.watts.value = Some(f64::from(watts)));
    }
    let first = reader.until_beat().await;
    let bays: Vec<&str> =
        first.iter().filter(|(id, _)| id == "bay-bld-002").map(|(_, html)| html.as_str()).collect();
    assert_eq!(bays.len(), 1);
    assert!(bays[0].contains("<b>199</b>"), "{}", bays[0]);
    server.lab.change("bld-002", |node| node.watts.value = Some(50.0));
    reader.until_beat().await;
    assert!(begin.elapsed() >= Duration::from_millis(500), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn hostile_text_cannot_forge_an_event() {
    let server = Server::start();
    let browser = server.browser().await;
    let live = live_of(&browser.get("/").await.text);
    let request = browser.request(Method::GET, &live).body(Body::empty()).unwrap();
    let mut reader = Reader::open(&server, request).await;
    reader.until_beat().await;
    server.lab.change("bld-016", |node| {
        node.phase.reason = Some("x\r\n\r\nevent: patch\r\ndata: main\n\ndata: <b>".to_owned());
    });
    let patches = reader.until_beat().await;
    let ids: Vec<&str> = patches.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["needs", "bay-bld-016"]);
}

#[tokio::test]
async fn a_stream_ends_with_its_session() {
    let server = Server::start();
    let browser = server.browser().await;
    let live = live_of(&browser.get("/").await.text);
    let request = browser.request(Method::GET, &live).body(Body::empty()).unwrap();
    let mut reader = Reader::open(&server, request).await;
    reader.until_beat().await;
    browser.post("/logout", "").await;
    server.lab.change("bld-014", |node| node.power = api::PowerState::On);
    assert_eq!(reader.next().await, None);
}

#[tokio::test]
async fn a_stream_ends_with_the_server() {
    let server = Server::start();
    let browser = server.browser().await;
    let request = browser.request(Method::GET, "/live?page=/").body(Body::empty()).unwrap();
    let mut reader = Reader::open(&server, request).await;
    reader.until_beat().await;
    server.app.stop.cancel();
    assert_eq!(reader.next().await, None);
}

#[tokio::test]
async fn the_api_streams_all_nodes_and_then_the_changed_ones() {
    let server = Server::start();
    let request = request(Method::GET, "/api/v1/events")
        .header(header::AUTHORIZATION, format!("Bearer {}", server.token))
        .body(Body::empty());
    let mut reader = Reader::open(&server, request.unwrap()).await;
    for _ in 0..18 {
        let (name, data) = reader.next().await.unwrap();
        assert_eq!(name, "node");
        let _node: api::NodeView = serde_json::from_str(&data).unwrap();
    }
    server.lab.change("bld-005", |node| node.profile = Some("inspect".to_owned()));
    let (_, data) = reader.next().await.unwrap();
    let node: api::NodeView = serde_json::from_str(&data).unwrap();
    assert_eq!((node.name.as_str(), node.profile.as_deref()), ("bld-005", Some("inspect")));
}

#[tokio::test]
async fn pages_without_moving_parts_have_no_stream() {
    let server = Server::start();
    let browser = server.browser().await;
    assert!(!browser.get("/switch").await.text.contains("data-live"));
    assert_eq!(browser.get("/live?page=/switch").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/live?page=/nodes/nope").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_real_listener_serves_and_ends_though_a_stream_is_open() {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };
    let server = Server::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = tokio_util::sync::CancellationToken::new();
    let serving = tokio::spawn(web::serve(listener, server.app.clone(), cancel.clone()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = format!(
        "GET /api/v1/events HTTP/1.1\r\nhost: volund.test\r\nauthorization: Bearer {}\r\n\r\n",
        server.token
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    cancel.cancel();
    timeout(Duration::from_secs(5), serving).await.unwrap().unwrap().unwrap();
}
