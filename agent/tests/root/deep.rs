//! Deep stacks with and without frame pointers are whole, in order, on whatever kernel this is.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Instant;

use stakeout_agent::frames::FrameKind;
use stakeout_agent::kernel;

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recorded, Recording, Seen, possible};

/// Leaf first; the C library's own functions stand between the last two.
const CHAIN: [&str; 12] = [
    "burn", "level10", "level9", "level8", "level7", "level6", "level5", "level4", "level3", "level2", "level1", "main",
];

/// The agent says that nothing is missing above; and with the kernel's own frames taken off, the stack is the end of
/// the chain (while a function is entered or left, those that it calls are not there) up to `main`, or something else
/// that `main` or the C library's end does. A process that has given its memory back already has no user stack.
fn is_whole(seen: Seen<'_>) -> bool {
    let user = seen.frames().filter(|frame| frame.kind != FrameKind::Kernel);
    let names: Vec<&str> = user.map(|frame| frame.function.as_deref().unwrap_or("?")).collect();
    let known = match names.iter().position(|name| *name == "main") {
        Some(main) if names[..main].iter().any(|name| CHAIN.contains(name)) => CHAIN.ends_with(&names[..=main]),
        Some(_) => true,
        None if names.is_empty() => seen.has("do_exit"),
        None => names.last() == Some(&"_start") && !names.iter().any(|name| CHAIN.contains(name)),
    };
    known && !seen.stack.truncated
}

/// Whole stacks, and all, in the first and the second half of a program's life. In the first its files' tables may
/// still be in the making: an emulated processor takes seconds for them. What is not whole is printed.
fn shares(recorded: &Recorded, tgid: u32, name: &str) -> [(usize, usize); 2] {
    // Before its own first instruction it is the program that started it, or the loader.
    let own = |seen: &Seen<'_>| {
        *seen.process.executable == *name && seen.functions().iter().all(|name| !name.starts_with("_dl_"))
    };
    let mut seen: Vec<_> = recorded.of_tgid(tgid).into_iter().filter(own).collect();
    seen.sort_by_key(|seen| seen.sample.ts_unix_ns);
    let middle = seen.len() / 2;
    let (first, second) = seen.split_at(middle);
    [("first", first), ("second", second)].map(|(half, seen)| {
        let mut odd: BTreeMap<(bool, Vec<&str>), usize> = BTreeMap::new();
        for seen in seen.iter().filter(|seen| !is_whole(**seen)) {
            *odd.entry((seen.stack.truncated, seen.functions())).or_default() += 1;
        }
        for ((truncated, functions), count) in &odd {
            println!("{count} in the {half} half of {name}, truncated {truncated}: {functions:?}");
        }
        (seen.len() - odd.values().sum::<usize>(), seen.len())
    })
}

#[test]
fn deep_stacks_are_whole_with_and_without_frame_pointers() {
    if !possible() {
        return;
    }
    let programs = [
        ("deep-without-frame-pointers", "-fomit-frame-pointer"),
        ("deep-with-frame-pointers", "-fno-omit-frame-pointer"),
    ]
    .map(|(name, flag)| (name, Program::compile_with(&["-O2", flag], "deep.c", name)));
    let recording = Recording::start(fast());
    let verified = kernel::loaded_programs()
        .into_iter()
        .filter_map(|program| program.followed)
        .max();
    let dd = Running::spawn(
        Command::new("dd")
            .args(["if=/dev/urandom", "of=/dev/null", "bs=1M"])
            .stderr(Stdio::null()),
    );
    let dd_tgid = dd.tgid();
    let begun = Instant::now();
    let running = programs
        .each_ref()
        .map(|(name, program)| (*name, program.spawn(8000, None)));
    let tgids = running.each_ref().map(|(name, running)| (*name, running.tgid()));
    for (_, running) in running {
        running.finish();
    }
    drop(dd);
    let took = begun.elapsed().as_secs_f64();
    let recorded = recording.stop();
    println!("{took:.1} s, {:?}", recorded.totals);
    check_account(&recorded);

    let [without, with] = tgids.map(|(name, tgid)| shares(&recorded, tgid, name));
    let seen = recorded.of_tgid(dd_tgid);
    let in_kernel: Vec<_> = seen.into_iter().filter(|seen| seen.in_kernel()).collect();
    let nameless = |seen: &&Seen<'_>| {
        let mut kernel = seen.frames().filter(|frame| frame.kind == FrameKind::Kernel);
        kernel.any(|frame| frame.function.is_none())
    };
    let named = in_kernel.len() - in_kernel.iter().filter(nameless).count();
    let random = in_kernel.iter().filter(|seen| {
        seen.functions()
            .iter()
            .any(|name| ["random", "chacha"].iter().any(|word| name.contains(word)))
    });
    let random = random.count();

    // `cargo xtask kernels` shows these beside the other kernels'.
    let totals = &recorded.totals;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let lost: u64 = totals.lost.values().sum();
    let of = |(part, all): (usize, usize)| format!("{part}/{all}");
    let figures = [
        ("kernel", release.trim().to_owned()),
        ("verified", verified.map_or("?".into(), |count| count.to_string())),
        ("taken", totals.kernel.taken.to_string()),
        ("batched", totals.batched.to_string()),
        ("lost", lost.to_string()),
        ("without", of(without[1])),
        ("with", of(with[1])),
        ("starting", of((without[0].0 + with[0].0, without[0].1 + with[0].1))),
        ("named", of((named, in_kernel.len()))),
        ("copied", totals.kernel.stacks_copied.to_string()),
        (
            "bpf_ns",
            (totals.kernel.bpf_ns / totals.kernel.taken.max(1)).to_string(),
        ),
    ];
    let figures = figures.map(|(name, value)| format!("{name}={value}"));
    println!("figures: {}", figures.join(" "));

    for (name, [_, (whole, all)]) in [("without", without), ("with", with)] {
        assert!(all > 50, "{all} samples {name} frame pointers");
        assert!(
            whole * 100 >= all * 99,
            "{whole} of {all} stacks {name} frame pointers are whole"
        );
    }
    assert!(in_kernel.len() > 50, "{} samples of dd in the kernel", in_kernel.len());
    assert!(
        named * 100 >= in_kernel.len() * 99,
        "{named} of {} kernel stacks of dd have all names",
        in_kernel.len()
    );
    assert!(
        random * 100 >= in_kernel.len() * 90,
        "dd reads random bytes in {random} of {}",
        in_kernel.len()
    );
}
