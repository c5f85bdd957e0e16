//! Whole directories, good and bad.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use proptest::prelude::*;

use super::*;

/// A configuration directory that is removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("volund-config-{}-{number}", process::id()));
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const NO_MACHINE: CheckOptions = CheckOptions { resolve_secrets: false, look_for_files: false };

fn faults(dir: &Dir, options: CheckOptions) -> String {
    let faults = check(&dir.0, options).err().map(|faults| faults.to_string());
    faults.unwrap_or_default().replace(&dir.0.display().to_string(), "DIR")
}

const GOOD: &str = r#"
schema = 1
[lab]
name = "twin"
state_dir = "/tmp/twin"
[operator]
listen = "127.0.0.1:0"
[[operator.users]]
name = "admin"
password_hash = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo"
[[network]]
name = "boot"
subnet = "127.0.1.0/24"
server = "127.0.1.1"
dhcp_port = 0
tftp_port = 0
http_port = 0
[loaders]
dir = "ipxe"
[enclosure.c7000-1]
model = "HP BladeSystem c7000"
bays = 16
[profile.ram]
kind = "linux"
root = "ram"
kernel = "vmlinuz"
initrd = ["initrd.img"]
args = "volund.ticket={{ volund.ticket }}"
files = { "user-data" = { text = "hostname: {{ node.name }}" } }
timeouts = { ready = "90s" }
[[node]]
name = "bld-001"
enclosure = "c7000-1"
bay = 1
macs = ["9c-8e-99-00-01-01"]
address = "127.0.1.11"
bmc = { kind = "ipmi", address = "127.0.2.11", port = 6230, user = "volund", secret = "file:pw", suite = 17 }
[[assign]]
nodes = "bld-001"
profile = "ram"
"#;

fn good() -> Dir {
    let dir = Dir::new(&[
        ("volund.toml", GOOD),
        ("pw", "s3cret\n"),
        ("vmlinuz", ""),
        ("initrd.img", ""),
        ("ipxe/undionly.kpxe", ""),
        ("ipxe/snponly.efi", ""),
    ]);
    fs::set_permissions(dir.file("pw"), fs::Permissions::from_mode(0o600)).unwrap();
    dir
}

#[test]
fn a_good_configuration_becomes_what_it_says() {
    let dir = good();
    let config = load(&dir.0).unwrap_or_else(|faults| panic!("{faults}"));
    let node = &config.nodes["bld-001"];
    assert_eq!(config.lab.name, "twin");
    assert_eq!(config.operator.users[0].name, "admin");
    assert_eq!(node.bmc.password.reveal(), "s3cret");
    assert_eq!(node.bmc.address, "127.0.2.11:6230".parse().unwrap());
    assert_eq!(node.bmc.suite, CipherSuite::Suite17);
    assert_eq!(node.network, "boot");
    assert_eq!(node.macs[0].to_string(), "9c:8e:99:00:01:01");
    assert_eq!(node.profiles.iter().map(ProfileName::as_str).collect::<Vec<_>>(), ["local", "ram"]);
    assert_eq!(config.assigned["bld-001"].place.to_string(), "volund.toml:39");
    assert_eq!(config.networks[0].boot_network().prefix, 24);
    assert_eq!(config.loaders.table().0.len(), 3, "0, 7 and 9");
    let ram = &config.profiles["ram"];
    assert_eq!((ram.kind(), ram.root()), ("linux", model::RootKind::Ram));
    assert_eq!(ram.timeouts.ready.as_secs(), 90);
    assert_eq!(ram.timeouts.post.as_secs(), 480);
    assert!(!config.profiles.contains_key("inspect"), "no agent image, no inspection");
    assert_eq!(config.warnings, []);
}

#[test]
fn the_reference_lab_checks_clean() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/asgard");
    let summary = check(&dir, NO_MACHINE).unwrap_or_else(|faults| panic!("{faults}"));
    let want = Summary {
        lab: "asgard".to_owned(),
        networks: 1,
        enclosures: 1,
        nodes: 17,
        profiles: 4,
        warnings: vec![],
    };
    assert_eq!(summary, want);
}

#[test]
fn every_fault_of_a_bad_directory_is_reported_at_once() {
    let dir = Dir::new(&[
        ("volund.toml", include_str!("testdata/bad/volund.toml")),
        ("lab.toml", include_str!("testdata/bad/lab.toml")),
        ("nodes.d/blades.toml", include_str!("testdata/bad/nodes.d/blades.toml")),
    ]);
    insta::assert_snapshot!(faults(&dir, CheckOptions::default()));
}

