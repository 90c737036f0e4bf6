//! A request as it stands in its body: text is borrowed, tables are a few vectors, samples are read one after another.
//!
//! A request holds thousands of small messages (locations, lines, functions, stacks); a decoder that makes an object
//! of each spends more time on memory than on samples. What the vectors take is counted before they grow, so that a
//! small body cannot ask for much. Field numbers and types are those of opentelemetry-proto,
//! `profiles/v1development/profiles.proto`, from 1.8 on (see [`Layout`]); fields that are not used here are skipped.
//! A field that comes again adds to a table and overrides a number, as protobuf says.

use crate::ingest::error::IngestError;
use crate::ingest::wire::allocation::Room;
use crate::ingest::wire::protobuf::{Fault, Field, Fields, OLDER, text, varint};
use std::ops::Range;

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) resources: Vec<Resource<'a>>,
    pub(crate) tables: Tables<'a>,
    /// What is left for samples, and for what is made of all.
    pub(crate) room: Room,
}

/// Profiles of one origin.
#[derive(Debug, Default)]
pub(crate) struct Resource<'a> {
    pub(crate) attributes: Vec<KeyValue<'a>>,
    /// Those of scopes, one after another.
    pub(crate) scope_attributes: Vec<KeyValue<'a>>,
    pub(crate) profiles: Vec<Profile<'a>>,
}

/// A key that is given as text, or by its index where the text is empty.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct KeyValue<'a> {
    /// As it stands in the body.
    pub(crate) key: &'a [u8],
    pub(crate) key_strindex: i32,
    pub(crate) value: Value<'a>,
}

/// The values that a label or a count can have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    /// A text that is not UTF-8.
    NotText,
    TextIndex(i32),
    Bool(bool),
    Int(i64),
    Real(f64),
    /// A list, by its first text; empty where there is none.
    List(&'a str),
    /// Absent, bytes, or a list of pairs.
    #[default]
    Other,
}

/// What a profile's numbers are: indices of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ValueType {
    pub(crate) kind: i32,
    pub(crate) unit: i32,
}

/// A profile but for its samples, which [`Profile::each_sample`] reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile<'a> {
    pub(crate) wire: &'a [u8],
    /// Of its resource's scope attributes those of its scope.
    pub(crate) scope: Span,
    /// Of the profile as a whole.
    pub(crate) attributes: Indices<'a>,
    pub(crate) sample_type: Option<ValueType>,
    pub(crate) period_type: Option<ValueType>,
    pub(crate) period: i64,
    pub(crate) time_unix_nano: u64,
    pub(crate) duration_nano: u64,
    /// How many there are.
    pub(crate) samples: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sample<'a> {
    pub(crate) stack: i32,
    pub(crate) attributes: Indices<'a>,
    pub(crate) values: Vec<i64>,
    pub(crate) times: Vec<u64>,
}

impl<'a> Resource<'a> {
    /// The attributes of a profile's scope.
    pub(crate) fn attributes_of(&self, profile: &Profile<'a>) -> &[KeyValue<'a>] {
        &self.scope_attributes[profile.scope.start as usize..profile.scope.end as usize]
    }
}

impl Resource<'_> {
    /// Its node where it says it in so many words: for messages about what cannot be read as a whole.
    pub(crate) fn node<'t>(&'t self, tables: &'t Tables<'_>) -> &'t str {
        let string = |index: i32| tables.strings.get(usize::try_from(index).ok()?).copied();
        let key = |attribute: &'t KeyValue<'_>| match attribute.key {
            [] => string(attribute.key_strindex),
            key => Some(key),
        };
        let mut attributes = self.attributes.iter();
        match attributes.find(|attribute| key(attribute) == Some(b"host.name")) {
            Some(KeyValue {
                value: Value::Text(node),
                ..
            }) => node,
            // As a Collector sends it.
            Some(KeyValue {
                value: Value::TextIndex(index),
                ..
            }) => string(*index).and_then(|node| text(node).ok()).unwrap_or_default(),
            _ => "",
        }
    }
}

impl Request<'_> {
    /// The first node that it names.
    pub(crate) fn node(&self) -> &str {
        let mut nodes = self.resources.iter().map(|resource| resource.node(&self.tables));
        nodes.find(|node| !node.is_empty()).unwrap_or("")
    }
}

