use std::net::Ipv4Addr;

use super::*;

const BIOS: &str = "x86 BIOS (0)";
const UEFI: &str = "x86-64 UEFI (7)";
const IPXE: &str = "iPXE";

/// A second of the story, and what was seen in it.
type Line = (i64, Sighted);

fn at(seconds: i64) -> UnixMillis {
    UnixMillis(seconds * 1_000)
}

fn hears(client: &str, kind: DhcpKind) -> Sighted {
    Sighted::DhcpIn { kind, xid: 7, client: client.to_owned(), relay: None, proxy: false }
}

fn discover(client: &str) -> Sighted {
    hears(client, DhcpKind::Discover)
}

fn request(client: &str) -> Sighted {
    hears(client, DhcpKind::Request)
}

fn sends(kind: DhcpKind, file: &str) -> Sighted {
    let file = (!file.is_empty()).then(|| file.to_owned());
    Sighted::DhcpOut { kind, xid: 7, address: [192, 0, 2, 77].into(), file }
}

fn silent(why: &str) -> Sighted {
    Sighted::DhcpSilent { why: why.to_owned() }
}

fn rival(file: Option<&str>) -> Sighted {
    let (server, address) = ([192, 0, 2, 9].into(), Some([192, 0, 2, 200].into()));
    Sighted::Rival { server, address, file: file.map(str::to_owned) }
}

fn done(file: &str, bytes: u64) -> Sighted {
    Sighted::TftpDone { file: file.to_owned(), bytes, millis: 80 }
}

fn failed(file: &str, why: &str) -> Sighted {
    Sighted::TftpFailed { file: file.to_owned(), why: why.to_owned() }
}

fn http(path: &str, status: u16, bytes: u64) -> Sighted {
    let (method, path) = ("GET".to_owned(), path.to_owned());
    Sighted::HttpDone { method, path, status, bytes, millis: 50 }
}

fn script(what: &str) -> Sighted {
    Sighted::Script { what: what.to_owned() }
}

fn kernel() -> Sighted {
    Sighted::KernelWhole { path: "/i/inspect/vmlinuz".to_owned() }
}

/// DHCP of firmware that ends well.
fn dhcp(from: i64, client: &str, file: &str) -> Vec<Line> {
    vec![
        (from, discover(client)),
        (from, sends(DhcpKind::Offer, file)),
        (from + 1, request(client)),
        (from + 1, sends(DhcpKind::Ack, file)),
    ]
}

/// A boot up to its script.
fn scripted(client: &str, loader: &str) -> Vec<Line> {
    let mut lines = dhcp(0, client, loader);
    lines.push((2, done(loader, 70_000)));
    lines.extend(dhcp(4, IPXE, "http://192.0.2.1:8067/boot.ipxe"));
    lines.push((6, script("inspect")));
    lines
}

/// Everything up to the whole kernel.
fn started(client: &str) -> Vec<Line> {
    let mut lines = scripted(client, "undionly.kpxe");
    lines.push((8, http("/i/inspect/vmlinuz", 200, 8_200_000)));
    lines.push((8, kernel()));
    lines.push((9, http("/i/inspect/initrd", 200, 700_000)));
    lines
}

fn sightings(lines: Vec<Line>) -> Vec<Sighting> {
    let attempt = Some(at(0));
    let one = |(second, what)| {
        let (node, mac, peer) = (Some("bld-003".parse().unwrap()), None, None);
        Sighting { at: at(second), node, mac, peer, attempt, what }
    };
    lines.into_iter().map(one).collect()
}

/// A switch waits, the machine has been on since second 0, and it is second 400 now.
fn facts() -> Facts {
    Facts {
        now: at(400),
        power: Some(Power { is_on: true, since: at(0) }),
        awaited: Some(at(0)),
        post_limit: Duration::from_secs(300),
        heard_before: true,
        is_over: false,
        is_proxy: false,
        strangers: vec![],
        memory_mib: Some(16_384),
    }
}

fn proxy() -> Facts {
    Facts { is_proxy: true, ..facts() }
}

