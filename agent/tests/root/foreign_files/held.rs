//! What is held of a program that has ended.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use stakeout_agent::agent::AgentConfig;

use super::whose::{chain, percent, run};
use super::{Mount, is_held_by, may_mount, wait_until};
use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::recording::{Recording, possible};

/// Within so many seconds after the last process that maps a file, nothing of it is held.
const RELEASED_S: u64 = 10;

#[test]
fn a_filesystem_is_free_soon_after_its_program_ended_and_the_program_is_named() {
    if !possible() || !may_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mounted");
    let mount = Mount::new("tmpfs", "size=32m", &point);
    let device = std::fs::metadata(&point).unwrap().dev();
    let program = chain("program-to-be-unmounted", "outer_held", "inner_held", 64);
    let path = point.join("program-to-be-unmounted");
    std::fs::copy(&program.path, &path).unwrap();
    // Names are read late: the interval goes on when the program has ended.
    let config = AgentConfig {
        interval: std::time::Duration::from_secs(20),
        ..fast()
    };
    let recording = Recording::start(config);
    let tgid = run(&path, 1500);
    let ended = Instant::now();
    std::fs::remove_file(&path).unwrap();
    wait_until("nothing of it is held", RELEASED_S, || !is_held_by("self", device));
    wait_until("it can be unmounted", RELEASED_S, || mount.unmount());
    println!("free after {:.1} s", ended.elapsed().as_secs_f64());
    let recorded = recording.stop();
    check_account(&recorded);
    let named = percent(&recorded, tgid, &["inner_held", "outer_held", "main"]);
    assert!(named >= 95, "{named} % are whole and named");
    assert_eq!(recorded.totals.table.given_up_unread, 0);
}

#[test]
fn names_are_read_in_time_while_others_take_long() {
    if !possible() {
        return;
    }
    let program = chain("program-beside-a-large-one", "outer_beside", "inner_beside", 64);
    let device_and_inode = |state: std::fs::Metadata| (state.dev(), state.ino());
    let file = device_and_inode(std::fs::metadata(&program.path).unwrap());
    let is_held = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        descriptors
            .filter_map(|descriptor| std::fs::metadata(descriptor.path()).ok())
            .any(|state| device_and_inode(state) == file)
    };
    let recording = Recording::start(fast());
    let busy = recording.keep_naming_busy();
    let tgid = run(&program.path, 1500);
    wait_until("its file is closed", RELEASED_S, || !is_held());
    drop(busy);
    let recorded = recording.stop();
    check_account(&recorded);
    let named = percent(&recorded, tgid, &["inner_beside", "outer_beside", "main"]);
    let limits = &recorded.batches.last().unwrap().report.limits;
    let stacks: std::collections::BTreeSet<_> = recorded.of_tgid(tgid).iter().map(|seen| seen.functions()).collect();
    assert!(
        named >= 95,
        "{named} % are whole and named; {limits:?}; {stacks:?}; {:?}",
        recorded.totals
    );
}

#[test]
fn a_program_that_runs_again_after_its_file_was_given_up_has_its_names_and_tables() {
    if !possible() {
        return;
    }
    let program = chain("program-that-runs-twice", "outer_again", "inner_again", 300);
    let inode = std::fs::metadata(&program.path).unwrap().ino();
    let recording = Recording::start(fast());
    let first = run(&program.path, 1000);
    wait_until("its file is closed", RELEASED_S, || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        !descriptors
            .filter_map(|descriptor| std::fs::metadata(descriptor.path()).ok())
            .any(|state| state.ino() == inode)
    });
    let second = run(&program.path, 1000);
    let recorded = recording.stop();
    for (run, tgid) in [("first", first), ("second", second)] {
        let named = percent(&recorded, tgid, &["inner_again", "outer_again", "main"]);
        let table = &recorded.totals.table;
        assert!(named >= 90, "{named} % of the {run} run; {table:?}");
    }
}
