//! What every handler can reach.

use super::agents::Agents;
use super::bursts::BurstAgents;
use super::door::hosts::Hosts;
use super::door::{Guesses, Sessions, Tokens};
use crate::durations::Durations;
use crate::ingest::Ingest;
use crate::query::Spread;
use crate::store::Store;
use axum::http::{HeaderMap, Uri, header};
use std::sync::Arc;

/// What every handler can reach.
#[derive(Debug, Clone)]
pub struct AppState {
    /// Where samples are kept and asked for.
    pub store: Arc<Store>,
    /// Takes profiles in.
    pub ingest: Arc<Ingest>,
    /// Agents that this server hands out.
    pub agents: Arc<Agents>,
    /// Who has one of these may send profiles.
    pub ingest_tokens: Tokens,
    /// Who has one of these may ask.
    pub view_tokens: Tokens,
    /// Who has one of these may have a node looked at more closely; none: who may send.
    pub burst_tokens: Tokens,
    /// Whether those who may send may do that, too, where there are no tokens for it.
    pub senders_may_burst: bool,
    /// Agents that ask whether somebody wants that.
    pub burst_agents: Arc<BurstAgents>,
    /// Whether this server speaks TLS itself.
    pub tls: bool,
    /// How others reach this server, without a slash at the end; else what a request's Host header says.
    pub public_url: Option<String>,
    /// Names under which it may be asked.
    pub hosts: Hosts,
    /// Browsers that have shown a token of viewers.
    pub sessions: Arc<Sessions>,
    /// Counts wrong tokens, and refuses addresses from which too many came.
    pub guesses: Arc<Guesses>,
    /// How long requests took until their answers began.
    pub times: Arc<Times>,
    /// The other servers that count a part of what large questions ask for.
    pub spread: Spread,
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
            burst_tokens: Tokens::default(),
            senders_may_burst: true,
            burst_agents: Arc::default(),
            tls: false,
            public_url: None,
            hosts: Hosts::default(),
            sessions: Arc::default(),
            guesses: Arc::default(),
            times: Arc::default(),
            spread: Spread::default(),
        }
    }

    /// Whether anybody may have a node looked at more closely.
    pub(crate) fn has_bursts(&self) -> bool {
        self.senders_may_burst || self.burst_tokens.count().is_some()
    }

    /// The server's address as its users have it. HTTP/2 names the host in the request's URI, HTTP/1 in a header.
    pub(crate) fn base_url(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
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

/// How long requests took until their answers began, by door.
#[derive(Debug, Default)]
pub struct Times {
    pub(crate) open: Durations,
    pub(crate) ingest: Durations,
    pub(crate) view: Durations,
}
