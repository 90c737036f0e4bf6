//! The sampling timers of the CPUs that are online.
//!
//! In: which CPUs are online, what a tick stands for, how often each CPU's timer has ticked. Out: a timer with the
//! program attached on each of them, whose period is drawn anew by its [`Schedule`]; CPUs whose timer had died; ticks
//! that did not come. A CPU that goes off takes its timer along for good, also where it is back before anybody looked:
//! such a timer neither ticks nor runs.

mod account;
mod burst_timers;
mod bursts;
mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libbpf_rs::{Link, ProgramMut};

use super::error::KernelError;
use super::perf;
use crate::frames::CpuTicks;
use crate::random::Random;
pub use account::Unticked;
use account::{Counts, IdleTime, TickAccount};
pub(super) use bursts::Bursts;
pub use bursts::{Burst, Chosen, ChosenThreads, MAX_THREADS as MAX_BURST_THREADS, NAME_BYTES};
use schedule::{Schedule, Stretch, USUAL};

/// How long a stretch may go on while there is other work to do.
const PATIENCE_NS: u64 = 300_000_000;
/// A timer that did not tick is asked twice so far apart whether it runs.
const LEAST_APART_NS: u64 = 500_000_000;
/// The kernel accounts for idle time in units about as long.
const IDLE_AGE_NS: u64 = 20_000_000;

fn ticks_of(all: &[CpuTicks], cpu: u32) -> CpuTicks {
    all.get(cpu as usize).copied().unwrap_or_default()
}

struct Timer {
    /// The event, for as long as `_link` attaches the program to it: that has a descriptor of its own.
    event: OwnedFd,
    _link: Link,
    schedule: Schedule,
    account: TickAccount,
    /// Its ticks at the last look at which there were new ones, and when that was.
    ticks: u64,
    ticked_ns: u64,
    /// When it had not ticked and was asked, and for how long it had run by then.
    asked: Option<(u64, u64)>,
}

/// See the module.
pub(super) struct Timers {
    mean_ns: u64,
    random: Random,
    /// None where the kernel does not show it.
    idle_time: Option<IdleTime>,
    /// When it was read last, and what it was of each CPU.
    idle: (u64, BTreeMap<u32, u64>),
    running: BTreeMap<u32, Timer>,
    /// Of CPUs that are off or could not be opened, what was due before; and since when.
    resting: BTreeMap<u32, (Schedule, u64)>,
    /// Why an online CPU has none.
    failed: BTreeMap<u32, String>,
}

