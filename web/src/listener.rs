//! Connections to the page, bounded in number and in how long one may say nothing.
//!
//! axum has no such bounds of its own, and every connection is a file descriptor the boot services need too.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep},
};

/// Connections at once; the next one waits in the system's queue. 256 of them may be event streams.
const PLACES: usize = 512;
/// From accepting a connection to the first byte of an answer.
const FIRST_ANSWER: Duration = Duration::from_secs(75);
/// From one byte to the next after that, either way. Event streams say something more often.
const IDLE: Duration = Duration::from_secs(75);

/// A listener that accepts while it has places.
pub(crate) struct Bounded {
    inner: TcpListener,
    places: Arc<Semaphore>,
}

/// A connection, its place, and when it ends for saying nothing.
pub(crate) struct Guarded {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    has_answered: bool,
    _place: OwnedSemaphorePermit,
}

impl Bounded {
    pub(crate) fn new(inner: TcpListener) -> Self {
        Self { inner, places: Arc::new(Semaphore::new(PLACES)) }
    }
}

impl Listener for Bounded {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.expect("nobody closes this semaphore");
        let (stream, peer) = Listener::accept(&mut self.inner).await;
        let end = Box::pin(sleep(FIRST_ANSWER));
        (Guarded { stream, end, has_answered: false, _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

impl Guarded {
    /// The connection itself.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn goes_on(&mut self) {
        if self.has_answered {
            self.end.as_mut().reset(Instant::now() + IDLE);
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.goes_on();
        }
        if polled.is_pending() && self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if matches!(polled, Poll::Ready(Ok(count)) if count > 0) {
            self.has_answered = true;
            self.goes_on();
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn pair(listener: &mut Bounded) -> (TcpStream, Guarded) {
        let address = listener.local_addr().unwrap();
        let (client, (server, _)) = tokio::join!(TcpStream::connect(address), listener.accept());
        (client.unwrap(), server)
    }

    #[tokio::test]
    async fn a_connection_that_says_nothing_ends_and_one_that_was_answered_may_idle_again() {
        let mut listener = Bounded::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let (mut client, mut server) = pair(&mut listener).await;
        // Its time is over before it has said anything.
        server.end.as_mut().reset(Instant::now());
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // An answer gives it new time.
        server.write_all(b"answer").await.unwrap();
        client.write_all(b"!").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'!');
        assert!(server.end.deadline() > Instant::now() + IDLE / 2);
    }

    #[tokio::test]
    async fn a_connection_gives_its_place_back() {
        let mut listener = Bounded::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let (_client, server) = pair(&mut listener).await;
        assert_eq!(listener.places.available_permits(), PLACES - 1);
        drop(server);
        assert_eq!(listener.places.available_permits(), PLACES);
    }
}
