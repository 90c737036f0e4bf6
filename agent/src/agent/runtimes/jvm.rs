//! HotSpot: which programs have it, what the kernel side is told of it, names of its frames.

use std::sync::Arc;

use super::language::{Language, Reader, Reading};
use super::library::{KnownFile, KnownFiles, Library, SymbolTables};
use super::place::{Nameless, RuntimePlace};
use crate::frames::{Frame, FrameKind, ProgramKey};
use crate::kernel::{RuntimeWord, so_jvm, so_runtime};
use crate::process::{Module, Table};
use crate::runtime::ProcessMemory;
use crate::runtime::jvm::{BlobKind, JavaFrame, Jvm, Layout, NumberField, Walked};

/// `profile.frame.type` of OTLP.
const LANGUAGE: &str = "jvm";
/// What shows that a process has a JVM.
const LIBJVM: &str = "libjvm.so";

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

/// `SO_RUNTIME_JVM` of bpf/runtime_abi.h.
const KIND: u32 = 1;

/// Of a bytecode's offset in the detail of an interpreted frame.
const BYTECODE_BITS: u32 = 16;

pub(super) struct HotSpot;

impl Language for HotSpot {
    fn name(&self) -> &'static str {
        LANGUAGE
    }

    fn walks_copies(&self) -> bool {
        true
    }

    /// An interpreted method, whose address has no lowest bit. What is inlined is another one at each place.
    fn function_of(&self, place: RuntimePlace) -> Option<RuntimePlace> {
        let (RuntimeWord::JvmInterpreted(method), Some(detail)) = (place.frame, place.detail) else {
            return None;
        };
        let frame = RuntimeWord::JvmInterpreted(method | 1);
        Some(RuntimePlace::function(frame, detail >> BYTECODE_BITS))
    }

    fn find(&self, key: ProgramKey, table: &Table, known: &mut KnownFiles) -> Option<(Library, Arc<KnownFile>)> {
        let is_library = |module: &&Arc<Module>| module.is_open() && Library::base_name(module) == LIBJVM;
        let module = table.modules(key).find(is_library)?;
        let file = known.entry(module.id);
        let read = || Arc::new(KnownFile::read(module, SYMBOLS[0], &SYMBOLS, SymbolTables::All));
        let file = Arc::clone(file.or_insert_with(read));
        Some((Library::of(key, module, table)?, file))
    }

    fn reading(&self, tgid: u32, library: &Library, file: &Arc<KnownFile>) -> Reading {
        let (bias, path, file) = (library.bias, Arc::clone(&library.module.path), Arc::clone(file));
        Box::new(move || {
            let memory = ProcessMemory::for_a_layout(tgid);
            let layout = Layout::read(&memory, &|name| file.address_of(name, bias));
            let layout = layout.map_err(|error| error.to_string())?;
            let jvm = Jvm::read(&memory, layout).map_err(|error| error.to_string())?;
            let described = described(&jvm.walked())?;
            Ok(Arc::new(Machine { jvm, path, described }))
        })
    }
}

/// The machine of one program.
#[derive(Debug)]
struct Machine {
    jvm: Jvm,
    /// The file with it, to which its own code belongs.
    path: Arc<str>,
    described: so_jvm,
}

impl Reader for Machine {
    fn describe(&self, to: &mut so_runtime) {
        to.kinds |= KIND;
        to.jvm = self.described;
    }

