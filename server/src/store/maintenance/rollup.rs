//! Roll-ups: the samples of an hour counted by minute and by hour, and by ten seconds without their stacks.
//!
//! A roll-up's rows say how many samples of one series, mode and stack had one value (the period of each) in a minute
//! or an hour; those of ten seconds, for charts, how many of one series and mode. It is made from all committed files
//! of an hour, and the names of its files hold a hash of those files' names: so a roll-up is current exactly as long
//! as the hour consists of the files that were counted, whatever happens between two commits.

use crate::column::runs::{Runs, begins, dense, runs};
use crate::store::buffer::coded_rows::Samples;
use crate::store::buffer::interner::{Interned, InternedIds, Interner};
use crate::store::format::provenance::Provenance;
use crate::store::format::write::column_writer::Group;
use crate::store::format::write::row_group::CodedFile;
use crate::store::format::write::rows_file::{Encoded, ROW_GROUP_ROWS, WriteProfile};
use crate::store::table::error::StoreError;
use crate::store::table::partition::{HOUR_NS, MINUTE_NS, TEN_SECONDS_NS};
use crate::store::table::schema::Table;
use parquet::errors::ParquetError;
use std::ops::Range;

/// An hour's parts of ten seconds.
const TENS: usize = (HOUR_NS / TEN_SECONDS_NS) as usize;

/// Ways that each have a place for every ten seconds; where there are more, as where each sample says how long
/// something took, what is there is sorted.
const MOST_COUNTED_WAYS: usize = 64;

/// Rows are sorted by places of all ways and stacks where these are at most so many times as many as rows.
const PLACES_OF_ROW: usize = 8;

