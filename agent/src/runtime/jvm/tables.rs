//! The tables of a VM's types, fields and constants, as libjvm has them for its serviceability agent (vmStructs.hpp).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::error::LayoutError;
use super::{ReadMemory, Unreadable, c_string, number, read};

/// JDK 17 has some 2,000 entries in all tables.
const MAX_ENTRIES: u64 = 8192;
/// The longest name of a type with its parameters, and more.
const MAX_TEXT_BYTES: usize = 256;
/// The distance of two entries, which hold six words at most.
const STRIDES: std::ops::RangeInclusive<u64> = 8..=256;

/// A field of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// As the source has it; empty where it isn't checked there.
    pub(super) type_name: String,
    /// From its object's begin, or the address of a static one.
    pub(super) at: u64,
    pub(super) is_static: bool,
}

/// What the tables say of the types that are asked for.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// By type, then by name.
    fields: BTreeMap<String, BTreeMap<String, Field>>,
    /// Bytes of each type.
    sizes: BTreeMap<String, u64>,
    constants: BTreeMap<String, u64>,
}

impl Tables {
    /// `symbol` gives a dynamic symbol's address in the process, `is_wanted` says whether a type matters. Constants are
    /// kept where what stands before `::` is wanted.
    pub(super) fn read(
        memory: &dyn ReadMemory,
        symbol: &dyn Fn(&str) -> Option<u64>,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Self, LayoutError> {
        let memory = &Pages::new(memory);
        let mut tables = Self::default();
        let structs = Table::find(memory, symbol, "VMStruct")?;
        let [owner, name] = structs.columns(["TypeName", "FieldName"])?;
        let [type_name, is_static, offset, address] =
            structs.columns(["TypeString", "IsStatic", "Offset", "Address"])?;
        structs.each(owner, |entry| {
            let owner = text(memory, entry + owner)?;
            if is_wanted(&owner) {
                let is_static = number(memory, entry + is_static, 4)? != 0;
                let field = Field {
                    type_name: text(memory, entry + type_name)?,
                    at: number(memory, entry + if is_static { address } else { offset }, 8)?,
                    is_static,
                };
                let name = text(memory, entry + name)?;
                tables.fields.entry(owner).or_default().insert(name, field);
            }
            Ok(())
        })?;
        let types = Table::find(memory, symbol, "VMType")?;
        let [name, size] = types.columns(["TypeName", "Size"])?;
        types.each(name, |entry| {
            let name = text(memory, entry + name)?;
            if is_wanted(&name) {
                tables.sizes.insert(name, number(memory, entry + size, 8)?);
            }
            Ok(())
        })?;
        for (table, bytes) in [("VMIntConstant", 4), ("VMLongConstant", 8)] {
            let constants = Table::find(memory, symbol, table)?;
            let [name, value] = constants.columns(["Name", "Value"])?;
            constants.each(name, |entry| {
                let name = text(memory, entry + name)?;
                if name.split("::").next().is_some_and(is_wanted) {
                    tables.constants.insert(name, number(memory, entry + value, bytes)?);
                }
                Ok(())
            })?;
        }
        Ok(tables)
    }

    pub(super) fn field(&self, owner: &str, name: &str) -> Option<&Field> {
        self.fields.get(owner)?.get(name)
    }

    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.sizes.get(name).copied()
    }

    /// Of 4 bytes unless it is a long one.
    pub(super) fn constant(&self, name: &str) -> Option<u64> {
        self.constants.get(name).copied()
    }
}

/// One table: an array of entries that ends with one without a name.
struct Table<'a> {
    memory: &'a dyn ReadMemory,
    symbol: &'a dyn Fn(&str) -> Option<u64>,
    /// `VMStruct`, `VMType` and so on.
    name: &'static str,
    first: u64,
    stride: u64,
}

