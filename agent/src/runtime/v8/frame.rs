//! Names of frames: from what a walk saw to functions, files and lines.

use std::sync::{Arc, PoisonError};

use super::code::{Code, CodeKind};
use super::function::{Shared, mix};
use super::known_functions::{Function, Key};
use super::lines::{file, line};
use super::positions::{Position, bytecode_at, position_at};
use super::{
    ARRAY_DATA, ARRAY_LENGTH, ReadMemory, Unreadable, V8, byte_array, field, object, object_at, part, read, small,
    type_of, word,
};

/// As in bpf/v8.h: the place's bits, the object's bits, and where the place's kind stands.
const PLACE_BITS: u32 = 47;
const OBJECT_BITS: u32 = 44;
const KIND_SHIFT: u32 = 57;
/// Of the ten bits of hashes those of the code's.
const CODE_BITS: u32 = 6;
/// Functions that are inlined into each other.
const MAX_INLINED: usize = 128;
/// Bytes of a table of places, and of a function's bytecodes.
const MAX_TABLE_BYTES: usize = 1 << 20;
/// A place where a function was inlined: a position, the function's number, and nothing.
const INLINED_BYTES: u64 = 16;
/// Elements of data for deoptimisation behind that with inlined functions: where code ends, and its exits begin.
const EXITS_BEHIND_INLINED: u16 = 1;

/// Code that belongs to no function.
const STUB: &str = "[stub]";

/// What sort of frame it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameSort {
    /// A function of JavaScript.
    Function,
    /// What V8 made, which belongs to no function: the name says what it is.
    Made,
    /// WebAssembly.
    Wasm,
}

/// A frame as V8's own stack traces have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScriptFrame {
    /// What sort it is.
    pub sort: FrameSort,
    /// With its class, as far as the text tells: `Queue.pop`, `new Queue`, `<anonymous> (queue.js:12)`.
    pub function: String,
    /// The script's file, address or name; none of V8's own functions.
    pub file: Option<String>,
    /// 1-based; 0 where there is none.
    pub line: u32,
    /// It was inlined into the next frame.
    pub inlined: bool,
}

/// What a walk saw.
struct Seen {
    place: u64,
    object: u64,
    /// 16 bits, and ten more, of hashes.
    hash: u64,
    more: u64,
}

impl Seen {
    /// Is it the function that was interpreted?
    fn check_function(&self, hash: u64) -> Result<(), Unreadable> {
        same(hash >> 48 == self.hash && hash >> 38 & 0x3ff == self.more)
    }

    /// Is it the function that code was made of?
    fn check_owner(&self, hash: u64) -> Result<(), Unreadable> {
        same(hash >> 48 == self.hash && hash >> 44 & 15 == self.more >> CODE_BITS)
    }

    /// Is it the same code? Of what stands at the place, the word.
    fn check_code(&self, code: u64) -> Result<(), Unreadable> {
        same(mix(0, code) >> (64 - CODE_BITS) == self.more & ((1 << CODE_BITS) - 1))
    }
}

/// What was asked for has to be there still.
fn same(is_same: bool) -> Result<(), Unreadable> {
    is_same.then_some(()).ok_or(Unreadable::Replaced)
}

/// The same word and detail that the kernel side makes; `code` is the word at a place in code.
#[cfg(any(test, fuzzing))]
pub(super) fn word_of(kind: u64, place: u64, object: u64, hash: u64, code: u64) -> (u64, u64) {
    let more = match kind {
        0 => hash >> 38 & 0x3ff,
        2 => 0,
        _ => (hash >> 44 & 15) << CODE_BITS | mix(0, code) >> (64 - CODE_BITS),
    };
    let value = kind << KIND_SHIFT | place | more << PLACE_BITS;
    (value, object >> 3 | hash >> 48 << OBJECT_BITS)
}

impl V8 {
    /// The frames of what a walk saw, leaf first: the word and its detail (`so_step_v8` of bpf/v8.h). Where other
    /// objects stand by now, that is said instead of their names.
    pub fn frames(
        &self,
        memory: &dyn ReadMemory,
        value: u64,
        detail: u64,
        innermost: bool,
    ) -> Result<Vec<ScriptFrame>, Unreadable> {
        let seen = Seen {
            place: value & ((1 << PLACE_BITS) - 1),
            object: (detail & ((1 << OBJECT_BITS) - 1)) << 3,
            hash: detail >> OBJECT_BITS & 0xffff,
            more: value >> PLACE_BITS & 0x3ff,
        };
        match value >> KIND_SHIFT & 7 {
            0 => self.interpreted(memory, &seen),
            1 => self.made(memory, &seen, innermost, false),
            3 => self.made(memory, &seen, innermost, true),
            2 => Ok(vec![self.marked((seen.object >> 3) as u16)]),
            _ => Err(Unreadable::Nonsense {
                what: "a frame's kind",
                address: value,
            }),
        }
    }

