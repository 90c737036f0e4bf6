//! VMs that are made up, for tests and fuzzing: the tables of real ones, with a heap, blobs and methods of our own.

use std::collections::HashMap;
use std::fmt::Debug;

pub(super) use crate::runtime::image::{BASE, Memory};

use super::Jvm;
use super::layout::{BlobAddress, Heaps, Layout, NumberField};
use super::numbers::Encoding;

/// What libjvm's tables say, a line each: `field TYPE NAME OFFSET FIELDTYPE`, `static TYPE NAME FIELDTYPE`,
/// `size TYPE BYTES`, `constant NAME VALUE`.
pub(super) const JDK_8: &str = include_str!("made/8.txt");
pub(super) const JDK_17: &str = include_str!("made/17.txt");
pub(super) const JDK_25: &str = include_str!("made/25.txt");
pub(super) const ALL: [&str; 3] = [JDK_8, JDK_17, JDK_25];

const IMAGE_BYTES: usize = 1 << 18;
/// The code heap begins here, its segments are of 128 bytes.
pub(super) const HEAP: u64 = BASE + 0x2_0000;
const HEAP_BYTES: u64 = 0x1_0000;
const SEGMENT_SHIFT: u8 = 7;
const SEGMENT_MAP: u64 = BASE + 0x3_0000;
/// What is not placed elsewhere lies here, one thing behind the other.
const FREE: u64 = BASE + 0x3_1000;
/// Segments of the interpreter.
const INTERPRETER: u64 = 4;

impl Memory {
    pub(super) fn set(&mut self, place: NumberField, object: u64, value: i64) {
        let bytes = value.to_le_bytes();
        self.put(object + u64::from(place.offset), &bytes[..usize::from(place.width)]);
    }
}

pub(super) struct Vm {
    pub(super) memory: Memory,
    pub(super) symbols: HashMap<String, u64>,
    pub(super) layout: Layout,
    statics: HashMap<String, u64>,
    next: u64,
    /// Where the next blob goes.
    segment: u64,
}

/// A place of compiled code: where in it, and the scope that it has.
pub(super) type PcDesc = (i32, i32);

impl Vm {
    /// A VM with a code heap that has nothing but the interpreter.
    pub(super) fn new(text: &str) -> Self {
        let Tables {
            memory,
            symbols,
            statics,
            next,
            ..
        } = Tables::of(text);
        let layout = Layout::read(&memory, &|name| symbols.get(name).copied()).expect("the tables are whole");
        let mut vm = Self {
            memory,
            symbols,
            layout,
            statics,
            next,
            segment: 0,
        };
        vm.make_heap();
        vm.make_interpreter();
        vm
    }

    /// One of each thing: an interpreted and a compiled method with others inlined, a native one, a stub.
    pub(super) fn sample(text: &str) -> (Self, Sample) {
        let mut vm = Self::new(text);
        let get = vm.method(
            "java/util/HashMap",
            "get",
            "(Ljava/lang/Object;)Ljava/lang/Object;",
            "HashMap.java",
        );
        let hash = vm.method("java/util/HashMap", "hash", "(Ljava/lang/Object;)I", "HashMap.java");
        let scopes = Scopes::of(vm.layout.encoding);
        let nmethod = vm.nmethod("nmethod", get, 77);
        vm.debug(nmethod, &scopes.pc_descs(), &scopes.bytes, &[get, hash]);
        let native = vm.nmethod("native nmethod", hash, 78);
        let access_flags = vm.layout.method.access_flags;
        let stub = vm.blob("StubRoutines (1)", 2, 64, 0);
        let sample = Sample {
            get,
            hash,
            nmethod,
            native,
            stub,
            access_flags,
        };
        (vm, sample)
    }

    pub(super) fn jvm(&self) -> Jvm {
        Jvm::read(&self.memory, self.layout.clone()).expect("a VM that is ready")
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes.next_multiple_of(8);
        address
    }

    fn make_heap(&mut self) {
        let fields = self.layout.heap;
        let heap = self.take(512);
        for (offset, value) in [
            (fields.low_boundary, HEAP),
            (fields.high_boundary, HEAP + HEAP_BYTES),
            (fields.low, HEAP),
            (fields.segmap_low, SEGMENT_MAP),
        ] {
            self.memory.word(heap + u64::from(offset), value);
        }
        self.memory
            .set(fields.log2_segment_bytes, heap, i64::from(SEGMENT_SHIFT));
        let free = vec![0xff; (HEAP_BYTES >> SEGMENT_SHIFT) as usize];
        self.memory.put(SEGMENT_MAP, &free);
        match self.layout.heaps {
            Heaps::One(at) => self.memory.word(at, heap),
            Heaps::List { at, length, data } => {
                let list = self.take(64);
                let entries = self.take(8);
                self.memory.word(at, list);
                self.memory.set(length, list, 1);
                self.memory.word(list + u64::from(data), entries);
                self.memory.word(entries, heap);
            }
        }
    }

