//! Which profile types there are, in which units, and what their senders give beside values: from the table `types`.
//!
//! That is a row a day for each, which is read once and kept until there is another one. Types of hours that were stored before there was this
//! table are time, as they were then.
//!
//! Senders may give one name to values of different units. These are never added up: series tell the unit of their values, and a question is of one of them.

use super::attribute::AttributeName;
use super::engine::Engine;
use super::error::QueryError;
use super::select::{Days, Question, collect_rows};
use super::selector::{Label, Matcher};
use super::time::Window;
use crate::profile_type::{BYTES, COUNT, NANOSECONDS, nanoseconds_of, unit_name};
use crate::store::{Pending, Snapshot, Table};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::prelude::lit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// Most types that are listed.
const MAX_TYPES: usize = 1_000;

/// Units that are taken first of several, unless another one is asked for.
const FIRST: [&str; 3] = [NANOSECONDS, BYTES, COUNT];

/// The label of a series that has the unit of its values; those of time have none.
const LABEL: &str = "stakeout.unit";

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

    /// The condition on series that their values are in it.
    pub(super) fn matcher(&self) -> Option<Matcher> {
        let label = Label::Attribute(AttributeName::new(LABEL)?);
        Some(Matcher::equal(label, if self.is_time() { "" } else { self.name() }))
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
    /// The one that answers are of, unless another is asked for.
    pub unit: Unit,
    /// All that there are.
    pub units: Vec<Unit>,
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

/// The units that a type has in some days: first what is best known, and then what was there first of all days, so that who comes later takes nobody's
/// place.
fn units(of_type: &BTreeMap<String, OfDay>, has: impl Fn(&str) -> bool) -> Vec<Unit> {
    let mut units: Vec<&Arc<str>> = Vec::new();
    for unit in of_type.values().flat_map(|day| &day.units) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    units.retain(|unit| {
        let mut days = of_type.iter();
        days.any(|(day, of_day)| has(day) && of_day.units.contains(*unit))
    });
    units.sort_by_key(|unit| FIRST.iter().position(|first| **first == ***unit).unwrap_or(FIRST.len()));
    units.into_iter().map(|unit| Unit(unit.clone())).collect()
}

impl Engine {
    /// What is known of the type that is asked for.
    pub(super) async fn kind(&self, snapshot: &Snapshot, question: &Question) -> Result<Kind, QueryError> {
        let all = self.types.all(snapshot).await?;
        let days = Days::of(question.window);
        let of_type = all.get(&question.profile);
        let first = || units(of_type?, |day| days.has(day)).into_iter().next();
        let mut of_days = of_type.into_iter().flatten().filter(|(day, _)| days.has(day));
        Ok(Kind {
            unit: question.unit.clone().or_else(first).unwrap_or_else(Unit::time),
            marked: of_days.any(|(_, of_day)| of_day.marked),
        })
    }
}

/// Makes questions about one type, of which there are values in several units in their days, questions of one unit, and says in words which it is. `wanted`:
/// the one that is asked for.
///
/// # Errors
/// The type has values in other units only.
pub async fn of_one_unit<const N: usize>(
    engine: &Engine,
    snapshot: &Snapshot,
    mut questions: [Question; N],
    wanted: Option<&str>,
) -> Result<([Question; N], Option<String>), QueryError> {
    let Some(kind) = questions.first().map(|question| question.profile.clone()) else {
        return Ok((questions, None));
    };
    let all = engine.types.all(snapshot).await?;
    let has = |day: &str| questions.iter().any(|question| Days::of(question.window).has(day));
    let there = all.get(&kind).map_or_else(Vec::new, |of_type| units(of_type, has));
    let one = match wanted {
        None => there.first(),
        Some(name) => {
            let name = match nanoseconds_of(name) {
                Some(_) => NANOSECONDS,
                None => unit_name(name),
            };
            let found = there.iter().find(|unit| unit.name() == name);
            if found.is_none() && !there.is_empty() {
                return Err(QueryError::bad_parameter(
                    format!("`{kind}` has no values in {name} here"),
                    format!("`unit` is one of {}", names(&there)),
                ));
            }
            found
        }
    };
    let Some(one) = one.filter(|_| there.len() > 1) else {
        return Ok((questions, None));
    };
    let others: Vec<Unit> = there.iter().filter(|unit| *unit != one).cloned().collect();
    let words = format!(
        "`{kind}` has values in several units here: this is of those in {} alone, and `unit` chooses others: {}",
        one.name(),
        names(&others)
    );
    for question in &mut questions {
        question.unit = Some(one.clone());
    }
    Ok((questions, Some(words)))
}

/// The first ones' names, for messages.
fn names(units: &[Unit]) -> String {
    const MOST: usize = 10;
    let mut names: Vec<&str> = units.iter().take(MOST).map(Unit::name).collect();
    if units.len() > MOST {
        names.push("…");
    }
    names.join(", ")
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
        if let Some(last_day) = of_type.keys().rfind(|day| days.has(day)) {
            let units = units(of_type, |day| days.has(day));
            types.insert(name.clone(), (units, last_day.clone()));
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
                    .or_insert_with(|| (vec![Unit::time()], day.to_owned()));
                if day > last_day.as_str() {
                    *last_day = day.to_owned();
                }
            }
        }
    }
    let listed = types.into_iter().take(MAX_TYPES);
    let of_type = |(name, (units, last_day)): (String, (Vec<Unit>, String))| ProfileType {
        name,
        unit: units.first().cloned().unwrap_or_else(Unit::time),
        units,
        last_day,
    };
    Ok(listed.map(of_type).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_units_the_best_known_or_the_first_is_taken() {
        let day = |units: &[&str]| OfDay {
            units: units.iter().map(|unit| Arc::from(*unit)).collect(),
            marked: false,
        };
        let from = |first: &'static str, days: &[OfDay]| -> Vec<String> {
            let of_type = (0..)
                .zip(days)
                .map(|(day, of_day)| (format!("2026-11-2{day}"), of_day.clone()));
            let found = units(&of_type.collect(), |day| day >= first);
            found.iter().map(|unit| unit.name().to_owned()).collect()
        };
        let of = |days: &[OfDay]| from("", days);
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[day(&["bytes"]), day(&["bytes"])]), ["bytes"]);
        assert_eq!(of(&[day(&["bytes"]), day(&["nanoseconds"])]), ["nanoseconds", "bytes"]);
        let both = [day(&["z"]), day(&["a", "count", "z"]), day(&["a", "z"]), day(&["a"])];
        assert_eq!(of(&both), ["count", "z", "a"]);
        assert_eq!(from("2026-11-22", &both), ["z", "a"]);
        assert_eq!(from("2026-11-23", &both), ["a"]);
    }
}
