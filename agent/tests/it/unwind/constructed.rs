//! Small ELF files made byte by byte: what the programs of this machine don't have.

use stakeout_agent::unwind::{CallerFp, CallerPc, Cfa, FileTable, TableError, Unsupported, compile};

pub(crate) use crate::made::{ARM64, CODE, elf};

use super::compile_bytes;
use crate::made::X86_64;

const COMPRESSED: u64 = 0x800;

/// An entry with its length in front, padded with nops.
fn entry(parts: &[&[u8]]) -> Vec<u8> {
    let mut body = parts.concat();
    body.resize(body.len().next_multiple_of(4), 0);
    let mut entry = (body.len() as u32).to_le_bytes().to_vec();
    entry.extend(body);
    entry
}

/// .eh_frame of one CIE with absolute addresses of 8 bytes, and functions of 64 bytes one after the other.
pub(crate) fn eh_frame(augmentation: &str, arch: &[u8; 3], initial: &[u8], functions: &[&[u8]]) -> Vec<u8> {
    let name = format!("z{augmentation}R\0");
    let mut bytes = entry(&[&[0, 0, 0, 0, 1], name.as_bytes(), arch, &[1, 0], initial]);
    for (index, instructions) in functions.iter().enumerate() {
        let back = (bytes.len() as u32 + 4).to_le_bytes();
        let begin = (CODE + 64 * index as u64).to_le_bytes();
        bytes.extend(entry(&[&back, &begin, &64u64.to_le_bytes(), &[0], instructions]));
    }
    bytes.extend([0; 4]);
    bytes
}

/// Code alignment 1, data alignment -8, return address 16; CFA = rsp + 8, return address below it.
pub(crate) const AMD64: &[u8; 3] = &[1, 0x78, 16];
pub(crate) const AMD64_INITIAL: &[u8] = &[0x0c, 7, 8, 0x90, 1];
/// Code alignment 4, data alignment -8, return address 30; CFA = sp.
pub(crate) const AARCH64: &[u8; 3] = &[4, 0x78, 30];
pub(crate) const AARCH64_INITIAL: &[u8] = &[0x0c, 31, 0];

fn amd64(functions: &[&[u8]]) -> FileTable {
    let frames = eh_frame("", AMD64, AMD64_INITIAL, functions);
    compile_bytes(&elf(X86_64, ".eh_frame", 2, &frames)).unwrap()
}

fn at(table: &FileTable, offset: u64) -> (Cfa, CallerFp, CallerPc) {
    let rule = table.rule_at(CODE + offset);
    (rule.cfa(), rule.fp(), rule.pc())
}

#[test]
fn every_instruction_of_dwarf_5_and_gnu() {
    let set_loc = [&[1][..], &(CODE + 128 + 32).to_le_bytes(), &[0x0e, 48]].concat();
    let table = amd64(&[
        // push; then saved, restored and remembered by each of the ways there are.
        &[
            0x41, 0x0e, 16, 0x86, 2, 0x41, 0x0d, 6, 0x0a, 0x41, 0x0c, 7, 24, 0xc6, 0x41, 0x0b, 0x41, 0x06, 6,
        ],
        // def_cfa_sf, def_cfa_offset_sf, offset_extended_sf, GNU_args_size, GNU_negative_offset_extended, same_value.
        &[
            0x12, 7, 0x7e, 0x41, 0x13, 0x7d, 0x41, 0x11, 6, 3, 0x2e, 8, 0x41, 0x2f, 6, 2, 0x41, 0x08, 6,
        ],
        &set_loc,
        // val_offset, then a register, then undefined.
        &[0x14, 6, 2, 0x41, 0x09, 6, 3, 0x41, 0x07, 6],
        &[0x41, 0x07, 16],
        &[0x02, 8, 0x0e, 16, 0x03, 8, 0, 0x0e, 24, 0x04, 8, 0, 0, 0, 0x0e, 32],
    ]);
    let sp = |offset| (Cfa::Sp(offset), CallerFp::Same, CallerPc::BelowCfa);
    assert_eq!(at(&table, 0), sp(8));
    let saved = |cfa, words| (cfa, CallerFp::AtCfa(words), CallerPc::BelowCfa);
    assert_eq!(at(&table, 1), saved(Cfa::Sp(16), -2));
    assert_eq!(at(&table, 2), saved(Cfa::Fp(16), -2));
    assert_eq!(at(&table, 3), sp(24), "restored by one byte");
    assert_eq!(at(&table, 4), saved(Cfa::Fp(16), -2), "remembered");
    assert_eq!(
        at(&table, 5),
        (Cfa::Fp(16), CallerFp::Same, CallerPc::BelowCfa),
        "restored"
    );
    assert_eq!([at(&table, 64), at(&table, 65)], [sp(16), sp(24)]);
    assert_eq!(at(&table, 66), saved(Cfa::Sp(24), -3));
    assert_eq!(at(&table, 67), saved(Cfa::Sp(24), 2));
    assert_eq!(at(&table, 68), sp(24));
    assert_eq!([at(&table, 128 + 31), at(&table, 128 + 32)], [sp(8), sp(48)]);
    let lost = (Cfa::Sp(8), CallerFp::Undefined, CallerPc::BelowCfa);
    assert_eq!([at(&table, 192), at(&table, 193), at(&table, 194)], [lost; 3]);
    assert_eq!([at(&table, 256).0, at(&table, 257).0], [Cfa::Sp(8), Cfa::End]);
    let last = 320;
    assert_eq!([at(&table, last + 7), at(&table, last + 8)], [sp(8), sp(16)]);
    assert_eq!([at(&table, last + 15), at(&table, last + 16)], [sp(16), sp(24)]);
    assert_eq!([at(&table, last + 23), at(&table, last + 63)], [sp(24), sp(32)]);
    assert_eq!(at(&table, 384).0, Cfa::Unknown, "behind the last function");
    let unsupported: Vec<_> = Unsupported::ALL
        .into_iter()
        .zip(table.stats.unsupported)
        .filter(|(_, n)| *n > 0)
        .collect();
    assert_eq!(unsupported, [(Unsupported::FramePointer, 2)]);
    assert_eq!((table.stats.fdes, table.stats.malformed), (6, 0));
}

