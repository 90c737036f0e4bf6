//! Perf maps: text files in which run-time compilers say where they put which function. Jitdumps say the same, and
//! lines, in a binary form.
//!
//! In: a file that grows, or is written anew. Out: names of addresses. Of each line its range is kept, 16 bytes, in
//! the order of addresses; names stay in the file. Lines for which there is no room are looked through for the
//! addresses that are asked for. What a jitdump has in its records is here what a map has in its lines.

mod dump;
mod index;
mod text;

use std::collections::HashMap;

use dump::Says;

pub(super) use index::ENTRY_BYTES;
use index::Index;
use text::{MAX_NAME_BYTES, read_whole};
pub(super) use text::{MapText, Named};

const CHUNK_BYTES: usize = 64 * 1024;
/// What is compared to see whether a file only grew.
const KNOWN_BYTES: usize = 256;
/// What is read of one map at a time; the rest is read the next time.
const MAX_READ_BYTES: u64 = 64 << 20;
/// Of lines without room, what is looked through at a time: the newest, which count.
const MAX_SEARCHED_BYTES: u64 = 16 << 20;
/// Records of a jitdump that are read at a time, and of those without room looked through: each takes a call of the
/// kernel.
const MAX_RECORDS: usize = 200_000;
const REST_RECORDS: usize = 1000;
/// Functions of a jitdump that were moved, or have lines.
const MAX_DETAILS: usize = 65_536;
/// A name is read with so much of its line.
const LINE_BYTES: usize = MAX_NAME_BYTES + 64;

/// Of a jitdump's functions what does not stand in their own records, by where those are.
#[derive(Debug, Default)]
struct Details {
    /// Lines of the next function that is loaded: where its code is, and where they stand.
    next_lines: Option<(u64, u64)>,
    /// Where lines stand.
    lines: HashMap<u64, u64>,
    /// Of one that was moved: the record that loaded it.
    loaded: HashMap<u64, u64>,
}

/// One process's map, read as far as it has grown.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    index: Index,
    /// Of a jitdump alone.
    details: Option<Box<Details>>,
    read_bytes: u64,
    /// Bytes of what was read, to know the file again, and where they begin.
    known: (u64, Vec<u8>),
    /// What was read ends inside a line that is longer than any is read.
    in_long_line: bool,
    /// Where the first line lies for which there was no room.
    unindexed_from: Option<u64>,
    inode: u64,
    pub(super) used_ns: u64,
}

/// What a look at a map has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Lines were looked through, since there is no room for all.
    pub(super) searched: bool,
    /// Nor was there time to look through all of them.
    pub(super) left_out: bool,
}

