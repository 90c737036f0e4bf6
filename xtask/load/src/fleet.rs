//! Which programs the fleet runs: services with trees of stacks, some of them hot. Everything follows from numbers.

use std::collections::HashMap;
use std::sync::OnceLock;

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

/// The programs: each service is one, with as many distinct stacks as the fleet was told.
#[derive(Debug)]
pub(crate) struct Fleet {
    stacks: u32,
    programs: Vec<OnceLock<Program>>,
}

/// One service's functions and stacks.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) functions: Vec<Function>,
    /// Of all stacks, leaf first: indices of functions.
    frames: Vec<u32>,
    /// Where each stack's frames begin, and the end of the last.
    begins: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    pub(crate) kernel: bool,
    pub(crate) name: String,
}

impl Program {
    /// The functions of a stack, leaf first.
    pub(crate) fn stack(&self, stack: u32) -> &[u32] {
        let at = stack as usize;
        &self.frames[self.begins[at] as usize..self.begins[at + 1] as usize]
    }
}

impl Fleet {
    pub(crate) fn new(services: u32, stacks: u32) -> Fleet {
        Fleet {
            stacks,
            programs: (0..services).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Stacks of a service.
    pub(crate) fn stacks(&self) -> u32 {
        self.stacks
    }

    /// A stack's number, by Zipf's law with the exponent 1: the logarithm of the rank is uniform.
    pub(crate) fn pick(&self, rng: &mut Rng) -> u32 {
        let uniform = (rng.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = f64::from(self.stacks + 1).powf(uniform);
        (rank as u32).clamp(1, self.stacks) - 1
    }

    /// What a service runs; made when it is asked for.
    pub(crate) fn program(&self, service: u32) -> &Program {
        self.programs[service as usize].get_or_init(|| self.make(service))
    }

    /// Stacks of 18 to 32 frames, those of near numbers share their roots; one in five ends in the kernel.
    fn make(&self, service: u32) -> Program {
        let mut program = Program {
            functions: Vec::new(),
            frames: Vec::new(),
            begins: vec![0],
        };
        let mut known: HashMap<(bool, u32, u64), u32> = HashMap::new();
        for stack in 0..self.stacks {
            let seed = mix(u64::from(service) << 32 | u64::from(stack));
            let depth = 18 + (seed % 15) as u32;
            let in_kernel = if seed.is_multiple_of(5) { 4 } else { 0 };
            for level in (0..depth).rev() {
                let kernel = level >= depth - in_kernel;
                // Every level doubles the choice: one root, then two functions, then four, up to 4,096.
                let branch = stack & ((1 << level.min(12)) - 1);
                let number = mix(u64::from(level) << 40 | u64::from(branch)) % if kernel { 60 } else { 400 };
                let functions = &mut program.functions;
                let function = *known.entry((kernel, level, number)).or_insert_with(|| {
                    let name = if kernel {
                        format!("sys_{level}_{number}")
                    } else {
                        format!("service_{service}::part_{}::step_{level}_{number}", number % 12)
                    };
                    functions.push(Function { kernel, name });
                    functions.len() as u32 - 1
                });
                program.frames.push(function);
            }
            program.begins.push(program.frames.len() as u32);
        }
        program
    }
}
