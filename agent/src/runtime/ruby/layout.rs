//! Which CRuby a process has, and where its own structures are.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use super::offsets::{Offsets, T_ARRAY, TYPE_MASK};
use super::text::Names;
use super::{ADDRESSES, ReadMemory, Unreadable, field, is_object, number, read, word};

/// The symbols that are asked for. The first is exported by every file that has the interpreter; the others are where
/// they are not hidden.
pub const SYMBOLS: [&str; 4] = [VERSION, VM, CONTEXT, NAMES];
const VERSION: &str = "ruby_api_version";
const VM: &str = "ruby_current_vm_ptr";
/// Until 2.7; later each thread has its own.
const CONTEXT: &str = "ruby_current_execution_context_ptr";
const NAMES: &str = "ruby_global_symbols";

/// Of data that is searched.
const MAX_DATA_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 4096;
/// Of a thread's own storage that is searched, below its base.
const LOCAL_BYTES: usize = 8192;

/// `3.3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 2 or 3 so far.
    pub major: u32,
    /// With the first what tells layouts apart.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Ruby {}.{}", self.major, self.minor)
    }
}

/// Why an interpreter can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Not CRuby, or a build that exports nothing.
    #[error("no symbol {name}: not CRuby, or one that exports nothing")]
    NoSymbol {
        /// The symbol that lacks.
        name: &'static str,
    },
    /// One that no table has.
    #[error("{version}: unknown layout")]
    Unknown {
        /// Which one.
        version: Version,
    },
    /// It is setting itself up, or is another one than it says; another try may go well.
    #[error("{version}: no {what} yet")]
    Yet {
        /// Which one.
        version: Version,
        /// What is not there.
        what: &'static str,
    },
    /// Its memory can't be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Where the file with the interpreter lies in a process.
#[allow(missing_debug_implementations, reason = "most of it is functions")]
pub struct MappedInterpreter<'a> {
    /// A symbol's address, of those in [`SYMBOLS`]: the file's own, or one that was learned of it.
    pub symbol: &'a dyn Fn(&str) -> Option<u64>,
    /// Is told what was found without a symbol: the same holds wherever the file is mapped.
    pub learn: &'a dyn Fn(&'static str, u64),
    /// Data that is written to, from the lowest address on; what follows the file's own bytes is looked at as well.
    pub data: Vec<Range<u64>>,
    /// Code.
    pub code: Range<u64>,
    /// The limits of the function, or of the part of one, that an address lies in.
    pub function: &'a dyn Fn(u64) -> Option<Range<u64>>,
    /// Addresses of calls of a function.
    pub calls: &'a dyn Fn(u64) -> Vec<u64>,
}

/// Everything of one process' interpreter that stays where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: Version,
    pub(super) offsets: Offsets,
    pub(super) vm: u64,
    pub(super) main_thread: u64,
    /// The head of the list of threads.
    pub(super) threads: u64,
    pub(super) names: Names,
    /// Where the running thread's execution context is.
    pub(super) current: Current,
}

/// What leads to the execution context of the running thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Current {
    /// An address; what it leads to is that of the thread with the lock.
    Address(u64),
    /// What is added to the base of a thread's own storage.
    Local(u64),
    /// Nothing but the list of threads.
    None,
}

impl Layout {
    /// Finds the version, its layout, and the structures from which all others are reached.
    pub(super) fn read(memory: &dyn ReadMemory, place: &MappedInterpreter<'_>) -> Result<Self, LayoutError> {
        let address = (place.symbol)(VERSION).ok_or(LayoutError::NoSymbol { name: VERSION })?;
        let [major, minor] = [0, 4].map(|at| number(memory, address.saturating_add(at), 4));
        let (major, minor) = (major? as u32, minor? as u32);
        let version = Version { major, minor };
        let offsets = Offsets::by_version(major, minor).ok_or(LayoutError::Unknown { version })?;
        let missing = |what| LayoutError::Yet { version, what };
        let vm = find(memory, place, VM, |pointer| {
            let vm = word(memory, pointer).ok()?;
            main_thread(memory, &offsets, vm).map(|_| vm)
        });
        let vm = vm.ok_or(missing("virtual machine"))?;
        let (main_thread, context) = main_thread(memory, &offsets, vm).ok_or(missing("main thread"))?;
        let names = find(memory, place, NAMES, |table| names(memory, &offsets, table));
        let names = names.ok_or(missing("table of names"))?;
        let threads = match offsets.vm_main_ractor {
            Some(ractor) => word(memory, field(vm, ractor))?,
            None => vm,
        };
        let current = match ((place.symbol)(CONTEXT), offsets.vm_main_ractor) {
            (Some(address), _) => Current::Address(address),
            (None, Some(_)) => local(memory, &offsets, main_thread, context),
            (None, None) => Current::None,
        };
        Ok(Self {
            version,
            offsets,
            vm,
            main_thread,
            threads: field(threads, offsets.threads),
            names,
            current,
        })
    }
}

