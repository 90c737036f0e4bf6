//! Random numbers for times that nothing must be in step with. Not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

/// SplitMix64: a counter, and the finalizer of a hash (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// From the seed of the process's hash tables, which the kernel gives.
    pub(crate) fn from_system() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    #[cfg(test)]
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly between the two.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// `mean`, give or take up to this share of it.
    pub(crate) fn about(&mut self, mean: u64, share: f64) -> u64 {
        (mean as f64 * self.between(1.0 - share, 1.0 + share)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_between_their_bounds_and_differ_from_process_to_process() {
        let mut random = Random::seeded(7);
        let mut tenths = [0u32; 10];
        for _ in 0..100_000 {
            let number = random.between(-2.0, 8.0);
            assert!((-2.0..8.0).contains(&number));
            tenths[(number + 2.0) as usize] += 1;
        }
        // Five standard deviations.
        assert!(tenths.iter().all(|count| count.abs_diff(10_000) < 500), "{tenths:?}");
        let about: Vec<u64> = (0..1000).map(|_| random.about(1000, 0.4)).collect();
        assert!(about.iter().all(|time| (600..=1400).contains(time)));
        assert_ne!(Random::from_system().next(), Random::from_system().next());
    }
}
