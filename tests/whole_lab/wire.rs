//! Requests on the boot port as a blade would make them, from its own address or from a wrong one.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use model::agent::Claim;
use twin::http::{Answer, HttpClient, Keep, Request, Url};

use crate::rig::Rig;

/// Asks from `from`.
pub(crate) async fn get(rig: &Rig, from: Ipv4Addr, target: &str) -> Answer {
    send(rig, from, target, Request::default()).await
}

/// The boot script of the node that has this address.
pub(crate) async fn script(rig: &Rig, from: Ipv4Addr) -> String {
    let answer = get(rig, from, "/boot.ipxe").await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).unwrap()
}

/// The ticket in a script.
pub(crate) fn ticket(script: &str) -> String {
    let after = script.split_once("volund.ticket=").or_else(|| script.split_once("/t/"));
    let (_, after) = after.unwrap_or_else(|| panic!("no ticket in {script}"));
    let ticket: String = after.chars().take_while(char::is_ascii_hexdigit).collect();
    assert_eq!(ticket.len(), 32, "{script}");
    ticket
}

/// An agent's claim; status and body.
pub(crate) async fn claim(rig: &Rig, from: Ipv4Addr, ticket: &str, nonce: &str) -> (u16, String) {
    let claim = Claim { nonce: nonce.to_owned() };
    let request = Request {
        method: "POST",
        authorization: Some(format!("Ticket {ticket}")),
        json: Some(serde_json::to_vec(&claim).unwrap()),
    };
    let answer = send(rig, from, "/agent/v1/claim", request).await;
    (answer.status, String::from_utf8(answer.body).unwrap())
}

async fn send(rig: &Rig, from: Ipv4Addr, target: &str, request: Request<'_>) -> Answer {
    let host: SocketAddrV4 = match rig.boot_port() {
        SocketAddr::V4(host) => host,
        SocketAddr::V6(host) => panic!("{host}"),
    };
    let url = Url { host, target: target.to_owned() };
    let mut client = HttpClient::new(from, "test");
    let keep = if target.starts_with("/i/") { Keep::Length } else { Keep::Body };
    client.send(&url, &request, keep).await.unwrap()
}
