//! How the server's memory is divided.
//!
//! In: a limit in bytes, else what the machine or the container has. Out: bytes for each part, and the account that all
//! queries share.
//!
//! A limit on what each part may hold at a time; a part that has no room left says so to whoever asks for more, and
//! the others go on. What is left over is for merging files, which takes some 200 MiB at most, for the program
//! itself, and for what the allocator keeps.

pub(crate) mod query_pool;

use std::path::Path;

/// The least that the server can work with.
pub const MIN_LIMIT_BYTES: u64 = 256 << 20;

/// The most that is taken without being told.
const MAX_DEFAULT_BYTES: u64 = 4 << 30;

/// The parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Queries, all together, with what is kept from one to the next.
    pub queries: u64,
    /// The same while nothing is taken in: with what pending rows and requests would need.
    pub quiet_queries: u64,
    /// Rows that wait for their commit. Writing them takes twice as much again.
    pub pending: u64,
    /// Bodies that are being received, all together.
    pub receiving: u64,
    /// One request after decompression.
    pub plain: u64,
    /// What is made of one request.
    pub decoded: u64,
}

impl Shares {
    /// `decoding`: requests that are decoded at the same time.
    pub fn of(limit_bytes: u64, decoding: usize) -> Self {
        let decoding = decoding.max(1) as u64;
        Self {
            queries: limit_bytes / 8 * 3,
            quiet_queries: limit_bytes / 4 * 3,
            pending: limit_bytes / 16,
            receiving: limit_bytes / 16,
            plain: limit_bytes / 16 / decoding,
            decoded: limit_bytes / 4 / decoding,
        }
    }
}

/// Half of what this machine or container has, at most 4 GiB.
pub fn default_limit_bytes() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total(&text));
    let container = container_limit(Path::new("/sys/fs/cgroup"));
    let most = machine.into_iter().chain(container).min().unwrap_or(MAX_DEFAULT_BYTES);
    (most / 2).clamp(MIN_LIMIT_BYTES, MAX_DEFAULT_BYTES)
}

/// From `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Of the control group whose root this process sees: a container's own.
fn container_limit(root: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    // Version 2, then 1; "max" and a number near 2^63 both say that there is none.
    let text = read("memory.max").or_else(|| read("memory/memory.limit_in_bytes"))?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_room_for_the_rest() {
        for decoding in [1, 2, 4] {
            for limit in [MIN_LIMIT_BYTES, 1 << 30, 16 << 30] {
                let shares = Shares::of(limit, decoding);
                let requests = (shares.plain + shares.decoded) * decoding as u64 + shares.receiving;
                assert!(shares.queries + 3 * shares.pending + requests <= limit / 16 * 15);
                assert!(shares.queries < shares.quiet_queries && shares.quiet_queries <= limit / 16 * 12);
            }
        }
    }

    #[test]
    fn the_machine_and_the_container_say_how_much_there_is() {
        assert_eq!(total("MemFree:  1 kB\nMemTotal:       16384 kB\n"), Some(16 << 20));
        assert_eq!(total("MemTotal: much\n"), None);
        let root = tempfile::tempdir().unwrap();
        assert_eq!(container_limit(root.path()), None);
        std::fs::write(root.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(container_limit(root.path()), None);
        std::fs::write(root.path().join("memory.max"), "1073741824\n").unwrap();
        assert_eq!(container_limit(root.path()), Some(1 << 30));
        assert!((MIN_LIMIT_BYTES..=MAX_DEFAULT_BYTES).contains(&default_limit_bytes()));
    }
}
