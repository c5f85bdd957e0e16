//! The listener: HTTP/1.1 until told to stop.

use std::{io, net::SocketAddr, time::Duration};

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{App, listener::Bounded, router};

/// How long open requests may take to end after the stop.
const GRACE: Duration = Duration::from_secs(2);

/// The listener broke.
#[derive(Debug, thiserror::Error)]
#[error("could not serve the page")]
pub struct ServeError(#[from] io::Error);

/// Serves `app` on `listener` until `cancel` fires; then event streams end at once and other requests within
/// two seconds.
///
/// # Errors
/// [`ServeError`] when the listener breaks.
pub async fn serve(
    listener: TcpListener,
    mut app: App,
    cancel: CancellationToken,
) -> Result<(), ServeError> {
    app.stop = cancel.clone();
    let listener = Bounded::new(listener).tap_io(|connection| {
        if let Err(error) = connection.stream().set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY on a page connection");
        }
    });
    let service = router(app).into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, service)
        .with_graceful_shutdown(cancel.clone().cancelled_owned())
        .into_future();
    let grace = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = serving => Ok(ended?),
        () = grace => Ok(()),
    }
}
