//! Large files: their symbols are looked for around what is asked for, and read as a whole where that happens often. Both say the same.

use stakeout_agent::metadata::Metadata;
use stakeout_agent::process::{ModuleTable, Place, Source, Table};

use super::{functions, key_of, name_places, without_lines};

/// Distance of the addresses that are named: most functions are longer, and many lie between two of them.
const STEP_BYTES: u64 = 1500;
/// Places that are named at a time, as an interval of samples brings them.
const PLACES: usize = 64;

/// Places all over this very program, which has tens of thousands of functions.
fn own_places() -> Vec<(Place, Option<Source>)> {
    let program = std::env::current_exe().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let code = maps
        .lines()
        .find(|line| line.contains(" r-xp ") && line.ends_with(program.to_str().unwrap()));
    let (begin, rest) = code.unwrap().split_once('-').unwrap();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (begin, end) = (hex(begin), hex(rest.split_once(' ').unwrap().0));
    let key = key_of(std::process::id());
    let mut table = Table::new(16, ModuleTable::new(64, 64), Box::new(|_| Metadata::default()));
    table.on_exec(key, true, 1);
    let addresses = (begin..end).step_by(STEP_BYTES as usize);
    addresses
        .map(|address| {
            let place = table.place(key, address, true, 1);
            (place, table.source(key, place.source, 1))
        })
        .collect()
}

#[test]
fn what_is_looked_for_around_some_addresses_is_what_the_whole_table_says() {
    let places = own_places();
    let mut namer = without_lines();
    // From some batch on all symbols are there, and what came before is remembered.
    let mut named = Vec::new();
    let mut whole_from = None;
    for batch in places.chunks(PLACES) {
        let names = name_places(&mut namer, batch);
        named.extend(functions(&names).into_iter().map(|name| name.map(str::to_owned)));
        if namer.stats().symbol_table_bytes > 0 {
            whole_from.get_or_insert(named.len());
        }
    }
    let glanced = whole_from.expect("what is needed often is read once") - PLACES;
    assert!(
        glanced >= 4 * PLACES,
        "{glanced} places were named without the whole table"
    );
    // The whole table first, as above, and then what was named without it.
    let mut later = without_lines();
    for batch in places[glanced..].chunks(PLACES) {
        name_places(&mut later, batch);
    }
    assert!(later.stats().symbol_table_bytes > 0);
    let again = name_places(&mut later, &places[..glanced]);
    let again = functions(&again);
    let there = again.iter().flatten().count();
    assert!(there * 10 > glanced * 9, "{there} of {glanced} have names");
    for ((one, other), (place, _)) in named.iter().zip(&again).zip(&places) {
        assert_eq!(one.as_deref(), *other, "{place:?}");
    }
}
