//! Which cell each row counts in: of one window or of both sides of a difference, each in steps of time. Pure.

use crate::column::coded::CodedColumn;
use crate::query::ask::time::Window;
use crate::query::count::scan::Rows;
use crate::query::limits::error::QueryError;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::steps::{StepCursor, Steps};
use std::ops::Range;

/// A window in steps, and a time of it that does not count.
pub(crate) type CountedWindow = (Steps, Option<Window>);

#[derive(Debug, Clone)]
struct Part {
    steps: Steps,
    except: Option<Window>,
    /// Where its steps begin among the cells of a stack.
    first: usize,
}

/// The windows whose samples are counted in the same scan.
#[derive(Debug, Clone)]
pub(crate) struct CellPlan {
    parts: Vec<Part>,
    /// The cell of a row depends on its time.
    pub(crate) timed: bool,
}

impl CellPlan {
    pub(crate) fn new(windows: &[CountedWindow], timed: bool) -> CellPlan {
        let mut first = 0;
        let parts = windows.iter().map(|(steps, except)| {
            let (steps, except) = (*steps, *except);
            let part = Part { steps, except, first };
            first += steps.count;
            part
        });
        let parts = parts.collect();
        CellPlan { parts, timed }
    }

    /// The cells of each window, one after the other.
    pub(crate) fn ranges(&self) -> Vec<Range<usize>> {
        let range = |part: &Part| part.first..part.first + part.steps.count;
        self.parts.iter().map(range).collect()
    }

    /// Calls with each row that counts and its cell; one that both sides count comes twice.
    pub(crate) fn each_cell(&self, rows: &Rows, mut each: impl FnMut(usize, usize)) -> Result<(), QueryError> {
        let times = self.timed.then(|| rows.times(2)).transpose()?;
        for part in &self.parts {
            let (first, outside) = (part.first, part.steps.count);
            StepCursor::new(part.steps, part.except).each(times, rows.len(), |row, step| {
                if step < outside {
                    each(row, first + step);
                }
            });
        }
        Ok(())
    }

    /// The cell of each of a roll-up's times, for those that do not count the one behind all; nothing where one
    /// counts on both sides.
    pub(crate) fn cell_of_codes(&self, times: &CodedColumn) -> Option<Vec<usize>> {
        let outside = self.parts.iter().map(|part| part.steps.count).sum();
        let mut cells = vec![outside; times.distinct()];
        for part in &self.parts {
            let steps = StepCursor::new(part.steps, part.except).of_codes(times);
            for (cell, step) in cells.iter_mut().zip(steps).filter(|(_, step)| *step < part.steps.count) {
                if std::mem::replace(cell, part.first + step) != outside {
                    return None;
                }
            }
        }
        Some(cells)
    }

    /// How exactly times must be known.
    pub(crate) fn when(&self) -> TimeResolution {
        if !self.timed {
            return TimeResolution::Window;
        }
        let grain_ns = |part: &Part| match part.steps.when() {
            TimeResolution::Window => i64::MAX,
            TimeResolution::Step { grain_ns } => grain_ns,
            TimeResolution::Exact => 0,
        };
        TimeResolution::Step {
            grain_ns: self.parts.iter().map(grain_ns).min().unwrap_or(0),
        }
    }

    /// Where windows begin and end.
    pub(crate) fn cuts(&self) -> Vec<i64> {
        let windows = self
            .parts
            .iter()
            .flat_map(|part| [Some(part.steps.window), part.except]);
        windows.flatten().flat_map(|w| [w.from_ns, w.until_ns]).collect()
    }
}
