//! The dictionary: tables that locations, functions and attributes of all samples refer to.

use crate::ingest::wire::allocation::AllocationBudget;
use crate::ingest::wire::attribute::{KeyValue, table_attribute};
use crate::ingest::wire::protobuf::{Fault, Field, Fields, OLDER, varint};
use std::ops::Range;

/// Entries of one table that belong to an entry of another.
pub(crate) type Span = Range<u32>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Mapping {
    pub(crate) file: i32,
    pub(crate) attributes: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Location {
    pub(crate) mapping: i32,
    pub(crate) address: u64,
    pub(crate) lines: Span,
    pub(crate) attributes: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Line {
    pub(crate) function: i32,
    pub(crate) line: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Function {
    pub(crate) name: i32,
    pub(crate) system_name: i32,
    pub(crate) file: i32,
    pub(crate) start_line: i64,
}

/// The dictionary.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tables<'a> {
    /// As they stand in the body: whether one is text is looked at where it is asked for. Most are names of functions
    /// that the store has, of which nothing but a hash is needed.
    pub(crate) strings: Vec<&'a [u8]>,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) locations: Vec<Location>,
    pub(crate) lines: Vec<Line>,
    pub(crate) functions: Vec<Function>,
    pub(crate) attributes: Vec<KeyValue<'a>>,
    /// As they stand in the body: of most, nothing but their locations' order counts, and that once.
    pub(crate) stacks: Vec<Stack<'a>>,
    /// Attributes of mappings and locations.
    pub(crate) indices: Vec<i32>,
}

/// A stack's message, of which [`Tables::read`] has checked that it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stack<'a>(pub(super) &'a [u8]);

impl<'a> Stack<'a> {
    /// Makes `to` the indices of its first locations, leaf first, at most so many. As [`Stack::locations`], in less
    /// time: of each sample's cost a good part is this.
    pub(crate) fn unpack(self, most: usize, to: &mut Vec<i32>) {
        to.clear();
        let mut fields = Fields { wire: self.0 };
        while let Ok(Some((number, field))) = fields.next() {
            match (number, field) {
                (1, Field::Bytes(packed)) => unpack(packed, most, to),
                (1, Field::Varint(index)) if to.len() < most => to.push(index as i32),
                _ => {}
            }
        }
    }

    /// Indices of its locations, leaf first.
    pub(crate) fn locations(self) -> Locations<'a> {
        Locations {
            fields: Fields { wire: self.0 },
            packed: &[],
        }
    }
}

/// Adds packed integers that can be read, until there are so many.
fn unpack(mut packed: &[u8], most: usize, to: &mut Vec<i32>) {
    to.reserve(packed.len().min(most.saturating_sub(to.len())));
    while to.len() < most && !packed.is_empty() {
        // Most indices have two bytes, and so most likely have the next four: the upper bit of each first byte says
        // that a second one follows.
        if let Some((word, rest)) = packed.split_first_chunk()
            && to.len() + 4 <= most
        {
            let word = u64::from_le_bytes(*word);
            if word & 0x8080_8080_8080_8080 == 0x0080_0080_0080_0080 {
                let four = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
                to.extend([0, 16, 32, 48].map(|at| i32::from((four >> at) as u16)));
                packed = rest;
                continue;
            }
        }
        let Ok(index) = varint(&mut packed) else { return };
        to.push(index as i32);
    }
}

/// See [`Stack::locations`].
pub(crate) struct Locations<'a> {
    fields: Fields<'a>,
    packed: &'a [u8],
}

impl Iterator for Locations<'_> {
    type Item = i32;

    #[inline]
    fn next(&mut self) -> Option<i32> {
        loop {
            if !self.packed.is_empty() {
                return varint(&mut self.packed).ok().map(|index| index as i32);
            }
            match self.fields.next().ok()?? {
                (1, Field::Bytes(packed)) => self.packed = packed,
                (1, Field::Varint(index)) => return Some(index as i32),
                _ => {}
            }
        }
    }
}

impl Tables<'_> {
    pub(crate) fn indices(&self, span: &Span) -> &[i32] {
        &self.indices[span.start as usize..span.end as usize]
    }

    pub(crate) fn lines(&self, span: &Span) -> &[Line] {
        &self.lines[span.start as usize..span.end as usize]
    }
}

/// A dictionary mostly has as many names, functions and locations each as it has this many bytes, or fewer.
const BYTES_OF_ENTRY: usize = 96;

