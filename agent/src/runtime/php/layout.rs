//! Which PHP a process has, and where its structures have what matters.

use std::fmt;

use thiserror::Error;

use super::{ReadMemory, Unreadable, field, is_object, number, part, pointer, read};

/// The symbols that are asked for. Executables and libraries with PHP export all but the last, which a table of all
/// symbols may have. Builds with threads have the third and the fourth, and others the second.
pub const SYMBOLS: [&str; 8] = [
    "execute_ex",
    "executor_globals",
    "executor_globals_offset",
    "tsrm_get_ls_cache_tcb_offset",
    "module_registry",
    "zend_call_function",
    "zend_generator_resume",
    "execute_ex.cold",
];

/// What a walker reads of a function at once: `SO_PHP_CODE_WORDS` of bpf/runtime_abi.h.
pub(super) const FUNCTION_BYTES: u16 = 24 * 8;

/// Of `zend_module_entry`, which has been the same since 7.0: its size, the number of the interface, whether it is a
/// build for debugging, and one with threads; its name.
pub(super) const MODULE_BYTES: u16 = 168;
const MODULE_API: u16 = 4;
const MODULE_DEBUG: u16 = 8;
const MODULE_THREADS: u16 = 9;
pub(super) const MODULE_NAME: u16 = 32;
/// Of `HashTable`, since 7.0: its entries, and how many there are. An entry begins with its value.
const TABLE_ENTRIES: u16 = 16;
const TABLE_USED: u16 = 24;
const ENTRY_BYTES: u64 = 32;
/// Of a thread's own storage, and of all globals that a thread has.
const MAX_LOCAL_BYTES: u64 = 1 << 24;
const MAX_GLOBALS_BYTES: u64 = 1 << 24;
/// Modules that are looked at for one that makes sense.
const MAX_MODULES: u64 = 8;
const MAX_USED: u64 = 1 << 16;
/// Of `zend_op`: its line and what it does. `ZEND_HANDLE_EXCEPTION` does nothing else.
pub(super) const INSTRUCTION_BYTES: u64 = 32;
pub(super) const INSTRUCTION_LINE: u16 = 24;
const INSTRUCTION_KIND: u16 = 28;
const HANDLE_EXCEPTION: u64 = 149;

/// `8.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 7 or 8 so far.
    pub major: u8,
    /// What tells layouts apart.
    pub minor: u8,
}

impl fmt::Display for Version {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "PHP {}.{}", self.major, self.minor)
    }
}

/// Why PHP can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Not PHP, or a build that exports nothing.
    #[error("no symbol {name}: not PHP, or one that exports nothing")]
    NoSymbol {
        /// The symbol that lacks.
        name: &'static str,
    },
    /// A build that keeps its state for each thread does not say where.
    #[error("PHP with threads (ZTS): unknown layout")]
    Threads,
    /// It is setting itself up; another try may go well.
    #[error("PHP has not set itself up yet")]
    NoModules,
    /// One that no table has.
    #[error("PHP's interface {api}: unknown layout")]
    Unknown {
        /// The number of its interface for extensions, which is a date.
        api: u64,
    },
    /// A build for debugging, or one that is with threads or without them and says the other.
    #[error("{version}: a build with threads or for debugging")]
    Unusual {
        /// Which one.
        version: Version,
    },
    /// Two things that can't be true at once.
    #[error("{version}: {what} contradicts")]
    Contradiction {
        /// Of which version.
        version: Version,
        /// What is as it can't be.
        what: &'static str,
    },
    /// Its memory can't be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Where the fields are, in bytes from their structure's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets {
    /// `zend_executor_globals`: the innermost frame, the instruction that threw, the instructions that handle it.
    pub(super) current: u16,
    pub(super) exception_at: u16,
    pub(super) exception_code: u16,
    /// And what runs, of fibers; none before 8.1.
    pub(super) fiber: Option<u16>,
    /// `zend_op_array`: its instructions and their number, its file, its first and its last line.
    pub(super) code: u16,
    pub(super) code_count: u16,
    pub(super) file: u16,
    pub(super) lines: u16,
    /// `zend_internal_function`: its module.
    pub(super) module: u16,
    /// `zend_fiber_context`: its stack, and behind it in `zend_fiber` who resumed it.
    pub(super) fiber_stack: u16,
    pub(super) fiber_caller: u16,
}

impl Offsets {
    /// By the number of the interface. Facts of PHP's headers, for 64 bits.
    pub(super) fn of_api(api: u64) -> Option<(Version, Self)> {
        let (minor, numbers) = match api {
            20_190_902 => (4, [488, 880, 888, 0, 64, 60, 136, 144, 56, 0, 0]),
            20_200_930 => (0, [488, 880, 888, 0, 72, 68, 144, 152, 64, 0, 0]),
            20_210_902 => (1, [488, 880, 888, 1664, 72, 68, 144, 152, 64, 24, 88]),
            20_220_829 => (2, [488, 880, 888, 1672, 88, 80, 152, 160, 80, 32, 104]),
            20_230_831 => (3, [488, 880, 888, 1656, 80, 76, 144, 152, 80, 32, 104]),
            20_240_924 => (4, [488, 952, 960, 1744, 104, 96, 168, 176, 96, 32, 104]),
            20_250_925 => (5, [512, 976, 984, 1768, 104, 96, 168, 176, 96, 32, 104]),
            _ => return None,
        };
        let major = if api < 20_200_000 { 7 } else { 8 };
        let [
            current,
            exception_at,
            exception_code,
            fiber,
            code,
            code_count,
            file,
            lines,
            module,
            fiber_stack,
            fiber_caller,
        ] = numbers;
        Some((
            Version { major, minor },
            Self {
                current,
                exception_at,
                exception_code,
                fiber: (fiber != 0).then_some(fiber),
                code,
                code_count,
                file,
                lines,
                module,
                fiber_stack,
                fiber_caller,
            },
        ))
    }
}

