//! When within each second samples were taken: columns of time against the offset in the column, as B. Gregg and M.
//! Spier's FlameScope (2018) draws it. Stripes, gaps and single bursts show that no mean over a window does.

use crate::column::coded::Projection;
use crate::query::ask::question::Question;
use crate::query::count::adders::period_of_code;
use crate::query::count::observed_time::ObservedTime;
use crate::query::count::partial::Partial;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::count::periods::{Counted, Periods};
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::limits::error::QueryError;
use crate::query::plan::columns::{TIMES, codes};
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::plan::shares::counting::Counting;
use crate::query::plan::steps::Steps;
use crate::query::views::engine::Engine;
use crate::query::views::selected::senders::observe;
use crate::query::views::selected::spread::count_spread;
use crate::store::Snapshot;

/// Rows that an answer has when the question does not say: of columns of a second, 20 ms each.
pub const USUAL_ROWS: usize = 50;
/// Most cells of an answer.
const MAX_CELLS: usize = 1_000_000;

/// Columns of time and rows of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Columns; the last one may reach beyond the window.
    pub columns: Steps,
    /// Rows of a column, equal parts of its time.
    pub rows: usize,
}

impl Grid {
    /// The cell of a time of the window: column by column, the earliest offset first.
    fn cell(&self, ts_ns: i64) -> usize {
        let column = self.columns.index(ts_ns);
        let offset_ns = ts_ns - self.columns.window.from_ns - column as i64 * self.columns.step_ns;
        let row = i128::from(offset_ns) * self.rows as i128 / i128::from(self.columns.step_ns);
        column * self.rows + (row as usize).min(self.rows - 1)
    }
}

/// The answer.
#[derive(Debug)]
pub struct Heatmap {
    /// The question that was answered.
    pub question: Question,
    /// Columns and rows.
    pub grid: Grid,
    /// Counts of each cell.
    pub cells: Vec<u64>,
    /// The sum of all cells.
    pub samples: u64,
    /// What a count is.
    pub counted: Counted,
    /// Observed time, and what is known of gaps and losses.
    pub exposure: ObservedTime,
}

#[derive(Debug, Clone)]
pub(crate) struct HeatmapCounts {
    grid: Grid,
    samples: Vec<u32>,
    values_ns: Vec<i64>,
    periods: Periods,
}

impl HeatmapCounts {
    /// Of nothing yet.
    pub(crate) fn new(grid: Grid) -> HeatmapCounts {
        let cells = grid.columns.count.saturating_mul(grid.rows).min(MAX_CELLS);
        HeatmapCounts {
            grid,
            samples: vec![0; cells],
            values_ns: vec![0; cells],
            periods: Periods::default(),
        }
    }
}

/// Where all samples have the same value, their number says it all.
impl Partial for HeatmapCounts {
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError> {
        self.periods.write(to);
        to.cells(self.samples.iter().map(|samples| u64::from(*samples)));
        if self.periods.differ() {
            to.cells(self.values_ns.iter().map(|value| *value as u64));
        }
        Ok(())
    }

    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed> {
        self.periods = Periods::read(from)?;
        let (samples, values_ns) = (&mut self.samples, &mut self.values_ns);
        let cells = samples.len();
        from.cells(cells, |cell, count| {
            samples[cell] = u32::try_from(count).unwrap_or(u32::MAX)
        })?;
        if self.periods.differ() {
            return from.cells(cells, |cell, value| values_ns[cell] = value as i64);
        }
        let only = self.periods.only().unwrap_or_default();
        for (value_ns, samples) in values_ns.iter_mut().zip(samples) {
            *value_ns = only.saturating_mul(i64::from(*samples));
        }
        Ok(())
    }
}

