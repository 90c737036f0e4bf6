//! Codes and differences packed as Parquet has them. Pure.
//!
//! In: codes of a column, row by row or as runs; numbers. Out: bytes of pages. Formats: parquet-format,
//! `Encodings.md` ("RLE / Bit-Packing Hybrid", "Delta Encoding").

use crate::column::runs::{ABSENT, Runs, run_length};
use std::borrow::Cow;

/// The codes of a column, [`ABSENT`] where a row has no value.
pub(crate) enum CodeStream<'c> {
    Rows(Cow<'c, [u32]>),
    Runs(Cow<'c, [(u32, u32)]>),
}

impl<'c> CodeStream<'c> {
    pub(crate) fn of_rows(codes: &'c [u32]) -> Self {
        CodeStream::Rows(codes.into())
    }

    pub(crate) fn of_runs(runs: &'c [(u32, u32)]) -> Self {
        CodeStream::Runs(runs.into())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            CodeStream::Rows(codes) => codes.len(),
            CodeStream::Runs(runs) => runs.iter().map(|(_, count)| *count as usize).sum(),
        }
    }

    pub(crate) fn absent(&self) -> usize {
        match self {
            CodeStream::Rows(codes) => codes.iter().filter(|code| **code == ABSENT).count(),
            CodeStream::Runs(runs) => {
                let absent = runs.iter().filter(|(code, _)| *code == ABSENT);
                absent.map(|(_, count)| *count as usize).sum()
            }
        }
    }

    /// Those of as many rows each as are given, where they are given row by row.
    pub(crate) fn cut(&self, page_rows: &[usize]) -> Vec<CodeStream<'_>> {
        let CodeStream::Rows(codes) = self else {
            return self.pages(self.len().max(1));
        };
        let mut rest = &codes[..];
        let mut pages = Vec::with_capacity(page_rows.len());
        for rows in page_rows {
            // The first rows are tried with the pages of all.
            if rest.is_empty() {
                break;
            }
            let (page, behind) = rest.split_at((*rows).min(rest.len()));
            pages.push(CodeStream::of_rows(page));
            rest = behind;
        }
        if !rest.is_empty() {
            pages.push(CodeStream::of_rows(rest));
        }
        pages
    }

    /// Cut after so many rows each.
    pub(crate) fn pages(&self, page_rows: usize) -> Vec<CodeStream<'_>> {
        let runs = match self {
            CodeStream::Rows(codes) => return codes.chunks(page_rows).map(CodeStream::of_rows).collect(),
            CodeStream::Runs(runs) => runs,
        };
        let (mut pages, mut page, mut room) = (Vec::new(), Runs::new(), page_rows as u32);
        for (code, count) in runs.iter() {
            let mut left = *count;
            while left > 0 {
                let taken = left.min(room);
                page.push((*code, taken));
                (left, room) = (left - taken, room - taken);
                if room == 0 {
                    pages.push(CodeStream::Runs(std::mem::take(&mut page).into()));
                    room = page_rows as u32;
                }
            }
        }
        if !page.is_empty() {
            pages.push(CodeStream::Runs(page.into()));
        }
        pages
    }

    /// 1 for each row that has a value, 0 for others; and the codes of those that have.
    pub(crate) fn levels(&self) -> (CodeStream<'static>, CodeStream<'static>) {
        let is_present = |code: u32| u32::from(code != ABSENT);
        match self {
            CodeStream::Rows(codes) => {
                let levels: Vec<u32> = codes.iter().map(|code| is_present(*code)).collect();
                let present: Vec<u32> = codes.iter().copied().filter(|code| *code != ABSENT).collect();
                (CodeStream::Rows(levels.into()), CodeStream::Rows(present.into()))
            }
            CodeStream::Runs(runs) => {
                let levels: Runs = runs.iter().map(|(code, count)| (is_present(*code), *count)).collect();
                let present: Runs = runs.iter().copied().filter(|(code, _)| *code != ABSENT).collect();
                (CodeStream::Runs(levels.into()), CodeStream::Runs(present.into()))
            }
        }
    }

    /// As [`CodeStream::write`] does, but without runs where they are given row by row.
    pub(crate) fn write_each(&self, width: u32, to: &mut Vec<u8>) {
        match self {
            CodeStream::Rows(codes) => pack(codes, width, to),
            CodeStream::Runs(_) => self.write(width, to),
        }
    }

    pub(crate) fn write(&self, width: u32, to: &mut Vec<u8>) {
        match self {
            CodeStream::Rows(codes) => hybrid(codes, width, to),
            CodeStream::Runs(runs) => hybrid_of_runs(runs, width, to),
        }
    }
}

