//! iPXE scripts: the twin's interpreter on anything, and on what volund writes.

use std::net::Ipv4Addr;

use model::{
    BootAnswer, BootScript, MacAddr,
    boot::{BootNetwork, DhcpMode, LocalBoot, Menu, MenuAct, MenuItem},
};
use pxe_proto::{ipxe::script::script as write_script, path, texts::Asker};
use twin::ipxe::{Action, Handover, Script, State};

use super::input::Input;

/// More actions than any script has within the interpreter's own bound.
const MOST_ACTIONS: usize = 25_000;

/// The first byte says which fetches fail, the rest is the script.
pub(super) fn script(data: &[u8]) {
    let mut input = Input(data.get(..4_096).unwrap_or(data));
    let luck = input.u8();
    let Ok(mut script) = Script::parse(&String::from_utf8_lossy(input.0)) else { return };
    let mut state = settings();
    let mut outcome = Ok(());
    for turn in 0..MOST_ACTIONS {
        match script.next(&mut state, outcome) {
            Action::Boot(_) | Action::Reboot | Action::PowerOff | Action::Hang | Action::End(_) => {
                return;
            }
            Action::Print(_)
            | Action::Fetch { .. }
            | Action::Chain { .. }
            | Action::Sanboot { .. }
            | Action::Sleep { .. } => {
                let lucky = luck >> (turn % 8) & 1 == 0;
                outcome = if lucky { Ok(()) } else { Err("no luck".to_owned()) };
            }
        }
    }
    panic!("the script never ends");
}

fn settings() -> State {
    let mut state = State::default();
    for (name, value) in [("mac", "02:5a:10:00:00:03"), ("ip", "192.0.2.73"), ("platform", "efi")] {
        state.settings.set(name, value);
    }
    state
}

/// An answer out of texts of a profile or a reason: the script does what the answer says and nothing else.
pub(super) fn written(data: &[u8]) {
    let mut input = Input(data);
    let kind = input.u8();
    let (title, kernel, args) = (input.text(), format!("/{}", input.text()), input.text());
    let initrds: Vec<String> = (0..kind % 4).map(|_| format!("/{}", input.text())).collect();
    let network = network();
    let url = |path: &String| path::url(network.http, path);
    let wanted = Handover {
        kernel: url(&kernel),
        args: args
            .split_ascii_whitespace()
            .map(str::to_owned)
            .chain(
                (!args.split_ascii_whitespace().any(|word| word.starts_with("BOOTIF=")))
                    .then(|| "BOOTIF=01-02-5a-10-00-00-03".to_owned()),
            )
            .chain((0..initrds.len()).map(|index| format!("initrd=initrd{index}")))
            .collect::<Vec<_>>()
            .join(" "),
        initrds: initrds.iter().map(url).collect(),
    };
    let distinct = !wanted.initrds.contains(&wanted.kernel);
    let boot = BootScript { title: title.clone(), kernel, initrds, args, ticket: None };
    if let Some(last) = last_action(&BootAnswer::Kernel(boot), &network).filter(|_| distinct) {
        assert_eq!(last, Action::Boot(wanted));
    }
    let local = last_action(&BootAnswer::Local { why: title.clone() }, &network);
    assert_eq!(local, Some(Action::End(Err("exit 1".to_owned()))));
    let wait = last_action(&BootAnswer::Wait { why: title }, &network);
    let chained = "http://192.0.2.10:8067/boot.ipxe?mac=02-5a-10-00-00-03";
    assert_eq!(wait, Some(Action::Chain { url: chained.to_owned(), replace: true }));
}

pub(super) fn network() -> BootNetwork {
    BootNetwork {
        name: "boot".to_owned(),
        mode: DhcpMode::Reserved,
        unknown_lease_s: 120,
        options: vec![],
        subnet: Ipv4Addr::new(192, 0, 2, 0),
        prefix: 24,
        server: Ipv4Addr::new(192, 0, 2, 10),
        router: None,
        dns: vec![],
        lease_s: 600,
        http: "192.0.2.10:8067".parse().expect("a literal"),
    }
}

/// The first thing the script does that is more than to print, fetch or sleep; `None` when the answer is refused.
fn last_action(answer: &BootAnswer, network: &BootNetwork) -> Option<Action> {
    let node = "bld-003".parse().expect("a good name");
    let items = ["", "${mac} || reboot", "# ;"].map(|text| MenuItem {
        label: text.to_owned(),
        does: MenuAct::Chain { url: text.to_owned() },
    });
    let menu = Menu { timeout_s: 5, items: items.to_vec() };
    let mac = MacAddr([2, 0x5a, 0x10, 0, 0, 3]);
    let asker = Asker { node: &node, mac, local: LocalBoot::ByFirmware, menu: Some(&menu) };
    let text = write_script(answer, network, &asker).ok()?;
    let mut script = Script::parse(&text).expect("our scripts begin with the magic");
    let mut state = settings();
    for _ in 0..1_000 {
        match script.next(&mut state, Ok(())) {
            Action::Print(_) | Action::Fetch { .. } | Action::Sleep { .. } => (),
            other => return Some(other),
        }
    }
    panic!("it never comes to the point:\n{text}");
}
