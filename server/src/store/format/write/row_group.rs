//! Row groups of `samples` and its roll-ups written from codes: the form in which rows lie in memory, and in which
//! files hold them.
//!
//! In: columns of sorted rows, names as codes. Out: the bytes of a Parquet file in which every column but the time is
//! a dictionary and codes. A general writer is given values and looks each of them up, row by row, in a table that it
//! keeps; here a name's code is known, and a number is looked up once a run of equal ones. Formats: parquet-format,
//! `Encodings.md` ("RLE / Bit-Packing Hybrid", "Dictionary Encoding") and `README.md` ("Data Pages").

use crate::column::runs::{Runs, dense, runs};
use crate::store::buffer::arriving::FreshSamples;
use crate::store::buffer::coded_rows::{Recent, Samples};
use crate::store::buffer::interner::Interner;
use crate::store::format::provenance::Provenance;
use crate::store::format::write::column_writer::{Group, counting, thread_groups};
use crate::store::format::write::page_plan::Compressors;
use crate::store::format::write::rows_file::{self, Encoded, PART, ROW_GROUP_ROWS, Ranges, WriteProfile};
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use std::ops::Range;
use std::sync::Arc;
use zstd::bulk::Compressor;

/// A stack is named in about so many of the requests that a commit has, or more.
const NAMED_IN: usize = 8;

/// Sorts the rows of one hour and encodes them. CPU-bound: call it on a blocking thread. None comes back when there
/// are no rows.
pub(crate) fn encode(
    partition: &str,
    samples: &[Arc<FreshSamples>],
    profile: WriteProfile,
    provenance: &Provenance,
) -> Result<Option<Encoded>, StoreError> {
    let (mut rows, mut interner, mut recent) = (Samples::default(), Interner::default(), Recent::default());
    rows.reserve(samples.iter().map(|samples| samples.num_rows()).sum());
    interner
        .stacks
        .reserve(samples.iter().map(|samples| samples.stacks()).sum::<usize>() / NAMED_IN);
    for samples in samples {
        rows.add(samples, &mut interner, &mut recent);
    }
    if rows.len() == 0 {
        return Ok(None);
    }
    rows.sort(&interner);
    let mut file = CodedFile::new(Table::Samples, profile, provenance, rows.len() * profile.sample_bytes())?;
    file.write_groups(&rows, ROW_GROUP_ROWS, &interner)?;
    file.finish(partition, PART).map(Some)
}

/// A file that grows by row groups.
pub(crate) struct CodedFile {
    table: Table,
    writer: SerializedFileWriter<Vec<u8>>,
    profile: WriteProfile,
    compressor: Compressor<'static>,
    /// For codes in an order in which frequent bytes are all that there is to find.
    fast: Compressor<'static>,
    rows: u64,
    ranges: Ranges,
}

