//! The programs that see threads wait, loaded beside the sampler, whose tables they share.
//!
//! In: the periods of the threads' clocks. Out: records in a ring of their own, and counters. Where the kernel
//! lacks what they need, there are none. `sleepers` completes the records of threads that sleep on, `queues` reads
//! waits for a CPU by their length, `clock` tests what both sides count by.

#[cfg(test)]
mod clock;
mod queues;
mod sleepers;

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link, MapCore, OpenObject};

use super::error::KernelError;
use super::records::{read_per_cpu, read_record};
use super::sample::{Counters, WaitCounters};
use super::skeletons::sampler::SamplerMaps;
use super::skeletons::sampler::types::so_counters;
use super::skeletons::waits;
use super::skeletons::waits::types::so_wait_counters;
use super::tables::charged_bytes;
use crate::sys::monotonic_ns;

/// Bytes that the kernel takes for what it keeps of a thread: `struct so_wait` of bpf/waits.h, with what holds it.
const THREAD_BYTES: u64 = 256;

use queues::Queues;
pub use queues::{AllQueued, Queued};

pub(in crate::kernel) use sleepers::Sleepers;

/// Whether threads are seen to wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Waits {
    /// Wherever the kernel can.
    #[default]
    On,
    /// No hook is loaded.
    Off,
    /// Where a thread can be had to tell its own user stack as it comes back: on x86-64, on arm64 from Linux 6.4 on.
    Auto,
}

/// The loaded programs.
pub(super) struct WaitHooks {
    links: Vec<Link>,
    visit: Link,
    skeleton: waits::WaitsSkel<'static>,
    /// When the present turn began; none between two that are observed.
    turn_ns: Option<u64>,
    is_around_schedule: bool,
    queues: Queues,
    fixed_map_bytes: u64,
}

/// By which a thread tells its own stack; and where it comes back, on kernels without that.
const TASK_WORK: &str = "bpf_task_work_schedule_resume_impl";
const COMES_BACK: &str = "schedule";

/// Who takes the user stack of a wait that has ended, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserStacks {
    /// The thread, before it is in user mode.
    ByTaskWork,
    /// The thread, as it comes back.
    AtReturn,
    /// The thread's next switch.
    AtSwitch,
}

