//! What the senders of selected samples did not give: an account of what they observed, and time stamps.
//!
//! The table `series` tells it. Only where the table `types` says that there are such senders is it looked which of
//! the selected samples are theirs: of agents alone nothing is read for it.

use crate::column::coded::Projection;
use crate::hash::MixState;
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::limits::error::QueryError;
use crate::query::plan::columns::{PERIODS, codes};
use crate::query::plan::resolution::TimeResolution;
use std::collections::HashMap;
use std::sync::Arc;

/// What is not given of the samples of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lacks {
    pub(crate) account: bool,
    pub(crate) times: bool,
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

impl Senders {
    /// Looks for samples of these series.
    pub(crate) fn of(series: HashMap<i64, Lacks, MixState>) -> Senders {
        Senders {
            series: Arc::new(series),
            ..Senders::default()
        }
    }
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
