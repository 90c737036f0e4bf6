//! Two windows, or two selectors, to one union tree with a judged difference.

use crate::query::ask::question::Question;
use crate::query::ask::time::Window;
use crate::query::count::observed_time::ObservedTime;
use crate::query::count::periods::Counted;
use crate::query::count::weighted::{InSteps, WeightedCounts};
use crate::query::difference::chains::Chains;
use crate::query::difference::judge::{
    Criteria, Items, Judgement, Measure, Normalize, Side as Totals, Spread, TestResult, judge,
};
use crate::query::difference::packed_sums::{Lane, Several};
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::{blocking, both, each_of, joined};
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::scope::scope;
use crate::query::plan::sources::parts;
use crate::query::tree::leaves::Leaves;
use crate::query::tree::nodes::{NONE, Tree, add_up, picked};
use crate::query::tree::stack_cache::TWO_TREES;
use crate::query::tree::trim::Trimmed;
use crate::query::views::engine::Engine;
use crate::query::views::flamegraph::{Side, Summary, View, counted, grouping, side, summarize};
use crate::query::views::grouping::Grouping;
use crate::query::views::selected::senders::observe_each;
use crate::store::Snapshot;
use std::sync::Arc;

/// Sub-windows of each side that tell how samples spread in time.
pub(crate) const PARTS: usize = 12;

/// Memory of each place of what is shown, and of each node of the tree while it is decided whether it is, in bytes.
const PLACE_BYTES: usize = 112;
const TRIMMED_NODE_BYTES: usize = 16;

/// What sums of all sub-windows at once may take, for each side.
const MOST_SUMS_BYTES: usize = 32 << 20;

/// A union tree with both sides' counts and the judgement on every node.
#[derive(Debug)]
pub struct Difference {
    /// What is compared, and how it is judged.
    pub criteria: Criteria,
    /// Side A, "before".
    pub base: Summary,
    /// Side B, "after".
    pub comparison: Summary,
    /// The union of both sides' stacks.
    pub tree: Tree,
    /// Samples of side A that end in each node.
    pub base_own: Vec<u64>,
    /// Samples of side B that end in each node.
    pub own: Vec<u64>,
    /// Samples of side A of each node and what is below it.
    pub base_totals: Vec<u64>,
    /// Samples of side B of each node and what is below it.
    pub totals: Vec<u64>,
    /// Where it was asked for.
    pub trimmed: Option<Trimmed>,
    /// Of each node its place in the judgement.
    chain_of: Vec<u32>,
    /// On chains of nodes; it also describes counts that were not judged, such as those of nodes folded into one.
    pub judgement: Judgement,
    /// What all this takes, and apart from it what is shown.
    _held: [Arc<Reservation>; 2],
}

impl Difference {
    /// The judgement on a node, on what the criteria measure of it.
    pub fn test_result(&self, node: usize) -> TestResult {
        let judged = self.judgement.test_result(self.chain_of[node] as usize);
        judged.unwrap_or_else(|| self.judgement.describe(0, 0))
    }

    /// Normalised values of all samples with the node, of both sides.
    pub fn norms(&self, node: usize) -> [f64; 2] {
        [
            self.judgement.normalized(0, self.base_totals[node]),
            self.judgement.normalized(1, self.totals[node]),
        ]
    }
}

/// Both sides, counted over the same stacks.
pub(crate) struct Pair {
    pub base: Side,
    pub comparison: Side,
    /// Where the stacks of either side end.
    pub leaves: Leaves,
    /// Slot of each stack in either side's counts.
    pub slots: [Vec<Option<u32>>; 2],
}

/// Counts both sides and resolves the union of their stacks.
pub(crate) async fn pair(
    engine: &Engine,
    snapshot: &Snapshot,
    base: Question,
    comparison: Question,
    view: &View,
) -> Result<Pair, QueryError> {
    let days = Days::of(base.window).union(&Days::of(comparison.window));
    let grouping = grouping(engine, snapshot, &days, view).await?;
    let grouping = grouping.as_ref();
    let (base, comparison) = match common(&base, &comparison) {
        Some(window) => together(engine, snapshot, [base, comparison], window, grouping).await?,
        None => tokio::try_join!(
            side(engine, snapshot, base, PARTS, grouping),
            side(engine, snapshot, comparison, PARTS, grouping)
        )?,
    };
    let (mut ids, mut slots) = union(&base.counts, &comparison.counts);
    let mut rows = None;
    if let Some(grouping) = grouping {
        let order = grouping.in_order(&ids);
        ids = picked(&ids, &order);
        slots = slots.map(|slots| picked(&slots, &order));
        let (stacks, above) = grouping.stacks(&ids);
        (ids, rows) = (stacks, Some(Arc::new(above)));
    }
    let mut leaves = engine
        .dictionary(&comparison.question)
        .leaves(snapshot, &days, &ids, TWO_TREES)
        .await?;
    leaves.rows = rows;
    Ok(Pair {
        base,
        comparison,
        leaves,
        slots,
    })
}

