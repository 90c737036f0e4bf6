//! What tells one method from another that took its place.

use super::code::Jvm;
use super::{ReadMemory, Unreadable, number, pointer};

/// As in bpf/jvm.h.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const CONST_METHOD_WORDS: u64 = 8;

/// Bytes of a class' name that are looked at.
const NAME_BYTES: u64 = 8;

impl Jvm {
    /// The same hash of a method that the kernel side puts beside its address (`so_step_interpreted` of bpf/jvm.h): of
    /// where its constant part is, of what stays as it is there, and of its class' name.
    pub fn print_of(&self, memory: &dyn ReadMemory, method: u64) -> Result<u64, Unreadable> {
        let layout = &self.layout.method;
        let what = "a method's constant part";
        let constants = pointer(memory, method.saturating_add(u64::from(layout.const_method)), what)?;
        let word = |offset: u64| number(memory, constants.saturating_add(offset), 8);
        let sizes = u64::from(layout.code_bytes.offset) / 8 % CONST_METHOD_WORDS;
        let pool = word(u64::from(layout.pool))?;
        let hash = (constants ^ pool).wrapping_mul(MULTIPLIER);
        let hash = (hash ^ word(8 * sizes)?).wrapping_mul(MULTIPLIER);
        let name = self.name_end(memory, pool).unwrap_or(0);
        let hash = (hash ^ hash >> 32 ^ name).wrapping_mul(MULTIPLIER);
        Ok(hash >> 32)
    }

    /// The same mark of compiled code's method that the kernel side puts beside its compilation's number
    /// (`so_method_mark` of bpf/jvm.h): 0 where it has none.
    pub fn mark_of(&self, memory: &dyn ReadMemory, nmethod: u64) -> u32 {
        let layout = &self.layout;
        let marked = || {
            let method = pointer(
                memory,
                nmethod.saturating_add(u64::from(layout.blob.method)),
                "a method",
            )?;
            let constants = method.saturating_add(u64::from(layout.method.const_method));
            let constants = number(memory, constants, 8)?;
            let sizes = u64::from(layout.method.code_bytes.offset) & !7;
            let sizes = number(memory, constants.saturating_add(sizes), 8)?;
            let hash = (constants.wrapping_mul(MULTIPLIER) ^ sizes).wrapping_mul(MULTIPLIER);
            Ok::<_, Unreadable>((hash >> 32) as u32)
        };
        marked().unwrap_or(0)
    }

    /// The end of a class' name, with its length: `so_class_name` of bpf/jvm.h.
    fn name_end(&self, memory: &dyn ReadMemory, pool: u64) -> Result<u64, Unreadable> {
        let layout = &self.layout.method;
        let what = "a class' name";
        let holder = pointer(memory, pool.saturating_add(u64::from(layout.holder)), what)?;
        let symbol = pointer(memory, holder.saturating_add(u64::from(layout.class_name)), what)?;
        let length = layout.symbol_length.get(memory, symbol)?.cast_unsigned() & 0xffff;
        let bytes = length.min(NAME_BYTES);
        let at = symbol.saturating_add(u64::from(layout.symbol_body) + length - bytes);
        let end = number(memory, at, 8)?;
        let end = if bytes < NAME_BYTES {
            end & ((1 << (bytes * 8)) - 1)
        } else {
            end
        };
        Ok(end ^ length << 40)
    }
}
