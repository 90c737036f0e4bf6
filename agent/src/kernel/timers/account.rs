//! Ticks that did not come, told apart: those of a CPU that had nothing to do, and those that were missed.
//!
//! Some guests' kernels leave out the ticks of an idle CPU. Whether a CPU was idle the kernel accounts by itself,
//! beside all timers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::sys::clock_ticks_per_second;

const STAT: &str = "/proc/stat";
/// Room for a CPU's line.
const LINE_BYTES: usize = 256;
/// A tick may be due and just about to come, and the time of a timer's start is known to some microseconds only.
const ALWAYS_OPEN: i64 = 2;
/// So many standard deviations are still chance.
const DEVIATIONS: f64 = 3.0;

/// Ticks that were due and did not come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unticked {
    /// While their CPU was idle, by the kernel's own account.
    pub idle: u64,
    /// While it was not: a hypervisor had the CPU, interrupts were off, or the timer does not work.
    pub missed: u64,
}

/// What a CPU's counts stand at, cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) time_ns: u64,
    pub(super) due: u64,
    pub(super) ticks: u64,
    pub(super) idle_ticks: u64,
    /// By the kernel's account; none where it has none.
    pub(super) idle_ns: Option<u64>,
}

/// One CPU's.
#[derive(Debug, Clone, Default)]
pub(super) struct TickAccount {
    last: Counts,
    /// Ticks due less those that came, not yet told of.
    open: i64,
}

impl TickAccount {
    pub(super) fn new(counts: Counts) -> Self {
        Self { last: counts, open: 0 }
    }

    /// What did not come since the last call. While it is so little that it may still come, it waits.
    pub(super) fn settle(&mut self, now: Counts) -> Unticked {
        let before = std::mem::replace(&mut self.last, now);
        let due = now.due.saturating_sub(before.due);
        self.open += due as i64 - now.ticks.saturating_sub(before.ticks) as i64;
        if self.open <= ALWAYS_OPEN {
            self.open = self.open.max(-ALWAYS_OPEN);
            return Unticked::default();
        }
        let open = std::mem::take(&mut self.open) as u64;
        let passed_ns = now.time_ns.saturating_sub(before.time_ns).max(1) as f64;
        let idle_ns = now
            .idle_ns
            .zip(before.idle_ns)
            .map_or(0, |(now, before)| now.saturating_sub(before));
        let share = (idle_ns as f64 / passed_ns).min(1.0);
        // Ticks that met the CPU busy are drawn from its time, and so are those that would have met it idle.
        let chance = DEVIATIONS * (due as f64 * share * (1.0 - share)).sqrt();
        let met = now.idle_ticks.saturating_sub(before.idle_ticks) as f64;
        let idle = if share > 0.0 {
            (due as f64 * share - met + chance).ceil()
        } else {
            0.0
        };
        let idle = (idle.max(0.0) as u64).min(open);
        Unticked {
            idle,
            missed: open - idle,
        }
    }
}

/// The kernel's account of idle time, held open.
#[derive(Debug)]
pub(super) struct IdleTime {
    file: File,
    buffer: Vec<u8>,
    ns_per_tick: u64,
}

impl IdleTime {
    pub(super) fn open(possible_cpus: u32) -> io::Result<Self> {
        Ok(Self {
            file: File::open(STAT)?,
            // A line more: that of all CPUs is the first.
            buffer: vec![0; (possible_cpus as usize + 1) * LINE_BYTES],
            ns_per_tick: 1_000_000_000 / clock_ticks_per_second().max(1),
        })
    }

    /// Idle nanoseconds of each CPU that is online, since the machine started.
    pub(super) fn now(&mut self) -> BTreeMap<u32, u64> {
        let count = self.file.read_at(&mut self.buffer, 0).unwrap_or(0);
        let ns_per_tick = self.ns_per_tick;
        let text = String::from_utf8_lossy(&self.buffer[..count]);
        let ticks = text
            .lines()
            .map_while(|line| line.strip_prefix("cpu"))
            .filter_map(parse_idle);
        ticks
            .map(|(cpu, ticks)| (cpu, ticks.saturating_mul(ns_per_tick)))
            .collect()
    }
}

