//! Go's table of functions, pclntab, which its runtime needs, so that it is in every Go program, stripped or not.
//!
//! In: an image. Out: functions with their names, files and lines, and the numbers that the table has for each pc.
//! Formats of Go 1.16, 1.18 and 1.20 on (runtime/symtab.go, cmd/link/internal/ld/pcln.go); older ones are passed
//! over.

mod header;
mod record;

use self::header::Header;
pub(crate) use self::header::Version;
use super::blocks::Blocks;
use super::image::{Image, field};

/// Changes of a value in one function.
const MAX_CHANGES: usize = 65_536;
/// Functions that were inlined into each other at one address: more make no sense.
const MAX_INLINED: usize = 24;

/// Where a program's table lies, found once: finding it may mean reading the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    header: Header,
    /// Address that the table's offsets of functions count from; zero where it has addresses.
    text: u64,
}

impl Location {
    /// None where the file is no Go program, or one of an unknown format.
    pub(crate) fn find<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<Self> {
        let header = header::find(image)?;
        let text = record::start(image, &header)?;
        Some(Self { header, text })
    }

    /// How many functions the table has.
    pub(crate) fn functions(&self) -> u64 {
        self.header.functions
    }

    /// The address that trees of inlined functions are found by; looking for it may mean reading all data of the
    /// file. None where there is none, as before Go 1.18.
    pub(crate) fn trees<R: Fn(u64, &mut [u8]) -> bool>(&self, image: &Image<R>) -> Option<u64> {
        record::trees(image, &self.header)
    }
}

/// One function as the table tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) flags: u64,
    /// Where the changes of the stack pointer stand; zero where there are none.
    pub(crate) pcsp: u64,
    name: u64,
    /// Of its record, from the table's start.
    place: u64,
}

/// A function at an address of another one's code, or that one itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    name: u64,
    /// Whose line is the place in it.
    address: u64,
}

/// A program's table, open for reading.
pub(crate) struct Pclntab<'a, R> {
    image: &'a Image<R>,
    header: Header,
    text: u64,
    // Four ways to the same bytes, each with a memory of its own, since each goes its own way from front to back.
    functab: Blocks<'a, R>,
    functions: Blocks<'a, R>,
    values: Blocks<'a, R>,
    names: Blocks<'a, R>,
}

impl<'a, R: Fn(u64, &mut [u8]) -> bool> Pclntab<'a, R> {
    pub(crate) fn new(image: &'a Image<R>, location: Location) -> Self {
        let Location { header, text } = location;
        let blocks = || Blocks::new(image, header.offset, header.bytes);
        Self {
            image,
            header,
            text,
            functab: blocks(),
            functions: blocks(),
            values: blocks(),
            names: blocks(),
        }
    }

    pub(crate) fn functions(&self) -> u64 {
        self.header.functions
    }

    /// What was read of the file so far.
    pub(crate) fn read_bytes(&self) -> u64 {
        let ways = [&self.functab, &self.functions, &self.values, &self.names];
        ways.iter().fold(0, |sum, way| sum.saturating_add(way.read_bytes))
    }

    pub(crate) fn version(&self) -> Version {
        self.header.version
    }

    /// The function of this number. None where what the table says of it makes no sense.
    pub(crate) fn function(&mut self, index: u64) -> Option<Function> {
        let size = self.header.version.functab_field_bytes();
        let at = self.entry(index)?;
        let begin = self.functab.number(at, size)?;
        let offset = self.functab.number(at.checked_add(size)?, size)?;
        let end = self.functab.number(at.checked_add(size.checked_mul(2)?)?, size)?;
        let (begin, end) = (self.text.checked_add(begin)?, self.text.checked_add(end)?);
        if !self.image.is_code(begin, end) {
            return None;
        }
        let place = self.header.functab.checked_add(offset)?;
        let layout = self.header.version.layout();
        Some(Function {
            begin,
            end,
            pcsp: self.functions.number(place.checked_add(layout.pcsp)?, 4)?,
            name: self.functions.number(place.checked_add(layout.name)?, 4)?,
            flags: self.functions.number(place.checked_add(layout.flags)?, 1)?,
            place,
        })
    }

