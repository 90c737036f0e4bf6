//! What tells one method from another that took its place.

use super::code::Jvm;
use super::{ReadMemory, Unreadable, number, pointer};

/// As in bpf/jvm.h.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const CONST_METHOD_WORDS: u64 = 8;

impl Jvm {
    /// The same hash of a method that the kernel side puts beside its address (`so_step_interpreted` of bpf/jvm.h): of
    /// where its constant part is, and of what stays as it is there.
    pub fn print_of(&self, memory: &dyn ReadMemory, method: u64) -> Result<u64, Unreadable> {
        let layout = &self.layout.method;
        let what = "a method's constant part";
        let constants = pointer(memory, method.saturating_add(u64::from(layout.const_method)), what)?;
        let word = |number_of: u64| number(memory, constants.saturating_add(8 * number_of), 8);
        let sizes = u64::from(layout.code_bytes.offset) / 8 % CONST_METHOD_WORDS;
        let hash = (constants ^ word(1)?).wrapping_mul(MULTIPLIER);
        let hash = (hash ^ word(sizes)?).wrapping_mul(MULTIPLIER);
        Ok(hash >> 32)
    }
}
