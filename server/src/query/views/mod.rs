//! One file an answer: flamegraph, difference, series, top, heatmap, timeline and lists.
//!
//! In: an engine, a snapshot and a question. Out: the answer as values, which `render` writes.

pub(crate) mod by_label;
pub(crate) mod changes;
pub(crate) mod difference;
pub(crate) mod engine;
pub(crate) mod facets;
pub(crate) mod flamegraph;
pub(crate) mod grouping;
pub(crate) mod heatmap;
pub(crate) mod labels;
pub(crate) mod matching;
pub(crate) mod profile_types;
pub(crate) mod selected;
pub(crate) mod series;
pub(crate) mod shares;
pub(crate) mod state;
pub(crate) mod timeline;
pub(crate) mod top;
pub(crate) mod type_table;
pub(crate) mod waits;
pub(crate) mod words;
