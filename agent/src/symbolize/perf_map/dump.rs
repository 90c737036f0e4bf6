//! Jitdump, the binary form: records in which a compiler says where it put which function, with the code itself and
//! the lines that it was made of.
//!
//! All numbers are those of the machine that wrote it. Of a record its head and its name are read, never its code.

use super::text::{MAX_NAME_BYTES, MapText, Named, read_whole};

/// What a file begins with: "JiTD" in the order of a little-endian machine.
const MAGIC: [u8; 4] = 0x4a69_5444_u32.to_le_bytes();
/// Version, bytes of the head, machine, padding, process, and time stamp stand behind it.
pub(super) const HEAD_BYTES: usize = 40;
const VERSION: u32 = 1;

/// Kind, bytes of the whole record, time stamp.
const RECORD_BYTES: usize = 16;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const LINES: u32 = 2;
/// Behind the head of a loaded function, before its name: process, thread, address, where the code is, its bytes,
/// index.
const LOAD_BYTES: usize = 40;
/// The same of a moved one, with the place before and the place after.
const MOVE_BYTES: usize = 48;
/// Of lines: where the code is that they are of, and how many there are.
const LINES_BYTES: usize = 16;
/// One line: address, line, discriminator; the file's name follows.
const LINE_BYTES: usize = 16;
/// Lines of one function that are looked through, and bytes of them.
const MAX_LINES: u64 = 65_536;
const MAX_LINES_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 4096;

/// A file's name that says "as before".
const SAME_FILE: &[u8] = b"\xff";

/// Where the first record stands, where a file is one of this form.
pub(super) fn first_record(head: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let is_dump = head.len() >= HEAD_BYTES && head.starts_with(&MAGIC) && word(4)? == VERSION;
    let bytes = word(8)?;
    (is_dump && bytes as usize >= HEAD_BYTES).then_some(u64::from(bytes))
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// A function is there now.
    Loaded {
        start: u64,
        end: u64,
    },
    /// One that was elsewhere is there now.
    Moved {
        from: u64,
        start: u64,
        end: u64,
    },
    /// Lines of the next function with code there.
    Lines {
        of: u64,
    },
    Nothing,
}

/// The record at an offset, and where the next one is. None where it is not whole yet, or is no record.
pub(super) fn record(text: MapText<'_>, at: u64) -> Option<(Says, u64)> {
    let mut bytes = [0; RECORD_BYTES + MOVE_BYTES];
    let got = read_whole(text, at, &mut bytes)?;
    let head = &bytes[..got];
    let kind = number(head, 0, 4)?;
    let length = number(head, 4, 4)?;
    let next = at.checked_add(length)?;
    if (length as usize) < RECORD_BYTES || next > text.bytes {
        return None;
    }
    let head = &head[..got.min(length as usize)];
    let body = |at: usize| number(head, RECORD_BYTES + at, 8);
    let range = |start: u64, bytes: u64| {
        let end = start
            .checked_add(bytes.min(u64::from(u32::MAX)))
            .filter(|end| *end > start)?;
        Some((start, end))
    };
    let says = match kind as u32 {
        LOAD => body(16).zip(body(24)).and_then(|(start, bytes)| range(start, bytes)),
        MOVE => {
            let range = body(24).zip(body(32)).and_then(|(start, bytes)| range(start, bytes));
            let moved = body(16).zip(range);
            let says = moved.map(|(from, (start, end))| Says::Moved { from, start, end });
            return Some((says.unwrap_or(Says::Nothing), next));
        }
        LINES => return Some((body(0).map_or(Says::Nothing, |of| Says::Lines { of }), next)),
        _ => None,
    };
    let says = says.map_or(Says::Nothing, |(start, end)| Says::Loaded { start, end });
    Some((says, next))
}

