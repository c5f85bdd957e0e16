//! Users and tokens: from configuration and book into `web`, new ones back into the book.

use std::{future::Future, pin::Pin, sync::Arc};

use anyhow::Context;
use inventory::{Record, Store, TokenRow, Writer};
use profiles::world::now;
use web::auth::{Auth, AuthStore, StoredToken, TokenKeeper, User};

use crate::config::Config;

struct Keeper {
    writer: Writer,
}

impl TokenKeeper for Keeper {
    fn keep<'a>(
        &'a self,
        token: &'a StoredToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            let row = TokenRow {
                name: token.name.clone(),
                hash: model::hex::encode(&token.sha256),
                by: "volund".to_owned(),
                created: now(),
            };
            let kept = self.writer.submit(vec![Record::Token(row)]).await;
            kept.map_err(|error| error.to_string())
        })
    }
}

/// Everybody who may ask: the configuration's users, the book's users and its tokens.
pub(super) async fn auth(config: &Config, store: &Store, writer: &Writer) -> anyhow::Result<Auth> {
    let mut users: Vec<User> = Vec::new();
    for user in &config.operator.users {
        users.push(User { name: user.name.clone(), phc: user.password_hash.clone() });
    }
    for row in inventory::account::users(store).await.context("could not read the users")? {
        if !users.iter().any(|user| user.name == row.name) {
            users.push(User { name: row.name, phc: row.phc });
        }
    }
    let rows = inventory::account::tokens(store).await.context("could not read the tokens")?;
    let mut tokens = rows.into_iter().map(stored).collect::<anyhow::Result<Vec<_>>>()?;
    let declared = config.operator.tokens.iter();
    tokens.extend(
        declared.map(|token| StoredToken { name: token.name.clone(), sha256: token.sha256 }),
    );
    let keeper = Arc::new(Keeper { writer: writer.clone() });
    Auth::new(AuthStore { users, tokens, keeper }).context("could not set up log-in")
}

fn stored(row: TokenRow) -> anyhow::Result<StoredToken> {
    let bytes = model::hex::decode(&row.hash).ok().and_then(|bytes| bytes.try_into().ok());
    let sha256 =
        bytes.with_context(|| format!("the stored hash of token {} is damaged", row.name))?;
    Ok(StoredToken { name: row.name, sha256 })
}
