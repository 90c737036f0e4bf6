//! Ranges of addresses and where in the file the line of each stands.

use std::collections::BTreeMap;

/// What one range takes.
pub(in crate::symbolize) const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;
/// New ranges are put among the others once there are so many, and a quarter of them.
const LEAST_RECENT: usize = 1024;
const RECENT_PART: usize = 4;

/// 16 bytes: a compiler's process has hundreds of thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    start: u64,
    bytes: u32,
    line: u32,
}

impl Entry {
    fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.bytes))
    }
}

/// Ranges that don't overlap: what was written later replaces what it covers.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Ascending.
    sorted: Vec<Entry>,
    /// What came since then: start to (bytes, line). It replaces what it covers of the others.
    recent: BTreeMap<u64, (u32, u32)>,
}

impl Index {
    pub(super) fn bytes(&self) -> u64 {
        (self.sorted.capacity() + self.recent.len()) as u64 * ENTRY_BYTES
    }

    fn len(&self) -> usize {
        self.sorted.len() + self.recent.len()
    }

    /// Takes a range whose line begins at an offset of the file; false where there is no room for it, or its line is
    /// too far away.
    pub(super) fn insert(&mut self, start: u64, end: u64, line: u64, room: usize) -> bool {
        let Ok(line) = u32::try_from(line) else { return false };
        if self.len() >= room {
            // What was replaced takes room until here.
            self.merge();
            if self.len() >= room {
                return false;
            }
        }
        let bytes = u32::try_from(end - start).unwrap_or(u32::MAX);
        let end = start.saturating_add(u64::from(bytes));
        while let Some((&other, &(bytes, _))) = self.recent.range(..end).next_back() {
            if other.saturating_add(u64::from(bytes)) <= start {
                break;
            }
            self.recent.remove(&other);
        }
        self.recent.insert(start, (bytes, line));
        if self.recent.len() >= LEAST_RECENT.max(self.sorted.len() / RECENT_PART) {
            self.merge();
        }
        true
    }

    /// The newest of the recent ranges that begins before an address, if it reaches behind `from`.
    fn recent_between(&self, from: u64, until: u64) -> Option<Entry> {
        let (start, (bytes, line)) = self.recent.range(..until).next_back()?;
        let entry = Entry {
            start: *start,
            bytes: *bytes,
            line: *line,
        };
        (entry.end() > from).then_some(entry)
    }

    /// Puts the recent ranges among the others, in place.
    fn merge(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        let mut sorted = std::mem::take(&mut self.sorted);
        {
            let is_covered = |entry: &Entry| {
                let last = recent.range(..entry.end()).next_back();
                last.is_some_and(|(start, (bytes, _))| start.saturating_add(u64::from(*bytes)) > entry.start)
            };
            sorted.retain(|entry| !is_covered(entry));
        }
        // From the last one down, so that each moves once.
        let mut left = sorted.len();
        sorted.reserve_exact(recent.len());
        let mut at = left + recent.len();
        sorted.resize(
            at,
            Entry {
                start: 0,
                bytes: 0,
                line: 0,
            },
        );
        for (start, (bytes, line)) in recent.into_iter().rev() {
            while left > 0 && sorted[left - 1].start > start {
                at -= 1;
                left -= 1;
                sorted[at] = sorted[left];
            }
            at -= 1;
            sorted[at] = Entry { start, bytes, line };
        }
        self.sorted = sorted;
    }

    /// Where the line stands that is about an address, and how far that is behind the begin of the line's range.
    pub(super) fn find(&self, address: u64) -> Option<(u64, u64)> {
        let found = |entry: &Entry| (u64::from(entry.line), address - entry.start);
        if let Some(entry) = self.recent_between(address, address.saturating_add(1)) {
            return Some(found(&entry));
        }
        let after = self.sorted.partition_point(|entry| entry.start <= address);
        let entry = self.sorted[..after].last().filter(|entry| address < entry.end())?;
        // A newer range that covers a part of it has replaced all of it.
        let is_replaced = self.recent_between(entry.start, entry.end()).is_some();
        (!is_replaced).then(|| found(entry))
    }
}

#[cfg(any(test, fuzzing))]
impl Index {
    /// Holds of every map. Gives the first and the last address of each range.
    pub(super) fn check(&mut self) -> Vec<u64> {
        let before: Vec<(u64, Option<(u64, u64)>)> =
            self.recent.keys().map(|start| (*start, self.find(*start))).collect();
        self.merge();
        assert!(before.iter().all(|(start, line)| self.find(*start) == *line));
        let mut reached = 0;
        for entry in &self.sorted {
            assert!(reached <= entry.start && entry.start < entry.end(), "ranges overlap");
            reached = entry.end();
        }
        self.sorted
            .iter()
            .flat_map(|entry| [entry.start, entry.end() - 1])
            .collect()
    }
}
