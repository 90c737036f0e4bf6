//! Files of other processes: opened and read so that nobody can make the agent wait, or read what he could not.
//!
//! In: process ids and paths as a process sees them. Out: files and what they were when they were opened. What may
//! never end is done on a thread that may be left behind ([`sys::guarded`]); files that somebody serves are read there
//! too.

mod held;
mod mounts;

pub(crate) use held::{Held, SafeFile};

use std::fs::File;

use crate::sys::{self, FileState, find_place, find_place_in, open_place};

/// Opens a regular file at a place for reading, and nothing else: opening a device can do things, while opening a pipe
/// may never end.
fn open_regular_at(tgid: u32, place: &File) -> Option<SafeFile> {
    let state = sys::file_state(place).ok()?;
    if !state.is_regular() {
        return None;
    }
    let file = open_place(place).ok()?;
    let local = mounts::is_local(tgid, state.device, sys::monotonic_ns());
    Some(SafeFile::new(file, sys::file_state(place).ok()?, local))
}

/// Opens the regular file to which a path of this process's own leads.
pub(crate) fn open_regular(path: &str) -> Option<SafeFile> {
    open_regular_at(std::process::id(), &find_place(path).ok()?)
}

/// Opens what a process has mapped at these addresses, as only /proc knows it: also what was deleted, or lies elsewhere
/// for others.
pub(super) fn open_mapped(tgid: u32, start: u64, end: u64) -> Option<SafeFile> {
    open_regular_at(tgid, &find_place(&map_file(tgid, start, end)).ok()?)
}

/// What it is, without opening it, and whether it needs no server.
pub(super) fn mapped_state(tgid: u32, start: u64, end: u64) -> Option<(FileState, bool)> {
    let state = sys::path_state(&map_file(tgid, start, end)).ok()?;
    Some((state, mounts::is_local(tgid, state.device, sys::monotonic_ns())))
}

fn map_file(tgid: u32, start: u64, end: u64) -> String {
    format!("/proc/{tgid}/map_files/{start:x}-{end:x}")
}

/// Opens the regular file to which a path leads for a process. No link leads out of its root.
pub(crate) fn open_in_root(tgid: u32, path: &str) -> Option<SafeFile> {
    let root = find_place(&format!("/proc/{tgid}/root")).ok()?;
    open_regular_at(tgid, &find_place_in(&root, path, true).ok()?)
}

/// The same for a file that a process has written for others to read: it is no link, and belongs to the process's user
/// or to root, who must let the process read it.
pub(super) fn open_own(tgid: u32, path: &str, user: u32) -> Option<SafeFile> {
    let root = find_place(&format!("/proc/{tgid}/root")).ok()?;
    let place = find_place_in(&root, path, false).ok()?;
    let state = sys::file_state(&place).ok()?;
    let readable = state.owner == user || (state.owner == 0 && state.is_public());
    if !readable {
        tracing::debug!(
            tgid,
            owner = state.owner,
            "a perf map is another user's: it is not read"
        );
        return None;
    }
    open_regular_at(tgid, &place)
}
