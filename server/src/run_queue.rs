//! Lengths of waits for a CPU, as agents count them: the JSON of the wire and of the table `batches`.
//!
//! In: text. Out: counts by length, of a CPU, or of programs with the same labels on one CPU. Does no I/O.

use crate::label::Label;
use crate::label::attribute::{BUILD_ID, build_version};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Longest text, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Most CPUs and sets of labels of a batch.
const MOST_ENTRIES: usize = 8192;
/// Most lengths of one.
const MOST_LENGTHS: usize = 256;
/// Longest label, in bytes.
const MAX_LABEL_BYTES: usize = 4096;
/// Most attributes of programs.
const MOST_ATTRIBUTES: usize = 16;
/// Times and counts beyond are malformed: a sum of them has to fit.
const MOST: u64 = 1 << 53;

/// Waits for a CPU that ended in a batch's interval. Each is counted twice: as its CPU's, and as its program's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunQueue<'a> {
    /// Of which CPU; none of programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    /// How often the CPU's timer ticked, and of that how often it met the CPU idle; none of programs, and of agents
    /// that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ticks: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_ticks: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    service: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    process: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    container: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pod: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    namespace: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    workload: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    unit: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    cgroup: Cow<'a, str>,
    /// For which CPU programs waited; none of waits for several, and of agents that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_cpu: Option<u32>,
    /// Labels of programs by the names of their attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, String>,
    /// How long they were together.
    pub total_ns: u64,
    /// How long the longest was.
    pub longest_ns: u64,
    /// The shortest length of each bucket that has some, ascending, and how many.
    pub lengths: Vec<(u64, u64)>,
}

/// Labels that programs are told apart by, beside the node.
pub const LABELS: [Label; 8] = [
    Label::Service,
    Label::Process,
    Label::Container,
    Label::Pod,
    Label::Namespace,
    Label::Workload,
    Label::Unit,
    Label::Cgroup,
];

impl RunQueue<'_> {
    /// None where the text is malformed or has more than is taken.
    pub fn parse(text: &str) -> Option<Vec<RunQueue<'_>>> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let queues: Vec<RunQueue<'_>> = serde_json::from_str(text).ok()?;
        (queues.len() <= MOST_ENTRIES && queues.iter().all(RunQueue::is_intact)).then_some(queues)
    }

    fn is_intact(&self) -> bool {
        let is_ascending = self.lengths.is_sorted_by(|a, b| a.0 < b.0);
        let counts = self.lengths.iter().flat_map(|(begins_ns, count)| [begins_ns, count]);
        let is_small = counts
            .chain([&self.total_ns, &self.longest_ns])
            .chain(&self.ticks)
            .chain(&self.idle_ticks)
            .all(|count| *count <= MOST);
        let texts = self
            .attributes
            .iter()
            .flat_map(|(name, value)| [name.len(), value.len()]);
        let labels = LABELS.iter().map(|label| self.label(*label).len());
        let labels_fit = labels.chain(texts).all(|bytes| bytes <= MAX_LABEL_BYTES);
        let are_few = self.lengths.len() <= MOST_LENGTHS && self.attributes.len() <= MOST_ATTRIBUTES;
        is_ascending && is_small && labels_fit && are_few
    }

    /// The CPU; none of a program's.
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// The CPU that programs waited for, where it is told.
    pub fn on_cpu(&self) -> Option<u32> {
        self.on_cpu
    }

    /// A program's labels that have no name of their own here, by their attributes.
    pub fn attributes(&self) -> &BTreeMap<String, String> {
        &self.attributes
    }

    /// Makes the build id what a series has: its begin, and that only where nothing else tells a version. `of_sender`
    /// has what all of the batch have.
    pub fn shorten_build_id<'l>(&mut self, of_sender: impl Iterator<Item = (&'l str, &'l str)>) {
        let Some(build_id) = self.attributes.remove(BUILD_ID) else {
            return;
        };
        let mut others: Vec<(&str, &str)> = of_sender.collect();
        others.extend(self.attributes.iter().map(|(name, value)| (&**name, &**value)));
        let short = build_version(&build_id, others.into_iter()).map(str::to_owned);
        if let Some(short) = short {
            self.attributes.insert(BUILD_ID.to_owned(), short);
        }
    }

    /// A program's label; empty where it is absent, or none of [`LABELS`].
    pub fn label(&self, label: Label) -> &str {
        match label {
            Label::Service => &self.service,
            Label::Process => &self.process,
            Label::Container => &self.container,
            Label::Pod => &self.pod,
            Label::Namespace => &self.namespace,
            Label::Workload => &self.workload,
            Label::Unit => &self.unit,
            Label::Cgroup => &self.cgroup,
            _ => "",
        }
    }
}

