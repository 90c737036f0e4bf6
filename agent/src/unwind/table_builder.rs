//! Functions of several sources to one table: sorted, each address with the best source's rule.

use std::collections::HashMap;
use std::ops::Range;

use super::error::TableError;
use super::rule::{CallerFp, CallerPc, Cfa, Rule, Unsupported};
use super::table::{FileTable, Full, Stats, Writer};
use crate::elf::Segment;
use crate::elf::reader::Reader;

/// Functions per file.
const MAX_FUNCTIONS: usize = 1 << 21;
/// What functions and their rows may take while a table is made; up to as much again while sources are joined. A file
/// that needs more is compiled window by window.
pub(super) const ROOM_BYTES: usize = 2 << 20;
/// Windows of one file, each of which costs another reading of its descriptions.
const MAX_PASSES: usize = 32;
/// Of descriptions, over all windows. A compiler's library has some MiB, and is read in parts.
const MAX_READ_BYTES: u64 = 256 << 20;
/// A gap below this is padding between functions, not code.
const PADDING_BYTES: u64 = 16;
/// Distinct rules, "nothing known" included.
const MAX_RULES: usize = 65_535;
const RECENT: usize = 256;
/// Pieces that are looked at to see whether a function is settled; what is not seen so is sorted out later.
const MAX_PIECES: usize = 64;

/// Gives each distinct rule its number.
#[derive(Debug)]
struct Rules {
    rules: Vec<Rule>,
    numbers: HashMap<Rule, u16>,
    /// Most rules were met shortly before: a look here costs less than one in the map.
    recent: Vec<(Rule, u16)>,
}

impl Rules {
    fn new() -> Self {
        Self {
            rules: vec![Rule::UNKNOWN],
            numbers: HashMap::from([(Rule::UNKNOWN, 0)]),
            recent: vec![(Rule::UNKNOWN, 0); RECENT],
        }
    }

    fn number(&mut self, rule: Rule) -> Option<u16> {
        let spread = rule.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let slot = usize::from(spread[0]) % RECENT;
        if self.recent[slot].0 == rule {
            return Some(self.recent[slot].1);
        }
        let number = match self.numbers.get(&rule) {
            Some(number) => *number,
            None if self.rules.len() >= MAX_RULES => return None,
            None => {
                let number = u16::try_from(self.rules.len()).ok()?;
                self.rules.push(rule);
                self.numbers.insert(rule, number);
                number
            }
        };
        self.recent[slot] = (rule, number);
        Some(number)
    }
}

/// A range of addresses, and where its rows stand in [`TableBuilder::stream`].
#[derive(Debug, Clone, Copy)]
struct Piece {
    begin: u64,
    bytes: u32,
    /// Bytes from where the first row's distance counts to `begin`.
    back: u32,
    first: u32,
    stream_bytes: u32,
}

impl Piece {
    fn end(&self) -> u64 {
        self.begin.saturating_add(u64::from(self.bytes))
    }

    /// Its rows: where each begins, the number of its rule, and where in the stream it begins and ends.
    fn rows<'a>(&self, stream: &'a [u8]) -> impl Iterator<Item = (u64, u16, Range<u32>)> + use<'a> {
        let mut at = self.first as usize;
        let end = at.saturating_add(self.stream_bytes as usize).min(stream.len());
        let mut address = self.begin.saturating_sub(u64::from(self.back));
        std::iter::from_fn(move || {
            let before = at;
            let mut reader = Reader::new(stream.get(at..end).filter(|rest| !rest.is_empty())?);
            address = address.saturating_add(reader.uleb()?);
            let rule = u16::try_from(reader.uleb()?).ok()?;
            at = end - reader.rest().len();
            Some((address, rule, before as u32..at as u32))
        })
    }

    /// What lies between two addresses, with the rows that hold there.
    fn cut(&self, begin: u64, end: u64, stream: &[u8]) -> Option<Self> {
        let (begin, end) = (begin.max(self.begin), end.min(self.end()));
        let bytes = u32::try_from(end.checked_sub(begin).filter(|bytes| *bytes > 0)?).ok()?;
        let mut cut = Self { begin, bytes, ..*self };
        let mut before = self.begin.saturating_sub(u64::from(self.back));
        let mut last = self.first;
        for (address, _, place) in self.rows(stream) {
            if address >= end {
                break;
            }
            if address <= begin {
                cut.first = place.start;
                cut.back = u32::try_from(begin.saturating_sub(before)).ok()?;
            }
            before = address;
            last = place.end;
        }
        cut.stream_bytes = last.saturating_sub(cut.first);
        Some(cut)
    }
}

