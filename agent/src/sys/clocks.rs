//! Clocks: the samples', the wall's, and CPU time of this process and its threads.

use std::sync::OnceLock;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call, and the clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock of the samples.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The moment that the clock of files showed so, by the monotonic clock. None where it lies ahead: the clock was set
/// back since, or somebody has chosen it.
pub fn monotonic_of_file_time(time_ns: i128) -> Option<u64> {
    let passed_ns = i128::from(wall_ns()) - time_ns;
    let passed_ns = u64::try_from(passed_ns).ok()?;
    Some(monotonic_ns().saturating_sub(passed_ns))
}

/// What `CLOCK_BOOTTIME` is ahead of `CLOCK_MONOTONIC`: the time that the machine slept.
pub fn slept_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME).saturating_sub(monotonic_ns())
}

/// Nanoseconds since the Unix epoch.
pub fn wall_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time of this process, all threads, user and system, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Unit of start times in /proc/PID/stat.
pub fn clock_ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    // SAFETY: no arguments in memory.
    *TICKS.get_or_init(|| {
        u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) })
            .unwrap_or(100)
            .max(1)
    })
}
