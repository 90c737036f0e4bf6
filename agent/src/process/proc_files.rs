//! The files of /proc/PID, with bounded reads.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::command_line::{self, CommandLines};
use super::maps::{set_aside, shared_unnamed};

/// Of longer command lines the rest is not read: arguments can be megabytes.
const MAX_COMMAND_LINE_BYTES: u64 = 4096;
/// Threads that are looked at for one that lives, where the first has ended.
const MAX_THREADS: usize = 64;
/// A process with more mappings than this many bytes of text tells loses the rest: as many as the kernel allows by
/// default take 5 MiB.
const MAX_MAPS_BYTES: u64 = 16 * 1024 * 1024;
const MAX_STATUS_BYTES: u64 = 16 * 1024;

/// Most of these files are smaller: one read, and another that finds the end.
const USUAL_BYTES: usize = 8 * 1024;

fn read_some(path: &str, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn read_text(path: &str, limit: u64) -> Option<String> {
    Some(
        String::from_utf8(read_some(path, limit)?)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
    )
}

/// What tells processes of one id, and programs of one process, apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// In clock ticks since boot: field 22 of /proc/PID/stat.
    pub(super) start_ticks: u64,
    /// Where the program's stack began: field 28; 0 where the kernel does not say, or it has none yet.
    pub(super) image: u64,
}

pub(super) fn stat(id: u32) -> Option<Stat> {
    let stat = parse_stat(&read_text(&format!("/proc/{id}/stat"), 4096)?)?;
    if stat.image != 0 && id != std::process::id() {
        TELLS_IMAGES.store(true, Ordering::Relaxed);
    }
    Some(stat)
}

/// Whether the kernel has told where another process's stack began: whoever may read one may read all.
static TELLS_IMAGES: AtomicBool = AtomicBool::new(false);

/// True where an image of 0 is not for want of a right: the process has no user memory, or is in the middle of an exec,
/// between its new memory and its stack. It may stay there for long, where many want the CPU.
pub(super) fn tells_images() -> bool {
    TELLS_IMAGES.load(Ordering::Relaxed)
}

/// Start time in clock ticks since boot.
pub(super) fn start_ticks(id: u32) -> Option<u64> {
    stat(id).map(|stat| stat.start_ticks)
}

/// The second field is the name in parentheses and may itself hold spaces and parentheses.
pub(super) fn parse_stat(stat: &str) -> Option<Stat> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let start_ticks = fields.nth(19)?.parse().ok()?;
    let image = fields.nth(5).and_then(|field| field.parse().ok()).unwrap_or(0);
    Some(Stat { start_ticks, image })
}

/// The id under which a process's files are read, and the path of its executable as it sees it itself. Where its
/// first thread has ended, the process's own folder is empty, and another thread's is read. None for kernel threads,
/// what has ended, and where the kernel forbids it.
pub(super) fn readable(tgid: u32) -> Option<(u32, String)> {
    if let Some(path) = executable_path(tgid) {
        return Some((tgid, path));
    }
    let threads = std::fs::read_dir(format!("/proc/{tgid}/task")).ok()?;
    let threads = threads.flatten().take(MAX_THREADS);
    let ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != tgid)
        .find_map(|id| Some((id, executable_path(id)?)))
}

fn executable_path(id: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{id}/exe")).ok()?;
    let path = path.to_string_lossy();
    Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
}

/// Arguments joined by spaces.
pub(super) fn command_line(id: u32, how: CommandLines) -> String {
    if how == CommandLines::Off {
        return String::new();
    }
    let bytes = read_some(&format!("/proc/{id}/cmdline"), MAX_COMMAND_LINE_BYTES).unwrap_or_default();
    command_line::shown(&bytes, (bytes.len() as u64) < MAX_COMMAND_LINE_BYTES, how)
}

pub(super) fn maps(tgid: u32) -> Option<String> {
    read_text(&format!("/proc/{tgid}/maps"), MAX_MAPS_BYTES)
}

/// Memory that a process shares with others and that has no file. It waits for the process.
pub fn shared_memory(tgid: u32) -> Option<Vec<Range<u64>>> {
    Some(shared_unnamed(&maps(tgid)?))
}

/// Ranges of a process's memory that have code which was made while it runs, with what is set aside for more of it. It
/// waits for the process.
pub fn made_memory(tgid: u32) -> Option<Vec<Range<u64>>> {
    Some(set_aside(&maps(tgid)?))
}

/// The process id as the process itself sees it, the last of `NStgid` in /proc/PID/status whichever of its threads'
/// that is, and the user as whom it opens files.
pub(super) fn id_and_user(tgid: u32) -> Option<(u32, u32)> {
    let status = read_text(&format!("/proc/{tgid}/status"), MAX_STATUS_BYTES)?;
    Some((parse_namespaced_tgid(&status).unwrap_or(tgid), parse_user(&status)?))
}

/// `Uid:` real, effective, saved, and that of files.
pub(super) fn parse_user(status: &str) -> Option<u32> {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(3)?.parse().ok()
}

pub(super) fn parse_namespaced_tgid(status: &str) -> Option<u32> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("NStgid:"))?
        .split_ascii_whitespace()
        .last()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_hostile_name() {
        let stat = "7 (a) b) (c) R 1 7 7 0 -1 4194304 90 0 0 0 5 6 0 0 20 0 1 0 123456 2703360 200 18446744073709551615 1 2 77 8 9";
        let found = Stat {
            start_ticks: 123_456,
            image: 77,
        };
        assert_eq!(parse_stat(stat), Some(found));
        let short = "7 (a) R 1 7 7 0 -1 4194304 90 0 0 0 5 6 0 0 20 0 1 0 123456 2703360 200";
        assert_eq!(parse_stat(short).map(|stat| stat.image), Some(0));
        assert_eq!(parse_stat("7 (a"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn namespaced_ids_are_those_of_the_process() {
        let status = "Name:\tx\nNStgid:\t4021\t17\nNSpid:\t4050\t29\n";
        assert_eq!(parse_namespaced_tgid(status), Some(17));
        assert_eq!(parse_namespaced_tgid("Name:\tx\n"), None);
        assert_eq!(parse_user("Name:\tx\nUid:\t0\t1\t2\t1000\nGid:\t0\n"), Some(1000));
        assert_eq!(parse_user("Uid:\t0\t1\n"), None);
    }

    #[test]
    fn this_process_reads_itself() {
        let tgid = std::process::id();
        assert!(stat(tgid).is_some_and(|stat| stat.start_ticks > 0 && stat.image > 0));
        let path = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        assert_eq!(readable(tgid), Some((tgid, path)));
        assert!(maps(tgid).is_some_and(|text| text.contains("r-xp")));
        assert_eq!(command_line(tgid, CommandLines::Off), "");
    }
}
