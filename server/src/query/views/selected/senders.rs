//! What was observed, as a question's samples need it told: where their senders keep no account, all of the window was.

use crate::hash::MixState;
use crate::query::ask::question::Question;
use crate::query::count::observed_time::{self, ObservedTime};
use crate::query::count::senders::{Lacks, Senders};
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::plan::scope::scope;
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::query::views::selected::count_selected;
use crate::store::Snapshot;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use std::collections::HashMap;

/// What was observed of a question's window. `marked`: there are senders that do not give everything.
pub(crate) async fn observe(
    snapshot: &Snapshot,
    question: &Question,
    steps: Steps,
    marked: bool,
) -> Result<ObservedTime, QueryError> {
    let [observed] = observe_each(snapshot, [(question, steps, marked)]).await?;
    Ok(observed)
}

/// The same of several questions, whose accounts are read once: both sides of a difference often have the same files.
pub(crate) async fn observe_each<const N: usize>(
    snapshot: &Snapshot,
    questions: [(&Question, Steps, bool); N],
) -> Result<[ObservedTime; N], QueryError> {
    let of_accounts = questions.map(|(question, steps, _)| (question, steps));
    let observed = observed_time::observe_each(snapshot, of_accounts).await?;
    let mut all = Vec::with_capacity(N);
    for (observed, (question, steps, marked)) in observed.into_iter().zip(questions) {
        all.push(match marked {
            true => observed.with_senders(senders(snapshot, question).await?, steps),
            false => observed,
        });
    }
    all.try_into()
        .map_err(|_| QueryError::internal("sum up what was observed", "one is missing"))
}

/// Looks at the selected samples.
async fn senders(snapshot: &Snapshot, question: &Question) -> Result<Senders, QueryError> {
    let mut series: HashMap<i64, Lacks, MixState> = HashMap::default();
    let (days, columns) = (Days::of(question.window), ["series_id", "accounted", "spread"]);
    collect_rows(snapshot, "series", days.filter(), &columns, |batch| {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        // Older servers, which did not tell senders apart, have written nothing.
        let is = |column: usize, row: usize, flag: bool| {
            let flags = batch.column(column).as_boolean();
            flags.is_valid(row) && flags.value(row) == flag
        };
        for row in 0..batch.num_rows() {
            let lacks = Lacks {
                account: is(1, row, false),
                times: is(2, row, true),
            };
            if lacks != Lacks::default() {
                series.insert(ids.value(row), lacks);
            }
        }
    })
    .await?;
    let is_of_agents = series.is_empty();
    let new = Senders::of(series);
    if is_of_agents {
        return Ok(new);
    }
    let selected = scope(snapshot, question).await?;
    let (found, _held) = count_selected(snapshot, question, &selected, || new.clone()).await?;
    Ok(found)
}
