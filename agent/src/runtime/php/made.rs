//! A PHP that is made up, for tests and fuzzing: a module, globals, frames, functions and text.

use std::collections::HashMap;
use std::ops::Range;

pub(super) use crate::runtime::image::{BASE, Memory};

use super::layout::{INSTRUCTION_BYTES, INSTRUCTION_LINE, MODULE_BYTES, MODULE_NAME, Offsets};
use super::text::hash_of;
use super::{Layout, Php};

const IMAGE_BYTES: usize = 1 << 16;
/// Where things lie, each with room.
pub(super) const REGISTRY: u64 = BASE + 0x100;
pub(super) const MODULE: u64 = BASE + 0x400;
pub(super) const GLOBALS: u64 = BASE + 0x1000;
pub(super) const LOOP: Range<u64> = BASE + 0x6000..BASE + 0x7000;
pub(super) const RARE: Range<u64> = BASE + 0x7000..BASE + 0x7400;
/// Of builds with threads: what says where a thread's globals are, and that itself; where in them are those of the
/// executor.
pub(super) const THREADS_CODE: u64 = BASE + 0x7800;
pub(super) const LOCAL: u64 = 0x98_u64.wrapping_neg();
pub(super) const IN_THREAD: u64 = 0x2_4000;
const THREADS_DATA: u64 = BASE + 0x7900;
pub(super) const CALLERS: [Range<u64>; 2] = [BASE + 0x7400..BASE + 0x7500, BASE + 0x7500..BASE + 0x7600];
pub(super) const CODE: Range<u64> = 0x7e00_0000_0000..0x7e00_0010_0000;
/// What is not placed elsewhere lies here, one thing behind the other.
const FREE: u64 = BASE + 0x9000;
/// Of each version the number of its interface.
pub(super) const INTERFACES: [u64; 7] = [
    20_190_902, 20_200_930, 20_210_902, 20_220_829, 20_230_831, 20_240_924, 20_250_925,
];

#[derive(Clone)]
pub(super) struct Made {
    pub(super) memory: Memory,
    pub(super) symbols: HashMap<&'static str, u64>,
    pub(super) offsets: Offsets,
    next: u64,
}

impl Made {
    /// One that runs nothing.
    pub(super) fn new(interface: u64) -> Self {
        let (_, offsets) = Offsets::of_api(interface).expect("a version");
        let mut made = Self {
            memory: Memory::new(vec![0; IMAGE_BYTES]),
            symbols: HashMap::from([
                ("execute_ex", LOOP.start),
                ("executor_globals", GLOBALS),
                ("module_registry", REGISTRY),
                ("zend_call_function", CALLERS[0].start),
                ("zend_generator_resume", CALLERS[1].start),
            ]),
            offsets,
            next: FREE,
        };
        let entries = made.take(64);
        made.memory.word(REGISTRY + 16, entries);
        made.memory.word(REGISTRY + 24, 1);
        made.memory.word(entries, MODULE);
        made.memory.word(MODULE, u64::from(MODULE_BYTES) | interface << 32);
        let name = made.take(32);
        made.memory.put(name, b"Core\0");
        made.memory.word(MODULE + u64::from(MODULE_NAME), name);
        made.memory
            .put(GLOBALS + u64::from(offsets.exception_code) + 28, &[149]);
        made
    }

    /// One that runs a method, which an internal function has called; gives both.
    pub(super) fn sample(interface: u64) -> (Self, [u64; 2]) {
        let mut made = Self::new(interface);
        let method = made.method("get", Some("App\\Queue"), "/srv/queue.php", [10, 14], &[10, 11, 13]);
        let internal = made.internal("usort");
        let caller = made.frame(internal, 0);
        let frame = made.frame(method, caller);
        made.memory.word(GLOBALS + u64::from(made.offsets.current), frame);
        (made, [method, internal])
    }

