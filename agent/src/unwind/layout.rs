//! Tables and mappings in the form in which the walk of bpf/unwind.h reads them; bpf/abi.h says how each is laid out.
//!
//! What a walk can reach is never changed, only replaced: the new is written elsewhere, published, and the old room
//! is used again when no walk can be reading it any more.

use std::collections::{HashMap, VecDeque};

use super::space::Space;
use super::{CHUNK_BYTES, FileTable, Range, Row};

pub use super::space::SLAB_WORDS;

/// Rules of all files together.
pub const RULES: usize = 32_768;
/// Executable mappings of one program; what lies in others has no table.
pub const MAX_MAPPINGS: usize = 4096;
const MAPPING_WORDS: usize = 8;
/// Rows are written in pieces of about so many words, so that they fit into what is free.
const PIECE_WORDS: usize = 32 * 1024;
/// No walk takes so long: room that was given up is free again after it.
pub const RETIRE_NS: u64 = 1_000_000_000;

const STATE_PENDING: u32 = 0;
const STATE_NONE: u32 = 1;
const STATE_CHUNKS: u32 = 2;
/// A directory's entry for a chunk whose rows are not there.
const CHUNK_PENDING: u64 = 0xffff_ffff << 32;

/// Where tables lie.
pub trait Memory {
    /// One more slab of [`SLAB_WORDS`] words; false where there may be no more.
    fn add_slab(&mut self) -> bool;
    /// Writes into a range of a slab that was added.
    fn write(&mut self, range: Range, words: &mut dyn Iterator<Item = u32>);
    /// Writes pairs of words, each the lower half first, one behind the other: a walk sees both words of a pair or
    /// none, and all that was written before. The range begins at an even place.
    fn write_pairs(&mut self, range: Range, pairs: &mut dyn Iterator<Item = u64>);
    /// Sets one of [`RULES`] rules, which are all zero at first.
    fn write_rule(&mut self, number: usize, bits: u64);
}

/// A file's table where the walk finds it.
#[derive(Debug)]
pub struct Installed {
    directory: Range,
    pieces: Vec<Range>,
    chunks: u32,
}

impl Installed {
    /// Where its entries begin: at an even word.
    fn entries(&self) -> u32 {
        self.directory.place.next_multiple_of(2)
    }

    /// Bytes in the slabs.
    pub fn bytes(&self) -> u64 {
        let words: u64 = self.pieces.iter().map(|piece| u64::from(piece.words)).sum();
        (words + u64::from(self.directory.words)) * 4
    }
}

/// Chunks of a file that was opened without any, where the walk finds them.
#[derive(Debug)]
pub struct Filled {
    chunks: std::ops::Range<u32>,
    pieces: Vec<Range>,
}

impl Filled {
    /// Bytes in the slabs.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.words) * 4).sum()
    }
}

/// What is known of the code in a mapping.
#[derive(Debug, Clone, Copy)]
pub enum Code<'a> {
    /// Its table is being made.
    Pending,
    /// There is none and will be none: frame pointers are all there is.
    NoTable,
    /// Its table is installed.
    Table {
        /// The file's table.
        installed: &'a Installed,
        /// The address in the process at which the table's first chunk lies: perhaps before the mapping.
        chunk_zero: u64,
    },
}

/// One executable mapping of a program, `end` exclusive.
#[derive(Debug, Clone, Copy)]
pub struct CodeMapping<'a> {
    /// Address of the first byte.
    pub begin: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// What is known of its code.
    pub code: Code<'a>,
}

/// Why a table was not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// The limit for tables is reached.
    Tables,
    /// There are too many different rules.
    Rules,
}

/// A program's mappings where the walk finds them.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// The words that hold them.
    pub mappings: Range,
    /// How many mappings these are.
    pub count: u32,
}

/// What lies where in the memory `M`.
#[derive(Debug)]
pub struct Layout<M> {
    /// Where the walk reads.
    pub memory: M,
    rules: HashMap<u64, u16>,
    space: Space,
    retired: VecDeque<(u64, Range)>,
}