    fn make_interpreter(&mut self) {
        let blob = self.blob("Interpreter", INTERPRETER, 64, 0);
        let stubs = self.layout.stubs;
        let queue = self.take(64);
        self.memory.word(stubs.at, queue);
        self.memory.word(queue + u64::from(stubs.buffer), blob + 64);
        for place in [stubs.limit, stubs.end] {
            self.memory.set(place, queue, 256);
        }
        self.memory.set(stubs.count, queue, 270);
        if let Some(flag) = stubs.is_complete {
            self.memory.put(flag, &[1]);
        }
    }

    /// A block of some segments with a blob, whose code begins behind its header.
    pub(super) fn blob(&mut self, name: &str, segments: u64, header_bytes: u16, frame_words: i64) -> u64 {
        let (heap, layout) = (self.layout.heap, self.layout.blob);
        let block = HEAP + (self.segment << SEGMENT_SHIFT);
        let distances: Vec<u8> = (0..segments).map(|index| index as u8).collect();
        self.memory.put(SEGMENT_MAP + self.segment, &distances);
        self.segment += segments;
        self.memory.put(block + u64::from(heap.header_used), &[1]);
        let blob = block + u64::from(heap.header_bytes);
        let bytes = (segments << SEGMENT_SHIFT) as i64 - i64::from(heap.header_bytes);
        let text = self.take(name.len() as u64 + 1);
        self.memory.put(text, name.as_bytes());
        self.memory.word(blob + u64::from(layout.name), text);
        self.memory.set(layout.bytes, blob, bytes);
        self.memory.set(layout.data, blob, bytes);
        self.memory.set(layout.header_bytes, blob, i64::from(header_bytes));
        self.memory.set(layout.frame_words, blob, frame_words);
        self.memory
            .set(layout.frame_complete, blob, if frame_words > 0 { 12 } else { -1 });
        self.spot(layout.code_begin, blob, blob + u64::from(header_bytes));
        blob
    }

    /// Code of a method, of 1 KiB with its headers.
    pub(super) fn nmethod(&mut self, name: &str, method: u64, compile_id: u32) -> u64 {
        let layout = self.layout.blob;
        let blob = self.blob(name, 8, layout.nmethod_bytes, 6);
        self.memory.word(blob + u64::from(layout.method), method);
        self.memory.set(layout.compile_id, blob, i64::from(compile_id));
        self.debug(blob, &[], &[], &[]);
        blob
    }

    /// Debug information of compiled code. The table of places gets the entries that begin and end it.
    pub(super) fn debug(&mut self, blob: u64, pc_descs: &[PcDesc], scopes: &[u8], methods: &[u64]) {
        let layout = self.layout.blob;
        let size = u64::from(layout.pc_desc_bytes);
        let all = if pc_descs.is_empty() {
            Vec::new()
        } else {
            [&[(-1, 0)], pc_descs, &[(1000, 0)]].concat()
        };
        let is_outside = layout.pcs.0.pointer.is_some();
        let pcs_bytes = size * all.len() as u64;
        // One table's end is another one's begin: methods, scopes, places until JDK 22, and places, scopes since.
        let methods_at = self.take(8 * methods.len() as u64);
        let first_pcs = self.take(if is_outside { pcs_bytes } else { 0 });
        let data = self.take(scopes.len() as u64);
        let pcs = if is_outside { first_pcs } else { self.take(pcs_bytes) };
        self.spot(layout.metadata.0, blob, methods_at);
        self.spot(layout.scopes.0, blob, data);
        self.spot(layout.pcs.0, blob, pcs);
        if is_outside {
            self.spot(layout.metadata.1, blob, methods_at + 8 * methods.len() as u64);
            self.spot(layout.scopes.1, blob, data + scopes.len() as u64);
        } else {
            self.spot(layout.pcs.1, blob, pcs + pcs_bytes);
        }
        self.fill_debug((pcs, &all), (data, scopes), (methods_at, methods));
    }

