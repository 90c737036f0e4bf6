//! Gathers rows of all tables and makes record batches of them, one per partition.

use super::IngestError;
use super::dictionary::{Dictionary, Frame, Stack};
use super::wire::Room;
use crate::hash::MixState;
use crate::store::{Rows, SERIES_LABELS, Table, day, hour};
use arrow::array::{
    ArrayRef, BooleanBuilder, DictionaryArray, Int32Array, Int64Array, Int64Builder, ListBuilder, RecordBatch,
    StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use arrow::error::ArrowError;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Nanoseconds of an hour and of a day.
const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;

/// A sample's entries in all columns. Like every vector's, they count twice, since it grows by doubling.
const SAMPLE_BYTES: usize =
    5 * size_of::<i64>() + 5 * size_of::<i32>() + size_of::<Option<i64>>() + size_of::<Option<i32>>();

/// Text and lists of frames of a request's dictionary rows: a small request can name one long string, or stack, many times.
const MAX_TEXT_BYTES: usize = 256 << 20;

/// Says of each id whether the store has a dictionary table's row of that day already.
pub type IsKnown<'k> = &'k dyn Fn(Table, &str, &[i64]) -> Vec<bool>;

/// Adds a string to hashed content, so that no two lists of strings look the same.
pub(super) fn push_text(content: &mut Vec<u8>, text: &str) {
    content.extend_from_slice(&(text.len() as u64).to_le_bytes());
    content.extend_from_slice(text.as_bytes());
}

/// One row of `samples`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleRow<'a> {
    pub(super) ts_ns: i64,
    pub(super) kind: &'a str,
    pub(super) series_id: i64,
    pub(super) process_id: i64,
    pub(super) thread: &'a str,
    pub(super) tid: Option<i64>,
    pub(super) cpu: Option<i32>,
    pub(super) value: i64,
}

/// The labels of a series, in the order of its columns.
pub(super) type Labels<'a> = [&'a str; SERIES_LABELS.len()];

/// One row of `processes`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessRow<'a> {
    pub(super) node: &'a str,
    pub(super) tgid: Option<i64>,
    pub(super) start_ticks: Option<i64>,
    pub(super) exec_count: Option<i64>,
    pub(super) executable: &'a str,
    pub(super) command_line: &'a str,
    pub(super) build_id: &'a str,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RowBuilder<'a> {
    hours: Spans<Samples<'a>>,
    days: Spans<Day<'a>>,
    samples: i64,
}

impl<'a> RowBuilder<'a> {
    /// Samples so far.
    pub(super) fn samples(&self) -> i64 {
        self.samples
    }

    /// Adds a sample with what it refers to, if there is room.
    pub(super) fn add(
        &mut self,
        sample: &SampleRow<'a>,
        labels: &Labels<'a>,
        process: &ProcessRow<'a>,
        stack: &Stack,
        room: &mut Room,
    ) -> Result<(), IngestError> {
        self.samples += 1;
        let hour = self.hours.at(sample.ts_ns.div_euclid(HOUR_NS));
        hour.add(sample, labels, stack);
        let day = self.days.at(sample.ts_ns.div_euclid(DAY_NS));
        let dictionaries = day.series.add(sample.series_id, labels)
            + day.processes.add(sample.process_id, process)
            + day.stacks.add(stack.id, stack);
        room.take(2 * SAMPLE_BYTES + dictionaries)?;
        Ok(())
    }

    /// All rows that the store lacks, as it takes them.
    pub(super) fn finish(self, dictionary: &Dictionary<'a>, is_known: IsKnown<'_>) -> Result<Rows, IngestError> {
        let mut finish = Finish {
            rows: Rows::default(),
            is_known,
            text_left: MAX_TEXT_BYTES,
        };
        for (index, samples) in self.hours.spans {
            finish.put(Table::Samples, samples.columns(), &hour(index * HOUR_NS))?;
        }
        for (index, gathered) in self.days.spans {
            let day = day(index * DAY_NS);
            finish.series(&gathered.series, &day)?;
            finish.processes(&gathered.processes, &day)?;
            finish.stacks(&gathered.stacks, dictionary, &day)?;
        }
        Ok(finish.rows)
    }
}

/// Something for each hour, or day, that a sample fell in, in their order.
#[derive(Debug, Default)]
struct Spans<T> {
    spans: Vec<(i64, T)>,
    /// The last that was asked for: mostly the next, too.
    last: usize,
}

impl<T: Default> Spans<T> {
    #[inline]
    fn at(&mut self, index: i64) -> &mut T {
        if self.spans.get(self.last).is_none_or(|(own, _)| *own != index) {
            self.last = match self.spans.binary_search_by_key(&index, |(own, _)| *own) {
                Ok(at) => at,
                Err(at) => {
                    self.spans.insert(at, (index, T::default()));
                    at
                }
            };
        }
        &mut self.spans[self.last].1
    }
}

