//! The extension module of greenlets (greenlet 2 and 3, x86-64): each greenlet has a stack of its own, which lies where
//! the thread's own stack lies while it runs, and is copied away when another one goes on.
//!
//! What stands behind a greenlet's first function is whatever the greenlet has there that has the rest of the thread's
//! stack by now, which has not called it. The stack ends there, as a thread's ends with its first function. While one
//! gives way to another, the words that are there are of neither, and CPython's own chain of frames is of the other
//! one: the stack ends with what changes over.

use std::ops::Range;

use super::super::error::TableError;
use super::super::frames::limits_of;
use super::super::rule::Rule;
use super::super::table_builder::TableBuilder;
use crate::elf::symbols::{SHT_DYNSYM, SYMBOL_BYTES};
use crate::elf::{Arch, Image, dynamic_symbols};

/// `greenlet::UserGreenlet::inner_bootstrap`, whose arguments differ, and `greenlet::Greenlet::g_switchstack()`. GCC,
/// which makes the packages, inlines neither in a library, since another file might have its own.
const SYMBOLS: [&str; 2] = [
    "_ZN8greenlet12UserGreenlet15inner_bootstrapE*",
    "_ZN8greenlet8Greenlet13g_switchstackEv",
];
/// The module exports some three hundred symbols; of files with more they are not looked for.
const MAX_SYMBOLS: u64 = 2048;
/// Its code has 64 KB.
const MAX_CODE_BYTES: u64 = 1 << 20;

/// Looks for them in files that may be the module. Has to come before other sources.
pub(in crate::unwind) fn compile<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    builder: &mut TableBuilder,
) -> Result<(), TableError> {
    for Range { start, end } in find(image).into_iter().flatten() {
        builder.function(start, end, |row| row(start, Rule::END, None))?;
    }
    Ok(())
}

fn find<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<Vec<Range<u64>>> {
    if image.arch != Arch::X86_64 {
        return None;
    }
    let table = image.section_of_kind(SHT_DYNSYM)?;
    if table.bytes > MAX_SYMBOLS * SYMBOL_BYTES as u64 {
        return None;
    }
    let [first, switches] = dynamic_symbols(image, &SYMBOLS)[..] else {
        return None;
    };
    let mut found = vec![limits_of(image, first?)?];
    // What moves the stack pointer is no method of a class, and has no symbol that is exported.
    let moves = moving_code(image);
    let others = [switches, moves].into_iter().flatten();
    found.extend(others.filter_map(|at| limits_of(image, at)));
    Some(found)
}

/// Where the stack pointer and the frame pointer are moved by the same distance, one behind the other.
fn moving_code<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<u64> {
    let code = image.segments.iter().find(|segment| segment.executable)?;
    let mut bytes = vec![0; usize::try_from(code.bytes.min(MAX_CODE_BYTES)).ok()?];
    image.read_offset(code.offset, &mut bytes)?;
    let at = bytes.windows(6).position(is_move)?;
    code.address.checked_add(at as u64)
}

/// `add %R, %rsp; add %R, %rbp`
fn is_move(code: &[u8]) -> bool {
    let [prefix @ (0x48 | 0x4c), 0x01, sp, second, 0x01, fp] = *code else {
        return false;
    };
    prefix == second && sp & 0xc7 == 0xc4 && fp == sp + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_pointers_are_moved_by_one_register() {
        for (code, expected) in [
            // add %rax, %rsp; add %rax, %rbp
            ([0x48, 0x01, 0xc4, 0x48, 0x01, 0xc5], true),
            // add %rdx, %rsp; add %rdx, %rbp
            ([0x48, 0x01, 0xd4, 0x48, 0x01, 0xd5], true),
            // add %r8, %rsp; add %r8, %rbp
            ([0x4c, 0x01, 0xc4, 0x4c, 0x01, 0xc5], true),
            // Of two registers, of r8 and rax, and of another pointer.
            ([0x48, 0x01, 0xc4, 0x48, 0x01, 0xd5], false),
            ([0x4c, 0x01, 0xc4, 0x48, 0x01, 0xc5], false),
            ([0x48, 0x01, 0xc3, 0x48, 0x01, 0xc4], false),
            // In memory: add %rax, (%rsp)
            ([0x48, 0x01, 0x04, 0x48, 0x01, 0x05], false),
        ] {
            assert_eq!(is_move(&code), expected, "{code:x?}");
        }
    }
}