impl PerfMap {
    /// Memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        let details = self
            .details
            .as_ref()
            .map_or(0, |details| details.lines.capacity() + details.loaded.capacity());
        self.index.bytes() + details as u64 * size_of::<(u64, u64)>() as u64
    }

    /// Reads what was appended since, with room for so many lines in all. Some compilers write their whole map anew,
    /// into the same file or another. `rest` is called between pieces.
    pub(super) fn refresh(&mut self, text: MapText<'_>, room: usize, rest: &dyn Fn()) {
        if text.inode != self.inode || text.bytes < self.read_bytes || !self.is_same_up_to_here(text) {
            *self = Self {
                inode: text.inode,
                used_ns: self.used_ns,
                ..Self::default()
            };
        }
        // There may be room again.
        self.unindexed_from = None;
        if self.read_bytes == 0 {
            self.begin_dump(text);
        }
        if self.details.is_some() {
            return self.read_records(text, room, rest);
        }
        let end = text.bytes.min(self.read_bytes.saturating_add(MAX_READ_BYTES));
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.read_bytes < end && self.unindexed_from.is_none() {
            let Some(got) = read_whole(text, self.read_bytes, &mut chunk) else {
                return;
            };
            if !self.take(&chunk[..got], got == chunk.len(), room) {
                return;
            }
            rest();
        }
    }

    /// Takes the whole lines of what was appended; false where there is none. The last line may be half-written: it
    /// waits for the next time, unless it could never be whole, since there is `no_more_room` for it.
    fn take(&mut self, appended: &[u8], no_more_room: bool, room: usize) -> bool {
        let whole = match appended.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if no_more_room => appended.len(),
            None => return false,
        };
        let mut at = self.read_bytes;
        for line in appended[..whole].split_inclusive(|byte| *byte == b'\n') {
            let is_continued = std::mem::replace(&mut self.in_long_line, !line.ends_with(b"\n"));
            if !is_continued
                && let Some((start, end, _)) = parse(line)
                && !self.index.insert(start, end, at, room)
            {
                self.unindexed_from = Some(at);
                break;
            }
            at += line.len() as u64;
        }
        let taken = (at - self.read_bytes) as usize;
        self.read_bytes = at;
        if taken > 0 {
            let end = appended[taken.saturating_sub(KNOWN_BYTES)..taken].to_vec();
            self.known = (at - end.len() as u64, end);
        }
        taken > 0
    }

    fn is_same_up_to_here(&self, text: MapText<'_>) -> bool {
        let (at, known) = &self.known;
        let mut bytes = vec![0; known.len()];
        known.is_empty() || (read_whole(text, *at, &mut bytes) == Some(bytes.len()) && bytes == *known)
    }

    /// Begins to read a jitdump, if it is one.
    fn begin_dump(&mut self, text: MapText<'_>) {
        let mut head = vec![0; dump::HEAD_BYTES];
        if read_whole(text, 0, &mut head) == Some(head.len())
            && let Some(first) = dump::first_record(&head)
        {
            self.details = Some(Box::default());
            self.read_bytes = first;
            // With its process, and when it was begun.
            self.known = (0, head);
        }
    }

    /// Reads what was appended to a jitdump.
    fn read_records(&mut self, text: MapText<'_>, room: usize, rest: &dyn Fn()) {
        for count in 1..=MAX_RECORDS {
            let at = self.read_bytes;
            let Some((says, next)) = dump::record(text, at) else {
                return;
            };
            if !self.take_record(says, at, room) {
                self.unindexed_from = Some(at);
                return;
            }
            self.read_bytes = next;
            if count % REST_RECORDS == 0 {
                rest();
            }
        }
    }

    /// False where there is no room.
    fn take_record(&mut self, says: Says, at: u64, room: usize) -> bool {
        let Self { index, details, .. } = self;
        let Some(details) = details else { return false };
        let has_room = |of: &HashMap<u64, u64>| of.len() < MAX_DETAILS;
        match says {
            Says::Lines { of } => details.next_lines = Some((of, at)),
            Says::Loaded { start, end } => {
                let lines = details.next_lines.take().filter(|(of, _)| *of == start);
                if let Some((_, lines)) = lines.filter(|_| has_room(&details.lines)) {
                    details.lines.insert(at, lines);
                }
                return index.insert(start, end, at, room);
            }
            Says::Moved { from, start, end } => {
                let Some((before, _)) = index.find(from) else {
                    return true;
                };
                let loaded = details.loaded.get(&before).copied().unwrap_or(before);
                if has_room(&details.loaded) {
                    details.loaded.insert(at, loaded);
                    return index.insert(start, end, at, room);
                }
            }
            Says::Nothing => {}
        }
        true
    }

    /// What a record says of an address in the range that the index has it for.
    fn recorded(&self, text: MapText<'_>, (at, inside): (u64, u64)) -> Option<Named> {
        let details = self.details.as_ref()?;
        let loaded = details.loaded.get(&at).copied().unwrap_or(at);
        dump::named(text, loaded, inside, details.lines.get(&loaded).copied())
    }

    /// Looks through the records that found no room, from the oldest on.
    fn search_records(
        &self,
        text: MapText<'_>,
        addresses: &[u64],
        found: &mut [Option<(u64, u64)>],
        rest: &dyn Fn(),
    ) -> Reached {
        let Some(mut at) = self.unindexed_from.filter(|_| !addresses.is_empty()) else {
            return Reached::default();
        };
        for count in 1..=MAX_RECORDS {
            let Some((says, next)) = dump::record(text, at) else {
                return Reached {
                    searched: true,
                    left_out: false,
                };
            };
            if let Says::Loaded { start, end } = says {
                for (address, found) in addresses.iter().zip(found.iter_mut()) {
                    if (start..end).contains(address) {
                        *found = Some((at, address - start));
                    }
                }
            }
            at = next;
            if count % REST_RECORDS == 0 {
                rest();
            }
        }
        Reached {
            searched: true,
            left_out: true,
        }
    }

    /// The names of addresses, in the same order.
    pub(super) fn names(&self, text: MapText<'_>, addresses: &[u64], rest: &dyn Fn()) -> (Vec<Option<Named>>, Reached) {
        let mut found: Vec<Option<(u64, u64)>> = addresses.iter().map(|address| self.index.find(*address)).collect();
        if self.details.is_some() {
            let reached = self.search_records(text, addresses, &mut found, rest);
            let names = found.into_iter().map(|found| self.recorded(text, found?)).collect();
            return (names, reached);
        }
        let mut lines: Vec<Option<u64>> = found.into_iter().map(|found| Some(found?.0)).collect();
        let reached = self.search(text, addresses, &mut lines, rest);
        let named = lines.into_iter().zip(addresses);
        let names = named.map(|(line, address)| name_at(text, line?, *address)).collect();
        (names, reached)
    }

    /// Looks through the lines that found no room. What they say of an address is newer than what is known of it.
    fn search(&self, text: MapText<'_>, addresses: &[u64], lines: &mut [Option<u64>], rest: &dyn Fn()) -> Reached {
        let Some(from) = self.unindexed_from.filter(|_| !addresses.is_empty()) else {
            return Reached::default();
        };
        let begin = from.max(text.bytes.saturating_sub(MAX_SEARCHED_BYTES));
        let mut wanted: Vec<(u64, usize)> = addresses.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        let mut found = |line: &[u8], at: u64| {
            let Some((start, end, _)) = parse(line) else { return };
            let first = wanted.partition_point(|(address, _)| *address < start);
            for (_, index) in wanted[first..].iter().take_while(|(address, _)| *address < end) {
                lines[*index] = Some(at);
            }
        };
        let mut chunk = vec![0; CHUNK_BYTES];
        // Where it begins in the middle of a line, that one is left out.
        let (mut at, mut skip) = (begin, begin > from);
        while at < text.bytes {
            let Some(got) = read_whole(text, at, &mut chunk) else {
                break;
            };
            let piece = &chunk[..got];
            let whole = match piece.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => end + 1,
                None if got == chunk.len() => got,
                None => break,
            };
            let mut line_at = at;
            for line in piece[..whole].split_inclusive(|byte| *byte == b'\n') {
                if !std::mem::replace(&mut skip, !line.ends_with(b"\n")) {
                    found(line, line_at);
                }
                line_at += line.len() as u64;
            }
            at += whole as u64;
            rest();
        }
        Reached {
            searched: true,
            left_out: begin > from,
        }
    }
}

