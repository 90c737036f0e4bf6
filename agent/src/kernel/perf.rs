//! Perf events of one CPU, and which CPUs there are.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use super::error::KernelError;

const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
const ONLINE: &str = "/sys/devices/system/cpu/online";
const PRESENT: &str = "/sys/devices/system/cpu/present";

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
const PERF_COUNT_SW_DUMMY: u64 = 9;
const PERF_SAMPLE_TIME: u64 = 1 << 2;
/// `PERF_ATTR_SIZE_VER3`: this struct's size, which every kernel takes that the agent runs on.
const ATTRIBUTE_BYTES: u32 = 96;
const FLAG_DISABLED: u64 = 1;
/// Records of new executable mappings; those of data have a flag of their own.
const FLAG_MMAP: u64 = 1 << 8;
const FLAG_WATERMARK: u64 = 1 << 14;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
const FORMAT_TOTAL_TIME_ENABLED: u64 = 1;
/// `PERF_EVENT_IOC_PERIOD`: `_IOW('$', 4, __u64)`.
const SET_PERIOD: libc::c_ulong = 0x4008_2404;
/// Records of code that the kernel makes at run time.
const FLAG_KSYMBOL: u64 = 1 << 29;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// The beginning of `struct perf_event_attr` (uapi/linux/perf_event.h), up to the clock.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    /// Bytes with [`FLAG_WATERMARK`].
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
}

/// Opens a timer that fires on `cpu` every `period_ns` of wall time, whatever runs there; not yet enabled. For
/// [`set_period`] and [`enabled_ns`].
pub(super) fn open_cpu_clock(cpu: u32, period_ns: u64) -> io::Result<OwnedFd> {
    let attributes = PerfEventAttributes {
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: period_ns,
        read_format: FORMAT_TOTAL_TIME_ENABLED,
        flags: FLAG_DISABLED,
        ..Default::default()
    };
    open(attributes, cpu)
}

