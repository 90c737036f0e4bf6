//! Interpreters that are made up, for tests and fuzzing: a runtime, two threads, frames, code objects and text.

mod tables;

use std::collections::HashMap;
use std::ops::Range;

pub(super) use crate::runtime::image::{BASE, Memory};

use super::offsets::{COOKIE, FREE_HEADER_BYTES, HEADER_BYTES, Offsets};
use super::{FrameForm, Layout, Python};
use tables::{TABLE_3_13, TABLE_3_14, TABLE_3_15};

const IMAGE_BYTES: usize = 1 << 16;
/// Where things lie, each with room.
pub(super) const RUNTIME: u64 = BASE + 0x1000;
pub(super) const INTERPRETER: u64 = BASE + 0x2000;
/// The newest thread, and the one before it.
pub(super) const THREADS: [u64; 2] = [BASE + 0x5000, BASE + 0x5800];
pub(super) const LOOP: Range<u64> = BASE + 0x6000..BASE + 0x7000;
pub(super) const RARE: Range<u64> = BASE + 0x7000..BASE + 0x7400;
/// Types of types, code, text, bytes, of nothing else, and of dictionaries.
pub(super) const TYPES: [u64; 6] = [
    BASE + 0x8000,
    BASE + 0x8200,
    BASE + 0x8400,
    BASE + 0x8600,
    BASE + 0x8800,
    BASE + 0x8a00,
];
/// What is not placed elsewhere lies here, one thing behind the other.
const FREE: u64 = BASE + 0x9000;
pub(super) const VERSIONS: [u8; 8] = [8, 9, 10, 11, 12, 13, 14, 15];
/// What is there without the interpreter's lock.
pub(super) const FREE_VERSIONS: [u8; 3] = [13, 14, 15];
/// Where the builds without the lock have what leads to copies of instructions.
pub(super) const FREE_COPIES: (u16, u16) = (72, 224);

/// Characters of a text as an interpreter keeps them.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Behind each other, in as many bytes as the widest needs.
    Compact,
    /// Elsewhere, as of a subclass.
    Apart,
}

#[derive(Clone)]
pub(super) struct Made {
    pub(super) memory: Memory,
    pub(super) symbols: HashMap<&'static str, u64>,
    pub(super) offsets: Offsets,
    next: u64,
}

impl Made {
    /// An interpreter whose two threads run nothing.
    pub(super) fn new(minor: u8) -> Self {
        Self::of_build(minor, false)
    }

    /// The same, perhaps of a build without the interpreter's lock.
    fn of_build(minor: u8, is_free: bool) -> Self {
        let memory = Memory::new(vec![0; IMAGE_BYTES]);
        let [_, code, text, bytes, _, dict] = TYPES;
        let mut symbols = HashMap::from([
            ("_PyRuntime", RUNTIME),
            ("PyCode_Type", code),
            ("PyUnicode_Type", text),
            ("PyBytes_Type", bytes),
            ("PyDict_Type", dict),
            ("_PyEval_EvalFrameDefault", LOOP.start),
        ]);
        let since = [
            (8, "PyConfig_InitPythonConfig"),
            (9, "PyThreadState_GetFrame"),
            (10, "PyModule_AddObjectRef"),
        ];
        symbols.extend(
            since
                .iter()
                .filter(|(first, _)| *first <= minor)
                .map(|(_, name)| (*name, BASE)),
        );
        let mut made = Self {
            memory,
            symbols,
            offsets: Offsets::by_version(minor.min(12)).expect("a version"),
            next: FREE,
        };
        if is_free {
            made.offsets.header_bytes = FREE_HEADER_BYTES;
        }
        if minor >= 11 {
            made.symbols.insert("Py_Version", BASE + 8);
            made.memory
                .put(BASE + 8, &(0x0300_00f0 | u32::from(minor) << 16).to_le_bytes());
        }
        let table = match minor {
            13 => &TABLE_3_13[..],
            14 => &TABLE_3_14[..],
            15 => &TABLE_3_15[..],
            _ => &[],
        };
        if let Some(version) = table.first() {
            made.memory.put(RUNTIME, &COOKIE);
            for (number, value) in table.iter().enumerate() {
                made.memory.word(RUNTIME + 8 + 8 * number as u64, *value);
            }
            made.memory.put(BASE + 8, &(*version as u32).to_le_bytes());
        }
        if is_free {
            made.free_table(minor);
        }
        for (address, name) in TYPES.into_iter().zip(["type", "code", "str", "bytes", "int", "dict"]) {
            let at = made.take(8);
            made.memory.put(at, name.as_bytes());
            made.typed(address, 0);
            let name = address + u64::from(made.offsets.type_name());
            made.memory.word(name, at);
        }
        // Its own table has the layout from here on.
        made.offsets = made.layout().expect("a whole layout").offsets;
        made.make_threads();
        made
    }