#[test]
fn expressions_of_compilers_and_linkers() {
    let plt = [
        &[0x0f, 11, 0x77, 8, 0x80, 0][..],
        &[0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22],
    ]
    .concat();
    let table = amd64(&[
        &plt,
        // GCC's stack realignment: CFA = r10; rbp saved where rbp points; CFA = *(rbp - 8).
        &[0x0c, 10, 0, 0x41, 0x10, 6, 2, 0x76, 0, 0x41, 0x0f, 3, 0x76, 0x78, 0x06],
        &[0x0f, 5, 0x77, 0x10, 0x06, 0x23, 8],
        &[0x0f, 4, 0x77, 8, 0x79, 0, 0x41, 0x0c, 7, 32],
    ]);
    assert_eq!(
        at(&table, 0).0,
        Cfa::Plt {
            threshold: 11,
            offset: 8
        }
    );
    assert_eq!(
        at(&table, 64).0,
        Cfa::Register {
            register: 10,
            offset: 0
        }
    );
    assert_eq!(at(&table, 65).1, CallerFp::AtFp(0));
    assert_eq!(
        at(&table, 66),
        (
            Cfa::FpDeref { at: -8, offset: 0 },
            CallerFp::AtFp(0),
            CallerPc::BelowCfa
        )
    );
    assert_eq!(at(&table, 128).0, Cfa::SpDeref { at: 16, offset: 8 });
    assert_eq!([at(&table, 192).0, at(&table, 193).0], [Cfa::Unknown, Cfa::Sp(32)]);
    assert_eq!(table.stats.unsupported_rows(), 1);
}

#[test]
fn signal_frames_and_instructions_that_make_no_sense() {
    let frames = eh_frame("S", AMD64, AMD64_INITIAL, &[&[0xff, 0xff]]);
    let table = compile_bytes(&elf(X86_64, ".eh_frame", 2, &frames)).unwrap();
    assert_eq!([at(&table, 0).0, at(&table, 63).0], [Cfa::Signal; 2]);
    // 0x2d is a sign of arm64 only; restore_state has nothing to restore.
    let table = amd64(&[&[0x41, 0x0e, 16, 0x41, 0x2d], &[0x41, 0x0b]]);
    assert_eq!(
        [at(&table, 0).0, at(&table, 1).0, at(&table, 2).0],
        [Cfa::Sp(8), Cfa::Sp(16), Cfa::Unknown]
    );
    assert_eq!(table.stats.malformed, 2);
}

