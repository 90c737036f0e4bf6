//! Processes that are made up, for tests and fuzzing: what V8 says of its layout, as some versions do, and a script
//! with functions, their bytecodes, and code that was made of them.

use std::collections::HashMap;

pub(super) use crate::runtime::image::{BASE, Memory};

use super::function::Shared;
use super::layout::{Layout, LayoutError};
use super::{ARRAY_DATA, ARRAY_LENGTH, MAP, MAP_TYPE, ReadMemory, V8, field};

const IMAGE_BYTES: usize = 1 << 16;
/// Where things lie: constants, maps, code, and everything else, one thing behind the other.
pub(super) const CONSTANTS: u64 = BASE + 0x100;
const MAPS: u64 = BASE + 0x800;
pub(super) const CODE: u64 = BASE + 0x2000;
const FREE: u64 = BASE + 0x4000;
/// What V8 exports, of the first release of Node.js with each form.
pub(super) const VERSIONS: [&str; 5] = [
    include_str!("made/10.txt"),
    include_str!("made/11.txt"),
    include_str!("made/12.txt"),
    include_str!("made/13.txt"),
    include_str!("made/14.txt"),
];
pub(super) const SOURCE: &str =
    "class Queue {\n  pop(n) {\r\n    return take(n);\n  }\n}\nfunction take(n) { return n; }\n";

#[derive(Clone)]
pub(super) struct Made {
    pub(super) memory: Memory,
    pub(super) symbols: HashMap<String, u64>,
    pub(super) layout: Layout,
    next: u64,
    maps: HashMap<u16, u64>,
}

/// What frames are made of.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    /// Of what functions share: a method of a class, a function, and one without a name.
    pub(super) pop: u64,
    pub(super) take: u64,
    pub(super) nameless: u64,
    /// First instructions of code that was made of `pop`'s bytecodes, and of `pop` with `take` inlined.
    pub(super) baseline: u64,
    pub(super) optimised: u64,
}

/// Where positions begin: of `return`, and of the call behind it.
pub(super) const RETURN: u32 = 29;
pub(super) const CALL: u32 = 36;
const TAKE_RETURN: u32 = 73;

