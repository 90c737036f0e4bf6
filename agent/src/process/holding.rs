//! Which files are held open, and since when no process that lives needs them.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use super::reading::Held;
use crate::frames::SourceId;

/// How long after the last process that maps it a file is still held: its samples are in the ring, and their stacks
/// wait for tables.
const LEAVE_AFTER_NS: u64 = 3_000_000_000;
/// Stacks that wait for a table keep the files of their program for so long: which places of them they have is not
/// known before.
const WAITED_FOR_NS: u64 = 6_000_000_000;
/// When it is given up whatever its samples still lack.
const LEAVE_AT_LAST_NS: u64 = 8_000_000_000;

/// A file that no process maps any more, to be given up once the names that are needed were read.
#[derive(Debug, Clone)]
pub struct Leaving {
    /// The source that the file is.
    pub id: SourceId,
    held: Arc<Held>,
}

impl Leaving {
    /// Gives it up, unless somebody maps it again.
    pub fn give_up(&self) {
        self.held.leave_now();
    }
}

#[derive(Debug)]
struct Watched {
    id: SourceId,
    held: Weak<Held>,
    /// Since when nobody maps it.
    unmapped_ns: Option<u64>,
    /// Somebody was told to give it up.
    told: bool,
}

/// All files that are held.
#[derive(Debug, Default)]
pub(super) struct Holding {
    watched: Vec<Watched>,
    /// Files that were given up before their names were read.
    given_up_unread: u64,
}

impl Holding {
    /// From now on it is watched, also where it was before.
    pub(super) fn watch(&mut self, id: SourceId, held: &Arc<Held>) {
        if let Some(known) = self.watched.iter_mut().find(|known| known.id == id) {
            (known.unmapped_ns, known.told) = (None, false);
            return;
        }
        self.watched.push(Watched {
            id,
            held: Arc::downgrade(held),
            unmapped_ns: None,
            told: false,
        });
    }

    /// Takes what living processes map. True while there is something to wait for.
    pub(super) fn look(&mut self, mapped: &HashSet<SourceId>, now_ns: u64) -> bool {
        let mut waits = false;
        self.watched.retain_mut(|watched| {
            let Some(held) = watched.held.upgrade() else {
                return false;
            };
            if mapped.contains(&watched.id) || !held.is_open() {
                (watched.unmapped_ns, watched.told) = (None, false);
                return true;
            }
            let since_ns = *watched.unmapped_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(since_ns) >= LEAVE_AT_LAST_NS {
                held.leave();
                held.leave_now();
                self.given_up_unread += 1;
            }
            waits |= held.is_open();
            true
        });
        waits
    }

    /// Files that are to be given up; each is told once. `waited_for` gives those that stacks wait for, and is called
    /// only where some are due.
    pub(super) fn take_leaving(&mut self, now_ns: u64, waited_for: impl FnOnce() -> HashSet<SourceId>) -> Vec<Leaving> {
        let unmapped_for = |watched: &Watched| now_ns.saturating_sub(watched.unmapped_ns.unwrap_or(now_ns));
        let is_due = |watched: &Watched| !watched.told && unmapped_for(watched) >= LEAVE_AFTER_NS;
        if !self.watched.iter().any(is_due) {
            return Vec::new();
        }
        let waited_for = waited_for();
        let due = |watched: &&mut Watched| {
            is_due(watched) && (unmapped_for(watched) >= WAITED_FOR_NS || !waited_for.contains(&watched.id))
        };
        let tell = |watched: &mut Watched| {
            let held = watched.held.upgrade().filter(|held| held.is_open())?;
            watched.told = true;
            held.leave();
            Some(Leaving { id: watched.id, held })
        };
        self.watched.iter_mut().filter(due).filter_map(tell).collect()
    }

    pub(super) fn given_up_unread(&self) -> u64 {
        self.given_up_unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::reading::open_regular;

    const SECOND: u64 = 1_000_000_000;

    fn open_file() -> Arc<Held> {
        let path = std::env::current_exe().unwrap();
        Arc::new(Held::new(open_regular(path.to_str().unwrap()), Arc::default()))
    }

    #[test]
    fn a_file_leaves_some_seconds_after_its_last_process() {
        let (mut holding, held, id) = (Holding::default(), open_file(), SourceId::numbered(1));
        holding.watch(id, &held);
        let mapped = HashSet::from([id]);
        assert!(!holding.look(&mapped, 100 * SECOND));
        assert!(holding.look(&HashSet::new(), 101 * SECOND));
        assert!(
            holding.take_leaving(103 * SECOND, HashSet::new).is_empty(),
            "its samples may be on their way"
        );
        let leaving = holding.take_leaving(104 * SECOND, HashSet::new);
        assert_eq!(leaving.len(), 1);
        assert!(holding.take_leaving(104 * SECOND, HashSet::new).is_empty(), "told once");
        assert!(held.is_open());
        leaving[0].give_up();
        assert!(held.was_given_up() && !holding.look(&HashSet::new(), 105 * SECOND));
        assert_eq!(holding.given_up_unread(), 0);
    }

    #[test]
    fn stacks_that_wait_for_its_table_keep_a_file_a_little_longer() {
        let (mut holding, held, id) = (Holding::default(), open_file(), SourceId::numbered(1));
        holding.watch(id, &held);
        holding.look(&HashSet::new(), 100 * SECOND);
        let leaving = |holding: &mut Holding, second, waited_for: &[SourceId]| {
            let waited_for = waited_for.iter().copied().collect();
            holding.take_leaving(second * SECOND, || waited_for).len()
        };
        assert_eq!(leaving(&mut holding, 104, &[id]), 0);
        assert_eq!(
            leaving(&mut holding, 104, &[SourceId::numbered(2)]),
            1,
            "of another file"
        );
        holding.look(&HashSet::from([id]), 105 * SECOND);
        holding.look(&HashSet::new(), 110 * SECOND);
        assert_eq!(leaving(&mut holding, 115, &[id]), 0);
        assert_eq!(leaving(&mut holding, 116, &[id]), 1, "its names have two seconds left");
    }

    #[test]
    fn who_comes_back_keeps_it_and_nobody_waits_for_ever() {
        let (mut holding, held, id) = (Holding::default(), open_file(), SourceId::numbered(1));
        holding.watch(id, &held);
        holding.look(&HashSet::new(), 100 * SECOND);
        let leaving = holding.take_leaving(103 * SECOND, HashSet::new);
        held.stay();
        holding.look(&HashSet::from([id]), 104 * SECOND);
        leaving[0].give_up();
        assert!(held.is_open(), "mapped again meanwhile");
        holding.look(&HashSet::new(), 110 * SECOND);
        holding.look(&HashSet::new(), 118 * SECOND);
        assert!(!held.is_open() && holding.given_up_unread() == 1, "naming was too slow");
        drop((held, leaving));
        assert!(!holding.look(&HashSet::new(), 119 * SECOND) && holding.watched.is_empty());
    }
}
