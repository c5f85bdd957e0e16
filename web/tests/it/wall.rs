//! Nobody unknown gets past the wall, whatever route there is or will be.

use axum::{
    body::Body,
    http::{Method, StatusCode, header},
};
use web::{Access, routes};

use crate::support::{Server, request};

/// A path that fits the route.
fn example(path: &str) -> String {
    path.replace("{name}", "bld-011").replace("{file}", "volund.css").replace("{id}", "1")
}

#[test]
fn only_health_log_in_and_static_files_are_open() {
    let open: Vec<String> = routes()
        .into_iter()
        .filter(|route| route.access == Access::Open)
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    assert_eq!(open, ["GET /healthz", "GET /assets/{file}", "GET /login", "POST /login"]);
}

#[tokio::test]
async fn every_other_route_turns_strangers_away() {
    let server = Server::start();
    for route in routes().into_iter().filter(|route| route.access != Access::Open) {
        for cookie in [None, Some("volund-session=0123456789abcdef")] {
            let mut builder = request(route.method.clone(), &example(route.path));
            if let Some(cookie) = cookie {
                builder = builder.header(header::COOKIE, cookie);
            }
            let answer = server.ask(builder.body(Body::empty()).unwrap()).await;
            let what = format!("{} {}: {}", route.method, route.path, answer.text);
            if route.access == Access::Page {
                assert_eq!(answer.status, StatusCode::SEE_OTHER, "{what}");
                let place = answer.headers[header::LOCATION].to_str().unwrap();
                assert!(place.starts_with("/login"), "{what}");
            } else {
                assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
                let problem: api::Problem = serde_json::from_str(&answer.text).unwrap();
                assert!(problem.error.contains("log in"), "{what}");
            }
            assert!(!answer.text.contains("bld-"), "{what}");
        }
    }
    assert!(server.lab.world.lock().unwrap().orders.is_empty());
}

#[tokio::test]
async fn strangers_learn_nothing_from_paths_and_methods_that_do_not_exist() {
    let server = Server::start();
    let cases = [
        (Method::GET, "/nope", StatusCode::SEE_OTHER),
        (Method::GET, "/api/v1/nope", StatusCode::UNAUTHORIZED),
        (Method::DELETE, "/api/v1/nodes", StatusCode::UNAUTHORIZED),
        (Method::PUT, "/nodes/bld-011", StatusCode::SEE_OTHER),
    ];
    for (method, path, want) in cases {
        let answer = server.ask(request(method.clone(), path).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, want, "{method} {path}");
    }
}

#[tokio::test]
async fn the_way_back_survives_the_log_in_page() {
    let server = Server::start();
    let answer = server
        .ask(
            request(Method::GET, "/switch?node=bld-002&profile=local").body(Body::empty()).unwrap(),
        )
        .await;
    assert_eq!(
        answer.headers[header::LOCATION],
        "/login?next=%2Fswitch%3Fnode%3Dbld-002%26profile%3Dlocal"
    );
}

#[tokio::test]
async fn a_form_without_the_sessions_csrf_token_changes_nothing() {
    let server = Server::start();
    let browser = server.browser().await;
    let other = server.browser().await;
    for route in routes() {
        if route.method != Method::POST || route.access != Access::Page {
            continue;
        }
        let path = example(route.path);
        let stolen = format!("csrf={}&verb=on&to=dark", other.csrf);
        for form in ["verb=on&to=dark", "csrf=&verb=on", stolen.as_str()] {
            let answer = browser.post_raw(&path, form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {form}");
        }
    }
    assert!(server.lab.world.lock().unwrap().orders.is_empty());
    assert_eq!(browser.get("/").await.status, StatusCode::OK, "still logged in");
}

#[tokio::test]
async fn a_form_of_another_site_is_refused_though_the_token_is_right() {
    let server = Server::start();
    let browser = server.browser().await;
    let cases = [
        ("https://evil.example", StatusCode::FORBIDDEN),
        ("null", StatusCode::FORBIDDEN),
        ("http://volund.test", StatusCode::SEE_OTHER),
    ];
    for (origin, want) in cases {
        let request = browser
            .request(Method::POST, "/nodes/bld-014/power")
            .header(header::ORIGIN, origin)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(format!("csrf={}&verb=on", browser.csrf)));
        assert_eq!(server.ask(request.unwrap()).await.status, want, "{origin}");
    }
}

#[tokio::test]
async fn another_name_in_the_host_header_gets_nothing() {
    let server = Server::start();
    let cases = [
        ("volund.test", StatusCode::OK),
        ("VOLUND.test:8443", StatusCode::OK),
        ("evil.example", StatusCode::MISDIRECTED_REQUEST),
        ("volund.test.evil.example", StatusCode::MISDIRECTED_REQUEST),
        ("", StatusCode::MISDIRECTED_REQUEST),
    ];
    for (host, want) in cases {
        let request = axum::http::Request::get("/healthz").header(header::HOST, host);
        assert_eq!(server.ask(request.body(Body::empty()).unwrap()).await.status, want, "{host}");
    }
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    let server = Server::start();
    let browser = server.browser().await;
    for path in ["/", "/nodes/bld-011", "/nope", "/api/v1/nodes", "/healthz", "/login"] {
        let answer = browser.get(path).await;
        assert_eq!(
            answer.headers[header::CONTENT_SECURITY_POLICY],
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
             connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        );
        assert_eq!(answer.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store", "{path}");
    }
    let css = browser.get("/assets/volund.css").await;
    assert_eq!(css.headers[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
}
