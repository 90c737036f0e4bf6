//! Which labels a series has, and how many of them one sender may make.
//!
//! In: what attributes say. Out: the fixed labels and, as JSON, all others by the name of their attribute; the bounds
//! that were reached. What a sender has said before within the hour costs one look-up a series.

use crate::ingest::rows::builder::Labels;
use crate::ingest::rows::text::push_text;
use crate::ingest::wire::attribute::Value;
use crate::label::SERIES_LABELS;
use crate::store::HOUR_NS;
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Attributes of one series that are kept beside its fixed labels.
const MAX_ATTRIBUTES: usize = 64;

/// Bytes of an attribute's name.
const MAX_NAME_BYTES: usize = 128;

/// Bytes of any label's value; what is longer is cut there.
const MAX_VALUE_BYTES: usize = 1024;

/// Attributes' names of one sender within an hour.
const MAX_NAMES: usize = 256;

/// Values that one attribute of one sender has within an hour.
const MAX_VALUES: usize = 1_000;

/// And that a fixed label has: of processes and of their cgroups there are as many as a busy machine starts.
const MAX_FIXED_VALUES: usize = 20_000;

/// Values of all labels of one sender within an hour with the series that have them, and those of all senders.
const MAX_SEEN: usize = 200_000;

const MAX_SEEN_OF_ALL: usize = 2_000_000;

/// Profile types, each with its unit, of one sender within an hour.
pub(crate) const MAX_TYPES: usize = 100;

/// The attribute under which a series has the unit of its values, where they are no time: no sender can give one of
/// this name.
pub(crate) const UNIT: &str = "stakeout.unit";

/// What stands for a value beyond these.
const OTHER: &str = "[other]";

/// As which it is counted that a sender has more types than it may.
const PROFILE_TYPES: &str = "profile_types";

/// Attributes that are kept first where there are too many.
const FIRST: [&str; 3] = ["service.version", "deployment.environment.name", "k8s."];

/// What one sender's labels had within this hour, by the server's clock.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    hour: i64,
    values: HashSet<u64, RandomState>,
    /// How many of each label, by its name's hash.
    of_label: HashMap<u64, usize, RandomState>,
    /// By the hash of all that they say.
    series: HashSet<u64, RandomState>,
    /// How often which bound was reached.
    pub(crate) reached: BTreeMap<&'static str, u64>,
    /// What this and what all senders remember.
    held: usize,
    of_all: Arc<AtomicUsize>,
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.forget();
    }
}

/// The labels of a series as they are stored.
pub(crate) struct Bounded<'a> {
    pub(crate) fixed: Labels<'a>,
    /// Other attributes as a JSON object; empty where there are none.
    pub(crate) others: String,
    /// What was hashed is the fixed labels as they are here, and nothing else.
    pub(crate) is_all_hashed: bool,
}

impl Seen {
    /// `of_all`: what all senders remember.
    pub(crate) fn new(of_all: Arc<AtomicUsize>) -> Self {
        Self {
            hour: 0,
            values: HashSet::default(),
            of_label: HashMap::default(),
            series: HashSet::default(),
            reached: BTreeMap::new(),
            held: 0,
            of_all,
        }
    }

    /// Begins an hour, if it is another one.
    pub(crate) fn turn_to(&mut self, hour: i64) {
        if self.hour != hour {
            self.hour = hour;
            self.forget();
        }
    }

    fn forget(&mut self) {
        (self.values, self.of_label, self.series) = Default::default();
        self.of_all.fetch_sub(self.held, Ordering::Relaxed);
        self.held = 0;
    }