/// Everything of one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Which one it is.
    pub version: Version,
    /// Address of `executor_globals`, or where each thread has its own, where they are in what `local` leads to.
    pub globals: u64,
    /// The offset in a thread's own storage of what leads to its globals.
    pub local: Option<u64>,
    /// Where the interpreter's loop begins, and where its part for what is rare does.
    pub(super) loops: [Option<u64>; 2],
    /// What C code calls PHP by: for callbacks and for generators.
    pub(super) callers: [Option<u64>; 2],
    pub(super) offsets: Offsets,
}

impl Layout {
    /// Finds the version and its layout. `symbol` gives a symbol's address in the process, of those in [`SYMBOLS`].
    pub fn read(memory: &dyn ReadMemory, symbol: &dyn Fn(&str) -> Option<u64>) -> Result<Self, LayoutError> {
        let address = |name| symbol(name).ok_or(LayoutError::NoSymbol { name });
        let loops = [Some(address("execute_ex")?), symbol("execute_ex.cold")];
        let (globals, local) = match symbol("executor_globals") {
            Some(globals) => (globals, None),
            None => {
                let [offset, code] = ["executor_globals_offset", "tsrm_get_ls_cache_tcb_offset"].map(symbol);
                let local = local(memory, code.ok_or(LayoutError::Threads)?)?;
                (number(memory, offset.ok_or(LayoutError::Threads)?, 8)?, Some(local))
            }
        };
        let (version, offsets) = version(memory, address("module_registry")?, local.is_some())?;
        let layout = Self {
            version,
            globals,
            local,
            loops,
            callers: [symbol("zend_call_function"), symbol("zend_generator_resume")],
            offsets,
        };
        if local.is_some() {
            // They come before the first module.
            let is_sane = (1..MAX_GLOBALS_BYTES).contains(&globals);
            return is_sane.then_some(layout).ok_or(LayoutError::Threads);
        }
        let handles = field(globals, offsets.exception_code);
        if number(memory, field(handles, INSTRUCTION_KIND), 1)? != HANDLE_EXCEPTION {
            // It is written when the engine starts.
            return Err(layout.contradiction("the instruction that handles exceptions"));
        }
        Ok(layout)
    }

    pub(super) fn contradiction(&self, what: &'static str) -> LayoutError {
        LayoutError::Contradiction {
            version: self.version,
            what,
        }
    }
}

/// What the function gives that says where in a thread's own storage its globals are led to from: its code loads one
/// number, as the linker left it, or from a place that the loader has filled.
fn local(memory: &dyn ReadMemory, function: u64) -> Result<u64, LayoutError> {
    /// `endbr64`; `push %rbp; mov %rsp, %rbp`.
    const BEFORE: [&[u8]; 2] = [b"\xf3\x0f\x1e\xfa", b"\x55\x48\x89\xe5"];
    let mut bytes = [0; 24];
    read(memory, function, &mut bytes)?;
    let mut code = &bytes[..];
    for before in BEFORE {
        code = code.strip_prefix(before).unwrap_or(code);
    }
    let [a, b, c, distance @ ..] = code else {
        return Err(LayoutError::Threads);
    };
    let distance = distance.first_chunk::<4>().ok_or(LayoutError::Threads)?;
    let distance = i64::from(i32::from_le_bytes(*distance)).cast_unsigned();
    let behind = function + (bytes.len() - code.len()) as u64 + 7;
    let local = match [*a, *b, *c] {
        // mov DISTANCE(%rip), %rax
        [0x48, 0x8b, 0x05] => number(memory, behind.wrapping_add(distance), 8)?,
        // mov $DISTANCE, %rax
        [0x48, 0xc7, 0xc0] => distance,
        _ => return Err(LayoutError::Threads),
    };
    // It lies below the thread's base. Where nobody can say where, that is zero.
    let is_below = (1..MAX_LOCAL_BYTES).contains(&local.wrapping_neg());
    is_below.then_some(local).ok_or(LayoutError::Threads)
}

/// As the first module says: all are of one build.
fn version(memory: &dyn ReadMemory, registry: u64, has_threads: bool) -> Result<(Version, Offsets), LayoutError> {
    let used = number(memory, field(registry, TABLE_USED), 4)?;
    if used == 0 || used > MAX_USED {
        return Err(LayoutError::NoModules);
    }
    let entries = pointer(memory, field(registry, TABLE_ENTRIES), "the table of modules")?;
    for entry in 0..used.min(MAX_MODULES) {
        let at = number(memory, entries.saturating_add(entry * ENTRY_BYTES), 8)?;
        let mut module = [0; MODULE_BYTES as usize];
        if !is_object(at) || read(memory, at, &mut module).is_err() || part(&module, 0, 2) != u64::from(MODULE_BYTES) {
            continue;
        }
        let api = part(&module, MODULE_API, 4);
        let (version, offsets) = Offsets::of_api(api).ok_or(LayoutError::Unknown { api })?;
        if part(&module, MODULE_DEBUG, 1) != 0 || part(&module, MODULE_THREADS, 1) != u64::from(has_threads) {
            return Err(LayoutError::Unusual { version });
        }
        return Ok((version, offsets));
    }
    Err(LayoutError::NoModules)
}
