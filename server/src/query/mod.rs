//! Questions to answers: a selector, a window and a snapshot of the store in; trees, differences and series out.
//!
//! Times are nanoseconds since the Unix epoch, counts are samples, CPU time is in seconds. `criteria`, `diff`, `stats`, `tree`, `trim`, `selector` and
//! `time` do no I/O. Nothing here knows HTTP, and nothing writes.

mod account;
pub mod attribute;
mod cells;
mod counts;
mod criteria;
mod dictionary;
mod difference;
mod engine;
mod error;
mod exposure;
mod flamegraph;
mod frame;
mod group;
mod group_counts;
mod heatmap;
mod intervals;
mod labels;
mod lanes;
mod matching;
mod parallel;
mod periods;
mod scan;
mod select;
mod senders;
mod series;
mod sources;
mod sql;
mod sql_bounds;
mod sql_shape;
mod state;
mod stats;
mod steps;
mod ticks;
mod timeline;
mod top;
mod trie;
mod types;
mod weighed;

pub mod diff;
pub mod selector;
pub mod time;
pub mod tree;
pub mod trim;

#[cfg(any(test, fuzzing))]
pub(crate) use sql_shape::fuzz_sql;

pub use account::Account;
pub use difference::{Difference, difference};
pub use engine::{Engine, Limits};
pub use error::QueryError;
pub use exposure::Exposure;
pub use flamegraph::{Flamegraph, Matching, Summary, View, flamegraph};
pub use heatmap::{Grid, Heatmap, USUAL_ROWS, heatmap};
pub use labels::{Values, label_names, label_values};
pub use matching::{FrameMatch, MOST_PATH};
pub use periods::{Counted, Periods};
pub use select::Question;
pub use series::{Chart, Line, MAX_STEPS, Series, series, usual_step};
pub use sources::{least_step, of_whole_hours};
pub use sql::{Rows, sql};
pub use state::state;
pub use steps::Steps;
pub use ticks::Ticks;
pub use timeline::{MAX_SAMPLES, Moment, Timeline, before, timeline};
pub use top::{By, Row, Shares, Top, Whole, top, top_difference};
pub use types::{ProfileType, Unit, of_one_unit, profile_types};
