//! Nothing is lost without being counted.

use std::time::Duration;

use stakeout_agent::agent::{Agent, AgentConfig};
use stakeout_agent::kernel;
use stakeout_agent::metadata::Resolver;

use crate::ground_truth::fast;
use crate::program::Program;
use crate::recording::{Recorded, Recording, possible, take_turn};

/// Every batch's account is exact, intervals abut, and at the end the kernel side's own counters agree.
pub(crate) fn check_account(recorded: &Recorded) {
    let Recorded { batches, totals, .. } = recorded;
    let (mut in_batches, mut ticks, mut idle) = (0, 0, 0);
    for (index, batch) in batches.iter().enumerate() {
        in_batches += batch.samples.len() as u64;
        ticks += batch.report.ticks;
        idle += batch.report.idle_ticks;
        let lost: u64 = batch.report.lost.values().sum();
        assert_eq!(batch.report.samples_taken, in_batches + lost, "batch {index}");
        assert!(batch.from_unix_ns < batch.until_unix_ns);
        if index > 0 {
            assert_eq!(batch.from_unix_ns, batches[index - 1].until_unix_ns);
        }
        for sample in &batch.samples {
            assert!((batch.from_unix_ns..batch.until_unix_ns).contains(&sample.ts_unix_ns));
        }
    }
    let lost: u64 = totals.lost.values().sum();
    assert_eq!(totals.batched, in_batches);
    assert_eq!(totals.kernel.all_taken(), in_batches + lost);
    let counted = totals.kernel;
    assert_eq!(
        counted.ticks + counted.burst_taken,
        counted.taken + counted.idle_ticks + counted.left_to_burst
    );
    let left_out = totals.unticked.idle;
    assert_eq!(
        (ticks, idle),
        (totals.kernel.ticks + left_out, totals.kernel.idle_ticks + left_out)
    );
    let missed: u64 = batches.iter().map(|batch| batch.report.missed_ticks).sum();
    assert_eq!(missed, totals.unticked.missed);
    assert_eq!(totals.lost.get("unaccounted"), None);
    assert_eq!(totals.lost.get("malformed_record"), None);
}

#[test]
fn idle_is_counted_and_never_a_sample() {
    if !possible() {
        return;
    }
    let program = Program::burn("burn-beside-idleness");
    let recording = Recording::start(fast());
    program.spawn(3000, Some(0)).finish();
    let recorded = recording.stop();
    check_account(&recorded);
    let first = &recorded.batches[0];
    assert_eq!(
        u64::from(first.report.cpus),
        kernel::online_cpus().unwrap().len() as u64
    );
    // The leaf of an idle CPU is the instruction that halts it. A softirq is work, also where it asks for idle CPUs
    // (`_nohz_idle_balance`).
    let halted = recorded.samples().filter(|seen| seen.process.tgid == 0).find(|seen| {
        let names = seen.functions();
        let halts = names
            .first()
            .is_some_and(|leaf| leaf.contains("halt") || leaf.contains("idle"));
        halts && !names.iter().any(|name| name.contains("softirq"))
    });
    assert!(halted.is_none(), "{:?}", halted.map(|seen| seen.functions()));
    // Time that is neither idle nor a sample was taken by the hypervisor, or interrupts were off: never half of it.
    let (unticked, all) = (recorded.totals.unticked, recorded.totals.kernel.ticks);
    assert!(unticked.missed * 5 < all + unticked.idle, "{unticked:?}, {all} ticks");
    println!(
        "{all} ticks, {} of them idle, {unticked:?}",
        recorded.totals.kernel.idle_ticks
    );
}

#[test]
fn a_ring_that_overflows_loses_samples_and_says_how_many() {
    if !possible() {
        return;
    }
    // Never drained but at the end: the ring holds two seconds of busy CPUs at 512 bytes a sample, six seconds of the
    // small samples of a burning loop.
    let recording = Recording::start(AgentConfig {
        frequency_hz: 1000,
        drain_every: Duration::from_secs(600),
        interval: Duration::from_secs(600),
        ..AgentConfig::default()
    });
    let program = Program::burn("burn-until-overflow");
    let every_cpu: Vec<_> = kernel::online_cpus()
        .unwrap()
        .into_iter()
        .map(|cpu| program.spawn(12_000, Some(cpu)))
        .collect();
    every_cpu.into_iter().for_each(|running| {
        running.finish();
    });
    let recorded = recording.stop();
    assert!(recorded.totals.lost["ring_full"] > 0, "{:?}", recorded.totals);
    check_account(&recorded);
}

#[test]
fn nothing_stays_attached() {
    if !possible() {
        return;
    }
    let recording = Recording::start(fast());
    Program::burn("burn-before-detaching").spawn(300, None).finish();
    let recorded = recording.stop();
    check_account(&recorded);
    let left: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.contains("bpf") || target.contains("perf_event"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn an_agent_whose_naming_ends_does_not_go_on_without_it() {
    if !possible() {
        return;
    }
    let _turn = take_turn();
    let mut agent = Agent::start(fast(), Resolver::default(), |_| panic!("on purpose")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let failed = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), agent.failed()).await });
    assert!(failed.is_ok(), "it goes on, and nobody takes its samples");
    assert!(agent.stop().is_err());
}
