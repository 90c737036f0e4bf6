//! Languages' runtimes of the programs that are sampled: found when their libraries are mapped, asked for the names of
//! frames when a stack is new.
//!
//! What runs is asked while it lives, on the sampling thread's behalf but never on it: a process may answer late, or
//! not at all. What was replaced meanwhile has no name, never another one's.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::elf::{Image, code_address, dynamic_symbols};
use crate::frames::{Frame, FrameKind, Frames, ProgramKey};
use crate::hash::FastMap;
use crate::kernel::{RuntimeWord, so_runtime};
use crate::process::{Module, Table};
use crate::runtime::ProcessMemory;
use crate::runtime::jvm::{BlobKind, JavaFrame, Jvm, Layout, Place, Unreadable, Walked};
use crate::sys::guarded_for;

/// Places that are remembered, in each of two generations.
const MAX_PLACES: usize = 32_768;
/// Places that are asked for in a second, of all programs: one takes some 50 µs.
const MAX_ASKED_PER_SECOND: u32 = 4_000;
/// A runtime that has just begun says what makes no sense: it is looked at again after this, or after a part of the
/// time that it has waited, and given up after the last.
const RETRY_NS: u64 = 25_000_000;
const RETRY_PART: u64 = 8;
const GIVE_UP_NS: u64 = 20_000_000_000;
/// What shows that a process has a JVM.
const LIBJVM: &str = "libjvm.so";
/// `profile.frame.type` of OTLP.
const JVM: &str = "jvm";

/// A frame of a runtime as the kernel side tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RuntimePlace {
    pub(super) frame: RuntimeWord,
    /// None where it was left out.
    pub(super) detail: Option<u64>,
    /// It was interrupted there, which is no return address.
    pub(super) innermost: bool,
}

/// What is known of a place.
pub(super) struct Known {
    pub(super) frames: Frames,
    /// Asking again brings nothing else.
    pub(super) is_final: bool,
    /// It stands for frames that are not on the stack.
    pub(super) is_gap: bool,
}

/// What has been done, for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RuntimeStats {
    /// Frames of code that was replaced before it could be named.
    pub(super) replaced: u64,
    /// Frames whose process could not be read, or said what makes no sense.
    pub(super) unreadable: u64,
    /// Frames that were not asked for, since too many were.
    pub(super) put_off: u64,
    /// Programs whose runtime has a layout that is not known.
    pub(super) unknown: u64,
}

#[derive(Debug)]
enum State {
    /// It may not have begun.
    Waiting { since_ns: u64, next_ns: u64 },
    Ready {
        jvm: Arc<Jvm>,
        path: Arc<str>,
        described: Box<so_runtime>,
    },
    /// Its layout is not known.
    Unknown,
}

/// The runtimes of all programs, and names of their frames.
#[derive(Debug, Default)]
pub(super) struct Runtimes {
    programs: BTreeMap<ProgramKey, State>,
    young: FastMap<(ProgramKey, RuntimePlace), Frames>,
    old: FastMap<(ProgramKey, RuntimePlace), Frames>,
    /// Each distinct frame once, as long as a place has it.
    interned: FastMap<Arc<Frame>, ()>,
    asked_in_second: (u64, u32),
    stats: RuntimeStats,
}

impl Runtimes {
    pub(super) fn stats(&self) -> RuntimeStats {
        self.stats
    }

    /// By what the kernel side walks a program's run-time code.
    pub(super) fn described(&self, key: ProgramKey) -> Option<&so_runtime> {
        match self.programs.get(&key)? {
            State::Ready { described, .. } => Some(described),
            _ => None,
        }
    }

    /// A program is gone.
    pub(super) fn forget(&mut self, key: ProgramKey) {
        self.programs.remove(&key);
    }

    /// A program's executable memory has changed: looks whether a runtime is there.
    pub(super) fn meet(&mut self, key: ProgramKey, table: &Table, now_ns: u64) {
        match self.programs.get(&key) {
            Some(State::Waiting { .. }) => {}
            Some(_) => return,
            None if library_of(key, table).is_some() => {
                let (since_ns, next_ns) = (now_ns, now_ns);
                self.programs.insert(key, State::Waiting { since_ns, next_ns });
            }
            None => return,
        }
        self.look(key, table, now_ns);
    }

    /// True where the program's runtime may be about to be known: stacks through what it made wait for that.
    pub(super) fn is_waiting(&self, key: ProgramKey) -> bool {
        matches!(self.programs.get(&key), Some(State::Waiting { .. }))
    }

