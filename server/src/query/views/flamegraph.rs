//! One window to one tree.

use crate::label::Label;
use crate::query::ask::question::Question;
use crate::query::count::cell_plan::CountedWindow;
use crate::query::count::observed_time::ObservedTime;
use crate::query::count::periods::{Counted, Periods};
use crate::query::count::stack_counts::StackCounts;
use crate::query::count::weighted::WeightedCounts;
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::blocking;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::scope::{ResolvedSelector, scope};
use crate::query::plan::shares::counting::Counting;
use crate::query::plan::sources::parts;
use crate::query::plan::steps::Steps;
use crate::query::tree::label_rows::LabelRows;
use crate::query::tree::leaves::Leaves;
use crate::query::tree::nodes::{Frame, NONE, Shape, Stacks, Tree};
use crate::query::tree::stack_cache::ONE_TREE;
use crate::query::views::engine::Engine;
use crate::query::views::grouping::{GroupedStacks, Grouping};
use crate::query::views::matching::FrameMatch;
use crate::query::views::selected::senders::observe;
use crate::query::views::selected::spread::count_spread;
use crate::store::Snapshot;
use std::borrow::Cow;
use std::sync::Arc;

/// How a tree is looked at.
#[derive(Debug, Default)]
pub struct View {
    /// How the stacks become a tree.
    pub shape: Shape,
    /// Samples with such a frame are counted.
    pub matching: Option<FrameMatch>,
    /// Labels whose values stand above the stacks, outermost first.
    pub group: Vec<Label>,
    /// Nodes are wanted in pre-order, siblings by name.
    pub sorted: bool,
    /// Whole stacks are wanted too.
    pub stacks: bool,
    /// Of a difference the nodes that have this share of the samples of a side are wanted apart, the others folded.
    pub min_share: Option<f64>,
}

/// Samples of one side, counted, with what was observed.
#[derive(Debug)]
pub(crate) struct Side {
    pub question: Question,
    pub counts: WeightedCounts,
    pub exposure: ObservedTime,
    /// What the counts take.
    pub _held: Arc<Reservation>,
}

/// What a side's tree says about itself.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The question that was answered.
    pub question: Question,
    /// Counts in the tree, as everything that is called samples here.
    pub samples: u64,
    /// What a count is.
    pub counted: Counted,
    /// Of the side's samples, those outside the tree included.
    pub periods: Periods,
    /// Observed time, and what is known of gaps and losses.
    pub exposure: ObservedTime,
    /// Samples whose stack is whole and has all its names.
    pub complete_samples: u64,
    /// Samples whose stack lacks its root.
    pub truncated_samples: u64,
    /// Samples with a frame whose function is not known.
    pub unnamed_samples: u64,
    /// Samples with a matching frame.
    pub matching: Option<Matching>,
}

impl Summary {
    /// CPU seconds; of what is no time, how much of its unit.
    pub fn amount(&self) -> f64 {
        self.counted.amount(self.samples)
    }

    /// That per observed second: cores, of time.
    pub fn rate(&self) -> f64 {
        let observed = self.exposure.total_s();
        if observed > 0.0 { self.amount() / observed } else { 0.0 }
    }

    /// Counts that came without time stamps.
    pub fn spread_samples(&self) -> u64 {
        let whole = self.exposure.spread_value.max(0) as u64;
        (whole / self.counted.one.max(1) as u64).min(self.samples)
    }

    /// All of it in words, with figures.
    pub fn words(&self) -> String {
        let (samples, rate, amount) = (self.samples, self.rate(), self.amount());
        match (self.counted.is_time(), self.counted.name()) {
            (true, "samples") => format!("{samples} samples, {rate:.3} cores, {amount:.2} CPU seconds"),
            (true, _) => format!("{rate:.3} cores, {amount:.2} CPU seconds"),
            (false, unit) => format!("{samples} {unit}, {rate:.0} {}", self.counted.rate_name()),
        }
    }
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matching {
    /// What was looked for, as it was given.
    pub pattern: String,
    /// How much of the tree matches, in its counts.
    pub samples: u64,
}

/// Of how much of the waits it is known who ended them, in the counts of their tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Somebody is known.
    pub known: u64,
    /// Nobody is.
    pub unknown: u64,
}

