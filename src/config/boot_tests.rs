//! What the configuration says about networks and about how nodes boot: each key, right and wrong.

use model::boot::{DhcpMode, DhcpOption, LocalBoot, Pool};

use super::*;
use crate::config::tests::{Dir, GOOD, faults, good};

fn with(changes: &[(&str, &str)]) -> Dir {
    let dir = good();
    let mut text = GOOD.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    std::fs::write(dir.file("volund.toml"), text).unwrap();
    dir
}

fn network(keys: &str) -> Dir {
    with(&[("http_port = 0\n", &format!("http_port = 0\n{keys}\n"))])
}

fn node(keys: &str) -> Dir {
    with(&[("bay = 1\n", &format!("bay = 1\n{keys}\n"))])
}

fn told(dir: &Dir, want: &str) {
    let told = faults(dir, CheckOptions::default());
    assert!(told.contains(want) && told.is_empty() == want.is_empty(), "want {want:?}: {told}");
}

fn loaded(dir: &Dir) -> Config {
    load(&dir.0).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn a_network_is_served_as_its_mode_says() {
    let pool = Pool { first: [127, 0, 1, 100].into(), last: [127, 0, 1, 199].into() };
    let full = "dhcp = \"full\"\npool = \"127.0.1.100-127.0.1.199\"";
    let cases = [
        ("", DhcpMode::Reserved),
        ("dhcp = \"reserved\"", DhcpMode::Reserved),
        ("dhcp = \"proxy\"", DhcpMode::Proxy),
        ("dhcp = \"off\"", DhcpMode::Off),
        (full, DhcpMode::Full(pool)),
    ];
    for (keys, want) in cases {
        let network = loaded(&network(keys)).networks.remove(0);
        assert_eq!((network.dhcp, network.boot_network().mode), (want, want));
        assert_eq!(network.checks_conflicts, keys == full);
        assert!(!network.advertises, "there is no interface to advertise on");
    }
    let interface = "interface = \"br0\"";
    for (keys, advertises) in [
        (interface.to_owned(), true),
        (format!("{interface}\nrouter_advertisements = false"), false),
        (format!("{interface}\ndhcp = \"off\""), false),
        (format!("{interface}\ndhcp = \"proxy\""), true),
    ] {
        assert_eq!(loaded(&network(&keys)).networks[0].advertises, advertises, "{keys}");
    }
    let short = loaded(&network(&format!("{full}\nunknown_lease_s = 60\nconflict_check = false")));
    assert_eq!(
        (short.networks[0].unknown_lease_s, short.networks[0].checks_conflicts),
        (60, false)
    );
}

#[test]
fn a_mode_that_contradicts_the_other_keys_of_its_network_is_refused() {
    let full = |pool: &str| format!("dhcp = \"full\"\npool = {pool:?}");
    let cases = [
        (
            "dhcp = \"full\"".to_owned(),
            "pool is missing: dhcp = \"full\" gives addresses to all machines; write first and last",
        ),
        (
            "pool = \"127.0.1.100-127.0.1.199\"".to_owned(),
            "pool belongs to dhcp = \"full\"; remove it, or write",
        ),
        (full("127.0.1.199-127.0.1.100"), "cannot be used; write the lower address first"),
        (full("127.0.1.100"), "cannot be used; write first and last address"),
        (
            full("127.0.1.100-127.0.2.10"),
            "does not lie inside 127.0.1.0/24; use addresses from 127.0.1.1 to 127.0.1.254",
        ),
        (full("127.0.1.0-127.0.1.10"), "does not lie inside 127.0.1.0/24"),
        (full("127.0.1.100-127.0.1.255"), "does not lie inside 127.0.1.0/24"),
        (full("127.0.1.1-127.1.1.1"), "a pool has at most 65536 addresses"),
        (
            full("127.0.1.11-127.0.1.11"),
            "every address of pool 127.0.1.11-127.0.1.11 is reserved for somebody",
        ),
        (full("127.0.1.1-127.0.1.1"), "every address of pool 127.0.1.1-127.0.1.1 is reserved"),
        (full("127.0.1.1-127.0.1.12"), ""),
        ("dhcp = \"ful\"".to_owned(), "did you mean \"full\"?"),
        ("conflict_check = true".to_owned(), "conflict_check belongs to dhcp = \"full\""),
        ("router_advertisements = true".to_owned(), "router_advertisements need an interface"),
        (
            "dhcp = \"off\"\nrouter_advertisements = true".to_owned(),
            "are not sent where dhcp is \"off\"",
        ),
        ("dhcp = \"off\"\nrouter_advertisements = false".to_owned(), ""),
        ("unknown_lease_s = 5".to_owned(), "unknown_lease_s 5 is out of range; use 60 to 86400"),
        ("proxy_prt = 4011".to_owned(), "did you mean \"proxy_port\"?"),
    ];
    for (keys, want) in cases {
        told(&network(&keys), want);
    }
}

#[test]
fn dhcp_options_are_written_as_what_they_are() {
    let cases: [(&str, u8, &[u8]); 21] = [
        ("ntp = [\"192.0.2.1\", \"192.0.2.2\"]", 42, &[192, 0, 2, 1, 192, 0, 2, 2]),
        ("ntp = \"192.0.2.1\"", 42, &[192, 0, 2, 1]),
        ("42 = [\"192.0.2.1\"]", 42, &[192, 0, 2, 1]),
        ("domain = \"lab\"", 15, b"lab"),
        ("domain-search = [\"lab.example\", \"a\"]", 119, b"\x03lab\x07example\0\x01a\0"),
        ("mtu = 9000", 26, &[0x23, 0x28]),
        ("26 = 1_500", 26, &[5, 0xdc]),
        ("log-server = [\"192.0.2.1\"]", 7, &[192, 0, 2, 1]),
        ("tftp-server-name = \"tftp\"", 66, b"tftp"),
        ("time-offset = -3600", 2, &[0xff, 0xff, 0xf1, 0xf0]),
        ("vendor = \"hex:06 01 08 ff\"", 43, &[6, 1, 8, 255]),
        (
            "routes = [\"10.0.0.0/8 via 192.0.2.1\", \"0.0.0.0/0 via 192.0.2.2\"]",
            121,
            &[8, 10, 192, 0, 2, 1, 0, 192, 0, 2, 2],
        ),
        ("routes = [\"10.1.2.128/25 via 192.0.2.1\"]", 121, &[25, 10, 1, 2, 128, 192, 0, 2, 1]),
        ("broadcast = \"192.0.2.255\"", 28, &[192, 0, 2, 255]),
        ("default-ttl = 64", 23, &[64]),
        ("224 = \"u8:7\"", 224, &[7]),
        ("224 = \"u16:7\"", 224, &[0, 7]),
        ("224 = \"u32:7\"", 224, &[0, 0, 0, 7]),
        ("224 = \"i32:-1\"", 224, &[255; 4]),
        ("224 = \"text:a:b\"", 224, b"a:b"),
        ("224 = [\"192.0.2.1\"]", 224, &[192, 0, 2, 1]),
    ];
    for (written, code, value) in cases {
        let want = vec![DhcpOption { code, value: value.to_vec() }];
        let table = format!("options = {{ {written} }}");
        assert_eq!(loaded(&network(&table)).networks[0].boot_network().options, want, "{written}");
        assert_eq!(loaded(&node(&table)).nodes["bld-001"].traits.options, want, "{written}");
        let profile = with(&[("root = \"ram\"\n", &format!("root = \"ram\"\n{table}\n"))]);
        assert_eq!(loaded(&profile).profiles["ram"].options, want, "{written}");
    }
}

#[test]
fn an_option_that_cannot_be_sent_is_refused_with_the_way_to_write_it() {
    let long = format!("domain = \"{}\"", "a".repeat(256));
    let cases = [
        (
            "router = [\"192.0.2.1\"]",
            "option 3 (router) is set by volund itself; remove it: set it as router of the network",
        ),
        ("3 = [\"192.0.2.1\"]", "option 3 (router) is set by volund itself"),
        ("67 = \"x\"", "option 67 (boot-file) is set by volund itself"),
        ("60 = \"x\"", "firmware decides by it which answers it takes"),
        ("0 = \"u8:1\"", "0 is no option code; codes go from 1 to 254"),
        ("255 = \"u8:1\"", "255 is no option code"),
        ("300 = \"u8:1\"", "300 is no option code"),
        ("ntq = \"192.0.2.1\"", "unknown option \"ntq\"; did you mean \"ntp\"?"),
        ("whatever = \"x\"", "unknown option \"whatever\"; use a name from docs/configuration.md"),
        ("ntp = \"pool.ntp.org\"", "ntp cannot be used; write addresses"),
        ("ntp = []", "ntp cannot be used; write addresses"),
        ("mtu = 70000", "mtu cannot be used; write a whole number from 0 to 65535"),
        ("mtu = \"1500\"", "mtu cannot be used; write a whole number"),
        ("vendor = \"0601\"", "vendor cannot be used; write bytes in hexadecimal"),
        ("vendor = \"hex:0\"", "vendor cannot be used; write bytes in hexadecimal"),
        ("domain = \"\"", "domain would have 0 bytes; an option has 1 to 255 bytes"),
        (&long, "domain would have 256 bytes"),
        (
            "domain = \"a\\u0000b\"",
            "domain cannot be used; write a text in quotes, without control characters",
        ),
        (
            "224 = \"text:a\\u001bb\"",
            "224 cannot be used; write a text in quotes, without control characters",
        ),
        ("domain-search = [\"a..b\"]", "domain-search cannot be used; write domain names"),
        ("routes = [\"10.0.0.1/8 via 192.0.2.1\"]", "10.0.0.1/8 names a machine"),
        ("routes = [\"10.0.0.0/8\"]", "routes cannot be used; write routes"),
        ("224 = 5", "224 cannot be used; write [\"192.0.2.1\"] for addresses, \"u8:1\""),
        ("42 = [\"192.0.2.1\"], ntp = [\"192.0.2.2\"]", "option 42 is already given"),
    ];
    for (written, want) in cases {
        told(&network(&format!("options = {{ {written} }}")), want);
    }
    told(&network("options = 5"), "options 5 is of type integer; write a table");
}

#[test]
fn routes_that_would_take_the_default_route_away_are_a_warning() {
    let warnings = |routes: &str| {
        let keys = format!("router = \"127.0.1.254\"\noptions = {{ routes = [{routes}] }}");
        let config = loaded(&network(&keys));
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let one = warnings("\"10.0.0.0/8 via 127.0.1.253\"");
    assert!(
        one.contains("routes leave out the router 127.0.1.254; clients that take routes"),
        "{one}"
    );
    assert_eq!(warnings("\"10.0.0.0/8 via 127.0.1.253\", \"0.0.0.0/0 via 127.0.1.254\""), "");
}

#[test]
fn a_node_is_booted_as_its_keys_say() {
    let dir = node(
        "loaders = { bios = \"ipxe.pxe\" }\nlocal_boot = \"exit\"\ntftp_blksize = 512\nanswer_delay_ms = 2500",
    );
    std::fs::write(dir.file("ipxe/ipxe.pxe"), "").unwrap();
    let config = loaded(&dir);
    let traits = &config.nodes["bld-001"].traits;
    assert_eq!(traits.loaders[&model::ClientArch(0)], "ipxe.pxe");
    assert_eq!(
        (traits.local, traits.tftp_blksize, traits.answer_delay_ms),
        (LocalBoot::Exit, Some(512), 2500)
    );
    assert!(config.loaders.files().contains_key("ipxe.pxe"), "what is named is served");
    let cases = [
        ("loaders = { bios = \"ipxe.pxe\" }", "ipxe/ipxe.pxe does not exist"),
        ("loaders = { bios = \"../ipxe.pxe\" }", "bios \"../ipxe.pxe\" is no file name"),
        ("loaders = { efi = \"ipxe.efi\" }", "did you mean \"efi_"),
        ("local_boot = \"ext\"", "did you mean \"exit\"?"),
        (
            "boot_mode = \"uefi\"\nlocal_boot = \"sanboot\"",
            "local_boot \"sanboot\" is for BIOS only",
        ),
        ("tftp_blksize = 4", "tftp_blksize 4 is out of range"),
        ("answer_delay_ms = 6000", "answer_delay_ms 6000 is out of range; use 0 to 5000"),
        ("secure_boot = true", "secure_boot needs UEFI"),
        ("secure_boot = false", ""),
    ];
    for (keys, want) in cases {
        told(&node(keys), want);
    }
}

#[test]
fn secure_boot_starts_shim_and_serves_the_grub_it_asks_for() {
    let keys = "boot_mode = \"uefi\"\nsecure_boot = true";
    let files = "[secure_boot]\nshim = \"shim.signed\"\ngrub = \"grub.signed\"\n[loaders]\n";
    let dir = with(&[("bay = 1\n", &format!("bay = 1\n{keys}\n")), ("[loaders]\n", files)]);
    told(&dir, "shim.signed does not exist; install the Debian package shim-signed");
    told(&dir, "grub.signed does not exist; install the Debian package grub-efi-amd64-signed");
    for name in ["shim.signed", "grub.signed"] {
        std::fs::write(dir.file(name), "").unwrap();
    }
    let config = loaded(&dir);
    let traits = &config.nodes["bld-001"].traits;
    for arch in [7, 9] {
        assert_eq!(traits.loaders[&model::ClientArch(arch)], "shimx64.efi");
    }
    let served = config.loaders.files();
    assert!(served["shimx64.efi"].ends_with("shim.signed"), "{served:?}");
    assert!(served["grubx64.efi"].ends_with("grub.signed"), "{served:?}");
    let both = format!("{keys}\nloaders = {{ efi_x64 = \"snponly.efi\" }}");
    told(&node(&both), "loaders names \"snponly.efi\" beside secure_boot");
}

#[test]
fn loaders_may_be_a_ladder() {
    let ladder = "[loaders]\nefi_x64 = [\"snponly.efi\", \"ipxe.efi\"]\n";
    let dir = with(&[("[loaders]\n", ladder)]);
    told(&dir, "ipxe/ipxe.efi does not exist");
    std::fs::write(dir.file("ipxe/ipxe.efi"), "").unwrap();
    let loaders = loaded(&dir).loaders;
    assert_eq!(loaders.table().0[&model::ClientArch(7)], "snponly.efi");
    assert_eq!(loaders.ladders()[&model::ClientArch(9)], ["snponly.efi", "ipxe.efi"]);
    assert_eq!(loaders.ladders().get(&model::ClientArch(0)), None, "there is only one");
    let none = with(&[("[loaders]\n", "[loaders]\nefi_x64 = []\n")]);
    told(&none, "efi_x64 names no file; name one, or remove it");
}

#[test]
fn there_is_a_menu_only_where_it_is_declared() {
    assert_eq!(loaded(&good()).menu, None);
    let menu = |keys: &str| with(&[("[loaders]\n", &format!("[menu]\n{keys}\n[loaders]\n"))]);
    let plain = Menu {
        timeout_s: 5,
        shell: true,
        inspect: false,
        profiles: false,
        netboot_xyz: None,
        memtest: None,
    };
    assert_eq!(loaded(&menu("")).menu, Some(plain.clone()));
    let dir = menu(
        "timeout_s = 9\nshell = false\ninspect = true\nprofiles = true\n\
         netboot_xyz = \"http://boot.example/menu.ipxe\"\nmemtest = \"vmlinuz\"",
    );
    let declared = loaded(&dir).menu.unwrap();
    assert_eq!(
        (declared.timeout_s, declared.shell, declared.inspect, declared.profiles),
        (9, false, true, true)
    );
    assert!(declared.memtest.unwrap().ends_with("vmlinuz"));
    let cases = [
        ("timeout_s = 0", "timeout_s 0 is out of range; use 1 to 60"),
        ("netboot_xyz = \"ftp://a\"", "netboot_xyz \"ftp://a\" cannot be used"),
        ("netboot_xyz = \"http://a b\"", "cannot be used; write a URL"),
        ("netboot_xyz = \"http://${x}\"", "cannot be used; write a URL"),
        (
            "memtest = \"memtest.bin\"",
            "memtest.bin does not exist; install the Debian package memtest86+",
        ),
        ("memtst = \"vmlinuz\"", "did you mean \"memtest\"?"),
    ];
    for (keys, want) in cases {
        told(&menu(keys), want);
    }
}

#[test]
fn a_node_needs_no_address_where_another_server_gives_it() {
    let address = "address = \"127.0.1.11\"\n";
    let proxy = "http_port = 0\ndhcp = \"proxy\"\n";
    let second = "[[network]]\nname = \"b\"\nsubnet = \"127.0.9.0/24\"\nserver = \"127.0.9.1\"\ndhcp = \"proxy\"\n[loaders]\n";
    let dir = with(&[(address, ""), ("http_port = 0\n", proxy)]);
    let config = loaded(&dir);
    let node = &config.nodes["bld-001"];
    assert_eq!((node.address, node.network.as_str()), (None, "boot"));
    let two = with(&[(address, ""), ("http_port = 0\n", proxy), ("[loaders]\n", second)]);
    told(
        &two,
        "node \"bld-001\": network is missing; name the network it boots on, or its address",
    );
    let named =
        [(address, "network = \"b\"\n"), ("http_port = 0\n", proxy), ("[loaders]\n", second)];
    assert_eq!(loaded(&with(&named)).nodes["bld-001"].network, "b");
    let cases = [
        (vec![(address, "")], "node \"bld-001\": address is missing; reserve an address for it"),
        (
            vec![(address, "network = \"boot\"\n")],
            "address is missing: volund gives the addresses on network \"boot\"",
        ),
        (
            vec![(address, "network = \"bot\"\n")],
            "network \"bot\" is not declared; did you mean \"boot\"?",
        ),
        (
            vec![(address, "address = \"127.0.1.11\"\nnetwork = \"b\"\n"), ("[loaders]\n", second)],
            "address 127.0.1.11 does not lie on network \"b\"; remove network",
        ),
        (vec![(address, "address = \"127.0.1.11\"\nnetwork = \"boot\"\n")], ""),
        (vec![(address, "address = \"bld\"\n"), ("http_port = 0\n", proxy)], "write an IP address"),
    ];
    for (changes, want) in cases {
        told(&with(&changes), want);
    }
}
