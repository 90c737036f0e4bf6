//! The samples of one interval whose stacks are deferred.

use std::sync::Arc;

use super::pool::{Kept, StackPool, Wanted};
use crate::agent::locate::address_of;
use crate::agent::naming::{Ahead, is_of};
use crate::agent::tables::UnwindStats;
use crate::cpu_budget::CpuBudget;
use crate::frames::{CodeLocation, ProgramKey, SampleKind, SourceId};
use crate::kernel::{
    DeferredWalk, EXACT_ADDRESS, FrameWord, RawSample, StackCopy, Tables, WalkEnd, WalkStop, Woken, leave_out_middle,
    so_walk,
};
use crate::process::{Leaving, Program, Sighting, Table};
use crate::runtime::PagedMemory;

/// A sample whose stack is walked to its end when its tables are there.
#[derive(Debug)]
pub(in crate::agent) struct DeferredStack {
    sample: OwnedSample,
    walk: so_walk,
    stack: Kept,
    stop: Stop,
}

/// The sample without what its walk changes.
#[derive(Debug)]
pub(super) struct OwnedSample {
    kind: SampleKind,
    value_ns: u64,
    wait_ns: u64,
    time_ns: u64,
    cpu: u32,
    tid: u32,
    pub(super) key: ProgramKey,
    proc_tgid: u32,
    image: u64,
    cgroup_id: u64,
    comm: Box<[u8]>,
    kernel: Box<[u64]>,
    kernel_cut: bool,
    user: Vec<u64>,
    user_skipped: u32,
    woken: Option<Woken>,
}

/// Where a walk stopped, and what is known of its program.
#[derive(Debug)]
pub(in crate::agent) struct Stop {
    /// Of the last frame's code.
    pub(in crate::agent) location: CodeLocation,
    /// When its program is opened at the latest; none where it was.
    pub(in crate::agent) opens_by_ns: Option<u64>,
    /// As it was known when the sample came, or was opened: by the time that its tables come it may be forgotten.
    pub(in crate::agent) program: Option<Arc<Program>>,
}

/// A sample whose walk has ended.
pub(super) struct Ended {
    pub(super) sample: OwnedSample,
    pub(super) walk_end: WalkEnd,
    pub(super) program: Option<Arc<Program>>,
}

impl OwnedSample {
    fn of(sample: &RawSample<'_>) -> Self {
        Self {
            kind: sample.kind,
            value_ns: sample.value_ns,
            wait_ns: sample.wait_ns,
            time_ns: sample.time_ns,
            cpu: sample.cpu,
            tid: sample.tid,
            key: sample.key(),
            proc_tgid: sample.proc_tgid,
            image: sample.image,
            cgroup_id: sample.cgroup_id,
            comm: sample.comm.into(),
            kernel: sample.kernel.into(),
            kernel_cut: sample.kernel_cut,
            user: sample.user.to_vec(),
            user_skipped: sample.user_skipped,
            woken: sample.woken,
        }
    }

    /// As the kernel side would have handed it over, had it ended the walk so.
    pub(super) fn as_raw(&self, walk_end: WalkEnd) -> RawSample<'_> {
        RawSample {
            kind: self.kind,
            value_ns: self.value_ns,
            wait_ns: self.wait_ns,
            time_ns: self.time_ns,
            cpu: self.cpu,
            tgid: self.key.tgid,
            tid: self.tid,
            start_ticks: self.key.start_ticks,
            exec_id: self.key.exec_id,
            cgroup_id: self.cgroup_id,
            comm: &self.comm,
            kernel: &self.kernel,
            user: &self.user,
            user_skipped: self.user_skipped,
            walk_end,
            deferred: None,
            kernel_thread: false,
            kernel_cut: self.kernel_cut,
            proc_tgid: self.proc_tgid,
            image: self.image,
            woken: self.woken,
        }
    }
}

impl DeferredStack {
    /// True where the walk stopped at code of which nothing was known.
    fn is_astray(&self) -> bool {
        self.stop.location.source == SourceId::UNKNOWN
    }

