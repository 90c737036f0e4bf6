//! Names of frames: from a sequence of instructions and a method to its function, file and line.

use super::lines::LineTable;
use super::offsets::{
    BODY_BASE_LABEL, BODY_BYTES, BODY_ENCODED, BODY_FIRST_LINE, BODY_LABEL, BODY_PATH, DEFINITION_ID, IMEMO_ISEQ,
    IMEMO_METHOD, IMEMO_SHIFT, ISEQ_BODY, METHOD_BYTES, METHOD_DEFINITION, METHOD_ID, METHOD_OWNER, T_ARRAY, T_IMEMO,
    TYPE_MASK,
};
use super::text::{element, text};
use super::{ReadMemory, Ruby, Unreadable, field, is_object, part, read, word};

/// As in bpf/ruby.h: the bits of an address without its lowest three, what stands for no instruction, the multiplier of
/// the hash.
const OBJECT_BITS: u32 = 44;
const NO_INSTRUCTION: u64 = 0xffff;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A frame as Ruby's own traces have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RubyFrame {
    /// With its class, where that has a name: `Queue#pop`, `block in Queue.open`, `<main>`.
    pub function: String,
    /// As the code was loaded by it: `/usr/lib/ruby/3.1.0/set.rb`, or `<internal:kernel>`; none of methods in C. It
    /// also stands for the module.
    pub file: Option<String>,
    /// 1-based; 0 where there is none.
    pub line: u32,
}

/// What a walk saw, as it is now.
struct Objects {
    body: Option<[u8; BODY_BYTES]>,
    method: Option<[u8; METHOD_BYTES]>,
    hash: u64,
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ hash >> 29 ^ word).wrapping_mul(MULTIPLIER)
}

/// An internal object of some kind.
fn check_kind(memory: &dyn ReadMemory, address: u64, kind: u64) -> Result<(), Unreadable> {
    let flags = word(memory, address)?;
    if flags & TYPE_MASK == T_IMEMO && flags >> IMEMO_SHIFT & 15 == kind {
        Ok(())
    } else {
        Err(Unreadable::Replaced)
    }
}

impl Ruby {
    /// The frame of what the walk saw: the word and its detail (`so_ruby_next` of bpf/ruby.h). Where other objects
    /// stand by now, that is said instead of their name.
    pub fn frame(&self, memory: &dyn ReadMemory, value: u64, detail: u64) -> Result<RubyFrame, Unreadable> {
        let object = |value: u64| (value & ((1 << OBJECT_BITS) - 1)) << 3;
        let (iseq, instruction) = (object(value), value >> OBJECT_BITS);
        let (method, hash) = (object(detail), detail >> OBJECT_BITS);
        let objects = self.objects(memory, iseq, method)?;
        if objects.hash != hash {
            return Err(Unreadable::Replaced);
        }
        let named = self.named(memory, &objects, instruction);
        // What was read meanwhile may be another one's.
        if self.objects(memory, iseq, method)?.hash != hash {
            return Err(Unreadable::Replaced);
        }
        named
    }

    /// The same word and detail that the kernel side makes of a frame.
    pub fn word_of(
        &self,
        memory: &dyn ReadMemory,
        iseq: u64,
        method: u64,
        instruction: u64,
    ) -> Result<(u64, u64), Unreadable> {
        let hash = self.objects(memory, iseq, method)?.hash;
        Ok((
            iseq >> 3 | instruction << OBJECT_BITS,
            method >> 3 | hash << OBJECT_BITS,
        ))
    }

    fn objects(&self, memory: &dyn ReadMemory, iseq: u64, method: u64) -> Result<Objects, Unreadable> {
        let mut objects = Objects {
            body: None,
            method: None,
            hash: 0,
        };
        if iseq != 0 {
            check_kind(memory, iseq, IMEMO_ISEQ)?;
            let at = word(memory, field(iseq, ISEQ_BODY))?;
            let mut body = [0; BODY_BYTES];
            read(memory, at, &mut body)?;
            objects.hash = mix(objects.hash, at);
            for offset in [BODY_ENCODED, BODY_PATH, BODY_LABEL] {
                objects.hash = mix(objects.hash, part(&body, offset));
            }
            objects.hash = mix(objects.hash, part(&body, BODY_FIRST_LINE) & 0xffff_ffff);
            objects.body = Some(body);
        }
        if method != 0 {
            check_kind(memory, method, IMEMO_METHOD)?;
            let mut entry = [0; METHOD_BYTES];
            read(memory, method, &mut entry)?;
            for offset in [METHOD_DEFINITION, METHOD_ID, METHOD_OWNER] {
                objects.hash = mix(objects.hash, part(&entry, offset));
            }
            objects.method = Some(entry);
        }
        objects.hash >>= 48;
        Ok(objects)
    }

