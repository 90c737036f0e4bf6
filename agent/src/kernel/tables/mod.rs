//! The tables by which user stacks are walked, in memory that the BPF programs read.
//!
//! In: compiled files and the executable mappings of programs. Out: the same where a walk finds them, in the kernel or
//! over a copied stack, and how many bytes they take. Slabs are array maps of their own in a map of maps, made as they
//! are needed; a program is published by one update of a hash map.

mod runtimes;
mod shared;
mod walk;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::error::KernelError;
use super::sample::WalkStop;
use super::skeletons::sampler;
use crate::frames::ProgramKey;
use crate::unwind::{
    CodeMapping, FileTable, Filled, Installed, Layout, Memory, NoRoom, Published, RULES, Range, SLAB_WORDS,
};
use runtimes::RuntimeEntries;
use shared::Shared;
pub(super) use shared::{charged_bytes, shared_bytes};
pub(in crate::kernel) use walk::LiveMemory;
pub use walk::{
    Arch, HostMemory, RED_ZONE_BYTES, ReadMemory, Registers, StackCopy, leave_out_middle, so_cpython, so_jvm, so_php,
    so_ruby, so_runtime, so_v8, so_walk,
};

/// Slots in the map of slabs.
const MAX_SLABS: usize = 64;
/// Slabs that are mapped into this process at a time, for walks of deferred stacks. What is mapped counts as resident
/// for whoever looks from outside, twice then, as maps and as this process's memory. Mapping one costs as much as
/// some hundred steps of a walk.
const MAPPED_SLABS: usize = 4;
/// How long they stay mapped after the last walk, and the window for writing after the last table: both come in bursts.
const MAPPED_NS: u64 = 1_000_000_000;
/// Words that are mapped for writing at a time, a number of whole pages of any size: what is written shortly after lies
/// near.
const WINDOW_WORDS: usize = 4 * 1024;
/// `SO_RUNTIME_JVM` of bpf/runtime_abi.h.
const KIND_JVM: u32 = 1;
const KIND_V8: u32 = 4;
const KIND_PHP: u32 = 16;
/// Programs that may be published at a time.
const MAX_PROGRAMS: usize = 8192;

/// Memory of BPF maps.
struct MapMemory {
    outer: MapHandle,
    /// Keep the maps alive; the kernel's map of slabs does too.
    slabs: Vec<MapHandle>,
    /// What the kernel charges for them.
    slab_bytes: u64,
    /// By their numbers, the one used last at the end.
    mapped: Vec<(usize, Shared<u32>)>,
    /// What was written to last: the slab's number, and the mapping's first word.
    window: Option<(usize, usize, Shared<u32>)>,
    /// It was written to since the last look at it.
    window_used: bool,
    max_slabs: usize,
    rules: Shared<u64>,
}

impl MapMemory {
    fn try_add_slab(&mut self) -> Result<(), libbpf_rs::Error> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags: BPF_F_MMAPABLE,
            ..Default::default()
        };
        let map = MapHandle::create(MapType::Array, Some("so_slab"), 4, SLAB_WORDS * 4, 1, &options)?;
        let number = u32::try_from(self.slabs.len()).unwrap_or(u32::MAX);
        let fd = map.as_fd().as_raw_fd();
        self.outer
            .update(&number.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)?;
        self.slab_bytes += charged_bytes(map.as_fd());
        self.slabs.push(map);
        Ok(())
    }

    /// The words of a slab; maps it where it is not, and gives up the one used longest ago.
    fn slab(&mut self, number: usize) -> Option<&Shared<u32>> {
        if let Some(at) = self.mapped.iter().position(|(mapped, _)| *mapped == number) {
            self.mapped[at..].rotate_left(1);
        } else {
            let map = self.slabs.get(number)?;
            if self.mapped.len() >= MAPPED_SLABS {
                self.mapped.remove(0);
            }
            let words = Shared::map(map.as_fd(), SLAB_WORDS as usize)
                .inspect_err(|error| tracing::warn!(%error, "cannot map a slab of unwinding tables"));
            self.mapped.push((number, words.ok()?));
        }
        self.mapped.last().map(|(_, words)| words)
    }

    /// Maps what holds a range for writing, unless it was written to last; also gives which word of it is the range's
    /// first.
    fn window(&mut self, range: Range) -> Option<(&mut Shared<u32>, usize)> {
        let (slab, first) = (range.slab(), range.first_word());
        let end = first + range.words as usize;
        let holds = |(mapped, begin, words): &(usize, usize, Shared<u32>)| {
            *mapped == slab && (*begin..=begin + words.count()).contains(&end) && *begin <= first
        };
        if !self.window.as_ref().is_some_and(holds) {
            let begin = first / WINDOW_WORDS * WINDOW_WORDS;
            let count = end.next_multiple_of(WINDOW_WORDS) - begin;
            let words = Shared::map_from(self.slabs.get(slab)?.as_fd(), begin, count)
                .inspect_err(|error| tracing::warn!(%error, "cannot map a slab of unwinding tables"));
            self.window = Some((slab, begin, words.ok()?));
        }
        self.window_used = true;
        let (_, begin, words) = self.window.as_mut()?;
        Some((words, first - *begin))
    }
}

