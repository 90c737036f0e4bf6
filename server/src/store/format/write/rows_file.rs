//! Rows to a sorted Parquet file with statistics, in memory.

use crate::store::format::provenance::Provenance;
use crate::store::table::data_file::{ColumnRange, DataFile};
use crate::store::table::error::StoreError;
use crate::store::table::integrity;
use crate::store::table::schema::Table;
use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{concat_batches, take, take_record_batch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use std::collections::HashSet;
use std::sync::Arc;

/// Rows of a row group: one scan task's work, and the grain at which min and max skip.
pub(crate) const ROW_GROUP_ROWS: usize = 512 * 1024;

/// A row group's dictionary is never larger: its rows, however long their texts are, are in memory when they are
/// written.
const MAX_DICTIONARY_BYTES: usize = 1 << 30;

/// Longer strings are no use as a range.
pub(crate) const MAX_RANGE_STRING_BYTES: usize = 256;

/// How the name of a file begins that came from a commit, or from the merge of a few of them.
pub(crate) const PART: &str = "part";

/// How much effort goes into compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteProfile {
    /// A commit every few seconds: fast.
    Fresh,
    /// A rewrite that lasts: small.
    Compact,
}

impl WriteProfile {
    /// Of zstd.
    pub(crate) fn level(self) -> i32 {
        match self {
            Self::Fresh => 1,
            Self::Compact => 5,
        }
    }

    /// About what a row of `samples` takes, bytes.
    pub(crate) fn sample_bytes(self) -> usize {
        match self {
            Self::Fresh => 11,
            Self::Compact => 6,
        }
    }

    /// Rows of a page of `samples` or a roll-up: a reader that wants a few rows unpacks no more, and a merge holds
    /// one of each file.
    pub(crate) fn page_rows(self) -> usize {
        match self {
            Self::Fresh => 8 * 1024,
            Self::Compact => 64 * 1024,
        }
    }
}

/// An encoded file and what the log says about it.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Bytes,
    pub(crate) file: DataFile,
}

/// Sorts the rows of one partition, keeps one of each key, and encodes them. CPU-bound: call it on a blocking thread.
/// `batches` have the table's whole schema; none comes back when there are no rows. Samples are encoded by
/// [`crate::store::format::write::row_group::encode`].
pub(crate) fn encode(
    table: Table,
    partition: &str,
    batches: &[RecordBatch],
    profile: WriteProfile,
    provenance: &Provenance,
) -> Result<Option<Encoded>, StoreError> {
    let gathered = concat_batches(&table.schema(), batches).map_err(StoreError::table(table, "gather rows"))?;
    if gathered.num_rows() == 0 {
        return Ok(None);
    }
    let rows = sorted(table, &gathered).map_err(StoreError::table(table, "sort rows"))?;
    // Encoding takes memory too.
    drop(gathered);
    let columns: Vec<usize> = (0..rows.num_columns() - 1).collect();
    let rows = rows
        .project(&columns)
        .map_err(StoreError::table(table, "drop the partition column"))?;
    let mut file = FileBuilder::new(table, profile, provenance)?;
    file.write(&rows)?;
    file.finish(partition, PART).map(Some)
}

/// What begins a file, of about so many bytes. `provenance`: what it says of itself.
pub(crate) fn writer(
    table: Table,
    profile: WriteProfile,
    provenance: &Provenance,
    bytes: usize,
) -> Result<ArrowWriter<Vec<u8>>, ParquetError> {
    let file = Vec::with_capacity(bytes);
    let mut writer = ArrowWriter::try_new(file, table.file_schema(), Some(properties(table, profile)))?;
    if let Some(provenance) = provenance.write() {
        writer.append_key_value_metadata(provenance);
    }
    Ok(writer)
}

/// A file that grows by sorted rows; one of samples or their roll-ups is a
/// [`crate::store::format::write::row_group::CodedFile`].
pub(crate) struct FileBuilder {
    table: Table,
    writer: ArrowWriter<Vec<u8>>,
    rows: u64,
    ranges: Ranges,
}

