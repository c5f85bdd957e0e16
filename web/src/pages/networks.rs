//! `/networks`: how each boot network is served, what is wrong with it, and who has which address.

use api::{LeaseList, NetworkList};
use askama::Template;
use axum::response::{IntoResponse as _, Response};

use super::{Ask, Partials, Place, Shell};
use crate::{
    App,
    error::ApiError,
    view::{
        Clock, Html,
        networks::{Leases, Networks},
    },
};

/// The page at one moment.
pub(crate) struct NetworksPage {
    networks: NetworkList,
    leases: LeaseList,
    clock: Clock,
}

#[derive(Template)]
#[template(path = "networks.html")]
struct Page<'a> {
    shell: Shell,
    partials: &'a Partials,
}

pub(crate) async fn show(ask: Ask) -> Response {
    ask.answer(page(&ask).await)
}

async fn page(ask: &Ask) -> Result<Response, ApiError> {
    let loaded = NetworksPage::load(&ask.app).await?;
    let partials = loaded.partials();
    let mut shell = ask.shell(&loaded.networks.lab, "networks");
    shell.live = Place::Networks.live(&partials);
    Ok(Html::of(&Page { shell, partials: &partials }).into_response())
}

impl NetworksPage {
    pub(crate) async fn load(app: &App) -> Result<Self, ApiError> {
        let networks = app.ask(app.lab.networks()).await?;
        let leases = app.ask(app.lab.leases(None, None)).await?;
        Ok(Self { networks, leases, clock: Clock::of(app) })
    }

    pub(crate) fn partials(&self) -> Partials {
        let mut partials = Partials::default();
        partials.add("networks", &Networks::of(&self.networks, &self.clock));
        partials.add("leases", &Leases::of(&self.leases, &self.clock));
        partials
    }
}