    fn fill_debug(&mut self, pcs: (u64, &[PcDesc]), scopes: (u64, &[u8]), methods: (u64, &[u64])) {
        let layout = self.layout.blob;
        for (index, (pc, scope)) in pcs.1.iter().enumerate() {
            let at = pcs.0 + index as u64 * u64::from(layout.pc_desc_bytes);
            self.memory.set(layout.pc_offset, at, i64::from(*pc));
            self.memory.set(layout.scope_offset, at, i64::from(*scope));
        }
        self.memory.put(scopes.0, scopes.1);
        for (index, method) in methods.1.iter().enumerate() {
            self.memory.word(methods.0 + 8 * index as u64, *method);
        }
    }

    /// Makes a blob's address be this one.
    pub(super) fn spot(&mut self, spot: BlobAddress, blob: u64, address: u64) {
        let from = match spot.pointer {
            None => blob,
            Some(pointer) if spot.plus == [None; 2] => {
                self.memory.word(blob + u64::from(pointer), address);
                return;
            }
            Some(pointer) => {
                self.memory.word(blob + u64::from(pointer), FREE);
                FREE
            }
        };
        let distance = address as i64 - from as i64;
        if let Some(place) = spot.plus[0] {
            self.memory.set(place, blob, distance);
        }
    }

    /// A method of 40 bytes of bytecodes: line 10 from the first one on, 12 from 5 on, 300 from 20 on.
    pub(super) fn method(&mut self, class: &str, name: &str, signature: &str, file: &str) -> u64 {
        const CODE_BYTES: u64 = 40;
        let layout = self.layout.method;
        let lines = match self.layout.encoding {
            Encoding::Plain => [0xff, 0, 20, 5 << 3 | 2, 0xff, 30, 192, 6, 0],
            Encoding::NoZero => [0xff, 1, 21, 5 << 3 | 2, 0xff, 31, 193, 7, 0],
        };
        let [class, name, signature, file] = [class, name, signature, file].map(|text| self.symbol(text));
        let (method, holder) = (self.take(128), self.take(512));
        let const_method = self.take(256);
        let pool = self.take(u64::from(layout.pool_bytes) + 64);
        let memory = &mut self.memory;
        memory.word(method + u64::from(layout.const_method), const_method);
        memory.word(const_method + u64::from(layout.pool), pool);
        memory.set(layout.words, const_method, 32);
        memory.set(layout.flags, const_method, layout.has_lines as i64);
        memory.set(layout.code_bytes, const_method, CODE_BYTES as i64);
        memory.set(layout.name, const_method, 2);
        memory.set(layout.signature, const_method, 3);
        memory.put(const_method + u64::from(layout.const_bytes) + CODE_BYTES, &lines);
        memory.set(layout.pool_length, pool, 6);
        memory.word(pool + u64::from(layout.holder), holder);
        memory.word(holder + u64::from(layout.class_name), class);
        memory.set(layout.file, if layout.is_file_in_class { holder } else { pool }, 5);
        for (index, symbol) in [(2, name), (3, signature), (5, file)] {
            memory.word(pool + u64::from(layout.pool_bytes) + 8 * index, symbol);
        }
        method
    }

    pub(super) fn symbol(&mut self, text: &str) -> u64 {
        let layout = self.layout.method;
        let symbol = self.take(u64::from(layout.symbol_body) + text.len() as u64);
        self.memory.set(layout.symbol_length, symbol, text.len() as i64);
        self.memory.put(symbol + u64::from(layout.symbol_body), text.as_bytes());
        symbol
    }

    /// The address of a static field.
    pub(super) fn address_of(&self, name: &str) -> u64 {
        *self.statics.get(name).expect("a static field of this VM")
    }
}

/// Addresses of what [`Vm::sample`] has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) get: u64,
    pub(super) hash: u64,
    /// Compilation 77 of `get`, with `hash` inlined twice; see [`Scopes`].
    pub(super) nmethod: u64,
    /// 78, the wrapper of a native method.
    pub(super) native: u64,
    pub(super) stub: u64,
    pub(super) access_flags: u16,
}

/// Scopes of `get`, method 1, and `hash`, method 2.
pub(super) struct Scopes {
    pub(super) bytes: Vec<u8>,
    /// `get` before its first bytecode; at 6; `hash` at 21 in it; `hash` at 0 in that one.
    pub(super) offsets: [i32; 4],
}

impl Scopes {
    pub(super) fn of(encoding: Encoding) -> Self {
        let more = u8::from(encoding == Encoding::NoZero);
        // The first byte is never a scope's. A scope has its sender, its method and its bytecode plus one.
        let mut bytes = vec![0xff];
        let mut offsets = [0; 4];
        for (index, (sender, method, bci)) in [(None, 1, 0), (None, 1, 7), (Some(1), 2, 22), (Some(2), 2, 1)]
            .into_iter()
            .enumerate()
        {
            let sender = sender.map_or(0, |sender: usize| offsets[sender] as u8);
            offsets[index] = bytes.len() as i32;
            // What follows are places of locals, of monitors and of expressions.
            bytes.extend([sender, method, bci, 0, 0, 0].map(|number| number + more));
        }
        Self { bytes, offsets }
    }

