//! Where each hour of a window is read: from the samples themselves, or from a roll-up of them.
//!
//! A roll-up says how many samples of a series, mode and stack there were in a minute or an hour, or, whatever their
//! stacks, in ten seconds. It answers for an hour as exactly as the samples do, from a part of the rows, where the
//! question tells nothing apart within one of those minutes or hours. Other hours are read from the samples. Of hours
//! whose samples are gone by retention only roll-ups are left.

use crate::column::bounds::{Bounds, Statistics};
use crate::query::ask::question::Question;
use crate::query::ask::time::Window;
use crate::query::limits::error::QueryError;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::steps::Steps;
use crate::store::{HOUR_NS, MINUTE_NS, Snapshot, TEN_SECONDS_NS, Table, hour};
use std::collections::{HashMap, HashSet};

/// What roll-ups have beside their count; those of ten seconds all but the stacks.
const COLUMNS: [&str; 7] = ["ts_ns", "type", "service", "series_id", "mode", "stack_id", "value"];

/// The roll-ups with what their rows are counted by, the shorter answer first.
const ROLLUPS: [(Table, i64); 3] = [
    (Table::SamplesTenSeconds, TEN_SECONDS_NS),
    (Table::SamplesHour, HOUR_NS),
    (Table::SamplesMinute, MINUTE_NS),
];

/// The table that answers for each hour; `samples` for those that are not listed.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    of_hour: HashMap<String, Table>,
}

