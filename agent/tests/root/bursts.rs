//! Closer looks on demand: the rate that was asked for, on the CPUs and of the processes that it was asked for, and
//! every time told once.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::kernel;
use stakeout_agent::ship::{BurstCondition, BurstDesk, BurstOrder, BurstReport, BurstState};

use crate::accounting::check_account;
use crate::program::{Program, Running};
use crate::recording::{Recorded, Recording, Seen, possible};

const USUAL_HZ: u32 = 20;
const BURST_HZ: u32 = 999;
/// What a sample of a burst stands for.
const BURST_NS: u64 = 1_000_000_000 / BURST_HZ as u64;

fn config(desk: &Arc<BurstDesk>) -> AgentConfig {
    AgentConfig {
        frequency_hz: USUAL_HZ,
        interval: Duration::from_secs(2),
        bursts: Some(Arc::clone(desk)),
        ..AgentConfig::default()
    }
}

fn order(id: &str, cpus: &str, process: &str, seconds: u32) -> BurstOrder {
    BurstOrder {
        id: id.into(),
        cpus: cpus.into(),
        service: String::new(),
        process: process.into(),
        conditions: Vec::new(),
        frequency_hz: BURST_HZ,
        seconds,
    }
}

fn wait_for(desk: &BurstDesk, id: &str, state: BurstState) -> BurstReport {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let mut reports = desk.reports().into_iter();
        if let Some(report) = reports.find(|report| report.id == id && report.state == state) {
            return report;
        }
        assert!(Instant::now() < deadline, "{id} is not {state:?}: {:?}", desk.reports());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn seconds_of(running: &Running) -> f64 {
    let time = running.cpu_time();
    time.user + time.system
}

/// Samples between two moments of the wall clock.
fn within(recorded: &Recorded, from_ns: u64, until_ns: u64) -> Vec<Seen<'_>> {
    let samples = recorded.samples();
    samples
        .filter(|seen| (from_ns..until_ns).contains(&seen.sample.ts_unix_ns))
        .collect()
}