    /// Whether there is room to remember one more.
    fn hold(&mut self) -> bool {
        if self.held >= MAX_SEEN || self.of_all.load(Ordering::Relaxed) >= MAX_SEEN_OF_ALL {
            return false;
        }
        self.held += 1;
        self.of_all.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The labels within the bounds. `attributes` may name one several times: the last counts. `content` is what is
    /// hashed.
    pub(crate) fn bound<'a>(
        &mut self,
        mut fixed: Labels<'a>,
        attributes: &[(&'a str, Value<'a>)],
        now_ns: i64,
        content: &mut Vec<u8>,
    ) -> Bounded<'a> {
        self.turn_to(hour_of(now_ns));
        let attributes = in_order(attributes);
        push_labels(content, &fixed);
        for (name, value) in &attributes {
            push_text(content, name);
            push_text(content, value);
        }
        let said = xxh3_64(content);
        if self.series.contains(&said) {
            let others = json(attributes.iter().map(|(name, value)| (*name, value.as_str())));
            return Bounded {
                fixed,
                others,
                is_all_hashed: attributes.is_empty(),
            };
        }
        let mut is_whole = true;
        for (label, value) in SERIES_LABELS.iter().zip(&mut fixed) {
            let whole: &'a str = value;
            let short = start_of(whole);
            if short.len() < whole.len() {
                is_whole = self.reach("label_value_length");
                *value = short;
            }
            if !self.admit(label, short, MAX_FIXED_VALUES) {
                is_whole = self.reach("label_values");
                *value = OTHER;
            }
        }
        let mut kept = BTreeMap::new();
        for (name, value) in &attributes {
            if name.len() > MAX_NAME_BYTES {
                is_whole = self.reach("label_name_length");
            } else if kept.len() == MAX_ATTRIBUTES {
                is_whole = self.reach("labels_of_series");
            } else if !self.admit("", name, MAX_NAMES) {
                is_whole = self.reach("label_names");
            } else {
                let short = start_of(value);
                if short.len() < value.len() {
                    is_whole = self.reach("label_value_length");
                }
                let is_new = !self.admit(name, short, MAX_VALUES);
                if is_new {
                    is_whole = self.reach("label_values");
                }
                kept.insert(*name, if is_new { OTHER } else { short });
            }
        }
        if is_whole && self.hold() {
            self.series.insert(said);
        }
        let others = json(kept.into_iter());
        Bounded {
            fixed,
            others,
            is_all_hashed: false,
        }
    }

    /// How often any bound of labels was reached so far.
    pub(crate) fn limited(&self) -> u64 {
        let of_labels = self.reached.iter().filter(|(bound, _)| **bound != PROFILE_TYPES);
        of_labels.map(|(_, count)| count).sum()
    }

    /// Whether the sender may have values of this type in this unit. Where it may not, that is counted.
    pub(crate) fn may_have_type(&mut self, kind: &str, unit: &str, now_ns: i64) -> bool {
        self.turn_to(hour_of(now_ns));
        let both = format!("{unit}\0{kind}");
        // The attribute is no sender's.
        let may = self.admit(UNIT, &both, MAX_TYPES);
        if !may {
            self.reach(PROFILE_TYPES);
        }
        may
    }

    /// A bound was reached. Returns that the series is not whole.
    fn reach(&mut self, bound: &'static str) -> bool {
        *self.reached.entry(bound).or_default() += 1;
        false
    }

    /// Whether a label may have this value. No value is always allowed.
    fn admit(&mut self, label: &str, value: &str, most: usize) -> bool {
        let mut both = Xxh3Default::new();
        both.update(&(label.len() as u64).to_le_bytes());
        both.update(label.as_bytes());
        both.update(value.as_bytes());
        let id = both.digest();
        if value.is_empty() || self.values.contains(&id) {
            return true;
        }
        let key = xxh3_64(label.as_bytes());
        if self.of_label.get(&key).is_some_and(|values| *values >= most) || !self.hold() {
            return false;
        }
        *self.of_label.entry(key).or_default() += 1;
        self.values.insert(id)
    }
}