impl<'a> Table<'a> {
    fn find(
        memory: &'a dyn ReadMemory,
        symbol: &'a dyn Fn(&str) -> Option<u64>,
        name: &'static str,
    ) -> Result<Self, LayoutError> {
        let variable = |symbol_name: String| {
            let address = symbol(&symbol_name).ok_or_else(|| LayoutError::NoSymbol {
                name: symbol_name.clone(),
            })?;
            Ok::<_, LayoutError>(number(memory, address, 8)?)
        };
        let stride = variable(format!("gHotSpot{name}EntryArrayStride"))?;
        let first = variable(format!("gHotSpot{name}s"))?;
        // The dynamic linker has not come to them.
        if stride == 0 || first == 0 {
            return Err(LayoutError::NotReady);
        }
        if !STRIDES.contains(&stride) {
            return Err(LayoutError::Table { name });
        }
        Ok(Self {
            memory,
            symbol,
            name,
            first,
            stride,
        })
    }

    /// Where in an entry these stand.
    fn columns<const COUNT: usize>(&self, names: [&str; COUNT]) -> Result<[u64; COUNT], LayoutError> {
        let mut columns = [0; COUNT];
        for (column, name) in columns.iter_mut().zip(names) {
            let symbol_name = format!("gHotSpot{}Entry{name}Offset", self.name);
            let address = (self.symbol)(&symbol_name);
            let address = address.ok_or(LayoutError::NoSymbol { name: symbol_name })?;
            *column = number(self.memory, address, 8)?;
            if *column >= self.stride {
                return Err(LayoutError::Table { name: self.name });
            }
        }
        Ok(columns)
    }

    /// `take` gets each entry's address; `name` is the column that is null behind the last one.
    fn each(&self, name: u64, mut take: impl FnMut(u64) -> Result<(), Unreadable>) -> Result<(), LayoutError> {
        for index in 0..MAX_ENTRIES {
            let entry = self.first.saturating_add(index * self.stride);
            if number(self.memory, entry.saturating_add(name), 8)? == 0 {
                return Ok(());
            }
            take(entry)?;
        }
        Err(LayoutError::Table { name: self.name })
    }
}

/// The text that a pointer points at; empty for none.
fn text(memory: &dyn ReadMemory, at: u64) -> Result<String, Unreadable> {
    match number(memory, at, 8)? {
        0 => Ok(String::new()),
        address => c_string(memory, address, MAX_TEXT_BYTES),
    }
}

/// A memory that is read by pages, each once: the tables are thousands of short texts that lie close together.
struct Pages<'a> {
    memory: &'a dyn ReadMemory,
    pages: RefCell<HashMap<u64, Box<[u8; PAGE_BYTES as usize]>>>,
}

const PAGE_BYTES: u64 = 4096;
/// The tables and their texts take some 300 KiB.
const MAX_PAGES: usize = 512;

impl<'a> Pages<'a> {
    fn new(memory: &'a dyn ReadMemory) -> Self {
        Self {
            memory,
            pages: RefCell::default(),
        }
    }

    /// None where the bytes lie on two pages, or on one that can't be had.
    fn on_page(&self, address: u64, to: &mut [u8]) -> Option<()> {
        let (page, first) = (address / PAGE_BYTES, (address % PAGE_BYTES) as usize);
        let end = first.checked_add(to.len()).filter(|end| *end <= PAGE_BYTES as usize)?;
        let mut pages = self.pages.borrow_mut();
        if !pages.contains_key(&page) {
            let mut bytes = Box::new([0; PAGE_BYTES as usize]);
            let is_read = pages.len() < MAX_PAGES && read(self.memory, page * PAGE_BYTES, &mut bytes[..]).is_ok();
            is_read.then(|| pages.insert(page, bytes))?;
        }
        to.copy_from_slice(pages.get(&page)?.get(first..end)?);
        Some(())
    }
}

impl ReadMemory for Pages<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.on_page(address, to).is_some() || self.memory.read(address, to)
    }
}
