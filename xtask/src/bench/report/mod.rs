//! `cargo xtask bench report`: one document of what was measured last.
//!
//! In: `xtask/bench/records.json`, into which each bench writes its latest run. Out: `xtask/bench/report.md`, and
//! nothing else. Every figure is one that a run gave; a bench without a record is named as such.

mod figures;
mod records;

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use figures::Target;
pub(crate) use figures::{Figure, Figures};
use records::{Machine, Record, Records};

use super::machine::Speed;
use crate::repo;

/// The document, from the repository's root.
const REPORT: &str = "xtask/bench/report.md";

/// Each bench, how its record is made, and what it is about. In the order of the document.
const BENCHES: &[(&str, &str, &str)] = &[
    (
        "agent",
        "cargo xtask bench agent",
        "What the agent costs for each delivered sample, on CPUs that a mixed load keeps busy, beside `perf record`.",
    ),
    (
        "start",
        "cargo xtask bench start",
        "What the agent's first seconds cost where hundreds of processes are at work.",
    ),
    (
        "churn",
        "cargo xtask bench churn",
        "The agent's memory and descriptors while hundreds of programs start and end. The limits are the agent's.",
    ),
    (
        "lockstep",
        "cargo xtask bench lockstep",
        "Whether programs that work at a fixed rate have the samples of their time.",
    ),
    (
        "names",
        "cargo xtask bench names",
        "Whether a name is ever another one's, in programs whose functions come and go all the time.",
    ),
    (
        "agreement",
        "cargo xtask bench agreement --folder FOLDER",
        "Whether the agent and a language's own profiler tell the same of a real program.",
    ),
    (
        "waits",
        "cargo xtask bench waits",
        "What it costs to see threads wait, beside other tools, and whether waits for a CPU are told as by others.",
    ),
    (
        "store",
        "cargo xtask bench store --hours 1 --repeat 3 --engines",
        "What a stored sample costs and how long answers take, over a synthetic fleet.",
    ),
    (
        "commits",
        "cargo xtask bench commits",
        "Whether a commit costs as much after a hundred thousand commits as after a hundred.",
    ),
    (
        "scale",
        "cargo xtask bench scale",
        "What it costs that several servers count one question together, and by calculation what many machines would take.",
    ),
    (
        "cold",
        "cargo xtask bench cold",
        "How long the first question waits for a bucket, and the floor that its requests set.",
    ),
    (
        "fleet",
        "cargo xtask bench fleet --minutes 60",
        "Thousands of agents on two servers that share a bucket, of which one is killed and comes back.",
    ),
    (
        "viewers",
        "cargo xtask bench viewers",
        "Whether people wait for agents, or agents for people.",
    ),
    (
        "web",
        "cargo xtask bench web",
        "What a person waits for in the browser, beside other flamegraphs.",
    ),
];

const INTRODUCTION: &str = "# What was measured

`cargo xtask bench report` writes this file from `xtask/bench/records.json`, into which each bench puts its latest
run; it is not edited by hand. Figures belong to a machine and an hour: compare them beside how long a load from 64
MiB takes, which is most of what differs between machines of one kind. A figure that misses its target is bold.
";

/// What a run of a bench gives, if it comes to its end.
pub(super) struct Run {
    bench: &'static str,
    machine: Machine,
}

impl Run {
    /// A look at the machine before the bench makes it busy.
    pub(super) fn begin(bench: &'static str) -> Run {
        let machine = Machine::this(Speed::measure());
        machine.speed.print();
        Run { bench, machine }
    }

    /// Measures; there is nothing to keep of what did not come to its end.
    pub(super) fn of(self, bench: impl FnOnce() -> Result<()>) -> Result<Run> {
        bench()?;
        Ok(self)
    }

    /// Keeps what was measured, and writes the document anew.
    pub(super) fn end(self, figures: Figures) -> Result<()> {
        let mut records = Records::read()?;
        records.put(Record::of(
            self.bench,
            command(std::env::args().skip(1)),
            self.machine,
            figures,
        )?);
        records.write()?;
        write(&records)
    }
}

/// As a person would type it.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let mut command = "cargo xtask".to_owned();
    for argument in arguments {
        command.push(' ');
        let is_plain = !argument.is_empty() && !argument.contains(|c: char| c.is_whitespace() || "'\"$`\\".contains(c));
        match is_plain {
            true => command.push_str(&argument),
            false => {
                let _ = write!(command, "'{}'", argument.replace('\'', "'\\''"));
            }
        }
    }
    command
}

/// Writes the document from the records.
pub(super) fn run() -> Result<()> {
    write(&Records::read()?)
}

