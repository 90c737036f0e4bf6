//! Listens: a bounded number of connections, of strangers a part of it, each with deadlines; TLS where there is a
//! certificate.

use super::door::crowd::{Crowd, Visitor};
use super::patience::Patient;
use crate::api::answers::body::{Held, PIECE_TIMEOUT};
use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tower::Service;

/// A connection must say what it speaks, and a request must have its headers, within this time.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// An HTTP/2 peer is asked this often whether it is still there, and given as long to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Requests of one HTTP/2 connection at the same time.
pub(super) const MAX_STREAMS: u32 = 128;

/// What a connection reads ahead, and so the most that a request's head may have: there may be thousands of
/// connections.
pub(super) const BUFFER_BYTES: usize = 32 << 10;

/// What every HTTP/2 connection begins with.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Requests get this long to end when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);

/// Serves until `stop` is done, then lets what is running end.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    tls: Option<Arc<rustls::ServerConfig>>,
    max_connections: usize,
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(max_connections));
    let crowd = Crowd::new(max_connections);
    let tls = tls.map(TlsAcceptor::from);
    tokio::pin!(stop);
    loop {
        // Room first: connections that find none wait in the kernel's queue and cost nothing.
        let permit = tokio::select! {
            permit = room.clone().acquire_owned() => permit,
            () = &mut stop => break,
        };
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, most likely: they come back when connections end.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        let (app, tls, watcher) = (app.clone(), tls.clone(), graceful.watcher());
        let visitor = crowd.enter(address.ip());
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, app, tls, watcher, visitor.clone()) => {}
                () = visitor.ends() => tracing::debug!(%address, "a connection was ended: it was idle, or others came"),
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!(
            seconds = DRAIN_TIMEOUT.as_secs(),
            "connections did not end in time and are cut"
        );
    }
}

async fn connection(stream: TcpStream, app: Router, tls: Option<TlsAcceptor>, watcher: Watcher, visitor: Arc<Visitor>) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => {
            let Ok(Some(http2)) = tokio::time::timeout(HEAD_TIMEOUT, speaks_http2(&stream)).await else {
                return;
            };
            speak(Patient::new(stream, PIECE_TIMEOUT), http2, app, watcher, visitor).await;
        }
        Some(tls) => {
            let Ok(Ok(stream)) =
                tokio::time::timeout(HEAD_TIMEOUT, tls.accept(Patient::new(stream, PIECE_TIMEOUT))).await
            else {
                return;
            };
            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            speak(stream, http2, app, watcher, visitor).await;
        }
    }
}

/// Looks at the first bytes without taking them; none when the peer hangs up.
async fn speaks_http2(stream: &TcpStream) -> Option<bool> {
    let mut head = [0; HTTP2_PREFACE.len()];
    loop {
        let read = stream.peek(&mut head).await.ok()?;
        if read == 0 {
            return None;
        }
        if head[..read] != HTTP2_PREFACE[..read] {
            return Some(false);
        }
        if read == HTTP2_PREFACE.len() {
            return Some(true);
        }
        // What has come is still there, so waiting for "readable" would not wait.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn speak<S>(stream: S, http2: bool, app: Router, watcher: Watcher, visitor: Arc<Visitor>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let running = visitor.request();
        request.extensions_mut().insert(visitor.clone());
        let answer = app.clone().call(request);
        // It runs until its answer's body is sent.
        async move { answer.await.map(|answer| answer.map(|body| Held::new(body, running))) }
    });
    let io = TokioIo::new(stream);
    let ended = if http2 {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL);
        watcher.watch(builder.serve_connection(io, service)).await
    } else {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(BUFFER_BYTES)
            .half_close(true);
        watcher.watch(builder.serve_connection(io, service)).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
