//! Two sides of counts to a judged difference. Pure: numbers in, numbers out, no I/O.
//!
//! Each side has an exposure E, in expected samples per unit of the answer, so that count / E is in that unit:
//!
//! | normalisation | unit | E |
//! |---|---|---|
//! | rate | cores | observed seconds / period in seconds |
//! | share | share of the side's samples | samples of the side |
//! | absolute | counts of the shorter of both sides' periods | shorter period / period |
//!
//! **Test.** Without change, b of n = a + b samples fall to side B by a binomial with p = E_B / (E_A + E_B) (J.
//! Przyborowski and H. Wilenski, Biometrika 31, 1940). With shares the sides' totals N are fixed too, and the
//! variance shrinks by 1 - n / N, as of a hypergeometric distribution.
//!
//! **Over-dispersion.** Samples come in bursts. With K sub-windows of a side, whose parts of the exposure are w_k,
//! Pearson's X² = Σ (c_k - C w_k)² / (C w_k) has mean φ (K - 1), where φ is the variance in units of a Poisson's. φ
//! is pooled over all tested items (ΣX² / Σdf). An item whose own X² lies more than [`OUTLIER`] standard deviations
//! above what the pooled φ makes one expect gets its own φ, drawn towards the pooled one by [`PRIOR_DF`] degrees of
//! freedom as in G. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004). No φ is less than the larger [`Side::spread`].
//! Counts divided by φ are tested as if they were samples; the tail is then that of Student's t, since φ is an
//! estimate.
//!
//! **Discoveries.** Benjamini and Hochberg at the false discovery rate that the [`Confidence`] leaves, over the items
//! that could be significant at all, chosen by a + b alone, which does not depend on the difference. Items that are
//! found must also have an interval of this confidence without zero: by G. Zou and A. Donner, Statist. Med. 27
//! (2008), from score intervals of both sides.

use crate::query::difference::criteria::two_sided_point;
pub use crate::query::difference::criteria::{Confidence, Criteria, Measure, Normalize};
use crate::query::difference::packed_sums::{Lane, MOST_LANES};
use crate::query::difference::stats;
use crate::query::limits::parallel::{each_of, each_part};
use std::ops::Range;

/// Weight of the pooled dispersion in an item's own, in degrees of freedom.
const PRIOR_DF: f64 = 8.0;
/// X² / φ has the mean df and the variance 2 df: an item so many standard deviations above is noisier than the others.
const OUTLIER: f64 = 2.0;
/// In parts of a normal variable's point: below so many standard deviations no p is as small as the one of that
/// point. A lower tail is at worst exp(-d²), of no sample where some were expected.
const NO_DISCOVERY: f64 = 0.61;
/// An item is tested when all its samples on one side would give a p below this part of the false discovery rate.
const REACHABLE_PART: f64 = 0.1;
/// Colour's strength of a discovery is never less: it has to be told from grey.
const LEAST_STRENGTH: f64 = 0.05;

/// One side as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Observed seconds divided by the period in seconds: samples that one busy core gives. 0: nothing was observed.
    pub samples_per_core: f64,
    /// All samples of the side.
    pub samples: u64,
    /// Variance of a count in units of a Poisson's, at least 1: more where samples of different periods were added up.
    pub spread: f64,
    /// What a count stands for, in that of the side whose counts stand for less: 1 where both have the same period.
    pub unit: f64,
}

/// Sums the squares of one side's sub-windows, item by item.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Σ c_k² / w_k of each item.
    squares: Vec<f64>,
    counts: Vec<f64>,
    windows: usize,
    /// Of the windows that were added; 1 when all of the side was.
    weight: f64,
}

impl Spread {
    /// Of so many items, still without any sub-window.
    pub fn new(items: usize) -> Spread {
        Spread {
            squares: written_zeros(items),
            counts: written_zeros(items),
            windows: 0,
            weight: 0.0,
        }
    }

    /// Adds sub-windows: `weights` are their parts of the side's exposure; one without exposure says nothing and is
    /// left out.
    pub(crate) fn add<T: Lane>(&mut self, weights: &[f64], counts: &[T]) {
        let (mut inverse, mut kept) = ([0.0; MOST_LANES], [0.0; MOST_LANES]);
        for (window, weight) in weights.iter().enumerate() {
            if *weight > 0.0 && weight.is_finite() {
                self.windows += 1;
                self.weight += weight;
                inverse[window] = 1.0 / weight;
                kept[window] = 1.0;
            }
        }
        let sums = self.squares.iter_mut().zip(&mut self.counts);
        // Nothing is decided for each, and nothing divided: several at a time.
        for ((squares, sum), counts) in sums.zip(counts) {
            for window in 0..T::WINDOWS {
                let count = counts.count(window) * kept[window];
                *squares += count * count * inverse[window];
                *sum += count;
            }
        }
    }