/// Waits for a CPU, added up; of CPUs with what their timers counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitLengths {
    /// Ticks of the CPUs.
    pub ticks: u64,
    /// Those that met them idle.
    pub idle_ticks: u64,
    /// How long they were together.
    pub total_ns: u64,
    /// How long the longest was.
    pub longest_ns: u64,
    /// By the shortest length of each bucket, ascending.
    buckets: Vec<(u64, u64)>,
}

impl WaitLengths {
    /// Adds those of a batch.
    pub fn add(&mut self, queue: &RunQueue<'_>) {
        self.add_ticks_of(queue);
        self.add_counts(queue.total_ns, queue.longest_ns, &queue.lengths);
    }

    /// Adds others that were added up.
    pub fn add_all(&mut self, more: &Self) {
        self.add_ticks(more.ticks, more.idle_ticks);
        self.add_counts(more.total_ns, more.longest_ns, &more.buckets);
    }

    /// Adds what a CPU's timer counted alone.
    pub fn add_ticks_of(&mut self, queue: &RunQueue<'_>) {
        self.add_ticks(queue.ticks.unwrap_or(0), queue.idle_ticks.unwrap_or(0));
    }

    fn add_ticks(&mut self, ticks: u64, idle_ticks: u64) {
        self.ticks = self.ticks.saturating_add(ticks);
        self.idle_ticks = self.idle_ticks.saturating_add(idle_ticks);
    }

