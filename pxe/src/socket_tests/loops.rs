//! A modelled firmware that loads its loader over and over, and one that only looks like it.

use std::net::UdpSocket;

use model::{BootAnswer, ClientArch, Sighted, sighting::DhcpKind};
use pxe_proto::dhcp::{Answer, ClientMessage, RelayInfo};

use super::{BOUND, Lab, MAC, NODE, RELAY, at, http::get, kernel, tftp::Reader};

/// Firmware behind a relay.
struct Firmware<'l> {
    lab: &'l Lab,
    relay: UdpSocket,
}

impl<'l> Firmware<'l> {
    fn new(lab: &'l Lab) -> Self {
        let relay = UdpSocket::bind(at(RELAY)).unwrap();
        relay.set_read_timeout(Some(BOUND)).unwrap();
        Self { lab, relay }
    }

    /// A DISCOVER and the file its offer names.
    fn offered(&self, xid: u32) -> Option<String> {
        let rom = ClientMessage::pxe(DhcpKind::Discover, xid, MAC, ClientArch(0));
        let info = RelayInfo { circuit_id: None, source_port: true };
        let relayed = rom.message().through_relay(RELAY, &info).encode();
        self.relay.send_to(&relayed, self.lab.bound.dhcp.unwrap()).unwrap();
        let mut buffer = [0; 2048];
        let length = self.relay.recv(&mut buffer).unwrap();
        let offer = Answer::decode(&buffer[..length]).unwrap();
        assert_eq!((offer.kind, offer.yiaddr), (DhcpKind::Offer, NODE), "an address always");
        offer.boot_file.map(|file| file.name)
    }

    /// Loads what it is offered; fails when it is offered nothing.
    fn load(&self, xid: u32) {
        let name = self.offered(xid).unwrap();
        let reader = Reader::new(self.lab);
        reader.ask(name.as_bytes(), &[]);
        assert_eq!(reader.read(512, 0), b"loader");
    }
}

fn is_done(what: &Sighted) -> bool {
    matches!(what, Sighted::TftpDone { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn firmware_that_loads_over_and_over_is_sent_on_to_its_disk_and_nobody_is_asked() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    lab.serve("undionly.kpxe", b"loader");
    let firmware = Firmware::new(&lab);
    for turn in 1..=3 {
        firmware.load(turn);
        lab.until("the end of the transfer", is_done).await;
    }
    let seen = lab.until("the loop", |what| matches!(what, Sighted::Looped { .. })).await;
    let told = seen.last().unwrap();
    assert_eq!(told.what.to_string(), "boot loop: undionly.kpxe fetched 3 times");
    assert_eq!(firmware.offered(4), None, "firmware goes on to its next boot device");

    let script = get(&lab, NODE, "/boot.ipxe");
    let text = String::from_utf8(script.body).unwrap();
    assert!(script.status == 200 && !text.contains("vmlinuz"), "{text}");
    let is_script = |what: &Sighted| matches!(what, Sighted::Script { .. });
    let told = lab.until("the script", is_script).await.pop().unwrap();
    let want = "boot script: local boot (boot loop: undionly.kpxe fetched 3 times)";
    assert_eq!(told.what.to_string(), want);
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_undionly_chain_gets_its_script_however_often_it_boots() {
    let mut lab = Lab::start();
    lab.answer_with(BootAnswer::Local { why: "it is settled".to_owned() });
    lab.serve("undionly.kpxe", b"loader");
    let firmware = Firmware::new(&lab);
    for boot in 0..4 {
        for turn in 1..=2 {
            firmware.load(boot * 10 + turn);
            lab.until("the end of the transfer", is_done).await;
        }
        get(&lab, NODE, "/boot.ipxe");
        let is_script = |what: &Sighted| matches!(what, Sighted::Script { .. });
        let told = lab.until("the script", is_script).await.pop().unwrap();
        assert_eq!(told.what.to_string(), "boot script: local boot (it is settled)");
    }
}
