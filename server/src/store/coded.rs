//! Row groups of `samples` and its roll-ups written from codes: the form in which rows lie in memory, and in which files hold them.
//!
//! In: columns of sorted rows, names as codes. Out: the bytes of a Parquet file in which every column but the time is a dictionary and
//! codes. A general writer is given values and looks each of them up, row by row, in a table that it keeps; here a name's code
//! is known, and a number is looked up once a run of equal ones. Formats: parquet-format, `Encodings.md` ("RLE / Bit-Packing Hybrid",
//! "Dictionary Encoding") and `README.md` ("Data Pages").

use super::StoreError;
use super::columns::{ABSENT, code_numbers};
use super::file::{self, Effort, Encoded, MAX_RANGE_STRING_BYTES, Notes, PART, ROW_GROUP_ROWS, Ranges};
use super::merge::{Columns, Names};
use super::schema::Table;
use super::snapshot::ColumnRange;
use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Values of a page: a reader that wants a few rows unpacks no more.
const PAGE_VALUES: usize = 64 * 1024;

/// Values by which it is decided how codes are written: a small part of a row group's, since each of them is written thrice.
const TRIED_VALUES: usize = 8 * 1024;

/// Columns whose least and greatest value stand in the file beside its own sort columns.
const BOUNDED: [&str; 1] = ["node"];

/// Sorts the rows of one hour and encodes them. CPU-bound: call it on a blocking thread. None comes back when there are no rows.
pub(super) fn encode(
    partition: &str,
    batches: &[RecordBatch],
    effort: Effort,
    notes: &Notes,
) -> Result<Option<Encoded>, StoreError> {
    let (mut rows, mut names) = (Columns::default(), Names::default());
    for batch in batches {
        rows.add(batch, &mut names)
            .map_err(StoreError::table(Table::Samples, "gather rows"))?;
    }
    if rows.len() == 0 {
        return Ok(None);
    }
    let order = rows.sorted(&names);
    let mut file = CodedFile::new(Table::Samples, effort, notes)?;
    for group in order.chunks(ROW_GROUP_ROWS) {
        file.write_samples(&rows, group, &names)?;
    }
    file.finish(partition, PART).map(Some)
}

/// A file that grows by row groups.
pub(super) struct CodedFile {
    table: Table,
    writer: SerializedFileWriter<Vec<u8>>,
    effort: Effort,
    rows: u64,
    ranges: Ranges,
}

