//! Which pairs of group and stack there are, and the id of each.

use crate::hash::MixState;
use crate::label::Label;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::shares::counting::label_name;
use crate::query::tree::label_rows::LabelRows;
use crate::query::views::grouping::keys::Keys;
use crate::store::Snapshot;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most labels that have rows in one tree.
pub const MOST_ROWS: usize = 4;

/// Most groups: distinct values of all labels together.
const MOST_GROUPS: usize = 100_000;

/// Memory of a pair and of a group with the tables that find them, without texts, in bytes.
const PAIR_BYTES: usize = 48;
const GROUP_BYTES: usize = 160;

/// Ids of pairs are spread over all numbers, as those of stacks are: what sorts them cuts all numbers into parts.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const UNSPREAD: u64 = inverse(SPREAD);

/// What an odd number is multiplied by to become 1 in 64 bits: each round of Newton's doubles the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let (mut inverse, mut round) = (odd, 0);
    while round < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

/// The groups of one question; of both sides of a difference the same.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    /// Of its labels, by which another server finds them.
    labels: Arc<[String]>,
    pub(super) keys: Arc<Keys>,
    pairs: Arc<Mutex<Pairs>>,
}

/// What stands for each id that is counted. Threads share it, so that one pair has one id.
pub(super) struct Pairs {
    groups: Vec<Vec<Arc<str>>>,
    index: HashMap<Vec<Arc<str>>, u32, foldhash::fast::RandomState>,
    texts_bytes: usize,
    list: Vec<(u32, i64)>,
    place_of: HashMap<(u32, i64), u32, MixState>,
    limit: usize,
    held: Reservation,
}

impl std::fmt::Debug for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pairs of {} groups", self.list.len(), self.groups.len())
    }
}

impl Pairs {
    pub(super) fn group(&mut self, values: Vec<Arc<str>>) -> Result<u32, QueryError> {
        if let Some(known) = self.index.get(&values) {
            return Ok(*known);
        }
        if self.groups.len() >= MOST_GROUPS {
            return Err(QueryError::too_large(
                format!("the selection has more than {MOST_GROUPS} groups of `group`"),
                "ask for fewer labels in `group`, a shorter window or a narrower selector",
            ));
        }
        let group = self.groups.len() as u32;
        self.texts_bytes += values.iter().map(|value| value.len()).sum::<usize>();
        self.groups.push(values.clone());
        self.index.insert(values, group);
        Ok(group)
    }

    /// The id of a pair.
    pub(super) fn id(&mut self, group: u32, stack: i64) -> Result<i64, QueryError> {
        let next = self.list.len() as u32;
        let place = *self.place_of.entry((group, stack)).or_insert(next);
        if place == next {
            if self.list.len() >= self.limit {
                return Err(QueryError::too_large(
                    format!("the selection has more than {} pairs of group and stack", self.limit),
                    "ask for fewer labels in `group`, a shorter window or a narrower selector",
                ));
            }
            self.list.push((group, stack));
        }
        Ok(u64::from(place).wrapping_mul(SPREAD) as i64)
    }

    fn of(&self, id: i64) -> (u32, i64) {
        let place = (id as u64).wrapping_mul(UNSPREAD);
        self.list.get(place as usize).copied().unwrap_or_default()
    }

    /// Takes what all of it needs.
    pub(super) fn hold(&self) -> Result<(), QueryError> {
        let bytes = self.list.len() * PAIR_BYTES + self.groups.len() * GROUP_BYTES + self.texts_bytes;
        self.held.resize(bytes)
    }
}

impl Grouping {
    /// Of these labels, outermost first, in these days. At most `limit` pairs of group and stack are taken.
    pub(crate) async fn new(
        snapshot: &Snapshot,
        days: &Days,
        labels: &[Label],
        limit: usize,
    ) -> Result<Grouping, QueryError> {
        let pairs = Pairs {
            groups: Vec::new(),
            index: HashMap::default(),
            texts_bytes: 0,
            list: Vec::new(),
            place_of: HashMap::default(),
            limit,
            held: Reservation::new(snapshot, "groups of the selected samples"),
        };
        Ok(Grouping {
            labels: labels.iter().map(|label| label_name(*label)).collect(),
            keys: Arc::new(Keys::new(snapshot, days, labels).await?),
            pairs: Arc::new(Mutex::new(pairs)),
        })
    }