impl Accumulator for HeatmapCounts {
    fn columns(&self) -> Vec<Projection> {
        vec![codes("value"), TIMES]
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let (values, times) = (rows.codes(0)?, rows.numbers(1)?);
        self.periods.merge(&Periods::of_codes(values, None));
        let periods: Vec<i64> = period_of_code(values).collect();
        for (ts_ns, period_ns) in times.iter().zip(values.codes.map(&periods)) {
            let cell = self.grid.cell(*ts_ns);
            self.samples[cell] = self.samples[cell].saturating_add(1);
            self.values_ns[cell] = self.values_ns[cell].saturating_add(period_ns);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<u32>() + self.values_ns.capacity() * size_of::<i64>()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.periods.merge(&other.periods);
        for (sum, more) in self.samples.iter_mut().zip(other.samples) {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in self.values_ns.iter_mut().zip(other.values_ns) {
            *sum = sum.saturating_add(more);
        }
        Ok(())
    }
}

/// Answers with the counts of all cells. The grid has at most a million cells.
///
/// # Errors
/// As every query; a grid with more cells is a bad parameter.
pub async fn heatmap(
    engine: &Engine,
    snapshot: &Snapshot,
    question: Question,
    grid: Grid,
) -> Result<Heatmap, QueryError> {
    let count = grid.columns.count.saturating_mul(grid.rows);
    if count > MAX_CELLS || grid.rows == 0 {
        return Err(QueryError::bad_parameter(
            format!(
                "{} columns of {} rows are {count} cells, at most {MAX_CELLS} are allowed",
                grid.columns.count, grid.rows
            ),
            "give a longer `step`, fewer `rows`, or a shorter window",
        ));
    }
    let selected = scope(snapshot, &question).await?;
    let kind = engine.kind(snapshot, &question).await?;
    let counting = Counting::Heatmap {
        columns: grid.columns,
        rows: grid.rows,
    };
    let new = || HeatmapCounts::new(grid);
    let one = Steps::one(question.window);
    let ((cells, _held), exposure) = tokio::try_join!(
        count_spread(&engine.spread, snapshot, &question, &selected, counting, new),
        observe(snapshot, &question, one, kind.marked)
    )?;
    let exposure = exposure.with_samples(cells.periods.samples, one);
    let counted = Counted::of(&cells.periods, &kind.unit);
    let mut weigh = counted.counting();
    let counts: Vec<u64> = cells
        .samples
        .iter()
        .zip(&cells.values_ns)
        .map(|(samples, value)| {
            if counted.is_number() {
                u64::from(*samples)
            } else {
                weigh(*value)
            }
        })
        .collect();
    Ok(Heatmap {
        question,
        grid,
        samples: counts.iter().sum(),
        cells: counts,
        counted,
        exposure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::coded::{CodedColumn, Column};
    use crate::query::ask::time::Window;
    use crate::query::count::partial::{decode, encode};

    #[test]
    fn what_is_sent_is_what_was_counted() {
        let window = Window {
            from_ns: 0,
            until_ns: 10_000,
        };
        let grid = Grid {
            columns: Steps::of(window, 1_000),
            rows: 7,
        };
        for values in [[50, 50], [50, 70]] {
            let mut counts = HeatmapCounts::new(grid);
            let times: Vec<i64> = (0..500).map(|at| at * at % 10_000).collect();
            let of_rows = (0..times.len()).map(|row| Some(values[row % 2]));
            let values = Column::Codes(CodedColumn::of_numbers(of_rows));
            counts
                .add(&Rows::new(vec![values, Column::Numbers(times)], None))
                .unwrap();
            let sent = encode(counts.clone()).unwrap();
            let back = decode(HeatmapCounts::new(grid), &sent).unwrap();
            assert_eq!((back.samples, back.values_ns), (counts.samples, counts.values_ns));
            assert_eq!(back.periods, counts.periods);
            for cut in 0..sent.len() {
                assert!(decode(HeatmapCounts::new(grid), &sent[..cut]).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn a_time_is_in_the_column_and_row_of_its_offset() {
        let window = Window {
            from_ns: 1_000,
            until_ns: 4_500,
        };
        let grid = Grid {
            columns: Steps::of(window, 1_000),
            rows: 4,
        };
        assert_eq!(grid.columns.count, 4);
        let cells = [1_000, 1_249, 1_250, 1_999, 2_000, 3_999, 4_000, 4_499].map(|ts_ns| grid.cell(ts_ns));
        assert_eq!(cells, [0, 0, 1, 3, 4, 11, 12, 13]);
    }
}
