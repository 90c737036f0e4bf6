use super::*;
use crate::store::buffer::arriving::{Amount, NO_THREAD, NO_WAIT};
use crate::store::buffer::interner::{SampleAttributes, Series, ThreadKey};
use crate::store::format::write::bits::hybrid;
use crate::store::format::write::code_order;
use crate::store::table::data_file::ColumnRange;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type as Long};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

/// Numbers that look random (splitmix64, Steele, Lea and Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Rows of which `stacks` stacks are distinct; of tids, CPUs and lengths one in `absent` is absent, none where that is
/// 0, all where it is 1.
fn rows(count: usize, stacks: u64, absent: u64) -> (Samples, Interner) {
    let (mut rows, mut interner, mut random) = (Samples::default(), Interner::default(), Numbers(count as u64));
    for _ in 0..count {
        let service = random.below(7) as i64;
        let is_absent = |random: &mut Numbers| absent > 0 && random.below(absent) == 0;
        rows.ts_ns.push(random.below(1 << 62) as i64 - (1 << 61));
        let series = interner.series.code(Series {
            kind: interner.names.code("cpu"),
            service: interner.names.code(&format!("service-{service} Ω")),
            id: service * 7 - 20,
        });
        rows.origins.push(interner.origins.code(ThreadKey {
            series,
            node: interner.names.code(&format!("node-{}", random.below(3))),
            thread: interner.names.code(["", "a", "worker"][random.below(3) as usize]),
            process_id: -1,
            tid: (!is_absent(&mut random)).then(|| random.below(9) as i64),
        }));
        rows.attribute_sets.push(interner.attribute_sets.code(SampleAttributes {
            mode: interner.names.code(["user", "kernel"][random.below(2) as usize]),
            cpu: (!is_absent(&mut random)).then(|| random.below(64) as i64),
            amount: Amount {
                value: 50_000_000,
                wait_ns: if is_absent(&mut random) {
                    NO_WAIT
                } else {
                    random.below(900) as i64 * 1_000
                },
                woken_tid: if is_absent(&mut random) {
                    NO_THREAD
                } else {
                    random.below(40) as i64
                },
            },
        }));
        rows.stacks.push(interner.stacks.code(random.below(stacks) as i64 - 5));
    }
    (rows, interner)
}

fn encoded(rows: &Samples, interner: &Interner, group_rows: usize) -> Encoded {
    encoded_with(WriteProfile::Fresh, rows, interner, group_rows)
}

fn encoded_with(profile: WriteProfile, rows: &Samples, interner: &Interner, group_rows: usize) -> Encoded {
    let mut file = CodedFile::new(Table::Samples, profile, &Provenance::default(), 0).unwrap();
    let mut rows = rows.clone();
    rows.sort(interner);
    file.write_groups(&rows, group_rows, interner).unwrap();
    file.finish("2026-11-21T08", PART).unwrap()
}

/// The rows as the table sorts them, by what they say instead of by codes; equal ones as they lie.
fn in_order(rows: &Samples, interner: &Interner) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    let key = |row: u32| {
        let (origin, ts_ns) = (rows.origins[row as usize], rows.ts_ns[row as usize]);
        (
            interner.order(interner.series_of(origin)),
            interner.origins[origin].tid,
            ts_ns,
        )
    };
    order.sort_by(|a, b| key(*a).cmp(&key(*b)));
    order
}

/// Rows as text, so that all columns are compared.
type Row = (i64, [String; 5], [Option<i64>; 7]);

fn expected(rows: &Samples, interner: &Interner) -> Vec<Row> {
    let row = |row: &u32| {
        let at = *row as usize;
        let origin = interner.origins[rows.origins[at]];
        let attribute_set = interner.attribute_sets[rows.attribute_sets[at]];
        let series = interner.series[origin.series];
        let texts = [
            series.kind,
            origin.node,
            series.service,
            origin.thread,
            attribute_set.mode,
        ];
        (
            rows.ts_ns[at],
            texts.map(|code| interner.names.text(code).to_owned()),
            [
                Some(series.id),
                Some(origin.process_id),
                origin.tid,
                attribute_set.cpu,
                Some(interner.stacks[rows.stacks[at]]),
                attribute_set.amount.known_wait(),
                attribute_set.amount.known_woken(),
            ],
        )
    };
    in_order(rows, interner).iter().map(row).collect()
}

