//! What this room reads of a file equals what arrow reads of it, whatever the encoding.

use super::*;
use crate::store::StoreError;
use crate::store::buffer::arriving::FreshSamples;
use crate::store::format::provenance::Provenance;
use crate::store::format::read::column_chunk::{coded, packed};
use crate::store::format::read::footers::Footers;
use crate::store::format::read::page_stream::FileStream;
use crate::store::format::write::row_group;
use crate::store::format::write::rows_file::{Encoded, WriteProfile};
use crate::store::root::in_memory::InMemory;
use crate::store::root::local_reader::LocalReader;
use crate::store::table::partition::HOUR_NS;
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Int32Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use std::collections::HashMap;

const HOUR: &str = "1970-01-01T01";

fn encode(rows: &RecordBatch, profile: WriteProfile) -> Result<Option<Encoded>, StoreError> {
    let samples = FreshSamples::of_batch(rows);
    row_group::encode(HOUR, &[Arc::new(samples)], profile, &Provenance::default())
}

/// Every column of `samples` with values of its kind: few and many distinct ones, long runs, and absent ones.
fn rows(count: i64) -> RecordBatch {
    let mut state = 0x5eed_u64;
    let mut next = move |below: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % below
    };
    let schema = Table::Samples.schema();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        let numbers = |next: &mut dyn FnMut(i64) -> i64| match field.name().as_str() {
            "ts_ns" => (0..count).map(|_| Some(HOUR_NS + next(HOUR_NS))).collect::<Vec<_>>(),
            "value" => (0..count)
                .map(|row| Some(if row < count / 2 { 50 } else { 100 }))
                .collect(),
            "series_id" => (0..count).map(|row| Some(-(row / 1000) * 7_777_777_777_777)).collect(),
            "wait_ns" => (0..count)
                .map(|_| Some(next(900) * 1_000).filter(|n| *n < 600_000))
                .collect(),
            "tid" | "cpu" | "woken_tid" => (0..count).map(|_| Some(next(9)).filter(|n| *n < 7)).collect(),
            _ => (0..count)
                .map(|_| Some((next(3_000) - 1_500) * 1_234_567_890_123))
                .collect(),
        };
        match field.data_type() {
            DataType::Int64 => Arc::new(Int64Array::from(numbers(&mut next))),
            DataType::Int32 => {
                let numbers = numbers(&mut next);
                Arc::new(numbers.into_iter().map(|n| n.map(|n| n as i32)).collect::<Int32Array>())
            }
            _ => {
                let (hour, mut texts) = (field.name() == "hour", StringBuilder::new());
                let distinct = if hour { 1 } else { 5 };
                for index in 0..distinct {
                    texts.append_value(if hour {
                        HOUR.to_owned()
                    } else {
                        format!("{}-{index}", field.name())
                    });
                }
                let keys: Int32Array = (0..count).map(|_| Some(next(distinct) as i32)).collect();
                Arc::new(DictionaryArray::new(keys, Arc::new(texts.finish())))
            }
        }
    });
    RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
}

/// Values as text, by row.
fn texts(column: &ArrayRef) -> Vec<String> {
    let column = arrow::compute::cast(column, &DataType::Utf8).unwrap();
    let column = column.as_any().downcast_ref::<StringArray>().unwrap();
    column.iter().map(|text| text.unwrap_or_default().to_owned()).collect()
}

fn read_back(column: &Column) -> Vec<String> {
    match column {
        Column::Codes(codes) => {
            let text = |row| codes.text(codes.codes.at(row) as usize).into_owned();
            (0..codes.codes.len()).map(text).collect()
        }
        Column::Numbers(numbers) => numbers.iter().map(i64::to_string).collect(),
    }
}

fn every_column() -> Vec<Projection> {
    let name = |name: &str| -> &'static str {
        let names = [
            "ts_ns",
            "type",
            "node",
            "service",
            "series_id",
            "process_id",
            "thread",
            "tid",
            "cpu",
            "mode",
            "stack_id",
            "value",
            "wait_ns",
            "woken_tid",
        ];
        names.into_iter().find(|known| *known == name).unwrap()
    };
    let form = |name| if name == "ts_ns" { Form::Numbers } else { Form::Codes };
    let schema = Table::Samples.file_schema();
    let names = schema.fields().iter().map(|field| name(field.name()));
    names.map(|name| Projection { name, form: form(name) }).collect()
}

fn stored(bytes: Bytes, file: &DataFile) -> Arc<dyn RangeReader> {
    let path = Table::Samples.path_of(&file.path);
    Arc::new(InMemory(HashMap::from([(path, bytes)])))
}

