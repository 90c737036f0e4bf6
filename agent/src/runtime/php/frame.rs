//! Names of frames: from a function to what it is called, its file and its line.

use std::sync::{Arc, PoisonError};

use super::functions::Function;
use super::layout::{FUNCTION_BYTES, INSTRUCTION_BYTES, INSTRUCTION_LINE, MODULE_NAME};
use super::running::{MAX_TYPE, NAME};
use super::text::Text;
use super::{MAX_NAME_BYTES, Php, ReadMemory, Unreadable, field, is_object, part, read, word};

/// As in bpf/php.h: the multiplier of its hash, what stands for the number of an instruction where there is none, the
/// mark of what the program began with, and where the hash begins.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const NO_INSTRUCTION: u32 = 0xf_ffff;
const MAIN: u64 = 1 << 20;
const HASH_SHIFT: u32 = 21;
/// In a function: its class.
const CLASS: u16 = 16;
/// What internal functions have for sure.
const HEAD_BYTES: usize = 24;
/// In a class: its name.
const CLASS_NAME: u16 = 8;
/// Instructions of a function whose lines are read.
const MAX_LINES: u64 = 2048;

/// A frame as PHP's own stack traces have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PhpFrame {
    /// With its class and its namespaces: `App\Queue::get`, `App\run`, `App\{closure}`; `{main}` is what a program
    /// began with, and a file's own code that was included is called like the file.
    pub function: String,
    /// Empty of an internal function.
    pub file: String,
    /// Of an internal function the extension that has it; else empty.
    pub extension: String,
    /// 1-based; 0 where nobody knows.
    pub line: u32,
}

/// What a function begins with, as it was at one time.
#[derive(PartialEq, Eq)]
struct Seen {
    bytes: [u8; FUNCTION_BYTES as usize],
    name: Text,
    class: Option<(u64, Text)>,
    file: Text,
}

impl Php {
    /// The frame of a function. `detail` is what the walk saw (`so_php_next` of bpf/php.h): where another function
    /// stands by now, and its hash is not known, that is said instead of its name.
    pub fn frame(&self, memory: &dyn ReadMemory, function: u64, detail: u64) -> Result<PhpFrame, Unreadable> {
        let hash = detail >> HASH_SHIFT;
        let known = self.function(memory, function, hash)?;
        let instruction = (detail & u64::from(NO_INSTRUCTION)) as u32;
        let line = match known.lines.get(instruction as usize) {
            Some(line) => known.first_line.saturating_add(u32::from(*line)),
            None => known.first_line,
        };
        let name = match known.name.as_str() {
            "" if detail & MAIN != 0 => "{main}",
            "" => &known.file,
            name => name,
        };
        if name.is_empty() {
            return Err(Unreadable::Nonsense {
                what: "a function's name",
                address: function,
            });
        }
        Ok(PhpFrame {
            function: name.to_owned(),
            file: known.file.clone(),
            extension: known.extension.clone(),
            line,
        })
    }

    fn function(&self, memory: &dyn ReadMemory, address: u64, hash: u64) -> Result<Arc<Function>, Unreadable> {
        let lock = || self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().of(hash) {
            return Ok(known);
        }
        let seen = self.seen(memory, address)?;
        let hashes = self.hashes(&seen);
        let function = Arc::new(self.named(memory, &seen));
        // What was read meanwhile may be another one's.
        if self.seen(memory, address).ok() != Some(seen) {
            return Err(Unreadable::Replaced);
        }
        if hashes.contains(&hash) {
            lock().remember(hash, Arc::clone(&function));
            return Ok(function);
        }
        // Closures take turns in the same places: who is here now was elsewhere, or will be asked for.
        if let Some(own) = hashes.first() {
            lock().remember(*own, function);
        }
        Err(Unreadable::Replaced)
    }

    /// Whether a frame has its name without a look at the process.
    pub fn remembers(&self, detail: u64) -> bool {
        let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.of(detail >> HASH_SHIFT).is_some()
    }

    fn seen(&self, memory: &dyn ReadMemory, address: u64) -> Result<Seen, Unreadable> {
        let nonsense = Unreadable::Nonsense {
            what: "a function",
            address,
        };
        if !is_object(address) {
            return Err(nonsense);
        }
        let mut bytes = [0; FUNCTION_BYTES as usize];
        // Behind an internal function may be nothing.
        if read(memory, address, &mut bytes).is_err() {
            bytes = [0; FUNCTION_BYTES as usize];
            read(memory, address, &mut bytes[..HEAD_BYTES])?;
        }
        let kind = part(&bytes, 0, 1);
        if kind == 0 || kind > MAX_TYPE {
            return Err(nonsense);
        }
        let class = match part(&bytes, CLASS, 8) {
            0 => None,
            class => {
                let name = word(memory, field(class, CLASS_NAME))?;
                Some((class, Text::read(memory, name)?))
            }
        };
        let file = if kind & 1 == 0 {
            Text::read(memory, part(&bytes, self.layout.offsets.file, 8))?
        } else {
            Text::none()
        };
        let name = Text::read(memory, part(&bytes, NAME, 8))?;
        Ok(Seen {
            bytes,
            name,
            class,
            file,
        })
    }

