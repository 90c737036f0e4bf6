//! Each row group is counted by one server, by the same one for every question, and none has much more than its part.

use super::*;
use crate::store::{DataFile, Table};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::{SchemaDescriptor, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Row groups of a file, of so many rows each.
fn file(path: &str, groups: &[i64]) -> Vec<RowGroupTask> {
    let columns = Type::group_type_builder("schema").build().unwrap();
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(columns)));
    let of_rows = |rows: &i64| {
        RowGroupMetaData::builder(schema.clone())
            .set_num_rows(*rows)
            .build()
            .unwrap()
    };
    let groups: Vec<RowGroupMetaData> = groups.iter().map(of_rows).collect();
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let (count, about) = (
        groups.len(),
        FileMetaData::new(1, rows, None, None, schema.clone(), None),
    );
    let footer = Arc::new(ParquetMetaData::new(about, groups));
    let file = Arc::new(DataFile {
        path: path.to_owned(),
        partition: "2026-11-21T08".to_owned(),
        size_bytes: 1,
        rows: rows as u64,
        modified_ms: 0,
        int_ranges: Vec::new(),
        string_ranges: Vec::new(),
    });
    let unit = |group| RowGroupTask::File {
        table: Table::Samples,
        file: file.clone(),
        footer: footer.clone(),
        group,
    };
    (0..count).map(unit).collect()
}

/// An hour of 14 files of four million rows.
fn hour() -> Vec<RowGroupTask> {
    let files = (0..14).map(|number| file(&format!("hour=2026-11-21T08/part-{number}.parquet"), &[512 << 10; 8]));
    files.flatten().collect()
}

fn name(unit: &RowGroupTask) -> (String, usize) {
    match unit {
        RowGroupTask::File { file, group, .. } => (file.path.clone(), *group),
        RowGroupTask::Pending(_) => panic!("nothing waits here"),
    }
}

/// The server of each row group.
fn placed(units: Vec<RowGroupTask>, own: &str, others: &[&str]) -> BTreeMap<(String, usize), String> {
    let others: Vec<String> = others.iter().map(|other| (*other).to_owned()).collect();
    let shares = cut(units, own, &others);
    let own = shares.own.iter().map(|unit| (name(unit), own.to_owned()));
    let of_others = shares.others.iter();
    let of_others = of_others.flat_map(|part| part.units.iter().map(|unit| (name(unit), part.server.clone())));
    own.chain(of_others).collect()
}

#[test]
fn each_row_group_is_counted_once_and_nobody_has_much_more_than_its_part() {
    for others in [
        &[][..],
        &["b"],
        &["b", "c", "d"],
        &["b", "c", "d", "e", "f", "g", "h", "i"],
    ] {
        let all = hour();
        let placed = placed(all.clone(), "a", others);
        assert_eq!(placed.len(), all.len());
        let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
        placed
            .values()
            .for_each(|server| *loads.entry(server).or_default() += 512 << 10);
        let part = committed_rows(&all) / (others.len() + 1);
        for (server, rows) in loads {
            assert!(
                rows <= part * 5 / 4 + PIECE_ROWS,
                "{server} of {others:?} has {rows}, its part is {part}"
            );
        }
    }
}

#[test]
fn shares_are_the_same_whoever_is_asked_and_in_whatever_order_servers_are_known() {
    let one = placed(hour(), "a", &["b", "c"]);
    assert_eq!(one, placed(hour(), "b", &["c", "a"]));
    assert_eq!(one, placed(hour(), "c", &["b", "a", "b"]));
    // Row groups of a piece stay together.
    for ((path, group), server) in &one {
        assert_eq!(one.get(&(path.clone(), group ^ 1)), Some(server));
    }
}

#[test]
fn a_question_for_less_asks_the_same_server_for_the_same_piece() {
    let whole = placed(hour(), "a", &["b", "c", "d"]);
    // Every second row group, as of one service: where servers have room, pieces stay where they are.
    let less: Vec<RowGroupTask> = hour().into_iter().filter(|unit| name(unit).1 % 2 == 1).collect();
    let of_less = placed(less.clone(), "a", &["b", "c", "d"]);
    let same = of_less
        .iter()
        .filter(|(unit, server)| whole.get(*unit) == Some(*server))
        .count();
    assert!(same * 10 >= less.len() * 8, "{same} of {}", less.len());
    // With one server less only its pieces move, and those that had found no room.
    let fewer = placed(hour(), "a", &["b", "c"]);
    let stay = whole.iter().filter(|(_, server)| *server != "d");
    let (stayed, all) = stay.fold((0, 0), |(stayed, all), (unit, server)| {
        (stayed + usize::from(fewer.get(unit) == Some(server)), all + 1)
    });
    assert!(stayed * 10 >= all * 7, "{stayed} of {all}");
}

#[test]
fn a_server_is_asked_for_a_bounded_share_at_a_time() {
    let files = (0..40).map(|number| file(&format!("hour=2026-11-21T08/part-{number}.parquet"), &[512 << 10; 8]));
    let shares = cut(files.flatten().collect(), "a", &["b".to_owned()]);
    assert!(shares.others.len() > 5, "{} shares", shares.others.len());
    for part in &shares.others {
        assert!(part.rows <= SHARE_ROWS + (512 << 10), "{} rows", part.rows);
        assert_eq!(part.rows, part.units.iter().map(RowGroupTask::rows).sum::<usize>());
    }
    let own: BTreeSet<_> = shares.own.iter().map(name).collect();
    assert!(
        shares
            .others
            .iter()
            .flat_map(|part| &part.units)
            .all(|unit| !own.contains(&name(unit)))
    );
}
