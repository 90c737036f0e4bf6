//! Which programs the fleet runs: services with trees of stacks, some of them hot. Everything follows from numbers.

/// A small generator of numbers (xorshift64*, Vigna 2016): the same seed gives the same fleet.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(mix(seed) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        // The high half times the range: without the bias and the cost of a remainder.
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The programs: any number of services, each with `stacks` distinct stacks.
#[derive(Debug)]
pub(crate) struct Fleet {
    stacks: u32,
}

/// One frame of a synthetic stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) kernel: bool,
    pub(crate) function: String,
}

impl Fleet {
    pub(crate) fn new(stacks: u32) -> Fleet {
        Fleet { stacks }
    }

    /// A stack's number; low ones are hot (the product of two uniform numbers falls off like a logarithm).
    pub(crate) fn pick(&self, rng: &mut Rng) -> u32 {
        let below = rng.below(self.stacks) + 1;
        rng.below(below)
    }

    /// The frames of a stack, leaf first: 18 to 32 deep, stacks of near numbers share their roots; one in five ends in the
    /// kernel.
    pub(crate) fn frames(&self, service: u32, stack: u32) -> Vec<Frame> {
        let seed = mix(u64::from(service) << 32 | u64::from(stack));
        let depth = 18 + (seed % 15) as u32;
        let in_kernel = if seed.is_multiple_of(5) { 4 } else { 0 };
        let frame = |level: u32| {
            let kernel = level >= depth - in_kernel;
            // Every level doubles the choice: one root, then two functions, then four, up to 4,096.
            let branch = stack & ((1 << level.min(12)) - 1);
            let function = mix(u64::from(level) << 40 | u64::from(branch)) % 400;
            if kernel {
                Frame {
                    kernel,
                    function: format!("sys_{level}_{}", function % 60),
                }
            } else {
                Frame {
                    kernel,
                    function: format!("service_{service}::part_{}::step_{level}_{function}", function % 12),
                }
            }
        };
        (0..depth).rev().map(frame).collect()
    }
}
