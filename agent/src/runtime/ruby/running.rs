//! A running interpreter: where its loop is, and what a walk needs of it.

use std::ops::Range;

use super::layout::{Current, Layout, LayoutError, MappedInterpreter, Version};
use super::offsets::{
    BODY_ENCODED, BODY_SIZE, CONTEXT_FRAME, CONTEXT_STACK, CONTEXT_STACK_WORDS, FRAME_ENV, FRAME_ISEQ, IMEMO_ISEQ,
    IMEMO_SHIFT, ISEQ_BODY, T_IMEMO, TYPE_MASK,
};
use super::{ADDRESSES, ReadMemory, Unreadable, field, is_object, number, word};
use crate::runtime::parts::rare_part;

/// Frames that are looked at for code.
const MAX_FRAMES: u64 = 64;
/// The interpreter's loop has some 100 KB.
const MAX_LOOP_BYTES: u64 = 1 << 20;
/// Instead of an offset: `SO_RUBY_NO_NATIVE` of bpf/ruby.h.
const NO_NATIVE: u16 = 0xffff;

/// What a walker in the kernel needs: `struct so_ruby` of bpf/runtime_abi.h, field for field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// The interpreter's loop, and its part for what is rare, or twice the same.
    pub loops: [Range<u64>; 2],
    /// The same of what calls it; both empty where that is not known.
    pub callers: [Range<u64>; 2],
    /// Code of the file that has the interpreter.
    pub code: Range<u64>,
    /// An address, or an offset in the thread's own storage; 0: neither.
    pub current: u64,
    /// Which of both.
    pub is_current_local: bool,
    /// The head of the list of threads.
    pub threads: u64,
    /// In an execution context: its thread.
    pub context_thread: u16,
    /// In a thread: its execution context.
    pub thread_context: u16,
    /// In a thread: what leads to the native one; all ones where it is in the thread itself.
    pub thread_native: u16,
    /// In either of them: the native thread's number, as pthread_self() has it.
    pub thread_id: u16,
    /// Of a control frame.
    pub frame_bytes: u16,
}

/// A running interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruby {
    pub(super) layout: Layout,
    code: Range<u64>,
    loops: [Range<u64>; 2],
    callers: [Range<u64>; 2],
}

impl Ruby {
    /// Finds the layout, and checks it against what is there.
    pub fn read(memory: &dyn ReadMemory, place: &MappedInterpreter<'_>) -> Result<Self, LayoutError> {
        let layout = Layout::read(memory, place)?;
        let version = layout.version;
        let missing = |what| LayoutError::Yet { version, what };
        let limits = |address: u64| {
            let range = (place.function)(address)?;
            let is_sane = range.contains(&address) && ADDRESSES.contains(&range.start);
            (is_sane && range.end - range.start <= MAX_LOOP_BYTES).then_some(range)
        };
        let label = layout.label(memory, &place.code)?.ok_or(missing("code that runs"))?;
        let main = limits(label).ok_or(missing("known end of the interpreter's loop"))?;
        let rare = rare_part(memory, &main, &limits).unwrap_or_else(|| main.clone());
        let calls = (place.calls)(main.start).into_iter();
        let mut callers: Vec<Range<u64>> = Vec::new();
        for caller in calls.filter_map(limits) {
            if !callers.contains(&caller) && caller != main && caller != rare {
                callers.push(caller);
            }
        }
        let callers = match &callers[..] {
            // In one function with the loop, or called from more than one place that only the loop's own file knows.
            [] => [0..0, 0..0],
            [only] => [
                only.clone(),
                rare_part(memory, only, &limits).unwrap_or_else(|| only.clone()),
            ],
            [first, second, ..] => [first.clone(), second.clone()],
        };
        Ok(Self {
            layout,
            code: place.code.clone(),
            loops: [main, rare],
            callers,
        })
    }

    /// Which one it is.
    pub fn version(&self) -> Version {
        self.layout.version
    }

    /// What a walker in the kernel needs.
    pub fn walked(&self) -> Walked {
        let Layout {
            offsets,
            current,
            threads,
            ..
        } = self.layout;
        let (current, is_current_local) = match current {
            Current::Address(address) => (address, false),
            Current::Local(offset) => (offset, true),
            Current::None => (0, false),
        };
        Walked {
            loops: self.loops.clone(),
            callers: self.callers.clone(),
            code: self.code.clone(),
            current,
            is_current_local,
            threads,
            context_thread: offsets.context_thread,
            thread_context: offsets.thread_context,
            thread_native: offsets.thread_native.unwrap_or(NO_NATIVE),
            thread_id: offsets.thread_id,
            frame_bytes: offsets.frame_bytes,
        }
    }
}

impl Layout {
    /// The first instruction of code that the main thread runs is an address in the interpreter's loop.
    fn label(&self, memory: &dyn ReadMemory, code: &Range<u64>) -> Result<Option<u64>, Unreadable> {
        let context = word(memory, field(self.main_thread, self.offsets.thread_context))?;
        let stack = word(memory, field(context, CONTEXT_STACK))?;
        let words = word(memory, field(context, CONTEXT_STACK_WORDS))?;
        let end = stack.saturating_add(words.saturating_mul(8));
        let frame = word(memory, field(context, CONTEXT_FRAME))?;
        let frame_bytes = u64::from(self.offsets.frame_bytes);
        // Whole frames, up to the stack's end.
        if !(stack..end).contains(&frame) || !(end - frame).is_multiple_of(frame_bytes) {
            return Ok(None);
        }
        for number_of in 0..MAX_FRAMES.min((end - frame) / frame_bytes) {
            let at = frame + number_of * frame_bytes;
            let iseq = word(memory, field(at, FRAME_ISEQ))?;
            if is_object(iseq) && is_object(word(memory, field(at, FRAME_ENV))?) {
                let flags = word(memory, iseq)?;
                let body = word(memory, field(iseq, ISEQ_BODY))?;
                let is_code = flags & TYPE_MASK == T_IMEMO && flags >> IMEMO_SHIFT & 15 == IMEMO_ISEQ;
                if !is_code || number(memory, field(body, BODY_SIZE), 4)? == 0 {
                    return Ok(None);
                }
                let label = word(memory, word(memory, field(body, BODY_ENCODED))?)?;
                return Ok(Some(label).filter(|label| code.contains(label)));
            }
        }
        Ok(None)
    }
}
