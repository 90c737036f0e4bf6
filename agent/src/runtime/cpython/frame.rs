//! Names of frames: from a code object to its function, file and line.

use super::layout::CODE_BYTES;
use super::lines::line;
use super::offsets::FREE_HEADER_BYTES;
use super::{Python, ReadMemory, Unreadable, field, is_object, part, read, word};

/// Files with longer tables are data that was written as code.
const MAX_LINE_BYTES: usize = 1 << 18;
/// Of an object of bytes: header and size, where they are longest.
const HEAD_BYTES: usize = FREE_HEADER_BYTES as usize + 8;
/// As in bpf/cpython.h: the multiplier of its hash, and what stands for the offset of an instruction that has none.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const NO_INSTRUCTION: u32 = 0xf_ffff;

/// A frame as Python's own tracebacks have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PythonFrame {
    /// With its classes and outer functions since 3.11: `Queue.get`, `outer.<locals>.<lambda>`; its own name before.
    pub function: String,
    /// As the code was compiled with it, mostly a whole path: `/usr/lib/python3.11/queue.py`, or `<frozen os>`. By it
    /// the module is found: [`Python::module`].
    pub file: String,
    /// 1-based; 0 where the instruction has none.
    pub line: u32,
}

/// A code object's begin, as it was at one time.
struct Code {
    bytes: [u8; CODE_BYTES as usize],
    address: u64,
}

impl Python {
    /// The frame of a code object at an instruction, in code units. `hash` is what the walk saw (`so_python_hash` of
    /// bpf/cpython.h): where another code object stands by now, that is said instead of its name.
    pub fn frame(
        &self,
        memory: &dyn ReadMemory,
        code: u64,
        instruction: u32,
        hash: u64,
    ) -> Result<PythonFrame, Unreadable> {
        let begin = self.code(memory, code)?;
        if self.hash(memory, &begin) != hash {
            return Err(Unreadable::Replaced);
        }
        let named = self.named(memory, &begin, instruction);
        // What was read meanwhile may be another one's.
        if self.hash(memory, &self.code(memory, code)?) != hash {
            return Err(Unreadable::Replaced);
        }
        named
    }

    /// The same hash of a code object that the kernel side puts beside its address.
    pub fn hash_of(&self, memory: &dyn ReadMemory, code: u64) -> Result<u64, Unreadable> {
        Ok(self.hash(memory, &self.code(memory, code)?))
    }

    fn code(&self, memory: &dyn ReadMemory, address: u64) -> Result<Code, Unreadable> {
        let mut bytes = [0; CODE_BYTES as usize];
        if !is_object(address) {
            let what = "a code object";
            return Err(Unreadable::Nonsense { what, address });
        }
        read(memory, address, &mut bytes)?;
        if part(&bytes, self.layout.offsets.object_type(), 8) == self.layout.code_type {
            Ok(Code { bytes, address })
        } else {
            Err(Unreadable::Replaced)
        }
    }

    /// The hash that a text has in itself, else where it lies: `so_python_text` of bpf/cpython.h.
    fn text_hash(&self, memory: &dyn ReadMemory, text: u64) -> u64 {
        match word(memory, field(text, self.layout.offsets.text_hash())) {
            Ok(hash) if hash != 0 && hash != u64::MAX => hash,
            _ => text,
        }
    }

    fn hash(&self, memory: &dyn ReadMemory, code: &Code) -> u64 {
        let offsets = &self.layout.offsets;
        let value = |offset| part(&code.bytes, offset, 8);
        let (name, qualname) = (value(offsets.code_name), value(offsets.code_qualname));
        let mut hash = part(&code.bytes, offsets.code_first_line, 4).wrapping_mul(MULTIPLIER);
        hash = (hash ^ self.text_hash(memory, name)).wrapping_mul(MULTIPLIER);
        if qualname != name {
            hash = (hash ^ hash >> 32 ^ self.text_hash(memory, qualname)).wrapping_mul(MULTIPLIER);
        }
        hash = (hash ^ hash >> 32 ^ value(offsets.code_filename)).wrapping_mul(MULTIPLIER);
        hash = (hash ^ hash >> 32 ^ value(offsets.code_size)).wrapping_mul(MULTIPLIER);
        hash >> 24
    }

    fn named(&self, memory: &dyn ReadMemory, code: &Code, instruction: u32) -> Result<PythonFrame, Unreadable> {
        let offsets = &self.layout.offsets;
        let function = self.text(memory, part(&code.bytes, offsets.code_qualname, 8))?;
        let file = self.text(memory, part(&code.bytes, offsets.code_filename, 8))?;
        if function.is_empty() {
            return Err(Unreadable::Nonsense {
                what: "a function's name",
                address: code.address,
            });
        }
        let first_line = part(&code.bytes, offsets.code_first_line, 4);
        let first_line = u32::try_from(first_line)
            .ok()
            .filter(|line| i32::try_from(*line).is_ok());
        let first_line = first_line.unwrap_or(0);
        let line = if instruction >= NO_INSTRUCTION {
            // It has hardly begun.
            first_line
        } else {
            let table = self.bytes(memory, part(&code.bytes, offsets.code_lines, 8))?;
            line(&table, offsets.lines, first_line, instruction)
        };
        Ok(PythonFrame { function, file, line })
    }

    /// An object of bytes; nothing where it is too long.
    fn bytes(&self, memory: &dyn ReadMemory, address: u64) -> Result<Vec<u8>, Unreadable> {
        let what = "a line table";
        let offsets = &self.layout.offsets;
        let mut head = [0; HEAD_BYTES];
        if !is_object(address) {
            return Err(Unreadable::Nonsense { what, address });
        }
        let head = &mut head[..usize::from(offsets.size()) + 8];
        read(memory, address, head)?;
        if part(head, offsets.object_type(), 8) != self.layout.bytes_type {
            return Err(Unreadable::Nonsense { what, address });
        }
        let size = usize::try_from(part(head, offsets.size(), 8)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; if size > MAX_LINE_BYTES { 0 } else { size }];
        if !bytes.is_empty() {
            read(memory, field(address, offsets.bytes_body()), &mut bytes)?;
        }
        Ok(bytes)
    }
}
