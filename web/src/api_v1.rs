//! The JSON API: extract, one call of the lab, convert.

pub(crate) mod boots;
pub(crate) mod networks;

use std::future::{Ready, ready};

use api::{
    Health, NodeDetail, NodeList, PhaseEvent, PowerOutcome, PowerRequest, ProfileList,
    SightingView, SwitchAccepted, SwitchPreview, SwitchRequest,
};
use axum::{
    Extension, Json,
    extract::{
        Path, Query, State,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::header,
    response::IntoResponse,
};
use serde::Deserialize;

use crate::{App, error::ApiError, lab::Caller};

type Answer<T> = Result<Json<T>, ApiError>;

/// A name in the path, or why it is none.
type Name = Result<Path<String>, PathRejection>;

/// A JSON body, or why it is none.
type Body<T> = Result<Json<T>, JsonRejection>;

#[derive(Deserialize)]
pub(crate) struct Filter {
    nodes: Option<String>,
}

pub(crate) fn health() -> Ready<Json<Health>> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    ready(Json(Health { status: "ok".to_owned(), version }))
}

pub(crate) fn openapi() -> Ready<impl IntoResponse> {
    ready(([(header::CONTENT_TYPE, "application/json")], api::OPENAPI))
}

pub(crate) async fn nodes(
    State(app): State<App>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Answer<NodeList> {
    let Query(filter) = filter.map_err(|rejection| {
        ApiError::refused("the query is not what this path takes", rejection.body_text())
    })?;
    Ok(Json(app.ask(app.lab.nodes(filter.nodes.as_deref())).await?))
}

pub(crate) async fn node(State(app): State<App>, name: Name) -> Answer<NodeDetail> {
    Ok(Json(app.ask(app.lab.node(&named(name)?)).await?))
}

pub(crate) async fn history(State(app): State<App>, name: Name) -> Answer<Vec<PhaseEvent>> {
    Ok(Json(app.ask(app.lab.node(&named(name)?)).await?.history))
}

pub(crate) async fn timeline(State(app): State<App>, name: Name) -> Answer<Vec<SightingView>> {
    Ok(Json(app.ask(app.lab.node(&named(name)?)).await?.timeline))
}

pub(crate) async fn profiles(State(app): State<App>) -> Answer<ProfileList> {
    Ok(Json(app.ask(app.lab.profiles()).await?))
}

pub(crate) async fn preview_switch(
    State(app): State<App>,
    body: Body<SwitchRequest>,
) -> Answer<SwitchPreview> {
    let request = read(body)?;
    Ok(Json(app.ask(app.lab.preview_switch(&request)).await?))
}

pub(crate) async fn start_switch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    body: Body<SwitchRequest>,
) -> Answer<SwitchAccepted> {
    let request = read(body)?;
    Ok(Json(app.ask(app.lab.start_switch(&caller, &request)).await?))
}

pub(crate) async fn power(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    body: Body<PowerRequest>,
) -> Answer<PowerOutcome> {
    let request = read(body)?;
    Ok(Json(app.ask(app.lab.power(&caller, &request)).await?))
}

fn named(name: Name) -> Result<String, ApiError> {
    let Path(name) = name.map_err(|rejection| {
        ApiError::refused("the name in the path cannot be read", rejection.body_text())
    })?;
    Ok(name)
}

fn read<T>(body: Body<T>) -> Result<T, ApiError> {
    let Json(value) = body.map_err(|rejection| {
        ApiError::refused("the body is not the JSON this path takes", rejection.body_text())
    })?;
    Ok(value)
}