fn read(bytes: &Bytes) -> Vec<Row> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let texts = ["type", "node", "service", "thread", "mode"].map(|name| {
            let column = arrow::compute::cast(batch.column_by_name(name).unwrap(), &arrow::datatypes::DataType::Utf8);
            column.unwrap().as_string::<i32>().clone()
        });
        let numbers = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Long>().clone();
        let ids = ["series_id", "process_id", "tid", "stack_id", "wait_ns", "woken_tid"].map(numbers);
        let cpus = batch.column_by_name("cpu").unwrap().as_primitive::<Int32Type>().clone();
        assert!(numbers("value").values().iter().all(|value| *value == 50_000_000));
        for (row, time) in numbers("ts_ns").values().iter().enumerate() {
            let id = |column: usize| ids[column].is_valid(row).then(|| ids[column].value(row));
            let cpu = cpus.is_valid(row).then(|| i64::from(cpus.value(row)));
            let texts = texts.each_ref().map(|texts| texts.value(row).to_owned());
            rows.push((*time, texts, [id(0), id(1), id(2), cpu, id(3), id(4), id(5)]));
        }
    }
    rows
}

#[test]
fn another_reader_finds_the_rows_in_their_order() {
    // One code, few, and so many that they have 17 bits; none, some and all absent; pages and row groups that are not
    // full.
    for (count, stacks, absent) in [
        (1, 1, 0),
        (7, 3, 1),
        (9, 1, 2),
        (1000, 2, 0),
        (70_000, 300, 5),
        (200_001, 1 << 40, 0),
    ] {
        let (rows, interner) = rows(count, stacks, absent);
        let file = encoded(&rows, &interner, 150_000);
        assert_eq!(file.file.rows, count as u64);
        assert_eq!(
            read(&file.bytes),
            expected(&rows, &interner),
            "{count} {stacks} {absent}"
        );
        let file = encoded_with(WriteProfile::Compact, &rows, &interner, 150_000);
        assert_eq!(
            read(&file.bytes),
            expected(&rows, &interner),
            "{count} {stacks} {absent}"
        );
    }
}

#[test]
fn codes_of_whole_bytes_are_taken_where_they_become_smaller() {
    let (mut rows, mut interner) = rows(60_000, 9000, 0);
    let stacks = |rows: &Samples, interner: &Interner| {
        let file = encoded_with(WriteProfile::Compact, rows, interner, 60_000);
        assert_eq!(read(&file.bytes), expected(rows, interner));
        let reader = SerializedFileReader::new(file.bytes).unwrap();
        let group = reader.metadata().row_group(0);
        let column = group.columns().iter().find(|c| c.column_path().string() == "stack_id");
        let sizes = column.map(|column| (column.uncompressed_size(), column.compressed_size()));
        sizes.unwrap()
    };
    // Each by itself: fourteen bits are the least there is.
    let (plain, alone) = stacks(&rows, &interner);
    assert!(plain < 60_000 * 14 / 8 + 9000 * 8 + 10_000, "{plain}");
    // In threes, of which each has come before.
    let (order, mut random) = (in_order(&rows, &interner), Numbers(7));
    for three in order.chunks(3) {
        let first = random.below(3000) as i64 * 3;
        for (row, stack) in three.iter().zip(first..) {
            rows.stacks[*row as usize] = interner.stacks.code(stack);
        }
    }
    let (plain, in_threes) = stacks(&rows, &interner);
    assert!(plain > 60_000 * 2 + 8000 * 8, "{plain}");
    assert!(in_threes < alone * 3 / 4, "{in_threes} of {alone}");
}

#[test]
fn frequent_stacks_take_fewer_bits_than_rare_ones() {
    let (mut rows, mut interner) = rows(60_000, 9000, 0);
    let mut random = Numbers(5);
    for stack in &mut rows.stacks {
        let part = random.below(1 << 20) as f64 / (1 << 20) as f64;
        *stack = interner.stacks.code((part.powi(4) * 9000.0) as i64);
    }
    let file = encoded_with(WriteProfile::Compact, &rows, &interner, 60_000);
    assert_eq!(read(&file.bytes), expected(&rows, &interner));
    let reader = SerializedFileReader::new(file.bytes).unwrap();
    let columns = reader.metadata().row_group(0).columns();
    let column = columns
        .iter()
        .find(|column| column.column_path().string() == "stack_id");
    // Codes in the order in which they come, as they are and as whole bytes.
    let codes: Vec<u32> = in_order(&rows, &interner)
        .iter()
        .map(|row| rows.stacks[*row as usize])
        .collect();
    let (codes, kept) = dense(codes.into_iter(), interner.stacks.len());
    let size = |width| {
        let mut plain = Vec::new();
        hybrid(&codes, width, &mut plain);
        zstd::bulk::compress(&plain, WriteProfile::Compact.level())
            .unwrap()
            .len()
    };
    let before = size(14).min(size(16)) + 8 * kept.len();
    let now = column.unwrap().compressed_size() as usize;
    assert!(now < before * 15 / 16, "{now} of {before}");
}

