//! The file of what was measured last: one record a command.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::figures::{Figure, Figures};
use crate::bench::machine::Speed;
use crate::{repo, run};

/// Of the file's form: raised where an older program would read it wrongly.
const VERSION: u32 = 1;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Records {
    version: u32,
    /// By command.
    pub(super) records: Vec<Record>,
}

/// One run of a bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// Which bench, and how it was called in full: runs with other settings are other records.
    pub(super) bench: String,
    pub(super) command: String,
    /// Day, in UTC.
    pub(super) date: String,
    /// Of the sources, and whether they differed from it.
    pub(super) commit: String,
    pub(super) is_changed: bool,
    /// The programs were given, so that they need not be those of the commit.
    pub(super) programs_given: bool,
    pub(super) machine: Machine,
    pub(super) notes: Vec<String>,
    pub(super) figures: Vec<Figure>,
}

/// Where it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    pub(super) cpus: usize,
    pub(super) model: String,
    pub(super) memory_gib: f64,
    pub(super) kernel: String,
    /// Threads that ran or wanted to in the minute before the bench began.
    pub(super) load: f64,
    /// See [`Speed`].
    pub(super) speed: Speed,
}

impl Default for Records {
    fn default() -> Records {
        Records {
            version: VERSION,
            records: vec![],
        }
    }
}

impl Records {
    fn path() -> PathBuf {
        repo::root().join("xtask/bench/records.json")
    }

    /// Those of this clone; none where there is no file.
    pub(super) fn read() -> Result<Records> {
        let path = Records::path();
        if !path.exists() {
            return Ok(Records::default());
        }
        let text = fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        Records::parse(&text).with_context(|| format!("{} can't be used", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Records> {
        let value: serde_json::Value = serde_json::from_str(text).context("it is not JSON")?;
        let version = &value["version"];
        ensure!(
            *version == VERSION,
            "it is of version {version}, and this program knows {VERSION}: use the program of its commit, or remove the \
             file and measure anew"
        );
        serde_json::from_value(value).context("it lacks something")
    }

    pub(super) fn text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(super) fn write(&self) -> Result<()> {
        let path = Records::path();
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(|| format!("can't make {}", dir.display()))?;
        }
        fs::write(&path, self.text()?).with_context(|| format!("can't write {}", path.display()))
    }

    /// In place of what the same command gave before.
    pub(super) fn put(&mut self, record: Record) {
        self.records.retain(|old| old.command != record.command);
        self.records.push(record);
        self.records.sort_by(|a, b| a.command.cmp(&b.command));
    }
}

impl Machine {
    /// This one, now.
    pub(super) fn this(speed: Speed) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let memory_kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(0.0);
        let load = read("/proc/loadavg");
        Machine {
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            model: value(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            memory_gib: (memory_kib / 1_048_576.0 * 10.0).round() / 10.0,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            speed,
        }
    }
}

impl Record {
    /// Of a bench that has just ended. `machine`: as it was before.
    pub(super) fn of(bench: &str, command: String, machine: Machine, figures: Figures) -> Result<Record> {
        let git = |arguments: &[&str]| run::output(Command::new("git").current_dir(repo::root()).args(arguments));
        Ok(Record {
            bench: bench.to_owned(),
            command,
            date: day(crate::stack::now_ms() / 1000),
            commit: git(&["rev-parse", "--short=10", "HEAD"])?.trim().to_owned(),
            is_changed: !git(&["status", "--porcelain", "--", ":!xtask/bench"])?
                .trim()
                .is_empty(),
            programs_given: std::env::var_os("STAKEOUT_BIN_DIR").is_some(),
            machine,
            notes: figures.notes,
            figures: figures.all,
        })
    }
}

/// The day of a Unix time in seconds, in UTC. Years of the Gregorian calendar are counted from March on, so that the
/// leap day is a year's last.
fn day(unix_s: i64) -> String {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // From 1 March of the year 0.
    let days = unix_s.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let of_era = days.rem_euclid(DAYS_OF_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months from March on have 153 days.
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run of a bench with these values, in a table with rows.
    pub(in crate::bench::report) fn record(command: &str, values: &[f64]) -> Record {
        let mut figures = Figures::default();
        figures.table("Queries");
        for (index, value) in values.iter().enumerate() {
            figures.row(&format!("query {index}"));
            figures.add("warm", "ms", *value).at_most(300.0);
        }
        figures.note("warm: the median");
        Record {
            bench: "store".to_owned(),
            command: command.to_owned(),
            date: "2026-11-27".to_owned(),
            commit: "0123456789".to_owned(),
            is_changed: false,
            programs_given: false,
            machine: Machine {
                cpus: 2,
                model: "some processor".to_owned(),
                memory_gib: 7.8,
                kernel: "6.18.44".to_owned(),
                load: 0.12,
                speed: Speed {
                    load_ns: 168.2,
                    multiplication_ns: 1.25,
                },
            },
            notes: figures.notes,
            figures: figures.all,
        }
    }

    #[test]
    fn a_new_run_of_a_command_takes_the_place_of_the_old_one_and_of_no_other() {
        let mut records = Records::default();
        records.put(record("bench store --hours 1", &[1.0, 2.0]));
        records.put(record("bench commits", &[5.0]));
        records.put(record("bench store --hours 1", &[3.0]));
        assert_eq!(
            records.records,
            [record("bench commits", &[5.0]), record("bench store --hours 1", &[3.0])]
        );
        assert_eq!(Records::parse(&records.text().unwrap()).unwrap(), records);
    }

    #[test]
    fn a_file_of_another_form_is_refused_and_not_written_over() {
        let error = |text: &str| format!("{:#}", Records::parse(text).unwrap_err());
        assert!(error(r#"{"version": 2, "records": []}"#).starts_with("it is of version 2, and this program knows 1"));
        assert!(error("{}").starts_with("it is of version null"));
        assert!(error(r#"{"version": 1, "records": [{"bench": "store"}]}"#).starts_with("it lacks something"));
        assert!(error("no json").starts_with("it is not JSON"));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (unix_s, date) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
            (1_795_765_465, "2026-11-27"),
        ] {
            assert_eq!(day(unix_s), date);
        }
    }
}
