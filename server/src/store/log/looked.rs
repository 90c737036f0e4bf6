//! How long ago the end of a log was seen.

use std::time::{Duration, Instant, SystemTime};

/// When the end of the log was looked at last: by a clock that nobody sets, and by the machine's, which goes on while
/// the machine sleeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    steady: Instant,
    wall: SystemTime,
}

impl Looked {
    pub(super) fn now() -> Self {
        Self {
            steady: Instant::now(),
            wall: SystemTime::now(),
        }
    }

    /// As of a server that slept.
    #[cfg(test)]
    pub(super) fn long_ago() -> Self {
        Self {
            wall: SystemTime::now() - Duration::from_secs(24 * 3600),
            ..Self::now()
        }
    }

    /// By either clock. One that went back may hide anything.
    pub(super) fn is_long_ago(self, age: Duration) -> bool {
        self.steady.elapsed() > age || self.wall.elapsed().map_or(true, |elapsed| elapsed > age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_clock_says_that_it_is_long_ago() {
        let (age, more) = (Duration::from_secs(60), Duration::from_secs(61));
        let now = Looked::now();
        assert!(!now.is_long_ago(age));
        let slept = Looked {
            wall: now.wall - more,
            ..now
        };
        assert!(slept.is_long_ago(age), "the steady clock stood still");
        let went_back = Looked {
            wall: now.wall + more,
            ..now
        };
        assert!(went_back.is_long_ago(age));
    }
}