/// True where the kernel has a function of that name for BPF programs.
fn has_function(name: &str) -> bool {
    let types = libbpf_rs::btf::Btf::from_vmlinux();
    types.is_ok_and(|types| types.type_by_name::<libbpf_rs::btf::types::Func<'_>>(name).is_some())
}

impl WaitHooks {
    /// None where `how` says so, or where the kernel lacks what it takes.
    pub(super) fn load(
        how: Waits,
        period_ns: u64,
        maps: &SamplerMaps<'_>,
        ring_bytes: u32,
        possible_cpus: u32,
    ) -> Option<Self> {
        if how == Waits::Off {
            return None;
        }
        let stacks = if has_function(TASK_WORK) {
            UserStacks::ByTaskWork
        } else if has_function(COMES_BACK) {
            UserStacks::AtReturn
        } else {
            UserStacks::AtSwitch
        };
        if how == Waits::Auto && stacks == UserStacks::AtSwitch {
            return None;
        }
        let load = |stacks| Self::try_load(stacks, period_ns, maps, ring_bytes, possible_cpus);
        let loaded = match load(stacks) {
            // A kernel that does not take this one takes the others all the same.
            Err(error) if stacks == UserStacks::AtReturn && how == Waits::On => {
                tracing::info!(%error, "user stacks of waits are taken at the next switch alone");
                load(UserStacks::AtSwitch)
            }
            loaded => loaded,
        };
        let cause = if how == Waits::Auto && stacks == UserStacks::AtReturn {
            "no hook can be put around schedule here; --waits on sees them without it, from Linux 5.18 on"
        } else {
            "it takes Linux 5.18, and CAP_BPF and CAP_PERFMON"
        };
        loaded
            .inspect_err(|error| tracing::warn!(%error, "waits are not seen: {cause}"))
            .ok()
    }

    fn try_load(
        stacks: UserStacks,
        period_ns: u64,
        maps: &SamplerMaps<'_>,
        ring_bytes: u32,
        possible_cpus: u32,
    ) -> Result<Self, KernelError> {
        let loading = |source| KernelError::Load { what: "waits", source };
        // As in `Sensor::start`.
        let slot: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = waits::WaitsSkelBuilder::default().open(slot).map_err(loading)?;
        open.maps.samples.set_max_entries(ring_bytes).map_err(loading)?;
        open.maps.scratch.set_max_entries(possible_cpus).map_err(loading)?;
        open.maps.slabs.reuse_fd(maps.slabs.as_fd()).map_err(loading)?;
        open.maps.rules.reuse_fd(maps.rules.as_fd()).map_err(loading)?;
        open.maps.processes.reuse_fd(maps.processes.as_fd()).map_err(loading)?;
        open.maps.runtimes.reuse_fd(maps.runtimes.as_fd()).map_err(loading)?;
        open.maps.cache.reuse_fd(maps.cache.as_fd()).map_err(loading)?;
        let can_ask = stacks == UserStacks::ByTaskWork;
        open.progs.on_switch.set_autoload(can_ask);
        open.progs.on_switch_old.set_autoload(!can_ask);
        open.progs.on_back.set_autoload(stacks == UserStacks::AtReturn);
        if let Some(data) = open.maps.rodata_data.as_deref_mut() {
            data.proc_namespace = super::events::proc_namespace().unwrap_or(0);
        }
        if let Some(data) = open.maps.data_data.as_deref_mut() {
            (data.period_ns, data.sleeper_period_ns) = (period_ns, period_ns);
        }
        let skeleton = open.load().map_err(loading)?;
        queues::make_room_for_nobody(&skeleton.maps.queues)?;
        let fixed = [
            skeleton.maps.samples.as_fd(),
            skeleton.maps.counters.as_fd(),
            skeleton.maps.scratch.as_fd(),
            skeleton.maps.wait_counters.as_fd(),
            skeleton.maps.queues_of_cpus.as_fd(),
            skeleton.maps.pending.as_fd(),
            skeleton.maps.visits.as_fd(),
        ];
        let fixed_map_bytes = fixed.into_iter().map(charged_bytes).sum();
        let attach = |program: &libbpf_rs::ProgramMut<'_>, tracepoint| {
            program
                .attach()
                .map_err(|source| KernelError::Tracepoint { tracepoint, source })
        };
        let mut links = vec![
            // Ends first, so that what is begun from now on is also ended.
            attach(&skeleton.progs.on_end, "sched_process_exit")?,
            attach(&skeleton.progs.on_new, "sched_wakeup_new")?,
            attach(&skeleton.progs.on_wakeup, "sched_wakeup")?,
            attach(&skeleton.progs.on_waking, "sched_waking")?,
            if can_ask {
                attach(&skeleton.progs.on_switch, "sched_switch")?
            } else {
                attach(&skeleton.progs.on_switch_old, "sched_switch")?
            },
        ];
        if stacks == UserStacks::AtReturn {
            links.push(attach(&skeleton.progs.on_back, COMES_BACK)?);
        }
        let visit = attach(&skeleton.progs.visit, "iter/task")?;
        let mut hooks = Self {
            links,
            visit,
            skeleton,
            turn_ns: None,
            is_around_schedule: stacks == UserStacks::AtReturn,
            queues: Queues::default(),
            fixed_map_bytes,
        };
        hooks.begin_turn()?;
        Ok(hooks)
    }

    pub(super) fn samples(&self) -> &dyn MapCore {
        &self.skeleton.maps.samples
    }

    /// True where threads go through a hook of the agent to `schedule`, or went before it was detached.
    pub(super) fn is_around_schedule(&self) -> bool {
        self.is_around_schedule
    }

    /// Has the kernel look at all threads. Those whose clock has passed a point are in the ring afterwards.
    fn visit(&mut self) -> Result<(), KernelError> {
        self.set_visiting(true);
        let visited = self.look_at_threads();
        self.set_visiting(false);
        visited
    }

    fn look_at_threads(&self) -> Result<(), KernelError> {
        let reading = |source| KernelError::Read {
            what: "threads that wait",
            source,
        };
        let mut threads = Iter::new(&self.visit).map_err(reading)?;
        std::io::copy(&mut threads, &mut std::io::sink()).map_err(|error| reading(error.into()))?;
        Ok(())
    }

    fn set_visiting(&mut self, is_visiting: bool) {
        if let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() {
            data.visiting = u64::from(is_visiting);
        }
    }

    /// From now on waits are observed, and now is when. Threads that wait already are found.
    pub(super) fn begin_turn(&mut self) -> Result<u64, KernelError> {
        let now_ns = monotonic_ns();
        if self.turn_ns.is_some() {
            return Ok(now_ns);
        }
        self.turn_ns = Some(now_ns);
        if let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() {
            (data.visit_turn_ns, data.visit_until_ns, data.visited_ns) = (now_ns, 0, 0);
            data.turn_ns = now_ns;
        }
        self.visit()?;
        self.set_visited(monotonic_ns());
        Ok(now_ns)
    }

    /// Between the begin and the end of a turn: tells of who sleeps on.
    pub(super) fn visit_between(&mut self) -> Result<(), KernelError> {
        if self.turn_ns.is_some() {
            let now_ns = monotonic_ns();
            self.visit()?;
            self.set_visited(now_ns);
        }
        Ok(())
    }

    /// Tells of who waits, up to now, which is returned; what is waited from now on is not seen.
    pub(super) fn end_turn(&mut self) -> Result<u64, KernelError> {
        let now_ns = monotonic_ns();
        if self.turn_ns.take().is_none() {
            return Ok(now_ns);
        }
        if let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() {
            data.turn_ns = 0;
            data.visit_until_ns = now_ns;
        }
        self.visit()?;
        Ok(now_ns)
    }

    /// What a sample is to stand for of a thread that ran since the last visit, and of one that did not.
    pub(super) fn set_periods(&mut self, (period_ns, sleeper_period_ns): (u64, u64)) {
        if let Some(data) = self.skeleton.maps.data_data.as_deref_mut() {
            (data.period_ns, data.sleeper_period_ns) = (period_ns, sleeper_period_ns);
        }
    }

    fn set_visited(&mut self, now_ns: u64) {
        if let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() {
            data.visited_ns = now_ns;
        }
    }

    /// No more waits are seen.
    pub(super) fn detach(&mut self) {
        self.links.clear();
    }

    /// Waits for a CPU that have ended since the last call, up to the last visit: of programs, and of each CPU.
    pub(super) fn queued(&mut self) -> Result<AllQueued, KernelError> {
        let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() else {
            return Ok(AllQueued::default());
        };
        let interval = data.queue_interval;
        let cpus = self.queues.read_cpus(&self.skeleton.maps.queues_of_cpus, interval)?;
        let (programs, removed) = self.queues.read(&self.skeleton.maps.queues, interval)?;
        // Afterwards: what is longest begins anew with it.
        data.queue_interval += 1;
        data.queues_removed += removed;
        Ok(AllQueued { programs, cpus })
    }

    /// Also adds to what is counted of stacks.
    pub(super) fn counters(&self, stacks: &mut Counters) -> Result<WaitCounters, KernelError> {
        let mut sum = WaitCounters::default();
        for bytes in read_per_cpu(&self.skeleton.maps.wait_counters, "counters of waits")? {
            let counters: so_wait_counters = read_record(&bytes).unwrap_or_default();
            sum.switches += counters.switches;
            sum.taken += counters.taken;
            sum.lost_ring_full += counters.lost_ring_full;
            sum.stacks_moved += counters.stacks_moved;
            sum.wakers_left_out += counters.wakers_left_out;
            sum.stacks_refused += counters.stacks_refused;
            sum.threads_left_out += counters.threads_left_out;
            sum.queues_left_out += counters.queues_left_out;
            sum.queues_without_cpu += counters.queues_without_cpu;
            sum.sleepers += counters.sleepers;
            sum.sleepers_told += counters.sleepers_told;
            sum.bpf_ns += counters.run_ns;
        }
        for bytes in read_per_cpu(&self.skeleton.maps.counters, "counters of waits")? {
            let counters: so_counters = read_record(&bytes).unwrap_or_default();
            stacks.frames += counters.frames;
            stacks.stacks_copied += counters.stacks_copied;
            stacks.stacks_not_copied += counters.stacks_not_copied;
        }
        stacks.bpf_ns += sum.bpf_ns;
        Ok(sum)
    }

    /// Bytes that the kernel charges for the maps.
    pub(super) fn map_bytes(&self) -> u64 {
        let threads = self.skeleton.maps.bss_data.as_deref().map_or(0, |data| data.threads);
        self.fixed_map_bytes + threads * THREAD_BYTES + self.queues.map_bytes()
    }
}
