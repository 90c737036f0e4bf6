//! What the table keeps of a program, and of the process that runs it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::labels::Labels;
use super::replaced::{Reading, ReplacedCode};
use crate::frames::{CodeLocation, SourceId};
use crate::process::address_space::{Mapping, Source};

/// What is known of where a program's code comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// That it was executed, or is its parent's.
    Told,
    /// /proc was asked for it, in vain.
    Missed,
    Read,
}

/// A program with its address space.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) labels: Labels,
    pub(super) knowledge: Knowledge,
    /// As in [`super::Sighting`].
    pub(super) proc_tgid: u32,
    pub(super) image: u64,
    /// Under which /proc was read: another thread's where the first has ended.
    pub(super) read_id: u32,
    pub(super) mappings: Arc<Vec<Mapping>>,
    pub(super) sources: Arc<Vec<(SourceId, Source)>>,
    /// Grows by one at each reading that found something new: addresses may mean something else since.
    pub(super) generation: u32,
    pub(super) read_ns: u64,
    /// When it was read with success.
    pub(super) reading: Reading,
    pub(super) replaced: ReplacedCode,
}

#[derive(Debug)]
pub(super) struct ProcessEntry {
    /// By exec id, newest last.
    pub(super) programs: Vec<Entry>,
    pub(super) exited_ns: Option<u64>,
    pub(super) used_ns: u64,
    /// When it was moved in control groups of version 1, at most the last [`super::MAX_MOVES`] times, and how often
    /// before those.
    pub(super) moves: VecDeque<u64>,
    pub(super) earlier_moves: u32,
}

impl ProcessEntry {
    fn position(&self, exec_id: u32) -> Option<usize> {
        let exec_ids = |entry: &Entry| entry.labels.key().exec_id;
        self.programs.binary_search_by_key(&exec_id, exec_ids).ok()
    }

    pub(super) fn program(&self, exec_id: u32) -> Option<&Entry> {
        self.programs.get(self.position(exec_id)?)
    }

    pub(super) fn program_mut(&mut self, exec_id: u32) -> Option<&mut Entry> {
        let position = self.position(exec_id)?;
        self.programs.get_mut(position)
    }

    /// How often the process had been moved by then.
    pub(super) fn moves_until(&self, time_ns: u64) -> u32 {
        self.earlier_moves + self.moves.iter().filter(|at| **at <= time_ns).count() as u32
    }
}

impl Entry {
    /// Of whose code nothing is known.
    pub(super) fn nameless(labels: Labels, now_ns: u64) -> Self {
        Self {
            labels,
            knowledge: Knowledge::Told,
            proc_tgid: 0,
            image: 0,
            read_id: 0,
            mappings: Arc::new(Vec::new()),
            sources: Arc::new(Vec::new()),
            generation: 0,
            read_ns: now_ns,
            reading: Reading::default(),
            replaced: ReplacedCode::default(),
        }
    }

    /// Changes whenever addresses may have come to mean something else by that time.
    pub(super) fn generation_at(&self, time_ns: u64) -> u32 {
        self.generation.wrapping_add(self.replaced.until(time_ns))
    }

    /// Takes what was read.
    pub(super) fn set_code(&mut self, mappings: Vec<Mapping>, sources: Vec<(SourceId, Source)>, reading: Reading) {
        self.mappings = Arc::new(mappings);
        self.sources = Arc::new(sources);
        self.reading = reading;
        self.note_written_files();
    }

    /// Addresses mean something else from now on, whatever was replaced before.
    pub(super) fn begin_generation(&mut self) {
        self.generation = self.generation_at(u64::MAX).wrapping_add(1);
    }

    pub(super) fn find(&self, address: u64) -> Option<CodeLocation> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        let mapping = self.mappings[..after].last().filter(|mapping| address < mapping.end)?;
        Some(CodeLocation {
            source: mapping.source,
            offset: address.wrapping_add(mapping.to_offset),
        })
    }
}
