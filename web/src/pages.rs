//! The pages: ask the lab, make view structs, render. Everything works by forms and links; the script only
//! adds comfort.

pub(crate) mod boots;
pub(crate) mod login;
pub(crate) mod networks;
pub(crate) mod node;
pub(crate) mod overview;
pub(crate) mod power;
pub(crate) mod switch;

use std::{convert::Infallible, future::Future};

use askama::Template;
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use sha2::{Digest as _, Sha256};

use crate::{
    App, assets,
    auth::{Flash, FlashLevel, Viewer},
    cookie::Theme,
    error::ApiError,
    guard::is_api,
    lab::Caller,
    view::{Html, url_part},
};

/// What stands around every page.
pub(crate) struct Shell {
    /// Name of the lab; empty where nobody has logged in or the lab does not answer.
    lab: String,
    user: String,
    csrf: String,
    theme: Option<&'static str>,
    other_theme: &'static str,
    here: &'static str,
    /// Address of the live stream; empty for pages without.
    live: String,
    /// This page, for forms that come back to it.
    back: String,
    flash: Option<Flash>,
    assets: &'static str,
    version: &'static str,
}

impl Shell {
    fn new(viewer: Option<&Viewer>, theme: Option<Theme>) -> Self {
        let text = |pick: fn(&Viewer) -> &String| viewer.map(pick).cloned().unwrap_or_default();
        Self {
            lab: String::new(),
            user: text(|viewer| &viewer.user),
            csrf: text(|viewer| &viewer.csrf),
            theme: theme.map(Theme::name),
            other_theme: if theme == Some(Theme::Dark) { "light" } else { "dark" },
            here: "",
            live: String::new(),
            back: "/".to_owned(),
            flash: None,
            assets: &assets::VERSION,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    fn is_fault(&self) -> bool {
        self.flash.as_ref().is_some_and(|flash| flash.level == FlashLevel::Fault)
    }
}

/// What a page's handler knows of who asks; the wall has let them in.
pub(crate) struct Ask {
    pub(crate) app: App,
    pub(crate) viewer: Viewer,
    pub(crate) caller: Caller,
    theme: Option<Theme>,
    back: String,
}

impl FromRequestParts<App> for Ask {
    type Rejection = ApiError;
    fn from_request_parts(
        parts: &mut Parts,
        app: &App,
    ) -> impl Future<Output = Result<Self, ApiError>> + Send {
        let viewer = parts.extensions.get::<Viewer>().cloned();
        let caller = parts.extensions.get::<Caller>().cloned();
        let theme = Theme::of(&parts.headers);
        let back = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        let ask = viewer.zip(caller).map(|(viewer, caller)| Self {
            app: app.clone(),
            viewer,
            caller,
            theme,
            back,
        });
        std::future::ready(ask.ok_or(ApiError::Unauthorized))
    }
}

impl Ask {
    /// The shell of a page; takes the word left for it.
    pub(crate) fn shell(&self, lab: &str, here: &'static str) -> Shell {
        Shell {
            lab: lab.to_owned(),
            here,
            back: self.back.clone(),
            flash: self.app.auth.take_flash(&self.viewer.session),
            ..Shell::new(Some(&self.viewer), self.theme)
        }
    }

    /// The page, or the page that says why not.
    pub(crate) fn answer(&self, page: Result<Response, ApiError>) -> Response {
        page.unwrap_or_else(|error| fault_page(&self.viewer, self.theme, &error))
    }

    /// Leaves a word for the page that follows.
    pub(crate) fn leave(&self, level: FlashLevel, text: String, faults: Vec<String>) {
        self.app.auth.leave_flash(&self.viewer.session, Flash { level, text, faults });
    }
}

/// Parts of a page that are replaced while it is open, by element id, in the order they were made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Partials(Vec<(String, Html)>);

impl Partials {
    pub(crate) fn add(&mut self, id: impl Into<String>, part: &impl Template) {
        self.0.push((id.into(), Html::of(part)));
    }

    /// The part with this id; empty if there is none.
    pub(crate) fn part(&self, id: &str) -> &str {
        self.0.iter().find(|(key, _)| key == id).map_or("", |(_, html)| html.as_str())
    }

    /// A short digest over all parts: whether a page shows the present state.
    pub(crate) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for (id, html) in &self.0 {
            digest.update(id);
            digest.update([0]);
            digest.update(html.as_str());
            digest.update([0]);
        }
        model::hex::encode(digest.finalize().get(..8).unwrap_or_default())
    }

    /// The parts that are not the same in `before`.
    pub(crate) fn changed_since<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let changed = move |(id, html): &&(String, Html)| before.part(id) != html.as_str();
        self.0.iter().filter(changed).map(|(id, html)| (id.as_str(), html.as_str()))
    }
}

