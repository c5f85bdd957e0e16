//! The table of all routes. The router is built from it alone, each route behind the wall of its access, so a
//! new route cannot be open by oversight; a test walks the table.

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::Method,
    middleware::from_fn_with_state,
    routing::{MethodRouter, any, get, post},
};

use crate::{App, api_v1, api_v1::boots, api_v1::networks, assets, guard, pages, stream};

/// No request of ours has a larger body.
const MAX_BODY: usize = 64 * 1024;

/// Who may ask a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Open,
    /// A session; others are sent to the log-in page. Posts carry a CSRF token.
    Page,
    /// A session; others get 401, since no person would see a redirect.
    Live,
    /// A token, or a session that only reads; others get 401 with a JSON problem.
    Api,
}

/// A route, without its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    /// Method.
    pub method: Method,
    /// Path, with `{name}` for parts that vary.
    pub path: &'static str,
    /// Who may ask.
    pub access: Access,
}

struct Route {
    info: RouteInfo,
    handler: MethodRouter<App>,
}

fn reads(path: &'static str, access: Access, handler: MethodRouter<App>) -> Route {
    Route { info: RouteInfo { method: Method::GET, path, access }, handler }
}

fn acts(path: &'static str, access: Access, handler: MethodRouter<App>) -> Route {
    Route { info: RouteInfo { method: Method::POST, path, access }, handler }
}

fn table() -> Vec<Route> {
    use Access::{Api, Live, Open, Page};
    vec![
        reads("/healthz", Open, get(api_v1::health)),
        reads("/assets/{file}", Open, get(assets::file)),
        reads("/login", Open, get(pages::login::show)),
        acts("/login", Open, post(pages::login::log_in)),
        acts("/logout", Page, post(pages::login::log_out)),
        acts("/theme", Page, post(pages::login::set_theme)),
        reads("/", Page, get(pages::overview::show)),
        reads("/nodes/{name}", Page, get(pages::node::show)),
        reads("/nodes/{name}/power", Page, get(pages::power::confirm)),
        acts("/nodes/{name}/power", Page, post(pages::power::act)),
        reads("/nodes/{name}/boots", Page, get(pages::boots::show)),
        reads("/nodes/{name}/boots/{id}", Page, get(pages::boots::show_one)),
        reads("/networks", Page, get(pages::networks::show)),
        reads("/switch", Page, get(pages::switch::show)),
        acts("/switch", Page, post(pages::switch::start)),
        reads("/live", Live, get(stream::page)),
        reads("/api/v1/nodes", Api, get(api_v1::nodes)),
        reads("/api/v1/nodes/{name}", Api, get(api_v1::node)),
        reads("/api/v1/nodes/{name}/history", Api, get(api_v1::history)),
        reads("/api/v1/nodes/{name}/timeline", Api, get(api_v1::timeline)),
        reads("/api/v1/nodes/{name}/boots", Api, get(boots::list)),
        reads("/api/v1/nodes/{name}/boots/{id}", Api, get(boots::one)),
        reads("/api/v1/nodes/{name}/boots/{id}/pcap", Api, get(boots::packets)),
        reads("/api/v1/nodes/{name}/doctor", Api, get(boots::node_doctor)),
        acts("/api/v1/nodes/{name}/release-loop", Api, post(boots::release_loop)),
        acts("/api/v1/nodes/{name}/forget-boot-method", Api, post(boots::forget_boot_method)),
        reads("/api/v1/doctor", Api, get(boots::doctor)),
        reads("/api/v1/networks", Api, get(networks::networks)),
        reads("/api/v1/leases", Api, get(networks::leases)),
        reads("/api/v1/profiles", Api, get(api_v1::profiles)),
        acts("/api/v1/switch/preview", Api, post(api_v1::preview_switch)),
        acts("/api/v1/switch", Api, post(api_v1::start_switch)),
        acts("/api/v1/power", Api, post(api_v1::power)),
        reads("/api/v1/events", Api, get(stream::nodes)),
        reads("/api/v1/openapi.json", Api, get(api_v1::openapi)),
    ]
}

/// All routes, for tests and documentation.
#[must_use]
pub fn routes() -> Vec<RouteInfo> {
    table().into_iter().map(|route| route.info).collect()
}

/// The whole web server as a service.
pub fn router(state: App) -> Router {
    let mut router = Router::new();
    for Route { info, handler } in table() {
        let wall = from_fn_with_state((state.clone(), info.access), guard::wall);
        router = router.route(info.path, handler.layer(wall));
    }
    let wall = from_fn_with_state(state.clone(), guard::wall_unknown);
    let unknown = any(pages::unknown_path).layer(wall).with_state(state.clone());
    router
        .fallback_service(unknown)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(state.clone(), guard::front))
        .with_state(state)
}