/// A run is worth its header where it fills as many groups of eight.
const LEAST_RUN: usize = 8;

/// Codes of `width` bits: runs of equal ones, and groups of eight between them.
pub(crate) fn hybrid(codes: &[u32], width: u32, to: &mut Vec<u8>) {
    let (mut literal, mut at) = (0, 0);
    // Most codes are not those of their neighbours. Wherever a run begins that is worth its header, there is one of
    // each four codes that the next four equal.
    while let Some((code, next)) = codes[at..]
        .split_first_chunk::<5>()
        .map(|([code, next @ ..], _)| (*code, next))
    {
        if next.iter().any(|next| *next != code) {
            at += 4;
            continue;
        }
        let before = codes[literal..at].iter().rev().take_while(|before| **before == code);
        let begin = at - before.count();
        let end = at + run_length(&codes[at..], |other| other == code);
        // What stands before a run fills whole groups, if need be with the run's first codes.
        let begin = literal + (begin - literal).next_multiple_of(8);
        if end >= begin + LEAST_RUN {
            pack(&codes[literal..begin], width, to);
            run(code, end - begin, width, to);
            literal = end;
        }
        at = end;
    }
    pack(&codes[literal..], width, to);
}

/// The same of codes that are given as runs.
pub(crate) fn hybrid_of_runs(runs: &[(u32, u32)], width: u32, to: &mut Vec<u8>) {
    let mut literal: Vec<u32> = Vec::new();
    for same in runs.chunk_by(|(a, _), (b, _)| a == b) {
        let (code, mut count) = (same[0].0, same.iter().map(|(_, count)| *count as usize).sum::<usize>());
        let filling = literal.len().next_multiple_of(8) - literal.len();
        if count >= filling + LEAST_RUN {
            literal.extend(std::iter::repeat_n(code, filling));
            count -= filling;
            pack(&literal, width, to);
            literal.clear();
            run(code, count, width, to);
        } else {
            literal.extend(std::iter::repeat_n(code, count));
        }
    }
    pack(&literal, width, to);
}