#[test]
fn syntax_errors_of_all_files_are_reported_and_nothing_is_blamed_on_them() {
    let dir = Dir::new(&[
        ("volund.toml", "schema = 1\n[lab\nname = \"a\"\n"),
        ("b.toml", "[[assign]]\nnodes = \"bld-001\nprofile = 3 4\n"),
    ]);
    insta::assert_snapshot!(faults(&dir, NO_MACHINE));
}

#[test]
fn a_directory_without_volund_toml_says_what_is_missing() {
    let dir = Dir::new(&[("other.toml", "")]);
    assert_eq!(
        faults(&dir, NO_MACHINE),
        "volund.toml: DIR has no volund.toml; create it; examples/asgard shows one"
    );
    let none = Dir(PathBuf::from("/nonexistent/volund"));
    assert_eq!(
        faults(&none, NO_MACHINE),
        "DIR: cannot read the configuration directory: No such file or directory (os error 2); \
         name a readable directory that holds volund.toml"
    );
}

#[test]
fn a_secret_is_checked_and_never_shown() {
    let cases = [
        ("aaaaaaaaaaaaaaaaaaaaaaaa-hunter2", "has 32 bytes; IPMI takes at most 20"),
        ("\n", "is empty"),
    ];
    for (secret, want) in cases {
        let dir = good();
        fs::write(dir.file("pw"), secret).unwrap();
        let text = faults(&dir, CheckOptions::default());
        assert!(text.contains(want), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let dir = good();
    fs::write(dir.file("volund.toml"), GOOD.replace("file:pw", "hunter2")).unwrap();
    let text = faults(&dir, CheckOptions::default());
    assert!(text.contains("secret is no reference to a secret"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_secret_everybody_can_read_is_a_warning() {
    let dir = good();
    fs::set_permissions(dir.file("pw"), fs::Permissions::from_mode(0o644)).unwrap();
    let config = load(&dir.0).unwrap_or_else(|faults| panic!("{faults}"));
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["volund.toml:37:87: node \"bld-001\": bmc: file:pw can be read by everybody; \
          chmod 600 it, owned by volund's user"]
    );
}

#[test]
fn files_are_read_in_an_order_that_never_changes() {
    let dir = Dir::new(&[
        ("volund.toml", "schema = 1"),
        ("z.toml", "a = 1"),
        ("b.toml", "a = 1"),
        (".hidden.toml", "a = 1"),
        ("notes.txt", "a = 1"),
        ("nodes.d/b.toml", "a = 1"),
        ("nodes.d/a.toml", "a = 1"),
        ("sub/a.toml", "a = 1"),
    ]);
    let sink = Sink::default();
    let names: Vec<String> =
        source::read(&dir.0, &sink).iter().map(|source| source.name.to_string()).collect();
    assert_eq!(names, ["volund.toml", "b.toml", "z.toml", "nodes.d/a.toml", "nodes.d/b.toml"]);
}

/// Pieces that come close to a configuration, so that more than the parser is reached.
fn nearly_toml() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "schema",
        "lab",
        "name",
        "node",
        "network",
        "enclosure.a",
        "profile.b",
        "assign",
        "bmc",
        "bay",
        "macs",
        "nodes",
        "subnet",
        "server",
        "kind",
        "timeouts",
        "files",
        "suite",
        "operator",
        "users",
        "listen",
        "period_s",
        "metering",
        "margin_percent",
        "args",
    ]);
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        ".*".prop_map(|text| format!("{text:?}")),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("[[{}], {a = 1}, \"é\"]".to_owned()),
        Just("\"linux\"".to_owned()),
        Just("1979-05-27".to_owned()),
    ];
    let line = (key, value, 0..4_u8).prop_map(|(key, value, form)| match form {
        0 => format!("[{key}]\n"),
        1 => format!("[[{key}]]\n"),
        _ => format!("{key} = {value}\n"),
    });
    prop::collection::vec(line, 0..20).prop_map(|lines| lines.concat())
}

/// Reads `text` as the whole configuration, without touching a disk.
fn read_text(text: String) {
    let sink = Sink::default();
    let source = source::Source { name: "volund.toml".into(), text };
    let mut raw = Raw::default();
    if let Some(document) = source.parse(&sink) {
        let root = Fields::root(&source, &sink, document.get_ref());
        raw.read_file(root, Path::new("/"), &sink);
        cross::check(&raw, &sink);
    }
    sink.outcome().map_or_else(|faults| faults.to_string(), |_| String::new());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text: String) {
        read_text(text);
    }

    #[test]
    fn no_table_makes_it_panic(text in nearly_toml()) {
        read_text(text);
    }
}