/// The first diagnosis.
fn says(lines: Vec<Line>, facts: &Facts) -> Option<Diagnosis> {
    let seen = sightings(lines);
    let all = diagnose(&seen, facts);
    for diagnosis in &all {
        assert!(diagnosis.evidence.iter().all(|place| *place < seen.len()), "{diagnosis:?}");
        assert!(!diagnosis.remedy.is_empty() && !diagnosis.cause.contains('\n'));
    }
    all.into_iter().next()
}

#[track_caller]
fn is(id: &str, lines: Vec<Line>) -> Diagnosis {
    is_with(id, lines, &facts())
}

#[track_caller]
fn is_with(id: &str, lines: Vec<Line>, facts: &Facts) -> Diagnosis {
    let said = says(lines, facts).unwrap_or_else(|| panic!("nothing instead of {id}"));
    assert_eq!(said.id, id, "{}", said.cause);
    said
}

#[track_caller]
fn is_well(lines: Vec<Line>, facts: &Facts) {
    let said = says(lines, facts);
    assert_eq!(said, None);
}

#[test]
fn a_boot_that_went_well_and_one_under_way_have_no_diagnosis() {
    let mut well = started(BIOS);
    well.push((20, Sighted::Agent { verb: "claim".to_owned() }));
    is_well(well, &facts());
    is_well(started(BIOS), &Facts { awaited: None, ..facts() });
    for so_far in 1..started(UEFI).len() {
        let lines: Vec<Line> = started(UEFI).into_iter().take(so_far).collect();
        let now = lines.last().unwrap().0 + 3;
        is_well(lines, &Facts { now: at(now), ..facts() });
    }
    is_well(vec![], &Facts { awaited: None, ..facts() });
}

#[test]
fn a_local_boot_is_no_fault() {
    let mut lines = scripted(BIOS, "undionly.kpxe");
    lines.pop();
    lines.push((6, script("local boot (nothing else is ordered)")));
    is_well(lines, &facts());
}

#[test]
fn boot_loop() {
    let looped = Sighted::Looped { what: "snponly.efi fetched".to_owned(), times: 3 };
    let said = is("boot-loop", [dhcp(0, UEFI, "snponly.efi"), vec![(9, looped)]].concat());
    assert_eq!(
        said.cause,
        "it went round in a circle (snponly.efi fetched, 3 times) and is kept out of it"
    );
    assert_eq!((said.evidence, said.confidence), (vec![4], Confidence::Certain));
}

#[test]
fn address_conflict() {
    let by = Some(MacAddr([2, 0, 0, 0, 0, 9]));
    let taken = Sighted::AddressTaken { address: [192, 0, 2, 77].into(), by };
    let said = is("address-conflict", vec![(0, discover(BIOS)), (1, taken)]);
    assert_eq!(said.cause, "address 192.0.2.77 is used by 02:00:00:00:00:09");
    let why = "it declines 192.0.2.77: another machine uses that address";
    is("address-conflict", vec![(0, discover(BIOS)), (1, silent(why))]);
}

#[test]
fn relay_unknown() {
    let why = "no boot network holds its relay 198.51.100.1";
    assert_eq!(is("relay-unknown", vec![(0, discover(BIOS)), (0, silent(why))]).cause, why);
}

#[test]
fn wrong_network() {
    let why = "its address 192.0.2.77 is not on 198.51.100.0/24, the network it asks from";
    is("wrong-network", vec![(0, discover(BIOS)), (0, silent(why))]);
}

#[test]
fn unknown_arch() {
    for why in [
        "no loader is known for unknown architecture (41): no boot file",
        "it names no architecture: no boot file",
    ] {
        let client = "unknown architecture (41)";
        is(
            "unknown-arch",
            vec![(0, discover(client)), (0, sends(DhcpKind::Offer, "")), (0, silent(why))],
        );
    }
}

#[test]
fn no_loader() {
    let why = "no loader is configured for arm64 UEFI (11): no boot file; name one under `loaders`";
    is("no-loader", vec![(0, discover("arm64 UEFI (11)")), (0, silent(why))]);
}

