//! A server, a browser and a script to ask it.

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::ConnectInfo,
    http::{HeaderMap, Method, Request, StatusCode, header},
    response::Response,
};
use jiff::tz::TimeZone;
use model::UnixMillis;
use tower::ServiceExt as _;
use web::{
    App,
    auth::{Auth, AuthStore, StoredToken, TokenKeeper, User},
};

use crate::fake::{FakeLab, NOW_MS};

pub(crate) const PASSWORD: &str = " a pass phrase ";
pub(crate) const HOST: &str = "volund.test";

#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<StoredToken>>);

impl TokenKeeper for Kept {
    fn keep<'a>(
        &'a self,
        token: &'a StoredToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        let outcome = if token.name == "unlucky" {
            Err("the disk is full".to_owned())
        } else {
            self.0.lock().unwrap().push(token.clone());
            Ok(())
        };
        Box::pin(std::future::ready(outcome))
    }
}

/// A server with the fake lab behind it.
pub(crate) struct Server {
    pub(crate) lab: Arc<FakeLab>,
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) token: String,
    pub(crate) kept: Arc<Kept>,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(FakeLab::asgard(2))
    }

    pub(crate) fn start_with(lab: Arc<FakeLab>) -> Self {
        let (token, stored) = Auth::new_token("ci").unwrap();
        let kept = Arc::new(Kept::default());
        let phc = Auth::hash_password(PASSWORD).unwrap();
        let store = AuthStore {
            users: vec![User { name: "smith".to_owned(), phc }],
            tokens: vec![stored],
            keeper: kept.clone(),
        };
        let auth = Arc::new(Auth::new(store).unwrap());
        let mut app = App::new(lab.clone(), auth, vec![HOST.to_owned()]);
        app.zone = TimeZone::UTC;
        app.now = || UnixMillis(NOW_MS);
        Self { lab, router: web::router(app.clone()), app, token, kept }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.send(request).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 4 << 20).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// The API by token.
    pub(crate) async fn api(&self, method: Method, path: &str, body: &str) -> Answer {
        let request = request(method, path)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_owned()));
        self.ask(request.unwrap()).await
    }

    /// A browser that has logged in.
    pub(crate) async fn browser(&self) -> Browser<'_> {
        let form = LogInForm::open(self).await;
        let answer = form.send(self, "smith", PASSWORD).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        let cookie = cookie(&answer.headers, "volund-session").unwrap();
        let browser = Browser { server: self, cookie, csrf: String::new() };
        let page = browser.get("/switch").await;
        let csrf = hidden(&page.text, "csrf");
        Browser { csrf, ..browser }
    }
}

pub(crate) struct Browser<'a> {
    pub(crate) server: &'a Server,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Browser<'_> {
    pub(crate) fn request(&self, method: Method, path: &str) -> axum::http::request::Builder {
        request(method, path).header(header::COOKIE, &self.cookie)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let request = self.request(Method::GET, path).body(Body::empty()).unwrap();
        self.server.ask(request).await
    }

    /// Posts a form with this session's CSRF token.
    pub(crate) async fn post(&self, path: &str, form: &str) -> Answer {
        self.post_raw(path, &format!("csrf={}&{form}", self.csrf)).await
    }

    pub(crate) async fn post_raw(&self, path: &str, form: &str) -> Answer {
        let request = self
            .request(Method::POST, path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(form.to_owned()));
        self.server.ask(request.unwrap()).await
    }
}

/// The log-in form as a browser holds it.
pub(crate) struct LogInForm {
    pub(crate) secret: String,
    pub(crate) cookie: String,
    pub(crate) peer: SocketAddr,
}

impl LogInForm {
    pub(crate) async fn open(server: &Server) -> Self {
        let page = server.ask(request(Method::GET, "/login").body(Body::empty()).unwrap()).await;
        assert_eq!(page.status, StatusCode::OK);
        let cookie = cookie(&page.headers, "volund-login").unwrap();
        let peer = SocketAddr::from(([192, 0, 2, 7], 50_000));
        Self { secret: hidden(&page.text, "form"), cookie, peer }
    }

    pub(crate) async fn send(&self, server: &Server, user: &str, password: &str) -> Answer {
        let body = format!(
            "form={}&next=/nodes/bld-011&user={user}&password={}",
            self.secret,
            password.replace(' ', "+")
        );
        let mut request = request(Method::POST, "/login")
            .header(header::COOKIE, &self.cookie)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(body))
            .unwrap();
        request.extensions_mut().insert(ConnectInfo(self.peer));
        server.ask(request).await
    }
}

pub(crate) fn request(method: Method, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header(header::HOST, HOST)
}

/// `name=value` of a cookie that was set.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(header::SET_COOKIE).iter();
    values
        .filter_map(|value| value.to_str().unwrap().split(';').next())
        .find(|pair| pair.starts_with(&format!("{name}=")))
        .map(ToOwned::to_owned)
}

/// The value of a hidden field.
pub(crate) fn hidden(html: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let rest = html.split(&start).nth(1).unwrap_or_else(|| panic!("no field {name} in {html}"));
    rest.split('"').next().unwrap().to_owned()
}

/// The element that begins with `start`, up to `end`.
pub(crate) fn between<'a>(html: &'a str, start: &str, end: &str) -> &'a str {
    let from = html.find(start).unwrap_or_else(|| panic!("no {start} in {html}"));
    let rest = &html[from..];
    &rest[..rest.find(end).map_or(rest.len(), |at| at + end.len())]
}
