//! The JSON API: what goes in and out, and which status says what.

use axum::{
    body::Body,
    http::{Method, StatusCode, header},
};
use serde_json::Value;
use web::{Access, lab::Fault, routes};

use crate::support::Server;

const SWITCH: &str = r#"{"nodes":"bld-[002,014]","profile":"local"}"#;

#[tokio::test]
async fn nodes_come_whole_or_by_hostlist() {
    let server = Server::start();
    let all = server.api(Method::GET, "/api/v1/nodes", "").await;
    let all: api::NodeList = serde_json::from_str(&all.text).unwrap();
    assert_eq!((all.lab.as_str(), all.nodes.len()), ("asgard", 18));
    let some = server.api(Method::GET, "/api/v1/nodes?nodes=bld-%5B003,006-007%5D", "").await;
    let some: api::NodeList = serde_json::from_str(&some.text).unwrap();
    let names: Vec<&str> = some.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["bld-003", "bld-006", "bld-007"]);
    let raw = server.api(Method::GET, "/api/v1/nodes?nodes=bld-003", "").await;
    let raw: Value = serde_json::from_str(&raw.text).unwrap();
    assert_eq!(raw["nodes"][0]["bmc"]["port"], 623);
}

#[tokio::test]
async fn a_node_its_history_its_timeline_and_the_profiles_can_be_read() {
    let server = Server::start();
    let detail = server.api(Method::GET, "/api/v1/nodes/bld-011", "").await;
    let detail: api::NodeDetail = serde_json::from_str(&detail.text).unwrap();
    let history = server.api(Method::GET, "/api/v1/nodes/bld-011/history", "").await;
    assert_eq!(
        serde_json::from_str::<Vec<api::PhaseEvent>>(&history.text).unwrap(),
        detail.history
    );
    let timeline = server.api(Method::GET, "/api/v1/nodes/bld-011/timeline", "").await;
    let timeline: Vec<api::SightingView> = serde_json::from_str(&timeline.text).unwrap();
    assert_eq!(timeline, detail.timeline);
    let profiles = server.api(Method::GET, "/api/v1/profiles", "").await;
    let profiles: api::ProfileList = serde_json::from_str(&profiles.text).unwrap();
    assert_eq!(profiles.profiles.len(), 4);
}

#[tokio::test]
async fn a_switch_goes_by_preview_and_hash() {
    let server = Server::start();
    let preview = server.api(Method::POST, "/api/v1/switch/preview", SWITCH).await;
    let preview: api::SwitchPreview = serde_json::from_str(&preview.text).unwrap();
    assert_eq!(preview.nodes.len(), 2);
    let unconfirmed = server.api(Method::POST, "/api/v1/switch", SWITCH).await;
    assert_eq!(unconfirmed.status, StatusCode::CONFLICT);
    let body = SWITCH.replace('}', &format!(",\"confirm\":\"{}\"}}", preview.hash));
    let done = server.api(Method::POST, "/api/v1/switch", &body).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let orders = &server.lab.world.lock().unwrap().orders;
    assert_eq!(orders.as_slice(), ["token ci switches bld-[002,014] to local"]);
}

#[tokio::test]
async fn a_plan_the_world_has_overtaken_is_a_conflict() {
    let server = Server::start();
    let preview = server.api(Method::POST, "/api/v1/switch/preview", SWITCH).await;
    let preview: api::SwitchPreview = serde_json::from_str(&preview.text).unwrap();
    server.lab.change("bld-014", |node| node.power = api::PowerState::On);
    let body = SWITCH.replace('}', &format!(",\"confirm\":\"{}\"}}", preview.hash));
    let answer = server.api(Method::POST, "/api/v1/switch", &body).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(server.lab.world.lock().unwrap().orders.is_empty());
}

