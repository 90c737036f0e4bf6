//! Roll-ups: the samples of an hour counted by minute and by hour.
//!
//! A roll-up's rows say how many samples of one series, mode and stack had one value (the period of each) in a minute or an hour. It is made
//! from all committed files of an hour, and the names of its files hold a hash of those files' names: so a roll-up is current
//! exactly as long as the hour consists of the files that were counted, whatever happens between two commits.

use super::StoreError;
use super::coded::{CodedFile, Group};
use super::file::{Effort, Encoded, Notes, ROW_GROUP_ROWS};
use super::merge::{Columns, Names};
use super::schema::Table;
use super::snapshot::DataFile;
use crate::hash::MixState;
use parquet::errors::ParquetError;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

const MINUTE_NS: i64 = 60_000_000_000;
const HOUR_NS: i64 = 60 * MINUTE_NS;

/// How the name of a roll-up's file begins that was made of these files.
pub(super) fn file_name(sources: &[Arc<DataFile>]) -> String {
    let mut paths: Vec<&str> = sources.iter().map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    format!(
        "rollup-{:016x}",
        xxhash_rust::xxh3::xxh3_64(paths.join("\n").as_bytes())
    )
}

/// The files of a partition, of files in order of partition.
pub(super) fn of_partition<'f>(files: &'f [Arc<DataFile>], partition: &str) -> &'f [Arc<DataFile>] {
    let start = files.partition_point(|file| file.partition.as_str() < partition);
    let end = files.partition_point(|file| file.partition.as_str() <= partition);
    &files[start..end]
}

/// Whether a roll-up counts these samples, no more and no less. Where the samples are gone by retention, what there is counts.
pub(super) fn is_current(samples: &[Arc<DataFile>], rollup: &[Arc<DataFile>]) -> bool {
    if samples.is_empty() {
        return !rollup.is_empty();
    }
    let name = file_name(samples);
    !rollup.is_empty()
        && rollup
            .iter()
            .all(|file| file.path.rsplit('/').next().is_some_and(|file| file.starts_with(&name)))
}

/// What is counted of a series: mode, stack, value of each sample, begin of the minute.
type Key = (i32, i64, i64, i64);

/// Both roll-ups of an hour as they grow, series by series.
pub(super) struct Rollups {
    minutes: Rollup,
    hours: Rollup,
    counts: HashMap<Key, i64, MixState>,
}

impl Rollups {
    pub(super) fn new() -> Self {
        Self {
            minutes: Rollup::new(Table::SamplesMinute),
            hours: Rollup::new(Table::SamplesHour),
            counts: HashMap::default(),
        }
    }

    /// Counts rows of one series.
    pub(super) fn add(&mut self, rows: &Columns, range: Range<usize>, names: &Names) -> Result<(), StoreError> {
        let Some(first) = (!range.is_empty()).then_some(range.start) else {
            return Ok(());
        };
        for row in range {
            let minute = rows.ts_ns[row].div_euclid(MINUTE_NS) * MINUTE_NS;
            let key = (rows.mode[row], rows.stack_id[row], rows.value[row], minute);
            *self.counts.entry(key).or_default() += 1;
        }
        let mut counts: Vec<(Key, i64)> = self.counts.drain().collect();
        counts.sort_unstable();
        for (key, count) in &counts {
            self.minutes.push(rows, first, *key, *count);
        }
        for same in counts.chunk_by(|(a, _), (b, _)| (a.0, a.1, a.2) == (b.0, b.1, b.2)) {
            let (mode, stack, value, minute) = same[0].0;
            let key = (mode, stack, value, minute.div_euclid(HOUR_NS) * HOUR_NS);
            self.hours
                .push(rows, first, key, same.iter().map(|(_, count)| count).sum());
        }
        for rollup in [&mut self.minutes, &mut self.hours] {
            if rollup.count.len() >= ROW_GROUP_ROWS {
                rollup.flush(names)?;
            }
        }
        Ok(())
    }

    /// The encoded files, of each table one. `name`: how their names begin.
    pub(super) fn finish(
        mut self,
        partition: &str,
        name: &str,
        names: &Names,
    ) -> Result<[Option<Encoded>; 2], StoreError> {
        self.minutes.flush(names)?;
        self.hours.flush(names)?;
        let finish = |rollup: Rollup| rollup.file.map(|file| file.finish(partition, name)).transpose();
        Ok([finish(self.minutes)?, finish(self.hours)?])
    }
}

/// Rows of one roll-up's table.
struct Rollup {
    table: Table,
    ts_ns: Vec<i64>,
    kind: Vec<i32>,
    node: Vec<i32>,
    service: Vec<i32>,
    series_id: Vec<i64>,
    mode: Vec<i32>,
    stack_id: Vec<i64>,
    value: Vec<i64>,
    count: Vec<i64>,
    file: Option<CodedFile>,
}

impl Rollup {
    fn new(table: Table) -> Self {
        Self {
            table,
            ts_ns: Vec::new(),
            kind: Vec::new(),
            node: Vec::new(),
            service: Vec::new(),
            series_id: Vec::new(),
            mode: Vec::new(),
            stack_id: Vec::new(),
            value: Vec::new(),
            count: Vec::new(),
            file: None,
        }
    }

    /// `row`: one of the series.
    fn push(&mut self, rows: &Columns, row: usize, (mode, stack_id, value, ts_ns): Key, count: i64) {
        self.ts_ns.push(ts_ns);
        self.kind.push(rows.kind[row]);
        self.node.push(rows.node[row]);
        self.service.push(rows.service[row]);
        self.series_id.push(rows.series_id[row]);
        self.mode.push(mode);
        self.stack_id.push(stack_id);
        self.value.push(value);
        self.count.push(count);
    }

    /// Makes a row group of the rows.
    fn flush(&mut self, names: &Names) -> Result<(), StoreError> {
        let rows = self.count.len();
        if rows == 0 {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => CodedFile::new(self.table, Effort::Compact, &Notes::default())?,
        };
        file.write(rows, |group| self.write(group, names))?;
        self.file = Some(file);
        Ok(())
    }

    /// Adds all columns in the order of the table's, and leaves no row.
    fn write(&mut self, group: &mut Group<'_>, names: &Names) -> Result<(), ParquetError> {
        let numbers = |group: &mut Group<'_>, name: &str, column: &mut Vec<i64>| {
            let result = group.numbers(name, column.iter().copied().map(Some), size_of::<i64>());
            column.clear();
            result
        };
        let texts = |group: &mut Group<'_>, name: &str, column: &mut Vec<i32>| {
            let result = group.texts(name, column.iter().copied(), names);
            column.clear();
            result
        };
        numbers(group, "ts_ns", &mut self.ts_ns)?;
        texts(group, "type", &mut self.kind)?;
        texts(group, "node", &mut self.node)?;
        texts(group, "service", &mut self.service)?;
        numbers(group, "series_id", &mut self.series_id)?;
        texts(group, "mode", &mut self.mode)?;
        numbers(group, "stack_id", &mut self.stack_id)?;
        numbers(group, "value", &mut self.value)?;
        numbers(group, "count", &mut self.count)
    }
}
