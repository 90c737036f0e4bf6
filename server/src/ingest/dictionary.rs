//! A request's dictionary: every look-up checked, frames and stacks resolved once.

use super::IngestError;
use super::attributes::{self, Attribute};
use opentelemetry_proto::tonic::profiles::v1development::{Location, ProfilesDictionary};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Frames of one stack that are kept; what is nearer to the root is cut, and the stack marked as cut.
const MAX_STACK_FRAMES: usize = 16_384;

/// Frames of all stacks of a request together: a small request can name one long stack many times.
const MAX_EXPANDED_FRAMES: usize = 16_000_000;

/// One frame, as the table `frames` has it. Empty strings and a line of zero mean "unknown".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) id: i64,
    pub(super) kind: &'static str,
    pub(super) module: &'a str,
    pub(super) build_id: &'a str,
    pub(super) function: &'a str,
    pub(super) file: &'a str,
    pub(super) line: i64,
    pub(super) inlined: bool,
    /// Only where there is no function.
    pub(super) offset: Option<i64>,
}

/// One stack: its id and its frames, leaf first, as indices for [`Dictionary::frame`].
#[derive(Debug, Clone)]
pub(super) struct Stack {
    pub(super) id: i64,
    pub(super) frames: Range<usize>,
    pub(super) truncated: bool,
    /// The leaf is a kernel frame.
    pub(super) in_kernel: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dictionary<'a> {
    raw: &'a ProfilesDictionary,
    attributes: Vec<Attribute<'a>>,
    frames: Vec<Frame<'a>>,
    /// Per location: its frames, innermost first.
    locations: Vec<Option<Range<u32>>>,
    /// Per stack: whole and cut.
    stacks: Vec<[Option<Stack>; 2]>,
    /// Frame indices of all stacks, one after another.
    expanded: Vec<u32>,
}

