//! What is remembered of a process' functions, by their hashes: their memory may have become another one's.

use std::sync::Arc;

use crate::hash::FastMap;

/// Functions, and lines of them all, that are remembered of a process.
const MAX_FUNCTIONS: usize = 2048;
const MAX_ALL_LINES: usize = 1 << 15;

#[derive(Debug)]
pub(super) struct Function {
    /// Empty of a file's own code.
    pub(super) name: String,
    pub(super) file: String,
    pub(super) extension: String,
    pub(super) first_line: u32,
    /// Of each instruction, from the first line on.
    pub(super) lines: Box<[u16]>,
}

/// All of a process.
#[derive(Debug, Default)]
pub(super) struct Functions {
    known: FastMap<u64, Arc<Function>>,
    lines: usize,
}

impl Functions {
    pub(super) fn of(&self, hash: u64) -> Option<Arc<Function>> {
        self.known.get(&hash).cloned()
    }

    pub(super) fn remember(&mut self, hash: u64, function: Arc<Function>) {
        if self.known.len() >= MAX_FUNCTIONS || self.lines + function.lines.len() > MAX_ALL_LINES {
            *self = Self::default();
        }
        self.lines += function.lines.len();
        self.known.insert(hash, function);
    }
}
