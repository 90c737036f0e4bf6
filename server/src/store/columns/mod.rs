//! Columns of `samples` and its roll-ups as codes: what counting needs of a Parquet file, and no more.
//!
//! In: the files and the pending rows of a [`Snapshot`], conditions that leave out whole files and row groups, names of columns. Out: for
//! one row group after another each column as a code a row with the value of each code, or as plain numbers. A label's value is then
//! looked at once a row group instead of once a row, and counting is an index into an array. Files hold their columns in just this form, so
//! that nothing is hashed on the way. A file that cannot be read is an error that names it.

mod decode;
mod footers;
mod list;
mod read;
mod stream;
#[cfg(test)]
mod tests;
mod unzip;

pub(crate) use footers::Footers;
pub(crate) use list::{Code, List, only, with_codes};
pub(super) use stream::FileStream;
pub(crate) use unzip::Unzip;

use super::fresh::Pending;
use super::local;
use super::provider::STORE_URL;
use super::schema::Table;
use super::snapshot::{DataFile, Snapshot};
use crate::hash::MixState;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use bytes::Bytes;
use datafusion::execution::object_store::ObjectStoreUrl;
use futures::executor::block_on;
use object_store::ObjectStore;
use object_store::path::Path;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use read::{Chunk, read};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// What a file holds is not what the format allows.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Damage {
    what: String,
}

impl Damage {
    fn new(what: impl Into<String>) -> Damage {
        Damage { what: what.into() }
    }
}

impl From<ParquetError> for Damage {
    fn from(error: ParquetError) -> Damage {
        Damage::new(error.to_string())
    }
}

/// A file of the store that could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{path}: {what}")]
pub(crate) struct ReadError {
    /// Below the data directory.
    pub(crate) path: String,
    pub(crate) what: String,
}

/// The values that codes stand for. A code that is as large as there are values stands for "absent".
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// How many different codes there may be, "absent" included.
    pub(crate) fn distinct(&self) -> usize {
        self.len() + 1
    }

    /// The value of a code as a number; `None` where it is absent or a text.
    pub(crate) fn number(&self, code: usize) -> Option<i64> {
        match self {
            Values::Numbers(values) => values.get(code).copied(),
            Values::Texts(_) => None,
        }
    }
}

/// A column: a code a row.
#[derive(Debug, Clone)]
pub(crate) struct Codes {
    pub(crate) codes: List,
    pub(crate) values: Values,
}

impl Codes {
    /// How many different codes there may be, "absent" included.
    pub(crate) fn distinct(&self) -> usize {
        self.values.distinct()
    }

    /// The value of a code as text; an absent one is the empty text.
    pub(crate) fn text(&self, code: usize) -> std::borrow::Cow<'_, str> {
        match &self.values {
            Values::Numbers(values) => values.get(code).map(i64::to_string).unwrap_or_default().into(),
            Values::Texts(values) => values.get(code).map_or("", String::as_str).into(),
        }
    }

    /// The value of a code as a number; `None` where it is absent or a text.
    pub(crate) fn number(&self, code: usize) -> Option<i64> {
        self.values.number(code)
    }

    /// Of numbers, of which some may be absent.
    pub(crate) fn of_numbers(numbers: impl ExactSizeIterator<Item = Option<i64>>) -> Codes {
        let (codes, values) = code_numbers(numbers);
        Codes {
            codes: with_absent(codes, values.len()).into(),
            values: Values::Numbers(values),
        }
    }

    fn of_array(column: &ArrayRef) -> Result<Codes, Damage> {
        if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
            return Ok(Codes::of_numbers(numbers.iter()));
        }
        if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
            return Ok(Codes::of_numbers(numbers.iter().map(|n| n.map(i64::from))));
        }
        let texts = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let column = arrow::compute::cast(column, &texts).map_err(|error| Damage::new(error.to_string()))?;
        let dictionary = column.as_dictionary::<Int32Type>();
        let values = dictionary.values().as_string::<i32>();
        let absent = values.len() as u32;
        let codes = dictionary.keys().iter().map(|key| key.map_or(absent, |key| key as u32));
        Ok(Codes {
            codes: codes.collect::<Vec<u32>>().into(),
            values: Values::Texts(
                values
                    .iter()
                    .map(|value| value.unwrap_or_default().to_owned())
                    .collect(),
            ),
        })
    }
}

/// What stands for a number that is absent.
pub(super) const ABSENT: u32 = u32::MAX;

/// A code for each number, [`ABSENT`] for one that is absent, and the numbers that they stand for. Runs of equal ones are looked up once.
pub(super) fn code_numbers(numbers: impl ExactSizeIterator<Item = Option<i64>>) -> (Vec<u32>, Vec<i64>) {
    let mut index: HashMap<i64, u32, MixState> = HashMap::default();
    let mut values = Vec::new();
    let mut codes = Vec::with_capacity(numbers.len());
    let mut last = None;
    for number in numbers {
        let code = match (number, last) {
            (Some(number), Some((before, code))) if number == before => code,
            (Some(number), _) => {
                let code = *index.entry(number).or_insert_with(|| {
                    values.push(number);
                    values.len() as u32 - 1
                });
                last = Some((number, code));
                code
            }
            (None, _) => ABSENT,
        };
        codes.push(code);
    }
    (codes, values)
}

