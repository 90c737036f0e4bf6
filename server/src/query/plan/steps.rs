//! A window cut into steps of time, and the step of each row.

use crate::column::coded::CodedColumn;
use crate::column::list::{Code, with_codes};
use crate::column::runs::run_length;
use crate::query::ask::time::Window;
use crate::query::plan::resolution::{TimeResolution, Times};
use crate::store::{HOUR_NS, MINUTE_NS, TEN_SECONDS_NS};
use serde::{Deserialize, Serialize};

/// The steps of roll-ups, the longest first.
const GRAINS_NS: [i64; 3] = [HOUR_NS, MINUTE_NS, TEN_SECONDS_NS];

/// A window cut into steps, the last of which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// What is cut.
    pub window: Window,
    /// Nanoseconds; of steps that are cut by `grid` a mean.
    pub step_ns: i64,
    /// How many there are, the last one included.
    pub count: usize,
    /// Steps that begin and end where a roll-up's do are of so many of those, some of one more than others.
    grid: Option<Grid>,
}

/// Minutes or hours that lie whole in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Grid {
    first_ns: i64,
    grain_ns: i64,
    count: usize,
}

impl Grid {
    fn within(window: Window, grain_ns: i64) -> Grid {
        let first_ns = (window.from_ns + grain_ns - 1).div_euclid(grain_ns) * grain_ns;
        let count = ((window.until_ns - first_ns) / grain_ns).max(0) as usize;
        Grid {
            first_ns,
            grain_ns,
            count,
        }
    }
}

impl Steps {
    /// So many parts of about the same length, which begin and end with a minute or an hour where the window has as
    /// many of them: roll-ups can then tell them apart. Fewer where a part would be shorter than a millisecond.
    pub fn parts(window: Window, count: usize) -> Steps {
        let step_ns = (window.length_ns() / count as i64 + 1).max(1_000_000);
        // Parts are of stacks, which the roll-up of ten seconds does not have.
        let mut grids = GRAINS_NS[..2]
            .iter()
            .copied()
            .map(|grain_ns| Grid::within(window, grain_ns));
        match grids.find(|grid| grid.count >= count) {
            Some(grid) => Steps {
                window,
                step_ns,
                count,
                grid: Some(grid),
            },
            None => Steps::of(window, step_ns),
        }
    }

    /// So many parts that begin and end with an hour, or as many as there are whole hours; the first and the last are
    /// longer by what lies around them.
    pub(crate) fn hours(window: Window, count: usize) -> Steps {
        let grid = Grid::within(window, GRAINS_NS[0]);
        match grid.count {
            0 | 1 => Steps::one(window),
            hours => Steps {
                window,
                step_ns: GRAINS_NS[0],
                count: count.min(hours),
                grid: Some(grid),
            },
        }
    }

    /// Steps of a chart. Those of so many times ten seconds begin where such a step of the clock does, if at least
    /// two of them lie in the window: roll-ups can then tell them apart. The first and the last are longer by what
    /// lies around them.
    pub fn chart(window: Window, step_ns: i64) -> Steps {
        let grid = Grid::within(window, step_ns);
        if step_ns % GRAINS_NS[2] != 0 || grid.count < 2 {
            return Steps::of(window, step_ns);
        }
        Steps {
            window,
            step_ns,
            count: grid.count,
            grid: Some(grid),
        }
    }

    /// Steps of this length.
    pub fn of(window: Window, step_ns: i64) -> Steps {
        let count = (window.length_ns() as u64).div_ceil(step_ns as u64).max(1) as usize;
        Steps {
            window,
            step_ns,
            count,
            grid: None,
        }
    }

    /// The window as one step.
    pub fn one(window: Window) -> Steps {
        Steps {
            window,
            step_ns: window.length_ns(),
            count: 1,
            grid: None,
        }
    }