    fn interpreted(&self, memory: &dyn ReadMemory, seen: &Seen) -> Result<Vec<ScriptFrame>, Unreadable> {
        let shared = self.shared(memory, seen.object)?;
        seen.check_function(shared.hash(&self.layout))?;
        let position = self.bytecodes(memory, &shared).and_then(|bytecodes| {
            let table = self.table(memory, bytecodes, self.layout.bytecode_positions)?;
            position_at(&table, self.layout.positions, seen.place)
        });
        let frame = self.named(memory, &shared, position.and_then(|position| position.offset))?;
        // What was read meanwhile may be another one's.
        seen.check_function(self.shared(memory, seen.object)?.hash(&self.layout))?;
        Ok(vec![frame])
    }

    /// Of code that V8 made. Other code may stand there by now with the same bytes: it has to be made of the function,
    /// or the function alone is told, unless that was looked at later too.
    fn made(
        &self,
        memory: &dyn ReadMemory,
        seen: &Seen,
        innermost: bool,
        is_late: bool,
    ) -> Result<Vec<ScriptFrame>, Unreadable> {
        let owner = || -> Result<Option<Shared>, Unreadable> {
            let shared = match seen.object {
                0 => None,
                address => Some(self.shared(memory, address)?),
            };
            seen.check_owner(shared.as_ref().map_or(0, |shared| shared.hash(&self.layout)))?;
            Ok(shared)
        };
        let is_same_code = || {
            let at = if innermost {
                seen.place
            } else {
                seen.place.wrapping_sub(8)
            };
            seen.check_code(word(memory, at)?)
        };
        let shared = owner()?;
        let of_code = || {
            is_same_code()?;
            let code = self.code_at(memory, seen.place)?;
            let frames = self.of_code(memory, &code, shared.as_ref(), seen.place, innermost)?;
            is_same_code()?;
            Ok(frames)
        };
        let frames = match (of_code(), &shared) {
            (Ok(frames), _) => frames,
            // The function is known, and what was inlined there is not.
            (Err(_), Some(shared)) if !is_late => vec![self.named(memory, shared, None)?],
            (Err(error), Some(_)) => return Err(error),
            // Of WebAssembly, and of what V8 makes for its own use.
            (Err(Unreadable::Nonsense { .. } | Unreadable::Memory { .. }), None) => vec![own(FrameSort::Made, STUB)],
            (Err(error), None) => return Err(error),
        };
        owner()?;
        Ok(frames)
    }

    fn of_code(
        &self,
        memory: &dyn ReadMemory,
        code: &Code,
        shared: Option<&Shared>,
        pc: u64,
        innermost: bool,
    ) -> Result<Vec<ScriptFrame>, Unreadable> {
        let offset = pc - code.start;
        match code.kind {
            CodeKind::Optimised => {
                let shared = shared.ok_or(Unreadable::Replaced)?;
                self.optimised(memory, code, shared, offset, innermost)
            }
            CodeKind::Baseline => {
                let shared = shared.ok_or(Unreadable::Replaced)?;
                let position = self.baseline_position(memory, code, shared, offset)?;
                Ok(vec![self.named(
                    memory,
                    shared,
                    position.and_then(|position| position.offset),
                )?])
            }
            CodeKind::RegExp => Ok(vec![own(FrameSort::Made, "[regexp]")]),
            CodeKind::Interpreter => Ok(vec![self.named(memory, shared.ok_or(Unreadable::Replaced)?, None)?]),
            CodeKind::Other => Ok(vec![own(FrameSort::Made, STUB)]),
        }
    }

    /// A frame that says what it is.
    fn marked(&self, marker: u16) -> ScriptFrame {
        let layout = &self.layout;
        if marker == layout.frame_wasm {
            own(FrameSort::Wasm, "[wasm]")
        } else if marker == layout.frame_wasm_to_js {
            own(FrameSort::Made, "[wasm-to-js]")
        } else if Some(marker) == layout.frame_regexp {
            own(FrameSort::Made, "[regexp]")
        } else {
            own(FrameSort::Made, STUB)
        }
    }

