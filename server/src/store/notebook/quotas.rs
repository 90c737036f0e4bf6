//! What was taken of quotas today, so that a restart gives no second day's quota.
//!
//! Bytes are a number a name and are kept every few seconds; series are many numbers, hardly ever new ones, and are
//! kept every minute. What a crash loses of that is taken in once more at most: a series that comes again counts again.
//! Where several servers write, each keeps what it took itself under a name of its own, and reads what others did.

use crate::lock::lock_mutex;
use crate::store::buffer::quota::{QuotaLedger, Used, day_of};
use crate::store::notebook::{Notebook, Refused};
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KEEP_BYTES_EVERY: Duration = Duration::from_secs(10);

const KEEP_SERIES_EVERY: Duration = Duration::from_secs(60);

/// Between a quota's name, which has none of these, and a server's.
const SERVER: char = '@';

/// Bytes of a day. Its name in the notebook is the quota's, with the server's behind it where there are several.
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
    /// How the names of this server end in the notebooks; empty where it is the only one.
    own: String,
    /// As others were told of last.
    told: Mutex<Option<Kinds>>,
}

/// Both kinds, as they are kept.
type Kinds = (Arc<BTreeMap<String, UsedBytes>>, Arc<BTreeMap<String, UsedSeries>>);

/// What is to be written.
#[derive(Debug, Default)]
pub(crate) struct ToKeep {
    bytes: Option<BTreeMap<String, UsedBytes>>,
    series: Option<BTreeMap<String, UsedSeries>>,
}

impl Quotas {
    pub(crate) async fn open(root: &Arc<dyn Root>) -> Result<Self, RootError> {
        let own = match root.is_shared() {
            true => format!("{SERVER}{}", uuid::Uuid::new_v4().simple()),
            false => String::new(),
        };
        Ok(Quotas {
            bytes: Notebook::open(root, "quota-bytes").await?,
            series: Notebook::open(root, "quota-series").await?,
            kept: Mutex::default(),
            own,
            told: Mutex::default(),
        })
    }

    /// What was kept, to count on from there.
    pub(crate) fn ledger(&self) -> QuotaLedger {
        let mut ledger = QuotaLedger::default();
        let kept = by_name(&(self.bytes.all(), self.series.all()), |_| true);
        match self.own.is_empty() {
            true => ledger.used = kept,
            false => ledger.know_others(kept),
        }
        ledger
    }

    /// What other servers took, by the names of quotas; none where that is nothing new.
    pub(crate) async fn others(&self) -> Result<Option<BTreeMap<String, Used>>, RootError> {
        self.bytes.refresh().await?;
        self.series.refresh().await?;
        let kinds = (self.bytes.all(), self.series.all());
        let mut told = lock_mutex(&self.told);
        let is_told = |(bytes, series): &Kinds| Arc::ptr_eq(bytes, &kinds.0) && Arc::ptr_eq(series, &kinds.1);
        if told.as_ref().is_some_and(is_told) {
            return Ok(None);
        }
        let others = by_name(&kinds, |key| !key.ends_with(&self.own));
        *told = Some(kinds);
        Ok(Some(others))
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
                (format!("{name}{}", self.own), bytes)
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
                (format!("{name}{}", self.own), series)
            });
            due.series = Some(each.collect());
            ledger.has_new_series = false;
            kept.series = Some(Instant::now());
        }
        due
    }

    /// Writes what is due.
    pub(crate) async fn keep(&self, due: ToKeep) {
        let bytes = self.replace(&self.bytes, due.bytes, |used| used.day).await;
        let series = self.replace(&self.series, due.series, |used| used.day).await;
        for error in [bytes, series].into_iter().filter_map(Result::err) {
            tracing::warn!(
                ?error,
                "cannot keep what was taken of quotas; a restart now would begin with less"
            );
        }
    }

    /// In place of what was kept. What other servers keep stays, but for days that are over.
    async fn replace<T>(
        &self,
        notebook: &Notebook<T>,
        new: Option<BTreeMap<String, T>>,
        day: fn(&T) -> i64,
    ) -> Result<(), Refused>
    where
        T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let Some(new) = new else { return Ok(()) };
        let own = self.own.clone();
        let change = move |all: &mut BTreeMap<String, T>| {
            let today = new.values().map(day).max();
            let is_of_others = |key: &str| !own.is_empty() && !key.ends_with(&own);
            all.retain(|key, kept| is_of_others(key) && today.is_none_or(|today| day(kept) >= today));
            all.extend(new.clone());
            Ok(())
        };
        notebook.change(change).await
    }
}