impl FileBuilder {
    /// `provenance`: what the file says of itself.
    pub(crate) fn new(table: Table, profile: WriteProfile, provenance: &Provenance) -> Result<Self, StoreError> {
        Ok(Self {
            table,
            writer: writer(table, profile, provenance, 0).map_err(StoreError::table(table, "encode a file"))?,
            rows: 0,
            ranges: Ranges::default(),
        })
    }

    /// Adds rows of the table's file schema as row groups of their own. Dictionaries hold no value that no row has.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), StoreError> {
        let failed = StoreError::table(self.table, "encode a file");
        self.writer
            .write(rows)
            .and_then(|()| self.writer.flush())
            .map_err(failed)?;
        let ranges = ranges(rows);
        if self.rows == 0 {
            self.ranges = ranges;
        } else {
            self.ranges.widen(&ranges);
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// `name`: how the file's name begins.
    pub(crate) fn finish(self, partition: &str, name: &str) -> Result<Encoded, StoreError> {
        let bytes = self.writer.into_inner();
        let bytes = bytes.map_err(StoreError::table(self.table, "encode a file"))?;
        Ok(Encoded::new(self.table, partition, name, bytes, self.rows, self.ranges))
    }
}

impl Encoded {
    /// `name`: how the file's name begins.
    pub(crate) fn new(table: Table, partition: &str, name: &str, bytes: Vec<u8>, rows: u64, ranges: Ranges) -> Self {
        let file = DataFile {
            path: format!(
                "{}={partition}/{name}-{}{}",
                table.partition_column(),
                uuid::Uuid::new_v4(),
                integrity::name_end(&bytes)
            ),
            partition: partition.to_owned(),
            size_bytes: bytes.len() as u64,
            rows,
            // Dated when it is put on the disk.
            modified_ms: 0,
            int_ranges: ranges.ints,
            string_ranges: ranges.strings,
        };
        Self {
            bytes: bytes.into(),
            file,
        }
    }
}

/// Smallest and largest values of the columns without nulls.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    pub(crate) ints: Vec<(String, ColumnRange<i64>)>,
    pub(crate) strings: Vec<(String, ColumnRange<String>)>,
}

impl Ranges {
    /// Adds what a column of texts holds.
    pub(crate) fn add_texts(&mut self, column: &str, min: &str, max: &str) {
        let (min, max) = (min.to_owned(), max.to_owned());
        self.strings.push((column.to_owned(), ColumnRange { min, max }));
    }

    /// Makes them hold others too; a column that one of both lacks has none.
    pub(crate) fn widen(&mut self, more: &Self) {
        widen(&mut self.ints, &more.ints);
        widen(&mut self.strings, &more.strings);
    }
}

fn widen<T: Ord + Clone>(ranges: &mut Vec<(String, ColumnRange<T>)>, more: &[(String, ColumnRange<T>)]) {
    ranges.retain_mut(|(name, range)| match more.iter().find(|(other, _)| other == name) {
        Some((_, other)) => {
            range.min = other.min.clone().min(range.min.clone());
            range.max = other.max.clone().max(range.max.clone());
            true
        }
        None => false,
    });
}

/// What the log says of a file with these rows, which have the table's file schema; where it lies is left to the
/// caller.
pub(crate) fn describe(table: Table, batches: &[RecordBatch]) -> Result<DataFile, ArrowError> {
    let rows = concat_batches(&table.file_schema(), batches)?;
    let columns = rows
        .columns()
        .iter()
        .map(compact_dictionary)
        .collect::<Result<Vec<_>, _>>()?;
    let ranges = ranges(&RecordBatch::try_new(table.file_schema(), columns)?);
    Ok(DataFile {
        path: String::new(),
        partition: String::new(),
        size_bytes: 0,
        rows: rows.num_rows() as u64,
        modified_ms: 0,
        int_ranges: ranges.ints,
        string_ranges: ranges.strings,
    })
}

