//! Counts of several sub-windows that are added up at once. Pure.

use std::ops::AddAssign;

/// The most sub-windows that a [`Lane`] is of.
pub(crate) const MOST_LANES: usize = 16;

/// Counts of one sub-window or more.
pub(crate) trait Lane: Copy + Default + AddAssign {
    /// Of how many.
    const WINDOWS: usize;

    /// Of so many, or of fewer at the end of a side.
    fn of(counts: &[u32]) -> Self;

    fn count(&self, window: usize) -> f64;
}

/// Of one, however large it is.
impl Lane for u64 {
    const WINDOWS: usize = 1;

    fn of(counts: &[u32]) -> u64 {
        counts.first().copied().map_or(0, u64::from)
    }

    fn count(&self, _: usize) -> f64 {
        *self as f64
    }
}

/// Of sub-windows whose sums all have room in 32 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Several<const WINDOWS: usize>([u32; WINDOWS]);

impl<const WINDOWS: usize> Default for Several<WINDOWS> {
    fn default() -> Self {
        Several([0; WINDOWS])
    }
}

impl<const WINDOWS: usize> AddAssign for Several<WINDOWS> {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(more);
        }
    }
}

impl<const WINDOWS: usize> Lane for Several<WINDOWS> {
    const WINDOWS: usize = {
        assert!(WINDOWS <= MOST_LANES);
        WINDOWS
    };

    fn of(counts: &[u32]) -> Self {
        // Nearly always all: a copy of any length would be a call.
        match counts.first_chunk() {
            Some(all) => Several(*all),
            None => Several(std::array::from_fn(|window| counts.get(window).copied().unwrap_or(0))),
        }
    }

    fn count(&self, window: usize) -> f64 {
        f64::from(self.0[window])
    }
}