/// What became of a function that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    /// It begins in another window.
    Elsewhere,
    /// It is too large to be one.
    No,
}

/// Takes the functions of one source after the other, the best first, and does so again for each window of addresses
/// where all at once would take too much memory.
#[derive(Debug)]
pub(super) struct TableBuilder {
    row_limit: usize,
    room_bytes: usize,
    rules: Rules,
    /// Of each row: bytes from the row before, or from the function's first address, and the number of the rule; both
    /// as LEB128.
    stream: Vec<u8>,
    /// Of the current source, as they came.
    functions: Vec<Piece>,
    /// Of the sources before: ascending and disjoint.
    settled: Vec<Piece>,
    /// Rows in the stream.
    rows: usize,
    /// Functions that this pass was given.
    seen: usize,
    /// What lies elsewhere is left to another pass. Becomes narrower where it holds too much.
    window: Range<u64>,
    /// Of the last window.
    limit: u64,
    passes: usize,
    /// Of descriptions, in all passes.
    read_bytes: u64,
    /// What the windows before gave, and where it ended.
    written: Option<(Writer, u64)>,
    pub(super) stats: Stats,
}

impl TableBuilder {
    /// For what lies at these addresses.
    pub(super) fn new(addresses: Range<u64>, row_limit: usize, room_bytes: usize) -> Self {
        Self {
            row_limit,
            room_bytes,
            rules: Rules::new(),
            stream: Vec::new(),
            functions: Vec::new(),
            settled: Vec::new(),
            rows: 0,
            seen: 0,
            limit: addresses.end,
            window: addresses,
            passes: 0,
            read_bytes: 0,
            written: None,
            stats: Stats::default(),
        }
    }

    /// True where some function has this rule.
    pub(super) fn knows(&self, rule: Rule) -> bool {
        self.rules.numbers.contains_key(&rule)
    }

    /// True while every source is read for the first time.
    pub(super) fn is_first_pass(&self) -> bool {
        self.passes == 0
    }

