//! Stacks that cannot be told whole keep their thread's root and add up: recursion of any depth, and code of run-time
//! compilers.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use stakeout_agent::frames::FrameKind;

use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recorded, Recording, Seen, possible};

/// Of the user part, leaf first, with a `?` for what has no name.
fn user_names(seen: Seen<'_>) -> Vec<&str> {
    let user = seen.frames().filter(|frame| frame.kind != FrameKind::Kernel);
    user.map(|frame| frame.function.as_deref().unwrap_or("?")).collect()
}

/// Runs programs beside each other under one agent.
fn record(programs: Vec<Command>) -> (Recorded, Vec<u32>) {
    let recording = Recording::start(fast());
    let running: Vec<Running> = programs
        .into_iter()
        .map(|mut command| Running::spawn(command.stdout(Stdio::piped())))
        .collect();
    let tgids = running.iter().map(Running::tgid).collect();
    for program in running {
        program.finish();
    }
    (recording.stop(), tgids)
}

fn command(program: &Program, arguments: &[&str]) -> Command {
    let mut command = Command::new(&program.path);
    command.args(arguments);
    command
}

/// The stacks of a program that reached `leaf`, each with its samples. Those from the first moments, when its tables
/// are not there yet, are few; the loader's are left out.
fn with_leaf<'a>(recorded: &'a Recorded, tgid: u32, leaf: &str) -> BTreeMap<(Vec<&'a str>, bool), usize> {
    let mut stacks = BTreeMap::new();
    for seen in recorded.of_tgid(tgid) {
        let names = user_names(seen);
        if names.contains(&leaf) {
            *stacks.entry((names, seen.stack.truncated)).or_default() += 1;
        }
    }
    stacks
}

/// Fails where fewer than 97 of 100 samples are as they have to be; prints what is not.
fn mostly(
    what: &str,
    stacks: &BTreeMap<(Vec<&str>, bool), usize>,
    least: usize,
    right: impl Fn(&[&str], bool) -> bool,
) {
    let (mut all, mut good) = (0, 0);
    for ((names, truncated), count) in stacks {
        all += count;
        if right(names, *truncated) {
            good += count;
        } else {
            let ends = if names.len() > 24 {
                format!("{:?} … {:?}", &names[..12], &names[names.len() - 12..])
            } else {
                format!("{names:?}")
            };
            println!("{what}: {count}, truncated {truncated}, {} frames: {ends}", names.len());
        }
    }
    println!("{what}: {good} of {all}");
    assert!(all >= least, "{what}: {all} samples");
    assert!(good * 100 >= all * 97, "{what}: {good} of {all} are right");
}

fn is_gap(name: &str) -> bool {
    name.starts_with("[… ") && name.ends_with(" frames]")
}

/// From `main` outwards there is the C library and `_start`.
fn has_root(names: &[&str]) -> bool {
    names.iter().rev().take(5).any(|name| *name == "main")
}