#[tokio::test]
async fn power_says_what_was_read_back() {
    let server = Server::start();
    let body = r#"{"nodes":"bld-014","verb":"on"}"#;
    let answer = server.api(Method::POST, "/api/v1/power", body).await;
    let outcome: api::PowerOutcome = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(outcome.nodes[0].power, api::PowerState::On);
    let unconfirmed = r#"{"nodes":"bld-014","verb":"off"}"#;
    let answer = server.api(Method::POST, "/api/v1/power", unconfirmed).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn each_fault_has_its_status_and_lists_its_reasons() {
    let server = Server::start();
    let text = || "it says why".to_owned();
    let cases = [
        (Fault::Unknown(text()), StatusCode::NOT_FOUND),
        (Fault::Conflict(text()), StatusCode::CONFLICT),
        (Fault::Refused { error: text(), faults: vec![text()] }, StatusCode::UNPROCESSABLE_ENTITY),
        (Fault::Unavailable(text()), StatusCode::SERVICE_UNAVAILABLE),
    ];
    for (fault, want) in cases {
        let faults = if matches!(fault, Fault::Refused { .. }) { 1 } else { 0 };
        server.lab.world.lock().unwrap().fault = Some(fault);
        for route in routes().iter().filter(|route| route.access == Access::Api) {
            if route.path.ends_with("openapi.json") {
                continue;
            }
            let body = r#"{"nodes":"a","profile":"b","verb":"on"}"#;
            let path = route.path.replace("{name}", "bld-011").replace("{id}", "1");
            let answer = server.api(route.method.clone(), &path, body).await;
            assert_eq!(answer.status, want, "{path}");
            let problem: api::Problem = serde_json::from_str(&answer.text).unwrap();
            assert_eq!(problem.error, "it says why");
            assert_eq!(problem.faults.len(), faults);
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_the_path_takes_is_refused_with_the_reason() {
    let server = Server::start();
    let cases = ["", "{", "[]", r#"{"nodes":"a"}"#, r#"{"nodes":"a","verb":"explode"}"#];
    for body in cases {
        let answer = server.api(Method::POST, "/api/v1/power", body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let problem: api::Problem = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(problem.faults.len(), 1, "{body}");
    }
    let large = format!("{{\"nodes\":\"{}\",\"verb\":\"on\"}}", "a".repeat(70_000));
    let answer = server.api(Method::POST, "/api/v1/power", &large).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_path_or_query_that_cannot_be_read_is_a_problem_too() {
    let server = Server::start();
    for path in ["/api/v1/nodes/%ff", "/api/v1/nodes?nodes=a&nodes=b", "/api/v1/nodes?nodes=b%5B"] {
        let answer = server.api(Method::GET, path, "").await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        let problem: api::Problem = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(problem.faults.len(), 1, "{path}");
    }
}

#[tokio::test]
async fn a_browser_session_reads_the_api_but_does_not_act_on_it() {
    let server = Server::start();
    let browser = server.browser().await;
    assert_eq!(browser.get("/api/v1/nodes/bld-011").await.status, StatusCode::OK);
    let request = browser
        .request(Method::POST, "/api/v1/power")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(r#"{"nodes":"bld-014","verb":"on"}"#));
    let answer = server.ask(request.unwrap()).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(server.lab.world.lock().unwrap().orders.is_empty());
}

#[tokio::test]
async fn the_openapi_document_lists_every_api_route_and_no_other() {
    let server = Server::start();
    let answer = server.api(Method::GET, "/api/v1/openapi.json", "").await;
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/json");
    let document: Value = serde_json::from_str(&answer.text).unwrap();
    let mut written: Vec<String> = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            written.push(format!("{} {path}", method.to_uppercase()));
        }
    }
    let mut built: Vec<String> = routes()
        .iter()
        .filter(|route| route.access == Access::Api)
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    written.sort();
    built.sort();
    assert_eq!(written, built);
}

#[tokio::test]
async fn the_openapi_schemas_have_the_fields_the_types_have() {
    let server = Server::start();
    let document: Value = serde_json::from_str(api::OPENAPI).unwrap();
    let detail = server.api(Method::GET, "/api/v1/nodes/bld-011", "").await;
    let detail: Value = serde_json::from_str(&detail.text).unwrap();
    let list = server.api(Method::GET, "/api/v1/nodes", "").await;
    let list: Value = serde_json::from_str(&list.text).unwrap();
    let preview = server.api(Method::POST, "/api/v1/switch/preview", SWITCH).await;
    let preview: Value = serde_json::from_str(&preview.text).unwrap();
    let boots = server.api(Method::GET, "/api/v1/nodes/bld-011/boots", "").await;
    let boots: Value = serde_json::from_str(&boots.text).unwrap();
    let path = format!("/api/v1/nodes/bld-011/boots/{}", boots["boots"][0]["id"]);
    let boot: Value = serde_json::from_str(&server.api(Method::GET, &path, "").await.text).unwrap();
    let doctor = server.api(Method::GET, "/api/v1/doctor", "").await;
    let doctor: Value = serde_json::from_str(&doctor.text).unwrap();
    let released = server.api(Method::POST, "/api/v1/nodes/bld-011/release-loop", "").await;
    let released: Value = serde_json::from_str(&released.text).unwrap();
    let path = "/api/v1/nodes/bld-011/forget-boot-method";
    let forgotten = server.api(Method::POST, path, "").await;
    let forgotten: Value = serde_json::from_str(&forgotten.text).unwrap();
    let samples = [
        ("BootWayView", &detail["boot_method"][0]),
        ("BootMethodForgotten", &forgotten),
        ("NodeList", &list),
        ("EnclosureView", &list["enclosures"][0]),
        ("NodeView", &detail["node"]),
        ("BmcView", &detail["node"]["bmc"]),
        ("PhaseView", &detail["node"]["phase"]),
        ("Quantity", &detail["power"][0]),
        ("NodeDetail", &detail),
        ("SightingView", &detail["timeline"][0]),
        ("PhaseEvent", &detail["history"][0]),
        ("FactsView", &detail["facts"]),
        ("ProcessorView", &detail["facts"]["processors"][0]),
        ("DimmView", &detail["facts"]["dimms"][0]),
        ("DiskView", &detail["facts"]["disks"][0]),
        ("NicView", &detail["facts"]["nics"][0]),
        ("BootList", &boots),
        ("BootView", &boots["boots"][0]),
        ("BootStage", &boots["boots"][0]["stages"][0]),
        ("DiagnosisView", &boots["boots"][0]["diagnoses"][0]),
        ("BootDetail", &boot),
        ("LabDoctor", &doctor),
        ("NodeDoctor", &doctor["nodes"][0]),
        ("LoopReleased", &released),
        ("SwitchPreview", &preview),
        ("NodePreview", &preview["nodes"][0]),
    ];
    for (name, sample) in samples {
        let mut written: Vec<&String> = document["components"]["schemas"][name]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        let mut real: Vec<&String> = sample.as_object().unwrap().keys().collect();
        written.sort();
        real.sort();
        assert_eq!(written, real, "{name}");
    }
}

#[tokio::test]
async fn the_packets_of_a_boot_are_a_file_to_save() {
    let server = Server::start();
    let answer = server.api(Method::GET, "/api/v1/nodes/bld-011/boots/7/pcap", "").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/vnd.tcpdump.pcap");
    let saved_as = answer.headers[header::CONTENT_DISPOSITION].to_str().unwrap();
    assert_eq!(saved_as, "attachment; filename=\"bld-011-7.pcap\"");
    let answer = server.api(Method::GET, "/api/v1/nodes/bld-011/boots/last/pcap", "").await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn health_says_no_name_and_no_secret() {
    let server = Server::start();
    let request = crate::support::request(Method::GET, "/healthz").body(Body::empty()).unwrap();
    let answer = server.ask(request).await;
    let health: api::Health = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(health.status, "ok");
    assert!(!answer.text.contains("asgard"));
}