#[test]
fn nak_loop() {
    let turn = |n| [(n, request(BIOS)), (n, sends(DhcpKind::Nak, ""))];
    is("nak-loop", (0..4).flat_map(turn).collect());
    let mut healed: Vec<Line> = (0..4).flat_map(turn).collect();
    healed.extend(scripted(BIOS, "undionly.kpxe"));
    healed.push((8, kernel()));
    healed.push((9, Sighted::Agent { verb: "claim".to_owned() }));
    is_well(healed, &facts());
}

#[test]
fn rival_boot_file() {
    let lines =
        vec![(0, discover(BIOS)), (0, sends(DhcpKind::Offer, "a")), (1, rival(Some("pxelinux.0")))];
    for facts in [facts(), proxy()] {
        let said = is_with("rival-boot-file", lines.clone(), &facts);
        assert_eq!(
            said.cause,
            "another DHCP server, 192.0.2.9, names the boot file \"pxelinux.0\""
        );
    }
}

#[test]
fn a_rival_whose_offer_was_not_taken_is_no_cause() {
    let mut lines = dhcp(0, BIOS, "undionly.kpxe");
    lines.insert(2, (1, rival(Some("pxelinux.0"))));
    let said = is_with("loader-not-fetched", lines, &facts());
    assert!(said.cause.contains("undionly.kpxe"), "{}", said.cause);
}

#[test]
fn rival_address() {
    let offer = (0, sends(DhcpKind::Offer, "a"));
    let lines = vec![(0, discover(BIOS)), offer.clone(), (1, rival(None))];
    is("rival-address", lines);
    let chosen = silent("it took the offer of another server, 192.0.2.9");
    let said =
        is("rival-address", vec![(0, discover(BIOS)), offer, (1, request(BIOS)), (1, chosen)]);
    assert!(said.cause.contains("192.0.2.9"), "{}", said.cause);
}

#[test]
fn never_merges() {
    let turn =
        |n| [(n, discover(UEFI)), (n, sends(DhcpKind::Offer, "snponly.efi")), (n, rival(None))];
    let lines: Vec<Line> = [0, 4, 12, 28].into_iter().flat_map(turn).collect();
    let said = is_with("never-merges", lines, &proxy());
    assert_eq!(said.evidence, [0, 3, 6, 9], "its four DISCOVERs");
}

#[test]
fn proxy_refused() {
    let asks = Sighted::DhcpIn {
        kind: DhcpKind::Request,
        xid: 7,
        client: IPXE.to_owned(),
        relay: None,
        proxy: true,
    };
    let turn = |n| [(n, asks.clone()), (n, sends(DhcpKind::Ack, "http://192.0.2.1/boot.ipxe"))];
    is_with("proxy-refused", (0..4).flat_map(turn).collect(), &proxy());
}

#[test]
fn offer_ignored() {
    let turn = |n| [(n, discover(UEFI)), (n, sends(DhcpKind::Offer, "snponly.efi"))];
    let said = is("offer-ignored", [0, 4, 12].into_iter().flat_map(turn).collect());
    assert_eq!(said.confidence, Confidence::Possible);
    assert!(said.remedy.contains("mirror"), "says what would be needed to see it");
}

#[test]
fn loader_not_fetched() {
    let said = is("loader-not-fetched", dhcp(0, UEFI, "snponly.efi"));
    assert_eq!(
        said.cause,
        "its firmware was given an address and the boot file snponly.efi, and asked for nothing"
    );
}

#[test]
fn loader_not_fetched_where_another_server_gives_the_address() {
    let lines = |client: &str, file: &str| {
        vec![
            (0, discover(client)),
            (0, sends(DhcpKind::Offer, file)),
            (1, rival(None)),
            (4, request(client)),
            (4, silent("its REQUEST is for the server that gives the addresses")),
        ]
    };
    let said = is_with("loader-not-fetched", lines(BIOS, "undionly.kpxe"), &proxy());
    assert!(said.cause.contains("undionly.kpxe"), "{}", said.cause);
    is_with("ipxe-no-script", lines(IPXE, "http://192.0.2.1:8067/boot.ipxe"), &proxy());
    let soon = Facts { now: at(10), ..proxy() };
    is_well(lines(BIOS, "undionly.kpxe"), &soon);
    let mut fetched = lines(BIOS, "undionly.kpxe");
    fetched.push((6, done("undionly.kpxe", 70_000)));
    fetched.extend(
        lines(IPXE, "http://192.0.2.1:8067/boot.ipxe").into_iter().map(|(n, what)| (n + 8, what)),
    );
    fetched.push((14, script("local boot (nothing else is ordered)")));
    is_well(fetched, &proxy());
}

