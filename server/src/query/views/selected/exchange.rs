//! The other servers on the same data, as far as questions know of them: who can be asked to count a share, and what is
//! counted of that. Nothing here knows how they are reached.

use async_trait::async_trait;
use bytes::Bytes;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Questions that may read fewer committed rows are answered by the server that was asked.
pub const USUAL_LEAST_ROWS: usize = 4_000_000;

/// Why a server did not count a share.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExchangeError {
    /// It answered that it cannot, and no other server of the same data would do better.
    #[error("it refused: {0}")]
    Refused(String),
    /// It is gone, cannot be reached, or has too much to do.
    #[error("it failed: {0}")]
    Failed(String),
}

/// Has other servers count shares.
#[async_trait]
pub trait Exchange: Debug + Send + Sync {
    /// What this server is called among them.
    fn own(&self) -> String;

    /// The others that can be asked now: alive, and of this server's version.
    fn servers(&self) -> Vec<String>;

    /// Has a server count a share. Dropped, the future tells it to stop.
    ///
    /// # Errors
    /// [`ExchangeError`], which says whether another one may be asked.
    async fn count(&self, server: &str, share: Bytes) -> Result<Bytes, ExchangeError>;
}

/// Counters since the start.
#[derive(Debug, Default)]
pub struct SpreadCounters {
    /// Counts that were spread over several servers; a question may need more than one.
    pub spread: AtomicU64,
    /// Shares that others counted for this server.
    pub shares: AtomicU64,
    /// Rows of these shares' row groups.
    pub rows: AtomicU64,
    /// Times that a share was asked again, of another server or of this one, since one failed or was slow.
    pub retries: AtomicU64,
    /// Shares that this server counted itself in the end.
    pub taken_back: AtomicU64,
    /// Bytes of shares that were sent, once for each server that was asked.
    pub sent_bytes: AtomicU64,
    /// Bytes of partial counts that came.
    pub received_bytes: AtomicU64,
    /// Shares that this server counted for others.
    pub counted: AtomicU64,
    /// Shares that it refused, or could not count.
    pub refused: AtomicU64,
}

/// Whether and how questions are spread.
#[derive(Debug, Clone)]
pub struct Spread {
    exchange: Option<Arc<dyn Exchange>>,
    least_rows: usize,
    /// What was spread since the start.
    pub counters: Arc<SpreadCounters>,
}

impl Default for Spread {
    /// Over nobody.
    fn default() -> Self {
        Spread {
            exchange: None,
            least_rows: USUAL_LEAST_ROWS,
            counters: Arc::default(),
        }
    }
}

impl Spread {
    /// Over the servers that an exchange knows, of questions that may read so many committed rows.
    #[must_use]
    pub fn over(self, exchange: Arc<dyn Exchange>, least_rows: usize) -> Spread {
        Spread {
            exchange: Some(exchange),
            least_rows,
            ..self
        }
    }

    /// Those who count so many committed rows together with this server; nothing where it does that alone.
    pub(crate) fn servers_for(&self, rows: usize) -> Option<(&Arc<dyn Exchange>, Vec<String>)> {
        let exchange = self.exchange.as_ref().filter(|_| rows >= self.least_rows.max(1))?;
        let servers = exchange.servers();
        (!servers.is_empty()).then_some((exchange, servers))
    }
}