    /// True where the walk stopped at code whose table may have come.
    pub(super) fn may_go_on(&self, may_be_there: impl Fn(CodeLocation) -> bool) -> bool {
        !self.is_astray() && may_be_there(self.stop.location)
    }

    /// Goes on with the walk.
    pub(super) fn walk_on(
        &mut self,
        tables: &mut Tables,
        pool: &mut StackPool,
        table: &mut Table,
        now_ns: u64,
    ) -> WalkStop {
        let sample = &mut self.sample;
        let copy = pool.stack(&self.stack);
        // Of code that a runtime made, its structures are read as they are now: the frames' cookies tell what changed.
        let memory = table.proc_id(sample.key).map(PagedMemory::of);
        let read = |address: u64, into: &mut [u8]| memory.as_ref().is_some_and(|memory| memory.read(address, into));
        let stop = tables.walk_on(sample.key, &mut self.walk, copy, &read, &mut sample.user);
        sample.user_skipped += leave_out_middle(&mut sample.user);
        if stop == WalkStop::NoTable {
            self.stop.location = location_of_stop(&sample.user, &self.walk, sample.key, table, now_ns);
        }
        stop
    }

    /// The sample when nothing more is walked.
    pub(super) fn end(self, stop: WalkStop, pool: &mut StackPool, stats: &mut UnwindStats) -> Ended {
        let mut sample = self.sample;
        pool.release(self.stack);
        stats.walked_deferred += 1;
        let walk_end = match stop {
            WalkStop::Root => WalkEnd::Root,
            WalkStop::Cut => WalkEnd::Cut,
            WalkStop::Broken => WalkEnd::Broken,
            WalkStop::NoTable => {
                stats.walked_without_table += 1;
                WalkEnd::Broken
            }
            WalkStop::NoMapping => {
                // What returns to where there is no code is no frame.
                if sample.user.len() > 1 && sample.user.last().is_some_and(|last| last & EXACT_ADDRESS == 0) {
                    sample.user.pop();
                }
                WalkEnd::Broken
            }
        };
        Ended {
            sample,
            walk_end,
            program: self.stop.program,
        }
    }
}

/// What looking again has brought.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RescanResult {
    /// Mappings were found that were not known before.
    pub(super) found: bool,
    /// Some will be read again soon.
    pub(super) waits: bool,
}

/// In the order in which they came.
#[derive(Debug, Default)]
pub(in crate::agent) struct DeferredStacks(Vec<DeferredStack>);

impl DeferredStacks {
    pub(in crate::agent) fn len(&self) -> usize {
        self.0.len()
    }

    /// True where no stack waits for a table.
    pub(in crate::agent) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps a sample and the copy of its stack. Gives `stop` back where there is no room for the copy.
    pub(in crate::agent) fn keep(
        &mut self,
        sample: &RawSample<'_>,
        deferred: &DeferredWalk<'_>,
        stop: Stop,
        pool: &mut StackPool,
    ) -> Result<(), Stop> {
        let addresses = sample.kernel.len() + sample.user.len();
        let wanted = Wanted {
            file: stop.location.source,
            tid: sample.tid,
            stack: StackCopy::of(&deferred.walk, deferred.stack),
            beside_bytes: size_of::<DeferredStack>() + addresses * size_of::<u64>() + sample.comm.len(),
        };
        let Some(stack) = pool.keep(wanted) else {
            return Err(stop);
        };
        self.0.push(DeferredStack {
            sample: OwnedSample::of(sample),
            walk: deferred.walk,
            stack,
            stop,
        });
        Ok(())
    }

    /// All of them, out of here.
    pub(super) fn take(&mut self) -> Vec<DeferredStack> {
        std::mem::take(&mut self.0)
    }

    /// Those that still wait.
    pub(super) fn put_back(&mut self, waiting: Vec<DeferredStack>) {
        self.0 = waiting;
    }

