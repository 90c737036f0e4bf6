//! Days and hours of a window.

use crate::query::ask::time::Window;
use datafusion::prelude::{Expr, col, lit};

/// The days and hours that a window touches, as the partitions are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Days {
    first_ns: i64,
    last_ns: i64,
}

impl Days {
    /// Of one window.
    pub(crate) fn of(window: Window) -> Days {
        Days {
            first_ns: window.from_ns,
            last_ns: window.until_ns - 1,
        }
    }

    /// From the earlier to the later of two.
    #[must_use]
    pub(crate) fn union(&self, other: &Days) -> Days {
        Days {
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
        }
    }

    /// With so much time before and after.
    #[must_use]
    pub(crate) fn widened(&self, ns: i64) -> Days {
        Days {
            first_ns: self.first_ns.saturating_sub(ns).max(0),
            last_ns: self.last_ns.saturating_add(ns),
        }
    }

    /// The condition on the partition column of every table but `samples`.
    pub(crate) fn filter(&self) -> Expr {
        between(
            "day",
            &partition(self.first_ns, "%Y-%m-%d"),
            &partition(self.last_ns, "%Y-%m-%d"),
        )
    }

    /// Whether a partition by day is one of them.
    pub(crate) fn has(&self, day: &str) -> bool {
        let name = |ns| partition(ns, "%Y-%m-%d");
        (name(self.first_ns).as_str()..=name(self.last_ns).as_str()).contains(&day)
    }

    /// The first and the last hour, as the partitions of `samples` are named.
    pub(crate) fn hours(&self) -> (String, String) {
        let name = |ns| partition(ns, "%Y-%m-%dT%H");
        (name(self.first_ns), name(self.last_ns))
    }
}

fn partition(ns: i64, format: &str) -> String {
    chrono::DateTime::from_timestamp_nanos(ns).format(format).to_string()
}

fn between(column: &str, first: &str, last: &str) -> Expr {
    if first == last {
        return col(column).eq(lit(first));
    }
    col(column).gt_eq(lit(first)).and(col(column).lt_eq(lit(last)))
}
