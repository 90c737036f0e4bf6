//! Row groups of `samples` and its roll-ups written from codes: the form in which rows lie in memory, and in which files hold them.
//!
//! In: columns of sorted rows, names as codes. Out: the bytes of a Parquet file in which every column but the time is a dictionary and
//! codes. A general writer is given values and looks each of them up, row by row, in a table that it keeps; here a name's code
//! is known, and a number is looked up once a run of equal ones. Formats: parquet-format, `Encodings.md` ("RLE / Bit-Packing Hybrid",
//! "Dictionary Encoding") and `README.md` ("Data Pages").

use super::StoreError;
use super::columns::{ABSENT, code_numbers};
use super::file::{self, Effort, Encoded, MAX_RANGE_STRING_BYTES, Notes, PART, ROW_GROUP_ROWS, Ranges};
use super::packing::{Codes, Runs, by_frequency, deltas, dense, hybrid, run, runs};
use super::samples::{Book, Names, Recent, Samples};
use super::schema::Table;
use super::snapshot::ColumnRange;
use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Values by which it is decided how codes are written: a small part of a row group's, since each of them is written thrice.
const TRIED_VALUES: usize = 8 * 1024;

/// The same of codes by frequency. They are compared as they would be written, and in few values no code comes often.
const TRIED_FREQUENCIES: usize = 32 * 1024;

/// Columns whose least and greatest value stand in the file beside its own sort columns.
const BOUNDED: [&str; 1] = ["node"];