    /// When the next look at a runtime is due; none where there is none.
    pub(super) fn next_look_ns(&self) -> Option<u64> {
        let next = self.programs.values().filter_map(|state| match state {
            State::Waiting { next_ns, .. } => Some(*next_ns),
            _ => None,
        });
        next.min()
    }

    /// Looks again at runtimes that had not begun; gives the programs of which it is known since, or given up.
    pub(super) fn look_again(&mut self, table: &Table, now_ns: u64) -> Vec<ProgramKey> {
        let is_due = |state: &State| matches!(state, State::Waiting { next_ns, .. } if *next_ns <= now_ns);
        let due: Vec<ProgramKey> = (self.programs.iter())
            .filter(|(_, state)| is_due(state))
            .map(|(key, _)| *key)
            .collect();
        for key in &due {
            self.look(*key, table, now_ns);
        }
        due.into_iter().filter(|key| !self.is_waiting(*key)).collect()
    }

    fn look(&mut self, key: ProgramKey, table: &Table, now_ns: u64) {
        let Some(State::Waiting { since_ns, next_ns }) = self.programs.get_mut(&key) else {
            return;
        };
        let waited_ns = now_ns.saturating_sub(*since_ns);
        *next_ns = now_ns + RETRY_NS.max(waited_ns / RETRY_PART);
        let (Some((library, bias)), Some(tgid)) = (library_of(key, table), table.proc_id(key)) else {
            self.programs.remove(&key);
            return;
        };
        let symbols = symbols_of(&library, bias);
        let read = move || {
            let memory = ProcessMemory::for_a_layout(tgid);
            let symbol = |name: &str| {
                symbols
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, address)| *address)
            };
            let layout = Layout::read(&memory, &symbol).map_err(|error| error.to_string())?;
            let jvm = Jvm::read(&memory, layout).map_err(|error| error.to_string())?;
            described(&jvm.walked()).map(|described| (jvm, described))
        };
        let is_late = waited_ns >= GIVE_UP_NS;
        let state = match guarded_for(tgid, read) {
            Some(Ok((jvm, described))) => State::Ready {
                described: Box::new(described),
                jvm: Arc::new(jvm),
                path: Arc::clone(&library.path),
            },
            Some(Err(reason)) if is_late => {
                tracing::warn!(reason, tgid, "cannot read a JVM: its frames have no names");
                self.stats.unknown += 1;
                State::Unknown
            }
            _ => return,
        };
        self.programs.insert(key, state);
    }

    /// The frames of a place, leaf first: of compiled code also the methods that were inlined there. `tgid` is the
    /// program's process in /proc while it runs.
    pub(super) fn frames(&mut self, key: ProgramKey, place: RuntimePlace, tgid: Option<u32>, now_ns: u64) -> Known {
        if let Some(frames) = self.recall(key, place) {
            let is_gap = frames.iter().any(|frame| is_gap(frame));
            return Known {
                frames,
                is_final: true,
                is_gap,
            };
        }
        let (Some(State::Ready { jvm, path, .. }), Some(tgid)) = (self.programs.get(&key), tgid) else {
            self.stats.unreadable += 1;
            return self.nameless(true);
        };
        let second = now_ns / 1_000_000_000;
        if self.asked_in_second.0 != second {
            self.asked_in_second = (second, 0);
        }
        if self.asked_in_second.1 >= MAX_ASKED_PER_SECOND {
            self.stats.put_off += 1;
            return self.nameless(false);
        }
        self.asked_in_second.1 += 1;
        let (jvm, path) = (Arc::clone(jvm), Arc::clone(path));
        let asked = guarded_for(tgid, move || named(&jvm, &ProcessMemory::for_a_frame(tgid), place));
        match asked {
            Some(Ok(named)) => {
                let frames = named.into_iter().map(|frame| self.intern(frame.into_frame(&path)));
                let frames: Frames = frames.collect();
                self.remember(key, place, Arc::clone(&frames));
                let is_gap = frames.iter().any(|frame| is_gap(frame));
                Known {
                    frames,
                    is_final: true,
                    is_gap,
                }
            }
            Some(Err(Unreadable::Replaced)) => {
                self.stats.replaced += 1;
                self.nameless(true)
            }
            Some(Err(_)) => {
                self.stats.unreadable += 1;
                self.nameless(true)
            }
            None => {
                self.stats.put_off += 1;
                self.nameless(false)
            }
        }
    }

    fn nameless(&mut self, is_final: bool) -> Known {
        let frame = self.intern(Frame {
            kind: FrameKind::Interpreted(JVM),
            module: "".into(),
            build_id: None,
            function: None,
            file: None,
            line: 0,
            inlined: false,
            offset: None,
        });
        Known {
            frames: Arc::from([frame]),
            is_final,
            is_gap: false,
        }
    }

    fn recall(&mut self, key: ProgramKey, place: RuntimePlace) -> Option<Frames> {
        if let Some(frames) = self.young.get(&(key, place)) {
            return Some(Arc::clone(frames));
        }
        let frames = self.old.remove(&(key, place))?;
        self.remember(key, place, Arc::clone(&frames));
        Some(frames)
    }

    fn remember(&mut self, key: ProgramKey, place: RuntimePlace, frames: Frames) {
        if self.young.len() >= MAX_PLACES {
            self.old = std::mem::take(&mut self.young);
            self.interned.retain(|frame, ()| Arc::strong_count(frame) > 1);
        }
        self.young.insert((key, place), frames);
    }

    fn intern(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some((known, ())) = self.interned.get_key_value(&frame) {
            return Arc::clone(known);
        }
        let frame = Arc::new(frame);
        self.interned.insert(Arc::clone(&frame), ());
        frame
    }
}