/// How the columns of a table's files are encoded. In `samples` every column but the time is a dictionary in every
/// row group, however many values it has: readers count by dictionary code, and never have to look at a row's value.
fn properties(table: Table, profile: WriteProfile) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(
            ZstdLevel::try_new(profile.level()).unwrap_or_default(),
        ))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_created_by(concat!("stakeout-server ", env!("CARGO_PKG_VERSION")).to_owned());
    match table {
        Table::Samples => {
            // Times are almost all distinct: a dictionary of them is only in the way; neighbours differ by little.
            // What is left of them is noise.
            let time = ColumnPath::from("ts_ns");
            builder = builder
                .set_dictionary_page_size_limit(MAX_DICTIONARY_BYTES)
                .set_column_compression(time.clone(), Compression::UNCOMPRESSED)
                .set_column_dictionary_enabled(time.clone(), false)
                .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED);
        }
        Table::Stacks | Table::Frames | Table::Series | Table::Processes | Table::Types => {
            // One row an id: every id is distinct and random.
            let id = ColumnPath::from(table.key()[0]);
            builder = builder
                .set_column_dictionary_enabled(id.clone(), false)
                .set_column_encoding(id.clone(), Encoding::PLAIN)
                .set_column_compression(id, Compression::UNCOMPRESSED);
            if table == Table::Stacks {
                // Neighbours begin with the same frames, which zstd finds in ids as they are, and neither in codes
                // that are no whole bytes nor in differences, which is what the library would write.
                let frames = ColumnPath::new(["frames", "list", "element"].map(str::to_owned).to_vec());
                builder = builder
                    .set_column_dictionary_enabled(frames.clone(), false)
                    .set_column_encoding(frames, Encoding::PLAIN);
            }
        }
        Table::SamplesMinute | Table::SamplesHour | Table::SamplesTenSeconds => {
            builder = builder.set_dictionary_page_size_limit(MAX_DICTIONARY_BYTES);
        }
        Table::Batches => {}
    }
    // Ranges by which a reader can leave something out are those of the columns by which rows are sorted, and of times.
    builder = builder.set_statistics_enabled(EnabledStatistics::None);
    for column in table.sort_columns().iter().chain(table.key()) {
        builder = builder.set_column_statistics_enabled(ColumnPath::from(*column), EnabledStatistics::Page);
    }
    for column in ["ts_ns", "node"] {
        if !table.sort_columns().contains(&column) && table.file_schema().column_with_name(column).is_some() {
            builder = builder.set_column_statistics_enabled(ColumnPath::from(column), EnabledStatistics::Chunk);
        }
    }
    builder.build()
}

