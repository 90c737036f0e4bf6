//! The thread that has names read before their files are given up. The naming thread may be busy with a large file for
//! longer than these can wait.

use std::sync::mpsc::{Receiver, SyncSender};

use super::ahead::Ahead;
use super::work::Work;
use crate::process::Leaving;
use crate::symbolize::Namer;

/// Names and gives up, until the sender is gone. `naming` is the way to the naming thread.
pub(in crate::agent) fn name_ahead(mut namer: Namer, work: &Receiver<Ahead>, naming: &SyncSender<Work>) {
    for ahead in work {
        namer.set_degradation(ahead.degradation);
        namer.name_ahead(&ahead.locations, &ahead.sources, crate::sys::monotonic_ns());
        ahead.leaving.iter().for_each(Leaving::give_up);
        namer.forget_files();
        // Where there is no room, it has work, and closes them when it begins with the next file.
        let _ = naming.try_send(Work::GivenUp);
    }
}
