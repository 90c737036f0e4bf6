//! A fast hash for keys that are counters or hashes already.

/// Hashes small integers and ids by one multiplication each: keys come from our own counters, or are xxh3 hashes of
/// content already.
#[derive(Debug, Default, Clone, Copy)]
pub struct MixState;

impl std::hash::BuildHasher for MixState {
    type Hasher = Mix;
    fn build_hasher(&self) -> Mix {
        Mix(0)
    }
}

/// See [`MixState`].
#[derive(Debug)]
pub struct Mix(u64);

impl std::hash::Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        // An odd constant near 2^64 divided by the golden ratio spreads consecutive numbers (Knuth, TAOCP 3, 6.4).
        self.0 = (self.0.rotate_left(26) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }
}
