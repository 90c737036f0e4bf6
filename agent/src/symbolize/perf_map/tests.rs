//! Maps that grow, are written anew, and are larger than there is room for.

use super::*;
use std::cell::Cell;

/// A map's file in memory.
#[derive(Default)]
struct Text {
    text: String,
    /// Of a jitdump, instead.
    dump: Vec<u8>,
    inode: u64,
    read_bytes: Cell<u64>,
}

impl Text {
    fn with<T>(&self, act: impl FnOnce(MapText<'_>) -> T) -> T {
        let bytes = if self.dump.is_empty() {
            self.text.as_bytes()
        } else {
            &self.dump
        };
        let read = |offset: u64, into: &mut [u8]| {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            self.read_bytes.set(self.read_bytes.get() + count as u64);
            Some(count)
        };
        act(MapText {
            read: &read,
            bytes: bytes.len() as u64,
            inode: self.inode,
        })
    }

    fn refresh(&self, map: &mut PerfMap, room: usize) {
        self.with(|text| map.refresh(text, room, &|| {}));
    }

    fn find(&self, map: &PerfMap, address: u64) -> Option<String> {
        let (names, _) = self.with(|text| map.names(text, &[address], &|| {}));
        names[0].as_ref().map(|named| named.name.to_string())
    }
}

const MANY: usize = usize::MAX;

#[test]
fn later_lines_win_and_growth_is_followed() {
    let (mut file, mut map) = (Text::default(), PerfMap::default());
    file.text += "1000 100 LazyCompile:~old a.js:1\n0x1100 20 other\nnonsense\n2000 0 empty\n30";
    file.refresh(&mut map, MANY);
    let find = |file: &Text, map: &PerfMap, address| file.find(map, address);
    assert_eq!(find(&file, &map, 0x1050).as_deref(), Some("LazyCompile:~old a.js:1"));
    assert_eq!(find(&file, &map, 0x1100).as_deref(), Some("other"));
    for nothing in [0x1120, 0x2000, 0x3000] {
        assert_eq!(
            find(&file, &map, nothing),
            None,
            "{nothing:x}: the last line is not whole yet"
        );
    }
    file.text += "00 10 late\n1080 10 new\n";
    file.refresh(&mut map, MANY);
    assert_eq!(find(&file, &map, 0x3005).as_deref(), Some("late"));
    assert_eq!(find(&file, &map, 0x1085).as_deref(), Some("new"));
    assert_eq!(find(&file, &map, 0x1050), None, "what it covered is gone");
    map.index.check();
    assert_eq!(find(&file, &map, 0x1050), None);
}

#[test]
fn a_map_written_anew_replaces_the_old_one() {
    let (mut file, mut map) = (Text::default(), PerfMap::default());
    file.text = "1000 100 old\n2000 100 other\n".into();
    file.refresh(&mut map, MANY);
    assert_eq!(file.find(&map, 0x2000).as_deref(), Some("other"));
    file.text = "1000 100 new\n3000 100 longer than before, so that length tells nothing\n".into();
    file.refresh(&mut map, MANY);
    assert_eq!(
        (file.find(&map, 0x1000).as_deref(), file.find(&map, 0x2000)),
        (Some("new"), None)
    );
    let another = Text {
        text: "1000 100 another\n".into(),
        inode: 2,
        ..Text::default()
    };
    another.refresh(&mut map, MANY);
    assert_eq!(
        (another.find(&map, 0x1000).as_deref(), another.find(&map, 0x3000)),
        (Some("another"), None)
    );
    // Written over between two looks: what a line says now is about something else.
    let other_text = Text {
        text: "9000 100 moved\n".into(),
        inode: 2,
        ..Text::default()
    };
    assert_eq!(other_text.find(&map, 0x1000), None);
}

/// `count` functions of 16 bytes from 0x1000 on.
fn functions(count: u64) -> String {
    (0..count)
        .map(|i| format!("{:x} 10 function_{i}\n", 0x1000 + i * 16))
        .collect()
}

#[test]
fn three_hundred_thousand_functions_take_sixteen_bytes_each_and_are_read_once() {
    const COUNT: u64 = 300_000;
    let (file, mut map) = (
        Text {
            text: functions(COUNT),
            ..Text::default()
        },
        PerfMap::default(),
    );
    file.refresh(&mut map, MANY);
    for i in [0, 1, COUNT / 2, COUNT - 1] {
        assert_eq!(file.find(&map, 0x1000 + i * 16 + 7), Some(format!("function_{i}")));
    }
    assert!(map.bytes() <= COUNT * 16 * 5 / 4, "{} bytes", map.bytes());
    file.read_bytes.set(0);
    file.refresh(&mut map, MANY);
    assert!(file.read_bytes.get() <= KNOWN_BYTES as u64, "nothing was appended");
}

#[test]
fn what_finds_no_room_is_looked_for_and_newer_lines_win_there_too() {
    let mut file = Text {
        text: functions(10_000),
        ..Text::default()
    };
    let mut map = PerfMap::default();
    file.refresh(&mut map, 1000);
    file.text += "1000 8 newer\n";
    file.refresh(&mut map, 1000);
    assert!(map.bytes() <= 1000 * ENTRY_BYTES * 2);
    assert_eq!(file.find(&map, 0x1000 + 9_999 * 16).as_deref(), Some("function_9999"));
    assert_eq!(file.find(&map, 0x1000 + 999 * 16).as_deref(), Some("function_999"));
    assert_eq!(file.find(&map, 0x1000).as_deref(), Some("newer"));
    let (_, reached) = file.with(|text| map.names(text, &[0x1000], &|| {}));
    assert_eq!((reached.searched, reached.left_out), (true, false));
}

#[test]
fn a_line_without_end_is_cut_and_names_no_other_function() {
    let (mut file, mut map) = (Text::default(), PerfMap::default());
    file.text = format!(
        "1000 10 {} 2000 10 inside\n3000 10 after\n",
        "x".repeat(3 * CHUNK_BYTES)
    );
    file.refresh(&mut map, MANY);
    assert_eq!(file.find(&map, 0x1000).map(|name| name.len()), Some(MAX_NAME_BYTES));
    assert_eq!(
        (file.find(&map, 0x2000), file.find(&map, 0x3000).as_deref()),
        (None, Some("after"))
    );
}

#[test]
fn what_holds_of_every_map() {
    PerfMap::check(
        b"1000 100 a\n10",
        b"80 10 b\n1000 10 c\n1090 ffffffffffffffff d\nfffffffffffffff0 f e\n",
    );
    PerfMap::check(b"", b"");
}

/// A jitdump as a compiler writes it, and what it says.
fn dump() -> Text {
    let mut text = Text::default();
    for number in [0x4a69_5444, 1, 40, 62, 0, 7, 0, 0, 0, 0_u32] {
        text.dump.extend(number.to_le_bytes());
    }
    text
}

fn put(text: &mut Text, kind: u32, words: &[u64], rest: &[u8]) {
    let bytes = 16 + 8 * words.len() + rest.len();
    text.dump.extend(kind.to_le_bytes());
    text.dump.extend((bytes as u32).to_le_bytes());
    text.dump.extend([0; 8]);
    text.dump.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    text.dump.extend(rest);
}

fn load(text: &mut Text, start: u64, name: &str, code: usize) {
    let rest = [name.as_bytes(), &vec![0; code + 1]].concat();
    put(text, 0, &[0, start, start, code as u64, 0], &rest);
}

fn all_named(text: &Text, map: &PerfMap, address: u64) -> Option<(String, Option<String>, u32)> {
    let (mut names, _) = text.with(|text| map.names(text, &[address], &|| {}));
    let named = names.remove(0)?;
    Some((named.name.into(), named.file.map(Into::into), named.line))
}

#[test]
fn a_jitdump_names_functions_by_file_and_line_also_where_they_were_moved() {
    let (mut file, mut map) = (dump(), PerfMap::default());
    let line =
        |address: u64, line: u64, file: &[u8]| [&address.to_le_bytes(), &line.to_le_bytes(), file, &[0][..]].concat();
    let lines = [
        line(0x1000, 3, b"a.src"),
        line(0x1010, 4, b"\xff"),
        line(0x1020, 9, b"b.src"),
    ];
    put(&mut file, 2, &[0x1000, 3], &lines.concat());
    load(&mut file, 0x1000, "first", 0x100);
    load(&mut file, 0x2000, "second", 0x10);
    // What the code is unwound by, and a record of a kind that is not known.
    put(&mut file, 4, &[1, 2, 3], b"unwinding");
    put(&mut file, 77, &[], b"");
    file.refresh(&mut map, MANY);
    let a = |line| Some(("first".to_owned(), Some("a.src".to_owned()), line));
    let find = |file: &Text, map: &PerfMap, address| all_named(file, map, address);
    assert_eq!(find(&file, &map, 0x100f), a(3));
    assert_eq!(find(&file, &map, 0x1010), a(4));
    let b = Some(("first".to_owned(), Some("b.src".to_owned()), 9));
    assert_eq!(find(&file, &map, 0x10ff), b);
    assert_eq!(find(&file, &map, 0x2001), Some(("second".to_owned(), None, 0)));
    assert_eq!(find(&file, &map, 0x2010), None);
    // The last record is half-written.
    put(&mut file, 1, &[0, 0x1000, 0x1000, 0x5000, 0x100, 0], b"");
    let whole = file.dump.clone();
    file.dump.truncate(whole.len() - 1);
    file.refresh(&mut map, MANY);
    assert_eq!(find(&file, &map, 0x5010), None);
    file.dump = whole;
    file.refresh(&mut map, MANY);
    assert_eq!(find(&file, &map, 0x5010), a(4));
    assert_eq!(find(&file, &map, 0x50ff), b);
    // Another one in its place.
    file.dump[28] = 1;
    load(&mut file, 0x1000, "newer", 0x100);
    file.refresh(&mut map, MANY);
    assert_eq!(find(&file, &map, 0x1000), Some(("newer".to_owned(), None, 0)));
}

#[test]
fn what_a_jitdump_has_no_room_for_is_looked_for() {
    let (mut file, mut map) = (dump(), PerfMap::default());
    for number in 0..100 {
        load(&mut file, 0x1000 * (number + 1), &format!("f{number}"), 0x10);
    }
    file.refresh(&mut map, 10);
    assert_eq!(map.unindexed_from.map(|from| from > 40), Some(true));
    for number in [0, 9, 10, 99] {
        let name = file.find(&map, 0x1000 * (number + 1) + 1);
        assert_eq!(name, Some(format!("f{number}")));
    }
}

#[test]
fn nonsense_in_a_jitdump_ends_it() {
    let (mut file, mut map) = (dump(), PerfMap::default());
    load(&mut file, 0x1000, "first", 0x10);
    let end = file.dump.len();
    // A record that is shorter than its own head would be read for ever.
    file.dump.extend([0; 64]);
    file.refresh(&mut map, MANY);
    assert_eq!(file.find(&map, 0x1000).as_deref(), Some("first"));
    assert_eq!(map.read_bytes, end as u64);
    // Without a name, and without code.
    let (mut file, mut map) = (dump(), PerfMap::default());
    load(&mut file, 0x1000, "", 0x10);
    load(&mut file, 0x2000, "empty", 0);
    load(&mut file, u64::MAX - 3, "beyond", 0x10);
    file.refresh(&mut map, MANY);
    for address in [0x1000, 0x2000, u64::MAX - 2] {
        assert_eq!(file.find(&map, address), None);
    }
}