/// The window of both sides, where they are of the same samples and little of it is of neither: rows are then read
/// once.
fn common(base: &Question, comparison: &Question) -> Option<Window> {
    let (a, b) = (base.window, comparison.window);
    let all = Window {
        from_ns: a.from_ns.min(b.from_ns),
        until_ns: a.until_ns.max(b.until_ns),
    };
    let is_same = base.profile == comparison.profile
        && base.selector.to_string() == comparison.selector.to_string()
        && base.unit == comparison.unit;
    (is_same && all.length_ns() <= a.length_ns() + b.length_ns()).then_some(all)
}

/// Counts both sides at once.
async fn together(
    engine: &Engine,
    snapshot: &Snapshot,
    questions: [Question; 2],
    window: Window,
    grouping: Option<&Grouping>,
) -> Result<(Side, Side), QueryError> {
    let [base, comparison] = questions;
    let both_sides = Question {
        window,
        except: None,
        ..base.clone()
    };
    let [base_steps, steps] = [&base, &comparison].map(|question| parts(snapshot, question.window, PARTS));
    let selected = scope(snapshot, &both_sides).await?;
    let windows = [(base_steps, base.except), (steps, comparison.except)];
    let kinds = tokio::try_join!(engine.kind(snapshot, &base), engine.kind(snapshot, &comparison))?;
    let observed = [
        (&base, base_steps, kinds.0.marked),
        (&comparison, steps, kinds.1.marked),
    ];
    let ((counts, held), [base_exposure, exposure]) = tokio::try_join!(
        counted(engine, snapshot, &both_sides, &selected, &windows, grouping),
        observe_each(snapshot, observed),
    )?;
    let units = [kinds.0.unit, kinds.1.unit];
    let [base_counts, counts] = blocking(move || counts.weighed_sides(units.each_ref())).await?;
    let held = Arc::new(held);
    let side = |question, counts: WeightedCounts, exposure: ObservedTime, steps| Side {
        question,
        exposure: exposure.with_samples(counts.periods.samples, steps),
        counts,
        _held: held.clone(),
    };
    Ok((
        side(base, base_counts, base_exposure, base_steps),
        side(comparison, counts, exposure, steps),
    ))
}

/// All ids of both sides, and where each stands in either's counts. Both are in the order of ids.
fn union(base: &WeightedCounts, comparison: &WeightedCounts) -> (Vec<i64>, [Vec<Option<u32>>; 2]) {
    let (mut ids, mut slots) = (Vec::new(), [Vec::new(), Vec::new()]);
    if Arc::ptr_eq(&base.ids, &comparison.ids) {
        let all = || (0..base.ids.len() as u32).map(Some).collect();
        return (base.ids.to_vec(), [all(), all()]);
    }
    let mut at = [0, 0];
    let sides = [&base.ids, &comparison.ids];
    while let Some(id) = sides.iter().zip(at).filter_map(|(ids, at)| ids.get(at)).min() {
        ids.push(*id);
        for which in 0..2 {
            let is_here = sides[which].get(at[which]) == Some(id);
            slots[which].push(is_here.then_some(at[which] as u32));
            at[which] += usize::from(is_here);
        }
    }
    (ids, slots)
}

/// A side as the judge needs it.
#[derive(Clone, Copy)]
pub(crate) struct JudgedWhole<'a> {
    pub exposure: &'a ObservedTime,
    pub samples: u64,
    pub counted: &'a Counted,
}

impl Side {
    /// All of it.
    pub(crate) fn whole(&self) -> JudgedWhole<'_> {
        JudgedWhole {
            exposure: &self.exposure,
            samples: self.counts.samples,
            counted: &self.counts.counted,
        }
    }
}

fn totals_of(side: JudgedWhole<'_>, other: JudgedWhole<'_>) -> Totals {
    // A side without samples has no period of its own: the other's is taken.
    let known = |own: f64, other: f64| if own > 0.0 { own } else { other };
    let ones = [side, other].map(|side| side.counted.amount_of_one());
    let one = known(ones[0], ones[1]);
    Totals {
        samples_per_core: if one > 0.0 { side.exposure.total_s() / one } else { 0.0 },
        samples: side.samples,
        spread: side.counted.spread,
        unit: if one > 0.0 {
            one / one.min(known(ones[1], one))
        } else {
            1.0
        },
    }
}

