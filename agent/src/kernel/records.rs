//! The records of the ring buffers, and of maps.

use libbpf_rs::{MapCore, MapFlags};

use super::error::KernelError;
use super::skeletons::lifecycle::types::{so_event, so_event_counters};
use super::skeletons::sampler::types::{so_counters, so_sample, so_walk};
use super::skeletons::waits::types::{so_queue, so_queue_key, so_queue_lengths, so_wait_counters, so_waited, so_woken};

use super::sample::{DeferredWalk, LEAF_FRAMES, MAX_USER_FRAMES, RawSample, WalkEnd, Woken};
use crate::frames::{ProgramKey, SampleKind, WaitState};
use crate::sys::clock_ticks_per_second;

#[derive(Default)]
pub(super) struct Drained {
    pub(super) headers: Vec<so_sample>,
    /// One for each header.
    pub(super) parts: Vec<Part>,
    pub(super) addresses: Vec<u64>,
    /// One for each header whose walk is deferred, and their stacks one after the other.
    pub(super) deferred: Vec<so_walk>,
    pub(super) stacks: Vec<u8>,
    /// One for each header that is of who ended a wait: whose.
    pub(super) woken: Vec<so_woken>,
    pub(super) malformed: u64,
    /// Samples of threads that sleep on, whose user stacks are to be read.
    pub(super) asleep: Vec<Asleep>,
}

/// What of a record a sample is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: SampleKind,
    /// Nanoseconds that it stands for.
    pub(super) value_ns: u64,
    /// How long the wait itself was.
    pub(super) wait_ns: u64,
}

/// A sample of a thread that was found asleep, without its user stack but for the first frame.
#[derive(Clone)]
pub(super) struct Asleep {
    pub(super) waited: so_waited,
    pub(super) header: so_sample,
    /// Of the kernel, and then the first user frame.
    pub(super) words: Vec<u64>,
    pub(super) walk: so_walk,
}

/// `SO_SAMPLE_KERNEL_THREAD` of bpf/abi.h.
pub(super) const KERNEL_THREAD: u32 = 2;
/// `SO_WALK_NO_TABLE` of bpf/abi.h.
pub(super) const WALK_NO_TABLE: u8 = 4;
/// `SO_WALK_ASLEEP` of bpf/abi.h.
const WALK_ASLEEP: u8 = 5;
/// `SO_WAIT_NEW` and `SO_WAIT_ENDED` of bpf/abi.h, and the kernel's bits of a task's state (include/linux/sched.h).
const WAIT_NEW: u32 = 0x10000;
const WAIT_ENDED: u32 = 0x40000;
const TASK_INTERRUPTIBLE: u32 = 1;
const TASK_UNINTERRUPTIBLE: u32 = 2;
const TASK_STOPPED_OR_TRACED: u32 = 4 | 8;
const TASK_NOLOAD: u32 = 0x400;

/// A record type of the skeletons: plain integers in C layout.
pub(super) trait Record: Copy {}
impl Record for so_sample {}
impl Record for so_counters {}
impl Record for so_waited {}
impl Record for so_wait_counters {}
impl Record for so_queue {}
impl Record for so_queue_key {}
impl Record for so_queue_lengths {}
impl Record for so_event {}
impl Record for so_event_counters {}

pub(super) fn read_record<T: Record>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, the read is unaligned, and every bit pattern is a value of a `Record`.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The one value of a map, of each CPU by its number.
pub(super) fn read_per_cpu(map: &dyn MapCore, what: &'static str) -> Result<Vec<Vec<u8>>, KernelError> {
    let values = map
        .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|source| KernelError::Read { what, source })?;
    Ok(values.unwrap_or_default())
}

/// User frames that are in a record.
fn kept_frames(header: &so_sample) -> usize {
    usize::from(header.user_frames).min(MAX_USER_FRAMES)
}

fn state_of(bits: u32) -> WaitState {
    if bits & TASK_INTERRUPTIBLE != 0 {
        WaitState::Sleeping
    } else if bits & TASK_UNINTERRUPTIBLE != 0 {
        if bits & TASK_NOLOAD != 0 {
            WaitState::Idle
        } else {
            WaitState::Uninterruptible
        }
    } else if bits & TASK_STOPPED_OR_TRACED != 0 {
        WaitState::Stopped
    } else {
        WaitState::Other
    }
}

/// 0, not known, where the kernel side read a wait that began anew meanwhile.
fn own_length(ns: u64) -> u64 {
    if i64::try_from(ns).is_ok() { ns } else { 0 }
}

