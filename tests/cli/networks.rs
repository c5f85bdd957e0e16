//! `volund networks` and `volund leases`.

use api::{
    DhcpCountersView, FindingView, LeaseList, LeaseView, NetworkList, NetworkView, PoolView,
    PortsView, RivalView,
};
use serde_json::Value;

use crate::fake::{Fake, problem};

/// 2026-11-30 13:20:00 UTC.
const NOW: i64 = 1_796_044_800_000;

fn network(name: &str, mode: &str) -> NetworkView {
    NetworkView {
        name: name.to_owned(),
        mode: mode.to_owned(),
        subnet: "192.0.2.0/24".to_owned(),
        server: "192.0.2.10".to_owned(),
        interface: None,
        router: None,
        ports: PortsView { dhcp: None, proxy: None, tftp: 69, http: 8067 },
        nodes: 0,
        pool: None,
        dhcp: DhcpCountersView {
            heard: 0,
            offers: 0,
            acks: 0,
            naks: 0,
            late_acks: 0,
            dropped_discovers: 0,
            dropped_requests: 0,
        },
        rivals: vec![],
        findings: vec![],
    }
}

fn list(networks: Vec<NetworkView>) -> NetworkList {
    NetworkList { lab: "asgard".to_owned(), at_ms: NOW, networks }
}

fn troubled() -> NetworkView {
    let dhcp = DhcpCountersView {
        heard: 420,
        offers: 120,
        acks: 118,
        naks: 1,
        late_acks: 2,
        dropped_discovers: 0,
        dropped_requests: 7,
    };
    NetworkView {
        interface: Some("eth1".to_owned()),
        ports: PortsView { dhcp: Some(67), proxy: Some(4011), tftp: 69, http: 8067 },
        nodes: 17,
        pool: Some(PoolView {
            first: "192.0.2.200".to_owned(),
            last: "192.0.2.249".to_owned(),
            size: 50,
            bound: 3,
            taken: 1,
        }),
        dhcp,
        rivals: vec![RivalView {
            server: "192.0.2.1".to_owned(),
            mac: Some("02:5a:10:00:00:01".to_owned()),
            file: Some("pxelinux.0\u{1b}[2J".to_owned()),
            at_ms: NOW - 60_000,
        }],
        findings: vec![FindingView {
            what: "the neighbour table holds 1,024 entries".to_owned(),
            remedy: "raise gc_thresh3".to_owned(),
        }],
        ..network("boot", "full")
    }
}

fn leases() -> LeaseList {
    let lease = |last: u8, state: &str| LeaseView {
        network: "boot".to_owned(),
        address: format!("192.0.2.{last}"),
        mac: format!("02:5a:10:00:00:{last:02x}"),
        node: None,
        state: state.to_owned(),
        since_ms: NOW - 60_000,
        until_ms: NOW + 60_000,
        host_name: String::new(),
        location: None,
    };
    let blade = LeaseView {
        node: Some("bld-003".to_owned()),
        host_name: "bld-003\u{7}".to_owned(),
        ..lease(13, "bound")
    };
    let relayed =
        LeaseView { location: Some("192.0.2.254 eth1/7".to_owned()), ..lease(201, "expired") };
    let leases = vec![blade, relayed, lease(202, "taken")];
    LeaseList { lab: "asgard".to_owned(), at_ms: NOW, leases, more: true }
}

#[test]
fn networks_are_a_table_with_what_is_wrong_below() {
    let answer = list(vec![troubled(), network("lab", "off")]);
    let ran = Fake::default().answers("GET /api/v1/networks", 200, &answer).run(&["networks"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn leases_are_a_table() {
    let ran = Fake::default().answers("GET /api/v1/leases", 200, &leases()).run(&["leases"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn leases_are_asked_for_by_network_and_by_mac() {
    let fake = Fake::default().answers("GET /api/v1/leases", 200, &leases());
    let ran = fake.run(&["leases", "--network", "boot", "--mac", "02-5A-10-00-00-0D", "--json"]);
    assert_eq!(ran.asked, "GET /api/v1/leases?network=boot&mac=02%3A5a%3A10%3A00%3A00%3A0d");
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(printed, serde_json::to_value(leases()).unwrap());
    let wrong = Fake::default().run(&["leases", "--mac", "9c:8e"]);
    assert_eq!((wrong.code, wrong.asked.as_str()), (2, ""));
}

#[test]
fn an_empty_lab_and_an_unknown_network_are_told() {
    let none = Fake::default().answers("GET /api/v1/networks", 200, &list(vec![]));
    assert_eq!(none.run(&["networks"]).out, "lab asgard has no boot networks\n");
    let nobody = LeaseList { leases: vec![], more: false, ..leases() };
    let fake = Fake::default().answers("GET /api/v1/leases", 200, &nobody);
    assert_eq!(fake.run(&["leases"]).out, "no leases\n");
    let unknown = problem("there is no network \"lab\"; there are: boot", &[]);
    let fake = Fake::default().answers("GET /api/v1/leases", 404, &unknown);
    let ran = fake.run(&["leases", "--network", "lab"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("there is no network"), "{}", ran.err);
}