impl Memory for MapMemory {
    fn add_slab(&mut self) -> bool {
        if self.slabs.len() >= self.max_slabs {
            return false;
        }
        let added = self.try_add_slab();
        if let Err(error) = &added {
            tracing::warn!(%error, "no more memory for unwinding tables");
        }
        added.is_ok()
    }

    fn write(&mut self, range: Range, words: &mut dyn Iterator<Item = u32>) {
        if let Some((window, first)) = self.window(range) {
            window.write(first, words.take(range.words as usize));
        }
    }

    fn write_pairs(&mut self, range: Range, pairs: &mut dyn Iterator<Item = u64>) {
        if let Some((window, first)) = self.window(range) {
            window.write_pairs(first, pairs.take(range.words as usize / 2));
        }
    }

    fn write_rule(&mut self, number: usize, bits: u64) {
        self.rules.write(number, [bits]);
    }
}

struct Program {
    published: Published,
    address_space: u32,
    /// Its number among those of runtimes.
    runtime: Option<u32>,
}

/// Owner of the maps' content.
#[allow(missing_debug_implementations, reason = "holds libbpf objects, which have none")]
pub struct Tables {
    layout: Layout<MapMemory>,
    processes: MapHandle,
    runtimes: RuntimeEntries,
    /// Also those that were replaced by an exec a moment ago: their deferred stacks are still to be walked.
    programs: BTreeMap<ProgramKey, Program>,
    next_space: u32,
    /// When deferred stacks were walked last.
    walked_ns: u64,
    /// When was last looked whether the window is still in use.
    looked_ns: u64,
}

/// True where no program is known that came later under the same process id.
fn is_newest<P>(programs: &BTreeMap<ProgramKey, P>, key: ProgramKey) -> bool {
    let last = ProgramKey {
        start_ticks: u64::MAX,
        exec_id: u32::MAX,
        ..key
    };
    let newest = programs.range(..=last).next_back();
    newest.is_none_or(|(newest, _)| newest.tgid != key.tgid || *newest <= key)
}

impl Tables {
    pub(super) fn new(maps: &sampler::SamplerMaps<'_>, limit_bytes: u64) -> Result<Self, KernelError> {
        let failing = |what| move |source| KernelError::Tables { what, source };
        let slabs = limit_bytes / (u64::from(SLAB_WORDS) * 4);
        let memory = MapMemory {
            outer: MapHandle::try_from(&maps.slabs).map_err(failing("slabs"))?,
            slabs: Vec::new(),
            slab_bytes: 0,
            mapped: Vec::new(),
            window: None,
            window_used: false,
            max_slabs: usize::try_from(slabs).unwrap_or(MAX_SLABS).clamp(1, MAX_SLABS),
            rules: Shared::map(maps.rules.as_fd(), RULES).map_err(|source| failing("rules")(source.into()))?,
        };
        Ok(Self {
            layout: Layout::new(memory),
            processes: MapHandle::try_from(&maps.processes).map_err(failing("processes"))?,
            runtimes: RuntimeEntries::new(MapHandle::try_from(&maps.runtimes).map_err(failing("runtimes"))?),
            programs: BTreeMap::new(),
            next_space: 1,
            walked_ns: 0,
            looked_ns: 0,
        })
    }

    /// Copies a file's table in.
    pub fn install(&mut self, table: &FileTable) -> Result<Installed, NoRoom> {
        self.layout.install(table)
    }

    /// Makes room for a file's directory, all chunks of which are pending.
    pub fn open(&mut self, chunks: u32) -> Result<Installed, NoRoom> {
        self.layout.open(chunks)
    }