/// Looks an index up. Index 0 of an absent table is what protobuf leaves when nothing was set: none.
fn look_up<'t, T>(
    table: &'t [T],
    name: &'static str,
    index: i32,
    user: &'static str,
) -> Result<Option<&'t T>, IngestError> {
    let at = usize::try_from(index).ok().and_then(|index| table.get(index));
    match at {
        None if index == 0 => Ok(None),
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
    /// Checks and reads all attributes; frames and stacks are resolved when they are asked for.
    pub(super) fn new(raw: &'a ProfilesDictionary) -> Result<Self, IngestError> {
        let attributes = raw
            .attribute_table
            .iter()
            .map(|entry| {
                let key = string_of(raw, entry.key_strindex, "an attribute's key")?;
                attributes::read(key, entry.value.as_ref(), |index| {
                    string_of(raw, index, "an attribute's value")
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            raw,
            attributes,
            frames: Vec::new(),
            locations: vec![None; raw.location_table.len()],
            stacks: vec![[None, None]; raw.stack_table.len().max(1)],
            expanded: Vec::new(),
        })
    }

    pub(super) fn string(&self, index: i32, user: &'static str) -> Result<&'a str, IngestError> {
        string_of(self.raw, index, user)
    }

    pub(super) fn attribute(&self, index: i32, user: &'static str) -> Result<Attribute<'a>, IngestError> {
        Ok(look_up(&self.attributes, "attribute_table", index, user)?
            .copied()
            .unwrap_or(Attribute::Other))
    }

    /// A stack by its index. `truncated`: the sample says that it was cut.
    pub(super) fn stack(&mut self, index: i32, truncated: bool) -> Result<Stack, IngestError> {
        let found = look_up(&self.raw.stack_table, "stack_table", index, "a sample's stack_index")?;
        let at = usize::try_from(index).unwrap_or_default();
        if let Some(stack) = &self.stacks[at][usize::from(truncated)] {
            return Ok(stack.clone());
        }
        let start = self.expanded.len();
        let mut cut = truncated;
        for location in found.iter().flat_map(|stack| &stack.location_indices) {
            let frames = self.location(*location)?;
            if self.expanded.len() - start + frames.len() > MAX_STACK_FRAMES {
                cut = true;
                break;
            }
            self.expanded.extend(frames);
        }
        if self.expanded.len() > MAX_EXPANDED_FRAMES {
            return Err(IngestError::Invalid(format!(
                "the stacks of the request have more than {MAX_EXPANDED_FRAMES} frames together"
            )));
        }
        let frames = start..self.expanded.len();
        let mut content = Vec::with_capacity(frames.len() * 8 + 1);
        for frame in &self.expanded[frames.clone()] {
            content.extend_from_slice(&self.frames[*frame as usize].id.to_le_bytes());
        }
        content.push(u8::from(cut));
        let in_kernel = self.expanded[frames.clone()]
            .first()
            .is_some_and(|leaf| self.frames[*leaf as usize].kind == "kernel");
        let stack = Stack {
            id: xxh3_64(&content) as i64,
            frames,
            truncated: cut,
            in_kernel,
        };
        self.stacks[at][usize::from(truncated)] = Some(stack.clone());
        Ok(stack)
    }

    /// The frames of a stack, leaf first.
    pub(super) fn frames(&self, stack: &Stack) -> impl ExactSizeIterator<Item = &Frame<'a>> {
        self.expanded[stack.frames.clone()]
            .iter()
            .map(|index| &self.frames[*index as usize])
    }

    /// Frames of a location, innermost first.
    fn location(&mut self, index: i32) -> Result<Range<u32>, IngestError> {
        let raw = self.raw;
        let location = look_up(
            &raw.location_table,
            "location_table",
            index,
            "a stack's location_indices",
        )?;
        let Some(location) = location else {
            return Err(IngestError::Index {
                user: "a stack's location_indices",
                table: "location_table",
                index,
                size: 0,
            });
        };
        let at = usize::try_from(index).unwrap_or_default();
        if let Some(range) = &self.locations[at] {
            return Ok(range.clone());
        }
        let start = self.frames.len();
        self.add_frames(location)?;
        if self.frames.len() > MAX_EXPANDED_FRAMES {
            return Err(IngestError::Invalid(format!(
                "the request has more than {MAX_EXPANDED_FRAMES} frames"
            )));
        }
        let range = start as u32..self.frames.len() as u32;
        self.locations[at] = Some(range.clone());
        Ok(range)
    }

    fn add_frames(&mut self, location: &'a Location) -> Result<(), IngestError> {
        let raw = self.raw;
        let mut frame = Frame {
            id: 0,
            kind: "unknown",
            module: "",
            build_id: "",
            function: "",
            file: "",
            line: 0,
            inlined: false,
            offset: None,
        };
        for attribute in &location.attribute_indices {
            if let Attribute::FrameType(kind) = self.attribute(*attribute, "a location's attribute_indices")? {
                frame.kind = frame_kind(kind);
            }
        }
        let mapping = look_up(
            &raw.mapping_table,
            "mapping_table",
            location.mapping_index,
            "a location's mapping_index",
        )?;
        if let Some(mapping) = mapping {
            frame.module = self.string(mapping.filename_strindex, "a mapping's filename_strindex")?;
            for attribute in &mapping.attribute_indices {
                match self.attribute(*attribute, "a mapping's attribute_indices")? {
                    Attribute::BuildId(id) => frame.build_id = id,
                    Attribute::BuildIdFallback(id) if frame.build_id.is_empty() => frame.build_id = id,
                    _ => {}
                }
            }
        }
        let offset = Some(location.address as i64);
        if location.lines.is_empty() {
            frame.offset = offset;
            self.frames.push(with_id(frame));
            return Ok(());
        }
        for (position, line) in location.lines.iter().enumerate() {
            let function = look_up(
                &raw.function_table,
                "function_table",
                line.function_index,
                "a line's function_index",
            )?;
            let mut frame = Frame {
                line: line.line.max(0),
                inlined: position + 1 < location.lines.len(),
                ..frame
            };
            if let Some(function) = function {
                frame.function = self.string(function.name_strindex, "a function's name_strindex")?;
                if frame.function.is_empty() {
                    frame.function = self.string(function.system_name_strindex, "a function's system_name_strindex")?;
                }
                frame.file = self.string(function.filename_strindex, "a function's filename_strindex")?;
            }
            if frame.function.is_empty() {
                frame.offset = offset;
            }
            self.frames.push(with_id(frame));
        }
        Ok(())
    }
}

fn string_of<'a>(raw: &'a ProfilesDictionary, index: i32, user: &'static str) -> Result<&'a str, IngestError> {
    Ok(look_up(&raw.string_table, "string_table", index, user)?.map_or("", String::as_str))
}

/// The closed list of kinds, from OTLP's open one.
fn frame_kind(otlp: &str) -> &'static str {
    match otlp {
        "" => "unknown",
        "kernel" => "kernel",
        "native" => "native",
        "jit" => "jit",
        // Every other value names an interpreter.
        _ => "interpreted",
    }
}

fn with_id(mut frame: Frame<'_>) -> Frame<'_> {
    let mut content = Vec::with_capacity(128);
    for part in [frame.kind, frame.module, frame.build_id, frame.function, frame.file] {
        super::rows::push_text(&mut content, part);
    }
    content.extend_from_slice(&frame.line.to_le_bytes());
    content.push(u8::from(frame.inlined));
    content.push(u8::from(frame.offset.is_some()));
    content.extend_from_slice(&frame.offset.unwrap_or_default().to_le_bytes());
    frame.id = xxh3_64(&content) as i64;
    frame
}