#[test]
fn http_boot_refused() {
    is("http-boot-refused", dhcp(0, "x86-64 UEFI HTTP (16)", "http://192.0.2.1:8067/snponly.efi"));
}

#[test]
fn ipxe_no_script() {
    let mut lines = dhcp(0, BIOS, "undionly.kpxe");
    lines.push((2, done("undionly.kpxe", 70_000)));
    lines.extend(dhcp(4, IPXE, "http://192.0.2.1:8067/boot.ipxe"));
    is("ipxe-no-script", lines);
}

#[test]
fn loader_loop() {
    let turn = |n| [dhcp(n, BIOS, "undionly.kpxe"), vec![(n + 2, done("undionly.kpxe", 70_000))]];
    let twice: Vec<Line> = [0, 4].into_iter().flat_map(turn).flatten().collect();
    let well = [twice.clone(), dhcp(8, IPXE, "x"), vec![(9, script("inspect")), (10, kernel())]];
    is_well(well.concat(), &Facts { awaited: None, ..facts() });
    let again: Vec<Line> = turn(8).into_iter().flatten().collect();
    is("loader-loop", [twice, again].concat());
}

#[test]
fn name_not_found() {
    let lines = dhcp(0, BIOS, "undionly.kpxe");
    let asks = vec![(3, failed("pxelinux.0", "file not found"))];
    let said = is("name-not-found", [lines, asks].concat());
    assert_eq!(
        said.cause,
        "it asks for \"pxelinux.0\", which is not served; volund named undionly.kpxe"
    );
    let http = dhcp(0, "x86-64 UEFI HTTP (16)", "http://192.0.2.1/a.efi");
    is("name-not-found", [http, vec![(3, http_404("/a.efi"))]].concat());
}

fn http_404(path: &str) -> Sighted {
    http(path, 404, 10)
}

#[test]
fn companions_that_are_not_there_are_no_fault() {
    let mut lines = dhcp(0, UEFI, "shimx64.efi");
    lines.push((2, done("shimx64.efi", 1_000_000)));
    for name in ["revocations_sku.efi", "shim_certificate_0.efi", "grub/x86_64-efi/fs.lst"] {
        lines.push((3, failed(name, "file not found")));
    }
    lines.push((4, done("grubx64.efi", 2_000_000)));
    lines.push((5, script("inspect")));
    lines.push((6, kernel()));
    is_well(lines, &Facts { awaited: None, ..facts() });
}

#[test]
fn tftp_mtu() {
    let mut lines = dhcp(0, UEFI, "snponly.efi");
    lines.push((2, Sighted::TftpProbe { file: "snponly.efi".to_owned() }));
    lines.push((60, failed("snponly.efi", "the client went silent after 0 blocks")));
    is("tftp-mtu", lines);
}

#[test]
fn tftp_stalls() {
    let mut lines = dhcp(0, UEFI, "snponly.efi");
    lines.push((60, failed("snponly.efi", "the client went silent after 37 blocks")));
    let said = is("tftp-stalls", lines);
    assert_eq!(
        said.cause,
        "the transfer of snponly.efi broke off after 37 blocks: packets get lost"
    );
}

#[test]
fn loader_too_large() {
    let mut lines = dhcp(0, BIOS, "ipxe.pxe");
    lines.push((2, done("ipxe.pxe", 900_000)));
    is("loader-too-large", lines);
}

#[test]
fn wrong_loader() {
    for (client, loader) in [(BIOS, "snponly.efi"), (UEFI, "undionly.kpxe")] {
        let lines = [dhcp(0, client, loader), vec![(2, done(loader, 170_000))]];
        is("wrong-loader", lines.concat());
    }
}

