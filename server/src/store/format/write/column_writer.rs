//! What the columns of a row group are written through.

use crate::column::coded::code_numbers;
use crate::column::runs::{Runs, dense};
use crate::store::buffer::interner::{Interner, Names};
use crate::store::format::write::bits::{Blocks, CodeStream, deltas, run};
use crate::store::format::write::code_order::pages_of_thread_groups;
use crate::store::format::write::page_plan::{Compressors, PagePlan};
use crate::store::format::write::pages::{Built, Chunk};
use crate::store::format::write::rows_file::{MAX_RANGE_STRING_BYTES, Ranges, WriteProfile};
use crate::store::table::data_file::ColumnRange;
use crate::store::table::schema::Table;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::Page;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::collections::HashMap;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// A page of times is not ended with its thread before it has so many rows.
const LEAST_PAGE_OF_THREAD: usize = 8 * 1024;

/// Columns whose least and greatest value stand in the file beside its own sort columns.
const BOUNDED: [&str; 1] = ["node"];

/// Compresses by the frequency of bytes, and by little else. What zstd takes for something that came before is chance
/// where bytes do not depend on each other, and costs more than the bytes by themselves: matches must be long, and
/// what is remembered to find them by is little.
pub(crate) fn counting() -> std::io::Result<Compressor<'static>> {
    const LEAST_MATCH: u32 = 7;
    const REMEMBERED_LOG: u32 = 6;
    let mut compressor = Compressor::new(WriteProfile::Fresh.level())?;
    compressor.set_parameter(CParameter::MinMatch(LEAST_MATCH))?;
    compressor.set_parameter(CParameter::HashLog(REMEMBERED_LOG))?;
    Ok(compressor)
}

/// Runs of rows of which each mostly has stacks of its own: threads of one name, of one service, run the same code on
/// every node.
pub(crate) fn thread_groups(origins: &Runs, interner: &Interner) -> Runs {
    let mut known: HashMap<(u32, u32), u32, foldhash::fast::RandomState> = HashMap::default();
    let of_rows = origins.iter().map(|(origin, rows)| {
        let next = known.len() as u32;
        let key = (interner.series_of(*origin).service, interner.origins[*origin].thread);
        (*known.entry(key).or_insert(next), *rows)
    });
    let mut thread_groups = Runs::new();
    for (group, rows) in of_rows {
        match thread_groups.last_mut() {
            Some((last, count)) if *last == group => *count += rows,
            _ => thread_groups.push((group, rows)),
        }
    }
    thread_groups
}

/// A row group as it grows, column by column.
pub(crate) struct Group<'f> {
    pub(crate) table: Table,
    pub(crate) rows: SerializedRowGroupWriter<'f, Vec<u8>>,
    /// Those that are still to come.
    pub(crate) columns: std::vec::IntoIter<ColumnDescPtr>,
    pub(crate) compressors: Compressors<'f>,
    pub(crate) ranges: Ranges,
}

/// What stands before the codes of a column.
struct DictionaryPage {
    /// The values as the format has them, one after another.
    plain: Vec<u8>,
    values: usize,
    statistics: Option<Statistics>,
    /// How many rows have none.
    absent: usize,
}