    /// X² and its degrees of freedom of an item whose variance is `variance` of a Poisson's.
    fn chi_square(&self, item: usize, variance: f64, sample: f64) -> (f64, f64) {
        let count = self.counts[item];
        // Fewer than two samples, each of so many counts, cannot show how they spread.
        if self.windows < 2 || count < 2.0 * sample || variance <= 1e-6 {
            return (0.0, 0.0);
        }
        // Weights are rescaled to the windows that were added: C w'_k with w'_k = w_k / Σw.
        let x2 = self.squares[item] * self.weight / count - count;
        (x2.max(0.0) / variance, (self.windows - 1) as f64)
    }
}

/// Zeros that stand in memory: those that the allocator only promises cost two interrupts a page where they are read
/// before they are written.
fn written_zeros(count: usize) -> Vec<f64> {
    let mut zeros = Vec::with_capacity(count);
    zeros.resize(count, 0.0);
    zeros
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not shown to differ.
    Same,
    /// More of it on side B.
    Grew,
    /// Less of it on side B.
    Shrank,
    /// Grew from nothing.
    New,
    /// Shrank to nothing.
    Gone,
}

impl State {
    /// In the order of the numbers that stand in answers.
    pub const ALL: [State; 5] = [State::Same, State::Grew, State::Shrank, State::New, State::Gone];

    /// As it stands in answers.
    pub fn name(self) -> &'static str {
        match self {
            State::Same => "same",
            State::Grew => "grew",
            State::Shrank => "shrank",
            State::New => "new",
            State::Gone => "gone",
        }
    }
}

/// The judgement on one item, in the unit of the normalisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestResult {
    /// The value of side A.
    pub base_norm: f64,
    /// The value of side B.
    pub norm: f64,
    /// `norm - base_norm`.
    pub delta: f64,
    /// Interval of `delta`, of the confidence that was asked for.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// What became of it.
    pub state: State,
    /// 0 for [`State::Same`], else in (0, 1]: the bound nearest to zero, as a share of the larger side.
    pub strength: f64,
}

/// All judgements.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Counts of each item on both sides.
    counts: Vec<[u64; 2]>,
    /// How the samples of each item spread: X² and its degrees of freedom, of both sides together.
    spreads: Vec<(f64, f64)>,
    /// Degrees of freedom of the pooled factor.
    df: f64,
    /// Whether an item is among the discoveries.
    found: Vec<bool>,
    /// The pooled over-dispersion factor, at least 1.
    pub dispersion: f64,
    /// Items that could be significant.
    pub tested: usize,
    /// Items that are.
    pub significant: usize,
    scale: Scale,
}

impl Judgement {
    /// The test result on an item; none where there is no such item. It is made when it is asked for: most are not.
    pub fn test_result(&self, item: usize) -> Option<TestResult> {
        let (counts, spread) = (self.counts.get(item)?, self.spreads.get(item)?);
        let own = own_dispersion(*spread, (self.dispersion, self.df));
        Some(test_result(self.scale, *counts, own, self.found[item]))
    }

    /// The verdicts on all items.
    pub fn verdicts(&self) -> impl Iterator<Item = TestResult> + '_ {
        (0..self.counts.len()).filter_map(|item| self.test_result(item))
    }

    /// Values and interval of counts that were not tested: never more than [`State::Same`].
    pub fn describe(&self, base: u64, comparison: u64) -> TestResult {
        test_result(self.scale, [base, comparison], (self.dispersion, f64::INFINITY), false)
    }

    /// The normalised value of a count of one side (0: base, 1: comparison).
    pub fn normalized(&self, side: usize, count: u64) -> f64 {
        if self.scale.exposures[side] > 0.0 {
            count as f64 / self.scale.exposures[side]
        } else {
            0.0
        }
    }
}

/// Counts of all items of both sides.
#[derive(Debug, Clone, Copy)]
pub struct Items<'a> {
    /// Counts of side A, one an item.
    pub base: &'a [u64],
    /// Counts of side B, in the same order.
    pub comparison: &'a [u64],
    /// How side A's samples spread in time, of the same items.
    pub base_spread: &'a Spread,
    /// How side B's do.
    pub spread: &'a Spread,
}

