//! Gathers rows of all tables and makes record batches of them, one per partition.

use super::IngestError;
use super::dictionary::{Dictionary, Stack};
use crate::store::{Rows, Table, day, hour};
use arrow::array::{
    ArrayRef, BooleanBuilder, DictionaryArray, Int32Array, Int32Builder, Int64Builder, ListBuilder, RecordBatch,
    StringArray, StringBuilder, StringDictionaryBuilder,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use arrow::error::ArrowError;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Nanoseconds of an hour and of a day.
const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;

/// Text of a request's dictionary rows: a small request can name one long string many times.
const MAX_TEXT_BYTES: usize = 256 << 20;

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
    pub(super) node: &'a str,
    pub(super) service: &'a str,
    pub(super) series_id: i64,
    pub(super) process_id: i64,
    pub(super) thread: &'a str,
    pub(super) tid: Option<i64>,
    pub(super) cpu: Option<i32>,
    pub(super) mode: &'static str,
    pub(super) stack_id: i64,
    pub(super) value: i64,
}

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

type Names = StringDictionaryBuilder<Int32Type>;

#[derive(Default)]
struct Samples {
    ts_ns: Int64Builder,
    kind: Names,
    node: Names,
    service: Names,
    series_id: Int64Builder,
    process_id: Int64Builder,
    thread: Names,
    tid: Int64Builder,
    cpu: Int32Builder,
    mode: Names,
    stack_id: Int64Builder,
    value: Int64Builder,
}

#[derive(Debug)]
struct Dictionaries {
    series_seen: HashSet<i64>,
    stacks_seen: HashSet<i64>,
    frames_seen: HashSet<i64>,
    processes_seen: HashSet<i64>,
    series_id: Int64Builder,
    labels: Vec<StringBuilder>,
    stack_id: Int64Builder,
    stack_frames: ListBuilder<Int64Builder>,
    truncated: BooleanBuilder,
    frame_id: Int64Builder,
    /// kind, module, build_id, function, file
    frame_text: [StringBuilder; 5],
    line: Int64Builder,
    inlined: BooleanBuilder,
    offset: Int64Builder,
    process_id: Int64Builder,
    process_node: StringBuilder,
    tgid: Int64Builder,
    start_ticks: Int64Builder,
    exec_count: Int64Builder,
    /// executable, command_line, build_id
    process_text: [StringBuilder; 3],
}

