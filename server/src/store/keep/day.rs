//! The rows of a day: whether they can be read, are as many as the log says, and refer to what is there.
//!
//! Ids of a day's dictionaries are kept in memory, so many at a time; a day with more is read again for each part of
//! them.

use crate::hash::MixState;
use crate::store::format::read::rows::FileRows;
use crate::store::keep::pins::BATCH_ROWS;
use crate::store::root::reader::RangeReader;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use std::collections::HashSet;

/// Ids of each dictionary that are in memory at a time, about.
const MOST_IDS: u64 = 8 << 20;

/// The dictionaries that others refer to, with the column of their ids and what it is called elsewhere.
const DICTIONARIES: [(Table, &str); 4] = [
    (Table::Frames, "frame_id"),
    (Table::Stacks, "stack_id"),
    (Table::Series, "series_id"),
    (Table::Processes, "process_id"),
];

/// Those ids of a day's dictionaries that are looked at in this round.
#[derive(Debug)]
pub(super) struct Day {
    pub(super) name: String,
    part: u64,
    parts: u64,
    ids: [HashSet<i64, MixState>; DICTIONARIES.len()],
}

/// What rows of a file refer to and is not there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Lacking {
    values: u64,
    /// Row, from 0 up, and id of the first.
    first: Option<(u64, i64)>,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) rows: u64,
    /// The sum of `count`, of a roll-up.
    pub(super) counted: u64,
    /// What is wrong, with its place.
    pub(super) faults: Vec<String>,
}

/// In how many parts a day's dictionaries are looked at, of which the largest has so many rows.
pub(super) fn parts(most_rows: u64) -> u64 {
    most_rows.div_ceil(MOST_IDS).max(1)
}

/// The dictionary of a column's ids.
fn dictionary(column: &str) -> Option<usize> {
    DICTIONARIES.iter().position(|(_, id)| *id == column)
}

impl Day {
    pub(super) fn new(name: String, part: u64, parts: u64) -> Self {
        let ids = std::array::from_fn(|_| HashSet::default());
        Self { name, part, parts, ids }
    }

    /// Whether this is the first time that the day is read.
    pub(super) fn is_first(&self) -> bool {
        self.part == 0
    }

    fn is_of_part(&self, id: i64) -> bool {
        self.parts == 1 || id.cast_unsigned() % self.parts == self.part
    }

    /// Takes in the ids of a dictionary's rows; none of another table.
    pub(super) fn learn(&mut self, table: Table, rows: &RecordBatch) {
        let Some(at) = DICTIONARIES.iter().position(|(of, _)| *of == table) else {
            return;
        };
        let ids = rows.column_by_name(DICTIONARIES[at].1);
        let Some(ids) = ids.and_then(|ids| ids.as_primitive_opt::<Int64Type>()) else {
            return;
        };
        let (part, parts) = (self.part, self.parts);
        let of_part = ids.values().iter().copied();
        let of_part = of_part.filter(|id| parts == 1 || id.cast_unsigned() % parts == part);
        self.ids[at].extend(of_part);
    }

    /// Looks for what the rows refer to. `from`: the first row's number in its file.
    fn look(&self, table: Table, rows: &RecordBatch, from: u64, lacking: &mut [Lacking; DICTIONARIES.len()]) {
        if table == Table::Stacks {
            let frames = rows
                .column_by_name("frames")
                .and_then(|column| column.as_list_opt::<i32>());
            let ids = frames.and_then(|frames| frames.values().as_primitive_opt::<Int64Type>());
            if let (Some(frames), Some(ids), Some(at)) = (frames, ids, dictionary("frame_id")) {
                for (row, ends) in frames.value_offsets().windows(2).enumerate() {
                    for id in &ids.values()[ends[0] as usize..ends[1] as usize] {
                        self.look_for(at, *id, from + row as u64, &mut lacking[at]);
                    }
                }
            }
            return;
        }
        for (at, (of, column)) in DICTIONARIES.iter().enumerate() {
            let ids = rows.column_by_name(column).filter(|_| *of != table);
            let Some(ids) = ids.and_then(|ids| ids.as_primitive_opt::<Int64Type>()) else {
                continue;
            };
            let mut before = None;
            for (row, id) in ids.values().iter().enumerate() {
                // Rows of one series stand together.
                if before != Some(*id) || lacking[at].first.is_some() {
                    self.look_for(at, *id, from + row as u64, &mut lacking[at]);
                }
                before = Some(*id);
            }
        }
    }

