//! Which batches of which sender are stored: what makes "exactly once" out of "at least once".
//!
//! Per instance it keeps the highest committed number and a window of the 64 numbers below it, so that batches in flight may
//! overtake one another. Both are part of the same table commit as the samples. Numbers below the window count as stored.

use super::txns::Txn;
use std::collections::{BTreeMap, HashMap};

/// Ends the application id under which an instance's window is stored.
const WINDOW_SUFFIX: &str = "#window";

/// All 64 numbers below the highest are stored; also the state before the first batch.
const FULL: u64 = u64::MAX;

#[derive(Debug)]
struct Instance<W> {
    highest: i64,
    /// Bit i: number `highest - 1 - i` is stored.
    window: u64,
    /// The window that the log has; none for [`FULL`] by default.
    logged_window: u64,
    updated_ms: i64,
    pending: BTreeMap<i64, W>,
    /// What the latest numbers hold, pending ones included; since the start only.
    prints: BTreeMap<i64, Print>,
}

/// Tells content from other content under the same number.
pub(super) type Print = u64;

/// Numbers whose content is remembered: more than a sender has in flight.
const PRINTS: usize = 16;

/// What is known of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen<W> {
    New,
    /// On its way: `W` tells when it arrived.
    Pending(W),
    Committed,
}

/// See the module. `W` is what a repeat of a pending batch waits on.
#[derive(Debug)]
pub(super) struct Ledger<W> {
    instances: HashMap<String, Instance<W>>,
}

impl<W: Clone> Ledger<W> {
    /// The ledger as the log has it.
    pub(super) fn from_txns(txns: &[Txn]) -> Self {
        let mut ledger = Self {
            instances: HashMap::new(),
        };
        for txn in txns {
            match txn.app_id.strip_suffix(WINDOW_SUFFIX) {
                Some(instance) => {
                    let window = txn.version as u64;
                    let instance = ledger.instance(instance);
                    instance.window = window;
                    instance.logged_window = window;
                }
                None => {
                    let instance = ledger.instance(&txn.app_id);
                    instance.highest = txn.version;
                    instance.updated_ms = txn.updated_ms;
                }
            }
        }
        ledger
    }

    fn instance(&mut self, name: &str) -> &mut Instance<W> {
        self.instances.entry(name.to_owned()).or_insert_with(|| Instance {
            highest: 0,
            window: FULL,
            logged_window: FULL,
            updated_ms: 0,
            pending: BTreeMap::new(),
            prints: BTreeMap::new(),
        })
    }

    pub(super) fn check(&self, instance: &str, number: i64) -> Seen<W> {
        let Some(instance) = self.instances.get(instance) else {
            return Seen::New;
        };
        if let Some(waiter) = instance.pending.get(&number) {
            return Seen::Pending(waiter.clone());
        }
        if instance.has(number) {
            Seen::Committed
        } else {
            Seen::New
        }
    }

    /// Whether a batch of this number is known to hold something else.
    pub(super) fn differs(&self, instance: &str, number: i64, print: Print) -> bool {
        let known = self
            .instances
            .get(instance)
            .and_then(|instance| instance.prints.get(&number));
        known.is_some_and(|known| *known != print)
    }

    pub(super) fn add_pending(&mut self, instance: &str, number: i64, print: Print, waiter: W) {
        let instance = self.instance(instance);
        instance.pending.insert(number, waiter);
        instance.prints.insert(number, print);
        while instance.prints.len() > PRINTS {
            instance.prints.pop_first();
        }
    }

    /// The transactions that a commit of these batches must hold. Changes nothing.
    pub(super) fn transactions(&self, batches: &[(String, i64)], now_ms: i64) -> Vec<Txn> {
        let mut after: BTreeMap<&str, (i64, u64)> = BTreeMap::new();
        for (name, number) in batches {
            let known = self
                .instances
                .get(name)
                .map_or((0, FULL), |instance| (instance.highest, instance.window));
            let state = after.entry(name).or_insert(known);
            *state = with(state.0, state.1, *number);
        }
        let mut txns = Vec::new();
        for (name, (highest, window)) in after {
            txns.push(Txn {
                app_id: name.to_owned(),
                version: highest,
                updated_ms: now_ms,
            });
            let logged = self.instances.get(name).map_or(FULL, |instance| instance.logged_window);
            if window != logged {
                let app_id = format!("{name}{WINDOW_SUFFIX}");
                txns.push(Txn {
                    app_id,
                    version: window as i64,
                    updated_ms: now_ms,
                });
            }
        }
        txns
    }

    /// These batches are stored, with the transactions that [`Ledger::transactions`] gave.
    pub(super) fn committed(&mut self, batches: &[(String, i64)], now_ms: i64) {
        for (name, number) in batches {
            let instance = self.instance(name);
            instance.pending.remove(number);
            (instance.highest, instance.window) = with(instance.highest, instance.window, *number);
            instance.updated_ms = now_ms;
        }
        for (name, _) in batches {
            let instance = self.instance(name);
            instance.logged_window = instance.window;
        }
    }

