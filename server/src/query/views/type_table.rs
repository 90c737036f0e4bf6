//! The table `types`: which types of profile came on which days, in which units.
//!
//! That is a row a day for each, which is read once and kept until there is another one.

use crate::profile_type::{BYTES, COUNT, NANOSECONDS};
use crate::query::ask::unit::Unit;
use crate::query::limits::error::QueryError;
use crate::query::plan::small_tables::{arrow_error, collect_rows};
use crate::store::{Pending, Snapshot, Table};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::prelude::lit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// Units that are taken first of several, unless another one is asked for.
const FIRST: [&str; 3] = [NANOSECONDS, BYTES, COUNT];

/// What the table says of one type on one day.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfDay {
    units: BTreeSet<Arc<str>>,
    pub(crate) marked: bool,
}

/// By type and day.
pub(crate) type All = BTreeMap<String, BTreeMap<String, OfDay>>;

/// The table, as it was read last, and what it was read from.
#[derive(Debug, Default)]
pub(crate) struct Types(Mutex<Option<(u64, Arc<All>)>>);

impl Types {
    pub(crate) async fn all(&self, snapshot: &Snapshot) -> Result<Arc<All>, QueryError> {
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
                error = Some(arrow_error(cause));
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

/// The units that a type has in some days: first what is best known, and then what was there first of all days, so
/// that who comes later takes nobody's place.
pub(crate) fn units(of_type: &BTreeMap<String, OfDay>, has: impl Fn(&str) -> bool) -> Vec<Unit> {
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
    units.into_iter().map(|unit| Unit::named(unit.clone())).collect()
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
