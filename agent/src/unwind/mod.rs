//! What .eh_frame says about a function's frame.
//!
//! In: an ELF file, read through a function that the caller gives, and an offset in it. Out: where the return address lies
//! for code at that offset. Pure: no I/O of its own, no state but a bounded cache. The stack walk by frame pointers, which
//! is the kernel side's, misses the caller of a function that keeps no frame of its own (compilers leave it out of leaf
//! functions, and every function is without one at its first and last instruction); [`LeafRules`] tells when that is so.

mod cfa;
mod leaf;

pub use cfa::{Cfa, Register};
pub use leaf::{LeafRules, ReturnAddress};
