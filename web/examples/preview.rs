//! Serves the pages with the fake lab of the tests, for looking at them: `cargo run -p web --example preview`.
//!
//! Prints the address; log in as `smith` with `hunter2hunter2`, or start it with `--open` and be logged in.
//! With `--moving` a blade goes through its phases, one a second. Loopback only, no lab, no state.

#![allow(clippy::print_stdout, reason = "the address is its output")]

#[path = "../tests/it/fake.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "made for the tests, which use more of it")]
mod fake;

use std::{error::Error, future::Future, pin::Pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderValue, Request, header},
    middleware::{Next, from_fn},
};
use model::UnixMillis;
use tokio::net::TcpListener;
use tower::ServiceExt as _;
use web::{
    App,
    auth::{Auth, AuthStore, StoredToken, TokenKeeper, User},
};

const PASSWORD: &str = "hunter2hunter2";

struct Forgetful;

impl TokenKeeper for Forgetful {
    fn keep<'a>(
        &'a self,
        _: &'a StoredToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let asked = |wanted: &str| std::env::args().any(|arg| arg == wanted);
    let phc = Auth::hash_password(PASSWORD)?;
    let auth = Auth::new(AuthStore {
        users: vec![User { name: "smith".to_owned(), phc }],
        tokens: Vec::new(),
        keeper: Arc::new(Forgetful),
    })?;
    let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let lab = fake::FakeLab::asgard(2);
    if asked("--moving") {
        tokio::spawn(go_through_phases(Arc::clone(&lab)));
    }
    let mut app = App::new(lab, Arc::new(auth), hosts);
    app.now = || UnixMillis(fake::NOW_MS);
    let mut router = web::router(app);
    if asked("--open") {
        let cookie = log_in(&router).await?;
        let enter = from_fn(move |mut request: Request<Body>, next: Next| {
            let theme = request.headers().get(header::COOKIE).cloned();
            let theme = theme.as_ref().and_then(|theme| theme.to_str().ok()).unwrap_or_default();
            let both = format!("{cookie}; {theme}");
            if let Ok(value) = HeaderValue::try_from(both) {
                request.headers_mut().insert(header::COOKIE, value);
            }
            next.run(request)
        });
        router = router.layer(enter);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}

/// Bay 14 over and over, until the process ends.
async fn go_through_phases(lab: Arc<fake::FakeLab>) {
    let phases = ["guarding", "arming", "powering-on", "booting", "installing", "done"];
    for phase in phases.into_iter().cycle() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lab.change("bld-014", |node| {
            node.phase.name = phase.to_owned();
            node.phase.open = phase != "done";
            node.wanted = node.phase.open.then(|| "slurm-debian".to_owned());
        });
    }
}

/// Logs in as a browser would; returns the session's cookie.
async fn log_in(router: &Router) -> Result<String, Box<dyn Error>> {
    let request = |builder: axum::http::request::Builder| builder.header(header::HOST, "localhost");
    let form = request(Request::get("/login")).body(Body::empty())?;
    let response = router.clone().oneshot(form).await?;
    let cookie = first_cookie(response.headers().get(header::SET_COOKIE))?;
    let page = to_bytes(response.into_body(), 1 << 20).await?;
    let page = String::from_utf8_lossy(&page).into_owned();
    let secret =
        page.split("name=\"form\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let body = format!("form={}&user=smith&password={PASSWORD}", secret.unwrap_or_default());
    let post = request(Request::post("/login"))
        .header(header::COOKIE, cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(body))?;
    let response = router.clone().oneshot(post).await?;
    first_cookie(response.headers().get(header::SET_COOKIE))
}

fn first_cookie(value: Option<&HeaderValue>) -> Result<String, Box<dyn Error>> {
    let text = value.ok_or("no cookie was set")?.to_str()?;
    Ok(text.split(';').next().unwrap_or_default().to_owned())
}
