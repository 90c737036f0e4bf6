//! The tables by which user stacks are walked, in memory that the BPF programs read (bpf/abi.h has the layouts).
//!
//! In: compiled files and the executable mappings of programs. What a program reads is never changed, only replaced: the new
//! is written elsewhere, published by one map update, and the old room is used again when no walk can be reading it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::shared::Shared;
use super::walk::{Memory, so_walk, walk_on};
use super::{KernelError, WalkStop, sampler};
use crate::process::ProgramKey;
use crate::unwind::{FileTable, Range, SLAB_WORDS, Space};

/// Rules of all files together.
const MAX_RULES: usize = 32_768;
const MAX_SLABS: usize = 64;
/// Executable mappings of one program; more are left to user space.
const MAX_MAPPINGS: usize = 4096;
const MAPPING_WORDS: usize = 8;
/// Programs that may be published at a time.
const MAX_PROGRAMS: usize = 8192;
/// Rows are written in pieces of about so many, so that they fit into what is free.
const PIECE_WORDS: usize = 32 * 1024;
/// No walk takes so long.
const RETIRE_NS: u64 = 1_000_000_000;

const STATE_PENDING: u32 = 0;
const STATE_NONE: u32 = 1;
const STATE_CHUNKS: u32 = 2;

/// A file's table where the BPF programs find it.
#[derive(Debug)]
pub struct Installed {
    directory: Range,
    pieces: Vec<Range>,
    chunks: u32,
}

impl Installed {
    /// Bytes in the slabs.
    pub fn bytes(&self) -> u64 {
        let words: u64 = self.pieces.iter().map(|piece| u64::from(piece.words)).sum();
        (words + u64::from(self.directory.words)) * 4
    }
}

/// What is known of the code in a mapping.
#[derive(Debug, Clone, Copy)]
pub enum Code<'a> {
    /// Its table is being made.
    Pending,
    /// There is none and will be none: frame pointers are all there is.
    NoTable,
    /// `chunk_zero` is the address in the process at which the table's first chunk lies (it may be before the mapping).
    Table { installed: &'a Installed, chunk_zero: u64 },
}

/// One executable mapping of a program, `end` exclusive.
#[derive(Debug, Clone, Copy)]
pub struct CodeMapping<'a> {
    pub begin: u64,
    pub end: u64,
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

struct Published {
    mappings: Range,
    count: u32,
    space: u32,
}

struct Slab {
    memory: Shared<u32>,
    /// Keeps the map alive; the kernel's map of slabs does too.
    map: MapHandle,
}

/// Owner of the maps' content.
#[allow(missing_debug_implementations, reason = "holds libbpf objects, which have none")]
pub struct Tables {
    outer: MapHandle,
    processes: MapHandle,
    rules: Shared<u64>,
    rule_index: HashMap<u64, u16>,
    slabs: Vec<Slab>,
    space: Space,
    max_slabs: usize,
    programs: HashMap<ProgramKey, Published>,
    retired: VecDeque<(u64, Range)>,
    next_space: u32,
}

impl Tables {
    pub(super) fn new(maps: &sampler::SamplerMaps<'_>, limit_bytes: u64) -> Result<Self, KernelError> {
        let duplicating = |what| move |source| KernelError::Tables { what, source };
        let rules = Shared::map(maps.rules.as_fd(), MAX_RULES).map_err(|source| KernelError::Tables {
            what: "rules",
            source: source.into(),
        })?;
        let slab_bytes = u64::from(SLAB_WORDS) * 4;
        Ok(Self {
            outer: MapHandle::try_from(&maps.slabs).map_err(duplicating("slabs"))?,
            processes: MapHandle::try_from(&maps.processes).map_err(duplicating("processes"))?,
            rules,
            // All zero is the rule of unknown code.
            rule_index: HashMap::from([(0, 0)]),
            slabs: Vec::new(),
            space: Space::default(),
            max_slabs: usize::try_from(limit_bytes / slab_bytes)
                .unwrap_or(MAX_SLABS)
                .clamp(1, MAX_SLABS),
            programs: HashMap::new(),
            retired: VecDeque::new(),
            next_space: 1,
        })
    }

