//! What may be taken in a day by one token, and what was. A day is one of UTC.
//!
//! What is counted is what is stored: a batch that was stored before counts no more, and one whose commit fails is
//! given back. Memory is bounded by the quotas themselves: a series is remembered only up to its quota, and all quotas
//! together have at most [`MOST_SERIES`]. Where several servers write, each knows what the others took a while ago.

use crate::clock::DAY_NS;
use crate::store::table::error::StoreError;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Series of a day that all quotas of one server may have together: each is remembered, at some 32 bytes.
pub const MOST_SERIES: u64 = 1_000_000;

/// A sender that is refused comes again after this, so that a quota which was raised counts soon; or when the day
/// ends, where that is sooner.
pub(crate) const RETRY_SECONDS: u32 = 300;

const DAY_SECONDS: i64 = DAY_NS / 1_000_000_000;

/// What may be taken in a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Whose it is. Tokens of one name share what is counted.
    pub name: String,
    /// Bytes of requests, decompressed and as OTLP in protobuf; none: any number.
    pub bytes_per_day: Option<u64>,
    /// Different series, of those that have samples; none: any number.
    pub series_per_day: Option<u64>,
}

/// What was taken today by one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Days since the Unix epoch.
    pub(crate) day: i64,
    pub(crate) bytes: u64,
    pub(crate) series: HashSet<i64>,
}

/// What one batch took, to be given back where it is not stored.
#[derive(Debug)]
pub(crate) struct Taken {
    name: String,
    day: i64,
    bytes: u64,
    /// Those that no batch before it had today.
    series: Vec<i64>,
}

/// What was taken today by each name, and how often one was refused.
#[derive(Debug, Default)]
pub(crate) struct QuotaLedger {
    /// By this server.
    pub(crate) used: BTreeMap<String, Used>,
    /// By other servers on the same data; no series that is in `used`.
    others: BTreeMap<String, Used>,
    /// Since the start.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Whether bytes, and whether series, are others than when they were kept last.
    pub(crate) has_new_bytes: bool,
    pub(crate) has_new_series: bool,
}

/// The day of a time.
pub(crate) fn day_of(now_ns: i64) -> i64 {
    now_ns.div_euclid(DAY_NS)
}

/// Seconds until the day after it begins, at least one.
fn seconds_left(now_ns: i64) -> u32 {
    let left_ns = DAY_NS - now_ns.rem_euclid(DAY_NS);
    u32::try_from(left_ns.div_euclid(1_000_000_000))
        .unwrap_or(u32::MAX)
        .max(1)
}

impl QuotaLedger {
    /// Takes a batch of so many bytes with these series, or none of it.
    pub(crate) fn take(
        &mut self,
        quota: &Quota,
        now_ns: i64,
        bytes: u64,
        series: &BTreeSet<i64>,
    ) -> Result<Taken, StoreError> {
        let day = day_of(now_ns);
        let known = self.on_day(&quota.name, day);
        let (used_bytes, used_series) = sum(&known);
        let is_new = |id: &&i64| !known.iter().flatten().any(|used| used.series.contains(*id));
        let new: Vec<i64> = match quota.series_per_day {
            Some(_) => series.iter().filter(is_new).copied().collect(),
            None => Vec::new(),
        };
        // First what will never fit, which is not to come again.
        let wholes = [
            ("bytes", quota.bytes_per_day, bytes, used_bytes, bytes),
            (
                "series",
                quota.series_per_day,
                series.len() as u64,
                used_series,
                new.len() as u64,
            ),
        ];
        for (what, limit, whole, ..) in wholes {
            if let Some(limit) = limit.filter(|limit| whole > *limit) {
                return Err(self.refused(
                    quota,
                    StoreError::BeyondQuota {
                        name: quota.name.clone(),
                        what,
                        limit,
                        wanted: whole,
                    },
                ));
            }
        }
        for (what, limit, _, used, wanted) in wholes {
            if let Some(limit) = limit.filter(|limit| used.saturating_add(wanted) > *limit) {
                let begins = chrono::DateTime::from_timestamp((day + 1) * DAY_SECONDS, 0).unwrap_or_default();
                return Err(self.refused(
                    quota,
                    StoreError::QuotaUsedUp {
                        name: quota.name.clone(),
                        what,
                        limit,
                        used,
                        wanted,
                        begins: begins.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
                        retry_seconds: seconds_left(now_ns).min(RETRY_SECONDS),
                    },
                ));
            }
        }
        let used = self.used.entry(quota.name.clone()).or_default();
        if used.day != day {
            *used = Used { day, ..Used::default() };
            self.has_new_series = true;
        }
        used.bytes = used.bytes.saturating_add(bytes);
        used.series.extend(&new);
        self.has_new_bytes = true;
        self.has_new_series |= !new.is_empty();
        Ok(Taken {
            name: quota.name.clone(),
            day,
            bytes,
            series: new,
        })
    }

    fn refused(&mut self, quota: &Quota, why: StoreError) -> StoreError {
        *self.refused.entry(quota.name.clone()).or_default() += 1;
        why
    }

