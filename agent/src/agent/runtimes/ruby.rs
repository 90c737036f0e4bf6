//! CRuby: which programs have it, what the kernel side is told of it, names of its frames.

use std::sync::Arc;

use super::language::{Language, Reader, Reading};
use super::library::{KnownFile, KnownFiles, Library, SymbolTables, having};
use super::place::{Nameless, RuntimePlace};
use crate::frames::{Frame, FrameKind, ProgramKey};
use crate::kernel::{RuntimeWord, so_ruby, so_runtime};
use crate::process::{Module, Table};
use crate::runtime::ProcessMemory;
use crate::runtime::ruby::{MappedInterpreter, Ruby, SYMBOLS, Walked};

/// `profile.frame.type` of OTLP.
const LANGUAGE: &str = "ruby";
/// What a file exports that has the interpreter.
const RUNTIME: &str = SYMBOLS[0];
/// What the paths of its extensions contain, which a program maps that has the interpreter in itself.
const EXTENSION: &str = "/ruby/";
/// The module of methods in C, as Ruby's own profiling interface names their file.
const IN_C: &str = "<cfunc>";
/// `SO_RUNTIME_RUBY` of bpf/runtime_abi.h.
const KIND: u32 = 8;

/// Of the sequence of instructions in the word of a frame.
const SEQUENCE_BITS: u32 = 44;

pub(super) struct CRuby;

impl Language for CRuby {
    fn name(&self) -> &'static str {
        LANGUAGE
    }

    /// Its frames come from a chain that has gone on by then.
    fn walks_copies(&self) -> bool {
        false
    }

    /// A sequence of instructions, of which the word has no highest bit. Methods in C have no places.
    fn function_of(&self, place: RuntimePlace) -> Option<RuntimePlace> {
        let (RuntimeWord::Ruby(value), Some(detail)) = (place.frame, place.detail) else {
            return None;
        };
        let sequence = value & ((1 << SEQUENCE_BITS) - 1);
        let frame = RuntimeWord::Ruby(sequence | 1 << 63);
        (sequence != 0).then(|| RuntimePlace::function(frame, detail))
    }

    /// libruby, ruby itself, and where its extensions are mapped, the program.
    fn find(&self, key: ProgramKey, table: &Table, known: &mut KnownFiles) -> Option<(Library, Arc<KnownFile>)> {
        let is_extended = table.modules(key).any(|module| module.path.contains(EXTENSION));
        let may_have = |module: &&Arc<Module>| {
            let name = Library::base_name(module);
            module.is_open()
                && (name.starts_with("libruby") || name.starts_with("ruby") || is_extended && !name.contains(".so"))
        };
        let modules = table.modules(key).filter(may_have);
        let (module, file) = having(RUNTIME, &SYMBOLS, modules, |_| SymbolTables::All, known)?;
        Some((Library::of(key, module, table)?, file))
    }

    fn reading(&self, tgid: u32, library: &Library, file: &Arc<KnownFile>) -> Reading {
        let (module, bias, file) = (Arc::clone(&library.module), library.bias, Arc::clone(file));
        Box::new(move || {
            let (code, data) = file.segments(&module, bias);
            let place = MappedInterpreter {
                symbol: &|name| file.address_of(name, bias),
                learn: &|name, address| file.learn(name, address.wrapping_sub(bias)),
                data,
                code: code.ok_or("no code in the interpreter's file")?,
                function: &|address| file.limits(&module, address, bias),
                calls: &|address| file.calls(&module, address, bias),
            };
            let ruby = Ruby::read(&ProcessMemory::for_a_layout(tgid), &place).map_err(|error| error.to_string())?;
            Ok(Arc::new(ruby))
        })
    }
}

impl Reader for Ruby {
    fn describe(&self, to: &mut so_runtime) {
        to.kinds |= KIND;
        to.ruby = described(&self.walked());
    }

    fn named(&self, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Frame>, Nameless> {
        match (place.frame, place.detail) {
            (RuntimeWord::Ruby(value), Some(detail)) => named(self, memory, value, detail),
            _ => Err(Nameless::Unreadable),
        }
    }
}

fn described(walked: &Walked) -> so_ruby {
    let begins = |ranges: &[std::ops::Range<u64>; 2]| [ranges[0].start, ranges[1].start];
    let bytes = |ranges: &[std::ops::Range<u64>; 2]| [0, 1].map(|which: usize| ranges[which].end - ranges[which].start);
    so_ruby {
        loop_begin: begins(&walked.loops),
        loop_bytes: bytes(&walked.loops),
        exec_begin: begins(&walked.callers),
        exec_bytes: bytes(&walked.callers),
        code_begin: walked.code.start,
        code_bytes: walked.code.end - walked.code.start,
        current: walked.current,
        threads: walked.threads,
        is_current_local: u16::from(walked.is_current_local),
        context_thread: walked.context_thread,
        thread_context: walked.thread_context,
        thread_native: walked.thread_native,
        thread_id: walked.thread_id,
        frame_bytes: walked.frame_bytes,
        unused: [0; 2],
    }
}

/// The frame's file is its module.
fn named(ruby: &Ruby, memory: &ProcessMemory, value: u64, detail: u64) -> Result<Vec<Frame>, Nameless> {
    let frame = ruby.frame(memory, value, detail)?;
    let file: Option<Arc<str>> = frame.file.map(Arc::from);
    Ok(vec![Frame {
        kind: FrameKind::Interpreted(LANGUAGE),
        module: file.clone().unwrap_or_else(|| IN_C.into()),
        function: Some(frame.function.into()),
        file,
        line: frame.line,
        ..Frame::unknown()
    }])
}
