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
    /// where its constant part is, of what stays as it is there, and of the
    /// names of its class and itself.
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
        let own = self.name_begin(memory, constants, pool).unwrap_or(0);
        let hash = (hash ^ hash >> 32 ^ own).wrapping_mul(MULTIPLIER);
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
            let pool = number(memory, constants.saturating_add(u64::from(layout.method.pool)), 8)?;
            let hash = (constants.wrapping_mul(MULTIPLIER) ^ sizes).wrapping_mul(MULTIPLIER);
            let own = self.name_begin(memory, constants, pool).unwrap_or(0);
            let hash = (hash ^ hash >> 32 ^ own).wrapping_mul(MULTIPLIER);
            // Beside the number there are 28 bits.
            Ok::<_, Unreadable>((hash >> 36) as u32)
        };
        marked().unwrap_or(0)
    }

    /// How a method's name begins, with its length: `so_method_name` of bpf/jvm.h.
    fn name_begin(&self, memory: &dyn ReadMemory, constants: u64, pool: u64) -> Result<u64, Unreadable> {
        let layout = &self.layout.method;
        let index = layout.name.get(memory, constants)?.cast_unsigned();
        let entry = pool.saturating_add(u64::from(layout.pool_bytes) + 8 * index);
        let symbol = pointer(memory, entry, "a method's name")?;
        let text = [number(memory, symbol, 8)?, number(memory, symbol.saturating_add(8), 8)?];
        let length = text[0] >> ((u32::from(layout.symbol_length.offset) * 8) & 63) & 0xffff;
        let name = match (u32::from(layout.symbol_body) * 8) & 63 {
            0 => text[1],
            body => text[0] >> body | text[1] << (64 - body),
        };
        let name = if length < NAME_BYTES {
            name & ((1 << (length * 8)) - 1)
        } else {
            name
        };
        Ok(name ^ length << 40)
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
