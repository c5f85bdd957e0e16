//! Who may ask: users with passwords, API tokens, sessions.
//!
//! Keeps no file and no table: users and tokens come in as data, new tokens go out through [`TokenKeeper`].
//! Passwords are kept as argon2id PHC strings, tokens as SHA-256, sessions in memory only.

mod session;
mod throttle;

use std::{
    collections::HashMap,
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use argon2::{
    Argon2, PasswordHasher as _, PasswordVerifier as _,
    password_hash::phc::{PasswordHash, Salt},
};
use sha2::{Digest as _, Sha256};
use tokio::{sync::Semaphore, time::timeout};

pub(crate) use self::session::{Flash, FlashLevel, SESSION_LIFE, Viewer};
use self::{session::Sessions, throttle::Throttle};

/// What an API token starts with, so that scanners for leaked secrets can find it.
pub const TOKEN_PREFIX: &str = "vlnd_";

/// Passwords longer than this are not hashed at all.
const MAX_PASSWORD: usize = 1_024;

/// Two argon2id runs at once; each takes 19 MiB and tens of milliseconds.
const HASHERS: usize = 2;

/// How long a log-in waits for its turn.
const TURN: Duration = Duration::from_secs(5);

/// A person who may log in.
#[derive(Clone)]
pub struct User {
    /// Name.
    pub name: String,
    /// Password as an argon2id PHC string, made by [`Auth::hash_password`].
    pub phc: String,
}

/// An API token as it is kept: without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// What it is called, such as `ci`.
    pub name: String,
    /// SHA-256 of the whole token text, prefix included.
    pub sha256: [u8; 32],
}

/// Keeps new tokens, in the inventory or elsewhere.
pub trait TokenKeeper: Send + Sync + 'static {
    /// Stores `token` durably before it returns; the error is a sentence for the log.
    fn keep<'a>(
        &'a self,
        token: &'a StoredToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
}

/// What [`Auth`] starts with.
pub struct AuthStore {
    /// Who may log in.
    pub users: Vec<User>,
    /// Tokens that hold.
    pub tokens: Vec<StoredToken>,
    /// Where new tokens go.
    pub keeper: Arc<dyn TokenKeeper>,
}

/// What is wrong with users, passwords or tokens.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A user's password is no argon2id PHC string.
    #[error("the password of user {user:?} is no argon2id PHC string")]
    Phc {
        /// The user.
        user: String,
        /// What the parser says.
        #[source]
        source: argon2::password_hash::phc::Error,
    },
    /// A password was not hashed.
    #[error("could not hash a password: {0}")]
    Hash(argon2::password_hash::Error),
    /// A password is empty or too long.
    #[error("a password has 1 to {MAX_PASSWORD} bytes")]
    Length,
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    Random(#[source] getrandom::Error),
    /// The new token was not kept, so it does not hold.
    #[error("could not keep token {name:?}: {why}")]
    Keep {
        /// The token.
        name: String,
        /// What the keeper says.
        why: String,
    },
}

/// Why a log-in failed. Unknown user and wrong password are one answer, and take equally long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogInRefusal {
    /// Name or password is wrong.
    Wrong,
    /// Too many failures from this address.
    Wait(Duration),
    /// Too many log-ins at the same time, or no random bytes.
    Busy,
}

/// Users, tokens and sessions.
pub struct Auth {
    users: HashMap<String, String>,
    tokens: Mutex<HashMap<[u8; 32], String>>,
    sessions: Mutex<Sessions>,
    throttle: Mutex<Throttle>,
    hashing: Arc<Semaphore>,
    keeper: Arc<dyn TokenKeeper>,
    /// Verified against for unknown users, so that they take as long as known ones.
    decoy: String,
}

impl Auth {
    /// Checks `store` and starts with no session.
    ///
    /// # Errors
    /// When a password is no PHC string, or the system gives no random bytes.
    pub fn new(store: AuthStore) -> Result<Self, AuthError> {
        for user in &store.users {
            PasswordHash::new(&user.phc)
                .map_err(|source| AuthError::Phc { user: user.name.clone(), source })?;
        }
        let users = store.users.into_iter().map(|user| (user.name, user.phc)).collect();
        let tokens = store.tokens.into_iter().map(|token| (token.sha256, token.name)).collect();
        Ok(Self {
            users,
            tokens: Mutex::new(tokens),
            sessions: Mutex::new(Sessions::default()),
            throttle: Mutex::new(Throttle::default()),
            hashing: Arc::new(Semaphore::new(HASHERS)),
            keeper: store.keeper,
            decoy: Self::hash_password(&random_hex()?)?,
        })
    }

