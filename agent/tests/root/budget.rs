//! What is bounded stays within its bounds, and says what it could not do.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::kernel::{Sensor, Waits};

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recording, Seen, possible, take_turn};

const MIB: u64 = 1 << 20;

/// Ends its child with the test.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn busy(program: &str, arguments: &[&str]) -> Option<Busy> {
    let mut command = Command::new(program);
    let command = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok().map(Busy)
}

const NO_FRAME_POINTERS: [&str; 4] = ["-O1", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];

/// The burning program, without frame pointers, with the code of a header beside its own.
fn burn_with(header: &str, name: &str) -> Program {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root").join(header);
    let flags = [&NO_FRAME_POINTERS[..], &["-include", header.to_str().unwrap()]].concat();
    Program::compile_with(&flags, "burn.c", name)
}

#[test]
fn tables_that_do_not_fit_are_counted_and_no_sample_is_lost_for_them() {
    if !possible() {
        return;
    }
    // One slab: the C library and one of these programs fit.
    let recording = Recording::start(AgentConfig {
        table_bytes: MIB,
        ..fast()
    });
    let programs =
        ["one", "two", "three"].map(|which| burn_with("many_rows.h", &format!("burn-with-many-rows-{which}")));
    let running = programs.each_ref().map(|program| program.spawn(2000, None));
    for program in running {
        program.finish();
    }
    let recorded = recording.stop();
    check_account(&recorded);
    let stats = recorded.totals.unwinding;
    println!("{stats:?}");
    assert!(stats.table_bytes <= MIB && stats.no_room > 0, "{stats:?}");
    let limits = &recorded.batches.last().unwrap().report.limits;
    assert!(limits.contains_key("tables_without_room"), "{limits:?}");
}

#[test]
fn of_a_large_program_only_what_runs_takes_room() {
    if !possible() {
        return;
    }
    // The whole program would take 9 MiB, and other files are there too.
    let program = burn_with("many_functions.h", "burn-among-many-functions");
    let recording = Recording::start(AgentConfig {
        table_bytes: 8 * MIB,
        ..fast()
    });
    program.spawn(4000, None).finish();
    let recorded = recording.stop();
    check_account(&recorded);
    let stats = recorded.totals.unwinding;
    let own = |seen: &Seen<'_>| &*seen.process.executable == "burn-among-many-functions";
    let burning = || {
        recorded
            .samples()
            .filter(own)
            .filter(|seen| seen.has("work_a") || seen.has("work_b"))
    };
    let (all, whole) = (burning().count(), burning().filter(|seen| seen.has("main")).count());
    println!("{whole} of {all} whole; {stats:?}, {:?}", recorded.totals.kernel);
    assert!(all > 50 && whole * 100 >= all * 99, "{whole} of {all}; {stats:?}");
}

/// A program on every CPU, of whose stack as much is copied as ever is.
fn with_large_stacks() -> Vec<Running> {
    let program = burn_with("many_rows.h", "burn-with-a-large-stack");
    let cpus = stakeout_agent::kernel::online_cpus().unwrap();
    let spawn = |cpu: u32| {
        let mut command = Command::new(&program.path);
        // The environment lies at the stack's far end.
        command
            .args(["600000", &cpu.to_string()])
            .env("FILLING", "x".repeat(100_000))
            .stdout(Stdio::piped());
        Running::spawn(&mut command)
    };
    cpus.into_iter().map(spawn).collect()
}

/// Programs that ran before the agent did: until the first of their samples is looked at, each sample brings a copy
/// of its stack.
#[test]
fn copies_of_stacks_don_t_wait_until_the_ring_is_looked_into() {
    if !possible() {
        return;
    }
    // They take all CPUs: not before the test whose turn it is has ended.
    let turn = take_turn();
    let running = with_large_stacks();
    let config = AgentConfig {
        drain_every: Duration::from_millis(600),
        interval: Duration::from_secs(30),
        // Large tables, read slowly: there are many copies. The rate stays, since the interval does not end.
        cpu_limit: 1e-6,
        ..fast()
    };
    let recording = Recording::start_in(turn, config);
    std::thread::sleep(Duration::from_secs(5));
    let recorded = recording.stop();
    drop(running);
    check_account(&recorded);
    let (kernel, unwinding) = (recorded.totals.kernel, recorded.totals.unwinding);
    println!("{kernel:?}, {unwinding:?}");
    // Some, where this thread did not get its turn; without being woken it is half of them.
    assert!(
        kernel.stacks_copied > 50 && kernel.stacks_not_copied * 20 <= kernel.stacks_copied,
        "{kernel:?}"
    );
}

