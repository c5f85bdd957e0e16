//! Names, serials and reasons from machines are text, whatever they contain (case 57).

use api::{NodeView, PhaseEvent};

use crate::{
    fake::{FakeLab, NOW_MS, seen},
    support::Server,
};

const HOSTILE: [&str; 9] = [
    "<img src=x onerror=alert(1)>",
    "node\"; reboot; echo \"",
    "bad\n02:5a:10:00:00:ff 192.0.2.99 forged",
    "bad\r\n\r\nevent: patch\r\ndata: needs",
    "Dan's-server",
    "${{7*7}}  {{ 7*7 }}  %%{{7}}",
    "../../etc/cron.d/x",
    "xn--\u{202e}gnp.exe",
    "</script><script>alert(1)</script><!--",
];

fn poison(node: &mut NodeView, text: &str) {
    node.profile = Some(text.to_owned());
    node.wanted = Some(text.to_owned());
    node.phase.reason = Some(text.to_owned());
    node.phase.remedy = Some(text.to_owned());
    node.phase.name = "held".to_owned();
    node.protected = Some(text.to_owned());
    node.bmc.trouble = Some(text.to_owned());
    node.bmc.address = text.to_owned();
    node.macs = vec![text.to_owned()];
    node.watts.absent = Some(text.to_owned());
    node.watts.value = None;
    node.watts.unit = text.to_owned();
    node.last_sighting = Some(seen(1_000, text, text));
    node.profiles = vec![text.to_owned()];
}

fn lab(text: &str) -> std::sync::Arc<FakeLab> {
    let lab = FakeLab::asgard(1);
    lab.change("bld-011", |node| poison(node, text));
    lab.change("oden-1", |node| {
        poison(node, text);
        node.name = text.to_owned();
    });
    let mut world = lab.world.lock().unwrap();
    world.timelines.insert("bld-011".to_owned(), vec![seen(2_000, text, text)]);
    let event = PhaseEvent {
        switch_id: "01JE11".to_owned(),
        at_ms: NOW_MS,
        profile: text.to_owned(),
        phase: text.to_owned(),
        reason: text.to_owned(),
        by: text.to_owned(),
    };
    world.histories.insert("bld-011".to_owned(), vec![event]);
    let facts = world.facts.get_mut("bld-011").unwrap();
    facts.product = Some(text.to_owned());
    facts.serial = Some(text.to_owned());
    facts.warnings = vec![text.to_owned()];
    facts.disks[0].serial = Some(text.to_owned());
    facts.disks[0].name = text.to_owned();
    facts.dimms[0].slot = text.to_owned();
    facts.nics[0].mac = text.to_owned();
    world.blocked.insert("bld-011".to_owned(), vec![text.to_owned()]);
    drop(world);
    lab
}

/// The tags and attributes a browser would see, without the text between.
fn tags(html: &str) -> Vec<&str> {
    let mut tags: Vec<&str> = Vec::new();
    for piece in html.split('<').skip(1) {
        tags.push(piece.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next().unwrap());
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}

#[tokio::test]
async fn what_machines_say_adds_no_element_and_no_handler() {
    let harmless = Server::start_with(lab("harmless"));
    let harmless = harmless.browser().await;
    for text in HOSTILE {
        let server = Server::start_with(lab(text));
        let browser = server.browser().await;
        for path in ["/", "/nodes/bld-011", "/switch?node=bld-011&profile=local"] {
            let page = browser.get(path).await.text;
            assert_eq!(tags(&page), tags(&harmless.get(path).await.text), "{text:?} on {path}");
            assert!(!page.contains("<img"), "{text:?} on {path}");
            assert!(!page.contains("\"; reboot"), "{text:?} on {path}");
            if text.contains("7*7") {
                assert!(page.contains("{{ 7*7 }}"), "{path} computed a template of a stranger");
            }
        }
    }
}

#[tokio::test]
async fn a_hostile_path_is_text_too() {
    let server = Server::start();
    let browser = server.browser().await;
    for path in ["/nodes/%3Cimg%20src=x%3E", "/%3Cimg%20src=x%3E", "/nodes/..%2f..%2fetc"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(!page.text.contains("<img"), "{path}");
    }
}

#[tokio::test]
async fn what_is_written_into_the_log_in_form_comes_back_as_text() {
    let server = Server::start();
    let form = crate::support::LogInForm::open(&server).await;
    let answer = form.send(&server, "\"><img%20src=x>", "wrong").await;
    assert!(!answer.text.contains("<img"), "{}", answer.text);
    assert!(answer.text.contains("&#34;&#62;&#60;img src=x&#62;"), "{}", answer.text);
}
