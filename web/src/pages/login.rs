//! Logging in and out, and the theme.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use askama::Template;
use axum::{
    Extension, Form,
    extract::{ConnectInfo, Query, State},
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse as _, Redirect, Response},
};
use serde::Deserialize;

use super::{Ask, Shell, own_path};
use crate::{
    App,
    auth::{LogInRefusal, SESSION_LIFE, random_hex, same_secret},
    cookie::{self, Theme},
    error::ApiError,
    guard::{Fields, check_origin},
    view::Html,
};

/// How long a log-in form may lie open.
const FORM_LIFE_S: u64 = 3_600;

#[derive(Template)]
#[template(path = "login.html")]
struct Page {
    shell: Shell,
    form: String,
    next: String,
    user: String,
    refusal: String,
}

#[derive(Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    headers: HeaderMap,
    Query(next): Query<Next>,
) -> Response {
    let next = own_path(&next.next);
    let known = cookie::find(&headers, cookie::SESSION).and_then(|id| app.auth.find_session(id));
    if known.is_some() {
        return Redirect::to(next).into_response();
    }
    form(&app, &headers, next, "", None)
}

/// The form, with a fresh secret in form and cookie that must come back together.
fn form(
    app: &App,
    headers: &HeaderMap,
    next: &str,
    user: &str,
    refusal: Option<&ApiError>,
) -> Response {
    let Ok(secret) = random_hex() else {
        return ApiError::Unavailable("the system gave no random bytes".to_owned()).into_response();
    };
    let page = Page {
        shell: Shell::new(None, Theme::of(headers)),
        form: secret.clone(),
        next: own_path(next).to_owned(),
        user: user.to_owned(),
        refusal: refusal.map_or_else(String::new, said),
    };
    let mut response = Html::of(&page).into_response();
    if let Some(error) = refusal {
        *response.status_mut() = error.status();
        error.add_headers(&mut response);
        // A challenge would make browsers ask in a window of their own.
        response.headers_mut().remove(header::WWW_AUTHENTICATE);
    }
    let cookie = cookie::secret(cookie::LOG_IN, &secret, FORM_LIFE_S, app.transport);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}

/// What the form says; unknown user and wrong password read the same.
fn said(error: &ApiError) -> String {
    match error {
        ApiError::Unauthorized => "Name or password is wrong.".to_owned(),
        other => other.to_string(),
    }
}

pub(crate) async fn log_in(
    State(app): State<App>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let fields = Fields(fields);
    let (next, user) = (fields.get("next"), fields.get("user"));
    let address = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Extension(peer)| peer.0.ip());
    match open(&app, address, &headers, &fields).await {
        Ok(id) => entered(&app, own_path(next), &id),
        Err(error) => form(&app, &headers, next, user, Some(&error)),
    }
}

async fn open(
    app: &App,
    peer: IpAddr,
    headers: &HeaderMap,
    fields: &Fields,
) -> Result<String, ApiError> {
    check_origin(headers)?;
    let sent = cookie::find(headers, cookie::LOG_IN).unwrap_or_default();
    if sent.is_empty() || !same_secret(sent, fields.get("form")) {
        return Err(ApiError::Forbidden("the form was too old; please try once more"));
    }
    // Not trimmed: a password may begin or end with a space.
    let password = fields.all("password").next().unwrap_or_default();
    let opened = app.auth.log_in(peer, fields.get("user"), password).await;
    opened.map_err(|refusal| match refusal {
        LogInRefusal::Wrong => ApiError::Unauthorized,
        LogInRefusal::Wait(wait) => ApiError::TooMany(wait.as_secs() + 1),
        LogInRefusal::Busy => {
            ApiError::Unavailable("too many log-ins at once; try again in a moment".to_owned())
        }
    })
}

fn entered(app: &App, next: &str, id: &str) -> Response {
    let session = cookie::secret(cookie::SESSION, id, SESSION_LIFE.as_secs(), app.transport);
    let spent = cookie::secret(cookie::LOG_IN, "", 0, app.transport);
    with_cookies(Redirect::to(next).into_response(), [session, spent])
}

fn with_cookies<const N: usize>(mut response: Response, cookies: [HeaderValue; N]) -> Response {
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

pub(crate) async fn log_out(ask: Ask) -> Response {
    ask.app.auth.log_out(&ask.viewer.session);
    let spent = cookie::secret(cookie::SESSION, "", 0, ask.app.transport);
    with_cookies(Redirect::to("/login").into_response(), [spent])
}

pub(crate) async fn set_theme(Extension(fields): Extension<Fields>) -> Response {
    let back = Redirect::to(own_path(fields.get("back"))).into_response();
    match Theme::parse(fields.get("to")) {
        Some(theme) => with_cookies(back, [cookie::theme(theme)]),
        None => back,
    }
}
