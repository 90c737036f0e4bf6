//! A running VM: its code heaps, its interpreter, and where a walk finds what it needs in them.

use thiserror::Error;

use super::layout::{BlobAddress, Heaps, Layout, NumberField};
use super::{ADDRESSES, ReadMemory, Unreadable, number, pointer};

/// Three in today's VMs, four with the one for hot code.
const MAX_HEAPS: i64 = 8;
/// `ReservedCodeCacheSize` ends at 2 GiB.
const MAX_HEAP_BYTES: u64 = 1 << 32;
const SEGMENT_SHIFTS: std::ops::RangeInclusive<i64> = 3..=16;
const MAX_INTERPRETER_BYTES: u64 = 16 << 20;
/// Codelets of a VM that has all of them: some 270 for each of the last releases.
const MIN_CODELETS: i64 = 200;

/// Why a VM with a known layout can't be walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotReady {
    /// It is setting itself up; another try may go well.
    #[error("the VM has not set up its code yet")]
    Yet,
    /// Its memory can't be read, or makes no sense.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// A range of addresses for code, cut into segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeHeap {
    /// What is reserved: first address and one behind the last.
    pub begin: u64,
    /// Address behind the last one that is reserved.
    pub end: u64,
    /// Segment 0 begins here; in all known VMs equal to `begin`.
    pub first_segment: u64,
    /// Address of the map, a byte a segment: 0 where a block begins, 0xff in what is free, else how many segments to
    /// step back.
    pub segment_map: u64,
    /// Log2 of a segment's bytes.
    pub segment_shift: u8,
}

impl CodeHeap {
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }
}

/// Slots of an interpreter's frame, in bytes from rbp. The saved rbp lies at 0 and the return address at 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterpreterFrame {
    /// The caller's stack pointer before the interpreter made room for locals.
    pub sender_sp: i16,
    /// Its stack pointer before a call of its own; zero while there is none.
    pub last_sp: i16,
    /// `Method*`.
    pub method: i16,
    /// The method's locals.
    pub locals: i16,
    /// Pointer to the bytecode; as of the last call, r13 has the present one. Zero for native methods.
    pub bcp: i16,
}

impl InterpreterFrame {
    /// JDK 9 put the class' mirror behind the method (frame_x86.hpp).
    fn of(has_mirror: bool) -> Self {
        let mirror = if has_mirror { -8 } else { 0 };
        Self {
            sender_sp: -8,
            last_sp: -16,
            method: -24,
            // Between them lie the method's profile and the constant pool's cache.
            locals: -48 + mirror,
            bcp: -56 + mirror,
        }
    }
}