/// Indices of a repeated field, of which it is checked that they can be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Indices<'a> {
    /// As they stand in the body: what is the same here is the same.
    packed: &'a [u8],
    /// What follows, where they don't stand there in one piece.
    more: Vec<i32>,
}

impl<'a> Indices<'a> {
    fn clear(&mut self) {
        self.packed = &[];
        self.more.clear();
    }

    #[inline]
    fn add(&mut self, field: Field<'a>, room: &mut Room) -> Result<(), Fault> {
        match field {
            Field::Bytes(packed) if self.packed.is_empty() && self.more.is_empty() => {
                field.check_ints()?;
                self.packed = packed;
                Ok(())
            }
            _ => room.push_ints(&mut self.more, field),
        }
    }

    /// All of them as they stand in the body, where they stand there in one piece.
    pub(crate) fn in_one_piece(&self) -> Option<&'a [u8]> {
        self.more.is_empty().then_some(self.packed)
    }

    /// There are no more of them.
    pub(crate) fn most(&self) -> usize {
        self.packed.len() + self.more.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = i32> {
        let mut packed = self.packed;
        let first = std::iter::from_fn(move || {
            let next = (!packed.is_empty()).then(|| varint(&mut packed).ok());
            next.flatten().map(|index| index as i32)
        });
        first.chain(self.more.iter().copied())
    }
}

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

/// A stack's message, of which [`read`] has checked that it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stack<'a>(&'a [u8]);

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

/// A message's most bytes, as protobuf says: what it has of anything can be counted in 32 bits.
const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;

/// Reads a request, with vectors of at most `limit` bytes.
pub fn read(wire: &[u8], limit: usize) -> Result<Request<'_>, IngestError> {
    if wire.len() > MAX_MESSAGE_BYTES {
        return Err(IngestError::TooLarge {
            what: "the request",
            limit_bytes: MAX_MESSAGE_BYTES,
        });
    }
    let mut room = Room::new(limit);
    let mut tables = Tables::default();
    let mut resources = Vec::new();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => {
                let resource = resource(field.message()?, &mut room)?;
                room.push(&mut resources, resource)?;
            }
            2 => tables.read(field.message()?, &mut room)?,
            _ => {}
        }
    }
    Ok(Request {
        resources,
        tables,
        room,
    })
}

/// A dictionary mostly has as many names, functions and locations each as it has this many bytes, or fewer.
const BYTES_OF_ENTRY: usize = 96;

fn resource<'a>(wire: &'a [u8], room: &mut Room) -> Result<Resource<'a>, Fault> {
    let mut resource = Resource::default();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => {
                let mut fields = Fields { wire: field.message()? };
                while let Some((number, field)) = fields.next()? {
                    if number == 1 {
                        let attribute = resource_attribute(field.message()?)?;
                        room.push(&mut resource.attributes, attribute)?;
                    }
                }
            }
            2 => {
                let first = resource.scope_attributes.len() as u32;
                let from = resource.profiles.len();
                let mut fields = Fields { wire: field.message()? };
                while let Some((number, field)) = fields.next()? {
                    match number {
                        1 => scope(field.message()?, &mut resource.scope_attributes, room)?,
                        2 => {
                            let profile = profile(field.message()?, room)?;
                            room.push(&mut resource.profiles, profile)?;
                        }
                        _ => {}
                    }
                }
                let of_scope = first..resource.scope_attributes.len() as u32;
                let profiles = &mut resource.profiles[from..];
                profiles.iter_mut().for_each(|profile| profile.scope = of_scope.clone());
            }
            _ => {}
        }
    }
    Ok(resource)
}

fn scope<'a>(wire: &'a [u8], attributes: &mut Vec<KeyValue<'a>>, room: &mut Room) -> Result<(), Fault> {
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        if number == 3 {
            let attribute = resource_attribute(field.message()?)?;
            room.push(attributes, attribute)?;
        }
    }
    Ok(())
}

fn resource_attribute(wire: &[u8]) -> Result<KeyValue<'_>, Fault> {
    let mut attribute = KeyValue::default();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => attribute.key = field.message()?,
            2 => attribute.value = value(field.message()?, attribute.value)?,
            3 => attribute.key_strindex = field.int()? as i32,
            _ => {}
        }
    }
    Ok(attribute)
}

fn table_attribute(wire: &[u8]) -> Result<KeyValue<'_>, Fault> {
    let mut attribute = KeyValue::default();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            // A key as text.
            (1, Field::Bytes(_)) => return Err(OLDER),
            (1, field) => attribute.key_strindex = field.int()? as i32,
            (2, field) => attribute.value = value(field.message()?, attribute.value)?,
            _ => {}
        }
    }
    Ok(attribute)
}