/// The judge's view of both sides.
pub(crate) fn both_totals([a, b]: [JudgedWhole<'_>; 2]) -> [Totals; 2] {
    [totals_of(a, b), totals_of(b, a)]
}

/// Part of a side's exposure that lies in each sub-window, in the terms of the normalisation.
pub(crate) fn part_weights(normalize: Normalize, exposure: &ObservedTime, samples: &[u64]) -> Vec<f64> {
    let weights: Vec<f64> = match normalize {
        Normalize::Share => samples.iter().map(|s| *s as f64).collect(),
        // A node that came later brings its samples with it.
        Normalize::Rate | Normalize::Absolute => exposure.expected_s().to_vec(),
    };
    let sum: f64 = weights.iter().sum();
    weights
        .into_iter()
        .map(|w| if sum > 0.0 { w / sum } else { 0.0 })
        .collect()
}

impl Pair {
    /// Samples of each stack on one side (0: base, 1: comparison).
    pub(crate) fn stack_samples(&self, which: usize) -> Vec<u64> {
        let counts = if which == 0 {
            &self.base.counts
        } else {
            &self.comparison.counts
        };
        self.slots[which]
            .iter()
            .map(|slot| slot.map_or(0, |slot| counts.totals[slot as usize]))
            .collect()
    }

    /// How the items' samples of one side spread over its sub-windows. `place_of` says for each stack the place to
    /// which its samples are added, of `places`, or [`NONE`].
    pub(crate) fn spread(
        &self,
        which: usize,
        normalize: Normalize,
        (place_of, places): (&[u32], usize),
        items: &impl Measured,
    ) -> Spread {
        let side = if which == 0 { &self.base } else { &self.comparison };
        let counts = &side.counts;
        // The place of each slot, in the order in which counts stand.
        let mut place_of_slot = vec![NONE; counts.slot_count()];
        for (slot, place) in self.slots[which].iter().zip(place_of) {
            if let Some(slot) = slot {
                place_of_slot[counts.slots[*slot as usize] as usize] = *place;
            }
        }
        let placed = Placed {
            place_of_slot: &place_of_slot,
            places,
        };
        match &counts.in_steps {
            InSteps::Samples(cells, steps) => {
                let all = || cells.iter().map(|counts| &counts[steps.clone()]);
                let weights = placed.weights(normalize, &side.exposure, counts.step_count(), all);
                // Counts come one after another from memory: the fewer times the better, as far as there is room for
                // the sums.
                if u32::try_from(counts.samples).is_err() {
                    placed.spread_of(all, u64::of, &weights, items)
                } else if places * size_of::<Several<PARTS>>() <= MOST_SUMS_BYTES {
                    placed.spread_of(all, Several::<PARTS>::of, &weights, items)
                } else {
                    placed.spread_of(all, Several::<4>::of, &weights, items)
                }
            }
            InSteps::Values(cells) => {
                let weights = placed.weights(normalize, &side.exposure, counts.step_count(), || cells.iter());
                let of = |counts: &[u64]| counts.first().copied().unwrap_or(0);
                placed.spread_of(|| cells.iter(), of, &weights, items)
            }
        }
    }
}

/// The place of each slot, of so many, or [`NONE`].
struct Placed<'p> {
    place_of_slot: &'p [u32],
    places: usize,
}

impl Placed<'_> {
    /// Counts of slots that have a place, with it.
    fn of<'c, C: 'c>(&self, all: impl Iterator<Item = &'c [C]>) -> impl Iterator<Item = (usize, &'c [C])> {
        let placed = self.place_of_slot.iter().zip(all).filter(|(place, _)| **place != NONE);
        placed.map(|(place, counts)| (*place as usize, counts))
    }

    /// Of each step, how much of the side is expected in it.
    fn weights<'c, C: Copy + Into<u64> + 'c, I: Iterator<Item = &'c [C]>>(
        &self,
        normalize: Normalize,
        exposure: &ObservedTime,
        steps: usize,
        all: impl Fn() -> I,
    ) -> Vec<f64> {
        let mut samples = vec![0_u64; steps];
        if normalize == Normalize::Share {
            for (_, counts) in self.of(all()) {
                for (sum, count) in samples.iter_mut().zip(counts) {
                    *sum += (*count).into();
                }
            }
        }
        part_weights(normalize, exposure, &samples)
    }

    /// As many sub-windows at once as a `T` is of. `all`: counts of each slot; `make`: the first of them.
    fn spread_of<'c, C: 'c, T: Lane, I: Iterator<Item = &'c [C]>>(
        &self,
        all: impl Fn() -> I,
        make: impl Fn(&[C]) -> T,
        weights: &[f64],
        items: &impl Measured,
    ) -> Spread {
        let mut spread = Spread::new(items.items());
        let mut counts: Vec<T> = Vec::new();
        for (part, weights) in weights.chunks(T::WINDOWS).enumerate() {
            counts.clear();
            counts.resize(self.places, T::default());
            for (place, of_steps) in self.of(all()) {
                counts[place] += make(&of_steps[part * T::WINDOWS..][..weights.len()]);
            }
            counts = items.of(counts);
            spread.add(weights, &counts);
        }
        spread
    }
}

