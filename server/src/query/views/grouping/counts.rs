//! Counts pairs of group and stack where others count stacks.

use crate::column::coded::{CodedColumn, Projection, Values};
use crate::hash::MixState;
use crate::query::count::partial::Partial;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::count::stack_counts::StackCounts;
use crate::query::limits::error::QueryError;
use crate::query::plan::resolution::TimeResolution;
use crate::query::views::grouping::pairs::Grouping;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct GroupedStacks {
    pub(crate) counts: StackCounts,
    grouping: Grouping,
}

/// A code for each pair of codes that rows have.
struct Paired {
    codes: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

impl Paired {
    /// Neighbours mostly have the same pair.
    fn of(rows: impl Iterator<Item = (u32, u32)>) -> Paired {
        let mut known: HashMap<u64, u32, MixState> = HashMap::default();
        let (mut pairs, mut last): (Vec<(u32, u32)>, _) = (Vec::new(), None);
        let code = |pair: (u32, u32)| match last {
            Some((before, code)) if before == pair => code,
            _ => {
                let key = u64::from(pair.0) << 32 | u64::from(pair.1);
                let code = *known.entry(key).or_insert_with(|| {
                    pairs.push(pair);
                    pairs.len() as u32 - 1
                });
                last = Some((pair, code));
                code
            }
        };
        let codes = rows.map(code).collect();
        Paired { codes, pairs }
    }
}

impl GroupedStacks {
    /// Counts pairs where `counts` would count stacks.
    pub(crate) fn new(counts: StackCounts, grouping: Grouping) -> GroupedStacks {
        GroupedStacks { counts, grouping }
    }
}

impl Grouping {
    /// The columns that tell the labels.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Projection> {
        self.keys.projections()
    }

    /// The stacks of rows, which are their first column, with pairs for them; the columns of labels begin at `first`.
    pub(crate) fn paired(&self, rows: &Rows, first: usize) -> Result<CodedColumn, QueryError> {
        let keys = &self.keys;
        let columns = (first..first + keys.columns.len()).map(|at| rows.codes(at));
        let columns: Vec<&CodedColumn> = columns.collect::<Result<_, _>>()?;
        // What one column means is paired with what the next one means, and at last with the stack.
        let mut groups: Vec<u32> = vec![0; rows.len()];
        let mut steps: Vec<Vec<(u32, u32)>> = Vec::with_capacity(columns.len());
        for (key, column) in keys.columns.iter().zip(&columns) {
            let classes = key.classes(column);
            let of_rows = column.codes.map(&classes);
            let paired = Paired::of(groups.iter().copied().zip(of_rows));
            groups = paired.codes;
            steps.push(paired.pairs);
        }
        let stacks = rows.codes(0)?;
        let paired = Paired::of(groups.iter().copied().zip(stacks.codes.words().iter().copied()));
        let mut known = self.pairs();
        let mut group_of: HashMap<u32, u32, MixState> = HashMap::default();
        let mut ids = Vec::with_capacity(paired.pairs.len());
        for (code, stack) in paired.pairs {
            let group = match group_of.get(&code) {
                Some(group) => *group,
                None => {
                    let mut at = code;
                    let classes = steps.iter().rev().map(|pairs| {
                        let (before, class) = pairs[at as usize];
                        at = before;
                        class
                    });
                    let mut classes: Vec<u32> = classes.collect();
                    classes.reverse();
                    let each = (keys.columns.iter().zip(&columns)).zip(classes);
                    let values: Vec<Arc<str>> =
                        keys.values(each.map(|((key, column), class)| key.values(class, column)));
                    let group = known.group(values)?;
                    group_of.insert(code, group);
                    group
                }
            };
            ids.push(known.id(group, stacks.number(stack as usize).unwrap_or_default())?);
        }
        known.hold()?;
        Ok(CodedColumn {
            codes: paired.codes.into(),
            values: Values::Numbers(ids),
        })
    }
}

impl Accumulator for GroupedStacks {
    fn columns(&self) -> Vec<Projection> {
        let mut columns = self.counts.columns();
        columns.extend(self.grouping.columns());
        columns
    }

    fn when(&self) -> TimeResolution {
        self.counts.when()
    }

    fn cuts(&self) -> Vec<i64> {
        self.counts.cuts()
    }

    fn checks_times(&self) -> bool {
        self.counts.checks_times()
    }

    fn takes_one_period(&self) -> bool {
        self.counts.takes_one_period()
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        // A pair that no row of the window has must not count among those that are bounded.
        let rows = match self.counts.counted(rows)? {
            None => Cow::Borrowed(rows),
            Some(keep) if !keep.contains(&true) => return Ok(()),
            Some(keep) => Cow::Owned(rows.only(&keep)),
        };
        let asked = self.counts.columns().len();
        let pairs = self.grouping.paired(&rows, asked)?;
        self.counts.add(&rows.with_stacks(pairs, asked))
    }

    fn bytes(&self) -> usize {
        self.counts.bytes()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.counts.merge(other.counts)
    }
}

impl Partial for GroupedStacks {
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError> {
        let grouping = self.grouping;
        self.counts.write_with(to, |ids, to| {
            grouping.write(ids, to);
            Ok(())
        })
    }

    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed> {
        let grouping = &self.grouping;
        self.counts.read_with(from, |from, most| grouping.read(from, most))
    }

    fn pack(&mut self) {
        self.counts.pack();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_one_code_wherever_it_stands() {
        let paired = Paired::of([(1, 2), (1, 2), (2, 1), (1, 2), (1, 3)].into_iter());
        assert_eq!(paired.codes, [0, 0, 1, 0, 2]);
        assert_eq!(paired.pairs, [(1, 2), (2, 1), (1, 3)]);
    }
}
