//! A consistent view of all tables.

use crate::lock::lock_mutex;
use crate::store::buffer::arriving::Pending;
use crate::store::format::read::footers::Footers;
use crate::store::format::read::groups::{ReadError, read_error};
use crate::store::root::reader::RangeReader;
use crate::store::table::data_file::DataFile;
use crate::store::table::file_list;
use crate::store::table::integrity::{Condition, Corruption};
use crate::store::table::schema::Table;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnv;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Memory for the footers of files of samples that are kept from one query to the next.
const FOOTER_BYTES: usize = 32 << 20;

/// No partition is before this, and none behind that.
const FIRST_DAY: &str = "";

const BEHIND_DAYS: &str = "~";

/// What is wrong with a file that is gone.
const REPLACED: &str = "another server has replaced it and deleted it meanwhile: ask again";

/// See [`crate::store::state::Store::snapshot`].
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) files: [Arc<Vec<Arc<DataFile>>>; Table::COUNT],
    pub(crate) pending: [Arc<Vec<Pending>>; Table::COUNT],
    pub(crate) runtime: Arc<RuntimeEnv>,
    /// Reads the committed files.
    pub(crate) reader: Arc<dyn RangeReader>,
    pub(crate) footers: Arc<Footers>,
    damage: Arc<Corruption>,
    left_out: Arc<Mutex<BTreeSet<String>>>,
}

impl Snapshot {
    pub(crate) fn new(runtime: Arc<RuntimeEnv>, reader: Arc<dyn RangeReader>, damage: Arc<Corruption>) -> Self {
        Self {
            files: Default::default(),
            pending: Default::default(),
            runtime,
            reader,
            footers: Arc::new(Footers::new(FOOTER_BYTES)),
            damage,
            left_out: Arc::default(),
        }
    }

    /// The same view, for a reader who is told apart from others what was left out for him.
    pub(crate) fn of_one_reader(&self) -> Self {
        Self {
            left_out: Arc::default(),
            ..self.clone()
        }
    }

    /// Of files that are about to be read those that can be. The others are damaged and are left out;
    /// [`Snapshot::left_out`] then names them.
    ///
    /// # Errors
    /// One of them is gone, since another server has replaced it minutes ago: this view is too old to be read.
    pub(crate) async fn intact(
        &self,
        table: Table,
        mut files: Vec<Arc<DataFile>>,
    ) -> Result<Vec<Arc<DataFile>>, ReadError> {
        let conditions = self.damage.conditions(table, &files).await;
        if let Some(at) = conditions.iter().position(|condition| *condition == Condition::Gone) {
            return Err(read_error(table, &files[at])(REPLACED.to_owned()));
        }
        let mut conditions = conditions.into_iter();
        files.retain(|file| {
            let is_intact = conditions.next() == Some(Condition::Intact);
            if !is_intact {
                lock_mutex(&self.left_out).insert(format!("{}/{}", table.name(), file.path));
            }
            is_intact
        });
        Ok(files)
    }

    /// What a file is that is about to be read.
    pub(crate) async fn condition(&self, table: Table, file: &Arc<DataFile>) -> Condition {
        let conditions = self.damage.conditions(table, std::slice::from_ref(file)).await;
        conditions.first().copied().unwrap_or(Condition::Damaged)
    }

    /// Of these hours those whose roll-up can be read in full. What is damaged is not named for it: it need not be
    /// read.
    pub async fn sound_rollups(&self, rollup: Table, hours: &[String]) -> HashSet<String> {
        let of_hours = hours
            .iter()
            .flat_map(|hour| file_list::of_partition(self.files(rollup), hour));
        let files: Vec<_> = of_hours.cloned().collect();
        let conditions = self.damage.conditions(rollup, &files).await;
        let damaged: HashSet<&str> = files
            .iter()
            .zip(conditions)
            .filter(|(_, condition)| *condition != Condition::Intact)
            .map(|(file, _)| file.partition.as_str())
            .collect();
        let is_intact = |hour: &&String| !damaged.contains(hour.as_str());
        hours.iter().filter(is_intact).cloned().collect()
    }

    /// Damaged files that readers of this snapshot and of its clones would have read, by path below the data directory.
    pub fn left_out(&self) -> Vec<String> {
        lock_mutex(&self.left_out).iter().cloned().collect()
    }

    /// The committed files of a table, in order of partition.
    pub fn files(&self, table: Table) -> &[Arc<DataFile>] {
        &self.files[table.index()]
    }

    /// All days of a table, as ranges of its partitions in their order, each of about so many rows, or one day, of
    /// those that are read: so what is read at a time fits into memory, whatever is read of all days.
    pub fn days_of_rows(&self, table: Table, most_rows: u64, is_read: impl Fn(&str) -> bool) -> Vec<Range<String>> {
        let (mut ranges, mut begin, mut rows) = (Vec::new(), FIRST_DAY.to_owned(), 0);
        let files = self.files(table);
        for day in files.chunk_by(|a, b| a.partition == b.partition) {
            let name = &day[0].partition;
            if !is_read(name) {
                continue;
            }
            let of_day: u64 = day.iter().map(|file| file.rows).sum();
            if rows > 0 && rows + of_day > most_rows {
                ranges.push(std::mem::replace(&mut begin, name.clone())..name.clone());
                rows = 0;
            }
            rows += of_day;
        }
        ranges.push(begin..BEHIND_DAYS.to_owned());
        ranges
    }

    /// Whether a roll-up counts an hour's committed samples, no more and no less. Where the samples are gone by
    /// retention, what there is counts. Pending rows of the hour are never in it.
    pub fn is_rolled_up(&self, rollup: Table, hour: &str) -> bool {
        let of = |table| file_list::of_partition(self.files(table), hour);
        file_list::is_current(of(Table::Samples), of(rollup))
    }

    /// Rows that wait for their commit.
    pub fn pending(&self, table: Table) -> &[Pending] {
        &self.pending[table.index()]
    }

    /// The hours that have samples which wait for their commit.
    pub fn pending_hours(&self) -> HashSet<String> {
        self.pending(Table::Samples)
            .iter()
            .filter_map(Pending::partition)
            .collect()
    }

    /// The account of all queries' memory.
    pub fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        &self.runtime.memory_pool
    }
}
