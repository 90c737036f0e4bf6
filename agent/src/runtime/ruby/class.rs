//! Names of classes and modules.

use super::layout::Layout;
use super::offsets::{ClassNames, T_CLASS, T_MODULE, TYPE_MASK};
use super::text::text;
use super::{ReadMemory, Unreadable, field, is_object, part, read, word};

/// Variables of a class that are looked through for its name.
const MAX_VARIABLES: u64 = 64;
/// `rb_shape`: what its last variable is called, how many there are, its kind, and the shape without that one. Its own
/// number is above an object's flags.
const SHAPE_BYTES: usize = 32;
const SHAPE_NAME: u16 = 8;
const SHAPE_COUNT: u16 = 16;
const SHAPE_KIND: u16 = 24;
const SHAPE_PARENT: u16 = 28;
const SHAPE_SHIFT: u32 = 32;
/// `SHAPE_ROOT`, which has no variables, and `SHAPE_IVAR`. Others add none.
const ROOT: u64 = 0;
const VARIABLE: u64 = 1;
/// Of `st_table`: the first entry, the one behind the last, and where they are; of an entry: what it is of, its value.
const TABLE_FIRST: u16 = 32;
const TABLE_END: u16 = 40;
const TABLE_ENTRIES: u16 = 48;
const ENTRY_BYTES: u64 = 24;
const ENTRY_KEY: u16 = 8;
const ENTRY_VALUE: u16 = 16;

impl Layout {
    /// What stands before a method's own name: `Queue#`, or `Queue.` of one of the class itself; nothing where its
    /// class has no name.
    pub(super) fn qualifier(&self, memory: &dyn ReadMemory, owner: u64) -> Result<String, Unreadable> {
        let flags = self.class_flags(memory, owner)?;
        let is_singleton = flags & TYPE_MASK == T_CLASS && flags & self.offsets.singleton != 0;
        if !is_singleton {
            return Ok(self.class_name(memory, owner)?.map_or(String::new(), |name| name + "#"));
        }
        let attached = match self.offsets.class_names {
            ClassNames::Fields { attached, .. } => Some(word(memory, field(owner, attached))?),
            _ => self.variable(memory, owner, "__attached__")?,
        };
        // Of any other object there is no name.
        let Some(attached) = attached.filter(|attached| self.class_flags(memory, *attached).is_ok()) else {
            return Ok(String::new());
        };
        Ok(self
            .class_name(memory, attached)?
            .map_or(String::new(), |name| name + "."))
    }

    fn class_flags(&self, memory: &dyn ReadMemory, class: u64) -> Result<u64, Unreadable> {
        let nonsense = Unreadable::Nonsense {
            what: "a class",
            address: class,
        };
        if !is_object(class) {
            return Err(nonsense);
        }
        let flags = word(memory, class)?;
        if matches!(flags & TYPE_MASK, T_CLASS | T_MODULE) {
            Ok(flags)
        } else {
            Err(nonsense)
        }
    }

    /// A class' name with those around it; none where one of them has none.
    fn class_name(&self, memory: &dyn ReadMemory, class: u64) -> Result<Option<String>, Unreadable> {
        let path = match self.offsets.class_names {
            ClassNames::Fields { path, .. } => Some(word(memory, field(class, path))?).filter(|path| is_object(*path)),
            _ => self.variable(memory, class, "__classpath__")?,
        };
        let Some(path) = path else {
            return Ok(None);
        };
        let name = text(memory, path, self.offsets.is_length_in_flags)?;
        // A name for the time being: `#<Class:0x000…>::Inner`.
        Ok(Some(name).filter(|name| !name.is_empty() && !name.starts_with("#<")))
    }

    fn variable(&self, memory: &dyn ReadMemory, class: u64, wanted: &str) -> Result<Option<u64>, Unreadable> {
        let (extension, table) = match self.offsets.class_names {
            ClassNames::Variables { extension, table } => (extension, table),
            ClassNames::Shapes { list, values } => return self.shaped(memory, class, wanted, (list, values)),
            ClassNames::Fields { .. } => return Ok(None),
        };
        let extension = word(memory, field(class, extension))?;
        let table = word(memory, field(extension, table))?;
        if !is_object(table) {
            return Ok(None);
        }
        let first = word(memory, field(table, TABLE_FIRST))?;
        let end = word(memory, field(table, TABLE_END))?.min(first.saturating_add(MAX_VARIABLES));
        let entries = word(memory, field(table, TABLE_ENTRIES))?;
        for index in first..end {
            let entry = entries.saturating_add(index.saturating_mul(ENTRY_BYTES));
            let key = word(memory, field(entry, ENTRY_KEY))?;
            if self.names.name(memory, key).is_ok_and(|name| name == wanted) {
                return Ok(Some(word(memory, field(entry, ENTRY_VALUE))?));
            }
        }
        Ok(None)
    }

    /// A variable of a class with a shape, the last ones first.
    fn shaped(
        &self,
        memory: &dyn ReadMemory,
        class: u64,
        wanted: &str,
        (list, values): (u16, u16),
    ) -> Result<Option<u64>, Unreadable> {
        let list = word(memory, field(self.vm, list))?;
        let mut number = word(memory, class)? >> SHAPE_SHIFT;
        for _ in 0..MAX_VARIABLES {
            let mut shape = [0; SHAPE_BYTES];
            read(memory, list.saturating_add(number * SHAPE_BYTES as u64), &mut shape)?;
            let (count, kind) = (part(&shape, SHAPE_COUNT) & 0xffff_ffff, part(&shape, SHAPE_KIND) & 0xff);
            if kind == ROOT {
                break;
            }
            let is_wanted = |id| self.names.name(memory, id).is_ok_and(|name| name == wanted);
            if kind == VARIABLE && is_wanted(part(&shape, SHAPE_NAME)) {
                let value = count.checked_sub(1).map(|index| index * 8);
                let values = word(memory, field(class, values))?;
                let value = value.map(|offset| word(memory, values.saturating_add(offset)));
                return value.transpose();
            }
            number = part(&shape, SHAPE_KIND) >> (8 * (SHAPE_PARENT - SHAPE_KIND)) & 0xffff_ffff;
        }
        Ok(None)
    }
}
