//! One file's table, as the kernel side and user space look things up in it.

use super::rule::{Rule, Unsupported};
use crate::elf::{Segment, address_of};

/// Addresses that one chunk describes.
pub const CHUNK_BYTES: u64 = 1 << 16;

/// From `offset` in its chunk on, up to the next row's, the rule `rule` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Bytes from the chunk's first address.
    pub offset: u16,
    /// Index in [`FileTable::rules`].
    pub rule: u16,
}

/// What was met while a table was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Descriptions of functions in .eh_frame and .debug_frame that were compiled.
    pub fdes: u64,
    /// Functions from Go's table.
    pub go_functions: u64,
    /// Rows as the sources tell them, before equal neighbours were merged. A large file's may be counted twice, like
    /// the following.
    pub rows_before_merging: u64,
    /// Of these, those with something that is not supported, in the order of [`Unsupported::ALL`].
    pub unsupported: [u64; Unsupported::ALL.len()],
    /// Entries that make no sense. What they say up to there is used.
    pub malformed: u64,
    /// Functions that lie in no executable segment: what the linker threw away but still describes.
    pub outside_code: u64,
}

impl Stats {
    pub(super) fn count(&mut self, reason: Unsupported) {
        let index = Unsupported::ALL.iter().position(|known| *known == reason);
        if let Some(count) = index.and_then(|index| self.unsupported.get_mut(index)) {
            *count = count.saturating_add(1);
        }
    }

    /// Rows with something that is not supported, whatever it is.
    pub fn unsupported_rows(&self) -> u64 {
        self.unsupported.iter().sum()
    }
}

/// The unwinding rules of one ELF file. Addresses are the file's own, before relocation (SVMA).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileTable {
    /// Lowest address, a multiple of 64 KiB, that chunk 0 describes.
    pub base: u64,
    /// Index in `rows` of each chunk's first row; one more than there are chunks, so chunk i is
    /// `rows[chunks[i]..chunks[i + 1]]`.
    pub chunks: Vec<u32>,
    /// Ascending by offset in each chunk. A chunk with any rule begins with a row of offset 0; one without has no rows.
    pub rows: Vec<Row>,
    /// Each once; the first is [`Rule::UNKNOWN`].
    pub rules: Vec<Rule>,
    /// What is loaded where: the way from a mapping's file offset to the addresses of this table.
    pub segments: Vec<Segment>,
    /// How it was compiled.
    pub stats: Stats,
}

impl FileTable {
    /// The rule at an address.
    pub fn rule_at(&self, svma: u64) -> Rule {
        self.find(svma).unwrap_or(Rule::UNKNOWN)
    }

    fn find(&self, svma: u64) -> Option<Rule> {
        let distance = svma.checked_sub(self.base)?;
        let chunk = usize::try_from(distance / CHUNK_BYTES).ok()?;
        let offset = u16::try_from(distance % CHUNK_BYTES).ok()?;
        let first = usize::try_from(*self.chunks.get(chunk)?).ok()?;
        let last = usize::try_from(*self.chunks.get(chunk.checked_add(1)?)?).ok()?;
        let rows = self.rows.get(first..last)?;
        let row = rows.get(rows.partition_point(|row| row.offset <= offset).checked_sub(1)?)?;
        self.rules.get(usize::from(row.rule)).copied()
    }

    /// The address of an offset of the file; none where that is not loaded.
    pub fn svma_of(&self, file_offset: u64) -> Option<u64> {
        address_of(&self.segments, file_offset)
    }
}

/// Writes rows in the order of their addresses.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) base: u64,
    pub(super) chunks: Vec<u32>,
    pub(super) rows: Vec<Row>,
    row_limit: usize,
    /// Behind the last address that has a rule.
    end: u64,
}

/// More rows than the caller allows, or more addresses than a table describes.
#[derive(Debug)]
pub(super) enum Full {
    Rows,
    Addresses,
}

/// A table describes at most 4 GiB.
const MAX_CHUNKS: usize = 1 << 16;

impl Writer {
    pub(super) fn new(lowest: u64, row_limit: usize) -> Self {
        let base = lowest / CHUNK_BYTES * CHUNK_BYTES;
        Self {
            base,
            chunks: vec![0],
            rows: Vec::new(),
            row_limit,
            end: base,
        }
    }

    /// The rule from `begin` to `end`, which lie behind everything before. Zero is the index of "nothing known".
    pub(super) fn push(&mut self, begin: u64, end: u64, rule: u16) -> Result<(), Full> {
        if rule == 0 {
            return Ok(());
        }
        let (mut begin, end) = (begin.max(self.end), end);
        while begin < end {
            while begin >= self.chunk_end()? {
                self.close_chunk()?;
            }
            let stop = end.min(self.chunk_end()?);
            self.push_in_chunk(begin, rule)?;
            self.end = stop;
            begin = stop;
        }
        Ok(())
    }