/// The samples that a wait gives: one of each time that is not 0.
pub(super) fn parts_of(waited: &so_waited) -> impl Iterator<Item = Part> + use<> {
    let runnable = match waited.state {
        WAIT_NEW => WaitState::New,
        0 => WaitState::Preempted,
        _ => WaitState::Woken,
    };
    let asleep = state_of(waited.state);
    let parts = [
        Part {
            kind: match waited.state & WAIT_ENDED {
                0 => SampleKind::OffCpu(asleep),
                _ => SampleKind::WakeUp(asleep),
            },
            value_ns: waited.off_cpu_ns,
            wait_ns: own_length(waited.asleep_ns),
        },
        Part {
            kind: SampleKind::RunQueue(runnable),
            value_ns: waited.run_queue_ns,
            wait_ns: own_length(waited.queued_ns),
        },
    ];
    parts.into_iter().filter(|part| part.value_ns > 0)
}

impl Drained {
    /// A record of a wait, which may be two samples.
    pub(super) fn push_wait(&mut self, bytes: &[u8]) {
        let rest = bytes.get(size_of::<so_waited>()..).unwrap_or_default();
        let (Some(waited), Some(header)) = (read_record::<so_waited>(bytes), read_record::<so_sample>(rest)) else {
            self.malformed += 1;
            return;
        };
        if header.walk_end == WALK_ASLEEP {
            match asleep(waited, header, &rest[size_of::<so_sample>()..]) {
                Some(asleep) => self.asleep.push(asleep),
                None => self.malformed += parts_of(&waited).count() as u64,
            }
            return;
        }
        for part in parts_of(&waited) {
            let malformed = self.malformed;
            self.push_as(part, rest);
            if matches!(part.kind, SampleKind::WakeUp(_)) && self.malformed == malformed {
                self.woken.push(waited.woken);
            }
        }
    }

    /// A record of the sampler. The period of a burst stands in it.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let period_ns = read_record::<so_sample>(bytes).map_or(0, |header| header.period_ns);
        let part = Part {
            kind: SampleKind::Cpu,
            value_ns: u64::from(period_ns),
            wait_ns: 0,
        };
        self.push_as(part, bytes);
    }

    /// A sample whose walk has ended, or goes on over `stack` from where it stands.
    pub(super) fn push_walked(
        &mut self,
        part: Part,
        header: so_sample,
        words: impl IntoIterator<Item = u64>,
        going_on: Option<(so_walk, &[u8])>,
    ) {
        if let Some((walk, stack)) = going_on {
            self.deferred.push(walk);
            self.stacks.extend(stack);
        }
        self.addresses.extend(words);
        self.headers.push(header);
        self.parts.push(part);
    }

    fn push_as(&mut self, part: Part, bytes: &[u8]) {
        let Some(header) = read_record::<so_sample>(bytes) else {
            self.malformed += 1;
            return;
        };
        let rest = &bytes[size_of::<so_sample>()..];
        let expected = (usize::from(header.kernel_frames) + kept_frames(&header)) * size_of::<u64>();
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
            self.deferred.push(walk);
            self.stacks.extend(stack);
        }
        let words = addresses.chunks_exact(size_of::<u64>());
        self.addresses
            .extend(words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())));
        let skipped = usize::from(header.user_frames) - kept_frames(&header);
        if skipped > 0 {
            // The last ones stand in a ring, in which the oldest is the next to be written over.
            const RING: usize = MAX_USER_FRAMES - LEAF_FRAMES;
            let ring = self.addresses.len() - RING;
            self.addresses[ring..].rotate_left(skipped % RING);
        }
        self.headers.push(header);
        self.parts.push(part);
    }

    /// Hands over the samples of all records, oldest first.
    pub(super) fn samples(&self, mut take: impl FnMut(RawSample<'_>)) {
        let mut rest = self.addresses.as_slice();
        let (mut walks, mut stacks) = (self.deferred.iter(), self.stacks.as_slice());
        let mut woken = self.woken.iter();
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        for (header, part) in self.headers.iter().zip(&self.parts) {
            let (kernel, tail) = rest.split_at(usize::from(header.kernel_frames));
            let (user, tail) = tail.split_at(kept_frames(header));
            rest = tail;
            let deferred = if header.walk_end == WALK_NO_TABLE {
                let (stack, tail) = stacks.split_at(usize::from(header.stack_bytes));
                stacks = tail;
                walks.next().map(|walk| DeferredWalk { walk: *walk, stack })
            } else {
                None
            };
            let comm = header.comm.split(|byte| *byte == 0).next().unwrap_or_default();
            let woken = match part.kind {
                SampleKind::WakeUp(_) => woken.next().map(|woken| Woken::of(woken, tick_ns)),
                _ => None,
            };
            take(RawSample {
                woken,
                kind: part.kind,
                value_ns: part.value_ns,
                wait_ns: part.wait_ns,
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
                user_skipped: (usize::from(header.user_frames) - user.len()) as u32,
                walk_end: match header.walk_end {
                    0 => WalkEnd::None,
                    1 => WalkEnd::Root,
                    2 => WalkEnd::Cut,
                    _ => WalkEnd::Broken,
                },
                deferred,
                kernel_thread: header.flags & KERNEL_THREAD as u8 != 0,
                kernel_cut: header.flags & 4 != 0,
                proc_tgid: header.proc_tgid,
                image: header.image,
            });
        }
    }
}