/// The normalised value of a count is the count divided by this.
pub fn exposure(normalize: Normalize, side: Side) -> f64 {
    match normalize {
        Normalize::Rate => side.samples_per_core,
        Normalize::Share => side.samples as f64,
        Normalize::Absolute => 1.0 / side.unit,
    }
}

/// Judges every item.
pub fn judge(criteria: Criteria, base: Side, comparison: Side, items: Items<'_>) -> Judgement {
    let test = SignificanceTest::new(criteria, [base, comparison], items);
    let dispersions = test.dispersions();
    let (tested, far) = test.far_items(&dispersions);
    let discoveries = test.discoveries(&dispersions, tested, far);
    let mut found = vec![false; items.base.len()];
    discoveries.iter().for_each(|item| found[*item] = true);
    let counts = each_of(items.base.len(), |item| [items.base[item], items.comparison[item]]);
    let is_change =
        |item: &&usize| test_result(test.scale, counts[**item], dispersions.of(**item), true).state != State::Same;
    let significant = discoveries.iter().filter(is_change).count();
    let Dispersions { spreads, pooled, df } = dispersions;
    Judgement {
        counts,
        spreads,
        df,
        found,
        dispersion: pooled,
        tested,
        significant,
        scale: test.scale,
    }
}

/// The over-dispersion of each item and of all together.
struct Dispersions {
    /// X² and its degrees of freedom, of both sides together.
    spreads: Vec<(f64, f64)>,
    pooled: f64,
    df: f64,
}

impl Dispersions {
    /// The dispersion that holds for an item, and its degrees of freedom.
    fn of(&self, item: usize) -> (f64, f64) {
        own_dispersion(self.spreads[item], (self.pooled, self.df))
    }
}

/// The test of all items of two sides; the module says by what.
struct SignificanceTest<'a> {
    sides: [Side; 2],
    items: Items<'a>,
    scale: Scale,
    discovery_rate: f64,
    /// Samples of both sides.
    samples: f64,
    /// Both sides were observed.
    observed: bool,
    /// Without a change, the part of an item's samples that falls to the comparison.
    p: f64,
    /// More effective samples than so many can be significant.
    least_count: f64,
}

impl<'a> SignificanceTest<'a> {
    fn new(criteria: Criteria, sides: [Side; 2], items: Items<'a>) -> Self {
        let Criteria {
            normalize, confidence, ..
        } = criteria;
        let exposures = sides.map(|side| exposure(normalize, side));
        let observed = exposures.iter().all(|exposure| *exposure > 0.0);
        let p = if observed {
            exposures[1] / (exposures[0] + exposures[1])
        } else {
            0.5
        };
        let discovery_rate = confidence.false_discovery_rate();
        Self {
            sides,
            items,
            scale: Scale {
                normalize,
                exposures,
                z: confidence.z(),
            },
            discovery_rate,
            samples: (sides[0].samples + sides[1].samples) as f64,
            observed,
            p,
            least_count: reachable_from(p, discovery_rate),
        }
    }

    fn counts(&self, item: usize) -> [u64; 2] {
        [self.items.base[item], self.items.comparison[item]]
    }

    /// The variance of so many of `all` samples in units of a Poisson's, dispersion apart.
    fn variance(&self, count: u64, all: f64) -> f64 {
        match self.scale.normalize {
            Normalize::Share => 1.0 - count as f64 / all.max(1.0),
            Normalize::Rate | Normalize::Absolute => 1.0,
        }
    }

    /// The variance of an item's samples of both sides.
    fn item_variance(&self, item: usize) -> f64 {
        self.variance(self.counts(item).iter().sum(), self.samples)
    }

    /// How the samples of each item spread, and of those that could be significant together.
    fn dispersions(&self) -> Dispersions {
        let spreads = [self.items.base_spread, self.items.spread];
        let spreads = each_of(self.items.base.len(), |item| {
            let of_side = |side: usize| {
                let Side { samples, spread, .. } = self.sides[side];
                let variance = self.variance(self.counts(item)[side], samples as f64);
                spreads[side].chi_square(item, variance, spread)
            };
            let ((x_base, df_base), (x, df)) = (of_side(0), of_side(1));
            (x_base + x, df_base + df)
        });
        // Those that could be significant without over-dispersion tell how large it is.
        let least = self.sides[0].spread.max(self.sides[1].spread).max(1.0);
        let of_part = |part: Range<usize>| {
            let mut sums = [ExactSum::default(); 2];
            for item in part.filter(|item| self.is_reachable(*item, least)) {
                sums[0].add(spreads[item].0);
                sums[1].add(spreads[item].1);
            }
            sums
        };
        let mut sums = [ExactSum::default(); 2];
        for part in each_part(self.items.base.len(), of_part) {
            sums[0].merge(part[0]);
            sums[1].merge(part[1]);
        }
        let [x2, df] = sums.map(ExactSum::value);
        let pooled = if df > 0.0 { (x2 / df).max(least) } else { least };
        Dispersions { spreads, pooled, df }
    }