    /// The names by which another server finds its labels.
    pub(crate) fn label_names(&self) -> &[String] {
        &self.labels
    }

    pub(super) fn pairs(&self) -> MutexGuard<'_, Pairs> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a stack that has none of the labels.
    pub(crate) fn without_values(&self, stack: i64) -> Result<i64, QueryError> {
        let mut pairs = self.pairs();
        let group = pairs.group(vec![Arc::default(); self.keys.names.len()])?;
        pairs.id(group, stack)
    }

    /// What these ids mean, for another server: the values of each group once, then the group and the stack of each id.
    pub(super) fn write(&self, ids: &[i64], to: &mut PartialWriter) {
        let pairs = self.pairs();
        to.number(pairs.groups.len() as u64);
        for value in pairs.groups.iter().flatten() {
            to.text(value);
        }
        to.number(ids.len() as u64);
        for id in ids {
            let (group, stack) = pairs.of(*id);
            to.number(u64::from(group));
            to.signed(stack);
        }
    }

    /// The ids that stand here for what another server wrote.
    pub(super) fn read(&self, from: &mut PartialReader<'_>, most: usize) -> Result<Vec<i64>, Malformed> {
        let refused = |error: QueryError| Malformed::new(error.to_string());
        let count = from.count(MOST_GROUPS, "groups")?;
        let mut known = self.pairs();
        let mut groups = Vec::with_capacity(count);
        for _ in 0..count {
            let values: Vec<Arc<str>> = (0..self.keys.names.len())
                .map(|_| Ok(from.text()?.into()))
                .collect::<Result<_, Malformed>>()?;
            groups.push(known.group(values).map_err(refused)?);
        }
        let count = from.count(most, "pairs of group and stack")?;
        from.takes(count * 2 * size_of::<i64>())?;
        let mut ids = Vec::with_capacity(count);
        let mut seen: HashSet<i64, MixState> = HashSet::default();
        for _ in 0..count {
            let (group, stack) = (from.number()?, from.signed()?);
            let group = usize::try_from(group).ok().and_then(|group| groups.get(group));
            let group = group.ok_or_else(|| Malformed::new("a pair is of a group that is not there"))?;
            let id = known.id(*group, stack).map_err(refused)?;
            if !seen.insert(id) {
                return Err(Malformed::new("a pair of group and stack stands twice"));
            }
            ids.push(id);
        }
        known.hold().map_err(refused)?;
        Ok(ids)
    }

    /// The places of these ids in the order of their groups' values and their stacks, which is the same for the same
    /// samples.
    pub(crate) fn in_order(&self, ids: &[i64]) -> Vec<u32> {
        let pairs = self.pairs();
        let mut groups: Vec<u32> = (0..pairs.groups.len() as u32).collect();
        groups.sort_unstable_by(|a, b| pairs.groups[*a as usize].cmp(&pairs.groups[*b as usize]));
        let mut rank = vec![0_u32; groups.len()];
        for (place, group) in groups.iter().enumerate() {
            rank[*group as usize] = place as u32;
        }
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_by_cached_key(|at| {
            let (group, stack) = pairs.of(ids[*at as usize]);
            (rank[group as usize], stack)
        });
        order
    }

    /// The stacks that these ids mean, and the rows above them.
    pub(crate) fn stacks(&self, ids: &[i64]) -> (Vec<i64>, LabelRows) {
        let pairs = self.pairs();
        let (group_of, stacks) = ids.iter().map(|id| pairs.of(*id)).unzip();
        let rows = LabelRows {
            labels: self.keys.names.clone(),
            groups: pairs.groups.clone(),
            group_of,
        };
        (stacks, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spread_is_found_again() {
        assert_eq!(SPREAD.wrapping_mul(UNSPREAD), 1);
        for place in [0_u64, 1, 2, 999_999, u64::from(u32::MAX)] {
            assert_eq!(place.wrapping_mul(SPREAD).wrapping_mul(UNSPREAD), place);
        }
    }
}
