//! Sizes: what goes over the wire stays within what was promised.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use crate::{fake::FakeLab, support::Server};

fn gzipped(text: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}

fn elements(html: &str) -> usize {
    html.matches('<').count() - html.matches("</").count() - html.matches("<!").count()
}

#[tokio::test]
async fn the_overview_of_24_machines_is_light() {
    let server = Server::start_with(FakeLab::asgard(8));
    let page = server.browser().await.get("/").await.text;
    assert!(page.len() <= 60_000, "{} bytes", page.len());
    assert!(gzipped(&page) <= 12_000, "{} bytes gzipped", gzipped(&page));
    assert!(elements(&page) <= 1_500, "{} elements", elements(&page));
}

#[tokio::test]
async fn style_and_script_are_light_and_whole() {
    let server = Server::start();
    let browser = server.browser().await;
    let css = browser.get("/assets/volund.css").await.text;
    assert!(gzipped(&css) <= 13_000, "{} bytes of style", gzipped(&css));
    let script = browser.get("/assets/volund.js").await.text;
    assert!(gzipped(&script) <= 4_000, "{} bytes of script", gzipped(&script));
}

#[tokio::test]
async fn a_patch_of_a_bay_is_about_a_kilobyte() {
    let server = Server::start();
    let page = server.browser().await.get("/").await.text;
    for piece in page.split("<li class=\"bay\" id=").skip(1) {
        let bay = piece.split("</li>").next().unwrap();
        assert!(bay.len() <= 2_000, "{} bytes: {bay}", bay.len());
        assert!(gzipped(bay) <= 1_024, "{} bytes gzipped", gzipped(bay));
    }
}

#[tokio::test]
async fn pages_need_nothing_from_elsewhere_and_no_inline_style_or_script() {
    let server = Server::start();
    let browser = server.browser().await;
    for path in ["/", "/nodes/bld-011", "/nodes/bld-016", "/switch?node=bld-002&profile=local"] {
        let page = browser.get(path).await.text;
        assert!(!page.contains(" style="), "{path}");
        assert!(handlers(&page).is_empty(), "{path}: {:?}", handlers(&page));
        assert!(!page.contains("//"), "{path}");
        assert!(!page.contains("href=\"#\""), "{path}");
    }
}

#[tokio::test]
async fn every_icon_that_is_used_is_in_the_sprite_and_every_id_is_unique() {
    let server = Server::start();
    let browser = server.browser().await;
    for path in ["/", "/nodes/bld-011", "/nodes/bld-016", "/switch?node=bld-002&profile=local"] {
        let page = browser.get(path).await.text;
        for used in page.split("<use href=\"#").skip(1) {
            let id = used.split('"').next().unwrap();
            assert!(page.contains(&format!("<symbol id=\"{id}\"")), "{id} on {path}");
        }
        let mut ids: Vec<&str> =
            page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{path}");
    }
}

/// Attributes that would be scripts.
fn handlers(page: &str) -> Vec<&str> {
    let names = page.split(" on").skip(1).filter_map(|rest| rest.split_once("=\""));
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase());
    names.map(|(name, _)| name).filter(is_name).collect()
}
