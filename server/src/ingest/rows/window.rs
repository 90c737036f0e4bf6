//! The time in which samples are taken in.

/// What times are taken in, nanoseconds since the Unix epoch. A sample outside is left out and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first one that is taken in.
    pub earliest_ns: i64,
    /// The last one that is taken in.
    pub latest_ns: i64,
    /// Stands in for a profile without any time.
    pub now_ns: i64,
}

impl TimeWindow {
    /// The nearest time within.
    pub(crate) fn nearest_ns(&self, ns: i64) -> i64 {
        ns.max(self.earliest_ns).min(self.latest_ns)
    }
}
