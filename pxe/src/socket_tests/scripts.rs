//! Texts of all loaders, and choices at the console, over HTTP.

use std::sync::{Arc, Mutex};

use model::{
    ProfileName,
    boot::{LocalBoot, Menu, MenuAct, MenuItem},
};

use super::{http::get, *};

fn text(lab: &Lab, path: &str) -> String {
    let answer = get(lab, NODE, path);
    assert_eq!(answer.status, 200, "{path}");
    String::from_utf8(answer.body).unwrap()
}

fn offer(lab: &Lab, profile: &str) {
    let item =
        MenuItem { label: profile.to_owned(), does: MenuAct::Profile(profile.parse().unwrap()) };
    let menu = Menu { timeout_s: 5, items: vec![item] };
    lab.change_entry(|entry| entry.traits.menu = Some(menu));
}

/// Answers every choice with this; gives what was chosen.
fn take_choices(lab: &mut Lab, answer: BootAnswer) -> Arc<Mutex<Vec<(BootAsk, ProfileName)>>> {
    let chosen = Arc::new(Mutex::new(vec![]));
    let (mut calls, kept) = (lab.calls.take().unwrap(), Arc::clone(&chosen));
    tokio::spawn(async move {
        while let Some(call) = calls.recv().await {
            if let BootCall::Choose { ask, profile, reply } = call {
                kept.lock().unwrap().push((ask, profile));
                reply.send(answer.clone()).ok();
            }
        }
    });
    chosen
}

#[tokio::test(flavor = "multi_thread")]
async fn every_loader_gets_the_same_answer_in_its_own_words() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    let mac = MAC.hyphenated();
    let script = text(&lab, "/boot.ipxe");
    let grub = text(&lab, "/grub/grub.cfg");
    let pxelinux = text(&lab, &format!("/pxelinux.cfg/01-{mac}"));
    for text in [&script, &grub, &pxelinux] {
        assert!(text.contains("i/inspect/vmlinuz") && text.contains("i/inspect/initrd"), "{text}");
        assert!(text.contains(&format!("BOOTIF=01-{mac}")), "{text}");
    }
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|ask| ask.attempt == asked[0].attempt), "one attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ipxe_runs_by_itself_asks_nobody_and_leads_to_the_script() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    let script = text(&lab, "/autoexec.ipxe");
    let url = format!("http://{}/boot.ipxe?mac={}", lab.bound.http, MAC.hyphenated());
    assert!(script.contains(&format!("chain --replace --autofree {url}")), "{script}");
    assert_eq!(asked.lock().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_goes_on_by_finding_nothing_finds_no_script_when_nothing_is_ordered() {
    let mut lab = Lab::start();
    lab.change_entry(|entry| {
        entry.traits.local = LocalBoot::NotFound;
        entry.intent = BootIntent::Local;
    });
    lab.answer_with(kernel());
    assert_eq!(get(&lab, NODE, "/boot.ipxe").status, 404);
    lab.change_entry(|entry| entry.intent = BootIntent::Ask);
    assert_eq!(get(&lab, NODE, "/boot.ipxe").status, 200, "an order is an order");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_menu_stands_before_the_local_boot_and_not_before_an_order() {
    let mut lab = Lab::start();
    offer(&lab, "inspect");
    lab.change_entry(|entry| entry.intent = BootIntent::Local);
    let script = text(&lab, "/boot.ipxe");
    assert!(script.contains("choose --default default"), "{script}");
    assert!(script.contains("&choose=inspect "), "{script}");
    lab.answer_with(kernel());
    lab.change_entry(|entry| entry.intent = BootIntent::Ask);
    assert!(!text(&lab, "/boot.ipxe").contains("choose"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_is_offered_goes_to_the_engine_and_is_told() {
    let mut lab = Lab::start();
    offer(&lab, "inspect");
    let chosen = take_choices(&mut lab, BootAnswer::Wait { why: "ordered".to_owned() });
    let script = text(&lab, "/boot.ipxe?choose=inspect");
    assert!(script.contains("waiting: ordered") && !script.contains("choose"), "{script}");
    lab.until("the choice", |what| *what == Sighted::Menu { choice: "inspect".to_owned() }).await;
    let chosen = chosen.lock().unwrap();
    let [(ask, profile)] = chosen.as_slice() else { panic!("one choice: {chosen:?}") };
    assert_eq!((ask.mac, ask.from, profile.as_str()), (MAC, NODE, "inspect"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_choice_says_why_and_boots_the_disk() {
    let mut lab = Lab::start();
    offer(&lab, "inspect");
    let why = "it is protected\nvolund switch bld-003 inspect".to_owned();
    take_choices(&mut lab, BootAnswer::Local { why });
    let script = text(&lab, "/boot.ipxe?choose=inspect");
    for want in ["it is protected\n", "volund switch bld-003 inspect\n", "sanboot"] {
        assert!(script.contains(want), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_menu_does_not_offer_never_reaches_the_engine() {
    let mut lab = Lab::start();
    let chosen = take_choices(&mut lab, kernel());
    for choice in ["inspect", "INSPECT", "", "..", "a%20b", "local"] {
        let script = text(&lab, &format!("/boot.ipxe?choose={choice}"));
        assert!(script.contains("does not offer"), "{choice}: {script}");
    }
    offer(&lab, "inspect");
    assert!(text(&lab, "/boot.ipxe?choose=install").contains("does not offer"));
    let other = "/boot.ipxe?mac=02-00-00-00-00-99&choose=inspect";
    assert_eq!(get(&lab, NODE, other).status, 404, "another machine's MAC");
    let stranger = Ipv4Addr::new(127, 77, 0, 99);
    assert_eq!(get(&lab, stranger, "/boot.ipxe?choose=inspect").status, 404);
    assert_eq!(chosen.lock().unwrap().len(), 0);
    // An engine that answered with a kernel would not be believed.
    assert!(text(&lab, "/boot.ipxe?choose=inspect").contains("nothing was ordered"));
}