/// What the record of a function says of a place so many bytes behind its begin. `lines` is where its lines stand.
pub(super) fn named(text: MapText<'_>, at: u64, inside: u64, lines: Option<u64>) -> Option<Named> {
    let (Says::Loaded { start, end }, next) = record(text, at)? else {
        return None;
    };
    let address = start.checked_add(inside).filter(|address| *address < end)?;
    let mut bytes = [0; MAX_NAME_BYTES + 1];
    let name_at = at + (RECORD_BYTES + LOAD_BYTES) as u64;
    let room = usize::try_from(next.checked_sub(name_at)?).ok()?.min(bytes.len());
    let got = read_whole(text, name_at, &mut bytes[..room])?;
    let name = bytes[..got].split(|byte| *byte == 0).next()?;
    if name.is_empty() {
        return None;
    }
    let name = String::from_utf8_lossy(name);
    let (file, line) = lines
        .and_then(|lines| line_at(text, lines, start, address))
        .unwrap_or_default();
    Some(Named {
        name: name[..name.floor_char_boundary(MAX_NAME_BYTES)].into(),
        file: (!file.is_empty()).then_some(file),
        line,
    })
}

struct Line {
    begin: u64,
    file: Vec<u8>,
    number: u32,
}

/// The file and the line of an address: those of the last line that begins at or before it.
fn line_at(text: MapText<'_>, at: u64, start: u64, address: u64) -> Option<(Box<str>, u32)> {
    let (Says::Lines { of }, next) = record(text, at)? else {
        return None;
    };
    let mut pieces = Pieces::new(text, at + RECORD_BYTES as u64, next);
    let count = number(pieces.need(LINES_BYTES)?, 8, 8)?.min(MAX_LINES);
    pieces.pass(LINES_BYTES);
    let mut file = Vec::new();
    let mut best: Option<Line> = None;
    for _ in 0..count {
        let Some(line) = pieces.need(LINE_BYTES) else { break };
        let begin = number(line, 0, 8)?;
        let number = number(line, 8, 4)? as u32;
        pieces.pass(LINE_BYTES);
        let Some(name) = pieces.text() else { break };
        if name != SAME_FILE {
            file = name;
        }
        let is_before = begin >= start.min(of) && begin <= address;
        if is_before && best.as_ref().is_none_or(|known| known.begin <= begin) {
            best = Some(Line {
                begin,
                file: file.clone(),
                number,
            });
        }
    }
    let best = best?;
    let file = String::from_utf8_lossy(&best.file);
    Some((file[..file.floor_char_boundary(MAX_NAME_BYTES)].into(), best.number))
}

/// A record's bytes, read piece by piece.
struct Pieces<'a> {
    text: MapText<'a>,
    at: u64,
    end: u64,
    bytes: Vec<u8>,
    /// What was passed of them.
    passed: usize,
    left: usize,
}

impl<'a> Pieces<'a> {
    fn new(text: MapText<'a>, at: u64, end: u64) -> Self {
        Self {
            text,
            at,
            end,
            bytes: Vec::new(),
            passed: 0,
            left: MAX_LINES_BYTES,
        }
    }

    /// The next so many bytes, or more; none where there are fewer.
    fn need(&mut self, count: usize) -> Option<&[u8]> {
        while self.bytes.len() - self.passed < count {
            self.more()?;
        }
        Some(&self.bytes[self.passed..])
    }

    fn more(&mut self) -> Option<()> {
        let room = usize::try_from(self.end.checked_sub(self.at)?).ok()?;
        let mut chunk = [0; CHUNK_BYTES];
        let room = room.min(CHUNK_BYTES).min(self.left);
        let got = read_whole(self.text, self.at, &mut chunk[..room])?;
        self.at += got as u64;
        self.left -= got;
        self.bytes.drain(..std::mem::take(&mut self.passed));
        self.bytes.extend(&chunk[..got]);
        Some(())
    }

    fn pass(&mut self, count: usize) {
        self.passed += count;
    }

    /// A text that ends with a zero, which is passed; what is longer than any name is cut.
    fn text(&mut self) -> Option<Vec<u8>> {
        let mut length = 0;
        while *self.need(length + 1)?.get(length)? != 0 {
            length += 1;
        }
        let text = self.bytes[self.passed..self.passed + length.min(MAX_NAME_BYTES)].to_vec();
        self.pass(length + 1);
        Some(text)
    }
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..width].copy_from_slice(bytes.get(at..at + width)?);
    Some(u64::from_le_bytes(word))
}
