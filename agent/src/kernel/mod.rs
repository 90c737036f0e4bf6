//! The only room that knows libbpf and the kernel's system calls.
//!
//! In: a sampling rate. Out: samples with raw addresses ([`RawSample`]), process events ([`Event`]), counters
//! ([`Counters`]), clocks. Times are nanoseconds of `CLOCK_MONOTONIC`, start times are clock ticks since boot.
//! It never names an address and never reads another process's files.
#![allow(
    unsafe_code,
    reason = "this is the room for system calls and for the records that BPF programs write"
)]

mod perf;
pub mod preflight;
mod shared;
mod system;
mod tables;
mod walk;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};

pub use perf::{online_cpus, parse_cpu_list};
pub use system::{
    clock_ticks_per_second, monotonic_ns, process_cpu_ns, raise_descriptor_limit, release_memory,
    tune_allocator, wall_ns,
};
pub use tables::Tables;
pub use walk::{HostMemory, so_walk};

#[allow(
    clippy::all,
    missing_debug_implementations,
    unreachable_pub,
    single_use_lifetimes,
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    reason = "generated from bpf/sampler.bpf.c"
)]
mod sampler {
    include!(concat!(env!("OUT_DIR"), "/sampler.skel.rs"));
}
#[allow(
    clippy::all,
    missing_debug_implementations,
    unreachable_pub,
    single_use_lifetimes,
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    reason = "generated from bpf/lifecycle.bpf.c"
)]
mod lifecycle {
    include!(concat!(env!("OUT_DIR"), "/lifecycle.skel.rs"));
}

use lifecycle::types::{so_event, so_event_counters};
use sampler::types::{so_counters, so_sample};

/// What can go wrong between the agent and the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error("cannot load the BPF programs of the {what}: {source}; run as root or with CAP_BPF and CAP_PERFMON")]
    Load {
        what: &'static str,
        source: libbpf_rs::Error,
    },
    #[error("cannot attach to the tracepoint {tracepoint}: {source}; run as root or with CAP_BPF and CAP_PERFMON")]
    Tracepoint {
        tracepoint: &'static str,
        source: libbpf_rs::Error,
    },
    #[error("cannot open the sampling timer of CPU {cpu}: {source}; it needs CAP_PERFMON or root")]
    PerfEvent { cpu: u32, source: std::io::Error },
    #[error("cannot attach the sampler to CPU {cpu}: {source}; it needs CAP_BPF and CAP_PERFMON or root")]
    AttachPerfEvent { cpu: u32, source: libbpf_rs::Error },
    #[error("cannot share the {what} of the unwinder with the kernel: {source}; run as root or with CAP_BPF and CAP_PERFMON")]
    Tables {
        what: &'static str,
        source: libbpf_rs::Error,
    },
    #[error("cannot read {what} from the kernel: {source}")]
    Read {
        what: &'static str,
        source: libbpf_rs::Error,
    },
    #[error("cannot read {path}: {source}")]
    File { path: &'static str, source: std::io::Error },
    #[error("{path} has unexpected content: {content:?}")]
    Content { path: &'static str, content: String },
}

/// Frames of a user stack that are taken.
pub const MAX_USER_FRAMES: usize = 512;
/// In user addresses: code was interrupted there by a signal, it is no return address.
pub const EXACT_ADDRESS: u64 = 1 << 63;

/// How the walk of a user stack ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WalkEnd {
    /// There is no user stack.
    None,
    /// The outermost frame was reached.
    Root,
    /// More frames than the kernel side takes.
    Cut,
    /// It led nowhere.
    Broken,
}

/// Why a walk in user space stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkStop {
    Root,
    Cut,
    Broken,
    /// The last frame's code has no table yet.
    NoTable,
    /// The last frame is in no known mapping.
    NoMapping,
}

/// A walk that the kernel side could not end for want of tables: its state at the last frame, and the stack from there on.
#[derive(Debug, Clone, Copy)]
pub struct LateWalk<'a> {
    pub walk: so_walk,
    pub stack: &'a [u8],
}

