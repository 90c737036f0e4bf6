//! Roll-ups: the samples of an hour counted by minute and by hour, and by ten seconds without their stacks.
//!
//! A roll-up's rows say how many samples of one series, mode and stack had one value (the period of each) in a minute or an hour; those of
//! ten seconds, for charts, how many of one series and mode. It is made from all committed files of an hour, and the names of its files hold a hash of those files' names: so a roll-up is current
//! exactly as long as the hour consists of the files that were counted, whatever happens between two commits.

use super::StoreError;
use super::book::{Book, Interned, InternedIds};
use super::coded::{CodedFile, Group};
use super::file::{Effort, Encoded, ROW_GROUP_ROWS};
use super::hour::LEAST_OF_SERVICE;
use super::notes::Notes;
use super::packing::{Runs, begins, dense, runs};
use super::samples::Samples;
use super::schema::Table;
use super::snapshot::DataFile;
use parquet::errors::ParquetError;
use std::ops::Range;
use std::sync::Arc;

const TEN_SECONDS_NS: i64 = 10_000_000_000;
const MINUTE_NS: i64 = 60_000_000_000;
const HOUR_NS: i64 = 60 * MINUTE_NS;
/// An hour's parts of ten seconds.
const TENS: usize = (HOUR_NS / TEN_SECONDS_NS) as usize;

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

/// What roll-ups tell apart beside stacks: mode, by its name's code, and value.
type Way = (u32, i64);

/// What is counted of a series.
#[derive(Debug, Clone, Copy)]
struct Entry {
    stack: u32,
    way: u32,
    /// Another entry with the same stack.
    next: u32,
    /// Its samples, and where their minutes are.
    count: u32,
    end: u32,
}

/// No entry.
const NONE: u32 = u32::MAX;

/// The roll-ups of an hour as they grow, series by series.
pub(super) struct Rollups {
    minutes: Rollup,
    hours: Rollup,
    tens: Rollup,
    ways: Interned<Way>,
    /// Of each manner in the book.
    way_of: Vec<u32>,
    /// An entry of each stack in the book.
    first_of: Vec<u32>,
    entries: Vec<Entry>,
    /// The entry of each row, and the minutes of all entries, one after another.
    entry_of: Vec<u32>,
    minutes_of: Vec<i64>,
    /// Samples of a series in each ten seconds of the hour, of one way after another.
    tens_of: Vec<u32>,
}

impl Rollups {
    pub(super) fn new() -> Self {
        Self {
            minutes: Rollup::new(Table::SamplesMinute),
            hours: Rollup::new(Table::SamplesHour),
            tens: Rollup::new(Table::SamplesTenSeconds),
            ways: Interned::default(),
            way_of: Vec::new(),
            first_of: Vec::new(),
            entries: Vec::new(),
            entry_of: Vec::new(),
            minutes_of: Vec::new(),
            tens_of: Vec::new(),
        }
    }

