//! What is learnt, kept, forgotten, and put into the boot table.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use inventory::NewFacts;
use model::{
    MacAddr,
    boot::{BootEntry, BootIntent, BootTable},
};
use tokio::task::JoinSet;

use super::*;

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
dir = "ipxe"
bios = ["undionly.kpxe", "ipxe.pxe"]
"#;

/// A lab of three nodes of one model: the third has a loader of its own.
struct Bench {
    dir: PathBuf,
    config: Arc<Config>,
    table: Table,
    store: Store,
    writer: Writer,
    _tasks: JoinSet<()>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).ok();
    }
}

impl Bench {
    async fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("volund-{name}-{}", std::process::id()));
        fs::create_dir_all(dir.join("ipxe")).unwrap();
        for file in ["undionly.kpxe", "ipxe.pxe", "snponly.efi", "own.kpxe"] {
            fs::write(dir.join("ipxe").join(file), "").unwrap();
        }
        fs::write(dir.join("pw"), "s3cret\n").unwrap();
        fs::set_permissions(dir.join("pw"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut text = CONFIG.replace("STATE", &dir.join("state").display().to_string());
        for number in 1..=3 {
            let own = if number == 3 { "loaders = { bios = \"own.kpxe\" }\n" } else { "" };
            text.push_str(&format!(
                "[[node]]\nname = \"bld-00{number}\"\nmacs = [\"9c-8e-99-00-0{number}-01\"]\n{own}\
                 address = \"127.0.1.1{number}\"\nbmc = {{ kind = \"ipmi\", \
                 address = \"127.0.2.1{number}\", user = \"volund\", secret = \"file:pw\" }}\n"
            ));
        }
        fs::write(dir.join("volund.toml"), text).unwrap();
        let config = crate::config::load(&dir).unwrap_or_else(|faults| panic!("{faults}"));
        let (config, mut tasks) = (Arc::new(config), JoinSet::new());
        let store = Store::open(&dir.join("book.db").display().to_string()).await.unwrap();
        let writer = Writer::start(&store, &mut tasks).await.unwrap();
        let table = Table::default();
        let mut first = BootTable::default();
        for node in config.nodes.values() {
            let facts = NewFacts {
                node: node.name.clone(),
                at: UnixMillis(1),
                json: "{\"product\":\"HP ProLiant BL460c Gen8\"}".to_owned(),
                raw_json: "{}".to_owned(),
            };
            writer.submit(vec![Record::Facts(facts)]).await.unwrap();
            first.insert(BootEntry {
                node: node.name.clone(),
                macs: vec![MacAddr([2, 0, 0, 0, 0, 1])],
                address: node.address.unwrap(),
                intent: BootIntent::Ask,
                attempt: None,
                traits: node.traits.clone(),
            });
        }
        table.current.store(Arc::new(first));
        Self { dir, config, table, store, writer, _tasks: tasks }
    }

    /// As at a start of volund.
    async fn start(&self) -> Learning {
        let (config, table) = (Arc::clone(&self.config), self.table.clone());
        Learning::begin(config, table, self.store.clone(), self.writer.clone()).await.unwrap()
    }

    fn node(&self, number: u8) -> &Node {
        &self.config.nodes[format!("bld-00{number}").as_str()]
    }

    /// The loader and the way to the disk in the boot table.
    fn boots(&self, number: u8) -> (Option<String>, LocalBoot) {
        let entry = self.table.current.load().by_node[&self.node(number).name].clone();
        (entry.traits.loaders.get(&ClientArch(0)).cloned(), entry.traits.local)
    }

    /// A node is seen doing this, a second apart.
    async fn see(&self, learning: &Learning, number: u8, sightings: &[Sighted]) {
        let node = self.node(number);
        let specs = crate::server::specs::specs(&self.config);
        let state = NodeState::new(specs.nodes[&node.name].clone());
        for (second, what) in (1..).zip(sightings) {
            let at = UnixMillis(second * 1_000);
            let lessons = learning
                .learn(node, &state, |method, open, school| method.saw(open, school, what, at));
            learning.note(node, &lessons, at).await;
        }
    }
}

fn discover(client: &str) -> Sighted {
    let (kind, client) = (model::sighting::DhcpKind::Discover, client.to_owned());
    Sighted::DhcpIn { kind, xid: 1, client, relay: None, proxy: false }
}

fn fetched(file: &str) -> Sighted {
    Sighted::TftpDone { file: file.to_owned(), bytes: 1, millis: 1 }
}

#[tokio::test]
async fn what_a_node_taught_holds_for_its_model_and_after_a_restart_until_it_is_forgotten() {
    let bench = Bench::new("learns").await;
    let learning = bench.start().await;
    let boot = [fetched("undionly.kpxe"), discover("x86 BIOS (0)")];
    bench.see(&learning, 1, &boot).await;
    assert_eq!(bench.boots(1), (Some("ipxe.pxe".to_owned()), LocalBoot::ByFirmware));
    assert_eq!(bench.boots(2).0, None, "nothing has worked yet");
    bench.see(&learning, 1, &[fetched("ipxe.pxe"), discover("iPXE")]).await;
    let learnt = Some("ipxe.pxe".to_owned());
    assert_eq!([1, 2].map(|number| bench.boots(number).0), [learnt.clone(), learnt.clone()]);
    assert_eq!(bench.boots(3).0.as_deref(), Some("own.kpxe"), "configured");
    let sources = [1, 2, 3].map(|number| learning.ways(bench.node(number)).remove(0).source);
    assert_eq!(sources, [Source::Learnt, Source::OfModel, Source::Configured]);
    assert_eq!(learning.ways(bench.node(1))[0].failed, ["undionly.kpxe"]);

    let again = bench.start().await;
    assert_eq!(again.lock().nodes, learning.lock().nodes);
    assert_eq!(again.lock().models, learning.lock().models);

    assert!(again.forget(&bench.node(1).name).await);
    assert!(!again.forget(&bench.node(1).name).await, "there is nothing left");
    assert_eq!([1, 2].map(|number| bench.boots(number).0), [None, None]);
    assert!(bench.start().await.lock().nodes.is_empty());
}

#[tokio::test]
async fn changes_of_the_table_from_two_sides_at_once_are_not_lost() {
    let bench = Bench::new("races").await;
    let entries = bench.table.current.load().by_node.clone();
    std::thread::scope(|scope| {
        for node in entries.keys() {
            let table = bench.table.clone();
            scope.spawn(move || {
                for delay in 1..=500 {
                    table.set_traits(node, |old| BootTraits { answer_delay_ms: delay, ..old });
                }
            });
        }
    });
    let table = bench.table.current.load();
    assert!(table.by_node.values().all(|entry| entry.traits.answer_delay_ms == 500));
}
