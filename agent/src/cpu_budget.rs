//! Spreads work that can wait, so that the agent's CPU time is near its limit in every second and not only over a
//! minute.
//!
//! Draining, and opening what has just come, cannot wait: that takes what it needs, and opening what has run for long,
//! tables and names take what is left of the limit. Tables and names always get a little, and what sampled stacks wait
//! for comes before others. So a start with hundreds of programs becomes longer, not dearer; where names come too late,
//! all may take twice as much, or at the start what the limit leaves.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sys::{monotonic_ns, process_cpu_ns, thread_cpu_ns};

/// Of the limit, what this process may use: the rest is for BPF programs, which its clock does not count, and for what
/// cannot wait.
const USED_PART: f64 = 0.8;
/// The same in the first seconds, in which what runs is met all at once: what cannot wait then is more, and comes in
/// pieces. Were they more, the first batch would wait for its tables and names.
const USED_PART_AT_START: f64 = 0.6;
const START_NS: u64 = 12_000_000_000;
/// In a hurry all of these parts are so much larger: where programs start and end all the time, batches fall behind for
/// ever with less. In the first seconds the limit holds.
const HURRY: f64 = 2.0;
const HURRY_AT_START: f64 = 1.1;
/// Of the limit, what each thread may take for such work whatever the others take; the latter in a hurry.
const LEAST_PART: f64 = 1.0 / 6.0;
const HURRIED_PART: f64 = 1.0 / 4.0;
/// Of one CPU, what each may always take: with a tiny limit, samples would wait for their names for ever.
const LEAST_OF_CPU: f64 = 0.003;
/// Of either, what there is while stacks wait for tables, unless in a hurry: names come after those.
const MEANWHILE_PART: f64 = 1.0 / 4.0;
/// Stacks wait as long as somebody said so in this time.
const SAID_NS: u64 = 200_000_000;
/// Of one CPU, what may always go into tables that stacks wait for: these are copied meanwhile, and there is not room
/// for many.
const LEAST_FOR_STACKS: f64 = 0.008;
const LEAST_FOR_STACKS_AT_START: f64 = 0.005;
/// For how long a limit that was not used may be saved up, and for how long it must be saved where it was passed.
const SAVED_NS: f64 = 50_000_000.0;
const OWED_NS: f64 = 1_000_000_000.0;
/// A thread that worked less since it rested last goes on: a pause is a wake-up more.
const STRETCH_NS: u64 = 1_000_000;
/// Pauses are at least as long where they may be: going to sleep and waking up is work as well, which shorter ones
/// would be spent on.
const PAUSE_NS: u64 = 20_000_000;
/// A build without optimisation takes some ten times the CPU time for the same work, and its pauses would be as much
/// longer.
const SLOWNESS: f64 = if cfg!(debug_assertions) { 10.0 } else { 1.0 };

