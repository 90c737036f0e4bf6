//! What a shipper is told when it starts, and why it does not.

use std::path::PathBuf;
use std::time::Duration;

/// Who ships: constant over the life of the agent's process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Label `node`.
    pub node: String,
    /// Machine as OTLP names it, such as `amd64` or `arm64`.
    pub arch: String,
    /// Kernel release, as in `uname -r`.
    pub kernel_release: String,
    /// The kernel's boot id.
    pub boot_id: String,
    pub agent_version: String,
}

/// A bearer token that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub(super) String);

impl Token {
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where to ship to and what may be kept meanwhile.
#[derive(Debug, Clone)]
pub struct ShipConfig {
    /// Base URL of the server, such as `https://stakeout.example:7373`; a path prefix is kept.
    pub server: String,
    pub token: Option<Token>,
    /// PEM file with certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The spool lives in `spool/` below it, refused batches in `dead_letters/`.
    pub state_dir: PathBuf,
    /// Bytes of all spooled batches; beyond it the oldest are dropped.
    pub spool_limit_bytes: u64,
    /// One request, from connecting to the answer's last byte.
    pub request_timeout: Duration,
    pub retry: Retry,
    pub identity: Identity,
}

/// Waits between attempts: the first, doubled each time up to the longest, each shortened by up to half at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub first: Duration,
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}

/// Why the shipper could not start.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    #[error("server URL `{url}`: {reason}; give it as http://HOST:PORT or https://HOST:PORT")]
    Url { url: String, reason: String },
    #[error("certificate file {path}: {reason}; it must hold PEM certificates and be readable by the agent")]
    Ca { path: PathBuf, reason: String },
    #[error("token: {0}; a token is one line of visible ASCII characters")]
    Token(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("state directory {path}: {source}; it must be writable by the agent (--state-dir names another)")]
    StateDir { path: PathBuf, source: std::io::Error },
    #[error("state directory {path} is in use by another agent; stop it or give this one a --state-dir of its own")]
    Busy { path: PathBuf },
    #[error("the shipping thread could not start: {0}")]
    Thread(std::io::Error),
}