    /// The same of a build with threads, each of which has its own globals: where is said by code of one of two forms.
    pub(super) fn with_threads(interface: u64, is_linked: bool) -> Self {
        let (mut made, _) = Self::sample(interface);
        made.symbols.remove("executor_globals");
        made.symbols.insert("executor_globals_offset", THREADS_DATA);
        made.symbols.insert("tsrm_get_ls_cache_tcb_offset", THREADS_CODE);
        made.memory.word(THREADS_DATA, IN_THREAD);
        made.memory.word(THREADS_DATA + 8, LOCAL);
        made.memory.put(MODULE + 9, &[1]);
        let code = if is_linked {
            [&b"\x48\xc7\xc0"[..], &(LOCAL as u32).to_le_bytes()].concat()
        } else {
            // Behind a mark for jumps, which is four bytes long.
            let distance = (THREADS_DATA + 8 - (THREADS_CODE + 4 + 7)) as u32;
            [&b"\xf3\x0f\x1e\xfa\x48\x8b\x05"[..], &distance.to_le_bytes()].concat()
        };
        made.memory.put(THREADS_CODE, &code);
        made
    }

    pub(super) fn layout(&self) -> Result<Layout, super::LayoutError> {
        Layout::read(&self.memory, &|name| self.symbols.get(name).copied())
    }

    pub(super) fn php(&self) -> Result<Php, super::NotReady> {
        let code = vec![(BASE..BASE + 0x1000, false), (CODE, true)];
        Php::read(&self.memory, self.layout().expect("a layout"), &function, code)
    }

    pub(super) fn take(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes.next_multiple_of(16);
        address
    }

    pub(super) fn frame(&mut self, function: u64, previous: u64) -> u64 {
        let frame = self.take(80);
        self.memory.word(frame + 24, function);
        self.memory.word(frame + 48, previous);
        frame
    }

    pub(super) fn text(&mut self, text: &[u8]) -> u64 {
        let object = self.take(24 + text.len() as u64 + 1);
        self.memory.word(object + 8, hash_of(text));
        self.memory.word(object + 16, text.len() as u64);
        self.memory.put(object + 24, text);
        object
    }

    /// A function of PHP code, whose instructions stand in these lines.
    pub(super) fn method(
        &mut self,
        name: &str,
        class: Option<&str>,
        file: &str,
        limits: [u32; 2],
        lines: &[u32],
    ) -> u64 {
        let offsets = self.offsets;
        let function = self.take(256);
        self.memory.put(function, &[2]);
        if !name.is_empty() {
            let name = self.text(name.as_bytes());
            self.memory.word(function + 8, name);
        }
        if let Some(class) = class {
            let (object, name) = (self.take(64), self.text(class.as_bytes()));
            self.memory.word(object + 8, name);
            self.memory.word(function + 16, object);
        }
        let (file, code) = (
            self.text(file.as_bytes()),
            self.take(INSTRUCTION_BYTES * lines.len() as u64),
        );
        self.memory.word(function + u64::from(offsets.file), file);
        self.memory.word(function + u64::from(offsets.code), code);
        let count = (lines.len() as u32).to_le_bytes();
        self.memory.put(function + u64::from(offsets.code_count), &count);
        for (place, line) in limits.into_iter().enumerate() {
            let at = function + u64::from(offsets.lines) + 4 * place as u64;
            self.memory.put(at, &line.to_le_bytes());
        }
        for (number, line) in lines.iter().enumerate() {
            let at = code + INSTRUCTION_BYTES * number as u64 + u64::from(INSTRUCTION_LINE);
            self.memory.put(at, &line.to_le_bytes());
        }
        function
    }

    /// A function of the module.
    pub(super) fn internal(&mut self, name: &str) -> u64 {
        let (function, name) = (self.take(256), self.text(name.as_bytes()));
        self.memory.put(function, &[1]);
        self.memory.word(function + 8, name);
        self.memory.word(function + u64::from(self.offsets.module), MODULE);
        function
    }
}

/// The function that an address lies in.
pub(super) fn function(address: u64) -> Option<Range<u64>> {
    let [one, other] = CALLERS;
    [LOOP, RARE, one, other]
        .into_iter()
        .find(|range| range.contains(&address))
}
