//! What the kernel side tells beside samples, on its way to the process table.

use std::time::Duration;

use super::sampling::Sampling;
use super::threads::AgentError;
use crate::frames::ProgramKey;
use crate::kernel::{self, Event};
use crate::sys;

/// How often BPF programs are listed where the kernel does not tell of them as they come and go.
const CODE_LIST_NS: u64 = 4_000_000_000;

impl Sampling {
    pub(super) fn take_events(&mut self, timeout: Duration) -> Result<usize, AgentError> {
        let (table, mappings_told) = (&mut self.table, self.sensor.tells_mappings());
        let count = self.sensor.wait_events(timeout, |event| {
            let now = sys::monotonic_ns();
            let key = |tgid, start_ticks, exec_id| ProgramKey {
                tgid,
                start_ticks,
                exec_id,
            };
            match event {
                Event::Exec(executed) => table.on_exec(&executed, mappings_told, now),
                Event::Fork {
                    tgid,
                    start_ticks,
                    exec_id,
                    proc_tgid,
                    parent_tgid,
                    parent_start_ticks,
                } => {
                    let parent = key(parent_tgid, parent_start_ticks, exec_id);
                    table.on_fork(key(tgid, start_ticks, exec_id), proc_tgid, parent, now);
                }
                Event::Exit { tgid, start_ticks } => table.on_exit(tgid, start_ticks, now),
                Event::Move {
                    tgid,
                    start_ticks,
                    time_ns,
                } => table.on_move(tgid, start_ticks, time_ns),
                Event::Group { id, path } => table.on_group(id, &path),
                // Of other ids than those in /proc nobody knows whose they are.
                Event::Map { tgid, new } if mappings_told => table.on_map(tgid, &new, now),
                Event::Map { .. } => {}
                Event::Code(change) => table.on_code(&change),
            }
        })?;
        Ok(count)
    }

    /// Where changes of the kernel's code were lost, or are not told at all, the list of what is there tells what can
    /// be told. `now` is from before the events were taken that were taken last.
    pub(super) fn follow_code(&mut self, now: u64) {
        let lost = self.sensor.mappings_lost();
        let is_due = self
            .code_listed_ns
            .is_none_or(|at| !self.sensor.tells_code() && now >= at + CODE_LIST_NS);
        if lost != self.code_lost || is_due {
            self.code_lost = lost;
            let listed_at = sys::monotonic_ns();
            let all = kernel::bpf_code();
            if self.code_listed_ns.is_some() || all.is_some() {
                self.table
                    .set_code(&all.unwrap_or_default(), self.code_certain_ns, listed_at);
            }
            self.code_listed_ns = Some(listed_at);
        }
        self.code_certain_ns = now;
    }
}
