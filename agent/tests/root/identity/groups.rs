//! Control groups: born in one, moved to another, gone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recording, possible};

/// A control group of version 2, removed at the end.
struct Group {
    folder: PathBuf,
    /// As its label has it.
    path: String,
}

impl Group {
    /// None, with a word of why, where no group can be made.
    fn make(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            fields.next().filter(|_| fields.next() == Some("cgroup2"))
        });
        let name = format!("stakeout-{name}-{}", std::process::id());
        let folder = mount.map(|mount| Path::new(mount).join(&name));
        let Some(folder) = folder.filter(|folder| std::fs::create_dir(folder).is_ok()) else {
            println!("SKIPPED, since no control group of version 2 can be made here");
            return None;
        };
        let path = format!("/{name}");
        Some(Self { folder, path })
    }

    fn processes(&self) -> String {
        self.folder.join("cgroup.procs").to_string_lossy().into_owned()
    }

    /// A command that is in the group when it executes the program.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        let script = r#"echo $$ > "$0" && exec "$@""#;
        command.args(["-c", script, &self.processes()]).arg(program);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What is still in it ends in a moment.
        for _ in 0..500 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

#[test]
fn who_is_moved_is_told_in_the_group_of_the_moment() {
    if !possible() {
        return;
    }
    let (Some(from), Some(to)) = (Group::make("from.service"), Group::make("to.service")) else {
        return;
    };
    let program = Program::compile("identity/mover.c", "mover-between-groups");
    let recording = Recording::start(fast());
    for who in ["child", "itself"] {
        let mut command = from.command(&program.path);
        Running::spawn(command.args([who, &to.processes(), "3"])).wait();
    }
    let recorded = recording.stop();
    check_account(&recorded);
    for (function, group) in [("before_move", &from), ("after_move", &to)] {
        let seen: Vec<_> = recorded.samples().filter(|seen| seen.has(function)).collect();
        let own = seen
            .iter()
            .filter(|seen| *seen.process.metadata.cgroup == *group.path)
            .count();
        println!("{function}: {own} of {} in {}", seen.len(), group.path);
        assert!(seen.len() > 150, "{function}: {} samples", seen.len());
        assert_eq!(own, seen.len(), "{function}");
    }
}

/// Short programs by turns in two groups, and each time in a third one that lives no longer than they do.
#[test]
fn short_programs_are_told_in_the_groups_that_they_ran_in() {
    if !possible() {
        return;
    }
    let groups = ["one.service", "two.service"].map(Group::make);
    let [Some(one), Some(two)] = groups else { return };
    let program = Program::burn("burn-in-short-groups");
    let recording = Recording::start(fast());
    let mut paths = std::collections::BTreeMap::new();
    let mut run = |group: &Group| {
        let running = Running::spawn(group.command(&program.path).arg("30").stdout(Stdio::piped()));
        paths.insert(running.tgid(), group.path.clone());
        running.finish();
    };
    for number in 0..25 {
        run(&one);
        run(&two);
        let Some(short) = Group::make(&format!("short-{number}.scope")) else {
            return;
        };
        run(&short);
    }
    let recorded = recording.stop();
    check_account(&recorded);
    let seen: Vec<_> = recorded
        .samples()
        .filter(|seen| &*seen.process.executable == "burn-in-short-groups" && paths.contains_key(&seen.process.tgid))
        .collect();
    let own = seen
        .iter()
        .filter(|seen| *seen.process.metadata.cgroup == paths[&seen.process.tgid])
        .count();
    let others = seen.iter().filter(|seen| {
        let cgroup = &*seen.process.metadata.cgroup;
        !cgroup.is_empty() && cgroup != paths[&seen.process.tgid]
    });
    let others = others.count();
    println!(
        "{own} of {} samples in their own groups, {others} in others",
        seen.len()
    );
    assert!(seen.len() > 100, "{} samples", seen.len());
    assert_eq!(others, 0);
    assert!(own * 100 >= seen.len() * 99, "{own} of {}", seen.len());
}