/// `START SIZE NAME`, both numbers in hex: start, end, name.
fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let start = hex(fields.next()?)?;
    let bytes = hex(fields.next()?)?;
    let name = fields.next()?.trim_ascii();
    // No function has four gigabytes.
    let end = start
        .checked_add(bytes.min(u64::from(u32::MAX)))
        .filter(|end| *end > start)?;
    (!name.is_empty()).then_some((start, end, name))
}

fn hex(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let value = |value: u64, digit: &u8| Some(value << 4 | u64::from(char::from(*digit).to_digit(16)?));
    digits.iter().try_fold(0, value)
}

/// The name that a line has for an address, if it is about it: the file may have been written over.
fn name_at(text: MapText<'_>, line: u64, address: u64) -> Option<Named> {
    let mut buffer = [0; LINE_BYTES];
    let got = read_whole(text, line, &mut buffer)?;
    let line = buffer[..got].split(|byte| *byte == b'\n').next()?;
    let (start, end, name) = parse(line)?;
    if !(start..end).contains(&address) {
        return None;
    }
    let name = String::from_utf8_lossy(name);
    Some(Named {
        name: name[..name.floor_char_boundary(MAX_NAME_BYTES)].into(),
        file: None,
        line: 0,
    })
}

#[cfg(any(test, fuzzing))]
impl PerfMap {
    /// Reads a map that grew twice, with room for all of it and for hardly any, and holds what must hold.
    pub(super) fn check(first: &[u8], second: &[u8]) {
        let all = [first, second].concat();
        let read = |of: usize| {
            let all = &all[..of];
            move |offset: u64, into: &mut [u8]| {
                let rest = usize::try_from(offset)
                    .ok()
                    .and_then(|at| all.get(at..))
                    .unwrap_or_default();
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                Some(count)
            }
        };
        let (half, whole) = (read(first.len()), read(all.len()));
        let text = |read, bytes: usize| MapText {
            read,
            bytes: bytes as u64,
            inode: 1,
        };
        let at_first = text(&half, first.len());
        let at_last = text(&whole, all.len());
        let (mut map, mut small) = (Self::default(), Self::default());
        for text in [at_first, at_last] {
            map.refresh(text, usize::MAX, &|| {});
            small.refresh(text, 3, &|| {});
        }
        let edges = map.index.check();
        assert!(edges.len() <= 2 * (all.len() / "0 1 a".len() + 1));
        assert!(map.details.is_some() || small.index.bytes() <= 8 * ENTRY_BYTES);
        let (names, reached) = map.names(at_last, &edges, &|| {});
        assert_eq!(reached, Reached::default());
        let is_dump = map.details.is_some();
        assert!(is_dump || names.iter().all(Option::is_some), "each range has a name");
        for name in names.iter().flatten() {
            assert!((1..=MAX_NAME_BYTES).contains(&name.name.len()));
        }
        if is_dump {
            return;
        }
        // What it has no room for is found all the same, but for what a newer line has covered in part.
        let (searched, _) = small.names(at_last, &edges, &|| {});
        assert!(names.iter().zip(&searched).all(|(name, other)| name == other));
    }
}

#[cfg(test)]
mod tests;