    /// Takes back what a batch took, since it is not stored.
    pub(crate) fn give_back<'t>(&mut self, taken: impl IntoIterator<Item = &'t Taken>) {
        for taken in taken {
            let Some(used) = self.used.get_mut(&taken.name).filter(|used| used.day == taken.day) else {
                continue;
            };
            used.bytes = used.bytes.saturating_sub(taken.bytes);
            for id in &taken.series {
                used.series.remove(id);
            }
            self.has_new_bytes = true;
            self.has_new_series |= !taken.series.is_empty();
        }
    }

    /// What was taken today by one name: bytes, and series of those that are counted.
    pub(crate) fn used(&self, name: &str, now_ns: i64) -> (u64, u64) {
        sum(&self.on_day(name, day_of(now_ns)))
    }

    /// What other servers took, in place of what was known of that.
    pub(crate) fn know_others(&mut self, mut others: BTreeMap<String, Used>) {
        for (name, other) in &mut others {
            if let Some(own) = self.used.get(name).filter(|own| own.day == other.day) {
                other.series.retain(|id| !own.series.contains(id));
            }
        }
        self.others = others;
    }

    /// What was taken on a day by one name, by this server and by others.
    fn on_day(&self, name: &str, day: i64) -> [Option<&Used>; 2] {
        [&self.used, &self.others].map(|all| all.get(name).filter(|used| used.day == day))
    }
}

/// Bytes and series of all.
fn sum(known: &[Option<&Used>]) -> (u64, u64) {
    let known = known.iter().flatten();
    known.fold((0, 0), |(bytes, series): (u64, u64), used| {
        (bytes.saturating_add(used.bytes), series + used.series.len() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = DAY_NS * 20_000 + DAY_NS / 2;

    fn quota() -> Quota {
        Quota {
            name: "team-a".to_owned(),
            bytes_per_day: Some(100),
            series_per_day: Some(3),
        }
    }

    fn ids(ids: &[i64]) -> BTreeSet<i64> {
        ids.iter().copied().collect()
    }

    #[test]
    fn a_batch_is_taken_whole_or_not_at_all_and_the_next_day_begins_anew() {
        let mut ledger = QuotaLedger::default();
        ledger.take(&quota(), NOON, 60, &ids(&[1, 2])).unwrap();
        let error = ledger.take(&quota(), NOON, 41, &ids(&[1])).unwrap_err();
        let message = error.to_string();
        for part in ["team-a", "60", "100", "41", "bytes", "2024-10-05T00:00:00Z"] {
            assert!(message.contains(part), "no {part}: {message}");
        }
        assert!(matches!(
            error,
            StoreError::QuotaUsedUp {
                retry_seconds: RETRY_SECONDS,
                ..
            }
        ));
        let error = ledger.take(&quota(), NOON, 1, &ids(&[3, 4])).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::QuotaUsedUp {
                    what: "series",
                    used: 2,
                    wanted: 2,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(ledger.used("team-a", NOON), (60, 2), "nothing of what was refused");
        ledger.take(&quota(), NOON, 40, &ids(&[2, 3])).unwrap();
        assert_eq!(ledger.used("team-a", NOON), (100, 3));
        assert_eq!(ledger.refused["team-a"], 2);
        assert_eq!(ledger.used("team-a", NOON + DAY_NS), (0, 0));
        ledger.take(&quota(), NOON + DAY_NS, 100, &ids(&[7, 8, 9])).unwrap();
        assert_eq!(ledger.used("team-a", NOON + DAY_NS), (100, 3));
    }

    #[test]
    fn what_never_fits_is_for_good_and_shortly_before_midnight_the_wait_is_short() {
        let mut ledger = QuotaLedger::default();
        assert!(ledger.take(&quota(), NOON, 101, &ids(&[])).unwrap_err().is_for_good());
        assert!(
            ledger
                .take(&quota(), NOON, 1, &ids(&[1, 2, 3, 4]))
                .unwrap_err()
                .is_for_good()
        );
        let late = NOON + DAY_NS / 2 - 7_500_000_000;
        ledger.take(&quota(), late, 100, &ids(&[])).unwrap();
        let error = ledger.take(&quota(), late, 1, &ids(&[])).unwrap_err();
        assert!(
            matches!(error, StoreError::QuotaUsedUp { retry_seconds: 7, .. }),
            "{error}"
        );
        assert!(!error.is_for_good());
    }

    #[test]
    fn what_is_not_stored_is_given_back() {
        let mut ledger = QuotaLedger::default();
        let first = ledger.take(&quota(), NOON, 10, &ids(&[1])).unwrap();
        let second = ledger.take(&quota(), NOON, 20, &ids(&[1, 2])).unwrap();
        ledger.give_back(&[second]);
        assert_eq!(ledger.used("team-a", NOON), (10, 1));
        // Of yesterday's nothing is given back today.
        ledger.take(&quota(), NOON + DAY_NS, 5, &ids(&[1])).unwrap();
        ledger.give_back(&[first]);
        assert_eq!(ledger.used("team-a", NOON + DAY_NS), (5, 1));
    }

    #[test]
    fn series_are_remembered_only_where_they_have_a_quota() {
        let mut ledger = QuotaLedger::default();
        let of_bytes = Quota {
            series_per_day: None,
            ..quota()
        };
        ledger.take(&of_bytes, NOON, 1, &ids(&[1, 2, 3, 4, 5])).unwrap();
        assert_eq!(ledger.used("team-a", NOON), (1, 0));
    }

    #[test]
    fn the_limits_are_documented() {
        crate::documented(&[("MOST_SERIES", MOST_SERIES), ("RETRY_SECONDS", RETRY_SECONDS.into())]);
    }
}