    /// Where a function's entry stands in the list.
    fn entry(&self, index: u64) -> Option<u64> {
        let bytes = index
            .checked_mul(2)?
            .checked_mul(self.header.version.functab_field_bytes())?;
        self.header.functab.checked_add(bytes)
    }

    /// The number of the last function that begins at an address or before; none before the first one.
    pub(crate) fn last_from(&mut self, address: u64) -> Option<u64> {
        let size = self.header.version.functab_field_bytes();
        let offset = address.checked_sub(self.text)?;
        let (mut low, mut high) = (0, self.header.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            let at = self.entry(middle)?;
            if self.functab.number(at, size)? <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// The function that holds an address.
    pub(crate) fn find(&mut self, address: u64) -> Option<Function> {
        let number = self.last_from(address)?;
        let function = self.function(number)?;
        // A list that is out of order leads anywhere.
        (function.begin <= address && address < function.end).then_some(function)
    }

    /// The functions at an address: those that were inlined there, innermost first, and the function itself last.
    /// `trees` is what [`Location::trees`] gives. None where what was inlined there can't be told.
    pub(crate) fn calls(
        &mut self,
        function: &Function,
        address: u64,
        trees: impl Fn() -> Option<u64>,
    ) -> Option<Vec<Call>> {
        /// `PCDATA_InlTreeIndex` (internal/abi/symtab.go).
        const INLINED: u64 = 2;
        let layout = self.header.version.layout();
        let mut calls = Vec::new();
        let mut address = address;
        let values = self.functions.number(function.place.checked_add(layout.more)?, 4)?;
        let more = function.place.checked_add(layout.record_bytes)?;
        let indices = if values > INLINED {
            self.functions.number(more.checked_add(INLINED * 4)?, 4)?
        } else {
            0
        };
        let mut tree = None;
        while indices != 0
            && let Some(index) = self.value(function, indices, address).filter(|index| *index >= 0)
        {
            let tree = match tree {
                Some(tree) => tree,
                None => *tree.insert(self.tree(function, &trees)?),
            };
            let (name, caller) = self.inlined(tree, u64::try_from(index).ok()?)?;
            calls.push(Call { name, address });
            address = function
                .begin
                .checked_add(caller)
                .filter(|caller| *caller < function.end)?;
            if calls.len() > MAX_INLINED {
                return None;
            }
        }
        calls.push(Call {
            name: function.name,
            address,
        });
        Some(calls)
    }

    /// The address of a function's tree of what was inlined in it.
    fn tree(&mut self, function: &Function, trees: impl Fn() -> Option<u64>) -> Option<u64> {
        /// `FUNCDATA_InlTree` (internal/abi/symtab.go).
        const TREE: u64 = 3;
        const NONE: u64 = u32::MAX as u64;
        let layout = self.header.version.layout();
        let values = self.functions.number(function.place.checked_add(layout.more)?, 4)?;
        let more = function.place.checked_add(layout.record_bytes)?;
        let count = self.functions.number(more.checked_sub(1)?, 1)?;
        let at = more.checked_add(values.checked_add(TREE)?.checked_mul(4)?)?;
        let offset = self.functions.number(at, 4)?;
        if count <= TREE || offset == NONE {
            return None;
        }
        trees()?.checked_add(offset)
    }

    /// Where the name of an inlined function stands, and how far behind its function's begin it was called. None
    /// where there is no name.
    fn inlined(&mut self, tree: u64, index: u64) -> Option<(u64, u64)> {
        let layout = self.header.version.inlined();
        let mut bytes = [0; 20];
        let entry = bytes.get_mut(..usize::try_from(layout.bytes).ok()?)?;
        self.image
            .read(tree.checked_add(index.checked_mul(layout.bytes)?)?, entry)?;
        let name = field(&bytes, layout.name, 4)?;
        let first = self.header.names.checked_add(name)?;
        // Names end with a zero: what follows none is the middle of one, or nothing at all.
        let is_name = first < self.header.units && (name == 0 || self.names.byte(first.checked_sub(1)?)? == 0);
        is_name.then_some((name, field(&bytes, layout.caller, 4)?))
    }

    /// A function's name, cut at `into`'s length.
    pub(crate) fn name<'b>(&mut self, function: &Function, into: &'b mut [u8]) -> Option<&'b [u8]> {
        self.name_at(function.name, into)
    }