/// What a resource says of itself beyond the fixed labels, as JSON, within the bounds of one series. What is beyond
/// them is counted with its samples.
pub(crate) fn of_resource(attributes: &[(&str, Value<'_>)]) -> String {
    let attributes = in_order(attributes);
    let named = attributes.iter().filter(|(name, _)| name.len() <= MAX_NAME_BYTES);
    json(named.take(MAX_ATTRIBUTES).map(|(name, value)| (*name, start_of(value))))
}

pub(crate) fn hour_of(ns: i64) -> i64 {
    ns.div_euclid(HOUR_NS)
}

/// The value, or as much of it as a label may have.
pub(crate) fn start_of(value: &str) -> &str {
    &value[..value.floor_char_boundary(MAX_VALUE_BYTES)]
}

/// What is an attribute's value as a label's; none of lists and bytes.
fn text_of(value: Value<'_>) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.to_owned()),
        Value::Bool(so) => Some(so.to_string()),
        Value::Int(int) => Some(int.to_string()),
        Value::Real(real) => Some(real.to_string()),
        _ => None,
    }
    .filter(|text| !text.is_empty())
}

/// Each name once, those first that are kept first.
fn in_order<'a>(attributes: &[(&'a str, Value<'a>)]) -> Vec<(&'a str, String)> {
    let mut last: HashMap<&str, usize, RandomState> = HashMap::default();
    for (at, (name, _)) in attributes.iter().enumerate() {
        last.insert(name, at);
    }
    let once = attributes
        .iter()
        .enumerate()
        .filter(|(at, (name, _))| last[name] == *at);
    let mut texts: Vec<_> = once
        .filter_map(|(_, (name, value))| Some((*name, text_of(*value)?)))
        .collect();
    texts.sort_by_key(|(name, _)| !FIRST.iter().any(|first| name.starts_with(first)));
    texts
}

/// Labels of a series as JSON with the unit of its values among them.
pub(crate) fn with_unit(others: &str, unit: &str) -> String {
    let mut labels: BTreeMap<Cow<'_, str>, Cow<'_, str>> = serde_json::from_str(others).unwrap_or_default();
    labels.insert(UNIT.into(), unit.into());
    serde_json::to_string(&labels).unwrap_or_default()
}

/// Makes fixed labels what is hashed.
pub(crate) fn push_labels(content: &mut Vec<u8>, fixed: &Labels<'_>) {
    content.clear();
    fixed.iter().for_each(|value| push_text(content, value));
}

