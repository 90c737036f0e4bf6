//! What a language's runtime is to the agent: one file beside this one makes it of a room of `crate::runtime`.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use super::library::{KnownFile, KnownFiles, Library};
use super::place::{Nameless, RuntimePlace};
use crate::frames::{Frame, ProgramKey};
use crate::kernel::so_runtime;
use crate::process::Table;
use crate::runtime::ProcessMemory;

/// A language whose frames are known.
pub(super) trait Language: Sync {
    /// `profile.frame.type` of OTLP.
    fn name(&self) -> &'static str;

    /// Stacks that were copied are walked by it too, and wait until it is known.
    fn walks_copies(&self) -> bool;

    /// What was gone when it was asked for comes back, and is known by its name alone. Other languages' functions are
    /// asked for once: what lies in their place later may be like them.
    fn comes_back(&self) -> bool {
        false
    }

    /// What stands for the function of a place, wherever in it that is: it is known by a hash beside its address, so
    /// that its name holds where the place itself can't be asked for any more. Never a place that a walk tells.
    fn function_of(&self, _place: RuntimePlace) -> Option<RuntimePlace> {
        None
    }

    /// The file with the runtime, of those of a program. Files that were read are remembered in `known`.
    fn find(&self, key: ProgramKey, table: &Table, known: &mut KnownFiles) -> Option<(Library, Arc<KnownFile>)>;

    /// What reads the layout in a process, on a thread that can be left behind: a failure may be gone a moment later.
    fn reading(&self, tgid: u32, library: &Library, file: &Arc<KnownFile>) -> Reading;
}

/// What reads a layout.
pub(super) type Reading = Box<dyn FnOnce() -> Result<Arc<dyn Reader>, String> + Send>;

/// The runtime of one program, of which the layout is known.
pub(super) trait Reader: Send + Sync + Debug {
    /// Tells the kernel side what it walks by.
    fn describe(&self, to: &mut so_runtime);

    /// Whether there is code that the program made since this was read, of which more is to be said.
    fn lacks(&self, _made: &[Range<u64>]) -> bool {
        false
    }

    /// Whether a place that had no name has one by now, without a look at the process.
    fn remembers(&self, _place: RuntimePlace) -> bool {
        false
    }

    /// Memory of what was learned to name frames by, which can be learned anew.
    fn table_bytes(&self) -> u64 {
        0
    }

    /// Forgets that, unless somebody uses it at the moment.
    fn forget_tables(&self) {}

    /// How often they were forgotten since the last call, since they were full.
    fn take_tables_forgotten(&self) -> u64 {
        0
    }

    /// The frames of a place, leaf first, of which there is at least one.
    fn named(&self, memory: &ProcessMemory, place: RuntimePlace) -> Result<Vec<Frame>, Nameless>;
}
