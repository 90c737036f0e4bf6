//! Threads that wait, by what the kernel itself accounts of them and by what they were made to wait for.

mod names;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::{SampleKind, WaitClass, WaitLengths, WaitState, bucket_begins_ns};
use stakeout_agent::kernel::Waits;

use crate::accounting::check_account;
use crate::program::Program;
use crate::recording::{Recorded, Recording, Seen, possible};

const SECONDS: f64 = 20.0;
/// What a sample stands for.
const PERIOD: f64 = 0.02;
/// The same where a dozen threads wait all the time: the stacks alone would take what all of it may, and turns begin.
const LONG_PERIOD: f64 = 0.1;

fn config(period: f64) -> AgentConfig {
    AgentConfig {
        frequency_hz: 499,
        interval: Duration::from_secs(2),
        waits: Waits::On,
        wait_period: Duration::from_secs_f64(period),
        ..AgentConfig::default()
    }
}

/// What the kernel accounts of a thread, in seconds.
#[derive(Debug, Clone, Copy)]
struct Truth {
    wall: f64,
    running: f64,
    runnable: f64,
    runs: f64,
}

impl Truth {
    fn asleep(self) -> f64 {
        self.wall - self.running - self.runnable
    }
}

/// The same by the samples.
#[derive(Debug, Default)]
struct Told {
    running: f64,
    runnable: f64,
    asleep: f64,
    by_class: BTreeMap<&'static str, f64>,
    by_state: BTreeMap<&'static str, f64>,
    preempted: f64,
    samples: u32,
    /// Samples of waits with the thread's own function on their stack, whole.
    whole: u32,
    /// How long each wait was, in milliseconds, asleep and for a CPU.
    asleep_ms: Vec<f64>,
    runnable_ms: Vec<f64>,
}

/// The one in the middle; 0 of none.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// Whether a free-standing file can be read past the cache, and where one is.
fn file() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    for _ in 0..16 {
        file.write_all(&vec![7; 1 << 20]).unwrap();
    }
    file.as_file().sync_all().unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

/// Runs the program beside an agent; gives what each of its threads says of itself, by its name.
fn run(what: &str, seconds: f64, config: AgentConfig) -> (Recorded, u32, BTreeMap<String, Truth>) {
    let file = file();
    let program = Program::compile_with(
        &["-O1", "-g", "-fomit-frame-pointer", "-pthread"],
        "waits/waits.c",
        "waits-by-construction",
    );
    let recording = Recording::start(config);
    let mut child = Command::new(&program.path)
        .args([what, &seconds.to_string(), &file.path().to_string_lossy()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let recorded = recording.stop();
    let truths = text.lines().map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ns = |field: usize| fields[field].parse::<f64>().unwrap() / 1e9;
        let truth = Truth {
            wall: ns(1),
            running: ns(2),
            runnable: ns(3),
            runs: ns(4) * 1e9,
        };
        (fields[0].to_owned(), truth)
    });
    let truths = truths.collect();
    check_account(&recorded);
    (recorded, child.id(), truths)
}

fn sum_of(truths: &BTreeMap<String, Truth>) -> Truth {
    let sum = |of: fn(&Truth) -> f64| truths.values().map(of).sum();
    Truth {
        wall: sum(|truth| truth.wall),
        running: sum(|truth| truth.running),
        runnable: sum(|truth| truth.runnable),
        runs: sum(|truth| truth.runs),
    }
}

