//! A request as it stands in its body: text is borrowed, tables are a few vectors, samples are read one after another.
//!
//! A request holds thousands of small messages (locations, lines, functions, stacks); a decoder that makes an object
//! of each spends more time on memory than on samples. What the vectors take is counted before they grow, so that a
//! small body cannot ask for much. Field numbers and types are those of opentelemetry-proto,
//! `profiles/v1development/profiles.proto`, from 1.8 on (see [`Layout`]); fields that are not used here are skipped.
//! A field that comes again adds to a table and overrides a number, as protobuf says.

use crate::ingest::error::IngestError;
use crate::ingest::wire::allocation::AllocationBudget;
use crate::ingest::wire::attribute::{KeyValue, Value, resource_attribute};
use crate::ingest::wire::protobuf::{Fault, Field, Fields, OLDER, text, varint};
use crate::ingest::wire::tables::{Span, Tables};

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) resources: Vec<Resource<'a>>,
    pub(crate) tables: Tables<'a>,
    /// What is left for samples, and for what is made of all.
    pub(crate) budget: AllocationBudget,
}

/// Versions whose samples have the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Layout {
    /// 1.8 and 1.9.
    Older,
    /// 1.10 and later.
    #[default]
    Newer,
}

/// Profiles of one origin.
#[derive(Debug, Default)]
pub(crate) struct Resource<'a> {
    pub(crate) attributes: Vec<KeyValue<'a>>,
    /// Those of scopes, one after another.
    pub(crate) scope_attributes: Vec<KeyValue<'a>>,
    pub(crate) profiles: Vec<Profile<'a>>,
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
    fn add(&mut self, field: Field<'a>, budget: &mut AllocationBudget) -> Result<(), Fault> {
        match field {
            Field::Bytes(packed) if self.packed.is_empty() && self.more.is_empty() => {
                field.check_ints()?;
                self.packed = packed;
                Ok(())
            }
            _ => budget.push_ints(&mut self.more, field),
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
    let mut budget = AllocationBudget::new(limit);
    let mut tables = Tables::default();
    let mut resources = Vec::new();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => {
                let resource = resource(field.message()?, &mut budget)?;
                budget.push(&mut resources, resource)?;
            }
            2 => tables.read(field.message()?, &mut budget)?,
            _ => {}
        }
    }
    Ok(Request {
        resources,
        tables,
        budget,
    })
}

fn resource<'a>(wire: &'a [u8], budget: &mut AllocationBudget) -> Result<Resource<'a>, Fault> {
    let mut resource = Resource::default();
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => {
                let mut fields = Fields { wire: field.message()? };
                while let Some((number, field)) = fields.next()? {
                    if number == 1 {
                        let attribute = resource_attribute(field.message()?)?;
                        budget.push(&mut resource.attributes, attribute)?;
                    }
                }
            }
            2 => {
                let first = resource.scope_attributes.len() as u32;
                let from = resource.profiles.len();
                let mut fields = Fields { wire: field.message()? };
                while let Some((number, field)) = fields.next()? {
                    match number {
                        1 => scope(field.message()?, &mut resource.scope_attributes, budget)?,
                        2 => {
                            let profile = profile(field.message()?, budget)?;
                            budget.push(&mut resource.profiles, profile)?;
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

fn scope<'a>(wire: &'a [u8], attributes: &mut Vec<KeyValue<'a>>, budget: &mut AllocationBudget) -> Result<(), Fault> {
    let mut fields = Fields { wire };
    while let Some((number, field)) = fields.next()? {
        if number == 3 {
            let attribute = resource_attribute(field.message()?)?;
            budget.push(attributes, attribute)?;
        }
    }
    Ok(())
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
fn profile<'a>(wire: &'a [u8], budget: &mut AllocationBudget) -> Result<Profile<'a>, Fault> {
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
                if profile.attributes.add(field, budget).is_err() {
                    profile.attributes = known;
                }
            }
            _ => {}
        }
    }
    Ok(profile)
}

impl<'a> Profile<'a> {
    /// Calls back for each sample; `budget` is what one sample may take.
    pub(crate) fn each_sample(
        &self,
        layout: Layout,
        budget: AllocationBudget,
        mut each: impl FnMut(&Sample<'a>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut sample = Sample::default();
        let mut fields = Fields { wire: self.wire };
        while let Some((number, field)) = fields.next()? {
            if number == 2 {
                let wire = field.message()?;
                match layout {
                    Layout::Newer => sample.read(wire, budget)?,
                    Layout::Older => sample.read_older(wire, budget)?,
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
    fn read(&mut self, wire: &'a [u8], mut budget: AllocationBudget) -> Result<(), Fault> {
        self.clear();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => self.stack = field.int()? as i32,
                2 => self.attributes.add(field, &mut budget)?,
                // The link's index is a number; before 1.10 attributes stood here.
                3 if matches!(field, Field::Bytes(_)) => return Err(MIXED),
                4 => field.ints(|int| budget.push(&mut self.values, int as i64))?,
                5 => field.fixed_numbers(|time| budget.push(&mut self.times, time))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Of 1.8 and 1.9.
    fn read_older(&mut self, wire: &'a [u8], mut budget: AllocationBudget) -> Result<(), Fault> {
        self.clear();
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => self.stack = field.int()? as i32,
                2 => field.ints(|int| budget.push(&mut self.values, int as i64))?,
                3 => self.attributes.add(field, &mut budget)?,
                4 if matches!(field, Field::Bytes(_)) => return Err(MIXED),
                5 => field.fixed_numbers(|time| budget.push(&mut self.times, time))?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Samples of one request that only two layouts explain.
const MIXED: Fault = Fault::Layout("its samples are of 1.8 or 1.9 in part and of 1.10 or later in part");

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