    fn named(&self, memory: &dyn ReadMemory, objects: &Objects, instruction: u64) -> Result<RubyFrame, Unreadable> {
        let layout = &self.layout;
        let owner = objects.method.as_ref().map(|method| part(method, METHOD_OWNER));
        let Some(body) = &objects.body else {
            // A method in C.
            let nonsense = Unreadable::Nonsense {
                what: "a method",
                address: 0,
            };
            let method = objects.method.as_ref().ok_or(nonsense)?;
            let definition = part(method, METHOD_DEFINITION);
            let id = word(memory, field(definition, DEFINITION_ID))?;
            let name = layout.names.name(memory, id)?;
            let qualifier = layout.qualifier(memory, owner.unwrap_or(0))?;
            return Ok(RubyFrame {
                function: qualifier + &name,
                file: None,
                line: 0,
            });
        };
        let in_flags = layout.offsets.is_length_in_flags;
        let label = text(memory, part(body, BODY_LABEL), in_flags)?;
        let base = text(memory, part(body, BODY_BASE_LABEL), in_flags)?;
        let path = part(body, BODY_PATH);
        let is_pair = is_object(path) && word(memory, path)? & TYPE_MASK == T_ARRAY;
        let path = if is_pair { element(memory, path, 0)? } else { path };
        let function = match owner {
            // What is no method's has a name of its own: `<main>`, `<class:Queue>`.
            Some(owner) if !base.starts_with('<') => qualified(
                &label,
                &base,
                &layout.qualifier(memory, owner)?,
                layout.offsets.has_handlers_in_names,
            ),
            _ => label,
        };
        Ok(RubyFrame {
            function,
            file: Some(text(memory, path, in_flags)?),
            line: self.line(memory, body, instruction)?,
        })
    }

    fn line(&self, memory: &dyn ReadMemory, body: &[u8], instruction: u64) -> Result<u32, Unreadable> {
        let offsets = &self.layout.offsets;
        let table = LineTable {
            body,
            at: offsets.body_lines,
            entry_bytes: offsets.line_bytes,
        };
        // The number is that of the next instruction.
        let line = match instruction {
            NO_INSTRUCTION => None,
            _ => table.line(memory, instruction.saturating_sub(1))?,
        };
        let first = part(body, BODY_FIRST_LINE) & 0xffff_ffff;
        let first = if offsets.is_line_object { first >> 1 } else { first };
        let first = u32::try_from(first).ok().filter(|line| i32::try_from(*line).is_ok());
        Ok(line.or(first).unwrap_or(0))
    }
}

/// A label with its class before the method's own name: `block in pop`, `pop`, `Queue#` give `block in Queue#pop`.
fn qualified(label: &str, base: &str, qualifier: &str, has_handlers: bool) -> String {
    let Some(mut before) = label.strip_suffix(base) else {
        return label.to_owned();
    };
    if !has_handlers {
        for handler in ["rescue in ", "ensure in "] {
            before = before.strip_prefix(handler).unwrap_or(before);
        }
    }
    format!("{before}{qualifier}{base}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_stand_before_the_method_s_own_name() {
        for (label, base, has_handlers, expected) in [
            ("pop", "pop", true, "Queue#pop"),
            ("block in pop", "pop", true, "block in Queue#pop"),
            ("block (2 levels) in pop", "pop", false, "block (2 levels) in Queue#pop"),
            ("rescue in pop", "pop", true, "rescue in Queue#pop"),
            ("ensure in pop", "pop", false, "Queue#pop"),
            ("pop", "push", true, "pop"),
        ] {
            assert_eq!(qualified(label, base, "Queue#", has_handlers), expected);
        }
    }
}