    fn add_counts(&mut self, total_ns: u64, longest_ns: u64, buckets: &[(u64, u64)]) {
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.longest_ns = self.longest_ns.max(longest_ns);
        for (begins_ns, count) in buckets {
            match self
                .buckets
                .binary_search_by_key(begins_ns, |(begins_ns, _)| *begins_ns)
            {
                Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(*count),
                Err(at) => self.buckets.insert(at, (*begins_ns, *count)),
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The length that this share of them does not exceed, to the grain of the buckets; none without any.
    pub fn percentile_ns(&self, share: f64) -> Option<u64> {
        let rank = (self.count() as f64 * share).max(1.0);
        let mut below = 0.0;
        for (begins_ns, count) in &self.buckets {
            let count = *count as f64;
            if below + count >= rank {
                let within = ((rank - below) / count * width_ns(*begins_ns) as f64) as u64;
                return Some((begins_ns + within).min(self.longest_ns.max(*begins_ns)));
            }
            below += count;
        }
        None
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.buckets.capacity() * size_of::<(u64, u64)>()
    }
}

/// Agents make buckets of 1,024 ns up to 4,096 ns, and four between each power of two and the next.
fn width_ns(begins_ns: u64) -> u64 {
    match begins_ns.checked_ilog2() {
        Some(power) if power >= 12 => 1 << (power - 2),
        _ => 1024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_send_is_understood_and_written_as_it_came() {
        let text = r#"[{"cpu":3,"ticks":100,"idle_ticks":7,"total_ns":9000,"longest_ns":6000,"lengths":[[1024,3],[5120,1]]},{"service":"web","process":"nginx","total_ns":1,"longest_ns":1,"lengths":[[0,1]]}]"#;
        let queues = RunQueue::parse(text).unwrap();
        assert_eq!((queues[0].cpu(), queues[0].lengths.len()), (Some(3), 2));
        assert_eq!(
            (queues[1].label(Label::Service), queues[1].label(Label::Process)),
            ("web", "nginx")
        );
        assert_eq!((queues[1].cpu(), queues[1].label(Label::Pod)), (None, ""));
        assert_eq!(serde_json::to_string(&queues).unwrap(), text);
    }

    #[test]
    fn programs_have_a_cpu_and_a_version_as_their_series_have() {
        let build_id = "process.executable.build_id.gnu";
        let counts = r#""total_ns":1,"longest_ns":1,"lengths":[]"#;
        let entry =
            |attributes: &str| format!(r#"[{{"service":"web","on_cpu":3,"attributes":{{{attributes}}},{counts}}}]"#);
        let of_build = format!(r#""{build_id}":"c0ffee00c0ffee00""#);
        let alone = entry(&of_build);
        let mut queue = RunQueue::parse(&alone).unwrap().remove(0);
        assert_eq!((queue.cpu(), queue.on_cpu()), (None, Some(3)));
        assert_eq!(serde_json::to_string(&[&queue]).unwrap(), alone);
        queue.shorten_build_id([("acme.team", "red")].into_iter());
        assert_eq!(queue.attributes()[build_id], "c0ffee00c0ff");
        // Where the service has a version, its build is none, whoever says so.
        let mut queue = RunQueue::parse(&alone).unwrap().remove(0);
        queue.shorten_build_id([("service.version", "1.4")].into_iter());
        assert!(queue.attributes().is_empty());
        let own = entry(&format!(r#"{of_build},"service.version":"1.4""#));
        let mut queue = RunQueue::parse(&own).unwrap().remove(0);
        queue.shorten_build_id([].into_iter());
        let left: Vec<(&str, &str)> = queue
            .attributes()
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(left, [("service.version", "1.4")]);
        let many: Vec<String> = (0..=MOST_ATTRIBUTES).map(|at| format!(r#""a{at}":"x""#)).collect();
        assert_eq!(RunQueue::parse(&entry(&many.join(","))), None);
        let long = format!(r#""a":"{}""#, "x".repeat(MAX_LABEL_BYTES + 1));
        assert_eq!(RunQueue::parse(&entry(&long)), None);
    }

    #[test]
    fn what_is_malformed_or_too_much_is_refused() {
        let one = |lengths: &str| format!(r#"[{{"total_ns":1,"longest_ns":1,"lengths":{lengths}}}]"#);
        assert!(RunQueue::parse(&one("[[0,1]]")).is_some());
        let long = format!(
            r#"[{{"service":"{}","total_ns":1,"longest_ns":1,"lengths":[]}}]"#,
            "x".repeat(5000)
        );
        let many: Vec<String> = (0..300).map(|length| format!("[{length},1]")).collect();
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "{}",
            "[{}]",
            &deep,
            &long,
            &one("[[1,1],[1,1]]"),
            &one("[[2,1],[1,1]]"),
            &one("[[0,-1]]"),
            r#"[{"cpu":0,"ticks":9007199254740993,"total_ns":1,"longest_ns":1,"lengths":[]}]"#,
            &one("[[0,9007199254740993]]"),
            &one(&format!("[{}]", many.join(","))),
            &" ".repeat(MAX_BYTES + 1),
        ] {
            assert_eq!(RunQueue::parse(text), None, "{}", &text[..text.len().min(60)]);
        }
    }

    #[test]
    fn ticks_of_cpus_add_up_also_where_nothing_waited() {
        let text = r#"[{"cpu":0,"ticks":100,"idle_ticks":98,"total_ns":0,"longest_ns":0,"lengths":[]},
            {"cpu":0,"ticks":50,"idle_ticks":2,"total_ns":9,"longest_ns":9,"lengths":[[0,1]]},
            {"cpu":0,"total_ns":9,"longest_ns":9,"lengths":[[0,1]]}]"#;
        let (mut sum, mut of_sums) = (WaitLengths::default(), WaitLengths::default());
        for queue in RunQueue::parse(text).unwrap() {
            sum.add(&queue);
        }
        assert_eq!((sum.ticks, sum.idle_ticks, sum.count()), (150, 100, 2));
        of_sums.add_all(&sum);
        of_sums.add_all(&sum);
        assert_eq!((of_sums.ticks, of_sums.idle_ticks, of_sums.count()), (300, 200, 4));
    }

    #[test]
    fn percentiles_are_those_of_the_lengths_to_a_bucket() {
        let mut sum = WaitLengths::default();
        assert_eq!(sum.percentile_ns(0.5), None);
        // 90 of about 10 us, 9 of about 1 ms, one of 10 ms.
        for (ns, count) in [(10_240, 90), (1_048_576, 9)] {
            sum.add(&RunQueue {
                total_ns: ns * count,
                longest_ns: ns + 100,
                lengths: vec![(ns, count)],
                ..RunQueue::default()
            });
        }
        sum.add(&RunQueue {
            total_ns: 10_000_000,
            longest_ns: 10_000_000,
            lengths: vec![(8_388_608, 1)],
            ..RunQueue::default()
        });
        assert_eq!(sum.count(), 100);
        assert_eq!(sum.total_ns, 10_240 * 90 + 1_048_576 * 9 + 10_000_000);
        let within = |share: f64, lengths: std::ops::RangeInclusive<u64>| {
            let ns = sum.percentile_ns(share).unwrap();
            assert!(lengths.contains(&ns), "{share}: {ns}");
        };
        within(0.5, 10_240..=12_288);
        within(0.9, 10_240..=12_288);
        within(0.95, 1_048_576..=1_310_720);
        within(0.99, 1_048_576..=1_310_720);
        within(1.0, 8_388_608..=10_000_000);
        within(0.0, 10_240..=12_288);
    }
}
