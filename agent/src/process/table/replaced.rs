//! Code that came to an address before or after the look that tells what is there.
//!
//! A look at a process tells of one moment, and a sample is of another. Where something was mapped, or a file was
//! written, between the two, nobody knows what the sample's address meant.

use std::collections::VecDeque;

use crate::sys::monotonic_ns;

/// Of one program, which may load so many libraries between two looks. Before the last of those that are forgotten for
/// room, nothing is certain.
const MAX_REPLACED_CODE: usize = 128;
/// What was written before it concerns no sample that is still on its way.
pub(super) const WRITTEN_LATELY_NS: u64 = 60_000_000_000;

/// What is at these addresses is so since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) since_ns: u64,
    /// The file that is mapped was written; the look has told what is in it since.
    pub(super) is_content: bool,
}

/// When a program's mappings were read: some time between these.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    pub(super) begun_ns: u64,
    pub(super) ended_ns: u64,
}

impl Reading {
    /// One that has just ended. Not by the time that is handed around: that is of a moment before.
    pub(super) fn since(begun_ns: u64) -> Self {
        Self {
            begun_ns,
            ended_ns: monotonic_ns(),
        }
    }
}

/// Where code was replaced, as long as it may matter.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplacedCode {
    known: VecDeque<Replaced>,
    forgotten: u32,
    certain_from_ns: u64,
}

impl Replaced {
    /// True where the sample's code and that which the look found may be two things.
    fn is_between(&self, sample_ns: u64, reading: Reading) -> bool {
        if self.is_content || self.since_ns <= reading.begun_ns {
            sample_ns < self.since_ns
        } else {
            self.since_ns <= reading.ended_ns || sample_ns >= self.since_ns
        }
    }
}

impl ReplacedCode {
    pub(super) fn add(&mut self, replaced: Replaced) {
        if self.known.contains(&replaced) {
            return;
        }
        // What is older concerns no sample that is still on its way.
        let is_over = |known: &Replaced| known.since_ns.saturating_add(WRITTEN_LATELY_NS) < replaced.since_ns;
        while self.known.pop_front_if(|known| is_over(known)).is_some() {
            self.forgotten = self.forgotten.wrapping_add(1);
        }
        self.known.push_back(replaced);
        if self.known.len() > MAX_REPLACED_CODE
            && let Some(oldest) = self.known.pop_front()
        {
            self.forgotten = self.forgotten.wrapping_add(1);
            self.certain_from_ns = self.certain_from_ns.max(oldest.since_ns);
        }
    }

    /// True where any was.
    pub(super) fn is_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// How often that was by then.
    pub(super) fn until(&self, time_ns: u64) -> u32 {
        let known = self.known.iter().filter(|replaced| replaced.since_ns <= time_ns);
        self.forgotten.wrapping_add(known.count() as u32)
    }

    pub(super) fn is_unsure(&self, address: u64, sample_ns: u64, reading: Reading) -> bool {
        let is_there = |replaced: &&Replaced| replaced.start <= address && address < replaced.end;
        sample_ns.min(reading.begun_ns) < self.certain_from_ns
            || self
                .known
                .iter()
                .filter(is_there)
                .any(|replaced| replaced.is_between(sample_ns, reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(start: u64, since_ns: u64) -> Replaced {
        Replaced {
            start,
            end: start + 10,
            since_ns,
            is_content: false,
        }
    }

    const READING: Reading = Reading {
        begun_ns: 100,
        ended_ns: 110,
    };

    #[test]
    fn what_was_mapped_between_sample_and_look_is_unsure() {
        for (since_ns, sure, unsure) in [
            (90, &[90, 95, 105, 200][..], &[0, 89][..]),
            (100, &[100, 101], &[99]),
            (105, &[], &[50, 104, 106, 200]),
            (120, &[50, 105, 119], &[120, 200]),
        ] {
            let mut code = ReplacedCode::default();
            code.add(replaced(1000, since_ns));
            for (times, expected) in [(sure, false), (unsure, true)] {
                for at in times {
                    assert_eq!(code.is_unsure(1009, *at, READING), expected, "{since_ns}, {at}");
                    assert!(!code.is_unsure(1010, *at, READING) && !code.is_unsure(999, *at, READING));
                }
            }
        }
    }

    #[test]
    fn a_look_knows_what_is_in_a_file_that_was_written_while_it_lasted() {
        let mut code = ReplacedCode::default();
        code.add(Replaced {
            is_content: true,
            ..replaced(1000, 105)
        });
        assert!(code.is_unsure(1000, 104, READING) && !code.is_unsure(1000, 105, READING));
    }

    #[test]
    fn what_came_a_minute_before_is_forgotten_without_doubt() {
        let mut code = ReplacedCode::default();
        code.add(replaced(1000, 5));
        code.add(replaced(2000, WRITTEN_LATELY_NS + 5));
        assert_eq!((code.known.len(), code.forgotten), (2, 0));
        code.add(replaced(3000, WRITTEN_LATELY_NS + 6));
        assert_eq!((code.known.len(), code.forgotten, code.certain_from_ns), (2, 1, 0));
    }

    #[test]
    fn what_is_forgotten_for_room_makes_all_before_it_unsure() {
        let mut code = ReplacedCode::default();
        for since_ns in 1..=MAX_REPLACED_CODE as u64 + 2 {
            code.add(replaced(1000 * since_ns, since_ns));
            code.add(replaced(1000 * since_ns, since_ns));
        }
        assert_eq!((code.known.len(), code.forgotten), (MAX_REPLACED_CODE, 2));
        assert!(code.is_unsure(7, 1, READING) && !code.is_unsure(7, 2, READING));
        assert_eq!([0, 1, 2, 3, 4].map(|at| code.until(at)), [2, 2, 2, 3, 4]);
        let early = Reading {
            begun_ns: 1,
            ended_ns: 1,
        };
        assert!(code.is_unsure(7, 50, early));
    }
}
