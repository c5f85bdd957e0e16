//! Cookies, read from requests and written for answers (RFC 6265).

use axum::http::{HeaderMap, HeaderValue, header};

use crate::app::Transport;

/// The session.
pub(crate) const SESSION: &str = "volund-session";
/// Ties a log-in form to the browser that asked for it.
pub(crate) const LOG_IN: &str = "volund-login";
/// `light` or `dark`; the page's script writes it too.
pub(crate) const THEME: &str = "theme";

/// The value of the cookie `name`, if the browser sent it.
pub(crate) fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// A `Set-Cookie` that scripts cannot read. `value` consists of hexadecimal digits.
pub(crate) fn secret(name: &str, value: &str, max_age_s: u64, transport: Transport) -> HeaderValue {
    let secure = match transport {
        Transport::Plain => "",
        Transport::Tls => "; Secure",
    };
    let text =
        format!("{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(text).expect("names and hexadecimal digits are header text")
}

/// A `Set-Cookie` for the theme, kept a year.
pub(crate) fn theme(theme: Theme) -> HeaderValue {
    HeaderValue::from_static(match theme {
        Theme::Light => "theme=light; Path=/; Max-Age=31536000; SameSite=Strict",
        Theme::Dark => "theme=dark; Path=/; Max-Age=31536000; SameSite=Strict",
    })
}

/// The looks a person can ask for; without one the system decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "light" => Some(Self::Light),
            "dark" => Some(Self::Dark),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        find(headers, THEME).and_then(Self::parse)
    }
}
