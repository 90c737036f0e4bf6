//! How waits are observed: by which periods, in which turns, how much of the time.

use crate::agent::limits::{WaitPeriods, WaitTurns};
use crate::kernel::{Counters, WaitCounters};

/// How waits are observed at present.
#[derive(Debug)]
pub(in crate::agent) struct Waiting {
    pub(super) periods: WaitPeriods,
    pub(super) turns: WaitTurns,
    /// When the present turn ends, where not all of the time is observed.
    pub(super) turn_until_ns: u64,
    /// CPU time that the last look at all threads at a turn's end took.
    pub(super) look_ns: u64,
    /// How often those were told that sleep, since it was last seen whether they are too many.
    pub(super) looks: u64,
    /// Up to the last interval's end.
    pub(super) before: WaitCounters,
    pub(super) observed: Observed,
    /// Programs whose waits for a CPU were told as nobody's, since those of too many are told.
    pub(super) programs_left_out: u64,
    /// Programs on a CPU whose waits for it were told with those for any, for the same reason.
    pub(super) cpus_left_out: u64,
}

/// A moment stands for no more: it is told as it is, and the rest of that time is the next interval's to tell.
const MOST_FACTOR: f64 = 32.0;

/// How much of the time waits were observed.
#[derive(Debug)]
pub(super) struct Observed {
    /// When all that is not told yet would have begun, if it was one piece.
    from_ns: u64,
    observed_ns: u64,
    /// Since when they are observed, and that is not in the sum yet.
    since_ns: Option<u64>,
    /// Of the time that the last factor is of.
    last_observed_ns: u64,
    /// Of the time since it was last told.
    untold_ns: u64,
    /// Nothing is observed afterwards, nor told.
    end_ns: u64,
}

impl Observed {
    fn add(&mut self, now_ns: u64) {
        let more_ns = self.since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        self.observed_ns += more_ns;
        self.untold_ns += more_ns;
        self.since_ns = self.since_ns.map(|_| now_ns);
    }

    pub(super) fn turn(&mut self, is_observed: bool, now_ns: u64) {
        self.add(now_ns);
        self.since_ns = is_observed.then_some(now_ns);
    }

    pub(super) fn is_now(&self) -> bool {
        self.since_ns.is_some()
    }

    /// Up to now alone.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.turn(false, now_ns);
        self.end_ns = now_ns;
    }

    /// Time that was observed up to now, since the last factor.
    pub(super) fn up_to_ns(&mut self, now_ns: u64) -> u64 {
        self.add(now_ns);
        self.observed_ns
    }

    /// Time that was observed of what the last factor is of.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_observed_ns
    }

    /// How much of an interval of this length was observed, up to the last factor. Each moment is told once.
    pub(super) fn take_ns(&mut self, interval_ns: u64) -> u64 {
        std::mem::take(&mut self.untold_ns).min(interval_ns)
    }

    /// What the time up to now is of what was observed of it. Where that is next to nothing, it stands for itself, and
    /// the next call's factor has the rest of this time, too.
    pub(super) fn take_factor(&mut self, now_ns: u64) -> f64 {
        let now_ns = now_ns.min(self.end_ns);
        self.add(now_ns);
        self.last_observed_ns = std::mem::take(&mut self.observed_ns);
        let factor = now_ns.saturating_sub(self.from_ns) as f64 / self.last_observed_ns.max(1) as f64;
        if factor > MOST_FACTOR {
            self.from_ns += self.last_observed_ns;
            return 1.0;
        }
        self.from_ns = now_ns;
        factor.max(1.0)
    }
}

impl Waiting {
    /// Observed since then, with these counters.
    pub(in crate::agent) fn new(period_ns: u64, now_ns: u64, before: WaitCounters) -> Self {
        Self {
            periods: WaitPeriods::new(period_ns),
            turns: WaitTurns::default(),
            turn_until_ns: now_ns,
            look_ns: 0,
            looks: 0,
            before,
            observed: Observed {
                from_ns: now_ns,
                observed_ns: 0,
                since_ns: Some(now_ns),
                last_observed_ns: 0,
                untold_ns: 0,
                end_ns: u64::MAX,
            },
            programs_left_out: 0,
            cpus_left_out: 0,
        }
    }

    /// When the next turn is to begin, where not all of the time is observed.
    pub(in crate::agent) fn turn_until_ns(&self) -> Option<u64> {
        (self.turns.turns() > 1).then_some(self.turn_until_ns)
    }

    /// What was done less well, by name.
    pub(in crate::agent) fn limits(&self, counters: &Counters) -> [(&'static str, u64); 8] {
        [
            ("wait_period_lengthened", self.periods.lengthened),
            ("wait_turns_lengthened", self.turns.lengthened),
            ("wait_stacks_moved", counters.waits.stacks_moved),
            ("wait_stacks_refused", counters.waits.stacks_refused),
            ("wakers_left_out", counters.waits.wakers_left_out),
            ("wait_threads_left_out", counters.waits.threads_left_out),
            (
                "run_queues_left_out",
                counters.waits.queues_left_out + self.programs_left_out,
            ),
            (
                "run_queues_without_cpu",
                counters.waits.queues_without_cpu + self.cpus_left_out,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_observed_stands_for_all_of_the_time() {
        let mut observed = Observed {
            from_ns: 100,
            observed_ns: 0,
            since_ns: Some(100),
            last_observed_ns: 0,
            untold_ns: 0,
            end_ns: u64::MAX,
        };
        assert_eq!((observed.take_factor(200), observed.take_ns(100)), (1.0, 100));
        observed.turn(false, 250);
        assert_eq!(observed.up_to_ns(300), 50);
        assert_eq!(observed.take_factor(400), 4.0, "50 of 200");
        assert_eq!((observed.last_ns(), observed.up_to_ns(400)), (50, 0));
        assert_eq!(observed.take_ns(200), 50);
        assert_eq!(observed.take_factor(500), 1.0, "nothing, of which nothing is told");
        assert_eq!(observed.take_ns(100), 0);
        observed.turn(true, 550);
        assert_eq!(
            observed.take_factor(600),
            4.0,
            "50, for 200 since the last that was told"
        );
        assert_eq!(observed.take_ns(100), 50, "of this interval alone");
        assert_eq!(observed.take_factor(700), 1.0);
        // A moment is told as it is, and then not once more: all that is told is as long as the time.
        observed.turn(false, 701);
        let moment = observed.take_factor(800);
        assert_eq!((observed.last_ns(), moment), (1, 1.0));
        observed.turn(true, 850);
        let rest = 50.0 * observed.take_factor(900);
        assert!((moment + rest - 200.0).abs() < 1e-9, "{moment} and {rest}");
        // What comes after the end is told of nobody.
        observed.turn(false, 925);
        observed.end(950);
        assert_eq!(observed.take_factor(1000), 2.0, "25 of 50");
        assert!(!observed.is_now());
    }
}