#[test]
fn secure_boot() {
    let fetched = [dhcp(0, UEFI, "snponly.efi"), vec![(2, done("snponly.efi", 173_792))]].concat();
    assert_eq!(is("secure-boot", fetched.clone()).evidence, [4]);
    let next = [fetched.clone(), vec![(9, discover("x86-64 UEFI HTTP (16)"))]].concat();
    let early = Facts { now: at(10), ..facts() };
    assert_eq!(is_with("secure-boot", next, &early).evidence, [4, 5], "it tries its next method");
    is_well(fetched, &early);
}

#[test]
fn shim_silent() {
    let fetched = [dhcp(0, UEFI, "shimx64.efi"), vec![(2, done("shimx64.efi", 1_048_504))]];
    is("shim-silent", fetched.concat());
}

#[test]
fn loader_silent() {
    let fetched = [dhcp(0, BIOS, "undionly.kpxe"), vec![(2, done("undionly.kpxe", 70_000))]];
    is("loader-silent", fetched.concat());
}

#[test]
fn slow_link() {
    let fetched = [dhcp(0, UEFI, "ipxe.efi"), vec![(2, done("ipxe.efi", 1_000_000))]].concat();
    let late = [fetched, vec![(40, discover(IPXE))]].concat();
    let said = is("slow-link", late);
    assert_eq!(said.cause, "its link was down for 38 s after the loader began");
}

#[test]
fn kernel_missing() {
    let lines = [scripted(BIOS, "undionly.kpxe"), vec![(7, http_404("/i/inspect/vmlinuz"))]];
    let said = is("kernel-missing", lines.concat());
    assert_eq!(said.cause, "the script names /i/inspect/vmlinuz, which is not there");
}

#[test]
fn bios_image_too_large() {
    let big = http("/i/live/initrd", 200, 1_500 * 1024 * 1024);
    let lines = [scripted(BIOS, "undionly.kpxe"), vec![(60, big.clone())]].concat();
    is("bios-image-too-large", lines);
    let uefi = [scripted(UEFI, "snponly.efi"), vec![(60, big)]].concat();
    is_well(uefi, &facts());
}

#[test]
fn memory_too_small() {
    let lines = [scripted(UEFI, "snponly.efi"), vec![(60, http("/i/live/initrd", 200, 600 << 20))]];
    let small = Facts { memory_mib: Some(2_048), ..facts() };
    let said = is_with("memory-too-small", lines.concat(), &small);
    assert!(said.cause.contains("600 MiB") && said.cause.contains("2048 MiB"), "{}", said.cause);
}

#[test]
fn transfer_short() {
    let short = Sighted::HttpShort { path: "/i/a/initrd".to_owned(), bytes: 5, of: 9 };
    let lines = [scripted(UEFI, "snponly.efi"), vec![(9, short)]].concat();
    is("transfer-short", lines.clone());
    is_well([lines, vec![(20, http("/i/a/initrd", 200, 9))]].concat(), &facts());
}

#[test]
fn script_no_kernel() {
    let said = is("script-no-kernel", scripted(BIOS, "undionly.kpxe"));
    assert_eq!(said.cause, "it was given the script of inspect and fetched nothing of it");
    let mut waits = scripted(BIOS, "undionly.kpxe");
    waits.pop();
    waits.push((6, script("wait (the power reading is old)")));
    is_well(waits, &facts());
}

#[test]
fn agent_refused() {
    let refused =
        Sighted::Refused { why: "ticket 12… of bld-003 is not good from 192.0.2.78".to_owned() };
    is("agent-refused", [started(BIOS), vec![(30, refused)]].concat());
}

#[test]
fn agent_unreachable() {
    let asks = vec![(30, discover("")), (30, sends(DhcpKind::Ack, ""))];
    is("agent-unreachable", [started(BIOS), asks].concat());
}

#[test]
fn kernel_silent() {
    is("kernel-silent", started(BIOS));
    is_well(started(BIOS), &Facts { now: at(60), ..facts() });
}

