//! The second timers of CPUs that are looked at more closely for a while.
//!
//! In: which CPUs, what a tick stands for. Out: a timer on each, whose period is drawn anew as those of the usual
//! timers are. When its ticks count is not decided here: the program compares each with the burst's own time.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use libbpf_rs::{Link, ProgramMut};

use super::schedule::{BURST, Schedule};
use super::{begin_stretch, open_timer};
use crate::kernel::error::KernelError;
use crate::random::Random;
use crate::sys::monotonic_ns;

struct BurstTimer {
    event: OwnedFd,
    _link: Link,
    schedule: Schedule,
}

/// See the module.
pub(super) struct BurstTimers {
    mean_ns: u64,
    random: Random,
    running: BTreeMap<u32, BurstTimer>,
}

impl BurstTimers {
    pub(super) fn new() -> Self {
        Self {
            mean_ns: 0,
            random: Random::from_system(),
            running: BTreeMap::new(),
        }
    }

    /// Starts timers on these CPUs, in place of those that run; on none where one cannot be had.
    pub(super) fn start(&mut self, cpus: &[u32], mean_ns: u64, program: &ProgramMut<'_>) -> Result<(), KernelError> {
        self.clear();
        self.mean_ns = mean_ns;
        for cpu in cpus {
            let now_ns = monotonic_ns();
            let mut schedule = Schedule::new(&BURST, now_ns);
            let stretch = schedule.draw(mean_ns, now_ns, &mut self.random);
            match open_timer(*cpu, stretch.period_ns, program) {
                Ok((event, _link)) => {
                    schedule.begin(stretch, monotonic_ns());
                    let timer = BurstTimer { event, _link, schedule };
                    self.running.insert(*cpu, timer);
                }
                Err(error) => {
                    self.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// A moment after now of which no timer knows: what is before each one's first tick is a matter of chance.
    pub(super) fn draw_begin_ns(&mut self) -> u64 {
        monotonic_ns() + self.random.between(0.0, self.mean_ns as f64) as u64
    }

    /// Draws new periods where it is time.
    pub(super) fn draw(&mut self, now_ns: u64) {
        for timer in self.running.values_mut() {
            if timer.schedule.overdue_ns(now_ns).is_some() {
                let stretch = timer.schedule.draw(self.mean_ns, now_ns, &mut self.random);
                begin_stretch(&timer.event, &mut timer.schedule, stretch);
            }
        }
    }

    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> {
        self.running.keys().copied()
    }

    /// Stops those of CPUs that were off, which have died with them. Returns of which there was one.
    pub(super) fn forget(&mut self, off: &BTreeSet<u32>) -> Vec<u32> {
        let gone = self.running.extract_if(.., |cpu, _| off.contains(cpu));
        gone.map(|(cpu, _)| cpu).collect()
    }

    pub(super) fn clear(&mut self) {
        self.running.clear();
    }
}