/// Sorts the rows of one hour and encodes them. CPU-bound: call it on a blocking thread. None comes back when there are no rows.
pub(super) fn encode(
    partition: &str,
    batches: &[RecordBatch],
    effort: Effort,
    notes: &Notes,
) -> Result<Option<Encoded>, StoreError> {
    let (mut rows, mut book, mut recent) = (Samples::default(), Book::default(), Recent::default());
    rows.reserve(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in batches {
        rows.add(batch, &mut book, &mut recent)
            .map_err(StoreError::table(Table::Samples, "gather rows"))?;
    }
    if rows.len() == 0 {
        return Ok(None);
    }
    let order = rows.sorted(&book);
    let mut file = CodedFile::new(Table::Samples, effort, notes)?;
    for group in order.chunks(ROW_GROUP_ROWS) {
        file.write_samples(&rows, group, &book)?;
    }
    file.finish(partition, PART).map(Some)
}

/// A file that grows by row groups.
pub(super) struct CodedFile {
    table: Table,
    writer: SerializedFileWriter<Vec<u8>>,
    effort: Effort,
    compressor: Compressor<'static>,
    /// For what is hardly smaller after more effort.
    fast: Compressor<'static>,
    rows: u64,
    ranges: Ranges,
}

impl CodedFile {
    /// `notes`: what the file says of itself.
    pub(super) fn new(table: Table, effort: Effort, notes: &Notes) -> Result<Self, StoreError> {
        let (writer, _) = file::writer(table, effort, notes)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(failed(table))?;
        let compressor = |effort: Effort| {
            let compressor = Compressor::new(effort.level());
            compressor.map_err(StoreError::table(table, "encode a file"))
        };
        Ok(Self {
            table,
            writer,
            effort,
            compressor: compressor(effort)?,
            fast: compressor(Effort::Fresh)?,
            rows: 0,
            ranges: Ranges::default(),
        })
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds rows of `samples` in this order as a row group.
    pub(super) fn write_samples(&mut self, rows: &Samples, order: &[u32], book: &Book) -> Result<(), StoreError> {
        self.write(order.len(), |group| write_samples(group, rows, order, book))
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
        let of_table = self.writer.schema_descr().columns().to_vec();
        let mut group = Group {
            table: self.table,
            rows: self.writer.next_row_group()?,
            columns: of_table.into_iter(),
            compressor: &mut self.compressor,
            fast: &mut self.fast,
            is_by_frequency: false,
            effort: self.effort,
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
fn write_samples(group: &mut Group<'_>, rows: &Samples, order: &[u32], book: &Book) -> Result<(), ParquetError> {
    let by_row = |column: &[u32]| -> Vec<u32> { order.iter().map(|row| column[*row as usize]).collect() };
    let origins = runs(order.iter().map(|row| rows.origins[*row as usize]));
    group.times(order.iter().map(|row| rows.ts_ns[*row as usize]).collect())?;
    let names = &book.names;
    group.texts_of_runs("type", &origins, names, |origin| book.series_of(origin).kind)?;
    group.texts_of_runs("node", &origins, names, |origin| book.origins[origin].node)?;
    group.texts_of_runs("service", &origins, names, |origin| book.series_of(origin).service)?;
    group.numbers_of_runs("series_id", &origins, |origin| Some(book.series_of(origin).id))?;
    group.numbers_of_runs("process_id", &origins, |origin| Some(book.origins[origin].process_id))?;
    group.texts_of_runs("thread", &origins, names, |origin| book.origins[origin].thread)?;
    group.numbers_of_runs("tid", &origins, |origin| book.origins[origin].tid)?;
    let (manners, kept) = dense(by_row(&rows.manners).into_iter(), book.manners.len());
    let manner = |code: &u32| book.manners[*code];
    group.numbers_of("cpu", &manners, kept.iter().map(|code| manner(code).cpu), 4)?;
    group.texts_of("mode", &manners, kept.iter().map(|code| manner(code).mode), names)?;
    group.stacks(by_row(&rows.stacks), book)?;
    group.numbers_of("value", &manners, kept.iter().map(|code| Some(manner(code).value)), 8)
}

/// A row group as it grows, column by column.
pub(super) struct Group<'f> {
    table: Table,
    rows: SerializedRowGroupWriter<'f, Vec<u8>>,
    /// Those that are still to come.
    columns: std::vec::IntoIter<ColumnDescPtr>,
    compressor: &'f mut Compressor<'static>,
    fast: &'f mut Compressor<'static>,
    /// Of the column that is written: then little effort does.
    is_by_frequency: bool,
    effort: Effort,
    ranges: Ranges,
}

/// What stands before the codes of a column.
struct Dictionary {
    /// The values as the format has them, one after another.
    plain: Vec<u8>,
    values: usize,
    statistics: Option<Statistics>,
    /// How many rows have none.
    absent: usize,
}

impl Group<'_> {
    /// Times differ little from their neighbours and are almost all distinct: their differences are packed. What is left of them is noise,
    /// and is not compressed.
    fn times(&mut self, times: Vec<i64>) -> Result<(), ParquetError> {
        let column = self.column()?;
        let bounds = times.iter().copied().min().zip(times.iter().copied().max());
        if let Some((min, max)) = bounds {
            let range = ColumnRange { min, max };
            self.ranges.ints.push(("ts_ns".to_owned(), range));
        }
        let mut sink = TrackedWrite::new(Vec::with_capacity(times.len() * 5));
        let mut chunk = Chunk::new(&mut sink);
        for page in times.chunks(self.effort.page_rows()) {
            let mut plain = Vec::with_capacity(page.len() * 5);
            deltas(page, &mut plain);
            let bytes = plain.len();
            let page = Page::DataPageV2 {
                buf: plain.into(),
                num_values: page.len() as u32,
                encoding: Encoding::DELTA_BINARY_PACKED,
                num_nulls: 0,
                num_rows: page.len() as u32,
                def_levels_byte_len: 0,
                rep_levels_byte_len: 0,
                is_compressed: false,
                statistics: None,
            };
            chunk.add(page, bytes)?;
        }
        let statistics = bounds.map(|(min, max)| Statistics::int64(Some(min), Some(max), None, Some(0), false));
        let built = chunk.finish();
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::UNCOMPRESSED)
            .set_encodings(vec![Encoding::RLE, Encoding::DELTA_BINARY_PACKED])
            .set_num_values(times.len() as i64)
            .set_total_compressed_size(built.compressed)
            .set_total_uncompressed_size(built.plain)
            .set_data_page_offset(0);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        self.append_built(times.len(), metadata.build()?, built, sink)
    }

    /// Names of what runs are of, by their codes.
    pub(super) fn texts_of_runs(
        &mut self,
        name: &str,
        runs: &Runs,
        names: &Names,
        code: impl Fn(u32) -> u32,
    ) -> Result<(), ParquetError> {
        let (keys, kept) = dense(runs.iter().map(|(of, _)| code(*of)), names.len());
        let runs: Runs = keys
            .into_iter()
            .zip(runs)
            .map(|(key, (_, count))| (key, *count))
            .collect();
        self.texts(name, Codes::of_runs(&runs), &kept, names)
    }

    /// Names of what rows are, of which there are few: by their codes, one each.
    pub(super) fn texts_of(
        &mut self,
        name: &str,
        rows: &[u32],
        codes: impl ExactSizeIterator<Item = u32>,
        names: &Names,
    ) -> Result<(), ParquetError> {
        let (keys, kept) = dense(codes, names.len());
        let rows: Vec<u32> = rows.iter().map(|row| keys[*row as usize]).collect();
        self.texts(name, Codes::of_rows(&rows), &kept, names)
    }

    fn texts(&mut self, name: &str, codes: Codes<'_>, kept: &[u32], names: &Names) -> Result<(), ParquetError> {
        let mut plain = Vec::new();
        let texts = || kept.iter().map(|code| names.text(*code));
        for text in texts() {
            plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
            plain.extend_from_slice(text.as_bytes());
        }
        let bounds = texts().min().zip(texts().max());
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
            absent: 0,
        };
        self.append(codes, dictionary)
    }

    /// Numbers of 64 bits of what runs are of, of which some may be absent.
    pub(super) fn numbers_of_runs(
        &mut self,
        name: &str,
        runs: &Runs,
        number: impl Fn(u32) -> Option<i64>,
    ) -> Result<(), ParquetError> {
        let (keys, values) = code_numbers(runs.iter().map(|(of, _)| number(*of)));
        let runs: Runs = keys
            .into_iter()
            .zip(runs)
            .map(|(key, (_, count))| (key, *count))
            .collect();
        self.numbers(name, Codes::of_runs(&runs), &values, 8)
    }

    /// Numbers of so many bytes of what rows are, of which there are few: one each, of which some may be absent.
    pub(super) fn numbers_of(
        &mut self,
        name: &str,
        rows: &[u32],
        numbers: impl ExactSizeIterator<Item = Option<i64>>,
        bytes: usize,
    ) -> Result<(), ParquetError> {
        let (keys, values) = code_numbers(numbers);
        let rows: Vec<u32> = rows.iter().map(|row| keys[*row as usize]).collect();
        self.numbers(name, Codes::of_rows(&rows), &values, bytes)
    }

    /// Numbers of 64 bits row by row.
    pub(super) fn numbers_of_rows(
        &mut self,
        name: &str,
        numbers: impl ExactSizeIterator<Item = i64>,
    ) -> Result<(), ParquetError> {
        let (keys, values) = code_numbers(numbers.map(Some));
        self.numbers(name, Codes::of_rows(&keys), &values, 8)
    }

    /// Stacks by their codes, row by row.
    pub(super) fn stacks(&mut self, codes: Vec<u32>, book: &Book) -> Result<(), ParquetError> {
        let (mut keys, kept) = dense(codes.into_iter(), book.stacks.len());
        let mut ids: Vec<i64> = kept.into_iter().map(|code| book.stacks[code]).collect();
        if let Some(places) = self.by_frequency(&keys, ids.len())? {
            for (id, place) in ids.clone().into_iter().zip(&places) {
                ids[*place as usize] = id;
            }
            keys.iter_mut().for_each(|key| *key = places[*key as usize]);
            self.is_by_frequency = true;
        }
        let written = self.numbers("stack_id", Codes::of_rows(&keys), &ids, 8);
        self.is_by_frequency = false;
        written
    }

    /// The codes that take the place of these, where two bytes by frequency become smaller with little effort than codes in the order in
    /// which they come do with much.
    fn by_frequency(&mut self, keys: &[u32], values: usize) -> Result<Option<Vec<u32>>, ParquetError> {
        if self.effort != Effort::Compact || !(1 << 8..1 << 16).contains(&values) {
            return Ok(None);
        }
        let places = by_frequency(keys, values);
        let first = &keys[..keys.len().min(TRIED_FREQUENCIES)];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let least = self.width(values, &Codes::of_rows(first))?;
        hybrid(first, least, &mut before);
        let first: Vec<u32> = first.iter().map(|key| places[*key as usize]).collect();
        hybrid(&first, u16::BITS, &mut after);
        let smaller = self.fast.compress(&after)?.len() < self.compressor.compress(&before)?.len();
        Ok(smaller.then_some(places))
    }

    fn numbers(&mut self, name: &str, codes: Codes<'_>, values: &[i64], bytes: usize) -> Result<(), ParquetError> {
        let absent = codes.absent();
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
            statistics: self.is_bounded(name).then(|| {
                Statistics::int64(
                    bounds(|all| all.0),
                    bounds(|all| all.1),
                    None,
                    Some(absent as u64),
                    false,
                )
            }),
            absent,
        };
        self.append(codes, dictionary)
    }

    /// Adds a column.
    fn append(&mut self, codes: Codes<'_>, dictionary: Dictionary) -> Result<(), ParquetError> {
        let column = self.column()?;
        let may_lack = column.max_def_level() > 0;
        let (rows, mut plain) = (codes.len(), Vec::new());
        let mut sink = TrackedWrite::new(Vec::new());
        let mut chunk = Chunk::new(&mut sink);
        chunk.add(
            Page::DictionaryPage {
                buf: self.zstd().compress(&dictionary.plain)?.into(),
                num_values: dictionary.values as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            },
            dictionary.plain.len(),
        )?;
        let first_page = chunk.compressed;
        let width = self.width(dictionary.values, &codes)?;
        for page in codes.pages(self.effort.page_rows()) {
            let page_rows = page.len();
            plain.clear();
            let mut present = page;
            if may_lack && dictionary.absent > 0 {
                let (levels, rest) = present.levels();
                levels.write(1, &mut plain);
                present = rest;
            } else if may_lack {
                run(1, page_rows, 1, &mut plain);
            }
            let absent = page_rows - present.len();
            let levels_bytes = plain.len();
            plain.push(width as u8);
            present.write(width, &mut plain);
            let small = self.zstd().compress(&plain[levels_bytes..])?;
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
                num_nulls: absent as u32,
                num_rows: page_rows as u32,
                def_levels_byte_len: levels_bytes as u32,
                rep_levels_byte_len: 0,
                is_compressed,
                statistics: None,
            };
            chunk.add(page, plain.len())?;
        }
        let built = chunk.finish();
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(self.effort.level())?))
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_num_values(rows as i64)
            .set_total_compressed_size(built.compressed)
            .set_total_uncompressed_size(built.plain)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(first_page);
        if let Some(statistics) = dictionary.statistics {
            metadata = metadata.set_statistics(statistics);
        }
        self.append_built(rows, metadata.build()?, built, sink)
    }

    fn append_built(
        &mut self,
        rows: usize,
        metadata: ColumnChunkMetaData,
        built: Built,
        sink: TrackedWrite<Vec<u8>>,
    ) -> Result<(), ParquetError> {
        let close = ColumnCloseResult {
            bytes_written: built.compressed as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(built.offsets.build()),
        };
        self.rows.append_column(&Bytes::from(sink.into_inner()?), close)
    }

    /// How many bits codes are written with, by how small the first ones become: as few as the greatest code needs, or whole bytes. Whole
    /// bytes are more, but zstd finds in them which codes are frequent.
    fn width(&mut self, values: usize, codes: &Codes<'_>) -> Result<u32, ParquetError> {
        let least = u32::BITS - (values.saturating_sub(1) as u32).leading_zeros();
        let bytes = least.next_multiple_of(8);
        let Codes::Rows(codes) = codes else { return Ok(least) };
        if self.effort != Effort::Compact || bytes == least {
            return Ok(least);
        }
        let first: Vec<u32> = codes
            .iter()
            .copied()
            .filter(|code| *code != ABSENT)
            .take(TRIED_VALUES)
            .collect();
        let mut size = |width| -> Result<usize, ParquetError> {
            let mut plain = Vec::new();
            hybrid(&first, width, &mut plain);
            Ok(self.zstd().compress(&plain)?.len().min(plain.len()))
        };
        Ok(if size(bytes)? < size(least)? { bytes } else { least })
    }

    fn zstd(&mut self) -> &mut Compressor<'static> {
        if self.is_by_frequency {
            self.fast
        } else {
            self.compressor
        }
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

/// What is to be said of a column's pages when all are written.
struct Built {
    offsets: OffsetIndexBuilder,
    compressed: i64,
    plain: i64,
}

impl<'s> Chunk<'s> {
    fn new(sink: &'s mut TrackedWrite<Vec<u8>>) -> Self {
        Chunk {
            pages: SerializedPageWriter::new(sink),
            offsets: OffsetIndexBuilder::new(),
            compressed: 0,
            plain: 0,
        }
    }

    fn finish(self) -> Built {
        Built {
            offsets: self.offsets,
            compressed: self.compressed,
            plain: self.plain,
        }
    }

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

#[cfg(test)]
#[path = "coded_tests.rs"]
mod tests;
