//! Which programs the fleet runs: services with trees of stacks, some of them hot. Everything follows from numbers.

use std::collections::{HashMap, HashSet};
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

    /// A stack's number, by Zipf's law.
    pub(crate) fn pick(&self, rng: &mut Rng) -> u32 {
        zipf(rng, self.stacks)
    }

    /// What a service runs; made when it is asked for.
    pub(crate) fn program(&self, service: u32) -> &Program {
        self.programs[service as usize].get_or_init(|| self.make(service))
    }

    /// Stacks of about 25 frames. As in recorded batches, a stack has most of its callers in common with another one,
    /// and its own frames are mostly functions that are met elsewhere too: a batch of 600 distinct stacks has about
    /// 1,500 distinct frames. One stack in four ends in the kernel.
    fn make(&self, service: u32) -> Program {
        let mut program = Program {
            functions: Vec::new(),
            frames: Vec::new(),
            begins: vec![0],
        };
        let mut kernel: HashMap<u64, u32> = HashMap::new();
        let mut own: Vec<u32> = Vec::new();
        let mut rng = Rng::new(u64::from(service));
        // Root first, without the kernel's frames.
        let mut made: Vec<Vec<u32>> = Vec::new();
        let mut known: HashSet<Vec<u32>> = HashSet::new();
        for stack in 0..self.stacks {
            let mut frames = match stack {
                0 => Vec::new(),
                _ => made[rng.below(stack) as usize].clone(),
            };
            if stack > 0 {
                frames.truncate(frames.len().saturating_sub(1 + rng.below(4) as usize).max(MIN_DEPTH));
            }
            let more = if stack == 0 { DEPTH } else { 1 + rng.below(4) };
            for _ in 0..more.min(MAX_DEPTH.saturating_sub(frames.len() as u32)).max(1) {
                let new = own.is_empty() || rng.below(100) < NEW_FUNCTIONS_PERCENT;
                if new {
                    own.push(program.add(user_name(service, own.len() as u32), false));
                }
                frames.push(if new {
                    own[own.len() - 1]
                } else {
                    own[zipf(&mut rng, own.len() as u32) as usize]
                });
            }
            if !known.insert(frames.clone()) {
                own.push(program.add(user_name(service, own.len() as u32), false));
                frames.push(own[own.len() - 1]);
                known.insert(frames.clone());
            }
            if rng.below(4) == 0 {
                // Outermost first: the call, and deeper and deeper below it, one of more and more functions.
                let call = rng.next();
                for level in (0..4).rev() {
                    let number = call % (4 << (2 * (3 - level)));
                    let at = *kernel
                        .entry(level << 32 | number)
                        .or_insert_with(|| program.add(format!("sys_{level}_{number}"), true));
                    program.frames.push(at);
                }
                let begin = program.frames.len() - 4;
                program.frames[begin..].reverse();
            }
            program.frames.extend(frames.iter().rev());
            program.begins.push(program.frames.len() as u32);
            made.push(frames);
        }
        program
    }
}

/// Frames of a service's first stack; the others have about as many, and no fewer or more than these.
const DEPTH: u32 = 25;
const MIN_DEPTH: usize = 12;
const MAX_DEPTH: u32 = 48;

/// Of a stack's own frames, those that no other stack had before.
const NEW_FUNCTIONS_PERCENT: u32 = 40;

impl Program {
    fn add(&mut self, name: String, kernel: bool) -> u32 {
        self.functions.push(Function { kernel, name });
        self.functions.len() as u32 - 1
    }
}

/// A number below `end` by Zipf's law with the exponent 1: the logarithm of the rank is uniform.
fn zipf(rng: &mut Rng, end: u32) -> u32 {
    let uniform = (rng.next() >> 11) as f64 / (1_u64 << 53) as f64;
    let rank = f64::from(end + 1).powf(uniform);
    (rank as u32).clamp(1, end) - 1
}

/// As long as demangled names are: 60 to 100 characters.
fn user_name(service: u32, number: u32) -> String {
    let (part, verb) = (
        number % 12,
        ["handle", "encode", "walk_children", "reserve_and_insert"][number as usize % 4],
    );
    let kind = ["Vec<u8>", "HashMap<String, Arc<Entry>>", "Request", "Box<dyn Handler>"][number as usize / 4 % 4];
    format!(
        "<service_{service}::part_{part}::Layer<{kind}> as service_{service}::Service>::{verb}_{number}::{{closure#0}}"
    )
}
