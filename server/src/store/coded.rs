//! Row groups of `samples` and its roll-ups written from codes: the form in which rows lie in memory, and in which files hold them.
//!
//! In: columns of sorted rows, names as codes. Out: the bytes of a Parquet file in which every column but the time is a dictionary and
//! codes. A general writer is given values and looks each of them up, row by row, in a table that it keeps; here a name's code
//! is known, and a number is looked up once a run of equal ones. Formats: parquet-format, `Encodings.md` ("RLE / Bit-Packing Hybrid",
//! "Dictionary Encoding") and `README.md` ("Data Pages").

mod chunk;
mod places;
mod ways;

use super::StoreError;
use super::book::{Book, Names};
use super::columns::code_numbers;
use super::file::{self, Effort, Encoded, MAX_RANGE_STRING_BYTES, PART, ROW_GROUP_ROWS, Ranges};
use super::fresh::FreshSamples;
use super::notes::Notes;
use super::packing::{Blocks, Codes, Runs, deltas, dense, run, runs};
use super::samples::{Recent, Samples};
use super::schema::Table;
use super::snapshot::ColumnRange;
use bytes::Bytes;
use chunk::{Built, Chunk};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::Page;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use places::pages_of_homes;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use ways::Way;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// A page of times is not ended with its thread before it has so many rows.
const LEAST_PAGE_OF_THREAD: usize = 8 * 1024;

/// A stack is named in about so many of the requests that a commit has, or more.
const NAMED_IN: usize = 8;

/// Columns whose least and greatest value stand in the file beside its own sort columns.
const BOUNDED: [&str; 1] = ["node"];

/// Sorts the rows of one hour and encodes them. CPU-bound: call it on a blocking thread. None comes back when there are no rows.
pub(super) fn encode(
    partition: &str,
    samples: &[Arc<FreshSamples>],
    effort: Effort,
    notes: &Notes,
) -> Result<Option<Encoded>, StoreError> {
    let (mut rows, mut book, mut recent) = (Samples::default(), Book::default(), Recent::default());
    rows.reserve(samples.iter().map(|samples| samples.num_rows()).sum());
    book.stacks
        .reserve(samples.iter().map(|samples| samples.stacks()).sum::<usize>() / NAMED_IN);
    for samples in samples {
        rows.add(samples, &mut book, &mut recent);
    }
    if rows.len() == 0 {
        return Ok(None);
    }
    rows.sort(&book);
    let mut file = CodedFile::new(Table::Samples, effort, notes, rows.len() * effort.sample_bytes())?;
    file.write_groups(&rows, ROW_GROUP_ROWS, &book)?;
    file.finish(partition, PART).map(Some)
}

/// A file that grows by row groups.
pub(super) struct CodedFile {
    table: Table,
    writer: SerializedFileWriter<Vec<u8>>,
    effort: Effort,
    compressor: Compressor<'static>,
    /// For codes in an order in which frequent bytes are all that there is to find.
    fast: Compressor<'static>,
    rows: u64,
    ranges: Ranges,
}

impl CodedFile {
    /// A file of about so many bytes: one that grows is copied again and again. `notes`: what it says of itself.
    pub(super) fn new(table: Table, effort: Effort, notes: &Notes, bytes: usize) -> Result<Self, StoreError> {
        let (writer, _) = file::writer(table, effort, notes, bytes)
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
            fast: counting().map_err(StoreError::table(table, "encode a file"))?,
            rows: 0,
            ranges: Ranges::default(),
        })
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds all rows of `samples` in row groups of so many.
    pub(super) fn write_groups(&mut self, rows: &Samples, of: usize, book: &Book) -> Result<(), StoreError> {
        let begins = (0..rows.len()).step_by(of);
        begins
            .map(|begin| begin..rows.len().min(begin + of))
            .try_for_each(|group| self.write_samples(rows, group, book))
    }

    /// Adds these rows of `samples` as a row group.
    pub(super) fn write_samples(&mut self, rows: &Samples, range: Range<usize>, book: &Book) -> Result<(), StoreError> {
        self.write(range.len(), |group| write_samples(group, rows, range, book))
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

/// Compresses by the frequency of bytes, and by little else. What zstd takes for something that came before is chance where bytes do not depend on each
/// other, and costs more than the bytes by themselves: matches must be long, and what is remembered to find them by is little.
fn counting() -> std::io::Result<Compressor<'static>> {
    const LEAST_MATCH: u32 = 7;
    const REMEMBERED_LOG: u32 = 6;
    let mut compressor = Compressor::new(Effort::Fresh.level())?;
    compressor.set_parameter(CParameter::MinMatch(LEAST_MATCH))?;
    compressor.set_parameter(CParameter::HashLog(REMEMBERED_LOG))?;
    Ok(compressor)
}

