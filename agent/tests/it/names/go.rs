//! Go programs, held against what Go's own runtime says of the same addresses.

use std::path::Path;
use std::process::Command;

use super::{Talker, has_tool};
use stakeout_agent::symbolize::{Namer, NamerConfig};

const PROGRAM: &str = r#"
package main

import ("bufio"; "fmt"; "os"; "runtime"; "sort"; "strings")

type thing struct{ n int }

//go:noinline
func (t *thing) method(f func() int) int { return t.n + f() }

//go:noinline
func generic[T any](v T) T { runtime.KeepAlive(v); return v }

func main() {
	t := &thing{1}
	t.method(func() int { return len(os.Args) })
	generic(3)
	around()
	words := []string{"b", "a"}
	sort.Slice(words, func(i, j int) bool { tell(); return words[i] < words[j] })
	strings.Map(func(r rune) rune { tell(); return r }, "a")
	fmt.Println("end")
	bufio.NewReader(os.Stdin).ReadString('\n')
}

func inlinedTwice(f func()) { f(); runtime.KeepAlive(f) }

func inlinedOnce(f func()) { inlinedTwice(f); runtime.KeepAlive(f) }

//go:noinline
func around() { inlinedOnce(tell); runtime.KeepAlive(0) }

//go:noinline
func tell() {
	pcs := make([]uintptr, 64)
	pcs = pcs[:runtime.Callers(0, pcs)]
	each := runtime.CallersFrames(pcs)
	for index, pc := range pcs {
		// One line for each function with what was inlined in it, innermost first: by FuncForPC these begin where it does.
		entry := func(pc uintptr) uintptr { return runtime.FuncForPC(pc - 1).Entry() }
		if index == 0 || entry(pcs[index - 1]) != entry(pc) { fmt.Printf("\nall %x", pc - 1) }
		frame, _ := each.Next()
		fmt.Printf(" %s %s:%d", frame.Function, frame.File, frame.Line)
	}
	fmt.Println()
	for _, pc := range pcs {
		for at := pc - 1; at < pc + 40; at += 13 {
			function := runtime.FuncForPC(at)
			if function == nil { continue }
			file, line := function.FileLine(at)
			// Where a function was inlined, FuncForPC names that one, so the entry's name is asked.
			outer := runtime.FuncForPC(function.Entry())
			fmt.Printf("ends %x %s %s:%d %s\n", at, function.Name(), file, line, outer.Name())
		}
	}
}
"#;

/// None where this machine cannot build it.
fn build(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Option<std::path::PathBuf> {
    let (file, program) = (folder.join("main.go"), folder.join("program"));
    std::fs::write(&file, PROGRAM).unwrap();
    let output = Command::new("go")
        .args(["build", "-p=1", "-o"])
        .arg(&program)
        .args(arguments)
        .arg(&file)
        .envs(environment.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap();
    if !output.status.success() {
        eprintln!("SKIPPED {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success().then_some(program)
}

#[test]
fn go_programs_have_names_and_lines_stripped_or_not() {
    if !has_tool("go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["-ldflags=-s -w"][..],
        &["-ldflags=-s -w", "-buildmode=pie"],
        &["-ldflags=-s -w", "-trimpath"],
        &["-ldflags=-w"],
        &[],
    ] {
        let Some(program) = build(folder.path(), arguments, &[("CGO_ENABLED", "0")]) else {
            continue;
        };
        let mut talker = Talker::start(&mut Command::new(&program));
        let fields = |line: &String| {
            let (what, fields) = line
                .split_once(' ')
                .filter(|(what, _)| ["all", "ends"].contains(what))?;
            let fields: Vec<String> = fields.split(' ').map(str::to_owned).collect();
            Some((what == "all", fields))
        };
        let said: Vec<(bool, Vec<String>)> = talker.lines.iter().filter_map(fields).collect();
        assert!(said.len() > 60, "{arguments:?}: {}", said.len());
        let addresses: Vec<u64> = said
            .iter()
            .map(|(_, fields)| u64::from_str_radix(&fields[0], 16).unwrap())
            .collect();
        // DWARF is held against the runtime as well, where there is some.
        let mut namer = Namer::new(NamerConfig::default());
        let begin = std::time::Instant::now();
        let named = talker.names(&mut namer, &addresses);
        eprintln!(
            "{arguments:?}: {} addresses in {:?}, {:?}",
            said.len(),
            begin.elapsed(),
            namer.stats()
        );
        let (mut functions, mut deepest) = (std::collections::BTreeSet::new(), 0);
        for ((all, fields), frames) in said.iter().zip(&named) {
            let told: Vec<[String; 2]> = frames
                .iter()
                .map(|frame| {
                    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or("?").to_owned();
                    [text(&frame.function), format!("{}:{}", text(&frame.file), frame.line)]
                })
                .collect();
            let mut expected = told.concat();
            if !all {
                // The innermost function's name, file and line, and the outermost one's name.
                expected = [&told[0][..], &told[told.len() - 1][..1]].concat();
            }
            assert_eq!(expected, fields[1..], "{arguments:?}: {}", fields[0]);
            let inlined = frames.iter().rev().skip(1);
            assert!(inlined.clone().all(|frame| frame.inlined) && !frames.last().unwrap().inlined);
            if *all {
                deepest = inlined.count().max(deepest);
            }
            functions.extend(told.into_iter().map(|[name, _]| name));
        }
        assert_eq!(deepest, 2, "{arguments:?}");
        assert!(functions.contains("main.main"), "{functions:?}");
        assert!(
            functions.iter().any(|name| name.starts_with("main.main.func")),
            "{functions:?}"
        );
    }
}