impl Timers {
    pub(super) fn new(mean_ns: u64, possible_cpus: u32) -> Self {
        let idle_time = IdleTime::open(possible_cpus).inspect_err(
            |error| tracing::warn!(%error, "no idle time of CPUs: ticks that an idle guest leaves out count as missed"),
        );
        Self {
            mean_ns,
            random: Random::from_system(),
            idle_time: idle_time.ok(),
            idle: (0, BTreeMap::new()),
            running: BTreeMap::new(),
            resting: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.running.len() as u32
    }

    pub(super) fn has(&self, cpu: u32) -> bool {
        self.running.contains_key(&cpu)
    }

    /// Ticks are to stand for so much from now on.
    pub(super) fn set_mean(&mut self, mean_ns: u64, now_ns: u64) {
        self.mean_ns = mean_ns;
        for timer in self.running.values_mut() {
            timer.draw(mean_ns, now_ns, &mut self.random);
        }
    }

    /// Draws new periods where it is time. A change is followed by most of a period without a tick on its CPU: where
    /// this thread has woken others, it waits, though not for long.
    pub(super) fn draw(&mut self, now_ns: u64, has_woken: bool) {
        let patience_ns = if has_woken { PATIENCE_NS } else { 0 };
        for timer in self.running.values_mut() {
            if timer
                .schedule
                .overdue_ns(now_ns)
                .is_some_and(|overdue| overdue >= patience_ns)
            {
                timer.draw(self.mean_ns, now_ns, &mut self.random);
            }
        }
    }

    /// Starts the timer of a CPU that has none. `ticks`: of each CPU by its number.
    pub(super) fn add(&mut self, cpu: u32, program: &ProgramMut<'_>, ticks: &[CpuTicks]) -> Result<(), KernelError> {
        let now_ns = crate::sys::monotonic_ns();
        let (mut schedule, off_since_ns) = match self.resting.get(&cpu) {
            Some((schedule, since)) => (schedule.clone(), *since),
            None => (Schedule::new(&USUAL, now_ns), now_ns),
        };
        let stretch = schedule.draw(self.mean_ns, now_ns, &mut self.random);
        let (event, _link) = open_timer(cpu, stretch.period_ns, program)?;
        schedule.resume(stretch, off_since_ns, crate::sys::monotonic_ns());
        self.resting.remove(&cpu);
        self.failed.remove(&cpu);
        let ticks = ticks_of(ticks, cpu);
        self.read_idle(now_ns);
        let counts = counts_of(&schedule, ticks, self.idle.1.get(&cpu).copied(), now_ns);
        let timer = Timer {
            event,
            _link,
            schedule,
            account: TickAccount::new(counts),
            ticks: ticks.ticks,
            ticked_ns: now_ns,
            asked: None,
        };
        self.running.insert(cpu, timer);
        Ok(())
    }

    /// True where that was not known of this CPU.
    pub(super) fn note_failure(&mut self, cpu: u32, message: &str) -> bool {
        self.failed.insert(cpu, message.to_owned()).as_deref() != Some(message)
    }

    /// Stops the timers of all other CPUs.
    pub(super) fn retain(&mut self, online: &[u32], now_ns: u64) {
        let (running, resting) = (&mut self.running, &mut self.resting);
        for (cpu, timer) in running.extract_if(.., |cpu, _| !online.contains(cpu)) {
            resting.insert(cpu, (timer.schedule, now_ns));
        }
    }

    /// Stops the timers that have died since the last look, and names their CPUs. `ticks`: of each CPU by its number,
    /// cumulative.
    pub(super) fn take_dead(&mut self, ticks: &[CpuTicks], now_ns: u64) -> BTreeSet<u32> {
        let (running, resting) = (&mut self.running, &mut self.resting);
        let is_dead = |cpu: &u32, timer: &mut Timer| !timer.lives(ticks_of(ticks, *cpu).ticks, now_ns);
        let mut dead = BTreeSet::new();
        for (cpu, timer) in running.extract_if(.., is_dead) {
            resting.insert(cpu, (timer.schedule, timer.ticked_ns));
            dead.insert(cpu);
        }
        dead
    }

    /// Ticks that were due on the CPUs sampled now since the last call, and did not come: of each CPU.
    pub(super) fn settle(&mut self, ticks: &[CpuTicks], now_ns: u64) -> BTreeMap<u32, Unticked> {
        self.read_idle(now_ns);
        let idle = &self.idle.1;
        let of_cpu = |(cpu, timer): (&u32, &mut Timer)| {
            let counts = counts_of(&timer.schedule, ticks_of(ticks, *cpu), idle.get(cpu).copied(), now_ns);
            (*cpu, timer.account.settle(counts))
        };
        self.running.iter_mut().map(of_cpu).collect()
    }

    /// Where that was not done right before: on a large machine it takes a while.
    fn read_idle(&mut self, now_ns: u64) {
        if now_ns >= self.idle.0 + IDLE_AGE_NS
            && let Some(time) = &mut self.idle_time
        {
            self.idle = (now_ns, time.now());
        }
    }

    pub(super) fn clear(&mut self) {
        self.running.clear();
    }
}

/// A timer of a CPU with the program attached; it runs.
fn open_timer(cpu: u32, period_ns: u64, program: &ProgramMut<'_>) -> Result<(OwnedFd, Link), KernelError> {
    let opening = |source| KernelError::PerfEvent { cpu, source };
    let event = perf::open_cpu_clock(cpu, period_ns).map_err(opening)?;
    // The link closes what it is given.
    let attached = event.try_clone().map_err(opening)?;
    let link = program
        .attach_perf_event(attached.as_raw_fd())
        .map_err(|source| KernelError::AttachPerfEvent { cpu, source })?;
    std::mem::forget(attached);
    Ok((event, link))
}

fn begin_stretch(event: &OwnedFd, schedule: &mut Schedule, stretch: Stretch) {
    let before = crate::sys::monotonic_ns();
    match perf::set_period(event.as_fd(), stretch.period_ns) {
        // The kernel starts the timer somewhere between.
        Ok(()) => schedule.begin(stretch, before.midpoint(crate::sys::monotonic_ns())),
        // It has died: the next look tells.
        Err(error) => tracing::debug!(%error, "the period of a timer cannot be set"),
    }
}

fn counts_of(schedule: &Schedule, ticks: CpuTicks, idle_ns: Option<u64>, time_ns: u64) -> Counts {
    Counts {
        time_ns,
        due: schedule.due(time_ns),
        ticks: ticks.ticks,
        idle_ticks: ticks.idle_ticks,
        idle_ns,
    }
}

impl Timer {
    fn draw(&mut self, mean_ns: u64, now_ns: u64, random: &mut Random) {
        let stretch = self.schedule.draw(mean_ns, now_ns, random);
        begin_stretch(&self.event, &mut self.schedule, stretch);
    }

    /// False where it has stopped for good. A timer that runs need not tick: some guests leave out the ticks of an idle
    /// CPU.
    fn lives(&mut self, ticks: u64, now_ns: u64) -> bool {
        if ticks != self.ticks {
            (self.ticks, self.ticked_ns, self.asked) = (ticks, now_ns, None);
            return true;
        }
        if self.asked.is_some_and(|(at, _)| now_ns < at + LEAST_APART_NS) {
            return true;
        }
        let Ok(ran_ns) = perf::enabled_ns(self.event.as_fd()) else {
            return false;
        };
        let before = self.asked.replace((now_ns, ran_ns));
        before.is_none_or(|(at, before_ns)| ran_ns.saturating_sub(before_ns) >= (now_ns - at) / 2)
    }
}