/// Texts of which few are distinct.
#[derive(Debug, Default)]
struct Names<'a> {
    keys: Vec<i32>,
    texts: Vec<&'a str>,
    index: HashMap<&'a str, i32, foldhash::fast::RandomState>,
}

impl<'a> Names<'a> {
    fn add(&mut self, text: &'a str) {
        // Mostly the very text of the row before, which need not even be looked at.
        let last = self.keys.last().copied();
        let key = match last {
            Some(key) if std::ptr::eq(self.texts[key as usize], text) => key,
            _ => *self.index.entry(text).or_insert_with(|| {
                self.texts.push(text);
                self.texts.len() as i32 - 1
            }),
        };
        self.keys.push(key);
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let texts = Arc::new(StringArray::from(self.texts));
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
            self.keys.into(),
            texts,
        )?))
    }
}

#[derive(Debug, Default)]
struct Samples<'a> {
    ts_ns: Vec<i64>,
    kind: Names<'a>,
    node: Names<'a>,
    service: Names<'a>,
    series_id: Vec<i64>,
    process_id: Vec<i64>,
    thread: Names<'a>,
    tid: Vec<Option<i64>>,
    cpu: Vec<Option<i32>>,
    mode: Names<'a>,
    stack_id: Vec<i64>,
    value: Vec<i64>,
}

impl<'a> Samples<'a> {
    fn add(&mut self, row: &SampleRow<'a>, labels: &Labels<'a>, stack: &Stack) {
        self.ts_ns.push(row.ts_ns);
        self.kind.add(row.kind);
        self.node.add(labels[0]);
        self.service.add(labels[1]);
        self.series_id.push(row.series_id);
        self.process_id.push(row.process_id);
        self.thread.add(row.thread);
        self.tid.push(row.tid);
        self.cpu.push(row.cpu);
        self.mode.add(if stack.in_kernel { "kernel" } else { "user" });
        self.stack_id.push(stack.id);
        self.value.push(row.value);
    }

    fn columns(self) -> Result<Vec<ArrayRef>, ArrowError> {
        Ok(vec![
            Arc::new(Int64Array::from(self.ts_ns)),
            self.kind.finish()?,
            self.node.finish()?,
            self.service.finish()?,
            Arc::new(Int64Array::from(self.series_id)),
            Arc::new(Int64Array::from(self.process_id)),
            self.thread.finish()?,
            Arc::new(Int64Array::from(self.tid)),
            Arc::new(Int32Array::from(self.cpu)),
            self.mode.finish()?,
            Arc::new(Int64Array::from(self.stack_id)),
            Arc::new(Int64Array::from(self.value)),
        ])
    }
}

/// What the samples of one day refer to.
#[derive(Debug, Default)]
struct Day<'a> {
    series: Gathered<Labels<'a>>,
    processes: Gathered<ProcessRow<'a>>,
    stacks: Gathered<Stack>,
}

/// Entries, each once.
#[derive(Debug)]
struct Gathered<T> {
    seen: HashSet<i64, MixState>,
    ids: Vec<i64>,
    entries: Vec<T>,
}

impl<T> Default for Gathered<T> {
    fn default() -> Self {
        Self {
            seen: HashSet::default(),
            ids: Vec::new(),
            entries: Vec::new(),
        }
    }
}

impl<T: Clone> Gathered<T> {
    /// Returns the bytes that it takes.
    fn add(&mut self, id: i64, entry: &T) -> usize {
        if self.ids.last() == Some(&id) || !self.seen.insert(id) {
            return 0;
        }
        self.ids.push(id);
        self.entries.push(entry.clone());
        // The id stands in the set too; all three grow by doubling.
        2 * (2 * size_of::<i64>() + size_of::<T>())
    }

    /// Those that are not known, with their ids.
    fn unknown(&self, table: Table, day: &str, is_known: IsKnown<'_>) -> (Vec<i64>, Vec<&T>) {
        let known = is_known(table, day, &self.ids);
        let all = self.ids.iter().zip(&self.entries).zip(known);
        all.filter(|(_, known)| !known)
            .map(|((id, entry), _)| (*id, entry))
            .unzip()
    }
}

/// Makes record batches.
struct Finish<'k> {
    rows: Rows,
    is_known: IsKnown<'k>,
    text_left: usize,
}