impl CodedFile {
    /// A file of about so many bytes: one that grows is copied again and again. `provenance`: what it says of itself.
    pub(crate) fn new(
        table: Table,
        profile: WriteProfile,
        provenance: &Provenance,
        bytes: usize,
    ) -> Result<Self, StoreError> {
        let (writer, _) = rows_file::writer(table, profile, provenance, bytes)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(failed(table))?;
        let compressor = |profile: WriteProfile| {
            let compressor = Compressor::new(profile.level());
            compressor.map_err(StoreError::table(table, "encode a file"))
        };
        Ok(Self {
            table,
            writer,
            profile,
            compressor: compressor(profile)?,
            fast: counting().map_err(StoreError::table(table, "encode a file"))?,
            rows: 0,
            ranges: Ranges::default(),
        })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds all rows of `samples` in row groups of so many.
    pub(crate) fn write_groups(&mut self, rows: &Samples, of: usize, interner: &Interner) -> Result<(), StoreError> {
        let begins = (0..rows.len()).step_by(of);
        begins
            .map(|begin| begin..rows.len().min(begin + of))
            .try_for_each(|group| self.write_samples(rows, group, interner))
    }

    /// Adds these rows of `samples` as a row group.
    pub(crate) fn write_samples(
        &mut self,
        rows: &Samples,
        range: Range<usize>,
        interner: &Interner,
    ) -> Result<(), StoreError> {
        self.write(range.len(), |group| write_samples(group, rows, range, interner))
    }

    /// Adds a row group of so many rows; `columns` adds all columns in the order of the table's.
    pub(crate) fn write(
        &mut self,
        rows: usize,
        columns: impl FnOnce(&mut Group<'_>) -> Result<(), ParquetError>,
    ) -> Result<(), StoreError> {
        let failed = failed(self.table);
        let ranges = self.write_group(columns).map_err(failed)?;
        if self.rows == 0 {
            self.ranges = ranges;
        } else {
            self.ranges.widen(&ranges);
        }
        self.rows += rows as u64;
        Ok(())
    }

    /// Returns the bounds of its columns.
    fn write_group(
        &mut self,
        columns: impl FnOnce(&mut Group<'_>) -> Result<(), ParquetError>,
    ) -> Result<Ranges, ParquetError> {
        let of_table = self.writer.schema_descr().columns().to_vec();
        let mut group = Group {
            table: self.table,
            rows: self.writer.next_row_group()?,
            columns: of_table.into_iter(),
            compressors: Compressors {
                profile: self.profile,
                compressor: &mut self.compressor,
                fast: &mut self.fast,
            },
            ranges: Ranges::default(),
        };
        columns(&mut group)?;
        let Group { rows, ranges, .. } = group;
        rows.close()?;
        Ok(ranges)
    }

    /// `name`: how the file's name begins.
    pub(crate) fn finish(self, partition: &str, name: &str) -> Result<Encoded, StoreError> {
        let bytes = self.writer.into_inner().map_err(failed(self.table))?;
        Ok(Encoded::new(self.table, partition, name, bytes, self.rows, self.ranges))
    }
}

fn failed(table: Table) -> impl Fn(ParquetError) -> StoreError {
    move |cause| StoreError::table(table, "encode a file")(cause)
}

/// Adds the columns of `samples` in their order.
fn write_samples(
    group: &mut Group<'_>,
    rows: &Samples,
    range: Range<usize>,
    interner: &Interner,
) -> Result<(), ParquetError> {
    let origins = runs(rows.origins[range.clone()].iter().copied());
    let thread_groups = thread_groups(&origins, interner);
    group.times(&rows.ts_ns[range.clone()], &origins)?;
    let names = &interner.names;
    group.texts_of_runs("type", &origins, names, |origin| interner.series_of(origin).kind)?;
    group.texts_of_runs("node", &origins, names, |origin| interner.origins[origin].node)?;
    group.texts_of_runs("service", &origins, names, |origin| interner.series_of(origin).service)?;
    group.numbers_of_runs("series_id", &origins, |origin| Some(interner.series_of(origin).id))?;
    group.numbers_of_runs("process_id", &origins, |origin| {
        Some(interner.origins[origin].process_id)
    })?;
    group.texts_of_runs("thread", &origins, names, |origin| interner.origins[origin].thread)?;
    group.numbers_of_runs("tid", &origins, |origin| interner.origins[origin].tid)?;
    let of_rows = rows.attribute_sets[range.clone()].iter().copied();
    let (attribute_sets, kept) = dense(of_rows, interner.attribute_sets.len());
    let attribute_set = |code: &u32| interner.attribute_sets[*code];
    let cpus = kept.iter().map(|code| attribute_set(code).cpu);
    group.numbers_of("cpu", &attribute_sets, cpus, size_of::<i32>(), &thread_groups)?;
    group.texts_of(
        "mode",
        &attribute_sets,
        kept.iter().map(|code| attribute_set(code).mode),
        names,
    )?;
    group.stacks(rows.stacks[range].iter().copied(), &thread_groups, interner)?;
    let values = kept.iter().map(|code| Some(attribute_set(code).amount.value));
    group.numbers_of("value", &attribute_sets, values, size_of::<i64>(), &Runs::new())?;
    let waits = kept.iter().map(|code| attribute_set(code).amount.known_wait());
    group.numbers_of("wait_ns", &attribute_sets, waits, size_of::<i64>(), &Runs::new())?;
    let woken = kept.iter().map(|code| attribute_set(code).amount.known_woken());
    group.numbers_of("woken_tid", &attribute_sets, woken, size_of::<i64>(), &Runs::new())
}

#[cfg(test)]
#[path = "row_group_tests.rs"]
mod tests;