    /// Copies a file's table in.
    pub fn install(&mut self, table: &FileTable) -> Result<Installed, NoRoom> {
        let rules = self.number_rules(table).ok_or(NoRoom::Rules)?;
        let chunks = table.chunks.len().saturating_sub(1);
        let directory = self.take(chunks * 2).ok_or(NoRoom::Tables)?;
        let mut installed = Installed {
            directory,
            pieces: Vec::new(),
            chunks: u32::try_from(chunks).map_err(|_| NoRoom::Tables)?,
        };
        let mut entries: Vec<u32> = Vec::with_capacity(chunks * 2);
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
                self.remove_unseen(installed);
                return Err(NoRoom::Tables);
            };
            installed.pieces.push(piece);
            let words = rows
                .iter()
                .map(|row| u32::from(row.offset) << 16 | u32::from(rules[usize::from(row.rule)]));
            self.write(piece, words);
            for chunk in first..last {
                let (from, until) = (table.chunks[chunk], table.chunks[chunk + 1]);
                entries.push(piece.place + (from - table.chunks[first]));
                entries.push(until - from);
            }
            first = last;
        }
        self.write(directory, entries);
        Ok(installed)
    }

    /// Gives a table's room back once no walk reads it. Whoever maps the file must have been published anew before.
    pub fn remove(&mut self, installed: Installed, now_ns: u64) {
        let ranges = installed.pieces.into_iter().chain([installed.directory]);
        self.retired.extend(ranges.map(|range| (now_ns, range)));
    }

    fn remove_unseen(&mut self, installed: Installed) {
        for range in installed.pieces.into_iter().chain([installed.directory]) {
            self.space.give_back(range);
        }
    }

    /// Makes a program's mappings, ascending, what its samples are walked by. False where there is no room for them.
    pub fn publish(&mut self, key: ProgramKey, mappings: &[CodeMapping<'_>], now_ns: u64) -> bool {
        if self.programs.len() >= MAX_PROGRAMS && !self.programs.contains_key(&key) {
            return false;
        }
        let mappings = &mappings[..mappings.len().min(MAX_MAPPINGS)];
        let Some(range) = self.take(mappings.len() * MAPPING_WORDS) else {
            return false;
        };
        self.write(range, mappings.iter().flat_map(words_of));
        let published = Published {
            mappings: range,
            count: mappings.len() as u32,
            space: self.next_space,
        };
        self.next_space = self.next_space.checked_add(1).unwrap_or(1);
        let mut value = Vec::with_capacity(24);
        value.extend(key.start_ticks.to_ne_bytes());
        for word in [key.exec_id, published.space, range.place, published.count] {
            value.extend(word.to_ne_bytes());
        }
        let result = self
            .processes
            .update(&key.tgid.to_ne_bytes(), &value, MapFlags::ANY)
            .is_ok();
        if let Some(old) = self.programs.insert(key, published) {
            self.retired.push_back((now_ns, old.mappings));
        }
        result
    }

    /// Forgets a program.
    pub fn withdraw(&mut self, key: ProgramKey, now_ns: u64) {
        let Some(old) = self.programs.remove(&key) else {
            return;
        };
        self.retired.push_back((now_ns, old.mappings));
        // Unless the entry is another program's of the same process id by now.
        let id = key.tgid.to_ne_bytes();
        if let Ok(Some(value)) = self.processes.lookup(&id, MapFlags::ANY)
            && value.get(12..16) == Some(&old.space.to_ne_bytes())
        {
            // Gone already is as good.
            let _ = self.processes.delete(&id);
        }
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

    /// Goes on with a walk that the kernel side could not end, on the copied part of the stack; adds the frames' addresses.
    pub fn walk_on(&self, key: ProgramKey, walk: &mut so_walk, stack: &[u8], frames: &mut Vec<u64>) -> WalkStop {
        let Some(program) = self.programs.get(&key) else {
            return WalkStop::NoTable;
        };
        walk.mappings = program.mappings.place;
        walk.mapping_count = program.count;
        walk.address_space = u64::from(program.space);
        let slabs: Vec<*const u32> = self.slabs.iter().map(|slab| slab.memory.as_ptr()).collect();
        let memory = Memory::new(&slabs, self.rules.as_ptr(), stack, walk.stack_begin());
        walk_on(walk, &memory, frames)
    }

    /// Descriptors of the maps that were made here.
    pub(super) fn map_fds(&self) -> impl Iterator<Item = i32> {
        self.slabs.iter().map(|slab| slab.map.as_fd().as_raw_fd())
    }

    /// Bytes of tables and mappings in use.
    pub fn used_bytes(&self) -> u64 {
        let all = self.slabs.len() as u64 * u64::from(SLAB_WORDS);
        (all - self.space.free_words().min(all)) * 4
    }

    fn number_rules(&mut self, table: &FileTable) -> Option<Vec<u16>> {
        let mut numbers = Vec::with_capacity(table.rules.len());
        for rule in &table.rules {
            let bits = rule.bits();
            let next = self.rule_index.len();
            let number = match self.rule_index.get(&bits) {
                Some(number) => *number,
                None if next < MAX_RULES => {
                    let number = next as u16;
                    self.rules.write(next, [bits]);
                    self.rule_index.insert(bits, number);
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
        if self.slabs.len() >= self.max_slabs {
            return None;
        }
        match self.add_slab() {
            Ok(slab) => self.slabs.push(slab),
            Err(error) => {
                tracing::warn!(error = %error, "no more memory for unwinding tables");
                return None;
            }
        }
        self.space.add_slab();
        self.space.take(words)
    }

    fn add_slab(&self) -> Result<Slab, libbpf_rs::Error> {
        let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
            map_flags: libbpf_rs::libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        let map = MapHandle::create(MapType::Array, Some("so_slab"), 4, SLAB_WORDS * 4, 1, &options)?;
        let memory = Shared::map(map.as_fd(), SLAB_WORDS as usize).map_err(io_error)?;
        let number = u32::try_from(self.slabs.len()).unwrap_or(u32::MAX);
        let fd = map.as_fd().as_raw_fd();
        self.outer
            .update(&number.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)?;
        Ok(Slab { memory, map })
    }

    fn write(&mut self, range: Range, words: impl IntoIterator<Item = u32>) {
        if let Some(slab) = self.slabs.get_mut(range.slab()) {
            slab.memory
                .write(range.first_word(), words.into_iter().take(range.words as usize));
        }
    }
}

fn io_error(error: io::Error) -> libbpf_rs::Error {
    error.into()
}

/// As bpf/abi.h lays a mapping out.
fn words_of(mapping: &CodeMapping<'_>) -> [u32; MAPPING_WORDS] {
    let (chunk_zero, directory, state) = match mapping.code {
        Code::Pending => (0, 0, STATE_PENDING),
        Code::NoTable => (0, 0, STATE_NONE),
        Code::Table { installed, chunk_zero } => {
            (chunk_zero, installed.directory.place, STATE_CHUNKS + installed.chunks)
        }
    };
    let halves = |value: u64| [value as u32, (value >> 32) as u32];
    let ([b0, b1], [e0, e1], [c0, c1]) = (halves(mapping.begin), halves(mapping.end), halves(chunk_zero));
    [b0, b1, e0, e1, c0, c1, directory, state]
}
