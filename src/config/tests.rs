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
pub(super) struct Dir(pub(super) PathBuf);

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

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const NO_MACHINE: CheckOptions = CheckOptions { resolve_secrets: false, look_for_files: false };

pub(super) fn faults(dir: &Dir, options: CheckOptions) -> String {
    let faults = check(&dir.0, options).err().map(|faults| faults.to_string());
    faults.unwrap_or_default().replace(&dir.0.display().to_string(), "DIR")
}

pub(super) const GOOD: &str = r#"
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
tftp_wrap = 1
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

pub(super) fn good() -> Dir {
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
    assert_eq!(config.assigned["bld-001"].place.to_string(), "volund.toml:40");
    assert_eq!(config.networks[0].boot_network().prefix, 24);
    assert_eq!(config.networks[0].tftp_wrap, pxe::Wrap::One);
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
    let mut summary = check(&dir, NO_MACHINE).unwrap_or_else(|faults| panic!("{faults}"));
    let warnings: Vec<_> = summary.warnings.drain(..).map(|warning| warning.text).collect();
    assert_eq!(warnings, ["[operator]: nobody can log in: there is neither user nor token"]);
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

/// A password typed where it does not belong is refused without being repeated, whatever else is wrong with it.
#[test]
fn a_password_in_the_wrong_place_is_never_repeated() {
    const PASSWORD: &str = "S3cret-Lab!#%&7";
    let bmc = |fields: &str| {
        let old = GOOD.lines().find(|line| line.starts_with("bmc = ")).unwrap();
        GOOD.replace(old, fields)
    };
    let with = |rest: &str| {
        bmc(&format!("bmc = {{ kind = \"ipmi\", address = \"127.0.2.11\", user = \"u\", {rest} }}"))
    };
    let user = |hash: &str| {
        let old = GOOD.lines().find(|line| line.starts_with("password_hash")).unwrap();
        GOOD.replace(old, hash)
    };
    let cases = [
        with("secret = S3cret-Lab!#%&7"),
        with("secret = \"S3cret-Lab!#%&7"),
        with("secret = 'S3cret-Lab!#%&7"),
        with("secret = \"S3cret-Lab!#%&7\\q\""),
        with("secret = \"S3cret-Lab!#%&7\" secret = 1"),
        with("secret = [\"S3cret-Lab!#%&7\"]"),
        with("secret = { file = \"S3cret-Lab!#%&7\" }"),
        with("secret = \"vault:S3cret-Lab!#%&7\""),
        with("secret = \"file:pw\", password = \"S3cret-Lab!#%&7\""),
        with("secret = \"file:pw\", passwd = \"S3cret-Lab!#%&7\""),
        with("secret = \"cmd:/nonexistent/get S3cret-Lab!#%&7\""),
        bmc("bmc = \"ipmi://admin:S3cret-Lab!#%&7@127.0.2.11\""),
        bmc("bmc = [\"admin\", \"S3cret-Lab!#%&7\"]"),
        bmc(
            "bmc = { kind = \"ipmi\", address = \"admin:S3cret-Lab!#%&7@127.0.2.11\", user = \"u\", secret = \"file:pw\" }",
        ),
        bmc(
            "bmc = { kind = \"ipmi\", address = \"127.0.2.11\", user = \"admin:S3cret-Lab!#%&7\", secret = \"file:pw\" }",
        ),
        bmc(
            "bmc = { kind = \"ipmi://a:S3cret-Lab!#%&7@127.0.2.11\", address = \"127.0.2.11\", user = \"u\", secret = \"file:pw\" }",
        ),
        user("password_hash = \"S3cret-Lab!#%&7\""),
        user("password_hash = [\"S3cret-Lab!#%&7\"]"),
        user("password = \"S3cret-Lab!#%&7\""),
        user("password_hash = \"S3cret-Lab!#%&7"),
        GOOD.replace(
            "[[network]]",
            "[[operator.tokens]]\nname = \"ci\"\nsha256 = \"S3cret-Lab!#%&7\"\n[[network]]",
        ),
        GOOD.replace(
            "[[network]]",
            "[[operator.tokens]]\nname = \"ci\"\ntoken = \"S3cret-Lab!#%&7\"\n[[network]]",
        ),
    ];
    for text in cases {
        assert!(text.contains(PASSWORD), "a case without password: {text}");
        let dir = good();
        fs::write(dir.file("volund.toml"), &text).unwrap();
        let told = faults(&dir, CheckOptions::default());
        assert!(!told.is_empty(), "{text}");
        assert!(!told.contains("S3cret"), "{told}");
    }
}

#[test]
fn kernel_arguments_that_would_be_commands_of_the_boot_script_are_refused_at_the_start() {
    let old = GOOD.lines().find(|line| line.starts_with("args = ")).unwrap();
    for word in ["||", "&&", ";", "#quiet", "a=${net0/mac}"] {
        let args = format!("args = \"quiet {word} shell {{{{ node.name }}}}\"");
        let agent =
            format!("{GOOD}[agent]\nkernel = \"vmlinuz\"\ninitrd = \"initrd.img\"\n{args}\n");
        for text in [GOOD.replace(old, &args), agent] {
            let dir = good();
            fs::write(dir.file("volund.toml"), text).unwrap();
            let told = faults(&dir, CheckOptions::default());
            assert!(told.contains(&format!("kernel arguments hold {word:?}")), "{told}");
        }
    }
    let fine = "args = \"{# || #}a={{ node.name }}b {% if node.bay %}b=$x{% endif %} c||d;e\"";
    let dir = good();
    fs::write(dir.file("volund.toml"), GOOD.replace(old, fine)).unwrap();
    assert_eq!(faults(&dir, CheckOptions::default()), "");
}

#[test]
fn one_thing_in_two_spellings_is_one_thing() {
    let second = |name: &str, mac: &str, address: &str, bmc: &str| {
        format!(
            "{GOOD}[[node]]\nname = \"{name}\"\nmacs = [\"{mac}\"]\naddress = \"{address}\"\n\
             bmc = {{ kind = \"ipmi\", address = \"{bmc}\", port = 6230, user = \"u\", secret = \"file:pw\" }}\n"
        )
    };
    let (mac, address, bmc) = ("9c:8e:99:00:01:02", "127.0.1.12", "127.0.2.12");
    let good = second("bld-002", mac, address, bmc);
    let cases = [
        (good.clone(), ""),
        (second("bld-002", "9C8E.9900.0101", address, bmc), "MAC 9c:8e:99:00:01:01 is already taken by node \"bld-001\""),
        (second("bld-002", "9c8e99000101", address, bmc), "is already taken by node \"bld-001\""),
        (second("bld-002", "9C:8E-9900-0101", address, bmc), "is already taken by node \"bld-001\""),
        (second("bld-002", mac, address, "::ffff:127.0.2.11"), "BMC 127.0.2.11:6230 is already taken by node \"bld-001\""),
        (second("bld-002", mac, "127.0.1.11", bmc), "address 127.0.1.11 is already taken"),
        (second("bld-001", mac, address, bmc), "declared twice"),
        (second("BLD-001", mac, address, bmc), "\"BLD-001\""),
        (second("bld-002", "9c:8e:99:00:01:02\", \"9C-8E-99-00-01-02", address, bmc), "MAC 9c:8e:99:00:01:02 is declared twice"),
        (good.replace("macs = [\"9c:8e:99:00:01:02\"]", "macs = []"), "macs is missing"),
        (good.replace("macs = [\"9c:8e:99:00:01:02\"]", ""), "macs is missing"),
        (good.replace("bay = 1", "bay = 1\nprofiles = []"), "may not have profile \"ram\""),
        (good.replace("nodes = \"bld-001\"", "nodes = \"\""), "the list of nodes is empty"),
        (format!("{good}[[assign]]\nnodes = \"bld-00[1-2]\"\nprofile = \"local\"\n"), "node \"bld-001\" is already assigned"),
        (good.replace("[[network]]", "[[operator.tokens]]\nname = \"ci\"\nsha256 = \"00000000000000000000000000000000000000000000000000000000000000aa\"\n[[operator.tokens]]\nname = \"ci\"\nsha256 = \"00000000000000000000000000000000000000000000000000000000000000bb\"\n[[network]]"), "token \"ci\" is already declared"),
        (good.replace("server = \"127.0.1.1\"", "server = \"127.0.1.1\"\nrouter = \"127.0.1.1\""), ""),
        (good.replace("server = \"127.0.1.1\"", "server = \"127.0.1.1\"\ninterface = \"br0\"").replace("[[node]]\nname = \"bld-002\"", "[[network]]\nname = \"other\"\ninterface = \"br0\"\nsubnet = \"127.0.9.0/24\"\nserver = \"127.0.9.1\"\n[[node]]\nname = \"bld-002\""), "interface br0 already serves another network"),
    ];
    for (text, want) in cases {
        let dir = self::good();
        fs::write(dir.file("volund.toml"), &text).unwrap();
        let told = faults(&dir, CheckOptions::default());
        assert!(
            told.contains(want) && told.is_empty() == want.is_empty(),
            "want {want:?}: {told}\n{text}"
        );
    }
}

#[test]
fn an_empty_list_of_profiles_means_none_and_no_list_means_all() {
    let dir = good();
    let text = GOOD.replace("bay = 1", "bay = 1\nprofiles = []");
    let text = text.split("[[assign]]").next().unwrap().to_owned();
    fs::write(dir.file("volund.toml"), text).unwrap();
    let config = load(&dir.0).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.nodes["bld-001"].profiles, []);
}

