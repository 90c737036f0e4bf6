//! The tables of programs of this machine, held against gimli's reading of the same files.

pub(crate) mod constructed;
mod damage;
mod go;
#[cfg(target_arch = "x86_64")]
mod greenlets;
mod ground_truth;
mod hostile;
mod hostile_go;
pub(crate) mod oracle;
mod parts;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use stakeout_agent::unwind::{FileTable, TableError, compile};

const ROW_LIMIT: usize = 8_000_000;

fn compile_file(path: &Path) -> Result<FileTable, TableError> {
    let file = File::open(path).unwrap();
    compile(|offset, into| file.read_exact_at(into, offset).is_ok(), ROW_LIMIT)
}

pub(crate) fn compile_bytes(bytes: &[u8]) -> Result<FileTable, TableError> {
    compile(read_from(bytes), ROW_LIMIT)
}

/// Reads what lies in memory as if it were a file.
fn read_from(bytes: &[u8]) -> impl Fn(u64, &mut [u8]) -> bool {
    |offset, into| {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = begin.checked_add(into.len()).and_then(|end| bytes.get(begin..end));
        part.is_some_and(|part| {
            into.copy_from_slice(part);
            true
        })
    }
}
