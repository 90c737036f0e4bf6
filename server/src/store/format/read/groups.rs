//! Columns of `samples` and its roll-ups as codes: what counting needs of a Parquet file, and no more.
//!
//! In: the files and the pending rows of a [`Snapshot`], conditions that leave out whole files and row groups, names
//! of columns. Out: for one row group after another each column as a code a row with the value of each code, or as
//! plain numbers. A label's value is then looked at once a row group instead of once a row, and counting is an index
//! into an array. Files hold their columns in just this form, so that nothing is hashed on the way. A file that
//! cannot be read is an error that names it.

use crate::column::bounds::Bounds;
use crate::column::coded::{CodedColumn, Column, Form, Projection};
use crate::column::malformed::MalformedFile;
use crate::store::buffer::arriving::Pending;
use crate::store::format::read::column_chunk::{Chunk, read};
use crate::store::format::read::unzip::Unzip;
use crate::store::root::reader::RangeReader;
use crate::store::table::data_file::DataFile;
use crate::store::table::schema::Table;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use std::ops::Range;
use std::sync::Arc;

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;

/// A file of the store that could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{path}: {what}")]
pub(crate) struct ReadError {
    /// Below the data directory.
    pub(crate) path: String,
    pub(crate) what: String,
}

/// Rows that are read at once.
#[derive(Debug, Clone)]
pub(crate) enum RowGroupTask {
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

pub(crate) fn read_error(table: Table, file: &DataFile) -> impl Fn(String) -> ReadError + use<> {
    let path = table.path_of(&file.path);
    move |what| ReadError {
        path: path.clone(),
        what,
    }
}

pub(crate) fn of_file(table: Table, file: &DataFile, column: &str) -> Option<Bounds> {
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

pub(crate) fn of_group(table: Table, file: &DataFile, group: &RowGroupMetaData, column: &str) -> Option<Bounds> {
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

impl RowGroupTask {
    /// Whether its rows are counted samples, `count` of each.
    pub(crate) fn is_rollup(&self) -> bool {
        matches!(self, RowGroupTask::File { table, .. } if Table::ROLLUPS.contains(table))
    }

    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        match self {
            RowGroupTask::File { footer, group, .. } => footer.row_group(*group).num_rows() as usize,
            RowGroupTask::Pending(rows) => rows.num_rows(),
        }
    }

    /// Whether all its rows satisfy a condition, by what is known of a column.
    pub(crate) fn known(&self, column: &str) -> Option<Bounds> {
        match self {
            RowGroupTask::File {
                table,
                file,
                footer,
                group,
            } => of_group(*table, file, footer.row_group(*group), column),
            RowGroupTask::Pending(_) => None,
        }
    }

    /// The number that all rows have in a column, where that is known without reading it.
    pub(crate) fn only(&self, column: &str) -> Option<i64> {
        let RowGroupTask::File { footer, group, .. } = self else {
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

    /// Gets the bytes of the columns, on this thread, which may wait for them.
    pub(crate) fn fetch(self, reader: &dyn RangeReader, columns: &[Projection]) -> Result<Fetched, ReadError> {
        let mut chunks = Vec::new();
        if let RowGroupTask::File {
            table,
            file,
            footer,
            group,
        } = &self
        {
            let (failed, rows) = (read_error(*table, file), footer.row_group(*group));
            let mut places = Vec::with_capacity(columns.len());
            for column in columns {
                let index = index_of(*table, rows, column.name).map_err(|damage| failed(damage.what))?;
                places.push(index.map(|index| {
                    let (start, length) = rows.column(index).byte_range();
                    (index, start..start.saturating_add(length))
                }));
            }
            let ranges: Vec<_> = places.iter().flatten().map(|(_, range)| range.clone()).collect();
            let mut bytes = fetch(reader, *table, file, &ranges)?.into_iter();
            for place in places {
                let chunk = place.map(|(index, range)| {
                    let bytes = bytes.next().ok_or_else(|| failed("a column was not read".to_owned()))?;
                    let start = range.start;
                    Ok::<_, ReadError>(Chunk { index, start, bytes })
                });
                chunks.push(chunk.transpose()?);
            }
        }
        Ok(Fetched { chunks, unit: self })
    }
}

/// Ranges of a file, read on this thread, which may wait for them.
pub(crate) fn fetch(
    reader: &dyn RangeReader,
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
    reader
        .ranges(&table.path_of(&file.path), ranges)
        .map_err(|error| failed(error.cause().to_string()))
}

/// The place of a column; none where a server wrote the file that did not have it yet: then it is null in all rows.
pub(crate) fn index_of(table: Table, rows: &RowGroupMetaData, name: &str) -> Result<Option<usize>, MalformedFile> {
    let columns = rows.columns();
    let found = columns.iter().position(|chunk| chunk.column_path().string() == name);
    if found.is_none() && !table.newer_columns().contains(&name) {
        return Err(MalformedFile::new(format!("there is no column `{name}`")));
    }
    Ok(found)
}

/// A unit with the bytes of its columns.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) unit: RowGroupTask,
    /// One for each column; none of one that the file lacks.
    chunks: Vec<Option<Chunk>>,
}

impl Fetched {
    /// The columns, in the order in which they were asked for. Takes CPU time and waits for nothing.
    pub(crate) fn read(&self, columns: &[Projection], unzip: &mut Unzip) -> Result<Vec<Column>, ReadError> {
        match &self.unit {
            RowGroupTask::Pending(rows) => columns.iter().map(|wanted| pending(rows, *wanted)).collect(),
            RowGroupTask::File {
                table,
                file,
                footer,
                group,
            } => {
                let (failed, rows) = (read_error(*table, file), footer.row_group(*group));
                self.chunks
                    .iter()
                    .zip(columns)
                    .map(|(chunk, wanted)| match chunk {
                        Some(chunk) => read(chunk, footer, *group, rows, wanted.form, unzip),
                        None => Ok(Column::Codes(CodedColumn::absent(rows.num_rows() as usize))),
                    })
                    .collect::<Result<_, MalformedFile>>()
                    .map_err(|damage| failed(damage.what))
            }
        }
    }
}

fn pending(rows: &Pending, wanted: Projection) -> Result<Column, ReadError> {
    let failed = |what: String| ReadError {
        path: "rows that wait for their commit".to_owned(),
        what,
    };
    let column = rows
        .column(wanted.name)
        .ok_or_else(|| failed(format!("there is no column `{}`", wanted.name)))?
        .map_err(|error| failed(error.to_string()))?;
    match wanted.form {
        Form::Codes => CodedColumn::of_array(&column)
            .map(Column::Codes)
            .map_err(|damage| failed(damage.what)),
        Form::Numbers => Ok(Column::Numbers(column.as_primitive::<Int64Type>().values().to_vec())),
    }
}