impl Made {
    pub(super) fn new(text: &str) -> (Self, Sample) {
        let mut memory = Memory::new(vec![0; IMAGE_BYTES]);
        let mut symbols = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let (name, value) = line.split_once(' ').unwrap();
            let address = CONSTANTS + number as u64 * 4;
            memory.put(address, &value.parse::<u32>().unwrap().to_le_bytes());
            symbols.insert(name.to_owned(), address);
        }
        let layout = Layout::read(&memory, &|name| symbols.get(name).copied()).unwrap();
        let mut made = Self {
            memory,
            symbols,
            layout,
            next: FREE,
            maps: HashMap::new(),
        };
        let sample = made.fill();
        (made, sample)
    }

    pub(super) fn layout_in(&self, memory: &dyn ReadMemory) -> Result<Layout, LayoutError> {
        Layout::read(memory, &|name| self.symbols.get(name).copied())
    }

    pub(super) fn v8(&self) -> V8 {
        let code = CODE..CODE + 0x1000;
        V8::new(self.layout.clone(), vec![code])
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes.next_multiple_of(8) + 16;
        address
    }

    fn map(&mut self, kind: u16) -> u64 {
        if let Some(map) = self.maps.get(&kind) {
            return *map;
        }
        let map = MAPS + self.maps.len() as u64 * 32;
        self.memory.put(field(map, MAP_TYPE), &kind.to_le_bytes());
        self.maps.insert(kind, map);
        map
    }

    fn object_at(&mut self, address: u64, kind: u16) {
        let map = self.map(kind);
        self.memory.word(field(address, MAP), map | 1);
    }

    pub(super) fn object(&mut self, kind: u16, bytes: u64) -> u64 {
        let address = self.take(bytes);
        self.object_at(address, kind);
        address
    }

    pub(super) fn set(&mut self, of: u64, offset: u16, object: u64) {
        self.memory.word(field(of, offset), object | 1);
    }

    fn small(&mut self, of: u64, offset: u16, value: i32) {
        let value = u64::from(value.cast_unsigned()) << 32;
        self.memory.word(field(of, offset), value);
    }

    /// One byte a character.
    pub(super) fn text(&mut self, text: &str) -> u64 {
        let object = self.object(0x28, 16 + text.len() as u64);
        self.memory.put(field(object, 12), &(text.len() as u32).to_le_bytes());
        self.memory.put(field(object, 16), text.as_bytes());
        object
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let object = self.object(self.layout.type_bytes[0], 16 + bytes.len() as u64);
        self.small(object, ARRAY_LENGTH, bytes.len() as i32);
        self.memory.put(field(object, ARRAY_DATA), bytes);
        object
    }

    fn array(&mut self, words: &[u64]) -> u64 {
        let object = self.object(0x7ff, 16 + words.len() as u64 * 8);
        self.small(object, ARRAY_LENGTH, words.len() as i32);
        for (number, word) in words.iter().enumerate() {
            self.memory.word(field(object, ARRAY_DATA + number as u16 * 8), *word);
        }
        object
    }

    /// A function's scope, or a class'.
    fn scope(&mut self, is_class: bool, name: Option<u64>, start: u32, outer: Option<u64>) -> u64 {
        let has_place = self.layout.scope_first >= 5;
        let scope = self.object(self.layout.type_scope, 96);
        let kind = match (has_place, is_class) {
            (true, true) => 2,
            (true, false) => 4,
            (false, true) => 0,
            (false, false) => 2,
        };
        let mut flags: u64 = kind;
        flags |= if name.is_some() { 3 << 12 | 1 << 14 } else { 0 };
        flags |= if outer.is_some() { 1 << 22 } else { 0 };
        let at = field(scope, 8);
        self.memory.word(at, if has_place { flags } else { flags << 32 });
        let mut words = Vec::new();
        let place = [u64::from(start) << 32, u64::from(start + 8) << 32];
        if has_place {
            words.extend(place);
        }
        if let Some(name) = name {
            // Nothing was inferred.
            words.extend([name | 1, u64::from(u32::MAX) << 32, 0]);
        }
        if !has_place {
            words.extend(place);
        }
        words.extend(outer.map(|outer| outer | 1));
        for (number, word) in words.into_iter().enumerate() {
            self.memory.word(field(scope, 32 + number as u16 * 8), word);
        }
        scope
    }

    /// What functions share.
    fn shared(&mut self, scope: u64, script: u64, number: u32, kind: u32) -> u64 {
        let shared = self.object(self.layout.type_shared, 80);
        let layout = self.layout.clone();
        self.set(shared, layout.shared_name, scope);
        self.set(shared, layout.shared_script, script);
        self.memory
            .word(field(shared, layout.shared_length), 0x7f00_0000_0001_0002);
        self.memory.put(field(shared, layout.shared_flags), &kind.to_le_bytes());
        self.memory
            .put(field(shared, layout.shared_flags + 4), &number.to_le_bytes());
        if let Some(unique) = layout.shared_unique {
            self.memory.put(field(shared, unique), &(number + 900).to_le_bytes());
        }
        shared
    }

    fn fill(&mut self) -> Sample {
        let layout = self.layout.clone();
        let script = self.object(layout.type_script, 128);
        let (name, source) = (self.text("/srv/queue.js"), self.text(SOURCE));
        self.set(script, layout.script_name, name);
        self.set(script, layout.script_source, source);
        if let Some(id) = layout.script_id {
            self.small(script, id, 77);
        }
        let [queue, pop, take, empty] = ["Queue", "pop", "take", ""].map(|text| self.text(text));
        let around = self.scope(false, Some(empty), 0, None);
        let class = self.scope(true, None, 0, Some(around));
        let scopes = [
            self.scope(false, Some(empty), 0, None),
            self.scope(false, Some(queue), 0, Some(class)),
            self.scope(false, Some(pop), 19, Some(class)),
            self.scope(false, Some(take), 67, Some(around)),
        ];
        let kinds = [0, 4, 22, 0];
        let shared: Vec<u64> = (0..4)
            .map(|number| self.shared(scopes[number], script, number as u32, kinds[number]))
            .collect();
        // Weak.
        let list = self.array(&shared.iter().map(|shared| shared | 3).collect::<Vec<_>>());
        self.set(script, 88, list);
        let bytecodes = self.bytecode(&[15; 4], &[(0, RETURN, None), (1, CALL, None)]);
        self.set(shared[2], layout.shared_data, bytecodes);
        let table = self.bytes(&[10, 20, 30]);
        let kind = u32::from(layout.kind_baseline);
        let baseline = self.code(CODE + 0x100, 100, kind, bytecodes, table);
        let optimised = self.optimised(&shared);
        Sample {
            pop: shared[2],
            take: shared[3],
            nameless: shared[0],
            baseline,
            optimised,
        }
    }

    /// Bytecodes with their positions.
    pub(super) fn bytecode(&mut self, codes: &[u8], positions: &[(i64, u32, Option<u16>)]) -> u64 {
        let layout = self.layout.clone();
        let bytecodes = self.object(layout.type_bytecode, 80 + codes.len() as u64);
        self.small(bytecodes, ARRAY_LENGTH, codes.len() as i32);
        self.memory.put(field(bytecodes, layout.bytecode_data), codes);
        let table = self.positions(positions);
        self.set(bytecodes, layout.bytecode_positions, table);
        bytecodes
    }

    fn positions(&mut self, positions: &[(i64, u32, Option<u16>)]) -> u64 {
        let entries: Vec<(i64, i64)> = positions
            .iter()
            .map(|(at, offset, inlining)| (*at, position(*offset, *inlining).cast_signed()))
            .collect();
        let table = super::positions::made(self.layout.positions, &entries);
        self.bytes(&table)
    }

    /// Code with its first instruction at a place; gives that.
    fn code(&mut self, start: u64, bytes: u32, kind: u32, data: u64, positions: u64) -> u64 {
        let form = self.layout.code;
        let stream = start - u64::from(form.header);
        self.object_at(stream, self.layout.type_stream);
        let code = match form.code {
            None => stream,
            Some(offset) => {
                let code = self.object(self.layout.type_code, 96);
                self.set(stream, offset, code);
                self.set(code, form.stream, stream);
                self.memory.word(field(code, form.start), start);
                code
            }
        };
        self.set(code, form.deoptimisation, data);
        self.set(code, form.positions, positions);
        self.memory.put(field(code, form.size), &bytes.to_le_bytes());
        self.memory
            .put(field(code, form.flags), &(0x70 << 4 | kind).to_le_bytes());
        self.memory.put(start, &[0x90; 200]);
        start
    }

    /// `pop` with `take` inlined: from 10 on that, from 20 on itself again; exits begin at 100.
    fn optimised(&mut self, shared: &[u64]) -> u64 {
        let layout = self.layout.clone();
        let mut inlined = position(CALL, None).to_le_bytes().to_vec();
        inlined.extend([1, 0, 0, 0, 9, 9, 9, 9]);
        let inlined = self.bytes(&inlined);
        let literals = self.array(&[shared[0] | 1, shared[3] | 3]);
        let mut data = vec![0; usize::from(layout.inlining) + 3];
        data[usize::from(layout.literals)] = literals | 1;
        data[usize::from(layout.inlining)] = inlined | 1;
        data[usize::from(layout.inlining) + 1] = 100 << 32;
        let mut own = shared[2];
        if let Some(offset) = layout.own_shared_in {
            let wrapper = self.object(0x7fe, 16);
            self.set(wrapper, offset, own);
            own = wrapper;
        }
        data[usize::from(layout.own_shared)] = own | 1;
        let data = self.array(&data);
        let places = [(0, RETURN, None), (10, TAKE_RETURN, Some(0)), (20, CALL, None)];
        let table = self.positions(&places);
        let kind = u32::from(layout.kind_baseline) + 2;
        self.code(CODE + 0x400, 150, kind, data, table)
    }

    /// The hash that the kernel side makes of what functions share.
    pub(super) fn hash(&self, shared: u64) -> u64 {
        let shared = Shared::read(&self.memory, &self.layout, shared).unwrap();
        shared.hash(&self.layout)
    }

    /// The same where memory may make no sense.
    #[cfg(any(test, fuzzing))]
    pub(super) fn hash_in(&self, memory: &dyn ReadMemory, shared: u64) -> u64 {
        Shared::read(memory, &self.layout, shared).map_or(0, |shared| shared.hash(&self.layout))
    }
}

fn position(offset: u32, inlining: Option<u16>) -> u64 {
    u64::from(offset + 1) << 1 | inlining.map_or(0, |number| u64::from(number) + 1) << 31
}