#[test]
fn arm64_functions() {
    let instructions = [
        0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29, 0x41, 0x0c, 31, 0, 0xdd, 0xde, 0x2d, 0x41, 0x07,
        30,
    ];
    let frames = eh_frame("B", AARCH64, AARCH64_INITIAL, &[&instructions]);
    let table = compile_bytes(&elf(ARM64, ".eh_frame", 2, &frames)).unwrap();
    let leaf = (Cfa::Sp(0), CallerFp::Same, CallerPc::LinkRegister);
    assert_eq!([at(&table, 0), at(&table, 4), at(&table, 7)], [leaf; 3]);
    assert_eq!(at(&table, 8), (Cfa::Sp(32), CallerFp::AtCfa(-4), CallerPc::AtCfa(-3)));
    assert_eq!(at(&table, 12), (Cfa::Fp(32), CallerFp::AtCfa(-4), CallerPc::AtCfa(-3)));
    assert_eq!(at(&table, 16), leaf);
    assert_eq!(at(&table, 20).0, Cfa::End);
    assert_eq!((table.stats.malformed, table.stats.unsupported_rows()), (0, 0));
    // The word below the canonical frame address needs no number of its own.
    let frames = eh_frame("", AARCH64, AARCH64_INITIAL, &[&[0x0e, 16, 0x9d, 2, 0x9e, 1]]);
    let table = compile_bytes(&elf(ARM64, ".eh_frame", 2, &frames)).unwrap();
    assert_eq!(at(&table, 0), (Cfa::Sp(16), CallerFp::AtCfa(-2), CallerPc::BelowCfa));
}

/// .debug_frame of version 4, in the form with lengths of 32 bits or of 64.
fn debug_frame(long: bool) -> Vec<u8> {
    let push = [0x41, 0x0e, 16, 0x86, 2];
    let cie = [&[4, 0, 8, 0, 1, 0x78, 16][..], AMD64_INITIAL].concat();
    let (begin, bytes) = (CODE.to_le_bytes(), 64u64.to_le_bytes());
    if !long {
        return [entry(&[&[0xff; 4], &cie]), entry(&[&[0; 4], &begin, &bytes, &push])].concat();
    }
    let long = |parts: &[&[u8]]| {
        let body = parts.concat();
        [&[0xff; 4][..], &(body.len() as u64).to_le_bytes(), &body].concat()
    };
    [long(&[&[0xff; 8], &cie]), long(&[&[0; 8], &begin, &bytes, &push])].concat()
}

fn compressed(method: u32, plain: &[u8], packed: &[u8]) -> Vec<u8> {
    let header = [method.to_le_bytes(), [0; 4]].concat();
    [
        &header[..],
        &(plain.len() as u64).to_le_bytes(),
        &1u64.to_le_bytes(),
        packed,
    ]
    .concat()
}

#[test]
fn debug_frame_plain_and_compressed() {
    use std::io::Write;
    let plain = debug_frame(false);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    zlib.write_all(&plain).unwrap();
    let zlib = compressed(1, &plain, &zlib.finish().unwrap());
    let zstd = compressed(2, &plain, &zstd::encode_all(&plain[..], 19).unwrap());
    let long = debug_frame(true);
    for (flags, content) in [(0, &plain), (COMPRESSED, &zlib), (COMPRESSED, &zstd), (0, &long)] {
        let table = compile_bytes(&elf(X86_64, ".debug_frame", flags, content)).unwrap();
        assert_eq!(at(&table, 0), (Cfa::Sp(8), CallerFp::Same, CallerPc::BelowCfa));
        assert_eq!(at(&table, 63), (Cfa::Sp(16), CallerFp::AtCfa(-2), CallerPc::BelowCfa));
        assert_eq!((table.stats.fdes, table.stats.malformed), (1, 0));
    }
    let unknown = compressed(3, &plain, &plain);
    let error = compile_bytes(&elf(X86_64, ".debug_frame", COMPRESSED, &unknown)).unwrap_err();
    assert_eq!(error, TableError::NoUnwindInformation);
}

#[test]
fn files_without_a_table_say_why() {
    assert_eq!(compile_bytes(b"#!/bin/sh").unwrap_err(), TableError::NotElf);
    assert_eq!(
        compile_bytes(&elf(3, ".eh_frame", 2, &[])).unwrap_err(),
        TableError::NotElf
    );
    let nothing = compile_bytes(&elf(X86_64, ".text", 2, &[0; 16])).unwrap_err();
    assert_eq!(nothing, TableError::NoUnwindInformation);
    let frames = eh_frame(
        "",
        AMD64,
        AMD64_INITIAL,
        &[&[0x41, 0x0e, 16, 0x41, 0x0e, 24, 0x41, 0x0e, 16]],
    );
    let bytes = elf(X86_64, ".eh_frame", 2, &frames);
    let read = |offset: u64, into: &mut [u8]| {
        let begin = offset as usize;
        into.copy_from_slice(&bytes[begin..begin + into.len()]);
        true
    };
    assert_eq!(compile(read, 6).unwrap().rows.len(), 6);
    assert_eq!(compile(read, 5).unwrap_err(), TableError::TooManyRows { limit: 5 });
}
