//! The static files, compiled in: style, script, icon.

use std::{
    future::{Ready, ready},
    sync::LazyLock,
};

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use sha2::{Digest as _, Sha256};

const CSS: &str = include_str!("../assets/volund.css");
const JS: &str = include_str!("../assets/volund.js");
const SVG: &str = include_str!("../assets/volund.svg");

/// Changes whenever a file does, so that browsers may keep the files for ever.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(CSS).chain_update(JS).chain_update(SVG).finalize();
    model::hex::encode(digest.get(..4).unwrap_or_default())
});

pub(crate) fn file(Path(name): Path<String>) -> Ready<Response> {
    let found = match name.as_str() {
        "volund.css" => Some(("text/css; charset=utf-8", CSS)),
        "volund.js" => Some(("text/javascript; charset=utf-8", JS)),
        "volund.svg" => Some(("image/svg+xml", SVG)),
        _ => None,
    };
    let Some((kind, body)) = found else {
        return ready((StatusCode::NOT_FOUND, "no such file").into_response());
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    ready((headers, body).into_response())
}