/// Sorted by name, so that what says the same is the same.
fn json<'t>(labels: impl Iterator<Item = (&'t str, &'t str)>) -> String {
    let labels: BTreeMap<_, _> = labels.collect();
    match labels.is_empty() {
        true => String::new(),
        false => serde_json::to_string(&labels).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(service: &str) -> Labels<'_> {
        let mut labels = [""; SERIES_LABELS.len()];
        labels[1] = service;
        labels
    }

    fn bound<'a>(seen: &mut Seen, fixed: Labels<'a>, said: &[(&'a str, Value<'a>)], now_ns: i64) -> Bounded<'a> {
        seen.bound(fixed, said, now_ns, &mut Vec::new())
    }

    #[test]
    fn attributes_are_kept_by_name_and_the_last_counts() {
        let mut seen = Seen::default();
        let said = [
            ("b", Value::Int(-7)),
            ("a", Value::Text("x\"y")),
            ("b", Value::Bool(true)),
            ("list", Value::Other),
            ("empty", Value::Text("")),
        ];
        let bounded = bound(&mut seen, fixed("s"), &said, 0);
        assert_eq!(bounded.others, r#"{"a":"x\"y","b":"true"}"#);
        // What was said before is the same, by the shorter way.
        assert_eq!(bound(&mut seen, fixed("s"), &said, 0).others, bounded.others);
        assert_eq!(bound(&mut seen, fixed("s"), &[], 0).others, "");
        assert!(seen.reached.is_empty());
    }

    #[test]
    fn a_resource_has_no_more_labels_than_a_series() {
        let names: Vec<String> = (0..100).map(|at| format!("key{at:03}")).collect();
        let mut said: Vec<_> = names.iter().map(|name| (name.as_str(), Value::Int(1))).collect();
        let long = "ü".repeat(MAX_VALUE_BYTES);
        said.extend([
            ("k8s.node.uid", Value::Text(&long)),
            (long.as_str(), Value::Int(1)),
            ("list", Value::Other),
        ]);
        let labels: BTreeMap<String, String> = serde_json::from_str(&of_resource(&said)).unwrap();
        assert_eq!(labels.len(), MAX_ATTRIBUTES);
        assert_eq!(
            (labels["k8s.node.uid"].len(), &*labels["key000"]),
            (MAX_VALUE_BYTES, "1")
        );
        assert_eq!(of_resource(&[]), "");
    }

    #[test]
    fn types_are_bounded_and_their_units_are_labels_whatever_else_there_is() {
        let mut seen = Seen::default();
        for at in 0..MAX_TYPES {
            assert!(seen.may_have_type(&format!("t{at}"), "count", 0));
        }
        assert!(!seen.may_have_type("more", "count", 0) && !seen.may_have_type("t0", "bytes", 0));
        assert!(seen.may_have_type("t7", "count", 0));
        // That is told by itself.
        assert_eq!((seen.reached["profile_types"], seen.limited()), (2, 0));
        assert!(seen.may_have_type("more", "count", HOUR_NS));
        assert_eq!(with_unit("", "MB"), r#"{"stakeout.unit":"MB"}"#);
        assert_eq!(
            with_unit(r#"{"z":"x\"y","a":"b"}"#, "By"),
            r#"{"a":"b","stakeout.unit":"By","z":"x\"y"}"#
        );
    }

    #[test]
    fn names_values_and_lengths_are_bounded_and_counted() {
        let mut seen = Seen::default();
        let names: Vec<String> = (0..1000).map(|at| format!("key{at:03}")).collect();
        let mut said: Vec<_> = names.iter().map(|name| (name.as_str(), Value::Int(1))).collect();
        said.push(("k8s.node.uid", Value::Int(2)));
        let others: BTreeMap<String, String> =
            serde_json::from_str(&bound(&mut seen, fixed("s"), &said, 0).others).unwrap();
        assert_eq!(others.len(), MAX_ATTRIBUTES);
        // What is a label by default comes first.
        assert_eq!(others["k8s.node.uid"], "2");
        assert_eq!(seen.reached["labels_of_series"], 1001 - MAX_ATTRIBUTES as u64);

        let mut seen = Seen::default();
        for at in 0..=MAX_VALUES as i64 {
            let others = bound(&mut seen, fixed("s"), &[("id", Value::Int(at))], 0).others;
            let kept = at < MAX_VALUES as i64;
            assert_eq!(others == format!(r#"{{"id":"{at}"}}"#), kept, "{others}");
        }
        assert_eq!(
            bound(&mut seen, fixed("s"), &[("id", Value::Int(-1))], 0).others,
            r#"{"id":"[other]"}"#
        );
        assert_eq!(seen.reached["label_values"], 2);
        // Another hour begins anew, and what was counted stays so.
        assert_eq!(
            bound(&mut seen, fixed("s"), &[("id", Value::Int(-1))], HOUR_NS).others,
            r#"{"id":"-1"}"#
        );
        assert_eq!(seen.reached["label_values"], 2);

        let long = "ü".repeat(MAX_VALUE_BYTES);
        let bounded = bound(
            &mut seen,
            fixed(&long),
            &[(&long, Value::Int(1)), ("v", Value::Text(&long))],
            HOUR_NS,
        );
        assert_eq!(bounded.fixed[1].len(), MAX_VALUE_BYTES);
        assert_eq!(bounded.others.len(), MAX_VALUE_BYTES + r#"{"v":""}"#.len());
        assert_eq!(
            (seen.reached["label_value_length"], seen.reached["label_name_length"]),
            (2, 1)
        );
        let services: Vec<String> = (0..MAX_FIXED_VALUES + 9).map(|at| at.to_string()).collect();
        let other = services
            .iter()
            .filter(|name| bound(&mut seen, fixed(name), &[], HOUR_NS).fixed[1] == OTHER);
        // Two services were there before.
        assert_eq!(other.count(), 11);
    }
}
