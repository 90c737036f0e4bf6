//! Code that is mapped while its program runs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::{Frame, FrameKind};

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::privileges::{CAPABILITIES, INNER, is_root, with_capabilities};
use crate::program::{Program, Running};
use crate::recording::{Recorded, Recording, Seen, possible};

const FUNCTION: &str = "burn_in_the_late_library";
/// CPU time of each process, half of it before it loads its library.
const MILLISECONDS: &str = "24";

/// A program and a library that it loads; each process gets a copy that nobody has mapped before.
struct LateLibraries {
    program: Program,
    library: Program,
}

/// What the samples of the user code of such processes say.
#[derive(Debug, Default)]
struct Found {
    whole: u32,
    nameless: u32,
    elsewhere: u32,
}

impl LateLibraries {
    fn compile() -> Self {
        let flags = ["-O1", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-Wl,--build-id"];
        Self {
            program: Program::compile_with(
                &["-O1", "-fno-omit-frame-pointer"],
                "late_load.c",
                "loads-a-library-late",
            ),
            library: Program::compile_with(&flags, "late_library.c", "late.so"),
        }
    }

    fn copy(&self, number: u32) -> PathBuf {
        let path = self.library.path.with_file_name(format!("late-{number}.so"));
        std::fs::copy(&self.library.path, &path).unwrap();
        path
    }

    /// One process after the other, each with a library of its own; their ids.
    fn run(&self, processes: u32) -> Vec<u32> {
        let copies: Vec<PathBuf> = (0..processes).map(|number| self.copy(number)).collect();
        let one = |library: &PathBuf| {
            let mut command = Command::new(&self.program.path);
            command.arg(library).arg(MILLISECONDS);
            let running = Running::spawn(command.stdout(Stdio::piped()));
            let tgid = running.tgid();
            running.finish();
            tgid
        };
        copies.iter().map(one).collect()
    }
}

/// Puts this thread, and the threads and programs that it starts from now on, before everything else that the machine
/// does; a higher priority before a lower one. Goes on where it may not.
fn prefer_this_thread(priority: &str) {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    let tid = link.file_name().unwrap();
    let done = Command::new("chrt").args(["--rr", "-p", priority]).arg(tid).output();
    if !done.as_ref().is_ok_and(|done| done.status.success()) {
        println!("without priority: {done:?}");
    }
}

/// Of the samples in the libraries. Where others wait for the CPUs, the kernel takes these from preferred threads for
/// 50 ms in every second, and the agent comes too late for the processes of that time. Without news of mappings it is 1
/// % on either.
fn least_percent() -> u32 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let waiting: f64 = load.split(' ').next().unwrap().parse().unwrap();
    let cpus = stakeout_agent::kernel::online_cpus().unwrap().len();
    if waiting <= cpus as f64 { 99 } else { 95 }
}

/// Of samples whose innermost frame is user code: where it is.
fn judge(recorded: &Recorded, tgids: &[u32]) -> Found {
    let mut found = Found::default();
    let own =
        |seen: &Seen<'_>| tgids.contains(&seen.process.tgid) && &*seen.process.executable == "loads-a-library-late";
    for leaf in recorded.samples().filter(own).filter_map(|seen| seen.frames().next()) {
        match leaf {
            Frame {
                kind: FrameKind::Kernel,
                ..
            } => {}
            leaf if leaf.function.as_deref() == Some(FUNCTION)
                && leaf.module.contains("/late-")
                && leaf.build_id.is_some() =>
            {
                found.whole += 1;
            }
            leaf if leaf.function.is_some() => found.elsewhere += 1,
            _ => found.nameless += 1,
        }
    }
    found
}

#[test]
fn a_library_that_a_short_process_loads_late_has_its_names() {
    if !possible() {
        return;
    }
    let libraries = LateLibraries::compile();
    // On a busy machine a program that is to live for a moment lives for long, and the agent, hardly optimised here,
    // comes late.
    prefer_this_thread("2");
    let recording = Recording::start(AgentConfig {
        interval: AgentConfig::default().interval,
        ..fast()
    });
    prefer_this_thread("1");
    let tgids = libraries.run(250);
    let recorded = recording.stop();
    check_account(&recorded);
    let found = judge(&recorded, &tgids);
    println!("{found:?}, {:?}, {:?}", recorded.totals.table, recorded.totals.kernel);
    assert!(found.whole > 100, "{found:?}");
    assert!(
        found.whole * 100 >= (found.whole + found.nameless) * least_percent(),
        "{found:?}"
    );
    assert_eq!(recorded.totals.kernel.mappings_refused, 0);
}

