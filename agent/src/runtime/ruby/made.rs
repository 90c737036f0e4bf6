//! Interpreters that are made up, for tests and fuzzing: a virtual machine, its main thread, a stack of frames, code,
//! methods, classes, text and names.

use std::collections::HashMap;
use std::ops::Range;

pub(super) use crate::runtime::image::{BASE, Memory};

use super::layout::{LayoutError, MappedInterpreter};
use super::offsets::{
    BODY_BASE_LABEL, BODY_ENCODED, BODY_FIRST_LINE, BODY_LABEL, BODY_PATH, BODY_SIZE, ClassNames, DEFINITION_ID,
    IMEMO_ISEQ, IMEMO_METHOD, IMEMO_SHIFT, Offsets, T_ARRAY, T_CLASS, T_IMEMO, T_STRING, USER_1, USER_SHIFT,
};
use super::{ReadMemory, Ruby, field};

const IMAGE_BYTES: usize = 1 << 17;
/// Where things lie, each with room.
const CODE: Range<u64> = BASE + 0x1000..BASE + 0x4000;
pub(super) const LOOP: Range<u64> = BASE + 0x1000..BASE + 0x2000;
pub(super) const CALLER: Range<u64> = BASE + 0x3000..BASE + 0x3100;
const DATA: Range<u64> = BASE + 0x4000..BASE + 0x5000;
const API_VERSION: u64 = BASE + 0x5000;
/// Nothing is mapped behind a file's data.
pub(super) const HOLE: Range<u64> = BASE + 0x6000..BASE + 0x7000;
pub(super) const VM_POINTER: u64 = DATA.start + 0x120;
pub(super) const NAMES: u64 = DATA.start + 0x200;
/// Above the thread's own storage.
pub(super) const THREAD_BASE: u64 = BASE + 0x9000;
pub(super) const LOCAL: u64 = 0x40_u64.wrapping_neg();
const VM: u64 = BASE + 0xa000;
pub(super) const THREAD: u64 = BASE + 0xa800;
const RACTOR: u64 = BASE + 0xb000;
pub(super) const CONTEXT: u64 = BASE + 0xb800;
const STACK: u64 = BASE + 0xc000;
const STACK_WORDS: u64 = 7 * 8 * 4;
/// What is not placed elsewhere lies here, one thing behind the other.
const FREE: u64 = BASE + 0xd000;
pub(super) const VERSIONS: [(u32, u32); 6] = [(2, 7), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)];

#[derive(Clone)]
pub(super) struct Made {
    pub(super) memory: Memory,
    pub(super) symbols: HashMap<&'static str, u64>,
    pub(super) offsets: Offsets,
    lists: u64,
    shapes: u64,
    next: u64,
}

/// What a frame is made of.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    /// `block in pop` of `/usr/lib/queue.rb`, whose lines are 11 and 12.
    pub(super) iseq: u64,
    /// Of `Queue`, named `pop`.
    pub(super) method: u64,
    pub(super) class: u64,
}

impl Made {
    /// An interpreter whose main thread runs one block of a method, and nothing else.
    pub(super) fn new(version: (u32, u32)) -> (Self, Sample) {
        let mut made = Self {
            memory: Memory::with_hole(vec![0; IMAGE_BYTES], HOLE),
            symbols: HashMap::from([("ruby_api_version", API_VERSION)]),
            offsets: Offsets::by_version(version.0, version.1).unwrap(),
            lists: 0,
            shapes: 0,
            next: FREE,
        };
        let offsets = made.offsets;
        if let ClassNames::Shapes { list, .. } = offsets.class_names {
            let shapes = made.take(64 * 32);
            made.memory.word(field(VM, list), shapes);
        }
        made.memory.put(API_VERSION, &version.0.to_le_bytes());
        made.memory.put(API_VERSION + 4, &version.1.to_le_bytes());
        made.memory.word(VM_POINTER, VM);
        made.memory.word(field(VM, offsets.vm_main_thread), THREAD);
        if let Some(ractor) = offsets.vm_main_ractor {
            made.memory.word(field(VM, ractor), RACTOR);
            made.memory.word(THREAD_BASE.wrapping_add(LOCAL), CONTEXT);
        } else {
            made.symbols.insert("ruby_current_execution_context_ptr", DATA.start);
        }
        made.memory.word(field(THREAD, offsets.thread_vm), VM);
        made.memory.word(field(THREAD, offsets.thread_context), CONTEXT);
        let native = match offsets.thread_native {
            Some(native) => {
                let address = made.take(64);
                made.memory.word(field(THREAD, native), address);
                address
            }
            None => THREAD,
        };
        made.memory.word(field(native, offsets.thread_id), THREAD_BASE);
        made.memory.word(field(CONTEXT, offsets.context_thread), THREAD);
        made.names();
        let sample = made.sample();
        let frame = STACK + STACK_WORDS * 8 - u64::from(offsets.frame_bytes);
        for (at, value) in [(0, STACK), (8, STACK_WORDS), (16, frame)] {
            made.memory.word(CONTEXT + at, value);
        }
        made.memory.word(frame + 16, sample.iseq);
        made.memory.word(frame + 32, STACK + 64);
        (made, sample)
    }

