//! Counts by stack and step equal to what rows say one by one.

use super::*;
use crate::column::coded::{CodedColumn, Column};
use crate::column::list::CodeArray;
use crate::query::count::partial::{decode, decode_within, encode};
use crate::query::count::periods::Periods;
use crate::query::count::scan::Counts;
use crate::query::count::weighted::InSteps;
use std::collections::BTreeMap;

const WINDOW: Window = Window {
    from_ns: 0,
    until_ns: 1_000_000_000,
};

/// Stacks with their times. Samples of the second half have the second period.
fn rows(stacks: &[(i64, i64)], periods: [i64; 2]) -> Rows {
    let values = stacks
        .iter()
        .map(|(_, ts)| Some(periods[usize::from(*ts >= 500_000_000)]));
    let columns = vec![
        Column::Codes(CodedColumn::of_numbers(stacks.iter().map(|(id, _)| Some(*id)))),
        Column::Codes(CodedColumn::of_numbers(values)),
        Column::Numbers(stacks.iter().map(|(_, ts)| *ts).collect()),
    ];
    Rows::new(columns, None)
}

fn counted(parts: &[Vec<(i64, i64)>], periods: [i64; 2]) -> StackCounts {
    let mut counts = StackCounts::new(Steps::parts(WINDOW, 4), None, 1_000);
    for part in parts {
        counts.add(&rows(part, periods)).unwrap();
    }
    counts
}

/// Counts in each step of the stack that is so many behind the first.
fn in_steps(counts: &WeightedCounts, at: usize) -> Vec<u64> {
    let slot = counts.slots[at] as usize;
    match &counts.in_steps {
        InSteps::Samples(cells, steps) => cells.of(slot)[steps.clone()]
            .iter()
            .map(|count| u64::from(*count))
            .collect(),
        InSteps::Values(cells) => cells.of(slot).to_vec(),
    }
}

/// Counts of each stack by step.
fn content(counts: &StackCounts) -> (BTreeMap<i64, Vec<u64>>, Periods) {
    let counts = counts.clone().weighed(&Unit::time());
    let cells = counts
        .ids
        .iter()
        .enumerate()
        .map(|(slot, id)| (*id, in_steps(&counts, slot)));
    (cells.collect(), counts.periods)
}

#[test]
fn merging_is_associative_and_commutative_and_loses_nothing() {
    let mut state = 0x5eed_u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for turn in 0..50 {
        let periods = if turn % 2 == 0 { [50, 50] } else { [10, 40] };
        let parts: Vec<Vec<(i64, i64)>> = (0..3)
            .map(|_| {
                (0..next(40))
                    .map(|_| (next(7) as i64 - 3, next(1_000_000_000) as i64))
                    .collect()
            })
            .collect();
        let whole = counted(&parts, periods);
        let [a, b, c] = [0, 1, 2].map(|i| counted(&parts[i..=i], periods));
        let merged = |x: &StackCounts, y: &StackCounts| {
            let mut x = x.clone();
            x.merge(y.clone()).unwrap();
            x
        };
        let left = merged(&merged(&a, &b), &c);
        let right = merged(&a, &merged(&b, &c));
        let turned = merged(&merged(&c, &a), &b);
        assert_eq!(content(&left), content(&whole));
        assert_eq!(content(&right), content(&whole));
        assert_eq!(content(&turned), content(&whole));
    }
}

