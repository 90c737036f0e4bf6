//! Memory of a process that is read while it runs, within limits.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::reading::ReadMemory;
use crate::hash::FastMap;
use crate::sys::{guarded_for, read_process};

/// How many reads naming one frame may take: a frame with many inlined methods takes some hundred.
const MAX_READS: u32 = 4_096;
/// Reads that learning a runtime's layout may take: its tables have some thousand entries.
const MAX_LAYOUT_READS: u32 = 65_536;
/// Reads that learning a table of a runtime may take, once for many frames: of 4,096 modules of Python.
const MAX_TABLE_READS: u32 = 49_152;
const PAGE_BYTES: u64 = 4096;
/// Pages that a round of walks may look at.
const MAX_PAGES: usize = 1024;

/// A process's memory. Whoever uses it may have to wait for that process: it is for a thread that can be left behind.
#[derive(Debug)]
pub struct ProcessMemory {
    tgid: u32,
    allowed: Cell<u32>,
    done: Cell<u32>,
}

impl ProcessMemory {
    /// For naming one frame.
    pub fn for_a_frame(tgid: u32) -> Self {
        Self::within(tgid, MAX_READS)
    }

    /// For learning a layout.
    pub fn for_a_layout(tgid: u32) -> Self {
        Self::within(tgid, MAX_LAYOUT_READS)
    }

    fn within(tgid: u32, reads: u32) -> Self {
        let (allowed, done) = (Cell::new(reads), Cell::new(0));
        Self { tgid, allowed, done }
    }

    /// Allows so many reads from now on as learning a table takes that tells of many frames.
    pub fn allow_a_table(&self) {
        self.allowed.set(self.done.get() + MAX_TABLE_READS);
    }

    /// Reads that were done or tried.
    pub fn reads(&self) -> u32 {
        self.done.get()
    }

    /// Fills `to`; false where that can't be read, or too much was read already.
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let done = self.done.get();
        if done >= self.allowed.get() {
            return false;
        }
        self.done.set(done + 1);
        read_process(self.tgid, address, to)
    }
}

impl ReadMemory for ProcessMemory {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        Self::read(self, address, to)
    }
}

type Page = Arc<[u8]>;

/// The same in whole pages, each of which is read once, on a thread that can be left behind: for walks, which look at
/// the same places again and again.
#[derive(Debug)]
pub struct PagedMemory {
    tgid: u32,
    pages: RefCell<FastMap<u64, Option<Page>>>,
}

impl PagedMemory {
    /// Of a process, as it is when it is first asked for.
    pub fn of(tgid: u32) -> Self {
        let pages = RefCell::default();
        Self { tgid, pages }
    }

    /// Which process's.
    pub fn tgid(&self) -> u32 {
        self.tgid
    }

    /// Fills `to`; false where that can't be read, or too many pages were read already.
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let (mut at, mut done) = (address, 0);
        while done < to.len() {
            let within = (at % PAGE_BYTES) as usize;
            let count = (PAGE_BYTES as usize - within).min(to.len() - done);
            let Some(page) = self.page(at - within as u64) else {
                return false;
            };
            to[done..done + count].copy_from_slice(&page[within..within + count]);
            done += count;
            let Some(next) = at.checked_add(count as u64) else {
                return false;
            };
            at = next;
        }
        true
    }

    fn page(&self, begin: u64) -> Option<Page> {
        let mut pages = self.pages.borrow_mut();
        if let Some(known) = pages.get(&begin) {
            return known.clone();
        }
        if pages.len() >= MAX_PAGES {
            return None;
        }
        let tgid = self.tgid;
        let read = move || {
            let mut page = vec![0; PAGE_BYTES as usize];
            read_process(tgid, begin, &mut page).then(|| Page::from(page))
        };
        let page = guarded_for(tgid, read).flatten();
        pages.insert(begin, page.clone());
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_across_pages_is_read_and_what_is_not_there_is_not() {
        let bytes: Vec<u8> = (0..3 * PAGE_BYTES).map(|at| (at % 251) as u8).collect();
        let (begin, own) = (bytes.as_ptr() as u64, std::process::id());
        let (paged, plain) = (PagedMemory::of(own), ProcessMemory::for_a_frame(own));
        for (at, count) in [(0, 8), (PAGE_BYTES - 3, 8), (5, 2 * PAGE_BYTES as usize)] {
            let (mut one, mut other) = (vec![0; count], vec![0; count]);
            assert!(paged.read(begin + at, &mut one) && plain.read(begin + at, &mut other));
            let expected = &bytes[at as usize..at as usize + count];
            assert!(one == expected && other == expected, "{at} {count}");
        }
        for address in [0, 16, u64::MAX - 3] {
            let mut some = [0; 8];
            assert!(!paged.read(address, &mut some) && !plain.read(address, &mut some));
        }
    }

    #[test]
    fn reads_are_limited() {
        let (value, mut read) = (7_u64, [0; 8]);
        let memory = ProcessMemory::for_a_frame(std::process::id());
        let count = (0..)
            .take_while(|_| memory.read((&raw const value) as u64, &mut read))
            .count();
        assert_eq!(count, MAX_READS as usize);
        assert_eq!(memory.reads(), MAX_READS);
        memory.allow_a_table();
        assert!(memory.read((&raw const value) as u64, &mut read));
        assert_eq!(memory.reads(), MAX_READS + 1);
    }
}
