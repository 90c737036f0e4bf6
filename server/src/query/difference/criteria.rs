//! What a difference compares, and how sure it has to be. Pure.

use crate::query::count::periods::Counted;
use crate::query::difference::stats;

/// How sure a change has to be to be called one, as a share of 1: what is missing to 1 is the expected share of wrong
/// discoveries among all, and intervals hold the true value in this share of cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence(f64);

impl Confidence {
    /// Below, more than one discovery in five would be wrong; above [`Confidence::MOST`] the expansion of Student's t
    /// is no longer good.
    pub const LEAST: f64 = 0.8;
    /// Above, the tail of Student's t is not computed well.
    pub const MOST: f64 = 0.999;

    /// `None` beyond [`Confidence::LEAST`] and [`Confidence::MOST`].
    pub fn new(level: f64) -> Option<Confidence> {
        (Confidence::LEAST..=Confidence::MOST)
            .contains(&level)
            .then_some(Confidence(level))
    }

    /// In parts of 1, such as 0.95.
    pub fn level(self) -> f64 {
        self.0
    }

    /// Expected share of wrong discoveries among all, without the noise of subtracting: 0.05 of 0.95.
    pub fn false_discovery_rate(self) -> f64 {
        ((1.0 - self.0) * 1e9).round() / 1e9
    }

    /// The two-sided point of a standard normal variable.
    pub(crate) fn z(self) -> f64 {
        two_sided_point(1.0 - self.0)
    }
}

impl Default for Confidence {
    fn default() -> Confidence {
        Confidence(0.95)
    }
}

/// Which of a frame's samples are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// All with the frame anywhere in the stack.
    Total,
    /// Those that end in it.
    Own,
}

impl Measure {
    /// As it stands in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Total => "total",
            Measure::Own => "self",
        }
    }
}

/// What is compared, and how it is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// What both sides are made comparable by.
    pub normalize: Normalize,
    /// Which of a frame's samples are compared.
    pub measure: Measure,
    /// How sure a change has to be.
    pub confidence: Confidence,
}

/// What both sides are made comparable by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// Samples per observed time: of time, cores.
    Rate,
    /// Parts of all samples of the side.
    Share,
    /// Counts, of the time of the shorter side.
    Absolute,
}

impl Normalize {
    /// As it stands in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Normalize::Rate => "rate",
            Normalize::Share => "share",
            Normalize::Absolute => "absolute",
        }
    }

    /// Unit of the normalised values, of counts of both sides, or of the only one.
    pub fn unit(self, counted: [&Counted; 2]) -> String {
        // A side without samples counts nothing.
        let known = counted.into_iter().filter(|counted| counted.one > 0);
        let least = known.min_by_key(|counted| counted.one).unwrap_or(counted[1]);
        match self {
            Normalize::Rate => least.rate_name(),
            Normalize::Share => "share".to_owned(),
            Normalize::Absolute => least.name().to_owned(),
        }
    }
}

/// The standard deviations beyond which a normal variable lies with the probability `p`.
pub(crate) fn two_sided_point(p: f64) -> f64 {
    stats::normal_quantile(p / 2.0)
}