    /// Whether an item of that dispersion could be significant, by the sum of its counts alone.
    fn is_reachable(&self, item: usize, dispersion: f64) -> bool {
        let count: u64 = self.counts(item).iter().sum();
        self.observed && count > 0 && self.item_variance(item) > 1e-6 && count as f64 / dispersion > self.least_count
    }

    /// The effective counts of an item: as if its samples came one by one.
    fn effective(&self, dispersions: &Dispersions, item: usize) -> (f64, f64) {
        let scale = dispersions.of(item).0 * self.item_variance(item);
        let [base, comparison] = self.counts(item);
        (base as f64 / scale, comparison as f64 / scale)
    }

    /// How far an item lies from what is expected without a change, in standard deviations.
    fn deviation(&self, dispersions: &Dispersions, item: usize) -> f64 {
        let ((a, b), p) = (self.effective(dispersions, item), self.p);
        ((b - (a + b) * p) / ((a + b) * p * (1.0 - p)).sqrt()).abs()
    }

    /// How many items are tested, those that could be significant, and which of them lie so far out that they need be
    /// remembered.
    fn far_items(&self, dispersions: &Dispersions) -> (usize, Vec<(usize, f64)>) {
        let least_far = NO_DISCOVERY * two_sided_point(self.discovery_rate);
        let of_part = |part: Range<usize>| -> (usize, Vec<(usize, f64)>) {
            let (mut tested, mut far) = (0, Vec::new());
            for item in part.filter(|item| self.is_reachable(*item, dispersions.of(*item).0)) {
                tested += 1;
                let deviation = self.deviation(dispersions, item);
                if deviation >= least_far {
                    far.push((item, deviation));
                }
            }
            (tested, far)
        };
        let parts = each_part(self.items.base.len(), of_part);
        let (tested, parts): (Vec<usize>, Vec<_>) = parts.into_iter().unzip();
        let tested = tested.iter().sum();
        (tested, further(parts, NO_DISCOVERY, tested, self.discovery_rate))
    }

    /// The items among `far` ones that are discoveries. Of what lies far out by its deviation, which costs little, it
    /// takes what does by its deviance, and of that what has a small p.
    fn discoveries(&self, dispersions: &Dispersions, tested: usize, far: Vec<(usize, f64)>) -> Vec<usize> {
        let reaches = each_of(far.len(), |place| {
            let (item, _) = far[place];
            let (a, b) = self.effective(dispersions, item);
            (item, stats::binomial_reach(a, b, self.p))
        });
        let far = further(vec![reaches], 1.0, tested, self.discovery_rate);
        let p_values = each_of(far.len(), |place| {
            let (item, _) = far[place];
            let (a, b) = self.effective(dispersions, item);
            let exact = stats::binomial_p(a, b, self.p);
            2.0 * stats::student_tail(stats::normal_quantile(exact / 2.0), dispersions.of(item).1)
        });
        let threshold = stats::false_discovery_threshold(&p_values, tested, self.discovery_rate);
        let is_found = |p_value: f64| threshold.is_some_and(|threshold| p_value <= threshold);
        let discoveries = far.iter().zip(&p_values).filter(|(_, p_value)| is_found(**p_value));
        discoveries.map(|((item, _), _)| *item).collect()
    }
}

/// The dispersion that holds for an item, and its degrees of freedom: the pooled one, or its own where it is noisier.
/// `x`, `own_df`: how its samples spread.
fn own_dispersion((x, own_df): (f64, f64), (pooled, df): (f64, f64)) -> (f64, f64) {
    let is_noisier = x / pooled > own_df + OUTLIER * (2.0 * own_df).sqrt();
    if is_noisier || df == 0.0 {
        let shrunk = (PRIOR_DF * pooled + x) / (PRIOR_DF + own_df);
        (shrunk.max(pooled), PRIOR_DF + own_df)
    } else {
        (pooled, df)
    }
}

