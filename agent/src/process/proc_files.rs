//! The files of /proc/PID, with bounded reads.

use std::fs::File;
use std::io::Read;

/// Longer command lines are cut: arguments can be megabytes.
const MAX_COMMAND_LINE_BYTES: u64 = 1024;
/// A process with more mappings than this many bytes of text tells loses the rest: as many as the kernel allows by default take 5 MiB.
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

/// Start time in clock ticks since boot: field 22 of /proc/PID/stat.
pub(super) fn start_ticks(tgid: u32) -> Option<u64> {
    parse_start_ticks(&read_text(&format!("/proc/{tgid}/stat"), 4096)?)
}

/// The second field is the name in parentheses and may itself hold spaces and parentheses.
pub(super) fn parse_start_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The path of the executable as its process sees it; none for kernel threads and where the kernel forbids it.
pub(super) fn executable_path(tgid: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{tgid}/exe")).ok()?;
    let path = path.to_string_lossy();
    Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
}

/// Arguments joined by spaces, cut after 1 KiB.
pub(super) fn command_line(tgid: u32) -> String {
    join_arguments(&read_some(&format!("/proc/{tgid}/cmdline"), MAX_COMMAND_LINE_BYTES).unwrap_or_default())
}

pub(super) fn join_arguments(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = String::from_utf8_lossy(&bytes[..end]);
    text.replace('\0', " ")
}

pub(super) fn maps(tgid: u32) -> Option<String> {
    read_text(&format!("/proc/{tgid}/maps"), MAX_MAPS_BYTES)
}

/// The process id as the process itself sees it, the last of `NSpid` in /proc/PID/status, and the user as whom it opens files.
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
        .find_map(|line| line.strip_prefix("NSpid:"))?
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
        let stat =
            "7 (a) b) (c) R 1 7 7 0 -1 4194304 90 0 0 0 5 6 0 0 20 0 1 0 123456 2703360 200 18446744073709551615";
        assert_eq!(parse_start_ticks(stat), Some(123_456));
        assert_eq!(parse_start_ticks("7 (a"), None);
        assert_eq!(parse_start_ticks(""), None);
    }

    #[test]
    fn arguments_and_namespaced_ids() {
        assert_eq!(join_arguments(b"dd\0if=/dev/zero\0\0"), "dd if=/dev/zero");
        assert_eq!(join_arguments(b""), "");
        assert_eq!(parse_namespaced_tgid("Name:\tx\nNSpid:\t4021\t17\n"), Some(17));
        assert_eq!(parse_namespaced_tgid("Name:\tx\n"), None);
        assert_eq!(parse_user("Name:\tx\nUid:\t0\t1\t2\t1000\nGid:\t0\n"), Some(1000));
        assert_eq!(parse_user("Uid:\t0\t1\n"), None);
    }

    #[test]
    fn this_process_reads_itself() {
        let tgid = std::process::id();
        assert!(start_ticks(tgid).is_some_and(|ticks| ticks > 0));
        assert_eq!(
            executable_path(tgid).as_deref(),
            std::env::current_exe().unwrap().to_str()
        );
        assert!(maps(tgid).is_some_and(|text| text.contains("r-xp")));
    }
}
