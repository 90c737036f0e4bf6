//! One column of a row group from its bytes: codes of its dictionary, packed differences, or whatever else the format
//! allows.

use crate::column::coded::{CodedColumn, Column, Form, Values};
use crate::column::list::{Code, CodeArray};
use crate::column::malformed::MalformedFile;
use crate::store::format::read::decode;
use crate::store::format::read::unzip::{Plain, Unzip, as_they_lie};
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Encoding, Type};
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Dictionaries of fewer values are taken as they are.
const LEAST_REPEATS: usize = 1024;

/// The bytes of one column of a row group.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    pub(crate) index: usize,
    /// Where in the file they begin.
    pub(crate) start: u64,
    pub(crate) bytes: Bytes,
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = std::io::Cursor<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let rest = self.len().saturating_sub(start) as usize;
        Ok(std::io::Cursor::new(self.get_bytes(start, rest)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let from = start.checked_sub(self.start).map(|from| from as usize);
        from.and_then(|from| Some(from..from.checked_add(length)?))
            .filter(|range| range.end <= self.bytes.len())
            .map(|range| self.bytes.slice(range))
            .ok_or_else(|| ParquetError::EOF("a page reaches beyond its column".to_owned()))
    }
}

/// A column of a row group in the form that is wanted.
pub(crate) fn read(
    chunk: &Chunk,
    footer: &Arc<ParquetMetaData>,
    group: usize,
    rows: &RowGroupMetaData,
    form: Form,
    unzip: &mut Unzip,
) -> Result<Column, MalformedFile> {
    let count = rows.num_rows() as usize;
    let column = match form {
        Form::Codes => coded(chunk, rows, unzip)?.map(Column::Codes),
        Form::Numbers => packed(chunk, rows, unzip)?.map(Column::Numbers),
    };
    let column = match column {
        Some(column) => column,
        // The library's decoders panic where a page says of its codes that they have more bits than there are
        // (`read_num_bytes`, "range end index 25 out of range"): damage like any other.
        None => std::panic::catch_unwind(AssertUnwindSafe(|| any(chunk, footer, group, form)))
            .map_err(|_| MalformedFile::new("a page cannot be decoded"))??,
    };
    let found = match &column {
        Column::Codes(codes) => codes.codes.len(),
        Column::Numbers(numbers) => numbers.len(),
    };
    if found != count {
        return Err(MalformedFile::new(format!(
            "a column has {found} values instead of {count}"
        )));
    }
    Ok(column)
}

/// A column all pages of which are codes of its dictionary; nothing for one that is written in another way.
pub(crate) fn coded(
    chunk: &Chunk,
    rows: &RowGroupMetaData,
    unzip: &mut Unzip,
) -> Result<Option<CodedColumn>, MalformedFile> {
    let (meta, count) = (rows.column(chunk.index), rows.num_rows() as usize);
    let mut reader = as_they_lie(chunk.clone(), meta, count)?;
    // It comes before all codes.
    let Some(first) = reader.get_next_page()? else {
        return Ok(None);
    };
    let Some(Plain::Dictionary(bytes)) = unzip.open(&first, meta.compression())? else {
        return Ok(None);
    };
    let Some(dictionary) = DictionaryPage::of(bytes, meta)? else {
        return Ok(None);
    };
    let codes = match dictionary.most() {
        ..=0xff => behind::<u8>(&dictionary, reader, meta, count, unzip)?.map(CodeArray::Bytes),
        0x100..=0xffff => behind::<u16>(&dictionary, reader, meta, count, unzip)?.map(CodeArray::Shorts),
        _ => behind::<u32>(&dictionary, reader, meta, count, unzip)?.map(CodeArray::Words),
    };
    Ok(codes.map(|codes| CodedColumn {
        codes,
        values: dictionary.values,
    }))
}

