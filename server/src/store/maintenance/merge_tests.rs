use super::*;
use crate::store::buffer::arriving::Amount;
use crate::store::buffer::coded_rows::Scratch;
use crate::store::buffer::interner::{SampleAttributes, Series, ThreadKey};
use crate::store::format::provenance::Provenance;
use crate::store::format::write::row_group::CodedFile;
use crate::store::format::write::rows_file::WriteProfile;
use crate::store::root::local_reader::LocalReader;
use std::collections::BTreeMap;

/// A row with all that it says as text, so that rows of different books can be compared.
type Row = (String, Option<i64>, i64, String);

fn row(rows: &Samples, at: usize, interner: &Interner) -> Row {
    let origin = interner.origins[rows.origins[at]];
    let attribute_set = interner.attribute_sets[rows.attribute_sets[at]];
    let series = interner.series[origin.series];
    let name = |code| interner.names.text(code);
    let of_series = format!("{} {} {:04}", name(series.kind), name(series.service), series.id + 1000);
    let rest = format!(
        "{} {} {} {} {:?} {:?} {}",
        name(origin.node),
        name(origin.thread),
        origin.process_id,
        name(attribute_set.mode),
        attribute_set.cpu,
        attribute_set.amount,
        interner.stacks[rows.stacks[at]]
    );
    (of_series, origin.tid, rows.ts_ns[at], rest)
}

/// Rows of which each is other than in the files before and behind.
fn rows(file: i64, count: i64) -> (Samples, Interner) {
    let (mut rows, mut interner) = (Samples::default(), Interner::default());
    for at in 0..count {
        let of = (at * 7 + file * 3) % 23;
        rows.ts_ns.push(1_000_000 - at * 37 + file);
        let series = interner.series.code(Series {
            kind: interner.names.code(["cpu", "off_cpu"][(of % 2) as usize]),
            service: interner.names.code(&format!("service-{}", of % 5)),
            id: of - 11,
        });
        rows.origins.push(interner.origins.code(ThreadKey {
            series,
            node: interner.names.code(&format!("node-{}", of % 3)),
            thread: interner.names.code(&format!("thread-{}", (at + file) % 4)),
            process_id: file % 2,
            tid: (at % 6 > 0).then_some(at % 4),
        }));
        rows.attribute_sets.push(interner.attribute_sets.code(SampleAttributes {
            mode: interner.names.code(["user", "kernel"][(at % 2) as usize]),
            cpu: (at % 5 > 0).then_some(at % 8),
            amount: Amount {
                value: 10 + at % 3,
                wait_ns: at % 90 - 1,
                woken_tid: at % 7 - 1,
            },
        }));
        rows.stacks.push(interner.stacks.code((at * at + file) % 1000 - 500));
    }
    (rows, interner)
}

fn write(dir: &std::path::Path, file: i64, count: i64, profile: WriteProfile, group_rows: usize) -> (String, Vec<Row>) {
    let (mut rows, interner) = rows(file, count);
    let written = (0..rows.len()).map(|at| row(&rows, at, &interner)).collect();
    rows.sort(&interner);
    let mut coded = CodedFile::new(Table::Samples, profile, &Provenance::default(), 0).unwrap();
    coded.write_groups(&rows, group_rows, &interner).unwrap();
    let path = format!("{file}.parquet");
    std::fs::write(dir.join(&path), coded.finish("2026-11-21T08", "part").unwrap().bytes).unwrap();
    (path, written)
}

/// Keeps what it is given, and says when.
#[derive(Default)]
struct Kept {
    rows: Samples,
    done: usize,
    scratch: Scratch,
    found: Vec<Row>,
    series: BTreeMap<String, usize>,
}

impl Sink for Kept {
    fn rows(&mut self) -> &mut Samples {
        &mut self.rows
    }

    fn end_series(&mut self, interner: &Interner) -> Result<(), StoreError> {
        let range = self.done..self.rows.len();
        let (of_series, ..) = row(&self.rows, range.start, interner);
        for at in range.clone() {
            assert_eq!(row(&self.rows, at, interner).0, of_series);
        }
        *self.series.entry(of_series).or_default() += 1;
        self.rows.order(range, interner, &mut self.scratch);
        self.done = self.rows.len();
        Ok(())
    }

    fn flush(&mut self, interner: &Interner) -> Result<(), StoreError> {
        self.found
            .extend((0..self.rows.len()).map(|at| row(&self.rows, at, interner)));
        self.rows.clear();
        self.done = 0;
        Ok(())
    }
}

#[test]
fn every_row_comes_once_in_the_order_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let reader = LocalReader::new(dir.path());
    // Files of one piece, of many, of several row groups, and of pages of both sizes.
    let files = [
        write(dir.path(), 0, 1, WriteProfile::Fresh, 1000),
        write(dir.path(), 1, 30_000, WriteProfile::Fresh, 1 << 20),
        write(dir.path(), 2, 30_000, WriteProfile::Compact, 1 << 20),
        write(dir.path(), 3, 5_000, WriteProfile::Fresh, 700),
        write(dir.path(), 4, 100_000, WriteProfile::Compact, 90_000),
    ];
    let mut wanted: Vec<Row> = files.iter().flat_map(|(_, rows)| rows.clone()).collect();
    wanted.sort();
    for most_new_entries in [MAX_NEW_ENTRIES, 0] {
        let mut kept = Kept::default();
        let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
        merge_with(&reader, &paths, 1 << 20, most_new_entries, &mut kept).unwrap();
        assert!(kept.series.values().all(|times| *times == 1), "each series at one time");
        let key = |row: &Row| (row.0.clone(), row.1, row.2);
        assert!(kept.found.is_sorted_by_key(key));
        kept.found.sort();
        assert!(kept.found == wanted, "interner of {most_new_entries} new entries");
    }
}

#[test]
fn a_large_series_comes_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let reader = LocalReader::new(dir.path());
    let files = [1, 2].map(|file| write(dir.path(), file, 20_000, WriteProfile::Fresh, 1 << 20));
    let mut wanted: Vec<Row> = files.iter().flat_map(|(_, rows)| rows.clone()).collect();
    wanted.sort();
    let mut kept = Kept::default();
    merge(&reader, &files.each_ref().map(|(path, _)| path.clone()), 500, &mut kept).unwrap();
    assert!(kept.series.values().any(|times| *times > 1));
    kept.found.sort();
    assert!(kept.found == wanted);
}
