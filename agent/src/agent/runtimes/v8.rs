//! V8: which programs have it, what the kernel side is told of it, names of its frames.

use std::ops::Range;
use std::sync::Arc;

use super::language::{Language, Reader, Reading};
use super::library::{KnownFile, KnownFiles, Library, SymbolTables, having};
use super::place::{Nameless, RuntimePlace};
use crate::frames::{Frame, FrameKind, ProgramKey};
use crate::kernel::{RuntimeWord, so_runtime, so_v8};
use crate::process::{Module, Table, made_memory};
use crate::runtime::ProcessMemory;
use crate::runtime::v8::{FrameSort, Layout, SYMBOLS, ScriptFrame, V8, Walked};

/// `profile.frame.type` of OTLP.
const LANGUAGE: &str = "v8js";
const WASM: &str = "wasm";
/// What a file exports that has V8.
const ENGINE: &str = "v8dbg_class_JSFunction__shared__SharedFunctionInfo";
/// A program with it has so many bytes at least, whatever it is called.
const MIN_PROGRAM_BYTES: u64 = 1 << 25;

/// `SO_RUNTIME_V8` of bpf/runtime_abi.h.
const KIND: u32 = 4;

/// Of the place in the word of a frame, and where in it stands what the place is: 0 where it is interpreted.
const PLACE_BITS: u32 = 47;
const KIND_SHIFT: u32 = 57;

pub(super) struct Engine;

impl Language for Engine {
    fn name(&self) -> &'static str {
        LANGUAGE
    }

    fn walks_copies(&self) -> bool {
        true
    }

    /// An interpreted function, by the hash in its word. What is inlined is another one at each place.
    fn function_of(&self, place: RuntimePlace) -> Option<RuntimePlace> {
        let (RuntimeWord::V8(value), Some(detail)) = (place.frame, place.detail) else {
            return None;
        };
        let is_interpreted = value >> KIND_SHIFT == 0;
        let frame = RuntimeWord::V8(value >> PLACE_BITS | 1 << 63);
        is_interpreted.then(|| RuntimePlace::function(frame, detail))
    }

    /// node, libnode, and programs that have it in themselves.
    fn find(&self, key: ProgramKey, table: &Table, known: &mut KnownFiles) -> Option<(Library, Arc<KnownFile>)> {
        let may_have = |module: &&Arc<Module>| {
            let name = Library::base_name(module);
            module.is_open()
                && (name.contains("node") && !name.ends_with(".node")
                    || module.bytes >= MIN_PROGRAM_BYTES && !name.contains(".so"))
        };
        let modules = table.modules(key).filter(may_have);
        let tables = |module: &Module| {
            if Library::base_name(module).contains("node") {
                SymbolTables::All
            } else {
                SymbolTables::Exported
            }
        };
        let (module, file) = having(ENGINE, &SYMBOLS, modules, tables, known)?;
        Some((Library::of(key, module, table)?, file))
    }

    fn reading(&self, tgid: u32, library: &Library, file: &Arc<KnownFile>) -> Reading {
        let (bias, path, file) = (library.bias, Arc::clone(&library.module.path), Arc::clone(file));
        Box::new(move || {
            let memory = ProcessMemory::for_a_layout(tgid);
            let layout = Layout::read(&memory, &|name| file.address_of(name, bias));
            let layout = layout.map_err(|error| error.to_string())?;
            let v8 = V8::new(layout, made_memory(tgid).unwrap_or_default());
            Ok(Arc::new(Program { v8, path }))
        })
    }
}

/// The engine of one program.
#[derive(Debug)]
struct Program {
    v8: V8,
    /// The file with it, to which its own code belongs.
    path: Arc<str>,
}

impl Reader for Program {
    fn describe(&self, to: &mut so_runtime) {
        to.kinds |= KIND;
        to.v8 = described(&self.v8.walked());
    }

    /// Each thread that runs JavaScript sets memory aside for code.
    fn lacks(&self, made: &[Range<u64>]) -> bool {
        made.iter().any(|range| !self.v8.knows(range))
    }

    fn named(&self, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Frame>, Nameless> {
        let (RuntimeWord::V8(value), Some(detail)) = (place.frame, place.detail) else {
            return Err(Nameless::Unreadable);
        };
        let frames = self.v8.frames(memory, value, detail, place.innermost)?;
        Ok(frames.into_iter().map(|frame| self.frame(frame)).collect())
    }
}

impl Program {
    /// A function's file is its module; what V8 made belongs to V8's own file.
    fn frame(&self, frame: ScriptFrame) -> Frame {
        let file: Option<Arc<str>> = frame.file.map(Arc::from);
        Frame {
            kind: FrameKind::Interpreted(if frame.sort == FrameSort::Wasm { WASM } else { LANGUAGE }),
            module: file.clone().unwrap_or_else(|| Arc::clone(&self.path)),
            function: Some(frame.function.into()),
            file,
            line: frame.line,
            inlined: frame.inlined,
            ..Frame::unknown()
        }
    }
}

/// An engine as the kernel side wants it.
fn described(walked: &Walked) -> so_v8 {
    let mut v8 = so_v8::default();
    let to = v8.made_begin.iter_mut().zip(&mut v8.made_bytes);
    for ((begin, bytes), range) in to.zip(&walked.made) {
        (*begin, *bytes) = (range.start, range.end - range.start);
    }
    let [data, name, script, length, literal] = walked.shared;
    so_v8 {
        first_function_type: walked.function_types.0,
        last_function_type: walked.function_types.1,
        function_shared: walked.function_shared,
        shared_data: data,
        shared_name: name,
        shared_script: script,
        shared_length: length,
        shared_literal: literal,
        shared_unique: walked.shared_unique,
        shared_bytes: walked.shared_bytes,
        script_id: walked.script_id,
        bytecode_type: walked.bytecode.0,
        bytecode_begin: walked.bytecode.1,
        code_type: walked.code.0,
        code_bytecode: walked.code.1,
        frame_stub: walked.frame_stub,
        ..v8
    }
}