/// Items that lie so far out that they can be discoveries: of k discoveries among all that are `tested` the largest p
/// is at most k / `tested` of the false discovery rate, and only so many lie so far out. `parts`: items, each with
/// standard deviations of which no p is smaller than the one of a normal variable at 1 / `least_part` of them. What
/// is left out has no small p.
fn further(parts: Vec<Vec<(usize, f64)>>, least_part: f64, tested: usize, discovery_rate: f64) -> Vec<(usize, f64)> {
    let (mut parts, mut left) = (parts, tested);
    loop {
        let largest_p = discovery_rate * left as f64 / tested.max(1) as f64;
        let least = least_part * two_sided_point(largest_p);
        for part in &mut parts {
            part.retain(|(_, deviations)| *deviations >= least);
        }
        let further = parts.iter().map(Vec::len).sum();
        // Another look that leaves out little costs more than it saves.
        if further == 0 || further * 10 > left * 9 {
            return parts.concat();
        }
        left = further;
    }
}

/// The sum of numbers that are not negative, the same to the last bit in whatever order they come: items stand in the
/// order in which the server has met their stacks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExactSum {
    whole: i128,
    /// What was behind the point, in parts of [`ExactSum::ONE`]: there is room for 2^26 numbers.
    parts: i64,
}

impl ExactSum {
    const ONE: f64 = (1_u64 << 36) as f64;
    const MOST: f64 = (1_u64 << 62) as f64;

    pub(crate) fn add(&mut self, value: f64) {
        // Beyond, where values are counted in small units, the sum is large enough without it.
        let value = value.min(ExactSum::MOST);
        let whole = value as i64;
        self.whole += i128::from(whole);
        self.parts += ((value - whole as f64) * ExactSum::ONE) as i64;
    }

    pub(crate) fn merge(&mut self, other: ExactSum) {
        self.whole += other.whole;
        self.parts += other.parts;
    }

    pub(crate) fn value(self) -> f64 {
        self.whole as f64 + self.parts as f64 / ExactSum::ONE
    }
}

/// More effective samples than so many, all on one side, would be a small p.
fn reachable_from(p: f64, discovery_rate: f64) -> f64 {
    (REACHABLE_PART * discovery_rate / 2.0).ln() / p.min(1.0 - p).ln()
}

/// What turns counts into values and intervals.
#[derive(Debug, Clone, Copy)]
struct Scale {
    normalize: Normalize,
    exposures: [f64; 2],
    /// The two-sided point of a standard normal variable at the confidence.
    z: f64,
}

fn test_result(scale: Scale, counts: [u64; 2], (dispersion, df): (f64, f64), found: bool) -> TestResult {
    let Scale {
        normalize, exposures, ..
    } = scale;
    let z = stats::student_point(scale.z, df);
    let side = |i: usize| {
        let (count, exposure) = (counts[i] as f64, exposures[i]);
        if exposure <= 0.0 {
            return (0.0, 0.0, 0.0);
        }
        let scaled = count / dispersion;
        let (low, high) = match normalize {
            Normalize::Share => stats::share_interval(scaled, exposure / dispersion, z),
            Normalize::Rate | Normalize::Absolute => {
                let (low, high) = stats::poisson_interval(scaled, z);
                (low * dispersion / exposure, high * dispersion / exposure)
            }
        };
        (count / exposure, low, high)
    };
    let (base_norm, base_low, base_high) = side(0);
    let (norm, norm_low, norm_high) = side(1);
    let delta = norm - base_norm;
    let low = delta - (norm - norm_low).hypot(base_high - base_norm);
    let high = delta + (norm_high - norm).hypot(base_norm - base_low);
    let nearest = if low > 0.0 {
        low
    } else if high < 0.0 {
        -high
    } else {
        0.0
    };
    let state = match (found && nearest > 0.0, delta > 0.0) {
        (false, _) => State::Same,
        (true, true) if counts[0] == 0 => State::New,
        (true, true) => State::Grew,
        (true, false) if counts[1] == 0 => State::Gone,
        (true, false) => State::Shrank,
    };
    let strength = if state == State::Same {
        0.0
    } else {
        (nearest / norm.max(base_norm)).clamp(LEAST_STRENGTH, 1.0)
    };
    TestResult {
        base_norm,
        norm,
        delta,
        low,
        high,
        state,
        strength,
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
