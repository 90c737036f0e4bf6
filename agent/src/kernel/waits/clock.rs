//! Tests of the clock by which waits become samples, and of the buckets of their lengths (bpf/waits.h), with waits that
//! are made up.

use crate::frames::bucket_begins_ns;
use crate::kernel::skeletons::waits::types::{so_passed, so_wait};
use crate::random::Random;

unsafe extern "C" {
    fn so_set_period_on_host(wait: *mut so_wait, period_ns: u64);
    fn so_settle_on_host(wait: *mut so_wait, now_ns: u64, has_come_back: i32, passed: *mut so_passed);
    fn so_enter_turn_on_host(wait: *mut so_wait, switches: u64, turn_ns: u64, state: u32, is_away: i32);
    fn so_queue_bucket_on_host(ns: u64) -> u32;
}

const MS: u64 = 1_000_000;
const PERIOD: u64 = 50 * MS;
const INTERRUPTIBLE: u32 = 1;

/// A thread that has not waited yet.
fn clock(random: &mut Random) -> so_wait {
    let mut wait = so_wait {
        random: random.between(1.0, 4e9) as u32,
        ..so_wait::default()
    };
    // SAFETY: `wait` is valid for the call.
    unsafe { so_set_period_on_host(&raw mut wait, PERIOD) };
    wait
}

/// Waits from a time on until it is woken, where it is, and until it has come back. Points passed, asleep and runnable.
fn wait(clock: &mut so_wait, state: u32, began: u64, woken: Option<u64>, until: u64) -> (u64, u64) {
    (clock.state, clock.began_ns, clock.from_ns) = (state, began, began);
    if let Some(woken) = woken {
        clock.wake_ns = woken;
    }
    settle(clock, until, true)
}

fn settle(clock: &mut so_wait, now: u64, has_come_back: bool) -> (u64, u64) {
    let passed = passed(clock, now, has_come_back);
    (passed.off_cpu, passed.run_queue)
}

fn passed(clock: &mut so_wait, now: u64, has_come_back: bool) -> so_passed {
    let mut passed = so_passed::default();
    // SAFETY: both are valid for the call.
    unsafe {
        so_settle_on_host(
            std::ptr::from_mut(clock),
            now,
            i32::from(has_come_back),
            &raw mut passed,
        )
    };
    clock.from_ns = now;
    passed
}

#[test]
fn all_that_a_thread_waits_is_told_to_a_period_and_its_parts_in_the_mean() {
    let mut random = Random::seeded(3);
    for (asleep, runnable) in [
        (MS, MS / 10),
        (49 * MS, MS),
        (50 * MS, 0),
        (1234 * MS, 17 * MS),
        (3 * MS, 47 * MS),
    ] {
        let (mut all, mut of_runnable, rounds) = (0, 0, 40_000 * MS / (asleep + runnable) + 1);
        let threads = 50;
        for _ in 0..threads {
            let (mut clock, mut now, mut told) = (clock(&mut random), MS, 0);
            for _ in 0..rounds {
                let (off, run) = wait(
                    &mut clock,
                    INTERRUPTIBLE,
                    now,
                    Some(now + asleep),
                    now + asleep + runnable,
                );
                now += asleep + runnable + 7 * MS;
                told += off + run;
                of_runnable += run;
            }
            let waited = rounds * (asleep + runnable);
            assert!((told * PERIOD).abs_diff(waited) <= PERIOD, "{told} points in {waited}");
            all += told;
        }
        // Programs whose waits are as long as a period are where points in step with them would be wrong most.
        let (share, expected) = (
            of_runnable as f64 / all as f64,
            runnable as f64 / (asleep + runnable) as f64,
        );
        let deviation = (expected * (1.0 - expected) / all as f64).sqrt();
        assert!(
            (share - expected).abs() <= 4.0 * deviation,
            "{share} of {expected}, {all} points"
        );
    }
}

#[test]
fn a_wait_that_is_told_in_parts_is_told_once() {
    let mut random = Random::seeded(5);
    for _ in 0..200 {
        let mut clock = clock(&mut random);
        let (mut off, mut run) = (0, 0);
        (clock.state, clock.began_ns, clock.from_ns) = (INTERRUPTIBLE, MS, MS);
        for second in 1..=10 {
            let part = settle(&mut clock, second * 1000 * MS, false);
            (off, run) = (off + part.0, run + part.1);
        }
        clock.wake_ns = 10_500 * MS;
        let part = settle(&mut clock, 11_000 * MS, true);
        (off, run) = (off + part.0, run + part.1);
        assert!(off.abs_diff(210) <= 1 && run.abs_diff(10) <= 1, "{off}, {run}");
    }
}