impl Group<'_> {
    /// Times differ little from their neighbours and are almost all distinct: their differences are packed. What is
    /// left of them is noise, and is not compressed. Where one thread's end and the next one's begin there is a large
    /// difference.
    pub(crate) fn times(&mut self, times: &[i64], origins: &Runs) -> Result<(), ParquetError> {
        let column = self.column()?;
        let bounds = times.iter().copied().min().zip(times.iter().copied().max());
        if let Some((min, max)) = bounds {
            let range = ColumnRange { min, max };
            self.ranges.ints.push(("ts_ns".to_owned(), range));
        }
        let mut sink = TrackedWrite::new(Vec::with_capacity(times.len() * 5));
        let mut chunk = Chunk::new(&mut sink);
        let most = self.compressors.profile.page_rows();
        let pages = match self.compressors.profile {
            WriteProfile::Fresh => Vec::new(),
            WriteProfile::Compact => pages_of_thread_groups(origins, LEAST_PAGE_OF_THREAD, most),
        };
        let mut rest = times;
        for rows in pages.into_iter().chain(std::iter::repeat(most)) {
            if rest.is_empty() {
                break;
            }
            let (page, behind) = rest.split_at(rows.min(rest.len()));
            rest = behind;
            let mut plain = Vec::with_capacity(page.len() * 5);
            let blocks = match self.compressors.profile {
                WriteProfile::Fresh => Blocks::Small,
                WriteProfile::Compact => Blocks::smallest(page),
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
    pub(crate) fn texts_of_runs(
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
        self.texts(name, CodeStream::of_runs(&runs), &kept, names)
    }

    /// Names of what rows are, of which there are few: by their codes, one each.
    pub(crate) fn texts_of(
        &mut self,
        name: &str,
        rows: &[u32],
        codes: impl ExactSizeIterator<Item = u32>,
        names: &Names,
    ) -> Result<(), ParquetError> {
        let (keys, kept) = dense(codes, names.len());
        let rows: Vec<u32> = rows.iter().map(|row| keys[*row as usize]).collect();
        self.texts(name, CodeStream::of_rows(&rows), &kept, names)
    }

    fn texts(&mut self, name: &str, codes: CodeStream<'_>, kept: &[u32], names: &Names) -> Result<(), ParquetError> {
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
        let dictionary = DictionaryPage {
            plain,
            values: kept.len(),
            statistics: statistics.filter(|_| self.is_bounded(name)),
            absent: 0,
        };
        self.append(codes, dictionary, &PagePlan::default())
    }

    /// Numbers of 64 bits of what runs are of, of which some may be absent.
    pub(crate) fn numbers_of_runs(
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
        self.numbers(name, CodeStream::of_runs(&runs), &values, 8, &PagePlan::default())
    }

    /// Numbers of so many bytes of what rows are, of which there are few: one each, of which some may be absent.
    /// `thread_groups`: as of [`thread_groups`], where rows of one have few of them.
    pub(crate) fn numbers_of(
        &mut self,
        name: &str,
        rows: &[u32],
        numbers: impl ExactSizeIterator<Item = Option<i64>>,
        bytes: usize,
        thread_groups: &Runs,
    ) -> Result<(), ParquetError> {
        let (keys, values) = code_numbers(numbers);
        let rows: Vec<u32> = rows.iter().map(|row| keys[*row as usize]).collect();
        let plan = self.compressors.plan_of_pages(&rows, values.len(), thread_groups)?;
        self.numbers(name, CodeStream::of_rows(&rows), &values, bytes, &plan)
    }

    /// Numbers of 64 bits row by row.
    pub(crate) fn numbers_of_rows(
        &mut self,
        name: &str,
        numbers: impl ExactSizeIterator<Item = i64>,
    ) -> Result<(), ParquetError> {
        let (keys, values) = code_numbers(numbers.map(Some));
        self.numbers(name, CodeStream::of_rows(&keys), &values, 8, &PagePlan::default())
    }

    /// Stacks by their codes, row by row. `thread_groups`: as of [`thread_groups`]; none where rows stand by stacks.
    pub(crate) fn stacks(
        &mut self,
        codes: impl ExactSizeIterator<Item = u32>,
        thread_groups: &Runs,
        interner: &Interner,
    ) -> Result<(), ParquetError> {
        let (mut keys, kept) = dense(codes, interner.stacks.len());
        let mut ids: Vec<i64> = kept.into_iter().map(|code| interner.stacks[code]).collect();
        let plan = self.compressors.plan_of_stacks(&keys, ids.len(), thread_groups)?;
        if let Some(places) = &plan.places {
            // What no row has is the first one again: so nothing stands there that is not in the file, and a reader
            // can tell.
            let end = places.iter().max().map_or(0, |last| *last as usize + 1);
            let first = ids.iter().zip(places).min_by_key(|(_, place)| **place);
            let mut placed = vec![first.map_or(0, |(id, _)| *id); end];
            for (id, place) in ids.iter().zip(places) {
                placed[*place as usize] = *id;
            }
            ids = placed;
            keys.iter_mut().for_each(|key| *key = places[*key as usize]);
        }
        self.numbers("stack_id", CodeStream::of_rows(&keys), &ids, 8, &plan)
    }

    fn numbers(
        &mut self,
        name: &str,
        codes: CodeStream<'_>,
        values: &[i64],
        bytes: usize,
        plan: &PagePlan,
    ) -> Result<(), ParquetError> {
        let absent = codes.absent();
        let some = values.iter().min().copied().zip(values.iter().max().copied());
        if let Some((min, max)) = some.filter(|_| absent == 0 && bytes == 8) {
            self.ranges.ints.push((name.to_owned(), ColumnRange { min, max }));
        }
        let bounds = |bound: fn((i64, i64)) -> i64| some.map(bound);
        let dictionary = DictionaryPage {
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
        self.append(codes, dictionary, plan)
    }

    /// Adds a column.
    fn append(
        &mut self,
        codes: CodeStream<'_>,
        dictionary: DictionaryPage,
        plan: &PagePlan,
    ) -> Result<(), ParquetError> {
        let column = self.column()?;
        let may_lack = column.max_def_level() > 0;
        let (rows, mut plain) = (codes.len(), Vec::new());
        let mut sink = TrackedWrite::new(Vec::new());
        let mut chunk = Chunk::new(&mut sink);
        let values = match self.compressors.profile {
            WriteProfile::Fresh => dictionary.plain.clone(),
            WriteProfile::Compact => self.compressors.compressor.compress(&dictionary.plain)?,
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
        let width = match plan.width {
            Some(width) => width,
            None => self.compressors.width(dictionary.values, &codes)?,
        };
        for page in plan.cut(&codes, self.compressors.profile) {
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
            plan.write(&present, width, &mut plain);
            let body = &plain[levels_bytes..];
            let small = match self.compressors.profile {
                WriteProfile::Fresh => None,
                WriteProfile::Compact => {
                    Some(self.compressors.of(plan).compress(body)?).filter(|small| small.len() < body.len())
                }
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
            .set_compression(match self.compressors.profile {
                WriteProfile::Fresh => Compression::UNCOMPRESSED,
                WriteProfile::Compact => Compression::ZSTD(ZstdLevel::try_new(self.compressors.profile.level())?),
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
