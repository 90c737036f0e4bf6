//! A request's dictionary: every look-up checked, frames and stacks resolved once.

use crate::ingest::error::IngestError;
use crate::ingest::rows::attributes::{self, Attribute};
use crate::ingest::rows::text::push_text;
use crate::ingest::wire::allocation::AllocationBudget;
use crate::ingest::wire::attribute::KeyValue;
use crate::ingest::wire::protobuf::text;
use crate::ingest::wire::tables::{Location, Mapping, Tables};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Frames of one stack that are kept; what is nearer to the root is cut, and the stack marked as cut.
const MAX_STACK_FRAMES: usize = 16_384;

/// Frames of all stacks of a request together: a small request can name one long stack many times.
const MAX_EXPANDED_FRAMES: usize = 16_000_000;

/// One frame, as the table `frames` has it. Empty strings and a line of zero mean "unknown". `N`: names as text, or
/// as they stand in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a, N = &'a str> {
    pub(crate) kind: &'static str,
    pub(crate) module: &'a str,
    pub(crate) build_id: &'a str,
    pub(crate) function: N,
    pub(crate) file: N,
    pub(crate) line: i64,
    /// Where its function begins, if that is known.
    pub(crate) start_line: Option<i64>,
    pub(crate) inlined: bool,
    /// Only where there is no function.
    pub(crate) offset: Option<i64>,
}

/// One stack. What its frames are is looked up again where it is new: [`Dictionary::frames`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    pub(crate) id: i64,
    /// Where it stands in the table, and how many of its locations are kept.
    at: u32,
    locations: u32,
    /// The sample says that it was cut.
    is_marked: bool,
    pub(crate) truncated: bool,
    /// The leaf is a kernel frame.
    pub(crate) in_kernel: bool,
}