fn failed(table: Table) -> impl Fn(ParquetError) -> StoreError {
    move |cause| StoreError::table(table, "encode a file")(cause)
}

/// Adds the columns of `samples` in their order.
fn write_samples(group: &mut Group<'_>, rows: &Samples, range: Range<usize>, book: &Book) -> Result<(), ParquetError> {
    let origins = runs(rows.origins[range.clone()].iter().copied());
    let homes = homes(&origins, book);
    group.times(&rows.ts_ns[range.clone()], &origins)?;
    let names = &book.names;
    group.texts_of_runs("type", &origins, names, |origin| book.series_of(origin).kind)?;
    group.texts_of_runs("node", &origins, names, |origin| book.origins[origin].node)?;
    group.texts_of_runs("service", &origins, names, |origin| book.series_of(origin).service)?;
    group.numbers_of_runs("series_id", &origins, |origin| Some(book.series_of(origin).id))?;
    group.numbers_of_runs("process_id", &origins, |origin| Some(book.origins[origin].process_id))?;
    group.texts_of_runs("thread", &origins, names, |origin| book.origins[origin].thread)?;
    group.numbers_of_runs("tid", &origins, |origin| book.origins[origin].tid)?;
    let (manners, kept) = dense(rows.manners[range.clone()].iter().copied(), book.manners.len());
    let manner = |code: &u32| book.manners[*code];
    let cpus = kept.iter().map(|code| manner(code).cpu);
    group.numbers_of("cpu", &manners, cpus, size_of::<i32>(), &homes)?;
    group.texts_of("mode", &manners, kept.iter().map(|code| manner(code).mode), names)?;
    group.stacks(rows.stacks[range].iter().copied(), &homes, book)?;
    let values = kept.iter().map(|code| Some(manner(code).value));
    group.numbers_of("value", &manners, values, size_of::<i64>(), &Runs::new())
}

/// Runs of rows of which each mostly has stacks of its own: threads of one name, of one service, run the same code on every node.
fn homes(origins: &Runs, book: &Book) -> Runs {
    let mut known: HashMap<(u32, u32), u32, foldhash::fast::RandomState> = HashMap::default();
    let of_rows = origins.iter().map(|(origin, rows)| {
        let next = known.len() as u32;
        let key = (book.series_of(*origin).service, book.origins[*origin].thread);
        (*known.entry(key).or_insert(next), *rows)
    });
    let mut homes = Runs::new();
    for (home, rows) in of_rows {
        match homes.last_mut() {
            Some((last, count)) if *last == home => *count += rows,
            _ => homes.push((home, rows)),
        }
    }
    homes
}

