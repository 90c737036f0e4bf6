//! The only HTTP room: routes, errors, limits.
//!
//! In: HTTP requests. Out: JSON, protobuf and files. Never computes: it calls `ingest`, `store`, `query` and `render`.

mod assets;
mod body;
mod compress;
mod door;
pub mod error;
mod ingest;
mod ops;
mod parameters;
mod patience;
pub mod query;
mod serve;
mod tags;
mod unread;

pub use assets::Agents;
pub use door::hosts::Hosts;
pub use door::{Guesses, Sessions, Tokens};
pub use error::ApiError;
pub use serve::serve;

#[cfg(any(test, fuzzing))]
pub(crate) use parameters::fuzz_parameters;

use self::error::Code;
use crate::durations::Durations;
use crate::ingest::Ingest;
use crate::store::Store;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

/// What every handler can reach.
#[derive(Debug, Clone)]
pub struct AppState {
    pub store: Arc<Store>,
    pub ingest: Arc<Ingest>,
    pub agents: Arc<Agents>,
    pub ingest_tokens: Tokens,
    pub view_tokens: Tokens,
    /// Whether this server speaks TLS itself.
    pub tls: bool,
    /// How others reach this server, without a slash at the end; else what a request's Host header says.
    pub public_url: Option<String>,
    /// Names under which it may be asked.
    pub hosts: Hosts,
    pub sessions: Arc<Sessions>,
    pub guesses: Arc<Guesses>,
    pub times: Arc<Times>,
}

impl AppState {
    /// A state without tokens, TLS and agents to hand out: for tests and for use on loopback.
    pub fn new(store: Arc<Store>) -> Self {
        Self {
            ingest: Arc::new(Ingest::new(store.clone(), crate::ingest::IngestConfig::default())),
            store,
            agents: Arc::new(Agents::new(None)),
            ingest_tokens: Tokens::default(),
            view_tokens: Tokens::default(),
            tls: false,
            public_url: None,
            hosts: Hosts::default(),
            sessions: Arc::default(),
            guesses: Arc::default(),
            times: Arc::default(),
        }
    }

    /// The server's address as its users have it. HTTP/2 names the host in the request's URI, HTTP/1 in a header.
    fn base_url(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        if let Some(url) = &self.public_url {
            return Some(url.clone());
        }
        let host = match uri.authority() {
            Some(authority) => authority.as_str(),
            None => headers.get(header::HOST)?.to_str().ok()?,
        };
        let scheme = if self.tls { "https" } else { "http" };
        Some(format!("{scheme}://{host}"))
    }
}

/// The whole application.
pub fn app(state: AppState) -> Router {
    let questions = query::router(state.store.query_memory_bytes());
    let answers = Router::new()
        .merge(ops::router())
        .merge(questions.layer(middleware::from_fn_with_state(state.clone(), tags::answers)));
    let routes = Router::new()
        .merge(answers.layer(middleware::from_fn_with_state(state.clone(), compress::answers)))
        .merge(ingest::router())
        .merge(door::router())
        .merge(assets::router())
        .layer(middleware::from_fn_with_state(state.clone(), door::guard))
        .layer(middleware::from_fn_with_state(state.clone(), door::hosts::check))
        .layer(middleware::from_fn(panics))
        .layer(middleware::from_fn_with_state(state.clone(), timed))
        .layer(middleware::from_fn(secure_headers))
        .layer(middleware::from_fn(host_header))
        .with_state(state);
    // Which methods a path takes is said only outside of all that is laid around it.
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(method_errors))
        .layer(middleware::from_fn(ingest::refusals))
        .layer(middleware::from_fn(ingest::unknown_methods))
        .layer(middleware::from_fn(unread::read_rest))
}

/// HTTP/2 names the host in the request's URI; the rooms behind read the header of HTTP/1.1.
async fn host_header(mut request: Request, next: Next) -> Response {
    if let Some(authority) = request.uri().authority()
        && !request.headers().contains_key(header::HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(header::HOST, host);
    }
    next.run(request).await
}

/// How long requests took until their answers began, by door.
#[derive(Debug, Default)]
pub struct Times {
    open: Durations,
    ingest: Durations,
    view: Durations,
}

async fn timed(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let times = &state.times;
    let of_door = match door::door(request.uri().path()) {
        door::Door::Open => &times.open,
        door::Door::Ingest => &times.ingest,
        door::Door::View => &times.view,
    };
    let begun = Instant::now();
    let response = next.run(request).await;
    of_door.add(begun.elapsed());
    response
}

/// A panic ends one request, with an answer.
async fn panics(request: Request, next: Next) -> Response {
    AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| ApiError::internal("it panicked, as the log says above").into_response())
}

/// A wrong method is an error like others, with the methods that are right.
async fn method_errors(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return response;
    }
    let headers = std::mem::take(response.headers_mut());
    let allow = headers.get(header::ALLOW).and_then(|allow| allow.to_str().ok());
    let allowed = allow.unwrap_or("other methods").replace(',', ", ");
    let path: String = path.chars().take(80).collect();
    let error = ApiError::new(Code::MethodNotAllowed, format!("`{path}` does not take {method}"));
    let mut told = error.hint(format!("it takes {allowed}")).into_response();
    for (name, value) in &headers {
        if !matches!(*name, header::CONTENT_LENGTH | header::CONTENT_TYPE) {
            told.headers_mut().insert(name, value.clone());
        }
    }
    told
}

/// Nothing but this server's own files runs or is shown on its pages, and nobody frames them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The login page's form goes to this server.
const LOGIN_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

async fn secure_headers(request: Request, next: Next) -> Response {
    let login = request.uri().path() == "/login";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let policy = if login { LOGIN_POLICY } else { POLICY };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // A form would not tell its origin either under `no-referrer`.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
