//! Answers of `query` to the formats that people and tools read: JSON, collapsed stacks, SVG, pprof, speedscope, CSV.
//!
//! Trees, differences and tables in, bytes out. Counts are in the unit that each answer tells, times in answers are Unix milliseconds. Computes nothing that
//! is not a matter of presentation: every format shows the same numbers. Does no I/O. What it makes is on the account of queries.

mod collapsed;
mod csv;
mod diff_svg;
mod json;
mod pprof;
mod series;
mod speedscope;
mod svg;
mod writer;

pub use collapsed::{collapsed, differential};
pub use csv::top as top_csv;
pub use diff_svg::diff_svg;
pub use json::{diff, flamegraph, heatmap, label_values, sql, timeline, top};
pub use pprof::pprof;
pub use series::{labels, series};
pub use speedscope::speedscope;
pub use svg::svg;
pub use writer::{Answer, Writer};

/// Parts of a group's CPU time by the quality of its stacks, in the order of `Shares::quality`.
const QUALITY_SHARES: [&str; 3] = ["complete_share", "truncated_share", "unnamed_share"];

/// A format that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("writing {format} failed: {cause}")]
pub struct RenderError {
    format: &'static str,
    cause: String,
}

impl RenderError {
    pub(crate) fn new(format: &'static str, cause: impl std::fmt::Display) -> Self {
        RenderError {
            format,
            cause: cause.to_string(),
        }
    }
}
