//! Every answer that is no success. This is the only place that knows status codes.

use api::Problem;
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::lab::Fault;

/// Why a request was not carried out, as the client may hear it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 401: nobody we know.
    #[error("log in, or send an API token in the header Authorization: Bearer")]
    Unauthorized,
    /// 403: known, but not allowed in this way.
    #[error("{0}")]
    Forbidden(&'static str),
    /// 404: no such thing.
    #[error("{0}")]
    NotFound(String),
    /// 409: the world has moved on.
    #[error("{0}")]
    Conflict(String),
    /// 422: refused, with every fault.
    #[error("{error}")]
    Refused {
        /// What was refused.
        error: String,
        /// Every fault, with its remedy.
        faults: Vec<String>,
    },
    /// 429: too many failed log-ins.
    #[error("too many failed log-ins from your address; try again in {0} s")]
    TooMany(u64),
    /// 503: BMC, engine or server cannot answer now.
    #[error("{0}")]
    Unavailable(String),
}

impl ApiError {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Refused { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A refusal with one fault.
    pub(crate) fn refused(error: impl Into<String>, fault: impl Into<String>) -> Self {
        Self::Refused { error: error.into(), faults: vec![fault.into()] }
    }

    /// The faults, for [`Problem`] and pages.
    pub(crate) fn faults(&self) -> Vec<String> {
        match self {
            Self::Refused { faults, .. } => faults.clone(),
            Self::Unauthorized
            | Self::Forbidden(_)
            | Self::NotFound(_)
            | Self::Conflict(_)
            | Self::TooMany(_)
            | Self::Unavailable(_) => Vec::new(),
        }
    }

    /// Headers that belong to the status code.
    pub(crate) fn add_headers(&self, response: &mut Response) {
        let headers = response.headers_mut();
        match self {
            Self::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::TooMany(seconds) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
            }
            Self::Forbidden(_)
            | Self::NotFound(_)
            | Self::Conflict(_)
            | Self::Refused { .. }
            | Self::Unavailable(_) => (),
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unknown(text) => Self::NotFound(text),
            Fault::Conflict(text) => Self::Conflict(text),
            Fault::Refused { error, faults } => Self::Refused { error, faults },
            Fault::Unavailable(text) => Self::Unavailable(text),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = Problem { error: self.to_string(), faults: self.faults() };
        let mut response = (self.status(), Json(problem)).into_response();
        self.add_headers(&mut response);
        response
    }
}