impl Stack {
    /// Another number for each stack of a request.
    pub(crate) fn index(&self) -> usize {
        2 * self.at as usize + usize::from(self.is_marked)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Dictionary<'a> {
    raw: &'a Tables<'a>,
    budget: AllocationBudget,
    /// What is wrong with one is told where it is asked for, as of mappings.
    attributes: Vec<Option<Attribute<'a>>>,
    /// Of each mapping: its file and build id.
    mappings: Vec<Option<(&'a str, &'a str)>>,
    /// Whether each name is looked at, to find whose it is that is no text.
    checks_names: bool,
    /// Of each frame where it stands and its id: what it is is read again where it is new.
    frames: Vec<FrameAt>,
    frame_ids: Vec<i64>,
    places: Vec<FrameRange>,
    /// Of each location the id of its frame, where that is the only one and was asked for: near to each other, since
    /// every stack asks for those of all its locations.
    only: Vec<i64>,
    /// Per stack: whole and cut.
    stacks: Vec<[Option<Stack>; 2]>,
    /// Frames of all stacks so far.
    expanded: usize,
    /// What is hashed of a frame, made anew for each but for what says where it lies, and where that ends.
    content: Vec<u8>,
    last_module: ([&'a str; 3], usize),
    ids: Vec<[u8; size_of::<i64>()]>,
    /// The locations of the stack that is looked at.
    locations: Vec<i32>,
}

/// Where a frame stands in the request: which line of which location.
#[derive(Debug, Clone, Copy)]
struct FrameAt {
    location: u32,
    line: u32,
}

/// Not the id of one frame. A frame that has it is looked up where those of several are.
const NO_ONE: i64 = 0;

/// Where the frames of a location are, innermost first.
#[derive(Debug, Clone, Copy)]
struct FrameRange {
    first: u32,
    frames: u32,
    /// Of all of them, in [`KINDS`]; or [`MARKER`], or [`NOT_ASKED`].
    kind: u8,
}

impl Default for FrameRange {
    fn default() -> Self {
        Self {
            first: 0,
            frames: 0,
            kind: NOT_ASKED,
        }
    }
}

/// What index 0 names.
static NO_LOCATION: Location = Location {
    mapping: 0,
    address: 0,
    lines: 0..0,
    attributes: 0..0,
};

impl FrameRange {
    fn range(self) -> Range<usize> {
        self.first as usize..(self.first + self.frames) as usize
    }
}

/// Looks an index up. Index 0 is what protobuf leaves when nothing was set: none, whatever a sender put there.
fn look_up<'t, T>(
    table: &'t [T],
    name: &'static str,
    index: i32,
    user: &'static str,
) -> Result<Option<&'t T>, IngestError> {
    if index == 0 {
        return Ok(None);
    }
    let at = usize::try_from(index).ok().and_then(|index| table.get(index));
    match at {
        None => Err(IngestError::Index {
            user,
            table: name,
            index,
            size: table.len(),
        }),
        found => Ok(found),
    }
}

impl<'a> Dictionary<'a> {
    /// Checks and reads all attributes and mappings; frames and stacks are resolved when they are asked for.
    pub(crate) fn new(
        raw: &'a Tables<'a>,
        mut budget: AllocationBudget,
        checks_names: bool,
    ) -> Result<Self, IngestError> {
        budget.take(raw.attributes.len() * size_of::<Option<Attribute<'_>>>())?;
        budget.take(raw.mappings.len() * size_of::<Option<(&str, &str)>>())?;
        budget.take(raw.locations.len() * (size_of::<FrameRange>() + size_of::<i64>()))?;
        // A location without lines is a frame too.
        let frames = raw.locations.iter().map(|location| location.lines.len().max(1)).sum();
        budget.take(frames * (size_of::<FrameAt>() + size_of::<i64>()))?;
        budget.take(raw.stacks.len() * size_of::<[Option<Stack>; 2]>())?;
        let attributes = raw
            .attributes
            .iter()
            .map(|entry| attribute_of(raw, entry).ok())
            .collect();
        let mut dictionary = Self {
            raw,
            budget,
            attributes,
            checks_names,
            mappings: Vec::with_capacity(raw.mappings.len()),
            // Mostly all are asked for.
            frames: Vec::with_capacity(frames),
            frame_ids: Vec::with_capacity(frames),
            places: vec![FrameRange::default(); raw.locations.len()],
            only: vec![NO_ONE; raw.locations.len()],
            stacks: vec![[None, None]; raw.stacks.len().max(1)],
            expanded: 0,
            content: Vec::new(),
            last_module: ([""; 3], 0),
            ids: Vec::new(),
            locations: Vec::new(),
        };
        for mapping in &raw.mappings {
            let mapping = dictionary.mapping(mapping);
            dictionary.mappings.push(mapping.ok());
        }
        // Mostly all are asked for, and one after another they are found faster. What is wrong with one is told where
        // it is asked for.
        for location in 0..raw.locations.len() {
            let _ = dictionary.new_location(location as i32);
        }
        Ok(dictionary)
    }

    fn mapping(&self, mapping: &Mapping) -> Result<(&'a str, &'a str), IngestError> {
        let module = self.string(mapping.file, "a mapping's filename_strindex")?;
        let mut build_id = "";
        for attribute in self.raw.indices(&mapping.attributes) {
            match self.attribute(*attribute, "a mapping's attribute_indices")? {
                Attribute::BuildId(id) => build_id = id,
                Attribute::BuildIdFallback(id) if build_id.is_empty() => build_id = id,
                _ => {}
            }
        }
        Ok((module, build_id))
    }

    /// What is left for all that is made of the request.
    pub(crate) fn budget(&mut self) -> &mut AllocationBudget {
        &mut self.budget
    }

    pub(crate) fn string(&self, index: i32, user: &'static str) -> Result<&'a str, IngestError> {
        string_of(self.raw, index, user)
    }

    pub(crate) fn attribute(&self, index: i32, user: &'static str) -> Result<Attribute<'a>, IngestError> {
        match look_up(&self.attributes, "attribute_table", index, user)? {
            Some(Some(attribute)) => Ok(*attribute),
            // Read again for what is wrong.
            Some(None) => attribute_of(self.raw, &self.raw.attributes[index as usize]),
            None => Ok(Attribute::Other),
        }
    }

    /// A stack by its index. `truncated`: the sample says that it was cut.
    pub(crate) fn stack(&mut self, index: i32, truncated: bool) -> Result<Stack, IngestError> {
        let found = look_up(&self.raw.stacks, "stack_table", index, "a sample's stack_index")?;
        let at = usize::try_from(index).unwrap_or_default();
        if let Some(stack) = self.stacks[at][usize::from(truncated)] {
            return Ok(stack);
        }
        // Each has a frame at least: of more than these none is looked at.
        let mut locations = std::mem::take(&mut self.locations);
        found
            .copied()
            .unwrap_or_default()
            .unpack(MAX_STACK_FRAMES + 1, &mut locations);
        // Not `content`: that is taken by frames that are looked at for the first time.
        let mut ids = std::mem::take(&mut self.ids);
        ids.clear();
        let only = |location: &i32| self.only.get(*location as usize).copied().unwrap_or(NO_ONE);
        let mut is_all = locations.len() <= MAX_STACK_FRAMES;
        ids.extend(locations.iter().map(|location| {
            let id = only(location);
            is_all &= id != NO_ONE;
            id.to_le_bytes()
        }));
        let (mut cut, mut kept) = (truncated, locations.len() as u32);
        // Mostly that was all: each location has one frame.
        if !is_all {
            ids.clear();
            kept = 0;
            for location in &locations {
                let place = self.place(*location)?;
                cut |= place.kind == MARKER;
                let of_location = &self.frame_ids[place.range()];
                if ids.len() + of_location.len() > MAX_STACK_FRAMES {
                    cut = true;
                    break;
                }
                ids.extend(of_location.iter().map(|id| id.to_le_bytes()));
                kept += 1;
            }
        }
        let leaf = locations.first().filter(|_| kept > 0);
        let leaf = leaf.and_then(|leaf| self.places.get(*leaf as usize));
        let in_kernel = leaf.is_some_and(|leaf| leaf.kind == KERNEL);
        let frames = ids.len();
        ids.push(u64::from(cut).to_le_bytes());
        let id = xxh3_64(&ids.as_flattened()[..frames * size_of::<i64>() + 1]) as i64;
        (self.locations, self.ids) = (locations, ids);
        self.budget.take(2 * size_of::<u32>() * frames)?;
        self.expanded += frames;
        if self.expanded > MAX_EXPANDED_FRAMES {
            return Err(IngestError::Invalid(format!(
                "the stacks of the request have more than {MAX_EXPANDED_FRAMES} frames together"
            )));
        }
        let stack = Stack {
            id,
            at: at as u32,
            locations: kept,
            is_marked: truncated,
            truncated: cut,
            in_kernel,
        };
        self.stacks[at][usize::from(truncated)] = Some(stack);
        Ok(stack)
    }

    /// The frames of a stack, leaf first: the id of each, and what [`Dictionary::frame`] knows it by.
    pub(crate) fn frames(&self, stack: &Stack) -> impl Iterator<Item = (i64, u32)> {
        let raw = self.raw.stacks.get(stack.at as usize).copied().unwrap_or_default();
        let kept = raw.locations().take(stack.locations as usize);
        kept.flat_map(|location| {
            let place = self.places.get(location as usize).copied().unwrap_or_default();
            place.range().map(|frame| (self.frame_ids[frame], frame as u32))
        })
    }

    /// One of [`Dictionary::frames`].
    pub(crate) fn frame(&self, frame: u32) -> Result<Frame<'a>, IngestError> {
        let at = self.frames[frame as usize];
        let read = self.read_frame(at, self.places[at.location as usize].kind)?;
        Ok(Frame {
            function: text(read.function)?,
            file: text(read.file)?,
            kind: read.kind,
            module: read.module,
            build_id: read.build_id,
            line: read.line,
            start_line: read.start_line,
            inlined: read.inlined,
            offset: read.offset,
        })
    }

    fn place(&mut self, location: i32) -> Result<FrameRange, IngestError> {
        match self.places.get(location as usize) {
            Some(place) if place.kind != NOT_ASKED => Ok(*place),
            _ => self.new_location(location),
        }
    }

    /// Frames of a location that was not asked for yet, innermost first.
    #[cold]
    fn new_location(&mut self, index: i32) -> Result<FrameRange, IngestError> {
        let raw = self.raw;
        let found = look_up(&raw.locations, "location_table", index, "a stack's location_indices")?;
        let location = found.unwrap_or(&NO_LOCATION);
        if raw.locations.is_empty() {
            return Err(IngestError::Index {
                user: "a stack's location_indices",
                table: "location_table",
                index,
                size: 0,
            });
        }
        let start = self.frames.len();
        let lines = location.lines.len().max(1);
        let entry = size_of::<FrameAt>() + size_of::<i64>();
        self.budget.take(2 * entry * lines)?;
        // Once for all lines: a small request can have many of both.
        let mut kind = UNKNOWN;
        for attribute in raw.indices(&location.attributes) {
            if let Attribute::FrameType(named) = self.attribute(*attribute, "a location's attribute_indices")? {
                kind = frame_kind(named);
            }
        }
        if kind == MARKER {
            let place = FrameRange {
                first: start as u32,
                frames: 0,
                kind,
            };
            self.places[index as usize] = place;
            return Ok(place);
        }
        for line in 0..lines as u32 {
            let at = FrameAt {
                location: index as u32,
                line,
            };
            let frame = self.read_frame(at, kind)?;
            if self.checks_names {
                text(frame.function)?;
                text(frame.file)?;
            }
            let id = self.frame_id(&frame);
            self.frames.push(at);
            self.frame_ids.push(id);
        }
        if self.frames.len() > MAX_EXPANDED_FRAMES {
            return Err(IngestError::Invalid(format!(
                "the request has more than {MAX_EXPANDED_FRAMES} frames"
            )));
        }
        let place = FrameRange {
            first: start as u32,
            frames: lines as u32,
            kind,
        };
        self.places[index as usize] = place;
        if lines == 1 {
            self.only[index as usize] = self.frame_ids[start];
        }
        Ok(place)
    }

    /// Its names are not looked at.
    fn read_frame(&self, at: FrameAt, kind: u8) -> Result<Frame<'a, &'a [u8]>, IngestError> {
        let raw = self.raw;
        let location = match at.location {
            0 => &NO_LOCATION,
            location => &raw.locations[location as usize],
        };
        let mut frame = Frame {
            kind: KINDS[usize::from(kind)],
            module: "",
            build_id: "",
            function: &[] as &[u8],
            file: &[],
            line: 0,
            start_line: None,
            inlined: false,
            offset: None,
        };
        let mapping = look_up(
            &self.mappings,
            "mapping_table",
            location.mapping,
            "a location's mapping_index",
        )?;
        if let Some(mapping) = mapping {
            (frame.module, frame.build_id) = match mapping {
                Some(mapping) => *mapping,
                None => self.mapping(&raw.mappings[location.mapping as usize])?,
            };
        }
        let lines = raw.lines(&location.lines);
        if let Some(line) = lines.get(at.line as usize) {
            frame.line = line.line.max(0);
            frame.inlined = at.line as usize + 1 < lines.len();
            let function = look_up(
                &raw.functions,
                "function_table",
                line.function,
                "a line's function_index",
            )?;
            if let Some(function) = function {
                frame.function = bytes_of(raw, function.name, "a function's name_strindex")?;
                if frame.function.is_empty() {
                    frame.function = bytes_of(raw, function.system_name, "a function's system_name_strindex")?;
                }
                frame.file = bytes_of(raw, function.file, "a function's filename_strindex")?;
                frame.start_line = Some(function.start_line).filter(|line| *line > 0);
            }
        }
        if frame.function.is_empty() {
            frame.offset = Some(location.address as i64);
        }
        Ok(frame)
    }

    fn frame_id(&mut self, frame: &Frame<'a, &'a [u8]>) -> i64 {
        let content = &mut self.content;
        let module = [frame.kind, frame.module, frame.build_id];
        let (last, end) = &mut self.last_module;
        // Mostly the very texts of the frame before, which need not even be looked at.
        let is_last = last.iter().zip(module).all(|(last, text)| std::ptr::eq(*last, text));
        content.truncate(if is_last { *end } else { 0 });
        if content.is_empty() {
            module.iter().for_each(|part| push_text(content, part));
            (*last, *end) = (module, content.len());
        }
        for part in [frame.function, frame.file] {
            push_text(content, part);
        }
        // In one piece: of what a frame costs a good part is to look whether there is room for the next.
        let mut rest = [0; 3 * size_of::<i64>() + 2];
        rest[..8].copy_from_slice(&frame.line.to_le_bytes());
        rest[8] = u8::from(frame.inlined);
        rest[9] = u8::from(frame.offset.is_some());
        rest[10..18].copy_from_slice(&frame.offset.unwrap_or_default().to_le_bytes());
        rest[18..].copy_from_slice(&frame.start_line.unwrap_or_default().to_le_bytes());
        // Frames that don't say where their function begins have the ids that they had before any could.
        content.extend_from_slice(if frame.start_line.is_some() { &rest } else { &rest[..18] });
        xxh3_64(content) as i64
    }
}

fn attribute_of<'a>(raw: &Tables<'a>, entry: &KeyValue<'a>) -> Result<Attribute<'a>, IngestError> {
    let key = string_of(raw, entry.key_strindex, "an attribute's key")?;
    attributes::read(key, entry.value, |index| string_of(raw, index, "an attribute's value"))
}

/// A string as it stands in the body.
fn bytes_of<'a>(raw: &Tables<'a>, index: i32, user: &'static str) -> Result<&'a [u8], IngestError> {
    Ok(look_up(&raw.strings, "string_table", index, user)?
        .copied()
        .unwrap_or_default())
}

fn string_of<'a>(raw: &Tables<'a>, index: i32, user: &'static str) -> Result<&'a str, IngestError> {
    Ok(text(bytes_of(raw, index, user)?)?)
}

/// The closed list of kinds, as the table keeps and `query::tree::Kind` reads it: what is interpreted is called by its
/// language.
const KINDS: [&str; 16] = [
    "unknown", "kernel", "native", "jit", "jvm", "cpython", "v8js", "ruby", "php", "dotnet", "beam", "perl", "lua",
    "r", "julia", "wasm",
];

const UNKNOWN: u8 = 0;

const KERNEL: u8 = 1;

/// No frame: the walk ended here before its root.
const MARKER: u8 = 254;

/// Not looked at yet.
const NOT_ASKED: u8 = 255;

/// A kind's place in [`KINDS`], from OTLP's open list: a language is compiled to native code or is a kind of its own,
/// and what is not known here is neither.
fn frame_kind(otlp: &str) -> u8 {
    let name = match otlp {
        "abort-marker" => return MARKER,
        "go" | "rust" | "swift" | "zig" | "c" | "cpp" | "c++" | "nim" | "crystal" | "ocaml" | "haskell" => "native",
        "python" => "cpython",
        "java" => "jvm",
        "nodejs" | "javascript" => "v8js",
        "luajit" => "lua",
        name => name,
    };
    let known = KINDS.iter().position(|kind| *kind == name);
    known.map_or(UNKNOWN, |kind| kind as u8)
}
