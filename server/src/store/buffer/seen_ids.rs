//! Remembers which dictionary rows are on the disk or on their way, so that each is written about once a day.
//!
//! Forgetting only costs space: a row is then written again, and compaction drops the repeat.

use crate::hash::MixState;
use crate::store::buffer::arriving::Pending;
use crate::store::buffer::batch::Rows;
use crate::store::buffer::id_map::IdMap;
use crate::store::table::error::StoreError;
use crate::store::table::partition::partition_of;
use crate::store::table::schema::Table;
use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use std::collections::{HashMap, HashSet};

/// Ids kept per table, over all days: about 40 MB for the largest table.
const MAX_IDS: usize = 2_000_000;

/// Ids of one table and day that a group brought in.
#[derive(Debug)]
pub(crate) struct NewIds {
    table: Table,
    day: String,
    ids: Vec<i64>,
}

#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    days: [HashMap<String, IdMap<()>>; Table::COUNT],
    epoch: u64,
}

impl SeenIds {
    /// For each id whether its row of that day is known.
    pub(crate) fn has(&self, table: Table, day: &str, ids: &[i64]) -> Vec<bool> {
        match self.days[table.index()].get(day) {
            Some(known) => ids.iter().map(|id| known.get(*id).is_some()).collect(),
            None => vec![false; ids.len()],
        }
    }

    /// Changes when a row that was known is not written after all, or is gone.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What is new of the dictionaries, and has to be written. After an error the ids
    /// in `new_ids` are to be forgotten.
    pub(crate) fn fresh_rows(
        &mut self,
        rows: &Rows,
        new_ids: &mut Vec<NewIds>,
    ) -> Result<[Vec<Pending>; Table::COUNT], StoreError> {
        let mut fresh: [Vec<Pending>; Table::COUNT] = Default::default();
        for table in Table::ALL {
            for batch in &rows.tables[table.index()] {
                let Some(partition) = partition_of(batch) else { continue };
                let batch = self
                    .only_new(table, partition, batch, new_ids)
                    .map_err(StoreError::table(table, "look for new rows"))?;
                if batch.num_rows() > 0 {
                    fresh[table.index()].push(Pending::Rows(batch));
                }
            }
        }
        Ok(fresh)
    }

    /// The rows of one day's batch that are not known yet; they count as known from here on. Tables whose key is not
    /// a single id come back whole.
    fn only_new(
        &mut self,
        table: Table,
        day: &str,
        batch: &RecordBatch,
        new_ids: &mut Vec<NewIds>,
    ) -> Result<RecordBatch, ArrowError> {
        let [key] = table.key() else { return Ok(batch.clone()) };
        let Some(ids) = batch
            .column_by_name(key)
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
        else {
            return Ok(batch.clone());
        };
        let days = &mut self.days[table.index()];
        if days.values().map(|ids| ids.len()).sum::<usize>() + ids.len() > MAX_IDS {
            // The oldest day first; when there is only one, all of it.
            if let Some(oldest) = days.keys().min().cloned() {
                days.remove(&oldest);
            }
        }
        let known = days.entry(day.to_owned()).or_default();
        let is_new = |id: &i64| {
            let before = known.len();
            known.get_or_insert(*id, ());
            known.len() > before
        };
        let keep: Vec<bool> = ids.values().iter().map(is_new).collect();
        let new = ids.values().iter().zip(&keep).filter(|(_, new)| **new);
        new_ids.push(NewIds {
            table,
            day: day.to_owned(),
            ids: new.map(|(id, _)| *id).collect(),
        });
        let keep = BooleanArray::from(keep);
        if keep.false_count() == 0 {
            return Ok(batch.clone());
        }
        filter_record_batch(batch, &keep)
    }

    /// These were not written after all.
    pub(crate) fn forget(&mut self, ids: &[NewIds]) {
        self.epoch += 1;
        // All of a day at once: each time the whole day is gone through, and nothing is taken in meanwhile.
        let mut all: HashMap<(usize, &str), HashSet<i64, MixState>> = HashMap::new();
        for NewIds { table, day, ids } in ids {
            all.entry((table.index(), day)).or_default().extend(ids);
        }
        for ((table, day), gone) in all {
            if let Some(known) = self.days[table].get_mut(day) {
                known.retain(|id| !gone.contains(&id));
            }
        }
    }

    /// A day's rows are gone.
    pub(crate) fn forget_day(&mut self, table: Table, day: &str) {
        self.epoch += 1;
        self.days[table.index()].remove(day);
    }
}