fn value<'a>(wire: &'a [u8], before: Value<'a>) -> Result<Value<'a>, Fault> {
    let mut value = before;
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        value = match number {
            // The last counts.
            1 => text(field.message()?).map_or(Value::NotText, Value::Text),
            2 => Value::Bool(field.int()? != 0),
            3 => Value::Int(field.int()? as i64),
            4 => Value::Real(f64::from_bits(field.fixed()?)),
            5 => match (value, first_text(field.message()?)?) {
                // The second part of a list that comes in two.
                (Value::List(first), _) if !first.is_empty() => value,
                (_, first) => Value::List(first),
            },
            // A list of pairs, or bytes.
            6 | 7 => field.message().map(|_| Value::Other)?,
            8 => Value::TextIndex(field.int()? as i32),
            _ => continue,
        };
    }
    Ok(value)
}

/// Of a list its first text that is not empty.
fn first_text(wire: &[u8]) -> Result<&str, Fault> {
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        let (mut of_value, mut found) = (Fields { wire: &[] }, "");
        if number == 1 {
            of_value.wire = field.message()?;
        }
        while let Some((number, field)) = of_value.next()? {
            found = match number {
                // The last counts.
                1 => text(field.message()?).unwrap_or(""),
                2..=8 => "",
                _ => found,
            };
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok("")
}

fn value_type(wire: &[u8], before: Option<ValueType>) -> Result<Option<ValueType>, Fault> {
    let mut kind = before.unwrap_or_default();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => kind.kind = field.int()? as i32,
            2 => kind.unit = field.int()? as i32,
            _ => {}
        }
    }
    Ok(Some(kind))
}

/// Fields of other types than here are those of other versions: locations at 3, times at 4 and 5, the period and its
/// type at 7 and 6.
fn profile<'a>(wire: &'a [u8], room: &mut Room) -> Result<Profile<'a>, Fault> {
    let mut profile = Profile {
        wire,
        ..Profile::default()
    };
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (1, field) => profile.sample_type = value_type(field.message()?, profile.sample_type)?,
            (2, _) => profile.samples += 1,
            (3, Field::Fixed64(time)) => profile.time_unix_nano = time,
            (4, Field::Varint(duration)) => profile.duration_nano = duration,
            (5, Field::Bytes(kind)) => profile.period_type = value_type(kind, profile.period_type)?,
            (6, Field::Varint(period)) => profile.period = period as i64,
            (3, Field::Varint(_) | Field::Bytes(_)) | (5 | 7, Field::Varint(_)) | (6, Field::Bytes(_)) => {
                return Err(OLDER);
            }
            (3 | 5 | 6, _) => return Err(Fault::Broken("a profile's field has a type that it has nowhere")),
            // 12 in 1.8.
            (11 | 12, field @ (Field::Bytes(_) | Field::Varint(_))) => {
                // In 1.8 what was sent before is at 11, which is no list of indices.
                let known = profile.attributes.clone();
                if profile.attributes.add(field, room).is_err() {
                    profile.attributes = known;
                }
            }
            _ => {}
        }
    }
    Ok(profile)
}

impl<'a> Profile<'a> {
    /// Calls back for each sample; `room` is what one sample may take.
    pub(crate) fn each_sample(
        &self,
        layout: Layout,
        room: Room,
        mut each: impl FnMut(&Sample<'a>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut sample = Sample::default();
        let mut fields = Fields { wire: self.wire };
        while let Some((number, field)) = fields.next()? {
            if number == 2 {
                let wire = field.message()?;
                match layout {
                    Layout::Newer => sample.read(wire, room)?,
                    Layout::Older => sample.read_older(wire, room)?,
                }
                each(&sample)?;
            }
        }
        Ok(())
    }
}

impl<'a> Sample<'a> {
    fn clear(&mut self) {
        self.stack = 0;
        self.attributes.clear();
        self.values.clear();
        self.times.clear();
    }

