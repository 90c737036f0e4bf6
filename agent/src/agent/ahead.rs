//! The thread that has names read before their files are given up. The naming thread may be busy with a large file for longer than these can wait.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use super::locate::LocatedStack;
use super::naming::Work;
use crate::frames::{CodeLocation, SourceId};
use crate::hash::FastMap;
use crate::process::{Leaving, Source};
use crate::symbolize::{Frugality, Namer};

/// Files that no process maps any more, and the places in them whose names are still needed.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub(super) places: Vec<CodeLocation>,
    pub(super) sources: FastMap<SourceId, Source>,
    pub(super) leaving: Vec<Leaving>,
    pub(super) frugality: Frugality,
}

impl Ahead {
    /// Adds the places that stacks have in these files.
    pub(super) fn add<'s>(&mut self, stacks: impl IntoIterator<Item = &'s Arc<LocatedStack>>, leaving: &[Leaving]) {
        for stack in stacks {
            for (id, source) in stack.sources.iter().filter(|(_, source)| is_of(leaving, source)) {
                self.sources.entry(*id).or_insert_with(|| source.clone());
                let places = stack.user.iter().filter(|place| place.source == *id);
                self.places.extend(places);
            }
        }
    }

    /// Each place once.
    pub(super) fn order(&mut self) {
        self.places.sort_unstable_by_key(|place| (place.source, place.offset));
        self.places.dedup();
    }
}

/// Whether code comes from one of these files, or is named by it.
pub(super) fn is_of(leaving: &[Leaving], source: &Source) -> bool {
    let id = source.held_id();
    leaving.iter().any(|leaving| Some(leaving.id) == id)
}

/// Names and gives up, until the sender is gone. `naming` is the way to the naming thread.
pub(super) fn run(mut namer: Namer, work: &Receiver<Ahead>, naming: &SyncSender<Work>) {
    for ahead in work {
        namer.set_frugality(ahead.frugality);
        namer.name_ahead(&ahead.places, &ahead.sources, crate::sys::monotonic_ns());
        ahead.leaving.iter().for_each(Leaving::give_up);
        namer.forget_files();
        // Where there is no room, it has work, and closes them when it begins with the next file.
        let _ = naming.try_send(Work::GivenUp);
    }
}
