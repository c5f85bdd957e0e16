//! Boot networks and leases: API, page, and the line of the overview.

use axum::http::{Method, StatusCode};
use serde_json::Value;

use crate::{
    fake::{FakeLab, finding, network, rival},
    support::{Server, between},
};

async fn read(server: &Server, path: &str) -> Value {
    let answer = server.api(Method::GET, path, "").await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
    serde_json::from_str(&answer.text).unwrap()
}

/// A lab whose network has everything a network can have.
fn troubled(mode: &str) -> Server {
    let lab = FakeLab::asgard(0);
    lab.with(|world| {
        let network = &mut world.networks[0];
        network.mode = mode.to_owned();
        network.rivals = vec![rival(Some("pxelinux.0<b>"))];
        network.findings = vec![finding()];
        network.dhcp.late_acks = 2;
        network.pool.as_mut().unwrap().bound = 50;
    });
    Server::start_with(lab)
}

#[tokio::test]
async fn networks_and_leases_can_be_read() {
    let server = Server::start();
    let networks = read(&server, "/api/v1/networks").await;
    assert_eq!(networks["networks"][0]["pool"]["size"], 50);
    assert_eq!(networks["networks"][0]["ports"]["proxy"], 4011);
    let count = |leases: &Value| leases["leases"].as_array().unwrap().len();
    assert_eq!(count(&read(&server, "/api/v1/leases").await), 2);
    assert_eq!(count(&read(&server, "/api/v1/leases?network=boot").await), 2);
    assert_eq!(count(&read(&server, "/api/v1/leases?network=lab").await), 0);
    let one = read(&server, "/api/v1/leases?mac=02:5a:10:00:00:6f").await;
    assert_eq!(one["leases"][0]["node"], "bld-011");
    assert_eq!(count(&one), 1);
    let answer = server.api(Method::GET, "/api/v1/leases?mac=a&mac=b", "").await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn the_openapi_schemas_of_networks_have_the_fields_the_types_have() {
    let server = troubled("full");
    let document: Value = serde_json::from_str(api::OPENAPI).unwrap();
    let networks = read(&server, "/api/v1/networks").await;
    let leases = read(&server, "/api/v1/leases").await;
    let network = &networks["networks"][0];
    let samples = [
        ("NetworkList", &networks),
        ("NetworkView", network),
        ("PortsView", &network["ports"]),
        ("PoolView", &network["pool"]),
        ("DhcpCountersView", &network["dhcp"]),
        ("RivalView", &network["rivals"][0]),
        ("FindingView", &network["findings"][0]),
        ("LeaseList", &leases),
        ("LeaseView", &leases["leases"][0]),
    ];
    for (name, sample) in samples {
        let fields = |value: &Value| {
            let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        let schema = &document["components"]["schemas"][name];
        assert_eq!(fields(sample), fields(&schema["properties"]), "{name}");
    }
}

#[tokio::test]
async fn the_page_shows_how_each_network_is_served_and_who_has_which_address() {
    let server = Server::start();
    let browser = server.browser().await;
    let page = browser.get("/networks").await.text;
    let networks = between(&page, "id=\"networks\"", "</section>");
    for want in [
        "192.0.2.0/24",
        "192.0.2.10 on eth1",
        "DHCP 67, proxy 4011, TFTP 69, HTTP 8067",
        "3 of 50 given",
        "420 heard",
    ] {
        assert!(networks.contains(want), "{want}: {networks}");
    }
    assert!(!networks.contains("clash"), "nothing is wrong: {networks}");
    let leases = between(&page, "id=\"leases\"", "</section>");
    for want in [
        "192.0.2.100",
        "02:5a:10:00:00:6f",
        "<a href=\"/nodes/bld-011\">",
        "192.0.2.254 eth1/7",
        ">pi<",
    ] {
        assert!(leases.contains(want), "{want}: {leases}");
    }
    assert!(page.contains("<a href=\"/networks\" aria-current=\"page\">"), "linked in the head");
}

#[tokio::test]
async fn what_is_wrong_with_a_network_is_said_there_and_on_the_overview() {
    let cases = [
        ("full", "Switch it off there, or write dhcp = &#34;proxy&#34;"),
        ("proxy", "Take options 66 and 67 out of it"),
    ];
    for (mode, remedy) in cases {
        let server = troubled(mode);
        let browser = server.browser().await;
        let page = browser.get("/networks").await.text;
        for want in [
            remedy,
            "Another DHCP server, 192.0.2.1 (02:5a:10:00:00:01), answers here and names the boot file pxelinux.0&#60;b&#62;",
            "The neighbour table of this machine holds 1,024 entries.",
            "ACKs before their record was on the disk: 2",
            "<span class=\"bad-t\">50 of 50 given",
        ] {
            assert!(page.contains(want), "{want}: {page}");
        }
        let overview = browser.get("/").await.text;
        let line = between(&overview, "id=\"net-line\"", "</div>");
        assert!(line.contains("boot: The neighbour table"), "{line}");
        assert!(line.contains("And 1 more. <a href=\"/networks\">"), "{line}");
    }
}

#[tokio::test]
async fn beside_a_proxy_another_server_without_a_boot_file_is_as_it_should_be() {
    let lab = FakeLab::asgard(0);
    lab.with(|world| {
        world.networks = vec![network()];
        world.networks[0].mode = "proxy".to_owned();
        world.networks[0].pool = None;
        world.networks[0].rivals = vec![rival(None)];
        world.leases.clear();
    });
    let server = Server::start_with(lab);
    let browser = server.browser().await;
    let page = browser.get("/networks").await.text;
    assert!(!page.contains("clash"), "{page}");
    assert!(page.contains("No address was given yet"), "{page}");
    assert!(!browser.get("/").await.text.contains("clash"));
}
