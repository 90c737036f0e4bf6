//! Waits for a CPU by their length, of an interval: by CPU, and by what the programs are called.

use std::sync::Arc;

use crate::agent::sampling::Sampling;
use crate::agent::threads::AgentError;
use crate::frames::WaitLengths;
use crate::hash::FastMap;
use crate::kernel::Queued;
use crate::metadata::Metadata;
use crate::process::Sighting;
use crate::ship::{RunQueue, RunQueues};

/// Names and labels that are told apart in an interval; the rest is told together, as nobody's.
const MOST_PROGRAMS: usize = 1024;

impl Sampling {
    /// The waits that ended since the last call, multiplied by what the time is of the time that was observed; and the
    /// CPUs' ticks, of all of the time.
    pub(in crate::agent) fn run_queues(&mut self, factor: f64, now_ns: u64) -> Result<RunQueues, AgentError> {
        let mut queues = Gathered::default();
        let all = self.sensor.queued()?;
        queues.queues.by_cpu = all.cpus.into_iter().collect();
        if self.sensor.sees_waits() {
            queues.queues.ticks = self.ticks_of_cpus.take(self.sensor.ticks()?);
        }
        for queued in all.programs {
            // One that is nobody's, or of a program that the next one has replaced and the table has forgotten.
            let is_nobodys = queued.key.tgid == 0 || (queued.comm.is_empty() && !self.table.knows(queued.key));
            if is_nobodys {
                queues.add("", Metadata::default().into(), &queued.lengths);
                continue;
            }
            let program = self.table.program(&sighting(&queued, now_ns), now_ns).program;
            queues.add(&program.executable, Arc::clone(&program.metadata), &queued.lengths);
        }
        self.waiting.programs_left_out += queues.left_out;
        let mut queues = queues.queues;
        let of_programs = queues.by_program.iter_mut().map(|queue| &mut queue.lengths);
        for lengths in of_programs.chain(queues.by_cpu.values_mut()) {
            stretch(lengths, factor);
        }
        Ok(queues)
    }
}

fn sighting(queued: &Queued, now_ns: u64) -> Sighting<'_> {
    Sighting {
        key: queued.key,
        proc_tgid: queued.proc_tgid,
        image: queued.image,
        cgroup_id: queued.cgroup_id,
        time_ns: now_ns,
        kernel_thread: queued.kernel_thread,
        comm: &queued.comm,
    }
}

/// What turns of observation left out is taken to be as what was observed.
fn stretch(lengths: &mut WaitLengths, factor: f64) {
    if factor > 1.0 {
        let times = |count: &mut u64| *count = (*count as f64 * factor).round() as u64;
        times(&mut lengths.total_ns);
        lengths.buckets.iter_mut().for_each(|(_, count)| times(count));
    }
}

#[derive(Default)]
struct Gathered {
    queues: RunQueues,
    /// Where a name with its labels is in the list.
    places: FastMap<(Arc<str>, Arc<Metadata>), usize>,
    left_out: u64,
}

impl Gathered {
    fn add(&mut self, executable: &str, metadata: Arc<Metadata>, lengths: &WaitLengths) {
        let list = &mut self.queues.by_program;
        let mut key = (Arc::from(executable), metadata);
        if list.len() >= MOST_PROGRAMS && !self.places.contains_key(&key) && !executable.is_empty() {
            self.left_out += 1;
            key = (Arc::from(""), Metadata::default().into());
        }
        let place = *self.places.entry(key).or_insert_with_key(|(executable, metadata)| {
            list.push(RunQueue {
                executable: Arc::clone(executable),
                metadata: Arc::clone(metadata),
                lengths: WaitLengths::default(),
            });
            list.len() - 1
        });
        list[place].lengths.add(lengths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_service(service: &str) -> Arc<Metadata> {
        Arc::new(Metadata {
            service: service.into(),
            ..Metadata::default()
        })
    }

    fn one(ns: u64) -> WaitLengths {
        WaitLengths {
            total_ns: ns,
            longest_ns: ns,
            buckets: vec![(7, 1)],
        }
    }

    #[test]
    fn programs_of_one_name_are_told_together_and_too_many_as_nobodys() {
        let mut gathered = Gathered::default();
        gathered.add("nginx", of_service("web"), &one(3));
        gathered.add("nginx", of_service("web"), &one(5));
        gathered.add("nginx", of_service("shop"), &one(7));
        assert_eq!(gathered.queues.by_program.len(), 2);
        let web = &gathered.queues.by_program[0].lengths;
        assert_eq!((web.total_ns, web.longest_ns, web.count()), (8, 5, 2));
        for program in 0..2 * MOST_PROGRAMS {
            gathered.add("worker", of_service(&program.to_string()), &one(1));
        }
        assert_eq!(gathered.queues.by_program.len(), MOST_PROGRAMS + 1);
        assert_eq!(gathered.left_out as usize, 2 * MOST_PROGRAMS - (MOST_PROGRAMS - 2));
        let waits = gathered.queues.by_program.iter().map(|queue| queue.lengths.count());
        assert_eq!(waits.sum::<u64>() as usize, 3 + 2 * MOST_PROGRAMS);
    }

    #[test]
    fn what_was_not_observed_is_as_what_was() {
        let mut told = one(1000);
        stretch(&mut told, 1.0);
        assert_eq!(told, one(1000));
        stretch(&mut told, 2.6);
        assert_eq!(
            (told.total_ns, told.longest_ns, &told.buckets[..]),
            (2600, 1000, &[(7, 3)][..])
        );
    }
}
