//! What a question selects, counted: the plan of what is read, and then its rows.
//!
//! In: a snapshot, a question and its scope. Out: what an accumulator has made of each selected sample, on this server
//! or on several, and what was observed of the question's window.

pub(crate) mod exchange;
pub(crate) mod senders;
pub(crate) mod spread;

use crate::query::ask::question::Question;
use crate::query::count::scan::{Accumulator, scan};
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::read_plan::ReadPlan;
use crate::query::plan::scope::ResolvedSelector;
use crate::store::Snapshot;

/// Hands every selected sample to an accumulator. The reservation holds what that takes.
pub(crate) async fn count_selected<C: Accumulator>(
    snapshot: &Snapshot,
    question: &Question,
    scope: &ResolvedSelector,
    new: impl Fn() -> C,
) -> Result<(C, Reservation), QueryError> {
    let plan = ReadPlan::of(snapshot, question, scope, new().needs()).await?;
    scan(plan, new).await
}