/// The codes of all pages behind the dictionary.
fn behind<C: Code>(
    dictionary: &DictionaryPage,
    mut reader: SerializedPageReader<Chunk>,
    meta: &ColumnChunkMetaData,
    count: usize,
    unzip: &mut Unzip,
) -> Result<Option<Vec<C>>, MalformedFile> {
    let mut codes = Vec::with_capacity(count);
    while let Some(page) = reader.get_next_page()? {
        let Some(page) = unzip.open(&page, meta.compression())? else {
            return Ok(None);
        };
        if !dictionary.add_codes(page, meta, count - codes.len(), &mut codes)? {
            return Ok(None);
        }
    }
    Ok(Some(codes))
}

/// A column all pages of which are packed differences; nothing for one that is written in another way.
pub(crate) fn packed(
    chunk: &Chunk,
    rows: &RowGroupMetaData,
    unzip: &mut Unzip,
) -> Result<Option<Vec<i64>>, MalformedFile> {
    let (meta, count) = (rows.column(chunk.index), rows.num_rows() as usize);
    let mut numbers = Vec::with_capacity(count);
    let mut reader = as_they_lie(chunk.clone(), meta, count)?;
    while let Some(page) = reader.get_next_page()? {
        let Some(page) = unzip.open(&page, meta.compression())? else {
            return Ok(None);
        };
        if !add_differences(page, meta, count - numbers.len(), &mut numbers)? {
            return Ok(None);
        }
    }
    Ok(Some(numbers))
}

/// So many rows of a page, of which no more than `left` may come.
fn fitting(rows: u32, left: usize) -> Result<usize, MalformedFile> {
    match rows as usize <= left {
        true => Ok(rows as usize),
        false => Err(MalformedFile::new("a page has more values than its row group has rows")),
    }
}

/// Adds a page of at most `left` numbers. False: it is written in another way.
pub(crate) fn add_differences(
    page: Plain<'_>,
    meta: &ColumnChunkMetaData,
    left: usize,
    to: &mut Vec<i64>,
) -> Result<bool, MalformedFile> {
    let may_lack = meta.column_descr().max_def_level() > 0;
    let Plain::Data {
        encoding: Encoding::DELTA_BINARY_PACKED,
        rows,
        values,
        ..
    } = page
    else {
        return Ok(false);
    };
    if meta.column_type() != Type::INT64 || may_lack {
        return Ok(false);
    }
    decode::deltas(values, fitting(rows, left)?, to)?;
    Ok(true)
}

/// What the codes of a column stand for.
#[derive(Debug)]
pub(crate) struct DictionaryPage {
    pub(crate) values: Values,
    /// How many codes the pages may have.
    distinct: usize,
    /// What they are in `values`, where the dictionary has places that stand for nothing.
    places: Option<Vec<u32>>,
    /// The code of "absent".
    absent: u32,
}

impl DictionaryPage {
    /// Of a page. Nothing: it is written in another way.
    pub(crate) fn of(bytes: &[u8], meta: &ColumnChunkMetaData) -> Result<Option<DictionaryPage>, MalformedFile> {
        let values = match meta.column_type() {
            Type::INT64 => Values::Numbers(decode::plain_numbers(bytes, 8)?),
            Type::INT32 => Values::Numbers(decode::plain_numbers(bytes, 4)?),
            Type::BYTE_ARRAY => Values::Texts(decode::plain_texts(bytes)?),
            _ => return Ok(None),
        };
        let distinct = values.len();
        let (values, places) = match values {
            Values::Numbers(numbers) => match without_repeats(&numbers) {
                Some((kept, places)) => (Values::Numbers(kept), Some(places)),
                None => (Values::Numbers(numbers), None),
            },
            texts => (texts, None),
        };
        Ok(Some(DictionaryPage {
            distinct,
            places,
            ..DictionaryPage::whole(values)
        }))
    }

    /// Of all of its values, each of which has a code.
    pub(crate) fn whole(values: Values) -> DictionaryPage {
        DictionaryPage {
            distinct: values.len(),
            places: None,
            absent: values.len() as u32,
            values,
        }
    }

