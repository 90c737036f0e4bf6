//! Whether samples are as many as agents' batches say.
//!
//! `batches` has a row for each batch of an agent, with the number of its samples. Only batches count that the samples'
//! transactions say to be stored, and where old samples are gone only those that are surely younger.

use crate::hash::MixState;
use crate::store::buffer::sender_window::{Seen, SenderWindow};
use crate::store::keep::pins::batches_of;
use crate::store::table::partition::HOUR_NS;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use std::collections::{BTreeMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

/// Of a node.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Account {
    /// Rows of samples.
    rows: u64,
    /// What its batches say.
    all: u64,
    /// Those of them that are younger than the first hour of samples.
    young: u64,
}

/// What was found of the nodes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Balance {
    /// Samples of nodes that batches tell of, by these.
    pub(super) told: u64,
    /// Rows of those nodes.
    pub(super) rows: u64,
    /// Nodes that have fewer rows than their batches say, with both numbers.
    pub(super) short: Vec<(String, u64, u64)>,
    /// Whether samples are gone by their age: then only fewer rows than those of the younger batches are a fault.
    pub(super) is_cut: bool,
}

/// See the module.
pub(super) struct Ledger {
    window: SenderWindow<()>,
    /// Where the first hour of samples begins.
    first_ns: i64,
    nodes: BTreeMap<String, Account>,
    /// Batches of the day that is read: a row may be there twice.
    seen: HashSet<(u64, i64), MixState>,
    is_cut: bool,
}

impl Ledger {
    /// `window`: what the samples' log says to be stored; `first_ns`: where the first hour of samples begins.
    pub(super) fn new(window: SenderWindow<()>, first_ns: i64) -> Self {
        Self {
            window,
            first_ns,
            nodes: BTreeMap::new(),
            seen: HashSet::default(),
            is_cut: false,
        }
    }

    /// Rows of `batches` of another day come.
    pub(super) fn next_day(&mut self) {
        self.seen.clear();
    }

    fn account(&mut self, node: &str) -> &mut Account {
        self.nodes.entry(node.to_owned()).or_default()
    }

    /// Adds rows of `batches`.
    pub(super) fn add_batches(&mut self, rows: &RecordBatch) {
        let numbers = |column: &str| Some(rows.column_by_name(column)?.as_primitive_opt::<Int64Type>()?.values());
        let (Some(batches), Some(nodes), Some(samples), Some(from_ns), Some(until_ns)) = (
            batches_of(rows),
            rows.column_by_name("node")
                .and_then(|column| column.as_string_opt::<i32>()),
            numbers("samples"),
            numbers("from_ns"),
            numbers("until_ns"),
        ) else {
            return;
        };
        for (row, (instance, number)) in batches.enumerate() {
            let is_stored = self.window.check(instance, number) == Seen::Committed;
            if samples[row] <= 0 || !is_stored || !self.seen.insert((xxh3_64(instance.as_bytes()), number)) {
                continue;
            }
            let count = samples[row] as u64;
            self.is_cut |= until_ns[row] < self.first_ns;
            // What was taken late may be of the hour before its batch's.
            let is_young = from_ns[row] >= self.first_ns.saturating_add(HOUR_NS);
            let account = self.account(nodes.value(row));
            account.all += count;
            account.young += if is_young { count } else { 0 };
        }
    }

    /// Adds rows of `samples`.
    pub(super) fn add_samples(&mut self, rows: &RecordBatch) {
        let nodes = rows
            .column_by_name("node")
            .and_then(|column| column.as_dictionary_opt::<Int32Type>());
        let Some((nodes, names)) = nodes.and_then(|nodes| Some((nodes, nodes.values().as_string_opt::<i32>()?))) else {
            return;
        };
        let mut counts = vec![0_u64; names.len()];
        for key in nodes.keys().iter().flatten() {
            if let Some(count) = counts.get_mut(key as usize) {
                *count += 1;
            }
        }
        for (key, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            self.account(names.value(key)).rows += count;
        }
    }

