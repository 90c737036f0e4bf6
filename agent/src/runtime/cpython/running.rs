//! A running interpreter: whether its layout fits what is there, and what a walk needs of it.

use std::ops::Range;

use thiserror::Error;

use super::layout::{CODE_BYTES, Layout, LayoutError, Version};
use super::offsets::{FrameForm, Offsets};
use super::{ADDRESSES, ReadMemory, Unreadable, field, is_object, part, pointer, read, word};
use crate::runtime::parts::rare_part;

/// Threads and frames that are looked at for code.
const MAX_THREADS: usize = 64;
const MAX_FRAMES: usize = 16;
/// The interpreter runs meanwhile: what made no sense is looked at so many times.
const TRIES: usize = 8;
/// The interpreter's loop has some 60 KB.
const MAX_LOOP_BYTES: u64 = 1 << 20;

/// Why an interpreter with a known layout can't be walked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotReady {
    /// It is setting itself up; another try may go well.
    #[error("{version} has not set itself up yet")]
    Yet {
        /// Which one.
        version: Version,
    },
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

/// What a walker in the kernel needs: `struct so_cpython` of bpf/cpython.h, field for field. Offsets count from the
/// structure's begin, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// Address of `_PyRuntime`.
    pub runtime: u64,
    /// Address of `PyCode_Type`.
    pub code_type: u64,
    /// The interpreter's loop, and its part for what is rare, or twice the same.
    pub loops: [Range<u64>; 2],
    /// In the runtime: the newest interpreter.
    pub interpreters_head: u32,
    /// In an interpreter: the next one.
    pub interpreter_next: u32,
    /// In an interpreter: its newest thread.
    pub threads_head: u32,
    /// In the runtime or the newest interpreter: the thread that ran last.
    pub last_thread: u32,
    /// Which of both.
    pub is_last_in_runtime: bool,
    /// How frames are kept.
    pub form: FrameForm,
    /// In a thread's state: the next one.
    pub thread_next: u16,
    /// In a thread's state: its number, as pthread_self() has it.
    pub thread_id: u16,
    /// In a thread's state: its frame, or its entry.
    pub thread_frame: u16,
    /// Frame of an entry, and the entry before it.
    pub entry: Option<(u16, u16)>,
    /// Of the loop's code: bytes in which an entry joins the chain and gets its frame.
    pub prologue_bytes: u8,
    /// In a frame: its caller's.
    pub frame_previous: u16,
    /// In a frame: its code object.
    pub frame_code: u16,
    /// In a frame: its instruction.
    pub frame_instruction: u16,
    /// In a frame: what says that it is the last one of its call.
    pub frame_mark: u16,
    /// In a code object: what stands for its size.
    pub code_size: u16,
    /// In a code object: its name.
    pub code_name: u16,
    /// In a code object: its qualified name, or its name again.
    pub code_qualname: u16,
    /// In a code object: its file's name.
    pub code_filename: u16,
    /// In a code object: the number of its first line.
    pub code_first_line: u16,
    /// In a code object: where its instructions begin.
    pub code_begin: u16,
    /// In any object: its type.
    pub object_type: u16,
    /// In a frame: which copy of the instructions it runs.
    pub frame_copy: u16,
    /// In a code object: what leads to the copies of its instructions; 0 where there are none.
    pub code_copies: u16,
    /// By how much an instruction's number is to be shifted.
    pub instruction_shift: u8,
}

/// A running interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    pub(super) layout: Layout,
    loops: [Range<u64>; 2],
}