    /// The interpreter's table as a build without its lock has it, by what its headers add: each object has a longer
    /// header, and since 3.14 a code object what leads to copies, and a frame the number of one.
    fn free_table(&mut self, minor: u8) {
        let longer = u64::from(FREE_HEADER_BYTES - HEADER_BYTES);
        // Where groups begin, in words from the cookie on: frames, code, objects, bytes, text.
        let (frame, code, object, bytes, text) = match minor {
            13 => (28, 34, 44, 64, 67),
            14 => (31, 39, 50, 74, 77),
            _ => (39, 47, 58, 86, 89),
        };
        let at = |word: u64| RUNTIME + 8 * word;
        self.memory.word(at(2), 1);
        let objects = [object, object + 1, bytes + 1, bytes + 2, text + 1, text + 2, text + 3];
        for word in (code..code + 10).chain(objects) {
            let value = self.word_at(at(word));
            self.memory.word(at(word), value + longer);
        }
        if minor >= 14 {
            let (number, copies) = FREE_COPIES;
            // What leads to the copies stands before the instructions.
            for (word, more) in [(code, 8), (code + 9, 8)] {
                let value = self.word_at(at(word));
                self.memory.word(at(word), value + more);
            }
            self.memory.word(at(code + 10), u64::from(copies));
            self.memory.word(at(frame + 5), 78);
            self.memory.word(at(frame + 7), u64::from(number));
        }
    }

    fn word_at(&self, address: u64) -> u64 {
        let first = (address - BASE) as usize;
        let word = self.memory.bytes[first..first + 8].try_into();
        u64::from_le_bytes(word.expect("eight bytes"))
    }

    /// Gives an object its type.
    fn typed(&mut self, object: u64, kind: usize) {
        let at = object + u64::from(self.offsets.object_type());
        self.memory.word(at, TYPES[kind]);
    }

    /// One with a function of a class that the newest thread runs; gives its code object, too.
    pub(super) fn sample(minor: u8) -> (Self, u64) {
        Self::new(minor).sampled()
    }

    /// The same of a build without the interpreter's lock.
    pub(super) fn free_sample(minor: u8) -> (Self, u64) {
        Self::of_build(minor, true).sampled()
    }

    fn sampled(mut self) -> (Self, u64) {
        let made = &mut self;
        let code = made.code("get", "Queue.get", "/usr/lib/queue.py", 10, &[0x80, 0x01]);
        let (thread, frame) = (THREADS[0], made.take(128));
        made.frame(frame, code, 0);
        made.run(thread, frame);
        (self, code)
    }

    pub(super) fn layout(&self) -> Result<Layout, super::LayoutError> {
        Layout::read(&self.memory, &|name| self.symbols.get(name).copied())
    }

    pub(super) fn python(&self) -> Result<Python, super::NotReady> {
        Python::read(&self.memory, self.layout().expect("a layout"), &function)
    }

    pub(super) fn take(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes.next_multiple_of(16);
        address
    }

    fn make_threads(&mut self) {
        let offsets = self.offsets;
        self.memory
            .word(RUNTIME + u64::from(offsets.interpreters_head), INTERPRETER);
        self.memory
            .word(INTERPRETER + u64::from(offsets.threads_head), THREADS[0]);
        for (thread, next) in [(THREADS[0], THREADS[1]), (THREADS[1], 0)] {
            self.memory.word(thread + u64::from(offsets.thread_next), next);
            self.memory
                .word(thread + u64::from(offsets.thread_interpreter), INTERPRETER);
            self.memory.word(thread + u64::from(offsets.thread_id), thread ^ 0xff00);
        }
    }

    /// A thread runs a frame from now on.
    pub(super) fn run(&mut self, thread: u64, frame: u64) {
        let mut to = frame;
        if let Some((entry_frame, _)) = self.offsets.entry {
            to = self.take(32);
            self.memory.word(to + u64::from(entry_frame), frame);
        }
        self.memory.word(thread + u64::from(self.offsets.thread_frame), to);
    }

    pub(super) fn frame(&mut self, frame: u64, code: u64, previous: u64) {
        let offsets = self.offsets;
        // Since 3.14 a bit of the reference says whether it counts.
        let tag = u64::from(offsets.form == FrameForm::Shims);
        self.memory.word(frame + u64::from(offsets.frame_code), code | tag);
        self.memory.word(frame + u64::from(offsets.frame_previous), previous);
    }