impl CodedFile {
    /// `notes`: what the file says of itself.
    pub(super) fn new(table: Table, effort: Effort, notes: &Notes) -> Result<Self, StoreError> {
        let (writer, _) = file::writer(table, effort, notes)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(failed(table))?;
        Ok(Self {
            table,
            writer,
            effort,
            rows: 0,
            ranges: Ranges::default(),
        })
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds rows of `samples` in this order as a row group.
    pub(super) fn write_samples(&mut self, rows: &Columns, order: &[u32], names: &Names) -> Result<(), StoreError> {
        self.write(order.len(), |group| write_samples(group, rows, order, names))
    }

    /// Adds a row group of so many rows; `columns` adds all columns in the order of the table's.
    pub(super) fn write(
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
        let (level, of_table) = (self.effort.level(), self.writer.schema_descr().columns().to_vec());
        let mut group = Group {
            table: self.table,
            rows: self.writer.next_row_group()?,
            columns: of_table.into_iter(),
            compressor: Compressor::new(level)?,
            compression: Compression::ZSTD(ZstdLevel::try_new(level)?),
            tries_bytes: self.effort == Effort::Compact,
            ranges: Ranges::default(),
        };
        columns(&mut group)?;
        let Group { rows, ranges, .. } = group;
        rows.close()?;
        Ok(ranges)
    }

    /// `name`: how the file's name begins.
    pub(super) fn finish(self, partition: &str, name: &str) -> Result<Encoded, StoreError> {
        let bytes = self.writer.into_inner().map_err(failed(self.table))?;
        Ok(Encoded::new(self.table, partition, name, bytes, self.rows, self.ranges))
    }
}

fn failed(table: Table) -> impl Fn(ParquetError) -> StoreError {
    move |cause| StoreError::table(table, "encode a file")(cause)
}

/// Adds the columns of `samples` in their order.
fn write_samples(group: &mut Group<'_>, rows: &Columns, order: &[u32], names: &Names) -> Result<(), ParquetError> {
    group.times(order.iter().map(|row| rows.ts_ns[*row as usize]).collect())?;
    group.names("type", &rows.kind, order, names)?;
    group.names("node", &rows.node, order, names)?;
    group.names("service", &rows.service, order, names)?;
    group.numbers("series_id", numbers(&rows.series_id, order), 8)?;
    group.numbers("process_id", numbers(&rows.process_id, order), 8)?;
    group.names("thread", &rows.thread, order, names)?;
    group.numbers("tid", order.iter().map(|row| rows.tid[*row as usize]), 8)?;
    let cpu = |row: &u32| rows.cpu[*row as usize].map(i64::from);
    group.numbers("cpu", order.iter().map(cpu), 4)?;
    group.names("mode", &rows.mode, order, names)?;
    group.numbers("stack_id", numbers(&rows.stack_id, order), 8)?;
    group.numbers("value", numbers(&rows.value, order), 8)
}

fn numbers<'r>(column: &'r [i64], order: &'r [u32]) -> impl ExactSizeIterator<Item = Option<i64>> + 'r {
    order.iter().map(|row| Some(column[*row as usize]))
}

/// A row group as it grows, column by column.
pub(super) struct Group<'f> {
    table: Table,
    rows: SerializedRowGroupWriter<'f, Vec<u8>>,
    /// Those that are still to come.
    columns: std::vec::IntoIter<ColumnDescPtr>,
    compressor: Compressor<'static>,
    compression: Compression,
    /// Codes of whole bytes are tried too.
    tries_bytes: bool,
    ranges: Ranges,
}

/// What stands before the codes of a column.
struct Dictionary {
    /// The values as the format has them, one after another.
    plain: Vec<u8>,
    values: usize,
    statistics: Option<Statistics>,
}

