//! Threads' time by a label and by what it went to. See the room.

use crate::column::coded::{CodedColumn, Projection};
use crate::hash::MixState;
use crate::label::Label;
use crate::profile_type::WAITS;
use crate::query::ask::question::Question;
use crate::query::count::group_counts::{GroupBy, GroupCounts, Grouped};
use crate::query::count::observed_time::ObservedTime;
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::plan::steps::Steps;
use crate::query::views::by_label::source;
use crate::query::views::engine::Engine;
use crate::query::views::facets::each_of::EachOf;
use crate::query::views::selected::count_selected;
use crate::query::views::selected::senders::observe;
use crate::query::views::waits::of_series::{CLASS, OfSeries, of_series, of_type};
use crate::store::Snapshot;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The types that a thread's time is told by; the last one has classes.
const TYPES: [&str; 3] = ["cpu", "run_queue", "off_cpu"];
/// Most classes of waits that are told apart; the rest is one that has no name.
const MOST_CLASSES: usize = 32;
/// A column that every row has.
const SERIES: &str = "series_id";

/// What time went to.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// `cpu`, `run_queue` or `off_cpu`.
    pub profile: &'static str,
    /// What was waited for; empty where that is not said.
    pub class: Arc<str>,
    /// Nanoseconds.
    pub total_ns: i64,
    /// Thread-seconds per observed second in each step; `None` where nobody covered it.
    pub rates: Vec<Option<f64>>,
}

/// One value of the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTimeRow {
    /// Empty for samples without one.
    pub name: Arc<str>,
    /// Nanoseconds of each part.
    pub parts_ns: Vec<i64>,
}

/// The answer.
#[derive(Debug)]
pub struct ThreadTime {
    /// The question that was answered, of the type `cpu`.
    pub question: Question,
    /// The label whose values the rows are.
    pub by: Label,
    /// The steps of each part's course.
    pub steps: Steps,
    /// What was observed.
    pub exposure: ObservedTime,
    /// Observed share of each step.
    pub covered: Vec<f64>,
    /// In the order of the types; classes by time, most first.
    pub parts: Vec<Part>,
    /// By all of their time, most first.
    pub rows: Vec<ThreadTimeRow>,
    /// How many values the label has.
    pub count: usize,
}

/// Counts of the rows by the label, and of all rows in steps.
type Counts = EachOf<GroupCounts>;

/// Counts by the class of each row's series.
#[derive(Debug, Clone)]
struct ByClass {
    /// Of series that have one.
    class_of: OfSeries,
    /// Counts of no row.
    none: Counts,
    /// Where the series stands among the columns.
    series_at: usize,
    of_class: BTreeMap<Arc<str>, Counts>,
}

impl ByClass {
    fn new(class_of: OfSeries, none: Counts) -> ByClass {
        let series = |column: &Projection| column.name == SERIES;
        ByClass {
            class_of,
            series_at: none.columns().iter().position(series).unwrap_or_default(),
            none,
            of_class: BTreeMap::new(),
        }
    }

    /// The class of each code of a row group's series, as an index of the classes there are.
    fn classes(&self, series: &CodedColumn) -> (Vec<Arc<str>>, Vec<usize>) {
        let mut classes: Vec<Arc<str>> = Vec::new();
        let mut known: HashMap<Arc<str>, usize, MixState> = HashMap::default();
        let of_codes = (0..series.distinct()).map(|code| {
            let class = series.number(code).and_then(|id| self.class_of.get(&id));
            let class = class.cloned().unwrap_or_default();
            *known.entry(class.clone()).or_insert_with(|| {
                classes.push(class);
                classes.len() - 1
            })
        });
        let of_codes = of_codes.collect();
        (classes, of_codes)
    }

    fn counts(&mut self, class: &Arc<str>) -> &mut Counts {
        let is_known = self.of_class.contains_key(class) || self.of_class.len() < MOST_CLASSES;
        let class = if is_known { class.clone() } else { Arc::default() };
        self.of_class.entry(class).or_insert_with(|| self.none.clone())
    }
}

impl Accumulator for ByClass {
    fn columns(&self) -> Vec<Projection> {
        self.none.columns()
    }

