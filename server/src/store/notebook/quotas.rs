//! What was taken of quotas today, so that a restart gives no second day's quota.
//!
//! Bytes are a number a name and are kept every few seconds; series are many numbers, hardly ever new ones, and are
//! kept every minute. What a crash loses of that is taken in once more at most: a series that comes again counts again.

use crate::lock::lock_mutex;
use crate::store::buffer::quota::{QuotaLedger, Used, day_of};
use crate::store::notebook::{Notebook, Refused};
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KEEP_BYTES_EVERY: Duration = Duration::from_secs(10);

const KEEP_SERIES_EVERY: Duration = Duration::from_secs(60);

/// Bytes of a day. Its name in the notebook is the quota's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UsedBytes {
    /// Days since the Unix epoch.
    day: i64,
    bytes: u64,
}

/// Series of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UsedSeries {
    day: i64,
    ids: Vec<i64>,
}

/// When each was kept last; none before the first time.
#[derive(Debug, Default)]
struct Kept {
    bytes: Option<Instant>,
    series: Option<Instant>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Quotas {
    bytes: Notebook<UsedBytes>,
    series: Notebook<UsedSeries>,
    kept: Mutex<Kept>,
}

/// What is to be written.
#[derive(Debug, Default)]
pub(crate) struct ToKeep {
    bytes: Option<BTreeMap<String, UsedBytes>>,
    series: Option<BTreeMap<String, UsedSeries>>,
}

impl Quotas {
    pub(crate) async fn open(root: &Arc<dyn Root>) -> Result<Self, RootError> {
        Ok(Quotas {
            bytes: Notebook::open(root, "quota-bytes").await?,
            series: Notebook::open(root, "quota-series").await?,
            kept: Mutex::default(),
        })
    }

    /// What was kept, to count on from there.
    pub(crate) fn ledger(&self) -> QuotaLedger {
        let mut ledger = QuotaLedger::default();
        for (name, kept) in self.bytes.all().iter() {
            let used = Used {
                day: kept.day,
                bytes: kept.bytes,
                ..Used::default()
            };
            ledger.used.insert(name.clone(), used);
        }
        for (name, kept) in self.series.all().iter() {
            let used = ledger.used.entry(name.clone()).or_default();
            // Both are of one day, or the older is over.
            if kept.day > used.day {
                *used = Used {
                    day: kept.day,
                    ..Used::default()
                };
            }
            if kept.day == used.day {
                used.series.extend(&kept.ids);
            }
        }
        ledger
    }

    /// What is due to be written of a ledger, which forgets what is of other days; all that is new where `at_end`.
    pub(crate) fn due(&self, ledger: &mut QuotaLedger, now_ns: i64, at_end: bool) -> ToKeep {
        let mut kept = lock_mutex(&self.kept);
        let is_due = |last: Option<Instant>, every| at_end || last.is_none_or(|last| last.elapsed() >= every);
        let mut due = ToKeep::default();
        if !ledger.has_new_bytes && !ledger.has_new_series {
            return due;
        }
        ledger.used.retain(|_, used| used.day == day_of(now_ns));
        if ledger.has_new_bytes && is_due(kept.bytes, KEEP_BYTES_EVERY) {
            let each = ledger.used.iter().map(|(name, used)| {
                let bytes = UsedBytes {
                    day: used.day,
                    bytes: used.bytes,
                };
                (name.clone(), bytes)
            });
            due.bytes = Some(each.collect());
            ledger.has_new_bytes = false;
            kept.bytes = Some(Instant::now());
        }
        if ledger.has_new_series && is_due(kept.series, KEEP_SERIES_EVERY) {
            let with_series = ledger.used.iter().filter(|(_, used)| !used.series.is_empty());
            let each = with_series.map(|(name, used)| {
                let series = UsedSeries {
                    day: used.day,
                    ids: used.series.iter().copied().collect(),
                };
                (name.clone(), series)
            });
            due.series = Some(each.collect());
            ledger.has_new_series = false;
            kept.series = Some(Instant::now());
        }
        due
    }

    /// Writes what is due.
    pub(crate) async fn keep(&self, due: ToKeep) {
        let bytes = replace(&self.bytes, due.bytes).await;
        let series = replace(&self.series, due.series).await;
        for error in [bytes, series].into_iter().filter_map(Result::err) {
            tracing::warn!(
                ?error,
                "cannot keep what was taken of quotas; a restart now would begin with less"
            );
        }
    }
}

async fn replace<T>(notebook: &Notebook<T>, new: Option<BTreeMap<String, T>>) -> Result<(), Refused>
where
    T: Clone + Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let Some(new) = new else { return Ok(()) };
    notebook
        .change(move |all| {
            *all = new;
            Ok(())
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::buffer::quota::Quota;
    use crate::store::root::open::open;

    const DAY_NS: i64 = 86_400_000_000_000;

    #[tokio::test]
    async fn what_was_taken_is_there_after_a_restart_and_gone_the_next_day() {
        let dir = tempfile::tempdir().unwrap();
        let root = open(dir.path()).unwrap();
        // Whoever writes has it locked, which makes room for what is begun.
        let _lock = root.lock().unwrap();
        let quotas = Quotas::open(&root).await.unwrap();
        let mut ledger = quotas.ledger();
        let quota = Quota {
            name: "a".to_owned(),
            bytes_per_day: Some(100),
            series_per_day: Some(10),
        };
        let now_ns = 20_000 * DAY_NS + 5;
        ledger.take(&quota, now_ns, 30, &[7, 8].into()).unwrap();
        quotas.keep(quotas.due(&mut ledger, now_ns, false)).await;
        ledger.take(&quota, now_ns, 30, &[9].into()).unwrap();
        assert!(quotas.due(&mut ledger, now_ns, false).bytes.is_none(), "too soon");
        assert!(ledger.has_new_bytes && ledger.has_new_series);
        let early = Quotas::open(&root).await.unwrap().ledger();
        assert_eq!(early.used("a", now_ns), (30, 2));
        quotas.keep(quotas.due(&mut ledger, now_ns, true)).await;
        let again = Quotas::open(&root).await.unwrap();
        let mut ledger = again.ledger();
        assert_eq!(ledger.used("a", now_ns), (60, 3));
        assert!(ledger.take(&quota, now_ns, 50, &[].into()).is_err());
        ledger.take(&quota, now_ns + DAY_NS, 50, &[].into()).unwrap();
        again.keep(again.due(&mut ledger, now_ns + DAY_NS, true)).await;
        let last = Quotas::open(&root).await.unwrap().ledger();
        assert_eq!(
            (last.used("a", now_ns), last.used("a", now_ns + DAY_NS)),
            ((0, 0), (50, 0))
        );
    }
}