impl Finish<'_> {
    fn take_text(&mut self, bytes: usize) -> Result<(), IngestError> {
        self.text_left = self.text_left.checked_sub(bytes).ok_or(IngestError::TooLarge {
            what: "the text of the request's rows",
            limit_bytes: MAX_TEXT_BYTES,
        })?;
        Ok(())
    }

    fn put(
        &mut self,
        table: Table,
        columns: Result<Vec<ArrayRef>, ArrowError>,
        partition: &str,
    ) -> Result<(), IngestError> {
        let batch = columns.and_then(|mut columns| {
            let length = columns.first().map_or(0, |column| column.len());
            columns.push(constant(partition, length)?);
            RecordBatch::try_new(table.schema(), columns)
        });
        let batch = batch.map_err(|error| IngestError::Invalid(error.to_string()))?;
        if batch.num_rows() > 0 {
            self.rows.tables[table.index()].push(batch);
        }
        Ok(())
    }

    /// A column of texts.
    fn texts<'t>(&mut self, texts: impl Iterator<Item = &'t str> + Clone) -> Result<ArrayRef, IngestError> {
        let bytes = texts.clone().map(str::len).sum();
        self.take_text(bytes)?;
        let mut column = StringBuilder::with_capacity(texts.size_hint().0, bytes);
        for text in texts {
            column.append_value(text);
        }
        Ok(Arc::new(column.finish()))
    }

    fn series(&mut self, series: &Gathered<Labels<'_>>, day: &str) -> Result<(), IngestError> {
        let (ids, labels) = series.unknown(Table::Series, day, self.is_known);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(ids))];
        for label in 0..SERIES_LABELS.len() {
            columns.push(self.texts(labels.iter().map(|labels| labels[label]))?);
        }
        self.put(Table::Series, Ok(columns), day)
    }

    fn processes(&mut self, processes: &Gathered<ProcessRow<'_>>, day: &str) -> Result<(), IngestError> {
        let (ids, rows) = processes.unknown(Table::Processes, day, self.is_known);
        let numbers = |number: fn(&ProcessRow<'_>) -> Option<i64>| -> ArrayRef {
            Arc::new(rows.iter().map(|row| number(row)).collect::<Int64Array>())
        };
        let columns = vec![
            Arc::new(Int64Array::from(ids)) as ArrayRef,
            self.texts(rows.iter().map(|row| row.node))?,
            numbers(|row| row.tgid),
            numbers(|row| row.start_ticks),
            numbers(|row| row.exec_count),
            self.texts(rows.iter().map(|row| row.executable))?,
            self.texts(rows.iter().map(|row| row.command_line))?,
            self.texts(rows.iter().map(|row| row.build_id))?,
        ];
        self.put(Table::Processes, Ok(columns), day)
    }

    /// Stacks, and the frames of those that are new.
    fn stacks(&mut self, stacks: &Gathered<Stack>, dictionary: &Dictionary<'_>, day: &str) -> Result<(), IngestError> {
        let (ids, stacks) = stacks.unknown(Table::Stacks, day, self.is_known);
        let element = Field::new("element", DataType::Int64, false);
        let frames = stacks.iter().map(|stack| dictionary.frames(stack).len()).sum::<usize>();
        self.take_text(frames * size_of::<i64>())?;
        let frames_of = Int64Builder::with_capacity(frames);
        let mut frames_of = ListBuilder::with_capacity(frames_of, stacks.len()).with_field(element);
        let mut truncated = BooleanBuilder::with_capacity(stacks.len());
        let mut frames: Gathered<&Frame<'_>> = Gathered::default();
        for stack in stacks {
            for frame in dictionary.frames(stack) {
                frames_of.values().append_value(frame.id);
                frames.add(frame.id, &frame);
            }
            frames_of.append(true);
            truncated.append_value(stack.truncated);
        }
        let columns = vec![
            Arc::new(Int64Array::from(ids)) as ArrayRef,
            Arc::new(frames_of.finish()),
            Arc::new(truncated.finish()),
        ];
        self.put(Table::Stacks, Ok(columns), day)?;

        let (ids, frames) = frames.unknown(Table::Frames, day, self.is_known);
        let columns = vec![
            Arc::new(Int64Array::from(ids)) as ArrayRef,
            self.texts(frames.iter().map(|frame| frame.kind))?,
            self.texts(frames.iter().map(|frame| frame.module))?,
            self.texts(frames.iter().map(|frame| frame.build_id))?,
            self.texts(frames.iter().map(|frame| frame.function))?,
            self.texts(frames.iter().map(|frame| frame.file))?,
            Arc::new(frames.iter().map(|frame| Some(frame.line)).collect::<Int64Array>()),
            Arc::new(
                frames
                    .iter()
                    .map(|frame| Some(frame.inlined))
                    .collect::<arrow::array::BooleanArray>(),
            ),
            Arc::new(frames.iter().map(|frame| frame.offset).collect::<Int64Array>()),
        ];
        self.put(Table::Frames, Ok(columns), day)
    }
}

/// A column that says the same in every row.
fn constant(value: &str, rows: usize) -> Result<ArrayRef, ArrowError> {
    let keys = Int32Array::from_value(0, rows);
    Ok(Arc::new(DictionaryArray::try_new(
        keys,
        Arc::new(StringArray::from(vec![value])),
    )?))
}
