//! Which turns waits are observed in, where to observe them all the time would cost too much.

use crate::random::Random;

/// Share of the machine's CPU time that seeing threads wait may take.
const LIMIT: f64 = 0.005;
/// Most turns of which one is observed. Of half a second each, all of them are shorter than an interval.
const MAX_TURNS: u32 = 8;
/// How long a turn is at least and at most, in the mean. Of who begins or ends within a turn, up to a turn's time more
/// or less is told.
const SHORTEST_NS: u64 = 125_000_000;
const LONGEST_NS: u64 = 500_000_000;
/// All threads are looked at where a turn ends, and the stacks of those that sleep: that takes one part of so many of
/// it at most, but for the longest turns.
const LOOKS: u64 = 100;
/// An interval ends before its time where it costs so many times as much as it may.
const MUCH_TOO_MUCH: f64 = 2.0;

/// One turn of so many is observed, which one is drawn, so that nothing is in step with it.
#[derive(Debug, Clone)]
pub(in crate::agent) struct WaitTurns {
    turns: u32,
    /// Of the turns that stand for each other, the present one and the one that is observed.
    present: u32,
    drawn: u32,
    /// How often there were to be more.
    pub(in crate::agent) lengthened: u64,
}

impl Default for WaitTurns {
    fn default() -> Self {
        Self {
            turns: 1,
            present: 0,
            drawn: 0,
            lengthened: 0,
        }
    }
}

impl WaitTurns {
    /// How many turns an observed one stands for.
    pub(in crate::agent) fn turns(&self) -> u32 {
        self.turns
    }

    /// How long a turn is to be in the mean, where such a look takes so much CPU time.
    pub(in crate::agent) fn length_ns(look_ns: u64) -> u64 {
        look_ns.saturating_mul(LOOKS).clamp(SHORTEST_NS, LONGEST_NS)
    }

    /// Begins the next turn: true where it is observed.
    pub(in crate::agent) fn begin(&mut self, random: &mut Random) -> bool {
        self.present += 1;
        if self.present >= self.turns {
            self.present = 0;
            self.drawn = random.between(0.0, f64::from(self.turns)) as u32;
        }
        self.present == self.drawn
    }

    /// True where more turns can't wait for the interval's end: `share` of the machine's CPU time goes into seeing
    /// threads wait while they are observed.
    pub(in crate::agent) fn are_too_few(&self, share: f64) -> bool {
        self.turns < MAX_TURNS && share > LIMIT * MUCH_TOO_MUCH * f64::from(self.turns)
    }

    /// After an interval in which `share` of the machine's CPU time went into seeing threads wait while they were
    /// observed. True where the number of turns is another one from now on: one is to begin.
    pub(in crate::agent) fn after(&mut self, share: f64) -> bool {
        let before = self.turns;
        while share > LIMIT * f64::from(self.turns) && self.turns < MAX_TURNS {
            self.turns *= 2;
        }
        if self.turns > before {
            self.lengthened += 1;
        } else if share < LIMIT / 3.0 * f64::from(self.turns) && self.turns > 1 {
            self.turns /= 2;
        }
        // The next call of `begin` draws.
        if self.turns != before {
            self.present = self.turns;
        }
        self.turns != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_of_each_round_is_observed_and_none_is_preferred() {
        let mut random = Random::seeded(7);
        let mut turns = WaitTurns::default();
        assert!((0..5).all(|_| turns.begin(&mut random)), "all, where it costs little");
        assert!(turns.are_too_few(0.011) && !turns.are_too_few(0.009));
        assert!(turns.after(0.02) && !turns.after(0.02) && !turns.are_too_few(0.039));
        assert_eq!((turns.turns(), turns.lengthened), (4, 1));
        let mut observed = [0; 4];
        for _ in 0..1000 {
            let round: Vec<bool> = (0..4).map(|_| turns.begin(&mut random)).collect();
            assert_eq!(round.iter().filter(|is_observed| **is_observed).count(), 1);
            observed[round.iter().position(|is_observed| *is_observed).unwrap()] += 1;
        }
        assert!(observed.iter().all(|count| (200..300).contains(count)), "{observed:?}");
        assert!(!turns.after(0.007) && turns.after(0.006) && turns.after(0.003) && !turns.after(0.0));
        assert!(turns.begin(&mut random));
    }

    #[test]
    fn turns_are_as_short_as_looks_at_all_threads_allow() {
        let (short_ns, long_ns) = (200_000, 5_000_000);
        assert_eq!(WaitTurns::length_ns(0), WaitTurns::length_ns(short_ns));
        assert_eq!(WaitTurns::length_ns(short_ns), 125_000_000);
        assert_eq!(WaitTurns::length_ns(2_000_000), 200_000_000);
        assert_eq!(WaitTurns::length_ns(long_ns), 500_000_000);
    }

    /// Of a program that ends somewhere in a turn, the last interval tells up to a turn more or less, and as much of
    /// the one as of the other.
    #[test]
    fn who_ends_within_a_turn_is_told_to_a_part_of_it() {
        let (mut random, mut turns) = (Random::seeded(11), WaitTurns::default());
        turns.after(0.0075);
        assert_eq!(turns.turns(), 2);
        let (mut sum, mut furthest, rounds) = (0.0, 0.0f64, 20_000u32);
        for _ in 0..rounds {
            // Three to four turns of it, in an interval of four.
            let lives = random.between(3.0, 4.0);
            let (mut observed, mut lived) = (0.0, 0.0);
            for turn in 0..4u32 {
                if turns.begin(&mut random) {
                    observed += 1.0;
                    lived += (lives - f64::from(turn)).min(1.0);
                }
            }
            let error = lived * 4.0 / observed - lives;
            (sum, furthest) = (sum + error, furthest.max(error.abs()));
        }
        assert!(furthest > 0.9 && furthest <= 1.0, "{furthest} of a turn");
        assert!((sum / f64::from(rounds)).abs() < 0.02, "{sum}");
        // Where a look takes a millisecond that is less than 1 % of 20 seconds, whichever turn is a long one.
        let longest = 1.4 * WaitTurns::length_ns(1_000_000) as f64 / 1e9;
        assert!(longest * furthest < 0.01 * 20.0, "{longest} s");
    }

    #[test]
    fn there_are_never_more_than_a_bound() {
        let mut turns = WaitTurns::default();
        (0..20).for_each(|_| {
            turns.after(1.0);
        });
        assert_eq!((turns.turns(), turns.lengthened), (MAX_TURNS, 1));
        assert!(!turns.are_too_few(1.0));
    }
}
