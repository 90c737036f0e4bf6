//! What time it is, as far as it can be known.
//!
//! A machine's clock may be wrong when the server starts, and may be set while it runs. What is removed by age must
//! not be removed, and what comes must not be refused, because of that. So there are two readings beside the clock's
//! own: the latest time that has surely come ([`Clock::proven_ns`]), and the latest that it may be
//! ([`Clock::possible_ns`]). Both go on with a counter that nobody sets. The clock is believed as far as samples,
//! which have their times from other machines, bear it out.

use crate::lock::lock_mutex;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How far the samples' clocks may be off: as far as samples may be ahead of the server's.
const DAY_NS: i64 = 86_400_000_000_000;

/// What a source of time says.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Unix nanoseconds by the machine's clock, which may be set.
    pub wall_ns: i64,
    /// Since some moment; never set, never goes back.
    pub steady: Duration,
}

/// See the module.
pub struct Clock {
    read: Box<dyn Fn() -> Reading + Send + Sync>,
    started: Duration,
    known: Mutex<ClockBounds>,
}

/// Between which times it surely is, at one reading of the steady clock.
#[derive(Debug, Clone, Copy)]
struct ClockBounds {
    proven_ns: i64,
    possible_ns: i64,
    steady: Duration,
}

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        let start = Instant::now();
        Self::new(move || Reading {
            wall_ns: chrono::Utc::now().timestamp_nanos_opt().unwrap_or(i64::MAX),
            steady: start.elapsed(),
        })
    }

    /// One that is told what to say.
    pub fn new(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        let Reading { wall_ns, steady } = read();
        Self {
            read: Box::new(read),
            started: steady,
            known: Mutex::new(ClockBounds {
                proven_ns: wall_ns,
                possible_ns: wall_ns,
                steady,
            }),
        }
    }

    /// Begins anew in front of what is stored: the newest sample's time, where there is one.
    pub(crate) fn begin(&self, newest_ns: Option<i64>) {
        let Reading { wall_ns, steady } = (self.read)();
        *lock_mutex(&self.known) = ClockBounds {
            proven_ns: newest_ns.map_or(wall_ns, |newest_ns| wall_ns.min(newest_ns.saturating_add(DAY_NS))),
            possible_ns: newest_ns.map_or(wall_ns, |newest_ns| wall_ns.max(newest_ns)),
            steady,
        };
    }

    /// A sample of this time has come.
    pub(crate) fn witness(&self, sample_ns: i64) {
        let now = (self.read)();
        let mut known = lock_mutex(&self.known);
        *known = known.at(now.steady);
        known.proven_ns = known.proven_ns.max(sample_ns.min(now.wall_ns));
    }

    /// For how long it has been read, whatever it was set to meanwhile.
    pub fn running(&self) -> Duration {
        (self.read)().steady.saturating_sub(self.started)
    }

    /// The machine's clock, right or wrong.
    pub fn wall_ns(&self) -> i64 {
        (self.read)().wall_ns
    }

    /// The latest time that has surely come: what is removed or refused for its age is judged by this.
    pub fn proven_ns(&self) -> i64 {
        let now = (self.read)();
        lock_mutex(&self.known).at(now.steady).proven_ns.min(now.wall_ns)
    }

    /// The latest that it may be: what is refused for being ahead is judged by this.
    pub fn possible_ns(&self) -> i64 {
        let now = (self.read)();
        lock_mutex(&self.known).at(now.steady).possible_ns.max(now.wall_ns)
    }

    /// Whether the machine's clock is more than a day ahead of what samples and the time since the start bear out.
    pub fn is_ahead(&self) -> bool {
        self.wall_ns().saturating_sub(DAY_NS) > self.proven_ns()
    }
}

impl ClockBounds {
    /// The same at a later moment.
    fn at(self, steady: Duration) -> Self {
        let passed = steady.saturating_sub(self.steady).as_nanos();
        let passed_ns = i64::try_from(passed).unwrap_or(i64::MAX);
        Self {
            proven_ns: self.proven_ns.saturating_add(passed_ns),
            possible_ns: self.possible_ns.saturating_add(passed_ns),
            steady,
        }
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock")
            .field("known", &lock_mutex(&self.known))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

    const START_NS: i64 = 1_800_000_000_000_000_000;
    const YEAR_NS: i64 = 365 * DAY_NS;

    /// A clock, what it has been set by, and what has passed.
    fn clock() -> (Clock, Arc<AtomicI64>, Arc<AtomicI64>) {
        let (set_ns, passed_ns) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let (set, passed) = (set_ns.clone(), passed_ns.clone());
        let clock = Clock::new(move || Reading {
            wall_ns: START_NS + set.load(SeqCst) + passed.load(SeqCst),
            steady: Duration::from_nanos(passed.load(SeqCst) as u64),
        });
        (clock, set_ns, passed_ns)
    }

    #[test]
    fn a_clock_that_is_right_is_believed() {
        let (clock, _, passed_ns) = clock();
        clock.begin(Some(START_NS - 3 * 3_600_000_000_000));
        passed_ns.store(5, SeqCst);
        let all = [clock.wall_ns(), clock.proven_ns(), clock.possible_ns()];
        assert_eq!(all, [START_NS + 5; 3]);
        assert_eq!(clock.running(), Duration::from_nanos(5));
    }

    #[test]
    fn a_clock_that_is_set_is_believed_only_as_far_as_samples_bear_it_out() {
        let (clock, set_ns, passed_ns) = clock();
        set_ns.store(YEAR_NS, SeqCst);
        passed_ns.store(7, SeqCst);
        assert!(clock.is_ahead());
        assert_eq!(clock.running(), Duration::from_nanos(7));
        assert_eq!(clock.proven_ns(), START_NS + 7);
        assert_eq!(clock.possible_ns(), START_NS + YEAR_NS + 7);
        // It was a correction: samples say the same.
        clock.witness(START_NS + YEAR_NS);
        assert!(!clock.is_ahead());

        set_ns.store(-YEAR_NS, SeqCst);
        assert_eq!(clock.proven_ns(), START_NS - YEAR_NS + 7);
        assert_eq!(clock.possible_ns(), START_NS + 7);
        // A sample that is ahead of the clock proves nothing.
        clock.witness(START_NS + 2 * YEAR_NS);
        assert_eq!(clock.proven_ns(), START_NS - YEAR_NS + 7);
    }

    #[test]
    fn a_clock_that_is_wrong_from_the_start_is_told_by_what_is_stored() {
        let (clock, ..) = clock();
        clock.begin(Some(START_NS - YEAR_NS));
        assert_eq!(clock.proven_ns(), START_NS - YEAR_NS + DAY_NS);
        clock.witness(START_NS - YEAR_NS + 3 * DAY_NS);
        assert_eq!(clock.proven_ns(), START_NS - YEAR_NS + 3 * DAY_NS);
        clock.begin(Some(START_NS + YEAR_NS));
        assert_eq!([clock.proven_ns(), clock.possible_ns()], [START_NS, START_NS + YEAR_NS]);
    }
}
