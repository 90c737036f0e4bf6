//! Ranked tables of functions or of a label's values, of one window or as a difference.

use crate::label::Label;
use crate::query::ask::question::Question;
use crate::query::ask::unit::Unit;
use crate::query::count::group_counts::{Group, Grouped};
use crate::query::count::observed_time::ObservedTime;
use crate::query::count::periods::Counted;
use crate::query::difference::judge::{Criteria, Items, Judgement, Measure, Spread, TestResult, judge};
use crate::query::difference::packed_sums::Lane;
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::{blocking, both};
use crate::query::plan::sources::parts;
use crate::query::plan::steps::Steps;
use crate::query::tree::nodes::{Kind, Name, Shape, Tree, add_up};
use crate::query::views::by_label::{Extra, by_label};
use crate::query::views::difference::{JudgedWhole, Measured, PARTS, both_totals, pair, part_weights};
use crate::query::views::engine::Engine;
use crate::query::views::flamegraph::{View, flamegraph};
use crate::query::views::matching::{FrameMatch, matching_stacks};
use crate::query::views::selected::senders::{observe, observe_each};
use crate::store::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What rows are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A row is a function, in whatever stack.
    Function,
    /// A row is a value of this label.
    Label(Label),
}

/// One row; of a difference, the counts are those of side B.
#[derive(Debug, Clone)]
pub struct Row {
    /// The function, or the label's value: empty for samples without one.
    pub name: Arc<str>,
    /// Of functions: base name of the module and kind.
    pub frame: Option<(Arc<str>, Kind)>,
    /// Samples that end there; of labels all of them.
    pub own: u64,
    /// Samples with it anywhere in the stack, each counted once.
    pub total: u64,
    /// Of labels: what their samples are.
    pub shares: Option<Shares>,
    /// Of a difference: own and total samples of side A, and the judgement on what the criteria measure.
    pub change: Option<(u64, u64, TestResult)>,
}

/// Parts of a group's CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shares {
    /// In user mode.
    pub user: f64,
    /// With a complete stack, with one that lacks its root, and with one that lacks a name, which may be the same;
    /// not known where there were too many stacks.
    pub quality: Option<[f64; 3]>,
}

impl Shares {
    fn of(group: &Group) -> Shares {
        let share = |ns: i64| {
            if group.value_ns > 0 {
                ns as f64 / group.value_ns as f64
            } else {
                0.0
            }
        };
        Shares {
            user: share(group.user_ns),
            quality: group
                .quality
                .map(|quality| [quality.complete_ns, quality.cut_ns, quality.unnamed_ns].map(share)),
        }
    }
}

/// One side as a whole.
#[derive(Debug, Clone)]
pub struct Whole {
    /// All counts of the side.
    pub samples: u64,
    /// What a count is.
    pub counted: Counted,
    /// Covered seconds.
    pub observed_s: f64,
}

impl Whole {
    fn new(samples: u64, counted: &Counted, exposure: &ObservedTime) -> Whole {
        Whole {
            samples,
            counted: counted.clone(),
            observed_s: exposure.total_s(),
        }
    }

    /// CPU seconds of so many counts; nothing of what is no time.
    pub fn cpu_seconds(&self, samples: u64) -> Option<f64> {
        self.counted.is_time().then(|| self.counted.amount(samples))
    }

    /// CPU seconds, or what is no time in its unit, per observed second.
    pub fn rate(&self, samples: u64) -> f64 {
        if self.observed_s > 0.0 {
            self.counted.amount(samples) / self.observed_s
        } else {
            0.0
        }
    }

    /// CPU seconds per observed second of so many counts; nothing of what is no time.
    pub fn cores(&self, samples: u64) -> Option<f64> {
        self.counted.is_time().then(|| self.rate(samples))
    }
}

/// The table.
#[derive(Debug)]
pub struct Top {
    /// Functions, or values of a label.
    pub by: By,
    /// The window, or side B.
    pub whole: Whole,
    /// Of a difference: side A, what was compared and the judgement.
    pub base: Option<(Whole, Criteria, Judgement)>,
    /// Most first: by `total`, functions by `own` and then `total`, a difference by the size of the change.
    pub rows: Vec<Row>,
    /// No row was cut off by the limit.
    pub complete: bool,
}