/// What a walker in the kernel needs. Offsets count from the object's begin, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// At most 8.
    pub heaps: Vec<CodeHeap>,
    /// Of the header before each block's blob.
    pub heap_header_bytes: u16,
    /// In that header: a byte, zero while the block is free.
    pub heap_used_offset: u16,
    /// The interpreter's code: first address and one behind the last.
    pub interpreter_begin: u64,
    /// Address behind its last one.
    pub interpreter_end: u64,
    /// Slots of the interpreter's frames.
    pub frame: InterpreterFrame,

    /// CodeBlob: bytes of it all.
    pub blob_bytes: NumberField,
    /// CodeBlob: bytes of its header; it is compiled code, or a native method's wrapper, where they are
    /// `nmethod_header_bytes`.
    pub blob_header_bytes: NumberField,
    /// CodeBlob: the header's bytes of compiled code.
    pub nmethod_header_bytes: u16,
    /// CodeBlob: its frame, return address included, in words. Zero or less where frames of it have no fixed size.
    pub frame_words: NumberField,
    /// CodeBlob: how far behind the code's begin its frame is set up; -1 where it never is.
    pub frame_complete: NumberField,
    /// CodeBlob: where its code begins. An address where 8 bytes wide, else a distance from the blob.
    pub code_begin: NumberField,
    /// CodeBlob: pointer to its name.
    pub blob_name: u16,
    /// CodeBlob: what kind it is, since JDK 23.
    pub kind: Option<NumberField>,

    /// nmethod: number of the compilation that made it.
    pub compile_id: NumberField,
    /// nmethod: pointer to its method.
    pub method: u16,
    /// nmethod: where its frames keep the pc that was replaced by `deopt`, in bytes from the stack pointer.
    pub orig_pc: NumberField,
    /// nmethod: the address that return addresses into it are replaced by when it is deoptimized; an address where 8
    /// bytes wide, else a distance from the blob.
    pub deopt: NumberField,
    /// The same at calls of method handles; none in later VMs.
    pub deopt_mh: Option<NumberField>,

    /// Method: pointer to its ConstMethod.
    pub const_method: u16,
    /// The bytecodes begin as many bytes behind a ConstMethod's begin.
    pub const_method_bytes: u16,
    /// ConstMethod: bytes of its bytecodes.
    pub code_bytes: NumberField,
    /// From ConstMethod to its pool, the pool's class, and the symbol of that class' name.
    pub class_name: [u16; 3],
    /// ConstMethod: the index of its name in the pool, whose entries begin behind a header.
    pub name: NumberField,
    /// That header's bytes.
    pub pool_bytes: u16,
    /// Symbol: how long it is.
    pub symbol_length: NumberField,
    /// Symbol: where its text begins.
    pub symbol_body: u16,
}

/// A running VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jvm {
    pub(super) layout: Layout,
    heaps: Vec<CodeHeap>,
    interpreter: std::ops::Range<u64>,
}

impl Jvm {
    /// Finds the code heaps and the interpreter. Neither moves once they are there.
    pub fn read(memory: &dyn ReadMemory, layout: Layout) -> Result<Self, NotReady> {
        let interpreter = interpreter(memory, &layout)?;
        let heaps = heaps(memory, &layout)?;
        if heaps.is_empty() {
            return Err(NotReady::Yet);
        }
        if !heaps.iter().any(|heap| heap.contains(interpreter.start)) {
            return Err(nonsense("the interpreter's code", interpreter.start).into());
        }
        Ok(Self {
            layout,
            heaps,
            interpreter,
        })
    }

    /// What is known of its objects.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What a walker in the kernel needs.
    pub fn walked(&self) -> Walked {
        let Layout { heap, blob, method, .. } = self.layout;
        Walked {
            heaps: self.heaps.clone(),
            heap_header_bytes: heap.header_bytes,
            heap_used_offset: heap.header_used,
            interpreter_begin: self.interpreter.start,
            interpreter_end: self.interpreter.end,
            frame: InterpreterFrame::of(self.layout.has_mirror()),
            blob_bytes: blob.bytes,
            blob_header_bytes: blob.header_bytes,
            nmethod_header_bytes: blob.nmethod_bytes,
            frame_words: blob.frame_words,
            frame_complete: blob.frame_complete,
            code_begin: blob.code_begin.single(),
            blob_name: blob.name,
            kind: blob.kind,
            compile_id: blob.compile_id,
            method: blob.method,
            orig_pc: blob.orig_pc,
            deopt: blob.deopt.single(),
            deopt_mh: blob.deopt_mh.map(BlobAddress::single),
            const_method: method.const_method,
            const_method_bytes: method.const_bytes,
            code_bytes: method.code_bytes,
            class_name: [method.pool, method.holder, method.class_name],
            name: method.name,
            pool_bytes: method.pool_bytes,
            symbol_length: method.symbol_length,
            symbol_body: method.symbol_body,
        }
    }

    pub(super) fn heap_of(&self, address: u64) -> Option<&CodeHeap> {
        self.heaps.iter().find(|heap| heap.contains(address))
    }

    /// Is an address one of the interpreter's code?
    pub fn is_interpreter(&self, pc: u64) -> bool {
        self.interpreter.contains(&pc)
    }
}