/// A tree with its counts.
#[derive(Debug)]
pub struct Flamegraph {
    /// What the tree says about itself.
    pub summary: Summary,
    /// How the stacks became the tree.
    pub shape: Shape,
    /// Where they are wanted.
    pub stacks: Stacks,
    /// Nodes of the samples' stacks, which the counts below are of.
    pub tree: Tree,
    /// The rows above the stacks, where some were asked for.
    pub rows: Option<Arc<LabelRows>>,
    /// Samples of each stack.
    pub stack_samples: Vec<u64>,
    /// Samples that end in each node.
    pub own: Vec<u64>,
    /// Samples of each node and what is below it.
    pub totals: Vec<u64>,
    /// Where the tree is of those who ended waits.
    pub ended: Option<Ended>,
    /// What all this takes.
    _held: Arc<Reservation>,
}

impl Flamegraph {
    /// What it says about itself in words, with figures.
    pub fn words(&self) -> String {
        let words = self.summary.words();
        let Some(Ended { known, unknown }) = self.ended else {
            return words;
        };
        let whole = known.saturating_add(unknown).max(1);
        format!(
            "{words}; who ended it is known of {:.1} %",
            known as f64 / whole as f64 * 100.0
        )
    }
}

/// Counts the samples of one side; `count` sub-windows.
pub(crate) async fn side(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    count: usize,
    grouping: Option<&Grouping>,
) -> Result<Side, QueryError> {
    let steps = if count == 1 {
        Steps::one(question.window)
    } else {
        parts(snapshot, question.window, count)
    };
    let selected = scope(snapshot, &question).await?;
    let kind = engine.kind(snapshot, &question).await?;
    let windows = [(steps, question.except)];
    let ((counts, held), exposure) = tokio::try_join!(
        counted(engine, snapshot, &question, &selected, &windows, grouping),
        observe(snapshot, &question, steps, kind.marked),
    )?;
    let counts = counts.weighed(&kind.unit);
    let exposure = exposure.with_samples(counts.periods.samples, steps);
    Ok(Side {
        question,
        counts,
        exposure,
        _held: Arc::new(held),
    })
}

/// Counts of these windows by stack, or by group and stack.
pub(crate) async fn counted(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    selected: &ResolvedSelector,
    windows: &[CountedWindow],
    grouping: Option<&Grouping>,
) -> Result<(StackCounts, Reservation), QueryError> {
    let (limit, spread) = (engine.limits().stacks, &engine.spread);
    let new = || StackCounts::of(windows, limit);
    let windows = windows.to_vec();
    match grouping {
        None => {
            let counting = Counting::Stacks { windows, limit };
            count_spread(spread, snapshot, question, selected, counting, new).await
        }
        Some(grouping) => {
            let group = grouping.label_names().to_vec();
            let counting = Counting::Pairs { windows, group, limit };
            let new = || GroupedStacks::new(new(), grouping.clone());
            let (grouped, held) = count_spread(spread, snapshot, question, selected, counting, new).await?;
            Ok((grouped.counts, held))
        }
    }
}

/// The groups that a view asks for.
pub(crate) async fn grouping(
    engine: &Engine,
    snapshot: &Snapshot,
    days: &Days,
    view: &View,
) -> Result<Option<Grouping>, QueryError> {
    match &view.group[..] {
        [] => Ok(None),
        labels => Grouping::new(snapshot, days, labels, engine.limits().stacks)
            .await
            .map(Some),
    }
}

/// Answers with the tree of one window.
pub async fn flamegraph(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    view: View,
) -> Result<Flamegraph, QueryError> {
    let days = Days::of(question.window);
    let grouping = grouping(engine, snapshot, &days, &view).await?;
    let side = side(engine, snapshot, question, 1, grouping.as_ref()).await?;
    tree_of(engine, snapshot, &days, side, grouping.as_ref(), view, None).await
}

