//! A running V8: what a walk needs of it, and what is remembered while it is asked.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::code::Code;
use super::known_functions::KnownFunctions;
use super::layout::{Layout, Version};
use super::lines::Lines;
use super::positions::Sizes;
use super::sizes::sizes_of;
use super::{ReadMemory, Unreadable};

/// What a walker in the kernel needs: `struct so_v8` of bpf/runtime_abi.h, field for field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// What is set aside for code.
    pub made: Vec<Range<u64>>,
    /// The first and the last kind of objects that are functions.
    pub function_types: (u16, u16),
    /// In a function: what it shares with others of the same text.
    pub function_shared: u16,
    /// In that: its bytecodes or what was made of them, its name, its script, its length, its number, and its number
    /// among all.
    pub shared: [u16; 5],
    /// The last one of these; 0 where there is none.
    pub shared_unique: u16,
    /// How long that is at least.
    pub shared_bytes: u16,
    /// In a script its number, where functions have none among all; else 0.
    pub script_id: u16,
    /// The kind of objects that are bytecodes, and where these begin.
    pub bytecode: (u16, u16),
    /// The kind of objects that tell of code, and where they have the bytecodes that it was made of.
    pub code: (u16, u16),
    /// What frames of V8's own code say.
    pub frame_stub: u16,
}

/// A running V8.
#[derive(Debug)]
pub struct V8 {
    pub(super) layout: Layout,
    pub(super) sizes: Option<Sizes>,
    pub(super) lines: Mutex<Lines>,
    pub(super) known: Mutex<KnownFunctions>,
    made: Vec<Range<u64>>,
    /// What objects that hold code begin with, once one was met.
    code_map: AtomicU64,
}

impl V8 {
    /// One with this layout, and what it has set aside for code.
    pub fn new(layout: Layout, made: Vec<Range<u64>>) -> Self {
        Self {
            sizes: sizes_of(layout.version),
            layout,
            lines: Mutex::default(),
            known: Mutex::default(),
            made,
            code_map: AtomicU64::new(0),
        }
    }

    /// Which one it is.
    pub fn version(&self) -> Version {
        self.layout.version
    }

    /// Does code that was made lie where room for it was known when this was read?
    pub fn knows(&self, code: &Range<u64>) -> bool {
        self.made.iter().any(|known| known.contains(&code.start))
    }

    /// What a walker in the kernel needs.
    pub fn walked(&self) -> Walked {
        let layout = &self.layout;
        Walked {
            made: self.made.clone(),
            function_types: layout.type_functions,
            function_shared: layout.function_shared,
            shared: [
                layout.shared_data,
                layout.shared_name,
                layout.shared_script,
                layout.shared_length,
                layout.shared_flags + 4,
            ],
            shared_unique: layout.shared_unique.unwrap_or(0),
            shared_bytes: layout.shared_bytes(),
            script_id: layout.script_id.unwrap_or(0),
            bytecode: (layout.type_bytecode, layout.bytecode_data),
            code: (layout.type_code, layout.code.deoptimisation),
            frame_stub: layout.frame_stub,
        }
    }

    pub(super) fn code_at(&self, memory: &dyn ReadMemory, pc: u64) -> Result<Code, Unreadable> {
        let mut map = self.code_map.load(Ordering::Relaxed);
        let found = Code::at(memory, &self.layout, &mut map, pc);
        self.code_map.store(map, Ordering::Relaxed);
        found
    }
}