/// A page that has a live stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// `/`
    Overview,
    /// `/networks`
    Networks,
    /// `/nodes/NAME`
    Node(String),
}

impl Place {
    pub(crate) fn parse(path: &str) -> Option<Self> {
        match path.strip_prefix("/nodes/") {
            Some(name) if !name.is_empty() => Some(Self::Node(name.to_owned())),
            None if path == "/" => Some(Self::Overview),
            None if path == "/networks" => Some(Self::Networks),
            Some(_) | None => None,
        }
    }

    /// The parts of the page as they are now.
    pub(crate) async fn render(&self, app: &App, viewer: &Viewer) -> Result<Partials, ApiError> {
        match self {
            Self::Overview => Ok(overview::Overview::load(app).await?.partials()),
            Self::Networks => Ok(networks::NetworksPage::load(app).await?.partials()),
            Self::Node(name) => Ok(node::NodePage::load(app, name).await?.partials(viewer)),
        }
    }

    fn live(&self, partials: &Partials) -> String {
        let page = match self {
            Self::Overview => "/".to_owned(),
            Self::Networks => "/networks".to_owned(),
            Self::Node(name) => format!("/nodes/{name}"),
        };
        format!("/live?page={}&seen={}", url_part(&page), partials.digest())
    }
}

impl IntoResponse for Html {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], self.into_string()).into_response()
    }
}

#[derive(Template)]
#[template(path = "fault.html")]
struct FaultPage {
    shell: Shell,
    title: &'static str,
    error: String,
    faults: Vec<String>,
    code: u16,
}

/// The page for what did not work.
pub(crate) fn fault_page(viewer: &Viewer, theme: Option<Theme>, error: &ApiError) -> Response {
    let title = match error {
        ApiError::NotFound(_) => "Not found",
        ApiError::Conflict(_) => "The world has moved on",
        ApiError::Refused { .. } | ApiError::Forbidden(_) => "Refused",
        ApiError::Unauthorized => "Not logged in",
        ApiError::TooMany(_) => "Too many tries",
        ApiError::Unavailable(_) => "No answer",
    };
    let page = FaultPage {
        shell: Shell::new(Some(viewer), theme),
        title,
        error: error.to_string(),
        faults: error.faults(),
        code: error.status().as_u16(),
    };
    let mut response = (error.status(), Html::of(&page)).into_response();
    error.add_headers(&mut response);
    response
}

/// Paths that do not exist, as page or as problem.
pub(crate) async fn unknown_path(
    State(_): State<App>,
    request: Request,
) -> Result<Response, Infallible> {
    let path = request.uri().path();
    let error = ApiError::NotFound(format!("there is nothing at {path}"));
    let viewer = request.extensions().get::<Viewer>();
    Ok(match viewer {
        Some(viewer) if !is_api(path) => fault_page(viewer, Theme::of(request.headers()), &error),
        Some(_) | None => error.into_response(),
    })
}

/// A place of ours to go back to; anything else is the overview.
pub(crate) fn own_path(text: &str) -> &str {
    let own =
        text.starts_with('/') && !text.starts_with("//") && !text.contains(['\\', '\r', '\n']);
    let visible = text.chars().all(|c| c.is_ascii_graphic());
    if own && visible { text } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_never_leaves_the_house() {
        let cases = [
            ("/nodes/bld-003?x=1", "/nodes/bld-003?x=1"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
            ("", "/"),
        ];
        for (text, want) in cases {
            assert_eq!(own_path(text), want, "{text:?}");
        }
    }

    #[test]
    fn only_pages_with_moving_parts_have_a_stream() {
        assert_eq!(Place::parse("/"), Some(Place::Overview));
        assert_eq!(Place::parse("/networks"), Some(Place::Networks));
        assert_eq!(Place::parse("/nodes/a"), Some(Place::Node("a".to_owned())));
        for path in ["", "/switch", "/nodes/", "/nodes"] {
            assert_eq!(Place::parse(path), None, "{path}");
        }
    }
}
