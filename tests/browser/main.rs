//! A person at the page: real Chromium against `volund demo`, which is a process of its own.
//!
//! Logs in, presses through to a switch and watches it pass; looks at a lab in many states, on a desk and on a
//! phone, in both themes; does the same without scripts. Pictures go to `target/tmp`, lines that begin with
//! `FIGURE` to the log. Needs the packages chromium and chromium-driver, and nothing beyond the loopback.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panic")]
#![allow(clippy::print_stdout, reason = "figures for the log of CI")]

mod driver;
mod lab;

use std::time::Instant;

use driver::{Browser, DESK, NO_SCRIPT, PHONE, is_missing, wait_for};
use lab::{Demo, wait_power_on};
use serde_json::Value;

/// How wide a page is beyond its window: more than nothing scrolls sideways.
const OVERHANG: &str = "return document.documentElement.scrollWidth - innerWidth";
/// Bays of the first enclosure by the line they stand in.
const ROWS: &str = "
const rows = new Map();
for (const bay of document.querySelectorAll('.encl .bay')) {
  const top = Math.round(bay.getBoundingClientRect().top);
  rows.set(top, (rows.get(top) ?? 0) + 1);
}
return [...rows.values()]";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_browser_a_person_logs_in_switches_a_blade_and_watches_it_pass() {
    if is_missing() {
        return;
    }
    let demo = Demo::start();
    println!(
        "FIGURE demo ready {}, process to welcome {} ms",
        demo.told_ready,
        demo.ready.as_millis()
    );
    let browser = Browser::start(DESK).await;
    log_in(&browser, &demo).await;
    assert_eq!(browser.run(ROWS).await, serde_json::json!([8, 8]), "two rows of eight bays");
    paint_figures(&browser, "overview").await;

    let bmc = demo.bmc("bld-003").await;
    assert_eq!(bmc.power_status().await.unwrap(), bmc::PowerState::Off);
    press_through(&browser).await;
    let pressed = Instant::now();
    let (on, ()) = tokio::join!(wait_power_on(&bmc), browser.press("#apply"));
    let click_to_on = on - pressed;
    println!("FIGURE click to IPMI on {} ms (goal 500 ms)", click_to_on.as_millis());

    let born = browser.run("return performance.timeOrigin").await;
    let done = "return document.getElementById('phases').dataset.phase === 'done'";
    browser.wait_true("the page shows the phase done", done).await;
    check_phases(&browser, &demo).await;
    check_watts(&browser).await;
    check_node_page(&browser).await;
    assert_eq!(browser.run("return performance.timeOrigin").await, born, "never loaded again");
    browser.save_picture("browser-node-done").await;
    check_manners(&browser, &demo).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_browser_a_lab_in_many_states_is_read_at_a_glance() {
    if is_missing() {
        return;
    }
    let demo = Demo::start();
    let browser = Browser::start(DESK).await;
    log_in(&browser, &demo).await;
    demo.switch("bld-005", "install").await;
    demo.intrude("bld-005").await;
    demo.switch("bld-[001-003]", "inspect").await;
    demo.switch("bld-[006,009-012]", "ram").await;
    demo.switch("bld-014", "local").await;
    demo.switch("bld-[004,013]", "install").await;
    for node in ["bld-003", "bld-006", "bld-012", "bld-013", "bld-014"] {
        demo.wait_phase(node, "done").await;
    }
    wait_for("whatever runs has a reading", async || {
        let read = browser.count(".bay [data-kind=measured]").await;
        (read >= 12).then_some(())
    })
    .await;
    demo.switch("bld-007", "inspect").await;
    demo.wait_phase("bld-007", "booting").await;
    let booting = "return document.getElementById('bay-bld-007').dataset.phase === 'booting'";
    browser.wait_true("the bay shows that it boots", booting).await;
    // Loaded again, so that no tint of a change just seen is in the picture of the README.
    browser.reload().await;
    browser.save_picture("browser-overview-light").await;

    assert_eq!(browser.attribute("#bay-bld-005", "data-phase").await, "held");
    let needs = browser.text("#needs").await;
    for part in ["bld-005", "A second machine claimed the ticket", "Find out which machine"] {
        assert!(needs.contains(part), "{part:?} is not in {needs:?}");
    }
    follow(&browser, "#needs a", "#phases").await;
    let head = browser.text("#phases").await;
    assert!(head.contains("A second machine claimed") && head.contains("Find out"), "{head}");
    browser.save_picture("browser-node-held").await;
    browser.press("#theme button").await;
    browser.open(&demo.url).await;
    assert_eq!(browser.attribute("html", "data-theme").await, "dark", "the choice is kept");
    browser.save_picture("browser-overview-dark").await;
    check_manners(&browser, &demo).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_browser_of_a_phone_nothing_scrolls_sideways() {
    if is_missing() {
        return;
    }
    let demo = Demo::start();
    let browser = Browser::start(PHONE).await;
    log_in(&browser, &demo).await;
    demo.switch("bld-[003,007]", "inspect").await;
    demo.switch("bld-005", "install").await;
    demo.intrude("bld-005").await;
    demo.wait_phase("bld-003", "done").await;
    let pages = [
        ("overview", "/"),
        ("node", "/nodes/bld-003"),
        ("held", "/nodes/bld-005"),
        ("plan", "/switch?node=bld-003&node=bld-004&profile=ram"),
        ("cut", "/nodes/bld-003/power?verb=off"),
    ];
    for theme in ["light", "dark"] {
        browser.prefer(theme).await;
        for (name, path) in pages {
            browser.open(&format!("{}{path}", demo.url)).await;
            assert_eq!(browser.run(OVERHANG).await, 0, "{name}, {theme}");
            browser.save_picture(&format!("browser-phone-{name}-{theme}")).await;
            if path == "/" {
                assert_eq!(browser.run(ROWS).await, serde_json::json!([8, 8]), "{name}, {theme}");
            }
        }
    }
    check_manners(&browser, &demo).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_browser_without_scripts_forms_and_links_switch_a_blade() {
    if is_missing() {
        return;
    }
    let demo = Demo::start();
    let browser = Browser::start(NO_SCRIPT).await;
    log_in(&browser, &demo).await;
    assert!(browser.text("#live").await.is_empty(), "no script has run");
    press_through(&browser).await;
    follow(&browser, "#apply", "#phases").await;
    wait_for("the page, loaded again, shows the phase done", async || {
        browser.reload().await;
        (browser.attribute("#phases", "data-phase").await == "done").then_some(())
    })
    .await;
    assert!(browser.text("#facts").await.contains("ProLiant BL460c Gen8"));
    check_manners(&browser, &demo).await;
}

/// Presses, and waits for the page that has `sign`.
async fn follow(browser: &Browser, css: &str, sign: &str) {
    browser.press(css).await;
    wait_for(sign, async || (browser.count(sign).await > 0).then_some(())).await;
}

/// By the form.
async fn log_in(browser: &Browser, demo: &Demo) {
    browser.open(&format!("{}/", demo.url)).await;
    assert!(browser.url().await.starts_with(&format!("{}/login", demo.url)), "sent to the log-in");
    browser.type_into("#user", "operator").await;
    browser.type_into("#password", &demo.password).await;
    browser.press("#log-in").await;
    let home = format!("{}/", demo.url);
    wait_for("the overview, after the log-in", async || {
        if browser.count("#fault").await > 0 {
            panic!("{}", browser.text("#fault").await);
        }
        (browser.url().await == home).then_some(())
    })
    .await;
    assert_eq!(browser.count(".encl .bay").await, 16);
}

/// From the overview to the plan: bay, profile. What will happen stands there before anything does.
async fn press_through(browser: &Browser) {
    follow(browser, "#bay-bld-003 a.bay-link", "#facts").await;
    assert_eq!(browser.text("h1").await, "bld-003");
    assert!(browser.text("#facts").await.contains("Not inspected yet"));
    follow(browser, "#become [href*='profile=inspect']", "#plan").await;
    let plan = browser.text("#plan").await;
    for part in ["bld-003 is off", "switched on", "reports its hardware", "no disk is written"] {
        assert!(plan.contains(part), "{part:?} is not in the plan: {plan}");
    }
    assert!(plan.contains("volund switch bld-003 inspect"), "the same from a shell: {plan}");
    browser.save_picture("browser-plan").await;
}

/// The page passed through the phases in their order, without one of them coming back.
async fn check_phases(browser: &Browser, demo: &Demo) {
    const ORDER: [&str; 7] =
        ["guarding", "arming", "powering-on", "booting", "installing", "verifying", "done"];
    let passed = browser.run("return window.passed").await;
    let names: Vec<&str> =
        passed.as_array().unwrap().iter().map(|p| p["phase"].as_str().unwrap()).collect();
    let places: Vec<usize> =
        names.iter().map(|name| ORDER.iter().position(|known| known == name).unwrap()).collect();
    assert!(places.is_sorted_by(|a, b| a < b), "{names:?}");
    assert!(names.contains(&"booting") && names.last() == Some(&"done"), "{names:?}");
    let shown = passed.as_array().unwrap().last().unwrap()["at"].as_i64().unwrap();
    let node = demo.node("bld-003").await;
    let was = node["history"][0]["at_ms"].as_i64().unwrap();
    println!("FIGURE phases seen {}; done to pixel {} ms", names.join(" "), shown - was);
}

/// A dash with its reason at first, then watts with their margin, by the stream alone.
async fn check_watts(browser: &Browser) {
    const FIGURE: &str = "
const q = document.querySelector('#n-head .q');
return { kind: q.dataset.kind, text: q.textContent, why: q.title }";
    let first = browser.run(FIGURE).await;
    if first["kind"] == "none" {
        assert!(first["text"].as_str().unwrap().starts_with('–'), "{first}");
        assert_ne!(first["why"], "", "a dash says why");
    }
    let then = wait_for("watts beside the blade", async || {
        let figure = browser.run(FIGURE).await;
        (figure["kind"] == "measured").then_some(figure)
    })
    .await;
    let text = then["text"].as_str().unwrap();
    let (watts, margin) = text.split_once("W±").unwrap_or_else(|| panic!("{text:?}"));
    let (watts, margin): (f64, f64) = (watts.parse().unwrap(), margin.parse().unwrap());
    assert!((20.0..400.0).contains(&watts) && margin > 0.0 && margin < watts, "{text}");
    println!("FIGURE blade reads {text}");
}

/// Timeline, facts and history of the boot just watched.
async fn check_node_page(browser: &Browser) {
    let flight = browser.run("return document.getElementById('flight').textContent").await;
    for part in
        ["DHCP DISCOVER", "DHCP ACK", "TFTP sent undionly.kpxe", "HTTP GET", "agent: report"]
    {
        assert!(
            flight.as_str().unwrap().contains(part),
            "{part:?} is not in the timeline: {flight}"
        );
    }
    let facts = browser.text("#facts").await;
    for part in ["ProLiant BL460c Gen8", "Serial", "CPU", "Memory", "9c:8e:99:00:03:01"] {
        assert!(facts.contains(part), "{part:?} is not among the facts: {facts}");
    }
    assert!(browser.text("#history").await.contains("inspect"));
}

async fn paint_figures(browser: &Browser, page: &str) {
    const PAINT: &str = "
const paint = performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
const page = performance.getEntriesByType('navigation')[0];
return paint === undefined ? null
  : { paint: Math.round(paint), bytes: page.decodedBodySize, elements: document.querySelectorAll('*').length }";
    let seen = wait_for("the first paint", async || {
        let seen = browser.run(PAINT).await;
        (seen != Value::Null).then_some(seen)
    })
    .await;
    let Value::Object(seen) = seen else { panic!("{seen}") };
    println!(
        "FIGURE {page} first paint {} ms, {} bytes, {} elements",
        seen["paint"], seen["bytes"], seen["elements"]
    );
    assert!(seen["elements"].as_u64().unwrap() < 1_500, "the page's budget");
}

/// No word in the console, no request to anybody else, nothing the security policy refused, nothing that moved.
async fn check_manners(browser: &Browser, demo: &Demo) {
    let console = browser.console().await;
    assert!(console.is_empty(), "the console says: {console:#?}");
    let asked = browser.asked().await;
    let foreign: Vec<_> = asked
        .iter()
        .filter(|url| {
            !url.starts_with(&demo.url) && !url.starts_with("chrome") && !url.starts_with("data:")
        })
        .collect();
    assert!(!asked.is_empty() && foreign.is_empty(), "asked elsewhere: {foreign:#?}");
    let seen =
        browser.run("return { refused: window.refused ?? [], shift: window.shift ?? 0, moved: window.moved ?? [] }").await;
    assert_eq!(seen["refused"], serde_json::json!([]), "refused by the security policy");
    assert!(seen["shift"].as_f64().unwrap() < 0.01, "what moved: {}", seen["moved"]);
    println!("FIGURE requests {}, layout shift {} {}", asked.len(), seen["shift"], seen["moved"]);
}