    fn chunk_begin(&self) -> Result<u64, Full> {
        let before = u64::try_from(self.chunks.len() - 1).map_err(|_| Full::Addresses)?;
        before
            .checked_mul(CHUNK_BYTES)
            .and_then(|bytes| bytes.checked_add(self.base))
            .ok_or(Full::Addresses)
    }

    fn chunk_end(&self) -> Result<u64, Full> {
        self.chunk_begin()?.checked_add(CHUNK_BYTES).ok_or(Full::Addresses)
    }

    fn rows_of_chunk(&self) -> usize {
        let first = self.chunks.last().and_then(|first| usize::try_from(*first).ok());
        self.rows.len().saturating_sub(first.unwrap_or(0))
    }

    fn push_in_chunk(&mut self, begin: u64, rule: u16) -> Result<(), Full> {
        let chunk_begin = self.chunk_begin()?;
        if self.rows_of_chunk() == 0 {
            if begin > chunk_begin {
                self.row(chunk_begin, 0)?;
            }
        } else if self.end < begin {
            self.row(self.end, 0)?;
        }
        self.row(begin, rule)
    }

    fn row(&mut self, address: u64, rule: u16) -> Result<(), Full> {
        let continues = self.rows_of_chunk() > 0 && self.rows.last().is_some_and(|row| row.rule == rule);
        if continues {
            return Ok(());
        }
        if self.rows.len() >= self.row_limit {
            return Err(Full::Rows);
        }
        let offset = address.checked_sub(self.chunk_begin()?).ok_or(Full::Addresses)?;
        let offset = u16::try_from(offset).map_err(|_| Full::Addresses)?;
        self.rows.push(Row { offset, rule });
        Ok(())
    }

    fn close_chunk(&mut self) -> Result<(), Full> {
        if self.rows_of_chunk() > 0 && self.end < self.chunk_end()? {
            self.row(self.end, 0)?;
        }
        if self.chunks.len() > MAX_CHUNKS {
            return Err(Full::Addresses);
        }
        self.chunks
            .push(u32::try_from(self.rows.len()).map_err(|_| Full::Rows)?);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Self, Full> {
        if self.rows_of_chunk() > 0 {
            self.close_chunk()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::rule::{CallerFp, CallerPc, Cfa};

    fn table(intervals: &[(u64, u64, u16)]) -> FileTable {
        let mut writer = Writer::new(intervals[0].0, 1000);
        for (begin, end, rule) in intervals {
            writer.push(*begin, *end, *rule).unwrap();
        }
        let writer = writer.finish().unwrap();
        let rule = |offset| Rule::pack(Cfa::Sp(offset), CallerFp::Same, CallerPc::BelowCfa).unwrap();
        FileTable {
            base: writer.base,
            chunks: writer.chunks,
            rows: writer.rows,
            rules: vec![Rule::UNKNOWN, rule(8), rule(16)],
            ..FileTable::default()
        }
    }

    #[test]
    fn every_address_finds_its_rule_across_chunks_and_gaps() {
        let intervals = [
            (0x1_2000, 0x1_2010, 1),
            (0x1_2010, 0x1_2020, 1),
            (0x1_2020, 0x1_2030, 2),
            (0x1_3000, 0x2_0000, 1),
            (0x2_0000, 0x2_0004, 1),
            (0x5_fff0, 0x7_0010, 2),
        ];
        let table = table(&intervals);
        assert_eq!(table.base, 0x1_0000);
        assert_eq!(table.chunks, [0, 5, 7, 7, 7, 9, 10, 12]);
        for address in 0x0_fff0..0x8_0000u64 {
            let inside = |interval: &&(u64, u64, u16)| (interval.0..interval.1).contains(&address);
            let expected = intervals.iter().find(inside).map_or(0, |interval| interval.2);
            assert_eq!(
                table.rule_at(address),
                table.rules[usize::from(expected)],
                "{address:x}"
            );
        }
        let first = |chunk: usize| table.rows[table.chunks[chunk] as usize].offset;
        assert!([0, 1, 4, 5, 6].into_iter().all(|chunk| first(chunk) == 0));
    }

    #[test]
    fn limits_are_kept() {
        let mut writer = Writer::new(0, 3);
        writer.push(0, 1, 1).unwrap();
        writer.push(1, 2, 2).unwrap();
        writer.push(2, 3, 1).unwrap();
        assert!(matches!(writer.push(3, 4, 2), Err(Full::Rows)));
        assert!(matches!(
            Writer::new(0, 9).push(1 << 40, 1 << 41, 1),
            Err(Full::Addresses)
        ));
        assert!(matches!(
            Writer::new(u64::MAX, 9).push(u64::MAX - 1, u64::MAX, 1),
            Err(Full::Addresses)
        ));
    }
}