#[test]
fn threads_of_one_name_have_codes_of_their_own() {
    let (mut rows, mut interner) = rows(1, 1, 0);
    rows.clear();
    let mut random = Numbers(11);
    let series = interner.series[0];
    // A fleet's pool of threads, on many nodes; each thread has its own stacks, of which few are most.
    for at in 0..120_000 {
        let (node, thread) = (random.below(6) as i64, random.below(5) as i64);
        let series = interner.series.code(Series { id: node, ..series });
        rows.ts_ns.push(at);
        rows.origins.push(interner.origins.code(ThreadKey {
            series,
            node: interner.names.code(&format!("node-{node}")),
            thread: interner.names.code(&format!("worker-{thread}")),
            process_id: node,
            tid: Some(thread),
        }));
        rows.attribute_sets.push(0);
        let part = random.below(1 << 20) as f64 / (1 << 20) as f64;
        rows.stacks
            .push(interner.stacks.code(900_f64.powf(part) as i64 * 5 + thread));
    }
    let file = encoded_with(WriteProfile::Compact, &rows, &interner, 120_000);
    assert_eq!(read(&file.bytes), expected(&rows, &interner));
    let reader = SerializedFileReader::new(file.bytes).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let at = |name: &str| {
        let columns = group.metadata().columns();
        columns.iter().position(|column| column.column_path().string() == name)
    };
    let stacks = at("stack_id").unwrap();
    // A page a thread and node; no value stands in the dictionary that no row has.
    let mut pages = 0;
    for page in group.get_column_page_reader(stacks).unwrap() {
        match page.unwrap() {
            Page::DictionaryPage { buf, .. } => {
                let (ids, _) = buf.as_chunks();
                assert!(
                    ids.iter()
                        .all(|id| rows.stacks.contains(&interner.stacks.code(i64::from_le_bytes(*id))))
                );
            }
            _ => pages += 1,
        }
    }
    assert_eq!(pages, 30);
    let codes: Vec<u32> = in_order(&rows, &interner)
        .iter()
        .map(|row| rows.stacks[*row as usize])
        .collect();
    let places = code_order::by_frequency(&codes, interner.stacks.len());
    let mut plain = Vec::new();
    let placed: Vec<u32> = codes.iter().map(|code| places[*code as usize]).collect();
    hybrid(&placed, 16, &mut plain);
    let packed = zstd::bulk::compress(&plain, WriteProfile::Fresh.level()).unwrap();
    let by_frequency = packed.len() + 8 * interner.stacks.len();
    let now = group.metadata().column(stacks).compressed_size() as usize;
    assert!(now < by_frequency * 7 / 8, "{now} of {by_frequency}");
}

#[test]
fn of_two_cpus_of_a_thread_a_row_takes_little_more_than_a_bit() {
    let (mut rows, mut interner) = rows(1, 1, 0);
    rows.clear();
    let (mut random, count) = (Numbers(13), 240_000);
    let (series, mode) = (interner.series[0], interner.names.code("user"));
    for at in 0..count {
        let (node, thread) = (random.below(4) as i64, random.below(6) as i64);
        let series = interner.series.code(Series { id: node, ..series });
        rows.ts_ns.push(at);
        rows.origins.push(interner.origins.code(ThreadKey {
            series,
            node: interner.names.code(&format!("node-{node}")),
            thread: interner.names.code(&format!("worker-{thread}")),
            process_id: node,
            tid: Some(thread),
        }));
        rows.attribute_sets.push(interner.attribute_sets.code(SampleAttributes {
            mode,
            cpu: Some(thread + random.below(2) as i64),
            amount: Amount {
                value: 50_000_000,
                wait_ns: NO_WAIT,
                woken_tid: NO_THREAD,
            },
        }));
        rows.stacks.push(0);
    }
    let file = encoded_with(WriteProfile::Compact, &rows, &interner, count as usize);
    assert_eq!(read(&file.bytes), expected(&rows, &interner));
    let reader = SerializedFileReader::new(file.bytes).unwrap();
    let columns = reader.metadata().row_group(0).columns();
    let cpus = columns.iter().find(|c| c.column_path().string() == "cpu").unwrap();
    // Chance makes eight in a row equal, and the same again after a while: of neither is made more than it is.
    let bits = cpus.compressed_size() as f64 * 8.0 / count as f64;
    assert!(bits < 1.25, "{bits} bits a row");
}

