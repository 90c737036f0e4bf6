//! The sampling thread: drains the kernel side, finds out where addresses come from, ends intervals.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bursts::Bursting;
use super::clock::{ClockReading, Span};
use super::config::AgentConfig;
use super::gather::{Interval, Memory};
use super::limits::{MemoryGovernor, RateController};
use super::naming::{Ahead, Finished, Intervals};
use super::tables::Unwinding;
use super::threads::AgentError;
use super::totals::{CAUSE_INTERVAL_FULL, CAUSE_MALFORMED, CAUSE_RING_FULL, CAUSE_UNACCOUNTED, Totals};
use super::waiting::{TicksOfCpus, Waiting};
use crate::cpu_budget::CpuBudget;
use crate::kernel::{self, Counters, Sensor, Unticked};
use crate::metadata::Resolver;
use crate::process::{ModuleTable, Table, vdso_image};
use crate::random::Random;
use crate::ship::Report;
use crate::symbolize::DegradationLevel;
use crate::sys;
use crate::sys::stuck_reads;

/// Pause after process events: it bounds how often a storm of short processes can wake the agent.
const EVENT_PAUSE: Duration = Duration::from_millis(5);
/// Stacks that were not seen for one to two of these are forgotten.
const MEMORY_NS: u64 = 60_000_000_000;
const HOTPLUG_NS: u64 = 1_000_000_000;
/// Longest sleep of the sampling thread: how late it can see that it is to stop, on a machine where nothing starts or
/// ends.
const LONGEST_WAIT_NS: u64 = 500_000_000;
/// Copies of stacks fill the ring while tables are being made, and what comes after them may wait for the same: so many
/// times as often is drained then. Also while a burst runs, whose periods are drawn as often.
const DRAINS_WHILE_WAITING: u64 = 4;
/// Two drains are this part of their mean distance nearer or further apart: nothing is in step with them.
const DRAIN_JITTER: f64 = 0.4;
/// And where the kernel side wakes this thread, at most so many times as often.
const DRAINS_WHEN_WOKEN: u64 = 40;
/// How often is looked for the last tables at a stop.
const STOP_WAIT: Duration = Duration::from_millis(10);
/// How long an interval's stacks may wait for their tables, which are made within the CPU budget.
const CLOSING_NS: u64 = 30_000_000_000;
/// Intervals that may wait for them at a time.
const MAX_CLOSING: usize = 8;
/// With so little of that time left, what makes tables and names hurries.
const HURRY_NS: u64 = 20_000_000_000;
const MAX_OPEN_FILES: u64 = 4096;
/// Of the list of CPUs that were off: room for hundreds one by one, and for any number of ranges that machines have.
const MAX_CPU_LIST_BYTES: usize = 1024;

/// The sampling thread's state.
pub(super) struct Sampling {
    pub(super) config: AgentConfig,
    pub(super) sensor: Sensor,
    pub(super) table: Table,
    pub(super) unwinding: Unwinding,
    /// Intervals that have ended and wait for tables, at most until then; oldest first.
    pub(super) closing: VecDeque<(Finished, u64)>,
    pub(super) interval: Interval,
    /// Samples that came while the interval before was being ended.
    pub(super) next: Interval,
    pub(super) memory: Memory,
    aged_ns: u64,
    pub(super) intervals: Intervals,
    /// Samples drained so far, whatever became of them.
    drained: u64,
    /// Those of them that are in `next`.
    drained_next: u64,
    lost: BTreeMap<&'static str, u64>,
    sent_counters: Counters,
    /// Where the interval begins.
    begun: ClockReading,
    /// CPUs observed at any time in the interval.
    pub(super) cpus: u32,
    /// CPUs that were not, at any time in the interval.
    unsampled: BTreeSet<u32>,
    /// Ticks that were due and did not come: over the agent's life, and up to the interval's begin.
    unticked: Unticked,
    sent_unticked: Unticked,
    pub(super) ticks_of_cpus: TicksOfCpus,
    rate_controller: RateController,
    pub(super) cpu_budget: CpuBudget,
    memory_governor: MemoryGovernor,
    pub(super) waiting: Waiting,
    pub(super) bursting: Bursting,
    /// What names and tables do without at present.
    degradation: DegradationLevel,
    /// How often more memory was used than may be, once an interval.
    memory_limit_reached: u64,
    /// The last interval could not be handed over.
    pub(super) naming_is_behind: bool,
    /// What the configured rate is divided by at present.
    pub(super) divisor: u32,
    /// How often it was lowered.
    throttled: u64,
    /// CPU time, of BPF programs and of this process, up to the interval's begin.
    used_seconds: f64,
    pub(super) random: Random,
    /// When BPF programs were listed, until when all changes of them are known, and how many changes had been lost by
    /// then.
    pub(super) code_listed_ns: Option<u64>,
    pub(super) code_certain_ns: u64,
    pub(super) code_lost: u64,
}