/// Puts back what it was when the test ends.
struct LockedMemory(String);

const LOCKED_MEMORY: &str = "/proc/sys/kernel/perf_event_mlock_kb";

impl LockedMemory {
    fn none() -> Self {
        let before = std::fs::read_to_string(LOCKED_MEMORY).unwrap();
        std::fs::write(LOCKED_MEMORY, "0").unwrap();
        Self(before)
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        std::fs::write(LOCKED_MEMORY, &self.0).unwrap();
    }
}

/// Where the kernel gives no memory for the rings, as many names are found as before there were any.
#[test]
fn without_news_of_mappings_the_agent_goes_on_and_says_so() {
    if !possible() {
        return;
    }
    if std::env::var_os(INNER).is_some() {
        let libraries = LateLibraries::compile();
        let recording = Recording::start(fast());
        let tgids = libraries.run(50);
        Program::burn("burn-without-mappings").spawn(3000, None).finish();
        let recorded = recording.stop();
        check_account(&recorded);
        let limits = &recorded.batches[0].report.limits;
        let cpus = stakeout_agent::kernel::online_cpus().unwrap().len() as u64;
        assert_eq!(limits.get("mapping_events_refused"), Some(&cpus), "{limits:?}");
        let burning = recorded
            .samples()
            .filter(|seen| &*seen.process.executable == "burn-without-mappings");
        assert!(burning.filter(|seen| seen.has("main")).count() > 50);
        println!("{:?}", judge(&recorded, &tgids));
        return;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    if !is_root() || release.starts_with("5.10.") {
        println!("SKIPPED: needs root, and a kernel that does not count BPF maps as locked memory (5.11)");
        return;
    }
    let _none = LockedMemory::none();
    let this = std::env::current_exe().unwrap();
    let test = "new_mappings::without_news_of_mappings_the_agent_goes_on_and_says_so";
    let arguments = ["--memlock=0:0", this.to_str().unwrap(), "--exact", test, "--nocapture"];
    let output = with_capabilities(&CAPABILITIES, "prlimit".as_ref(), &arguments);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(
        output.status.success() && text.contains("1 passed") && !text.contains("SKIPPED"),
        "{text}"
    );
}

/// On the whole machine, since it started.
fn processes_started() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let line = stat.lines().find_map(|line| line.strip_prefix("processes "));
    line.unwrap().trim().parse().unwrap()
}

/// A program that maps code some hundred thousand times a second is looked at about once a second.
#[test]
fn who_maps_code_all_the_time_costs_little_and_loses_nothing() {
    if !possible() {
        return;
    }
    let program = Program::compile("code_churn.c", "maps-code-all-the-time");
    let recording = Recording::start(fast());
    let (before, started) = (stakeout_agent::sys::process_cpu_ns(), processes_started());
    program.spawn(8000, None).finish();
    let used_ns = stakeout_agent::sys::process_cpu_ns() - before;
    let recorded = recording.stop();
    let others = processes_started() - started;
    check_account(&recorded);
    let (kernel, table) = (recorded.totals.kernel, recorded.totals.table);
    let lost: u64 = recorded.totals.lost.values().sum();
    assert_eq!(lost, 0, "{:?}", recorded.totals.lost);
    let first = recorded.batches.first().unwrap().from_unix_ns;
    let seconds = (recorded.batches.last().unwrap().until_unix_ns - first) / 1_000_000_000;
    println!(
        "{} ms of CPU time in {seconds} s; {table:?}, {kernel:?}",
        used_ns / 1_000_000
    );
    // The first looks come quickly one after the other; other programs load their libraries meanwhile.
    assert!(
        table.mapping_looks <= seconds * 2 + 40 + others * 8,
        "{seconds} s, {others} other processes, {table:?}"
    );
    let limits = &recorded.batches.last().unwrap().report.limits;
    for (name, count) in [
        ("mapping_looks_put_off", table.mapping_looks_put_off),
        ("mapping_events_lost", kernel.mappings_lost),
    ] {
        assert!(
            count > 0 && limits.get(name).is_some_and(|told| *told > 0),
            "{name}: {limits:?}"
        );
    }
    let own = recorded
        .samples()
        .filter(|seen| &*seen.process.executable == "maps-code-all-the-time");
    assert!(own.filter(|seen| seen.has("main")).count() > 500);
}
