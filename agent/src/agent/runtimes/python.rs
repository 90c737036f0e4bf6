//! CPython: which programs have it, what the kernel side is told of it, names of its frames.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::language::{Language, Reader, Reading};
use super::library::{KnownFile, KnownFiles, Library, SymbolTables, having};
use super::place::{Nameless, RuntimePlace};
use crate::frames::{Frame, FrameKind, ProgramKey};
use crate::kernel::{RuntimeWord, so_cpython, so_runtime};
use crate::process::{Module, Table};
use crate::runtime::ProcessMemory;
use crate::runtime::cpython::{FrameForm, Late, Layout, Modules, NotReady, Python, SYMBOLS, Walked};

/// `profile.frame.type` of OTLP.
const LANGUAGE: &str = "cpython";
/// What a file has that has the interpreter.
const RUNTIME: &str = "_PyRuntime";
/// What the names of its extensions contain, which a program maps that has the interpreter in itself.
const EXTENSION: &str = ".cpython-";
/// Instead of the offset of an entry's frame: `SO_PYTHON_NO_ENTRY` of bpf/cpython.h.
const NO_ENTRY: u16 = 0xffff;
const INSTRUCTION_BITS: u32 = 20;

/// `SO_RUNTIME_CPYTHON` of bpf/runtime_abi.h.
const KIND: u32 = 2;

pub(super) struct CPython;

impl Language for CPython {
    fn name(&self) -> &'static str {
        LANGUAGE
    }

    /// Its frames come from a chain that has gone on by then.
    fn walks_copies(&self) -> bool {
        false
    }

    /// A code object, whose address has no lowest bit.
    fn function_of(&self, place: RuntimePlace) -> Option<RuntimePlace> {
        let (RuntimeWord::Python(code), Some(detail)) = (place.frame, place.detail) else {
            return None;
        };
        let frame = RuntimeWord::Python(code | 1);
        Some(RuntimePlace::function(frame, detail >> INSTRUCTION_BITS))
    }

    /// libpython, python itself, and where its extensions are mapped, the program.
    fn find(&self, key: ProgramKey, table: &Table, known: &mut KnownFiles) -> Option<(Library, Arc<KnownFile>)> {
        let is_extended = table
            .modules(key)
            .any(|module| Library::base_name(module).contains(EXTENSION));
        let may_have = |module: &&Arc<Module>| {
            let name = Library::base_name(module);
            module.is_open()
                && !name.contains(EXTENSION)
                && (name.contains("python") || is_extended && !name.contains(".so"))
        };
        let modules = table.modules(key).filter(may_have);
        let (module, file) = having(RUNTIME, &SYMBOLS, modules, |_| SymbolTables::All, known)?;
        Some((Library::of(key, module, table)?, file))
    }

    fn reading(&self, tgid: u32, library: &Library, file: &Arc<KnownFile>) -> Reading {
        let (module, bias, file) = (Arc::clone(&library.module), library.bias, Arc::clone(file));
        Box::new(move || {
            let memory = ProcessMemory::for_a_layout(tgid);
            let layout = Layout::read(&memory, &|name| file.address_of(name, bias));
            let layout = layout.map_err(|error| error.to_string())?;
            let limits = |address: u64| file.limits(&module, address, bias);
            let python = match Python::read(&memory, layout.clone(), &limits) {
                Err(NotReady::Yet { .. }) if file.is_checked() => Python::unchecked(&memory, layout, &limits),
                read => read,
            };
            let python = python.map_err(|error| error.to_string())?;
            file.set_checked();
            Ok(Arc::new(Program {
                python,
                modules: Mutex::default(),
            }))
        })
    }
}

/// The interpreters of one program.
#[derive(Debug)]
struct Program {
    python: Python,
    modules: Mutex<Modules>,
}

impl Reader for Program {
    fn describe(&self, to: &mut so_runtime) {
        to.kinds |= KIND;
        to.cpython = described(&self.python.walked());
    }

