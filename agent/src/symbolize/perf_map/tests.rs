//! Maps that grow, are written anew, and are larger than there is room for.

use super::*;
use std::cell::Cell;

/// A map's file in memory.
#[derive(Default)]
struct Text {
    text: String,
    inode: u64,
    read_bytes: Cell<u64>,
}

impl Text {
    fn with<T>(&self, act: impl FnOnce(MapText<'_>) -> T) -> T {
        let read = |offset: u64, into: &mut [u8]| {
            let rest = self.text.as_bytes().get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            self.read_bytes.set(self.read_bytes.get() + count as u64);
            Some(count)
        };
        act(MapText {
            read: &read,
            bytes: self.text.len() as u64,
            inode: self.inode,
        })
    }

    fn refresh(&self, map: &mut PerfMap, room: usize) {
        self.with(|text| map.refresh(text, room, &|| {}));
    }

    fn find(&self, map: &PerfMap, address: u64) -> Option<String> {
        let (names, _) = self.with(|text| map.names(text, &[address], &|| {}));
        names[0].as_deref().map(str::to_owned)
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
