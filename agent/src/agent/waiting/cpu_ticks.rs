//! Ticks of each CPU in an interval, and those that met it idle: beside the waits for a CPU they say whether it had
//! time left.

use std::collections::BTreeMap;

use crate::frames::CpuTicks;

/// What was told by now, and what the timers did not count since then.
#[derive(Debug, Default)]
pub(in crate::agent) struct TicksOfCpus {
    /// Of each CPU by its number, cumulative.
    told: Vec<CpuTicks>,
    /// Ticks that an idle CPU left out.
    left_out: BTreeMap<u32, u64>,
}

impl TicksOfCpus {
    /// So many ticks did not come since the CPU was idle.
    pub(in crate::agent) fn leave_out(&mut self, cpu: u32, ticks: u64) {
        if ticks > 0 {
            *self.left_out.entry(cpu).or_default() += ticks;
        }
    }

    /// Those since the last call, of CPUs that had some. `now` is what the timers have counted of each.
    pub(in crate::agent) fn take(&mut self, now: Vec<CpuTicks>) -> BTreeMap<u32, CpuTicks> {
        let mut left_out = std::mem::take(&mut self.left_out);
        let before = std::mem::replace(&mut self.told, now);
        let mut ticks = BTreeMap::new();
        for (cpu, now) in (0..).zip(&self.told) {
            let before = before.get(cpu as usize).copied().unwrap_or_default();
            let left_out = left_out.remove(&cpu).unwrap_or(0);
            let counted = CpuTicks {
                ticks: now.ticks.saturating_sub(before.ticks) + left_out,
                idle_ticks: now.idle_ticks.saturating_sub(before.idle_ticks) + left_out,
            };
            if counted.ticks > 0 {
                ticks.insert(cpu, counted);
            }
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_what_was_added_to_each_cpu_and_what_it_left_out() {
        let counted = |ticks, idle_ticks| CpuTicks { ticks, idle_ticks };
        let mut ticks = TicksOfCpus::default();
        let first = ticks.take(vec![counted(10, 4), counted(0, 0)]);
        assert_eq!(first, BTreeMap::from([(0, counted(10, 4))]));
        ticks.leave_out(1, 0);
        ticks.leave_out(1, 7);
        ticks.leave_out(1, 2);
        let second = ticks.take(vec![counted(30, 4), counted(1, 0), counted(0, 0)]);
        assert_eq!(second, BTreeMap::from([(0, counted(20, 0)), (1, counted(10, 9))]));
        assert!(ticks.take(vec![counted(30, 4), counted(1, 0)]).is_empty());
    }
}
