//! What waits are told by: labels that their series have.

use crate::hash::MixState;
use crate::label::Label;
use crate::label::attribute::AttributeName;
use crate::profile_type::WAITS;
use crate::query::ask::question::Question;
use crate::query::ask::unit::Unit;
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::views::by_label::values_by_id;
use crate::store::Snapshot;
use std::collections::HashMap;
use std::sync::Arc;

/// The type of waits that somebody ends.
pub(crate) const ASLEEP: &str = WAITS[0];

/// What a thread waits for.
pub(crate) const CLASS: &str = "wait.class";
/// How the wait began.
pub(crate) const STATE: &str = "wait.state";

/// A text of each series.
pub(crate) type OfSeries = Arc<HashMap<i64, Arc<str>, MixState>>;

/// The values of an attribute of series.
pub(crate) async fn of_series(snapshot: &Snapshot, days: &Days, name: &'static str) -> Result<OfSeries, QueryError> {
    let Some(name) = AttributeName::new(name) else {
        return Ok(Arc::default());
    };
    Ok(Arc::new(values_by_id(snapshot, days, Label::Attribute(name)).await?))
}

/// The same question of another type, and of its time alone.
pub(crate) fn of_type(question: &Question, profile: &str) -> Question {
    Question {
        profile: profile.to_owned(),
        unit: Some(Unit::time()),
        ..question.clone()
    }
}