impl Group<'_> {
    /// Times differ little from their neighbours and are almost all distinct: the file's own writer packs the differences.
    fn times(&mut self, times: Vec<i64>) -> Result<(), ParquetError> {
        if let (Some(min), Some(max)) = (times.iter().min(), times.iter().max()) {
            self.ranges
                .ints
                .push(("ts_ns".to_owned(), ColumnRange { min: *min, max: *max }));
        }
        self.column()?;
        let column = self.rows.next_column()?;
        let mut column = column.ok_or_else(|| ParquetError::General("no column is left for the times".to_owned()))?;
        column.typed::<Int64Type>().write_batch(&times, None, None)?;
        column.close()
    }

    fn names(&mut self, name: &str, codes: &[i32], order: &[u32], names: &Names) -> Result<(), ParquetError> {
        self.texts(name, order.iter().map(|row| codes[*row as usize]), names)
    }

    /// Names by their codes.
    pub(super) fn texts(
        &mut self,
        name: &str,
        codes: impl ExactSizeIterator<Item = i32>,
        names: &Names,
    ) -> Result<(), ParquetError> {
        let (keys, kept) = names.dense(codes);
        let mut plain = Vec::new();
        for text in &kept {
            plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
            plain.extend_from_slice(text.as_bytes());
        }
        let bounds = kept.iter().min().zip(kept.iter().max());
        let array = |text: &str| Some(ByteArray::from(text));
        // Longer ones would be the largest part of the footer, and are no use as a range.
        let short = bounds.filter(|(min, max)| min.len().max(max.len()) <= MAX_RANGE_STRING_BYTES);
        let statistics = short.map(|(min, max)| Statistics::byte_array(array(min), array(max), None, Some(0), false));
        if let Some((min, max)) = short {
            self.ranges.add_texts(name, min, max);
        }
        let dictionary = Dictionary {
            plain,
            values: kept.len(),
            statistics: statistics.filter(|_| self.is_bounded(name)),
        };
        self.append(&keys, None, dictionary)
    }

    /// Numbers of this many bytes each, of which some may be absent.
    pub(super) fn numbers(
        &mut self,
        name: &str,
        numbers: impl ExactSizeIterator<Item = Option<i64>>,
        bytes: usize,
    ) -> Result<(), ParquetError> {
        let (mut codes, values) = code_numbers(numbers);
        let absent = codes.iter().filter(|code| **code == ABSENT).count() as u64;
        let present = (absent > 0).then(|| codes.iter().map(|code| u32::from(*code != ABSENT)).collect());
        if absent > 0 {
            codes.retain(|code| *code != ABSENT);
        }
        let some = values.iter().min().copied().zip(values.iter().max().copied());
        if let Some((min, max)) = some.filter(|_| absent == 0 && bytes == 8) {
            self.ranges.ints.push((name.to_owned(), ColumnRange { min, max }));
        }
        let bounds = |bound: fn((i64, i64)) -> i64| some.map(bound);
        let dictionary = Dictionary {
            plain: values
                .iter()
                .flat_map(|value| value.to_le_bytes().into_iter().take(bytes))
                .collect(),
            values: values.len(),
            statistics: self
                .is_bounded(name)
                .then(|| Statistics::int64(bounds(|all| all.0), bounds(|all| all.1), None, Some(absent), false)),
        };
        self.append(&codes, present, dictionary)
    }

    /// Adds a column. `present`: for each row 0 or 1, where some are absent.
    fn append(&mut self, codes: &[u32], present: Option<Vec<u32>>, dictionary: Dictionary) -> Result<(), ParquetError> {
        let column = self.column()?;
        let may_lack = column.max_def_level() > 0;
        let rows = present.as_ref().map_or(codes.len(), Vec::len);
        let mut sink = TrackedWrite::new(Vec::new());
        let mut chunk = Chunk {
            pages: SerializedPageWriter::new(&mut sink),
            offsets: OffsetIndexBuilder::new(),
            compressed: 0,
            plain: 0,
        };
        chunk.add(
            Page::DictionaryPage {
                buf: self.compressor.compress(&dictionary.plain)?.into(),
                num_values: dictionary.values as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            },
            dictionary.plain.len(),
        )?;
        let first_page = chunk.compressed;
        let width = self.width(dictionary.values, &codes[..codes.len().min(TRIED_VALUES)])?;
        let (mut from, mut plain) = (0, Vec::new());
        for start in (0..rows).step_by(PAGE_VALUES) {
            let page_rows = PAGE_VALUES.min(rows - start);
            let levels = present.as_ref().map(|present| &present[start..start + page_rows]);
            let values = levels.map_or(page_rows, |levels| levels.iter().sum::<u32>() as usize);
            plain.clear();
            if may_lack {
                match levels {
                    Some(levels) => hybrid(levels, 1, &mut plain),
                    None => run(1, page_rows, 1, &mut plain),
                }
            }
            let levels_bytes = plain.len();
            plain.push(width as u8);
            hybrid(&codes[from..from + values], width, &mut plain);
            from += values;
            let small = self.compressor.compress(&plain[levels_bytes..])?;
            let is_compressed = small.len() < plain.len() - levels_bytes;
            let body = if is_compressed {
                &small[..]
            } else {
                &plain[levels_bytes..]
            };
            let page = Page::DataPageV2 {
                buf: [&plain[..levels_bytes], body].concat().into(),
                num_values: page_rows as u32,
                encoding: Encoding::RLE_DICTIONARY,
                num_nulls: (page_rows - values) as u32,
                num_rows: page_rows as u32,
                def_levels_byte_len: levels_bytes as u32,
                rep_levels_byte_len: 0,
                is_compressed,
                statistics: None,
            };
            chunk.add(page, plain.len())?;
        }
        let Chunk {
            offsets,
            compressed,
            plain,
            ..
        } = chunk;
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(self.compression)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_num_values(rows as i64)
            .set_total_compressed_size(compressed)
            .set_total_uncompressed_size(plain)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(first_page);
        if let Some(statistics) = dictionary.statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(offsets.build()),
        };
        self.rows.append_column(&Bytes::from(sink.into_inner()?), close)
    }

    /// How many bits codes are written with, by how small the first ones become: as few as the greatest code needs, or whole bytes. Whole
    /// bytes are more, but zstd finds in them which codes are frequent.
    fn width(&mut self, values: usize, first: &[u32]) -> Result<u32, ParquetError> {
        let least = u32::BITS - (values.saturating_sub(1) as u32).leading_zeros();
        let bytes = least.next_multiple_of(8);
        if !self.tries_bytes || bytes == least {
            return Ok(least);
        }
        let mut size = |width| -> Result<usize, ParquetError> {
            let mut plain = Vec::new();
            hybrid(first, width, &mut plain);
            Ok(self.compressor.compress(&plain)?.len().min(plain.len()))
        };
        Ok(if size(bytes)? < size(least)? { bytes } else { least })
    }

    /// Whether the least and the greatest value stand in the file.
    fn is_bounded(&self, column: &str) -> bool {
        self.table.sort_columns().contains(&column) || BOUNDED.contains(&column)
    }

    /// What the schema says of the next column.
    fn column(&mut self) -> Result<ColumnDescPtr, ParquetError> {
        let column = self.columns.next();
        column.ok_or_else(|| ParquetError::General("the table has fewer columns than its rows".to_owned()))
    }
}

