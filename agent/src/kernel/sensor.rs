//! The loaded and attached programs, and what they have to tell.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, OpenObject, RingBuffer, RingBufferBuilder};

use super::error::KernelError;
use super::events::{self, Event, parse_event};
use super::mappings::{Mappings, Waker};
use super::perf::{self, CpuList};
use super::programs::loaded_programs;
use super::records::{Drained, read_per_cpu, read_record};
use super::sample::{Counters, RawSample};
use super::skeletons::lifecycle::types::so_event_counters;
use super::skeletons::sampler::types::so_counters;
use super::skeletons::{lifecycle, sampler};
use super::tables::{Tables, charged_bytes, shared_bytes};
use super::timers::{Burst, Bursts, Timers, Unticked};
use super::waits::{AllQueued, Sleepers, WaitHooks, Waits};
use crate::frames::CpuTicks;
use crate::sys::{self, monotonic_ns};

/// The loaded and attached programs. Dropping it detaches them.
#[allow(missing_debug_implementations, reason = "holds libbpf objects, which have none")]
pub struct Sensor {
    // The order of fields is the order of tear-down: first no more samples, then the readers, then the maps.
    timers: Timers,
    bursts: Bursts,
    tracepoints: Vec<Link>,
    sample_ring: RingBuffer<'static>,
    /// None where waits are not seen.
    waits: Option<(WaitHooks, RingBuffer<'static>)>,
    sleepers: Sleepers,
    mappings: Mappings,
    event_ring: RingBuffer<'static>,
    drained: Rc<RefCell<Drained>>,
    events: Rc<RefCell<Vec<Event>>>,
    tables: Tables,
    sampler: sampler::SamplerSkel<'static>,
    lifecycle: lifecycle::LifecycleSkel<'static>,
    fixed_map_bytes: u64,
    ring_mapping_bytes: u64,
    online: CpuList,
    present: CpuList,
    is_asked_for: bool,
    /// The ids of new mappings are those of the agent's /proc.
    ids_are_of_proc: bool,
}

/// What a tick stands for: nanoseconds between two of one CPU, in the mean.
pub fn period_ns(frequency_hz: u32) -> u64 {
    1_000_000_000 / u64::from(frequency_hz.max(1))
}

/// Bytes of ring buffer for two seconds of fully busy CPUs, at 512 bytes a sample; a power of two. At least a megabyte:
/// while tables are missing, samples carry up to 32 KiB of their stacks.
fn ring_bytes(cpus: usize, frequency_hz: u32) -> u32 {
    let bytes = cpus as u64 * u64::from(frequency_hz) * 2 * 512;
    bytes.next_power_of_two().clamp(1024 * 1024, 16 * 1024 * 1024) as u32
}

impl Sensor {
    /// Loads the programs, listens to process events and starts sampling every CPU that is online.
    /// Tables for user stacks take at most `table_bytes`. A sample of a thread that waits stands for
    /// `wait_period_ns` at least.
    pub fn start(frequency_hz: u32, table_bytes: u64, waits: Waits, wait_period_ns: u64) -> Result<Self, KernelError> {
        let (online, present) = (CpuList::online()?, CpuList::present()?);
        let cpus = online.now()?;
        let possible_cpus = perf::possible_cpus()?;
        let loading = |source| KernelError::Load {
            what: "sampler",
            source,
        };
        // The skeleton refers to this slot for as long as it lives, which is the agent's whole life: it is never freed.
        let slot: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = sampler::SamplerSkelBuilder::default().open(slot).map_err(loading)?;
        open.maps
            .samples
            .set_max_entries(ring_bytes(cpus.len(), frequency_hz))
            .map_err(loading)?;
        open.maps.scratch.set_max_entries(possible_cpus).map_err(loading)?;
        open.maps.bursts.set_max_entries(possible_cpus).map_err(loading)?;

        let loading = |source| KernelError::Load {
            what: "process events",
            source,
        };
        let slot: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open_lifecycle = lifecycle::LifecycleSkelBuilder::default().open(slot).map_err(loading)?;
        events::set_proc_namespace(&mut open, &mut open_lifecycle);
        let lifecycle = open_lifecycle.load().map_err(loading)?;
        let sampler = open.load().map_err(|source| KernelError::Load {
            what: "sampler",
            source,
        })?;
        let tables = Tables::new(&sampler.maps, table_bytes)?;

        let drained = Rc::new(RefCell::new(Drained::default()));
        let events = Rc::new(RefCell::new(Vec::new()));
        let sample_ring = {
            let drained = Rc::clone(&drained);
            ring(&sampler.maps.samples, "the sample ring", move |bytes| {
                drained.borrow_mut().push(bytes)
            })?
        };
        let event_ring = {
            let events = Rc::clone(&events);
            ring(&lifecycle.maps.events, "the event ring", move |bytes| {
                events.borrow_mut().extend(parse_event(bytes))
            })?
        };
        let mut mappings = Mappings::new(event_ring.epoll_fd(), sample_ring.epoll_fd()).map_err(KernelError::Wait)?;
        // Before there are hooks: which code the kernel makes for them is told, too.
        mappings.follow(&cpus);
        let bytes = ring_bytes(cpus.len(), frequency_hz);
        let waits = WaitHooks::load(waits, wait_period_ns, &sampler.maps, bytes, possible_cpus);
        let waits = match waits {
            Some(hooks) => {
                let drained = Rc::clone(&drained);
                let ring = ring(hooks.samples(), "the ring of waits", move |bytes| {
                    drained.borrow_mut().push_wait(bytes)
                })?;
                mappings
                    .wait_also_for_samples(ring.epoll_fd())
                    .map_err(KernelError::Wait)?;
                Some((hooks, ring))
            }
            None => None,
        };

        let mut tracepoints = Vec::new();
        for (program, tracepoint) in [
            (&lifecycle.progs.on_fork, "sched_process_fork"),
            (&lifecycle.progs.on_exec, "sched_process_exec"),
            (&lifecycle.progs.on_exit, "sched_process_exit"),
        ] {
            let link = program
                .attach_raw_tracepoint(tracepoint)
                .map_err(|source| KernelError::Tracepoint { tracepoint, source })?;
            tracepoints.push(link);
        }
        tracepoints.extend(events::follow_groups(&lifecycle));
        if tracing::enabled!(tracing::Level::DEBUG) {
            for program in loaded_programs() {
                tracing::debug!(?program, "loaded");
            }
        }
        let mut sensor = Self {
            timers: Timers::new(period_ns(frequency_hz), possible_cpus),
            bursts: Bursts::new(),
            tracepoints,
            sample_ring,
            waits,
            sleepers: Sleepers::default(),
            mappings,
            event_ring,
            drained,
            events,
            tables,
            fixed_map_bytes: fixed_map_bytes(&sampler, &lifecycle),
            ring_mapping_bytes: sys::mapped_map_bytes().saturating_sub(shared_bytes()),
            sampler,
            lifecycle,
            online,
            present,
            is_asked_for: false,
            ids_are_of_proc: events::events_have_ids_of_proc(),
        };
        for cpu in cpus {
            match sensor.timers.add(cpu, &sensor.sampler.progs.sample, &[]) {
                // A CPU that went away since the list was read is no reason to give up.
                Err(KernelError::PerfEvent { source, .. }) if source.raw_os_error() == Some(libc::ENODEV) => {}
                other => other?,
            }
        }
        Ok(sensor)
    }