#[test]
fn rows_are_sorted_as_the_table_says() {
    let (rows, interner) = rows(5000, 10, 4);
    let keys: Vec<_> = expected(&rows, &interner)
        .into_iter()
        .map(|(time, [kind, _, service, ..], [series, _, tid, ..])| (kind, service, series, tid, time))
        .collect();
    assert!(keys.is_sorted());
}

#[test]
fn a_file_says_what_its_columns_hold() {
    let (rows, interner) = rows(3000, 100, 3);
    let file = encoded(&rows, &interner, 1000);
    let (min, max) = (rows.ts_ns.iter().min().unwrap(), rows.ts_ns.iter().max().unwrap());
    assert_eq!(
        file.file.int_range("ts_ns"),
        Some(&ColumnRange { min: *min, max: *max })
    );
    assert_eq!(
        file.file.int_range("series_id"),
        Some(&ColumnRange { min: -20, max: 22 })
    );
    // Rows that lack it lie in no range.
    assert_eq!(file.file.int_range("tid"), None);
    let range = file.file.string_range("service").unwrap();
    assert_eq!((range.min.as_str(), range.max.as_str()), ("service-0 Ω", "service-6 Ω"));
    // Readers leave row groups out by these.
    let reader = SerializedFileReader::new(file.bytes).unwrap();
    let mut last = None;
    for group in reader.metadata().row_groups() {
        let column = |name: &str| {
            group
                .columns()
                .iter()
                .find(|column| column.column_path().string() == name)
        };
        for name in ["type", "service", "series_id", "tid", "ts_ns", "node"] {
            assert!(column(name).unwrap().statistics().is_some(), "{name}");
        }
        assert_eq!(
            column("tid")
                .unwrap()
                .statistics()
                .unwrap()
                .null_count_opt()
                .map(|count| count > 0),
            Some(true)
        );
        let Some(Statistics::Int64(series)) = column("series_id").unwrap().statistics() else {
            panic!()
        };
        assert!(last <= series.min_opt().copied());
        last = series.max_opt().copied();
    }
    assert_eq!(last, Some(22));
}

#[test]
fn a_text_that_is_too_long_is_no_bound() {
    let (mut rows, mut interner) = rows(100, 10, 0);
    let mut origin = interner.origins[rows.origins[50]];
    let service = interner.names.code(&"s".repeat(1 << 20));
    origin.series = interner.series.code(Series {
        service,
        ..interner.series[origin.series]
    });
    rows.origins[50] = interner.origins.code(origin);
    let file = encoded(&rows, &interner, 100);
    assert_eq!(file.file.string_range("service"), None);
    let reader = SerializedFileReader::new(file.bytes.clone()).unwrap();
    let columns = reader.metadata().row_group(0).columns();
    let service = columns.iter().find(|column| column.column_path().string() == "service");
    assert!(service.unwrap().statistics().is_none());
    assert_eq!(read(&file.bytes), expected(&rows, &interner));
}

#[test]
fn times_of_every_distance_come_back() {
    // Blocks that are full, and that are not; differences of no bits and of all.
    for count in [1, 2, 32, 33, 128, 129, 130, 1000, 20_000] {
        for bits in [0, 1, 7, 31, 33, 62] {
            let (mut rows, interner) = rows(count, 3, 0);
            let mut random = Numbers(bits);
            for time in &mut rows.ts_ns {
                *time = random.below(1 << bits) as i64 - (1 << bits >> 1);
            }
            rows.ts_ns[0] = i64::MAX;
            rows.ts_ns[count / 2] = i64::MIN;
            for profile in [WriteProfile::Fresh, WriteProfile::Compact] {
                let file = encoded_with(profile, &rows, &interner, 150_000);
                assert_eq!(
                    read(&file.bytes),
                    expected(&rows, &interner),
                    "{count} times of {bits} bits"
                );
            }
        }
    }
}