thread_local! {
    /// CPU time of this thread when it rested last, and when that was.
    static RESTED_NS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Who needs a piece of work, and so how long it may wait for CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeededBy {
    /// No sample needs it yet: it is done with what is left of the limit.
    Nobody,
    /// Stacks that were sampled.
    Stacks,
    /// Files that are soon given up, read or not.
    Files,
}

/// Shared by all threads whose work can wait. The default sets no limit.
#[derive(Debug, Clone, Default)]
pub struct CpuBudget(Option<Arc<Limited>>);

#[derive(Debug)]
struct Limited {
    bucket: Mutex<TokenBucket>,
    ended: Condvar,
}

impl Limited {
    fn bucket(&self) -> MutexGuard<'_, TokenBucket> {
        // Numbers, which one who panicked cannot have left half done.
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CpuBudget {
    /// `share` of the machine's CPU time, between 0 and 1, of one CPU until it is told how many there are.
    pub(crate) fn within(share: f64) -> Self {
        let bucket = TokenBucket::new(share, monotonic_ns(), process_cpu_ns());
        Self(Some(Arc::new(Limited {
            bucket: Mutex::new(bucket),
            ended: Condvar::new(),
        })))
    }

    /// Begins anew: what was used before could not be spread.
    pub(crate) fn begin(&self, cpus: u32) {
        if let Some(limited) = &self.0 {
            let mut bucket = limited.bucket();
            *bucket = TokenBucket::new(bucket.share, monotonic_ns(), process_cpu_ns());
            bucket.cpus = cpus;
        }
    }

    pub(crate) fn set_cpus(&self, cpus: u32) {
        if let Some(limited) = &self.0 {
            limited.bucket().cpus = cpus;
        }
    }

    /// Whether what was sampled waits for so long, or takes so much room, that all may take more; after the start
    /// more than the limit.
    pub(crate) fn hurry(&self, hurried: bool) {
        if let Some(limited) = &self.0 {
            limited.bucket().hurried = hurried;
        }
    }

    /// Stacks wait for something that begins where there is room for it.
    pub(crate) fn stacks_wait(&self) {
        if let Some(limited) = &self.0 {
            limited.bucket().stacks_waited_ns = monotonic_ns();
        }
    }

    /// True where something may begin that can still wait.
    pub(crate) fn has_room(&self) -> bool {
        self.0.as_ref().is_none_or(|limited| {
            let mut bucket = limited.bucket();
            bucket.settle(monotonic_ns(), process_cpu_ns());
            bucket.ended || bucket.balance_ns >= 0.0
        })
    }

    /// Called again and again by who does work that can wait: pauses where it is time.
    pub(crate) fn rest(&self, needed_by: NeededBy) {
        let Some(limited) = &self.0 else { return };
        let (rested_cpu_ns, rested_ns) = RESTED_NS.get();
        // No thread uses more CPU time than passes, and that is found out without a system call.
        if monotonic_ns().saturating_sub(rested_ns) < STRETCH_NS {
            return;
        }
        let own_ns = thread_cpu_ns().saturating_sub(rested_cpu_ns);
        if own_ns < STRETCH_NS {
            return;
        }
        let mut bucket = limited.bucket();
        let mut now_ns = monotonic_ns();
        bucket.settle(now_ns, process_cpu_ns());
        if needed_by == NeededBy::Stacks {
            bucket.stacks_waited_ns = now_ns;
        }
        let until_ns = now_ns + bucket.longest_wait_ns(own_ns, needed_by);
        loop {
            let left_ns = until_ns.saturating_sub(now_ns);
            let wait_ns = bucket.wait_ns(needed_by);
            if bucket.ended || wait_ns == 0 || left_ns == 0 {
                break;
            }
            let wait_ns = wait_ns.max(PAUSE_NS).min(left_ns);
            let waited = limited.ended.wait_timeout(bucket, Duration::from_nanos(wait_ns));
            (bucket, _) = waited.unwrap_or_else(PoisonError::into_inner);
            now_ns = monotonic_ns();
            bucket.settle(now_ns, process_cpu_ns());
        }
        drop(bucket);
        RESTED_NS.set((thread_cpu_ns(), monotonic_ns()));
    }

    /// Nobody rests any more: the agent stops.
    pub(crate) fn end(&self) {
        if let Some(limited) = &self.0 {
            limited.bucket().ended = true;
            limited.ended.notify_all();
        }
    }
}

/// The limit flows in, what the process uses flows out.
#[derive(Debug, Clone, Copy)]
struct TokenBucket {
    share: f64,
    cpus: u32,
    begun_ns: u64,
    /// Of CPU time.
    balance_ns: f64,
    at_ns: u64,
    used_ns: u64,
    hurried: bool,
    /// When stacks waited for tables the last time that is known.
    stacks_waited_ns: u64,
    ended: bool,
}

impl TokenBucket {
    fn new(share: f64, now_ns: u64, used_ns: u64) -> Self {
        Self {
            share,
            cpus: 1,
            begun_ns: now_ns,
            balance_ns: 0.0,
            at_ns: now_ns,
            used_ns,
            hurried: false,
            stacks_waited_ns: 0,
            ended: false,
        }
    }

    /// CPU time in a unit of time.
    fn allowance(&self) -> f64 {
        let part = if self.is_start() { USED_PART_AT_START } else { USED_PART };
        self.share * f64::from(self.cpus.max(1)) * part * SLOWNESS * self.hurry()
    }

    fn is_start(&self) -> bool {
        self.at_ns.saturating_sub(self.begun_ns) < START_NS
    }

    fn hurry(&self) -> f64 {
        match (self.hurried, self.is_start()) {
            (false, _) => 1.0,
            (true, false) => HURRY,
            (true, true) => HURRY_AT_START,
        }
    }

    fn settle(&mut self, now_ns: u64, used_ns: u64) {
        let flown = self.allowance() * now_ns.saturating_sub(self.at_ns) as f64;
        let used = used_ns.saturating_sub(self.used_ns) as f64;
        let (least, most) = (-self.allowance() * OWED_NS, self.allowance() * SAVED_NS);
        self.balance_ns = (self.balance_ns + flown - used).clamp(least, most);
        (self.at_ns, self.used_ns) = (now_ns.max(self.at_ns), used_ns);
    }

    /// What nobody waits for comes after what stacks wait for, unless in a hurry, where it is behind, too.
    fn comes_later(&self, needed_by: NeededBy) -> bool {
        needed_by == NeededBy::Nobody && !self.hurried && self.at_ns.saturating_sub(self.stacks_waited_ns) < SAID_NS
    }

    /// Until what was used too much is made up for, if nobody uses anything. What comes later goes on only when as much
    /// is saved up as may be: others look for room now and then, and would find none.
    fn wait_ns(&self, needed_by: NeededBy) -> u64 {
        let saved_ns = if self.comes_later(needed_by) { SAVED_NS } else { 0.0 };
        let wanted_ns = self.allowance() * saved_ns;
        ((wanted_ns - self.balance_ns) / self.allowance()).max(0.0).ceil() as u64
    }

    /// How long somebody waits at most who worked so long.
    fn longest_wait_ns(&self, own_ns: u64, needed_by: NeededBy) -> u64 {
        let part = if self.hurried { HURRIED_PART } else { LEAST_PART };
        let least = (self.allowance() * part).max(LEAST_OF_CPU * SLOWNESS * self.hurry());
        let for_stacks = if self.is_start() {
            LEAST_FOR_STACKS_AT_START
        } else {
            LEAST_FOR_STACKS
        };
        let least = match needed_by {
            NeededBy::Stacks | NeededBy::Files => least.max(for_stacks * SLOWNESS * self.hurry()),
            NeededBy::Nobody if self.comes_later(needed_by) => least * MEANWHILE_PART,
            NeededBy::Nobody => least,
        };
        (own_ns as f64 / least) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    /// CPU time in each of ten seconds of a thread that always has work and does it in steps of `step_ns`, beside
    /// others that take `others_ns` of CPU time in each second.
    fn run(bucket: &mut TokenBucket, step_ns: u64, others_ns: u64, needed_by: NeededBy) -> Vec<u64> {
        let (mut now, mut own) = (bucket.at_ns, 0);
        let begin = now;
        let mut seconds = vec![0; 10];
        loop {
            bucket.settle(
                now,
                own + (now - begin) / SECOND * others_ns + (now - begin) % SECOND * others_ns / SECOND,
            );
            now += bucket
                .wait_ns(needed_by)
                .min(bucket.longest_wait_ns(step_ns, needed_by));
            let Some(second) = seconds.get_mut(((now - begin) / SECOND) as usize) else {
                return seconds;
            };
            *second += step_ns;
            own += step_ns;
            now += step_ns;
        }
    }

    /// 1 % of two CPUs, and what that allows in a second.
    fn limited() -> (TokenBucket, u64) {
        let bucket = TokenBucket {
            cpus: 2,
            ..TokenBucket::new(0.01, 5 * SECOND, 0)
        };
        let allowed = (bucket.allowance() * SECOND as f64) as u64;
        (bucket, allowed)
    }

    #[test]
    fn work_takes_what_others_leave_of_the_limit() {
        let (mut bucket, allowed) = limited();
        for second in run(&mut bucket, 2 * MS, allowed / 2, NeededBy::Nobody) {
            assert!(
                (allowed / 2 - 3 * MS..=allowed / 2 + 3 * MS).contains(&second),
                "{second}"
            );
        }
    }

    #[test]
    fn in_a_hurry_all_may_take_twice_as_much_and_at_the_start_no_more_than_the_limit() {
        for (begun, hurry) in [(0, HURRY_AT_START), (2 * 60 * SECOND, HURRY)] {
            let (mut bucket, _) = limited();
            bucket.settle(bucket.at_ns + begun, 0);
            bucket.balance_ns = 0.0;
            let allowed = bucket.allowance() * SECOND as f64;
            bucket.hurried = true;
            let others = (allowed / 2.0) as u64;
            for second in run(&mut bucket, 2 * MS, others, NeededBy::Nobody) {
                let expected = (allowed * hurry) as u64 - others;
                assert!((expected - 4 * MS..=expected + 4 * MS).contains(&second), "{second}");
            }
        }
        const { assert!(USED_PART_AT_START * HURRY_AT_START < 0.9) };
    }

    #[test]
    fn it_always_gets_a_part_and_more_where_stacks_wait() {
        let (mut bucket, allowed) = limited();
        // Each from the start on.
        let seconds = |needed_by| run(&mut bucket.clone(), MS, 3 * allowed, needed_by);
        let least = ((allowed as f64 * LEAST_PART) as u64).max((LEAST_OF_CPU * SLOWNESS * SECOND as f64) as u64);
        let for_stacks = (LEAST_FOR_STACKS_AT_START * SLOWNESS * SECOND as f64) as u64;
        for (needed_by, least) in [(NeededBy::Nobody, least), (NeededBy::Stacks, for_stacks)] {
            // The work itself takes a while, too.
            let expected = least * 8 / 10 - MS..=least + 2 * MS;
            let seconds = seconds(needed_by);
            assert!(
                seconds.iter().all(|second| expected.contains(second)),
                "{needed_by:?}: {seconds:?}"
            );
        }
        // And what was used too much is made up for within a second or so.
        bucket.used_ns = 0;
        bucket.settle(bucket.at_ns + 2 * SECOND, 0);
        assert!(bucket.balance_ns >= 0.0);
    }

    #[test]
    fn while_stacks_wait_others_leave_what_is_saved_up() {
        let (mut bucket, _) = limited();
        assert_eq!(bucket.wait_ns(NeededBy::Nobody), 0);
        let say_so = |bucket: &mut TokenBucket| bucket.stacks_waited_ns = bucket.at_ns;
        say_so(&mut bucket);
        assert_eq!(bucket.wait_ns(NeededBy::Stacks), 0);
        assert_eq!(bucket.wait_ns(NeededBy::Nobody), SAVED_NS as u64);
        bucket.settle(bucket.at_ns + SAVED_NS as u64, 0);
        say_so(&mut bucket);
        assert_eq!(bucket.wait_ns(NeededBy::Nobody), 0, "all that may be saved up");
        // Who looks only now and then finds room each time.
        let used_ns = (bucket.balance_ns / 2.0) as u64;
        bucket.settle(bucket.at_ns, used_ns);
        assert!(bucket.balance_ns >= 0.0 && bucket.wait_ns(NeededBy::Nobody) > 0);
        bucket.hurried = true;
        assert_eq!(bucket.wait_ns(NeededBy::Nobody), 0, "it is behind as well");
    }

    #[test]
    fn a_tiny_limit_leaves_time_for_names() {
        let mut bucket = TokenBucket::new(1e-6, 5 * SECOND, 0);
        let seconds = run(&mut bucket, MS, 0, NeededBy::Nobody);
        let least = (LEAST_OF_CPU * SLOWNESS * SECOND as f64) as u64;
        // The work itself takes a while, and a second may end in a pause.
        let expected = least * 8 / 10 - MS..=least + 2 * MS;
        assert!(seconds.iter().all(|second| expected.contains(second)), "{seconds:?}");
    }

    #[test]
    fn little_is_saved_up_and_less_is_allowed_at_the_start() {
        let (mut bucket, allowed) = limited();
        bucket.settle(bucket.at_ns + 3600 * SECOND, 0);
        assert!(bucket.balance_ns <= allowed as f64 / 4.0 + 1.0);
        assert!(bucket.allowance() * SECOND as f64 > allowed as f64 * 1.3);
    }

    #[test]
    fn without_a_limit_or_after_the_end_nobody_waits() {
        let begun = monotonic_ns();
        let budget = CpuBudget::within(1e-9);
        budget.end();
        for budget in [CpuBudget::default(), budget] {
            while thread_cpu_ns() - RESTED_NS.get().0 < 2 * STRETCH_NS {}
            budget.rest(NeededBy::Nobody);
            assert!(budget.has_room());
        }
        assert!(monotonic_ns() - begun < 60 * SECOND);
    }
}