impl Sampling {
    /// The sensor samples since `begun`.
    pub(super) fn new(
        config: AgentConfig,
        mut sensor: Sensor,
        begun: ClockReading,
        resolver: Resolver,
        intervals: Intervals,
    ) -> Result<Self, AgentError> {
        let waits_before = sensor.counters()?.waits;
        // A part of the descriptors stays free for everything else.
        let descriptors = sys::raise_descriptor_limit(MAX_OPEN_FILES + 256).saturating_sub(256);
        let open_files = descriptors.clamp(64, MAX_OPEN_FILES) as usize;
        let modules = ModuleTable::new(1024, open_files);
        let table = Table::new(config.max_processes, modules, resolver, config.command_lines);
        let cpus = sensor.cpus();
        let cpu_budget = config.names.cpu_budget.clone();
        cpu_budget.begin(cpus);
        let (read_turn, waker) = (config.names.read_turn.clone(), sensor.waker());
        let mut unwinding = Unwinding::start(config.table_bytes, read_turn, cpu_budget.clone(), waker)?;
        if let Some(image) = vdso_image() {
            unwinding.add_vdso(&image, &mut sensor);
        }
        let bursting = Bursting::new(config.bursts.clone(), config.burst_limit_hz);
        if let Some(desk) = &config.bursts {
            let waker = sensor.waker();
            desk.set_waker(move || waker.wake());
        }
        let rate_controller = RateController::new(config.cpu_limit);
        let config_memory_limit = config.memory_limit_bytes;
        let wait_period_ns = config.wait_period.as_nanos() as u64;
        Ok(Self {
            config,
            sensor,
            table,
            unwinding,
            closing: VecDeque::new(),
            interval: Interval::default(),
            next: Interval::default(),
            memory: Memory::within(config_memory_limit),
            aged_ns: 0,
            intervals,
            drained: 0,
            drained_next: 0,
            lost: BTreeMap::new(),
            sent_counters: Counters::default(),
            begun,
            cpus,
            unsampled: BTreeSet::new(),
            unticked: Unticked::default(),
            sent_unticked: Unticked::default(),
            ticks_of_cpus: TicksOfCpus::default(),
            rate_controller,
            cpu_budget,
            memory_governor: MemoryGovernor::new(config_memory_limit),
            waiting: Waiting::new(wait_period_ns, begun.mono_ns, waits_before),
            bursting,
            degradation: DegradationLevel::Nothing,
            memory_limit_reached: 0,
            naming_is_behind: false,
            divisor: 1,
            throttled: 0,
            used_seconds: sys::process_cpu_ns() as f64 / 1e9,
            random: Random::from_system(),
            code_listed_ns: None,
            code_certain_ns: 0,
            code_lost: 0,
        })
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<Totals, AgentError> {
        let drain_ns = self.config.drain_every.as_nanos() as u64;
        let mut now = sys::monotonic_ns();
        let mut drained_at = now;
        let (mut next_drain, mut next_batch, mut next_hotplug) =
            (now + drain_ns, now + self.jittered_interval_ns(), now + HOTPLUG_NS);
        while !stop.load(Ordering::Acquire) {
            let looks = [
                self.table.next_look_ns(),
                self.memory.runtimes.next_look_ns(),
                self.bursting.until_ns(),
                self.waiting.turn_until_ns(),
            ];
            let early = self.early_drain_ns(drained_at).unwrap_or(next_drain);
            let wake = looks.into_iter().flatten().fold(next_drain.min(early), u64::min);
            let wait = wake.saturating_sub(now).min(LONGEST_WAIT_NS);
            // epoll counts in milliseconds: rounded up, so that it does not spin.
            let timeout = Duration::from_millis(wait.div_ceil(1_000_000));
            let events = self.take_events(timeout)?;
            now = sys::monotonic_ns();
            self.table.tick(now);
            self.turn_burst(now)?;
            self.give_up_files(now);
            if now >= next_hotplug {
                next_hotplug = now + HOTPLUG_NS;
                self.unsampled.extend(self.sensor.follow_hotplug()?);
                self.cpus = self.cpus.max(self.sensor.cpus());
                self.cpu_budget.set_cpus(self.sensor.cpus());
            }
            let has_turned = self.turn_waits(now)?;
            let mut is_quiet = now >= next_drain;
            if is_quiet || has_turned || self.early_drain_ns(drained_at).is_some_and(|early| now >= early) {
                drained_at = now;
                if self.waits_cost_too_much()? {
                    next_batch = now;
                }
                self.drain(now, None)?;
                self.open_deferred(now);
                if self.interval.deferred.has_unopened() {
                    self.cpu_budget.stacks_wait();
                }
                self.want_tables(now);
                self.cpu_budget.hurry(self.is_behind(now));
                // The kernel side asks at a sample: neither the next drain nor a timer's period goes by that.
                if is_quiet {
                    let is_calm = self.nothing_waits() && !self.bursting.is_running();
                    let often = if is_calm { 1 } else { DRAINS_WHILE_WAITING };
                    next_drain = now + self.random.about(drain_ns / often, DRAIN_JITTER);
                }
            }
            self.unwinding
                .follow(&mut self.table, &mut self.memory.runtimes, &mut self.sensor, now);
            self.walk_deferred(now);
            self.close_if_ready(now)?;
            if now >= next_batch || self.interval.is_crowded() {
                is_quiet = false;
                next_batch = now + self.jittered_interval_ns();
                // Also where the interval goes on since naming is behind.
                self.keep_memory_limit(now);
                self.finish_interval(false)?;
            }
            if is_quiet {
                // After all work of this turn, which the timers see as they see any other.
                self.sensor.draw_periods(!self.nothing_waits());
            }
            if events > 0 {
                std::thread::sleep(EVENT_PAUSE);
                now = sys::monotonic_ns();
            }
        }
        self.finish()
    }

    /// When samples are taken out of the ring before their time, since the kernel side asks for it: the ring fills up,
    /// or stacks wait for what this thread finds out.
    fn early_drain_ns(&self, drained_at: u64) -> Option<u64> {
        let shortest_ns = self.config.drain_every.as_nanos() as u64 / DRAINS_WHEN_WOKEN;
        self.sensor.is_asked_for().then_some(drained_at + shortest_ns)
    }

    /// Between 0.9 and 1.1 intervals.
    fn jittered_interval_ns(&mut self) -> u64 {
        self.random.about(self.config.interval.as_nanos() as u64, 0.1)
    }

    /// True where no other thread makes tables for stacks that wait.
    fn nothing_waits(&self) -> bool {
        self.unwinding.is_settled() && !self.interval.deferred.has_unopened()
    }

    /// True where stacks are about to be left without their tables, or batches without their names.
    fn is_behind(&self, now: u64) -> bool {
        let oldest = self.closing.front();
        oldest.is_some_and(|(_, deadline)| now + HURRY_NS >= *deadline)
            || self.memory.stack_pool.are_crowded()
            || self.naming_is_behind
    }

    /// Takes what is in the ring. Where the interval is about to end, samples from `end_ns` on are the next one's.
    fn drain(&mut self, now: u64, end_ns: Option<u64>) -> Result<(), AgentError> {
        self.sensor.fetch()?;
        // What was mapped before a sample was taken there is known before the sample is looked at.
        let fetched_at = sys::monotonic_ns();
        self.take_events(Duration::ZERO)?;
        self.follow_code(fetched_at);
        self.table.tick(sys::monotonic_ns());
        let Self {
            sensor,
            table,
            interval,
            next,
            memory,
            cpu_budget,
            unwinding,
            drained,
            drained_next,
            lost,
            ..
        } = self;
        let deferred = interval.deferred.len() + next.deferred.len();
        let malformed = sensor.drain(|sample| {
            *drained += 1;
            let is_next = end_ns.is_some_and(|end_ns| sample.time_ns >= end_ns);
            *drained_next += u64::from(is_next);
            let interval = if is_next { &mut *next } else { &mut *interval };
            if !interval.add(&sample, memory, table, cpu_budget, now) {
                *lost.entry(CAUSE_INTERVAL_FULL).or_default() += 1;
            }
        });
        if interval.deferred.len() + next.deferred.len() > deferred {
            unwinding.look_at_stacks();
        }
        if malformed > 0 {
            *drained += malformed;
            *lost.entry(CAUSE_MALFORMED).or_default() += malformed;
        }
        Ok(())
    }

    /// Has what is needed of files that no process maps any more named, and then gives them up.
    fn give_up_files(&mut self, now: u64) {
        let closing = self.closing.iter().map(|(finished, _)| &finished.interval);
        let intervals = closing.chain([&self.interval, &self.next]);
        let waiting = intervals
            .flat_map(|interval| interval.deferred.stops())
            .map(|(key, _)| key);
        let leaving = self.table.take_leaving(waiting, now);
        if leaving.is_empty() {
            return;
        }
        let mut ahead = Ahead {
            degradation: self.degradation,
            ..Ahead::default()
        };
        let closing = self.closing.iter().map(|(finished, _)| &finished.interval);
        for interval in closing.chain([&self.interval, &self.next]) {
            interval.deferred.add_to(&mut ahead, &leaving, &mut self.table, now);
            ahead.add(&interval.stacks, &leaving);
        }
        ahead.add(self.intervals.unnamed(), &leaving);
        ahead.order();
        ahead.leaving = leaving;
        // Otherwise they are given up a few seconds later, and the count of that tells.
        let _ = self.intervals.send_ahead(ahead);
    }

    /// Hands the interval over, unless the naming thread is behind and need not have it now.
    fn finish_interval(&mut self, last: bool) -> Result<(), AgentError> {
        if self.closing.len() >= MAX_CLOSING
            && let Some((_, deadline)) = self.closing.front_mut()
        {
            *deadline = 0;
            self.close_if_ready(sys::monotonic_ns())?;
        }
        if !last && (!self.intervals.has_room() || self.closing.len() >= MAX_CLOSING) {
            tracing::debug!("naming is behind: the interval goes on");
            // Its samples take memory until they have their names.
            self.naming_is_behind = true;
            return Ok(());
        }
        self.naming_is_behind = false;
        let wait_factor = self.tell_sleepers()?;
        // At once: what comes behind the visit is told of CPUs alone, and of programs with the next interval.
        let queued = self.sensor.queued()?;
        let ended = ClockReading::now();
        let now = ended.mono_ns;
        self.drain(now, (!last).then_some(now))?;
        // A sample that was taken while the interval was being ended came after all others, also after the last drain.
        let ended = if last { ClockReading::now() } else { ended };
        if now.saturating_sub(self.aged_ns) >= MEMORY_NS {
            self.aged_ns = now;
            self.memory.age();
        }
        self.settle_ticks()?;
        let counters = self.sensor.counters()?;
        self.table.note_lost_events(counters.events_lost);
        let lost_ring_full = counters.all_lost_ring_full();
        let mut taken = self.drained - self.drained_next + lost_ring_full;
        if last && counters.all_taken() > taken {
            let missing = counters.all_taken() - taken;
            tracing::error!(samples = missing, "the kernel side counted more samples than arrived");
            *self.lost.entry(CAUSE_UNACCOUNTED).or_default() += missing;
            taken = counters.all_taken();
        }
        self.lost.insert(CAUSE_RING_FULL, lost_ring_full);
        let left_out = self.unticked.idle - self.sent_unticked.idle;
        let report = Report {
            cpus: self.cpus,
            cpus_offline: kernel::format_cpu_list(std::mem::take(&mut self.unsampled), MAX_CPU_LIST_BYTES),
            ticks: counters.ticks - self.sent_counters.ticks + left_out,
            idle_ticks: counters.idle_ticks - self.sent_counters.idle_ticks + left_out,
            missed_ticks: self.unticked.missed - self.sent_unticked.missed,
            waits_observed_ns: self.take_observed_ns(now.saturating_sub(self.begun.mono_ns)),
            samples_taken: taken,
            lost: self.lost.clone(),
            limits: self.limits(&counters),
            cpu_seconds: sys::process_cpu_ns() as f64 / 1e9,
            bpf_seconds: counters.bpf_ns as f64 / 1e9,
            rss_bytes: self.sensor.resident_bytes(),
            bpf_map_bytes: self.sensor.map_bytes(),
        };
        let finished = Finished {
            degradation: self.degradation,
            interval: std::mem::replace(&mut self.interval, std::mem::take(&mut self.next)),
            span: Span::between(self.begun, ended),
            frequency_hz: self.config.frequency_hz / self.divisor,
            period_ns: self.period_ns(),
            report,
            run_queues: self.run_queues(queued, wait_factor, now)?,
            wait_factor,
            is_around_schedule: self.sensor.is_around_schedule(),
        };
        let used_seconds = finished.report.cpu_seconds + finished.report.bpf_seconds;
        let seconds = ended.mono_ns.saturating_sub(self.begun.mono_ns) as f64 / 1e9;
        if !last {
            self.keep_cpu_limit(seconds, used_seconds - self.used_seconds)?;
            self.keep_wait_limits(seconds, &counters)?;
        }
        self.used_seconds = used_seconds;
        self.drained_next = 0;
        (self.sent_counters, self.sent_unticked) = (counters, self.unticked);
        self.begun = ended;
        self.cpus = self.sensor.cpus();
        self.closing.push_back((finished, now + CLOSING_NS));
        self.close_if_ready(now)?;
        if let Some((waiting, _)) = self.closing.back() {
            // Handed over it may be much later, and what is in use must not look unused until then.
            self.unwinding.mark_used(waiting.interval.locations(), now);
        }
        Ok(())
    }

    /// Adds what did not come. Only of timers that run: before they are stopped, and at the end of each interval.
    fn settle_ticks(&mut self) -> Result<(), AgentError> {
        for (cpu, Unticked { idle, missed }) in self.sensor.settle_ticks()? {
            self.unticked.idle += idle;
            self.unticked.missed += missed;
            self.ticks_of_cpus.leave_out(cpu, idle);
        }
        Ok(())
    }

    /// By name, what was done less well because a limit was reached; only what happened.
    fn limits(&self, counters: &Counters) -> BTreeMap<Cow<'static, str>, u64> {
        let (table, unwinding) = (self.table.stats(), self.unwinding.stats());
        let (stuck, runtimes) = (stuck_reads(), self.memory.runtimes.stats());
        let all = [
            // Stacks that were left cut, since too many waited for tables at once.
            (
                "stacks_not_copied",
                counters.stacks_not_copied + self.memory.stacks_left,
            ),
            // Stacks that were left cut, since their tables took too long.
            ("tables_late", unwinding.walked_without_table),
            ("tables_without_room", unwinding.no_room),
            ("tables_evicted", unwinding.evicted),
            ("rate_lowered", self.throttled),
            ("burst_rate_lowered", self.bursting.lowered),
            ("burst_processes_left_out", self.bursting.members_left_out),
            ("memory_limit_reached", self.memory_limit_reached),
            ("process_events_lost", counters.events_lost),
            ("mapping_events_lost", counters.mappings_lost),
            ("mapping_events_refused", counters.mappings_refused),
            ("early_looks_skipped", table.early_looks_skipped),
            ("mapping_looks_put_off", table.mapping_looks_put_off),
            ("processes_forgotten", table.forgotten),
            ("files_given_up_unread", table.given_up_unread),
            // Of processes' own files and memory, that did not answer.
            ("reads_abandoned", stuck.abandoned),
            ("reads_refused", stuck.refused),
            ("programs_forgotten", table.programs_forgotten),
            ("kernel_code_forgotten", table.kernel_code_forgotten),
            // No limit is reached here, but names are lacking all the same.
            ("code_replaced", table.code_replaced),
            ("runtime_code_replaced", runtimes.replaced),
            ("runtime_frames_unreadable", runtimes.unreadable),
            ("runtime_frames_put_off", runtimes.put_off),
            ("runtime_frames_put_off_own", runtimes.put_off_own),
            ("runtime_names_forgotten", runtimes.forgotten),
            ("runtime_modules_forgotten", runtimes.tables_forgotten),
            ("runtimes_unknown", runtimes.unknown),
        ];
        let all = all.into_iter().chain(self.waiting.limits(counters));
        let all = all.map(|(name, count)| (Cow::Borrowed(name), count));
        // Once more, by what is wrong with them.
        let unknown = self.memory.runtimes.unknown();
        let unknown = unknown.map(|(reason, count)| (Cow::Owned(format!("runtimes_unknown.{reason}")), count));
        all.filter(|(_, count)| *count > 0).chain(unknown).collect()
    }

