//! Waits for a CPU by their length, as BPF counts them: what was added since the last reading.

use libbpf_rs::{MapCore, MapFlags};

use crate::frames::{ProgramKey, WaitLengths};
use crate::hash::FastMap;
use crate::kernel::error::KernelError;
use crate::kernel::records::{KERNEL_THREAD, read_per_cpu, read_record};
use crate::kernel::skeletons::waits::types::{so_queue, so_queue_key, so_queue_lengths};
use crate::sys::clock_ticks_per_second;

/// A program without waits for so many readings is forgotten: it may have ended.
const FORGET_AFTER: u32 = 24;
/// For so many where there are more entries than this: of one CPU there is room for 4,096.
const FORGET_SOON_AFTER: u32 = 4;
const MANY: usize = 2048;

/// Waits of a program for one CPU that ended in an interval.
#[derive(Debug)]
pub struct Queued {
    /// Which run of which process it is; of process 0 are all that found no room of their own.
    pub key: ProgramKey,
    /// Logical number of the CPU; none of waits for several, where too many programs on too many CPUs wait.
    pub cpu: Option<u32>,
    /// Its control group of version 2, by number.
    pub cgroup_id: u64,
    /// The process in the agent's /proc; 0 where it is not seen there.
    pub proc_tgid: u32,
    /// Where the program's stack began; 0 where it has none.
    pub image: u64,
    /// It is a thread of the kernel.
    pub kernel_thread: bool,
    /// Name of the thread that waited first.
    pub comm: String,
    /// How long the waits were.
    pub lengths: WaitLengths,
}

/// Waits for a CPU that ended since the reading before.
#[derive(Debug, Default)]
pub struct AllQueued {
    /// Of programs.
    pub programs: Vec<Queued>,
    /// Of CPUs, by their logical numbers.
    pub cpus: Vec<(u32, WaitLengths)>,
}

/// What was read before.
#[derive(Default)]
pub(super) struct Queues {
    /// By the key's bytes: what was counted, and for how many readings nothing was added.
    known: FastMap<Vec<u8>, (so_queue_lengths, u32)>,
    /// Of each CPU by its number.
    cpus: Vec<so_queue_lengths>,
}

/// What holds an entry in the kernel, beside its key and value.
const ENTRY_BYTES: usize = 64;
/// Where what is counted stands in `struct so_locked_queue` of bpf/queues.h.
const BEHIND_LOCK: usize = 8;

/// The entry of whoever finds no room: it is there before others are.
pub(super) fn make_room_for_nobody(map: &impl MapCore) -> Result<(), KernelError> {
    let (key, value) = (vec![0; map.key_size() as usize], vec![0; map.value_size() as usize]);
    map.update(&key, &value, MapFlags::ANY)
        .map_err(|source| KernelError::Load { what: "waits", source })
}

impl Queues {
    /// Bytes that the kernel takes for the entries.
    pub(super) fn map_bytes(&self) -> u64 {
        (self.known.len() * (ENTRY_BYTES + size_of::<so_queue_key>() + BEHIND_LOCK + size_of::<so_queue>())) as u64
    }

    /// What was added to `map` since the last reading; `interval` is what its entries of this interval are marked with.
    /// And how many entries of one CPU were removed.
    pub(super) fn read(&mut self, map: &impl MapCore, interval: u64) -> Result<(Vec<Queued>, u64), KernelError> {
        let reading = |source| KernelError::Read {
            what: "waits for a CPU",
            source,
        };
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        let (mut queued, mut ended) = (Vec::new(), Vec::new());
        let forget_after = forget_after(self.known.len());
        for bytes in map.keys() {
            let value = map.lookup(&bytes, MapFlags::ANY).map_err(reading)?;
            let (Some(key), Some(now)) = (
                read_record::<so_queue_key>(&bytes),
                value.and_then(|value| read_record::<so_queue>(value.get(BEHIND_LOCK..)?)),
            ) else {
                continue;
            };
            let (before, idle) = self.known.entry(bytes.clone()).or_default();
            let lengths = added(before, &now.lengths, interval);
            if !lengths.buckets.is_empty() {
                (*before, *idle) = (now.lengths, 0);
                queued.push(Queued {
                    key: ProgramKey {
                        tgid: key.tgid,
                        start_ticks: key.start_boottime_ns / tick_ns,
                        exec_id: key.exec_id,
                    },
                    cpu: key.cpu.checked_sub(1),
                    cgroup_id: key.cgroup_id,
                    proc_tgid: now.proc_tgid,
                    image: now.image,
                    kernel_thread: now.flags & KERNEL_THREAD != 0,
                    comm: comm(&now),
                    lengths,
                });
                continue;
            }
            *idle += 1;
            if *idle >= forget_after && key.tgid != 0 {
                ended.push((bytes, key.cpu != 0));
            }
        }
        let mut removed = 0;
        // Afterwards: to go on behind a key that is gone is to begin anew.
        for (bytes, is_of_cpu) in ended {
            self.known.remove(&bytes);
            // Nobody else removes any.
            removed += u64::from(map.delete(&bytes).is_ok() && is_of_cpu);
        }
        Ok((queued, removed))
    }

    /// What was added to the counts of each CPU since the last reading, by its number.
    pub(super) fn read_cpus(
        &mut self,
        map: &dyn MapCore,
        interval: u64,
    ) -> Result<Vec<(u32, WaitLengths)>, KernelError> {
        let values = read_per_cpu(map, "waits for each CPU")?;
        self.cpus.resize_with(values.len(), Default::default);
        let mut added_to = Vec::new();
        for ((cpu, bytes), before) in (0..).zip(values).zip(&mut self.cpus) {
            let now = read_record::<so_queue_lengths>(&bytes).unwrap_or_default();
            let lengths = added(before, &now, interval);
            if !lengths.buckets.is_empty() {
                *before = now;
                added_to.push((cpu, lengths));
            }
        }
        Ok(added_to)
    }
}

/// How long an entry stays, where there are so many, to which nothing is added.
fn forget_after(entries: usize) -> u32 {
    if entries > MANY {
        FORGET_SOON_AFTER
    } else {
        FORGET_AFTER
    }
}

fn comm(queue: &so_queue) -> String {
    let name = queue.comm.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn added(before: &so_queue_lengths, now: &so_queue_lengths, interval: u64) -> WaitLengths {
    let buckets = now.buckets.iter().zip(&before.buckets).enumerate();
    let buckets = buckets.map(|(bucket, (now, before))| (bucket as u8, u64::from(now.wrapping_sub(*before))));
    WaitLengths {
        total_ns: now.total_ns.saturating_sub(before.total_ns),
        longest_ns: if now.interval == interval { now.longest_ns } else { 0 },
        buckets: buckets.filter(|(_, count)| *count > 0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_wait_makes_room_sooner_where_there_are_many() {
        assert_eq!([0, 100, MANY].map(forget_after), [24; 3]);
        // Half of what there is room for, of one CPU each.
        assert_eq!([MANY + 1, 4096, 8192].map(forget_after), [4; 3]);
    }
}