fn told(seen: &[Seen<'_>], name: &str, function: &str) -> Told {
    let mut told = Told::default();
    for seen in seen.iter().filter(|seen| &*seen.sample.thread == name) {
        let (seconds, wait_ms) = (seen.seconds(), seen.sample.wait_ns as f64 / 1e6);
        match seen.sample.kind {
            SampleKind::Cpu => told.running += seconds,
            SampleKind::OffCpu(state) => {
                told.asleep += seconds;
                told.asleep_ms.push(wait_ms);
                *told.by_state.entry(state.name()).or_default() += seconds;
            }
            SampleKind::RunQueue(state) => {
                told.runnable += seconds;
                told.runnable_ms.push(wait_ms);
                if state == WaitState::Preempted {
                    told.preempted += seconds;
                }
            }
            SampleKind::WakeUp(_) => continue,
        }
        if let Some(class) = seen.sample.wait_class {
            *told.by_class.entry(class.name()).or_default() += seconds;
        }
        if seen.sample.kind != SampleKind::Cpu {
            told.samples += 1;
            told.whole += u32::from(!seen.stack.truncated && seen.has(function));
        }
    }
    told
}

/// Of the truth, where all of the time was observed.
const WHOLE: f64 = 0.03;

/// Within so much of the truth. What is a small part of a thread's waits is drawn from them: four deviations of that.
fn is_near(said: f64, truth: f64, share: f64, period: f64) -> bool {
    let drawn = truth.min((SECONDS - truth).max(0.0));
    (said - truth).abs() <= truth * share + 4.0 * (drawn * period).sqrt().max(period / 2.0)
}

/// Linux 6.18 has a thread tell its own stack before it is in user mode, and on x86-64 others as it comes back.
fn tells_its_stack() -> bool {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
    cfg!(target_arch = "x86_64") || symbols.contains(" bpf_task_work_schedule_resume")
}

/// The kernel's account reads the clock before it chooses a thread, its tracepoints come after that: on a CPU that
/// was idle some 10 microseconds.
const CHOOSING: f64 = 20e-6;

/// Prints the row, and adds what is wrong with it.
fn judge(name: &str, told: &Told, truth: Truth, (share, period): (f64, f64), wrong: &mut Vec<String>) {
    let sum = told.running + told.asleep + told.runnable;
    println!(
        "{name:>15}: asleep {:.3} of {:.3} s, runnable {:.3} of {:.3}, running {:.3} of {:.3}, all {:.3} of {:.3}; {} of {} \
         samples whole; {:?} {:?}",
        told.asleep,
        truth.asleep(),
        told.runnable,
        truth.runnable,
        told.running,
        truth.running,
        sum,
        truth.wall,
        told.whole,
        told.samples,
        told.by_class,
        told.by_state,
    );
    // One more may be cut where there are few.
    let whole = f64::from(told.whole) + 1.0 >= 0.98 * f64::from(told.samples);
    let mut check = |is_right: bool, what: &str| {
        if !is_right {
            wrong.push(format!("{name}: {what}"));
        }
    };
    check(is_near(told.asleep, truth.asleep(), share, period), "asleep");
    let latest = truth.runnable + CHOOSING * truth.runs;
    let is_between = told.runnable > truth.runnable && told.runnable < latest;
    check(
        is_between
            || is_near(told.runnable, truth.runnable, share, period)
            || is_near(told.runnable, latest, share, period),
        "runnable",
    );
    // Periods that change draw new points: of a thread with some 600 samples the sum has a standard deviation of 0.7 %.
    check((sum - truth.wall).abs() < (share + 0.005) * truth.wall + 0.02, "all");
    // Elsewhere those are whole that wait at the same place again, which no thread does that is preempted.
    check(whole || !tells_its_stack(), "stacks");
}

/// Waits for a CPU of the program that these samples are of, by their length.
fn queued(recorded: &Recorded, seen: &[Seen<'_>]) -> WaitLengths {
    let mut sum = WaitLengths::default();
    for queue in recorded.batches.iter().flat_map(|batch| &batch.run_queues.by_program) {
        if queue.executable == seen[0].process.executable {
            sum.add(&queue.lengths);
        }
    }
    sum
}

fn all_was_observed(recorded: &Recorded) -> bool {
    let limits = recorded.batches.last().map(|batch| &batch.report.limits);
    limits.is_some_and(|limits| !limits.contains_key("wait_turns_lengthened"))
}

/// Share of the time in which waits were observed, as batches tell it.
fn observed_share(recorded: &Recorded) -> f64 {
    let batches = || recorded.batches.iter();
    let observed = batches().filter_map(|batch| batch.report.waits_observed_ns);
    let lengths = batches().map(|batch| batch.until_unix_ns - batch.from_unix_ns);
    observed.sum::<u64>() as f64 / lengths.sum::<u64>() as f64
}

/// Each wait is told as its CPU's, too, and as its program's for that CPU. At an interval's end a few are told of the
/// CPU alone, and of the program with the next.
fn check_queues(recorded: &Recorded) {
    let (mut of_cpus, mut of_programs) = (WaitLengths::default(), WaitLengths::default());
    let mut on_each: BTreeMap<u32, [WaitLengths; 2]> = BTreeMap::new();
    for batch in &recorded.batches {
        let queues = &batch.run_queues;
        let (mut cpus, mut programs) = (WaitLengths::default(), WaitLengths::default());
        queues.by_cpu.values().for_each(|lengths| cpus.add(lengths));
        let lengths = queues.by_program.iter().map(|queue| &queue.lengths);
        lengths.for_each(|lengths| programs.add(lengths));
        let apart = cpus.count().abs_diff(programs.count());
        assert!(apart <= 20 + cpus.count() / 20, "{apart} of {}", cpus.count());
        for (cpu, lengths) in &queues.by_cpu {
            on_each.entry(*cpu).or_default()[0].add(lengths);
        }
        for queue in &queues.by_program {
            let cpu = queue.cpu.expect("so few are told apart");
            on_each.entry(cpu).or_default()[1].add(&queue.lengths);
        }
        of_cpus.add(&cpus);
        of_programs.add(&programs);
    }
    // Each tick is of one CPU. Those of one are read a moment after the sum.
    let cpus = recorded
        .batches
        .iter()
        .flat_map(|batch| batch.run_queues.ticks.values());
    let told: u64 = cpus.map(|cpu| cpu.ticks).sum();
    let all: u64 = recorded.batches.iter().map(|batch| batch.report.ticks).sum();
    assert!(
        told.abs_diff(all) <= 10 + all / 100,
        "{told} ticks of CPUs, {all} of all"
    );
    // Where a part of the time is observed, each count is rounded by itself.
    if all_was_observed(recorded) {
        assert_eq!(
            (of_cpus.total_ns, of_cpus.buckets),
            (of_programs.total_ns, of_programs.buckets)
        );
        for (cpu, [of_cpu, of_programs]) in on_each {
            assert_eq!(
                (of_cpu.total_ns, of_cpu.buckets),
                (of_programs.total_ns, of_programs.buckets),
                "of CPU {cpu}"
            );
        }
    }
}

#[test]
fn waits_are_told_by_their_time_class_and_state() {
    if !possible() {
        return;
    }
    let (recorded, tgid, truths) = run("waiters", SECONDS, config(LONG_PERIOD));
    let seen = recorded.all_of_tgid(tgid);
    let rows = [
        ("lock-1ms", WaitClass::Lock, "wait_for_the_lock"),
        ("lock-10ms", WaitClass::Lock, "wait_for_the_lock"),
        ("lock-1s", WaitClass::Lock, "wait_for_the_lock"),
        ("timer-1ms", WaitClass::Timer, "hold_the_lock"),
        ("timer-10ms", WaitClass::Timer, "hold_the_lock"),
        ("timer-1s", WaitClass::Timer, "hold_the_lock"),
        ("pipe-answer", WaitClass::Pipe, "answer_by_pipe"),
        ("pipe-ask", WaitClass::Timer, "ask_by_pipe"),
        ("network-10ms", WaitClass::Network, "receive_an_answer"),
        ("network-answer", WaitClass::Timer, "answer_late"),
        ("poll-10ms", WaitClass::Poll, "poll_for_nothing"),
        ("disk", WaitClass::Io, "read_the_disk"),
    ];
    // Else which part of the time is observed adds to chance: a turn more or less.
    let is_whole = all_was_observed(&recorded);
    let share = if is_whole { WHOLE } else { 2.0 * WHOLE };
    let mut wrong = Vec::new();
    if is_whole && !(0.99..=1.0).contains(&observed_share(&recorded)) {
        wrong.push(format!("observed for {:.3} of the time", observed_share(&recorded)));
    }
    let mut sums = [0.0; 2];
    for (name, class, function) in rows {
        let (told, truth) = (told(&seen, name, function), truths[name]);
        if name == "disk" && truth.wall < SECONDS / 2.0 {
            println!("no file can be read past the cache here: NOT CHECKED");
            continue;
        }
        judge(name, &told, truth, (share, LONG_PERIOD), &mut wrong);
        // One that is looked at while it lasts is so long by then.
        let longest = told.asleep_ms.iter().copied().fold(0.0, f64::max);
        if is_whole && name.ends_with("-1s") && !(950.0..1_050.0).contains(&longest) {
            wrong.push(format!("{name}: the longest wait is {longest:.1} ms"));
        }
        sums[0] += told.running + told.asleep + told.runnable;
        sums[1] += truth.wall;
        let of_class = told.by_class.get(class.name()).copied().unwrap_or(0.0);
        if !is_near(of_class, truth.asleep(), share, LONG_PERIOD) {
            wrong.push(format!("{name}: {of_class:.3} s are {}", class.name()));
        }
        let state = if class == WaitClass::Io {
            WaitState::Uninterruptible
        } else {
            WaitState::Sleeping
        };
        let of_state = told.by_state.get(state.name()).copied().unwrap_or(0.0);
        if !is_near(of_state, truth.asleep(), share, LONG_PERIOD) {
            wrong.push(format!("{name}: {of_state:.3} s are {}", state.name()));
        }
    }
    // A wait's own length, whatever its sample stands for. The clock's interrupt is late by some 60 us.
    for (name, length_ms) in [
        ("timer-1ms", 1.0),
        ("timer-10ms", 10.0),
        ("pipe-ask", 10.0),
        ("poll-10ms", 10.0),
    ] {
        let length = median(&mut told(&seen, name, "").asleep_ms);
        println!("{name}: a wait is {length:.3} ms long");
        if !(length_ms..length_ms * 1.03 + 0.2).contains(&length) {
            wrong.push(format!("{name}: waits are {length:.3} ms long"));
        }
    }
    let ended = recorded.wakers_of(tgid, "pipe-answer");
    let mut ended: Vec<f64> = ended.map(|seen| seen.sample.wait_ns as f64 / 1e6).collect();
    let ended = median(&mut ended);
    if !(10.0..10.5).contains(&ended) {
        wrong.push(format!("pipe-answer: waits that were ended are {ended:.3} ms long"));
    }
    // By construction each is woken by one thread, in one function, or by the clock.
    for (woken, waker, function) in [
        ("lock-10ms", "timer-10ms", "hold_the_lock"),
        ("lock-1s", "timer-1s", "hold_the_lock"),
        ("pipe-answer", "pipe-ask", "ask_by_pipe"),
        ("network-10ms", "network-answer", "answer_late"),
        ("timer-10ms", "[interrupt]", "hrtimer_wakeup"),
    ] {
        let all: f64 = recorded.wakers_of(tgid, woken).map(Seen::seconds).sum();
        let of_waker = recorded
            .wakers_of(tgid, woken)
            .filter(|seen| &*seen.sample.thread == waker);
        let by_waker: f64 = of_waker.filter(|seen| seen.has(function)).map(Seen::seconds).sum();
        let asleep = told(&seen, woken, "").asleep;
        // By which the end of a wait and who made it are found to be one.
        let of_thread = seen.iter().filter(|seen| &*seen.sample.thread == woken);
        let tids: BTreeSet<u32> = of_thread.map(|seen| seen.sample.tid).collect();
        let ended = recorded.wakers_of(tgid, woken);
        let ended: BTreeSet<u32> = ended.filter_map(|seen| Some(seen.sample.woken.as_ref()?.tid)).collect();
        if ended != tids || tids.len() != 1 {
            wrong.push(format!("{woken}: thread {tids:?} was woken as {ended:?}"));
        }
        println!("{woken}: {all:.3} of {asleep:.3} s ended, {by_waker:.3} by {waker} in {function}");
        // Waits that had not ended have no waker. Where not all of the time was observed, the end of a long wait may
        // not have been, and stands for those that were.
        if is_whole && !is_near(all, asleep, 0.06, LONG_PERIOD) || !is_near(by_waker, all, 0.03, LONG_PERIOD) {
            wrong.push(format!(
                "{woken}: {by_waker:.3} of {all:.3} of {asleep:.3} s by {waker}"
            ));
        }
    }
    println!(
        "{:?} {:?}",
        recorded.totals.kernel.waits,
        recorded.batches.last().map(|batch| &batch.report.limits)
    );
    println!("all threads: {:.3} of {:.3} s", sums[0], sums[1]);
    if !is_near(sums[0], sums[1], share / 3.0, LONG_PERIOD) {
        wrong.push(format!("all threads: {:.3} of {:.3} s", sums[0], sums[1]));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Also where the processor is emulated, as that of a kernel in a guest may be: what is short takes longer there.
#[test]
fn long_waits_are_told_on_slow_processors() {
    if !possible() {
        return;
    }
    let (recorded, tgid, truths) = run("waiters", 8.0, config(LONG_PERIOD));
    let seen = recorded.all_of_tgid(tgid);
    for (name, class) in [("lock-1s", WaitClass::Lock), ("timer-1s", WaitClass::Timer)] {
        let (told, truth) = (told(&seen, name, ""), truths[name]);
        let of = |parts: &BTreeMap<&str, f64>, key: &str| parts.get(key).copied().unwrap_or(0.0);
        let of_class = of(&told.by_class, class.name());
        let of_state = of(&told.by_state, WaitState::Sleeping.name());
        println!(
            "{name}: asleep {:.3} of {:.3} s, {of_class:.3} by class, {of_state:.3} by state",
            told.asleep,
            truth.asleep()
        );
        // There the hooks alone take more than they may, and most of the time is not observed.
        let share = if all_was_observed(&recorded) { WHOLE } else { 0.5 };
        assert!(
            (told.asleep - truth.asleep()).abs() <= share * truth.asleep() + 2.0 * LONG_PERIOD,
            "{name}"
        );
        assert!(of_class > 0.97 * told.asleep && of_state > 0.97 * told.asleep, "{name}");
    }
}

#[test]
fn threads_that_share_cpus_wait_for_them() {
    if !possible() {
        return;
    }
    let mut wrong = Vec::new();
    let (recorded, tgid, truths) = run("burners", SECONDS, config(PERIOD));
    let seen = recorded.all_of_tgid(tgid);
    for (name, truth) in &truths {
        judge(name, &told(&seen, name, "burn"), *truth, (WHOLE, PERIOD), &mut wrong);
    }
    check_queues(&recorded);
    let (waits, truth) = (queued(&recorded, &seen), sum_of(&truths));
    let (seconds, latest) = (waits.total_ns as f64 / 1e9, truth.runnable + CHOOSING * truth.runs);
    println!(
        "{} waits, {seconds:.3} s; {:.0} runs, {:.3} s",
        waits.count(),
        truth.runs,
        truth.runnable
    );
    if seconds < 0.97 * truth.runnable
        || seconds > 1.03 * latest
        || !is_near(waits.count() as f64, truth.runs, 0.03, PERIOD)
    {
        wrong.push(format!("waits for a CPU: {seconds:.3} s"));
    }
    drop(seen);
    drop(recorded);
    let (recorded, tgid, truths) = run("preempted", SECONDS, config(PERIOD));
    let seen = recorded.all_of_tgid(tgid);
    for (name, function) in [("victim", "be_preempted"), ("preferred", "preempt")] {
        let (mut told, truth) = (told(&seen, name, function), truths[name]);
        judge(name, &told, truth, (WHOLE, PERIOD), &mut wrong);
        if name == "victim" {
            let length = median(&mut told.runnable_ms);
            println!("a wait for a CPU is {length:.3} ms long");
            if !(8.0..12.1).contains(&length) {
                wrong.push(format!("victim: waits are {length:.3} ms long"));
            }
            let waits = queued(&recorded, &seen);
            let is_of_length = |bucket: u8| (8_000_000..12_100_000).contains(&bucket_begins_ns(bucket));
            let of_length = waits.buckets.iter().filter(|(bucket, _)| is_of_length(*bucket));
            let (all, waits) = (waits.count(), of_length.map(|(_, count)| count).sum::<u64>());
            println!("{waits} of {all} waits for a CPU took about 10 ms");
            // A burst of the preferred one each.
            if !(0.45 / 0.01..0.65 / 0.01).contains(&(waits as f64 / SECONDS)) {
                wrong.push(format!("victim: {waits} waits of 10 ms"));
            }
        }
        if name == "victim" && !is_near(told.preempted, truth.runnable, 0.03, PERIOD) {
            wrong.push(format!("victim: preempted for {:.3} s", told.preempted));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn where_switches_are_too_many_a_part_of_the_time_is_observed() {
    if !possible() {
        return;
    }
    // With all turns of a round in an interval: what comes after the last that is observed is not told.
    let long = AgentConfig {
        interval: Duration::from_secs(5),
        drain_every: Duration::from_millis(250),
        ..config(PERIOD)
    };
    let (recorded, tgid, truths) = run("switching", SECONDS, long);
    let seen = recorded.all_of_tgid(tgid);
    let last = &recorded.batches[recorded.batches.len() - 1].report;
    let waits = recorded.totals.kernel.waits;
    println!(
        "{:.0} switches a second, {:.4} s of BPF; {:?}",
        waits.switches as f64 / SECONDS,
        waits.bpf_ns as f64 / 1e9,
        last.limits
    );
    assert!(
        last.limits.contains_key("wait_turns_lengthened"),
        "all of the time was observed"
    );
    // At most one turn of two, but for the time in which that was found out.
    let share = observed_share(&recorded);
    println!("observed for {share:.3} of the time");
    assert!(share > 0.02 && share < 0.8, "observed for {share:.3} of the time");
    for (name, truth) in truths {
        let told = told(
            &seen,
            &name,
            if name == "ask" { "ask_at_once" } else { "answer_by_pipe" },
        );
        let (waited, expected) = (told.asleep + told.runnable, truth.wall - truth.running);
        println!(
            "{name}: waited {waited:.3} of {expected:.3} s; {} of {} samples whole",
            told.whole, told.samples
        );
        // A sample of an observed turn stands for several, and of a run of 2 microseconds some tenths are a matter
        // of where the clock is read.
        assert!((waited - expected).abs() < 0.15 * expected, "{name}");
        assert!(f64::from(told.whole) > 0.95 * f64::from(told.samples), "{name}");
    }
}