    /// Whether every time of the window has a step, of at most so many: of steps that another server wrote.
    pub(crate) fn are_sound(&self, most: usize) -> bool {
        let Window { from_ns, until_ns } = self.window;
        if from_ns < 0 || until_ns <= from_ns || until_ns > i64::MAX / 2 {
            return false;
        }
        let length_ns = until_ns - from_ns;
        // Where so many steps of so many nanoseconds end.
        let end = |first_ns: i64, count: usize, step_ns: i64| {
            let count = i64::try_from(count).ok()?;
            first_ns.checked_add(count.checked_mul(step_ns)?)
        };
        let fits_grid = self.grid.is_none_or(
            |Grid {
                 first_ns,
                 grain_ns,
                 count,
             }| {
                let ends = end(first_ns, count, grain_ns).is_some_and(|ns| ns <= until_ns);
                ends && first_ns >= from_ns && grain_ns > 0 && self.count <= count && count <= 1 << 40
            },
        );
        (1..=most).contains(&self.count)
            && (1..=i64::MAX / 8).contains(&self.step_ns)
            && end(0, self.count - 1, self.step_ns).is_some_and(|ns| ns <= length_ns.saturating_add(self.step_ns))
            && fits_grid
    }

    /// How well times have to be known.
    pub(crate) fn when(&self) -> TimeResolution {
        match self.count {
            1 => TimeResolution::Window,
            _ => TimeResolution::Step {
                grain_ns: self.grain_ns(),
            },
        }
    }

    /// The longest step of roll-ups that lies in one step wherever it begins; 0 where not even ten seconds do.
    fn grain_ns(&self) -> i64 {
        let fits = |grain: &i64| match self.grid {
            Some(grid) => grid.grain_ns % grain == 0,
            None => self.window.from_ns % grain == 0 && self.step_ns % grain == 0,
        };
        GRAINS_NS.into_iter().find(fits).unwrap_or(0)
    }

    /// The step in which a time of the window lies.
    pub fn index(&self, ts_ns: i64) -> usize {
        match self.grid {
            None => (((ts_ns - self.window.from_ns) / self.step_ns) as usize).min(self.count - 1),
            Some(grid) => {
                let unit = ((ts_ns - grid.first_ns).max(0) / grid.grain_ns) as usize;
                unit.min(grid.count - 1) * self.count / grid.count
            }
        }
    }

    /// Start (inclusive) and end (exclusive) of a step.
    pub fn bounds(&self, index: usize) -> (i64, i64) {
        let Window { from_ns, until_ns } = self.window;
        let Some(grid) = self.grid else {
            let from = from_ns + index as i64 * self.step_ns;
            return (from, (from + self.step_ns).min(until_ns));
        };
        let begin = |index: usize| grid.first_ns + (index * grid.count).div_ceil(self.count) as i64 * grid.grain_ns;
        let from = if index == 0 { from_ns } else { begin(index) };
        let until = if index + 1 == self.count {
            until_ns
        } else {
            begin(index + 1)
        };
        (from, until)
    }
}

/// Finds steps of times that mostly lie in the step of the one before, as those of one thread do: without a division
/// then. A time that does not count has the step behind the last.
#[derive(Debug)]
pub(crate) struct StepCursor {
    steps: Steps,
    except: Option<Window>,
    index: usize,
    /// Times of which the same is true: start (inclusive) and end (exclusive).
    bounds: (i64, i64),
}

impl StepCursor {
    /// `except`: a time of the window that does not count.
    pub(crate) fn new(steps: Steps, except: Option<Window>) -> StepCursor {
        StepCursor {
            steps,
            except,
            index: 0,
            bounds: (0, 0),
        }
    }

    /// The step, or as many as there are steps.
    #[inline]
    pub(crate) fn index(&mut self, ts_ns: i64) -> usize {
        if ts_ns < self.bounds.0 || ts_ns >= self.bounds.1 {
            self.seek(ts_ns);
        }
        self.index
    }

    fn seek(&mut self, ts_ns: i64) {
        let (Window { from_ns, until_ns }, outside) = (self.steps.window, self.steps.count);
        let (index, (mut from, mut until)) = if ts_ns < from_ns {
            (outside, (i64::MIN, from_ns))
        } else if ts_ns >= until_ns {
            (outside, (until_ns, i64::MAX))
        } else {
            let index = self.steps.index(ts_ns);
            (index, self.steps.bounds(index))
        };
        self.index = index;
        if let Some(except) = self.except {
            if ts_ns < except.from_ns {
                until = until.min(except.from_ns);
            } else if ts_ns >= except.until_ns {
                from = from.max(except.until_ns);
            } else {
                self.index = outside;
                (from, until) = (except.from_ns, except.until_ns);
            }
        }
        self.bounds = (from, until);
    }