/// `N user nice system idle iowait …`, in ticks of the user's clock: both kinds of idle time together.
fn parse_idle(line: &str) -> Option<(u32, u64)> {
    let (cpu, fields) = line.split_once(' ')?;
    let mut fields = fields.split(' ').skip(3).map(str::parse::<u64>);
    let (idle, waiting) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((cpu.parse().ok()?, idle.saturating_add(waiting)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five seconds at 20 Hz, of which so much was idle.
    fn settle(ticks: u64, idle_ticks: u64, idle_seconds: f64) -> Unticked {
        let begin = Counts {
            time_ns: 7,
            due: 1000,
            ticks: 900,
            idle_ticks: 500,
            idle_ns: Some(60),
        };
        let end = Counts {
            time_ns: 5_000_000_007,
            due: 1100,
            ticks: 900 + ticks,
            idle_ticks: 500 + idle_ticks,
            idle_ns: Some(60 + (idle_seconds * 1e9) as u64),
        };
        TickAccount::new(begin).settle(end)
    }

    #[test]
    fn a_cpu_that_is_idle_misses_nothing_and_one_that_is_busy_misses_all() {
        let unticked = |idle, missed| Unticked { idle, missed };
        assert_eq!(settle(100, 60, 3.0), unticked(0, 0), "all came");
        assert_eq!(settle(98, 60, 3.0), unticked(0, 0), "the last may be about to come");
        assert_eq!(settle(0, 0, 4.99), unticked(100, 0), "an idle CPU of a guest");
        assert_eq!(
            settle(45, 0, 2.5),
            unticked(55, 0),
            "half busy: what came is a matter of chance"
        );
        assert_eq!(settle(0, 0, 0.0), unticked(0, 100), "a lost CPU");
        assert_eq!(settle(0, 0, 1.0), unticked(32, 68), "a lost CPU that is mostly busy");
        assert_eq!(settle(70, 0, 0.0), unticked(0, 30), "stolen");
        // What is idle has been met as idle.
        assert_eq!(settle(60, 50, 2.5), unticked(15, 25));
    }

    #[test]
    fn without_the_kernel_s_account_nothing_passes_for_idle() {
        let mut account = TickAccount::new(Counts::default());
        let counts = Counts {
            due: 100,
            time_ns: 5_000_000_000,
            ..Counts::default()
        };
        assert_eq!(account.settle(counts), Unticked { idle: 0, missed: 100 });
    }

    #[test]
    fn a_tick_that_is_late_is_waited_for_and_little_adds_up() {
        let mut account = TickAccount::new(Counts::default());
        let mut step = |due, ticks| {
            account
                .settle(Counts {
                    due,
                    ticks,
                    ..Counts::default()
                })
                .missed
        };
        assert_eq!([step(100, 99), step(200, 200), step(300, 301), step(400, 400)], [0; 4]);
        assert_eq!(
            [step(500, 499), step(600, 598), step(700, 697), step(800, 797)],
            [0, 0, 3, 0]
        );
    }

    #[test]
    fn idle_time_is_read_of_each_cpu() {
        assert_eq!(parse_idle("0 54328 1 9163 68118 249 0 10 50 0 0"), Some((0, 68_367)));
        assert_eq!(parse_idle("  111899 0 18470 132126 1094 0"), None, "all CPUs");
        assert_eq!(parse_idle("3 1 2"), None);
        let mut time = IdleTime::open(4096).unwrap();
        let cpus: Vec<u32> = time.now().into_keys().collect();
        assert_eq!(cpus, crate::kernel::online_cpus().unwrap());
    }
}