#[test]
fn off() {
    let off = Facts { power: Some(Power { is_on: false, since: at(390) }), ..facts() };
    assert_eq!(is_with("off", vec![], &off).cause, "its power has read off for 10 s");
}

#[test]
fn unknown_mac() {
    let strangers = vec![MacAddr([2, 0, 0, 0, 0, 9])];
    let replaced = Facts { strangers, ..facts() };
    let said = is_with("unknown-mac", vec![], &replaced);
    assert!(said.cause.contains("02:00:00:00:00:09"), "{}", said.cause);
    let crowd = Facts { strangers: vec![MacAddr([2; 6]), MacAddr([4; 6])], ..facts() };
    is_with("stuck-in-post", vec![], &crowd);
}

#[test]
fn stuck_in_post() {
    let said = is("stuck-in-post", vec![]);
    assert!(said.cause.starts_with("it has been on for 400 s"), "{}", said.cause);
    is_well(vec![], &Facts { now: at(299), ..facts() });
}

#[test]
fn no_dhcp() {
    is_with("no-dhcp", vec![], &Facts { heard_before: false, ..facts() });
}

/// What DHCP really says in these cases is what the rules look for.
#[test]
fn the_words_of_a_dhcp_decision_are_the_words_the_rules_know() {
    use model::boot::{BootEntry, BootIntent, BootNetwork, BootTable, BootTraits, DhcpMode};

    use crate::dhcp::{
        Arrival, ClientMessage, Leases, Outcome, RelayInfo, Request, ServerPort, decide,
    };

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    let (ours, other): (Ipv4Addr, Ipv4Addr) = ([192, 0, 2, 10].into(), [192, 0, 2, 9].into());
    let table = |address: [u8; 4]| {
        let mut table = BootTable::default();
        table.networks.push(BootNetwork {
            name: "boot".to_owned(),
            mode: DhcpMode::Reserved,
            unknown_lease_s: 120,
            options: vec![],
            subnet: [192, 0, 2, 0].into(),
            prefix: 24,
            server: ours,
            router: None,
            dns: vec![],
            lease_s: 600,
            http: "192.0.2.10:8067".parse().unwrap(),
        });
        table.insert(BootEntry {
            node: "bld-003".parse().unwrap(),
            macs: vec![MAC],
            address: address.into(),
            intent: BootIntent::Ask,
            attempt: None,
            traits: BootTraits::default(),
        });
        table
    };
    let (home, away) = (table([192, 0, 2, 77]), table([198, 51, 100, 77]));
    let rom = |kind, arch| ClientMessage::pxe(kind, 7, MAC, ClientArch(arch));
    let relay = RelayInfo { circuit_id: None, source_port: false };
    let declined = ClientMessage {
        requested: Some([192, 0, 2, 77].into()),
        server_id: Some(ours),
        ..rom(DhcpKind::Decline, 0)
    };
    let taken = rom(DhcpKind::Request, 0).selecting([192, 0, 2, 200].into(), other);
    let far = rom(DhcpKind::Discover, 0).message().through_relay([198, 51, 100, 1].into(), &relay);
    let cases = [
        ("relay-unknown", far, &home),
        ("wrong-network", rom(DhcpKind::Discover, 0).message(), &away),
        ("unknown-arch", rom(DhcpKind::Discover, 999).message(), &home),
        ("no-loader", rom(DhcpKind::Discover, 11).message(), &home),
        ("rival-address", taken.message(), &home),
        ("address-conflict", declined.message(), &home),
    ];
    for (id, message, table) in cases {
        let request = Request::decode(&message.encode()).unwrap();
        let from = std::net::SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68);
        let arrival = Arrival { from, on: ours, port: ServerPort::Dhcp };
        let mut leases = Leases::new();
        let bound = rom(DhcpKind::Request, 0).selecting([192, 0, 2, 77].into(), ours).message();
        let bound = Request::decode(&bound.encode()).unwrap();
        let acked = decide(&bound, arrival, &home, &mut leases, at(0)).outcome;
        assert!(matches!(acked, Outcome::Reply(_)));
        let decided = decide(&request, arrival, table, &mut leases, at(1));
        let why = match decided.outcome {
            Outcome::Silent { why } => why,
            Outcome::Reply(reply) => reply.note.unwrap_or_else(|| panic!("{id}: no word")),
        };
        let lines = vec![(0, hears(&request.client(), request.kind)), (0, silent(&why))];
        let said = says(lines, &facts()).unwrap_or_else(|| panic!("{id}: {why}"));
        assert_eq!(said.id, id, "{why}");
    }
}

