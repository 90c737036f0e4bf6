//! Merges sorted files of one hour of `samples` into sorted rows, in bounded memory.
//!
//! In: files. Out: rows of one series after another, in the order (type, service, series). Rows are handled by runs of one series:
//! names are compared once a run, and held as codes. Of a file that is not sorted a series comes more than once, which costs space only.

use super::StoreError;
use super::rows::FileRows;
use super::schema::Table;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::error::ArrowError;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows that are read of a file at a time.
const BATCH_ROWS: usize = 8 * 1024;

/// Names, each once, by code.
#[derive(Debug, Default)]
pub(super) struct Names {
    codes: HashMap<Arc<str>, i32, foldhash::fast::RandomState>,
    texts: Vec<Arc<str>>,
}

impl Names {
    pub(super) fn code(&mut self, text: &str) -> i32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = self.texts.len() as i32;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.codes.insert(text, code);
        code
    }

    fn text(&self, code: i32) -> &str {
        &self.texts[code as usize]
    }

    /// By which series follow each other in a file.
    fn order(&self, (kind, service, series): &Key) -> (&str, &str, i64) {
        (self.text(*kind), self.text(*service), *series)
    }

    /// For each code its place among the names that there are, and those names.
    pub(super) fn dense(&self, codes: impl ExactSizeIterator<Item = i32>) -> (Vec<u32>, Vec<&str>) {
        const ABSENT: u32 = u32::MAX;
        let mut kept = vec![ABSENT; self.texts.len()];
        let mut texts = Vec::new();
        let keys = codes.map(|code| {
            let key = &mut kept[code as usize];
            if *key == ABSENT {
                *key = texts.len() as u32;
                texts.push(self.text(code));
            }
            *key
        });
        (keys.collect(), texts)
    }
}

/// Rows of `samples`, names as codes.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) kind: Vec<i32>,
    pub(super) node: Vec<i32>,
    pub(super) service: Vec<i32>,
    pub(super) mode: Vec<i32>,
    pub(super) series_id: Vec<i64>,
    pub(super) stack_id: Vec<i64>,
    pub(super) value: Vec<i64>,
    pub(super) ts_ns: Vec<i64>,
    pub(super) thread: Vec<i32>,
    pub(super) process_id: Vec<i64>,
    pub(super) tid: Vec<Option<i64>>,
    pub(super) cpu: Vec<Option<i32>>,
}

impl Columns {
    pub(super) fn len(&self) -> usize {
        self.ts_ns.len()
    }

    /// Adds the rows of a batch, which has the columns of the table's files.
    pub(super) fn add(&mut self, batch: &RecordBatch, names: &mut Names) -> Result<(), ArrowError> {
        let column = |name: &str| {
            let missing = || ArrowError::SchemaError(format!("no column {name}"));
            batch.column_by_name(name).ok_or_else(missing)
        };
        let numbers = |name: &str, to: &mut Vec<i64>| {
            to.extend_from_slice(column(name)?.as_primitive::<Int64Type>().values());
            Ok::<_, ArrowError>(())
        };
        let mut codes = |name: &str, to: &mut Vec<i32>| {
            let texts = column(name)?.as_dictionary::<Int32Type>();
            let values = texts.values().as_string::<i32>();
            let known: Vec<i32> = values.iter().map(|text| names.code(text.unwrap_or_default())).collect();
            to.extend(texts.keys().values().iter().map(|key| known[*key as usize]));
            Ok::<_, ArrowError>(())
        };
        codes("type", &mut self.kind)?;
        codes("node", &mut self.node)?;
        codes("service", &mut self.service)?;
        codes("mode", &mut self.mode)?;
        codes("thread", &mut self.thread)?;
        numbers("series_id", &mut self.series_id)?;
        numbers("stack_id", &mut self.stack_id)?;
        numbers("value", &mut self.value)?;
        numbers("ts_ns", &mut self.ts_ns)?;
        numbers("process_id", &mut self.process_id)?;
        self.tid.extend(column("tid")?.as_primitive::<Int64Type>().iter());
        self.cpu.extend(column("cpu")?.as_primitive::<Int32Type>().iter());
        Ok(())
    }

    fn extend(&mut self, from: &Self, range: Range<usize>) {
        fn add<T: Copy>(to: &mut Vec<T>, from: &[T], range: &Range<usize>) {
            to.extend_from_slice(&from[range.clone()]);
        }
        add(&mut self.kind, &from.kind, &range);
        add(&mut self.node, &from.node, &range);
        add(&mut self.service, &from.service, &range);
        add(&mut self.mode, &from.mode, &range);
        add(&mut self.thread, &from.thread, &range);
        add(&mut self.series_id, &from.series_id, &range);
        add(&mut self.stack_id, &from.stack_id, &range);
        add(&mut self.value, &from.value, &range);
        add(&mut self.ts_ns, &from.ts_ns, &range);
        add(&mut self.process_id, &from.process_id, &range);
        add(&mut self.tid, &from.tid, &range);
        add(&mut self.cpu, &from.cpu, &range);
    }