fn sorted(table: Table, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let int = |name: &str| -> Result<&[i64], ArrowError> {
        let column = rows.column_by_name(name).ok_or_else(|| missing(name))?;
        Ok(column.as_primitive::<Int64Type>().values())
    };
    let order: Vec<u32> = match table {
        Table::Batches => {
            let text = |name: &str| -> Result<&StringArray, ArrowError> {
                Ok(rows.column_by_name(name).ok_or_else(|| missing(name))?.as_string())
            };
            let (nodes, instances, numbers) = (text("node")?, text("instance")?, int("number")?);
            let key = |row: u32| {
                let row = row as usize;
                (nodes.value(row), instances.value(row), numbers[row])
            };
            let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
            order.sort_by_key(|row| key(*row));
            order.dedup_by_key(|row| {
                let (_, instance, number) = key(*row);
                (instance, number)
            });
            order
        }
        // Roll-ups come in order; samples are sorted as codes.
        Table::Samples | Table::SamplesMinute | Table::SamplesHour | Table::SamplesTenSeconds => {
            (0..rows.num_rows() as u32).collect()
        }
        Table::Stacks => {
            // Roots first, neighbours have most of their frames in common: a quarter less to store than by id. The
            // same stack has the same frames, so that repeats come together.
            let ids = int("stack_id")?;
            let frames = rows.column_by_name("frames").ok_or_else(|| missing("frames"))?;
            let (begins, frames) = (
                frames.as_list::<i32>().value_offsets(),
                frames.as_list::<i32>().values(),
            );
            let frames = frames.as_primitive::<Int64Type>().values();
            let roots_first = |row: u32| {
                let row = row as usize;
                frames[begins[row] as usize..begins[row + 1] as usize].iter().rev()
            };
            let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
            order.sort_unstable_by(|a, b| {
                let by_frames = roots_first(*a).cmp(roots_first(*b));
                by_frames.then_with(|| ids[*a as usize].cmp(&ids[*b as usize]))
            });
            order.dedup_by_key(|row| ids[*row as usize]);
            order
        }
        Table::Frames => {
            let ids = int("frame_id")?;
            let text = |name: &str| -> Result<&StringArray, ArrowError> {
                Ok(rows.column_by_name(name).ok_or_else(|| missing(name))?.as_string())
            };
            let (modules, functions, files) = (text("module")?, text("function")?, text("file")?);
            let key = |row: &u32| {
                let row = *row as usize;
                (modules.value(row), functions.value(row), files.value(row), ids[row])
            };
            let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
            order.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
            order.dedup_by_key(|row| ids[*row as usize]);
            order
        }
        Table::Series | Table::Processes | Table::Types => {
            let ids = int(table.key()[0])?;
            let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
            order.sort_by_key(|row| ids[*row as usize]);
            order.dedup_by_key(|row| ids[*row as usize]);
            order
        }
    };
    let sorted = take_record_batch(rows, &UInt32Array::from(order))?;
    let columns = sorted
        .columns()
        .iter()
        .map(compact_dictionary)
        .collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(sorted.schema(), columns)
}

fn missing(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("no column {name}"))
}

/// Gathering many requests' rows repeats dictionary values; the file should hold each once.
fn compact_dictionary(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let DataType::Dictionary(..) = column.data_type() else {
        return Ok(column.clone());
    };
    let dictionary = column.as_dictionary::<Int32Type>();
    let values = dictionary.values().as_string::<i32>();
    let mut place = std::collections::HashMap::new();
    let mut kept: Vec<u32> = Vec::new();
    let mut renamed: Vec<Option<i32>> = vec![None; values.len()];
    let keys: Int32Array = dictionary
        .keys()
        .values()
        .iter()
        .map(|key| {
            let old = *key as usize;
            let new = renamed[old].unwrap_or_else(|| {
                *place.entry(values.value(old)).or_insert_with(|| {
                    kept.push(old as u32);
                    kept.len() as i32 - 1
                })
            });
            renamed[old] = Some(new);
            Some(new)
        })
        .collect();
    let keys = Int32Array::new(keys.values().clone(), dictionary.keys().nulls().cloned());
    let values = take(dictionary.values(), &UInt32Array::from(kept), None)?;
    Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
}