    /// Finds out what is to be given up, and gives up what is this thread's, where more memory is used than may be.
    fn keep_memory_limit(&mut self, now: u64) {
        let used_bytes = self.sensor.resident_bytes() + self.sensor.map_bytes();
        self.degradation = self.memory_governor.after(used_bytes);
        if used_bytes > self.config.memory_limit_bytes {
            self.memory_limit_reached += 1;
            tracing::debug!(
                used_bytes,
                frugality = ?self.degradation,
                "more memory is used than --memory-limit allows"
            );
            if self.degradation == DegradationLevel::FewTables {
                self.memory.age();
                self.memory.runtimes.age();
                self.unwinding
                    .give_up_unused(&mut self.table, &self.memory.runtimes, &mut self.sensor, now);
            }
            sys::release_memory();
        }
    }

    /// Changes the rate where the interval that ended used more CPU time than it may, or where there is room again.
    fn keep_cpu_limit(&mut self, seconds: f64, used_seconds: f64) -> Result<(), AgentError> {
        let divisor = self.rate_controller.after(seconds, self.cpus, used_seconds);
        // At least once a second.
        let divisor = divisor.min(self.config.frequency_hz.max(1));
        let has_burst = self.bursting.take_has_run();
        if has_burst && self.rate_controller.is_overdrawn() && self.lower_burst()? {
            self.rate_controller.take_back();
            return Ok(());
        }
        if self.rate_controller.has_room() {
            self.raise_burst()?;
        }
        if divisor == self.divisor {
            return Ok(());
        }
        let frequency_hz = self.config.frequency_hz / divisor;
        if divisor > self.divisor {
            let share = used_seconds / seconds / f64::from(self.cpus.max(1));
            tracing::warn!(
                frequency_hz,
                used_share = format!("{share:.4}"),
                limit_share = self.config.cpu_limit,
                "the agent used more CPU time than --cpu-limit allows: it samples less often"
            );
            self.throttled += 1;
        } else {
            tracing::info!(
                frequency_hz,
                "the agent's CPU time is within --cpu-limit again: it samples more often"
            );
        }
        self.divisor = divisor;
        self.sensor.set_period(self.period_ns());
        Ok(())
    }

    /// What a sample stands for: a multiple of the configured rate's period, so that samples of all rates can be added
    /// up.
    fn period_ns(&self) -> u64 {
        kernel::period_ns(self.config.frequency_hz) * u64::from(self.divisor)
    }

    fn finish(mut self) -> Result<Totals, AgentError> {
        self.stop_burst()?;
        self.settle_ticks()?;
        self.end_waits()?;
        self.sensor.detach_timers();
        self.sensor.detach_waits();
        self.cpu_budget.end();
        self.take_events(Duration::ZERO)?;
        self.finish_interval(true)?;
        while !self.closing.is_empty() {
            std::thread::sleep(STOP_WAIT);
            let now = sys::monotonic_ns();
            self.open_deferred(now);
            self.unwinding
                .follow(&mut self.table, &mut self.memory.runtimes, &mut self.sensor, now);
            self.walk_deferred(now);
            self.close_if_ready(now)?;
        }
        Ok(Totals {
            unwinding: self.unwinding.stats(),
            throttled: self.throttled,
            kernel: self.sensor.counters()?,
            unticked: self.unticked,
            lost: self.lost,
            table: self.table.stats(),
            ..Totals::default()
        })
    }
}
