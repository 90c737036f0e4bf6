//! Samples of one program as one profiler saw them, in the frames of the program's language alone.
//!
//! In: stacks, root first. Out: counts and shares. Does no input or output.

use std::collections::{BTreeMap, BTreeSet};

/// Distinct stacks with their samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    /// Normalised names, root first; none is empty.
    pub(super) stacks: BTreeMap<Vec<String>, u64>,
    /// Samples that are not compared, by reason.
    pub(super) left_out: BTreeMap<&'static str, u64>,
    /// Samples whose innermost function was taken away, since the other profiler can't see it.
    pub(super) cut_back: u64,
}

/// What a profiler says of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// Samples in which it is the innermost frame.
    pub(super) own: u64,
    /// Samples in which it stands anywhere.
    pub(super) total: u64,
}

impl Profile {
    /// A stack without frames is left out.
    pub(super) fn add(&mut self, stack: Vec<String>, samples: u64) {
        if stack.is_empty() {
            self.leave_out("without a frame of the language", samples);
        } else if samples > 0 {
            *self.stacks.entry(stack).or_default() += samples;
        }
    }

    pub(super) fn leave_out(&mut self, reason: &'static str, samples: u64) {
        if samples > 0 {
            *self.left_out.entry(reason).or_default() += samples;
        }
    }

    pub(super) fn samples(&self) -> u64 {
        self.stacks.values().sum()
    }

    /// All functions.
    pub(super) fn functions(&self) -> BTreeMap<&str, Weight> {
        let mut functions: BTreeMap<&str, Weight> = BTreeMap::new();
        for (stack, samples) in &self.stacks {
            if let Some(innermost) = stack.last() {
                functions.entry(innermost).or_default().own += samples;
            }
            let once: BTreeSet<&str> = stack.iter().map(String::as_str).collect();
            for function in once {
                functions.entry(function).or_default().total += samples;
            }
        }
        functions
    }

    /// Samples of each distinct stack whose innermost function is this one.
    pub(super) fn stacks_of(&self, function: &str) -> BTreeMap<&[String], u64> {
        let own = self
            .stacks
            .iter()
            .filter(|(stack, _)| stack.last().is_some_and(|last| last == function));
        own.map(|(stack, samples)| (stack.as_slice(), *samples)).collect()
    }

    /// One line a stack, as flamegraphs are drawn from.
    pub(super) fn collapsed(&self) -> String {
        let lines = self
            .stacks
            .iter()
            .map(|(stack, samples)| format!("{} {samples}\n", stack.join(";")));
        lines.collect()
    }

    /// What was left out, in words.
    pub(super) fn left_out(&self) -> String {
        let all = self.samples() + self.left_out.values().sum::<u64>();
        let part =
            |(reason, samples): (&&str, &u64)| format!("{:.1} % {reason}", *samples as f64 * 100.0 / all.max(1) as f64);
        match self.left_out.is_empty() {
            true => "nothing".to_owned(),
            false => self.left_out.iter().map(part).collect::<Vec<_>>().join(", "),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `a;b;c`, root first, with samples.
    pub(in crate::bench::agreement) fn profile(stacks: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::default();
        for (stack, samples) in stacks {
            let frames = stack.split(';').filter(|frame| !frame.is_empty());
            profile.add(frames.map(str::to_owned).collect(), *samples);
        }
        profile
    }

    #[test]
    fn a_function_counts_once_a_sample_however_often_it_stands_there() {
        let profile = profile(&[("main;f;g;f", 3), ("main;f", 2), ("main;f;g;f", 1), ("", 4)]);
        assert_eq!(profile.samples(), 6);
        assert_eq!(profile.left_out(), "40.0 % without a frame of the language");
        let functions = profile.functions();
        assert_eq!(functions["main"], Weight { own: 0, total: 6 });
        assert_eq!(functions["f"], Weight { own: 6, total: 6 });
        assert_eq!(functions["g"], Weight { own: 0, total: 4 });
        assert_eq!(profile.stacks_of("f").len(), 2);
        assert_eq!(profile.stacks_of("g").len(), 0);
        assert_eq!(profile.collapsed(), "main;f 2\nmain;f;g;f 4\n");
    }
}