/// So many times the same code.
pub(crate) fn run(code: u32, count: usize, width: u32, to: &mut Vec<u8>) {
    varint((count as u64) << 1, to);
    to.extend_from_slice(&code.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Groups of eight codes, the last one filled up with zeros.
fn pack(codes: &[u32], width: u32, to: &mut Vec<u8>) {
    if codes.is_empty() {
        return;
    }
    let groups = codes.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, to);
    let end = to.len() + groups * width as usize;
    match width {
        8 => to.extend(codes.iter().map(|code| *code as u8)),
        16 => to.extend(codes.iter().flat_map(|code| (*code as u16).to_le_bytes())),
        _ => pack_bits(codes.iter().map(|code| u64::from(*code)), width, to),
    }
    to.resize(end, 0);
}

/// Numbers of `width` bits, least significant bit first; the last byte is filled up with zeros.
fn pack_bits(numbers: impl Iterator<Item = u64>, width: u32, to: &mut Vec<u8>) {
    let (mut bits, mut filled) = (0_u64, 0);
    for number in numbers {
        bits |= number << filled;
        filled += width;
        if filled >= u64::BITS {
            to.extend_from_slice(&bits.to_le_bytes());
            filled -= u64::BITS;
            // What of the number had no room; all of it had where it ends with the bits.
            bits = number.checked_shr(width - filled).unwrap_or_default();
        }
    }
    to.extend_from_slice(&bits.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Differences of neighbours of `DELTA_BINARY_PACKED` that have a least one in common, where they are few and where
/// they are many, and of those the ones that have a width in common.
const BLOCK_DELTAS: usize = 128;

const LARGE_BLOCK_DELTAS: usize = 1024;

const MINIBLOCK_DELTAS: usize = 32;

/// How many differences have a least one in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    Small,
    /// These take less where no difference is far from all others.
    Large,
}

impl Blocks {
    /// Those by which a page of these numbers takes less.
    pub(crate) fn smallest(numbers: &[i64]) -> Self {
        // The least and the greatest difference of each part that has a width of its own.
        let mut parts: Vec<(i64, i64)> = Vec::with_capacity(numbers.len() / MINIBLOCK_DELTAS + 1);
        for at in (1..numbers.len()).step_by(MINIBLOCK_DELTAS) {
            let part = &numbers[at - 1..numbers.len().min(at + MINIBLOCK_DELTAS)];
            let deltas = part.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
            parts.push(deltas.fold((i64::MAX, i64::MIN), |(least, most), delta| {
                (least.min(delta), most.max(delta))
            }));
        }
        let bytes = |blocks: Self| -> usize {
            let of_block = blocks.deltas() / MINIBLOCK_DELTAS;
            let blocks = parts.chunks(of_block).map(|parts| {
                let least = parts.iter().map(|(least, _)| *least).min().unwrap_or_default();
                let widths = parts
                    .iter()
                    .map(|(_, most)| width(most.wrapping_sub(least) as u64) as usize);
                varint_bytes(zigzag(least)) + of_block + widths.sum::<usize>() * MINIBLOCK_DELTAS / 8
            });
            blocks.sum()
        };
        if bytes(Self::Large) < bytes(Self::Small) {
            Self::Large
        } else {
            Self::Small
        }
    }

    fn deltas(self) -> usize {
        match self {
            Self::Small => BLOCK_DELTAS,
            Self::Large => LARGE_BLOCK_DELTAS,
        }
    }
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// A page of `DELTA_BINARY_PACKED`: the first number, then blocks of differences.
pub(crate) fn deltas(numbers: &[i64], blocks: Blocks, to: &mut Vec<u8>) {
    let size = blocks.deltas();
    varint(size as u64, to);
    varint((size / MINIBLOCK_DELTAS) as u64, to);
    varint(numbers.len() as u64, to);
    varint(zigzag(numbers.first().copied().unwrap_or_default()), to);
    let mut block = [0_i64; LARGE_BLOCK_DELTAS];
    for at in (1..numbers.len()).step_by(size) {
        let numbers = &numbers[at - 1..numbers.len().min(at + size)];
        let block = &mut block[..numbers.len() - 1];
        for (delta, pair) in block.iter_mut().zip(numbers.windows(2)) {
            *delta = pair[1].wrapping_sub(pair[0]);
        }
        let least = block.iter().copied().min().unwrap_or_default();
        varint(zigzag(least), to);
        let above = |delta: &i64| delta.wrapping_sub(least) as u64;
        let parts = block.chunks(MINIBLOCK_DELTAS);
        let width = |part: &[i64]| width(part.iter().fold(0, |all, delta| all | above(delta)));
        let mut widths = [0; LARGE_BLOCK_DELTAS / MINIBLOCK_DELTAS];
        for (of_part, part) in widths.iter_mut().zip(parts.clone()) {
            *of_part = width(part) as u8;
        }
        to.extend_from_slice(&widths[..size / MINIBLOCK_DELTAS]);
        for (part, width) in parts.zip(widths) {
            let end = to.len() + MINIBLOCK_DELTAS / 8 * usize::from(width);
            pack_bits(part.iter().map(above), u32::from(width), to);
            to.resize(end, 0);
        }
    }
}

/// Bits of a number.
fn width(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

fn varint_bytes(value: u64) -> usize {
    width(value).max(1).div_ceil(7) as usize
}

/// Unsigned LEB128.
fn varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}