    /// Counts rows of one series, all of one hour.
    pub(super) fn add(&mut self, rows: &Samples, range: Range<usize>, book: &Book) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let origin = rows.origins[range.start];
        for rollup in [&mut self.minutes, &mut self.hours, &mut self.tens] {
            rollup.begin_series(origin, book, &self.ways)?;
        }
        self.find_entries(rows, range.clone(), book);
        self.count_tens(rows, range.clone());
        self.gather_minutes(&rows.ts_ns[range]);
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        let key = |entry: &u32| {
            let entry = &self.entries[*entry as usize];
            // The order in which stacks came is about that of their frequency, and the same for all series.
            (entry.way, entry.stack)
        };
        order.sort_unstable_by_key(key);
        for entry in order {
            let Entry {
                stack, way, count, end, ..
            } = self.entries[entry as usize];
            let minutes = &mut self.minutes_of[(end - count) as usize..end as usize];
            minutes.sort_unstable();
            let what = (origin, stack, way);
            for same in minutes.chunk_by(|a, b| a == b) {
                self.minutes.push(what, same[0] * MINUTE_NS, same.len());
            }
            let hour = |minute: i64| (minute * MINUTE_NS).div_euclid(HOUR_NS) * HOUR_NS;
            for same in minutes.chunk_by(|a, b| hour(*a) == hour(*b)) {
                self.hours.push(what, hour(same[0]), same.len());
            }
        }
        for entry in self.entries.drain(..) {
            self.first_of[entry.stack as usize] = NONE;
        }
        for rollup in [&mut self.minutes, &mut self.hours, &mut self.tens] {
            if rollup.counts.len() >= ROW_GROUP_ROWS {
                rollup.flush(book, &self.ways)?;
            }
        }
        Ok(())
    }

    /// The entry of each row.
    fn find_entries(&mut self, rows: &Samples, range: Range<usize>, book: &Book) {
        for manner in self.way_of.len()..book.manners.len() {
            let manner = book.manners[manner as u32];
            self.way_of.push(self.ways.code((manner.mode, manner.value)));
        }
        self.first_of.resize(book.stacks.len(), NONE);
        self.entry_of.clear();
        for (stack, manner) in rows.stacks[range.clone()].iter().zip(&rows.manners[range]) {
            let way = self.way_of[*manner as usize];
            let first = &mut self.first_of[*stack as usize];
            let mut entry = *first;
            while entry != NONE && self.entries[entry as usize].way != way {
                entry = self.entries[entry as usize].next;
            }
            if entry == NONE {
                entry = self.entries.len() as u32;
                self.entries.push(Entry {
                    stack: *stack,
                    way,
                    next: std::mem::replace(first, entry),
                    count: 0,
                    end: 0,
                });
                self.first_of[*stack as usize] = entry;
            }
            self.entries[entry as usize].count += 1;
            self.entry_of.push(entry);
        }
    }

    /// Adds a row for each ten seconds and way that the series has samples of.
    fn count_tens(&mut self, rows: &Samples, range: Range<usize>) {
        let hour_ns = rows.ts_ns[range.start].div_euclid(HOUR_NS) * HOUR_NS;
        self.tens_of.clear();
        self.tens_of.resize(self.ways.len() * TENS, 0);
        for (ts_ns, manner) in rows.ts_ns[range.clone()].iter().zip(&rows.manners[range.clone()]) {
            let ten = (ts_ns.rem_euclid(HOUR_NS) / TEN_SECONDS_NS) as usize;
            self.tens_of[self.way_of[*manner as usize] as usize * TENS + ten] += 1;
        }
        for (place, count) in self.tens_of.iter().enumerate().filter(|(_, count)| **count > 0) {
            let what = (rows.origins[range.start], 0, (place / TENS) as u32);
            let ts_ns = hour_ns + (place % TENS) as i64 * TEN_SECONDS_NS;
            self.tens.push(what, ts_ns, *count as usize);
        }
    }

    /// The minutes of each entry's rows, one entry after another.
    fn gather_minutes(&mut self, times: &[i64]) {
        let mut begin = 0;
        for entry in &mut self.entries {
            entry.end = begin;
            begin += entry.count;
        }
        self.minutes_of.resize(times.len(), 0);
        for (entry, ts_ns) in self.entry_of.iter().zip(times) {
            let end = &mut self.entries[*entry as usize].end;
            self.minutes_of[*end as usize] = ts_ns.div_euclid(MINUTE_NS);
            *end += 1;
        }
    }

    /// Makes row groups of all rows: the book is begun anew.
    pub(super) fn flush(&mut self, book: &Book) -> Result<(), StoreError> {
        self.minutes.flush(book, &self.ways)?;
        self.hours.flush(book, &self.ways)?;
        self.tens.flush(book, &self.ways)?;
        self.way_of.clear();
        Ok(())
    }

    /// The encoded files, of each table one, when all rows are flushed. `name`: how their names begin.
    pub(super) fn finish(
        self,
        partition: &str,
        name: &str,
    ) -> Result<[Option<Encoded>; Table::ROLLUPS.len()], StoreError> {
        let finish = |rollup: Rollup| rollup.file.map(|file| file.finish(partition, name)).transpose();
        Ok([finish(self.minutes)?, finish(self.hours)?, finish(self.tens)?])
    }
}