    /// Nothing that was pending will be stored.
    pub(super) fn forget_pending(&mut self) {
        for instance in self.instances.values_mut() {
            for number in std::mem::take(&mut instance.pending).keys() {
                instance.prints.remove(number);
            }
        }
    }

    /// Forgets instances that were silent since before `cutoff_ms`.
    pub(super) fn forget_older(&mut self, cutoff_ms: i64) {
        self.instances
            .retain(|_, instance| instance.updated_ms >= cutoff_ms || !instance.pending.is_empty());
    }

    /// Whether an instance is known, or may still become one of so many.
    pub(super) fn has_room_for(&self, instance: &str, most: usize) -> bool {
        self.instances.len() < most || self.instances.contains_key(instance)
    }
}

impl<W> Instance<W> {
    fn has(&self, number: i64) -> bool {
        match self.highest - number {
            0 => true,
            below @ 1..=64 => self.window >> (below - 1) & 1 == 1,
            below => below > 64,
        }
    }
}

/// Highest number and window after `number` was stored too.
fn with(highest: i64, window: u64, number: i64) -> (i64, u64) {
    if number > highest {
        let step = number - highest;
        let window = match step {
            1..=63 => (window << step) | (1 << (step - 1)),
            64 => 1 << 63,
            _ => 0,
        };
        (number, window)
    } else {
        match highest - number {
            below @ 1..=64 => (highest, window | 1 << (below - 1)),
            _ => (highest, window),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(ledger: &mut Ledger<u8>, log: &mut HashMap<String, Txn>, numbers: &[i64]) {
        let batches: Vec<_> = numbers.iter().map(|number| ("a".to_owned(), *number)).collect();
        for txn in ledger.transactions(&batches, 5) {
            log.insert(txn.app_id.clone(), txn);
        }
        ledger.committed(&batches, 5);
    }

    /// The same answers from the running ledger and from one that was read back from the log, for every number.
    fn stored(ledger: &Ledger<u8>, log: &HashMap<String, Txn>, range: std::ops::RangeInclusive<i64>) -> Vec<i64> {
        let again = Ledger::<u8>::from_txns(&log.values().cloned().collect::<Vec<_>>());
        range
            .filter(|number| {
                let seen = ledger.check("a", *number) == Seen::Committed;
                assert_eq!(again.check("a", *number) == Seen::Committed, seen, "number {number}");
                seen
            })
            .collect()
    }

    #[test]
    fn numbers_may_be_skipped_and_may_overtake_one_another() {
        let (mut ledger, mut log) = (Ledger::<u8>::from_txns(&[]), HashMap::new());
        assert_eq!(ledger.check("a", 1), Seen::New);
        commit(&mut ledger, &mut log, &[1, 2, 5]);
        assert_eq!(stored(&ledger, &log, 1..=7), [1, 2, 5]);
        commit(&mut ledger, &mut log, &[4]);
        assert_eq!(stored(&ledger, &log, 1..=7), [1, 2, 4, 5]);
        commit(&mut ledger, &mut log, &[3]);
        assert_eq!(stored(&ledger, &log, 1..=7), [1, 2, 3, 4, 5]);
        commit(&mut ledger, &mut log, &[69]);
        assert_eq!(stored(&ledger, &log, 1..=70), [1, 2, 3, 4, 5, 69]);
        commit(&mut ledger, &mut log, &[70]);
        assert_eq!(stored(&ledger, &log, 1..=71), [1, 2, 3, 4, 5, 69, 70]);
        commit(&mut ledger, &mut log, &[1000]);
        assert_eq!(stored(&ledger, &log, 930..=1001), [930, 931, 932, 933, 934, 935, 1000]);
    }

    #[test]
    fn a_window_without_gaps_costs_no_transaction() {
        let (mut ledger, mut log) = (Ledger::<u8>::from_txns(&[]), HashMap::new());
        for number in 1..200 {
            commit(&mut ledger, &mut log, &[number]);
        }
        assert_eq!(log.len(), 1);
        assert_eq!(stored(&ledger, &log, 1..=201), (1..200).collect::<Vec<_>>());
    }

    #[test]
    fn a_pending_batch_is_known_until_it_is_stored_or_forgotten() {
        let mut ledger = Ledger::<u8>::from_txns(&[]);
        ledger.add_pending("a", 1, 5, 9);
        assert_eq!(ledger.check("a", 1), Seen::Pending(9));
        assert!(ledger.differs("a", 1, 6) && !ledger.differs("a", 1, 5));
        ledger.forget_pending();
        assert_eq!(ledger.check("a", 1), Seen::New);
        assert!(!ledger.differs("a", 1, 6));
        ledger.add_pending("a", 1, 5, 9);
        ledger.committed(&[("a".to_owned(), 1)], 5);
        assert_eq!(ledger.check("a", 1), Seen::Committed);
        assert!(ledger.differs("a", 1, 6) && !ledger.differs("a", 1, 5));
        // There is no room for others; for the one that is known there is.
        assert!(ledger.has_room_for("a", 1) && !ledger.has_room_for("b", 1));
        assert!(ledger.has_room_for("b", 2));
        ledger.forget_older(6);
        assert!(ledger.instances.is_empty());
    }
}
