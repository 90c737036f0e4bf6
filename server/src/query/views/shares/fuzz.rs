//! Made-up partial counts: read as something that is written and read the same, or refused.

use crate::query::ask::time::Window;
use crate::query::count::group_counts::{GroupBy, GroupCounts, GroupStacks};
use crate::query::count::partial::{Partial, decode, encode};
use crate::query::count::stack_counts::StackCounts;
use crate::query::plan::steps::Steps;
use crate::query::views::heatmap::{Grid, HeatmapCounts};
use crate::query::views::timeline::Earliest;

const WINDOW: Window = Window {
    from_ns: 0,
    until_ns: 4_000_000,
};

/// The first byte says of what they are.
pub(crate) fn fuzz_partial(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let steps = Steps::of(WINDOW, 1_000_000);
    let groups = || GroupCounts::new("thread", GroupBy::Text, steps, 400);
    match kind % 5 {
        0 => all_hold(|| StackCounts::of(&[(steps, None)], 100), bytes),
        1 => all_hold(
            || StackCounts::of(&[(steps, None), (Steps::one(WINDOW), None)], 100),
            bytes,
        ),
        2 => all_hold(|| GroupStacks::new(groups(), 100), bytes),
        3 => all_hold(
            || {
                HeatmapCounts::new(Grid {
                    columns: steps,
                    rows: 7,
                })
            },
            bytes,
        ),
        _ => all_hold(|| Earliest::new(100, 0), bytes),
    }
}

fn all_hold<C: Partial + Clone>(empty: impl Fn() -> C, bytes: &[u8]) {
    let Ok(counted) = decode(empty(), bytes) else { return };
    let mut twice = counted.clone();
    // Both together may be more than is allowed.
    drop(twice.merge(counted.clone()));
    let written = encode(counted).unwrap_or_default();
    match decode(empty(), &written) {
        Ok(again) => {
            let written_again = encode(again).unwrap_or_default();
            assert_eq!(written, written_again, "counts are not what they were written as");
        }
        Err(error) => panic!("what was read cannot be read again: {error}"),
    }
}
