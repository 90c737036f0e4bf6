//! How fast this machine is at present: figures in microseconds of different days can be compared only beside it.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::median;

/// More than the caches of a core hold, and about what a shared one does.
const WORDS: usize = 64 * 1024 * 1024 / size_of::<u32>();
const STEPS: usize = 1 << 18;
const ROUNDS: usize = 9;

/// Nanoseconds of a load from 64 MiB that waits for the one before, each in another cache line, and of a
/// multiplication that does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Speed {
    pub(super) load_ns: f64,
    pub(super) multiplication_ns: f64,
}

impl Speed {
    /// Takes a fraction of a second.
    pub(super) fn measure() -> Speed {
        let chain = chain();
        let mut at = 0u32;
        let load_ns = nanoseconds(|| {
            for _ in 0..STEPS {
                at = chain[at as usize];
            }
            black_box(at);
        });
        let mut product = 1u64;
        let multiplication_ns = nanoseconds(|| {
            for _ in 0..STEPS {
                product = black_box(product).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            }
        });
        Speed {
            load_ns,
            multiplication_ns,
        }
    }

    pub(super) fn print(self) {
        let Speed {
            load_ns,
            multiplication_ns,
        } = self;
        println!(
            "this machine now: {load_ns:.1} ns for a load from 64 MiB, {multiplication_ns:.2} ns for a multiplication"
        );
    }
}

/// A permutation of one cycle through all cache lines, in an order that nothing can foresee.
fn chain() -> Vec<u32> {
    const LINE: usize = 64 / size_of::<u32>();
    let mut lines: Vec<u32> = (0..WORDS / LINE).map(|line| (line * LINE) as u32).collect();
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for last in (1..lines.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        lines.swap(last, (random % (last as u64 + 1)) as usize);
    }
    let mut chain = vec![0; WORDS];
    for (index, line) in lines.iter().enumerate() {
        chain[*line as usize] = lines[(index + 1) % lines.len()];
    }
    chain
}

/// Of one of the steps of `work`, in the middle of several rounds.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    let mut round = || {
        let begun = Instant::now();
        work();
        begun.elapsed().as_nanos() as f64 / STEPS as f64
    };
    median((0..ROUNDS).map(|_| round()).collect())
}