impl Woken {
    fn of(woken: &so_woken, tick_ns: u64) -> Self {
        Self {
            key: ProgramKey {
                tgid: woken.tgid,
                start_ticks: woken.start_boottime_ns / tick_ns,
                exec_id: woken.exec_id,
            },
            tid: woken.tid,
            cgroup_id: woken.cgroup_id,
            image: woken.image,
            proc_tgid: woken.proc_tgid,
            kernel_thread: woken.flags & KERNEL_THREAD != 0,
            comm: woken.comm,
        }
    }
}

fn asleep(waited: so_waited, header: so_sample, rest: &[u8]) -> Option<Asleep> {
    let count = usize::from(header.kernel_frames) + usize::from(header.user_frames);
    let (addresses, rest) = rest.split_at_checked(count * size_of::<u64>())?;
    let words = addresses.chunks_exact(size_of::<u64>());
    let words = words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    Some(Asleep {
        waited,
        header,
        words: words.collect(),
        walk: read_record(rest)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    fn set_u16(bytes: &mut [u8], at: usize, number: usize) {
        bytes[at..at + 2].copy_from_slice(&(number as u16).to_ne_bytes());
    }

    fn record(kernel: &[u64], user: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<so_sample>()];
        set_u16(&mut bytes, offset_of!(so_sample, kernel_frames), kernel.len());
        set_u16(&mut bytes, offset_of!(so_sample, user_frames), user.len());
        for address in kernel.iter().chain(user) {
            bytes.extend(address.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn each_part_of_a_wait_has_its_own_length() {
        let parts = |waited: so_waited| parts_of(&waited).map(|part| (part.kind, part.value_ns, part.wait_ns));
        let waited = so_waited {
            off_cpu_ns: 100,
            run_queue_ns: 50,
            asleep_ns: 93,
            queued_ns: 7,
            state: TASK_INTERRUPTIBLE,
            ..so_waited::default()
        };
        let asleep = (SampleKind::OffCpu(WaitState::Sleeping), 100, 93);
        let queued = (SampleKind::RunQueue(WaitState::Woken), 50, 7);
        assert_eq!(parts(waited).collect::<Vec<_>>(), [asleep, queued]);
        let ended = so_waited {
            run_queue_ns: 0,
            state: WAIT_ENDED | TASK_INTERRUPTIBLE,
            ..waited
        };
        let ended: Vec<_> = parts(ended).collect();
        assert_eq!(ended, [(SampleKind::WakeUp(WaitState::Sleeping), 100, 93)]);
        let torn = so_waited {
            asleep_ns: u64::MAX - 5,
            run_queue_ns: 0,
            ..waited
        };
        assert_eq!(parts(torn).next().map(|part| part.2), Some(0));
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

    /// As the kernel side writes them: frame n of those that do not fit behind the leaf's at place n of a ring.
    #[test]
    fn a_deep_stack_keeps_its_leaf_and_its_root_in_order() {
        const RING: usize = MAX_USER_FRAMES - LEAF_FRAMES;
        for walked in [MAX_USER_FRAMES, MAX_USER_FRAMES + 1, 2000, 8192] {
            let frames: Vec<u64> = (1..=walked as u64).collect();
            let mut words = frames[..LEAF_FRAMES].to_vec();
            words.resize(MAX_USER_FRAMES, 0);
            for (n, frame) in frames[LEAF_FRAMES..].iter().enumerate() {
                words[LEAF_FRAMES + n % RING] = *frame;
            }
            let mut bytes = record(&[9], &words);
            set_u16(&mut bytes, offset_of!(so_sample, user_frames), walked);
            let mut drained = Drained::default();
            drained.push(&bytes);
            let mut seen = 0;
            drained.samples(|sample| {
                seen += 1;
                assert_eq!(sample.user_skipped as usize, walked - MAX_USER_FRAMES);
                assert_eq!(sample.user[..LEAF_FRAMES], frames[..LEAF_FRAMES]);
                assert_eq!(sample.user[LEAF_FRAMES..], frames[walked - RING..], "{walked} frames");
            });
            assert_eq!(seen, 1);
        }
    }
}
