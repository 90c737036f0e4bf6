//! Files with a gibibyte of descriptions, made while they are read: the work and the memory stay bounded, and each
//! says one error.

use std::cell::Cell;
use std::ops::Range;

use stakeout_agent::unwind::{FileTable, TableError, compile, compile_part, outline};

use crate::damage::{in_own_process, peak_bytes};
use crate::made::{CODE, X86_64, elf};

pub(super) const GIB: u64 = 1 << 30;
/// As many rows as the agent gives one file.
pub(super) const ROW_LIMIT: usize = 2 << 20;
/// What may be read of descriptions, and of the lists that lead to them.
const MOST_READ: u64 = 320 << 20;
const MOST_MEMORY: u64 = 32 << 20;
/// Where [`elf`] puts the section.
pub(super) const SECTION_AT: u64 = 0x1200;
const BASE: u64 = CODE - 0x200;
/// CFA = rsp + 8, return address below it.
const CIE: &[u8] = &[
    20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0,
];

/// An ELF file whose .eh_frame has one CIE and then functions that are all described by the same bytes.
struct Hostile {
    bytes: u64,
    head: Vec<u8>,
    /// Section names and headers, behind the section.
    tail: Vec<u8>,
    /// One FDE. Its way back to the CIE and its first address are filled in.
    fde: Vec<u8>,
    begin: fn(u64) -> u64,
    /// Entries of an index, all with this address.
    index: Option<(u32, u64)>,
    read_bytes: Cell<u64>,
}

/// What stands before and behind the section of a file whose section claims `bytes` bytes more than there are.
pub(super) fn claim(mut file: Vec<u8>, bytes: u64) -> (Vec<u8>, Vec<u8>) {
    let mut tail = file.split_off(SECTION_AT as usize);
    let add = |file: &mut [u8], at: usize| {
        let old = u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        file[at..at + 8].copy_from_slice(&(old + bytes).to_le_bytes());
    };
    // Where the section headers are; how large the segment is.
    add(&mut file, 40);
    add(&mut file, 64 + 32);
    // Of the section its size, of its name's where it lies.
    let headers = tail.len() - 3 * 64;
    add(&mut tail, headers + 64 + 32);
    add(&mut tail, headers + 128 + 24);
    (file, tail)
}

/// Does something with a file, and holds what is read of it and the memory against the bounds.
pub(super) fn bounded<T, E: std::fmt::Debug>(
    what: &str,
    read_bytes: &Cell<u64>,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_bytes();
    read_bytes.set(0);
    let result = work();
    let (grown, read) = (peak_bytes() - before, read_bytes.get());
    println!(
        "{what}: {read} bytes read, {grown} bytes more, {:?}",
        result.as_ref().err()
    );
    assert!(read <= MOST_READ, "{what}: {read} bytes read");
    assert!(grown <= MOST_MEMORY, "{what}: {grown} bytes more");
    result
}

impl Hostile {
    fn new(instructions: &[u8], covers: u64, begin: fn(u64) -> u64) -> Self {
        let mut fde = vec![0; 8 + 16 + 1];
        fde[16..24].copy_from_slice(&covers.to_le_bytes());
        fde.extend(instructions);
        fde.resize(fde.len().next_multiple_of(8), 0);
        let length = (fde.len() - 4) as u32;
        fde[..4].copy_from_slice(&length.to_le_bytes());
        let bytes = GIB / 8 * 8;
        let (head, tail) = claim(elf(X86_64, ".eh_frame", 2, &[]), bytes);
        Self {
            bytes,
            head,
            tail,
            fde,
            begin,
            index: None,
            read_bytes: Cell::new(0),
        }
    }

    /// With .eh_frame_hdr of so many entries, all for one address.
    fn indexed(mut self, entries: u32, address: u64) -> Self {
        let place = self.index_at();
        self.head[56] = 2;
        let header = &mut self.head[64 + 56..][..56];
        header[..4].copy_from_slice(&0x6474_e550u32.to_le_bytes());
        header[8..16].copy_from_slice(&place.to_le_bytes());
        header[16..24].copy_from_slice(&(BASE + place).to_le_bytes());
        let end = place + 12 + u64::from(entries) * 8;
        self.head[64 + 32..][..8].copy_from_slice(&end.to_le_bytes());
        self.index = Some((entries, address));
        self
    }

    fn index_at(&self) -> u64 {
        (SECTION_AT + self.bytes + self.tail.len() as u64).next_multiple_of(8)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        self.read_bytes.set(self.read_bytes.get() + into.len() as u64);
        let mut done = 0;
        while done < into.len() {
            let Some(count) = self.piece(offset + done as u64, &mut into[done..]) else {
                return false;
            };
            done += count;
        }
        true
    }