/// The pages of a column.
struct Chunk<'s> {
    pages: SerializedPageWriter<'s, Vec<u8>>,
    /// Where its data pages are: a reader that wants a few rows opens no others.
    offsets: OffsetIndexBuilder,
    /// Bytes so far, with the pages' headers.
    compressed: i64,
    plain: i64,
}

impl Chunk<'_> {
    fn add(&mut self, page: Page, plain_bytes: usize) -> Result<(), ParquetError> {
        let (is_data, rows) = (page.is_data_page(), page.num_values());
        let spec = self.pages.write_page(CompressedPage::new(page, plain_bytes))?;
        if is_data {
            let size = i32::try_from(spec.compressed_size)?;
            self.offsets.append_offset_and_size(self.compressed, size);
            self.offsets.append_row_count(i64::from(rows));
        }
        self.compressed += spec.compressed_size as i64;
        self.plain += spec.uncompressed_size as i64;
        Ok(())
    }
}

/// A run is worth its header where it fills as many groups of eight.
const LEAST_RUN: usize = 8;

/// Codes of `width` bits: runs of equal ones, and groups of eight between them.
fn hybrid(codes: &[u32], width: u32, to: &mut Vec<u8>) {
    let (mut literal, mut at) = (0, 0);
    while at < codes.len() {
        let end = at + codes[at..].iter().take_while(|code| **code == codes[at]).count();
        // What stands before a run fills whole groups, if need be with the run's first codes.
        let begin = literal + (at - literal).next_multiple_of(8);
        if end >= begin + LEAST_RUN {
            pack(&codes[literal..begin], width, to);
            run(codes[at], end - begin, width, to);
            literal = end;
        }
        at = end;
    }
    pack(&codes[literal..], width, to);
}

/// So many times the same code.
fn run(code: u32, count: usize, width: u32, to: &mut Vec<u8>) {
    varint((count as u64) << 1, to);
    to.extend_from_slice(&code.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Groups of eight codes, the last one filled up with zeros.
fn pack(codes: &[u32], width: u32, to: &mut Vec<u8>) {
    if codes.is_empty() {
        return;
    }
    let groups = codes.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, to);
    let end = to.len() + groups * width as usize;
    let (mut bits, mut filled) = (0_u64, 0);
    for code in codes {
        bits |= u64::from(*code) << filled;
        filled += width;
        if filled >= u32::BITS {
            to.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= u32::BITS;
            filled -= u32::BITS;
        }
    }
    to.extend_from_slice(&(bits as u32).to_le_bytes());
    to.resize(end, 0);
}

/// Unsigned LEB128.
fn varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
#[path = "coded_tests.rs"]
mod tests;
