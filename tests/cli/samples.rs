//! Answers of a lab in many states.

use api::{
    BmcView, BootWayView, DimmView, DiskView, FactsView, NicView, NodeDetail, NodeList,
    NodePreview, NodeView, PhaseEvent, PhaseView, PowerState, ProcessorView, Quantity,
    SightingView, SwitchAccepted, SwitchPreview, SwitchRef,
};
use serde_json::json;

/// 2026-11-30 13:20:00 UTC.
const NOW: i64 = 1_796_044_800_000;

pub(crate) fn watts(value: Option<f64>, text: &str, absent: Option<&str>) -> Quantity {
    let known = |text: &str| value.map(|_| text.to_owned());
    Quantity {
        value,
        unit: "W".to_owned(),
        margin: value.map(|value| value * 0.05),
        source: known("DCMI"),
        kind: known("blade input"),
        from_ms: Some(NOW - 1_000),
        to_ms: Some(NOW),
        text: text.to_owned(),
        absent: absent.map(ToOwned::to_owned),
    }
}

pub(crate) fn idle() -> PhaseView {
    PhaseView {
        name: "idle".to_owned(),
        open: false,
        switch_id: None,
        since_ms: None,
        until_ms: None,
        reason: None,
        remedy: None,
    }
}

/// Phase `name` of switch `id`.
pub(crate) fn phase(id: &str, name: &str, reason: &str, remedy: Option<&str>) -> PhaseView {
    PhaseView {
        name: name.to_owned(),
        open: !matches!(name, "done" | "held" | "failed"),
        switch_id: Some(id.to_owned()),
        since_ms: Some(NOW - 60_000),
        until_ms: Some(NOW + 300_000),
        reason: Some(reason.to_owned()),
        remedy: remedy.map(ToOwned::to_owned),
    }
}

/// A blade in bay `bay`, on, settled in `local`.
pub(crate) fn blade(bay: u8, phase: PhaseView) -> NodeView {
    NodeView {
        name: format!("bld-{bay:03}"),
        enclosure: Some("c7000-1".to_owned()),
        bay: Some(bay),
        macs: vec![format!("9c:8e:99:00:{bay:02}:01")],
        address: format!("192.0.2.{}", 10 + bay),
        bmc: BmcView {
            kind: "ipmi".to_owned(),
            address: format!("203.0.113.{bay}"),
            port: 623,
            suite: Some(17),
            trouble: None,
        },
        power: PowerState::On,
        power_at_ms: Some(NOW - 5_000),
        profile: Some("local".to_owned()),
        wanted: None,
        phase,
        watts: watts(Some(67.0), "67 W ±5 % (DCMI, blade input)", None),
        last_sighting: Some(sighting(NOW - 90_000, "DHCP ACK 192.0.2.13")),
        protected: None,
        profiles: vec!["inspect".to_owned(), "local".to_owned()],
    }
}

pub(crate) fn sighting(at_ms: i64, text: &str) -> SightingView {
    SightingView {
        at_ms,
        attempt_ms: None,
        kind: "dhcp-out".to_owned(),
        text: text.to_owned(),
        detail: json!({}),
    }
}

pub(crate) fn list(nodes: Vec<NodeView>) -> NodeList {
    NodeList { lab: "twin".to_owned(), at_ms: NOW, nodes, enclosures: vec![] }
}

/// Blades in all the states a list shows.
pub(crate) fn varied() -> NodeList {
    let mut off = blade(4, idle());
    off.power = PowerState::Off;
    off.watts = watts(None, "–", Some("not read yet"));
    off.last_sighting = None;
    off.profile = None;
    off.protected = Some("900 GB disks not yet pulled".to_owned());
    let mut booting = blade(6, phase("01J6", "booting", "waits for DHCP", None));
    booting.wanted = Some("inspect".to_owned());
    let mut held = blade(7, phase("01J7", "held", "no DHCP within 8 min", None));
    held.power = PowerState::Unknown;
    held.bmc.trouble = Some("no answer since 12:00".to_owned());
    let mut loose = blade(9, idle());
    loose.name = "oden".to_owned();
    loose.enclosure = None;
    loose.bay = None;
    list(vec![blade(3, idle()), off, booting, held, loose])
}