fn write(records: &Records) -> Result<()> {
    let path = repo::root().join(REPORT);
    fs::write(&path, render(records)).with_context(|| format!("can't write {}", path.display()))?;
    println!("{REPORT}: runs in it: {}", records.records.len());
    Ok(())
}

fn render(records: &Records) -> String {
    let mut text = INTRODUCTION.to_owned();
    for (bench, how, about) in BENCHES {
        let _ = write!(text, "\n## bench {bench}\n\n{about}\n");
        let mut runs = records
            .records
            .iter()
            .filter(|record| record.bench == *bench)
            .peekable();
        if runs.peek().is_none() {
            let _ = write!(text, "\nNot measured since runs are kept. `{how}` measures it.\n");
        }
        runs.for_each(|record| section(&mut text, record));
    }
    text
}

/// One run, with how to repeat it.
fn section(text: &mut String, record: &Record) {
    let Record { machine, .. } = record;
    let _ = write!(text, "\n### `{}`\n\n", record.command);
    let changed = if record.is_changed { " with changes" } else { "" };
    let given = if record.programs_given {
        ", programs of `STAKEOUT_BIN_DIR`"
    } else {
        ""
    };
    let _ = writeln!(text, "{}, commit {}{changed}{given}.", record.date, record.commit);
    let _ = writeln!(
        text,
        "{} CPUs, {}, {} GiB, Linux {}.",
        machine.cpus, machine.model, machine.memory_gib, machine.kernel
    );
    let beside = if machine.load > 0.5 {
        ": something ran beside it"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "A load from 64 MiB {} ns, a multiplication {} ns; load average before {:.2}{beside}.",
        number(machine.speed.load_ns),
        number(machine.speed.multiplication_ns),
        machine.load
    );
    let mut tables: Vec<&str> = record.figures.iter().map(|figure| &*figure.table).collect();
    tables.dedup();
    for title in tables {
        let figures: Vec<&Figure> = record.figures.iter().filter(|figure| figure.table == title).collect();
        if title.is_empty() {
            text.push('\n');
        } else {
            let _ = write!(text, "\n**{title}**\n\n");
        }
        if figures.iter().all(|figure| figure.row.is_empty()) {
            list(text, &figures);
        } else {
            table(text, &figures);
        }
    }
    for note in &record.notes {
        let _ = write!(text, "\n{}", wrapped(note));
    }
}

/// A figure a line.
fn list(text: &mut String, figures: &[&Figure]) {
    text.push_str("| what | figure | unit | target |\n|---|---:|---|---|\n");
    for figure in figures {
        let target = figure.target.map(said).unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {target} |",
            cell(&figure.name),
            value(figure),
            figure.unit
        );
    }
}

/// A row a line, with a column for each name. A target that all of a column have stands on top, others beside the
/// value.
fn table(text: &mut String, figures: &[&Figure]) {
    let distinct = |of: fn(&Figure) -> &str| {
        let mut all: Vec<&str> = vec![];
        for figure in figures {
            if !all.contains(&of(figure)) {
                all.push(of(figure));
            }
        }
        all
    };
    let (rows, names) = (distinct(|figure| &figure.row), distinct(|figure| &figure.name));
    let column = |name: &str| {
        figures
            .iter()
            .copied()
            .filter(move |figure| figure.name == name)
            .collect::<Vec<_>>()
    };
    let common = |name: &str| {
        let column = column(name);
        let first = column.first().and_then(|figure| figure.target);
        first.filter(|_| column.iter().all(|figure| figure.target == first))
    };
    text.push('|');
    for name in &names {
        let unit = column(name).first().map(|figure| &*figure.unit).unwrap_or_default();
        let unit = if unit.is_empty() {
            String::new()
        } else {
            format!(", {unit}")
        };
        let target = common(name)
            .map(|target| format!(" ({})", said(target)))
            .unwrap_or_default();
        let _ = write!(text, " | {}{unit}{target}", cell(name));
    }
    text.push_str(" |\n|---");
    names.iter().for_each(|_| text.push_str("|---:"));
    text.push_str("|\n");
    for row in rows {
        let _ = write!(text, "| {}", cell(row));
        for name in &names {
            let found = column(name).into_iter().find(|figure| figure.row == row);
            let shown = found.map_or("-".to_owned(), |figure| match figure.target {
                Some(target) if common(name).is_none() => format!("{} ({})", value(figure), said(target)),
                _ => value(figure),
            });
            let _ = write!(text, " | {shown}");
        }
        text.push_str(" |\n");
    }
}

