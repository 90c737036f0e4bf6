//! Which profile types there are, in which units, and what their senders give beside values: from the table `types`.
//!
//! That is a row a day for each, which is read once and kept until there is another one. Types of hours that were
//! stored before there was this table are time, as they were then.
//!
//! Senders may give one name to values of different units. These are never added up: series tell the unit of their
//! values, and a question is of one of them.

use crate::profile_type::{NANOSECONDS, nanoseconds_of, unit_name};
use crate::query::ask::question::Question;
use crate::query::ask::time::Window;
use crate::query::ask::unit::Unit;
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::views::engine::Engine;
use crate::query::views::type_table::units;
use crate::store::{Snapshot, Table};
use std::collections::BTreeMap;

/// Most types that are listed.
const MAX_TYPES: usize = 1_000;

/// What is known of a type in some days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub unit: Unit,
    /// There are senders that keep no account of what they observe, or give no time stamps: series tell of which
    /// samples that is so.
    pub marked: bool,
}

/// A type as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileType {
    /// As senders call it, such as `cpu`.
    pub name: String,
    /// The one that answers are of, unless another is asked for.
    pub unit: Unit,
    /// All that there are.
    pub units: Vec<Unit>,
    /// The last day of the window on which it came, such as `2026-11-21`.
    pub last_day: String,
}

impl Engine {
    /// What is known of the type that is asked for.
    pub(crate) async fn kind(&self, snapshot: &Snapshot, question: &Question) -> Result<Kind, QueryError> {
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

/// Makes questions about one type, of which there are values in several units in their days, questions of one unit,
/// and says in words which it is. `wanted`: the one that is asked for.
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