#[test]
fn a_wait_has_its_own_length_whatever_was_told_of_it_before() {
    let mut clock = clock(&mut Random::seeded(7));
    (clock.state, clock.began_ns, clock.from_ns) = (INTERRUPTIBLE, MS, MS);
    let lengths = |passed: so_passed| (passed.asleep_ns, passed.queued_ns);
    for second in 1..=10 {
        let so_far = passed(&mut clock, second * 1000 * MS, false);
        assert_eq!(lengths(so_far), ((second * 1000 - 1) * MS, 0));
    }
    clock.wake_ns = 10_500 * MS;
    // Woken, and looked at before it has a CPU.
    let runnable = passed(&mut clock, 10_600 * MS, false);
    assert_eq!(lengths(runnable), (10_499 * MS, 100 * MS));
    let back = passed(&mut clock, 11_000 * MS, true);
    assert_eq!(lengths(back), (10_499 * MS, 500 * MS));
    for state in [0, INTERRUPTIBLE] {
        (clock.state, clock.began_ns, clock.from_ns) = (state, 12_000 * MS, 12_000 * MS);
        assert_eq!(lengths(passed(&mut clock, 12_099 * MS, true)), (0, 99 * MS), "{state}");
    }
}

#[test]
fn a_wait_that_goes_on_over_turns_keeps_when_it_began() {
    let mut random = Random::seeded(13);
    let enter = |clock: &mut so_wait, switches: u64, turn_ns: u64, state: u32| {
        // SAFETY: `clock` is valid for the call.
        unsafe { so_enter_turn_on_host(std::ptr::from_mut(clock), switches, turn_ns, state, 1) }
    };
    for woken in [Some(450 * MS), None] {
        let mut clock = clock(&mut random);
        (clock.state, clock.began_ns, clock.from_ns) = (INTERRUPTIBLE, MS, MS);
        clock.switches = 7;
        let (off, _) = settle(&mut clock, 100 * MS, false);
        // A turn in which nothing is observed, and one that is. What it was about is known from before.
        enter(&mut clock, 7, 300 * MS, 0);
        assert_eq!(
            (clock.state, clock.began_ns, clock.from_ns),
            (INTERRUPTIBLE, MS, 300 * MS)
        );
        clock.wake_ns = woken.unwrap_or(0);
        let rest = passed(&mut clock, 460 * MS, true);
        // Without a wake-up in the turn it was woken before that began.
        let since = woken.unwrap_or(300 * MS);
        assert_eq!((rest.asleep_ns, rest.queued_ns), (since - MS, 460 * MS - since));
        let told = (off + rest.off_cpu + rest.run_queue) * PERIOD;
        assert!(told.abs_diff(99 * MS + 160 * MS) <= PERIOD, "{told}");
        // Another wait, of which this turn's begin is all that is known.
        enter(&mut clock, 8, 600 * MS, 0);
        assert_eq!((clock.state, clock.began_ns, clock.told_ns), (0, 600 * MS, 0));
    }
    let mut clock = clock(&mut random);
    enter(&mut clock, 0, 5 * MS, INTERRUPTIBLE);
    assert_eq!(
        (clock.state, clock.began_ns),
        (INTERRUPTIBLE, 5 * MS),
        "seen for the first time"
    );
}

#[test]
fn what_is_not_woken_was_runnable() {
    let mut random = Random::seeded(9);
    let preempted = wait(&mut clock(&mut random), 0, MS, None, 1001 * MS);
    let woken_while_it_left = wait(&mut clock(&mut random), INTERRUPTIBLE, MS, None, 1001 * MS);
    for (off, run) in [preempted, woken_while_it_left] {
        assert!(off == 0 && run.abs_diff(20) <= 1, "{off}, {run}");
    }
}

#[test]
fn a_wait_is_in_the_bucket_whose_lengths_have_its_own() {
    // SAFETY: it takes a number and gives one.
    let bucket = |ns: u64| unsafe { so_queue_bucket_on_host(ns) };
    for number in 0..=u8::MAX >> 1 {
        let begin = bucket_begins_ns(number);
        assert_eq!(bucket(begin), u32::from(number), "{begin}");
        assert_eq!(bucket(begin + 1023), u32::from(number), "{begin}");
        assert!(number == 0 || bucket(begin - 1) == u32::from(number) - 1, "{begin}");
    }
    assert_eq!((bucket(0), bucket(1 << 60), bucket(u64::MAX >> 1)), (0, 127, 127));
}