/// Adds up what is kept of each quota on its last day, of those that are wanted.
fn by_name((bytes, series): &Kinds, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Used> {
    let mut all: BTreeMap<String, Used> = BTreeMap::new();
    for (key, kept) in bytes.iter().filter(|(key, _)| is_wanted(key)) {
        if let Some(used) = on_day(&mut all, key, kept.day) {
            used.bytes = used.bytes.saturating_add(kept.bytes);
        }
    }
    for (key, kept) in series.iter().filter(|(key, _)| is_wanted(key)) {
        if let Some(used) = on_day(&mut all, key, kept.day) {
            used.series.extend(&kept.ids);
        }
    }
    all
}

/// What is counted of a quota on a day; none where a later one is.
fn on_day<'a>(all: &'a mut BTreeMap<String, Used>, key: &str, day: i64) -> Option<&'a mut Used> {
    let name = key.split(SERVER).next().unwrap_or(key);
    let used = all.entry(name.to_owned()).or_default();
    if day > used.day {
        *used = Used { day, ..Used::default() };
    }
    (day == used.day).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::DAY_NS;
    use crate::store::buffer::quota::Quota;
    use crate::store::root::open::{open, open_as};

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

    #[tokio::test]
    async fn several_servers_share_a_quota_and_one_alone_has_what_all_took() {
        let dir = tempfile::tempdir().unwrap();
        let quota = Quota {
            name: "a".to_owned(),
            bytes_per_day: Some(100),
            series_per_day: Some(3),
        };
        let now_ns = 20_000 * DAY_NS + 5;
        {
            let root = open_as(dir.path(), true).unwrap();
            let _lock = root.join().unwrap();
            let [one, other] = [Quotas::open(&root).await.unwrap(), Quotas::open(&root).await.unwrap()];
            let (mut of_one, mut of_other) = (one.ledger(), other.ledger());
            of_one.take(&quota, now_ns, 60, &[1, 2].into()).unwrap();
            one.keep(one.due(&mut of_one, now_ns, true)).await;
            of_other.know_others(other.others().await.unwrap().unwrap());
            assert_eq!(of_other.used("a", now_ns), (60, 2));
            assert!(other.others().await.unwrap().is_none(), "nothing is new");
            assert!(of_other.take(&quota, now_ns, 50, &[].into()).is_err(), "bytes of both");
            assert!(
                of_other.take(&quota, now_ns, 1, &[3, 4].into()).is_err(),
                "series of both"
            );
            of_other.take(&quota, now_ns, 30, &[2, 3].into()).unwrap();
            other.keep(other.due(&mut of_other, now_ns, true)).await;
            of_one.know_others(one.others().await.unwrap().unwrap());
            assert_eq!(of_one.used("a", now_ns), (90, 3));
            // What one keeps leaves what the other did.
            of_one.take(&quota, now_ns, 5, &[].into()).unwrap();
            one.keep(one.due(&mut of_one, now_ns, true)).await;
            let third = Quotas::open(&root).await.unwrap().ledger();
            assert_eq!(third.used("a", now_ns), (95, 3));
        }
        let root = open(dir.path()).unwrap();
        let _lock = root.lock().unwrap();
        let alone = Quotas::open(&root).await.unwrap();
        let mut ledger = alone.ledger();
        assert_eq!(ledger.used("a", now_ns), (95, 3));
        ledger.take(&quota, now_ns, 5, &[3].into()).unwrap();
        alone.keep(alone.due(&mut ledger, now_ns, true)).await;
        assert_eq!(Quotas::open(&root).await.unwrap().ledger().used("a", now_ns), (100, 3));
    }
}