    /// The hashes that the kernel side may have made of it: of a text that was not in memory, for the page that has it
    /// in this process, its address stands instead of its hash.
    fn hashes(&self, seen: &Seen) -> Vec<u64> {
        let offsets = &self.layout.offsets;
        let kind = part(&seen.bytes, 0, 1);
        let of = |text: &Text| [text.hash, text.address];
        let class = seen.class.as_ref();
        let classes = class.map_or([0; 3], |(_, text)| [text.hash, text.address, 0]);
        let code_bytes = part(&seen.bytes, offsets.code_count, 4) * INSTRUCTION_BYTES;
        let mut hashes = Vec::new();
        for name in of(&seen.name) {
            for class in classes {
                let mut hash = kind.wrapping_mul(MULTIPLIER);
                hash = (hash ^ name).wrapping_mul(MULTIPLIER);
                hash = (hash ^ hash >> 32 ^ class).wrapping_mul(MULTIPLIER);
                if kind & 1 != 0 {
                    hashes.push(hash >> 25);
                    continue;
                }
                for file in of(&seen.file) {
                    let mut hash = (hash ^ hash >> 32 ^ file).wrapping_mul(MULTIPLIER);
                    hash = (hash ^ hash >> 32 ^ part(&seen.bytes, offsets.lines, 8)).wrapping_mul(MULTIPLIER);
                    hash = (hash ^ hash >> 32 ^ code_bytes).wrapping_mul(MULTIPLIER);
                    hashes.push(hash >> 25);
                }
            }
        }
        hashes
    }

    /// The hash that the kernel side puts beside a function's address.
    pub fn hash_of(&self, memory: &dyn ReadMemory, function: u64) -> Result<u64, Unreadable> {
        let seen = self.seen(memory, function)?;
        self.hashes(&seen).first().copied().ok_or(Unreadable::Replaced)
    }

    fn named(&self, memory: &dyn ReadMemory, seen: &Seen) -> Function {
        let offsets = &self.layout.offsets;
        let mut name = seen.name.shown();
        if let Some((_, class)) = &seen.class
            && !name.is_empty()
        {
            name = format!("{}::{name}", class.shown());
            name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
        }
        let is_internal = part(&seen.bytes, 0, 1) & 1 != 0;
        let line = |offset| u32::try_from(part(&seen.bytes, offset, 4)).unwrap_or(0);
        let first_line = if is_internal { 0 } else { line(offsets.lines) };
        let last_line = line(offsets.lines + 4);
        Function {
            name,
            file: seen.file.shown(),
            extension: if is_internal {
                extension(memory, part(&seen.bytes, offsets.module, 8)).unwrap_or_default()
            } else {
                String::new()
            },
            first_line,
            lines: if is_internal {
                Box::default()
            } else {
                let code = part(&seen.bytes, offsets.code, 8);
                lines(
                    memory,
                    code,
                    part(&seen.bytes, offsets.code_count, 4),
                    first_line,
                    last_line,
                )
            },
        }
    }
}

/// The name of an extension, in its module's entry.
fn extension(memory: &dyn ReadMemory, module: u64) -> Option<String> {
    const MAX_EXTENSION_BYTES: usize = 32;
    if !is_object(module) {
        return None;
    }
    let name = word(memory, field(module, MODULE_NAME)).ok()?;
    let mut bytes = [0; MAX_EXTENSION_BYTES];
    read(memory, name, &mut bytes).ok()?;
    let name = bytes.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// How far behind a function's first line each of its instructions stands.
fn lines(memory: &dyn ReadMemory, code: u64, count: u64, first: u32, last: u32) -> Box<[u16]> {
    let count = usize::try_from(count.min(MAX_LINES)).unwrap_or(0);
    let mut bytes = vec![0; count * INSTRUCTION_BYTES as usize];
    if !is_object(code) || bytes.is_empty() || read(memory, code, &mut bytes).is_err() {
        return Box::default();
    }
    let instructions = bytes.chunks_exact(INSTRUCTION_BYTES as usize);
    let line = |instruction: &[u8]| {
        let line = u32::try_from(part(instruction, INSTRUCTION_LINE, 4)).unwrap_or(0);
        let behind = line.checked_sub(first).filter(|_| line <= last.max(first));
        behind.and_then(|behind| u16::try_from(behind).ok()).unwrap_or(0)
    };
    instructions.map(line).collect()
}
