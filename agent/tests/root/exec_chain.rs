//! Programs that follow each other under one process id.

use std::process::Command;

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running, at_a_time, behind_others};
use crate::recording::{Recording, Seen, possible};

/// How many processes do it, and for how long each of their programs burns: the first is sampled, so that its table is
/// asked for, and is gone when that comes.
const PROCESSES: usize = 4;
const FIRST_MS: &str = "40";
const SECOND_MS: &str = "3000";

#[test]
fn a_table_that_comes_after_the_exec_does_not_take_the_next_programs_away() {
    if !possible() {
        return;
    }
    let flags = ["-O1", "-fno-omit-frame-pointer"];
    let second = Program::compile_with(&flags, "replaces_itself.c", "burns-below-a-large-frame");
    // Each has a file of its own, whose table takes a while.
    let with_table = [&flags[..], &["-DTABLE=\"many_rows.h\""]].concat();
    let firsts: Vec<Program> = (0..PROCESSES)
        .map(|number| Program::compile_with(&with_table, "replaces_itself.c", &format!("is-replaced-soon-{number}")))
        .collect();
    let recording = Recording::start(fast());
    let start = |first: &Program| {
        let mut command = Command::new(&first.path);
        command.arg(FIRST_MS).arg(&second.path).arg(SECOND_MS);
        Running::spawn(&mut behind_others(&command))
    };
    let mut tgids = Vec::new();
    for together in firsts.chunks(at_a_time()) {
        let running: Vec<Running> = together.iter().map(start).collect();
        tgids.extend(running.iter().map(Running::tgid));
        running.into_iter().for_each(Running::wait);
    }
    let recorded = recording.stop();
    check_account(&recorded);
    for tgid in tgids {
        let own = |seen: &Seen<'_>| &*seen.process.executable == "burns-below-a-large-frame";
        let mut seen: Vec<_> = recorded.of_tgid(tgid).into_iter().filter(own).collect();
        seen.sort_by_key(|seen| seen.sample.ts_unix_ns);
        // By then the tables of both programs are there.
        let later = seen.split_off(seen.len() / 2);
        let is_whole = |seen: &&Seen<'_>| {
            let in_the_loop = seen.has("burn_below_a_large_frame") && seen.has("main");
            !seen.stack.truncated && (in_the_loop || !seen.has("burn_for"))
        };
        let whole = later.iter().filter(is_whole).count();
        println!("{whole} of {} later stacks are whole", later.len());
        assert!(later.len() > 100, "{} samples", later.len());
        assert!(
            whole * 100 >= later.len() * 99,
            "{whole} of {} later stacks are whole",
            later.len()
        );
    }
}