/// Which part of its hour a time lies in.
fn part_of_hour(ts_ns: i64, part_ns: i64) -> usize {
    (ts_ns.rem_euclid(HOUR_NS) / part_ns) as usize
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
pub(crate) struct Rollups {
    minutes: Rollup,
    hours: Rollup,
    tens: Rollup,
    ways: Interned<Way>,
    /// Of each attribute set in the interner.
    way_of: Vec<u32>,
    /// An entry of each stack in the interner.
    first_of: Vec<u32>,
    entries: Vec<Entry>,
    /// The entry of each row, and the minutes of the hour of all entries, one after another.
    entry_of: Vec<u32>,
    minutes_of: Vec<u8>,
    /// Samples of a series in each ten seconds of the hour, of one way after another.
    tens_of: Vec<u32>,
}

impl Rollups {
    pub(crate) fn new() -> Self {
        Self {
            minutes: Rollup::new(Table::SamplesMinute, MINUTE_NS),
            hours: Rollup::new(Table::SamplesHour, HOUR_NS),
            tens: Rollup::new(Table::SamplesTenSeconds, TEN_SECONDS_NS),
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
    pub(crate) fn add(&mut self, rows: &Samples, range: Range<usize>, interner: &Interner) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let (origin, ts_ns) = (rows.origins[range.start], rows.ts_ns[range.start]);
        let hour_ns = ts_ns.div_euclid(HOUR_NS) * HOUR_NS;
        for rollup in [&mut self.minutes, &mut self.hours, &mut self.tens] {
            rollup.begin_series(origin, hour_ns, interner, &self.ways)?;
        }
        for attribute_set in self.way_of.len()..interner.attribute_sets.len() {
            let attribute_set = interner.attribute_sets[attribute_set as u32];
            self.way_of
                .push(self.ways.code((attribute_set.mode, attribute_set.amount.value)));
        }
        if self.ways.len() <= MOST_COUNTED_WAYS {
            self.count_stacks(rows, range.clone(), interner);
            self.count_tens(rows, range);
        } else {
            self.sort_stacks(rows, range.clone());
            self.sort_tens(rows, range);
        }
        for rollup in [&mut self.minutes, &mut self.hours, &mut self.tens] {
            if rollup.rows.len() >= ROW_GROUP_ROWS {
                rollup.flush(interner, &self.ways)?;
            }
        }
        Ok(())
    }

    /// Adds rows for each stack and way that the series has samples of.
    fn count_stacks(&mut self, rows: &Samples, range: Range<usize>, interner: &Interner) {
        let origin = rows.origins[range.start];
        self.find_entries(rows, range.clone(), interner);
        self.gather_minutes(&rows.ts_ns[range]);
        for Entry {
            stack, way, count, end, ..
        } in self.entries.drain(..)
        {
            self.first_of[stack as usize] = NONE;
            let minutes = &mut self.minutes_of[(end - count) as usize..end as usize];
            minutes.sort_unstable();
            let what = (origin, stack, way);
            for same in minutes.chunk_by(|a, b| a == b) {
                self.minutes.push(what, usize::from(same[0]), same.len());
            }
            self.hours.push(what, 0, minutes.len());
        }
    }

    /// The entry of each row.
    fn find_entries(&mut self, rows: &Samples, range: Range<usize>, interner: &Interner) {
        self.first_of.resize(interner.stacks.len(), NONE);
        self.entry_of.clear();
        for (stack, attribute_set) in rows.stacks[range.clone()].iter().zip(&rows.attribute_sets[range]) {
            let way = self.way_of[*attribute_set as usize];
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
            }
            self.entries[entry as usize].count += 1;
            self.entry_of.push(entry);
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
            self.minutes_of[*end as usize] = part_of_hour(*ts_ns, MINUTE_NS) as u8;
            *end += 1;
        }
    }

    /// Adds a row for each ten seconds and way that the series has samples of.
    fn count_tens(&mut self, rows: &Samples, range: Range<usize>) {
        let origin = rows.origins[range.start];
        self.tens_of.clear();
        self.tens_of.resize(self.ways.len() * TENS, 0);
        for (ts_ns, attribute_set) in rows.ts_ns[range.clone()].iter().zip(&rows.attribute_sets[range]) {
            let ten = part_of_hour(*ts_ns, TEN_SECONDS_NS);
            self.tens_of[self.way_of[*attribute_set as usize] as usize * TENS + ten] += 1;
        }
        for (place, count) in self.tens_of.iter().enumerate().filter(|(_, count)| **count > 0) {
            let what = (origin, 0, (place / TENS) as u32);
            self.tens.push(what, place % TENS, *count as usize);
        }
    }

    /// As [`Self::count_stacks`], whatever the number of ways.
    fn sort_stacks(&mut self, rows: &Samples, range: Range<usize>) {
        let origin = rows.origins[range.start];
        let key = |row: usize| {
            let minute = part_of_hour(rows.ts_ns[row], MINUTE_NS);
            (rows.stacks[row], self.way_of[rows.attribute_sets[row] as usize], minute)
        };
        let mut keys: Vec<(u32, u32, usize)> = range.map(key).collect();
        keys.sort_unstable();
        for of_hour in keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let what = (origin, of_hour[0].0, of_hour[0].1);
            for same in of_hour.chunk_by(|a, b| a.2 == b.2) {
                self.minutes.push(what, same[0].2, same.len());
            }
            self.hours.push(what, 0, of_hour.len());
        }
    }

    /// As [`Self::count_tens`], whatever the number of ways.
    fn sort_tens(&mut self, rows: &Samples, range: Range<usize>) {
        let origin = rows.origins[range.start];
        let key = |row: usize| {
            let way = self.way_of[rows.attribute_sets[row] as usize];
            (way, part_of_hour(rows.ts_ns[row], TEN_SECONDS_NS))
        };
        let mut keys: Vec<(u32, usize)> = range.map(key).collect();
        keys.sort_unstable();
        for same in keys.chunk_by(|a, b| a == b) {
            self.tens.push((origin, 0, same[0].0), same[0].1, same.len());
        }
    }

    /// Makes row groups of all rows: the interner is begun anew.
    pub(crate) fn flush(&mut self, interner: &Interner) -> Result<(), StoreError> {
        self.minutes.flush(interner, &self.ways)?;
        self.hours.flush(interner, &self.ways)?;
        self.tens.flush(interner, &self.ways)?;
        self.way_of.clear();
        Ok(())
    }

    /// The encoded files, of each table one, when all rows are flushed. `name`: how their names begin.
    pub(crate) fn finish(
        self,
        partition: &str,
        name: &str,
    ) -> Result<[Option<Encoded>; Table::ROLLUPS.len()], StoreError> {
        let finish = |rollup: Rollup| rollup.file.map(|file| file.finish(partition, name)).transpose();
        Ok([finish(self.minutes)?, finish(self.hours)?, finish(self.tens)?])
    }
}

/// A row by codes.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    time: u32,
    origin: u32,
    stack: u32,
    way: u32,
    count: u32,
}

/// Rows of one roll-up's table.
struct Rollup {
    table: Table,
    /// What a row counts, nanoseconds.
    part_ns: i64,
    starts: InternedIds,
    /// Of the hour that the last series had rows of: when it began, and the code of each part's beginning.
    hour_ns: Option<i64>,
    codes: Vec<u32>,
    rows: Vec<Row>,
    /// Where rows go while they are sorted.
    spare: Vec<Row>,
    file: Option<CodedFile>,
}

impl Rollup {
    fn new(table: Table, part_ns: i64) -> Self {
        Self {
            table,
            part_ns,
            hour_ns: None,
            codes: Vec::new(),
            starts: InternedIds::default(),
            rows: Vec::new(),
            spare: Vec::new(),
            file: None,
        }
    }