    /// Some bytes from an offset on; none behind the end.
    fn piece(&self, offset: u64, into: &mut [u8]) -> Option<usize> {
        let copy = |from: &[u8], at: u64, into: &mut [u8]| {
            let from = &from[at as usize..];
            let count = from.len().min(into.len());
            into[..count].copy_from_slice(&from[..count]);
            count
        };
        if offset < SECTION_AT {
            return Some(copy(&self.head, offset, into));
        }
        let in_section = offset - SECTION_AT;
        if in_section < CIE.len() as u64 {
            return Some(copy(CIE, in_section, into));
        }
        if in_section < self.bytes {
            let in_functions = in_section - CIE.len() as u64;
            let (number, at) = (
                in_functions / self.fde.len() as u64,
                in_functions % self.fde.len() as u64,
            );
            if at >= 16 {
                return Some(copy(&self.fde, at, into));
            }
            let mut start = [0; 16];
            start[..4].copy_from_slice(&self.fde[..4]);
            let back = (in_section - at + 4) as u32;
            start[4..8].copy_from_slice(&back.to_le_bytes());
            start[8..16].copy_from_slice(&(self.begin)(number).to_le_bytes());
            return Some(copy(&start, at, into));
        }
        let in_tail = in_section - self.bytes;
        if in_tail < self.tail.len() as u64 {
            return Some(copy(&self.tail, in_tail, into));
        }
        self.index_piece(offset, into)
    }

    fn index_piece(&self, offset: u64, into: &mut [u8]) -> Option<usize> {
        let (entries, address) = self.index?;
        let in_index = offset.checked_sub(self.index_at())?;
        let relative = |address: u64, to: u64| (address.wrapping_sub(to) as i32).to_le_bytes();
        let header = BASE + self.index_at();
        let (bytes, at) = if in_index < 12 {
            // Version 1; where .eh_frame is, relative to this field; how many entries; of 4 bytes, relative to the
            // header.
            let eh_frame = relative(BASE + SECTION_AT, header + 4);
            let parts = [&[1, 0x1b, 3, 0x3b][..], &eh_frame, &entries.to_le_bytes()];
            (parts.concat(), in_index)
        } else {
            let number = (in_index - 12) / 8;
            if number >= u64::from(entries) {
                return None;
            }
            let fde = BASE + SECTION_AT + CIE.len() as u64;
            let entry = [relative(address, header), relative(fde, header)].concat();
            (entry, (in_index - 12) % 8)
        };
        let from = &bytes[at as usize..];
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        Some(count)
    }

    /// Does something with the file, and holds it against the bounds.
    fn check(
        &self,
        what: &str,
        work: impl FnOnce(&Self) -> Result<FileTable, TableError>,
    ) -> Result<FileTable, TableError> {
        bounded(what, &self.read_bytes, || work(self))
    }

    fn whole(&self, what: &str) -> Result<FileTable, TableError> {
        self.check(what, |file| compile(|offset, into| file.read(offset, into), ROW_LIMIT))
    }
}

/// A program of advance_loc by one and def_cfa_offset, over and over: a row for each byte.
fn many_rows(rows: Range<u8>, times: usize) -> Vec<u8> {
    let once: Vec<u8> = rows.flat_map(|row| [0x41, 0x0e, 8 + row * 8 % 120]).collect();
    once.repeat(times)
}

#[test]
fn a_gibibyte_of_descriptions_is_one_error() {
    if !in_own_process("unwind::hostile::a_gibibyte_of_descriptions_is_one_error") {
        return;
    }
    // Long programs of nothing, all of one function.
    let nops = Hostile::new(&vec![0; 200 << 10], 64, |_| CODE);
    assert_eq!(nops.whole("nothing, at length"), Err(TableError::TooMuchToRead));
    // As many rows as programs can have, of functions that overlap, and of functions that don't.
    let program = many_rows(0..15, 4000);
    let overlapping = Hostile::new(&program, 1 << 16, |number| CODE + number * 40);
    assert_eq!(overlapping.whole("rows that overlap"), Err(TableError::TooMuchToRead));
    let rows = Hostile::new(&program, 1 << 16, |number| CODE + (number << 16));
    assert_eq!(rows.whole("rows"), Err(TableError::TooMuchToRead));
    // As many functions as find room, all of one address, and each of its own.
    let same = Hostile::new(&[], 64, |_| CODE);
    assert_eq!(same.whole("one address"), Err(TableError::TooManyFunctions));
    let own = Hostile::new(&[], 8, |number| CODE + number * 8);
    assert_eq!(own.whole("an address each"), Err(TableError::TooManyFunctions));
}

#[test]
fn an_index_that_leads_to_the_same_description_for_ever_ends() {
    if !in_own_process("unwind::hostile::an_index_that_leads_to_the_same_description_for_ever_ends") {
        return;
    }
    let long = Hostile::new(&vec![0; 200 << 10], 64, |_| CODE).indexed(12 << 20, CODE);
    let short = Hostile::new(&[], 64, |_| CODE).indexed(12 << 20, CODE);
    for (file, what) in [(long, "long"), (short, "short")] {
        let outline = outline(|offset, into| file.read(offset, into)).expect("it has many functions");
        let part = |file: &Hostile| compile_part(|offset, into| file.read(offset, into), &outline, 0, ROW_LIMIT);
        let error = file.check(what, part).unwrap_err();
        assert_eq!(
            error,
            if what == "long" {
                TableError::TooMuchToRead
            } else {
                TableError::TooManyFunctions
            }
        );
    }
}