    fn look_for(&self, at: usize, id: i64, row: u64, lacking: &mut Lacking) {
        if self.is_of_part(id) && !self.ids[at].contains(&id) {
            lacking.values += 1;
            lacking.first.get_or_insert((row, id));
        }
    }

    /// Reads a file's rows. `each` gets them, on the first reading alone. An error says that they cannot be read, and
    /// how many could. Waits for the root.
    pub(super) fn read(
        &self,
        reader: &dyn RangeReader,
        table: Table,
        file: &DataFile,
        path: &str,
        each: &mut dyn FnMut(&RecordBatch),
    ) -> Result<Read, (u64, StoreError)> {
        let mut read = Read::default();
        let mut lacking: [Lacking; DICTIONARIES.len()] = Default::default();
        let rows = FileRows::open(reader, table, path, BATCH_ROWS).map_err(|error| (0, error))?;
        for rows in rows {
            let rows = rows.map_err(|error| (read.rows, error))?;
            self.look(table, &rows, read.rows, &mut lacking);
            if self.is_first() {
                each(&rows);
            }
            let counts = rows.column_by_name("count");
            if let Some(counts) = counts.and_then(|counts| counts.as_primitive_opt::<Int64Type>()) {
                read.counted += counts.values().iter().map(|count| count.unsigned_abs()).sum::<u64>();
            }
            read.rows += rows.num_rows() as u64;
        }
        if self.is_first() && read.rows != file.rows {
            let (found, written) = (read.rows, file.rows);
            read.faults.push(format!("it has {found} rows, the log says {written}"));
        }
        for ((of, column), lacking) in DICTIONARIES.iter().zip(lacking) {
            if let Some((row, id)) = lacking.first {
                let (count, day) = (lacking.values, &self.name);
                read.faults.push(format!(
                    "{count} of its values of {column} are in no row of {} of {day}, first {id} in row {row}",
                    of.name()
                ));
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, ListArray};
    use std::sync::Arc;

    fn ids(column: &str, ids: &[i64]) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        RecordBatch::try_from_iter([(column, ids)]).unwrap()
    }

    fn lacking(day: &Day, table: Table, rows: &RecordBatch) -> [Lacking; DICTIONARIES.len()] {
        let mut lacking = Default::default();
        day.look(table, rows, 100, &mut lacking);
        lacking
    }

    #[test]
    fn what_is_not_there_is_counted_and_the_first_has_its_row() {
        let mut day = Day::new("2026-11-21".to_owned(), 0, 1);
        day.learn(Table::Stacks, &ids("stack_id", &[1, -2]));
        day.learn(Table::Frames, &ids("frame_id", &[7]));
        let found = lacking(&day, Table::Samples, &ids("stack_id", &[1, -2, 3, 3, 1, 4]));
        let (values, first) = (3, Some((102, 3)));
        assert_eq!(found[1], Lacking { values, first });
        assert_eq!(found[0], Lacking::default());
        assert_eq!(
            lacking(&day, Table::Stacks, &ids("stack_id", &[9]))[1],
            Lacking::default()
        );
        let frames = ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(7), Some(7)]),
            Some(vec![Some(7), Some(8)]),
        ]);
        let frames: ArrayRef = Arc::new(frames);
        let stacks = RecordBatch::try_from_iter([("frames", frames)]).unwrap();
        let (values, first) = (1, Some((101, 8)));
        assert_eq!(lacking(&day, Table::Stacks, &stacks)[0], Lacking { values, first });
    }

    #[test]
    fn parts_of_a_day_look_at_each_id_once() {
        let stacks = ids("stack_id", &(-50..50).collect::<Vec<_>>());
        let samples = ids("stack_id", &(-60..60).collect::<Vec<_>>());
        let of_part = |part: u64| {
            let mut day = Day::new(String::new(), part, 3);
            day.learn(Table::Stacks, &stacks);
            (
                day.ids[1].len() as u64,
                lacking(&day, Table::Samples, &samples)[1].values,
            )
        };
        let found: Vec<_> = (0..3).map(of_part).collect();
        let sums = found
            .iter()
            .fold((0, 0), |(ids, lacking), (a, b)| (ids + a, lacking + b));
        assert_eq!(sums, (100, 20));
        assert_eq!((parts(0), parts(MOST_IDS), parts(MOST_IDS + 1)), (1, 1, 2));
    }
}