#[test]
fn recursion_of_any_depth_adds_up() {
    if !possible() {
        return;
    }
    // Without turning the recursion into a loop.
    let flags = ["-O1", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    let program = Program::compile_with(&flags, "cut_stacks/recursion.c", "calls-itself-any-number-of-times");
    let (recorded, tgids) = record(vec![
        command(&program, &["6000"]),
        command(&program, &["3000", "60000"]),
    ]);

    let stacks = with_leaf(&recorded, tgids[0], "burn");
    mostly("400 to 5,000 deep", &stacks, 40, |names, truncated| {
        let gaps = names.iter().filter(|name| is_gap(name)).count();
        has_root(names)
            && names[0] == "burn"
            && names.iter().filter(|name| **name == "descend").count() >= 400
            && gaps == usize::from(truncated)
            && truncated == (names.len() > 1024)
            && names.len() <= 1025
    });
    // What is left out counts in powers of two, up to 4,096.
    let deep: Vec<_> = stacks
        .keys()
        .filter(|(names, _)| names.iter().any(|name| is_gap(name)))
        .collect();
    assert!(
        (2..=13).contains(&deep.len()),
        "{} stacks of different depths",
        deep.len()
    );
    let samples: usize = deep.iter().map(|key| stacks[*key]).sum();
    assert!(samples > 20, "{samples} samples deeper than 1,024 frames");

    // The walk ends before the root: that is known from what the thread did before, or another process of the same
    // program.
    let stacks = with_leaf(&recorded, tgids[1], "burn");
    mostly("60,000 deep", &stacks, 20, |names, truncated| {
        truncated && has_root(names) && names.iter().filter(|name| is_gap(name)).count() == 1
    });
    let distinct = stacks.iter().filter(|(_, count)| **count > 1).count();
    assert!(distinct <= 3, "{distinct} stacks of one depth");
}

/// The user frames up to `main`, without the C library's above it.
fn up_to_main<'a>(names: &'a [&'a str]) -> &'a [&'a str] {
    let main = names.iter().position(|name| *name == "main");
    &names[..main.map_or(0, |main| main + 1)]
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "the machine code is x86-64's")]
fn code_made_without_frame_pointers_keeps_its_callers() {
    if !possible() {
        return;
    }
    let flags: [&[&str]; 2] = [
        &["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"],
        &["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"],
    ];
    let names = ["calls-made-code-without-fp", "calls-made-code-with-fp"];
    let programs = [0, 1].map(|at| Program::compile_with(flags[at], "cut_stacks/made.c", names[at]));
    let (recorded, tgids) = record(programs.iter().map(|program| command(program, &["3000"])).collect());
    for (name, tgid) in names.into_iter().zip(tgids) {
        let leaf = ["leaf", "?", "between", "?", "outer", "main"];
        mostly(name, &with_leaf(&recorded, tgid, "leaf"), 50, |names, truncated| {
            !truncated && up_to_main(names) == leaf
        });
        // In the made code itself, the inner or the outer one.
        mostly(name, &with_leaf(&recorded, tgid, "outer"), 100, |names, truncated| {
            let known = up_to_main(names);
            !truncated && known.len() > 1 && leaf.ends_with(known)
        });
    }
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "there return addresses say nothing of the stack pointer"
)]
fn code_of_luajit_and_php_keeps_its_callers() {
    if !possible() {
        return;
    }
    let lua = Program::compile_with(
        &["-O2", "-fno-optimize-sibling-calls"],
        "cut_stacks/lua.c",
        "runs-lua-in-its-process",
    );
    let has_lua = Command::new(&lua.path).status().unwrap().code() == Some(77)
        && Command::new("sh")
            .args(["-c", "ldconfig -p | grep -q libluajit-5.1.so.2"])
            .status()
            .unwrap()
            .success();
    let php = Command::new("php").arg("-v").output();
    let has_php = php.is_ok_and(|php| String::from_utf8_lossy(&php.stdout).contains("OPcache"));
    let mut commands = Vec::new();
    if has_lua {
        commands.push(command(&lua, &["3000"]));
    }
    if has_php {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/root/cut_stacks/work.php");
        let mut command = Command::new("php");
        for setting in ["enable=1", "enable_cli=1", "jit_buffer_size=64M", "jit=tracing"] {
            command.args(["-d".into(), format!("opcache.{setting}")]);
        }
        command.args([script, "3000"]);
        commands.push(command);
    }
    for (what, is_there) in [("LuaJIT", has_lua), ("PHP", has_php)] {
        if !is_there {
            println!("SKIPPED: {what} is not there (Debian: apt install luajit php-cli)");
        }
    }
    let (recorded, tgids) = record(commands);
    let mut tgids = tgids.into_iter();
    if has_lua {
        let tgid = tgids.next().unwrap();
        let stacks = with_leaf(&recorded, tgid, "run");
        mostly("Lua", &stacks, 100, |names, truncated| {
            let called = names.iter().position(|name| *name == "run");
            !truncated && called.is_some_and(|at| names[at - 1..].starts_with(&["lua_pcall", "run", "main"]))
        });
        let all = recorded.of_tgid(tgid).len();
        let with_run: usize = stacks.values().sum();
        assert!(with_run * 10 >= all * 9, "{with_run} of {all} were called by `run`");
        let calls = stacks.iter().filter(|((names, _), _)| names[0] == "called");
        let calls: usize = calls.map(|(_, count)| count).sum();
        assert!(calls > 20, "{calls} samples of what Lua calls");
    }
    if has_php {
        let tgid = tgids.next().unwrap();
        let rooted: usize = with_leaf(&recorded, tgid, "php_execute_script").values().sum();
        let all = recorded.of_tgid(tgid).len();
        assert!(
            all > 100 && rooted * 10 >= all * 9,
            "{rooted} of {all} PHP stacks are whole"
        );
    }
}
