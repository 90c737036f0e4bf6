//! The thread that compiles tables, and in which order it is asked for them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::agent::threads::{AgentError, spawn};
use crate::cpu_budget::{CpuBudget, NeededBy};
use crate::elf::ReadTurn;
use crate::frames::{CodeLocation, ProgramKey, SourceId};
use crate::hash::FastMap;
use crate::kernel::Waker;
use crate::process::{Module, Table};
use crate::sys;
use crate::unwind::{self, FileTable, Outline, TableError};

/// Stacks that count for the order of files. More would let a compiler's or browser's engine, of a hundred megabytes
/// and with all CPUs at work in it, make every other program wait.
const MOST_COUNTED: u32 = 32;

/// What the thread is asked for.
pub(super) enum Job {
    /// A file's table, or its outline.
    File(Arc<Module>),
    Part {
        module: Arc<Module>,
        outline: Arc<Outline>,
        part: u32,
    },
}

/// What it made.
pub(super) enum Made {
    Table(Result<Box<FileTable>, TableError>),
    Outline(Box<Outline>),
    Part(u32, Result<Box<FileTable>, TableError>),
    /// Nothing of the file, or of its part: it was given up meanwhile.
    Unread(Option<u32>),
}

impl Made {
    /// Bytes that it takes where walks find it.
    pub(super) fn bytes(&self) -> u64 {
        let words = match self {
            Made::Table(Ok(file)) | Made::Part(_, Ok(file)) => file.rows.len() + file.chunks.len() * 2,
            Made::Outline(outline) => outline.chunks as usize * 2,
            _ => 0,
        };
        words as u64 * 4
    }
}

/// How many stacks are known to wait for a file: they stopped in its code, or in other code of a program that maps it.
#[derive(Debug, Clone, Copy, Default)]
struct Need {
    there: u32,
    nearby: u32,
}

/// Parts of files, of each file in the order in which they were asked for, and of all files in turns: a compiler asks
/// for hundreds at a time.
struct WaitingParts<M> {
    by_file: BTreeMap<SourceId, (Arc<M>, VecDeque<u32>)>,
    last: Option<SourceId>,
}

impl<M> WaitingParts<M> {
    fn new() -> Self {
        Self {
            by_file: BTreeMap::new(),
            last: None,
        }
    }

    fn push(&mut self, id: SourceId, file: &Arc<M>, part: u32) {
        let new = || (Arc::clone(file), VecDeque::new());
        let (_, parts) = self.by_file.entry(id).or_insert_with(new);
        parts.push_back(part);
    }

    fn is_empty(&self) -> bool {
        self.by_file.is_empty()
    }

    /// The next one, of the file whose turn it is.
    fn pop(&mut self) -> Option<(Arc<M>, u32)> {
        let after = |last| self.by_file.range((Bound::Excluded(last), Bound::Unbounded)).next();
        let next = self.last.and_then(after).or_else(|| self.by_file.first_key_value());
        let id = next.map(|(id, _)| *id)?;
        self.last = Some(id);
        let (file, parts) = self.by_file.get_mut(&id)?;
        let next = parts.pop_front().map(|part| (Arc::clone(file), part));
        if parts.is_empty() {
            self.by_file.remove(&id);
        }
        next
    }
}

/// Files that wait for the thread, and the thread.
pub(super) struct Compiler {
    waiting: BTreeMap<SourceId, Arc<Module>>,
    /// Which somebody waits for.
    waiting_parts: WaitingParts<Module>,
    part_was_last: bool,
    needed: FastMap<SourceId, Need>,
    cpu_budget: CpuBudget,
    /// Stacks wait for what the thread does, or for what comes after it.
    stacks_wait: Arc<AtomicBool>,
    /// None after the end.
    requests: Option<mpsc::SyncSender<Job>>,
    results: mpsc::Receiver<(SourceId, Made)>,
    /// The thread has something to do.
    busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Compiler {
    /// Tables have at most `row_limit` rows; large files are read in turns. `waker` is told whenever something was
    /// made.
    pub(super) fn start(
        row_limit: usize,
        read_turn: ReadTurn,
        cpu_budget: CpuBudget,
        waker: Waker,
    ) -> Result<Self, AgentError> {
        let (requests, todo) = mpsc::sync_channel::<Job>(1);
        let (done, results) = mpsc::sync_channel(1);
        let own_budget = cpu_budget.clone();
        let stacks_wait = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            row_limit,
            read_turn,
            cpu_budget,
            stacks_wait: Arc::clone(&stacks_wait),
        };
        let thread = spawn("stakeout-table", move || {
            for job in todo {
                if done.send(worker.make(job)).is_err() {
                    break;
                }
                waker.wake();
                worker.rest();
            }
        })?;
        Ok(Self {
            waiting: BTreeMap::new(),
            waiting_parts: WaitingParts::new(),
            part_was_last: false,
            needed: FastMap::default(),
            cpu_budget: own_budget,
            stacks_wait,
            requests: Some(requests),
            results,
            busy: false,
            thread: Some(thread),
        })
    }