/// The library that shows a runtime, and what is added to its addresses in the process.
fn library_of(key: ProgramKey, table: &Table) -> Option<(Arc<Module>, u64)> {
    let is_library = |module: &&Arc<Module>| module.path.rsplit('/').next() == Some(LIBJVM);
    let library = Arc::clone(table.modules(key).find(is_library)?);
    let image = Image::open(|offset, into: &mut [u8]| library.read_at(offset, into))?;
    let mapped = table.code_ranges(key).find(|range| range.source == library.id)?;
    let address = code_address(&image.segments, mapped.offset)?;
    let bias = mapped.start.wrapping_sub(address);
    Some((library, bias))
}

/// What leads to HotSpot's tables of its own layout.
const SYMBOLS: [&str; 24] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryTypeStringOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySuperclassNameOffset",
    "gHotSpotVMTypeEntryIsOopTypeOffset",
    "gHotSpotVMTypeEntryIsIntegerTypeOffset",
    "gHotSpotVMTypeEntryIsUnsignedOffset",
    "gHotSpotVMTypeEntrySizeOffset",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMIntConstants",
    "gHotSpotVMIntConstantEntryNameOffset",
    "gHotSpotVMIntConstantEntryValueOffset",
    "gHotSpotVMIntConstantEntryArrayStride",
    "gHotSpotVMLongConstants",
    "gHotSpotVMLongConstantEntryNameOffset",
    "gHotSpotVMLongConstantEntryValueOffset",
    "gHotSpotVMLongConstantEntryArrayStride",
];

fn symbols_of(library: &Module, bias: u64) -> Vec<(&'static str, u64)> {
    let Some(image) = Image::open(|offset, into: &mut [u8]| library.read_at(offset, into)) else {
        return Vec::new();
    };
    let found = dynamic_symbols(&image, &SYMBOLS);
    let known = SYMBOLS.into_iter().zip(found);
    known
        .filter_map(|(name, address)| Some((name, address?.wrapping_add(bias))))
        .collect()
}

/// A VM as the kernel side wants it.
fn described(walked: &Walked) -> Result<so_runtime, String> {
    let lacks = |what: &str| format!("HotSpot: {what}");
    // What is read of a blob's begin ends there: `SO_JVM_BLOB_WORDS` of bpf/abi.h.
    const READ_BYTES: u16 = 128;
    let near = |place: Place| {
        let fits =
            place.offset + u16::from(place.width) <= READ_BYTES && place.offset % 8 + u16::from(place.width) <= 8;
        fits.then_some(place.offset)
            .ok_or_else(|| lacks("a code blob is of another form"))
    };
    let mut runtime = so_runtime {
        kind: 1,
        ..so_runtime::default()
    };
    let jvm = &mut runtime.jvm;
    jvm.interpreter_begin = walked.interpreter_begin;
    jvm.interpreter_bytes = walked.interpreter_end.saturating_sub(walked.interpreter_begin);
    if walked.heaps.len() > jvm.heaps.len() {
        return Err(lacks("more heaps of code than are known"));
    }
    for (to, heap) in jvm.heaps.iter_mut().zip(&walked.heaps) {
        // The map counts from the first segment.
        to.begin = heap.first_segment;
        to.bytes = heap.end.saturating_sub(heap.first_segment);
        to.segments = heap.segment_map;
        to.segment_shift = u32::from(heap.segment_shift);
    }
    jvm.heap_count = walked.heaps.len() as u16;
    jvm.block_header_bytes = walked.heap_header_bytes;
    if walked.frame_words.width != 4 {
        return Err(lacks("sizes of frames are of another form"));
    }
    jvm.frame_size = near(walked.frame_words)?;
    jvm.frame_complete = near(walked.frame_complete)?;
    jvm.frame_complete_bytes = walked.frame_complete.width;
    jvm.code_begin = near(walked.code_begin)?;
    jvm.code_begin_bytes = walked.code_begin.width;
    jvm.compile_id = walked.compile_id.offset;
    jvm.deopt_handler = walked.deopt.offset;
    jvm.deopt_handler_bytes = match walked.deopt.width {
        width @ (4 | 8) => width,
        _ => 0,
    };
    jvm.orig_pc = walked.orig_pc.offset;
    jvm.const_method = walked.const_method;
    jvm.const_method_bytes = walked.const_method_bytes;
    jvm.code_size = walked.code_bytes.offset;
    jvm.slot_method = i32::from(walked.frame.method / 8);
    jvm.slot_bcp = i32::from(walked.frame.bcp / 8);
    jvm.slot_sender_sp = i32::from(walked.frame.sender_sp / 8);
    Ok(runtime)
}

