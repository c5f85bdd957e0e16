//! Boot networks and leases.

use api::{LeaseList, NetworkList};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;

use super::Answer;
use crate::{App, error::ApiError};

/// Which leases.
#[derive(Deserialize)]
pub(crate) struct Which {
    network: Option<String>,
    mac: Option<String>,
}

pub(crate) async fn networks(State(app): State<App>) -> Answer<NetworkList> {
    Ok(Json(app.ask(app.lab.networks()).await?))
}

pub(crate) async fn leases(
    State(app): State<App>,
    which: Result<Query<Which>, QueryRejection>,
) -> Answer<LeaseList> {
    let Query(which) = which.map_err(|rejection| {
        ApiError::refused("the query is not what this path takes", rejection.body_text())
    })?;
    let (network, mac) = (which.network.as_deref(), which.mac.as_deref());
    Ok(Json(app.ask(app.lab.leases(network, mac)).await?))
}