    /// Counts what was read of the descriptions; an error where it becomes more than any file needs.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), TableError> {
        self.read_bytes = self.read_bytes.saturating_add(bytes as u64);
        if self.read_bytes > MAX_READ_BYTES {
            return Err(TableError::TooMuchToRead);
        }
        Ok(())
    }

    /// Counts an entry that makes no sense; every pass meets it again.
    pub(super) fn malformed(&mut self, count: u64) {
        if self.passes == 0 {
            self.stats.malformed = self.stats.malformed.saturating_add(count);
        }
    }

    /// Counts a function that lies in no code.
    pub(super) fn outside_code(&mut self) {
        if self.passes == 0 {
            self.stats.outside_code = self.stats.outside_code.saturating_add(1);
        }
    }

    /// True where an earlier source describes all of these addresses, in not too many pieces.
    pub(super) fn is_settled(&self, begin: u64, end: u64) -> bool {
        let mut index = self.settled.partition_point(|piece| piece.end() <= begin);
        let mut reached = begin;
        let last = index.saturating_add(MAX_PIECES);
        while let Some(piece) = self
            .settled
            .get(index)
            .filter(|piece| piece.begin <= reached && index < last)
        {
            reached = piece.end();
            if reached >= end {
                return true;
            }
            index += 1;
        }
        false
    }

    /// Takes a function whose rows `fill` hands out in order.
    pub(super) fn function(
        &mut self,
        begin: u64,
        end: u64,
        fill: impl FnOnce(&mut dyn FnMut(u64, Rule, Option<Unsupported>)),
    ) -> Result<Taken, TableError> {
        let Some(bytes) = end.checked_sub(begin).and_then(|bytes| u32::try_from(bytes).ok()) else {
            return Ok(Taken::No);
        };
        self.seen += 1;
        if self.seen > MAX_FUNCTIONS {
            return Err(TableError::TooManyFunctions);
        }
        if end <= self.window.start || begin >= self.window.end {
            return Ok(Taken::Elsewhere);
        }
        let counts = begin >= self.window.start;
        let first = self.stream.len();
        self.add_rows(begin, counts, fill);
        let index = |count: usize| u32::try_from(count).map_err(|_| TableError::TooManyRows { limit: self.row_limit });
        let piece = Piece {
            begin,
            bytes,
            back: 0,
            first: index(first)?,
            stream_bytes: index(self.stream.len() - first)?,
        };
        self.functions
            .extend(piece.cut(self.window.start, self.window.end, &self.stream));
        // Only a function's first row can be merged with its neighbour's last, so a table that is too long is known
        // early.
        let functions = self.functions.len() + self.settled.len();
        if self.rows > self.row_limit.saturating_add(functions) {
            return Err(TableError::TooManyRows { limit: self.row_limit });
        }
        while self.used_bytes() > self.room_bytes {
            self.narrow()?;
        }
        Ok(if counts { Taken::Yes } else { Taken::Elsewhere })
    }

    fn add_rows(
        &mut self,
        begin: u64,
        counts: bool,
        fill: impl FnOnce(&mut dyn FnMut(u64, Rule, Option<Unsupported>)),
    ) {
        let (mut previous, mut reached) = (None, begin);
        let (rules, stream, rows) = (&mut self.rules, &mut self.stream, &mut self.rows);
        let mut elsewhere = Stats::default();
        let stats = if counts { &mut self.stats } else { &mut elsewhere };
        fill(&mut |address, rule, reason| {
            stats.rows_before_merging = stats.rows_before_merging.saturating_add(1);
            if let Some(reason) = reason {
                stats.count(reason);
            }
            let number = rules.number(rule).unwrap_or_else(|| {
                stats.count(Unsupported::TooManyRules);
                0
            });
            let distance = address
                .checked_sub(reached)
                .filter(|_| address - begin <= u64::from(u32::MAX));
            if let Some(distance) = distance.filter(|_| previous != Some(number)) {
                push_uleb(stream, distance);
                push_uleb(stream, u64::from(number));
                *rows += 1;
                (previous, reached) = (Some(number), address);
            }
        });
    }

    fn used_bytes(&self) -> usize {
        self.stream.len() + (self.functions.len() + self.settled.len()) * size_of::<Piece>()
    }

    /// Leaves a quarter of what the window holds, and all behind it, to a later pass.
    fn narrow(&mut self) -> Result<(), TableError> {
        let pieces = if self.functions.len() >= self.settled.len() {
            &mut self.functions
        } else {
            &mut self.settled
        };
        let kept = pieces.len() / 4 * 3;
        if kept == 0 {
            return Err(TableError::TooManyFunctions);
        }
        let (_, piece, _) = pieces.select_nth_unstable_by_key(kept, |piece| (piece.begin, piece.first));
        let end = piece.begin;
        if end <= self.window.start {
            return Err(TableError::TooManyFunctions);
        }
        self.window.end = end;
        self.settled.sort_unstable_by_key(|piece| piece.begin);
        let old = std::mem::take(&mut self.stream);
        let mut stream = Vec::with_capacity(old.len() / 4 * 3);
        let mut rows = 0;
        for pieces in [&mut self.settled, &mut self.functions] {
            pieces.retain_mut(|piece| {
                let Some(cut) = piece.cut(0, end, &old) else {
                    return false;
                };
                *piece = cut;
                rows += piece.rows(&old).count();
                let part = old.get(cut.first as usize..).unwrap_or_default();
                piece.first = stream.len() as u32;
                stream.extend_from_slice(part.get(..cut.stream_bytes as usize).unwrap_or_default());
                true
            });
        }
        (self.stream, self.rows) = (stream, rows);
        Ok(())
    }

    /// Ends a source: what it says where no earlier one does is settled.
    pub(super) fn settle(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        if functions.is_empty() {
            return;
        }
        // In the order in which they came where they begin at the same address.
        functions.sort_unstable_by_key(|piece| (piece.begin, piece.first));
        let stream = &self.stream;
        if self.settled.is_empty() {
            let mut reached = 0;
            functions.retain_mut(|function| {
                let free = function.cut(reached, u64::MAX, stream);
                free.inspect(|free| {
                    *function = *free;
                    reached = free.end();
                })
                .is_some()
            });
            self.settled = functions;
            return;
        }
        let earlier = std::mem::take(&mut self.settled);
        let mut merged: Vec<Piece> = Vec::with_capacity(earlier.len() + functions.len());
        let mut earlier = earlier.into_iter().peekable();
        for mut function in functions {
            while let Some(piece) = earlier.next_if(|piece| piece.begin < function.end()) {
                merged.extend(free(&merged, &function, piece.begin, stream));
                merged.push(piece);
                // The rest of it only, so that no row is looked at again for each piece that follows.
                match function.cut(piece.end(), u64::MAX, stream) {
                    Some(rest) => function = rest,
                    None => break,
                }
            }
            merged.extend(free(&merged, &function, u64::MAX, stream));
        }
        merged.extend(earlier);
        self.settled = merged;
    }

    /// Ends a window, after its last source. True where there is another one, for which all sources are to be handed in
    /// again.
    pub(super) fn next_window(&mut self) -> Result<bool, TableError> {
        let limit = self.row_limit;
        self.passes += 1;
        if let Some(lowest) = self.settled.first().map(|piece| piece.begin) {
            let (mut writer, mut before) = self
                .written
                .take()
                .unwrap_or_else(|| (Writer::new(lowest, limit), lowest));
            for piece in &self.settled {
                let padding = before..piece.begin;
                before = piece.end();
                self.write(piece, padding, &mut writer).map_err(|full| match full {
                    Full::Rows => TableError::TooManyRows { limit },
                    Full::Addresses => TableError::TooManyAddresses,
                })?;
            }
            self.written = Some((writer, before));
        }
        self.settled.clear();
        self.stream.clear();
        (self.rows, self.seen) = (0, 0);
        self.window = self.window.end..self.limit;
        let more = self.window.start < self.limit;
        if more && self.passes >= MAX_PASSES {
            return Err(TableError::TooManyFunctions);
        }
        Ok(more)
    }

    /// Reads all sources once for each window of addresses; gives the table of a file with these segments.
    pub(super) fn compile(
        mut self,
        sources: impl Fn(&mut Self) -> Result<(), TableError>,
        segments: &[Segment],
    ) -> Result<FileTable, TableError> {
        loop {
            sources(&mut self)?;
            if !self.next_window()? {
                return self.finish(segments.to_vec());
            }
        }
    }

    /// The table of a file with these segments.
    pub(super) fn finish(self, segments: Vec<Segment>) -> Result<FileTable, TableError> {
        let (writer, _) = self.written.ok_or(TableError::NoUnwindInformation)?;
        let writer = writer
            .finish()
            .map_err(|_| TableError::TooManyRows { limit: self.row_limit })?;
        Ok(FileTable {
            base: writer.base,
            chunks: writer.chunks,
            rows: writer.rows,
            rules: self.rules.rules,
            segments,
            stats: self.stats,
        })
    }

    /// `padding` is what lies between the piece before and this one.
    fn write(&self, piece: &Piece, padding: Range<u64>, writer: &mut Writer) -> Result<(), Full> {
        let is_padding = (1..PADDING_BYTES).contains(&piece.begin.saturating_sub(padding.start));
        let mut rows = piece.rows(&self.stream).peekable();
        while let Some((address, rule, _)) = rows.next() {
            let mut begin = address.max(piece.begin);
            if begin >= piece.end() {
                break;
            }
            let next = rows.peek().map(|(next, ..)| *next);
            let end = next.unwrap_or(u64::MAX).min(piece.end());
            if is_padding && begin == piece.begin && self.is_entry_rule(rule) {
                begin = padding.start;
            }
            writer.push(begin, end, rule)?;
        }
        Ok(())
    }

    /// True for the rule that holds at the first instruction of functions. Padding takes it from the function behind
    /// it: that saves two rows a function, and is right also for a tiny function that nobody describes.
    fn is_entry_rule(&self, number: u16) -> bool {
        let x86_64 = Rule::pack(Cfa::Sp(8), CallerFp::Same, CallerPc::BelowCfa);
        let arm64 = Rule::pack(Cfa::Sp(0), CallerFp::Same, CallerPc::LinkRegister);
        let rule = self.rules.rules.get(usize::from(number)).copied();
        rule.is_some() && (rule == x86_64.ok() || rule == arm64.ok())
    }
}