/// Makes counts of items of those of places.
pub(crate) trait Measured: Sync {
    /// How many items there are.
    fn items(&self) -> usize;

    /// Does nothing but add.
    fn of<T: Lane>(&self, places: Vec<T>) -> Vec<T>;
}

/// Chains, to whose counts those of the chains below them belong, or not.
struct OfChains<'c> {
    chains: &'c Chains,
    measure: Measure,
}

impl Measured for OfChains<'_> {
    fn items(&self) -> usize {
        self.chains.heads.len()
    }

    fn of<T: Lane>(&self, mut counts: Vec<T>) -> Vec<T> {
        if self.measure == Measure::Total {
            add_up(&self.chains.parent, &mut counts);
        }
        counts
    }
}

/// Answers with the difference of two questions.
pub async fn difference(
    engine: &Engine,
    snapshot: &Snapshot,
    base: Question,
    comparison: Question,
    criteria: Criteria,
    view: View,
) -> Result<Difference, QueryError> {
    let pair = pair(engine, snapshot, base, comparison, &view).await?;
    let shown = Reservation::new(snapshot, "nodes that a difference shows");
    blocking(move || build(&pair, criteria, &view, shown)).await?
}

/// `shown`: takes what is made of the nodes that are shown.
fn build(pair: &Pair, criteria: Criteria, view: &View, shown: Reservation) -> Result<Difference, QueryError> {
    let mut tree = pair.leaves.labelled_tree(&view.shape, view.sorted)?;
    if view.sorted {
        tree.sort();
    }
    let [(base, base_own, base_totals), (comparison, own, totals)] = both(|which| {
        let samples = pair.stack_samples(which);
        let own = tree.own_counts(samples.iter().copied());
        let totals = tree.totals(&own);
        let side = if which == 0 { &pair.base } else { &pair.comparison };
        let summary = summarize(side, &pair.leaves, &tree, &own, &samples, view);
        (summary, own, totals)
    });

    let measured = match criteria.measure {
        Measure::Total => [&base_totals, &totals],
        Measure::Own => [&base_own, &own],
    };
    // A part of judging has no use for a second thread.
    let samples = [base.samples, comparison.samples];
    let judged = || judged(pair, criteria, &tree, measured, [&base, &comparison]);
    let hold = |places: usize| shown.resize(tree.len() * TRIMMED_NODE_BYTES + places * PLACE_BYTES);
    let trim = |min_share: f64| Trimmed::of_two(&tree, [&base_totals, &totals], samples, min_share, hold);
    let (trimmed, (chain_of, judgement)) = match view.min_share {
        None => (None, judged()),
        Some(min_share) => std::thread::scope(|scope| {
            let trimming = scope.spawn(|| trim(min_share));
            let judged = judged();
            Ok::<_, QueryError>((Some(joined(trimming)?), judged))
        })?,
    };
    Ok(Difference {
        criteria,
        base,
        comparison,
        tree,
        base_own,
        own,
        base_totals,
        totals,
        trimmed,
        chain_of,
        judgement,
        _held: [pair.leaves.held.clone(), Arc::new(shown)],
    })
}

/// Of each node its place in the judgement, and that. `measured`: counts of each node, of both sides.
fn judged(
    pair: &Pair,
    criteria: Criteria,
    tree: &Tree,
    measured: [&Vec<u64>; 2],
    summaries: [&Summary; 2],
) -> (Vec<u32>, Judgement) {
    let chains = match criteria.measure {
        Measure::Total => Chains::of(&tree.nodes.parent, measured[0], measured[1]),
        Measure::Own => Chains::of_own(measured[0], measured[1]),
    };
    let ends: Vec<u32> = each_of(tree.leaf_of.len(), |stack| chains.of_leaf(tree.leaf_of[stack]));
    let of_chains = OfChains {
        chains: &chains,
        measure: criteria.measure,
    };
    let [base_spread, spread] =
        both(|which| pair.spread(which, criteria.normalize, (&ends, chains.heads.len()), &of_chains));
    let sides = both_totals(
        [(&pair.base, summaries[0]), (&pair.comparison, summaries[1])].map(|(side, summary)| JudgedWhole {
            samples: summary.samples,
            ..side.whole()
        }),
    );
    let [base, comparison] = both(|which| chains.pick(measured[which]));
    let items = Items {
        base: &base,
        comparison: &comparison,
        base_spread: &base_spread,
        spread: &spread,
    };
    let judgement = judge(criteria, sides[0], sides[1], items);
    (chains.chain_of, judgement)
}