pub(crate) fn detail() -> NodeDetail {
    NodeDetail {
        boot_method: vec![BootWayView {
            what: "local disk".to_owned(),
            way: "exit".to_owned(),
            source: "model".to_owned(),
            failed: vec!["auto".to_owned()],
        }],
        node: blade(3, phase("01J3", "held", "no DHCP within 8 min", Some("look at its console"))),
        facts: Some(FactsView {
            at_ms: NOW - 3_600_000,
            product: Some("HP ProLiant BL460c Gen8".to_owned()),
            serial: Some("CZ3403YL03".to_owned()),
            uuid: None,
            firmware: Some("I31".to_owned()),
            efi: false,
            processors: vec![ProcessorView {
                socket: "Proc 1".to_owned(),
                model: Some("Xeon E5-2620".to_owned()),
                cores: Some(6),
                threads: None,
            }],
            memory_mib: Some(32_768),
            dimms: vec![
                DimmView {
                    slot: "1A".to_owned(),
                    mib: Some(4_096),
                    part: Some("M393\u{1b}[2J".to_owned()),
                    serial: None,
                },
                DimmView { slot: "2A".to_owned(), mib: None, part: None, serial: None },
            ],
            disks: vec![DiskView {
                name: "sda".to_owned(),
                bytes: 300_000_000_000,
                model: Some("EG0300".to_owned()),
                serial: Some("6SE1AAA".to_owned()),
            }],
            nics: vec![NicView {
                name: "eno1".to_owned(),
                mac: "9c:8e:99:00:03:01".to_owned(),
                driver: Some("be2net".to_owned()),
                speed_mbit: Some(1_000),
            }],
            warnings: vec!["DIMM 3A has no size".to_owned()],
        }),
        timeline: vec![
            sighting(NOW - 65_000, "DHCP DISCOVER from x86 BIOS (0)"),
            sighting(NOW - 64_000, "DHCP OFFER 192.0.2.13, boot file undionly.kpxe"),
        ],
        history: history(),
        power: vec![
            watts(Some(67.0), "67 W ±5 % (DCMI, blade input)", None),
            watts(None, "–", Some("the BMC does not answer")),
        ],
    }
}

pub(crate) fn history() -> Vec<PhaseEvent> {
    let event = |at_ms, phase: &str, reason: &str| PhaseEvent {
        switch_id: "01J3".to_owned(),
        at_ms,
        profile: "inspect".to_owned(),
        phase: phase.to_owned(),
        reason: reason.to_owned(),
        by: "admin".to_owned(),
    };
    vec![
        event(NOW - 60_000, "held", "no DHCP within 8 min"),
        event(NOW - 600_000, "booting", "power is on"),
    ]
}

pub(crate) fn preview(blocked: &[&str]) -> SwitchPreview {
    let node = |name: &str, blocked: &[&str]| NodePreview {
        node: name.to_owned(),
        from: Some("local".to_owned()),
        power: PowerState::On,
        steps: vec!["shut down".to_owned(), "boot the agent over the network".to_owned()],
        blocked: blocked.iter().map(|why| (*why).to_owned()).collect(),
        destructive: true,
    };
    SwitchPreview {
        profile: "inspect".to_owned(),
        nodes: vec![node("bld-003", &[]), node("bld-004", blocked)],
        hash: "c0ffee".to_owned(),
    }
}

pub(crate) fn accepted() -> SwitchAccepted {
    let switch = |id: &str, node: &str| SwitchRef { id: id.to_owned(), node: node.to_owned() };
    SwitchAccepted { switches: vec![switch("01J3", "bld-003"), switch("01J4", "bld-004")] }
}