    /// Leaves no row; the memory is kept for the next.
    pub(super) fn clear(&mut self) {
        self.kind.clear();
        self.node.clear();
        self.service.clear();
        self.mode.clear();
        self.thread.clear();
        self.series_id.clear();
        self.stack_id.clear();
        self.value.clear();
        self.ts_ns.clear();
        self.process_id.clear();
        self.tid.clear();
        self.cpu.clear();
    }

    /// Rows of one series in the order in which they stand in a file.
    pub(super) fn order(&self, rows: impl Iterator<Item = u32>) -> Vec<u32> {
        let key = |row: u32| (self.tid[row as usize], self.ts_ns[row as usize], row);
        let mut keyed: Vec<_> = rows.map(key).collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|key| key.2).collect()
    }

    /// All rows in the order in which they stand in a file.
    pub(super) fn sorted(&self, names: &Names) -> Vec<u32> {
        // Rows of one series come in runs: a request brings those of one node.
        let mut series: HashMap<Key, Vec<u32>, foldhash::fast::RandomState> = HashMap::default();
        let mut row = 0;
        while row < self.len() {
            let key = self.key(row);
            let begin = row;
            while row < self.len() && self.key(row) == key {
                row += 1;
            }
            series.entry(key).or_default().extend(begin as u32..row as u32);
        }
        let mut series: Vec<_> = series.into_iter().collect();
        series.sort_unstable_by(|(a, _), (b, _)| names.order(a).cmp(&names.order(b)));
        series
            .into_iter()
            .flat_map(|(_, rows)| self.order(rows.into_iter()))
            .collect()
    }

    fn key(&self, row: usize) -> Key {
        (self.kind[row], self.service[row], self.series_id[row])
    }
}

/// What a run of rows has in common: codes of type and service, series.
type Key = (i32, i32, i64);

struct Source {
    rows: FileRows,
    batch: Columns,
    at: usize,
}

impl Source {
    fn head(&self) -> Option<Key> {
        let at = self.at;
        (at < self.batch.len()).then(|| self.batch.key(at))
    }

    /// Reads on when all rows of the batch are taken.
    fn fill(&mut self, names: &mut Names) -> Result<(), StoreError> {
        while self.at == self.batch.len() {
            let Some(batch) = self.rows.next() else { return Ok(()) };
            self.batch.clear();
            let added = self.batch.add(&batch?, names);
            added.map_err(StoreError::table(Table::Samples, "read a file"))?;
            self.at = 0;
        }
        Ok(())
    }

    /// Moves the rows of this key that are in memory.
    fn take_run(&mut self, key: Key, to: &mut Columns) {
        let start = self.at;
        while self.head() == Some(key) {
            self.at += 1;
        }
        to.extend(&self.batch, start..self.at);
    }
}

/// Takes the merged rows.
pub(super) trait Sink {
    /// Where the rows of the next series go, behind those that are there.
    fn rows(&mut self) -> &mut Columns;

    /// The rows since the last call are of one series. Called before the end of a series that is very large, too.
    fn end_series(&mut self, names: &Names) -> Result<(), StoreError>;
}

/// Merges, and returns the names of which the rows have codes. A series of more than `most_rows` is handed over in pieces.
pub(super) fn merge(files: Vec<PathBuf>, most_rows: usize, sink: &mut impl Sink) -> Result<Names, StoreError> {
    let mut names = Names::default();
    let mut sources = Vec::with_capacity(files.len());
    for path in files {
        let rows = FileRows::open(Table::Samples, path, BATCH_ROWS)?;
        let mut source = Source {
            rows,
            batch: Columns::default(),
            at: 0,
        };
        source.fill(&mut names)?;
        sources.push(source);
    }
    loop {
        let heads = sources.iter().filter_map(Source::head);
        let Some(key) = heads.min_by(|a, b| names.order(a).cmp(&names.order(b))) else {
            return Ok(names);
        };
        let mut start = sink.rows().len();
        for source in &mut sources {
            while source.head() == Some(key) {
                source.take_run(key, sink.rows());
                source.fill(&mut names)?;
                if sink.rows().len() >= start + most_rows {
                    sink.end_series(&names)?;
                    start = sink.rows().len();
                }
            }
        }
        if sink.rows().len() > start {
            sink.end_series(&names)?;
        }
    }
}