#[test]
fn both_sides_count_what_each_alone_does() {
    const MINUTE: i64 = 60_000_000_000;
    let side = |from: i64, until: i64| Window {
        from_ns: from * MINUTE,
        until_ns: until * MINUTE,
    };
    let stacks: Vec<(i64, i64)> = (0..6_000).map(|n| (n % 11, n * 7 % 60 * MINUTE)).collect();
    let mut by_stack = stacks.clone();
    by_stack.sort_unstable();
    type Coded = fn(Vec<u32>) -> CodeArray;
    let words: Coded = CodeArray::Words;
    let bytes: Coded = |codes| CodeArray::Bytes(codes.into_iter().map(|code| code as u8).collect());
    // `coded`: how times and counts are, where times are not numbers.
    let rows = |stacks: &[(i64, i64)], coded: Option<Coded>| {
        let numbers = |numbers: Vec<i64>| CodedColumn::of_numbers(numbers.into_iter().map(Some));
        let times = stacks.iter().map(|(_, ts_ns)| *ts_ns).collect();
        let times = match coded {
            Some(coded) => {
                let CodedColumn { codes, values } = numbers(times);
                let codes = coded(codes.into_words());
                Column::Codes(CodedColumn { codes, values })
            }
            None => Column::Numbers(times),
        };
        let ids = numbers(stacks.iter().map(|(id, _)| *id).collect());
        let values = numbers(vec![50; stacks.len()]);
        let counts = stacks.iter().map(|(id, ts_ns)| ((id + ts_ns / MINUTE) % 2) as u32);
        Rows::new(
            vec![Column::Codes(ids), Column::Codes(values), times],
            Some(Counts {
                codes: coded.unwrap_or(words)(counts.collect()),
                of_code: vec![3, 50],
            }),
        )
    };
    // Side by side; one within the other, without which it is taken; and both in part.
    for (windows, except) in [
        ([side(0, 30), side(30, 60)], None),
        ([side(10, 30), side(0, 50)], Some(side(10, 30))),
        ([side(0, 40), side(20, 60)], None),
    ] {
        let sides = [(windows[0], None), (windows[1], except)].map(|(w, except)| (Steps::parts(w, 20), except));
        // In any order, and as roll-ups stand: by stack, in two row groups that have one stack in common.
        for (stacks, coded) in [
            (&stacks, None),
            (&stacks, Some(bytes)),
            (&by_stack, Some(words)),
            (&by_stack, Some(bytes)),
        ] {
            let mut two = StackCounts::of_two(sides, 1_000);
            for part in [&stacks[..2_000], &stacks[2_000..]] {
                two.add(&rows(part, coded)).unwrap();
            }
            let [a, b] = two.weighed_sides([&Unit::time(), &Unit::time()]);
            for (both, (steps, except)) in [a, b].into_iter().zip(sides) {
                let mut alone = StackCounts::new(steps, except, 1_000);
                alone.add(&rows(stacks, None)).unwrap();
                let alone = alone.weighed(&Unit::time());
                assert!(alone.samples > 0);
                assert_eq!((&both.ids, &both.totals), (&alone.ids, &alone.totals));
                assert_eq!(both.periods, alone.periods);
                for at in 0..alone.ids.len() {
                    assert_eq!(in_steps(&both, at), in_steps(&alone, at));
                }
            }
        }
    }
}

#[test]
fn samples_of_different_periods_count_by_the_time_that_they_stand_for() {
    let samples = vec![(1, 0), (1, 1), (2, 2), (1, 600_000_000), (3, 700_000_000)];
    let counts = counted(&[samples], [10, 40]).weighed(&Unit::time());
    let of = |id| counts.totals[counts.ids.iter().position(|other| *other == id).unwrap()];
    assert_eq!((of(1), of(2), of(3), counts.samples), (2 + 4, 1, 4, 11));
    assert_eq!((counts.counted.one, counts.periods.samples), (10, 5));
}

#[test]
fn more_stacks_than_allowed_is_an_error_and_not_an_answer() {
    let mut counts = StackCounts::new(Steps::one(WINDOW), None, 2);
    counts.add(&rows(&[(1, 0), (2, 0), (1, 5)], [50; 2])).unwrap();
    let error = counts.add(&rows(&[(3, 0)], [50; 2])).unwrap_err();
    assert!(error.to_string().contains("more than 2 distinct stacks"));
}

#[test]
fn what_several_have_counted_has_the_same_limit() {
    let part = |stacks: &[(i64, i64)]| {
        let mut counts = StackCounts::new(Steps::one(WINDOW), None, 3);
        counts.add(&rows(stacks, [50; 2])).unwrap();
        counts
    };
    let mut whole = part(&[(1, 0), (2, 0)]);
    whole.merge(part(&[(2, 0), (3, 0)])).unwrap();
    let counted = whole.clone().weighed(&Unit::time());
    assert_eq!(
        (&counted.ids[..], &counted.totals[..]),
        (&[1, 2, 3][..], &[1, 2, 1][..])
    );
    let error = whole.merge(part(&[(4, 0)])).unwrap_err();
    assert!(error.to_string().contains("more than 3 distinct stacks"));
}

