//! A running PHP: whether its layout fits what is there, and what a walk needs of it.

use std::ops::Range;
use std::sync::Mutex;

use thiserror::Error;

use super::functions::Functions;
use super::layout::{FUNCTION_BYTES, Layout, LayoutError, Version};
use super::text::Text;
use super::{ADDRESSES, ReadMemory, Unreadable, field, is_object, part, read, word};
use crate::runtime::parts::rare_part;

/// Frames that are looked at for a function.
const MAX_FRAMES: usize = 16;
/// PHP runs meanwhile: what made no sense is looked at so many times.
const TRIES: usize = 8;
/// The interpreter's loop has some 40 KB.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;
/// What a walker is told of, as in bpf/runtime_abi.h: parts of the loop, of what C calls PHP by, of code that is made.
const MAX_RANGES: usize = 2;
/// Of `zend_execute_data`.
const FRAME_FUNCTION: u16 = 24;
const FRAME_PREVIOUS: u16 = 48;
/// Of `zend_function`: internal ones have an odd type. There are three types so far.
pub(super) const NAME: u16 = 8;
pub(super) const MAX_TYPE: u64 = 4;

/// Why PHP with a known layout can't be walked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotReady {
    /// Nothing says where its loop ends.
    #[error("{version}: the interpreter's loop has no known end")]
    NoLoop {
        /// Which one.
        version: Version,
    },
    /// Its layout is not what is there.
    #[error(transparent)]
    Contradiction(#[from] LayoutError),
    /// Its memory can't be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// What a walker in the kernel needs: `struct so_php` of bpf/runtime_abi.h, field for field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// Where each thread has its own globals, the offset in its own storage of what leads there: the next four
    /// addresses count from that.
    pub local: Option<u64>,
    /// Address of the pointer to the innermost frame.
    pub current: u64,
    /// Address of the pointer to what runs, of fibers; 0 where there are none.
    pub fiber: u64,
    /// Address of the instructions that handle an exception.
    pub exception_code: u64,
    /// Address of the pointer to the one that threw.
    pub exception_at: u64,
    /// The interpreter's loop, and its part for what is rare, or twice the same.
    pub loops: [Range<u64>; 2],
    /// Code that OPcache made; empty where there is none.
    pub made: [Range<u64>; 2],
    /// What C code calls PHP by; empty where nobody says.
    pub callers: [Range<u64>; 2],
    /// A place of the loop where its frame is whole.
    pub loop_inside: u64,
    /// In a function: its instructions.
    pub code: u16,
    /// In a function: how many it has.
    pub code_count: u16,
    /// In a function: its file's name.
    pub file: u16,
    /// In a function: its first and its last line.
    pub lines: u16,
    /// In a fiber's context: its stack.
    pub fiber_stack: u16,
    /// From a fiber's context on: who resumed it.
    pub fiber_caller: u16,
}

/// A running PHP, and what is known of its functions.
#[derive(Debug)]
pub struct Php {
    pub(super) layout: Layout,
    loops: [Range<u64>; 2],
    callers: [Range<u64>; 2],
    /// Code that was made, and whether it is OPcache's.
    code: Vec<(Range<u64>, bool)>,
    pub(super) functions: Mutex<Functions>,
}