    fn named(&self, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Frame>, Nameless> {
        named(&self.jvm, &self.path, memory, place)
    }
}

/// A VM as the kernel side wants it.
fn described(walked: &Walked) -> Result<so_jvm, String> {
    let lacks = |what: &str| format!("HotSpot: {what}");
    // What is read of a blob's begin ends there: `SO_JVM_BLOB_WORDS` of bpf/abi.h.
    const READ_BYTES: u16 = 128;
    let near = |place: NumberField| {
        let fits =
            place.offset + u16::from(place.width) <= READ_BYTES && place.offset % 8 + u16::from(place.width) <= 8;
        fits.then_some(place.offset)
            .ok_or_else(|| lacks("a code blob is of another form"))
    };
    let mut heaps = so_jvm::default().heaps;
    if walked.heaps.len() > heaps.len() {
        return Err(lacks("more heaps of code than are known"));
    }
    for (to, heap) in heaps.iter_mut().zip(&walked.heaps) {
        // The map counts from the first segment.
        to.begin = heap.first_segment;
        to.bytes = heap.end.saturating_sub(heap.first_segment);
        to.segments = heap.segment_map;
        to.segment_shift = u32::from(heap.segment_shift);
    }
    if walked.frame_words.width != 4 {
        return Err(lacks("sizes of frames are of another form"));
    }
    // It is read with the symbol's first word.
    if walked.symbol_length.width != 2 || walked.symbol_length.offset > 6 || walked.symbol_body > 8 {
        return Err(lacks("names are of another form"));
    }
    Ok(so_jvm {
        interpreter_begin: walked.interpreter_begin,
        interpreter_bytes: walked.interpreter_end.saturating_sub(walked.interpreter_begin),
        heaps,
        heap_count: walked.heaps.len() as u16,
        block_header_bytes: walked.heap_header_bytes,
        frame_size: near(walked.frame_words)?,
        frame_complete: near(walked.frame_complete)?,
        frame_complete_bytes: walked.frame_complete.width,
        code_begin: near(walked.code_begin)?,
        code_begin_bytes: walked.code_begin.width,
        compile_id: walked.compile_id.offset,
        method: walked.method,
        deopt_handler: walked.deopt.offset,
        deopt_handler_bytes: match walked.deopt.width {
            width @ (4 | 8) => width,
            _ => 0,
        },
        orig_pc: walked.orig_pc.offset,
        const_method: walked.const_method,
        const_method_bytes: walked.const_method_bytes,
        code_size: walked.code_bytes.offset,
        pool: walked.class_name[0],
        name: walked.name.offset,
        pool_holder: walked.class_name[1],
        pool_bytes: walked.pool_bytes,
        class_name: walked.class_name[2],
        symbol_length: walked.symbol_length.offset as u8,
        symbol_body: walked.symbol_body as u8,
        slot_method: i32::from(walked.frame.method / 8),
        slot_bcp: i32::from(walked.frame.bcp / 8),
        slot_sender_sp: i32::from(walked.frame.sender_sp / 8),
        ..so_jvm::default()
    })
}

/// Bytecode offset of a detail that says that nobody knows it.
const NO_BYTECODE: u64 = 0xffff;

fn named(jvm: &Jvm, path: &Arc<str>, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Frame>, Nameless> {
    let frames = match (place.frame, place.detail) {
        (RuntimeWord::JvmInterpreted(method), Some(detail)) => interpreted(jvm, memory, method, detail)?,
        (RuntimeWord::JvmCompiled(pc), Some(detail)) => {
            let inside = if place.innermost { pc } else { pc.wrapping_sub(1) };
            let blob = jvm.blob_at(memory, inside).ok_or(Nameless::Replaced)?;
            if !matches!(blob.kind, BlobKind::Nmethod | BlobKind::NativeNmethod) {
                let name = jvm.stub_name(memory, blob.address).ok_or(Nameless::Replaced)?;
                // What a virtual thread returns to that has waited: its callers are not back on the stack.
                let is_in_heap = !place.innermost && name.contains("continuation");
                return Ok(vec![if is_in_heap { in_heap() } else { stub(&name, path) }]);
            }
            let (compile_id, mark) = (detail as u32, (detail >> 32) as u32);
            // Code that is gone for good goes on leading to where its method lay.
            let is_same = || jvm.mark_of(memory, blob.address) == mark;
            if !is_same() {
                return Err(Nameless::Replaced);
            }
            let frames = jvm.compiled(memory, blob.address, compile_id, pc, place.innermost)?;
            if !is_same() {
                return Err(Nameless::Replaced);
            }
            frames
        }
        _ => return Err(Nameless::Replaced),
    };
    Ok(frames.into_iter().map(java_frame).collect())
}

fn interpreted(jvm: &Jvm, memory: &ProcessMemory, method: u64, detail: u64) -> Result<Vec<JavaFrame>, Nameless> {
    let bytecode = detail & NO_BYTECODE;
    if jvm.print_of(memory, method)? != detail >> 16 {
        return Err(Nameless::Replaced);
    }
    let bci = u16::try_from(bytecode)
        .ok()
        .filter(|bci| u64::from(*bci) != NO_BYTECODE);
    let frames = jvm.interpreted(memory, method, bci.unwrap_or(0))?;
    // What was read meanwhile may be another one's.
    if jvm.print_of(memory, method)? != detail >> 16 {
        return Err(Nameless::Replaced);
    }
    let line = |frame: JavaFrame| JavaFrame {
        line: if bci.is_some() { frame.line } else { 0 },
        ..frame
    };
    Ok(frames.into_iter().map(line).collect())
}

fn java_frame(frame: JavaFrame) -> Frame {
    let class = lasting(&frame.class);
    Frame {
        kind: FrameKind::Interpreted(LANGUAGE),
        module: module_of(class).into(),
        function: Some(format!("{class}.{}", frame.method).into()),
        file: frame.file.map(Arc::from),
        line: frame.line,
        inlined: frame.inlined,
        ..Frame::unknown()
    }
}

/// A hidden class has an address in its name, which is another one in each process: no two stacks would be alike.
fn lasting(class: &str) -> &str {
    let end = class.find(['/', '+']).unwrap_or(class.len());
    &class[..end]
}

/// Its package; a class without one is its own, with those inside of it.
fn module_of(class: &str) -> &str {
    match class.rsplit_once('.') {
        Some((package, _)) => package,
        None => class.split('$').next().unwrap_or(class),
    }
}

/// Code of the VM itself, by the VM's name for it.
fn stub(name: &str, path: &Arc<str>) -> Frame {
    Frame {
        kind: FrameKind::Interpreted(LANGUAGE),
        module: Arc::clone(path),
        function: Some(name.into()),
        ..Frame::unknown()
    }
}

/// Stands for frames that wait in the heap until those below them have returned: nobody knows how many there are.
fn in_heap() -> Frame {
    Frame::mark("[… frames]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hidden_classes_are_the_same_in_each_process() {
        for (class, lasts, module) in [
            ("java.util.HashMap$Node", "java.util.HashMap$Node", "java.util"),
            ("shop.Cart$$Lambda$14/0x00007f26c0034c0", "shop.Cart$$Lambda$14", "shop"),
            ("shop.Cart$$Lambda+0x00007f26c0034c0", "shop.Cart$$Lambda", "shop"),
            ("Mix$Plain", "Mix$Plain", "Mix"),
            ("Mix", "Mix", "Mix"),
        ] {
            assert_eq!((lasting(class), module_of(lasting(class))), (lasts, module));
        }
    }
}