fn nonsense(what: &'static str, address: u64) -> Unreadable {
    Unreadable::Nonsense { what, address }
}

/// The interpreter's codelets.
fn interpreter(memory: &dyn ReadMemory, layout: &Layout) -> Result<std::ops::Range<u64>, NotReady> {
    let stubs = layout.stubs;
    let queue = match number(memory, stubs.at, 8)? {
        0 => return Err(NotReady::Yet),
        _ => pointer(memory, stubs.at, "the interpreter's queue")?,
    };
    let count = stubs.count.get(memory, queue)?;
    let end = stubs.end.get(memory, queue)?;
    let is_complete = match stubs.is_complete {
        Some(flag) => number(memory, flag, 1)? != 0,
        // The queue gives back what it didn't need.
        None => end == stubs.limit.get(memory, queue)? || count >= MIN_CODELETS,
    };
    if count <= 0 || !is_complete {
        return Err(NotReady::Yet);
    }
    let begin = number(memory, queue.saturating_add(u64::from(stubs.buffer)), 8)?;
    let bytes = u64::try_from(end).unwrap_or(0);
    if !ADDRESSES.contains(&begin) || bytes == 0 || bytes > MAX_INTERPRETER_BYTES {
        return Err(nonsense("the interpreter's code", begin).into());
    }
    Ok(begin..begin.saturating_add(bytes))
}

fn heaps(memory: &dyn ReadMemory, layout: &Layout) -> Result<Vec<CodeHeap>, NotReady> {
    let exists = |at| Ok::<_, Unreadable>(number(memory, at, 8)? != 0);
    match layout.heaps {
        Heaps::One(at) | Heaps::List { at, .. } if !exists(at)? => Err(NotReady::Yet),
        Heaps::One(at) => Ok(vec![heap(memory, layout, pointer(memory, at, "the code heap")?)?]),
        Heaps::List { at, length, data } => {
            let list = pointer(memory, at, "the list of code heaps")?;
            let length = length.get(memory, list)?;
            if !(0..=MAX_HEAPS).contains(&length) {
                return Err(nonsense("the number of code heaps", list).into());
            }
            let data = pointer(memory, list.saturating_add(u64::from(data)), "the list of code heaps")?;
            let places = (0..length.unsigned_abs()).map(|index| data.saturating_add(8 * index));
            places
                .map(|at| heap(memory, layout, pointer(memory, at, "a code heap")?))
                .collect()
        }
    }
}

fn heap(memory: &dyn ReadMemory, layout: &Layout, object: u64) -> Result<CodeHeap, NotReady> {
    let fields = layout.heap;
    let word = |offset| number(memory, object.saturating_add(u64::from(offset)), 8);
    let heap = CodeHeap {
        begin: word(fields.low_boundary)?,
        end: word(fields.high_boundary)?,
        first_segment: word(fields.low)?,
        segment_map: word(fields.segmap_low)?,
        segment_shift: 0,
    };
    if heap.begin == 0 || heap.segment_map == 0 {
        return Err(NotReady::Yet);
    }
    let bytes = heap
        .end
        .checked_sub(heap.begin)
        .filter(|bytes| *bytes <= MAX_HEAP_BYTES);
    let is_sane = bytes.is_some()
        && ADDRESSES.contains(&heap.begin)
        && heap.end <= ADDRESSES.end
        && ADDRESSES.contains(&heap.segment_map)
        && heap.contains(heap.first_segment);
    let shift = fields.log2_segment_bytes.get(memory, object)?;
    let shift = Some(shift).filter(|shift| is_sane && SEGMENT_SHIFTS.contains(shift));
    let segment_shift = shift.and_then(|shift| u8::try_from(shift).ok());
    Ok(CodeHeap {
        segment_shift: segment_shift.ok_or_else(|| nonsense("a code heap", object))?,
        ..heap
    })
}
