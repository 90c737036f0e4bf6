//! The thread that has names read before their files are given up. The naming thread may be busy with a large file for longer than these can wait.

use std::sync::mpsc::{Receiver, SyncSender};

use super::naming::Work;
use crate::maps::FastMap;
use crate::process::{Leaving, Place, Source, SourceId};
use crate::symbolize::{Frugality, Namer};

/// Files that no process maps any more, and the places in them whose names are still needed.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub(super) places: Vec<Place>,
    pub(super) sources: FastMap<SourceId, Source>,
    pub(super) leaving: Vec<Leaving>,
    pub(super) frugality: Frugality,
}

/// Names and gives up, until the sender is gone. `naming` is the way to the naming thread.
pub(super) fn run(mut namer: Namer, work: &Receiver<Ahead>, naming: &SyncSender<Work>) {
    for ahead in work {
        namer.set_frugality(ahead.frugality);
        namer.name_ahead(&ahead.places, &ahead.sources, crate::kernel::monotonic_ns());
        ahead.leaving.iter().for_each(Leaving::give_up);
        namer.forget_files();
        // Where there is no room, it has work, and closes them when it begins with the next file.
        let _ = naming.try_send(Work::GivenUp);
    }
}
