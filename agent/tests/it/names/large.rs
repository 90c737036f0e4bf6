//! Large files: their symbols are looked for around what is asked for, and read as a whole where that is dear and
//! happens often. Both say the same.

use stakeout_agent::frames::{CodeLocation, Frame};
use stakeout_agent::metadata::Resolver;
use stakeout_agent::process::{CommandLines, ModuleTable, Sighting, Source, Table};
use stakeout_agent::symbolize::{Namer, NamerConfig};

use super::{functions, key_of, name_locations, without_lines};

/// Distance of the addresses that are named: most functions are longer, and many lie between two of them.
const STEP_BYTES: u64 = 1500;
/// Places that are named at a time, as an interval of samples brings them.
const PLACES: usize = 64;

/// Places all over this very program, which has tens of thousands of functions.
fn own_locations() -> Vec<(CodeLocation, Option<Source>)> {
    let program = std::env::current_exe().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let code = maps
        .lines()
        .find(|line| line.contains(" r-xp ") && line.ends_with(program.to_str().unwrap()));
    let (begin, rest) = code.unwrap().split_once('-').unwrap();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (begin, end) = (hex(begin), hex(rest.split_once(' ').unwrap().0));
    let key = key_of(std::process::id());
    let mut table = Table::new(16, ModuleTable::new(64, 64), Resolver::default(), CommandLines::Off);
    table.program(&Sighting::of(key, 1), 1);
    let addresses = (begin..end).step_by(STEP_BYTES as usize);
    addresses
        .map(|address| {
            let location = table.location(key, address, true, 1);
            (location, table.source(key, location.source, 1))
        })
        .collect()
}

/// Bytes that this thread has read from files.
fn read_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

/// Names by the whole table of symbols: that of a small file is read at once.
fn whole() -> Namer {
    Namer::new(NamerConfig {
        lines_limit_bytes: u64::MAX,
        line_table_bytes: 0,
        ..NamerConfig::default()
    })
}

fn assert_same(named: &[Option<String>], again: &[Vec<Frame>], locations: &[(CodeLocation, Option<Source>)]) {
    let again = functions(again);
    let there = again.iter().flatten().count();
    assert!(
        there * 10 > locations.len() * 9,
        "{there} of {} have names",
        locations.len()
    );
    assert_eq!((named.len(), again.len()), (locations.len(), locations.len()));
    for ((one, other), (location, _)) in named.iter().zip(&again).zip(locations) {
        assert_eq!(one.as_deref(), *other, "{location:?}");
    }
}

#[test]
fn what_is_looked_for_around_some_addresses_is_what_the_whole_table_says_and_reads_little_of_it() {
    let locations = own_locations();
    let mut namer = without_lines();
    let (mut named, mut read) = (Vec::new(), Vec::new());
    for batch in locations.chunks(PLACES) {
        let before = read_bytes();
        let names = name_locations(&mut namer, batch);
        read.push(read_bytes() - before);
        named.extend(functions(&names).into_iter().map(|name| name.map(str::to_owned)));
        assert_eq!(namer.stats().symbol_table_bytes, 0, "neighbours are cheap to look for");
    }
    let (first, later) = (read[0], &mut read[1..]);
    later.sort_unstable();
    let median = later[later.len() / 2];
    println!("{first} bytes were read first, then {median}");
    assert!(median * 2 < first, "{first} bytes were read first, then {median}");

    let mut whole = whole();
    let again = name_locations(&mut whole, &locations);
    assert!(whole.stats().symbol_table_bytes > 0);
    assert_same(&named, &again, &locations);
}

#[test]
fn what_is_often_needed_from_everywhere_is_read_once() {
    let locations = own_locations();
    let batches = locations.len() / PLACES;
    let mut namer = without_lines();
    let (mut scattered, mut named, mut whole_from) = (Vec::new(), Vec::new(), None);
    for first in 0..batches {
        let batch: Vec<_> = locations
            .iter()
            .skip(first)
            .step_by(batches)
            .take(PLACES)
            .cloned()
            .collect();
        let names = name_locations(&mut namer, &batch);
        named.extend(functions(&names).into_iter().map(|name| name.map(str::to_owned)));
        scattered.extend(batch);
        if namer.stats().symbol_table_bytes > 0 {
            whole_from.get_or_insert(first);
        }
    }
    let whole_from = whole_from.expect("what is needed often is read once");
    assert!((4..batches / 2).contains(&whole_from), "{whole_from} of {batches}");
    assert_same(&named, &name_locations(&mut whole(), &scattered), &scattered);
}