    /// The argon2id PHC string of `password`, with a fresh salt. Takes tens of milliseconds of processor.
    ///
    /// # Errors
    /// When the password is empty or longer than 1,024 bytes, or the system gives no random bytes.
    pub fn hash_password(password: &str) -> Result<String, AuthError> {
        if !(1..=MAX_PASSWORD).contains(&password.len()) {
            return Err(AuthError::Length);
        }
        let mut salt = [0; Salt::RECOMMENDED_LENGTH];
        getrandom::fill(&mut salt).map_err(AuthError::Random)?;
        let hash = Argon2::default()
            .hash_password_with_salt(password.as_bytes(), &salt)
            .map_err(AuthError::Hash)?;
        Ok(hash.to_string())
    }

    /// A new token: its secret, to be shown once, and what is to be kept of it.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn new_token(name: &str) -> Result<(String, StoredToken), AuthError> {
        let secret = format!("{TOKEN_PREFIX}{}", random_hex()?);
        let token = StoredToken { name: name.to_owned(), sha256: sha256(&secret) };
        Ok((secret, token))
    }

    /// Makes a token, has it kept, and lets it hold from now on. Returns the secret, to be shown once.
    ///
    /// # Errors
    /// When it was not kept; then it does not hold.
    pub async fn mint_token(&self, name: &str) -> Result<String, AuthError> {
        let (secret, token) = Self::new_token(name)?;
        let kept = self.keeper.keep(&token).await;
        kept.map_err(|why| AuthError::Keep { name: name.to_owned(), why })?;
        lock(&self.tokens).insert(token.sha256, token.name);
        Ok(secret)
    }

    /// The name of the token `secret`, if it holds.
    pub(crate) fn find_token(&self, secret: &str) -> Option<String> {
        lock(&self.tokens).get(&sha256(secret)).cloned()
    }

    /// Opens a session for `user`; returns its id.
    ///
    /// # Errors
    /// [`LogInRefusal`]; a failure counts against `peer`.
    pub(crate) async fn log_in(
        &self,
        peer: IpAddr,
        user: &str,
        password: &str,
    ) -> Result<String, LogInRefusal> {
        self.check_throttle(peer)?;
        let turn = Arc::clone(&self.hashing).acquire_owned();
        let Ok(Ok(turn)) = timeout(TURN, turn).await else { return Err(LogInRefusal::Busy) };
        // Whoever waited in the queue may have failed in the meantime.
        self.check_throttle(peer)?;
        let known = self.users.get(user);
        let phc = known.unwrap_or(&self.decoy).clone();
        let password = password.to_owned();
        let verified = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            verify(&phc, &password)
        });
        let verified = verified.await.unwrap_or(false);
        if !verified || known.is_none() {
            lock(&self.throttle).note_failure(Instant::now(), peer);
            tracing::warn!(%peer, "a log-in failed");
            return Err(LogInRefusal::Wrong);
        }
        lock(&self.throttle).note_success(peer);
        self.open_session(user)
    }

    fn check_throttle(&self, peer: IpAddr) -> Result<(), LogInRefusal> {
        match lock(&self.throttle).wait(Instant::now(), peer) {
            Some(wait) => Err(LogInRefusal::Wait(wait)),
            None => Ok(()),
        }
    }

    fn open_session(&self, user: &str) -> Result<String, LogInRefusal> {
        let (Ok(id), Ok(csrf)) = (random_hex(), random_hex()) else {
            return Err(LogInRefusal::Busy);
        };
        lock(&self.sessions).open(Instant::now(), id.clone(), user, csrf);
        tracing::info!(user, "logged in");
        Ok(id)
    }

    /// Who the session `id` belongs to, while it lasts.
    pub(crate) fn find_session(&self, id: &str) -> Option<Viewer> {
        lock(&self.sessions).find(Instant::now(), id)
    }

    /// Ends the session `id`.
    pub(crate) fn log_out(&self, id: &str) {
        lock(&self.sessions).close(id);
    }

    /// Leaves a word for the next page of this session; an older one is replaced.
    pub(crate) fn leave_flash(&self, id: &str, flash: Flash) {
        lock(&self.sessions).leave_flash(id, flash);
    }

    /// Takes the word that was left.
    pub(crate) fn take_flash(&self, id: &str) -> Option<Flash> {
        lock(&self.sessions).take_flash(id)
    }
}

fn verify(phc: &str, password: &str) -> bool {
    let Ok(hash) = PasswordHash::new(phc) else { return false };
    password.len() <= MAX_PASSWORD
        && Argon2::default().verify_password(password.as_bytes(), &hash).is_ok()
}

/// 32 random bytes in hexadecimal.
pub(crate) fn random_hex() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(AuthError::Random)?;
    Ok(model::hex::encode(&bytes))
}

/// Equality in a time that does not tell where two texts differ.
pub(crate) fn same_secret(left: &str, right: &str) -> bool {
    subtle::ConstantTimeEq::ct_eq(left.as_bytes(), right.as_bytes()).into()
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// No code that holds these locks can panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