/// What of `function` lies before `end` and behind everything merged so far.
fn free(merged: &[Piece], function: &Piece, end: u64, stream: &[u8]) -> Option<Piece> {
    let reached = merged.last().map_or(0, Piece::end);
    function.cut(reached, end, stream)
}

fn push_uleb(stream: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        stream.push(value as u8 | 0x80);
        value >>= 7;
    }
    stream.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(offset: i32) -> Rule {
        Rule::pack(Cfa::Sp(offset), CallerFp::Same, CallerPc::BelowCfa).unwrap()
    }

    fn add(builder: &mut TableBuilder, begin: u64, end: u64, rows: &[(u64, i32)]) {
        let fill = |row: &mut dyn FnMut(u64, Rule, Option<Unsupported>)| {
            for (address, offset) in rows {
                row(*address, rule(*offset), None);
            }
        };
        assert_eq!(builder.function(begin, end, fill), Ok(Taken::Yes));
    }

    fn offsets(mut builder: TableBuilder, addresses: std::ops::Range<u64>) -> Vec<i32> {
        assert_eq!(builder.next_window(), Ok(false));
        let table = builder.finish(Vec::new()).unwrap();
        let offset = |address| match table.rule_at(address).cfa() {
            Cfa::Sp(offset) => offset,
            _ => 0,
        };
        addresses.map(offset).collect()
    }

    #[test]
    fn earlier_sources_win_and_later_ones_fill_what_they_left() {
        let mut builder = TableBuilder::new(0..u64::MAX, 100, ROOM_BYTES);
        add(&mut builder, 4, 6, &[(4, 40)]);
        add(&mut builder, 1, 2, &[(1, 24)]);
        builder.settle();
        assert!(builder.is_settled(4, 6) && !builder.is_settled(3, 6) && !builder.is_settled(1, 5));
        add(&mut builder, 0, 9, &[(0, 16), (5, 32), (7, 48)]);
        add(&mut builder, 8, 10, &[(8, 56)]);
        builder.settle();
        assert_eq!(offsets(builder, 0..11), [16, 24, 16, 16, 40, 40, 32, 48, 48, 56, 0]);
    }

    #[test]
    fn padding_takes_the_rule_of_the_function_behind_it_and_wider_gaps_none() {
        let mut builder = TableBuilder::new(0..u64::MAX, 100, ROOM_BYTES);
        add(&mut builder, 0, 2, &[(0, 8), (1, 16)]);
        add(&mut builder, 4, 5, &[(4, 8), (5, 16)]);
        add(&mut builder, 21, 22, &[(21, 8)]);
        builder.settle();
        let found = offsets(builder, 0..22);
        assert_eq!(found[..6], [8, 16, 8, 8, 8, 0]);
        assert_eq!(found[20..], [0, 8]);
    }

    #[test]
    fn a_table_beyond_the_limit_says_so() {
        let mut builder = TableBuilder::new(0..u64::MAX, 3, ROOM_BYTES);
        let rows: Vec<(u64, i32)> = (0..9).map(|index| (u64::try_from(index).unwrap(), index * 8)).collect();
        let fill = |row: &mut dyn FnMut(u64, Rule, Option<Unsupported>)| {
            for (address, offset) in rows {
                row(address, rule(offset), None);
            }
        };
        let error = builder.function(0, 9, fill).unwrap_err();
        assert!(matches!(error, TableError::TooManyRows { limit: 3 }));
    }
}
