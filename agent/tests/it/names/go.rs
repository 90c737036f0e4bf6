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
	words := []string{"b", "a"}
	sort.Slice(words, func(i, j int) bool { tell(); return words[i] < words[j] })
	strings.Map(func(r rune) rune { tell(); return r }, "a")
	fmt.Println("end")
	bufio.NewReader(os.Stdin).ReadString('\n')
}

//go:noinline
func tell() {
	pcs := make([]uintptr, 64)
	for _, pc := range pcs[:runtime.Callers(0, pcs)] {
		for at := pc - 1; at < pc + 40; at += 13 {
			function := runtime.FuncForPC(at)
			if function == nil { continue }
			file, line := function.FileLine(at)
			// Where a function was inlined, FuncForPC names that one, so the entry's name is asked.
			outer := runtime.FuncForPC(function.Entry())
			fmt.Printf("pc %x %s %s %s:%d\n", at, outer.Name(), function.Name(), file, line)
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
        let fields = |line: &String| Some(line.strip_prefix("pc ")?.splitn(4, ' ').map(str::to_owned).collect());
        let said: Vec<Vec<String>> = talker.lines.iter().filter_map(fields).collect();
        assert!(said.len() > 40, "{arguments:?}: {}", said.len());
        let addresses: Vec<u64> = said
            .iter()
            .map(|fields| u64::from_str_radix(&fields[0], 16).unwrap())
            .collect();
        // Lines of DWARF are held against the runtime as well, where there are some.
        let mut namer = Namer::new(NamerConfig::default());
        let begin = std::time::Instant::now();
        let named = talker.names(&mut namer, &addresses);
        eprintln!(
            "{arguments:?}: {} addresses in {:?}, {:?}",
            said.len(),
            begin.elapsed(),
            namer.stats()
        );
        let (mut functions, mut seen_inlined) = (std::collections::BTreeSet::new(), 0);
        for (fields, frames) in said.iter().zip(&named) {
            let [address, outer, innermost, line] = &fields[..] else {
                panic!("{fields:?}")
            };
            let frame = frames.last().unwrap();
            let name = frame.function.as_deref().unwrap_or("?");
            assert_eq!(name, outer, "{arguments:?}: {address}");
            // Without DWARF a line inside inlined code is not told, since the function that it belongs to is not.
            let inlined = outer != innermost;
            let with_dwarf = arguments.is_empty();
            let leaf = &frames[0];
            let found = format!("{}:{}", leaf.file.as_deref().unwrap_or("?"), leaf.line);
            if !inlined || with_dwarf {
                assert_eq!(found, *line, "{arguments:?}: {address} in {outer}");
            } else {
                assert_eq!(found, "?:0", "{arguments:?}: {address} in {outer}");
            }
            seen_inlined += usize::from(inlined);
            functions.insert(name.to_owned());
        }
        assert!(seen_inlined > 0, "{arguments:?}");
        assert!(functions.iter().any(|name| name == "main.main"), "{functions:?}");
        assert!(
            functions.iter().any(|name| name.starts_with("main.main.func")),
            "{functions:?}"
        );
    }
}