    /// Of 1.10 and later.
    fn read(&mut self, wire: &'a [u8], mut room: Room) -> Result<(), Fault> {
        self.clear();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => self.stack = field.int()? as i32,
                2 => self.attributes.add(field, &mut room)?,
                // The link's index is a number; before 1.10 attributes stood here.
                3 if matches!(field, Field::Bytes(_)) => return Err(MIXED),
                4 => field.ints(|int| room.push(&mut self.values, int as i64))?,
                5 => field.fixed_numbers(|time| room.push(&mut self.times, time))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Of 1.8 and 1.9.
    fn read_older(&mut self, wire: &'a [u8], mut room: Room) -> Result<(), Fault> {
        self.clear();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => self.stack = field.int()? as i32,
                2 => field.ints(|int| room.push(&mut self.values, int as i64))?,
                3 => self.attributes.add(field, &mut room)?,
                4 if matches!(field, Field::Bytes(_)) => return Err(MIXED),
                5 => field.fixed_numbers(|time| room.push(&mut self.times, time))?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Samples of one request that only two layouts explain.
const MIXED: Fault = Fault::Layout("its samples are of 1.8 or 1.9 in part and of 1.10 or later in part");

impl<'a> Tables<'a> {
    fn read(&mut self, wire: &'a [u8], room: &mut Room) -> Result<(), Fault> {
        self.reserve(wire, room)?;
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => self.read_mapping(field.message()?, room)?,
                2 => self.read_location(field.message()?, room)?,
                3 => room.push(&mut self.functions, function(field.message()?)?)?,
                5 => room.push(&mut self.strings, field.message()?)?,
                6 => room.push(&mut self.attributes, table_attribute(field.message()?)?)?,
                7 => self.read_stack(field.message()?, room)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Room for as many entries as dictionaries of such a length mostly have; where there are more, tables grow.
    fn reserve(&mut self, wire: &[u8], room: &mut Room) -> Result<(), Fault> {
        let entries = wire.len() / BYTES_OF_ENTRY;
        room.reserve(&mut self.locations, entries)?;
        // A location mostly has one line and one attribute, which is its frame's type.
        room.reserve(&mut self.lines, entries)?;
        room.reserve(&mut self.indices, entries)?;
        room.reserve(&mut self.functions, entries)?;
        room.reserve(&mut self.strings, entries)?;
        room.reserve(&mut self.stacks, entries / 2)
    }

    fn read_mapping(&mut self, wire: &[u8], room: &mut Room) -> Result<(), Fault> {
        let mut mapping = Mapping::default();
        let begin = self.indices.len();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                4 => mapping.file = field.int()? as i32,
                5 => room.push_ints(&mut self.indices, field)?,
                _ => {}
            }
        }
        mapping.attributes = begin as u32..self.indices.len() as u32;
        room.push(&mut self.mappings, mapping)
    }

    fn read_location(&mut self, wire: &[u8], room: &mut Room) -> Result<(), Fault> {
        let mut location = Location::default();
        let (first_line, first_index) = (self.lines.len(), self.indices.len());
        // As most stand there: a mapping, a line, and an attribute, which is the frame's type. What a look at each
        // field would say, in less time.
        if let [0x08, mapping, 0x1a, length, of_line @ .., 0x22, 1, attribute] = wire
            && (*mapping | *length | *attribute) < 0x80
            && of_line.len() == usize::from(*length)
        {
            room.push(&mut self.lines, line(of_line)?)?;
            room.push(&mut self.indices, i32::from(*attribute))?;
            location.mapping = i32::from(*mapping);
            location.lines = first_line as u32..first_line as u32 + 1;
            location.attributes = first_index as u32..first_index as u32 + 1;
            return room.push(&mut self.locations, location);
        }
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => location.mapping = field.int()? as i32,
                2 => location.address = field.int()?,
                3 => room.push(&mut self.lines, line(field.message()?)?)?,
                4 => room.push_ints(&mut self.indices, field)?,
                5 => return Err(OLDER),
                _ => {}
            }
        }
        location.lines = first_line as u32..self.lines.len() as u32;
        location.attributes = first_index as u32..self.indices.len() as u32;
        room.push(&mut self.locations, location)
    }

    fn read_stack(&mut self, wire: &'a [u8], room: &mut Room) -> Result<(), Fault> {
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => field.check_ints()?,
                // A unit of an attribute's key, which had this number.
                2 => return Err(OLDER),
                _ => {}
            }
        }
        room.push(&mut self.stacks, Stack(wire))
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

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;

/// Versions whose samples have the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Layout {
    /// 1.8 and 1.9.
    Older,
    /// 1.10 and later.
    #[default]
    Newer,
}