#[test]
fn digests_of_a_profiles_files_are_one_each_in_hexadecimal() {
    let (a, b) = ("0a".repeat(32), "0B".repeat(32));
    let cases = [
        (format!("kernel_sha256 = \"{a}\"\ninitrd_sha256 = [\"{b}\"]"), ""),
        (
            format!("initrd_sha256 = [\"{a}\", \"{b}\"]"),
            "initrd_sha256 has 2 digests for 1 initrds; write one for each",
        ),
        (
            "kernel_sha256 = \"0a0a\"".to_owned(),
            "kernel_sha256 is no digest of 64 hexadecimal digits; `sha256sum FILE` prints it",
        ),
        (format!("initrd_sha256 = \"{a}\""), "is of type string; write a list"),
    ];
    for (keys, want) in cases {
        let dir = good();
        let text = GOOD.replace("root = \"ram\"\n", &format!("root = \"ram\"\n{keys}\n"));
        fs::write(dir.file("volund.toml"), text).unwrap();
        let told = faults(&dir, CheckOptions::default());
        assert!(told.contains(want) && told.is_empty() == want.is_empty(), "{keys}: {told}");
        if want.is_empty() {
            let config = load(&dir.0).unwrap_or_else(|faults| panic!("{faults}"));
            let Boots::Linux(linux) = &config.profiles["ram"].boots else { panic!() };
            assert_eq!(
                (linux.kernel_sha256, &*linux.initrd_sha256),
                (Some([10; 32]), &[[11; 32]][..])
            );
        }
    }
}

#[test]
fn a_secret_everybody_can_read_is_a_warning() {
    let dir = good();
    fs::set_permissions(dir.file("pw"), fs::Permissions::from_mode(0o644)).unwrap();
    let config = load(&dir.0).unwrap_or_else(|faults| panic!("{faults}"));
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["volund.toml:38:87: node \"bld-001\": bmc: file:pw can be read by everybody; \
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