    fn shared(&self, memory: &dyn ReadMemory, address: u64) -> Result<Shared, Unreadable> {
        Shared::read(memory, &self.layout, address)
    }

    /// A function's bytecodes, also where code was made of them.
    fn bytecodes(&self, memory: &dyn ReadMemory, shared: &Shared) -> Option<u64> {
        let data = shared.data(&self.layout)?;
        let kind = type_of(memory, data).ok()?;
        let found = if kind == self.layout.type_code {
            object(word(memory, field(data, self.layout.code.deoptimisation)).ok()?)?
        } else {
            data
        };
        (type_of(memory, found).ok()? == self.layout.type_bytecode).then_some(found)
    }

    /// A table of places that an object leads to, where there is one.
    fn table(&self, memory: &dyn ReadMemory, of: u64, offset: u16) -> Option<Vec<u8>> {
        let table = object(word(memory, field(of, offset)).ok()?)?;
        let kind = type_of(memory, table).ok()?;
        let is_table = self.layout.type_bytes.contains(&kind);
        is_table.then(|| byte_array(memory, table, MAX_TABLE_BYTES).ok())?
    }

    fn baseline_position(
        &self,
        memory: &dyn ReadMemory,
        code: &Code,
        shared: &Shared,
        offset: u64,
    ) -> Result<Option<Position>, Unreadable> {
        let layout = &self.layout;
        let made_of = object_at(memory, code.address, layout.code.deoptimisation, "bytecodes")?;
        if self.bytecodes(memory, shared) != Some(made_of) {
            return Err(Unreadable::Replaced);
        }
        let position = || {
            let table = self.table(memory, code.address, layout.code.positions)?;
            let count = small(word(memory, field(made_of, ARRAY_LENGTH)).ok()?)?;
            let count = usize::try_from(count).ok().filter(|count| *count <= MAX_TABLE_BYTES)?;
            let bytes = super::read_long(memory, field(made_of, layout.bytecode_data), count).ok()?;
            let at = bytecode_at(&table, &bytes, self.sizes.as_ref()?, offset)?;
            let positions = self.table(memory, made_of, layout.bytecode_positions)?;
            position_at(&positions, layout.positions, at)
        };
        Ok(position())
    }

    /// The functions of a place in optimised code, leaf first.
    fn optimised(
        &self,
        memory: &dyn ReadMemory,
        code: &Code,
        shared: &Shared,
        offset: u64,
        innermost: bool,
    ) -> Result<Vec<ScriptFrame>, Unreadable> {
        let layout = &self.layout;
        let data = object_at(
            memory,
            code.address,
            layout.code.deoptimisation,
            "data for deoptimisation",
        )?;
        let element = |number: u16| word(memory, element_at(data, number));
        let mut own = object(element(layout.own_shared)?).ok_or(Unreadable::Replaced)?;
        if let Some(offset) = layout.own_shared_in {
            own = object_at(memory, own, offset, "a function")?;
        }
        if own != shared.address() {
            return Err(Unreadable::Replaced);
        }
        // Code that is no longer valid returns to its exits, of which no positions are known.
        let exits = small(element(layout.inlining + EXITS_BEHIND_INLINED)?);
        let exits = exits
            .and_then(|exits| u64::try_from(exits).ok())
            .filter(|exits| *exits > 0);
        let mut position = None;
        if exits.is_none_or(|exits| offset < exits) {
            // What returns there has called before.
            let inside = if innermost { offset } else { offset.saturating_sub(1) };
            let table = self.table(memory, code.address, layout.code.positions);
            position = table.and_then(|table| position_at(&table, layout.positions, inside));
        }
        let mut frames = Vec::new();
        while let Some(inlining) = position.and_then(|position| position.inlining) {
            if frames.len() >= MAX_INLINED {
                return Err(Unreadable::Nonsense {
                    what: "inlined functions",
                    address: code.address,
                });
            }
            let (shared, outer) = self.inlined(memory, data, inlining, own)?;
            let offset = position.and_then(|position| position.offset);
            frames.push(ScriptFrame {
                inlined: true,
                ..self.named(memory, &self.shared(memory, shared)?, offset)?
            });
            position = Some(outer);
        }
        frames.push(self.named(memory, shared, position.and_then(|position| position.offset))?);
        Ok(frames)
    }