fn sum(samples: &[Seen<'_>], tgid: u32) -> f64 {
    let of_tgid = samples.iter().filter(|seen| seen.process.tgid == tgid);
    of_tgid.map(|seen| seen.seconds()).sum()
}

/// So much may be chance: samples that stand for `period` seconds, of a program that had `seconds` of `wall`.
fn chance(period: f64, seconds: f64, wall: f64) -> f64 {
    let share = (seconds / wall).clamp(0.0, 1.0);
    // What is owed at the end, and that /proc counts hundredths of a second.
    4.0 * (period * wall * share * (1.0 - share)).sqrt() + 0.01 * wall + 0.04
}

#[test]
fn one_cpu_is_seen_at_the_rate_and_the_other_as_ever() {
    if !possible() {
        return;
    }
    let cpus = kernel::online_cpus().unwrap();
    let (near, other) = (cpus[0], cpus[cpus.len() - 1]);
    let program = Program::burn("burn-under-a-burst");
    let desk = Arc::new(BurstDesk::default());
    let recording = Recording::start(config(&desk));
    let looked_at = program.spawn(600_000, Some(near));
    let beside = (other != near).then(|| program.spawn(600_000, Some(other)));
    recording.wait_for("the program", |seen| seen.process.tgid == looked_at.tgid());
    // A window around all of three bursts: what is told must be what was used, whatever the rate was when.
    let (all_from, all_before) = (unix_ns(), seconds_of(&looked_at));
    let mut inner = None;
    for id in ["a", "b", "c"] {
        desk.order(order(id, &near.to_string(), "", 4));
        wait_for(&desk, id, BurstState::Running);
        // A window within the burst.
        std::thread::sleep(Duration::from_millis(200));
        let (from, before) = (unix_ns(), seconds_of(&looked_at));
        std::thread::sleep(Duration::from_millis(3_500));
        let (until, after) = (unix_ns(), seconds_of(&looked_at));
        let report = wait_for(&desk, id, BurstState::Ended);
        println!("{report:?}");
        assert!(report.samples > 0 && report.cpu_seconds > 0.0 && report.frequency_hz == BURST_HZ);
        inner = Some((from, until, after - before, report));
        std::thread::sleep(Duration::from_millis(700));
    }
    let (all_until, all_after) = (unix_ns(), seconds_of(&looked_at));
    let tgid = looked_at.tgid();
    let of_beside = beside.as_ref().map(Running::tgid);
    drop((looked_at, beside));
    let recorded = recording.stop();
    check_account(&recorded);
    let (from, until, truth, report) = inner.unwrap();
    let wall = (until - from) as f64 / 1e9;
    let inside = within(&recorded, from, until);
    let there: Vec<Seen<'_>> = inside.iter().copied().filter(|seen| seen.sample.cpu == near).collect();
    // The CPU is never idle: each tick is a sample, of whoever ran.
    let rate = there.len() as f64 / wall;
    println!(
        "{rate:.1} Hz on CPU {near}; {:.3} s told of {truth:.3}",
        sum(&there, tgid)
    );
    assert!((rate / f64::from(BURST_HZ) - 1.0).abs() < 0.05, "{rate} Hz");
    assert!(there.iter().all(|seen| seen.sample.value_ns == BURST_NS));
    let told = sum(&there, tgid);
    assert!(
        (told - truth).abs() < chance(BURST_NS as f64 / 1e9, truth, wall),
        "{told} s of {truth}"
    );
    // The others as ever, at their own rate.
    let elsewhere: Vec<&Seen<'_>> = inside.iter().filter(|seen| seen.sample.cpu != near).collect();
    assert!(elsewhere.iter().all(|seen| seen.sample.value_ns == 0));
    if let Some(tgid) = of_beside {
        let count = elsewhere.iter().filter(|seen| seen.process.tgid == tgid).count();
        let rate = count as f64 / wall;
        assert!(rate < 1.4 * f64::from(USUAL_HZ), "{rate} Hz beside the burst");
    }
    // Before, between and behind, too.
    let wall = (all_until - all_from) as f64 / 1e9;
    let (told, truth) = (
        sum(&within(&recorded, all_from, all_until), tgid),
        all_after - all_before,
    );
    println!("{told:.3} s told of {truth:.3} in {wall:.1} s with three bursts");
    let usual = 1.0 / f64::from(USUAL_HZ);
    assert!(
        (told - truth).abs() < chance(usual, truth, wall) + 3.0 * usual,
        "{told} s of {truth}"
    );
    // It has ended when it was to end.
    let after = within(&recorded, (report.until_ms + 20) * 1_000_000, u64::MAX);
    assert!(!after.is_empty() && after.iter().all(|seen| seen.sample.value_ns == 0));
}

#[test]
fn one_program_is_seen_at_the_rate_and_who_shares_its_cpu_as_ever() {
    if !possible() {
        return;
    }
    let late = see_one_of_two(order("a", "", "burn-that-is-chosen", 10));
    let (at_the_rate, all) = late;
    assert!(all > 0 && at_the_rate > all / 2, "{at_the_rate} of {all}");
}

/// By the name of its thread, which the kernel cuts: whoever has it is told from the first tick on.
#[test]
fn one_thread_is_seen_at_the_rate_and_who_shares_its_cpu_as_ever() {
    if !possible() {
        return;
    }
    let condition = |label: &str, value: &str, not| BurstCondition {
        label: label.into(),
        values: vec![value.into()],
        not,
    };
    let late = see_one_of_two(BurstOrder {
        conditions: vec![
            condition("thread", "burn-that-is-ch", false),
            // Nobody's: of all but none.
            condition("container", "nobody's", true),
            condition("tid", "4194305", true),
        ],
        ..order("a", "", "", 10)
    });
    let (at_the_rate, all) = late;
    assert!(all > 0 && at_the_rate > all / 2, "{at_the_rate} of {all}");
    let late = see_one_of_two(BurstOrder {
        conditions: vec![condition("thread", "burn-that-is-no", true)],
        ..order("a", "", "", 10)
    });
    assert!(late.1 > 0 && late.0 == late.1, "{} of {}", late.0, late.1);
}

/// Of two programs on a CPU one is told at the rate of the burst and the other as ever, each by its time. Gives of the
/// samples of one more of the first, which comes meanwhile, those at the rate, and all.
fn see_one_of_two(order: BurstOrder) -> (u32, u32) {
    let cpu = kernel::online_cpus().unwrap()[0];
    let (chosen, neighbour) = (
        Program::burn("burn-that-is-chosen"),
        Program::burn("burn-that-is-not-chosen"),
    );
    let desk = Arc::new(BurstDesk::default());
    let recording = Recording::start(config(&desk));
    let (first, second) = (chosen.spawn(600_000, Some(cpu)), neighbour.spawn(600_000, Some(cpu)));
    recording.wait_for("one", |seen| seen.process.tgid == first.tgid());
    recording.wait_for("the other", |seen| seen.process.tgid == second.tgid());
    desk.order(order);
    wait_for(&desk, "a", BurstState::Running);
    std::thread::sleep(Duration::from_millis(300));
    // A process of that name that comes meanwhile is seen as well, from the next look on.
    let late = chosen.spawn(600_000, Some(cpu));
    let begin = (unix_ns(), seconds_of(&first), seconds_of(&second));
    std::thread::sleep(Duration::from_secs(9));
    let end = (unix_ns(), seconds_of(&first), seconds_of(&second));
    let report = wait_for(&desk, "a", BurstState::Ended);
    println!("{report:?}");
    let tgids = [first.tgid(), second.tgid(), late.tgid()];
    drop((first, second, late));
    let recorded = recording.stop();
    check_account(&recorded);
    let inside = within(&recorded, begin.0, end.0);
    let wall = (end.0 - begin.0) as f64 / 1e9;
    for (tgid, truth, period_ns) in [
        (tgids[0], end.1 - begin.1, BURST_NS),
        (tgids[1], end.2 - begin.2, 1_000_000_000 / u64::from(USUAL_HZ)),
    ] {
        let told = sum(&inside, tgid);
        println!("{tgid}: {told:.3} s told of {truth:.3}");
        let is_right = |seen: &&Seen<'_>| seen.seconds() == period_ns as f64 / 1e9;
        let mut of_it = inside.iter().filter(|seen| seen.process.tgid == tgid);
        assert!(of_it.all(|seen| is_right(&seen)), "{tgid} is told at another rate");
        let bound = chance(period_ns as f64 / 1e9, truth, wall) + period_ns as f64 / 1e9;
        assert!((told - truth).abs() < bound, "{tgid}: {told} s of {truth}, {bound}");
    }
    let of_late = inside.iter().filter(|seen| seen.process.tgid == tgids[2]);
    let (mut at_the_rate, mut all) = (0, 0);
    of_late.for_each(|seen| {
        all += 1;
        at_the_rate += u32::from(seen.sample.value_ns == BURST_NS);
    });
    (at_the_rate, all)
}

#[test]
fn a_burst_ends_when_it_is_cancelled_and_when_the_agent_stops() {
    if !possible() {
        return;
    }
    let cpu = kernel::online_cpus().unwrap()[0];
    let program = Program::burn("burn-until-cancelled");
    let desk = Arc::new(BurstDesk::default());
    let recording = Recording::start(config(&desk));
    let running = program.spawn(600_000, Some(cpu));
    recording.wait_for("the program", |seen| seen.process.tgid == running.tgid());
    desk.order(BurstOrder {
        frequency_hz: 1_500,
        ..order("too much", "", "", 5)
    });
    let refused = wait_for(&desk, "too much", BurstState::Refused);
    assert!(refused.reason.contains("limit of 999 Hz"), "{refused:?}");
    desk.order(order("elsewhere", "4095", "", 5));
    let refused = wait_for(&desk, "elsewhere", BurstState::Refused);
    assert!(refused.reason.contains("CPU 4095 is not online"), "{refused:?}");
    desk.order(BurstOrder {
        conditions: vec![BurstCondition {
            label: "mode".into(),
            ..BurstCondition::default()
        }],
        ..order("of what", "", "", 5)
    });
    let refused = wait_for(&desk, "of what", BurstState::Refused);
    assert!(
        refused.reason.contains("not of a `mode` there, but of service"),
        "{refused:?}"
    );
    desk.order(order("a", "", "", 60));
    wait_for(&desk, "a", BurstState::Running);
    std::thread::sleep(Duration::from_secs(1));
    desk.end("a", "enough");
    let cancelled = wait_for(&desk, "a", BurstState::Cancelled);
    assert_eq!(cancelled.reason, "enough");
    std::thread::sleep(Duration::from_secs(1));
    let again = unix_ns();
    desk.order(order("b", "", "", 60));
    wait_for(&desk, "b", BurstState::Running);
    std::thread::sleep(Duration::from_millis(500));
    let tgid = running.tgid();
    let recorded = recording.stop();
    drop(running);
    let stopped = wait_for(&desk, "b", BurstState::Cancelled);
    assert_eq!(stopped.reason, "the agent was stopped");
    check_account(&recorded);
    let between = within(&recorded, (cancelled.until_ms + 20) * 1_000_000, again);
    assert!(between.iter().any(|seen| seen.process.tgid == tgid));
    assert!(between.iter().all(|seen| seen.sample.value_ns == 0));
    assert!(
        recorded
            .samples()
            .any(|seen| seen.sample.ts_unix_ns > again && seen.sample.value_ns == BURST_NS)
    );
}

#[test]
fn a_burst_that_takes_too_much_is_lowered_and_the_usual_rate_stays() {
    if !possible() {
        return;
    }
    let cpu = kernel::online_cpus().unwrap()[0];
    let program = Program::burn("burn-beyond-the-limit");
    let desk = Arc::new(BurstDesk::default());
    let recording = Recording::start(AgentConfig {
        // Less than the agent needs at a burst's rate, and much more than a minute's saving of it.
        cpu_limit: 0.0005,
        ..config(&desk)
    });
    let running = program.spawn(600_000, Some(cpu));
    recording.wait_for("the program", |seen| seen.process.tgid == running.tgid());
    desk.order(order("a", "", "", 30));
    let report = wait_for(&desk, "a", BurstState::Running);
    let deadline = Instant::now() + Duration::from_secs(40);
    let is_lowered = || {
        let reports = desk.reports();
        reports
            .iter()
            .any(|report| report.id == "a" && report.frequency_hz < BURST_HZ)
    };
    while !is_lowered() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_lowered(), "{report:?} {:?}", desk.reports());
    println!("{:?}", desk.reports());
    drop(running);
    let recorded = recording.stop();
    check_account(&recorded);
    let last = recorded.batches.last().unwrap();
    assert!(
        last.report.limits.contains_key("burst_rate_lowered"),
        "{:?}",
        last.report
    );
}
