//! Who has which address, as the running program tells it.

use api::{LeaseList, LeaseView, NetworkList};
use model::{BayNumber, MacAddr, Uuid};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use twin::{
    chance::Chance,
    dhcp::{Asker, DhcpClient, DhcpError},
    log::Log,
    relay::Relay,
};

use crate::rig::{BOUND, Rig, Setup, until};

/// The addresses of a blade and of a machine nobody declared are told with their owners, and counted.
#[tokio::test]
async fn leases_of_nodes_and_of_strangers_are_told_with_their_owners() {
    let network =
        "dhcp = \"full\"\npool = \"127.0.OCTET.100-127.0.OCTET.109\"\nconflict_check = false";
    let rig = Rig::ready(Setup { network, ..Setup::default() }).await;
    rig.switch("bld-001", "inspect").await;
    let blade = rig.blade(1);
    let first = lease_of(&rig, blade.macs[0]).await;
    assert_eq!((first.node.as_deref(), first.state.as_str()), (Some("bld-001"), "bound"));
    assert_eq!(first.address, blade.address.to_string());
    assert!(first.location.is_some_and(|place| !place.is_empty()), "it came through a relay");

    let stranger: MacAddr = "9c:8e:99:ff:ff:01".parse().unwrap();
    meet(&rig, stranger).await;
    let other = lease_of(&rig, stranger).await;
    assert_eq!((other.node, other.state.as_str()), (None, "bound"));
    let from_pool = format!("127.0.{}.10", rig.octet);
    assert!(other.address.starts_with(&from_pool), "{}", other.address);
    assert_eq!(other.until_ms - other.since_ms, 120_000, "a short lease");

    let only: LeaseList = rig.read(&format!("/api/v1/leases?mac={stranger}")).await;
    assert_eq!(only.leases.len(), 1);
    // How full a pool is gets counted now and then.
    let network = until("network with one lease of its pool", BOUND, async || {
        let mut list: NetworkList = rig.read("/api/v1/networks").await;
        let network = list.networks.remove(0);
        let bound = network.pool.as_ref().is_some_and(|pool| (pool.size, pool.bound) == (10, 1));
        bound.then_some(network)
    })
    .await;
    assert_eq!(network.mode, "full");
    assert!(network.dhcp.offers >= 2 && network.dhcp.acks >= 2, "{:?}", network.dhcp);
    assert_eq!(network.dhcp.dropped_requests, 0);
    let unknown = rig.text("/api/v1/leases?network=lab").await;
    assert!(unknown.contains("there is no network \\\"lab\\\"; there are: boot"), "{unknown}");
}

/// A machine asks for an address and gets it.
async fn meet(rig: &Rig, mac: MacAddr) {
    let (_server, receiver) = watch::channel(Some(rig.dhcp_port()));
    let mut relay = Relay::bind(rig.stray_address(), receiver).await.unwrap();
    let mut port = relay.port(BayNumber::new(9).unwrap());
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let log = Log::default();
    let (uuid, asker, scale) = (Uuid([7; 16]), Asker::Ipxe, 0.05);
    let mut client = DhcpClient { port: &mut port, mac, uuid, asker, scale, log: &log };
    // An address, and nothing to boot: nobody declared it. A ROM would not even take that.
    assert_eq!(client.run(&mut Chance::new(1, 1)).await, Err(DhcpError::NoFile));
    stop.cancel();
    running.await.unwrap();
}

/// The lease of a machine, once it is told of.
async fn lease_of(rig: &Rig, mac: MacAddr) -> LeaseView {
    until("lease", BOUND, async || {
        let list: LeaseList = rig.read("/api/v1/leases").await;
        list.leases.into_iter().find(|lease| lease.mac == mac.to_string())
    })
    .await
}
