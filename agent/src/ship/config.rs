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
    /// Version of the agent, such as `0.1.0`.
    pub agent_version: String,
}

/// A bearer token that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub(super) String);

impl Token {
    /// Takes any text: whether a header can carry it is checked when the shipper starts.
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
    /// Goes with every request; none where the server asks for none.
    pub token: Option<Token>,
    /// PEM file with certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The spool lives in `spool/` below it, refused batches in `quarantine/`.
    pub state_dir: PathBuf,
    /// Bytes of all spooled batches; beyond it the oldest are dropped.
    pub spool_limit_bytes: u64,
    /// One request, from connecting to the answer's last byte.
    pub request_timeout: Duration,
    /// Waits after a failed attempt.
    pub retry: Retry,
    /// Who ships.
    pub identity: Identity,
}

/// Waits between attempts: the first, doubled each time up to the longest, each shortened by up to half at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// After the first failure.
    pub first: Duration,
    /// The longest of all.
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
    /// The server's address is no URL that can be used.
    #[error("server URL `{url}`: {reason}; give it as http://HOST:PORT or https://HOST:PORT")]
    Url {
        /// The address that was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file of certificates cannot be read, or holds none.
    #[error("certificate file {path}: {reason}; it must hold PEM certificates and be readable by the agent")]
    Ca {
        /// The path that was given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A header cannot carry the token. The value says why.
    #[error("token: {0}; a token is one line of visible ASCII characters")]
    Token(String),
    /// The HTTP client cannot be set up. The value is the cause.
    #[error("TLS: {0}")]
    Tls(String),
    /// The state directory cannot be made, or not be written to.
    #[error("state directory {path}: {source}; it must be writable by the agent (--state-dir names another)")]
    StateDir {
        /// The path that was given.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another agent holds the state directory.
    #[error("state directory {path} is in use by another agent; stop it or give this one a --state-dir of its own")]
    Busy {
        /// The path that was given.
        path: PathBuf,
    },
    /// A thread or what it works with could not be had. The value is what the system says.
    #[error("the shipping thread could not start: {0}")]
    Thread(std::io::Error),
}