/// Lets the timer begin anew with this period: it fires next a whole one later.
pub(super) fn set_period(timer: BorrowedFd<'_>, period_ns: u64) -> io::Result<()> {
    // SAFETY: the kernel reads 8 bytes of a number that lives on.
    let done = unsafe { libc::ioctl(timer.as_raw_fd(), SET_PERIOD as _, std::ptr::from_ref(&period_ns)) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// For how long the timer has run. It stands still for good once the CPU was off, and an error says the same.
pub(super) fn enabled_ns(timer: BorrowedFd<'_>) -> io::Result<u64> {
    // The count, and the time.
    let mut words = [0u64; 2];
    // SAFETY: `words` has room for as many bytes as are asked for.
    let read = unsafe { libc::read(timer.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
    match usize::try_from(read) {
        Ok(bytes) if bytes == size_of_val(&words) => Ok(words[1]),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Opens an event that counts nothing, but tells in its ring of every executable mapping that is made on `cpu`, and of
/// every BPF program that is loaded or unloaded there, with the time by `CLOCK_MONOTONIC` as its records' last word.
/// Every record wakes whoever waits.
pub(super) fn open_mapping_events(cpu: u32) -> io::Result<OwnedFd> {
    let attributes = PerfEventAttributes {
        config: PERF_COUNT_SW_DUMMY,
        sample_type: PERF_SAMPLE_TIME,
        // Not FLAG_MMAP2: device, inode and protection would only make the records longer.
        flags: FLAG_MMAP | FLAG_KSYMBOL | FLAG_SAMPLE_ID_ALL | FLAG_USE_CLOCKID | FLAG_WATERMARK,
        wakeup_events: 1,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    open(attributes, cpu)
}

fn open(attributes: PerfEventAttributes, cpu: u32) -> io::Result<OwnedFd> {
    let attributes = PerfEventAttributes {
        kind: PERF_TYPE_SOFTWARE,
        size: ATTRIBUTE_BYTES,
        ..attributes
    };
    // SAFETY: the kernel reads `size` bytes of the struct, which has exactly that size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(&attributes),
            -1 as libc::c_int,
            cpu as libc::c_int,
            -1 as libc::c_int,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// One more than the highest number that a CPU of this machine can have.
pub(super) fn possible_cpus() -> Result<u32, KernelError> {
    let content = std::fs::read_to_string(POSSIBLE).map_err(|source| KernelError::File { path: POSSIBLE, source })?;
    let last = parse_cpu_list(&content).and_then(|cpus| cpus.into_iter().max());
    last.and_then(|last| last.checked_add(1)).ok_or(KernelError::Content {
        path: POSSIBLE,
        content,
    })
}

/// A list of CPUs, held open: it is read every second, and opening it takes longer than that.
#[derive(Debug)]
pub(super) struct CpuList {
    file: File,
    path: &'static str,
}

impl CpuList {
    /// CPUs that run.
    pub(super) fn online() -> Result<Self, KernelError> {
        Self::open(ONLINE)
    }

    /// CPUs that are there, on or off.
    pub(super) fn present() -> Result<Self, KernelError> {
        Self::open(PRESENT)
    }

    fn open(path: &'static str) -> Result<Self, KernelError> {
        let file = File::open(path).map_err(|source| KernelError::File { path, source })?;
        Ok(Self { file, path })
    }

    pub(super) fn now(&self) -> Result<Vec<u32>, KernelError> {
        let path = self.path;
        // The kernel never gives more of such a file.
        let mut bytes = [0; 4096];
        let read = self.file.read_at(&mut bytes, 0);
        let count = read.map_err(|source| KernelError::File { path, source })?;
        let content = String::from_utf8_lossy(&bytes[..count]);
        parse_cpu_list(&content).ok_or_else(|| KernelError::Content {
            path,
            content: content.into_owned(),
        })
    }
}

/// Whether the processor counts events by itself, as most virtual machines do not.
pub fn has_pmu() -> bool {
    let devices = std::fs::read_dir("/sys/bus/event_source/devices");
    let mut names = devices.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.any(|name| {
        let name = name.to_string_lossy();
        matches!(&*name, "cpu" | "cpu_core" | "cpu_atom") || name.starts_with("armv8_")
    })
}

/// CPUs that are online now.
pub fn online_cpus() -> Result<Vec<u32>, KernelError> {
    CpuList::online()?.now()
}

/// A list such as `0-3,7` of ascending numbers, without those that would make it longer than `most_bytes`.
pub fn format_cpu_list(cpus: impl IntoIterator<Item = u32>, most_bytes: usize) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let mut text = String::new();
    for (first, last) in ranges {
        let range = if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        };
        if text.len() + 1 + range.len() > most_bytes {
            break;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&range);
    }
    text
}

const MAX_CPUS: usize = 65_536;

/// Reads a list such as `0-3,7`. None where it is not one, or names more than 65,536 CPUs.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || (last - first) as usize >= MAX_CPUS - cpus.len() {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpu_list("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_cpu_list("0\n"), Some(vec![0]));
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
        assert_eq!(parse_cpu_list("0-"), None);
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-4294967295"), None);
        assert_eq!(parse_cpu_list("0-65534,0-65535"), None);
    }

    #[test]
    fn cpu_lists_are_written_as_they_are_read_and_cut_between_two_ranges() {
        for list in ["", "0", "0-2,5,7-8", "3,4095"] {
            let cpus = parse_cpu_list(list).unwrap();
            assert_eq!(format_cpu_list(cpus, 100), list);
        }
        assert_eq!(format_cpu_list([0, 1, 2, 5, 7, 8], 6), "0-2,5");
        assert_eq!(format_cpu_list([10], 1), "");
    }

    #[test]
    fn the_attributes_have_the_size_that_they_claim() {
        assert_eq!(size_of::<PerfEventAttributes>(), ATTRIBUTE_BYTES as usize);
    }
}