    /// A function that was inlined, and the place where that was.
    fn inlined(
        &self,
        memory: &dyn ReadMemory,
        data: u64,
        number: u16,
        own: u64,
    ) -> Result<(u64, Position), Unreadable> {
        let places = object(word(memory, element_at(data, self.layout.inlining))?).ok_or(Unreadable::Replaced)?;
        let nonsense = Unreadable::Nonsense {
            what: "an inlined function",
            address: places,
        };
        let bytes = small(word(memory, field(places, ARRAY_LENGTH))?).and_then(|bytes| u64::try_from(bytes).ok());
        let at = u64::from(number) * INLINED_BYTES;
        if bytes.is_none_or(|bytes| at + INLINED_BYTES > bytes) {
            return Err(nonsense);
        }
        let mut place = [0; INLINED_BYTES as usize];
        read(memory, field(places, ARRAY_DATA).saturating_add(at), &mut place)?;
        let position = Position::of(part(&place, 0, 8));
        let which = part(&place, 8, 4) as u32 as i32;
        let Ok(which) = u64::try_from(which) else {
            // Into itself.
            return Ok((own, position));
        };
        let literals = object(word(memory, element_at(data, self.layout.literals))?).ok_or(nonsense)?;
        let count = small(word(memory, field(literals, ARRAY_LENGTH))?).and_then(|count| u64::try_from(count).ok());
        if count.is_none_or(|count| which >= count) {
            return Err(nonsense);
        }
        let literal = word(memory, field(literals, ARRAY_DATA).saturating_add(which * 8))?;
        Ok((object(literal).ok_or(Unreadable::Replaced)?, position))
    }

    /// A function's frame at a character of its script, or where the function begins.
    fn named(
        &self,
        memory: &dyn ReadMemory,
        shared: &Shared,
        character: Option<u32>,
    ) -> Result<ScriptFrame, Unreadable> {
        let key = (shared.address(), shared.hash(&self.layout));
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().function(key);
        let function = match found {
            Some(function) => function,
            None => {
                let function = Arc::new(self.function(memory, shared)?);
                self.check_same(memory, key)?;
                known().remember(key, Arc::clone(&function));
                function
            }
        };
        let mut at = 0;
        if let Some(character) = character.or(function.start) {
            let found = known().line(key, character);
            at = match found {
                Some(line) => line,
                None => {
                    let line = self.line(memory, function.script, character);
                    self.check_same(memory, key)?;
                    known().remember_line(key, character, line);
                    line
                }
            };
        }
        Ok(ScriptFrame {
            sort: FrameSort::Function,
            function: function.name.clone(),
            file: function.file.clone(),
            line: at,
            inlined: false,
        })
    }

    /// What is remembered has to be what was asked for: the process runs on.
    fn check_same(&self, memory: &dyn ReadMemory, (address, hash): Key) -> Result<(), Unreadable> {
        same(self.shared(memory, address)?.hash(&self.layout) == hash)
    }

    fn line(&self, memory: &dyn ReadMemory, script: Option<u64>, character: u32) -> u32 {
        let of_script = |script| line(memory, &self.layout, &self.lines, script, character).unwrap_or(0);
        script.map_or(0, of_script)
    }

    fn function(&self, memory: &dyn ReadMemory, shared: &Shared) -> Result<Function, Unreadable> {
        let layout = &self.layout;
        let called = shared.called(memory, layout)?;
        let script = shared.script(memory, layout)?;
        let file = script.map(|script| file(memory, layout, script)).transpose()?.flatten();
        let name = called.name.unwrap_or_else(|| {
            let base = file
                .as_deref()
                .map_or("", |file| file.rsplit('/').next().unwrap_or(file));
            let begin = called.start.map_or(0, |start| self.line(memory, script, start));
            format!("<anonymous> ({base}:{begin})")
        });
        Ok(Function {
            name,
            file,
            script,
            start: called.start,
        })
    }
}

/// Where an array has an element.
fn element_at(array: u64, number: u16) -> u64 {
    field(array, ARRAY_DATA).saturating_add(8 * u64::from(number))
}

fn own(sort: FrameSort, name: &str) -> ScriptFrame {
    ScriptFrame {
        sort,
        function: name.to_owned(),
        file: None,
        line: 0,
        inlined: false,
    }
}
