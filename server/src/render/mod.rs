//! Answers of `query` to the formats that people and tools read: JSON, collapsed stacks, SVG, pprof, speedscope, CSV.
//!
//! In: trees, differences, series and tables. Out: bytes. Counts are in the unit that each answer tells, times in
//! answers are Unix milliseconds. Computes nothing that is not a matter of presentation: every format shows the same
//! numbers. Does no I/O. What it makes is on the account of queries.

mod collapsed;
mod csv;
mod diff_svg;
mod error;
mod facets;
mod json;
mod pprof;
mod quality;
mod series;
mod speedscope;
mod svg;
mod waits;
mod writer;

pub use collapsed::{collapsed, differential};
pub use csv::top as top_csv;
pub use diff_svg::diff_svg;
pub use error::RenderError;
pub use facets::facets;
pub use json::{diff, flamegraph, heatmap, label_values, sql, timeline, top};
pub use pprof::pprof;
pub use series::{found, labels, series};
pub use speedscope::speedscope;
pub use svg::svg;
pub use waits::{run_queues, thread_time};
pub use writer::{Answer, Writer};