    /// The steps have to be known.
    fn when(&self) -> TimeResolution {
        self.none.each.last().map_or(TimeResolution::Window, Accumulator::when)
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let series = rows.codes(self.series_at)?;
        let (classes, of_codes) = self.classes(series);
        if let [class] = &classes[..] {
            return self.counts(class).add(rows);
        }
        for (index, class) in classes.iter().enumerate() {
            let words = series.codes.words();
            let keep: Vec<bool> = words.iter().map(|code| of_codes[*code as usize] == index).collect();
            if keep.contains(&true) {
                self.counts(class).add(&rows.only(&keep))?;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.of_class.values().map(Accumulator::bytes).sum()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        for (class, counts) in other.of_class {
            self.counts(&class).merge(counts)?;
        }
        Ok(())
    }
}

/// Answers with the `limit` values of the label that have most of the threads' time.
///
/// # Errors
/// As every query.
pub async fn thread_time(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    (by, steps, limit): (Label, Steps, usize),
) -> Result<ThreadTime, QueryError> {
    let question = of_type(&question, TYPES[0]);
    let days = Days::of(question.window);
    let class_of = of_series(snapshot, &days, CLASS).await?;
    let (column, names) = source(snapshot, &days, by).await?;
    let kind = engine.kind(snapshot, &question).await?;
    let exposure = observe(snapshot, &question, steps, kind.marked).await?;
    let cells = engine.limits().cells;
    let counts = |profile: &str| {
        let of_rows = GroupCounts::new(column, names.clone(), Steps::one(question.window), cells);
        // No series has a name here, so that all of them are one group.
        let of_all = GroupCounts::new(SERIES, GroupBy::Id(Arc::default()), steps, cells);
        let of_all = of_all.spreading(WAITS.contains(&profile));
        Counts::new([of_rows, of_all].into_iter())
    };
    let (mut parts, mut samples) = (Vec::new(), 0);
    let mut rows: HashMap<Arc<str>, Vec<i64>, MixState> = HashMap::default();
    for profile in TYPES {
        let asked = of_type(&question, profile);
        let selected = scope(snapshot, &asked).await?;
        let of_type = if profile == "off_cpu" {
            class_of.clone()
        } else {
            Arc::default()
        };
        let new = || ByClass::new(of_type.clone(), counts(profile));
        let (counted, _held) = count_selected(snapshot, &asked, &selected, new).await?;
        let mut of_class: Vec<_> = (counted.of_class.into_iter())
            .map(|(class, counts)| {
                (
                    class,
                    counts.each.into_iter().map(GroupCounts::grouped).collect::<Vec<_>>(),
                )
            })
            .collect();
        let total = |grouped: &[Grouped]| -> i64 {
            let each = grouped[1].groups.iter().map(|(_, group)| group.value_ns);
            each.fold(0, i64::saturating_add)
        };
        of_class.sort_by_key(|(_, grouped)| std::cmp::Reverse(total(grouped)));
        for (class, grouped) in of_class {
            let (at, total_ns) = (parts.len(), total(&grouped));
            for (name, group) in &grouped[0].groups {
                let of_row = rows.entry(name.clone()).or_default();
                of_row.resize(at, 0);
                of_row.push(group.value_ns);
            }
            samples += grouped[1].periods.samples;
            let mut steps_ns = vec![0_i64; steps.count];
            for (_, group) in &grouped[1].groups {
                for (sum, ns) in steps_ns.iter_mut().zip(&group.steps_ns) {
                    *sum = sum.saturating_add(*ns);
                }
            }
            parts.push((profile, class, total_ns, steps_ns));
        }
    }
    let exposure = exposure.with_samples(samples, steps);
    let rate = |(ns, observed): (&i64, &f64)| (*observed > 0.0).then(|| *ns as f64 / 1e9 / observed);
    let parts: Vec<Part> = parts
        .into_iter()
        .map(|(profile, class, total_ns, steps_ns)| Part {
            profile,
            class,
            total_ns,
            rates: steps_ns.iter().zip(&exposure.observed_s).map(rate).collect(),
        })
        .collect();
    let count = rows.len();
    Ok(ThreadTime {
        rows: largest(rows, parts.len(), limit),
        covered: covered(&exposure, steps),
        question,
        by,
        steps,
        exposure,
        parts,
        count,
    })
}

fn covered(exposure: &ObservedTime, steps: Steps) -> Vec<f64> {
    let of_step = |(step, seconds): (usize, &f64)| {
        let (from, until) = steps.bounds(step);
        (seconds / ((until - from) as f64 / 1e9)).min(1.0)
    };
    exposure.observed_s.iter().enumerate().map(of_step).collect()
}

/// Those with most time, then by name.
fn largest(rows: HashMap<Arc<str>, Vec<i64>, MixState>, parts: usize, limit: usize) -> Vec<ThreadTimeRow> {
    let whole = |row: &ThreadTimeRow| row.parts_ns.iter().fold(0, |sum: i64, ns| sum.saturating_add(*ns));
    let mut rows: Vec<ThreadTimeRow> = rows
        .into_iter()
        .map(|(name, mut parts_ns)| {
            parts_ns.resize(parts, 0);
            ThreadTimeRow { name, parts_ns }
        })
        .collect();
    rows.sort_by(|a, b| whole(b).cmp(&whole(a)).then_with(|| a.name.cmp(&b.name)));
    rows.truncate(limit);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_most_time_come_first_and_lack_no_part() {
        let rows = [("a", vec![1]), ("b", vec![0, 5]), ("c", vec![3, 2])];
        let rows = rows.map(|(name, parts)| (Arc::from(name), parts)).into_iter().collect();
        let told: Vec<(String, Vec<i64>)> = largest(rows, 3, 2)
            .into_iter()
            .map(|row| (row.name.to_string(), row.parts_ns))
            .collect();
        assert_eq!(told, [("b".to_owned(), vec![0, 5, 0]), ("c".to_owned(), vec![3, 2, 0])]);
    }
}
