//! Lengths of waits for a CPU as a resource attribute has them: JSON, as server/docs/wire.md says.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use serde::Serialize;

use super::batch::{RunQueue, RunQueues};
use crate::frames::{WaitLengths, bucket_begins_ns};
use crate::hash::FastMap;
use crate::metadata::Metadata;

/// The server takes no longer text.
const MAX_BYTES: usize = 1 << 20;
/// More than an entry without labels takes, of all lengths.
const NOBODYS_BYTES: usize = 8192;

/// Those of a CPU, or of what has the same labels on one CPU. What is absent is left out.
#[derive(Default, Serialize)]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    /// Of a CPU: what its timer counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_ticks: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    service: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    process: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    container: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pod: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    workload: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cgroup: &'a str,
    /// Of programs: for which CPU they waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_cpu: Option<u32>,
    /// What samples of the programs have beside that, by the names that it has there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'static str, &'a str>,
    total_ns: u64,
    longest_ns: u64,
    /// The shortest length of a bucket, and how many were in it.
    lengths: Vec<(u64, u64)>,
}

impl Entry<'_> {
    fn of(lengths: &WaitLengths) -> Self {
        let buckets = lengths.buckets.iter();
        Self {
            total_ns: lengths.total_ns,
            longest_ns: lengths.longest_ns,
            lengths: buckets
                .map(|(bucket, count)| (bucket_begins_ns(*bucket), *count))
                .collect(),
            ..Self::default()
        }
    }
}

fn text(label: &Option<Arc<str>>) -> &str {
    label.as_deref().unwrap_or_default()
}

/// None where nothing waited, and nobody counted.
pub(super) fn json(queues: &RunQueues) -> Option<String> {
    written(queues, &queues.by_program)
}

/// Where it would be too long a text, programs are told for all CPUs, and if need be, those that waited least as
/// nobody's. How many entries of programs on a CPU, and of programs, that was.
pub(crate) fn fit_run_queues(queues: &mut RunQueues) -> (u64, u64) {
    if !is_too_long(queues) {
        return (0, 0);
    }
    let on_cpus = queues.by_program.iter().filter(|queue| queue.cpu.is_some()).count() as u64;
    queues.by_program = for_all_cpus(&queues.by_program);
    let programs = if is_too_long(queues) { fold_smallest(queues) } else { 0 };
    (on_cpus, programs)
}

fn is_too_long(queues: &RunQueues) -> bool {
    bytes(queues, &queues.by_program) > MAX_BYTES
}

/// Those that waited least, as far as there is no room for them, are nobody's from now on. Says how many.
fn fold_smallest(queues: &mut RunQueues) -> u64 {
    let mut room = MAX_BYTES.saturating_sub(bytes(queues, &[]) + NOBODYS_BYTES);
    let mut nobodys = RunQueue::default();
    let mut folded = 0;
    queues.by_program.sort_by_key(|queue| Reverse(queue.lengths.total_ns));
    queues.by_program.retain(|queue| {
        let is_nobodys = queue.executable.is_empty();
        // Its brackets stand for the comma.
        let taken = bytes(&RunQueues::default(), slice::from_ref(queue));
        if !is_nobodys && taken <= room {
            room -= taken;
            return true;
        }
        nobodys.lengths.add(&queue.lengths);
        folded += u64::from(!is_nobodys);
        false
    });
    if nobodys.lengths.count() > 0 {
        queues.by_program.push(nobodys);
    }
    folded
}

fn bytes(queues: &RunQueues, by_program: &[RunQueue]) -> usize {
    written(queues, by_program).map_or(0, |text| text.len())
}

fn for_all_cpus(by_program: &[RunQueue]) -> Vec<RunQueue> {
    let mut places: FastMap<(&str, Option<&str>, &Metadata), usize> = FastMap::default();
    let mut sums: Vec<RunQueue> = Vec::new();
    for queue in by_program {
        let key = (&*queue.executable, queue.build_id.as_deref(), &*queue.metadata);
        let place = *places.entry(key).or_insert_with(|| {
            sums.push(RunQueue {
                cpu: None,
                lengths: WaitLengths::default(),
                ..queue.clone()
            });
            sums.len() - 1
        });
        sums[place].lengths.add(&queue.lengths);
    }
    sums
}