/// All units of one file, read in full.
async fn read_all(store: &Arc<dyn RangeReader>, file: &DataFile) -> Result<Vec<Vec<String>>, ReadError> {
    let file = Arc::new(file.clone());
    let footer = Footers::new(1 << 20).get(store, Table::Samples, &file).await?;
    let wanted = every_column();
    let (mut columns, mut unzip) = (vec![Vec::new(); wanted.len()], Unzip::new().unwrap());
    for group in 0..footer.num_row_groups() {
        let unit = RowGroupTask::File {
            table: Table::Samples,
            file: file.clone(),
            footer: footer.clone(),
            group,
        };
        let fetched = unit.fetch(store.as_ref(), &wanted)?;
        for (to, column) in columns.iter_mut().zip(fetched.read(&wanted, &mut unzip)?) {
            to.extend(read_back(&column));
        }
    }
    Ok(columns)
}

/// All of it piece by piece, as a merge reads it.
fn in_pieces(bytes: &Bytes) -> Result<Vec<Vec<String>>, MalformedFile> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), bytes).unwrap();
    let reader = LocalReader::new(dir.path());
    let wanted: &'static [Projection] = every_column().leak();
    let (mut stream, mut unzip) = (FileStream::open(&reader, "file", wanted)?, Unzip::new()?);
    let mut columns = vec![Vec::new(); wanted.len()];
    while let Some(piece) = stream.next(&mut unzip)? {
        for (index, (to, wanted)) in columns.iter_mut().zip(wanted).enumerate() {
            let column = match wanted.form {
                Form::Numbers => Column::Numbers(stream.numbers(index).to_vec()),
                Form::Codes => {
                    let (codes, values) = stream.codes(index);
                    let (codes, values) = (codes.to_vec().into(), values.clone());
                    Column::Codes(CodedColumn { codes, values })
                }
            };
            let texts = read_back(&column);
            assert_eq!(texts.len(), piece.rows);
            to.extend(texts);
        }
    }
    Ok(columns)
}

/// What arrow reads of the same bytes.
fn by_arrow(bytes: &Bytes) -> Vec<Vec<String>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())
        .unwrap()
        .build()
        .unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    (0..batches[0].num_columns())
        .map(|column| batches.iter().flat_map(|batch| texts(batch.column(column))).collect())
        .collect()
}

#[tokio::test]
async fn what_the_store_writes_reads_as_arrow_reads_it() {
    for profile in [WriteProfile::Fresh, WriteProfile::Compact] {
        let encoded = encode(&rows(70_000), profile).unwrap().unwrap();
        let store = stored(encoded.bytes.clone(), &encoded.file);
        assert_eq!(read_all(&store, &encoded.file).await.unwrap(), by_arrow(&encoded.bytes));
        assert!(
            in_pieces(&encoded.bytes).unwrap() == by_arrow(&encoded.bytes),
            "{profile:?}"
        );
        // And without a way round by arrays: every column is written as this room reads it.
        let footer = Footers::new(1 << 20)
            .get(&store, Table::Samples, &Arc::new(encoded.file.clone()))
            .await
            .unwrap();
        for rows in footer.row_groups() {
            for (index, column) in rows.columns().iter().enumerate() {
                let (start, length) = column.byte_range();
                let bytes = encoded.bytes.slice(start as usize..(start + length) as usize);
                let chunk = Chunk { index, start, bytes };
                let is_direct = coded(&chunk, rows, &mut Unzip::new().unwrap()).unwrap().is_some()
                    || packed(&chunk, rows, &mut Unzip::new().unwrap()).unwrap().is_some();
                assert!(is_direct, "{profile:?}: {}", column.column_path());
            }
        }
    }
}

#[tokio::test]
async fn a_column_that_a_file_lacks_is_absent_in_all_its_rows_where_it_may_be() {
    let encoded = encode(&rows(20_000), WriteProfile::Compact).unwrap().unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(encoded.bytes.clone()).unwrap();
    let batch = reader.with_batch_size(20_000).build().unwrap().next().unwrap().unwrap();
    for (lacking, may_lack) in [("wait_ns", true), ("woken_tid", true), ("value", false)] {
        let index = batch.schema().index_of(lacking).unwrap();
        let mut older = batch.clone();
        older.remove_column(index);
        let mut writer = ArrowWriter::try_new(Vec::new(), older.schema(), None).unwrap();
        writer.write(&older).unwrap();
        let bytes = Bytes::from(writer.into_inner().unwrap());
        let file = DataFile {
            size_bytes: bytes.len() as u64,
            ..encoded.file.clone()
        };
        let whole = read_all(&stored(bytes.clone(), &file), &file).await;
        if !may_lack {
            let message = "there is no column `value`";
            assert!(whole.unwrap_err().what.contains(message));
            assert!(in_pieces(&bytes).unwrap_err().what.contains(message));
            continue;
        }
        let mut expected = by_arrow(&bytes);
        expected.insert(index, vec![String::new(); 20_000]);
        assert!(whole.unwrap() == expected && in_pieces(&bytes).unwrap() == expected);
    }
}