/// A row group as it grows, column by column.
pub(super) struct Group<'f> {
    table: Table,
    rows: SerializedRowGroupWriter<'f, Vec<u8>>,
    /// Those that are still to come.
    columns: std::vec::IntoIter<ColumnDescPtr>,
    compressor: &'f mut Compressor<'static>,
    fast: &'f mut Compressor<'static>,
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
    /// and is not compressed. Where one thread's end and the next one's begin there is a large difference.
    fn times(&mut self, times: &[i64], origins: &Runs) -> Result<(), ParquetError> {
        let column = self.column()?;
        let bounds = times.iter().copied().min().zip(times.iter().copied().max());
        if let Some((min, max)) = bounds {
            let range = ColumnRange { min, max };
            self.ranges.ints.push(("ts_ns".to_owned(), range));
        }
        let mut sink = TrackedWrite::new(Vec::with_capacity(times.len() * 5));
        let mut chunk = Chunk::new(&mut sink);
        let most = self.effort.page_rows();
        let pages = match self.effort {
            Effort::Fresh => Vec::new(),
            Effort::Compact => pages_of_homes(origins, LEAST_PAGE_OF_THREAD, most),
        };
        let mut rest = times;
        for rows in pages.into_iter().chain(std::iter::repeat(most)) {
            if rest.is_empty() {
                break;
            }
            let (page, behind) = rest.split_at(rows.min(rest.len()));
            rest = behind;
            let mut plain = Vec::with_capacity(page.len() * 5);
            let blocks = match self.effort {
                Effort::Fresh => Blocks::Small,
                Effort::Compact => Blocks::smallest(page),
            };
            deltas(page, blocks, &mut plain);
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
        self.append(codes, dictionary, &Way::default())
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
        self.numbers(name, Codes::of_runs(&runs), &values, 8, &Way::default())
    }

    /// Numbers of so many bytes of what rows are, of which there are few: one each, of which some may be absent. `homes`: as of [`homes`], where
    /// rows of one have few of them.
    pub(super) fn numbers_of(
        &mut self,
        name: &str,
        rows: &[u32],
        numbers: impl ExactSizeIterator<Item = Option<i64>>,
        bytes: usize,
        homes: &Runs,
    ) -> Result<(), ParquetError> {
        let (keys, values) = code_numbers(numbers);
        let rows: Vec<u32> = rows.iter().map(|row| keys[*row as usize]).collect();
        let way = self.way_of_pages(&rows, values.len(), homes)?;
        self.numbers(name, Codes::of_rows(&rows), &values, bytes, &way)
    }

    /// Numbers of 64 bits row by row.
    pub(super) fn numbers_of_rows(
        &mut self,
        name: &str,
        numbers: impl ExactSizeIterator<Item = i64>,
    ) -> Result<(), ParquetError> {
        let (keys, values) = code_numbers(numbers.map(Some));
        self.numbers(name, Codes::of_rows(&keys), &values, 8, &Way::default())
    }

    /// Stacks by their codes, row by row. `homes`: as of [`homes`]; none where rows stand by their stacks.
    pub(super) fn stacks(
        &mut self,
        codes: impl ExactSizeIterator<Item = u32>,
        homes: &Runs,
        book: &Book,
    ) -> Result<(), ParquetError> {
        let (mut keys, kept) = dense(codes, book.stacks.len());
        let mut ids: Vec<i64> = kept.into_iter().map(|code| book.stacks[code]).collect();
        let way = self.way_of_stacks(&keys, ids.len(), homes)?;
        if let Some(places) = &way.places {
            // What no row has is the first one again: so nothing stands there that is not in the file, and a reader can tell.
            let end = places.iter().max().map_or(0, |last| *last as usize + 1);
            let first = ids.iter().zip(places).min_by_key(|(_, place)| **place);
            let mut placed = vec![first.map_or(0, |(id, _)| *id); end];
            for (id, place) in ids.iter().zip(places) {
                placed[*place as usize] = *id;
            }
            ids = placed;
            keys.iter_mut().for_each(|key| *key = places[*key as usize]);
        }
        self.numbers("stack_id", Codes::of_rows(&keys), &ids, 8, &way)
    }

    fn numbers(
        &mut self,
        name: &str,
        codes: Codes<'_>,
        values: &[i64],
        bytes: usize,
        way: &Way,
    ) -> Result<(), ParquetError> {
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
        self.append(codes, dictionary, way)
    }

    /// Adds a column.
    fn append(&mut self, codes: Codes<'_>, dictionary: Dictionary, way: &Way) -> Result<(), ParquetError> {
        let column = self.column()?;
        let may_lack = column.max_def_level() > 0;
        let (rows, mut plain) = (codes.len(), Vec::new());
        let mut sink = TrackedWrite::new(Vec::new());
        let mut chunk = Chunk::new(&mut sink);
        let values = match self.effort {
            Effort::Fresh => dictionary.plain.clone(),
            Effort::Compact => self.compressor.compress(&dictionary.plain)?,
        };
        chunk.add(
            Page::DictionaryPage {
                buf: values.into(),
                num_values: dictionary.values as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            },
            dictionary.plain.len(),
        )?;
        let first_page = chunk.compressed;
        let width = match way.width {
            Some(width) => width,
            None => self.width(dictionary.values, &codes)?,
        };
        for page in way.cut(&codes, self.effort) {
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
            way.write(&present, width, &mut plain);
            let body = &plain[levels_bytes..];
            let small = match self.effort {
                Effort::Fresh => None,
                Effort::Compact => Some(self.zstd(way).compress(body)?).filter(|small| small.len() < body.len()),
            };
            let is_compressed = small.is_some();
            let body = small.as_deref().unwrap_or(body);
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
            .set_compression(match self.effort {
                Effort::Fresh => Compression::UNCOMPRESSED,
                Effort::Compact => Compression::ZSTD(ZstdLevel::try_new(self.effort.level())?),
            })
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

    fn zstd(&mut self, way: &Way) -> &mut Compressor<'static> {
        if way.is_fast { self.fast } else { self.compressor }
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

#[cfg(test)]
#[path = "coded_tests.rs"]
mod tests;
