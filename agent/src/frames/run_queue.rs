//! Lengths of waits for a CPU, and what the CPU did meanwhile.

/// How many waits for a CPU ended in an interval, by their length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitLengths {
    /// How long they were together.
    pub total_ns: u64,
    /// How long the longest was.
    pub longest_ns: u64,
    /// Those buckets that hold some, with how many, ascending. [`bucket_begins_ns`] says which lengths they are of.
    pub buckets: Vec<(u8, u64)>,
}

impl WaitLengths {
    /// Adds others.
    pub fn add(&mut self, more: &Self) {
        self.total_ns += more.total_ns;
        self.longest_ns = self.longest_ns.max(more.longest_ns);
        for (bucket, count) in &more.buckets {
            match self.buckets.binary_search_by_key(bucket, |(bucket, _)| *bucket) {
                Ok(at) => self.buckets[at].1 += count,
                Err(at) => self.buckets.insert(at, (*bucket, *count)),
            }
        }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// What a CPU's timer has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// How often it was due and ran, or was left out by an idle CPU.
    pub ticks: u64,
    /// Those of an idle CPU.
    pub idle_ticks: u64,
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
    fn sums_have_each_bucket_once() {
        let lengths = |longest_ns, buckets: &[(u8, u64)]| WaitLengths {
            total_ns: 10 * longest_ns,
            longest_ns,
            buckets: buckets.to_vec(),
        };
        let mut sum = lengths(7, &[(3, 1), (9, 2)]);
        sum.add(&lengths(5, &[(1, 4), (9, 1), (12, 1)]));
        assert_eq!((sum.total_ns, sum.longest_ns, sum.count()), (120, 7, 9));
        assert_eq!(sum.buckets, [(1, 4), (3, 1), (9, 3), (12, 1)]);
    }

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
