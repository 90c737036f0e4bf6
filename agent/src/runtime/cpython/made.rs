//! Interpreters that are made up, for tests and fuzzing: a runtime, two threads, frames, code objects and text.

use std::collections::HashMap;
use std::ops::Range;

pub(super) use crate::runtime::image::{BASE, Memory};

use super::offsets::{BYTES_BODY, COOKIE, Offsets, SIZE, TEXT_LENGTH, TEXT_STATE, TYPE, TYPE_NAME};
use super::{FrameForm, Layout, Python};

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

/// What real tables begin with, in words behind the cookie: of 3.13.5 and 3.14.10 on x86-64.
const TABLE_3_13: [u64; 72] = [
    0x030d_05f0,
    0,
    283_376,
    608,
    632,
    194_976,
    7272,
    7264,
    7344,
    7400,
    7656,
    7640,
    7648,
    16,
    7752,
    0,
    7768,
    7760,
    304,
    0,
    8,
    16,
    72,
    152,
    160,
    232,
    32,
    80,
    8,
    0,
    56,
    72,
    70,
    208,
    112,
    120,
    128,
    136,
    68,
    52,
    96,
    104,
    200,
    16,
    8,
    416,
    24,
    88,
    168,
    32,
    24,
    16,
    40,
    24,
    16,
    48,
    32,
    40,
    24,
    16,
    32,
    16,
    24,
    40,
    16,
    32,
    64,
    32,
    16,
    40,
    240,
    200,
];
const TABLE_3_14: [u64; 82] = [
    0x030e_0af0,
    0,
    316_616,
    784,
    808,
    225_864,
    7280,
    7272,
    7344,
    7360,
    7408,
    7688,
    7672,
    7680,
    16,
    7784,
    0,
    7800,
    7792,
    7992,
    0,
    832,
    0,
    8,
    16,
    72,
    152,
    160,
    232,
    32,
    88,
    8,
    0,
    56,
    80,
    74,
    64,
    0,
    216,
    112,
    120,
    128,
    136,
    68,
    52,
    96,
    104,
    208,
    0,
    16,
    8,
    416,
    24,
    88,
    168,
    40,
    32,
    16,
    40,
    24,
    16,
    200,
    24,
    40,
    32,
    48,
    32,
    40,
    24,
    16,
    32,
    16,
    24,
    40,
    16,
    32,
    64,
    32,
    16,
    40,
    264,
    192,
];
/// Of Debian's 3.15.2.
const TABLE_3_15: [u64; 93] = [
    0x030f_02f0,
    0,
    346_568,
    912,
    936,
    226_240,
    7272,
    7264,
    7336,
    7352,
    7400,
    7592,
    7576,
    7584,
    16,
    7736,
    0,
    7752,
    7744,
    7944,
    0,
    888,
    0,
    8,
    16,
    72,
    80,
    88,
    96,
    176,
    184,
    256,
    32,
    36,
    40,
    136,
    288,
    0,
    88,
    8,
    0,
    56,
    80,
    74,
    64,
    0,
    216,
    112,
    120,
    128,
    136,
    68,
    52,
    96,
    104,
    208,
    0,
    16,
    8,
    424,
    24,
    88,
    168,
    32,
    288,
    944,
    888,
    40,
    32,
    16,
    40,
    24,
    16,
    200,
    24,
    40,
    32,
    48,
    32,
    40,
    24,
    16,
    32,
    16,
    24,
    40,
    16,
    32,
    64,
    32,
    16,
    40,
    56,
];

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
        for (address, name) in TYPES.into_iter().zip(["type", "code", "str", "bytes", "int", "dict"]) {
            let at = made.take(8);
            made.memory.put(at, name.as_bytes());
            made.memory.word(address + u64::from(TYPE), TYPES[0]);
            made.memory.word(address + u64::from(TYPE_NAME), at);
        }
        // Its own table has the layout from here on.
        made.offsets = made.layout().expect("a whole layout").offsets;
        made.make_threads();
        made
    }

    /// One with a function of a class that the newest thread runs; gives its code object, too.
    pub(super) fn sample(minor: u8) -> (Self, u64) {
        let mut made = Self::new(minor);
        let code = made.code("get", "Queue.get", "/usr/lib/queue.py", 10, &[0x80, 0x01]);
        let (thread, frame) = (THREADS[0], made.take(128));
        made.frame(frame, code, 0);
        made.run(thread, frame);
        (made, code)
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
        let state = (width as u64) << 2 | u64::from(is_compact) << 5 | u64::from(is_ascii) << 6;
        self.memory.word(object + u64::from(TYPE), TYPES[2]);
        self.memory
            .word(object + u64::from(TEXT_LENGTH), text.chars().count() as u64);
        self.memory.word(object + u64::from(TEXT_STATE), state);
        object
    }

    /// A dictionary whose keys are text.
    fn dict(&mut self, pairs: &[(&str, u64)]) -> u64 {
        const HEAD_BYTES: u64 = 32;
        const INDEX_BYTES: u64 = 8;
        let count = pairs.len() as u64;
        let (object, keys) = (self.take(48), self.take(HEAD_BYTES + INDEX_BYTES + 16 * count));
        self.memory.word(object + u64::from(TYPE), TYPES[5]);
        self.memory.word(object + 16, count);
        self.memory.word(object + 32, keys);
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
        self.memory.word(object + u64::from(TYPE), TYPES[4]);
        self.memory.word(object + 16, dict);
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
        let object = self.take(u64::from(BYTES_BODY) + bytes.len() as u64);
        self.memory.word(object + u64::from(TYPE), TYPES[3]);
        self.memory.word(object + u64::from(SIZE), bytes.len() as u64);
        self.memory.put(object + u64::from(BYTES_BODY), bytes);
        object
    }

    pub(super) fn code(&mut self, name: &str, qualname: &str, file: &str, first_line: u32, lines: &[u8]) -> u64 {
        let offsets = self.offsets;
        let name = self.text(name, Kind::Compact);
        let qualname = self.text(qualname, Kind::Compact);
        let (file, lines) = (self.text(file, Kind::Compact), self.bytes(lines));
        let code = self.take(256);
        self.memory.word(code + u64::from(TYPE), TYPES[1]);
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
