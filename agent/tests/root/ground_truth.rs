//! What is seen is what ran.

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::FrameKind;

use crate::accounting::check_account;
use crate::program::{Program, Running, preferred};
use crate::recording::{Recording, Seen, possible};

/// 99 times a second and CPU; short intervals, so that a test sees batches soon.
pub(crate) fn fast() -> AgentConfig {
    AgentConfig {
        frequency_hz: 99,
        interval: std::time::Duration::from_secs(1),
        ..AgentConfig::default()
    }
}

#[test]
fn shares_roots_and_cpu_time_of_a_program_with_frame_pointers_and_of_a_kernel_heavy_one() {
    if !possible() {
        return;
    }
    let program = Program::burn("burn-seventy-thirty");
    let recording = Recording::start(AgentConfig {
        frequency_hz: 99,
        ..AgentConfig::default()
    });
    let stolen_before = stolen_seconds();
    let dd = Running::spawn(preferred("dd").args(["if=/dev/urandom", "of=/dev/null", "bs=1M"]));
    let burn = program.spawn_preferred(20_000);
    let (burn_tgid, dd_tgid) = (burn.tgid(), dd.tgid());
    let begun = std::time::Instant::now();
    let burn_time = burn.finish();
    let wall = begun.elapsed().as_secs_f64();
    let dd_time = dd.cpu_time();
    drop(dd);
    let recorded = recording.stop();
    check_account(&recorded);

    let seen = recorded.of_tgid(burn_tgid);
    let a = seen.iter().filter(|seen| seen.has("hot_a")).count() as f64;
    let b = seen.iter().filter(|seen| seen.has("hot_b")).count() as f64;
    let share = a / (a + b);
    println!("burn: {} samples, hot_a {share:.4}", seen.len());
    assert!((share - 0.7).abs() < 0.03, "hot_a has {share}, not 0.7");
    let mut unnamed = std::collections::BTreeMap::<u64, u32>::new();
    for seen in seen.iter().filter(|seen| !seen.has("hot_a") && !seen.has("hot_b")) {
        let after_ns = seen.sample.ts_unix_ns - recorded.batches[0].from_unix_ns;
        *unnamed.entry(after_ns / 1_000_000_000).or_default() += 1;
    }
    assert!(
        a + b > 0.97 * seen.len() as f64,
        "{a} + {b} of {}; others by second {unnamed:?}; {:?}",
        seen.len(),
        recorded.batches.last().unwrap().report.limits
    );
    let whole = ["main", "hot_a", "work_a"];
    let chained = seen.iter().filter(|seen| {
        let functions = seen.functions();
        let at = |name: &str| functions.iter().rposition(|function| *function == name);
        whole.windows(2).all(|pair| {
            at(pair[0])
                .zip(at(pair[1]))
                .is_some_and(|(outer, inner)| inner + 1 == outer)
        })
    });
    assert!(chained.count() as f64 > 0.95 * a, "main calls hot_a calls work_a");
    let rooted = seen
        .iter()
        .filter(|seen| !seen.stack.truncated && seen.has("main"))
        .count() as f64;
    assert!(
        rooted > 0.97 * seen.len() as f64,
        "rooted at main or above: {rooted} of {}",
        seen.len()
    );
    let (started_by, own): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) =
        seen.iter().partition(|seen| *seen.process.executable == *"nice");
    assert!(
        own.iter()
            .all(|seen| *seen.process.executable == *"burn-seventy-thirty")
    );
    assert!(own.iter().all(|seen| seen.process.command_line.ends_with(" 20000")));
    // It is another program after a millisecond: its arguments are read in that time, or nobody knows them any more.
    for seen in &started_by {
        let command_line = &*seen.process.command_line;
        let is_own = command_line.starts_with("nice ") && command_line.ends_with(" 20000");
        assert!(is_own || command_line.is_empty(), "{command_line}");
    }
    assert!(started_by.len() < 10, "{} samples of a millisecond", started_by.len());
    let stolen = stolen_seconds() - stolen_before;
    let observed: u64 = recorded.batches.last().unwrap().until_unix_ns - recorded.batches[0].from_unix_ns;
    let expected_ticks = observed as f64 / 1e9 * 99.0 * f64::from(recorded.batches[0].report.cpus);
    println!(
        "{} ticks of {expected_ticks:.0}, {stolen:.2} s stolen",
        recorded.totals.kernel.ticks
    );
    let sampled = seen.len() as f64 * recorded.batches[0].period_ns as f64 / 1e9;
    let accounted = burn_time.user + burn_time.system;
    println!("burn: {sampled:.2} s sampled, {accounted:.2} s accounted");
    // Where others take turns with it, the turns' rhythm and the timer's beat against each other.
    if wall > 1.3 * accounted {
        println!("NOT COMPARED: it took {wall:.0} s on this busy machine to get {accounted:.0} s of CPU time");
    } else {
        // The kernel's account holds what the hypervisor took, which no timer of this machine sees.
        assert!(
            (sampled - accounted).abs() < 0.05 * accounted + stolen,
            "{sampled} s sampled, {accounted} s accounted"
        );
    }

    let seen = recorded.of_tgid(dd_tgid);
    let system = seen.iter().filter(|seen| seen.in_kernel()).count() as f64 / seen.len() as f64;
    let accounted = dd_time.system / (dd_time.user + dd_time.system);
    println!(
        "dd: {} samples, system {system:.4} sampled, {accounted:.4} accounted",
        seen.len()
    );
    assert!(
        (system - accounted).abs() < 0.05,
        "system share {system} sampled, {accounted} accounted"
    );
    let crossing = seen.iter().filter(|seen| {
        let kinds: Vec<FrameKind> = seen.frames().map(|frame| frame.kind).collect();
        let border = kinds.iter().filter(|kind| **kind == FrameKind::Kernel).count();
        let names = seen.functions();
        border > 0
            && border < kinds.len()
            && kinds[border..].iter().all(|kind| *kind == FrameKind::Native)
            && names[..border].iter().any(|name| name.contains("syscall"))
            && names[border] == "read"
            && names[..border].iter().all(|name| *name != "?")
    });
    let crossing = crossing.count() as f64;
    assert!(
        crossing > 0.9 * system * seen.len() as f64,
        "user, syscall and kernel frames in one stack: {crossing}"
    );
}

