//! The records of both ring buffers.

use super::skeletons::lifecycle::types::{so_event, so_event_counters};
use super::skeletons::sampler::types::{so_counters, so_sample, so_walk};

use super::sample::{DeferredWalk, LEAF_FRAMES, MAX_USER_FRAMES, RawSample, WalkEnd};
use crate::sys::clock_ticks_per_second;

#[derive(Default)]
pub(super) struct Drained {
    pub(super) headers: Vec<so_sample>,
    pub(super) addresses: Vec<u64>,
    /// One for each header whose walk is deferred, and their stacks one after the other.
    pub(super) deferred: Vec<so_walk>,
    pub(super) stacks: Vec<u8>,
    pub(super) malformed: u64,
}

/// `SO_WALK_NO_TABLE` of bpf/abi.h.
const WALK_NO_TABLE: u8 = 4;

/// A record type of the skeletons: plain integers in C layout.
pub(super) trait Record: Copy {}
impl Record for so_sample {}
impl Record for so_counters {}
impl Record for so_event {}
impl Record for so_event_counters {}

pub(super) fn read_record<T: Record>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, the read is unaligned, and every bit pattern is a value of a `Record`.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// User frames that are in a record.
fn kept_frames(header: &so_sample) -> usize {
    usize::from(header.user_frames).min(MAX_USER_FRAMES)
}

impl Drained {
    pub(super) fn push(&mut self, bytes: &[u8]) {
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
    }

    /// Hands over the samples of all records, oldest first.
    pub(super) fn samples(&self, mut take: impl FnMut(RawSample<'_>)) {
        let mut rest = self.addresses.as_slice();
        let (mut walks, mut stacks) = (self.deferred.iter(), self.stacks.as_slice());
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        for header in &self.headers {
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
                user_skipped: (usize::from(header.user_frames) - user.len()) as u32,
                walk_end: match header.walk_end {
                    0 => WalkEnd::None,
                    1 => WalkEnd::Root,
                    2 => WalkEnd::Cut,
                    _ => WalkEnd::Broken,
                },
                deferred,
                kernel_thread: header.flags & 2 != 0,
                kernel_cut: header.flags & 4 != 0,
                proc_tgid: header.proc_tgid,
                image: header.image,
            });
        }
    }
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
            bytes[42..44].copy_from_slice(&(walked as u16).to_ne_bytes());
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
