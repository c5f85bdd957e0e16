//! What stands before every handler: the Host check, the security headers, the wall.
//!
//! The wall is put in front of a route by its [`Access`]; [`crate::routes`] builds no route without one.

use axum::{
    Form,
    body::Body,
    extract::{FromRequest as _, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Redirect, Response},
};

use crate::{
    App,
    auth::{Viewer, same_secret},
    cookie,
    error::ApiError,
    lab::Caller,
    pages,
    routes::Access,
    view::url_part,
};

const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                   connect-src 'self'; form-action 'self'; base-uri 'none'; \
                   frame-ancestors 'none'";

/// Fields of a form, in the order they were sent; the CSRF token has been checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// The first value of `name`, trimmed; empty when there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.trim())
    }

    /// All values of `name`.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Puts the security headers on every answer and refuses foreign Host names, so that no other site can point
/// its name at us (DNS rebinding).
pub(crate) async fn front(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = if is_our_host(&app, request.headers()) {
        next.run(request).await
    } else {
        let text = "This server does not answer under this name. Use its configured name, or \
                    add this one to the listener's hosts.";
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    };
    add_headers(response.headers_mut());
    response
}

fn is_our_host(app: &App, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| {
        let name = without_port(host);
        let fits = |ours: &String| {
            host.eq_ignore_ascii_case(ours) || name.eq_ignore_ascii_case(ours.as_str())
        };
        app.hosts.iter().any(fits)
    })
}

/// `name`, `127.0.0.1`, `[::1]` of `name:port`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

fn add_headers(headers: &mut HeaderMap) {
    const FIXED: [(HeaderName, &str); 5] = [
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`: browsers would send `Origin: null` with our own forms.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in FIXED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Lets nobody through to a route of this access whom it does not know; leaves [`Viewer`], [`Caller`] and
/// [`Fields`] for the handler.
pub(crate) async fn wall(
    State((app, access)): State<(App, Access)>,
    request: Request,
    next: Next,
) -> Response {
    let outcome = match access {
        Access::Open => Ok(request),
        Access::Page => return page_wall(&app, request, next).await,
        Access::Live => admit_session(&app, request),
        Access::Api => admit_to_api(&app, request),
    };
    match outcome {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// The wall before paths that do not exist: nobody learns from outside which ones do.
pub(crate) async fn wall_unknown(State(app): State<App>, request: Request, next: Next) -> Response {
    let access = if is_api(request.uri().path()) { Access::Api } else { Access::Page };
    wall(State((app, access)), request, next).await
}

/// Whether whoever asks `path` reads JSON.
pub(crate) fn is_api(path: &str) -> bool {
    path.starts_with("/api/")
}

fn viewer(app: &App, headers: &HeaderMap) -> Option<Viewer> {
    app.auth.find_session(cookie::find(headers, cookie::SESSION)?)
}

fn let_in(mut request: Request, viewer: Viewer) -> Request {
    request.extensions_mut().insert(Caller { name: viewer.user.clone() });
    request.extensions_mut().insert(viewer);
    request
}

fn admit_session(app: &App, request: Request) -> Result<Request, ApiError> {
    match viewer(app, request.headers()) {
        Some(viewer) => Ok(let_in(request, viewer)),
        None => Err(ApiError::Unauthorized),
    }
}

/// Tokens may do everything; a session may only read, so that no foreign page can make a browser act.
fn admit_to_api(app: &App, mut request: Request) -> Result<Request, ApiError> {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some(given) = given {
        let secret = given
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, secret)| secret.trim());
        let name = secret.and_then(|secret| app.auth.find_token(secret));
        let name = name.ok_or(ApiError::Unauthorized)?;
        request.extensions_mut().insert(Caller { name: format!("token {name}") });
        return Ok(request);
    }
    let request = admit_session(app, request)?;
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return Ok(request);
    }
    Err(ApiError::Forbidden(
        "a browser session may only read the API; send an API token in Authorization: Bearer",
    ))
}

async fn page_wall(app: &App, request: Request, next: Next) -> Response {
    let Some(viewer) = viewer(app, request.headers()) else {
        return Redirect::to(&log_in_place(&request)).into_response();
    };
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return next.run(let_in(request, viewer)).await;
    }
    let theme = cookie::Theme::of(request.headers());
    match checked_form(request, &viewer.csrf).await {
        Ok(request) => next.run(let_in(request, viewer)).await,
        Err(error) => pages::fault_page(&viewer, theme, &error),
    }
}

/// The log-in page, with the way back for pages that may simply be asked for again.
fn log_in_place(request: &Request) -> String {
    match request.uri().path_and_query() {
        Some(place) if request.method() == Method::GET && place.as_str() != "/" => {
            format!("/login?next={}", url_part(place.as_str()))
        }
        Some(_) | None => "/login".to_owned(),
    }
}

/// The request with its form taken out and checked: own origin, right CSRF token.
async fn checked_form(request: Request, csrf: &str) -> Result<Request, ApiError> {
    check_origin(request.headers())?;
    let (parts, body) = request.into_parts();
    let mut rest = Request::from_parts(parts.clone(), Body::empty());
    let whole = Request::from_parts(parts, body);
    let form = Form::<Vec<(String, String)>>::from_request(whole, &()).await;
    let Form(fields) = form.map_err(|rejection| {
        ApiError::refused("the form could not be read", rejection.body_text())
    })?;
    let fields = Fields(fields);
    if !same_secret(fields.get("csrf"), csrf) {
        return Err(ApiError::Forbidden(
            "this form is from another session; load the page again and repeat the step",
        ));
    }
    rest.extensions_mut().insert(fields);
    Ok(rest)
}

/// A form of another site says so in its Origin (RFC 6454, section 7).
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
    let host = origin.split_once("://").map(|(_, host)| host);
    if host.is_some() && host == text(header::HOST) {
        return Ok(());
    }
    Err(ApiError::Forbidden("this form was sent from another site"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_with_and_without_its_port() {
        let cases = [
            ("volund.lan", "volund.lan"),
            ("volund.lan:8443", "volund.lan"),
            ("127.0.0.1:8080", "127.0.0.1"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
        ];
        for (host, want) in cases {
            assert_eq!(without_port(host), want, "{host}");
        }
    }
}
