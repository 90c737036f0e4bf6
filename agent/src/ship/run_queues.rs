//! Lengths of waits for a CPU as a resource attribute has them: JSON, as server/docs/wire.md says.

use std::sync::Arc;

use serde::Serialize;

use super::batch::RunQueues;
use crate::frames::{WaitLengths, bucket_begins_ns};

/// Those of a CPU, or of what has the same labels. A label that is absent is left out.
#[derive(Default, Serialize)]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
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

/// None where nothing waited.
pub(super) fn json(queues: &RunQueues) -> Option<String> {
    let by_cpu = queues.by_cpu.iter().map(|(cpu, lengths)| Entry {
        cpu: Some(*cpu),
        ..Entry::of(lengths)
    });
    let by_program = queues.by_program.iter().map(|queue| {
        let metadata = &*queue.metadata;
        Entry {
            service: &metadata.service,
            process: &queue.executable,
            container: match text(&metadata.container_name) {
                "" => text(&metadata.container_id),
                name => name,
            },
            pod: text(&metadata.pod),
            namespace: text(&metadata.namespace),
            workload: text(&metadata.workload),
            unit: text(&metadata.unit),
            cgroup: &metadata.cgroup,
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
    use crate::metadata::Metadata;
    use crate::ship::RunQueue;

    #[test]
    fn lengths_are_told_by_cpu_and_by_labels() {
        let lengths = WaitLengths {
            total_ns: 9000,
            longest_ns: 6000,
            buckets: vec![(1, 3), (5, 1)],
        };
        let queues = RunQueues {
            by_cpu: [(7, lengths.clone())].into(),
            by_program: vec![RunQueue {
                executable: "nginx".into(),
                metadata: Metadata {
                    service: "web".into(),
                    unit: Some("nginx.service".into()),
                    ..Metadata::default()
                }
                .into(),
                lengths,
            }],
        };
        let rest = r#""total_ns":9000,"longest_ns":6000,"lengths":[[1024,3],[5120,1]]}"#;
        assert_eq!(
            json(&queues).unwrap(),
            format!(r#"[{{"cpu":7,{rest},{{"service":"web","process":"nginx","unit":"nginx.service",{rest}]"#)
        );
        assert_eq!(json(&RunQueues::default()), None);
    }
}