    fn word_at(&self, address: u64) -> u64 {
        let first = (address - BASE) as usize;
        let word = self.memory.bytes[first..first + 8].try_into();
        u64::from_le_bytes(word.expect("eight bytes"))
    }

    pub(super) fn take(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes.next_multiple_of(8);
        address
    }

    pub(super) fn text(&mut self, text: &str) -> u64 {
        let (address, length) = (self.take(48), text.len() as u64);
        if text.len() > 22 {
            let bytes = self.take(length);
            self.memory.put(bytes, text.as_bytes());
            self.memory.word(address, T_STRING | USER_1);
            self.memory.word(address + 16, length);
            self.memory.word(address + 24, bytes);
        } else if self.offsets.is_length_in_flags {
            self.memory.word(address, T_STRING | length << (USER_SHIFT + 2));
            self.memory.put(address + 16, text.as_bytes());
        } else {
            self.memory.word(address, T_STRING);
            self.memory.word(address + 16, length);
            self.memory.put(address + 24, text.as_bytes());
        }
        address
    }

    /// Of so many elements, which are elsewhere.
    fn list(&mut self, count: u64) -> (u64, u64) {
        let (list, elements) = (self.take(40), self.take(count * 8));
        self.memory.word(list, T_ARRAY);
        self.memory.word(list + 16, count);
        self.memory.word(list + 32, elements);
        (list, elements)
    }

    fn names(&mut self) {
        let (lists, at) = self.list(1);
        let (list, elements) = self.list(1024);
        self.memory.word(at, list);
        self.lists = elements;
        let hash = self.take(64);
        for (at, value) in [(0, 400), (8, hash), (16, lists)] {
            self.memory.word(NAMES + at, value);
        }
        self.name(300, "first");
    }

    /// The name with a serial number; gives its own number.
    pub(super) fn name(&mut self, serial: u64, name: &str) -> u64 {
        let (text, id) = (self.text(name), serial << 4 | 1);
        let at = self.lists + serial * 16;
        self.memory.word(at, text);
        self.memory.word(at + 8, id << 8 | 0xc);
        id
    }

    pub(super) fn class(&mut self, name: &str, serial: u64) -> u64 {
        let class = self.take(176);
        let path = self.text(name);
        self.memory.word(class, T_CLASS);
        self.name_class(class, path, ("__classpath__", serial));
        class
    }

    /// The class of an object itself.
    pub(super) fn singleton(&mut self, of: u64) -> u64 {
        let class = self.take(176);
        self.memory.word(class, T_CLASS | self.offsets.singleton);
        match self.offsets.class_names {
            ClassNames::Fields { attached, .. } => self.memory.word(field(class, attached), of),
            _ => self.name_class(class, of, ("__attached__", 320)),
        }
        class
    }

