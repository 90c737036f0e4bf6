//! A relay before an S3 server that does what networks and busy stores do, at known rates: it delays, asks to slow
//! down, cuts connections before a request arrives, loses the answer of one that was done, answers half; and counts.
//!
//! In: HTTP/1.1 on a port of loopback, the rules. Out: the same requests, as they were signed, and what became of them.

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http_body_util::{BodyExt as _, Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, ETAG, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// What happens to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Delay(Duration),
    /// 503, as S3 says it. Nothing arrives.
    SlowDown,
    /// The connection ends. Nothing arrives.
    Cut,
    /// It is done, and the connection ends before an answer.
    LoseAnswer,
    /// It is done, and the connection ends in the middle of the answer; before it, where the answer has no body.
    HalveAnswer,
    /// A put under the condition of this header that the store refuses is answered as if it were done: as by a store
    /// that knows no such condition. (The header is signed, and can't be left out on the way.)
    IgnoreCondition(&'static str),
}

impl Fault {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delay(_) => "delay",
            Self::SlowDown => "slow down",
            Self::Cut => "cut",
            Self::LoseAnswer => "lose answer",
            Self::HalveAnswer => "halve answer",
            Self::IgnoreCondition(_) => "ignore condition",
        }
    }
}

/// So many of a thousand requests meet a fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) per_mille: u64,
    pub(crate) fault: Fault,
}

/// What went through since the start, or since a look before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// By what they ask for; `lease` is whatever concerns that object.
    pub(crate) requests: BTreeMap<&'static str, u64>,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    /// Of bodies, from the client.
    pub(crate) sent_bytes: u64,
    /// Of bodies, to the client.
    pub(crate) received_bytes: u64,
}

impl Counts {
    /// Without those that renew the lease: they come by time.
    pub(crate) fn work(&self) -> u64 {
        let kinds = self.requests.iter().filter(|(kind, _)| **kind != "lease");
        kinds.map(|(_, count)| count).sum()
    }
}

#[derive(Debug)]
struct State {
    target: String,
    rules: RwLock<Vec<Rule>>,
    random: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    address: String,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

type Error = Box<dyn std::error::Error + Send + Sync>;
type Body = Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>>>;

impl Proxy {
    /// `target`: host and port. With the same seed and the same requests in the same order the same ones meet a fault.
    pub(crate) fn to(target: &str, seed: u64, rules: &[Rule]) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State {
            target: target.to_owned(),
            rules: RwLock::new(rules.to_vec()),
            random: AtomicU64::new(seed),
            counts: Mutex::default(),
        });
        // Tests block the threads of their own.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.spawn(accept(listener, state.clone()));
        Self {
            address,
            state,
            runtime: Some(runtime),
        }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Other rules from now on.
    pub(crate) fn set(&self, rules: &[Rule]) {
        *self.state.rules.write().unwrap() = rules.to_vec();
    }

    /// What went through since the last call.
    pub(crate) fn take_counts(&self) -> Counts {
        std::mem::take(&mut *self.state.counts.lock().unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: std::net::TcpListener, state: Arc<State>) {
    let listener = TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| relay(state.clone(), request));
            // An error is a fault that was asked for, or a client that has gone.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

impl State {
    /// The fault that a request meets, if any.
    fn roll(&self) -> Option<Fault> {
        // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut at = (z ^ (z >> 31)) % 1000;
        let rules = self.rules.read().unwrap();
        let met = rules.iter().find(|rule| {
            let is_met = at < rule.per_mille;
            at = at.saturating_sub(rule.per_mille);
            is_met
        });
        met.map(|rule| rule.fault)
    }

    fn count(&self, kind: &'static str, fault: Option<Fault>, sent_bytes: usize) {
        let mut counts = self.counts.lock().unwrap();
        *counts.requests.entry(kind).or_default() += 1;
        if let Some(fault) = fault {
            *counts.faults.entry(fault.name()).or_default() += 1;
        }
        counts.sent_bytes += sent_bytes as u64;
    }
}

/// What a request asks for.
fn kind(method: &Method, path: &str, query: &str, headers: &HeaderMap) -> &'static str {
    match method.as_str() {
        _ if path.ends_with("/lease") => "lease",
        "GET" if query.contains("list-type") => "list",
        "GET" => "get",
        "HEAD" => "head",
        "PUT" if headers.contains_key("x-amz-copy-source") => "copy",
        "PUT" if query.contains("uploadId") => "upload",
        "PUT" => "put",
        "POST" if query.contains("delete") => "delete",
        "DELETE" => "delete",
        _ => "upload",
    }
}

async fn relay(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let fault = state.roll();
    let query = parts.uri.query().unwrap_or_default();
    let is_head = parts.method == Method::HEAD;
    let is_ignored = matches!(fault, Some(Fault::IgnoreCondition(header)) if parts.headers.contains_key(header));
    state.count(
        kind(&parts.method, parts.uri.path(), query, &parts.headers),
        fault,
        body.len(),
    );
    match fault {
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::SlowDown) => return Ok(slow_down()),
        Some(Fault::Cut) => return Err("cut before it arrives".into()),
        _ => {}
    }
    // What is on its way arrives also where nobody waits for its answer any more.
    let forwarded = forward(state.target.clone(), Request::from_parts(parts, Full::new(body)));
    let (mut parts, body) = tokio::spawn(forwarded).await??.into_parts();
    parts.headers.remove(CONNECTION);
    parts.headers.remove(TRANSFER_ENCODING);
    match fault {
        Some(Fault::HalveAnswer) if body.len() > 1 && !is_head => {
            parts
                .headers
                .insert(CONTENT_LENGTH, HeaderValue::from(body.len() as u64));
            let half = body.slice(..body.len() / 2);
            let frames = stream::once(async move { Ok(Frame::data(half)) }).chain(stream::once(async {
                // The half is on its way before the end is.
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(std::io::Error::other("cut in the middle of the answer"))
            }));
            Ok(Response::from_parts(
                parts,
                Either::Right(StreamBody::new(frames.boxed())),
            ))
        }
        Some(Fault::LoseAnswer | Fault::HalveAnswer) => Err("cut before the answer".into()),
        _ if is_ignored && parts.status == StatusCode::PRECONDITION_FAILED => {
            let done = Response::builder().status(StatusCode::OK).header(ETAG, "\"0\"");
            Ok(done.body(Either::Left(Full::default()))?)
        }
        _ => {
            state.counts.lock().unwrap().received_bytes += body.len() as u64;
            Ok(Response::from_parts(parts, Either::Left(Full::new(body))))
        }
    }
}

/// On a connection of its own.
async fn forward(target: String, mut request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Error> {
    request.headers_mut().remove(CONNECTION);
    request.headers_mut().remove(TRANSFER_ENCODING);
    let stream = TcpStream::connect(target).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (parts, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(parts, body))
}

fn slow_down() -> Response<Body> {
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SlowDown</Code><Message>Please reduce your \
               request rate.</Message><RequestId>0</RequestId><HostId>0</HostId></Error>";
    Response::builder()
        .status(StatusCode::SERVICE_UNAVAILABLE)
        .header("content-type", "application/xml")
        .body(Either::Left(Full::new(Bytes::from_static(xml.as_bytes()))))
        .unwrap()
}
