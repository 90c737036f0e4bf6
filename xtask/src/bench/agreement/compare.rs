//! How far two profiles of one program agree, and how far two profiles of one profiler would by chance.
//!
//! In: two profiles. Out: figures. Does no input or output; the draws are the same each time.

use std::collections::BTreeMap;

use super::profile::{Profile, Weight};

/// Functions that are compared.
const LARGEST: usize = 20;
/// Deals that tell what chance gives.
const DEALS: u64 = 200;

/// Which of a function's shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Own,
    Total,
}

impl Share {
    pub(super) fn title(self) -> &'static str {
        match self {
            Share::Own => "self",
            Share::Total => "total",
        }
    }

    pub(super) fn of(self, weight: Option<&Weight>) -> u64 {
        weight.map_or(0, |weight| match self {
            Share::Own => weight.own,
            Share::Total => weight.total,
        })
    }
}

/// One function in both, in percent of each one's samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) ours: f64,
    pub(super) theirs: f64,
    /// Two standard deviations of the difference where both share the truth: in points.
    pub(super) by_chance: f64,
}

impl Function {
    /// In points.
    pub(super) fn difference(&self) -> f64 {
        self.ours - self.theirs
    }
}

/// The twenty largest functions by the mean of both shares, largest first.
pub(super) fn largest(ours: &Profile, theirs: &Profile, share: Share) -> Vec<Function> {
    let (our_samples, their_samples) = (ours.samples().max(1) as f64, theirs.samples().max(1) as f64);
    let (our, their) = (ours.functions(), theirs.functions());
    let mut names: Vec<&str> = our.keys().chain(their.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut functions: Vec<Function> = names
        .into_iter()
        .map(|name| {
            let (a, b) = (share.of(our.get(name)) as f64, share.of(their.get(name)) as f64);
            let pooled = (a + b) / (our_samples + their_samples);
            let variance = pooled * (1.0 - pooled) * (1.0 / our_samples + 1.0 / their_samples);
            Function {
                name: name.to_owned(),
                ours: a * 100.0 / our_samples,
                theirs: b * 100.0 / their_samples,
                by_chance: 200.0 * variance.max(0.0).sqrt(),
            }
        })
        .collect();
    functions.sort_by(|a, b| (b.ours + b.theirs).total_cmp(&(a.ours + a.theirs)));
    functions.truncate(LARGEST);
    functions
}

/// How many of one function's sampled stacks are equal in both, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Equal {
    /// Samples of either whose very stack the other one has too: the mean of both directions.
    pub(super) found: f64,
    /// Samples that fit each other one by one: the overlap of both distributions.
    pub(super) overlap: f64,
}

/// What was seen, and what it is on average where the same samples are dealt to both at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Equality {
    pub(super) ours: u64,
    pub(super) theirs: u64,
    pub(super) seen: Equal,
    pub(super) by_chance: Equal,
    /// Standard deviation of `by_chance.found`.
    pub(super) deviation: f64,
}

impl Equality {
    /// What `found` must reach: so many in a hundred of what chance gives, less two deviations.
    pub(super) fn least(&self, percent: f64) -> f64 {
        (self.by_chance.found * percent / 100.0 - 2.0 * self.deviation).max(0.0)
    }
}

/// Compares the stacks whose innermost function is this one.
pub(super) fn equality(ours: &Profile, theirs: &Profile, function: &str) -> Equality {
    let (our, their) = (ours.stacks_of(function), theirs.stacks_of(function));
    let mut pairs: BTreeMap<&[String], (u64, u64)> = BTreeMap::new();
    for (stack, samples) in our {
        pairs.entry(stack).or_default().0 = samples;
    }
    for (stack, samples) in their {
        pairs.entry(stack).or_default().1 = samples;
    }
    let pairs: Vec<(u64, u64)> = pairs.into_values().collect();
    let seen = equal(&pairs);
    let (our_samples, their_samples) = pairs.iter().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let mut draws = Draws(1);
    let drawn: Vec<Equal> = (0..DEALS).map(|_| equal(&draws.deal(&pairs, our_samples))).collect();
    let mean = |of: fn(&Equal) -> f64| drawn.iter().map(of).sum::<f64>() / DEALS as f64;
    let by_chance = Equal {
        found: mean(|equal| equal.found),
        overlap: mean(|equal| equal.overlap),
    };
    let squares = drawn.iter().map(|equal| (equal.found - by_chance.found).powi(2));
    Equality {
        ours: our_samples,
        theirs: their_samples,
        seen,
        by_chance,
        deviation: (squares.sum::<f64>() / DEALS as f64).sqrt(),
    }
}