    fn name_class(&mut self, class: u64, value: u64, (variable, serial): (&str, u64)) {
        match self.offsets.class_names {
            ClassNames::Fields { path, .. } => self.memory.word(field(class, path), value),
            ClassNames::Variables { extension, table } => {
                let id = self.name(serial, variable);
                let (extended, variables, entries) = (self.take(64), self.take(56), self.take(24));
                self.memory.word(field(class, extension), extended);
                self.memory.word(field(extended, table), variables);
                for (at, value) in [(32, 0), (40, 1), (48, entries)] {
                    self.memory.word(variables + at, value);
                }
                self.memory.word(entries + 8, id);
                self.memory.word(entries + 16, value);
            }
            ClassNames::Shapes { list, values } => {
                // The root, another variable, this one, and one that adds none; each with the number of the one before.
                let (id, other) = (self.name(serial, variable), self.name(321, "@other"));
                let list = field(VM, list);
                let shapes = self.word_at(list);
                let first = self.shapes;
                self.shapes += 4;
                let made = [(0, 0, 0_u64), (other, 1, 1), (id, 2, 1), (other, 2, 2)];
                for (place, (id, count, kind)) in (0..).zip(made) {
                    let at = shapes + 32 * (first + place);
                    let parent = (first + place).wrapping_sub(1) & 0xffff_ffff;
                    self.memory.word(at + 8, id);
                    self.memory.word(at + 16, count);
                    self.memory.word(at + 24, kind | parent << 32);
                }
                let all = self.take(16);
                self.memory.word(all + 8, value);
                self.memory.word(field(class, values), all);
                let flags = self.word_at(class);
                self.memory.word(class, flags | (first + 3) << 32);
            }
        }
    }

    pub(super) fn method(&mut self, owner: u64, id: u64) -> u64 {
        let (method, definition) = (self.take(40), self.take(48));
        for (at, value) in [
            (0, T_IMEMO | IMEMO_METHOD << IMEMO_SHIFT),
            (16, definition),
            (24, id),
            (32, owner),
        ] {
            self.memory.word(method + at, value);
        }
        self.memory.word(field(definition, DEFINITION_ID), id);
        method
    }

    fn sample(&mut self) -> Sample {
        let (iseq, body, encoded, entries, index) = (
            self.take(40),
            self.take(200),
            self.take(256),
            self.take(24),
            self.take(48),
        );
        let (label, base, path) = (
            self.text("block in pop"),
            self.text("pop"),
            self.text("/usr/lib/ruby/3.4.0/queue.rb"),
        );
        self.memory.word(iseq, T_IMEMO | IMEMO_ISEQ << IMEMO_SHIFT);
        self.memory.word(iseq + 16, body);
        self.memory.put(field(body, BODY_SIZE), &32_u32.to_le_bytes());
        self.memory.word(encoded, LOOP.start + 0x100);
        for (offset, value) in [
            (BODY_ENCODED, encoded),
            (BODY_PATH, path),
            (BODY_LABEL, label),
            (BODY_BASE_LABEL, base),
            (BODY_FIRST_LINE, if self.offsets.is_line_object { 21 } else { 10 }),
        ] {
            self.memory.word(field(body, offset), value);
        }
        // Two entries, at positions 0 and 4.
        let lines = field(body, self.offsets.body_lines);
        for (at, value) in [(0, entries), (16, 2), (24, index)] {
            self.memory.word(lines + at, value);
        }
        self.memory.put(entries, &11_u32.to_le_bytes());
        self.memory
            .put(field(entries, self.offsets.line_bytes), &12_u32.to_le_bytes());
        let ranks = (0..9).map(|position| if position < 4 { 1_u64 } else { 2 } << (7 * position));
        self.memory.word(index, ranks.sum());
        let (class, id) = (self.class("Queue", 310), self.name(311, "pop"));
        let method = self.method(class, id);
        Sample { iseq, method, class }
    }

    pub(super) fn ruby(&self) -> Result<Ruby, LayoutError> {
        self.ruby_in(&self.memory)
    }

    /// Of another memory, and of what is known of this one.
    pub(super) fn ruby_in(&self, memory: &dyn ReadMemory) -> Result<Ruby, LayoutError> {
        let place = MappedInterpreter {
            symbol: &|name| self.symbols.get(name).copied(),
            learn: &|_, _| (),
            data: vec![DATA],
            code: CODE,
            function: &|address| [LOOP, CALLER].into_iter().find(|function| function.contains(&address)),
            calls: &|function| {
                if function == LOOP.start {
                    vec![CALLER.start + 5]
                } else {
                    Vec::new()
                }
            },
        };
        Ruby::read(memory, &place)
    }
}