#[test]
fn processes_of_one_executable_on_two_cpus_a_deleted_one_and_those_that_end() {
    if !possible() {
        return;
    }
    let cpus = stakeout_agent::kernel::online_cpus().unwrap();
    let (first, last) = (cpus[0], *cpus.last().unwrap());
    let program = Program::burn("burn-on-two-processors");
    let recording = Recording::start(fast());
    let one = program.spawn(1500, Some(first));
    let two = program.spawn(1500, Some(last));
    let deleted = {
        let gone = Program::burn("burn-deleted-meanwhile");
        let running = gone.spawn(1000, None);
        let tgid = running.tgid();
        recording_has_begun(tgid);
        drop(gone);
        (tgid, running)
    };
    let tgids = [one.tgid(), two.tgid()];
    one.finish();
    two.finish();
    deleted.1.finish();
    let recorded = recording.stop();
    check_account(&recorded);
    for (tgid, cpu) in tgids.into_iter().zip([first, last]) {
        let seen = recorded.of_tgid(tgid);
        assert!(seen.len() > 100, "{} samples of {tgid}", seen.len());
        assert!(
            seen.iter()
                .all(|seen| &*seen.process.executable == "burn-on-two-processors")
        );
        // The first instant is before it has moved there.
        let there = seen.iter().filter(|seen| seen.sample.cpu == cpu).count();
        assert!(there + 2 >= seen.len(), "{there} of {} on CPU {cpu}", seen.len());
        assert!(seen.iter().filter(|seen| seen.has("main")).count() * 100 > seen.len() * 95);
    }
    let seen = recorded.of_tgid(deleted.0);
    assert!(seen.len() > 60 && seen.iter().filter(|seen| seen.has("main")).count() * 100 > seen.len() * 95);
    assert!(
        seen.iter()
            .all(|seen| seen.process.executable_path.ends_with("/burn-deleted-meanwhile"))
    );
}

