//! pprof: the messages of <https://github.com/google/pprof/blob/main/proto/profile.proto>, gzipped.

use crate::query::Flamegraph;
use crate::query::nodes::{Frame, Kind, Paths, Stack};
use crate::render::error::RenderError;
use crate::render::writer::Writer;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    /// Indices into the string table.
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// Leaf first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

/// Readers make rows of it: `-tagroot=service`.
#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    /// Innermost inlined function first.
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
    /// `go build -pgo` wants it: it knows calls by how many lines they are below it.
    #[prost(int64, tag = "5")]
    start_line: i64,
}

/// Memory of a frame's name while paths are made, and of an entry of the tables, in bytes.
const OF_FRAME_BYTES: usize = 64;
const ENTRY_BYTES: usize = 200;
/// So many samples are written at a time.
const PART: usize = 1_024;

/// The stacks of a window with two values each, samples (count) and cpu (nanoseconds); with one where counts are no
/// samples.
///
/// A message may be written in parts, repeated fields a few at a time
/// (<https://protobuf.dev/programming-guides/encoding/#last-one-wins>): so only what samples refer to is kept until
/// the end.
pub fn pprof(graph: &Flamegraph, to: &mut Writer) -> Result<(), RenderError> {
    let failed = |error| RenderError::new("pprof", error);
    let frames_bytes = graph.stacks.frames.len() * OF_FRAME_BYTES;
    to.beside(frames_bytes)?;
    let paths = Paths::new(&graph.stacks, &graph.shape);
    let mut tables = Tables::default();
    let mut rest = head(graph, &mut tables);
    let mut gzip = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
    let mut path = Vec::new();
    let mut samples = graph.stacks.stacks.iter().zip(&graph.stack_samples).enumerate();
    while samples.len() > 0 {
        let mut part = Profile::default();
        for (place, (stack, count)) in samples.by_ref().take(PART) {
            if *count > 0 && paths.of(stack, &mut path) {
                let mut sample = sample(graph, &mut tables, &path, *count);
                sample.label = labels(graph, &mut tables, place);
                part.sample.push(sample);
            }
        }
        gzip.write_all(&part.encode_to_vec()).map_err(failed)?;
        let bytes = frames_bytes + tables.bytes();
        gzip.get_mut().beside(bytes)?;
    }
    rest.mapping = tables.mappings;
    rest.location = tables.locations;
    rest.function = tables.functions;
    rest.string_table = tables.strings;
    gzip.write_all(&rest.encode_to_vec()).map_err(failed)?;
    gzip.finish().map(drop).map_err(failed)
}

fn sample(graph: &Flamegraph, tables: &mut Tables, path: &[u32], count: u64) -> Sample {
    // Inlined frames and the frame that they were inlined into have one address: one location.
    let location_id = path
        .chunk_by(|inner, _| graph.stacks.frames[*inner as usize].inlined)
        .map(|frames| tables.location(graph, frames))
        .collect();
    let counted = &graph.summary.counted;
    let amount = i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(counted.one);
    let value = if has_samples(graph) {
        vec![count as i64, amount]
    } else {
        vec![amount]
    };
    Sample {
        location_id,
        value,
        label: Vec::new(),
    }
}

/// The labels of a stack that rows were asked for of. One without a value has none.
fn labels(graph: &Flamegraph, tables: &mut Tables, place: usize) -> Vec<Label> {
    let Some(rows) = &graph.rows else { return Vec::new() };
    let values = &rows.groups[rows.group_of[place] as usize];
    let given = rows.labels.iter().zip(values).filter(|(_, value)| !value.is_empty());
    given
        .map(|(name, value)| Label {
            key: tables.text(name),
            str: tables.text(value),
        })
        .collect()
}

/// Whether counts are samples of a clock, each of which stands for a period.
fn has_samples(graph: &Flamegraph) -> bool {
    graph.summary.counted.name() == "samples"
}