/// Where there is no CPU time for it, such programs are opened later, and their samples wait.
#[test]
fn a_program_that_lived_for_long_may_be_opened_late_and_has_its_names_all_the_same() {
    if !possible() {
        return;
    }
    let program = Program::burn("burn-for-some-seconds");
    let running = program.spawn(600_000, None);
    std::thread::sleep(Duration::from_secs(4));
    // It ends before the program need be opened, or long after.
    for milliseconds in [250, 4000] {
        assert_whole_without_time(&program, &running, Duration::from_millis(milliseconds));
    }
}

/// Also where others' copies of stacks have used up the room that all share who wait so.
#[test]
fn a_program_that_is_opened_late_has_room_for_its_stacks_beside_others() {
    if !possible() {
        return;
    }
    let program = Program::burn("burn-beside-others");
    let others = with_large_stacks();
    let running = program.spawn(600_000, None);
    std::thread::sleep(Duration::from_secs(4));
    assert_whole_without_time(&program, &running, Duration::from_secs(4));
    drop(others);
}

/// Records for so long with hardly any CPU time for opening programs.
fn assert_whole_without_time(program: &Program, running: &Running, length: Duration) {
    let recording = Recording::start(AgentConfig {
        cpu_limit: 1e-6,
        interval: Duration::from_secs(30),
        ..fast()
    });
    std::thread::sleep(length);
    let begun = Instant::now();
    let recorded = recording.stop();
    let stopping = begun.elapsed();
    check_account(&recorded);
    let own = recorded.of_tgid(running.tgid());
    let (all, whole) = (own.len(), own.iter().filter(|seen| seen.has("main")).count());
    let path = program.path.to_string_lossy();
    assert!(own.iter().all(|seen| *seen.process.executable_path == *path));
    println!(
        "{whole} of {all} whole, stopped after {stopping:?}; {:?}",
        recorded.totals.kernel
    );
    let cut = own.iter().filter(|seen| !seen.has("main"));
    let cut: Vec<_> = cut.map(|seen| (seen.sample.ts_unix_ns, seen.functions())).collect();
    let enough = all as u128 * 200 > length.as_millis() && whole * 100 >= all * 99;
    assert!(enough, "{whole} of {all}, cut: {cut:?}; {:?}", recorded.totals);
    assert!(stopping < Duration::from_secs(10), "{stopping:?}");
}

#[test]
fn beyond_the_cpu_limit_samples_are_taken_less_often_and_each_batch_says_how_often() {
    if !possible() {
        return;
    }
    // A millionth of the CPU time is used up at once.
    let recording = Recording::start(AgentConfig {
        cpu_limit: 1e-6,
        ..fast()
    });
    // On every CPU: where one is idle, some hypervisors let its timer sleep.
    let program = Program::burn("burn-while-throttled");
    let cpus = stakeout_agent::kernel::online_cpus().unwrap();
    let running: Vec<_> = cpus.into_iter().map(|cpu| program.spawn(5000, Some(cpu))).collect();
    for program in running {
        program.finish();
    }
    let recorded = recording.stop();
    check_account(&recorded);
    let rates: Vec<u32> = recorded.batches.iter().map(|batch| batch.frequency_hz).collect();
    assert_eq!(rates[0], 99);
    assert!(
        rates.is_sorted_by(|a, b| a >= b) && rates[rates.len() - 1] < 20,
        "{rates:?}"
    );
    assert!(recorded.totals.throttled >= 3, "{:?}", recorded.totals);
    for batch in &recorded.batches {
        // Whole multiples: samples of all rates add up.
        let base_ns = stakeout_agent::kernel::period_ns(99);
        assert_eq!(batch.period_ns % base_ns, 0, "{}", batch.period_ns);
        assert_eq!(u64::from(batch.frequency_hz), 99 * base_ns / batch.period_ns);
        // As many ticks as the batch's own rate makes in its time, and not those of the rate before or after, which
        // is twice or half of it; what the hypervisor took from this machine no timer sees.
        let seconds = (batch.until_unix_ns - batch.from_unix_ns) as f64 / 1e9;
        let expected = seconds * 1e9 / batch.period_ns as f64 * f64::from(batch.report.cpus);
        let (ticks, edge) = (batch.report.ticks as f64, 2.0 * f64::from(batch.report.cpus));
        assert!(
            ticks <= expected * 1.3 + edge && ticks >= expected * 0.6 - edge,
            "{ticks} ticks of {expected:.1}"
        );
    }
}