fn ranges(rows: &RecordBatch) -> Ranges {
    let mut ranges = Ranges::default();
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        if column.null_count() > 0 {
            continue;
        }
        match column.data_type() {
            DataType::Int64 => {
                let values = column.as_primitive::<Int64Type>().values();
                if let (Some(min), Some(max)) = (values.iter().min(), values.iter().max()) {
                    let range = ColumnRange { min: *min, max: *max };
                    ranges.ints.push((field.name().clone(), range));
                }
            }
            DataType::Dictionary(..) => {
                // Compacted above, so that every value of the dictionary is in use.
                let values = column.as_dictionary::<Int32Type>().values().as_string::<i32>();
                let distinct: HashSet<&str> = values.iter().flatten().collect();
                if let (Some(min), Some(max)) = (distinct.iter().min(), distinct.iter().max())
                    && min.len().max(max.len()) <= MAX_RANGE_STRING_BYTES
                {
                    ranges.add_texts(field.name(), min, max);
                }
            }
            _ => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::buffer::arriving::FreshSamples;
    use crate::store::format::write::row_group;
    use arrow::array::{BooleanArray, Int64Array, Int64Builder, ListBuilder};
    use arrow::datatypes::Field;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    /// Samples of which every value of every column that can is distinct.
    fn samples(rows: usize) -> RecordBatch {
        let numbers = || -> ArrayRef {
            Arc::new(
                (0..rows as i64)
                    .map(|row| row.wrapping_mul(0x9e37_79b9))
                    .collect::<Int64Array>(),
            )
        };
        let names = || -> ArrayRef {
            let values = StringArray::from_iter_values((0..rows).map(|row| format!("name-{row}")));
            let keys = Int32Array::from_iter_values(0..rows as i32);
            Arc::new(DictionaryArray::new(keys, Arc::new(values)))
        };
        let schema = Table::Samples.schema();
        let column = |field: &Arc<arrow::datatypes::Field>| -> ArrayRef {
            match (field.name().as_str(), field.data_type()) {
                ("hour", _) => {
                    let hour = Arc::new(StringArray::from(vec!["2026-11-21T08"]));
                    Arc::new(DictionaryArray::new(Int32Array::from_value(0, rows), hour))
                }
                (_, DataType::Int64) => numbers(),
                (_, DataType::Int32) => Arc::new(Int32Array::from_iter_values(0..rows as i32)),
                _ => names(),
            }
        };
        RecordBatch::try_new(schema.clone(), schema.fields().iter().map(column).collect()).unwrap()
    }

    #[test]
    fn all_of_a_sample_but_its_time_is_a_dictionary_in_every_row_group() {
        // As many distinct ids as by default would not be a dictionary any more: 1.2 MB.
        let samples = [Arc::new(FreshSamples::of_batch(&samples(150_000)))];
        for profile in [WriteProfile::Fresh, WriteProfile::Compact] {
            let encoded = row_group::encode("2026-11-21T08", &samples, profile, &Provenance::default());
            let reader = SerializedFileReader::new(encoded.unwrap().unwrap().bytes).unwrap();
            let group = reader.get_row_group(0).unwrap();
            for (index, chunk) in group.metadata().columns().iter().enumerate() {
                let is_time = chunk.column_path().string() == "ts_ns";
                let wanted = if is_time {
                    Encoding::DELTA_BINARY_PACKED
                } else {
                    Encoding::RLE_DICTIONARY
                };
                let pages = group.get_column_page_reader(index).unwrap();
                let pages: Vec<_> = pages.map(|page| page.unwrap()).collect();
                assert_eq!(pages[0].is_dictionary_page(), !is_time, "{}", chunk.column_path());
                let data: Vec<_> = pages.iter().filter(|page| page.is_data_page()).collect();
                assert!(!data.is_empty());
                for page in data {
                    assert_eq!(page.encoding(), wanted, "{}", chunk.column_path());
                }
            }
        }
    }

    #[test]
    fn of_a_stack_mostly_what_its_neighbour_lacks_is_stored() {
        let (count, depth) = (20_000, 25);
        let hash = |number: i64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        let mut frames =
            ListBuilder::new(Int64Builder::new()).with_field(Field::new("element", DataType::Int64, false));
        for stack in 0..count {
            // Leaf first: its own frame, and those that ten and more have.
            let of = |level: i64| hash((stack / (1 + level * 10)) << 8 | level);
            frames.append_value((0..depth).map(|level| Some(of(level))));
        }
        let day: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter(
            (0..count).map(|_| "2026-11-21"),
        ));
        let columns: Vec<ArrayRef> = vec![
            Arc::new((0..count).map(|stack| hash(-stack)).collect::<Int64Array>()),
            Arc::new(frames.finish()),
            Arc::new(BooleanArray::from(vec![false; count as usize])),
            day,
        ];
        let rows = RecordBatch::try_new(Table::Stacks.schema(), columns).unwrap();
        let file = encode(
            Table::Stacks,
            "2026-11-21",
            &[rows],
            WriteProfile::Compact,
            &Provenance::default(),
        );
        let bytes = file.unwrap().unwrap().bytes.len() as i64;
        // Its id, that of its own frame, and a third of another.
        assert!(bytes < count * 30, "{} bytes a stack", bytes / count);
    }
}