/// Bold where it misses its target.
fn value(figure: &Figure) -> String {
    let shown = figure.value.map_or("none".to_owned(), number);
    if figure.is_met() == Some(false) {
        format!("**{shown}**")
    } else {
        shown
    }
}

fn said(target: Target) -> String {
    match target {
        Target::AtMost(most) => format!("at most {}", number(most)),
        Target::AtLeast(least) => format!("at least {}", number(least)),
    }
}

/// Three digits, of whole numbers all, in groups of three.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (sign, rest) = text.strip_prefix('-').map_or(("", &*text), |rest| ("-", rest));
    // What rounds to nothing has no sign.
    let sign = if rest.contains(|c: char| c.is_ascii_digit() && c != '0') {
        sign
    } else {
        ""
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A paragraph of lines within the columns that documents have.
fn wrapped(text: &str) -> String {
    let (mut wrapped, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > 110 {
            wrapped.push('\n');
            column = 0;
        }
        if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += length;
    }
    wrapped + "\n"
}

#[cfg(test)]
mod tests {
    use super::records::tests::record;
    use super::*;

    #[test]
    fn a_run_is_rendered_with_how_to_repeat_it_and_what_missed_its_target() {
        let mut run = record("cargo xtask bench store --hours 1", &[70.0, 1_234.5]);
        let mut figures = Figures::default();
        figures.table("Ingest");
        figures
            .add("samples per CPU second", "", 1_436_409.0)
            .at_least(1_000_000.0);
        figures.add("peak RSS", "MiB", f64::NAN);
        run.figures.extend(figures.all);
        let mut records = Records::default();
        records.put(run);
        let text = render(&records);
        let (_, section) = text.split_once("## bench store\n").unwrap();
        let (section, after) = section.split_once("\n## bench commits\n").unwrap();
        assert_eq!(
            section,
            "
What a stored sample costs and how long answers take, over a synthetic fleet.

### `cargo xtask bench store --hours 1`

2026-11-27, commit 0123456789.
2 CPUs, some processor, 7.8 GiB, Linux 6.18.44.
A load from 64 MiB 168 ns, a multiplication 1.25 ns; load average before 0.12.

**Queries**

| | warm, ms (at most 300) |
|---|---:|
| query 0 | 70 |
| query 1 | **1,234** |

**Ingest**

| what | figure | unit | target |
|---|---:|---|---|
| samples per CPU second | 1,436,409 |  | at least 1,000,000 |
| peak RSS | none | MiB |  |

warm: the median
"
        );
        assert!(after.contains("Not measured since runs are kept. `cargo xtask bench commits` measures it."));
    }

    #[test]
    fn targets_that_differ_within_a_column_stand_beside_the_values() {
        let mut figures = Figures::default();
        for (row, value, most) in [("99 Hz", 26.0, 25.0), ("20 Hz", 41.4, 50.0)] {
            figures.row(row);
            figures.add("a sample", "us", value).at_most(most);
        }
        figures.row("perf | dwarf");
        figures.add("stacks", "", 3.0);
        let mut text = String::new();
        table(&mut text, &figures.all.iter().collect::<Vec<_>>());
        assert_eq!(
            text,
            "| | a sample, us | stacks |\n|---|---:|---:|\n| 99 Hz | **26** (at most 25) | - |\n\
             | 20 Hz | 41.4 (at most 50) | - |\n| perf \\| dwarf | - | 3 |\n"
        );
    }

    #[test]
    fn numbers_have_three_digits_and_whole_ones_all() {
        let shown = [
            0.123,
            4.56,
            45.67,
            456.7,
            4_567.8,
            57_600_000.0,
            -1_234.5,
            3.0,
            0.0,
            -0.0,
            -0.001,
        ]
        .map(number);
        assert_eq!(
            shown,
            [
                "0.12",
                "4.56",
                "45.7",
                "457",
                "4,568",
                "57,600,000",
                "-1,234",
                "3",
                "0",
                "0",
                "0.00"
            ]
        );
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let arguments = ["bench", "store", "--memory-limit", "1 GiB", "it's"].map(str::to_owned);
        assert_eq!(
            command(arguments.into_iter()),
            "cargo xtask bench store --memory-limit '1 GiB' 'it'\\''s'"
        );
    }

    #[test]
    fn the_document_is_what_the_records_give() {
        let written = fs::read_to_string(repo::root().join(REPORT)).unwrap();
        let rendered = render(&Records::read().unwrap());
        assert!(
            written == rendered,
            "{REPORT} is not what `cargo xtask bench report` writes"
        );
    }
}