impl<M: Memory> Layout<M> {
    /// Nothing but the rule of unknown code, in empty memory.
    pub fn new(memory: M) -> Self {
        Self {
            memory,
            // All zero is the rule of unknown code.
            rules: HashMap::from([(0, 0)]),
            space: Space::default(),
            retired: VecDeque::new(),
        }
    }

    /// Copies a file's table in.
    pub fn install(&mut self, table: &FileTable) -> Result<Installed, NoRoom> {
        let mut installed = self.directory(table.chunks.len().saturating_sub(1))?;
        match self.copy_rows(table) {
            Ok((pieces, entries)) => {
                self.set(&installed, 0..installed.chunks, &mut entries.into_iter());
                installed.pieces = pieces;
                Ok(installed)
            }
            Err(reason) => {
                self.space.give_back(installed.directory);
                Err(reason)
            }
        }
    }

    /// Copies the rows of all chunks in; gives where they are, and each chunk's entry in a directory.
    fn copy_rows(&mut self, table: &FileTable) -> Result<(Vec<Range>, Vec<u64>), NoRoom> {
        let rules = self.number_rules(table).ok_or(NoRoom::Rules)?;
        let chunks = table.chunks.len().saturating_sub(1);
        let mut pieces = Vec::new();
        let mut entries = Vec::with_capacity(chunks);
        let mut first = 0;
        while first < chunks {
            // Whole chunks, as many as make a piece.
            let begin = table.chunks[first] as usize;
            let mut last = first + 1;
            while last < chunks && table.chunks[last + 1] as usize - begin <= PIECE_WORDS {
                last += 1;
            }
            let rows = &table.rows[begin..table.chunks[last] as usize];
            let Some(piece) = self.take(rows.len()) else {
                pieces.into_iter().for_each(|piece| self.space.give_back(piece));
                return Err(NoRoom::Tables);
            };
            pieces.push(piece);
            self.memory.write(piece, &mut words_of_rows(rows, &rules));
            for chunk in first..last {
                let (from, until) = (table.chunks[chunk], table.chunks[chunk + 1]);
                let place = piece.place + (from - table.chunks[first]);
                entries.push(u64::from(place) | u64::from(until - from) << 32);
            }
            first = last;
        }
        Ok((pieces, entries))
    }

    fn directory(&mut self, chunks: usize) -> Result<Installed, NoRoom> {
        Ok(Installed {
            // One more, so that the entries can begin at an even word.
            directory: self.take(chunks * 2 + 1).ok_or(NoRoom::Tables)?,
            pieces: Vec::new(),
            chunks: u32::try_from(chunks).map_err(|_| NoRoom::Tables)?,
        })
    }

    /// Makes room for a file's directory, all chunks of which are pending.
    pub fn open(&mut self, chunks: u32) -> Result<Installed, NoRoom> {
        let file = self.directory(chunks as usize)?;
        self.set(&file, 0..chunks, &mut std::iter::repeat(CHUNK_PENDING));
        Ok(file)
    }

    /// Sets the entries of some chunks, as many as there are.
    fn set(&mut self, file: &Installed, chunks: std::ops::Range<u32>, entries: &mut dyn Iterator<Item = u64>) {
        let end = chunks.end.min(file.chunks);
        if let Some(count) = end.checked_sub(chunks.start).filter(|count| *count > 0) {
            let range = Range {
                place: file.entries() + chunks.start * 2,
                words: count * 2,
            };
            self.memory.write_pairs(range, entries);
        }
    }

    /// Copies the tables of some chunks of an opened file in. `base` is the address that its chunk 0 describes;
    /// chunks of which `table` says nothing have no rules.
    pub fn fill(
        &mut self,
        file: &Installed,
        chunks: std::ops::Range<u32>,
        table: &FileTable,
        base: u64,
    ) -> Result<Filled, NoRoom> {
        let (pieces, entries) = self.copy_rows(table)?;
        let skipped = table.base.wrapping_sub(base) / CHUNK_BYTES;
        let entry_of = |chunk: u32| {
            let own = u64::from(chunk).checked_sub(skipped);
            let entry = own.and_then(|own| entries.get(usize::try_from(own).ok()?));
            entry.copied().unwrap_or(0)
        };
        self.set(file, chunks.clone(), &mut chunks.clone().map(entry_of));
        Ok(Filled { chunks, pieces })
    }

