//! Which version of the protocol a request is of.
//!
//! All versions have one path and one package. Until 1.7 tables and profiles have other fields, which the decoder
//! refuses where it meets them. In 1.8 and 1.9 a sample's fields are stack, values, attributes, link and times; since
//! 1.10 they are stack, attributes, link, values and times. A wrong guess reads indices as values, so a request is
//! told by what all its samples have, and refused where that says too little. Never decodes more than it has to: of
//! most requests the first sample is enough.

use crate::ingest::error::IngestError;
use crate::ingest::wire::message::{Layout, Request};
use crate::ingest::wire::protobuf::{Fault, Field, Fields};
use crate::ingest::wire::tables::Tables;
use std::collections::HashSet;

/// Attributes of mappings and locations: no sample has them.
const OF_FRAMES: &[&[u8]] = &[
    b"profile.frame.type",
    b"process.executable.build_id.gnu",
    b"process.executable.build_id.go",
    b"process.executable.build_id.htlhash",
];

/// What samples say that neither layout alone explains.
#[derive(Debug, Default)]
struct Hints {
    /// One has neither values nor times, as 1.10 has it, or an index that is none.
    older: bool,
    /// One has a link, as 1.10 has it.
    newer: bool,
    /// What is attributes in one layout and values in the other, where both make sense.
    indices: HashSet<i32>,
}

impl Request<'_> {
    /// The layout of its samples.
    pub(crate) fn layout(&self) -> Result<Layout, IngestError> {
        let mut hints = Hints::default();
        for profile in self.resources.iter().flat_map(|resource| &resource.profiles) {
            let mut fields = Fields { wire: profile.wire };
            while let Some((number, field)) = fields.next()? {
                if number == 2
                    && let Some(layout) = hints.look_at(field.message()?, &self.tables)?
                {
                    return Ok(layout);
                }
            }
        }
        match (hints.older, hints.newer || !hints.indices.is_empty()) {
            (true, true) => Err(unclear()),
            (true, false) => Ok(Layout::Older),
            (false, _) if hints.indices.is_empty() => Ok(Layout::Newer),
            (false, _) => self.by_references(&hints.indices),
        }
    }

    /// A table has an attribute because something names it: one that neither frames nor profiles do is a sample's.
    fn by_references(&self, indices: &HashSet<i32>) -> Result<Layout, IngestError> {
        let profiles = self.resources.iter().flat_map(|resource| &resource.profiles);
        let of_profiles = profiles.flat_map(|profile| profile.attributes.iter());
        let others: HashSet<i32> = self.tables.indices.iter().copied().chain(of_profiles).collect();
        if !indices.is_subset(&others) {
            return Ok(Layout::Newer);
        }
        let key = |index: &i32| {
            let attribute = self.tables.attributes.get(usize::try_from(*index).ok()?)?;
            let key = usize::try_from(attribute.key_strindex).ok()?;
            self.tables.strings.get(key).copied()
        };
        if indices
            .iter()
            .any(|index| key(index).is_some_and(|key| OF_FRAMES.contains(&key)))
        {
            return Ok(Layout::Older);
        }
        Err(unclear())
    }
}

fn unclear() -> IngestError {
    Fault::Layout("its samples can be those of 1.8 and 1.9 as well as those of 1.10 and later").into()
}

impl Hints {
    /// The layout, where this sample leaves no doubt.
    fn look_at(&mut self, wire: &[u8], tables: &Tables<'_>) -> Result<Option<Layout>, Fault> {
        let (mut second, mut times, mut has_link) = (0, 0, false);
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            match (number, field) {
                (2, field) => field.ints(|_| {
                    second += 1;
                    Ok(())
                })?,
                (3, Field::Bytes(attributes)) if !attributes.is_empty() => return Ok(Some(Layout::Older)),
                (4, Field::Bytes(values)) if !values.is_empty() => return Ok(Some(Layout::Newer)),
                (3, Field::Varint(link)) => has_link = link != 0,
                (5, field) => field.fixed_numbers(|_| {
                    times += 1;
                    Ok(())
                })?,
                _ => {}
            }
        }
        match (second, times) {
            // Stack and times are the same in both.
            (0, _) => {}
            (_, 0) => self.older = true,
            // There are as many values as times.
            (second, times) if second != times => return Ok(Some(Layout::Newer)),
            _ => self.add_indices(wire, tables)?,
        }
        self.newer |= has_link;
        Ok(None)
    }

    fn add_indices(&mut self, wire: &[u8], tables: &Tables<'_>) -> Result<(), Fault> {
        let mut fields = Fields { wire };
        while let Some((number, field)) = fields.next()? {
            if number != 2 {
                continue;
            }
            field.ints(|int| {
                match usize::try_from(int) {
                    Ok(index) if index < tables.attributes.len() => drop(self.indices.insert(index as i32)),
                    _ => self.older = true,
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