/// Time that the hypervisor gave to others, all CPUs, since boot.
fn stolen_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<&str> = stat.lines().next().unwrap().split_whitespace().collect();
    fields[8].parse::<f64>().unwrap() / 100.0
}

/// Waits until the process runs the program that it was started for.
fn recording_has_begun(tgid: u32) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let begun = || std::fs::read_to_string(format!("/proc/{tgid}/stat")).is_ok_and(|stat| stat.contains("(burn-"));
    while !begun() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn processes_of_a_few_milliseconds_have_their_names() {
    if !possible() {
        return;
    }
    let program = Program::burn("burn-for-a-moment-only");
    let recording = Recording::start(fast());
    let tgids: Vec<u32> = (0..100)
        .map(|_| {
            let running = program.spawn(25, None);
            let tgid = running.tgid();
            running.finish();
            tgid
        })
        .collect();
    let recorded = recording.stop();
    check_account(&recorded);
    let seen: Vec<_> = tgids.iter().flat_map(|tgid| recorded.of_tgid(*tgid)).collect();
    // Samples of what the child did before it called exec are its parent's program.
    let named = seen
        .iter()
        .filter(|seen| &*seen.process.executable == "burn-for-a-moment-only")
        .count();
    let traced = seen.iter().filter(|seen| seen.has("main")).count();
    println!(
        "{} samples, {named} with the executable's name, {traced} rooted at main",
        seen.len()
    );
    assert!(seen.len() > 100, "{} samples", seen.len());
    assert!(
        named * 100 > seen.len() * 90,
        "{named} of {} have their executable's name",
        seen.len()
    );
    assert!(
        traced * 100 > seen.len() * 80,
        "{traced} of {} have named frames",
        seen.len()
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_made_at_run_time_is_named_by_its_perf_map() {
    if !possible() {
        return;
    }
    let program = Program::compile("jit.c", "makes-code-at-run-time");
    let recording = Recording::start(fast());
    let running = program.spawn(1500, None);
    let tgid = running.tgid();
    running.finish();
    let recorded = recording.stop();
    check_account(&recorded);
    let seen = recorded.of_tgid(tgid);
    let named = seen.iter().filter(|seen| {
        let mut frames = seen.frames().skip_while(|frame| frame.kind == FrameKind::Kernel);
        let leaf = frames.next();
        leaf.is_some_and(|frame| frame.kind == FrameKind::Jit && frame.function.as_deref() == Some("made_at_run_time"))
            && frames
                .next()
                .is_some_and(|frame| frame.function.as_deref() == Some("main"))
    });
    let named = named.count();
    assert!(
        seen.len() > 100 && named * 100 > seen.len() * 90,
        "{named} of {}",
        seen.len()
    );
}

#[test]
fn kernel_threads_are_there() {
    if !possible() {
        return;
    }
    let recording = Recording::start(fast());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Writing back to the disk is done by kernel threads.
            let mut file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let block = vec![1u8; 4 << 20];
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::io::Seek::rewind(&mut file).unwrap();
                std::io::Write::write_all(&mut file, &block).unwrap();
                file.sync_all().unwrap();
            }
        });
        let waiting = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            recording.wait_for("a kernel thread", |seen| {
                let kernel_only = seen.frames().all(|frame| frame.kind == FrameKind::Kernel);
                seen.process.tgid > 0
                    && seen.process.executable_path.is_empty()
                    && kernel_only
                    && seen.functions().iter().any(|name| name.starts_with("ret_from_fork"))
            });
        }));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Err(panic) = waiting {
            std::panic::resume_unwind(panic);
        }
    });
    check_account(&recording.stop());
}
