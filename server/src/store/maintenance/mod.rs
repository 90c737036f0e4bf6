//! Rewrites files to fewer and better ones, rolls hours up, and removes what is past its retention.
//!
//! In: the open store. Out: files that replace others. Never acknowledges.

mod beside_others;
pub(crate) mod compact;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod retention;
pub(crate) mod rewrite_hour;
pub(crate) mod rollup;
pub(crate) mod scrub;