    pub(super) fn want_file(&mut self, module: &Arc<Module>) {
        self.waiting.insert(module.id, Arc::clone(module));
    }

    pub(super) fn want_part(&mut self, module: &Arc<Module>, part: u32) {
        self.waiting_parts.push(module.id, module, part);
    }

    /// What was made since the last call, if anything was.
    pub(super) fn take(&mut self) -> Option<(SourceId, Made)> {
        let made = self.results.try_recv().ok()?;
        self.busy = false;
        Some(made)
    }

    /// True while nothing is being made, nor will be soon, that a stack waits for.
    pub(super) fn is_settled(&self) -> bool {
        !self.busy && !self.is_asked_for_more()
    }

    /// True where stacks wait for something that the thread does not have yet.
    fn is_asked_for_more(&self) -> bool {
        !self.waiting_parts.is_empty() || self.waiting.keys().any(|id| self.is_needed(*id))
    }

    /// Gives the thread its next work, unless it has some: what stacks wait for, parts and whole files in turns, so
    /// that a small program does not wait for all parts of a compiler; then, where CPU time is left, what they may wait
    /// for later. `outline_of` is that of a file in parts, if there still is one.
    pub(super) fn ask(&mut self, outline_of: impl Fn(SourceId) -> Option<Arc<Outline>>) {
        if self.busy {
            // Whatever it is: what is waited for comes after it.
            if self.is_asked_for_more() {
                self.stacks_wait.store(true, Ordering::Relaxed);
            }
            return;
        }
        let next = most_urgent(&self.waiting, &self.needed).map(|id| (id, self.is_needed(id)));
        if let Some((id, true)) = next
            && (self.part_was_last || self.waiting_parts.is_empty())
        {
            return self.ask_file(id, true);
        }
        while let Some((module, part)) = self.waiting_parts.pop() {
            // Forgotten meanwhile, if there is no such file any more.
            if let Some(outline) = outline_of(module.id) {
                self.part_was_last = true;
                self.stacks_wait.store(true, Ordering::Relaxed);
                return self.send(Job::Part { module, outline, part });
            }
        }
        if let Some((id, is_needed)) = next
            && (is_needed || self.cpu_budget.has_room())
        {
            self.ask_file(id, is_needed);
        }
    }

    fn ask_file(&mut self, id: SourceId, is_needed: bool) {
        if let Some(module) = self.waiting.remove(&id) {
            self.part_was_last = false;
            self.stacks_wait.store(is_needed, Ordering::Relaxed);
            self.send(Job::File(module));
        }
    }

    fn send(&mut self, job: Job) {
        // There is room, and the other side ends only with this one.
        self.busy = self
            .requests
            .as_ref()
            .is_some_and(|requests| requests.try_send(job).is_ok());
    }

    fn is_needed(&self, id: SourceId) -> bool {
        self.needed.get(&id).is_some_and(|need| need.there > 0)
    }

