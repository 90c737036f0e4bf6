//! Files that are about to be given up, and what is still to be named in them.

use std::sync::Arc;

use crate::agent::locate::LocatedStack;
use crate::frames::{CodeLocation, SourceId};
use crate::hash::FastMap;
use crate::process::{Leaving, Source};
use crate::symbolize::DegradationLevel;

/// Files that no process maps any more, and the locations in them whose names are still needed.
#[derive(Debug, Default)]
pub(in crate::agent) struct Ahead {
    pub(in crate::agent) locations: Vec<CodeLocation>,
    pub(in crate::agent) sources: FastMap<SourceId, Source>,
    pub(in crate::agent) leaving: Vec<Leaving>,
    pub(in crate::agent) degradation: DegradationLevel,
}

impl Ahead {
    /// Adds the locations that stacks have in these files.
    pub(in crate::agent) fn add<'s>(
        &mut self,
        stacks: impl IntoIterator<Item = &'s Arc<LocatedStack>>,
        leaving: &[Leaving],
    ) {
        for stack in stacks {
            for (id, source) in stack.sources.iter().filter(|(_, source)| is_of(leaving, source)) {
                self.sources.entry(*id).or_insert_with(|| source.clone());
                let locations = stack.user.iter().filter(|location| location.source == *id);
                self.locations.extend(locations);
            }
        }
    }

    /// Each location once.
    pub(in crate::agent) fn order(&mut self) {
        self.locations
            .sort_unstable_by_key(|location| (location.source, location.offset));
        self.locations.dedup();
    }
}

/// Whether code comes from one of these files, or is named by it.
pub(in crate::agent) fn is_of(leaving: &[Leaving], source: &Source) -> bool {
    let id = source.held_id();
    leaving.iter().any(|leaving| Some(leaving.id) == id)
}
