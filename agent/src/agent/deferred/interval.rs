//! What an interval does with its deferred stacks: they become samples like all others.

use super::stacks::{DeferredStack, Ended};
use crate::agent::gather::{Interval, Memory};
use crate::agent::tables::UnwindStats;
use crate::frames::CodeLocation;
use crate::kernel::{Tables, WalkStop};
use crate::process::Table;

impl Interval {
    /// Goes on with the walks for which `may_be_there` says that what they waited for has come. Those that end are
    /// samples like all others from now on; others may stop again, further on.
    pub(super) fn walk_deferred(
        &mut self,
        tables: &mut Tables,
        memory: &mut Memory,
        table: &mut Table,
        stats: &mut UnwindStats,
        may_be_there: impl Fn(CodeLocation) -> bool,
        now_ns: u64,
    ) {
        let mut waiting = Vec::with_capacity(self.deferred.len());
        for mut deferred in self.deferred.take() {
            let stop = if deferred.may_go_on(&may_be_there) {
                deferred.walk_on(tables, &mut memory.stack_pool, table, now_ns)
            } else {
                WalkStop::NoTable
            };
            if stop == WalkStop::NoTable {
                waiting.push(deferred);
            } else {
                self.finish_one(deferred, stop, memory, table, stats, now_ns);
            }
        }
        self.deferred.put_back(waiting);
    }

    /// Walks the stacks that waited, with the tables that are there now.
    pub(super) fn finish_deferred(
        &mut self,
        tables: &mut Tables,
        memory: &mut Memory,
        table: &mut Table,
        stats: &mut UnwindStats,
        now_ns: u64,
    ) {
        for mut deferred in self.deferred.take() {
            let stop = deferred.walk_on(tables, &mut memory.stack_pool, table, now_ns);
            self.finish_one(deferred, stop, memory, table, stats, now_ns);
        }
    }

    fn finish_one(
        &mut self,
        deferred: DeferredStack,
        stop: WalkStop,
        memory: &mut Memory,
        table: &mut Table,
        stats: &mut UnwindStats,
        now_ns: u64,
    ) {
        let Ended {
            sample,
            walk_end,
            program,
        } = deferred.end(stop, &mut memory.stack_pool, stats);
        let known = program.filter(|_| !table.knows(sample.key));
        self.push(&sample.as_raw(walk_end), known, memory, table, now_ns);
    }
}