fn equal(pairs: &[(u64, u64)]) -> Equal {
    let sum = |of: fn(&(u64, u64)) -> u64| pairs.iter().map(of).sum::<u64>() as f64;
    let (our, their) = (sum(|pair| pair.0), sum(|pair| pair.1));
    if our == 0.0 || their == 0.0 {
        return Equal::default();
    }
    let in_both = pairs.iter().filter(|(a, b)| *a > 0 && *b > 0);
    let found = in_both.map(|(a, b)| *a as f64 / our + *b as f64 / their).sum::<f64>();
    let overlap = pairs.iter().map(|(a, b)| (*a as f64 / our).min(*b as f64 / their));
    Equal {
        found: found * 50.0,
        overlap: overlap.sum::<f64>() * 100.0,
    }
}

/// Numbers that look random (SplitMix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// All samples dealt anew to two profiles with as many as there were.
    fn deal(&mut self, pairs: &[(u64, u64)], ours: u64) -> Vec<(u64, u64)> {
        let of_stack = |(at, (a, b)): (usize, &(u64, u64))| (0..a + b).map(move |_| at);
        let mut samples: Vec<usize> = pairs.iter().enumerate().flat_map(of_stack).collect();
        let mut dealt = vec![(0, 0); pairs.len()];
        let mut left_for_us = ours;
        while !samples.is_empty() {
            let chosen = (self.next() % samples.len() as u64) as usize;
            let at = samples.swap_remove(chosen);
            if left_for_us > 0 {
                left_for_us -= 1;
                dealt[at].0 += 1;
            } else {
                dealt[at].1 += 1;
            }
        }
        dealt
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::profile;
    use super::*;

    #[test]
    fn functions_stand_by_the_mean_of_their_shares() {
        let ours = profile(&[("main;f", 60), ("main;g", 40)]);
        let theirs = profile(&[("main;f", 25), ("main;g", 20), ("main;h", 5)]);
        let own = largest(&ours, &theirs, Share::Own);
        let told: Vec<_> = own
            .iter()
            .map(|function| (function.name.as_str(), function.ours, function.theirs))
            .collect();
        assert_eq!(
            told,
            [
                ("f", 60.0, 50.0),
                ("g", 40.0, 40.0),
                ("h", 0.0, 10.0),
                ("main", 0.0, 0.0)
            ]
        );
        assert_eq!(own[0].difference(), 10.0);
        // sqrt(0.5667 * 0.4333 * (1/100 + 1/50)) is 0.0858.
        assert!((own[0].by_chance - 17.16).abs() < 0.01, "{own:?}");
        let total = largest(&ours, &theirs, Share::Total);
        assert_eq!((total[0].name.as_str(), total[0].difference()), ("main", 0.0));
        assert_eq!(total[0].by_chance, 0.0);
    }

    #[test]
    fn equal_stacks_are_those_that_both_have() {
        let ours = profile(&[("a;f", 50), ("b;f", 30), ("c;f", 20), ("g", 100)]);
        let theirs = profile(&[("a;f", 80), ("b;f", 20), ("g", 3)]);
        let equality = equality(&ours, &theirs, "f");
        assert_eq!((equality.ours, equality.theirs), (100, 100));
        assert_eq!(equality.seen.found, 90.0);
        assert_eq!(equality.seen.overlap, 70.0);
        // Chance would leave none of these out.
        assert!(equality.by_chance.found > 99.0, "{equality:?}");
        assert!(equality.seen.found < equality.least(98.0));
    }

    #[test]
    fn what_is_drawn_from_the_same_reaches_what_chance_gives_where_stacks_are_rare() {
        let names: Vec<String> = (0..400).map(|number| format!("{number};f")).collect();
        let drawn = |seed: u64| {
            let mut draws = Draws(seed);
            let mut profile = profile(&[]);
            for _ in 0..500 {
                let stack = &names[(draws.next() % 400).min(draws.next() % 400) as usize];
                profile.add(stack.split(';').map(str::to_owned).collect(), 1);
            }
            profile
        };
        let equality = equality(&drawn(7), &drawn(8), "f");
        assert!(equality.seen.found < 90.0, "{equality:?}");
        assert!(equality.seen.found >= equality.least(98.0), "{equality:?}");
    }

    #[test]
    fn a_function_that_only_one_has_has_no_equal_stacks() {
        let equality = equality(&profile(&[("a;f", 5)]), &profile(&[("a;g", 5)]), "f");
        assert_eq!((equality.ours, equality.theirs), (5, 0));
        assert_eq!(equality.seen, Equal::default());
    }
}
