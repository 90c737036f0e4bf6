//! What the kernel side tells of processes, control groups and its own code.

use std::sync::Arc;

use super::labels::Labels;
use super::{Entry, MAX_MOVES, SECOND_LOOK_NS, Table};
use crate::frames::{CodeLocation, ProgramKey};
use crate::process::address_space::Source;
use crate::process::{CodeChange, Executed, NewCode};

impl Table {
    /// A process became another program: opens its files at once, unless it is one of too many. Where new mappings are
    /// not told ([`Self::on_map`]), its libraries are looked for a moment later.
    pub fn on_exec(&mut self, executed: &Executed, mappings_told: bool, now_ns: u64) {
        let key = ProgramKey {
            tgid: executed.tgid,
            start_ticks: executed.start_ticks,
            exec_id: executed.exec_id,
        };
        let mut labels = Labels::executed(key, executed);
        let process = self.processes.get(&(key.tgid, key.start_ticks));
        if let Some(before) = process.and_then(|process| process.programs.last()) {
            labels.follow(&before.labels);
        }
        let entry = Entry {
            proc_tgid: executed.proc_tgid,
            image: executed.image,
            read_id: executed.proc_tgid,
            ..Entry::nameless(labels, now_ns)
        };
        self.insert(key, entry, now_ns);
        if !self.rescans.admit_exec(now_ns) {
            return;
        }
        if self.load(key, now_ns) && !mappings_told {
            self.rescans.want(key.tgid, u64::MAX, now_ns + SECOND_LOOK_NS);
        }
    }

    /// A process has new executable memory: it is looked at by the next [`Self::tick`] or soon after.
    pub fn on_map(&mut self, proc_tgid: u32, new: &[NewCode], now_ns: u64) {
        let tgid = self.by_proc_tgid.get(&proc_tgid).copied().unwrap_or(proc_tgid);
        let mapped_ns = new.iter().map(|code| code.time_ns).max().unwrap_or(now_ns);
        if let Some(entry) = self.present_program_mut(tgid) {
            new.iter().for_each(|code| entry.note_new_code(code));
        }
        self.rescans.want(tgid, mapped_ns, now_ns);
    }

    /// A new process is its parent's program until it calls exec.
    pub fn on_fork(&mut self, child: ProgramKey, proc_tgid: u32, parent: ProgramKey, now_ns: u64) {
        let Some(entry) = self.entry(parent) else {
            return;
        };
        let entry = Entry {
            labels: entry.labels.inherited(child),
            knowledge: entry.knowledge,
            proc_tgid,
            image: entry.image,
            read_id: proc_tgid,
            mappings: Arc::clone(&entry.mappings),
            sources: Arc::clone(&entry.sources),
            generation: 0,
            read_ns: entry.read_ns,
            reading: entry.reading,
            replaced: entry.replaced.clone(),
        };
        self.insert(child, entry, now_ns);
        // What the parent mapped and nobody has looked at yet is the child's as well.
        if let Some(mapped_ns) = self.rescans.wanted(parent.tgid) {
            self.rescans.want(child.tgid, mapped_ns, now_ns);
        }
    }

    /// A process was moved to another control group of version 1: which one, its next sample leads to.
    pub fn on_move(&mut self, tgid: u32, start_ticks: u64, time_ns: u64) {
        let Some(process) = self.processes.get_mut(&(tgid, start_ticks)) else {
            return;
        };
        // In each tree once, and each of its threads.
        if process
            .moves
            .back()
            .is_some_and(|last| time_ns.saturating_sub(*last) < 1_000_000)
        {
            return;
        }
        process.moves.push_back(time_ns);
        if process.moves.len() > MAX_MOVES {
            process.moves.pop_front();
            process.earlier_moves += 1;
        }
    }

    /// A control group of version 2 was made.
    pub fn on_group(&mut self, id: u64, path: &str) {
        self.resolver.group_made(id, path);
    }

    /// The kernel's own code came or went.
    pub fn on_code(&mut self, change: &CodeChange) {
        self.kernel_code.on_change(change, || self.sources.take_id());
    }

    /// All code that BPF programs have now, where the changes since `certain_ns` may not all have been told.
    pub fn set_code(&mut self, all: &[CodeChange], certain_ns: u64, now_ns: u64) {
        self.kernel_code.set(all, certain_ns, now_ns, || self.sources.take_id());
    }

    /// Where the kernel has code that comes and goes, what an address meant at that time.
    pub fn kernel_location(&self, address: u64, time_ns: u64) -> Option<(CodeLocation, Source)> {
        self.kernel_code.find(address, time_ns)
    }

    /// A process ended. It is kept for a while: samples of it may still come.
    pub fn on_exit(&mut self, tgid: u32, start_ticks: u64, now_ns: u64) {
        if let Some(process) = self.processes.get_mut(&(tgid, start_ticks)) {
            process.exited_ns = Some(now_ns);
            self.held.one_ended();
        }
    }
}
