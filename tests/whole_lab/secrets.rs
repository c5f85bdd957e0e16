//! No password, ticket or token in anything volund logs or shows.

use plan::Phase;

use crate::{
    rig::{BMC_PASSWORD, Rig, Setup, WRONG_PASSWORD},
    wire,
};

#[tokio::test]
async fn no_password_ticket_or_token_is_logged_or_shown() {
    let setup = Setup { bays: 3, wrong_password: &[3], log: "trace", ..Setup::default() };
    let mut rig = Rig::start(setup).await;
    rig.switch("bld-001", "inspect").await;
    rig.switch("bld-002", "ram").await;
    rig.in_phase("bld-001", Phase::Done).await;
    rig.in_phase("bld-002", Phase::Done).await;
    rig.node_is("bld-003", "refused", |node| node.bmc.trouble.is_some()).await;
    let (first, second) = (rig.blade(1).address, rig.blade(2).address);
    let tickets = [
        wire::ticket(&wire::script(&rig, first).await),
        wire::ticket(&wire::script(&rig, second).await),
    ];
    // Used rightly, wrongly, and not at all.
    let [agents, rams] = &tickets;
    assert_eq!(wire::get(&rig, second, &format!("/t/{rams}/motd")).await.status, 200);
    assert_eq!(wire::get(&rig, first, &format!("/t/{rams}/motd")).await.status, 403);
    assert_eq!(wire::claim(&rig, second, agents, "ff").await.0, 403);
    assert_eq!(wire::claim(&rig, first, agents, "ff").await.0, 409);

    let mut shown = rig.events_until("\"bld-003\"").await;
    for path in ["/api/v1/nodes", "/api/v1/profiles", "/api/v1/openapi.json"] {
        shown += &rig.text(path).await;
    }
    for node in ["bld-001", "bld-002", "bld-003"] {
        for part in ["", "/history", "/timeline"] {
            shown += &rig.text(&format!("/api/v1/nodes/{node}{part}")).await;
        }
    }
    rig.kill().await;
    let log = rig.log_text();
    assert!(log.contains("DEBUG") && shown.contains("bld-002"), "the search is in vain");
    let [agents, rams] = tickets;
    let secrets = [
        ("BMC password", BMC_PASSWORD.to_owned()),
        ("wrong BMC password", WRONG_PASSWORD.to_owned()),
        ("API token", rig.token.clone()),
        ("agent's ticket", agents),
        ("ticket of the RAM profile", rams),
    ];
    for (what, secret) in secrets {
        for (place, text) in [("log", &log), ("API", &shown)] {
            let line = text.lines().find(|line| line.contains(&secret));
            assert_eq!(line, None, "{what} in the {place}");
        }
    }
}