impl Php {
    /// Checks the layout against what is there. `function` gives the limits of the function, or of the part of one,
    /// that an address lies in. `code` is what was made while it runs, and whether
    /// that lies in shared memory, as OPcache's does.
    pub fn read(
        memory: &dyn ReadMemory,
        layout: Layout,
        function: &dyn Fn(u64) -> Option<Range<u64>>,
        code: Vec<(Range<u64>, bool)>,
    ) -> Result<Self, NotReady> {
        let version = layout.version;
        let limits = |address: u64| {
            let range = function(address)?;
            let is_sane = range.contains(&address) && ADDRESSES.contains(&range.start);
            (is_sane && range.end - range.start <= MAX_FUNCTION_BYTES).then_some(range)
        };
        let [main, rare] = layout.loops.map(|begin| begin.and_then(limits));
        let main = main.ok_or(NotReady::NoLoop { version })?;
        let rare = rare.or_else(|| rare_part(memory, &main, &limits));
        let rare = rare.unwrap_or_else(|| main.clone());
        let callers = layout.callers.map(|begin| begin.and_then(limits).unwrap_or(0..0));
        let php = Self {
            layout,
            loops: [main, rare],
            callers,
            code,
            functions: Mutex::default(),
        };
        let mut last = Ok(());
        for _ in 0..TRIES {
            last = php.check(memory);
            if last.is_ok() {
                return Ok(php);
            }
        }
        last.map(|()| php)
    }

    /// What is known of its structures.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Was code that begins there already made when this was read?
    pub fn knows(&self, code: &Range<u64>) -> bool {
        self.code.iter().any(|(known, _)| known.contains(&code.start))
    }

    /// What a walker in the kernel needs.
    pub fn walked(&self) -> Walked {
        let Layout { globals, offsets, .. } = self.layout;
        let main = &self.loops[0];
        let mut made: [Range<u64>; MAX_RANGES] = [0..0, 0..0];
        let shared = self.code.iter().filter(|(_, is_shared)| *is_shared);
        for (to, (range, _)) in made.iter_mut().zip(shared) {
            *to = range.clone();
        }
        Walked {
            local: self.layout.local,
            current: field(globals, offsets.current),
            fiber: offsets.fiber.map_or(0, |fiber| field(globals, fiber)),
            exception_code: field(globals, offsets.exception_code),
            exception_at: field(globals, offsets.exception_at),
            loops: self.loops.clone(),
            made,
            callers: self.callers.clone(),
            loop_inside: main.start + (main.end - main.start) / 2,
            code: offsets.code,
            code_count: offsets.code_count,
            file: offsets.file,
            lines: offsets.lines,
            fiber_stack: offsets.fiber_stack,
            fiber_caller: offsets.fiber_caller,
        }
    }

    /// The innermost frames lead to functions that look like functions, if any run.
    fn check(&self, memory: &dyn ReadMemory) -> Result<(), NotReady> {
        let Layout { globals, offsets, .. } = self.layout;
        if self.layout.local.is_some() {
            // Of each thread's own nothing is known here.
            return Ok(());
        }
        let contradiction = |what| self.layout.contradiction(what);
        let mut frame = word(memory, field(globals, offsets.current))?;
        for _ in 0..MAX_FRAMES {
            if frame == 0 {
                return Ok(());
            }
            if !is_object(frame) {
                return Err(contradiction("a frame").into());
            }
            let function = word(memory, field(frame, FRAME_FUNCTION))?;
            if function != 0 {
                return self.check_function(memory, function);
            }
            frame = word(memory, field(frame, FRAME_PREVIOUS))?;
        }
        Ok(())
    }

    fn check_function(&self, memory: &dyn ReadMemory, function: u64) -> Result<(), NotReady> {
        let offsets = self.layout.offsets;
        let contradiction = |what| self.layout.contradiction(what);
        let mut head = [0; NAME as usize + 8];
        if !is_object(function) {
            return Err(contradiction("a function").into());
        }
        read(memory, function, &mut head)?;
        let kind = part(&head, 0, 1);
        if kind == 0 || kind > MAX_TYPE {
            return Err(contradiction("a function's type").into());
        }
        Text::read(memory, part(&head, NAME, 8))?;
        if kind & 1 == 0 {
            let mut function_bytes = [0; FUNCTION_BYTES as usize];
            read(memory, function, &mut function_bytes)?;
            let [code, file] = [offsets.code, offsets.file].map(|offset| part(&function_bytes, offset, 8));
            if !is_object(code) || !is_object(file) {
                return Err(contradiction("a function's code").into());
            }
            Text::read(memory, file)?;
        }
        Ok(())
    }
}