    /// Copies the tables of some of a file's chunks in, from number `first` on.
    pub fn fill(
        &mut self,
        file: &Installed,
        chunks: std::ops::Range<u32>,
        table: &FileTable,
        base: u64,
    ) -> Result<Filled, NoRoom> {
        self.layout.fill(file, chunks, table, base)
    }

    /// Makes chunks pending again, and gives their room back.
    pub fn empty(&mut self, file: &Installed, filled: Filled, now_ns: u64) {
        self.layout.empty(file, filled, now_ns);
    }

    /// Gives a table's room back. Whoever maps the file must have been published anew before.
    pub fn remove(&mut self, installed: Installed, now_ns: u64) {
        self.layout.remove(installed, now_ns);
    }

    /// Makes a program's mappings, ascending, what its samples are walked by. False where there is no room for them.
    ///
    /// The kernel side has one entry for a process id. A program that was replaced by an exec is published anew as well
    /// when a table of its files comes, and must not take its successor's entry then.
    ///
    /// With a language's runtime, code that the runtime made is walked by it.
    pub fn publish(
        &mut self,
        key: ProgramKey,
        mappings: &[CodeMapping<'_>],
        runtime: Option<&so_runtime>,
        now_ns: u64,
    ) -> bool {
        if self.programs.len() >= MAX_PROGRAMS && !self.programs.contains_key(&key) {
            return false;
        }
        let Some(published) = self.layout.publish(mappings) else {
            return false;
        };
        let is_present = is_newest(&self.programs, key);
        // Another number, so that no rule that was cached for the old mappings is found for these.
        let address_space = self.next_space;
        self.next_space = self.next_space.checked_add(1).unwrap_or(1);
        let known = self.programs.get(&key).and_then(|program| program.runtime);
        let runtime = self.runtimes.set(known, runtime, now_ns);
        let mut value = Vec::with_capacity(40);
        value.extend(key.start_ticks.to_ne_bytes());
        let place = published.mappings.place;
        let runtime_word = runtime.map_or(0, |number| number + 1);
        for word in [key.exec_id, address_space, place, published.count, runtime_word, 0] {
            value.extend(word.to_ne_bytes());
        }
        value.extend(0u64.to_ne_bytes());
        let id = key.tgid.to_ne_bytes();
        let is_there = !is_present || self.processes.update(&id, &value, MapFlags::ANY).is_ok();
        let program = Program {
            published,
            address_space,
            runtime,
        };
        if let Some(old) = self.programs.insert(key, program) {
            self.layout.withdraw(old.published, now_ns);
        }
        is_there
    }

    /// Forgets a program.
    pub fn withdraw(&mut self, key: ProgramKey, now_ns: u64) {
        let Some(old) = self.programs.remove(&key) else {
            return;
        };
        // Unless the entry is another program's of the same process id by now.
        let id = key.tgid.to_ne_bytes();
        if let Ok(Some(value)) = self.processes.lookup(&id, MapFlags::ANY)
            && value.get(12..16) == Some(&old.address_space.to_ne_bytes())
        {
            // Gone already is as good.
            let _ = self.processes.delete(&id);
        }
        self.runtimes.set(old.runtime, None, now_ns);
        self.layout.withdraw(old.published, now_ns);
    }

    /// Makes room that was given back a while ago free again, and unmaps what was not written to and what no walk
    /// needed for a while.
    pub fn reclaim(&mut self, now_ns: u64) {
        self.layout.reclaim(now_ns);
        if now_ns.saturating_sub(self.looked_ns) >= MAPPED_NS {
            self.looked_ns = now_ns;
            if !std::mem::take(&mut self.layout.memory.window_used) {
                self.layout.memory.window = None;
            }
        }
        if now_ns.saturating_sub(self.walked_ns) >= MAPPED_NS {
            self.layout.memory.mapped = Vec::new();
        }
    }

    /// Goes on with a walk that the kernel side could not end, on the copied part of the stack of a thread that has
    /// gone on since; adds the frames' addresses. `read` reads the process's memory as it is now, for code of a
    /// language's runtime.
    pub fn walk_on(
        &mut self,
        key: ProgramKey,
        walk: &mut so_walk,
        stack: StackCopy<'_>,
        read: &ReadMemory<'_>,
        frames: &mut Vec<u64>,
    ) -> WalkStop {
        // Interpreters' own chains of frames have gone on since the stack was copied; what HotSpot says of code has
        // not, nor how code that OPcache made is stepped from.
        let as_it_was = |runtime: &so_runtime| so_runtime {
            kinds: runtime.kinds & (KIND_JVM | KIND_V8 | KIND_PHP),
            php: so_php {
                current: 0,
                fiber: 0,
                is_local: 0,
                ..runtime.php
            },
            ..*runtime
        };
        self.walk_with(as_it_was, key, walk, stack, read, frames)
    }

    /// The same of a thread that sleeps: interpreters' chains are what they were.
    pub(super) fn walk_asleep(
        &mut self,
        key: ProgramKey,
        walk: &mut so_walk,
        stack: StackCopy<'_>,
        read: &ReadMemory<'_>,
        frames: &mut Vec<u64>,
    ) -> WalkStop {
        self.walk_with(|runtime| *runtime, key, walk, stack, read, frames)
    }

    fn walk_with(
        &mut self,
        seen: impl Fn(&so_runtime) -> so_runtime,
        key: ProgramKey,
        walk: &mut so_walk,
        stack: StackCopy<'_>,
        read: &ReadMemory<'_>,
        frames: &mut Vec<u64>,
    ) -> WalkStop {
        let Some(program) = self.programs.get(&key) else {
            return WalkStop::NoTable;
        };
        let runtime = program.runtime.and_then(|number| self.runtimes.get(number));
        // V8's objects may have been moved, by other threads of one that sleeps too.
        let runtime = runtime.map(|runtime| so_runtime {
            v8: so_v8 {
                is_late: 1,
                ..runtime.v8
            },
            ..seen(runtime)
        });
        walk.chain_frame = 0;
        let live = LiveMemory {
            read,
            runtime: runtime.as_ref(),
        };
        let memory = &mut self.layout.memory;
        let rules = memory.rules.as_ptr();
        let mut slab_at = |number: usize| memory.slab(number).map_or(std::ptr::null(), |slab| slab.as_ptr());
        // SAFETY: rules are mapped in their full size for as long as this lives, and so is a slab, at least until the
        // next is.
        unsafe {
            walk::walk_on(
                Arch::HOST,
                walk,
                program.published,
                &mut slab_at,
                rules,
                walk::Copied::without_code(stack, live),
                frames,
            )
        }
    }

    /// Ends a round of walks: what was mapped for them stays so for a moment.
    pub fn end_walks(&mut self, now_ns: u64) {
        self.walked_ns = now_ns;
    }

    /// What the kernel charges for the maps that were made here.
    pub(super) fn slab_bytes(&self) -> u64 {
        self.layout.memory.slab_bytes
    }

    /// Bytes that could still be used, in pieces.
    pub fn free_bytes(&self) -> u64 {
        let memory = &self.layout.memory;
        memory.max_slabs as u64 * u64::from(SLAB_WORDS) * 4 - self.layout.used_bytes()
    }

    /// Of the bytes in use, those that will be free in a moment.
    pub fn retiring_bytes(&self) -> u64 {
        self.layout.retiring_bytes()
    }

    /// Bytes of tables and mappings in use, and of those that are not free yet.
    pub fn used_bytes(&self) -> u64 {
        self.layout.used_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_of_a_process_id_is_the_newest_programs() {
        let key = |tgid, start_ticks, exec_id| ProgramKey {
            tgid,
            start_ticks,
            exec_id,
        };
        let known: BTreeMap<ProgramKey, ()> = [key(6, 900, 9), key(7, 100, 5), key(7, 100, 6), key(8, 50, 1)]
            .into_iter()
            .map(|key| (key, ()))
            .collect();
        // An earlier program of the process, or an earlier process of that id.
        assert!(!is_newest(&known, key(7, 100, 5)) && !is_newest(&known, key(7, 99, 7)));
        // The newest one again, its successor, another process under the same id.
        assert!(
            is_newest(&known, key(7, 100, 6)) && is_newest(&known, key(7, 100, 7)) && is_newest(&known, key(7, 101, 1))
        );
        // Processes that were not known.
        assert!(
            is_newest(&known, key(5, 1, 1))
                && is_newest(&known, key(9, 1, 1))
                && is_newest(&BTreeMap::<_, ()>::new(), key(7, 1, 1))
        );
    }
}
