//! Counts by label's value as bytes, for another server.

use super::{Group, GroupCounts, GroupStacks};
use crate::query::count::partial::Partial;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::count::periods::Periods;
use crate::query::limits::error::QueryError;

/// What a text or a limit is refused for.
fn refused(error: QueryError) -> Malformed {
    Malformed::new(error.to_string())
}

impl GroupCounts {
    /// Groups in the order of their indices.
    fn write_groups(mut self, to: &mut PartialWriter) {
        self.periods.write(to);
        let names = self.names();
        to.number(names.len() as u64);
        for (name, group) in names.into_iter().zip(self.groups) {
            to.flag(name.is_some());
            if let Some(name) = name {
                to.text(&name);
            }
            to.number(group.samples);
            to.signed(group.value_ns);
            to.signed(group.user_ns);
            to.cells(group.steps_ns.iter().map(|ns| *ns as u64));
        }
    }

    /// Returns the index here of each group there.
    fn read_groups(&mut self, from: &mut PartialReader<'_>) -> Result<Vec<u32>, Malformed> {
        self.periods = Periods::read(from)?;
        let steps = self.steps.count;
        let count = from.count(self.limit / steps.max(1), "groups")?;
        from.takes(count * (size_of::<Group>() + steps * size_of::<i64>()))?;
        let mut places = Vec::with_capacity(count);
        for _ in 0..count {
            let index = match from.flag()? {
                true => self.group(from.text()?).map_err(refused)?,
                false => self.other().map_err(refused)?,
            };
            places.push(index);
            let group = &mut self.groups[index as usize];
            group.samples = group.samples.saturating_add(from.number()?);
            group.value_ns = group.value_ns.saturating_add(from.signed()?);
            group.user_ns = group.user_ns.saturating_add(from.signed()?);
            from.cells(steps, |step, ns| {
                group.steps_ns[step] = group.steps_ns[step].saturating_add(ns as i64);
            })?;
        }
        Ok(places)
    }
}

impl Partial for GroupCounts {
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError> {
        self.write_groups(to);
        Ok(())
    }

    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed> {
        self.read_groups(from).map(drop)
    }
}

impl Partial for GroupStacks {
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError> {
        let groups = self.counts.groups.len();
        self.counts.write_groups(to);
        to.flag(self.stacks.is_some());
        let mut of_groups = vec![Vec::new(); groups];
        for ((group, id), ns) in self.stacks.into_iter().flatten() {
            of_groups[group as usize].push((id, ns));
        }
        for mut stacks in of_groups {
            stacks.sort_unstable();
            to.ids(stacks.iter().map(|(id, _)| *id));
            stacks.iter().for_each(|(_, ns)| to.signed(*ns));
        }
        Ok(())
    }

    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed> {
        let places = self.counts.read_groups(from)?;
        let known = from.flag()?;
        for place in places {
            let ids = from.ids(self.limit, "stacks of a group")?;
            from.takes(ids.len() * (size_of::<((u32, i64), i64)>() + 1))?;
            let mut of_group = Vec::with_capacity(ids.len());
            for id in ids {
                of_group.push(((place, id), from.signed()?));
            }
            self.add_stacks(of_group.into_iter());
        }
        if !known {
            self.stacks = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::coded::{CodedColumn, Column};
    use crate::hash::MixState;
    use crate::query::ask::time::Window;
    use crate::query::count::group_counts::GroupBy;
    use crate::query::count::partial::{decode, encode};
    use crate::query::count::scan::{Accumulator, Rows};
    use crate::query::plan::steps::Steps;
    use std::collections::{BTreeMap, HashMap};
    use std::sync::Arc;

    const WINDOW: Window = Window {
        from_ns: 0,
        until_ns: 1_000,
    };

    /// Series 1 and 2 have a name, others have none.
    fn empty(limit: usize) -> GroupStacks {
        let names: HashMap<i64, Arc<str>, MixState> = [(1, "web".into()), (2, "db".into())].into_iter().collect();
        let counts = GroupCounts::new("series_id", GroupBy::Id(Arc::new(names)), Steps::of(WINDOW, 100), 1_000);
        GroupStacks::new(counts.with_modes(), limit)
    }

    /// Series, value, mode, time and stack.
    type Sample = (i64, i64, bool, i64, i64);

    fn rows(samples: &[Sample]) -> Rows {
        let column = |of: &dyn Fn(&Sample) -> i64| {
            Column::Codes(CodedColumn::of_numbers(samples.iter().map(|sample| Some(of(sample)))))
        };
        let times = samples.iter().map(|sample| sample.3).collect();
        Rows::new(
            vec![
                column(&|sample| sample.0),
                column(&|sample| sample.1),
                column(&|sample| i64::from(sample.2)),
                Column::Numbers(times),
                column(&|sample| sample.4),
            ],
            None,
        )
    }

    type Known = (
        BTreeMap<String, (u64, i64, Vec<i64>)>,
        Option<BTreeMap<(String, i64), i64>>,
        Periods,
    );

    fn known(counts: GroupStacks) -> Known {
        let (grouped, stacks) = counts.grouped();
        let names: Vec<String> = grouped.groups.iter().map(|(name, _)| name.to_string()).collect();
        let of_group =
            |(name, group): (Arc<str>, Group)| (name.to_string(), (group.samples, group.value_ns, group.steps_ns));
        let of_stack = |((group, id), ns): ((u32, i64), i64)| ((names[group as usize].clone(), id), ns);
        (
            grouped.groups.into_iter().map(of_group).collect(),
            stacks.map(|stacks| stacks.into_iter().map(of_stack).collect()),
            grouped.periods,
        )
    }

    #[test]
    fn what_is_sent_is_what_was_counted() {
        let mut state = 0x5eed_u64;
        let mut next = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as i64
        };
        for turn in 0..50 {
            let limit = if turn % 5 == 4 { 3 } else { 1_000 };
            let mut parts = [empty(limit), empty(limit)];
            for part in &mut parts {
                let samples: Vec<_> = (0..next(60))
                    .map(|_| (next(4), 10 * next(3), next(2) == 0, next(1_000), next(5) - 2))
                    .collect();
                part.add(&rows(&samples)).unwrap();
            }
            let [mut one, other] = parts;
            let sent = encode(other.clone()).unwrap();
            let back = decode(empty(limit), &sent).unwrap();
            assert_eq!(known(back.clone()), known(other.clone()), "turn {turn}");
            let mut here = one.clone();
            here.merge(other).unwrap();
            one.merge(back).unwrap();
            assert_eq!(known(one), known(here), "turn {turn}");
            for cut in 0..sent.len() {
                assert!(
                    decode(empty(limit), &sent[..cut]).is_err(),
                    "{cut} of {} bytes",
                    sent.len()
                );
            }
        }
    }

    #[test]
    fn counts_beyond_all_sense_are_merged_without_a_panic() {
        let mut to = PartialWriter::default();
        to.number(crate::query::count::partial::LAYOUT);
        Periods::of([(10, 1)]).write(&mut to);
        to.number(1);
        to.flag(true);
        to.text("web");
        to.number(u64::MAX);
        (0..2).for_each(|_| to.signed(i64::MAX));
        to.cells([u64::MAX >> 1; 10].into_iter());
        to.flag(true);
        to.ids([7].into_iter());
        to.signed(i64::MAX);
        let bytes = to.into_bytes();
        let read = || decode(empty(1_000), &bytes).unwrap();
        let mut twice = read();
        twice.merge(read()).unwrap();
        let (groups, ..) = known(twice);
        assert_eq!(groups["web"].0, u64::MAX);
    }
}
