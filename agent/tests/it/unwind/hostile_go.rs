//! Go programs whose pclntab claims a gibibyte, made while they are read: the work and the memory stay bounded, and
//! each says one error.

use std::cell::Cell;

use stakeout_agent::unwind::{FileTable, TableError, compile, compile_part, outline};

use super::hostile::{GIB, ROW_LIMIT, SECTION_AT, bounded, claim};
use crate::damage::in_own_process;
use crate::made::{CODE, X86_64, elf};

/// As many functions as a program may have.
const MOST_FUNCTIONS: u64 = 1 << 21;
const HEADER_BYTES: u64 = 72;
/// From the table's start.
const FUNCTAB: u64 = 4096;
const BLOCK: u64 = 4096;
/// Behind the list of functions; each block has a function's record, and half a block behind it a function's values.
const RECORDS: u64 = (FUNCTAB + (MOST_FUNCTIONS * 2 + 1) * 4).next_multiple_of(BLOCK);
const VALUES: u64 = BLOCK / 2;
/// Nothing but values, as many as one function may have.
const MANY_VALUES: u64 = GIB / 2;
const MANY_VALUES_BYTES: u64 = 256 << 10;

struct Hostile {
    head: Vec<u8>,
    /// Section names and headers, behind the section.
    tail: Vec<u8>,
    functions: u64,
    /// Where a function begins, from the start of the code; one more than there are is where the last ends.
    begin: fn(u64) -> u32,
    /// In which block its record stands.
    record: fn(u64) -> u64,
    /// Pairs of a step and how many bytes of code it holds for, over and over.
    values: [u8; 4],
    /// Each function has as many as it may.
    many: bool,
    read_bytes: Cell<u64>,
}

/// A block for each function, in an order in which hardly two that follow each other are near.
fn scattered(number: u64) -> u64 {
    number * 40_503 % ((GIB - RECORDS) / BLOCK - 1)
}

/// Every other function begins where the first does; only the last one's end lies behind it.
fn over_and_over(number: u64) -> u32 {
    if number == MOST_FUNCTIONS {
        800
    } else {
        (number % 2) as u32 * 400
    }
}

impl Hostile {
    fn new(functions: u64, begin: fn(u64) -> u32, record: fn(u64) -> u64, values: [u8; 4]) -> Self {
        let (head, tail) = claim(elf(X86_64, ".gopclntab", 2, &[]), GIB);
        Self {
            head,
            tail,
            functions,
            begin,
            record,
            values,
            many: false,
            read_bytes: Cell::new(0),
        }
    }

    /// Of functions of 64 KiB, each with a value for each byte of its code, which are the same bytes for all.
    fn with_many(values: [u8; 4]) -> Self {
        Self {
            many: true,
            ..Self::new(1 << 13, |number| (number << 16) as u32, |_| 0, values)
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        self.read_bytes.set(self.read_bytes.get() + into.len() as u64);
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let piece = if at < SECTION_AT {
                self.head[at as usize..].to_vec()
            } else if at < SECTION_AT + GIB {
                self.table(at - SECTION_AT)
            } else {
                match self.tail.get((at - SECTION_AT - GIB) as usize..) {
                    Some(rest) if !rest.is_empty() => rest.to_vec(),
                    _ => return false,
                }
            };
            let count = piece.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&piece[..count]);
            done += count;
        }
        true
    }

    /// Some bytes of pclntab, from one on.
    fn table(&self, at: u64) -> Vec<u8> {
        let part = |bytes: Vec<u8>, begin: u64| bytes[(at - begin) as usize..].to_vec();
        if at < HEADER_BYTES {
            let words = [
                self.functions,
                1,
                CODE,
                HEADER_BYTES,
                HEADER_BYTES,
                HEADER_BYTES,
                HEADER_BYTES,
                FUNCTAB,
            ];
            let words = words.iter().flat_map(|word| word.to_le_bytes());
            // The format of Go 1.20 on, for x86-64.
            return part(
                [0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8].into_iter().chain(words).collect(),
                0,
            );
        }
        if at < FUNCTAB {
            return vec![0; (FUNCTAB - at) as usize];
        }
        if at < RECORDS {
            let number = (at - FUNCTAB) / 8;
            let place = RECORDS + (self.record)(number) * BLOCK - FUNCTAB;
            let entry = [(self.begin)(number), place as u32].map(u32::to_le_bytes).concat();
            return part(entry, FUNCTAB + number * 8);
        }
        let values = |from: u64, until: u64| {
            let values = self.values.iter().copied().cycle().skip((from % 4) as usize);
            values.take((until - from) as usize).collect()
        };
        if (MANY_VALUES..MANY_VALUES + MANY_VALUES_BYTES).contains(&at) {
            return values(at - MANY_VALUES, MANY_VALUES_BYTES);
        }
        let block = at / BLOCK * BLOCK;
        if at - block < VALUES {
            let mut record = vec![0; VALUES as usize];
            // Where the changes of the stack pointer stand.
            let values = if self.many { MANY_VALUES } else { block + VALUES };
            record[16..20].copy_from_slice(&((values - HEADER_BYTES) as u32).to_le_bytes());
            return part(record, block);
        }
        values(at - block - VALUES, BLOCK - VALUES)
    }

    fn check(&self, what: &str, work: impl FnOnce() -> Result<FileTable, TableError>) -> TableError {
        bounded(what, &self.read_bytes, work).unwrap_err()
    }

    fn whole(&self, what: &str) -> TableError {
        self.check(what, || compile(|offset, into| self.read(offset, into), ROW_LIMIT))
    }

    fn first_part(&self, what: &str) -> TableError {
        let outline = outline(|offset, into| self.read(offset, into)).expect("it has many functions");
        self.check(what, || {
            compile_part(|offset, into| self.read(offset, into), &outline, 0, ROW_LIMIT)
        })
    }
}

#[test]
fn a_gibibyte_of_pclntab_is_one_error() {
    if !in_own_process("unwind::hostile_go::a_gibibyte_of_pclntab_is_one_error") {
        return;
    }
    let once = [0x10, 0x7f, 0x10, 0x7f];
    // Two million functions, the record of each in another place of the file.
    let far = Hostile::new(MOST_FUNCTIONS, |number| number as u32 * 400, scattered, once);
    assert_eq!(far.whole("records far apart"), TableError::TooMuchToRead);
    // Every other one at one address, so that no part has an end.
    let same = Hostile::new(MOST_FUNCTIONS, over_and_over, scattered, once);
    assert_eq!(same.first_part("the same over and over"), TableError::TooMuchToRead);
    // Rows that are all different; and no rows, since what lies above the frame is no distance of a stack pointer.
    let rows = Hostile::with_many([0x12, 1, 0x11, 1]);
    assert_eq!(rows.whole("rows"), TableError::TooMuchToRead);
    let nothing = Hostile::with_many([0x0f, 1, 0x10, 1]);
    assert_eq!(nothing.whole("values that say nothing"), TableError::TooMuchToRead);
}

#[test]
fn a_table_that_claims_more_than_there_is_is_none() {
    let too_many = Hostile::new(MOST_FUNCTIONS + 1, |_| 0, |_| 0, [0; 4]);
    assert_eq!(too_many.whole("too many functions"), TableError::NoUnwindInformation);
    let endless = Hostile::new(u64::MAX / 2, |_| 0, |_| 0, [0; 4]);
    assert_eq!(endless.whole("functions without end"), TableError::NoUnwindInformation);
}