impl<'a> Tables<'a> {
    /// Adds what a dictionary's message has.
    pub(super) fn read(&mut self, wire: &'a [u8], budget: &mut AllocationBudget) -> Result<(), Fault> {
        self.reserve(wire, budget)?;
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => self.read_mapping(field.message()?, budget)?,
                2 => self.read_location(field.message()?, budget)?,
                3 => budget.push(&mut self.functions, function(field.message()?)?)?,
                5 => budget.push(&mut self.strings, field.message()?)?,
                6 => budget.push(&mut self.attributes, table_attribute(field.message()?)?)?,
                7 => self.read_stack(field.message()?, budget)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Room for as many entries as dictionaries of such a length mostly have; where there are more, tables grow.
    fn reserve(&mut self, wire: &[u8], budget: &mut AllocationBudget) -> Result<(), Fault> {
        let entries = wire.len() / BYTES_OF_ENTRY;
        budget.reserve(&mut self.locations, entries)?;
        // A location mostly has one line and one attribute, which is its frame's type.
        budget.reserve(&mut self.lines, entries)?;
        budget.reserve(&mut self.indices, entries)?;
        budget.reserve(&mut self.functions, entries)?;
        budget.reserve(&mut self.strings, entries)?;
        budget.reserve(&mut self.stacks, entries / 2)
    }

    fn read_mapping(&mut self, wire: &[u8], budget: &mut AllocationBudget) -> Result<(), Fault> {
        let mut mapping = Mapping::default();
        let begin = self.indices.len();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                4 => mapping.file = field.int()? as i32,
                5 => budget.push_ints(&mut self.indices, field)?,
                _ => {}
            }
        }
        mapping.attributes = begin as u32..self.indices.len() as u32;
        budget.push(&mut self.mappings, mapping)
    }

    fn read_location(&mut self, wire: &[u8], budget: &mut AllocationBudget) -> Result<(), Fault> {
        let mut location = Location::default();
        let (first_line, first_index) = (self.lines.len(), self.indices.len());
        // As most stand there: a mapping, a line, and an attribute, which is the frame's type. What a look at each
        // field would say, in less time.
        if let [0x08, mapping, 0x1a, length, of_line @ .., 0x22, 1, attribute] = wire
            && (*mapping | *length | *attribute) < 0x80
            && of_line.len() == usize::from(*length)
        {
            budget.push(&mut self.lines, line(of_line)?)?;
            budget.push(&mut self.indices, i32::from(*attribute))?;
            location.mapping = i32::from(*mapping);
            location.lines = first_line as u32..first_line as u32 + 1;
            location.attributes = first_index as u32..first_index as u32 + 1;
            return budget.push(&mut self.locations, location);
        }
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => location.mapping = field.int()? as i32,
                2 => location.address = field.int()?,
                3 => budget.push(&mut self.lines, line(field.message()?)?)?,
                4 => budget.push_ints(&mut self.indices, field)?,
                5 => return Err(OLDER),
                _ => {}
            }
        }
        location.lines = first_line as u32..self.lines.len() as u32;
        location.attributes = first_index as u32..self.indices.len() as u32;
        budget.push(&mut self.locations, location)
    }

    fn read_stack(&mut self, wire: &'a [u8], budget: &mut AllocationBudget) -> Result<(), Fault> {
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => field.check_ints()?,
                // A unit of an attribute's key, which had this number.
                2 => return Err(OLDER),
                _ => {}
            }
        }
        budget.push(&mut self.stacks, Stack(wire))
    }
}

fn line(wire: &[u8]) -> Result<Line, Fault> {
    let mut line = Line::default();
    if let Some(function) = two_bytes(wire) {
        return Ok(Line { function, ..line });
    }
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => line.function = field.int()? as i32,
            2 => line.line = field.int()? as i64,
            _ => {}
        }
    }
    Ok(line)
}

/// The first field where it has two bytes and is all that there is, as in most messages of tables.
fn two_bytes(wire: &[u8]) -> Option<i32> {
    match *wire {
        [0x08, low, high] if low >= 0x80 && high < 0x80 => Some(i32::from(low & 0x7f) | i32::from(high) << 7),
        _ => None,
    }
}

fn function(wire: &[u8]) -> Result<Function, Fault> {
    let mut function = Function::default();
    if let Some(name) = two_bytes(wire) {
        return Ok(Function { name, ..function });
    }
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => function.name = field.int()? as i32,
            2 => function.system_name = field.int()? as i32,
            3 => function.file = field.int()? as i32,
            4 => function.start_line = field.int()? as i64,
            _ => {}
        }
    }
    Ok(function)
}
