//! What the senders of selected samples did not give: an account of what they observed, and time stamps.
//!
//! The table `series` tells it. Only where the table `types` says that there are such senders is it looked which of
//! the selected samples are theirs: of agents alone nothing is read for it.

use crate::column::coded::Projection;
use crate::hash::MixState;
use crate::query::ask::question::Question;
use crate::query::count::scan::{Accumulator, PERIODS, Rows, codes, scan};
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::plan::small_tables::collect_rows;
use crate::store::Snapshot;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use std::collections::HashMap;
use std::sync::Arc;

/// What is not given of the samples of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Lacks {
    account: bool,
    times: bool,
}

/// Samples of senders that do not give everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Senders {
    /// Of each series of which not everything is given.
    series: Arc<HashMap<i64, Lacks, MixState>>,
    /// There is a sample of a sender that keeps no account.
    pub unaccounted: bool,
    /// The sum of the values that were spread over a duration.
    pub spread: i64,
}

impl Accumulator for Senders {
    fn columns(&self) -> Vec<Projection> {
        vec![codes("series_id"), PERIODS]
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Window
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let (series, values) = (rows.codes(0)?, rows.codes(1)?);
        let lacks = |code| {
            let of_series = series.number(code).and_then(|id| self.series.get(&id));
            of_series.copied().unwrap_or_default()
        };
        let lacks: Vec<Lacks> = (0..series.distinct()).map(lacks).collect();
        if lacks.iter().all(|lacks| *lacks == Lacks::default()) {
            return Ok(());
        }
        for row in 0..rows.len() {
            let lacks = lacks[series.codes.at(row) as usize];
            self.unaccounted |= lacks.account;
            if lacks.times {
                let value = values.number(values.codes.at(row) as usize).unwrap_or_default();
                let count = rows.counts().map_or(1, |counts| counts.of(row));
                self.spread = self.spread.saturating_add(value.saturating_mul(i64::from(count)));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        0
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.unaccounted |= other.unaccounted;
        self.spread = self.spread.saturating_add(other.spread);
        Ok(())
    }
}

/// Looks at the selected samples.
pub(crate) async fn senders(snapshot: &Snapshot, question: &Question) -> Result<Senders, QueryError> {
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
    let new = Senders {
        series: Arc::new(series),
        ..Senders::default()
    };
    if new.series.is_empty() {
        return Ok(new);
    }
    let selected = scope(snapshot, question).await?;
    let (found, _held) = scan(snapshot, question, &selected, || new.clone()).await?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::coded::{CodedColumn, Column};

    #[test]
    fn what_a_sample_lacks_is_what_its_series_does() {
        let (account, times) = (true, true);
        let lacks = [
            (1, Lacks { account, times: false }),
            (2, Lacks { account: false, times }),
            (3, Lacks { account, times }),
        ];
        let known: Arc<HashMap<_, _, MixState>> = Arc::new(lacks.into_iter().collect());
        for (series, unaccounted, spread) in [
            (&[8, 9][..], false, 0),
            (&[8, 1], true, 0),
            (&[2, 2, 8], false, 10),
            (&[3], true, 5),
        ] {
            let column = |numbers: Vec<i64>| Column::Codes(CodedColumn::of_numbers(numbers.into_iter().map(Some)));
            let rows = Rows::new(vec![column(series.to_vec()), column(vec![5; series.len()])], None);
            let mut senders = Senders {
                series: known.clone(),
                ..Senders::default()
            };
            senders.add(&rows).unwrap();
            assert_eq!(
                (senders.unaccounted, senders.spread),
                (unaccounted, spread),
                "{series:?}"
            );
        }
    }
}
