//! Rewrites and removals where other servers write to the same tables: they hold only as long as what they take the
//! place of is there.

use crate::lock::lock_mutex;
use crate::store::log::shared_log::Appended;
use crate::store::log::table_log::{Change, add_action};
use crate::store::shared::tries::Tries;
use crate::store::state::Store;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::file_list::of_partition;
use crate::store::table::orphans::Stale;
use crate::store::table::schema::Table;
use std::collections::HashSet;
use std::sync::Arc;

impl Store {
    /// In the log and in the view: `old` out, `new` in, unless another server was first with some of `old`. Then, as
    /// after any failure, `new` is removed from the root.
    pub(super) async fn replace_beside_others(
        &self,
        table: Table,
        old: &[Arc<DataFile>],
        new: Vec<Arc<DataFile>>,
        data_change: bool,
    ) -> Result<(), StoreError> {
        let mut log = self.logs[table.index()].lock().await;
        let mut tries = Tries::default();
        let mut read = self.read_news(table, &mut log, &mut tries).await;
        loop {
            let still = read.and_then(|()| match self.has_still(table, old, &new) {
                true => Ok(()),
                false => Err(StoreError::Overtaken { table: table.name() }),
            });
            if let Err(error) = still {
                drop(log);
                self.delete_now(table, &new).await;
                return Err(error);
            }
            let change = Change {
                add: new.iter().map(|file| add_action(table, file, data_change)).collect(),
                remove: old,
                txns: &[],
                data_change,
            };
            match log.append(change).await {
                Ok(Appended::Written) => break,
                Ok(Appended::Behind) => read = self.again(table, &mut log, &mut tries).await,
                Err(error) => {
                    drop(log);
                    return Err(self.clear_up(table, &new, error).await);
                }
            }
        }
        self.counters.count_conflict(&tries);
        self.rewritten(log, table, old, new);
        Ok(())
    }

    /// Whether all that is to be replaced is there. Of a roll-up all that there is must be that: one that another
    /// server has made meanwhile would count its hour again.
    fn has_still(&self, table: Table, old: &[Arc<DataFile>], new: &[Arc<DataFile>]) -> bool {
        let snapshot = self.snapshot();
        let files = snapshot.files(table);
        let is_there = |file: &Arc<DataFile>| {
            let known = of_partition(files, &file.partition);
            known.iter().any(|known| known.path == file.path)
        };
        let is_all = || {
            let partitions: HashSet<&str> = new.iter().chain(old).map(|file| file.partition.as_str()).collect();
            let there: usize = partitions
                .iter()
                .map(|partition| of_partition(files, partition).len())
                .sum();
            there == old.len()
        };
        old.iter().all(is_there) && (!Table::ROLLUPS.contains(&table) || is_all())
    }

    /// Removes these files, which are all of the partitions before the first that is kept; none of them where that is
    /// not so any more: what another server has stored meanwhile is not rolled up yet. Returns whether they are gone.
    pub(super) async fn remove_beside_others(
        &self,
        table: Table,
        old: &[Arc<DataFile>],
        first_kept: &str,
    ) -> Result<bool, StoreError> {
        let mut log = self.logs[table.index()].lock().await;
        let mut tries = Tries::default();
        self.read_news(table, &mut log, &mut tries).await?;
        loop {
            let snapshot = self.snapshot();
            let files = snapshot.files(table);
            let there = &files[..files.partition_point(|file| file.partition.as_str() < first_kept)];
            let meant: HashSet<&str> = old.iter().map(|file| file.path.as_str()).collect();
            let is_same = there.len() == old.len() && there.iter().all(|file| meant.contains(file.path.as_str()));
            if !is_same {
                return Ok(false);
            }
            let change = Change {
                add: Vec::new(),
                remove: old,
                txns: &[],
                data_change: true,
            };
            match log.append(change).await? {
                Appended::Written => break,
                Appended::Behind => self.again(table, &mut log, &mut tries).await?,
            }
        }
        self.counters.count_conflict(&tries);
        self.replace_files(table, old, Vec::new(), Stale::Expired);
        drop(log);
        Ok(true)
    }

    /// What only one of several servers does, and what is left of servers that ended.
    pub(super) async fn clear_after_others(&self) {
        let Some(members) = &self.members else { return };
        members.heartbeats.forget_dead().await;
        self.find_orphans().await;
    }

    /// What a server does that has not the lease: it deletes what it has replaced itself.
    pub(crate) async fn maintain_own(&self) {
        let _alone = self.maintaining.lock().await;
        self.vacuum().await;
        let snapshot = self.snapshot();
        self.damage.forget(|table| snapshot.files(table));
        let now_ns = self.config.clock.proven_ns();
        lock_mutex(&self.nodes).forget_older(self.earliest_ns(now_ns));
        self.forget_old_instances(now_ns);
    }

    /// Of what is about to be deleted nothing that a table has.
    pub(super) fn keep_named(&self) {
        let snapshot = self.snapshot();
        let mut named: HashSet<String> = HashSet::new();
        for table in Table::ALL {
            named.extend(snapshot.files(table).iter().map(|file| table.path_of(&file.path)));
        }
        lock_mutex(&self.garbage).retain(|file| !named.contains(file.path()));
    }
}