/// A place's name, before its frame is made.
enum Named {
    Java(JavaFrame),
    /// Frames that wait in the heap until the ones below them have returned.
    InHeap,
    /// Code of the VM itself, by the VM's name for it.
    Stub(String),
}

impl Named {
    fn into_frame(self, library: &Arc<str>) -> Frame {
        let (module, function, file, line, inlined) = match self {
            Self::Java(frame) => {
                let package = frame
                    .class
                    .rsplit_once('.')
                    .map_or(&*frame.class, |(package, _)| package);
                let function = format!("{}.{}", frame.class, frame.method);
                (package.into(), function, frame.file, frame.line, frame.inlined)
            }
            Self::Stub(name) => (Arc::clone(library), name, None, 0, false),
            Self::InHeap => return gap(),
        };
        Frame {
            kind: FrameKind::Interpreted(JVM),
            module,
            build_id: None,
            function: Some(function.into()),
            file: file.map(Arc::from),
            line,
            inlined,
            offset: None,
        }
    }
}

/// Stands for frames of which nobody knows how many there are.
fn gap() -> Frame {
    Frame {
        kind: FrameKind::Unknown,
        module: "".into(),
        build_id: None,
        function: Some("[… frames]".into()),
        file: None,
        line: 0,
        inlined: false,
        offset: None,
    }
}

fn is_gap(frame: &Frame) -> bool {
    frame.kind == FrameKind::Unknown
}

/// Bytecode offset of a detail that says that nobody knows it.
const NO_BYTECODE: u64 = 0xffff;

fn named(jvm: &Jvm, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Named>, Unreadable> {
    let frames = match (place.frame, place.detail) {
        (RuntimeWord::JvmInterpreted(method), Some(detail)) => {
            let bytecode = detail & NO_BYTECODE;
            if jvm.print_of(memory, method)? != detail >> 16 {
                return Err(Unreadable::Replaced);
            }
            let bci = u16::try_from(bytecode)
                .ok()
                .filter(|bci| u64::from(*bci) != NO_BYTECODE);
            let frames = jvm.interpreted(memory, method, bci.unwrap_or(0))?;
            let line = |frame: JavaFrame| JavaFrame {
                line: if bci.is_some() { frame.line } else { 0 },
                ..frame
            };
            frames.into_iter().map(line).collect()
        }
        (RuntimeWord::JvmCompiled(pc), Some(detail)) => {
            let inside = if place.innermost { pc } else { pc.wrapping_sub(1) };
            let blob = jvm.blob_at(memory, inside).ok_or(Unreadable::Replaced)?;
            match blob.kind {
                BlobKind::Nmethod | BlobKind::NativeNmethod => {
                    jvm.compiled(memory, blob.address, detail as u32, pc, place.innermost)?
                }
                _ => {
                    let name = jvm.stub_name(memory, blob.address).ok_or(Unreadable::Replaced)?;
                    // What a virtual thread returns to that has waited: its callers are not back on the stack.
                    let is_in_heap = !place.innermost && name.contains("continuation");
                    return Ok(vec![if is_in_heap { Named::InHeap } else { Named::Stub(name) }]);
                }
            }
        }
        (_, None) => return Err(Unreadable::Replaced),
    };
    Ok(frames.into_iter().map(Named::Java).collect())
}
