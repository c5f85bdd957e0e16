//! Logging in and out, tokens, the theme.

use axum::http::{Method, StatusCode, header};
use web::auth::{Auth, AuthError, AuthStore, TOKEN_PREFIX, User};

use crate::support::{LogInForm, PASSWORD, Server, cookie, hidden};

#[tokio::test]
async fn logging_in_leads_back_and_sets_a_cookie_no_script_can_read() {
    let server = Server::start();
    let form = LogInForm::open(&server).await;
    let answer = form.send(&server, "smith", PASSWORD).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.headers[header::LOCATION], "/nodes/bld-011");
    let all: Vec<&str> =
        answer.headers.get_all(header::SET_COOKIE).iter().map(|v| v.to_str().unwrap()).collect();
    let session = all.iter().find(|value| value.starts_with("volund-session=")).unwrap();
    assert!(session.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"), "{session}");
}

#[tokio::test]
async fn over_tls_the_cookie_is_secure() {
    let mut server = Server::start();
    server.app.transport = web::Transport::Tls;
    server.router = web::router(server.app.clone());
    let form = LogInForm::open(&server).await;
    let answer = form.send(&server, "smith", PASSWORD).await;
    for value in answer.headers.get_all(header::SET_COOKIE) {
        assert!(value.to_str().unwrap().ends_with("; Secure"), "{value:?}");
    }
}

#[tokio::test]
async fn unknown_user_and_wrong_password_read_the_same() {
    let server = Server::start();
    let form = LogInForm::open(&server).await;
    let mut pages = Vec::new();
    for (user, password) in [("smith", "wrong"), ("nobody", PASSWORD), ("nobody", "")] {
        let answer = form.send(&server, user, password).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(cookie(&answer.headers, "volund-session").is_none());
        assert!(answer.text.contains("Name or password is wrong."), "{}", answer.text);
        let secret = hidden(&answer.text, "form");
        pages.push(answer.text.replace(&secret, "").replace(&format!("value=\"{user}\""), ""));
    }
    assert_eq!(pages[0], pages[1]);
    assert_eq!(pages[1], pages[2]);
}

#[tokio::test]
async fn the_form_belongs_to_the_browser_that_opened_it() {
    let server = Server::start();
    let mut form = LogInForm::open(&server).await;
    form.cookie = LogInForm::open(&server).await.cookie;
    let answer = form.send(&server, "smith", PASSWORD).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    form.cookie = "volund-login=".to_owned();
    form.secret = String::new();
    assert_eq!(form.send(&server, "smith", PASSWORD).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn who_guesses_has_to_wait_and_others_do_not() {
    let server = Server::start();
    let mut form = LogInForm::open(&server).await;
    for _ in 0..5 {
        assert_eq!(form.send(&server, "smith", "guess").await.status, StatusCode::UNAUTHORIZED);
    }
    let answer = form.send(&server, "smith", PASSWORD).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.headers.contains_key(header::RETRY_AFTER));
    form.peer = ([192, 0, 2, 8], 50_000).into();
    assert_eq!(form.send(&server, "smith", PASSWORD).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn after_logging_out_the_session_opens_nothing() {
    let server = Server::start();
    let browser = server.browser().await;
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    let answer = browser.post("/logout", "").await;
    assert_eq!(answer.headers[header::LOCATION], "/login");
    assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.get("/live?page=/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_theme_is_a_cookie_and_leads_back_into_the_house_only() {
    let server = Server::start();
    let browser = server.browser().await;
    let answer = browser.post("/theme", "to=dark&back=//evil.example").await;
    assert_eq!(answer.headers[header::LOCATION], "/");
    assert_eq!(cookie(&answer.headers, "theme").unwrap(), "theme=dark");
    let request = browser.request(Method::GET, "/").header(header::COOKIE, "theme=dark");
    let page = server.ask(request.body(axum::body::Body::empty()).unwrap()).await;
    assert!(page.text.contains("<html lang=\"en\" data-theme=\"dark\">"));
    assert!(!browser.get("/").await.text.contains("data-theme"), "the system decides");
}

#[tokio::test]
async fn a_minted_token_is_kept_as_its_hash_and_holds_at_once() {
    let mut server = Server::start();
    let secret = server.app.auth.mint_token("backup").await.unwrap();
    assert!(secret.starts_with(TOKEN_PREFIX));
    assert_eq!(secret.len(), TOKEN_PREFIX.len() + 64);
    let kept = server.kept.0.lock().unwrap().clone();
    assert_eq!(kept.len(), 1);
    assert!(!format!("{kept:?}").contains(&secret));
    server.token = secret;
    assert_eq!(server.api(Method::GET, "/api/v1/nodes", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_token_that_was_not_kept_does_not_hold() {
    let server = Server::start();
    let outcome = server.app.auth.mint_token("unlucky").await;
    let Err(AuthError::Keep { name, why }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((name.as_str(), why.as_str()), ("unlucky", "the disk is full"));
}

#[tokio::test]
async fn a_token_that_is_almost_right_is_wrong() {
    let mut server = Server::start();
    let right = server.token.clone();
    for wrong in [format!("{right}0"), right[1..].to_owned(), right.to_uppercase(), String::new()] {
        server.token = wrong;
        let answer = server.api(Method::GET, "/api/v1/nodes", "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
    }
}

#[test]
fn a_password_that_is_no_phc_string_is_named_with_its_user() {
    let store = AuthStore {
        users: vec![User { name: "smith".to_owned(), phc: "plain".to_owned() }],
        tokens: Vec::new(),
        keeper: std::sync::Arc::new(crate::support::Kept::default()),
    };
    let error = Auth::new(store).err().unwrap();
    assert_eq!(error.to_string(), "the password of user \"smith\" is no argon2id PHC string");
}

#[test]
fn a_hash_is_argon2id_with_a_salt_of_its_own() {
    let (one, two) = (Auth::hash_password("same").unwrap(), Auth::hash_password("same").unwrap());
    assert!(one.starts_with("$argon2id$v=19$"), "{one}");
    assert_ne!(one, two);
    assert!(matches!(Auth::hash_password(""), Err(AuthError::Length)));
    assert!(matches!(Auth::hash_password(&"a".repeat(1_025)), Err(AuthError::Length)));
}