    /// Opens programs that were left for later: those that cannot wait any longer, and others as the CPU budget allows.
    pub(super) fn open(&mut self, table: &mut Table, cpu_budget: &CpuBudget, now_ns: u64) {
        let mut has_room = true;
        for DeferredStack { sample, walk, stop, .. } in &mut self.0 {
            let Some(by_ns) = stop.opens_by_ns else { continue };
            if by_ns > now_ns && table.opens_by_ns(sample.key, now_ns).is_some() {
                has_room = has_room && cpu_budget.has_room();
                if !has_room {
                    continue;
                }
            }
            stop.opens_by_ns = None;
            let comm = String::from_utf8_lossy(&sample.comm);
            let seen = Sighting {
                key: sample.key,
                proc_tgid: sample.proc_tgid,
                image: sample.image,
                cgroup_id: sample.cgroup_id,
                time_ns: sample.time_ns,
                kernel_thread: false,
                comm: &comm,
            };
            stop.program = Some(table.program(&seen, now_ns).program);
            stop.location = location_of_stop(&sample.user, walk, sample.key, table, now_ns);
        }
    }

    /// True where programs are still to be opened.
    pub(in crate::agent) fn has_unopened(&self) -> bool {
        self.0.iter().any(|deferred| deferred.stop.opens_by_ns.is_some())
    }

    /// Whose stacks wait for tables, and where the code is at which they stopped.
    pub(in crate::agent) fn stops(&self) -> impl Iterator<Item = (ProgramKey, CodeLocation)> {
        self.0
            .iter()
            .map(|deferred| (deferred.sample.key, deferred.stop.location))
    }

    /// Looks again for code that lay in no known mapping.
    pub(super) fn look_again(&mut self, table: &mut Table, now_ns: u64) -> RescanResult {
        let mut result = RescanResult::default();
        for deferred in self.0.iter_mut().filter(|deferred| deferred.is_astray()) {
            let sample = &deferred.sample;
            let Some((address, true)) = stopped_at(&sample.user, &deferred.walk) else {
                continue;
            };
            deferred.stop.location = table.location(sample.key, address, true, now_ns);
            let is_unknown = deferred.is_astray();
            result.found |= !is_unknown;
            result.waits |= is_unknown && table.may_read_after(deferred.sample.key, deferred.sample.time_ns);
        }
        result
    }

    /// Adds the locations that these stacks have in files that are about to be given up, and what these are.
    pub(in crate::agent) fn add_to(&self, ahead: &mut Ahead, leaving: &[Leaving], table: &mut Table, now_ns: u64) {
        for DeferredStack { sample, .. } in &self.0 {
            for (index, address) in sample.user.iter().enumerate() {
                if !matches!(FrameWord::of(*address), FrameWord::Address(_)) {
                    continue;
                }
                let innermost = index == 0 || address & EXACT_ADDRESS != 0;
                let location = table.location(sample.key, address_of(*address, innermost), false, now_ns);
                if let Some(source) = table.source(sample.key, location.source, now_ns)
                    && is_of(leaving, &source)
                {
                    ahead.sources.entry(location.source).or_insert(source);
                    ahead.locations.push(location);
                }
            }
        }
    }
}

/// The code of the frame at which a walk stopped.
pub(in crate::agent) fn location_of_stop(
    user: &[u64],
    walk: &so_walk,
    key: ProgramKey,
    table: &mut Table,
    now_ns: u64,
) -> CodeLocation {
    let (address, is_code) = stopped_at(user, walk).unwrap_or_default();
    table.location(key, address, is_code, now_ns)
}

/// Where a walk stopped that is to go on, and whether there is code for certain: it was interrupted, or tables led to
/// it. Code that PHP made needs the table of the interpreter's loop.
fn stopped_at(user: &[u64], walk: &so_walk) -> Option<(u64, bool)> {
    if walk.php_wanted != 0 {
        return Some((walk.php_wanted, true));
    }
    let last = *user.last()?;
    let innermost = user.len() == 1 || last & EXACT_ADDRESS != 0;
    Some((address_of(last, innermost), walk.guessed == 0))
}