    pub(super) fn text(&mut self, text: &str, kind: Kind) -> u64 {
        let widest = text.chars().map(u32::from).max().unwrap_or(0);
        let (width, is_ascii) = match widest {
            0..0x80 => (1, true),
            0x80..0x100 => (1, false),
            0x100..0x1_0000 => (2, false),
            _ => (4, false),
        };
        let numbers = text.chars().map(u32::from);
        let bytes: Vec<u8> = numbers
            .flat_map(|number| number.to_le_bytes().into_iter().take(width))
            .collect();
        let ascii_bytes = u64::from(self.offsets.ascii_bytes);
        let compact_bytes = u64::from(self.offsets.compact_bytes());
        let object = self.take(compact_bytes + 8 + bytes.len() as u64);
        let at = match (kind, is_ascii) {
            (Kind::Compact, true) => object + ascii_bytes,
            (Kind::Compact, false) => object + compact_bytes,
            (Kind::Apart, _) => {
                let at = self.take(bytes.len() as u64);
                self.memory.word(object + compact_bytes, at);
                at
            }
        };
        self.memory.put(at, &bytes);
        let is_compact = matches!(kind, Kind::Compact);
        let state = width as u64 | u64::from(is_compact) << 3 | u64::from(is_ascii) << 4;
        // Before that stands whether it is interned, in two bits or in a byte.
        let state = if self.offsets.code_copies == 0 {
            state << 2 | 1
        } else {
            state << 8 | 3
        };
        self.typed(object, 2);
        let at = object + u64::from(self.offsets.text_length());
        self.memory.word(at, text.chars().count() as u64);
        let at = object + u64::from(self.offsets.text_state());
        self.memory.word(at, state);
        object
    }

    /// A dictionary whose keys are text.
    fn dict(&mut self, pairs: &[(&str, u64)]) -> u64 {
        const HEAD_BYTES: u64 = 32;
        const INDEX_BYTES: u64 = 8;
        let count = pairs.len() as u64;
        let (object, keys) = (self.take(64), self.take(HEAD_BYTES + INDEX_BYTES + 16 * count));
        self.typed(object, 5);
        let header = u64::from(self.offsets.header_bytes);
        self.memory.word(object + header, count);
        self.memory.word(object + header + 16, keys);
        // Size and bytes of its index by their logarithms, and that all keys are text.
        self.memory.put(keys + 8, &[3, 3, 1]);
        self.memory.word(keys + 24, count);
        for ((key, value), number) in pairs.iter().zip(0..) {
            let key = self.text(key, Kind::Compact);
            let entry = keys + HEAD_BYTES + INDEX_BYTES + 16 * number;
            self.memory.word(entry, key);
            self.memory.word(entry + 8, *value);
        }
        object
    }

    /// A module with a name and perhaps a file.
    pub(super) fn module(&mut self, name: &str, file: Option<&str>) -> u64 {
        let mut pairs = vec![("__name__", self.text(name, Kind::Compact)), ("__doc__", 0)];
        pairs.extend(file.map(|file| ("__file__", self.text(file, Kind::Compact))));
        let (dict, object) = (self.dict(&pairs), self.take(48));
        self.typed(object, 4);
        let at = object + u64::from(self.offsets.header_bytes);
        self.memory.word(at, dict);
        object
    }

    /// The interpreter's modules from now on are `sys` and these.
    pub(super) fn modules(&mut self, modules: &[u64]) {
        let sys = self.module("sys", None);
        let others = modules.iter().map(|module| ("other", *module));
        let pairs: Vec<(&str, u64)> = [("sys", sys)].into_iter().chain(others).collect();
        let dict = self.dict(&pairs);
        let offset = match (self.offsets.form, self.offsets.modules) {
            (_, Some(offset)) => u64::from(offset),
            (FrameForm::Entries, None) => 888,
            (_, None) => 944,
        };
        self.memory.word(INTERPRETER + offset, dict);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let (size, body) = (u64::from(self.offsets.size()), u64::from(self.offsets.bytes_body()));
        let object = self.take(body + bytes.len() as u64);
        self.typed(object, 3);
        self.memory.word(object + size, bytes.len() as u64);
        self.memory.put(object + body, bytes);
        object
    }

    pub(super) fn code(&mut self, name: &str, qualname: &str, file: &str, first_line: u32, lines: &[u8]) -> u64 {
        let offsets = self.offsets;
        let name = self.text(name, Kind::Compact);
        let qualname = self.text(qualname, Kind::Compact);
        let (file, lines) = (self.text(file, Kind::Compact), self.bytes(lines));
        let code = self.take(256);
        self.typed(code, 1);
        self.memory.word(code + u64::from(offsets.code_size), 77);
        // Until 3.10 both are one, the name.
        self.memory.word(code + u64::from(offsets.code_qualname), qualname);
        self.memory.word(code + u64::from(offsets.code_name), name);
        self.memory.word(code + u64::from(offsets.code_filename), file);
        self.memory.word(code + u64::from(offsets.code_lines), lines);
        let at = code + u64::from(offsets.code_first_line);
        self.memory.put(at, &first_line.to_le_bytes());
        code
    }
}

/// The function that an address lies in.
pub(super) fn function(address: u64) -> Option<Range<u64>> {
    [LOOP, RARE].into_iter().find(|range| range.contains(&address))
}