    /// At 16, 32, 48 and 64; nothing is known of what ends at 80.
    pub(super) fn pc_descs(&self) -> Vec<PcDesc> {
        let places = [16, 32, 48, 64].into_iter().zip(self.offsets);
        places.chain([(80, 0)]).collect()
    }
}

/// The release that a text is of.
fn java(text: &str) -> u64 {
    [(JDK_8, 8), (JDK_17, 17)]
        .into_iter()
        .find(|(of, _)| *of == text)
        .map_or(25, |(_, java)| java)
}

/// A memory with nothing but tables, and the addresses of its symbols.
pub(super) fn tables(text: &str) -> (Memory, HashMap<String, u64>) {
    let tables = Tables::of(text);
    (tables.memory, tables.symbols)
}

/// Writes tables as libjvm has them.
struct Tables {
    memory: Memory,
    symbols: HashMap<String, u64>,
    statics: HashMap<String, u64>,
    texts: HashMap<String, u64>,
    next: u64,
}

impl Tables {
    const STRIDE: u64 = 48;

    /// Those of a text, in a VM that knows its version.
    fn of(text: &str) -> Self {
        let memory = Memory::new(vec![0; IMAGE_BYTES]);
        let mut tables = Self {
            memory,
            symbols: HashMap::new(),
            statics: HashMap::new(),
            texts: HashMap::new(),
            next: FREE,
        };
        tables.fill(text);
        for (name, value) in [
            ("Abstract_VM_Version::_vm_major_version", 25),
            ("JDK_Version::_current", java(text)),
        ] {
            if let Some(address) = tables.statics.get(name) {
                tables.memory.word(*address, value);
            }
        }
        tables
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes.next_multiple_of(8);
        address
    }

    fn variable(&mut self, name: String, value: u64) {
        let address = self.take(8);
        self.memory.word(address, value);
        self.symbols.insert(name, address);
    }

    fn text(&mut self, text: &str) -> u64 {
        if let Some(address) = self.texts.get(text) {
            return *address;
        }
        let address = self.take(text.len() as u64 + 1);
        self.memory.put(address, text.as_bytes());
        self.texts.insert(text.to_owned(), address);
        address
    }

    fn fill(&mut self, text: &str) {
        for (kind, table, columns) in [
            (
                "field static",
                "VMStruct",
                &["TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"][..],
            ),
            ("size", "VMType", &["TypeName", "Size"]),
            ("constant", "VMIntConstant", &["Name", "Value"]),
            ("none", "VMLongConstant", &["Name", "Value"]),
        ] {
            let lines: Vec<&str> = text
                .lines()
                .filter(|line| {
                    line.split(' ')
                        .next()
                        .is_some_and(|first| kind.split(' ').any(|kind| kind == first))
                })
                .collect();
            let first = self.take(Self::STRIDE * (lines.len() as u64 + 1));
            for (index, line) in lines.into_iter().enumerate() {
                let cells = self.cells(line);
                for (column, cell) in cells.into_iter().enumerate() {
                    let at = first + Self::STRIDE * index as u64 + 8 * column as u64;
                    self.memory.word(at, cell);
                }
            }
            self.variable(format!("gHotSpot{table}s"), first);
            self.variable(format!("gHotSpot{table}EntryArrayStride"), Self::STRIDE);
            for (index, column) in columns.iter().enumerate() {
                self.variable(format!("gHotSpot{table}Entry{column}Offset"), 8 * index as u64);
            }
        }
    }

    fn cells(&mut self, line: &str) -> Vec<u64> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |text: &str| text.parse::<i64>().expect("a number") as u64;
        let type_name = |from: usize| words[from..].join(" ");
        match words[0] {
            "field" => vec![
                self.text(words[1]),
                self.text(words[2]),
                self.text(&type_name(4)),
                0,
                number(words[3]),
                0,
            ],
            "static" => {
                let address = self.take(16);
                self.statics.insert(format!("{}::{}", words[1], words[2]), address);
                let cells = [words[1], words[2], &type_name(3)].map(|text| self.text(text));
                [&cells[..], &[1, 0, address]].concat()
            }
            "size" | "constant" => vec![self.text(words[1]), number(words[2])],
            other => panic!("what is {other}?"),
        }
    }
}

impl Debug for Vm {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Vm")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