impl Python {
    /// Checks the layout against what is there. `function` gives the limits of the function, or of the part of one,
    /// that an address lies in: as its unwinding information has them, since symbols of parts are rarely there.
    ///
    /// # Errors
    /// [`NotReady::Yet`] where nothing is there to check it against: see [`Python::unchecked`].
    pub fn read(
        memory: &dyn ReadMemory,
        layout: Layout,
        function: &dyn Fn(u64) -> Option<Range<u64>>,
    ) -> Result<Self, NotReady> {
        let python = Self::unchecked(memory, layout, function)?;
        let version = python.layout.version;
        let mut last = NotReady::Yet { version };
        for _ in 0..TRIES {
            match python.check(memory) {
                Ok(()) => return Ok(python),
                Err(error @ NotReady::Yet { .. }) => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// One that may not have begun, of a file whose layout was checked in another process.
    ///
    /// # Errors
    /// Where its loop has no known end.
    pub fn unchecked(
        memory: &dyn ReadMemory,
        layout: Layout,
        function: &dyn Fn(u64) -> Option<Range<u64>>,
    ) -> Result<Self, NotReady> {
        let version = layout.version;
        let limits = |address: u64| {
            let range = function(address)?;
            let is_sane = range.contains(&address) && ADDRESSES.contains(&range.start);
            (is_sane && range.end - range.start <= MAX_LOOP_BYTES).then_some(range)
        };
        let [main, rare] = layout.loops.map(|begin| begin.and_then(limits));
        let main = main.ok_or(NotReady::NoLoop { version })?;
        let rare = rare.or_else(|| rare_part(memory, &main, &limits));
        let rare = rare.unwrap_or_else(|| main.clone());
        Ok(Self {
            layout,
            loops: [main, rare],
        })
    }

    /// What is known of its structures.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What a walker in the kernel needs.
    pub fn walked(&self) -> Walked {
        let Layout {
            runtime,
            code_type,
            offsets,
            ..
        } = self.layout;
        Walked {
            runtime,
            code_type,
            loops: self.loops.clone(),
            interpreters_head: offsets.interpreters_head,
            interpreter_next: offsets.interpreter_next,
            threads_head: offsets.threads_head,
            last_thread: offsets.last_thread,
            is_last_in_runtime: offsets.is_last_in_runtime,
            form: offsets.form,
            thread_next: offsets.thread_next,
            thread_id: offsets.thread_id,
            thread_frame: offsets.thread_frame,
            entry: offsets.entry,
            prologue_bytes: offsets.prologue_bytes,
            frame_previous: offsets.frame_previous,
            frame_code: offsets.frame_code,
            frame_instruction: offsets.frame_instruction,
            frame_mark: offsets.frame_mark,
            code_size: offsets.code_size,
            code_name: offsets.code_name,
            code_qualname: offsets.code_qualname,
            code_filename: offsets.code_filename,
            code_first_line: offsets.code_first_line,
            code_begin: offsets.code_begin,
            object_type: offsets.object_type(),
            frame_copy: offsets.frame_copy,
            code_copies: offsets.code_copies,
            instruction_shift: offsets.instruction_shift,
        }
    }

    /// The newest interpreter has threads, which know it, and code that looks like code, if any runs.
    fn check(&self, memory: &dyn ReadMemory) -> Result<(), NotReady> {
        let Layout {
            version,
            runtime,
            offsets,
            ..
        } = self.layout;
        let head = word(memory, runtime.saturating_add(u64::from(offsets.interpreters_head)))?;
        if head == 0 {
            return Err(NotReady::Yet { version });
        }
        let contradiction = |what| self.layout.contradiction(what);
        if !is_object(head) {
            return Err(contradiction("the list of interpreters").into());
        }
        let mut thread = word(memory, head.saturating_add(u64::from(offsets.threads_head)))?;
        if thread == 0 {
            return Err(NotReady::Yet { version });
        }
        for _ in 0..MAX_THREADS {
            if !is_object(thread) {
                return Err(contradiction("the list of threads").into());
            }
            let owner = word(memory, field(thread, offsets.thread_interpreter))?;
            let id = word(memory, field(thread, offsets.thread_id))?;
            if owner != head || (id != 0 && !is_object(id)) {
                return Err(contradiction("a thread's state").into());
            }
            if self.check_frames(memory, thread)? {
                return Ok(());
            }
            thread = word(memory, field(thread, offsets.thread_next))?;
            if thread == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Does a thread run code that looks like code?
    fn check_frames(&self, memory: &dyn ReadMemory, thread: u64) -> Result<bool, NotReady> {
        let Layout { code_type, offsets, .. } = self.layout;
        let contradiction = |what| self.layout.contradiction(what);
        let mut frame = word(memory, field(thread, offsets.thread_frame))?;
        if let Some((entry_frame, _)) = offsets.entry
            && frame != 0
        {
            frame = word(memory, field(frame, entry_frame))?;
        }
        for _ in 0..MAX_FRAMES {
            if frame == 0 {
                return Ok(false);
            }
            if !is_object(frame) {
                return Err(contradiction("a frame").into());
            }
            if !self.is_shim(memory, frame)? {
                let code = word(memory, field(frame, offsets.frame_code))? & !7;
                if word(memory, field(code, offsets.object_type()))? != code_type {
                    return Err(contradiction("a frame's code").into());
                }
                self.check_code(memory, code)?;
                return Ok(true);
            }
            frame = word(memory, field(frame, offsets.frame_previous))?;
        }
        Ok(false)
    }

    fn is_shim(&self, memory: &dyn ReadMemory, frame: u64) -> Result<bool, Unreadable> {
        /// `FRAME_OWNED_BY_CSTACK`, or since 3.14 `FRAME_OWNED_BY_INTERPRETER`.
        const OWNER_SHIM: u8 = 3;
        let Offsets { form, frame_mark, .. } = self.layout.offsets;
        let mut owner = [0];
        read(memory, field(frame, frame_mark), &mut owner)?;
        Ok(form == FrameForm::Shims && owner[0] >= OWNER_SHIM)
    }

    fn check_code(&self, memory: &dyn ReadMemory, code: u64) -> Result<(), NotReady> {
        let offsets = &self.layout.offsets;
        let mut bytes = [0; CODE_BYTES as usize];
        read(memory, code, &mut bytes)?;
        for (offset, expected, what) in [
            (offsets.code_name, self.layout.text_type, "a function's name"),
            (
                offsets.code_qualname,
                self.layout.text_type,
                "a function's qualified name",
            ),
            (offsets.code_lines, self.layout.bytes_type, "a line table"),
        ] {
            if pointer(memory, field(part(&bytes, offset, 8), offsets.object_type()), what)? != expected {
                return Err(self.layout.contradiction(what).into());
            }
        }
        self.text(memory, part(&bytes, offsets.code_filename, 8))?;
        Ok(())
    }
}
