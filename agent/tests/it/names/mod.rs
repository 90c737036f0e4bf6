//! Names of running programs, held against what the programs say of themselves.

mod damage;
mod go;
mod large;
mod native;
mod run_time;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stakeout_agent::frames::{CodeLocation, Frame, ProgramKey, SourceId};
use stakeout_agent::metadata::Resolver;
use stakeout_agent::process::{CommandLines, ModuleTable, Sighting, Source, Table};
use stakeout_agent::symbolize::{Namer, NamerConfig, NamerStats};

/// True where a tool is there. Where it is not, the test that needs it is skipped, but not in CI.
pub(super) fn has_tool(name: &str) -> bool {
    // Go has no `--version`.
    let there = Command::new(name)
        .arg(if name == "go" { "version" } else { "--version" })
        .output()
        .is_ok_and(|output| output.status.success());
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(there || !in_ci, "CI needs {name}");
    if !there {
        eprintln!("SKIPPED: there is no {name}");
    }
    there
}

/// Runs a tool that must succeed.
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What names a process that runs.
pub(super) fn key_of(tgid: u32) -> ProgramKey {
    let stat = std::fs::read_to_string(format!("/proc/{tgid}/stat")).unwrap();
    let start_ticks = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    ProgramKey {
        tgid,
        start_ticks: start_ticks.parse().unwrap(),
        exec_id: 1,
    }
}

/// A program that prints lines `NAME ADDRESS` (and more) and `end`, and then waits for its end.
pub(super) struct Talker {
    child: Child,
    pub(super) lines: Vec<String>,
    pub(super) key: ProgramKey,
    pub(super) table: Table,
}

impl Talker {
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let reader = BufReader::new(child.stdout.take().unwrap());
        let lines = reader
            .lines()
            .map(|line| line.unwrap())
            .take_while(|line| line != "end");
        let lines: Vec<String> = lines.collect();
        assert!(!lines.is_empty(), "{command:?} says nothing");
        let key = key_of(child.id());
        let mut table = Table::new(16, ModuleTable::new(64, 64), Resolver::default(), CommandLines::Off);
        table.program(&Sighting::of(key, 1), 1);
        Self {
            child,
            lines,
            key,
            table,
        }
    }

    /// The fields of the line that begins with `name`.
    pub(super) fn line(&self, name: &str) -> Vec<&str> {
        let begins = |line: &&String| line.split(' ').next() == Some(name);
        let line = self.lines.iter().find(begins).unwrap_or_else(|| panic!("no {name}"));
        line.split(' ').skip(1).collect()
    }

    pub(super) fn address(&self, name: &str) -> u64 {
        u64::from_str_radix(self.line(name)[0].trim_start_matches("0x"), 16).unwrap()
    }

    pub(super) fn location(&mut self, address: u64) -> (CodeLocation, Option<Source>) {
        let location = self.table.location(self.key, address, true, 1);
        (location, self.table.source(self.key, location.source, 1))
    }

    /// Names addresses of the process, each with its inlined frames.
    pub(super) fn names(&mut self, namer: &mut Namer, addresses: &[u64]) -> Vec<Vec<Frame>> {
        let locations: Vec<(CodeLocation, Option<Source>)> =
            addresses.iter().map(|address| self.location(*address)).collect();
        name_locations(namer, &locations)
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) fn name_locations(namer: &mut Namer, locations: &[(CodeLocation, Option<Source>)]) -> Vec<Vec<Frame>> {
    let sources: HashMap<SourceId, Source> = locations
        .iter()
        .filter_map(|(location, source)| Some((location.source, source.clone()?)))
        .collect();
    let locations: Vec<CodeLocation> = locations.iter().map(|(location, _)| *location).collect();
    let named = namer.name(&locations, &sources, 1);
    named
        .iter()
        .map(|frames| frames.iter().map(|frame| (**frame).clone()).collect())
        .collect()
}

/// A namer of symbols only.
pub(super) fn without_lines() -> Namer {
    Namer::new(NamerConfig {
        lines_limit_bytes: 0,
        ..NamerConfig::default()
    })
}

/// The function that is not inlined, of each address.
pub(super) fn functions(frames: &[Vec<Frame>]) -> Vec<Option<&str>> {
    frames
        .iter()
        .map(|frames| frames.last().unwrap().function.as_deref())
        .collect()
}

/// Starts the program and says how the namer names these addresses of its functions: the first byte, and one inside.
pub(super) fn names_of(program: &Path, wanted: &[&str]) -> (Vec<Option<String>>, NamerStats) {
    let mut talker = Talker::start(&mut Command::new(program));
    let mut namer = without_lines();
    let addresses: Vec<u64> = wanted
        .iter()
        .flat_map(|name| [0, 3].map(|more| talker.address(name) + more))
        .collect();
    let named = talker.names(&mut namer, &addresses);
    let names = functions(&named)
        .into_iter()
        .map(|name| name.map(str::to_owned))
        .collect();
    (names, namer.stats())
}
