//! Which files no living process maps any more.

use std::collections::HashSet;

use super::Table;
use super::entry::ProcessEntry;
use crate::frames::{ProgramKey, SourceId};
use crate::process::holding::Leaving;
use crate::process::proc_files;

/// Processes that were not seen for this long are asked after: the word of their end may have been lost.
const UNSEEN_NS: u64 = 10_000_000_000;
/// So many once a second: asking takes the kernel longer than it looks.
const ASKED_AFTER: usize = 1;
/// And so many, each once, after words were lost.
const ASKED_AFTER_LOSS: usize = 16;

impl Table {
    /// Files that no living process maps since some seconds. What is needed of them is to be read now; then they are to
    /// be given up, so that their filesystem is not busy and their space is free. Each is told once. Stacks of the
    /// programs in `waiting` wait for tables, which keeps their files a little longer.
    pub fn take_leaving(&mut self, waiting: impl IntoIterator<Item = ProgramKey>, now_ns: u64) -> Vec<Leaving> {
        let Self { processes, sources, .. } = self;
        let waited_for = || {
            let programs: HashSet<ProgramKey> = waiting.into_iter().collect();
            let entries = programs.iter().filter_map(|key| {
                let process = processes.get(&(key.tgid, key.start_ticks))?;
                process.program(key.exec_id)
            });
            let sources = entries.flat_map(|entry| entry.sources.iter());
            sources.filter_map(|(_, source)| source.held_id()).collect()
        };
        sources.holding_mut().take_leaving(now_ns, waited_for)
    }

    /// Takes how many words of processes were lost in all. Where there are new ones, all processes are asked after
    /// soon.
    pub fn note_lost_events(&mut self, lost: u64) {
        if lost > self.held.lost {
            (self.held.lost, self.held.left) = (lost, self.processes.len());
        }
    }

    /// Finds out which files are held for nobody, where a process has ended since the last time.
    pub(super) fn look_for_unmapped(&mut self, now_ns: u64) {
        self.ask_after_unseen(now_ns);
        if !self.held.waits && self.held.ended == self.held.seen_ended {
            return;
        }
        self.held.seen_ended = self.held.ended;
        let mapped = self.held_by_living();
        self.held.waits = self.sources.holding_mut().look(&mapped, now_ns);
    }

    fn held_by_living(&self) -> HashSet<SourceId> {
        let living = self.processes.values().filter(|process| process.exited_ns.is_none());
        let programs = living.filter_map(|process| process.programs.last());
        let sources = programs.flat_map(|entry| entry.sources.iter());
        sources.filter_map(|(_, source)| source.held_id()).collect()
    }

    /// Looks whether processes still live of which no sample came for a while, some at a time.
    fn ask_after_unseen(&mut self, now_ns: u64) {
        use std::ops::Bound::{Excluded, Unbounded};
        let is_unseen =
            |process: &ProcessEntry| process.exited_ns.is_none() && now_ns.saturating_sub(process.used_ns) >= UNSEEN_NS;
        let most = if self.held.left > 0 {
            ASKED_AFTER_LOSS
        } else {
            ASKED_AFTER
        };
        let next = self.processes.range((Excluded(self.held.asked), Unbounded));
        let next: Vec<(u32, u64)> = next
            .filter(|(_, process)| is_unseen(process))
            .map(|(id, _)| *id)
            .take(most)
            .collect();
        self.held.left = self.held.left.saturating_sub(most);
        // From the first one again next time, where the last one was reached.
        self.held.asked = if next.len() < most {
            (0, 0)
        } else {
            next.last().copied().unwrap_or_default()
        };
        for (tgid, start_ticks) in next {
            // The idle tasks, and others, have no place in /proc.
            let process = self.processes.get(&(tgid, start_ticks));
            let proc_tgid = process
                .and_then(|process| process.programs.last())
                .map_or(0, |entry| entry.proc_tgid);
            let is_same = |stat: proc_files::Stat| stat.start_ticks == start_ticks;
            if proc_tgid != 0 && !proc_files::stat(proc_tgid).is_some_and(is_same) {
                self.on_exit(tgid, start_ticks, now_ns);
            }
        }
    }
}
