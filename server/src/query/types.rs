//! Which profile types there are, in which unit, and what their senders give beside values: from the table `types`.
//!
//! That is a row a day for each, which is read once and kept until there is another one. Types of hours that were stored before there was this
//! table are time, as they were then.

use super::engine::Engine;
use super::error::QueryError;
use super::select::{Days, Question, collect_rows};
use super::time::Window;
use crate::profile_type::NANOSECONDS;
use crate::store::{Pending, Snapshot, Table};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::prelude::lit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// Most types that are listed.
const MAX_TYPES: usize = 1_000;

/// The unit of a type whose senders do not agree on it.
const MIXED: &str = "mixed";

/// The unit of a type's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit(Arc<str>);

impl Unit {
    /// Of types of time.
    pub fn time() -> Unit {
        Unit::named(NANOSECONDS)
    }

    pub(super) fn named(name: &str) -> Unit {
        Unit(name.into())
    }

    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether values are nanoseconds.
    pub fn is_time(&self) -> bool {
        &*self.0 == NANOSECONDS
    }
}

/// What is known of a type in some days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub unit: Unit,
    /// There are senders that keep no account of what they observe, or give no time stamps: series tell of which samples that is so.
    pub marked: bool,
}

/// A type as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileType {
    pub name: String,
    pub unit: Unit,
    /// The last day of the window on which it came, such as `2026-11-21`.
    pub last_day: String,
}

/// What the table says of one type on one day.
#[derive(Debug, Clone, Default)]
struct OfDay {
    units: BTreeSet<Arc<str>>,
    marked: bool,
}

/// By type and day.
type All = BTreeMap<String, BTreeMap<String, OfDay>>;

/// The table, as it was read last, and what it was read from.
#[derive(Debug, Default)]
pub(super) struct Types(Mutex<Option<(u64, Arc<All>)>>);

impl Types {
    async fn all(&self, snapshot: &Snapshot) -> Result<Arc<All>, QueryError> {
        let sources = sources(snapshot);
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, all)) = known().as_ref().filter(|(of, _)| *of == sources) {
            return Ok(all.clone());
        }
        let all = Arc::new(read(snapshot).await?);
        *known() = Some((sources, all.clone()));
        Ok(all)
    }
}

/// Changes when the table does.
fn sources(snapshot: &Snapshot) -> u64 {
    let mut hash = Xxh3::new();
    for file in snapshot.files(Table::Types) {
        hash.update(file.path.as_bytes());
    }
    for rows in snapshot.pending(Table::Types) {
        if let Pending::Rows(rows) = rows
            && let Some(ids) = rows.column(0).as_primitive_opt::<Int64Type>()
        {
            ids.values().iter().for_each(|id| hash.update(&id.to_le_bytes()));
        }
    }
    hash.digest()
}

async fn read(snapshot: &Snapshot) -> Result<All, QueryError> {
    let mut all = All::new();
    let columns = ["type", "unit", "accounted", "spread", "day"];
    let mut error = None;
    collect_rows(snapshot, "types", lit(true), &columns, |batch| {
        let text = |column: usize| batch.column(column).as_string::<i32>();
        let flag = |column: usize| batch.column(column).as_boolean();
        let days = match arrow::compute::cast(batch.column(4), &arrow::datatypes::DataType::Utf8) {
            Ok(days) => days,
            Err(cause) => {
                error = Some(super::select::arrow_error(cause));
                return;
            }
        };
        for row in 0..batch.num_rows() {
            let day = days.as_string::<i32>().value(row).to_owned();
            let of_day = all
                .entry(text(0).value(row).to_owned())
                .or_default()
                .entry(day)
                .or_default();
            of_day.units.insert(text(1).value(row).into());
            of_day.marked |= !flag(2).value(row) || flag(3).value(row);
        }
    })
    .await?;
    error.map_or(Ok(all), Err)
}

/// What all these days say; time where none does.
fn unit<'d>(days: impl Iterator<Item = &'d OfDay>) -> Unit {
    let units: BTreeSet<&Arc<str>> = days.flat_map(|day| &day.units).collect();
    match (units.first(), units.len()) {
        (None, _) => Unit::time(),
        (Some(unit), 1) => Unit((*unit).clone()),
        _ => Unit::named(MIXED),
    }
}

impl Engine {
    /// What is known of the type that is asked for.
    pub(super) async fn kind(&self, snapshot: &Snapshot, question: &Question) -> Result<Kind, QueryError> {
        let all = self.types.all(snapshot).await?;
        let days = Days::of(question.window);
        let of_days = || {
            let of_type = all.get(&question.profile).into_iter().flatten();
            of_type.filter(|(day, _)| days.has(day)).map(|(_, of_day)| of_day)
        };
        Ok(Kind {
            unit: unit(of_days()),
            marked: of_days().any(|of_day| of_day.marked),
        })
    }
}

/// The types of a window's days, by name.
///
/// # Errors
/// As every query.
pub async fn profile_types(
    engine: &Engine,
    snapshot: &Snapshot,
    window: Window,
) -> Result<Vec<ProfileType>, QueryError> {
    let days = Days::of(window);
    let all = engine.types.all(snapshot).await?;
    let mut types = BTreeMap::new();
    for (name, of_type) in &*all {
        let of_days = || of_type.iter().filter(|(day, _)| days.has(day));
        if let Some((last_day, _)) = of_days().next_back() {
            let unit = unit(of_days().map(|(_, of_day)| of_day));
            types.insert(name.clone(), (unit, last_day.clone()));
        }
    }
    // Files that are older than the table say at least which types are the first and last of them.
    let (first, last) = days.hours();
    for table in [Table::Samples, Table::SamplesHour] {
        let files = snapshot.files(table).iter();
        let within = files.filter(|file| (first.as_str()..=last.as_str()).contains(&file.partition.as_str()));
        for (file, range) in within.filter_map(|file| Some((file, file.string_range("type")?))) {
            let day = file.partition.get(..10).unwrap_or_default();
            for name in [&range.min, &range.max] {
                let (_, last_day) = types
                    .entry(name.clone())
                    .or_insert_with(|| (Unit::time(), day.to_owned()));
                if day > last_day.as_str() {
                    *last_day = day.to_owned();
                }
            }
        }
    }
    let listed = types.into_iter().take(MAX_TYPES);
    Ok(listed
        .map(|(name, (unit, last_day))| ProfileType { name, unit, last_day })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_the_unit_of_all_its_senders_or_none() {
        let day = |units: &[&str]| OfDay {
            units: units.iter().map(|unit| Arc::from(*unit)).collect(),
            marked: false,
        };
        let of = |days: &[OfDay]| unit(days.iter());
        assert!(of(&[]).is_time());
        assert_eq!(of(&[day(&["bytes"]), day(&["bytes"])]).name(), "bytes");
        assert_eq!(of(&[day(&["bytes"]), day(&["nanoseconds"])]).name(), "mixed");
        assert!(!of(&[day(&["count", "nanoseconds"])]).is_time());
    }
}