    /// `origin`: one of the series; `part`: of the hour. Without stacks that is any number.
    fn push(&mut self, (origin, stack, way): (u32, u32, u32), part: usize, count: usize) {
        self.rows.push(Row {
            time: self.codes[part],
            origin,
            stack,
            way,
            count: count as u32,
        });
    }

    /// The next rows are of this series. A row group of enough rows ends with its service, as one of samples does.
    fn begin_series(
        &mut self,
        origin: u32,
        hour_ns: i64,
        interner: &Interner,
        ways: &Interned<Way>,
    ) -> Result<(), StoreError> {
        if self.hour_ns.replace(hour_ns) != Some(hour_ns) {
            let parts = (0..HOUR_NS).step_by(self.part_ns as usize);
            self.codes = parts.map(|part_ns| self.starts.code(hour_ns + part_ns)).collect();
        }
        let service = |origin: u32| interner.series_of(origin).service;
        match self.rows.last() {
            Some(last) if self.rows.len() >= LEAST_OF_SERVICE && service(last.origin) != service(origin) => {
                self.flush(interner, ways)
            }
            _ => Ok(()),
        }
    }

    /// Puts the rows of a service, which came series by series, in the order of stacks: one stack's rows of all
    /// series are beside each other.
    fn sort(&mut self, interner: &Interner, ways: usize) {
        let what = |row: &Row| {
            let series = interner.series_of(row.origin);
            (series.kind, series.service)
        };
        let rows = std::mem::take(&mut self.rows);
        self.spare.resize(rows.len(), Row::default());
        let mut rest = &mut self.spare[..];
        for program in rows.chunk_by(|a, b| a.origin == b.origin || what(a) == what(b)) {
            let (sorted, behind) = rest.split_at_mut(program.len());
            rest = behind;
            // One program's stacks mostly came one after another.
            let stacks = || program.iter().map(|row| row.stack);
            let first = stacks().min().unwrap_or_default();
            let stacks = (stacks().max().unwrap_or_default() - first) as usize + 1;
            if ways * stacks <= PLACES_OF_ROW * program.len() {
                let key = |row: &Row| row.way as usize * stacks + (row.stack - first) as usize;
                place(program, sorted, ways * stacks, key);
            } else {
                sorted.copy_from_slice(program);
                sorted.sort_by_key(|row| (row.way, row.stack));
            }
        }
        self.rows = std::mem::replace(&mut self.spare, rows);
    }

    /// Makes a row group of the rows.
    fn flush(&mut self, interner: &Interner, ways: &Interned<Way>) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        if self.table.has_stacks() {
            self.sort(interner, ways.len());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => CodedFile::new(self.table, WriteProfile::Compact, &Provenance::default(), 0)?,
        };
        file.write(self.rows.len(), |group| self.write(group, interner, ways))?;
        self.file = Some(file);
        self.rows.clear();
        Ok(())
    }

    /// Adds all columns in the order of the table's.
    fn write(&self, group: &mut Group<'_>, interner: &Interner, ways: &Interned<Way>) -> Result<(), ParquetError> {
        let rows = || self.rows.iter();
        let (times, starts) = dense(rows().map(|row| row.time), self.starts.len());
        let starts = starts.into_iter().map(|start| Some(self.starts[start]));
        group.numbers_of("ts_ns", &times, starts, size_of::<i64>(), &Runs::new())?;
        let (origins, names) = (runs(rows().map(|row| row.origin)), &interner.names);
        group.texts_of_runs("type", &origins, names, |origin| interner.series_of(origin).kind)?;
        group.texts_of_runs("service", &origins, names, |origin| interner.series_of(origin).service)?;
        let (of_rows, kept) = dense(rows().map(|row| row.origin), interner.origins.len());
        let series = kept.iter().map(|origin| Some(interner.series_of(*origin).id));
        group.numbers_of("series_id", &of_rows, series, size_of::<i64>(), &Runs::new())?;
        let of_ways = runs(rows().map(|row| row.way));
        group.texts_of_runs("mode", &of_ways, names, |way| ways[way].0)?;
        if self.table.has_stacks() {
            group.stacks(rows().map(|row| row.stack), &Runs::new(), interner)?;
        }
        group.numbers_of_runs("value", &of_ways, |way| Some(ways[way].1))?;
        group.numbers_of_rows("count", rows().map(|row| i64::from(row.count)))
    }
}

/// Rows in the order of their keys, of which there are so many; those of one key stay as they are. Places are
/// counted, not compared.
fn place(rows: &[Row], sorted: &mut [Row], keys: usize, key: impl Fn(&Row) -> usize) {
    let mut next = begins(rows.iter().map(|row| key(row) as u32), keys);
    for row in rows {
        let place = &mut next[key(row)];
        sorted[*place as usize] = *row;
        *place += 1;
    }
}

