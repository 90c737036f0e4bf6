//! How long acknowledgements took, each counted: a share of them is told exactly, to a millisecond.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

/// By milliseconds, rounded up: as many as there are. A batch is given up after minutes, so there are few lengths.
#[derive(Debug, Default)]
pub(crate) struct Acknowledgements {
    by_ms: BTreeMap<u64, u64>,
    /// How long after it was due the latest first try was: a load that has no time itself waits before it asks.
    latest_try_ms: u64,
}

fn ms(of: Duration) -> u64 {
    u64::try_from(of.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

impl Acknowledgements {
    /// `took`, `late`: from the time that the batch was due until its acknowledgement, and until its first try.
    pub(crate) fn add(&mut self, took: Duration, late: Duration) {
        *self.by_ms.entry(ms(took)).or_default() += 1;
        self.latest_try_ms = self.latest_try_ms.max(ms(late));
    }

    pub(crate) fn add_all(&mut self, others: &Acknowledgements) {
        for (ms, count) in &others.by_ms {
            *self.by_ms.entry(*ms).or_default() += count;
        }
        self.latest_try_ms = self.latest_try_ms.max(others.latest_try_ms);
    }

    fn count(&self) -> u64 {
        self.by_ms.values().sum()
    }

    /// In milliseconds: so many of a thousand took no longer. None where there are none.
    fn per_mille(&self, share: u64) -> Option<u64> {
        let rank = (self.count() * share).div_ceil(1000).max(1);
        let mut sum = 0;
        self.by_ms.iter().find_map(|(ms, count)| {
            sum += count;
            (sum >= rank).then_some(*ms)
        })
    }

    /// For whoever measures.
    pub(crate) fn told(&self) -> Value {
        json!({"acknowledgements": {
            "count": self.count(),
            "p50_ms": self.per_mille(500),
            "p99_ms": self.per_mille(990),
            "p999_ms": self.per_mille(999),
            "max_ms": self.by_ms.last_key_value().map(|(ms, _)| ms),
            "latest_try_ms": self.latest_try_ms,
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_agents_together() {
        let (mut one, mut other) = (Acknowledgements::default(), Acknowledgements::default());
        for ms in 1..=99 {
            one.add(Duration::from_millis(ms), Duration::from_millis(ms / 10));
        }
        other.add(Duration::from_micros(3_000_500), Duration::from_millis(7));
        one.add_all(&other);
        let told = &one.told()["acknowledgements"];
        assert_eq!(
            [
                &told["count"],
                &told["p50_ms"],
                &told["p99_ms"],
                &told["p999_ms"],
                &told["max_ms"],
                &told["latest_try_ms"]
            ]
            .map(Value::as_u64),
            [Some(100), Some(50), Some(99), Some(3001), Some(3001), Some(9)]
        );
        assert_eq!(
            Acknowledgements::default().told()["acknowledgements"]["p50_ms"],
            Value::Null
        );
    }
}