fn written(queues: &RunQueues, by_program: &[RunQueue]) -> Option<String> {
    let cpus: BTreeSet<u32> = queues.by_cpu.keys().chain(queues.ticks.keys()).copied().collect();
    let nothing = WaitLengths::default();
    let by_cpu = cpus.into_iter().map(|cpu| {
        let ticks = queues.ticks.get(&cpu);
        Entry {
            cpu: Some(cpu),
            ticks: ticks.map(|counted| counted.ticks),
            idle_ticks: ticks.map(|counted| counted.idle_ticks),
            ..Entry::of(queues.by_cpu.get(&cpu).unwrap_or(&nothing))
        }
    });
    let by_program = by_program.iter().map(|queue| {
        // All by their names: a label more does not compile until it is told here too, or said to be left out.
        let Metadata {
            service,
            version,
            image,
            cgroup,
            container_id,
            container_name,
            pod,
            namespace,
            workload,
            unit,
        } = &*queue.metadata;
        let attributes = [
            ("service.version", version),
            ("container.image.name", image),
            ("process.executable.build_id.gnu", &queue.build_id),
        ];
        let told = attributes.into_iter().map(|(name, value)| (name, text(value)));
        Entry {
            service,
            process: &queue.executable,
            container: match text(container_name) {
                "" => text(container_id),
                name => name,
            },
            pod: text(pod),
            namespace: text(namespace),
            workload: text(workload),
            unit: text(unit),
            cgroup,
            on_cpu: queue.cpu,
            attributes: told.filter(|(_, value)| !value.is_empty()).collect(),
            ..Entry::of(&queue.lengths)
        }
    });
    let entries: Vec<Entry<'_>> = by_cpu.chain(by_program).collect();
    // Numbers and texts alone: that cannot fail.
    (!entries.is_empty()).then(|| serde_json::to_string(&entries).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::CpuTicks;

    #[test]
    fn what_would_be_too_long_is_told_for_all_cpus() {
        let metadata: Arc<Metadata> = Metadata {
            service: "x".repeat(1000).into(),
            ..Metadata::default()
        }
        .into();
        let on_cpu = |cpu: u32| RunQueue {
            executable: "nginx".into(),
            metadata: Arc::clone(&metadata),
            cpu: Some(cpu),
            lengths: WaitLengths {
                total_ns: 9,
                longest_ns: u64::from(cpu),
                buckets: vec![(1, 1)],
            },
            ..RunQueue::default()
        };
        let queues = |cpus: u32| RunQueues {
            by_program: (0..cpus).map(on_cpu).collect(),
            ..RunQueues::default()
        };
        let mut few = queues(900);
        assert_eq!(fit_run_queues(&mut few), (0, 0));
        assert_eq!(json(&few).unwrap().matches("on_cpu").count(), 900);
        let mut many = queues(1100);
        assert_eq!(fit_run_queues(&mut many), (1100, 0));
        let text = json(&many).unwrap();
        let rest = r#""process":"nginx","total_ns":9900,"longest_ns":1099,"lengths":[[1024,1100]]}]"#;
        assert!(text.len() < 2000 && text.ends_with(rest), "{text}");
    }

    #[test]
    fn what_is_too_long_for_all_cpus_too_is_nobody_s_where_it_waited_least() {
        let program = |number: u64| RunQueue {
            executable: format!("{number}").into(),
            metadata: Metadata {
                service: "x".repeat(2000).into(),
                ..Metadata::default()
            }
            .into(),
            cpu: Some(3),
            lengths: WaitLengths {
                total_ns: 1000 + number,
                longest_ns: 1000 + number,
                buckets: vec![(1, 1)],
            },
            ..RunQueue::default()
        };
        let nobodys = RunQueue {
            lengths: WaitLengths {
                total_ns: 1_000_000,
                longest_ns: 5,
                buckets: vec![(0, 7)],
            },
            ..RunQueue::default()
        };
        let mut queues = RunQueues {
            by_program: (0..1000).map(program).chain([nobodys]).collect(),
            ..RunQueues::default()
        };
        let (on_cpus, folded) = fit_run_queues(&mut queues);
        assert_eq!(on_cpus, 1000);
        let text = json(&queues).unwrap();
        // As many as there is room for.
        assert!(text.len() <= MAX_BYTES && text.len() > MAX_BYTES - NOBODYS_BYTES - 4096);
        let told = 1000 - folded;
        assert_eq!(queues.by_program.len() as u64, told + 1);
        let least = queues.by_program.iter().map(|queue| queue.lengths.total_ns).min();
        assert_eq!(least, Some(1000 + folded), "those that waited longest have their names");
        let rest = &queues.by_program[told as usize];
        assert!(rest.executable.is_empty() && rest.lengths.count() == 7 + folded);
        let all: u64 = queues.by_program.iter().map(|queue| queue.lengths.total_ns).sum();
        assert_eq!(all, (0..1000).map(|number| 1000 + number).sum::<u64>() + 1_000_000);
    }

    #[test]
    fn lengths_are_told_by_cpu_and_by_labels() {
        let lengths = WaitLengths {
            total_ns: 9000,
            longest_ns: 6000,
            buckets: vec![(1, 3), (5, 1)],
        };
        let ticks = |ticks, idle_ticks| CpuTicks { ticks, idle_ticks };
        let queues = RunQueues {
            by_cpu: [(7, lengths.clone())].into(),
            ticks: [(7, ticks(100, 0)), (9, ticks(100, 98))].into(),
            by_program: vec![
                RunQueue {
                    executable: "nginx".into(),
                    build_id: Some("c0ffee".into()),
                    metadata: Metadata {
                        service: "web".into(),
                        version: Some("1.4".into()),
                        unit: Some("nginx.service".into()),
                        ..Metadata::default()
                    }
                    .into(),
                    cpu: Some(7),
                    lengths: lengths.clone(),
                },
                RunQueue {
                    executable: "sh".into(),
                    lengths,
                    ..RunQueue::default()
                },
            ],
        };
        let rest = r#""total_ns":9000,"longest_ns":6000,"lengths":[[1024,3],[5120,1]]}"#;
        let busy = format!(r#"{{"cpu":7,"ticks":100,"idle_ticks":0,{rest}"#);
        // Nothing waited for the other CPU.
        let idle = r#"{"cpu":9,"ticks":100,"idle_ticks":98,"total_ns":0,"longest_ns":0,"lengths":[]}"#;
        let build_id = r#""process.executable.build_id.gnu":"c0ffee""#;
        let attributes = format!(r#""attributes":{{{build_id},"service.version":"1.4"}}"#);
        let labels = r#""service":"web","process":"nginx","unit":"nginx.service""#;
        let program = format!(r#"{{{labels},"on_cpu":7,{attributes},{rest}"#);
        let plain = format!(r#"{{"process":"sh",{rest}"#);
        assert_eq!(json(&queues).unwrap(), format!("[{busy},{idle},{program},{plain}]"));
        assert_eq!(json(&RunQueues::default()), None);
    }
}