/// How many values from the first on pass a test: block by block, since a loop that may end at every value does one at a time.
pub(crate) fn run_length<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> usize {
    let mut count = 0;
    for block in values.chunks(32) {
        if block.iter().fold(true, |all, value| all & test(*value)) {
            count += block.len();
        } else {
            return count + block.iter().take_while(|value| test(**value)).count();
        }
    }
    count
}

/// [`ABSENT`] to the code of "absent".
fn with_absent(mut codes: Vec<u32>, values: usize) -> Vec<u32> {
    for code in codes.iter_mut().filter(|code| **code == ABSENT) {
        *code = values as u32;
    }
    codes
}

/// A column in the form that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    Codes(Codes),
    /// Of a column without absent values.
    Numbers(Vec<i64>),
}

/// Whether a column is read as codes or as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Codes,
    Numbers,
}

/// A column to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
}

/// What may be said of a column before it is read: the bounds of its values, inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bounds {
    Numbers(i64, i64),
    Texts(String, String),
}

/// Bounds of columns, by name; `None` where nothing is known.
pub(crate) type Known<'a> = &'a dyn Fn(&str) -> Option<Bounds>;

/// Rows that are read at once.
#[derive(Debug, Clone)]
pub(crate) enum Unit {
    /// A row group of a file.
    File {
        table: Table,
        file: Arc<DataFile>,
        footer: Arc<ParquetMetaData>,
        group: usize,
    },
    /// Rows that wait for their commit.
    Pending(Pending),
}

/// The units of `samples`, or of one of its roll-ups, that `may` accepts, by what is known of their columns; damaged files are left out.
pub(crate) async fn units(
    snapshot: &Snapshot,
    table: Table,
    may: impl Fn(Known<'_>) -> bool,
) -> Result<Vec<Unit>, ReadError> {
    let store = objects(snapshot);
    let mut units = Vec::new();
    let files = snapshot.files(table).iter();
    let files = files
        .filter(|file| may(&|column| of_file(table, file, column)))
        .cloned();
    for file in snapshot.sound(table, files.collect()).await {
        let footer = snapshot.footers.get(store.as_ref(), table, &file).await?;
        for (group, rows) in footer.row_groups().iter().enumerate() {
            if may(&|column| of_group(table, &file, rows, column)) {
                let (file, footer) = (file.clone(), footer.clone());
                units.push(Unit::File {
                    table,
                    file,
                    footer,
                    group,
                });
            }
        }
    }
    for rows in snapshot.pending(table) {
        let hour = rows.partition();
        let is_hour = |column: &str| column == table.partition_column();
        let known =
            |column: &str| is_hour(column).then(|| hour.clone().map(|hour| Bounds::Texts(hour.clone(), hour)))?;
        if may(&known) {
            units.push(Unit::Pending(rows.clone()));
        }
    }
    Ok(units)
}

fn objects(snapshot: &Snapshot) -> Arc<dyn ObjectStore> {
    let url = ObjectStoreUrl::parse(STORE_URL).ok();
    url.and_then(|url| snapshot.runtime.object_store(&url).ok())
        // Registered when the store is opened; without it every read says "not found".
        .unwrap_or_else(|| Arc::new(object_store::memory::InMemory::new()))
}

fn path_of(table: Table, file: &DataFile) -> Path {
    Path::from(format!("{}/{}", table.name(), file.path))
}

fn read_error(table: Table, file: &DataFile) -> impl Fn(String) -> ReadError + use<> {
    let path = format!("{}/{}", table.name(), file.path);
    move |what| ReadError {
        path: path.clone(),
        what,
    }
}

fn of_file(table: Table, file: &DataFile, column: &str) -> Option<Bounds> {
    if column == table.partition_column() {
        return Some(Bounds::Texts(file.partition.clone(), file.partition.clone()));
    }
    let numbers = file
        .int_range(column)
        .map(|range| Bounds::Numbers(range.min, range.max));
    numbers.or_else(|| {
        let range = file.string_range(column)?;
        Some(Bounds::Texts(range.min.clone(), range.max.clone()))
    })
}

fn of_group(table: Table, file: &DataFile, group: &RowGroupMetaData, column: &str) -> Option<Bounds> {
    let found = group.columns().iter().find(|c| c.column_path().string() == column);
    let Some(statistics) = found.and_then(|chunk| chunk.statistics()) else {
        return of_file(table, file, column);
    };
    match statistics {
        Statistics::Int64(range) => Some(Bounds::Numbers(*range.min_opt()?, *range.max_opt()?)),
        Statistics::ByteArray(range) if range.min_is_exact() && range.max_is_exact() => {
            let text = |bytes: &[u8]| Some(std::str::from_utf8(bytes).ok()?.to_owned());
            Some(Bounds::Texts(
                text(range.min_opt()?.data())?,
                text(range.max_opt()?.data())?,
            ))
        }
        _ => of_file(table, file, column),
    }
}

impl Unit {
    /// Whether its rows are counted samples, `count` of each.
    pub(crate) fn is_rollup(&self) -> bool {
        matches!(self, Unit::File { table, .. } if Table::ROLLUPS.contains(table))
    }

    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Unit::File { footer, group, .. } => footer.row_group(*group).num_rows() as usize,
            Unit::Pending(rows) => rows.num_rows(),
        }
    }

    /// Whether all its rows satisfy a condition, by what is known of a column.
    pub(crate) fn known(&self, column: &str) -> Option<Bounds> {
        match self {
            Unit::File {
                table,
                file,
                footer,
                group,
            } => of_group(*table, file, footer.row_group(*group), column),
            Unit::Pending(_) => None,
        }
    }

    /// The number that all rows have in a column, where that is known without reading it.
    pub(crate) fn only(&self, column: &str) -> Option<i64> {
        let Unit::File { footer, group, .. } = self else {
            return None;
        };
        let columns = footer.row_group(*group).columns();
        let found = columns.iter().find(|chunk| chunk.column_path().string() == column);
        match found?.statistics()? {
            Statistics::Int64(range) if range.null_count_opt() == Some(0) => {
                let least = range.min_opt()?;
                (Some(least) == range.max_opt()).then_some(*least)
            }
            _ => None,
        }
    }

    /// Gets the bytes of the columns, on a thread that may wait for them.
    pub(crate) fn fetch_here(self, snapshot: &Snapshot, columns: &[Wanted]) -> Result<Fetched, ReadError> {
        let store = objects(snapshot);
        local::reading_here(|| block_on(self.fetch_from(store.as_ref(), columns)))
    }

    async fn fetch_from(self, store: &dyn ObjectStore, columns: &[Wanted]) -> Result<Fetched, ReadError> {
        let mut chunks = Vec::new();
        if let Unit::File {
            table,
            file,
            footer,
            group,
        } = &self
        {
            let (failed, rows) = (read_error(*table, file), footer.row_group(*group));
            let mut places = Vec::with_capacity(columns.len());
            for column in columns {
                let index = index_of(rows, column.name).map_err(|damage| failed(damage.what))?;
                let (start, length) = rows.column(index).byte_range();
                places.push((index, start..start.saturating_add(length)));
            }
            let ranges: Vec<_> = places.iter().map(|(_, range)| range.clone()).collect();
            let bytes = fetch(store, *table, file, &ranges).await?;
            let chunk = |((index, range), bytes): ((usize, Range<u64>), Bytes)| Chunk {
                index,
                start: range.start,
                bytes,
            };
            chunks = places.into_iter().zip(bytes).map(chunk).collect();
        }
        Ok(Fetched { chunks, unit: self })
    }
}

