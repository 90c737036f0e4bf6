//! The tries of one commit that other servers were before.

use crate::store::log::shared_log::MOST_COMMIT;
use crate::store::log::table_log::TableLog;
use crate::store::root::backoff::Backoff;
use crate::store::state::{Store, StoreCounters};
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// While the server stops, a log that cannot be read is tried for so long.
const MOST_STOPPING: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct Tries {
    begun: Instant,
    /// How often another server was first, and since when.
    conflicts: u64,
    first: Option<Instant>,
    backoff: Backoff,
}

impl Default for Tries {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            conflicts: 0,
            first: None,
            backoff: Backoff::default(),
        }
    }
}

impl StoreCounters {
    /// How long a commit that is written now was kept by those of others.
    pub(crate) fn count_conflict(&self, tries: &Tries) {
        self.conflicts.fetch_add(tries.conflicts, Ordering::Relaxed);
        if let Some(first) = tries.first {
            self.conflict_seconds.add(first.elapsed());
        }
    }
}

impl Store {
    /// Another server was first: waits a little, and takes in what it wrote. An error says that the commit is to be
    /// given up; nothing of it is written.
    pub(crate) async fn again(&self, table: Table, log: &mut TableLog, tries: &mut Tries) -> Result<(), StoreError> {
        tries.conflicts += 1;
        tries.first.get_or_insert_with(Instant::now);
        if tries.begun.elapsed() > MOST_COMMIT {
            self.counters.count_conflict(tries);
            return Err(StoreError::Table {
                table: table.name(),
                what: "write a commit",
                cause: format!("other servers were first, {} times", tries.conflicts),
            });
        }
        tries.backoff.pause().await;
        self.read_news(table, log, tries).await
    }

    /// Takes in what others wrote to a table whose log is locked, as often as it takes.
    pub(crate) async fn read_news(
        &self,
        table: Table,
        log: &mut TableLog,
        tries: &mut Tries,
    ) -> Result<(), StoreError> {
        loop {
            let Err(error) = self.catch_up(table, log).await else {
                return Ok(());
            };
            let waited = tries.begun.elapsed();
            let stops = *self.stop.borrow() && waited > MOST_STOPPING;
            if stops || waited > MOST_COMMIT {
                return Err(error);
            }
            tracing::warn!(%error, "cannot read what other servers have written; trying again");
            tries.backoff.pause().await;
        }
    }
}