    /// How many times from the first on lie in its step, and that step.
    pub(crate) fn run(&mut self, times: &[i64]) -> (usize, usize) {
        let Some(first) = times.first() else {
            return (0, self.index);
        };
        let index = self.index(*first);
        let (from, until) = self.bounds;
        (run_length(times, |ts_ns| ts_ns >= from && ts_ns < until), index)
    }

    /// Calls with each of so many rows and its step. Without times all rows are in the first.
    pub(crate) fn each(&mut self, times: Option<Times<'_>>, rows: usize, mut each: impl FnMut(usize, usize)) {
        match times {
            None => (0..rows).for_each(|row| each(row, 0)),
            Some(Times::Exact(times)) => {
                for (row, ts_ns) in times.iter().enumerate() {
                    each(row, self.index(*ts_ns));
                }
            }
            Some(Times::Coded(codes)) => {
                let steps = self.of_codes(codes);
                with_codes!(&codes.codes, codes => for (row, code) in codes.iter().enumerate() {
                    each(row, steps[code.index()]);
                });
            }
        }
    }

    /// The step of each code.
    pub(crate) fn of_codes(&mut self, codes: &CodedColumn) -> Vec<usize> {
        let step = |code| codes.number(code).map_or(self.steps.count, |ts_ns| self.index(ts_ns));
        (0..codes.distinct()).map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const MINUTE: i64 = 60 * S;

    fn window(from_ns: i64, until_ns: i64) -> Window {
        Window { from_ns, until_ns }
    }

    fn assert_covers(steps: Steps) {
        let mut at = steps.window.from_ns;
        for index in 0..steps.count {
            let (from, until) = steps.bounds(index);
            assert_eq!(from, at, "{steps:?}");
            assert!(until > from, "{steps:?}");
            assert_eq!((steps.index(from), steps.index(until - 1)), (index, index), "{steps:?}");
            at = until;
        }
        assert_eq!(at, steps.window.until_ns, "{steps:?}");
    }

    #[test]
    fn steps_that_are_made_here_are_sound_and_made_up_ones_are_not() {
        let day = 24 * 60 * MINUTE;
        for window in [
            window(0, 1),
            window(30 * S, 95 * MINUTE),
            window(90 * MINUTE + 7, 400 * day),
        ] {
            for steps in [
                Steps::one(window),
                Steps::parts(window, 8),
                Steps::hours(window, 8),
                Steps::chart(window, MINUTE),
                Steps::chart(window, 7 * S),
                Steps::of(window, 30 * day),
            ] {
                assert!(steps.are_sound(10_000_000), "{steps:?}");
            }
        }
        let sound = Steps::chart(window(0, 10 * MINUTE), MINUTE);
        assert!(sound.are_sound(10) && !sound.are_sound(9));
        let with_grid = |first_ns, grain_ns, count| {
            let grid = Some(Grid {
                first_ns,
                grain_ns,
                count,
            });
            Steps { grid, ..sound }
        };
        for made_up in [
            Steps { count: 0, ..sound },
            Steps { step_ns: 0, ..sound },
            Steps { step_ns: -1, ..sound },
            Steps {
                step_ns: i64::MAX,
                ..sound
            },
            Steps {
                window: window(5, 5),
                ..sound
            },
            Steps {
                window: window(0, i64::MAX),
                ..sound
            },
            with_grid(0, 0, 10),
            with_grid(i64::MAX, 1, 10),
            with_grid(0, i64::MAX, 10),
            with_grid(0, MINUTE, 9),
            with_grid(0, 1, usize::MAX),
        ] {
            assert!(!made_up.are_sound(10), "{made_up:?}");
        }
    }

    #[test]
    fn steps_cover_the_window_once() {
        for count in [1, 3, 7, 20] {
            let steps = Steps::parts(window(0, S), count);
            assert!(steps.count <= count);
            assert_covers(steps);
            for (from, until) in [
                (0, 30 * MINUTE),
                (7 * S, 31 * MINUTE + 5),
                (MINUTE - 1, 20 * MINUTE + 1),
                (-90 * MINUTE, 77 * 60 * MINUTE),
                (59 * MINUTE, 59 * MINUTE + 17 * 60 * MINUTE),
            ] {
                assert_covers(Steps::parts(window(from, until), count));
            }
        }
        assert_covers(Steps::of(window(30 * S, 10 * MINUTE), MINUTE));
        for (from, until) in [
            (0, 10 * MINUTE),
            (30 * S, 10 * MINUTE),
            (-7, 4 * MINUTE + 1),
            (30 * S, 80 * S),
        ] {
            assert_covers(Steps::chart(window(from, until), MINUTE));
            assert_covers(Steps::chart(window(from, until), 7 * S));
            assert_covers(Steps::chart(window(from, until), 20 * S));
        }
    }

    #[test]
    fn parts_of_long_windows_begin_with_minutes_or_hours() {
        let grain = |window, count| Steps::parts(window, count).grain_ns();
        assert_eq!(grain(window(0, 20 * MINUTE), 20), MINUTE);
        assert_eq!(grain(window(1, 20 * MINUTE), 20), 0, "nineteen whole minutes");
        assert_eq!(grain(window(7, 20 * 60 * MINUTE), 20), MINUTE);
        assert_eq!(grain(window(0, 20 * 60 * MINUTE), 20), 60 * MINUTE);
        let steps = Steps::parts(window(7, 31 * MINUTE), 20);
        for index in 0..19 {
            let (from, until) = steps.bounds(index);
            assert_eq!(until % MINUTE, 0);
            assert!(until - from >= MINUTE - 7 && until - from <= 2 * MINUTE + MINUTE);
        }
    }

    #[test]
    fn a_chart_has_a_grain_where_all_its_steps_begin_with_one() {
        let grain = |from, step| Steps::of(window(from, 100 * 60 * MINUTE), step).grain_ns();
        assert_eq!(grain(0, MINUTE), MINUTE);
        assert_eq!(grain(0, 120 * MINUTE), 60 * MINUTE);
        assert_eq!(grain(MINUTE, 60 * MINUTE), MINUTE);
        assert_eq!(grain(0, 30 * S), 10 * S);
        assert_eq!(grain(30 * S, MINUTE), 10 * S);
        assert_eq!(grain(0, 15 * S), 0);
        assert_eq!(grain(S, MINUTE), 0);
        let chart = |from, until, step| Steps::chart(window(from, until), step);
        let steps = chart(30 * S, 10 * MINUTE + 1, MINUTE);
        assert_eq!((steps.grain_ns(), steps.count), (MINUTE, 9));
        assert_eq!(
            (steps.bounds(0), steps.bounds(8)),
            ((30 * S, 2 * MINUTE), (9 * MINUTE, 10 * MINUTE + 1))
        );
        assert_eq!(chart(7, 600 * MINUTE, 120 * MINUTE).grain_ns(), 60 * MINUTE);
        assert_eq!(chart(0, 120 * MINUTE, MINUTE).bounds(7), (7 * MINUTE, 8 * MINUTE));
        // Two at least, or there is nothing to see.
        assert_eq!(chart(30 * S, 150 * S, MINUTE).count, 2);
        assert_eq!(chart(7, 10 * MINUTE, 30 * S).grain_ns(), 10 * S);
        assert_eq!(chart(7, 10 * MINUTE, 90 * S).grain_ns(), 10 * S);
        assert_eq!(chart(0, 10 * MINUTE, 15 * S).grain_ns(), 0);
    }

    #[test]
    fn a_cursor_finds_what_a_division_does_and_leaves_out_what_does_not_count() {
        let steps = Steps::parts(window(100, 10_100 + 25 * MINUTE), 20);
        let except = window(3 * MINUTE + 7, 4 * MINUTE);
        let mut cursor = StepCursor::new(steps, Some(except));
        let mut state = 0x5eed_u64;
        let mut times = Vec::new();
        for _ in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            times.push((state >> 20) as i64 % (30 * MINUTE) - MINUTE);
        }
        let step_of = |ts_ns: i64| match ts_ns {
            ts_ns if ts_ns < 100 || ts_ns >= steps.window.until_ns => steps.count,
            ts_ns if ts_ns >= except.from_ns && ts_ns < except.until_ns => steps.count,
            ts_ns => steps.index(ts_ns),
        };
        for ts_ns in &times {
            assert_eq!(cursor.index(*ts_ns), step_of(*ts_ns), "{ts_ns}");
        }
        times.sort_unstable();
        let mut rest = &times[..];
        while !rest.is_empty() {
            let (count, step) = cursor.run(rest);
            assert!(count > 0 && rest[..count].iter().all(|ts_ns| step_of(*ts_ns) == step));
            rest = &rest[count..];
        }
    }
}
