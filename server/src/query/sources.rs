//! Where each hour of a window is read: from the samples themselves, or from a roll-up of them.
//!
//! A roll-up says how many samples of a series, mode and stack there were in a minute or an hour. It answers for a whole hour inside of the
//! window as exactly as the samples do, from a few per cent of the rows; the hours at the window's edges are read from the samples. Of
//! hours whose samples are gone by retention only roll-ups are left.

use super::error::QueryError;
use super::scan::When;
use super::select::Question;
use super::time::Window;
use crate::store::columns::{Bounds, Known};
use crate::store::{Snapshot, Table, hour};
use std::collections::{HashMap, HashSet};

const HOUR_NS: i64 = 3_600_000_000_000;

/// What roll-ups have beside their count.
const COLUMNS: [&str; 8] = [
    "ts_ns",
    "type",
    "node",
    "service",
    "series_id",
    "mode",
    "stack_id",
    "value",
];

/// The table that answers for each hour; `samples` for those that are not listed.
#[derive(Debug, Default)]
pub(super) struct Sources {
    of_hour: HashMap<String, Table>,
}

impl Sources {
    /// `columns`: all that are looked at.
    ///
    /// # Errors
    /// Of an hour only roll-ups are left, which cannot tell what is asked for.
    pub(super) async fn plan(
        snapshot: &Snapshot,
        question: &Question,
        columns: &[&'static str],
        when: When,
    ) -> Result<Sources, QueryError> {
        let window = question.window;
        let missing = columns.iter().find(|column| !COLUMNS.contains(column));
        let partitions = |table: Table| -> HashSet<&str> {
            let files = snapshot.files(table).iter();
            files.map(|file| file.partition.as_str()).collect()
        };
        let [samples, minutes, hours] = [Table::Samples, Table::SamplesMinute, Table::SamplesHour].map(partitions);
        let pending = snapshot.pending_hours();
        let mut sources = Sources::default();
        let mut spared = Vec::new();
        for name in minutes.union(&hours) {
            let Some(start_ns) = start_of(name).filter(|start| *start < window.until_ns) else {
                continue;
            };
            if start_ns + HOUR_NS <= window.from_ns {
                continue;
            }
            let until_ns = start_ns + HOUR_NS;
            let whole = Window {
                from_ns: start_ns,
                until_ns,
            };
            let is_cut = question.except.is_some_and(|except| except.overlaps(&whole));
            let is_inside = window.from_ns <= start_ns && until_ns <= window.until_ns && !is_cut;
            if samples.contains(name) || pending.contains(*name) {
                let is_enough = is_inside && when == When::Window && missing.is_none() && !pending.contains(*name);
                if is_enough && snapshot.is_rolled_up(Table::SamplesHour, name) {
                    spared.push((*name).to_owned());
                }
                continue;
            }
            if when == When::Exact || missing.is_some() {
                return Err(only_rollups(name, missing));
            }
            let is_hour_enough = is_inside && when == When::Window && hours.contains(name);
            let table = if is_hour_enough || !minutes.contains(name) {
                Table::SamplesHour
            } else {
                Table::SamplesMinute
            };
            sources.of_hour.insert((*name).to_owned(), table);
        }
        // A roll-up that is damaged is no loss where the samples are there.
        for name in snapshot.sound_rollups(Table::SamplesHour, &spared).await {
            sources.of_hour.insert(name, Table::SamplesHour);
        }
        Ok(sources)
    }

    /// Whether a table answers for rows of which so much is known.
    pub(super) fn may(&self, table: Table, known: Known<'_>) -> bool {
        match known("hour") {
            Some(Bounds::Texts(name, _)) => *self.of_hour.get(&name).unwrap_or(&Table::Samples) == table,
            _ => table == Table::Samples,
        }
    }
}

fn only_rollups(name: &str, missing: Option<&&'static str>) -> QueryError {
    let what = missing.map_or_else(|| "single samples".to_owned(), |column| format!("`{column}`"));
    QueryError::bad_parameter(
        format!("of the hour {name} only roll-ups are left, which do not have {what}"),
        "ask for a later window, or without thread, tid, tgid and cpu; --retention-samples says how long samples are kept",
    )
}

/// When an hour begins, by the name of its partition.
fn start_of(name: &str) -> Option<i64> {
    let time = chrono::NaiveDateTime::parse_from_str(&format!("{name}:00"), "%Y-%m-%dT%H:%M").ok()?;
    let start_ns = time.and_utc().timestamp_nanos_opt()?;
    (hour(start_ns) == name).then_some(start_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hours_name_says_when_it_begins() {
        assert_eq!(start_of("1970-01-01T01"), Some(HOUR_NS));
        assert_eq!(start_of("2026-11-21T08").map(hour).as_deref(), Some("2026-11-21T08"));
        for name in ["", "2026-11-21", "2026-11-21T24", "2026-13-21T08", "x"] {
            assert_eq!(start_of(name), None, "{name}");
        }
    }
}