    fn table_bytes(&self) -> u64 {
        self.free_modules().map_or(0, |modules| modules.bytes())
    }

    fn forget_tables(&self) {
        if let Some(mut modules) = self.free_modules() {
            modules.forget();
        }
    }

    fn take_tables_forgotten(&self) -> u64 {
        self.free_modules().map_or(0, |mut modules| modules.take_forgotten())
    }

    fn named(&self, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Frame>, Nameless> {
        match (place.frame, place.detail) {
            (RuntimeWord::Python(code), Some(detail)) => self.frame(memory, code, detail),
            _ => Err(Nameless::Unreadable),
        }
    }
}

fn described(walked: &Walked) -> so_cpython {
    let (entry_frame, entry_previous) = walked.entry.unwrap_or((NO_ENTRY, 0));
    so_cpython {
        runtime: walked.runtime,
        code_type: walked.code_type,
        loop_begin: [walked.loops[0].start, walked.loops[1].start],
        loop_bytes: [&walked.loops[0], &walked.loops[1]].map(|range| range.end - range.start),
        interpreters_head: walked.interpreters_head,
        interpreter_next: walked.interpreter_next,
        threads_head: walked.threads_head,
        last_thread: walked.last_thread,
        is_last_in_runtime: u8::from(walked.is_last_in_runtime),
        form: match walked.form {
            FrameForm::Objects => 0,
            FrameForm::Entries => 1,
            FrameForm::Shims => 2,
        },
        thread_next: walked.thread_next,
        thread_id: walked.thread_id,
        thread_frame: walked.thread_frame,
        entry_frame,
        entry_previous,
        frame_previous: walked.frame_previous,
        frame_code: walked.frame_code,
        frame_instruction: walked.frame_instruction,
        frame_mark: walked.frame_mark,
        code_size: walked.code_size,
        code_name: walked.code_name,
        code_qualname: walked.code_qualname,
        code_filename: walked.code_filename,
        code_first_line: walked.code_first_line,
        code_begin: walked.code_begin,
        object_type: walked.object_type,
        frame_copy: walked.frame_copy,
        code_copies: walked.code_copies,
        instruction_shift: walked.instruction_shift,
        prologue_bytes: walked.prologue_bytes,
    }
}

impl Program {
    /// The frame of a code object. Its file stands where others have a library's; its module begins its name.
    fn frame(&self, memory: &ProcessMemory, code: u64, detail: u64) -> Result<Vec<Frame>, Nameless> {
        let instruction = (detail & ((1 << INSTRUCTION_BITS) - 1)) as u32;
        let frame = self
            .python
            .frame(memory, code, instruction, detail >> INSTRUCTION_BITS)?;
        let module = self.module(memory, &frame.file);
        let function = match &module {
            Ok(Some(module)) => format!("{module}.{}", frame.function),
            _ => frame.function,
        };
        let file: Arc<str> = frame.file.into();
        let frames = vec![Frame {
            kind: FrameKind::Interpreted(LANGUAGE),
            module: Arc::clone(&file),
            function: Some(function.into()),
            file: Some(file),
            line: frame.line,
            ..Frame::unknown()
        }];
        match module {
            Ok(_) => Ok(frames),
            Err(Late) => Err(Nameless::InPart(frames)),
        }
    }

    /// None while somebody asks for one.
    fn free_modules(&self) -> Option<MutexGuard<'_, Modules>> {
        match self.modules.try_lock() {
            Ok(modules) => Some(modules),
            Err(TryLockError::Poisoned(modules)) => Some(modules.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The module of a file's functions. Where a thread was left behind that asks for one, nobody waits for it.
    fn module(&self, memory: &ProcessMemory, file: &str) -> Result<Option<String>, Late> {
        let mut modules = self.free_modules().ok_or(Late)?;
        memory.allow_a_table();
        self.python.module(memory, &mut modules, file)
    }
}