impl Default for Dictionaries {
    fn default() -> Self {
        Self {
            series_seen: HashSet::new(),
            stacks_seen: HashSet::new(),
            frames_seen: HashSet::new(),
            processes_seen: HashSet::new(),
            series_id: Int64Builder::new(),
            labels: crate::store::SERIES_LABELS.map(|_| StringBuilder::new()).into(),
            stack_id: Int64Builder::new(),
            stack_frames: ListBuilder::new(Int64Builder::new()).with_field(Field::new(
                "element",
                DataType::Int64,
                false,
            )),
            truncated: BooleanBuilder::new(),
            frame_id: Int64Builder::new(),
            frame_text: Default::default(),
            line: Int64Builder::new(),
            inlined: BooleanBuilder::new(),
            offset: Int64Builder::new(),
            process_id: Int64Builder::new(),
            process_node: StringBuilder::new(),
            tgid: Int64Builder::new(),
            start_ticks: Int64Builder::new(),
            exec_count: Int64Builder::new(),
            process_text: Default::default(),
        }
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct RowBuilder {
    hours: BTreeMap<i64, Samples>,
    days: BTreeMap<i64, Dictionaries>,
    text_bytes: usize,
    samples: i64,
}

impl RowBuilder {
    /// Samples so far.
    pub(super) fn samples(&self) -> i64 {
        self.samples
    }

    /// Adds a sample with what it refers to.
    pub(super) fn add(
        &mut self,
        sample: &SampleRow<'_>,
        labels: &[&str],
        process: &ProcessRow<'_>,
        stack: &Stack,
        dictionary: &Dictionary<'_>,
    ) -> Result<(), IngestError> {
        self.samples += 1;
        self.hours
            .entry(sample.ts_ns.div_euclid(HOUR_NS))
            .or_default()
            .add(sample);
        let day = self.days.entry(sample.ts_ns.div_euclid(DAY_NS)).or_default();
        let mut text = 0;
        if day.series_seen.insert(sample.series_id) {
            day.series_id.append_value(sample.series_id);
            for (builder, label) in day.labels.iter_mut().zip(labels) {
                builder.append_value(label);
                text += label.len();
            }
        }
        if day.processes_seen.insert(sample.process_id) {
            text += day.add_process(sample.process_id, process);
        }
        if day.stacks_seen.insert(stack.id) {
            text += day.add_stack(stack, dictionary);
        }
        self.text_bytes += text;
        if self.text_bytes > MAX_TEXT_BYTES {
            return Err(IngestError::TooLarge {
                what: "the text of the request's rows",
                limit_bytes: MAX_TEXT_BYTES,
            });
        }
        Ok(())
    }

    /// All rows, as the store takes them.
    pub(super) fn finish(self) -> Result<Rows, ArrowError> {
        let mut rows = Rows::default();
        for (index, samples) in self.hours {
            rows.tables[Table::Samples.index()].push(samples.finish(&hour(index * HOUR_NS))?);
        }
        for (index, dictionaries) in self.days {
            dictionaries.finish(&day(index * DAY_NS), &mut rows)?;
        }
        Ok(rows)
    }
}

impl Samples {
    fn add(&mut self, row: &SampleRow<'_>) {
        self.ts_ns.append_value(row.ts_ns);
        self.kind.append_value(row.kind);
        self.node.append_value(row.node);
        self.service.append_value(row.service);
        self.series_id.append_value(row.series_id);
        self.process_id.append_value(row.process_id);
        self.thread.append_value(row.thread);
        self.tid.append_option(row.tid);
        self.cpu.append_option(row.cpu);
        self.mode.append_value(row.mode);
        self.stack_id.append_value(row.stack_id);
        self.value.append_value(row.value);
    }

    fn finish(mut self, hour: &str) -> Result<RecordBatch, ArrowError> {
        let ts_ns = self.ts_ns.finish();
        let hour = constant(hour, ts_ns.len())?;
        RecordBatch::try_new(
            Table::Samples.schema(),
            vec![
                Arc::new(ts_ns),
                Arc::new(self.kind.finish()),
                Arc::new(self.node.finish()),
                Arc::new(self.service.finish()),
                Arc::new(self.series_id.finish()),
                Arc::new(self.process_id.finish()),
                Arc::new(self.thread.finish()),
                Arc::new(self.tid.finish()),
                Arc::new(self.cpu.finish()),
                Arc::new(self.mode.finish()),
                Arc::new(self.stack_id.finish()),
                Arc::new(self.value.finish()),
                hour,
            ],
        )
    }
}

impl Dictionaries {
    /// Returns the bytes of text that it added, as do the next ones.
    fn add_process(&mut self, id: i64, row: &ProcessRow<'_>) -> usize {
        self.process_id.append_value(id);
        self.process_node.append_value(row.node);
        self.tgid.append_option(row.tgid);
        self.start_ticks.append_option(row.start_ticks);
        self.exec_count.append_option(row.exec_count);
        let text = [row.executable, row.command_line, row.build_id];
        for (builder, text) in self.process_text.iter_mut().zip(text) {
            builder.append_value(text);
        }
        row.node.len() + text.iter().map(|text| text.len()).sum::<usize>()
    }

    fn add_stack(&mut self, stack: &Stack, dictionary: &Dictionary<'_>) -> usize {
        self.stack_id.append_value(stack.id);
        self.truncated.append_value(stack.truncated);
        let mut bytes = 0;
        for frame in dictionary.frames(stack) {
            self.stack_frames.values().append_value(frame.id);
            bytes += 8;
            if self.frames_seen.insert(frame.id) {
                self.frame_id.append_value(frame.id);
                let text = [frame.kind, frame.module, frame.build_id, frame.function, frame.file];
                for (builder, text) in self.frame_text.iter_mut().zip(text) {
                    builder.append_value(text);
                    bytes += text.len();
                }
                self.line.append_value(frame.line);
                self.inlined.append_value(frame.inlined);
                self.offset.append_option(frame.offset);
            }
        }
        self.stack_frames.append(true);
        bytes
    }

    fn finish(mut self, day: &str, rows: &mut Rows) -> Result<(), ArrowError> {
        let mut put = |table: Table, mut columns: Vec<ArrayRef>| -> Result<(), ArrowError> {
            let length = columns.first().map_or(0, |column| column.len());
            columns.push(constant(day, length)?);
            rows.tables[table.index()].push(RecordBatch::try_new(table.schema(), columns)?);
            Ok(())
        };
        let text = |builder: &mut StringBuilder| -> ArrayRef { Arc::new(builder.finish()) };
        let mut series: Vec<ArrayRef> = vec![Arc::new(self.series_id.finish())];
        series.extend(self.labels.iter_mut().map(text));
        put(Table::Series, series)?;
        put(
            Table::Stacks,
            vec![
                Arc::new(self.stack_id.finish()),
                Arc::new(self.stack_frames.finish()),
                Arc::new(self.truncated.finish()),
            ],
        )?;
        let mut frames: Vec<ArrayRef> = vec![Arc::new(self.frame_id.finish())];
        frames.extend(self.frame_text.iter_mut().map(text));
        frames.push(Arc::new(self.line.finish()));
        frames.push(Arc::new(self.inlined.finish()));
        frames.push(Arc::new(self.offset.finish()));
        put(Table::Frames, frames)?;
        let mut processes: Vec<ArrayRef> = vec![
            Arc::new(self.process_id.finish()),
            Arc::new(self.process_node.finish()),
            Arc::new(self.tgid.finish()),
            Arc::new(self.start_ticks.finish()),
            Arc::new(self.exec_count.finish()),
        ];
        processes.extend(self.process_text.iter_mut().map(text));
        put(Table::Processes, processes)
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
