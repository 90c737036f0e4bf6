//! A request's dictionary: every look-up checked, frames and stacks resolved once.

use super::IngestError;
use super::attributes::{self, Attribute};
use super::rows::push_text;
use super::wire::{Location, Mapping, Room, Tables};
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

/// One stack. What its frames are is looked up again where it is new: [`Dictionary::frames`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Stack {
    pub(super) id: i64,
    /// Where it stands in the table, and how many of its locations are kept.
    at: u32,
    locations: u32,
    /// The sample says that it was cut.
    is_marked: bool,
    pub(super) truncated: bool,
    /// The leaf is a kernel frame.
    pub(super) in_kernel: bool,
}

impl Stack {
    /// Another number for each stack of a request.
    pub(super) fn index(&self) -> usize {
        2 * self.at as usize + usize::from(self.is_marked)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dictionary<'a> {
    raw: &'a Tables<'a>,
    room: Room,
    attributes: Vec<Attribute<'a>>,
    /// Of each mapping: its file and build id.
    mappings: Vec<(&'a str, &'a str)>,
    frames: Vec<Frame<'a>>,
    /// Their ids, near to each other: every stack asks for those of all its frames.
    frame_ids: Vec<i64>,
    /// Per location: its frames, innermost first.
    locations: Vec<Option<Range<u32>>>,
    /// Per stack: whole and cut.
    stacks: Vec<[Option<Stack>; 2]>,
    /// Frames of all stacks so far.
    expanded: usize,
    /// What is hashed of a frame and of a stack, made anew for each; of a frame but for what says where it lies, and where that ends.
    content: Vec<u8>,
    last_module: ([&'a str; 3], usize),
    ids: Vec<u8>,
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
    /// Checks and reads all attributes and mappings; frames and stacks are resolved when they are asked for.
    pub(super) fn new(raw: &'a Tables<'a>, mut room: Room) -> Result<Self, IngestError> {
        room.take(raw.attributes.len() * size_of::<Attribute<'_>>())?;
        room.take(raw.mappings.len() * size_of::<(&str, &str)>())?;
        room.take(raw.locations.len() * size_of::<Option<Range<u32>>>())?;
        room.take(raw.lines.len() * (size_of::<Frame<'_>>() + size_of::<i64>()))?;
        room.take(raw.stacks.len() * size_of::<[Option<Stack>; 2]>())?;
        let attributes = raw
            .attributes
            .iter()
            .map(|entry| {
                let key = string_of(raw, entry.key_strindex, "an attribute's key")?;
                attributes::read(key, entry.value, |index| string_of(raw, index, "an attribute's value"))
            })
            .collect::<Result<_, _>>()?;
        let mut dictionary = Self {
            raw,
            room,
            attributes,
            mappings: Vec::with_capacity(raw.mappings.len()),
            // Mostly all are asked for.
            frames: Vec::with_capacity(raw.lines.len()),
            frame_ids: Vec::with_capacity(raw.lines.len()),
            locations: vec![None; raw.locations.len()],
            stacks: vec![[None, None]; raw.stacks.len().max(1)],
            expanded: 0,
            content: Vec::new(),
            last_module: ([""; 3], 0),
            ids: Vec::new(),
        };
        for mapping in &raw.mappings {
            let mapping = dictionary.mapping(mapping)?;
            dictionary.mappings.push(mapping);
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
    pub(super) fn room(&mut self) -> &mut Room {
        &mut self.room
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
        let found = look_up(&self.raw.stacks, "stack_table", index, "a sample's stack_index")?;
        let at = usize::try_from(index).unwrap_or_default();
        if let Some(stack) = self.stacks[at][usize::from(truncated)] {
            return Ok(stack);
        }
        let (mut cut, mut frames, mut kept) = (truncated, 0, 0);
        let mut in_kernel = false;
        // Not `content`: that is taken by frames that are looked at for the first time.
        self.ids.clear();
        found.copied().unwrap_or_default().each_location(|location| {
            let range = match self.locations.get(location as usize) {
                Some(Some(frames)) => frames.start as usize..frames.end as usize,
                _ => self.new_location(location)?,
            };
            let ids = &self.frame_ids[range.clone()];
            if frames + ids.len() > MAX_STACK_FRAMES {
                cut = true;
                return Ok(false);
            }
            if frames == 0 {
                in_kernel = self.frames.get(range.start).is_some_and(|leaf| leaf.kind == "kernel");
            }
            for id in ids {
                self.ids.extend_from_slice(&id.to_le_bytes());
            }
            frames += ids.len();
            kept += 1;
            Ok::<_, IngestError>(true)
        })?;
        self.room.take(2 * size_of::<u32>() * frames)?;
        self.expanded += frames;
        if self.expanded > MAX_EXPANDED_FRAMES {
            return Err(IngestError::Invalid(format!(
                "the stacks of the request have more than {MAX_EXPANDED_FRAMES} frames together"
            )));
        }
        self.ids.push(u8::from(cut));
        let stack = Stack {
            id: xxh3_64(&self.ids) as i64,
            at: at as u32,
            locations: kept,
            is_marked: truncated,
            truncated: cut,
            in_kernel,
        };
        self.stacks[at][usize::from(truncated)] = Some(stack);
        Ok(stack)
    }

    /// The frames of a stack, leaf first.
    pub(super) fn frames(&self, stack: &Stack) -> impl Iterator<Item = &Frame<'a>> {
        let raw = self.raw.stacks.get(stack.at as usize).copied().unwrap_or_default();
        let kept = raw.locations().take(stack.locations as usize);
        kept.flat_map(|location| match self.locations.get(location as usize) {
            Some(Some(frames)) => &self.frames[frames.start as usize..frames.end as usize],
            _ => &[],
        })
    }

    /// Frames of a location that was not asked for yet, innermost first.
    #[cold]
    fn new_location(&mut self, index: i32) -> Result<Range<usize>, IngestError> {
        let raw = self.raw;
        let location = look_up(&raw.locations, "location_table", index, "a stack's location_indices")?;
        let Some(location) = location else {
            return Err(IngestError::Index {
                user: "a stack's location_indices",
                table: "location_table",
                index,
                size: 0,
            });
        };
        let at = usize::try_from(index).unwrap_or_default();
        let start = self.frames.len();
        self.add_frames(location)?;
        if self.frames.len() > MAX_EXPANDED_FRAMES {
            return Err(IngestError::Invalid(format!(
                "the request has more than {MAX_EXPANDED_FRAMES} frames"
            )));
        }
        let end = self.frames.len();
        self.locations[at] = Some(start as u32..end as u32);
        Ok(start..end)
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
        for attribute in raw.indices(&location.attributes) {
            if let Attribute::FrameType(kind) = self.attribute(*attribute, "a location's attribute_indices")? {
                frame.kind = frame_kind(kind);
            }
        }
        let mapping = look_up(
            &self.mappings,
            "mapping_table",
            location.mapping,
            "a location's mapping_index",
        )?;
        if let Some(mapping) = mapping {
            (frame.module, frame.build_id) = *mapping;
        }
        let offset = Some(location.address as i64);
        let lines = raw.lines(&location.lines);
        let entry = size_of::<Frame<'_>>() + size_of::<i64>();
        self.room.take(2 * entry * lines.len().max(1))?;
        if lines.is_empty() {
            frame.offset = offset;
            self.add_frame(frame);
            return Ok(());
        }
        for (position, line) in lines.iter().enumerate() {
            let function = look_up(
                &raw.functions,
                "function_table",
                line.function,
                "a line's function_index",
            )?;
            let mut frame = Frame {
                line: line.line.max(0),
                inlined: position + 1 < lines.len(),
                ..frame
            };
            if let Some(function) = function {
                frame.function = self.string(function.name, "a function's name_strindex")?;
                if frame.function.is_empty() {
                    frame.function = self.string(function.system_name, "a function's system_name_strindex")?;
                }
                frame.file = self.string(function.file, "a function's filename_strindex")?;
            }
            if frame.function.is_empty() {
                frame.offset = offset;
            }
            self.add_frame(frame);
        }
        Ok(())
    }

    fn add_frame(&mut self, mut frame: Frame<'a>) {
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
        content.extend_from_slice(&frame.line.to_le_bytes());
        content.push(u8::from(frame.inlined));
        content.push(u8::from(frame.offset.is_some()));
        content.extend_from_slice(&frame.offset.unwrap_or_default().to_le_bytes());
        frame.id = xxh3_64(content) as i64;
        self.frames.push(frame);
        self.frame_ids.push(frame.id);
    }
}

fn string_of<'a>(raw: &Tables<'a>, index: i32, user: &'static str) -> Result<&'a str, IngestError> {
    Ok(look_up(&raw.strings, "string_table", index, user)?
        .copied()
        .unwrap_or(""))
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
