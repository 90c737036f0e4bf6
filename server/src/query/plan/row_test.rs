//! Which rows a question selects, by what is known of a row group before it is read, and by its columns after that.

use crate::column::bounds::{Bounds, Statistics};
use crate::column::coded::{CodedColumn, Column, Projection};
use crate::column::list::{Code, with_codes};
use crate::label::LabelTable;
use crate::profile_type::tells_of_waits;
use crate::query::ask::question::{Question, ValueRange};
use crate::query::ask::selector::Matcher;
use crate::query::ask::time::Window;
use crate::query::plan::columns::{LENGTHS, PERIODS, TIMES, codes};
use crate::query::plan::days::Days;
use crate::query::plan::scope::{Ids, ResolvedSelector};
use crate::store::format::read::groups::RowGroupTask;
use std::sync::Arc;

/// The conditions on a sample.
#[derive(Debug)]
pub(crate) struct RowTest {
    window: Window,
    except: Option<Window>,
    hours: (String, String),
    profile: String,
    values: ValueRange,
    /// How long waits were, in nanoseconds.
    lengths: ValueRange,
    scope: ResolvedSelector,
    matchers: Vec<Matcher>,
}

/// Which rows satisfied the conditions so far. A flag for each row is made by the first condition that is looked at.
struct Keep {
    rows: usize,
    flags: Option<Vec<bool>>,
}

impl Keep {
    fn all(rows: usize) -> Keep {
        Keep { rows, flags: None }
    }

    /// By one more condition, of which the answer for each row is told.
    fn narrow(&mut self, satisfied: impl Iterator<Item = bool>) {
        match &mut self.flags {
            Some(flags) => flags.iter_mut().zip(satisfied).for_each(|(flag, is)| *flag &= is),
            None => self.flags = Some(satisfied.take(self.rows).collect()),
        }
    }

    fn unless_all(self) -> Option<Vec<bool>> {
        self.flags.filter(|flags| flags.contains(&false))
    }
}

/// A condition that is decided row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Time,
    Type,
    Value,
    /// How long a wait was.
    Length,
    Series,
    Processes,
    /// By index.
    Matcher(usize),
}

impl RowTest {
    pub(crate) fn new(question: &Question, scope: &ResolvedSelector) -> RowTest {
        RowTest {
            window: question.window,
            except: question.except,
            hours: Days::of(question.window).hours(),
            profile: question.profile.clone(),
            values: question.values,
            lengths: match tells_of_waits(&question.profile) {
                true => question.lengths,
                false => ValueRange::default(),
            },
            scope: scope.clone(),
            matchers: question.selector.of(LabelTable::Samples).cloned().collect(),
        }
    }

