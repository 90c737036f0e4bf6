//! Questions to answers.
//!
//! In: a selector, a window and a snapshot of the store. Out: trees, differences, series and tables as values. Times
//! are nanoseconds since the Unix epoch, counts are samples, CPU time is in seconds. Nothing here knows HTTP, and
//! nothing writes.
//!
//! Rooms, each of which uses those behind it only: views, then difference, tree, count, then plan, ask, limits; sql
//! uses plan. Large questions are counted together with other servers on the same data, as an [`Exchange`] has them.

mod ask;
mod count;
mod difference;
mod limits;
mod plan;
mod sql;
mod tree;
mod views;

#[cfg(any(test, fuzzing))]
pub(crate) use plan::shares::share::fuzz_share;
#[cfg(any(test, fuzzing))]
pub(crate) use sql::shape::fuzz_sql;
#[cfg(any(test, fuzzing))]
pub(crate) use views::shares::fuzz_partial;
pub(crate) use views::waits::wakers::around_waits;

pub use ask::question::{Question, RuntimeFrames, ValueRange};
pub use ask::unit::Unit;
pub use ask::{selector, time};
pub use count::observed_time::ObservedTime;
pub use count::periods::{Counted, Periods};
pub use count::ticks::Ticks;
pub use difference::judge;
pub use limits::admission::{Admission, Limits};
pub use limits::error::QueryError;
pub use limits::reservation::Reservation;
pub use plan::sources::{least_step, of_whole_hours};
pub use plan::steps::Steps;
pub use sql::run::{Rows, sql};
pub use tree::{nodes, trim};
pub use views::changes::newest::{Moment, Newest, OlderMoments};
pub use views::changes::{Change, agent_starts, version_changes};
pub use views::difference::{Difference, difference};
pub use views::engine::Engine;
pub use views::facets::{Facet, Facets, MOST_FACETS, facets};
pub use views::flamegraph::{Ended, Flamegraph, Matching, Summary, View, flamegraph};
pub use views::grouping::MOST_ROWS;
pub use views::heatmap::{Grid, Heatmap, USUAL_ROWS, heatmap};
pub use views::labels::{MAX_VALUES, Values, label_names, label_values};
pub use views::matching::{FrameMatch, MOST_PATH};
pub use views::profile_types::{ProfileType, of_one_unit, profile_types};
pub use views::selected::exchange::{Exchange, ExchangeError, Spread, SpreadCounters, USUAL_LEAST_ROWS};
pub use views::series::{Chart, Line, MAX_STEPS, Series, series, usual_step};
pub use views::shares::{SHARE_NODE, ShareCounter, ShareError, ShareExec, partial_counts};
pub use views::state::state;
pub use views::timeline::{MAX_SAMPLES, TimedSample, Timeline, before, timeline};
pub use views::top::{By, Row, Shares, Top, Whole, top, top_difference};
pub use views::waits::run_queue::{QueueLine, RunQueues, run_queues};
pub use views::waits::thread_time::{Part, ThreadTime, ThreadTimeRow, thread_time};
pub use views::waits::wakers::Waker;
pub use views::waits::woken_by::woken_by;
pub use views::words::rank::Rank;
pub use views::words::{Found, Hit, search};