/// A row group of so many rows ends with its service: another one's stacks are others, and a query for one of both
/// reads no rows of the other.
pub(crate) const LEAST_OF_SERVICE: usize = ROW_GROUP_ROWS / 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::buffer::arriving::{Amount, NO_THREAD, NO_WAIT};
    use crate::store::buffer::interner::SampleAttributes;
    use crate::store::buffer::interner::Series;
    use crate::store::buffer::interner::ThreadKey;
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::collections::HashMap;

    #[test]
    fn one_stack_s_rows_of_all_nodes_stand_beside_each_other() {
        let (mut interner, mut rollups, mut rows) = (Interner::default(), Rollups::new(), Samples::default());
        // Two services of thirty nodes each, with stacks of their own.
        for series in 0..60 {
            let begin = rows.len();
            let code = interner.series.code(Series {
                kind: interner.names.code("cpu"),
                service: interner.names.code(["a", "b"][series / 30]),
                id: series as i64,
            });
            let origin = interner.origins.code(ThreadKey {
                series: code,
                node: interner.names.code(&format!("node-{series}")),
                thread: 0,
                process_id: 0,
                tid: None,
            });
            for row in 0..900 {
                rows.ts_ns.push(row % 3 * MINUTE_NS);
                rows.origins.push(origin);
                rows.stacks
                    .push(interner.stacks.code(row % 100 + (series / 30) as i64 * 100));
                rows.attribute_sets.push(interner.attribute_sets.code(SampleAttributes {
                    mode: interner.names.code("user"),
                    cpu: None,
                    amount: Amount {
                        value: 1,
                        wait_ns: NO_WAIT,
                        woken_tid: NO_THREAD,
                    },
                }));
            }
            rollups.add(&rows, begin..rows.len(), &interner).unwrap();
        }
        rollups.flush(&interner).unwrap();
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

    #[test]
    fn samples_that_each_say_how_long_something_took_are_counted_as_others() {
        let (mut interner, mut rollups, mut rows) = (Interner::default(), Rollups::new(), Samples::default());
        let names = ["off_cpu", "a", "user"].map(|name| interner.names.code(name));
        let mut expected: [HashMap<(i64, i64, i64, i64), i64>; 3] = Default::default();
        // The second series has many more values than the first.
        for (series, values) in [(0, 3), (1, 20 * MOST_COUNTED_WAYS as i64)] {
            let begin = rows.len();
            let code = interner.series.code(Series {
                kind: names[0],
                service: names[1],
                id: series,
            });
            let origin = interner.origins.code(ThreadKey {
                series: code,
                node: names[1],
                thread: names[1],
                process_id: 0,
                tid: None,
            });
            for row in 0..4000 {
                let (ts_ns, stack_id, value) =
                    (HOUR_NS + row * 977 % 3600 * 1_000_000_000, row % 7, row * row % values);
                rows.ts_ns.push(ts_ns);
                rows.origins.push(origin);
                rows.stacks.push(interner.stacks.code(stack_id));
                rows.attribute_sets.push(interner.attribute_sets.code(SampleAttributes {
                    mode: names[2],
                    cpu: None,
                    // Roll-ups don't tell them apart.
                    amount: Amount {
                        value,
                        wait_ns: row % 5 - 1,
                        woken_tid: row % 3 - 1,
                    },
                }));
                let parts = [(MINUTE_NS, stack_id), (HOUR_NS, stack_id), (TEN_SECONDS_NS, 0)];
                for (counts, (part_ns, stack_id)) in expected.iter_mut().zip(parts) {
                    let key = (ts_ns / part_ns * part_ns, series, stack_id, value);
                    *counts.entry(key).or_default() += 1;
                }
            }
            rollups.add(&rows, begin..rows.len(), &interner).unwrap();
        }
        rollups.flush(&interner).unwrap();
        let files = rollups.finish("1970-01-01T01", "rollup").unwrap();
        for (file, expected) in files.into_iter().zip(expected) {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file.unwrap().bytes).unwrap();
            let batch = reader
                .with_batch_size(100_000)
                .build()
                .unwrap()
                .next()
                .unwrap()
                .unwrap();
            let numbers = |name: &str, row: usize| {
                let column = batch.column_by_name(name);
                column.map_or(0, |column| column.as_primitive::<Int64Type>().value(row))
            };
            let key = |row| {
                let [series, stack, value] = ["series_id", "stack_id", "value"].map(|name| numbers(name, row));
                (numbers("ts_ns", row), series, stack, value)
            };
            let found: HashMap<_, _> = (0..batch.num_rows())
                .map(|row| (key(row), numbers("count", row)))
                .collect();
            assert_eq!(found.len(), batch.num_rows(), "none comes twice");
            assert_eq!(found, expected);
        }
    }
}