async fn fetch(
    store: &dyn ObjectStore,
    table: Table,
    file: &DataFile,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>, ReadError> {
    let failed = read_error(table, file);
    if let Some(range) = ranges.iter().find(|range| range.end > file.size_bytes) {
        return Err(failed(format!(
            "a column is said to end at {}, behind the file's end",
            range.end
        )));
    }
    store
        .get_ranges(&path_of(table, file), ranges)
        .await
        .map_err(|error| failed(error.to_string()))
}

fn index_of(rows: &RowGroupMetaData, name: &str) -> Result<usize, Damage> {
    rows.columns()
        .iter()
        .position(|chunk| chunk.column_path().string() == name)
        .ok_or_else(|| Damage::new(format!("there is no column `{name}`")))
}

/// A unit with the bytes of its columns.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) unit: Unit,
    chunks: Vec<Chunk>,
}

impl Fetched {
    /// The columns, in the order in which they were asked for. Takes CPU time and waits for nothing.
    pub(crate) fn read(&self, columns: &[Wanted], unzip: &mut Unzip) -> Result<Vec<Column>, ReadError> {
        match &self.unit {
            Unit::Pending(rows) => columns.iter().map(|wanted| pending(rows, *wanted)).collect(),
            Unit::File {
                table,
                file,
                footer,
                group,
            } => {
                let (failed, rows) = (read_error(*table, file), footer.row_group(*group));
                self.chunks
                    .iter()
                    .zip(columns)
                    .map(|(chunk, wanted)| read(chunk, footer, *group, rows, wanted.form, unzip))
                    .collect::<Result<_, Damage>>()
                    .map_err(|damage| failed(damage.what))
            }
        }
    }
}

fn pending(rows: &Pending, wanted: Wanted) -> Result<Column, ReadError> {
    let failed = |what: String| ReadError {
        path: "rows that wait for their commit".to_owned(),
        what,
    };
    let column = rows
        .column(wanted.name)
        .ok_or_else(|| failed(format!("there is no column `{}`", wanted.name)))?
        .map_err(|error| failed(error.to_string()))?;
    match wanted.form {
        Form::Codes => Codes::of_array(&column)
            .map(Column::Codes)
            .map_err(|damage| failed(damage.what)),
        Form::Numbers => Ok(Column::Numbers(column.as_primitive::<Int64Type>().values().to_vec())),
    }
}