impl Top {
    /// Unit of what rows are compared by, and of their rates.
    pub fn unit(&self) -> String {
        let counted = &self.whole.counted;
        match &self.base {
            Some((base, criteria, _)) => criteria.normalize.unit([&base.counted, counted]),
            None => counted.rate_name(),
        }
    }
}

/// The table of one window; with `matching`, of samples with such a frame.
pub async fn top(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    by: By,
    limit: usize,
    matching: Option<FrameMatch>,
) -> Result<Top, QueryError> {
    let (whole, rows) = match by {
        By::Function => functions(engine, snapshot, question, matching).await?,
        By::Label(label) => labels(engine, snapshot, question, label, matching).await?,
    };
    Ok(ranked(by, whole, rows, limit))
}

/// The largest rows.
pub(crate) fn ranked(by: By, whole: Whole, mut rows: Vec<Row>, limit: usize) -> Top {
    rows.sort_by(|a, b| (b.own, b.total, &a.name).cmp(&(a.own, a.total, &b.name)));
    let complete = rows.len() <= limit;
    rows.truncate(limit);
    Top {
        by,
        whole,
        base: None,
        rows,
        complete,
    }
}

async fn functions(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    matching: Option<FrameMatch>,
) -> Result<(Whole, Vec<Row>), QueryError> {
    let graph = flamegraph(engine, snapshot, question, View::default()).await?;
    let summary = &graph.summary;
    let Some(wanted) = matching else {
        let rows = function_rows(&graph.tree, &graph.totals, &graph.own);
        return Ok((Whole::new(summary.samples, &summary.counted, &summary.exposure), rows));
    };
    let (rows, samples) = blocking({
        let (tree, own) = (graph.tree, graph.own);
        move || {
            let reached = wanted.reached(&tree);
            let own: Vec<u64> = (own.iter().zip(reached))
                .map(|(own, is_wanted)| if is_wanted { *own } else { 0 })
                .collect();
            let mut totals = own.clone();
            add_up(&tree.nodes.parent, &mut totals);
            (function_rows(&tree, &totals, &own), own.iter().sum())
        }
    })
    .await?;
    Ok((Whole::new(samples, &summary.counted, &summary.exposure), rows))
}

fn function_rows(tree: &Tree, totals: &[u64], own: &[u64]) -> Vec<Row> {
    let counts = tree.by_name(totals, own);
    let row = |(name, (total, own)): (&Name, (u64, u64))| Row {
        name: name.function.clone(),
        frame: Some((name.module.clone(), name.kind)),
        own,
        total,
        shares: None,
        change: None,
    };
    tree.names
        .list
        .iter()
        .zip(counts)
        .filter(|(_, counts)| *counts != (0, 0))
        .map(row)
        .collect()
}

async fn labels(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    label: Label,
    matching: Option<FrameMatch>,
) -> Result<(Whole, Vec<Row>), QueryError> {
    let steps = Steps::one(question.window);
    let kind = engine.kind(snapshot, &question).await?;
    let matched = match matching {
        Some(wanted) => Some(matching_stacks(engine, snapshot, &question, wanted).await?),
        None => None,
    };
    let extra = Extra {
        only: matched.as_ref().map(|matched| matched.stacks.clone()),
        quality: true,
    };
    let (grouped, exposure) = tokio::try_join!(
        by_label(engine, snapshot, &question, label, steps, extra),
        observe(snapshot, &question, steps, kind.marked),
    )?;
    // What was watched does not depend on the frame.
    let samples = matched.map_or(grouped.periods.samples, |matched| matched.samples);
    let exposure = exposure.with_samples(samples, steps);
    Ok(rows_of(grouped, &exposure, &kind.unit))
}

