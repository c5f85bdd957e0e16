//! Boots and the doctor.

use api::{BootDetail, BootList, BootMethodForgotten, LabDoctor, LoopReleased, NodeDoctor};
use axum::{
    Extension, Json,
    extract::{Path, State, rejection::PathRejection},
    http::header,
    response::{IntoResponse, Response},
};

use super::{Answer, Name, named};
use crate::{App, error::ApiError, lab::Caller};

/// Media type of a pcap file.
const PCAP: &str = "application/vnd.tcpdump.pcap";

/// A name and a boot in the path, or why they are none.
type Boot = Result<Path<(String, i64)>, PathRejection>;

pub(crate) async fn list(State(app): State<App>, name: Name) -> Answer<BootList> {
    Ok(Json(app.ask(app.lab.boots(&named(name)?)).await?))
}

pub(crate) async fn one(State(app): State<App>, boot: Boot) -> Answer<BootDetail> {
    let (name, id) = of_path(boot)?;
    Ok(Json(app.ask(app.lab.boot(&name, id)).await?))
}

pub(crate) async fn packets(State(app): State<App>, boot: Boot) -> Result<Response, ApiError> {
    let (name, id) = of_path(boot)?;
    let file = app.ask(app.lab.boot_packets(&name, id)).await?;
    // The lab knows the name, so it is one that may stand in a header.
    let saved_as = format!("attachment; filename=\"{name}-{id}.pcap\"");
    Ok(([(header::CONTENT_TYPE, PCAP), (header::CONTENT_DISPOSITION, &saved_as)], file)
        .into_response())
}

pub(crate) async fn node_doctor(State(app): State<App>, name: Name) -> Answer<NodeDoctor> {
    Ok(Json(app.ask(app.lab.node_doctor(&named(name)?)).await?))
}

pub(crate) async fn doctor(State(app): State<App>) -> Answer<LabDoctor> {
    Ok(Json(app.ask(app.lab.doctor()).await?))
}

pub(crate) async fn release_loop(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Name,
) -> Answer<LoopReleased> {
    Ok(Json(app.ask(app.lab.release_loop(&caller, &named(name)?)).await?))
}

pub(crate) async fn forget_boot_method(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Name,
) -> Answer<BootMethodForgotten> {
    Ok(Json(app.ask(app.lab.forget_boot_method(&caller, &named(name)?)).await?))
}

fn of_path(boot: Boot) -> Result<(String, i64), ApiError> {
    let Path(boot) = boot.map_err(|rejection| {
        let error = "a boot is named by the number in the list of boots";
        ApiError::refused(error, rejection.body_text())
    })?;
    Ok(boot)
}