/// Samples of five threads, each with frequent and rare stacks of its own.
fn rows_of_threads(count: i64) -> RecordBatch {
    let (rows, schema) = (rows(count), Table::Samples.schema());
    let thread = |row: i64| row * 5 / count;
    let columns = schema
        .fields()
        .iter()
        .zip(rows.columns())
        .map(|(field, column)| -> ArrayRef {
            match field.name().as_str() {
                "type" | "service" | "thread" => {
                    let keys = (0..count).map(|row| {
                        if field.name() == "thread" {
                            thread(row) as i32
                        } else {
                            0
                        }
                    });
                    let texts = column.as_dictionary::<Int32Type>().values().clone();
                    Arc::new(DictionaryArray::new(Int32Array::from_iter_values(keys), texts))
                }
                "series_id" => Arc::new(Int64Array::from_value(7, count as usize)),
                "tid" => Arc::new(Int64Array::from_iter_values((0..count).map(thread))),
                "stack_id" => {
                    let part = |row: i64| (row * 7919 % 10_007) as f64 / 10_007.0;
                    let stack = |row: i64| (900_f64.powf(part(row)) as i64 * 5 + thread(row)) * 1_234_567_890_123;
                    Arc::new(Int64Array::from_iter_values((0..count).map(stack)))
                }
                _ => column.clone(),
            }
        });
    RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
}

#[tokio::test]
async fn codes_that_stand_for_nothing_are_not_counted() {
    let rows = rows_of_threads(120_000);
    let encoded = encode(&rows, WriteProfile::Compact);
    let encoded = encoded.unwrap().unwrap();
    let store = stored(encoded.bytes.clone(), &encoded.file);
    let expected = by_arrow(&encoded.bytes);
    assert!(read_all(&store, &encoded.file).await.unwrap() == expected);
    assert!(in_pieces(&encoded.bytes).unwrap() == expected);
    let footer = Footers::new(1 << 20)
        .get(&store, Table::Samples, &Arc::new(encoded.file.clone()))
        .await;
    let footer = footer.unwrap();
    let rows = footer.row_group(0);
    let index = index_of(Table::Samples, rows, "stack_id").unwrap().unwrap();
    let (start, length) = rows.column(index).byte_range();
    let bytes = encoded.bytes.slice(start as usize..(start + length) as usize);
    let codes = coded(&Chunk { index, start, bytes }, rows, &mut Unzip::new().unwrap())
        .unwrap()
        .unwrap();
    let distinct: std::collections::HashSet<&String> = expected[index].iter().collect();
    assert_eq!(codes.values.len(), distinct.len());
    let written = rows.column(index).uncompressed_size() as usize;
    assert!(
        written > 2 * 120_000 + 3 * 8 * distinct.len(),
        "{written}: no code stands for nothing"
    );
}

#[tokio::test]
async fn other_encodings_are_read_too() {
    let rows = rows(20_000);
    let rows = rows.project(&(0..rows.num_columns() - 1).collect::<Vec<_>>()).unwrap();
    // Of other programs; those that compress a page as a stream do not say in it how large it is.
    let (plain, zstd) = (Compression::UNCOMPRESSED, Compression::ZSTD(ZstdLevel::default()));
    for (version, dictionary, compression) in [
        (WriterVersion::PARQUET_1_0, true, plain),
        (WriterVersion::PARQUET_1_0, false, zstd),
        (WriterVersion::PARQUET_2_0, false, plain),
        (WriterVersion::PARQUET_2_0, true, zstd),
    ] {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_compression(compression)
            .set_dictionary_enabled(dictionary)
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let (bytes, mut file) = (
            Bytes::from(bytes),
            encode(&self::rows(1), WriteProfile::Fresh).unwrap().unwrap().file,
        );
        file.size_bytes = bytes.len() as u64;
        let store = stored(bytes.clone(), &file);
        assert_eq!(read_all(&store, &file).await.unwrap(), by_arrow(&bytes));
        assert!(
            in_pieces(&bytes).unwrap() == by_arrow(&bytes),
            "{version:?} {dictionary}"
        );
    }
}

#[tokio::test]
async fn a_damaged_file_is_an_error_that_names_it_or_reads_as_something() {
    let encoded = encode(&rows(400), WriteProfile::Fresh).unwrap().unwrap();
    let whole = encoded.bytes.to_vec();
    let name = format!("samples/{}", encoded.file.path);
    let mut errors = 0;
    for at in (0..whole.len()).step_by(13).chain(whole.len() - 300..whole.len()) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        let store = stored(damaged.into(), &encoded.file);
        if let Err(error) = read_all(&store, &encoded.file).await {
            assert_eq!(error.path, name);
            errors += 1;
        }
    }
    assert!(errors > 100, "{errors} of the damaged files were told");
    let store = stored(whole[..whole.len() / 2].to_vec().into(), &encoded.file);
    let error = read_all(&store, &encoded.file).await.unwrap_err();
    assert_eq!(error.path, name, "{error}");
}