/// Rows of one roll-up's table, by codes.
struct Rollup {
    table: Table,
    starts: InternedIds,
    times: Vec<u32>,
    origins: Vec<u32>,
    stacks: Vec<u32>,
    ways: Vec<u32>,
    counts: Vec<i64>,
    file: Option<CodedFile>,
}

impl Rollup {
    fn new(table: Table) -> Self {
        Self {
            table,
            starts: InternedIds::default(),
            times: Vec::new(),
            origins: Vec::new(),
            stacks: Vec::new(),
            ways: Vec::new(),
            counts: Vec::new(),
            file: None,
        }
    }

    /// `origin`: one of the series. Without stacks that is any number.
    fn push(&mut self, (origin, stack, way): (u32, u32, u32), ts_ns: i64, count: usize) {
        self.times.push(self.starts.code(ts_ns));
        self.origins.push(origin);
        self.stacks.push(stack);
        self.ways.push(way);
        self.counts.push(count as i64);
    }

    /// The next rows are of this series. A row group of enough rows ends with its service, as one of samples does.
    fn begin_series(&mut self, origin: u32, book: &Book, ways: &Interned<Way>) -> Result<(), StoreError> {
        let service = |origin: u32| book.series_of(origin).service;
        match self.origins.last() {
            Some(last) if self.origins.len() >= LEAST_OF_SERVICE && service(*last) != service(origin) => {
                self.flush(book, ways)
            }
            _ => Ok(()),
        }
    }

    /// Puts the rows of a service, which came series by series, in the order of stacks: one stack's rows of all series are beside each other.
    fn sort(&mut self, book: &Book) {
        let what = |origin: u32| {
            let series = book.series_of(origin);
            (series.kind, series.service)
        };
        let mut programs: Vec<u32> = Vec::with_capacity(self.origins.len());
        for (row, origin) in self.origins.iter().enumerate() {
            let is_next = row > 0 && what(self.origins[row - 1]) != what(*origin);
            programs.push(programs.last().copied().unwrap_or_default() + u32::from(is_next));
        }
        let mut order: Vec<u32> = (0..self.origins.len() as u32).collect();
        // Each leaves what is equal as it was: so by stack within a mode and value, and that within a program.
        for column in [&self.stacks, &self.ways, &programs] {
            order = by_code(&order, column);
        }
        let by_order = |column: &[u32]| order.iter().map(|row| column[*row as usize]).collect();
        self.times = by_order(&self.times);
        self.origins = by_order(&self.origins);
        self.stacks = by_order(&self.stacks);
        self.ways = by_order(&self.ways);
        self.counts = order.iter().map(|row| self.counts[*row as usize]).collect();
    }

    /// Makes a row group of the rows.
    fn flush(&mut self, book: &Book, ways: &Interned<Way>) -> Result<(), StoreError> {
        let rows = self.counts.len();
        if rows == 0 {
            return Ok(());
        }
        if self.table.has_stacks() {
            self.sort(book);
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => CodedFile::new(self.table, Effort::Compact, &Notes::default(), 0)?,
        };
        file.write(rows, |group| self.write(group, book, ways))?;
        self.file = Some(file);
        self.times.clear();
        self.origins.clear();
        self.stacks.clear();
        self.ways.clear();
        self.counts.clear();
        Ok(())
    }