/// A row for each group, of what was observed with their samples.
pub(crate) fn rows_of(grouped: Grouped, exposure: &ObservedTime, unit: &Unit) -> (Whole, Vec<Row>) {
    let Grouped {
        mut groups, periods, ..
    } = grouped;
    groups.sort_by(|(a, _), (b, _)| a.cmp(b));
    let counted = Counted::of(&periods, unit);
    let counts = weighed(groups.iter().map(|(_, group)| group), &counted);
    let row = |((name, group), count): ((Arc<str>, Group), u64)| Row {
        name,
        frame: None,
        own: count,
        total: count,
        shares: Some(Shares::of(&group)),
        change: None,
    };
    (
        Whole::new(counts.iter().sum(), &counted, exposure),
        groups.into_iter().zip(counts).map(row).collect(),
    )
}

/// Counts of groups.
fn weighed<'a>(groups: impl Iterator<Item = &'a Group>, counted: &Counted) -> Vec<u64> {
    let mut count = counted.counting();
    let counts = groups.map(|group| {
        if counted.is_number() {
            group.samples
        } else {
            count(group.value_ns)
        }
    });
    counts.collect()
}

/// The table of a difference.
pub async fn top_difference(
    engine: &Engine,
    snapshot: &Snapshot,
    base: Question,
    comparison: Question,
    criteria: Criteria,
    by: By,
    limit: usize,
) -> Result<Top, QueryError> {
    let mut top = match by {
        By::Function => {
            let pair = pair(engine, snapshot, base, comparison, &View::default()).await?;
            blocking(move || functions_difference(&pair, criteria)).await?
        }
        By::Label(label) => labels_difference(engine, snapshot, base, comparison, criteria, label).await?,
    };
    let size = |row: &Row| row.change.map_or(0.0, |(_, _, test_result)| test_result.delta.abs());
    let found = |row: &Row| row.change.is_some_and(|(_, _, test_result)| test_result.strength > 0.0);
    top.rows.sort_by(|a, b| {
        (found(b), size(b))
            .partial_cmp(&(found(a), size(a)))
            .unwrap_or(std::cmp::Ordering::Equal)
            .then(a.name.cmp(&b.name))
    });
    top.complete = top.rows.len() <= limit;
    top.rows.truncate(limit);
    Ok(top)
}

/// Names of functions, by total or self.
struct OfNames<'t> {
    tree: &'t Tree,
    measure: Measure,
}

impl Measured for OfNames<'_> {
    fn items(&self) -> usize {
        self.tree.names.list.len()
    }

    fn of<T: Lane>(&self, own: Vec<T>) -> Vec<T> {
        measured(self.measure, &self.tree.by_name(&self.tree.totals(&own), &own))
    }
}

/// Of (total, self) the one that is compared.
fn measured<T: Copy>(measure: Measure, counts: &[(T, T)]) -> Vec<T> {
    let of = |(total, own): &(T, T)| match measure {
        Measure::Total => *total,
        Measure::Own => *own,
    };
    counts.iter().map(of).collect()
}

fn functions_difference(pair: &crate::query::views::difference::Pair, criteria: Criteria) -> Top {
    let tree = pair.leaves.tree(&Shape::default(), false);
    let sides = both(|which| {
        let own = tree.own_counts(pair.stack_samples(which));
        tree.by_name(&tree.totals(&own), &own)
    });
    let compared = [0, 1].map(|which| measured(criteria.measure, &sides[which]));
    let spreads = both(|which| {
        let by_name = OfNames {
            tree: &tree,
            measure: criteria.measure,
        };
        pair.spread(which, criteria.normalize, (&tree.leaf_of, tree.len()), &by_name)
    });
    let wholes = [&pair.base, &pair.comparison]
        .map(|side| Whole::new(side.counts.samples, &side.counts.counted, &side.exposure));
    let judged = both_totals([pair.base.whole(), pair.comparison.whole()]);
    let items = Items {
        base: &compared[0],
        comparison: &compared[1],
        base_spread: &spreads[0],
        spread: &spreads[1],
    };
    let judgement = judge(criteria, judged[0], judged[1], items);
    let has_samples = |(i, _): &(usize, &Name)| sides.iter().any(|side| side[*i].0 > 0);
    let rows = tree
        .names
        .list
        .iter()
        .enumerate()
        .filter(has_samples)
        .map(|(i, name)| Row {
            name: name.function.clone(),
            frame: Some((name.module.clone(), name.kind)),
            own: sides[1][i].1,
            total: sides[1][i].0,
            shares: None,
            change: judgement
                .test_result(i)
                .map(|test_result| (sides[0][i].1, sides[0][i].0, test_result)),
        });
    let rows = rows.collect();
    let [base, whole] = wholes;
    Top {
        by: By::Function,
        whole,
        base: Some((base, criteria, judgement)),
        rows,
        complete: true,
    }
}

