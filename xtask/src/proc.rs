//! What /proc and the kernel's BPF statistics say about a program's cost.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result};

/// Linux reports times to user space in hundredths of a second on every machine that Stakeout runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time of a process since its start, user and system, threads that have ended included, in seconds.
pub(crate) fn cpu_seconds(tgid: u32) -> Result<f64> {
    let path = format!("/proc/{tgid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("can't read {path}"))?;
    // The name, in parentheses, may hold anything; the fields after it start with the third.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or(vec![], |(_, rest)| rest.split_whitespace().collect());
    let ticks = |field: usize| fields.get(field - 3).and_then(|ticks| ticks.parse::<f64>().ok());
    Ok((ticks(14).context("no utime")? + ticks(15).context("no stime")?) / TICKS_PER_SECOND)
}

/// CPU time of a process's threads to the nanosecond, as the scheduler counts it: a hundredth of a second, the unit
/// of `/proc/TGID/stat`, is half of what the agent may take in one on two CPUs.
#[derive(Debug)]
pub(crate) struct Threads {
    tgid: u32,
    /// By thread id: name and seconds. Of those that have ended, what was read last.
    threads: BTreeMap<u32, (String, f64)>,
}

impl Threads {
    pub(crate) fn of(tgid: u32) -> Threads {
        Threads {
            tgid,
            threads: BTreeMap::new(),
        }
    }

    /// Seconds by the threads' names, since the process's start.
    pub(crate) fn read(&mut self) -> Result<BTreeMap<String, f64>> {
        let path = format!("/proc/{}/task", self.tgid);
        for task in fs::read_dir(&path).with_context(|| format!("can't read {path}"))? {
            let task = task?;
            let Some(tid) = task.file_name().to_str().and_then(|tid| tid.parse().ok()) else {
                continue;
            };
            // It may have ended meanwhile.
            let read = |file: &str| fs::read_to_string(task.path().join(file)).ok();
            let (Some(name), Some(times)) = (read("comm"), read("schedstat")) else {
                continue;
            };
            let ns = times.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
            let seconds = ns.with_context(|| format!("{path}/{tid}/schedstat: {times}"))? / 1e9;
            self.threads.insert(tid, (name.trim().to_owned(), seconds));
        }
        let mut by_name = BTreeMap::new();
        for (name, seconds) in self.threads.values() {
            *by_name.entry(name.clone()).or_insert(0.0) += seconds;
        }
        Ok(by_name)
    }
}

/// One size of `/proc/TGID/status`, such as `VmRSS` or `VmHWM`, in bytes.
pub(crate) fn size_bytes(tgid: u32, key: &str) -> Result<u64> {
    let path = format!("/proc/{tgid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("can't read {path}"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let line = line.with_context(|| format!("no {key} in {path}"))?;
    Ok(line
        .trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .with_context(|| format!("{key}: {line}"))?
        << 10)
}

/// The last CPU that this process may run on.
pub(crate) fn last_cpu() -> Result<usize> {
    let path = "/proc/self/status";
    let status = fs::read_to_string(path).with_context(|| format!("can't read {path}"))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let last = list.and_then(|list| list.trim().rsplit([',', '-']).next()?.parse().ok());
    last.with_context(|| format!("no list of CPUs in {path}"))
}

/// Memory of a process without its BPF maps, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Resident, but for BPF maps that are mapped in it, of which the kernel counts rings even twice; and files in
    /// memory.
    pub(crate) resident: u64,
    /// The most that was resident since the peak was reset; with BPF maps that were mapped then, since nobody can
    /// tell which.
    pub(crate) peak: u64,
}

/// Reads it from `status`, `smaps` and the files in memory that it holds open.
pub(crate) fn memory(tgid: u32) -> Result<Memory> {
    let path = format!("/proc/{tgid}/smaps");
    let smaps = fs::read_to_string(&path).with_context(|| format!("can't read {path}"))?;
    let (mut resident, mut is_map) = (0, false);
    for line in smaps.lines() {
        let mut fields = line.split_ascii_whitespace();
        match fields.next() {
            Some("Rss:") if !is_map => {
                let size = fields.next().and_then(|size| size.parse::<u64>().ok());
                resident += size.with_context(|| format!("{path}: {line}"))? << 10;
            }
            // A mapping begins with its range; what else there is to say of it follows, each with a colon.
            Some(range) if !range.ends_with(':') => is_map = line.ends_with(" anon_inode:bpf-map"),
            _ => {}
        }
    }
    let files = memory_file_bytes(tgid)?;
    Ok(Memory {
        resident: resident + files,
        peak: size_bytes(tgid, "VmHWM")? + files,
    })
}

/// Bytes of the files in memory that a process holds open: its own, but resident only as far as they are mapped.
fn memory_file_bytes(tgid: u32) -> Result<u64> {
    let path = format!("/proc/{tgid}/fd");
    let mut bytes = 0;
    for entry in fs::read_dir(&path).with_context(|| format!("can't read {path}"))? {
        let fd = entry?.path();
        // What was closed meanwhile is not held any more.
        let is_in_memory = fs::read_link(&fd).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"));
        if is_in_memory && let Ok(file) = fs::metadata(&fd) {
            bytes += file.blocks() * 512;
        }
    }
    Ok(bytes)
}

/// What the kernel knows of one process's BPF programs and maps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bpf {
    /// Time spent in its programs, in seconds; counted while `kernel.bpf_stats_enabled` is 1.
    pub(crate) seconds: f64,
    /// Memory of its maps.
    pub(crate) map_bytes: i64,
}

/// Reads it from the descriptors that the process holds (`/proc/TGID/fdinfo`); a program or map that is held twice
/// counts once.
pub(crate) fn bpf(tgid: u32) -> Result<Bpf> {
    let path = format!("/proc/{tgid}/fdinfo");
    let mut held = BTreeMap::new();
    for entry in fs::read_dir(&path)
        .with_context(|| format!("can't read {path}"))?
        .flatten()
    {
        // A descriptor may be closed meanwhile.
        let Ok(info) = fs::read_to_string(entry.path()) else {
            continue;
        };
        let number = |key: &str| {
            info.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok())
        };
        // A link names its program too, but has no time of its own.
        if let (Some(id), Some(time_ns)) = (number("prog_id"), number("run_time_ns")) {
            held.insert(("program", id), time_ns);
        } else if let Some(id) = number("map_id") {
            held.insert(("map", id), number("memlock").unwrap_or(0));
        }
    }
    let sum = |what: &str| {
        held.iter()
            .filter(|((kind, _), _)| *kind == what)
            .map(|(_, value)| value)
            .sum::<i64>()
    };
    Ok(Bpf {
        seconds: sum("program") as f64 / 1e9,
        map_bytes: sum("map"),
    })
}
