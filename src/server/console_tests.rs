//! Choices at a console, put to a running engine.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use model::{MacAddr, UnixMillis, boot::BootTable};
use profiles::world::now;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::server::{Ground, specs};

const CONFIG: &str = r#"
schema = 1
[lab]
name = "lab"
state_dir = "STATE"
[operator]
listen = "127.0.0.1:0"
[[network]]
name = "boot"
subnet = "127.0.1.0/24"
server = "127.0.1.1"
dhcp_port = 0
tftp_port = 0
http_port = 0
[loaders]
dir = "."
[profile.ram]
kind = "linux"
root = "ram"
kernel = "vmlinuz"
args = "volund.ticket={{ volund.ticket }}"
[profile.install]
kind = "linux"
root = "installer"
kernel = "vmlinuz"
args = "volund.ticket={{ volund.ticket }}"
[profile.other]
kind = "linux"
root = "ram"
kernel = "vmlinuz"
args = "volund.ticket={{ volund.ticket }}"
"#;

/// An engine with two nodes, of which the second is protected; neither has a BMC that answers.
struct Bench {
    dir: PathBuf,
    engine: EngineHandle,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
    _ground: Ground,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.cancel();
        fs::remove_dir_all(&self.dir).ok();
    }
}

impl Bench {
    async fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("volund-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        for file in ["undionly.kpxe", "snponly.efi", "vmlinuz"] {
            fs::write(dir.join(file), "").unwrap();
        }
        fs::write(dir.join("pw"), "s3cret\n").unwrap();
        fs::set_permissions(dir.join("pw"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut text = CONFIG.replace("STATE", &dir.join("state").display().to_string());
        for (number, protect) in [(1, ""), (2, "protect = { reason = \"somebody works on it\" }\n")]
        {
            text.push_str(&format!(
                "[[node]]\nname = \"bld-00{number}\"\nmacs = [\"9c-8e-99-00-0{number}-01\"]\n{protect}\
                 address = \"127.0.1.1{number}\"\nprofiles = [\"local\", \"ram\", \"install\"]\n\
                 bmc = {{ kind = \"ipmi\", address = \"127.0.2.1{number}\", user = \"volund\", \
                 secret = \"file:pw\" }}\n"
            ));
        }
        fs::write(dir.join("volund.toml"), text).unwrap();
        let config = crate::config::load(&dir).unwrap_or_else(|faults| panic!("{faults}"));
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        let ground = Ground::lay(config, &mut tasks).await.unwrap();
        let boards = Arc::new(ground.boards().unwrap());
        let http = [("boot".to_owned(), "127.0.1.1:80".parse().unwrap())].into();
        let templates = specs::templates(&ground.config, &http).unwrap();
        let table = BootTable::default();
        let engine = ground.start_engine(&templates, table, &boards, &mut tasks, &stop).await;
        let engine = engine.unwrap();
        let known = async {
            while engine.states().len() < 2 {
                tokio::task::yield_now().await;
            }
        };
        let bound = Duration::from_secs(20);
        tokio::time::timeout(bound, known).await.expect("the engine never told of its nodes");
        Self { dir, engine, stop, _tasks: tasks, _ground: ground }
    }

    fn console(&self, profiles: bool) -> Console {
        let rules = Menu {
            timeout_s: 5,
            shell: false,
            inspect: false,
            profiles,
            netboot_xyz: None,
            memtest: None,
        };
        Console::new(Some(rules), self.engine.clone())
    }
}

fn ask(number: u8, begun: UnixMillis) -> BootAsk {
    BootAsk {
        node: format!("bld-00{number}").parse().unwrap(),
        mac: MacAddr([0x9c, 0x8e, 0x99, 0, number, 1]),
        from: format!("127.0.1.1{number}").parse().unwrap(),
        attempt: AttemptId(begun),
        at: now(),
    }
}

async fn refused(console: &Console, ask: BootAsk, profile: &str, want: &str) {
    let command = format!("volund switch {} {profile}", ask.node);
    let answer = console.choose(ask, profile.parse().unwrap()).await;
    let BootAnswer::Local { why } = &answer else { panic!("{answer:?}") };
    assert!(why.contains(want) && why.ends_with(&command), "{why}");
}

#[tokio::test]
async fn what_must_not_be_chosen_is_refused_with_the_command_of_an_operator() {
    let bench = Bench::new("console-refuses").await;
    let (open, shut) = (bench.console(true), bench.console(false));
    let fresh = now();
    let none = Console::new(None, bench.engine.clone());
    refused(&none, ask(1, fresh), "ram", "no menu is configured").await;
    refused(&shut, ask(1, fresh), "ram", "[menu] does not allow it").await;
    refused(&open, ask(1, fresh), "install", "an installer is never started").await;
    refused(&open, ask(1, fresh), "local", "[menu] does not allow it").await;
    refused(&open, ask(1, fresh), "gone", "no such profile").await;
    refused(&open, ask(1, fresh), "other", "may not become other").await;
    refused(&open, ask(2, fresh), "ram", "is protected").await;
    let foreign = BootAsk { from: "127.0.1.99".parse().unwrap(), ..ask(1, fresh) };
    refused(&open, foreign, "ram", "an address that is not its own").await;
    let hour = Duration::from_secs(3_600);
    let old = BootAsk { at: fresh.plus(hour), ..ask(1, fresh) };
    refused(&open, old, "ram", "this boot is over").await;
    let node = "bld-001".parse().unwrap();
    assert!(bench.engine.state(&node).unwrap().switch.is_none(), "nothing was begun");
}

#[tokio::test]
async fn what_may_be_chosen_becomes_a_wish_of_that_console_once_in_a_boot() {
    let bench = Bench::new("console-orders").await;
    let (console, fresh) = (bench.console(true), now());
    let answer = console.choose(ask(1, fresh), "ram".parse().unwrap()).await;
    let why = "ram was ordered from this console".to_owned();
    assert_eq!(answer, BootAnswer::Wait { why });
    let state = bench.engine.state(&"bld-001".parse().unwrap()).unwrap();
    let switch = state.switch.unwrap();
    assert_eq!((switch.to.name.as_str(), switch.by.as_str()), ("ram", "console at 127.0.1.11"));
    refused(&console, ask(1, fresh), "ram", "already").await;
}