async fn labels_difference(
    engine: &Engine,
    snapshot: &Snapshot,
    base: Question,
    comparison: Question,
    criteria: Criteria,
    label: Label,
) -> Result<Top, QueryError> {
    let steps = [&base, &comparison].map(|question| parts(snapshot, question.window, PARTS));
    let kinds = tokio::try_join!(engine.kind(snapshot, &base), engine.kind(snapshot, &comparison))?;
    let observed = [
        (&base, steps[0], kinds.0.marked),
        (&comparison, steps[1], kinds.1.marked),
    ];
    let with_quality = Extra {
        only: None,
        quality: true,
    };
    let (groups_a, groups_b, [exposure_a, exposure_b]) = tokio::try_join!(
        by_label(engine, snapshot, &base, label, steps[0], Extra::default()),
        by_label(engine, snapshot, &comparison, label, steps[1], with_quality),
        observe_each(snapshot, observed),
    )?;
    let mut both: BTreeMap<Arc<str>, [Group; 2]> = BTreeMap::new();
    let periods = [groups_a.periods, groups_b.periods];
    for (which, groups) in [groups_a.groups, groups_b.groups].into_iter().enumerate() {
        for (name, group) in groups {
            both.entry(name).or_default()[which] = group;
        }
    }
    let counted = [
        Counted::of(&periods[0], &kinds.0.unit),
        Counted::of(&periods[1], &kinds.1.unit),
    ];
    let totals = [0, 1].map(|which| weighed(both.values().map(|groups| &groups[which]), &counted[which]));
    let exposures = [
        exposure_a.with_samples(periods[0].samples, steps[0]),
        exposure_b.with_samples(periods[1].samples, steps[1]),
    ];
    let wholes = [0, 1].map(|which| Whole::new(totals[which].iter().sum(), &counted[which], &exposures[which]));
    let spreads = [0, 1].map(|which| {
        let one = counted[which].one.max(1);
        let in_part = |group: &Group, part: usize| group.steps_ns.get(part).map_or(0, |ns| (ns / one).max(0) as u64);
        let part_counts =
            |part: usize| -> Vec<u64> { both.values().map(|groups| in_part(&groups[which], part)).collect() };
        let samples: Vec<u64> = (0..steps[which].count)
            .map(|part| part_counts(part).iter().sum())
            .collect();
        let mut spread = Spread::new(both.len());
        for (part, weight) in part_weights(criteria.normalize, &exposures[which], &samples)
            .into_iter()
            .enumerate()
        {
            spread.add(&[weight], &part_counts(part));
        }
        spread
    });
    let judged = both_totals([0, 1].map(|which| JudgedWhole {
        exposure: &exposures[which],
        samples: wholes[which].samples,
        counted: &counted[which],
    }));
    let items = Items {
        base: &totals[0],
        comparison: &totals[1],
        base_spread: &spreads[0],
        spread: &spreads[1],
    };
    let judgement = judge(criteria, judged[0], judged[1], items);
    let rows = both
        .into_iter()
        .zip(totals[0].iter().zip(&totals[1]))
        .zip(judgement.verdicts())
        .map(|(((name, [_, group]), (before, count)), test_result)| Row {
            name,
            frame: None,
            own: *count,
            total: *count,
            shares: Some(Shares::of(&group)),
            change: Some((*before, *before, test_result)),
        });
    let rows = rows.collect();
    let [base, whole] = wholes;
    Ok(Top {
        by: By::Label(label),
        whole,
        base: Some((base, criteria, judgement)),
        rows,
        complete: true,
    })
}
