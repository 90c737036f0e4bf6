//! PHP: which programs have it, what the kernel side is told of it, names of its frames.

use std::ops::Range;
use std::sync::Arc;

use super::language::{Language, Reader, Reading};
use super::library::{KnownFile, KnownFiles, Library, SymbolTables, having};
use super::place::{Nameless, RuntimePlace};
use crate::frames::{Frame, FrameKind, ProgramKey};
use crate::kernel::{RuntimeWord, so_php, so_runtime};
use crate::process::{Module, Table, shared_memory};
use crate::runtime::ProcessMemory;
use crate::runtime::php::{Layout, Php, SYMBOLS, Walked};

/// `profile.frame.type` of OTLP.
const LANGUAGE: &str = "php";
/// What a file has that has the interpreter.
const LOOP: &str = "execute_ex";
/// An extension that programs map which have the interpreter in themselves, whatever they are called.
const EXTENSION: &str = "opcache.so";

/// `SO_RUNTIME_PHP` of bpf/runtime_abi.h.
const KIND: u32 = 16;

/// Of an instruction's number in the detail of a frame.
const INSTRUCTION_BITS: u32 = 20;

pub(super) struct Zend;

impl Language for Zend {
    fn name(&self) -> &'static str {
        LANGUAGE
    }

    /// Its frames come from a chain that has gone on by then, but code that OPcache made is stepped over.
    fn walks_copies(&self) -> bool {
        true
    }

    /// A request makes all of its functions anew, where another one's may have lain.
    fn comes_back(&self) -> bool {
        true
    }

    /// A function, whose address has no lowest bit; whether the program began with it is a part of its name.
    fn function_of(&self, place: RuntimePlace) -> Option<RuntimePlace> {
        let (RuntimeWord::Php(function), Some(detail)) = (place.frame, place.detail) else {
            return None;
        };
        let frame = RuntimeWord::Php(function | 1);
        Some(RuntimePlace::function(frame, detail >> INSTRUCTION_BITS))
    }

    /// php, php-fpm, libphp of a web server, and where OPcache is mapped, the program.
    fn find(&self, key: ProgramKey, table: &Table, known: &mut KnownFiles) -> Option<(Library, Arc<KnownFile>)> {
        let is_extended = table.modules(key).any(|module| Library::base_name(module) == EXTENSION);
        let may_have = |module: &&Arc<Module>| {
            let name = Library::base_name(module);
            module.is_open() && (name.contains("php") || is_extended && !name.contains(".so"))
        };
        let modules = table.modules(key).filter(may_have);
        let (module, file) = having(LOOP, &SYMBOLS, modules, |_| SymbolTables::All, known)?;
        Some((Library::of(key, module, table)?, file))
    }

    fn reading(&self, tgid: u32, library: &Library, file: &Arc<KnownFile>) -> Reading {
        let (module, bias, file) = (Arc::clone(&library.module), library.bias, Arc::clone(file));
        let made = library.made.clone();
        Box::new(move || {
            let memory = ProcessMemory::for_a_layout(tgid);
            let layout = Layout::read(&memory, &|name| file.address_of(name, bias));
            let layout = layout.map_err(|error| error.to_string())?;
            let limits = |address: u64| file.limits(&module, address, bias);
            // OPcache's code lies in memory that is shared; that of regular expressions does not. While OPcache puts
            // more there, it is not executable.
            let shared = shared_memory(tgid).unwrap_or_default();
            let is_shared = |code: &Range<u64>| shared.iter().any(|shared| shared.contains(&code.start));
            let code = made.into_iter().map(|code| (code.clone(), is_shared(&code))).collect();
            let php = Php::read(&memory, layout, &limits, code).map_err(|error| error.to_string())?;
            Ok(Arc::new(php))
        })
    }
}

impl Reader for Php {
    fn describe(&self, to: &mut so_runtime) {
        to.kinds |= KIND;
        to.php = described(&self.walked());
    }

    fn named(&self, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Frame>, Nameless> {
        match (place.frame, place.detail) {
            (RuntimeWord::Php(function), Some(detail)) => named(self, memory, function, detail),
            _ => Err(Nameless::Unreadable),
        }
    }

    fn remembers(&self, place: RuntimePlace) -> bool {
        place.detail.is_some_and(|detail| self.remembers(detail))
    }

    /// OPcache maps the memory for its code while PHP starts, and may have done so since.
    fn lacks(&self, made: &[Range<u64>]) -> bool {
        made.iter().any(|range| !self.knows(range))
    }
}

fn described(walked: &Walked) -> so_php {
    let begins = |ranges: &[Range<u64>; 2]| [ranges[0].start, ranges[1].start];
    let bytes = |ranges: &[Range<u64>; 2]| [&ranges[0], &ranges[1]].map(|range| range.end - range.start);
    so_php {
        local: walked.local.unwrap_or(0),
        current: walked.current,
        fiber: walked.fiber,
        exception_code: walked.exception_code,
        exception_at: walked.exception_at,
        loop_begin: begins(&walked.loops),
        loop_bytes: bytes(&walked.loops),
        made_begin: begins(&walked.made),
        made_bytes: bytes(&walked.made),
        caller_begin: begins(&walked.callers),
        caller_bytes: bytes(&walked.callers),
        loop_inside: walked.loop_inside,
        code: walked.code,
        code_count: walked.code_count,
        file: walked.file,
        lines: walked.lines,
        fiber_stack: walked.fiber_stack,
        fiber_caller: walked.fiber_caller,
        is_local: u32::from(walked.local.is_some()),
    }
}

/// The frame of a function: its file is its module, or the extension that has it.
fn named(php: &Php, memory: &ProcessMemory, function: u64, detail: u64) -> Result<Vec<Frame>, Nameless> {
    let frame = php.frame(memory, function, detail)?;
    let (module, file) = if frame.file.is_empty() {
        (format!("ext/{}", frame.extension).into(), None)
    } else {
        let file: Arc<str> = frame.file.into();
        (Arc::clone(&file), Some(file))
    };
    Ok(vec![Frame {
        kind: FrameKind::Interpreted(LANGUAGE),
        module,
        function: Some(frame.function.into()),
        file,
        line: frame.line,
        ..Frame::unknown()
    }])
}