    /// The largest code that there may be.
    fn most(&self) -> usize {
        self.distinct.max(self.absent as usize)
    }

    /// Adds a page of at most `left` codes, none of which has more bits than one may have. False: it is written in
    /// another way.
    pub(crate) fn add_codes<C: Code>(
        &self,
        page: Plain<'_>,
        meta: &ColumnChunkMetaData,
        left: usize,
        to: &mut Vec<C>,
    ) -> Result<bool, MalformedFile> {
        let Plain::Data {
            encoding: Encoding::RLE_DICTIONARY,
            rows,
            absent,
            levels,
            values,
        } = page
        else {
            return Ok(false);
        };
        let (rows, absent) = (fitting(rows, left)?, absent as usize);
        let given = rows.checked_sub(absent);
        let given = given.ok_or_else(|| MalformedFile::new("a page lacks more values than it has"))?;
        let from = to.len();
        decode::codes(values, given, self.distinct, to)?;
        if let Some(places) = &self.places {
            for code in &mut to[from..] {
                *code = C::of(places[code.index()]);
            }
        }
        if meta.column_descr().max_def_level() > 0 && absent > 0 {
            spread(to, from, &decode::present(levels, rows)?, C::of(self.absent))?;
        }
        Ok(true)
    }
}

/// Values of a dictionary of which most repeat the first one, each once, and where each of its places is among them.
/// Only files of ours are so: their codes are chosen for their bytes, and what has an entry for each code would be
/// far larger than what it counts.
fn without_repeats(values: &[i64]) -> Option<(Vec<i64>, Vec<u32>)> {
    let first = values.first()?;
    let others = values.iter().filter(|value| *value != first).count();
    if values.len() < LEAST_REPEATS || others > values.len() / 2 {
        return None;
    }
    let mut kept = Vec::with_capacity(others + 1);
    kept.push(*first);
    let places = values.iter().map(|value| {
        if value == first {
            return 0;
        }
        kept.push(*value);
        kept.len() as u32 - 1
    });
    let places = places.collect();
    Some((kept, places))
}

/// Puts the code of "absent" where a row has no value.
fn spread<C: Code>(codes: &mut Vec<C>, from: usize, present: &[u32], absent: C) -> Result<(), MalformedFile> {
    let given = codes.split_off(from);
    let mut given = given.into_iter();
    for level in present {
        codes.push(match level {
            0 => absent,
            _ => given
                .next()
                .ok_or_else(|| MalformedFile::new("a page has fewer values than its levels say"))?,
        });
    }
    Ok(())
}

/// A column in whatever encoding, by way of arrays: files that were written by other versions.
fn any(chunk: &Chunk, footer: &Arc<ParquetMetaData>, group: usize, form: Form) -> Result<Column, MalformedFile> {
    let metadata = ArrowReaderMetadata::try_new(footer.clone(), ArrowReaderOptions::new())?;
    let mask = ProjectionMask::leaves(footer.file_metadata().schema_descr(), [chunk.index]);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(chunk.clone(), metadata)
        .with_projection(mask)
        .with_row_groups(vec![group])
        .with_batch_size(footer.row_group(group).num_rows().max(1) as usize)
        .build()?;
    let broken = |error: arrow::error::ArrowError| MalformedFile::new(error.to_string());
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(broken)?;
    let columns: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    let whole = arrow::compute::concat(&columns).map_err(broken)?;
    match form {
        Form::Codes => CodedColumn::of_array(&whole).map(Column::Codes),
        Form::Numbers => match whole.as_primitive_opt::<Int64Type>() {
            Some(numbers) if numbers.null_count() == 0 => Ok(Column::Numbers(numbers.values().to_vec())),
            _ => Err(MalformedFile::new(
                "a column of numbers has other values, or lacks some",
            )),
        },
    }
}