/// One sample as the kernel side took it. Addresses are leaf first; all but the first of each stack, and those marked with
/// [`EXACT_ADDRESS`], are return addresses.
#[derive(Debug)]
pub struct RawSample<'a> {
    /// `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    pub cpu: u32,
    /// 0 is the idle task: work of interrupts on a CPU that is otherwise idle.
    pub tgid: u32,
    pub tid: u32,
    /// Start of the process in clock ticks since boot, as in /proc/PID/stat.
    pub start_ticks: u64,
    /// The kernel's count of the execs that led to this program.
    pub exec_id: u32,
    pub cgroup_id: u64,
    /// The thread's name, without its padding.
    pub comm: &'a [u8],
    pub kernel: &'a [u64],
    pub user: &'a [u64],
    pub walk_end: WalkEnd,
    /// Where the user stack goes on, if its tables were not there yet.
    pub late: Option<LateWalk<'a>>,
    pub kernel_thread: bool,
    /// The kernel stack was longer than the kernel gives.
    pub kernel_cut: bool,
}

/// News about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Exec {
        tgid: u32,
        start_ticks: u64,
        exec_id: u32,
    },
    Fork {
        tgid: u32,
        start_ticks: u64,
        exec_id: u32,
        parent_tgid: u32,
        parent_start_ticks: u64,
    },
    Exit {
        tgid: u32,
        start_ticks: u64,
    },
}

/// Sums over all CPUs, cumulative since the programs were loaded. `ticks` = `idle_ticks` + `taken`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub ticks: u64,
    pub idle_ticks: u64,
    pub taken: u64,
    /// Samples that found the ring buffer full.
    pub lost_ring_full: u64,
    /// Process events that found theirs full.
    pub events_lost: u64,
    /// CPU time of the BPF programs.
    pub bpf_ns: u64,
    /// Walks handed over with a copy of the stack.
    pub stacks_copied: u64,
    /// Walks that were left broken since too many stacks had been copied in that second.
    pub stacks_not_copied: u64,
    /// Frames of user stacks that were walked.
    pub frames: u64,
}

#[derive(Default)]
struct Drained {
    headers: Vec<so_sample>,
    addresses: Vec<u64>,
    /// One for each header whose walk is late, and their stacks one after the other.
    late: Vec<so_walk>,
    stacks: Vec<u8>,
    malformed: u64,
}

/// The loaded and attached programs. Dropping it detaches them.
#[allow(missing_debug_implementations, reason = "holds libbpf objects, which have none")]
pub struct Sensor {
    // The order of fields is the order of tear-down: first no more samples, then the readers, then the maps.
    timers: BTreeMap<u32, Link>,
    tracepoints: Vec<Link>,
    sample_ring: RingBuffer<'static>,
    event_ring: RingBuffer<'static>,
    drained: Rc<RefCell<Drained>>,
    events: Rc<RefCell<Vec<Event>>>,
    tables: Tables,
    sampler: sampler::SamplerSkel<'static>,
    lifecycle: lifecycle::LifecycleSkel<'static>,
    period_ns: u64,
    failed_cpus: BTreeMap<u32, String>,
}

/// Nanoseconds between two samples of one CPU.
///
/// A little less than the rate says: the kernel's own clock ticks at 100, 250, 300 or 1,000 Hz, and what it wakes and switches
/// then would be seen by a round rate at the same one or two phases always (every 50 ms are twelve and a half ticks of
/// 4 ms). By one part in 2,503 the phase moves on, through a whole tick every few seconds.
pub fn period_ns(frequency_hz: u32) -> u64 {
    let round = 1_000_000_000 / u64::from(frequency_hz.max(1));
    round - round / 2503
}