    /// Makes chunks pending again, and gives their room back once no walk reads it.
    pub fn empty(&mut self, file: &Installed, filled: Filled, now_ns: u64) {
        self.set(file, filled.chunks, &mut std::iter::repeat(CHUNK_PENDING));
        self.retired
            .extend(filled.pieces.into_iter().map(|piece| (now_ns, piece)));
    }

    /// Gives a table's room back once no walk reads it. Whoever maps the file must have been published anew before.
    pub fn remove(&mut self, installed: Installed, now_ns: u64) {
        let ranges = installed.pieces.into_iter().chain([installed.directory]);
        self.retired.extend(ranges.map(|range| (now_ns, range)));
    }

    /// Writes a program's mappings, ascending; none where there is no room for them.
    pub fn publish(&mut self, mappings: &[CodeMapping<'_>]) -> Option<Published> {
        let mappings = &mappings[..mappings.len().min(MAX_MAPPINGS)];
        let range = self.take(mappings.len() * MAPPING_WORDS)?;
        self.memory.write(range, &mut mappings.iter().flat_map(words_of));
        Some(Published {
            mappings: range,
            count: mappings.len() as u32,
        })
    }

    /// Gives the room of mappings back that nobody finds any more.
    pub fn withdraw(&mut self, published: Published, now_ns: u64) {
        self.retired.push_back((now_ns, published.mappings));
    }

    /// Makes room that was given back a while ago free again.
    pub fn reclaim(&mut self, now_ns: u64) {
        while let Some((since, range)) = self.retired.front().copied() {
            if now_ns.saturating_sub(since) < RETIRE_NS {
                break;
            }
            self.retired.pop_front();
            self.space.give_back(range);
        }
    }

    /// Bytes that were given back, but may still be read.
    pub fn retiring_bytes(&self) -> u64 {
        self.retired.iter().map(|(_, range)| u64::from(range.words) * 4).sum()
    }

    /// Bytes of tables and mappings in use.
    pub fn used_bytes(&self) -> u64 {
        let all = self.space.slabs() as u64 * u64::from(SLAB_WORDS);
        all.saturating_sub(self.space.free_words()) * 4
    }

    fn number_rules(&mut self, table: &FileTable) -> Option<Vec<u16>> {
        let mut numbers = Vec::with_capacity(table.rules.len());
        for rule in &table.rules {
            let bits = rule.bits();
            let next = self.rules.len();
            let number = match self.rules.get(&bits) {
                Some(number) => *number,
                None if next < RULES => {
                    let number = next as u16;
                    self.memory.write_rule(next, bits);
                    self.rules.insert(bits, number);
                    number
                }
                None => return None,
            };
            numbers.push(number);
        }
        Some(numbers)
    }

    fn take(&mut self, words: usize) -> Option<Range> {
        let words = u32::try_from(words).ok()?;
        if let Some(range) = self.space.take(words) {
            return Some(range);
        }
        if words > SLAB_WORDS || !self.memory.add_slab() {
            return None;
        }
        self.space.add_slab();
        self.space.take(words)
    }
}

/// As bpf/abi.h lays rows out; `rules` gives their rules' numbers.
fn words_of_rows<'a>(rows: &'a [Row], rules: &'a [u16]) -> impl Iterator<Item = u32> + use<'a> {
    rows.iter()
        .map(|row| u32::from(row.offset) << 16 | u32::from(rules[usize::from(row.rule)]))
}

/// As bpf/abi.h lays a mapping out.
fn words_of(mapping: &CodeMapping<'_>) -> [u32; MAPPING_WORDS] {
    let (chunk_zero, directory, state) = match mapping.code {
        Code::Pending => (0, 0, STATE_PENDING),
        Code::NoTable => (0, 0, STATE_NONE),
        Code::Table { installed, chunk_zero } => (chunk_zero, installed.entries(), STATE_CHUNKS + installed.chunks),
    };
    let halves = |value: u64| [value as u32, (value >> 32) as u32];
    let ([b0, b1], [e0, e1], [c0, c1]) = (halves(mapping.begin), halves(mapping.end), halves(chunk_zero));
    [b0, b1, e0, e1, c0, c1, directory, state]
}