#[test]
fn what_is_sent_to_another_server_is_merged_as_what_was_counted_here() {
    let mut state = 0xfeed_u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let empty = || StackCounts::new(Steps::parts(WINDOW, 4), None, 1_000);
    for turn in 0..50 {
        let periods = if turn % 2 == 0 { [50, 50] } else { [10, 40] };
        let mut part = || -> Vec<(i64, i64)> {
            let stack = |next: &mut dyn FnMut(u64) -> u64| (next(9) as i64).wrapping_mul(i64::MAX / 5) - 3;
            (0..next(60))
                .map(|_| (stack(&mut next), next(1_000_000_000) as i64))
                .collect()
        };
        let parts = [part(), part(), part()];
        let [one, two, three] = [0, 1, 2].map(|i| counted(&parts[i..=i], periods));
        // Of two threads, whose stacks are partly the same.
        let mut other = two;
        other.merge(three).unwrap();
        let sent = encode(other.clone()).unwrap();
        let back = decode(empty(), &sent).unwrap();
        assert_eq!(content(&back), content(&other), "turn {turn}");
        let (mut here, mut merged) = (one.clone(), one);
        here.merge(other).unwrap();
        merged.merge(back).unwrap();
        assert_eq!(content(&merged), content(&here), "turn {turn}");
        assert_eq!(content(&merged), content(&counted(&parts, periods)), "turn {turn}");
        for cut in 0..sent.len() {
            assert!(decode(empty(), &sent[..cut]).is_err(), "{cut} of {} bytes", sent.len());
        }
    }
}

#[test]
fn more_stacks_than_are_allowed_are_refused_before_there_is_room_for_them() {
    let many: Vec<(i64, i64)> = (0..1_000).map(|id| (id, 1)).collect();
    let sent = encode(counted(&[many], [50, 50])).unwrap();
    let few = StackCounts::new(Steps::parts(WINDOW, 4), None, 999);
    let refused = decode(few, &sent).unwrap_err();
    assert!(refused.to_string().contains("1000 stacks, at most 999"), "{refused}");
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let many: Vec<(i64, i64)> = (0..1_000).map(|id| (id, 1)).collect();
    let empty = || StackCounts::new(Steps::parts(WINDOW, 4), None, 1_000);
    for (periods, of_cell) in [([50, 50], 4), ([10, 40], 12)] {
        let mut stacks = many.clone();
        stacks.push((0, 999_999_999));
        let sent = encode(counted(&[stacks], periods)).unwrap();
        let mut asked = 0;
        let mut room = |bytes: usize| {
            asked = bytes;
            bytes < 10_000
        };
        let refused = decode_within(empty(), &sent, &mut room).unwrap_err();
        assert!(refused.to_string().contains("no memory"), "{refused}");
        assert!(asked >= 1_000 * 4 * of_cell, "{asked} bytes");
        let read = decode_within(empty(), &sent, &mut |bytes: usize| bytes == asked).unwrap();
        assert!(read.bytes() >= asked);
    }
}

#[test]
fn what_many_have_counted_takes_no_more_memory_than_what_a_few_have() {
    for periods in [[50, 50], [10, 40]] {
        let part = |number: i64| -> Vec<(i64, i64)> {
            let stack = |at: i64| (at * 7 + number % 3).wrapping_mul(i64::MAX / 999);
            (0..300)
                .map(|at| (stack(at), at * number * 1_000_003 % 1_000_000_000))
                .collect()
        };
        let parts: Vec<Vec<(i64, i64)>> = (1..=40).map(part).collect();
        let mut whole = counted(&parts[..1], periods);
        let one = counted(&parts, periods).bytes();
        for number in 1..parts.len() {
            whole.merge(counted(&parts[number..=number], periods)).unwrap();
            whole.pack();
            assert_eq!(
                content(&whole),
                content(&counted(&parts[..=number], periods)),
                "{number}"
            );
        }
        assert!(whole.bytes() < 5 * one, "{} bytes, as one it has {one}", whole.bytes());
        // Sent on, it is what it was.
        let empty = StackCounts::new(Steps::parts(WINDOW, 4), None, 1_000);
        let back = decode(empty, &encode(whole.clone()).unwrap()).unwrap();
        assert_eq!(content(&back), content(&whole));
    }
}