impl Sources {
    /// `columns`: all that are looked at. `cuts`: times at which samples have to be told apart, beside the question's
    /// and the steps'.
    ///
    /// # Errors
    /// Of an hour only roll-ups are left, which cannot tell what is asked for.
    pub(crate) async fn plan(
        snapshot: &Snapshot,
        question: &Question,
        columns: &[&'static str],
        when: TimeResolution,
        mut cuts: Vec<i64>,
    ) -> Result<Sources, QueryError> {
        let window = question.window;
        for window in [Some(window), question.except].into_iter().flatten() {
            cuts.extend([window.from_ns, window.until_ns]);
        }
        let missing = columns.iter().find(|column| !COLUMNS.contains(column));
        let partitions = |table: Table| -> HashSet<&str> {
            let files = snapshot.files(table).iter();
            files.map(|file| file.partition.as_str()).collect()
        };
        let samples = partitions(Table::Samples);
        // Those that have what is asked for, the shorter answer first.
        let with_stacks = columns.contains(&"stack_id");
        let rollups: Vec<(Table, i64, HashSet<&str>)> = ROLLUPS
            .into_iter()
            .filter(|(table, _)| !with_stacks || table.has_stacks())
            .map(|(table, grain_ns)| (table, grain_ns, partitions(table)))
            .collect();
        let names: HashSet<&str> = rollups.iter().flat_map(|(_, _, names)| names).copied().collect();
        let pending = snapshot.pending_hours();
        let mut sources = Sources::default();
        let mut spared = vec![Vec::new(); rollups.len()];
        for name in names {
            let Some(start_ns) = start_of(name).filter(|start| *start < window.until_ns) else {
                continue;
            };
            if start_ns + HOUR_NS <= window.from_ns {
                continue;
            }
            let needed_ns = grain_ns(start_ns, when, &cuts);
            if samples.contains(name) || pending.contains(name) {
                if missing.is_some() || pending.contains(name) {
                    continue;
                }
                for ((table, grain_ns, _), spared) in rollups.iter().zip(&mut spared) {
                    if *grain_ns <= needed_ns && snapshot.is_rolled_up(*table, name) {
                        spared.push(name.to_owned());
                    }
                }
                continue;
            }
            if when == TimeResolution::Exact || missing.is_some() {
                return Err(only_rollups(name, missing));
            }
            // The first that is short enough, else the one that tells most.
            let there = || rollups.iter().filter(|(_, _, names)| names.contains(name));
            let enough = there().find(|(_, grain_ns, _)| *grain_ns <= needed_ns);
            let Some((table, of_rows_ns, _)) = enough.or_else(|| there().min_by_key(|(_, grain_ns, _)| *grain_ns))
            else {
                continue;
            };
            if *of_rows_ns == HOUR_NS && needed_ns < HOUR_NS {
                return Err(only_hours(name));
            }
            sources.of_hour.insert(name.to_owned(), *table);
        }
        // A roll-up that is damaged is no loss where the samples are there.
        for ((table, ..), mut spared) in rollups.iter().zip(spared) {
            spared.retain(|name| !sources.of_hour.contains_key(name));
            for name in snapshot.sound_rollups(*table, &spared).await {
                sources.of_hour.insert(name, *table);
            }
        }
        Ok(sources)
    }

    /// Whether a table answers for rows of which so much is known.
    pub(crate) fn may(&self, table: Table, known: Statistics<'_>) -> bool {
        match known("hour") {
            Some(Bounds::Texts(name, _)) => *self.of_hour.get(&name).unwrap_or(&Table::Samples) == table,
            _ => table == Table::Samples,
        }
    }
}

/// Roll-ups by this or a shorter time tell all of an hour's samples apart that have to be; 0: none does.
fn grain_ns(start_ns: i64, when: TimeResolution, cuts: &[i64]) -> i64 {
    let of_steps = match when {
        TimeResolution::Window => HOUR_NS,
        TimeResolution::Step { grain_ns } => grain_ns,
        TimeResolution::Exact => 0,
    };
    let within = || {
        cuts.iter()
            .filter(|cut| (start_ns + 1..start_ns + HOUR_NS).contains(*cut))
    };
    match within().next() {
        None => of_steps,
        Some(_) => {
            let tells = |grain_ns: &i64| within().all(|cut| cut % grain_ns == 0);
            let grain_ns = [MINUTE_NS, TEN_SECONDS_NS].into_iter().find(tells);
            of_steps.min(grain_ns.unwrap_or(0))
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

fn only_hours(name: &str) -> QueryError {
    QueryError::bad_parameter(
        format!("of the hour {name} only the whole is left, and not what was within it"),
        "ask for steps of whole hours, or for a later window; --retention-minutes says how long minutes are kept",
    )
}

/// The question with its window, and what is left out of it, widened to whole hours where nothing shorter is left.
#[must_use]
pub fn of_whole_hours(snapshot: &Snapshot, mut question: Question) -> Question {
    let coarse = coarse_hours(snapshot, question.window);
    question.window = widened(question.window, &coarse);
    question.except = question.except.map(|except| widened(except, &coarse));
    question
}

/// The window as [`of_whole_hours`] makes it.
pub(crate) fn in_whole_hours(snapshot: &Snapshot, window: Window) -> Window {
    widened(window, &coarse_hours(snapshot, window))
}

/// The window with the whole of those of these hours in which it begins and ends.
fn widened(window: Window, hours: &HashSet<&str>) -> Window {
    let begin = |ns: i64| ns.div_euclid(HOUR_NS) * HOUR_NS;
    let is_one = |ns: i64| hours.contains(hour(ns).as_str());
    let Window { from_ns, until_ns } = window;
    Window {
        from_ns: if is_one(from_ns) { begin(from_ns) } else { from_ns },
        until_ns: if is_one(until_ns - 1) {
            begin(until_ns - 1) + HOUR_NS
        } else {
            until_ns
        },
    }
}

/// The shortest step that the whole window can have: an hour where nothing shorter is left, in nanoseconds.
pub fn least_step(snapshot: &Snapshot, window: Window) -> i64 {
    if coarse_hours(snapshot, window).is_empty() {
        0
    } else {
        HOUR_NS
    }
}

/// As [`Steps::parts`], of whole hours where nothing shorter is left: then there are fewer in a short window.
pub(crate) fn parts(snapshot: &Snapshot, window: Window, count: usize) -> Steps {
    if coarse_hours(snapshot, window).is_empty() {
        Steps::parts(window, count)
    } else {
        Steps::hours(window, count)
    }
}

/// The hours of the window of which only the roll-up by the hour is left.
fn coarse_hours(snapshot: &Snapshot, window: Window) -> HashSet<&str> {
    let (first, last) = (hour(window.from_ns), hour(window.until_ns - 1));
    // Files are in the order of their partitions.
    let names = |table: Table| {
        let files = snapshot.files(table);
        let from = files.partition_point(|file| file.partition < first);
        let names = files[from..].iter().map(|file| file.partition.as_str());
        names.take_while(|name| *name <= last.as_str())
    };
    let finer: HashSet<&str> = names(Table::Samples).chain(names(Table::SamplesMinute)).collect();
    names(Table::SamplesHour).filter(|name| !finer.contains(name)).collect()
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
    fn a_rollup_is_enough_where_nothing_is_told_apart_within_its_time() {
        let of = |when, cuts: &[i64]| grain_ns(HOUR_NS, when, cuts);
        let (step, minute) = (|grain_ns| TimeResolution::Step { grain_ns }, HOUR_NS + 7 * MINUTE_NS);
        assert_eq!(
            of(TimeResolution::Window, &[0, HOUR_NS, 2 * HOUR_NS, 5 * HOUR_NS + 1]),
            HOUR_NS
        );
        assert_eq!(of(TimeResolution::Window, &[0, minute]), MINUTE_NS);
        assert_eq!(of(TimeResolution::Window, &[minute, minute + 1]), 0);
        assert_eq!(of(step(MINUTE_NS), &[HOUR_NS]), MINUTE_NS);
        assert_eq!(of(step(HOUR_NS), &[HOUR_NS]), HOUR_NS);
        assert_eq!(of(step(HOUR_NS), &[minute]), MINUTE_NS);
        assert_eq!(of(step(0), &[]), 0);
        assert_eq!(of(step(MINUTE_NS), &[minute + TEN_SECONDS_NS]), TEN_SECONDS_NS);
        assert_eq!(of(step(HOUR_NS), &[minute, minute + TEN_SECONDS_NS + 1]), 0);
        assert_eq!(of(TimeResolution::Exact, &[]), 0);
    }

    #[test]
    fn an_hours_name_says_when_it_begins() {
        assert_eq!(start_of("1970-01-01T01"), Some(HOUR_NS));
        assert_eq!(start_of("2026-11-21T08").map(hour).as_deref(), Some("2026-11-21T08"));
        for name in ["", "2026-11-21", "2026-11-21T24", "2026-13-21T08", "x"] {
            assert_eq!(start_of(name), None, "{name}");
        }
    }
}
