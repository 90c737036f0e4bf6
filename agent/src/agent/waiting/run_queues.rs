//! Waits for a CPU by their length, of an interval: by CPU, and by what the programs are called on each CPU.

use std::sync::Arc;

use crate::agent::sampling::Sampling;
use crate::agent::threads::AgentError;
use crate::frames::WaitLengths;
use crate::hash::FastMap;
use crate::kernel::{AllQueued, Queued};
use crate::metadata::Metadata;
use crate::process::Sighting;
use crate::ship::{RunQueue, RunQueues, fit_run_queues};

/// Names and labels that are told apart in an interval; the rest is told together, as nobody's.
const MOST_PROGRAMS: usize = 1024;
/// Of those on a CPU so many; the rest is told by name and labels alone.
const MOST_ON_CPUS: usize = 1024;

impl Sampling {
    /// The waits that ended in an interval, multiplied by what the time is of the time that was observed; and the CPUs'
    /// ticks since the last call, of all of the time.
    pub(in crate::agent) fn run_queues(
        &mut self,
        all: AllQueued,
        factor: f64,
        now_ns: u64,
    ) -> Result<RunQueues, AgentError> {
        let mut queues = Gathered::default();
        queues.queues.by_cpu = all.cpus.into_iter().collect();
        if self.sensor.sees_waits() {
            queues.queues.ticks = self.ticks_of_cpus.take(self.sensor.ticks()?);
        }
        for queued in all.programs {
            // One that is nobody's, or of a program that the next one has replaced and the table has forgotten.
            let is_nobodys = queued.key.tgid == 0 || (queued.comm.is_empty() && !self.table.knows(queued.key));
            if is_nobodys {
                queues.add(Name::default(), queued.cpu, &queued.lengths);
                continue;
            }
            let program = self.table.program(&sighting(&queued, now_ns), now_ns).program;
            let name = Name {
                executable: Arc::clone(&program.executable),
                build_id: program.build_id.clone(),
                metadata: Arc::clone(&program.metadata),
            };
            queues.add(name, queued.cpu, &queued.lengths);
        }
        self.waiting.programs_left_out += queues.left_out;
        self.waiting.cpus_left_out += queues.cpus_left_out;
        let mut queues = queues.queues;
        let of_programs = queues.by_program.iter_mut().map(|queue| &mut queue.lengths);
        for lengths in of_programs.chain(queues.by_cpu.values_mut()) {
            stretch(lengths, factor);
        }
        let (on_cpus, programs) = fit_run_queues(&mut queues);
        self.waiting.cpus_left_out += on_cpus;
        self.waiting.programs_left_out += programs;
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

/// What programs that are told together have in common; nothing of those that are nobody's.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Name {
    executable: Arc<str>,
    build_id: Option<Arc<str>>,
    metadata: Arc<Metadata>,
}

#[derive(Default)]
struct Gathered {
    queues: RunQueues,
    /// Where a name is in the list, for each CPU.
    places: FastMap<(Name, Option<u32>), usize>,
    names: FastMap<Name, ()>,
    on_cpus: usize,
    left_out: u64,
    cpus_left_out: u64,
}

impl Gathered {
    fn add(&mut self, name: Name, cpu: Option<u32>, lengths: &WaitLengths) {
        let is_too_many = self.names.len() >= MOST_PROGRAMS && !self.names.contains_key(&name);
        let mut key = (name, cpu);
        if is_too_many && !key.0.executable.is_empty() {
            self.left_out += 1;
            key = (Name::default(), None);
        }
        if key.1.is_some() && self.on_cpus >= MOST_ON_CPUS && !self.places.contains_key(&key) {
            self.cpus_left_out += 1;
            key.1 = None;
        }
        if let Some(place) = self.places.get(&key) {
            self.queues.by_program[*place].lengths.add(lengths);
            return;
        }
        let (name, cpu) = &key;
        self.queues.by_program.push(RunQueue {
            executable: Arc::clone(&name.executable),
            build_id: name.build_id.clone(),
            metadata: Arc::clone(&name.metadata),
            cpu: *cpu,
            lengths: lengths.clone(),
        });
        self.on_cpus += usize::from(cpu.is_some());
        self.names.insert(name.clone(), ());
        self.places.insert(key, self.queues.by_program.len() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(executable: &str, service: &str) -> Name {
        let metadata = Metadata {
            service: service.into(),
            ..Metadata::default()
        };
        Name {
            executable: executable.into(),
            metadata: metadata.into(),
            ..Name::default()
        }
    }

    fn one(ns: u64) -> WaitLengths {
        WaitLengths {
            total_ns: ns,
            longest_ns: ns,
            buckets: vec![(7, 1)],
        }
    }

    fn count(gathered: &Gathered) -> u64 {
        gathered
            .queues
            .by_program
            .iter()
            .map(|queue| queue.lengths.count())
            .sum()
    }

    #[test]
    fn programs_of_one_name_are_told_together_and_too_many_as_nobodys() {
        let mut gathered = Gathered::default();
        gathered.add(named("nginx", "web"), None, &one(3));
        gathered.add(named("nginx", "web"), None, &one(5));
        gathered.add(named("nginx", "shop"), None, &one(7));
        assert_eq!(gathered.queues.by_program.len(), 2);
        let web = &gathered.queues.by_program[0].lengths;
        assert_eq!((web.total_ns, web.longest_ns, web.count()), (8, 5, 2));
        for program in 0..2 * MOST_PROGRAMS {
            gathered.add(named("worker", &program.to_string()), None, &one(1));
        }
        assert_eq!(gathered.queues.by_program.len(), MOST_PROGRAMS + 1);
        assert_eq!(gathered.left_out as usize, 2 * MOST_PROGRAMS - (MOST_PROGRAMS - 2));
        assert_eq!(count(&gathered) as usize, 3 + 2 * MOST_PROGRAMS);
    }

    #[test]
    fn programs_are_told_on_each_cpu_and_too_many_of_both_by_name_alone() {
        let mut gathered = Gathered::default();
        for cpu in [0, 1, 0] {
            gathered.add(named("nginx", "web"), Some(cpu), &one(3));
        }
        let other_build = Name {
            build_id: Some("c0ffee".into()),
            ..named("nginx", "web")
        };
        gathered.add(other_build, Some(1), &one(3));
        let told = gathered.queues.by_program.iter();
        let told: Vec<_> = told
            .map(|queue| (queue.cpu, queue.build_id.as_deref(), queue.lengths.count()))
            .collect();
        assert_eq!(
            told,
            [(Some(0), None, 2), (Some(1), None, 1), (Some(1), Some("c0ffee"), 1)]
        );
        for cpu in 0..2 * MOST_ON_CPUS as u32 {
            gathered.add(named("worker", "many"), Some(cpu), &one(1));
        }
        assert_eq!(gathered.queues.by_program.len(), MOST_ON_CPUS + 1);
        assert_eq!(gathered.cpus_left_out as usize, 2 * MOST_ON_CPUS - (MOST_ON_CPUS - 3));
        assert_eq!(gathered.left_out, 0, "each has its name");
        assert_eq!(count(&gathered) as usize, 4 + 2 * MOST_ON_CPUS);
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