    /// Adds all columns in the order of the table's.
    fn write(&self, group: &mut Group<'_>, book: &Book, ways: &Interned<Way>) -> Result<(), ParquetError> {
        let (times, starts) = dense(self.times.iter().copied(), self.starts.len());
        let starts = starts.into_iter().map(|start| Some(self.starts[start]));
        group.numbers_of("ts_ns", &times, starts, size_of::<i64>(), &Runs::new())?;
        let (origins, names) = (runs(self.origins.iter().copied()), &book.names);
        group.texts_of_runs("type", &origins, names, |origin| book.series_of(origin).kind)?;
        let (of_rows, kept) = dense(self.origins.iter().copied(), book.origins.len());
        group.texts_of_runs("service", &origins, names, |origin| book.series_of(origin).service)?;
        let series = kept.iter().map(|origin| Some(book.series_of(*origin).id));
        group.numbers_of("series_id", &of_rows, series, size_of::<i64>(), &Runs::new())?;
        let of_ways = runs(self.ways.iter().copied());
        group.texts_of_runs("mode", &of_ways, names, |way| ways[way].0)?;
        if self.table.has_stacks() {
            group.stacks(self.stacks.clone(), &Runs::new(), book)?;
        }
        group.numbers_of_runs("value", &of_ways, |way| Some(ways[way].1))?;
        group.numbers_of_rows("count", self.counts.iter().copied())
    }
}

/// All rows in the order of their codes in a column; those of one code stay as they are. Codes are dense: places are counted, not compared.
fn by_code(rows: &[u32], column: &[u32]) -> Vec<u32> {
    let codes = column.iter().max().map_or(0, |most| *most as usize + 1);
    let mut next = begins(column.iter().copied(), codes);
    let mut sorted = vec![0; rows.len()];
    for row in rows {
        let place = &mut next[column[*row as usize] as usize];
        sorted[*place as usize] = *row;
        *place += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::super::book::{Manner, Origin, Series};
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn one_stack_s_rows_of_all_nodes_stand_beside_each_other() {
        let (mut book, mut rollups, mut rows) = (Book::default(), Rollups::new(), Samples::default());
        // Two services of thirty nodes each, with stacks of their own.
        for series in 0..60 {
            let begin = rows.len();
            let code = book.series.code(Series {
                kind: book.names.code("cpu"),
                service: book.names.code(["a", "b"][series / 30]),
                id: series as i64,
            });
            let origin = book.origins.code(Origin {
                series: code,
                node: book.names.code(&format!("node-{series}")),
                thread: 0,
                process_id: 0,
                tid: None,
            });
            for row in 0..900 {
                rows.ts_ns.push(row % 3 * MINUTE_NS);
                rows.origins.push(origin);
                rows.stacks
                    .push(book.stacks.code(row % 100 + (series / 30) as i64 * 100));
                rows.manners.push(book.manners.code(Manner {
                    mode: book.names.code("user"),
                    cpu: None,
                    value: 1,
                }));
            }
            rollups.add(&rows, begin..rows.len(), &book).unwrap();
        }
        rollups.flush(&book).unwrap();
        let files = rollups.finish("1970-01-01T00", "rollup").unwrap();
        let [minutes, hours, tens] = files.map(Option::unwrap);
        for (file, minutes) in [(minutes, 3), (hours, 1)] {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file.bytes).unwrap();
            let batches = reader.with_batch_size(100_000).build().unwrap();
            let (mut stacks, mut keys, mut count) = (Vec::new(), Vec::new(), 0);
            for batch in batches {
                let batch = batch.unwrap();
                let numbers = |name: &str| batch[name].as_primitive::<Int64Type>().values().to_vec();
                let (series, times) = (numbers("series_id"), numbers("ts_ns"));
                count += numbers("count").iter().sum::<i64>();
                stacks.extend(numbers("stack_id"));
                keys.extend(series.into_iter().zip(times));
            }
            assert_eq!(count, 54_000);
            assert_eq!(stacks.len(), 6000 * minutes);
            let mut rest = &keys[..];
            let mut runs = 0;
            for same in stacks.chunk_by(|a, b| a == b) {
                runs += 1;
                let (of_stack, behind) = rest.split_at(same.len());
                assert!(of_stack.is_sorted());
                rest = behind;
            }
            assert_eq!(runs, 200);
        }
        let reader = ParquetRecordBatchReaderBuilder::try_new(tens.bytes).unwrap();
        let batch = reader.with_batch_size(1000).build().unwrap().next().unwrap().unwrap();
        let counts = batch["count"].as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(counts, [300; 180], "60 series in three parts of ten seconds each");
    }
}
