//! Waits for a CPU, counted by their length.

use std::sync::Arc;

/// The waits of a control group's threads for one CPU that ended in an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQueue {
    /// The control group of version 2, by number.
    pub cgroup_id: u64,
    /// Its path; empty where no thread of it was sampled.
    pub cgroup: Arc<str>,
    /// Logical number of the CPU.
    pub cpu: u32,
    /// How many there were.
    pub count: u64,
    /// How long they were together.
    pub total_ns: u64,
    /// Those buckets that hold some, with how many, ascending. [`bucket_begins_ns`] says which lengths they are of.
    pub buckets: Box<[(u8, u32)]>,
}

/// The shortest wait of a bucket: in units of 1,024 ns one bucket each up to 3, and from there on four between each
/// power of two and the next.
pub fn bucket_begins_ns(bucket: u8) -> u64 {
    let (bucket, unit_bits) = (u64::from(bucket), 10);
    if bucket < 4 {
        return bucket << unit_bits;
    }
    (4 + bucket % 4) << (bucket / 4 - 1) << unit_bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_abut() {
        let begins: Vec<u64> = (0..128).map(bucket_begins_ns).collect();
        assert_eq!(begins[..9], [0, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192]);
        assert!(
            begins
                .windows(2)
                .all(|pair| pair[0] < pair[1] && (pair[1] - pair[0]) * 4 <= pair[1].max(4096))
        );
    }
}