    /// Says which programs' stacks wait for tables, and at which source each of them stopped.
    pub(super) fn prefer(&mut self, table: &Table, stops: impl Iterator<Item = (ProgramKey, CodeLocation)>) {
        self.needed.clear();
        if self.waiting.is_empty() {
            return;
        }
        let mut stacks: FastMap<ProgramKey, u32> = FastMap::default();
        for (key, location) in stops {
            self.needed.entry(location.source).or_default().there += 1;
            *stacks.entry(key).or_default() += 1;
        }
        // Behind the code where it stopped, the stack may need all others of its program.
        for (key, count) in stacks {
            for module in table.modules(key) {
                self.needed.entry(module.id).or_default().nearby += count;
            }
        }
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        self.requests = None;
        self.cpu_budget.end();
        // Room for what is being compiled, so that the thread can end.
        while self.results.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked on anybody's behalf but its own, and there is nothing left to do.
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Worker {
    row_limit: usize,
    read_turn: ReadTurn,
    cpu_budget: CpuBudget,
    stacks_wait: Arc<AtomicBool>,
}

impl Worker {
    fn make(&self, job: Job) -> (SourceId, Made) {
        let (module, part) = match &job {
            Job::File(module) => (Arc::clone(module), None),
            Job::Part { module, part, .. } => (Arc::clone(module), Some(*part)),
        };
        let made = self.make_of_file(job);
        if module.was_given_up() {
            return (module.id, Made::Unread(part));
        }
        made
    }

    fn make_of_file(&self, job: Job) -> (SourceId, Made) {
        match job {
            Job::File(module) => {
                let read = self.reader(&module);
                if let Some(outline) = unwind::outline(&read) {
                    return (module.id, Made::Outline(Box::new(outline)));
                }
                let turn = self.read_turn.take(module.bytes);
                if turn.is_some() {
                    sys::release_memory();
                }
                let table = unless_written_over(&module, unwind::compile(&read, self.row_limit));
                (module.id, Made::Table(table))
            }
            Job::Part { module, outline, part } => {
                let table = unwind::compile_part(self.reader(&module), &outline, part, self.row_limit);
                (module.id, Made::Part(part, unless_written_over(&module, table)))
            }
        }
    }

    /// Reads a file as fast as the CPU budget allows.
    fn reader<'a>(&'a self, module: &'a Module) -> impl Fn(u64, &mut [u8]) -> bool + use<'a> {
        move |offset, bytes| {
            self.rest();
            module.read_at(offset, bytes)
        }
    }

    fn rest(&self) {
        let stacks_wait = self.stacks_wait.load(Ordering::Relaxed);
        self.cpu_budget.rest(if stacks_wait {
            NeededBy::Stacks
        } else {
            NeededBy::Nobody
        });
    }
}

/// What was read of a file that was written over meanwhile is neither the old one nor the new one.
fn unless_written_over(module: &Module, table: Result<FileTable, TableError>) -> Result<Box<FileTable>, TableError> {
    table.and_then(|table| {
        if module.is_overwritten() {
            return Err(TableError::WrittenOver);
        }
        Ok(Box::new(table))
    })
}

/// The file that frees the most stacks for its size: a browser's engine takes as long as hundreds of libraries. Those
/// at which stacks stopped go before all others.
fn most_urgent(waiting: &BTreeMap<SourceId, Arc<Module>>, needed: &FastMap<SourceId, Need>) -> Option<SourceId> {
    let urgency = |id: &SourceId, bytes: u64| {
        let Need { there, nearby } = needed.get(id).copied().unwrap_or_default();
        let stacks = there.saturating_add(nearby).min(MOST_COUNTED);
        // What nobody is known to wait for may be needed in a moment.
        (there > 0, f64::from(stacks).max(0.1) / bytes.max(1) as f64)
    };
    let most = waiting.iter().max_by(|(one, a), (other, b)| {
        let (one, other) = (urgency(one, a.bytes), urgency(other, b.bytes));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    most.map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_many_parts_waits_for_who_asks_for_one() {
        let (first, second, third) = (SourceId::KERNEL, SourceId::VDSO, SourceId::UNKNOWN);
        let mut waiting = WaitingParts::new();
        for part in 0..300 {
            waiting.push(second, &Arc::new("compiler"), part);
        }
        let mut next = || waiting.pop().map(|(file, part)| (*file, part));
        assert_eq!((next(), next()), (Some(("compiler", 0)), Some(("compiler", 1))));
        for (id, file) in [(first, "before"), (third, "after")] {
            waiting.push(id, &Arc::new(file), 7);
        }
        let mut next = || waiting.pop().map(|(file, part)| (*file, part));
        let turns: Vec<_> = (0..4).map_while(|_| next()).collect();
        assert_eq!(turns, [("after", 7), ("before", 7), ("compiler", 2), ("compiler", 3)]);
        assert_eq!(std::iter::from_fn(next).count(), 296);
        assert!(waiting.is_empty());
    }
}