    /// What user stacks are walked by.
    pub fn tables(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// Number of CPUs that are being sampled.
    pub fn cpus(&self) -> u32 {
        self.timers.count()
    }

    /// Samples at another rate from now on: ticks of a CPU are so many nanoseconds apart, in the mean.
    pub fn set_period(&mut self, period_ns: u64) {
        self.timers.set_mean(period_ns, monotonic_ns());
    }

    /// Draws the periods of the timers anew where it is time. Nothing that works in step with these calls may work
    /// right after them: `has_woken` says that something will.
    pub fn draw_periods(&mut self, has_woken: bool) {
        self.timers.draw(monotonic_ns(), has_woken);
        self.bursts.draw();
    }

    /// Looks at some CPUs more closely: until `until_ns` the samples that are taken there stand for `period_ns`, of all
    /// threads, or of some of them, perhaps of the processes of [`Self::set_burst_members`] alone. All others are
    /// sampled as ever. Returns when that begins.
    pub fn begin_burst(&mut self, burst: &Burst<'_>) -> Result<u64, KernelError> {
        self.bursts.begin(burst, &self.sampler)
    }

    /// Ends that before its time, and stops its timers in any case.
    pub fn end_burst(&mut self) -> Result<(), KernelError> {
        self.bursts.end(&self.sampler)
    }

    /// Which processes a burst is at that is not at all of them, by their ids in samples. Says for how many there was
    /// no room.
    pub fn set_burst_members(&mut self, tgids: &BTreeSet<u32>) -> Result<u64, KernelError> {
        self.bursts.set_members(tgids, &self.sampler)
    }

    /// Compares the CPUs being sampled with those online: opens timers on new ones and on those that were off for a
    /// moment, closes those of CPUs that went away. A CPU that cannot be opened is reported once and tried again at the
    /// next call. Returns the CPUs of this machine that were not sampled since the last call.
    pub fn follow_hotplug(&mut self) -> Result<BTreeSet<u32>, KernelError> {
        let (online, now_ns) = (self.online.now()?, monotonic_ns());
        let ticks = self.ticks()?;
        let mut off = self.timers.take_dead(&ticks, now_ns);
        self.mappings.forget(&off);
        self.mappings.follow(&online);
        self.timers.retain(&online, now_ns);
        for cpu in online {
            if self.timers.has(cpu) {
                continue;
            }
            match self.timers.add(cpu, &self.sampler.progs.sample, &ticks) {
                Ok(()) => tracing::info!(cpu, "sampling a CPU that came online"),
                Err(error) => {
                    let message = error.to_string();
                    if self.timers.note_failure(cpu, &message) {
                        tracing::warn!(cpu, error = message, "an online CPU cannot be sampled");
                    }
                }
            }
        }
        off.extend(self.unsampled_cpus()?);
        self.bursts.forget(&off, &self.sampler)?;
        Ok(off)
    }

    /// CPUs of this machine that are not sampled at present: they are off, or the kernel refused.
    pub fn unsampled_cpus(&self) -> Result<BTreeSet<u32>, KernelError> {
        let mut present = self.present.now()?;
        present.retain(|cpu| !self.timers.has(*cpu));
        Ok(present.into_iter().collect())
    }

    /// Ticks that did not come since the last call, though they were due, of each CPU by its number.
    pub fn settle_ticks(&mut self) -> Result<BTreeMap<u32, Unticked>, KernelError> {
        let ticks = self.ticks()?;
        Ok(self.timers.settle(&ticks, monotonic_ns()))
    }

    /// What the usual timers have counted since the start, of each CPU by its number.
    pub fn ticks(&self) -> Result<Vec<CpuTicks>, KernelError> {
        let counters = read_per_cpu(&self.sampler.maps.counters, "sample counters")?;
        let ticks = counters.iter().map(|bytes| {
            let counters: so_counters = read_record(bytes).unwrap_or_default();
            CpuTicks {
                ticks: counters.ticks,
                idle_ticks: counters.idle_ticks,
            }
        });
        Ok(ticks.collect())
    }

    /// Stops the timers. What is in the ring can still be drained.
    pub fn detach_timers(&mut self) {
        self.bursts.clear();
        self.timers.clear();
    }

    /// True where every new executable mapping is told as [`Event::Map`], but for those that are counted as lost.
    pub fn tells_mappings(&self) -> bool {
        self.mappings.are_told() && self.ids_are_of_proc
    }

    /// True where every BPF program that comes or goes is told as [`Event::Code`], but for those that are counted as
    /// lost.
    pub fn tells_code(&self) -> bool {
        self.mappings.are_told()
    }

    /// How many records of new mappings and of code were lost.
    pub fn mappings_lost(&self) -> u64 {
        self.mappings.lost()
    }

    /// Ends [`Self::wait_events`] before its time.
    pub fn waker(&self) -> Waker {
        self.mappings.waker()
    }

    /// Waits for process events, at most `timeout`, and hands over those that came, mappings first.
    pub fn wait_events(&mut self, timeout: Duration, mut take: impl FnMut(Event)) -> Result<usize, KernelError> {
        self.is_asked_for |= self.mappings.wait(timeout).map_err(KernelError::Wait)?;
        // Forks and exits wake nobody: they are fetched whenever somebody looks.
        self.event_ring.consume().map_err(|source| KernelError::Read {
            what: "process events",
            source,
        })?;
        // Taken out first, since `take` may run for long and the buffer is the callback's.
        let mut events = self.events.take();
        // Fetched last and handed over first: what a process mapped is known before the fork that gives it to a child.
        let count = self.mappings.take(&mut take) + events.len();
        events.drain(..).for_each(&mut take);
        *self.events.borrow_mut() = events;
        Ok(count)
    }

    /// True where samples should be fetched soon: they take a part of the ring, or have deferred stacks.
    pub fn is_asked_for(&self) -> bool {
        self.is_asked_for
    }

    /// Takes all samples out of the ring, for [`Self::drain`]. What led to them is among the events from now on.
    pub fn fetch(&mut self) -> Result<(), KernelError> {
        self.is_asked_for = false;
        self.sample_ring.consume().map_err(|source| KernelError::Read {
            what: "samples",
            source,
        })?;
        if let Some((_, ring)) = &self.waits {
            ring.consume()
                .map_err(|source| KernelError::Read { what: "waits", source })?;
            self.sleepers.complete(&mut self.drained.borrow_mut(), &mut self.tables);
        }
        Ok(())
    }

    /// Has the threads told that sleep on: their samples are among those that are fetched next. `periods_ns` are what a
    /// sample is to stand for until the next call, of a thread that runs between the two, and of one that does not.
    pub fn visit_sleepers(&mut self, periods_ns: (u64, u64)) -> Result<(), KernelError> {
        let Some((hooks, _)) = &mut self.waits else {
            return Ok(());
        };
        hooks.set_periods(periods_ns);
        hooks.visit_between()
    }

    /// Begins or ends a turn in which waits are observed, where that is not so already. Gives the moment of that.
    pub fn observe_waits(&mut self, is_observed: bool) -> Result<u64, KernelError> {
        match &mut self.waits {
            Some((hooks, _)) if is_observed => hooks.begin_turn(),
            Some((hooks, _)) => hooks.end_turn(),
            None => Ok(monotonic_ns()),
        }
    }

    /// Whether threads are seen to wait, in some turns at least.
    pub fn sees_waits(&self) -> bool {
        self.waits.is_some()
    }

    /// Whether a hook of the agent is around `schedule`, so that what leads to it is in kernel stacks.
    pub fn is_around_schedule(&self) -> bool {
        self.waits.as_ref().is_some_and(|(hooks, _)| hooks.is_around_schedule())
    }

    /// CPU time that went into seeing threads wait, since the start.
    pub fn waits_bpf_ns(&self) -> Result<u64, KernelError> {
        let hooks = self.waits.as_ref().map(|(hooks, _)| hooks);
        hooks.map_or(Ok(0), |hooks| Ok(hooks.counters(&mut Counters::default())?.bpf_ns))
    }

    /// Waits for a CPU that have ended since the last call, counted by programs and by CPUs.
    pub fn queued(&mut self) -> Result<AllQueued, KernelError> {
        let hooks = self.waits.as_mut().map(|(hooks, _)| hooks);
        hooks.map_or(Ok(AllQueued::default()), WaitHooks::queued)
    }

    /// No more waits are seen but by [`Self::visit_sleepers`].
    pub fn detach_waits(&mut self) {
        if let Some((hooks, _)) = &mut self.waits {
            hooks.detach();
        }
    }

    /// Hands over all samples that were fetched, oldest first. Returns how many records were not understood.
    pub fn drain(&mut self, mut take: impl FnMut(RawSample<'_>)) -> u64 {
        let mut drained = self.drained.take();
        drained.samples(&mut take);
        let malformed = std::mem::take(&mut drained.malformed);
        drained.headers.clear();
        drained.parts.clear();
        drained.woken.clear();
        drained.addresses.clear();
        drained.deferred.clear();
        drained.stacks.clear();
        // A burst must not leave a large buffer behind for good.
        drained.headers.shrink_to(1024);
        drained.parts.shrink_to(1024);
        drained.woken.shrink_to(1024);
        drained.addresses.shrink_to(16_384);
        drained.deferred.shrink_to(16);
        drained.stacks.shrink_to(65_536);
        *self.drained.borrow_mut() = drained;
        malformed
    }

    /// Sums the counters of all CPUs.
    pub fn counters(&self) -> Result<Counters, KernelError> {
        let mut sum = Counters::default();
        for bytes in read_per_cpu(&self.sampler.maps.counters, "sample counters")? {
            let counters: so_counters = read_record(&bytes).unwrap_or_default();
            sum.ticks += counters.ticks;
            sum.idle_ticks += counters.idle_ticks;
            sum.left_to_burst += counters.left_to_burst;
            sum.taken += counters.taken;
            sum.burst_taken += counters.burst_taken;
            sum.lost_ring_full += counters.lost_ring_full;
            sum.bpf_ns += counters.run_ns;
            sum.stacks_copied += counters.stacks_copied;
            sum.stacks_not_copied += counters.stacks_not_copied;
            sum.frames += counters.frames;
        }
        for bytes in read_per_cpu(&self.lifecycle.maps.event_counters, "event counters")? {
            let counters: so_event_counters = read_record(&bytes).unwrap_or_default();
            sum.events_lost += counters.lost_ring_full;
            sum.bpf_ns += counters.run_ns;
        }
        if let Some((hooks, _)) = &self.waits {
            sum.waits = hooks.counters(&mut sum)?;
            sum.waits.stacks_moved += self.sleepers.moved;
        }
        sum.mappings_lost = self.mappings.lost();
        sum.mappings_refused = self.mappings.refused();
        Ok(sum)
    }

    /// Memory of this process in bytes, without [`Self::map_bytes`]: what is resident, but for maps that are mapped
    /// here, of which the kernel counts the rings even twice, and [`sys::MemoryFile`]s.
    pub fn resident_bytes(&self) -> u64 {
        let mapped = self.ring_mapping_bytes + shared_bytes();
        sys::resident_bytes().saturating_sub(mapped) + sys::memory_file_bytes()
    }

    /// Bytes that the kernel charges for the maps, and the rings of new mappings.
    pub fn map_bytes(&self) -> u64 {
        let waits = self.waits.as_ref().map_or(0, |(hooks, _)| hooks.map_bytes());
        self.fixed_map_bytes + waits + self.tables.slab_bytes() + self.mappings.bytes()
    }
}

/// Bytes that the kernel charges for the maps that are made once, in their full size.
fn fixed_map_bytes(sampler: &sampler::SamplerSkel<'_>, lifecycle: &lifecycle::LifecycleSkel<'_>) -> u64 {
    let maps = [
        sampler.maps.samples.as_fd(),
        sampler.maps.counters.as_fd(),
        sampler.maps.scratch.as_fd(),
        sampler.maps.slabs.as_fd(),
        sampler.maps.rules.as_fd(),
        sampler.maps.processes.as_fd(),
        sampler.maps.cache.as_fd(),
        sampler.maps.bursts.as_fd(),
        sampler.maps.burst_members.as_fd(),
        sampler.maps.burst_names.as_fd(),
        sampler.maps.burst_tids.as_fd(),
        lifecycle.maps.events.as_fd(),
        lifecycle.maps.event_counters.as_fd(),
        lifecycle.maps.told.as_fd(),
    ];
    maps.into_iter().map(charged_bytes).sum()
}

impl Drop for Sensor {
    fn drop(&mut self) {
        self.bursts.clear();
        self.timers.clear();
        self.tracepoints.clear();
        self.detach_waits();
    }
}

fn ring(
    map: &dyn MapCore,
    what: &'static str,
    mut take: impl FnMut(&[u8]) + 'static,
) -> Result<RingBuffer<'static>, KernelError> {
    let reading = |source| KernelError::Read { what, source };
    let mut builder = RingBufferBuilder::new();
    builder
        .add(map, move |bytes| {
            take(bytes);
            0
        })
        .map_err(reading)?;
    builder.build().map_err(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_grows_with_cpus_and_rate_within_its_bounds() {
        assert_eq!(ring_bytes(1, 1), 1024 * 1024);
        assert_eq!(ring_bytes(16, 99), 2 * 1024 * 1024);
        assert_eq!(ring_bytes(4096, 1000), 16 * 1024 * 1024);
    }
}
