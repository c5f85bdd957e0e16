//! The pages: what they show, what their forms do.

use axum::http::{StatusCode, header};
use web::lab::Fault;

use crate::{
    fake::{FakeLab, no_reading, reading},
    support::{Server, between, hidden},
};

#[tokio::test]
async fn the_overview_shows_every_node_where_it_sits() {
    let server = Server::start();
    let page = server.browser().await.get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    for bay in 1..=16 {
        assert!(page.text.contains(&format!("id=\"bay-bld-{bay:03}\"")), "bay {bay}");
    }
    assert!(page.text.contains("id=\"row-oden-1\""));
    let bay = between(&page.text, "<li class=\"bay\" id=\"bay-bld-011\"", "</li>");
    insta::assert_snapshot!(bay, @r##"
    <li class="bay" id="bay-bld-011" data-role="slurm" data-state="switching" data-phase="booting" data-power="on">
    <a class="bay-link" href="/nodes/bld-011" aria-label="Bay 11, bld-011. Switching from inspect to slurm-debian, boot. On. 104 watts, plus or minus 5, measured."><span class="bay-band"><span class="bay-glyph"><svg class="i" aria-hidden="true"><use href="#r-inspect"/></svg><svg class="i arrow" aria-hidden="true"><use href="#i-to"/></svg><svg class="i" aria-hidden="true"><use href="#r-slurm"/></svg></span><b class="bay-no">11</b></span>
    <span class="bay-name">bld-011 <i>on</i></span><span class="bay-role">slurm-debian</span><span class="bay-sub">Boot</span><progress class="prog" max="8" value="5" aria-hidden="true"></progress><span class="bay-seen">DHCP 14:31</span><span class="bay-power"><span class="q" data-kind="measured"><b>104</b><i class="u">W</i><span class="pm">±5</span></span><svg class="wbar" width="100%" height="4" aria-hidden="true"><rect class="wbar-bg" width="100%" height="4"/><rect class="wbar-v" width="39.5%" height="4"/><rect class="wbar-m" x="39.5%" width="4.2%" height="4"/></svg></span></a>
    <label class="pick"><input type="checkbox" form="pick" name="node" value="bld-011" disabled><span class="sr">Select bld-011</span></label></li>
    "##);
}

#[tokio::test]
async fn a_missing_reading_is_a_dash_with_its_reason_and_is_named_beside_the_sum() {
    let server = Server::start();
    let page = server.browser().await.get("/").await;
    let figs = between(&page.text, "<dl class=\"figs\"", "</dl>");
    insta::assert_snapshot!(figs, @r##"
    <dl class="figs" id="figs">
    <div><dt>Lab now, blade input</dt><dd><span class="q big" data-kind="measured"><b>1,032</b><i class="u">W</i><span class="pm">±16</span></span><small class="meta">without 4 off, 3 with no such reading</small></dd></div>
    <div><dt>Needs you</dt><dd aria-live="polite"><a class="q big alert" href="#needs"><b>1</b></a></dd></div>
    </dl>
    "##);
    let bay = between(&page.text, "<li class=\"bay\" id=\"bay-bld-008\"", "</li>");
    assert!(bay.contains("<b>–</b>"), "{bay}");
    assert!(bay.contains("the BMC does not answer"), "{bay}");
}

#[tokio::test]
async fn readings_of_different_kinds_never_enter_one_sum() {
    let lab = FakeLab::asgard(3);
    for (name, kind, watts) in
        [("oden-1", "wall input", 500.0), ("oden-2", "wall input", 600.0), ("oden-3", "", 0.0)]
    {
        lab.change(name, |node| {
            node.watts = if kind.is_empty() { no_reading("stale") } else { reading(watts, 0) };
            node.watts.kind = (!kind.is_empty()).then(|| kind.to_owned());
        });
    }
    let server = Server::start_with(lab);
    let page = server.browser().await.get("/").await;
    let figs = between(&page.text, "<dl class=\"figs\"", "</dl>");
    assert!(figs.contains("Lab now, blade input"), "{figs}");
    assert!(figs.contains("<b>1,032</b>"), "{figs}");
    assert!(figs.contains("without 4 off, 4 with no such reading"), "{figs}");
}

#[tokio::test]
async fn what_is_held_needs_a_person_and_says_reason_and_remedy() {
    let server = Server::start();
    let browser = server.browser().await;
    let needs = browser.get("/").await.text;
    let needs = between(&needs, "<section class=\"card\" id=\"needs\"", "</section>");
    insta::assert_snapshot!(needs, @r##"
    <section class="card" id="needs"><h2>Needs you</h2><ul class="needs"><li data-level="held"><span class="n-i"><svg class="i" aria-hidden="true"><use href="#r-held"/></svg></span><div><b><a href="/nodes/bld-016">bld-016</a> is held</b> <span class="meta">bay 16, since 14:26</span>
    <p>No DHCP request came within 8 min after power on. Reseat the blade, or check switch 1 port 16.</p></div></li><li data-level="warn"><span class="n-i"><svg class="i" aria-hidden="true"><use href="#i-warn"/></svg></span><div><b><a href="/nodes/bld-008">bld-008</a> has trouble with its BMC</b> <span class="meta">bay 8, 192.0.2.31:623</span>
    <p>No answer since 14:28; asked 3 times in 20 s. </p></div></li></ul></section>
    "##);
    let page = browser.get("/nodes/bld-016").await.text;
    assert!(page.contains("No DHCP request came within 8 min after power on."));
    assert!(page.contains("Reseat the blade, or check switch 1 port 16."));
}

#[tokio::test]
async fn a_lab_without_nodes_says_so() {
    let lab = FakeLab::asgard(0);
    lab.with(|world| {
        world.nodes.clear();
        world.enclosures.clear();
    });
    let server = Server::start_with(lab);
    let page = server.browser().await.get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("No node is configured yet"));
    assert!(page.text.contains("no node is configured"));
}

#[tokio::test]
async fn two_nodes_in_one_bay_are_both_shown() {
    let lab = FakeLab::asgard(0);
    lab.change("bld-003", |node| node.bay = Some(2));
    lab.change("bld-004", |node| node.bay = Some(99));
    let server = Server::start_with(lab);
    let page = server.browser().await.get("/").await.text;
    assert!(page.contains("id=\"bay-bld-002\""));
    assert!(page.contains("id=\"row-bld-003\""));
    assert!(page.contains("id=\"row-bld-004\""));
}

#[tokio::test]
async fn a_nodes_page_shows_its_phases_with_the_time_each_took() {
    let server = Server::start();
    let page = server.browser().await.get("/nodes/bld-011").await.text;
    let phases = between(&page, "<div id=\"phases\"", "</div>");
    insta::assert_snapshot!(phases, @r##"<div id="phases" data-phase="booting"><ol class="phases" data-role="slurm" aria-label="Phases of the open or last switch"><li data-k="done"><svg class="i" aria-hidden="true"><use href="#i-check"/></svg><b>Check guards</b><small>1 s</small></li><li data-k="done"><svg class="i" aria-hidden="true"><use href="#i-check"/></svg><b>Power off</b><small>2 min 22 s</small></li><li data-k="done"><svg class="i" aria-hidden="true"><use href="#i-check"/></svg><b>Set boot</b><small>1 s</small></li><li data-k="done"><svg class="i" aria-hidden="true"><use href="#i-check"/></svg><b>Power on</b><small>2 s</small></li><li data-k="now" aria-current="step"><svg class="i" aria-hidden="true"><use href="#i-run"/></svg><b>Boot</b><small>until 14:37</small></li><li data-k="wait"><b>Start system</b></li><li data-k="wait"><b>Verify</b></li><li data-k="wait"><b>Done</b></li></ol><p class="now"><svg class="i" aria-hidden="true"><use href="#i-run"/></svg><span>Waits for DHCP, loader, script and kernel. </span></p></div>"##);
}

#[tokio::test]
async fn a_nodes_page_has_all_its_parts() {
    let server = Server::start();
    let page = server.browser().await.get("/nodes/bld-011").await.text;
    for id in ["n-head", "phases", "flight", "power", "become", "history", "facts"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("104 W ±5 % (DCMI, blade input)"));
    assert!(page.contains("VLDSAS1101"));
    assert!(page.contains("DHCP DISCOVER from x86 BIOS (0)"));
    assert!(page.contains("class=\"measured\""));
    assert!(page.contains("1 gap"));
}

#[tokio::test]
async fn an_unknown_node_is_a_page_that_says_so() {
    let server = Server::start();
    let page = server.browser().await.get("/nodes/bld-999").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert!(page.text.contains("no node is called"));
    assert!(page.text.contains("<html"));
}

#[tokio::test]
async fn a_lab_that_does_not_answer_is_a_page_that_says_so() {
    let server = Server::start();
    let browser = server.browser().await;
    server.lab.world.lock().unwrap().fault = Some(Fault::Unavailable("no answer".to_owned()));
    for path in ["/", "/nodes/bld-011", "/switch"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(page.text.contains("<b>no answer</b>"), "{path}");
    }
}

#[tokio::test]
async fn from_the_nodes_page_a_switch_is_two_clicks() {
    let server = Server::start();
    let browser = server.browser().await;
    let page = browser.get("/nodes/bld-014").await.text;
    let link = "href=\"/switch?node=bld-014&#38;profile=local\"";
    assert!(page.contains(link), "{}", between(&page, "id=\"become\"", "</section>"));
    let plan = browser.get("/switch?node=bld-014&profile=local").await;
    assert_eq!(plan.status, StatusCode::OK);
    assert!(plan.text.contains(">Switch bld-014 to local</button>"));
    assert!(plan.text.contains("volund switch bld-014 local"));
    let hash = hidden(&plan.text, "confirm");
    let form = format!("node=bld-014&profile=local&confirm={hash}");
    let done = browser.post("/switch", &form).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(done.headers[header::LOCATION], "/nodes/bld-014");
    let orders = server.lab.world.lock().unwrap().orders.clone();
    assert_eq!(orders, ["smith switches bld-014 to local"]);
    let after = browser.get("/nodes/bld-014").await.text;
    assert!(after.contains("Switch of 1 node to local has started."));
    assert!(!browser.get("/nodes/bld-014").await.text.contains("has started"), "said once");
}

#[tokio::test]
async fn a_button_that_stops_running_work_says_so() {
    let server = Server::start();
    let browser = server.browser().await;
    let plan = browser.get("/switch?node=bld-002&node=bld-014&nodes=bld-015&profile=local").await;
    let button = between(&plan.text, "<button class=\"btn primary danger\"", "</button>");
    assert!(button.ends_with(">Stop what runs on 2 nodes, switch 3 to local</button>"), "{button}");
    assert!(plan.text.contains("volund switch bld-[002,014-015] local"));
}

#[tokio::test]
async fn a_plan_the_world_has_overtaken_is_shown_anew_and_not_carried_out() {
    let server = Server::start();
    let browser = server.browser().await;
    let plan = browser.get("/switch?node=bld-014&profile=local").await;
    let hash = hidden(&plan.text, "confirm");
    server.lab.change("bld-014", |node| node.power = api::PowerState::On);
    let form = format!("node=bld-014&profile=local&confirm={hash}");
    let answer = browser.post("/switch", &form).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.text.contains("no longer what was confirmed"));
    assert_ne!(hidden(&answer.text, "confirm"), hash, "the new plan can be confirmed");
    assert!(server.lab.world.lock().unwrap().orders.is_empty());
}

#[tokio::test]
async fn a_blocked_node_says_why_and_the_button_is_off() {
    let server = Server::start();
    let browser = server.browser().await;
    let why = "protected: two disks to pull; remove the protection in the configuration";
    server.lab.with(|world| world.blocked.insert("bld-007".to_owned(), vec![why.to_owned()]));
    let plan = browser.get("/switch?node=bld-007&node=bld-014&profile=local").await.text;
    assert!(plan.contains(why));
    let apply = between(&plan, "<form class=\"apply\"", "</form>");
    assert!(apply.contains("id=\"apply\" disabled"), "{apply}");
    assert!(apply.contains("Blocked: bld-007."), "{apply}");
    assert!(plan.contains("href=\"/switch?node=bld-014&#38;profile=local\">Take bld-007 out</a>"));
}

#[tokio::test]
async fn a_list_or_profile_that_is_wrong_is_refused_on_the_page() {
    let server = Server::start();
    let browser = server.browser().await;
    let cases = [
        ("/switch?nodes=bld-%5B003&profile=local", "bracket without its partner"),
        ("/switch?node=bld-003&profile=nope", "no profile is called"),
    ];
    for (path, want) in cases {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        assert!(page.text.contains(want), "{path}");
        assert!(!page.text.contains("id=\"apply\""), "{path}");
    }
    let page = browser.get("/switch?node=bld-999&profile=local").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn switching_on_is_one_click_and_shows_what_was_read_back() {
    let server = Server::start();
    let browser = server.browser().await;
    let page = browser.get("/nodes/bld-014").await.text;
    assert!(page.contains("id=\"power-on\"") && !page.contains("id=\"power-off\""));
    let answer = browser.post("/nodes/bld-014/power", "verb=on").await;
    assert_eq!(answer.headers[header::LOCATION], "/nodes/bld-014");
    assert!(browser.get("/nodes/bld-014").await.text.contains("bld-014: power reads on."));
}

#[tokio::test]
async fn cutting_the_power_asks_first_and_is_refused_without() {
    let server = Server::start();
    let browser = server.browser().await;
    let ask = browser.get("/nodes/bld-002/power?verb=off").await;
    assert!(ask.text.contains("Cut the power of bld-002?"));
    assert!(ask.text.contains("Keep it running"));
    let bare = browser.post("/nodes/bld-002/power", "verb=off").await;
    assert_eq!(bare.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(server.lab.world.lock().unwrap().orders.is_empty());
    let done = browser.post("/nodes/bld-002/power", "verb=off&confirmed=yes").await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    let orders = server.lab.world.lock().unwrap().orders.clone();
    assert_eq!(orders, ["smith powers bld-002 Off"]);
    let odd = browser.post("/nodes/bld-002/power", "verb=explode").await;
    assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_silent_bmc_takes_the_power_verbs_away_and_says_why() {
    let server = Server::start();
    let page = server.browser().await.get("/nodes/bld-008").await.text;
    assert!(page.contains("Power verbs are off while the BMC has trouble: no answer since 14:28"));
    assert!(!page.contains("id=\"power-on\""));
}

#[tokio::test]
async fn the_boots_of_a_node_are_listed_and_each_has_its_timeline_and_its_doctor() {
    let server = Server::start();
    let browser = server.browser().await;
    let list = browser.get("/nodes/bld-011/boots").await;
    assert_eq!(list.status, StatusCode::OK);
    let table = between(&list.text, "<tbody>", "</tbody>");
    insta::assert_snapshot!(table, @r##"<tbody><tr><td><a href="/nodes/bld-011/boots/1797085905000">14:31:45</a></td><td class="num">12 s</td><td><span class="bad-t">Failed after kernel.</span><br><span class="meta">It fetched its kernel whole, and nothing came after it.</span></td><td>Firmware DHCP 2 s · Script –</td><td><a href="/api/v1/nodes/bld-011/boots/1797085905000/pcap">pcap</a></td></tr></tbody>"##);
    let href = between(table, "/nodes/bld-011/boots/", "\"");
    let page = browser.get(href.trim_end_matches('"')).await;
    assert_eq!(page.status, StatusCode::OK);
    for text in [
        "It fetched its kernel whole, and nothing came after it.",
        "Look at its console.",
        "HTTP is not in it",
        "+0.0 s",
    ] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    let empty = browser.get("/nodes/bld-002/boots").await.text;
    assert!(empty.contains("No boot seen yet"));
    for path in ["/nodes/bld-011/boots/1", "/nodes/bld-011/boots/last", "/nodes/nobody/boots"] {
        assert_eq!(browser.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn the_node_page_says_what_the_doctor_says_above_the_timeline() {
    let server = Server::start();
    let page = server.browser().await.get("/nodes/bld-011").await.text;
    let flight = between(&page, "<section class=\"card\" id=\"flight\"", "</section>");
    let (said, _timeline) = flight.split_once("<ol").unwrap();
    insta::assert_snapshot!(said, @r##"<section class="card" id="flight"><header class="card-h"><h2>Boot flight recorder</h2><span class="grow"></span><span class="meta">last boot, first seen 14:31:45</span><a href="/nodes/bld-011/boots">All boots</a></header><p class="doctor" data-level="warn"><span class="n-i"><svg class="i" aria-hidden="true"><use href="#i-warn"/></svg></span><span><b>It fetched its kernel whole, and nothing came after it.</b> Look at its console. <span class="meta">possible</span></span></p>"##);
}