/// Bytes of ring buffer for two seconds of fully busy CPUs, at 512 bytes a sample; a power of two. At least a megabyte: while
/// tables are missing, samples carry up to 32 KiB of their stacks.
fn ring_bytes(cpus: usize, frequency_hz: u32) -> u32 {
    let bytes = cpus as u64 * u64::from(frequency_hz) * 2 * 512;
    bytes.next_power_of_two().clamp(1024 * 1024, 16 * 1024 * 1024) as u32
}

impl Sensor {
    /// Loads the programs, listens to process events and starts sampling every CPU that is online.
    /// Tables for user stacks take at most `table_bytes`.
    pub fn start(frequency_hz: u32, table_bytes: u64) -> Result<Self, KernelError> {
        let cpus = online_cpus()?;
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
        open.maps
            .scratch
            .set_max_entries(perf::possible_cpus()?)
            .map_err(loading)?;
        let sampler = open.load().map_err(loading)?;
        let tables = Tables::new(&sampler.maps, table_bytes)?;

        let loading = |source| KernelError::Load {
            what: "process events",
            source,
        };
        let slot: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = lifecycle::LifecycleSkelBuilder::default().open(slot).map_err(loading)?;
        let lifecycle = open.load().map_err(loading)?;

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
        let mut sensor = Self {
            timers: BTreeMap::new(),
            tracepoints,
            sample_ring,
            event_ring,
            drained,
            events,
            tables,
            sampler,
            lifecycle,
            period_ns: period_ns(frequency_hz),
            failed_cpus: BTreeMap::new(),
        };
        for cpu in cpus {
            match sensor.add_cpu(cpu) {
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
        self.timers.len() as u32
    }

    fn add_cpu(&mut self, cpu: u32) -> Result<(), KernelError> {
        let timer =
            perf::open_cpu_clock(cpu, self.period_ns).map_err(|source| KernelError::PerfEvent { cpu, source })?;
        let link = self
            .sampler
            .progs
            .sample
            .attach_perf_event(timer.as_raw_fd())
            .map_err(|source| KernelError::AttachPerfEvent { cpu, source })?;
        // From here on the link owns the descriptor and closes it.
        std::mem::forget(timer);
        self.timers.insert(cpu, link);
        Ok(())
    }

    /// Samples at another rate from now on.
    pub fn set_frequency(&mut self, frequency_hz: u32) -> Result<(), KernelError> {
        self.period_ns = period_ns(frequency_hz);
        self.timers.clear();
        self.follow_hotplug()
    }

    /// Compares the CPUs being sampled with those online: opens timers on new ones, closes those of CPUs that went away.
    /// A CPU that cannot be opened is reported once and tried again at the next call.
    pub fn follow_hotplug(&mut self) -> Result<(), KernelError> {
        let online = online_cpus()?;
        if online.len() == self.timers.len() && online.iter().all(|cpu| self.timers.contains_key(cpu)) {
            return Ok(());
        }
        self.timers.retain(|cpu, _| online.contains(cpu));
        for cpu in online {
            if self.timers.contains_key(&cpu) {
                continue;
            }
            match self.add_cpu(cpu) {
                Ok(()) => {
                    self.failed_cpus.remove(&cpu);
                    tracing::info!(cpu, "sampling a CPU that came online");
                }
                Err(error) => {
                    let message = error.to_string();
                    if self.failed_cpus.insert(cpu, message.clone()).as_ref() != Some(&message) {
                        tracing::warn!(cpu, error = message, "a CPU came online and cannot be sampled");
                    }
                }
            }
        }
        Ok(())
    }

    /// Stops the timers. What is in the ring can still be drained.
    pub fn detach_timers(&mut self) {
        self.timers.clear();
    }

    /// Waits for process events, at most `timeout`, and hands over those that came.
    pub fn wait_events(&mut self, timeout: Duration, mut take: impl FnMut(Event)) -> Result<usize, KernelError> {
        match self.event_ring.poll_raw(timeout) {
            result if result >= 0 || result == -libc::EINTR => {}
            result => {
                let source = libbpf_rs::Error::from_raw_os_error(-result);
                return Err(KernelError::Read {
                    what: "process events",
                    source,
                });
            }
        }
        // Forks and exits wake nobody: they are fetched whenever somebody looks.
        self.event_ring.consume().map_err(|source| KernelError::Read {
            what: "process events",
            source,
        })?;
        // Taken out first, since `take` may run for long and the buffer is the callback's.
        let mut events = self.events.take();
        let count = events.len();
        events.drain(..).for_each(&mut take);
        *self.events.borrow_mut() = events;
        Ok(count)
    }

    /// Hands over all samples in the ring, oldest first. Returns how many records were not understood.
    pub fn drain(&mut self, mut take: impl FnMut(RawSample<'_>)) -> Result<u64, KernelError> {
        self.sample_ring.consume().map_err(|source| KernelError::Read {
            what: "samples",
            source,
        })?;
        let mut drained = self.drained.take();
        let mut rest = drained.addresses.as_slice();
        let (mut walks, mut stacks) = (drained.late.iter(), drained.stacks.as_slice());
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        for header in &drained.headers {
            let (kernel, tail) = rest.split_at(usize::from(header.kernel_frames));
            let (user, tail) = tail.split_at(usize::from(header.user_frames));
            rest = tail;
            let late = if header.walk_end == WALK_NO_TABLE {
                let (stack, tail) = stacks.split_at(usize::from(header.stack_bytes));
                stacks = tail;
                walks.next().map(|walk| LateWalk { walk: *walk, stack })
            } else {
                None
            };
            let comm = header.comm.split(|byte| *byte == 0).next().unwrap_or_default();
            take(RawSample {
                time_ns: header.time_ns,
                cpu: header.cpu,
                tgid: header.tgid,
                tid: header.tid,
                start_ticks: header.start_boottime_ns / tick_ns,
                exec_id: header.exec_id,
                cgroup_id: header.cgroup_id,
                comm,
                kernel,
                user,
                walk_end: match header.walk_end {
                    0 => WalkEnd::None,
                    1 => WalkEnd::Root,
                    2 => WalkEnd::Cut,
                    _ => WalkEnd::Broken,
                },
                late,
                kernel_thread: header.flags & 2 != 0,
                kernel_cut: header.flags & 4 != 0,
            });
        }
        let malformed = std::mem::take(&mut drained.malformed);
        drained.headers.clear();
        drained.addresses.clear();
        drained.late.clear();
        drained.stacks.clear();
        // A burst must not leave a large buffer behind for good.
        drained.headers.shrink_to(1024);
        drained.addresses.shrink_to(16_384);
        drained.late.shrink_to(16);
        drained.stacks.shrink_to(65_536);
        *self.drained.borrow_mut() = drained;
        Ok(malformed)
    }

    /// Sums the counters of all CPUs.
    pub fn counters(&self) -> Result<Counters, KernelError> {
        let mut sum = Counters::default();
        for bytes in read_per_cpu(&self.sampler.maps.counters, "sample counters")? {
            let counters: so_counters = read_record(&bytes).unwrap_or_default();
            sum.ticks += counters.ticks;
            sum.idle_ticks += counters.idle_ticks;
            sum.taken += counters.taken;
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
        Ok(sum)
    }

    /// Bytes that the kernel charges for the maps.
    pub fn map_bytes(&self) -> u64 {
        [
            self.sampler.maps.samples.as_fd(),
            self.sampler.maps.counters.as_fd(),
            self.sampler.maps.scratch.as_fd(),
            self.sampler.maps.slabs.as_fd(),
            self.sampler.maps.rules.as_fd(),
            self.sampler.maps.processes.as_fd(),
            self.sampler.maps.cache.as_fd(),
            self.lifecycle.maps.events.as_fd(),
            self.lifecycle.maps.event_counters.as_fd(),
        ]
        .iter()
        .map(|fd| fd.as_raw_fd())
        .chain(self.tables.map_fds())
        .filter_map(|fd| std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok())
        .filter_map(|info| {
            info.lines()
                .find_map(|line| line.strip_prefix("memlock:")?.trim().parse::<u64>().ok())
        })
        .sum()
    }
}

impl Drop for Sensor {
    fn drop(&mut self) {
        self.timers.clear();
        self.tracepoints.clear();
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

fn read_per_cpu(map: &dyn MapCore, what: &'static str) -> Result<Vec<Vec<u8>>, KernelError> {
    let values = map
        .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|source| KernelError::Read { what, source })?;
    Ok(values.unwrap_or_default())
}

/// `SO_WALK_NO_TABLE` of bpf/abi.h.
const WALK_NO_TABLE: u8 = 4;

/// A record type of the skeletons: plain integers in C layout.
trait Record: Copy {}
impl Record for so_sample {}
impl Record for so_counters {}
impl Record for so_event {}
impl Record for so_event_counters {}

fn read_record<T: Record>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, the read is unaligned, and every bit pattern is a value of a `Record`.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

impl Drained {
    fn push(&mut self, bytes: &[u8]) {
        let Some(header) = read_record::<so_sample>(bytes) else {
            self.malformed += 1;
            return;
        };
        let rest = &bytes[size_of::<so_sample>()..];
        let expected = (usize::from(header.kernel_frames) + usize::from(header.user_frames)) * size_of::<u64>();
        let Some((addresses, rest)) = rest.split_at_checked(expected) else {
            self.malformed += 1;
            return;
        };
        if header.walk_end == WALK_NO_TABLE {
            let stack = rest.get(size_of::<so_walk>()..);
            let stack = stack.and_then(|rest| rest.get(..usize::from(header.stack_bytes)));
            let (Some(walk), Some(stack)) = (read_record::<so_walk>(rest), stack) else {
                self.malformed += 1;
                return;
            };
            self.late.push(walk);
            self.stacks.extend(stack);
        }
        let words = addresses.chunks_exact(size_of::<u64>());
        self.addresses
            .extend(words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())));
        self.headers.push(header);
    }
}

fn parse_event(bytes: &[u8]) -> Option<Event> {
    let event: so_event = read_record(bytes)?;
    let tick_ns = 1_000_000_000 / clock_ticks_per_second();
    let (tgid, exec_id, start_ticks) = (event.tgid, event.exec_id, event.start_boottime_ns / tick_ns);
    Some(match event.kind {
        1 => Event::Exec {
            tgid,
            start_ticks,
            exec_id,
        },
        2 => Event::Fork {
            tgid,
            start_ticks,
            exec_id,
            parent_tgid: event.parent_tgid,
            parent_start_ticks: event.parent_start_boottime_ns / tick_ns,
        },
        3 => Event::Exit { tgid, start_ticks },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kernel: &[u64], user: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<so_sample>()];
        bytes[40..42].copy_from_slice(&(kernel.len() as u16).to_ne_bytes());
        bytes[42..44].copy_from_slice(&(user.len() as u16).to_ne_bytes());
        for address in kernel.iter().chain(user) {
            bytes.extend(address.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn a_record_gives_its_addresses_and_a_short_one_is_counted() {
        let mut drained = Drained::default();
        drained.push(&record(&[1, 2], &[3]));
        let mut cut = record(&[1, 2], &[3]);
        cut.truncate(cut.len() - 8);
        drained.push(&cut);
        drained.push(&[0; 10]);
        assert_eq!(drained.addresses, [1, 2, 3]);
        assert_eq!((drained.headers.len(), drained.malformed), (1, 2));
    }

    #[test]
    fn the_ring_grows_with_cpus_and_rate_within_its_bounds() {
        assert_eq!(ring_bytes(1, 1), 1024 * 1024);
        assert_eq!(ring_bytes(16, 99), 2 * 1024 * 1024);
        assert_eq!(ring_bytes(4096, 1000), 16 * 1024 * 1024);
    }
}