    /// The same of a function that may be inlined.
    pub(crate) fn called<'b>(&mut self, call: Call, into: &'b mut [u8]) -> Option<&'b [u8]> {
        self.name_at(call.name, into)
    }

    fn name_at<'b>(&mut self, name: u64, into: &'b mut [u8]) -> Option<&'b [u8]> {
        let at = self.header.names.checked_add(name)?;
        self.text_at(at, into)
    }

    fn text_at<'b>(&mut self, mut at: u64, into: &'b mut [u8]) -> Option<&'b [u8]> {
        let mut count = 0;
        for byte in into.iter_mut() {
            *byte = self.names.byte(at)?;
            if *byte == 0 {
                break;
            }
            at = at.checked_add(1)?;
            count += 1;
        }
        into.get(..count)
    }

    /// File and line of a call in a function's code; the file's name is cut at `into`'s length.
    pub(crate) fn line<'b>(&mut self, function: &Function, call: Call, into: &'b mut [u8]) -> Option<(&'b [u8], u32)> {
        let address = call.address;
        let layout = self.header.version.layout();
        let field = |table: &mut Self, at: u64| table.functions.number(function.place.checked_add(at)?, 4);
        let (files, lines) = (field(self, layout.pcfile)?, field(self, layout.pcln)?);
        let file = u64::try_from(self.value(function, files, address)?).ok()?;
        let line = u32::try_from(self.value(function, lines, address)?).ok()?;
        let index = field(self, layout.unit)?.checked_add(file)?;
        let unit = self.header.units.checked_add(index.checked_mul(4)?)?;
        let offset = self.functions.number(unit, 4)?;
        const NO_FILE: u64 = u32::MAX as u64;
        if offset == NO_FILE {
            return None;
        }
        let at = self.header.files.checked_add(offset)?;
        Some((self.text_at(at, into)?, line))
    }

    /// The value at an address, of those that begin at `offset`.
    fn value(&mut self, function: &Function, offset: u64, address: u64) -> Option<i64> {
        let mut found = None;
        self.values(function, offset, |_, end, value| {
            if address < end {
                found = Some(value);
            }
            address >= end
        })?;
        found
    }

    /// Hands out ranges of addresses (the end exclusive) and the values that hold there, ascending, until `go_on`
    /// says no. None where they make no sense.
    ///
    /// Pairs of numbers: what to add to the value (zigzag), and for how many units of code that holds. The value
    /// begins at -1, the pairs end with a first number of zero (runtime/symtab.go, `step`).
    pub(crate) fn values(
        &mut self,
        function: &Function,
        offset: u64,
        mut go_on: impl FnMut(u64, u64, i64) -> bool,
    ) -> Option<()> {
        if offset == 0 {
            return Some(());
        }
        let mut at = self.header.deltas.checked_add(offset)?;
        let (mut value, mut pc) = (-1i64, function.begin);
        for count in 0..=MAX_CHANGES {
            if pc >= function.end {
                return Some(());
            }
            let step = self.values.varint(&mut at)?;
            if step == 0 && count > 0 {
                return Some(());
            }
            let step = i64::try_from(step >> 1).ok()? ^ -i64::try_from(step & 1).ok()?;
            value = value.checked_add(step)?;
            let units = self.values.varint(&mut at)?;
            if units == 0 {
                return None;
            }
            let end = pc.checked_add(units.checked_mul(self.header.quantum)?)?;
            if !go_on(pc, end, value) {
                return Some(());
            }
            pc = end;
        }
        None
    }
}