/// What a symbol leads to or, where it is hidden, what in the file's data leads to what it should.
fn find<T>(
    memory: &dyn ReadMemory,
    place: &MappedInterpreter<'_>,
    name: &'static str,
    check: impl Fn(u64) -> Option<T>,
) -> Option<T> {
    if let Some(address) = (place.symbol)(name) {
        return check(address);
    }
    let mut left = MAX_DATA_BYTES;
    for range in &place.data {
        // Whole pages: behind the last one there may be nothing.
        let mut at = range.start & !(PIECE_BYTES as u64 - 1);
        let mut piece = [0; PIECE_BYTES];
        while left >= PIECE_BYTES && read(memory, at, &mut piece).is_ok() {
            left -= PIECE_BYTES;
            let words = piece.chunks_exact(8).zip((at..).step_by(8));
            for (word, address) in words {
                let value = word.try_into().map_or(0, u64::from_le_bytes);
                // Neither a pointer nor a number of names.
                if !(128..ADDRESSES.end).contains(&value) {
                    continue;
                }
                if let Some(found) = check(address) {
                    (place.learn)(name, address);
                    return Some(found);
                }
            }
            at += PIECE_BYTES as u64;
        }
    }
    None
}

/// The main thread of what may be a virtual machine, and its execution context: each leads to the other.
fn main_thread(memory: &dyn ReadMemory, offsets: &Offsets, vm: u64) -> Option<(u64, u64)> {
    let thread = Some(vm).filter(|vm| is_object(*vm))?;
    let thread = word(memory, field(thread, offsets.vm_main_thread)).ok()?;
    let is_own = is_object(thread) && word(memory, field(thread, offsets.thread_vm)) == Ok(vm);
    let context = is_own.then(|| word(memory, field(thread, offsets.thread_context)).ok())??;
    let is_whole = is_object(context) && word(memory, field(context, offsets.context_thread)) == Ok(thread);
    is_whole.then_some((thread, context))
}

/// The number of a native thread, which is the base of its own storage.
pub(super) fn thread_id(memory: &dyn ReadMemory, offsets: &Offsets, thread: u64) -> Result<u64, Unreadable> {
    let holder = match offsets.thread_native {
        Some(native) => word(memory, field(thread, native))?,
        None => thread,
    };
    word(memory, field(holder, offsets.thread_id))
}

/// Where in a thread's own storage its execution context is: at one place alone.
fn local(memory: &dyn ReadMemory, offsets: &Offsets, thread: u64, context: u64) -> Current {
    let Ok(base) = thread_id(memory, offsets, thread) else {
        return Current::None;
    };
    let mut found = Vec::new();
    let mut piece = [0; 1024];
    for below in (1024..=LOCAL_BYTES as u64).step_by(1024) {
        let begin = base.saturating_sub(below);
        if !is_object(base) || read(memory, begin, &mut piece).is_err() {
            break;
        }
        let words = piece.chunks_exact(8).zip((begin..).step_by(8));
        let same = words.filter(|(word, _)| *word == context.to_le_bytes());
        found.extend(same.map(|(_, address)| address.wrapping_sub(base)));
    }
    match found[..] {
        [only] => Current::Local(only),
        _ => Current::None,
    }
}

/// The table of names: a number, a table that is not needed, and a list of lists.
fn names(memory: &dyn ReadMemory, offsets: &Offsets, table: u64) -> Option<Names> {
    /// Names that every interpreter has beside operators, of which all are of one kind.
    const KNOWN: u64 = 300;
    let mut fields = [0; 24];
    read(memory, table, &mut fields).ok()?;
    let [last, hash, lists] = [0, 8, 16].map(|at| super::part(&fields, at));
    let last = last & 0xffff_ffff;
    if !(KNOWN..1 << 28).contains(&last) || !is_object(hash) || !is_object(lists) {
        return None;
    }
    if word(memory, lists).ok()? & TYPE_MASK != T_ARRAY {
        return None;
    }
    let names = Names {
        table,
        last_operator: offsets.last_operator,
        is_length_in_flags: offsets.is_length_in_flags,
    };
    names.is_known(memory, KNOWN).then_some(names)
}
