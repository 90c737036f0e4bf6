//! How much is asked of processes in a second: what makes new code all the time leaves room for all others.
//!
//! In: who is about to be asked, and how many reads that took. Out: whether it may be. Never: a look at a process.

use crate::frames::ProgramKey;
use crate::hash::FastMap;

/// What is asked of all programs in a second, in parts of so many reads: most frames take one, some 50 µs.
const MAX_PER_SECOND: u32 = 4_000;
const READS_OF_A_PART: u32 = 64;
/// Of that so much is left to programs that have asked for hardly anything in the same second, which is this.
const KEPT_FOR_OTHERS: u32 = 1_000;
const HARDLY_ANYTHING: u32 = 64;

/// Why nothing is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PutOff {
    /// All programs together have asked for too much.
    All,
    /// What is left is for others.
    Own,
}

/// What was asked for in the present second.
#[derive(Debug, Default)]
pub(super) struct Asking {
    second: u64,
    all: u32,
    of_programs: FastMap<ProgramKey, u32>,
}

impl Asking {
    /// Whether a program may be asked now.
    pub(super) fn admit(&mut self, key: ProgramKey, now_ns: u64) -> Result<(), PutOff> {
        let second = now_ns / 1_000_000_000;
        if self.second != second {
            self.second = second;
            self.all = 0;
            self.of_programs.clear();
        }
        let own = self.of_programs.get(&key).copied().unwrap_or(0);
        if self.all >= MAX_PER_SECOND {
            Err(PutOff::All)
        } else if self.all >= MAX_PER_SECOND - KEPT_FOR_OTHERS && own >= HARDLY_ANYTHING {
            Err(PutOff::Own)
        } else {
            Ok(())
        }
    }

    /// What a program was asked for took so many reads.
    pub(super) fn took(&mut self, key: ProgramKey, reads: u32) {
        let parts = reads.div_ceil(READS_OF_A_PART).max(1);
        self.all = self.all.saturating_add(parts);
        let own = self.of_programs.entry(key).or_default();
        *own = own.saturating_add(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn key(tgid: u32) -> ProgramKey {
        ProgramKey {
            tgid,
            start_ticks: 7,
            exec_id: 0,
        }
    }

    /// How often a program may be asked at this time, of so many times that it wants to be.
    fn asked(asking: &mut Asking, tgid: u32, times: u32, now_ns: u64) -> u32 {
        let may = |_: &u32| {
            let may = asking.admit(key(tgid), now_ns).is_ok();
            if may {
                asking.took(key(tgid), 12);
            }
            may
        };
        (0..times).filter(may).count() as u32
    }

    #[test]
    fn one_program_leaves_room_for_all_others() {
        let mut asking = Asking::default();
        let alone = asked(&mut asking, 1, 100_000, SECOND_NS);
        assert_eq!(alone, MAX_PER_SECOND - KEPT_FOR_OTHERS);
        assert_eq!(asking.admit(key(1), SECOND_NS), Err(PutOff::Own));
        // Another one like it, and ten that ask for little.
        assert_eq!(asked(&mut asking, 2, 100_000, SECOND_NS), HARDLY_ANYTHING);
        for tgid in 3..13 {
            assert_eq!(asked(&mut asking, tgid, 50, SECOND_NS), 50, "{tgid}");
        }
        // That has its end, too.
        let rest = (13..100)
            .map(|tgid| asked(&mut asking, tgid, 50, SECOND_NS))
            .sum::<u32>();
        assert_eq!(rest, KEPT_FOR_OTHERS - HARDLY_ANYTHING - 500);
        assert_eq!(asking.admit(key(100), SECOND_NS), Err(PutOff::All));
        // The next second is a new one.
        assert_eq!(asked(&mut asking, 1, 10, 2 * SECOND_NS), 10);
        assert_eq!(asking.of_programs.len(), 1, "who is not there is forgotten");
    }

    #[test]
    fn what_takes_many_reads_counts_for_more() {
        let mut asking = Asking::default();
        let (reads, parts) = (4_096, 4_096 / READS_OF_A_PART);
        for _ in 0..(MAX_PER_SECOND - KEPT_FOR_OTHERS).div_ceil(parts) {
            assert_eq!(asking.admit(key(1), 0), Ok(()));
            asking.took(key(1), reads);
        }
        assert_eq!(asking.admit(key(1), 0), Err(PutOff::Own));
        assert_eq!(asking.admit(key(2), 0), Ok(()));
        asking.took(key(2), 0);
        assert_eq!(asking.of_programs[&key(2)], 1, "nothing is for nothing");
    }
}
