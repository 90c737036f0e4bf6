//! The only HTTP room: routes, errors, limits.
//!
//! In: HTTP requests. Out: JSON, protobuf and files. Never computes: it calls `ingest`, `store`, `query` and `render`.

mod around;
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

use crate::durations::Durations;
use crate::ingest::Ingest;
use crate::store::Store;
use axum::Router;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware;
use std::sync::Arc;

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
        .layer(middleware::from_fn_with_state(Arc::new(state.clone()), around::routes))
        .with_state(state);
    // Which methods a path takes is said only outside of all that is laid around it.
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(around::everything))
}

/// How long requests took until their answers began, by door.
#[derive(Debug, Default)]
pub struct Times {
    open: Durations,
    ingest: Durations,
    view: Durations,
}