/// Many programs, each with an executable of its own, that start and end all the time.
#[test]
fn memory_and_descriptors_stay_bounded_while_programs_come_and_go() {
    if !possible() {
        return;
    }
    let seconds = std::env::var("STAKEOUT_CHURN_SECONDS").map_or(20, |text| text.parse().unwrap());
    let program = Program::burn("burn-one-of-many-copies");
    let copies: Vec<PathBuf> = (0..300)
        .map(|number| {
            let path = program.path.with_file_name(format!("burn-copy-number-{number}"));
            std::fs::copy(&program.path, &path).unwrap();
            path
        })
        .collect();
    let recording = Recording::start(AgentConfig {
        interval: Duration::from_secs(2),
        ..AgentConfig::default()
    });
    let sleepers: Vec<Busy> = (0..200).filter_map(|_| busy("sleep", &["3600"])).collect();
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut running: std::collections::VecDeque<Busy> = Default::default();
    for path in copies.iter().cycle() {
        if Instant::now() >= deadline {
            break;
        }
        running.extend(busy(&path.to_string_lossy(), &["20"]));
        if running.len() >= 8 {
            // The oldest ends before another one starts: what is not started by then need not be.
            running.pop_front().map(|mut oldest| oldest.0.wait().unwrap());
        }
    }
    drop((running, sleepers));
    let recorded = recording.stop();
    check_account(&recorded);
    let sizes: Vec<u64> = recorded
        .batches
        .iter()
        .map(|batch| batch.report.rss_bytes + batch.report.bpf_map_bytes)
        .collect();
    let half = sizes.len() / 2;
    let most = |sizes: &[u64]| sizes.iter().copied().max().unwrap_or(0) / MIB;
    println!(
        "{} batches: at most {} MiB in the first half, {} MiB in the second; {:?}",
        sizes.len(),
        most(&sizes[..half]),
        most(&sizes[half..]),
        recorded.totals
    );
    assert!(recorded.totals.table.open_files <= 1200, "{:?}", recorded.totals.table);
    // The test program itself is in it, unoptimised: what matters is that it does not grow.
    assert!(most(&sizes[half..]) <= most(&sizes[..half]) + 24, "{sizes:?}");
}

/// What is mapped of BPF maps is resident, but it is the maps' memory, which is counted for itself.
#[test]
fn mapped_maps_count_once() {
    if !possible() {
        return;
    }
    let _turn = take_turn();
    let sensor = Sensor::start(20, 16 * MIB, Waits::On, 50_000_000).unwrap();
    let bytes = |size: &str| size.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
    // Ranges, each followed by what it has.
    let (mut mapped, mut is_map) = (0, false);
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        if let Some(size) = line.strip_prefix("Rss:").filter(|_| is_map) {
            mapped += bytes(size);
        } else if line.split(' ').next().is_some_and(|range| range.contains('-')) {
            is_map = line.ends_with("anon_inode:bpf-map");
        }
    }
    // Not the sum of all ranges: before 6.2 the kernel counts what its threads have taken lately only later, 64 pages
    // for each.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = bytes(status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap()) - mapped;
    let said = sensor.resident_bytes();
    println!("resident without maps: {resident} bytes, mapped maps: {mapped}; the agent says {said}");
    // A ring of a megabyte alone is mapped twice.
    assert!(mapped > 2 * MIB);
    assert!(said.abs_diff(resident) < MIB, "{said} bytes, not {resident}");
}