#[test]
fn every_row_has_a_test_of_its_name_and_a_sentence_of_its_own() {
    let source = include_str!("tests.rs");
    let (mut ids, mut remedies) = (vec![], vec![]);
    for rule in rules() {
        let test = format!("fn {}() {{", rule.id.replace('-', "_"));
        assert!(source.contains(&test), "{test}");
        assert!(!rule.remedy.contains("  ") && !rule.remedy.ends_with('.'), "{}", rule.id);
        ids.push(rule.id);
        remedies.push(rule.remedy);
    }
    assert_eq!(ids.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len());
    assert!(ids.len() >= 30, "{}", ids.len());
}

#[test]
fn a_network_with_trouble_is_told_of_the_worst_first() {
    let rival = |last, file: Option<&str>| NetworkRival {
        server: [192, 0, 2, last].into(),
        file: file.map(str::to_owned),
    };
    let network_of = Network {
        name: "boot".to_owned(),
        is_proxy: false,
        rivals: vec![rival(8, None), rival(9, Some("a.0"))],
        findings: vec![("gc_thresh3 is 1024".to_owned(), "raise it".to_owned())],
        acks: 1_000,
        late_acks: 20,
        dropped_requests: 1,
        pool: Some((10, 0)),
    };
    let ids = |of: &Network| network(of).iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(
        ids(&network_of),
        ["requests-dropped", "pool-full", "disk-slow", "rival-address", "rival-boot-file", "host"]
    );
    let proxy = Network { is_proxy: true, rivals: vec![rival(8, None)], ..Network::default() };
    assert_eq!(ids(&proxy), Vec::<&str>::new(), "that server shall be there");
    for (acks, late_acks) in [(2, 2), (19, 19), (10_000, 100)] {
        let busy = Network { acks, late_acks, ..Network::default() };
        assert_eq!(ids(&busy), Vec::<&str>::new(), "{late_acks} late of {acks}");
    }
}

mod any_story {
    use proptest::prelude::*;

    use super::*;

    fn line() -> impl Strategy<Value = Line> {
        let what = prop::sample::select(vec![
            discover(BIOS),
            discover(""),
            discover(IPXE),
            request(UEFI),
            sends(DhcpKind::Offer, "a.efi"),
            sends(DhcpKind::Ack, "a.efi"),
            sends(DhcpKind::Nak, ""),
            silent("it took the offer of another server, 192.0.2.9"),
            rival(None),
            rival(Some("x")),
            done("a.efi", 900_000),
            failed("b.efi", "the client went silent after 0 blocks"),
            script("inspect"),
            kernel(),
            http("/i/a/initrd", 200, u64::MAX),
            http("/agent/v1/next", 409, 2),
            Sighted::Agent { verb: "next".to_owned() },
        ]);
        (-9..900_i64, what)
    }

    proptest! {
        /// Times that step back among them.
        #[test]
        fn is_told_without_a_panic(
            lines in prop::collection::vec(line(), 0..40),
            now in -10..2_000_i64,
            (is_proxy, is_over) in any::<(bool, bool)>(),
        ) {
            let facts = Facts { now: at(now), is_proxy, is_over, ..facts() };
            let seen = sightings(lines);
            for diagnosis in diagnose(&seen, &facts) {
                prop_assert!(diagnosis.evidence.iter().all(|place| *place < seen.len()));
            }
            if let Some(boot) = story::tell(&seen, is_over, at(now)) {
                prop_assert!(boot.stages.iter().all(|stage| stage.count > 0));
                prop_assert!(!boot.outcome.to_string().is_empty());
            }
        }
    }
}
