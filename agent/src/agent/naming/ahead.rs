//! Files that are about to be given up, and what is still to be named in them.

use std::sync::Arc;

use crate::agent::locate::LocatedStack;
use crate::frames::{CodeLocation, SourceId};
use crate::hash::FastMap;
use crate::process::{Leaving, Source};
use crate::symbolize::Frugality;

/// Files that no process maps any more, and the places in them whose names are still needed.
#[derive(Debug, Default)]
pub(in crate::agent) struct Ahead {
    pub(in crate::agent) places: Vec<CodeLocation>,
    pub(in crate::agent) sources: FastMap<SourceId, Source>,
    pub(in crate::agent) leaving: Vec<Leaving>,
    pub(in crate::agent) frugality: Frugality,
}

impl Ahead {
    /// Adds the places that stacks have in these files.
    pub(in crate::agent) fn add<'s>(
        &mut self,
        stacks: impl IntoIterator<Item = &'s Arc<LocatedStack>>,
        leaving: &[Leaving],
    ) {
        for stack in stacks {
            for (id, source) in stack.sources.iter().filter(|(_, source)| is_of(leaving, source)) {
                self.sources.entry(*id).or_insert_with(|| source.clone());
                let places = stack.user.iter().filter(|place| place.source == *id);
                self.places.extend(places);
            }
        }
    }

    /// Each place once.
    pub(in crate::agent) fn order(&mut self) {
        self.places.sort_unstable_by_key(|place| (place.source, place.offset));
        self.places.dedup();
    }
}

/// Whether code comes from one of these files, or is named by it.
pub(in crate::agent) fn is_of(leaving: &[Leaving], source: &Source) -> bool {
    let id = source.held_id();
    leaving.iter().any(|leaving| Some(leaving.id) == id)
}