/// All but samples and tables.
fn head(graph: &Flamegraph, tables: &mut Tables) -> Profile {
    tables.text("");
    let window = graph.summary.question.window;
    let counted = &graph.summary.counted;
    let samples = has_samples(graph).then(|| ValueType {
        kind: tables.text("samples"),
        unit: tables.text("count"),
    });
    let cpu = ValueType {
        kind: tables.text(&graph.summary.question.profile),
        unit: tables.text(counted.unit.name()),
    };
    let default_sample_type = cpu.kind;
    let comment = vec![tables.text(&format!("query {}", graph.summary.question.selector))];
    // Readers take the first mapping for the program's own: the root of the busiest stack says which that is.
    if let Some(main) = busiest_root(graph) {
        tables.mapping(main);
    }
    Profile {
        sample_type: samples.into_iter().chain([cpu.clone()]).collect(),
        time_nanos: window.from_ns,
        duration_nanos: window.length_ns(),
        period_type: Some(cpu),
        period: if has_samples(graph) { counted.one } else { 1 },
        comment,
        default_sample_type,
        ..Profile::default()
    }
}

/// The outermost frame of the user-mode stack with the most samples.
fn busiest_root(graph: &Flamegraph) -> Option<&Frame> {
    let frame = |frame: &u32| &*graph.stacks.frames[*frame as usize];
    let root = |stack: &Stack| stack.frames.iter().rev().map(frame).find(|frame| !frame.name.is_mark());
    let stacks = graph.stacks.stacks.iter().zip(&graph.stack_samples);
    stacks
        .filter_map(|(stack, samples)| Some((root(stack)?, samples)))
        .filter(|(frame, _)| frame.name.kind != Kind::Kernel)
        .max_by_key(|(_, samples)| **samples)
        .map(|(frame, _)| frame)
}

#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_of: HashMap<String, i64>,
    mappings: Vec<Mapping>,
    mapping_of: HashMap<(i64, i64), u64>,
    locations: Vec<Location>,
    location_of: HashMap<Vec<u32>, u64>,
    functions: Vec<Function>,
    /// By name, file and the line at which it begins.
    function_of: HashMap<(i64, i64, i64), u64>,
    /// Of texts, and of the lists of frames that are of one address.
    texts_bytes: usize,
    lists_bytes: usize,
}

impl Tables {
    /// What they take, with what is made of them at the end: each entry with its place in a table of hashes, and once
    /// more as it is written.
    fn bytes(&self) -> usize {
        let entries = self.strings.len() + self.mappings.len() + self.locations.len() + self.functions.len();
        entries * ENTRY_BYTES + 4 * self.texts_bytes + 3 * self.lists_bytes
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(index) = self.string_of.get(text) {
            return *index;
        }
        let index = self.strings.len() as i64;
        self.texts_bytes += text.len();
        self.strings.push(text.to_owned());
        self.string_of.insert(text.to_owned(), index);
        index
    }

    /// `frames` are of one address, innermost first.
    fn location(&mut self, graph: &Flamegraph, frames: &[u32]) -> u64 {
        if let Some(id) = self.location_of.get(frames) {
            return *id;
        }
        let line = frames
            .iter()
            .map(|frame| {
                let frame = &graph.stacks.frames[*frame as usize];
                Line {
                    function_id: self.function(frame),
                    line: i64::from(frame.line),
                }
            })
            .collect();
        let outer = frames.last().map(|frame| graph.stacks.frames[*frame as usize].clone());
        let mapping_id = outer.as_ref().map_or(0, |frame| self.mapping(frame));
        let id = self.locations.len() as u64 + 1;
        self.locations.push(Location {
            id,
            mapping_id,
            address: outer.map_or(0, |frame| frame.offset),
            line,
        });
        self.lists_bytes += frames.len() * (size_of::<Line>() + size_of::<u32>());
        self.location_of.insert(frames.to_vec(), id);
        id
    }

    fn mapping(&mut self, frame: &Frame) -> u64 {
        if frame.name.module.is_empty() {
            return 0;
        }
        let key = (self.text(&frame.name.module), self.text(&frame.build_id));
        let next = self.mappings.len() as u64 + 1;
        let id = *self.mapping_of.entry(key).or_insert(next);
        if id == next {
            self.mappings.push(Mapping {
                id,
                filename: key.0,
                build_id: key.1,
                // Names are final: a reader need not look for the binary.
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let file = self.text(&frame.file);
        let key = (self.text(&frame.name.function), file, i64::from(frame.start_line));
        let next = self.functions.len() as u64 + 1;
        let id = *self.function_of.entry(key).or_insert(next);
        if id == next {
            self.functions.push(Function {
                id,
                name: key.0,
                system_name: key.0,
                filename: key.1,
                start_line: key.2,
            });
        }
        id
    }
}