/// The tree of a side. `stand_in`: the id of a stack that no table has, and its only frame.
pub(crate) async fn tree_of(
    engine: &Engine,
    snapshot: &Snapshot,
    days: &Days,
    mut side: Side,
    grouping: Option<&Grouping>,
    view: View,
    stand_in: Option<(i64, Frame)>,
) -> Result<Flamegraph, QueryError> {
    let (ids, rows) = match grouping {
        None => (side.counts.ids.clone(), None),
        Some(grouping) => {
            side.counts.reorder(&grouping.in_order(&side.counts.ids));
            let (stacks, rows) = grouping.stacks(&side.counts.ids);
            (Arc::new(stacks), Some(Arc::new(rows)))
        }
    };
    let place = (stand_in.as_ref()).and_then(|(of_none, _)| ids.iter().position(|id| id == of_none));
    let mut stored = Cow::Borrowed(&ids[..]);
    if let Some(place) = place {
        stored.to_mut().remove(place);
    }
    let dictionary = engine.dictionary(&side.question);
    let mut leaves = dictionary.leaves(snapshot, days, &stored, ONE_TREE).await?;
    let mut stacks = if view.stacks {
        dictionary.stacks(snapshot, days, &stored).await?
    } else {
        Stacks::default()
    };
    leaves.rows = rows;
    blocking(move || {
        // A name that is new has all names put in order again.
        if let Some((place, (_, frame))) = place.zip(stand_in) {
            leaves.insert(place, &frame.name);
            if view.stacks {
                stacks.insert(place, frame);
            }
        }
        build(&side, &leaves, stacks, view)
    })
    .await?
}

pub(crate) fn build(side: &Side, leaves: &Leaves, stacks: Stacks, view: View) -> Result<Flamegraph, QueryError> {
    let mut tree = leaves.labelled_tree(&view.shape, view.sorted)?;
    if view.sorted {
        tree.sort();
    }
    let stack_samples = side.counts.totals.clone();
    let own = tree.own_counts(stack_samples.iter().copied());
    let totals = tree.totals(&own);
    let summary = summarize(side, leaves, &tree, &own, &stack_samples, &view);
    Ok(Flamegraph {
        summary,
        shape: view.shape,
        stacks,
        rows: leaves.rows.clone(),
        tree,
        stack_samples,
        own,
        totals,
        ended: None,
        _held: leaves.held.clone(),
    })
}

/// `own` and `stack_samples` are those of the side.
pub(crate) fn summarize(
    side: &Side,
    leaves: &Leaves,
    tree: &Tree,
    own: &[u64],
    stack_samples: &[u64],
    view: &View,
) -> Summary {
    let (mut complete_samples, mut truncated_samples, mut unnamed_samples) = (0, 0, 0);
    for ((stack, samples), leaf) in leaves.leaves.iter().zip(stack_samples).zip(&tree.leaf_of) {
        if *leaf == NONE {
            continue;
        }
        let if_so = |so: bool| if so { *samples } else { 0 };
        complete_samples += if_so(stack.missing.nothing());
        truncated_samples += if_so(stack.missing.root);
        unnamed_samples += if_so(stack.missing.name);
    }
    let matching = view.matching.as_ref().map(|wanted| {
        let reached = wanted.reached(tree);
        let samples = own
            .iter()
            .zip(&reached)
            .filter(|(_, reached)| **reached)
            .map(|(count, _)| count)
            .sum();
        Matching {
            pattern: wanted.text(),
            samples,
        }
    });
    Summary {
        question: side.question.clone(),
        samples: own.iter().sum(),
        counted: side.counts.counted.clone(),
        periods: side.counts.periods.clone(),
        exposure: side.exposure.clone(),
        complete_samples,
        truncated_samples,
        unnamed_samples,
        matching,
    }
}