    /// All columns that are looked at, these included.
    pub(crate) fn uses(&self, wanted: &[Projection]) -> Vec<&'static str> {
        let ids = [("series_id", &self.scope.series), ("process_id", &self.scope.processes)];
        let ids = ids.into_iter().filter(|(_, ids)| ids.is_some()).map(|(name, _)| name);
        let matchers = self.matchers.iter().map(|matcher| matcher.label().column());
        let value = (!self.values.is_all() || !self.lengths.is_all()).then_some(PERIODS.name);
        let length = (!self.lengths.is_all()).then_some(LENGTHS.name);
        wanted
            .iter()
            .map(|column| column.name)
            .chain(ids)
            .chain(value)
            .chain(length)
            .chain(matchers)
            .collect()
    }

    /// Whether rows of which so much is known may be selected.
    pub(crate) fn may(&self, known: Statistics<'_>) -> bool {
        let numbers = |name: &str, test: &dyn Fn(i64, i64) -> bool| match known(name) {
            Some(Bounds::Numbers(least, most)) => test(least, most),
            _ => true,
        };
        let texts = |name: &str, test: &dyn Fn(&str, &str) -> bool| match known(name) {
            Some(Bounds::Texts(least, most)) => test(&least, &most),
            _ => true,
        };
        let Window { from_ns, until_ns } = self.window;
        let (first, last) = (self.hours.0.as_str(), self.hours.1.as_str());
        let profile = self.profile.as_str();
        texts("hour", &|least, most| least <= last && first <= most)
            && numbers("ts_ns", &|least, most| least < until_ns && from_ns <= most)
            && texts("type", &|least, most| least <= profile && profile <= most)
            && numbers(PERIODS.name, &|least, most| self.values.meets(least, most))
            && self.scope.services.as_ref().is_none_or(|services| {
                texts("service", &|least, most| {
                    let mut from =
                        services.range::<str, _>((std::ops::Bound::Included(least), std::ops::Bound::Unbounded));
                    from.next().is_some_and(|service| service.as_str() <= most)
                })
            })
            && [("series_id", &self.scope.series), ("process_id", &self.scope.processes)]
                .into_iter()
                .all(|(name, ids)| {
                    ids.as_ref()
                        .is_none_or(|ids| numbers(name, &|least, most| ids.any_within(least, most)))
                })
    }

    /// The conditions that not all rows of a unit are known to satisfy, and the columns to be read: those that are
    /// wanted, then those of the conditions.
    pub(crate) fn left(
        &self,
        unit: &RowGroupTask,
        wanted: &[Projection],
        times_are_checked: bool,
    ) -> (Vec<Condition>, Vec<Projection>) {
        let mut conditions = Vec::new();
        let inside = |least, most| {
            let is_cut = |except: &Window| least < except.until_ns && except.from_ns <= most;
            self.window.from_ns <= least && most < self.window.until_ns && !self.except.as_ref().is_some_and(is_cut)
        };
        let all_inside = matches!(unit.known("ts_ns"), Some(Bounds::Numbers(least, most)) if inside(least, most));
        if !all_inside && !times_are_checked {
            conditions.push(Condition::Time);
        }
        let is_profile = |text: &String| *text == self.profile;
        if !matches!(unit.known("type"), Some(Bounds::Texts(least, most)) if is_profile(&least) && is_profile(&most)) {
            conditions.push(Condition::Type);
        }
        let all_counted = |least, most| self.values.holds(least, most);
        let is_known =
            || matches!(unit.known(PERIODS.name), Some(Bounds::Numbers(least, most)) if all_counted(least, most));
        if !self.values.is_all() && !is_known() {
            conditions.push(Condition::Value);
        }
        // Rows without a length are not in what is known of the lengths.
        if !self.lengths.is_all() {
            conditions.push(Condition::Length);
        }
        let ids = [
            (Condition::Series, "series_id", &self.scope.series),
            (Condition::Processes, "process_id", &self.scope.processes),
        ];
        for (condition, name, ids) in ids {
            let Some(ids) = ids else { continue };
            if !unit.only(name).is_some_and(|id| ids.contains(id)) {
                conditions.push(condition);
            }
        }
        conditions.extend((0..self.matchers.len()).map(Condition::Matcher));
        // The times of a roll-up are few.
        let of_unit = |column: Projection| match column {
            TIMES if unit.is_rollup() => codes(TIMES.name),
            column => column,
        };
        let mut columns: Vec<Projection> = wanted.iter().copied().map(of_unit).collect();
        let of_conditions = conditions.iter().map(|condition| self.column(*condition));
        let beside = conditions.contains(&Condition::Length).then_some(PERIODS);
        for column in of_conditions.chain(beside).map(of_unit) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        (conditions, columns)
    }

    fn column(&self, condition: Condition) -> Projection {
        match condition {
            Condition::Time => TIMES,
            Condition::Type => codes("type"),
            Condition::Value => PERIODS,
            Condition::Length => LENGTHS,
            Condition::Series => codes("series_id"),
            Condition::Processes => codes("process_id"),
            Condition::Matcher(index) => codes(self.matchers[index].label().column()),
        }
    }

    /// Which rows satisfy all conditions, of columns that were read as [`RowTest::left`] says; `None`: all do.
    pub(crate) fn kept(
        &self,
        columns: &[Projection],
        read: &[Column],
        rows: usize,
        conditions: &[Condition],
    ) -> Option<Vec<bool>> {
        if conditions.is_empty() {
            return None;
        }
        let mut keep = Keep::all(rows);
        let of = |name: &str| {
            let at = columns.iter().position(|column| column.name == name);
            at.and_then(|at| read.get(at))
        };
        for condition in conditions {
            match of(self.column(*condition).name) {
                Some(Column::Numbers(times)) => {
                    let Window { from_ns, until_ns } = self.window;
                    keep.narrow(times.iter().map(|ts_ns| (from_ns <= *ts_ns) & (*ts_ns < until_ns)));
                    if let Some(Window { from_ns, until_ns }) = self.except {
                        keep.narrow(times.iter().map(|ts_ns| (*ts_ns < from_ns) | (until_ns <= *ts_ns)));
                    }
                }
                Some(Column::Codes(codes)) if *condition == Condition::Length => {
                    keep.narrow(self.are_lengths(codes, of(PERIODS.name)));
                }
                Some(Column::Codes(codes)) => {
                    let accepted: Vec<bool> = (0..codes.distinct())
                        .map(|code| self.accepts(*condition, codes, code))
                        .collect();
                    // Mostly a row group is of one type, whatever the rows beside it are of.
                    if accepted.contains(&false) {
                        with_codes!(&codes.codes, codes => keep.narrow(codes.iter().map(|code| accepted[code.index()])));
                    }
                }
                // A column that is not there satisfies no condition.
                None => keep.narrow(std::iter::repeat_n(false, rows)),
            }
        }
        keep.unless_all()
    }

    /// Where a sender does not say how long a wait was, its value is all that is known.
    fn are_lengths(&self, lengths: &CodedColumn, values: Option<&Column>) -> impl Iterator<Item = bool> {
        let value_of = move |row| match values {
            Some(Column::Codes(values)) => values.number(values.codes.at(row) as usize),
            _ => None,
        };
        (0..lengths.codes.len()).map(move |row| {
            let length = lengths.number(lengths.codes.at(row) as usize);
            let length = length.or_else(|| value_of(row));
            length.is_some_and(|ns| self.lengths.contains(ns))
        })
    }

    /// Whether rows with a code are selected, by a condition on one column.
    fn accepts(&self, condition: Condition, codes: &CodedColumn, code: usize) -> bool {
        let among = |ids: &Option<Arc<Ids>>| {
            let ids = ids.as_ref();
            ids.is_none_or(|ids| codes.number(code).is_some_and(|id| ids.contains(id)))
        };
        match condition {
            Condition::Time => codes.number(code).is_some_and(|ts_ns| {
                let inside = |window: &Window| (window.from_ns..window.until_ns).contains(&ts_ns);
                inside(&self.window) && !self.except.as_ref().is_some_and(inside)
            }),
            Condition::Type => codes.text(code) == self.profile,
            Condition::Value => codes.number(code).is_some_and(|value| self.values.contains(value)),
            Condition::Series => among(&self.scope.series),
            Condition::Processes => among(&self.scope.processes),
            Condition::Matcher(index) => self.matchers[index].accepts(&codes.text(code)),
            Condition::Length => codes.number(code).is_some_and(|ns| self.lengths.contains(ns)),
        }
    }
}