    /// What it comes to.
    pub(super) fn balance(&self) -> Balance {
        let mut balance = Balance {
            is_cut: self.is_cut,
            ..Balance::default()
        };
        for (node, account) in self.nodes.iter().filter(|(_, account)| account.all > 0) {
            let told = if self.is_cut { account.young } else { account.all };
            balance.told += told;
            balance.rows += account.rows;
            if account.rows < told {
                balance.short.push((node.clone(), account.rows, told));
            }
        }
        balance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::table::transaction::Txn;
    use arrow::array::{ArrayRef, DictionaryArray, Int64Array, StringArray};
    use std::sync::Arc;

    fn batches(rows: &[(&str, i64, i64, i64)]) -> RecordBatch {
        let column = |of: fn(&(&str, i64, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(rows.iter().map(of).map(Some).collect::<Int64Array>())
        };
        let nodes: StringArray = rows.iter().map(|(node, ..)| Some(*node)).collect();
        let instances: StringArray = rows.iter().map(|(node, ..)| Some(format!("{node}-1"))).collect();
        RecordBatch::try_from_iter([
            ("node", Arc::new(nodes) as ArrayRef),
            ("instance", Arc::new(instances) as ArrayRef),
            ("number", column(|(_, number, _, _)| *number)),
            ("samples", column(|(_, _, samples, _)| *samples)),
            ("from_ns", column(|(_, _, _, from_ns)| *from_ns)),
            ("until_ns", column(|(_, _, _, from_ns)| *from_ns + 5)),
        ])
        .unwrap()
    }

    fn samples(nodes: &[&str]) -> RecordBatch {
        let nodes: DictionaryArray<Int32Type> = nodes.iter().copied().collect();
        RecordBatch::try_from_iter([("node", Arc::new(nodes) as ArrayRef)]).unwrap()
    }

    fn window(highest: i64) -> SenderWindow<()> {
        let txn = |instance: &str| Txn {
            app_id: instance.to_owned(),
            version: highest,
            updated_ms: 1,
        };
        SenderWindow::from_txns(&[txn("a-1"), txn("b-1")])
    }

    #[test]
    fn each_stored_batch_counts_once_and_who_has_fewer_rows_is_named() {
        let mut ledger = Ledger::new(window(2), 0);
        ledger.add_batches(&batches(&[
            ("a", 1, 2, 10),
            ("a", 2, 1, 20),
            ("a", 1, 2, 10),
            ("b", 1, 2, 10),
        ]));
        // It is under way: its samples are not there yet.
        ledger.add_batches(&batches(&[("b", 3, 7, 30)]));
        ledger.add_samples(&samples(&["a", "b", "a", "c"]));
        let balance = ledger.balance();
        assert_eq!((balance.told, balance.rows, balance.is_cut), (5, 3, false));
        assert_eq!(balance.short, [("a".to_owned(), 2, 3), ("b".to_owned(), 1, 2)]);
        ledger.add_samples(&samples(&["a", "b"]));
        assert_eq!(ledger.balance().short, []);
    }

    #[test]
    fn where_old_samples_are_gone_only_younger_batches_are_held_against_what_is_there() {
        let mut ledger = Ledger::new(window(3), HOUR_NS);
        ledger.add_batches(&batches(&[
            ("a", 1, 4, 10),
            ("a", 2, 4, HOUR_NS + 10),
            ("a", 3, 2, 2 * HOUR_NS + 10),
        ]));
        ledger.add_samples(&samples(&["a"]));
        assert_eq!(ledger.balance().short, [("a".to_owned(), 1, 2)]);
        ledger.add_samples(&samples(&["a"]));
        let balance = ledger.balance();
        assert!(balance.is_cut && balance.short.is_empty(), "{balance:?}");
    }
}
