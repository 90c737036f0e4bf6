//! What a function is called, and where it stands.

use super::layout::Layout;
use super::scope::Scope;
use super::text::name;
use super::{
    ARRAY_DATA, ARRAY_LENGTH, ReadMemory, Unreadable, field, object, object_at, part, read_long, small, type_of, word,
};
use crate::runtime::reading::MAX_NAME_BYTES;

/// Of its flags: what kind of function it is, of which these are constructors of classes.
const FUNCTION_KIND: u64 = 31;
const CONSTRUCTORS: std::ops::RangeInclusive<u64> = 3..=6;
/// In a script: all of its functions, by their number.
const SCRIPT_FUNCTIONS: u16 = 88;
/// How far from a method its class' constructor may be, counted in functions.
const NEAR_FUNCTIONS: usize = 64;
/// As in bpf/v8.h.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const LENGTH_MASK: u64 = 0xffff_ffff_ffff;

pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ hash >> 29 ^ word).wrapping_mul(MULTIPLIER)
}

/// What functions of the same text share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shared {
    address: u64,
    bytes: Vec<u8>,
    /// The number of its script, where functions have none among all.
    script_id: Option<u64>,
}

impl Shared {
    pub(super) fn read(memory: &dyn ReadMemory, layout: &Layout, address: u64) -> Result<Self, Unreadable> {
        if type_of(memory, address)? != layout.type_shared {
            return Err(Unreadable::Replaced);
        }
        let bytes = read_long(memory, address, usize::from(layout.shared_bytes()))?;
        let script = object(part(&bytes, layout.shared_script, 8));
        let script_id = |(offset, script)| word(memory, field(script, offset)).unwrap_or(0);
        Ok(Self {
            address,
            bytes,
            script_id: layout.script_id.zip(script).map(script_id),
        })
    }

    /// Where it lies.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Of what stays as it is: as `so_v8_shared` of bpf/v8.h has it.
    pub(super) fn hash(&self, layout: &Layout) -> u64 {
        let mut hash = mix(0, self.word(layout.shared_name));
        hash = mix(hash, self.word(layout.shared_script));
        hash = mix(hash, self.word(layout.shared_length) & LENGTH_MASK);
        hash = mix(hash, part(&self.bytes, layout.shared_flags + 4, 4));
        if let Some(unique) = layout.shared_unique {
            hash = mix(hash, part(&self.bytes, unique, 4));
        }
        self.script_id.map_or(hash, |id| mix(hash, id))
    }

    fn word(&self, offset: u16) -> u64 {
        part(&self.bytes, offset, 8)
    }

    fn is_constructor(&self, layout: &Layout) -> bool {
        CONSTRUCTORS.contains(&(part(&self.bytes, layout.shared_flags, 4) & FUNCTION_KIND))
    }

    /// Its number in the script.
    fn number(&self, layout: &Layout) -> usize {
        part(&self.bytes, layout.shared_flags + 4, 4) as usize
    }

    /// Bytecodes, what was made of them, or something else.
    pub(super) fn data(&self, layout: &Layout) -> Option<u64> {
        object(self.word(layout.shared_data))
    }

    /// Its script; none of functions that are V8's own.
    pub(super) fn script(&self, memory: &dyn ReadMemory, layout: &Layout) -> Result<Option<u64>, Unreadable> {
        let Some(script) = object(self.word(layout.shared_script)) else {
            return Ok(None);
        };
        Ok((type_of(memory, script)? == layout.type_script).then_some(script))
    }

    /// Its scope, once it has been compiled; else its name, if it has one.
    fn scope_or_name(&self, memory: &dyn ReadMemory, layout: &Layout) -> Result<(Option<Scope>, String), Unreadable> {
        let Some(found) = object(self.word(layout.shared_name)) else {
            return Ok((None, String::new()));
        };
        if type_of(memory, found)? != layout.type_scope {
            return Ok((None, name(memory, found)?));
        }
        let scope = Scope::read(memory, layout, found)?;
        let own = scope.name.map_or(Ok(String::new()), |object| name(memory, object));
        Ok((Some(scope), own.unwrap_or_default()))
    }

    /// What it is called, as far as its text tells: `Queue.pop`, `new Queue`, `<anonymous>`; and where it begins.
    pub(super) fn called(&self, memory: &dyn ReadMemory, layout: &Layout) -> Result<Called, Unreadable> {
        let (scope, own) = self.scope_or_name(memory, layout)?;
        let start = scope.and_then(|scope| scope.start);
        let inferred = scope.and_then(|scope| scope.inferred);
        let inferred = inferred
            .and_then(|object| name(memory, object).ok())
            .unwrap_or_default();
        let text = if own.is_empty() {
            inferred
        } else if self.is_constructor(layout) {
            format!("new {own}")
        } else if let Some(class) = self.class(memory, layout, scope)? {
            format!("{class}.{own}")
        } else {
            own
        };
        let end = text.floor_char_boundary(MAX_NAME_BYTES);
        Ok(Called {
            name: Some(text[..end].to_owned()).filter(|name| !name.is_empty()),
            start,
        })
    }

    /// The name of the class whose body it stands in: that of its constructor.
    fn class(
        &self,
        memory: &dyn ReadMemory,
        layout: &Layout,
        scope: Option<Scope>,
    ) -> Result<Option<String>, Unreadable> {
        let Some(outer) = scope.and_then(|scope| scope.outer) else {
            return Ok(None);
        };
        if type_of(memory, outer)? != layout.type_scope || !Scope::read(memory, layout, outer)?.is_class {
            return Ok(None);
        }
        let Some(script) = self.script(memory, layout)? else {
            return Ok(None);
        };
        let list = object_at(memory, script, SCRIPT_FUNCTIONS, "a script's functions")?;
        let count = small(word(memory, field(list, ARRAY_LENGTH))?).and_then(|count| usize::try_from(count).ok());
        let own = self.number(layout);
        let first = own.saturating_sub(NEAR_FUNCTIONS);
        let end = (own + NEAR_FUNCTIONS).min(count.unwrap_or(0));
        let Some(bytes) = end.checked_sub(first).map(|count| count * 8) else {
            return Ok(None);
        };
        let at = field(list, ARRAY_DATA).saturating_add(first as u64 * 8);
        let words = read_long(memory, at, bytes)?;
        let mut near: Vec<(usize, u64)> = words
            .chunks_exact(8)
            .enumerate()
            .map(|(number, bytes)| ((first + number).abs_diff(own), part(bytes, 0, 8)))
            .collect();
        near.sort_unstable();
        for address in near.into_iter().filter_map(|(_, word)| object(word)) {
            let Ok(other) = Self::read(memory, layout, address) else {
                continue;
            };
            if other.address == self.address || !other.is_constructor(layout) {
                continue;
            }
            let (scope, name) = other.scope_or_name(memory, layout)?;
            let around = scope.map_or(object(other.word(layout.shared_outer)), |scope| scope.outer);
            if around == Some(outer) {
                return Ok(Some(name).filter(|name| !name.is_empty()));
            }
        }
        Ok(None)
    }
}

/// A function's name and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) name: Option<String>,
    /// The number of its first character, where that is known.
    pub(super) start: Option<u32>,
}
