//! What attributes say of where samples come from: labels, processes, a batch's identity and its report.

use crate::ingest::error::IngestError;
use crate::ingest::rows::attributes::{self, Attribute};
use crate::ingest::rows::builder::Labels;
use crate::ingest::rows::frames::Dictionary;
use crate::ingest::rows::labels;
use crate::ingest::rows::text::push_text;
use crate::ingest::rows::window::TimeWindow;
use crate::ingest::wire::attribute::{KeyValue, Value};
use crate::ingest::wire::message::Resource;
use crate::ingest::wire::protobuf::text;
use crate::label::attribute::all_in;
use crate::label::{Label, OF_SERIES};
use crate::run_queue::RunQueue;
use crate::store::{BatchId, BatchRow};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// The node of samples whose sender does not name its host.
pub(crate) const NO_NODE: &str = "unknown";

/// An instance id is a UUID; a little more room does no harm, a megabyte would.
const MAX_INSTANCE_BYTES: usize = 128;

/// What the attributes of a resource, and then of a sample, add up to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context<'a> {
    pub(crate) node: &'a str,
    pub(crate) node_of_cluster: &'a str,
    pub(crate) node_id: &'a str,
    pub(crate) arch: &'a str,
    pub(crate) kernel: &'a str,
    pub(crate) service: &'a str,
    pub(crate) executable_name: &'a str,
    pub(crate) executable_path: &'a str,
    pub(crate) command_line: &'a str,
    pub(crate) build_id: &'a str,
    pub(crate) tgid: Option<i64>,
    pub(crate) tid: Option<i64>,
    pub(crate) thread: &'a str,
    pub(crate) cpu: Option<i64>,
    pub(crate) start_ticks: Option<i64>,
    pub(crate) exec_count: Option<i64>,
    pub(crate) cgroup: &'a str,
    pub(crate) container_id: &'a str,
    pub(crate) container_name: &'a str,
    pub(crate) pod: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) workload: &'a str,
    pub(crate) cluster: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) truncated: bool,
    /// All others, by their names; of several of one name the last counts.
    pub(crate) others: Vec<(&'a str, Value<'a>)>,
}

/// What only a resource says.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceContext<'a> {
    pub(crate) labels: Context<'a>,
    pub(crate) boot_id: &'a str,
    pub(crate) instance: Option<&'a str>,
    pub(crate) number: Option<i64>,
    pub(crate) report: BatchRow,
    pub(crate) from_ns: Option<i64>,
    pub(crate) until_ns: Option<i64>,
}

impl<'a> Context<'a> {
    pub(crate) fn apply(&mut self, attribute: Attribute<'a>) {
        use Attribute as A;
        match attribute {
            A::Node(value) => self.node = value,
            A::NodeOfCluster(value) => self.node_of_cluster = value,
            A::NodeId(value) => self.node_id = value,
            A::Arch(value) => self.arch = value,
            A::Kernel(value) => self.kernel = value,
            A::Service(value) => self.service = value,
            A::ExecutableName(value) => self.executable_name = value,
            A::ExecutablePath(value) => self.executable_path = value,
            A::CommandLine(value) => self.command_line = value,
            A::BuildId(value) => self.build_id = value,
            A::BuildIdFallback(value) if self.build_id.is_empty() => self.build_id = value,
            A::Tgid(value) => self.tgid = Some(value),
            A::Tid(value) => self.tid = Some(value),
            A::Thread(value) => self.thread = value,
            A::Cpu(value) => self.cpu = Some(value),
            A::StartTicks(value) => self.start_ticks = Some(value),
            A::ExecCount(value) => self.exec_count = Some(value),
            A::Cgroup(value) => self.cgroup = value,
            A::ContainerId(value) => self.container_id = value,
            A::ContainerName(value) => self.container_name = value,
            A::Pod(value) => self.pod = value,
            A::Namespace(value) => self.namespace = value,
            A::Workload(value) => self.workload = value,
            A::WorkloadFallback(value) if self.workload.is_empty() => self.workload = value,
            A::Cluster(value) => self.cluster = value,
            A::Unit(value) => self.unit = value,
            A::Truncated(value) => self.truncated = value,
            A::Kept(name, value) => self.others.push((name, value)),
            // A better one is there.
            A::BuildIdFallback(_) | A::WorkloadFallback(_) => {}
            // Of a sample, a frame, or a batch. An attribute more does not compile until it is one of these or above.
            A::WaitLength(_)
            | A::WokenTid(_)
            | A::FrameType(_)
            | A::Instance(_)
            | A::Batch(_)
            | A::AgentVersion(_)
            | A::BootId(_)
            | A::FrequencyHz(_)
            | A::From(_)
            | A::Until(_)
            | A::Cpus(_)
            | A::Ticks(_)
            | A::IdleTicks(_)
            | A::MissedTicks(_)
            | A::CpusOffline(_)
            | A::RunQueues(_)
            | A::WaitsObserved(_)
            | A::SamplesTaken(_)
            | A::Lost(..)
            | A::Limit(..)
            | A::CpuSeconds(_)
            | A::BpfSeconds(_)
            | A::RssBytes(_)
            | A::BpfMapBytes(_)
            | A::Other => {}
        }
    }

    /// A name is needed to show who sends: what says nothing of itself has the same as all that do not.
    pub(crate) fn node(&self) -> &'a str {
        first_of([self.node, self.node_of_cluster, self.node_id, NO_NODE])
    }

    /// The executable's base name, whole. A name that is no path keeps its slash: the kernel's thread `kworker/u8:0`
    /// is no file.
    fn process(&self) -> &'a str {
        let name = first_of([self.executable_name, self.executable_path]);
        match name.rsplit_once('/') {
            Some((_, base)) if name.starts_with(['/', '.']) || self.executable_name.is_empty() => {
                first_of([base, name])
            }
            _ => name,
        }
    }

    fn service(&self) -> &'a str {
        first_of([self.service, self.process(), "unknown"])
    }

    /// In the order of the table's columns.
    pub(crate) fn series(&self) -> Labels<'a> {
        let labels: &'static [Label; OF_SERIES.len()] = &OF_SERIES;
        labels.each_ref().map(|label| self.of_series(label))
    }

    /// A label's value of a series; empty where it is absent, or none that a series has.
    fn of_series(&self, label: &Label) -> &'a str {
        match label {
            Label::Node => self.node(),
            Label::Service => self.service(),
            Label::Process => self.process(),
            Label::Container => first_of([self.container_name, self.container_id]),
            Label::Pod => self.pod,
            Label::Namespace => self.namespace,
            Label::Workload => self.workload,
            Label::Cluster => self.cluster,
            Label::Unit => self.unit,
            Label::Cgroup => self.cgroup,
            Label::Tgid | Label::Thread | Label::Tid | Label::Cpu | Label::Mode | Label::Attribute(_) => "",
        }
    }

    /// Identity of the program that ran. Without a start time, the executable's name stands in for it.
    pub(crate) fn process_id(&self, boot_id: &str, content: &mut Vec<u8>) -> i64 {
        content.clear();
        push_text(content, first_of([boot_id, self.node()]));
        for part in [self.start_ticks, self.tgid, self.exec_count] {
            content.extend_from_slice(&part.unwrap_or(-1).to_le_bytes());
        }
        if self.start_ticks.is_none() {
            push_text(content, self.process());
        }
        xxh3_64(content) as i64
    }
}

pub(crate) fn first_of<const N: usize>(candidates: [&str; N]) -> &str {
    candidates.into_iter().find(|text| !text.is_empty()).unwrap_or("")
}

impl ResourceContext<'_> {
    pub(crate) fn node(&self) -> &str {
        self.labels.node()
    }

    /// The end of what the sender observed, where it says so.
    pub(crate) fn observed_until_ns(&self) -> Option<i64> {
        self.until_ns
    }

    /// Whether it says what its sender observed.
    pub(crate) fn keeps_account(&self) -> bool {
        self.from_ns.is_some() && self.until_ns.is_some()
    }

    /// The agent's report, where it is one: samples are counted later. Of its interval what lies where samples are
    /// taken in: it says what was observed of them, and its begin decides about a partition.
    pub(crate) fn report(&self, period_ns: i64, window: TimeWindow) -> Option<BatchRow> {
        let [from_ns, until_ns] = [self.from_ns?, self.until_ns?].map(|ns| window.nearest_ns(ns));
        Some(BatchRow {
            node: self.labels.node().to_owned(),
            kernel: self.labels.kernel.to_owned(),
            arch: self.labels.arch.to_owned(),
            from_ns,
            until_ns,
            period_ns,
            ..self.report.clone()
        })
    }
}

pub(crate) fn resource_context<'a>(
    resource: &Resource<'a>,
    dictionary: &Dictionary<'a>,
) -> Result<ResourceContext<'a>, IngestError> {
    use Attribute as A;
    let mut context = ResourceContext::default();
    let mut run_queues = None;
    for attribute in &resource.attributes {
        match own_attribute(attribute, dictionary)? {
            A::Instance(value) => context.instance = Some(value),
            A::Batch(value) => context.number = Some(value),
            A::BootId(value) => context.boot_id = value,
            A::From(value) => context.from_ns = Some(value),
            A::Until(value) => context.until_ns = Some(value),
            A::AgentVersion(value) => context.report.agent_version = value.to_owned(),
            A::FrequencyHz(value) => context.report.frequency_hz = Some(value),
            A::Cpus(value) => context.report.cpus = Some(value),
            A::Ticks(value) => context.report.ticks = Some(value),
            A::IdleTicks(value) => context.report.idle_ticks = Some(value),
            A::MissedTicks(value) => context.report.missed_ticks = Some(value),
            A::CpusOffline(value) => context.report.cpus_offline = cpu_list(value).to_owned(),
            A::RunQueues(value) => run_queues = Some(value),
            A::WaitsObserved(value) => context.report.waits_observed_ns = Some(value),
            A::SamplesTaken(value) => context.report.samples_taken = Some(value),
            A::Lost(cause, count) => add_count(&mut context.report.lost, cause, count),
            A::Limit(limit, count) => add_count(&mut context.report.limits, limit, count),
            A::CpuSeconds(value) => context.report.cpu_seconds = Some(value),
            A::BpfSeconds(value) => context.report.bpf_seconds = Some(value),
            A::RssBytes(value) => context.report.rss_bytes = Some(value),
            A::BpfMapBytes(value) => context.report.bpf_map_bytes = Some(value),
            other => context.labels.apply(other),
        }
    }
    if context.keeps_account() {
        context.report.cluster = labels::start_of(context.labels.cluster).to_owned();
        context.report.labels = labels::of_resource(&context.labels.others);
    }
    if let Some(text) = run_queues {
        add_run_queues(&mut context.report, text);
    }
    Ok(context)
}

/// Longest list of CPUs that is kept.
const MAX_CPU_LIST_BYTES: usize = 1024;

/// What is a list such as `2-3,7` in it, whole numbers only.
fn cpu_list(text: &str) -> &str {
    let is_foreign = |byte: &u8| !matches!(byte, b'0'..=b'9' | b',' | b'-');
    let length = text.bytes().position(|byte| is_foreign(&byte)).unwrap_or(text.len());
    if length <= MAX_CPU_LIST_BYTES {
        return &text[..length];
    }
    let end = text[..MAX_CPU_LIST_BYTES].rfind(',').unwrap_or(0);
    &text[..end]
}

/// What is not as the wire has it is left out, and counted as a limit.
fn add_run_queues(report: &mut BatchRow, text: &str) {
    match RunQueue::parse(text) {
        Some(mut queues) => {
            let of_sender = all_in(&report.labels);
            for queue in &mut queues {
                queue.shorten_build_id(of_sender.iter().map(|(name, value)| (&**name, &**value)));
            }
            report.run_queues = serde_json::to_string(&queues).unwrap_or_default();
        }
        None => add_count(&mut report.limits, "run_queues_unreadable", 1),
    }
}

/// Most causes of loss, and limits, that a report names, and how long a name is: an agent has a few dozen short ones.
const MOST_COUNTS: usize = 64;

const MAX_COUNT_NAME: usize = 64;

/// What is more, or has a longer name, is counted together.
const OTHER: &str = "other";

fn add_count(counts: &mut BTreeMap<String, i64>, name: &str, count: i64) {
    let is_named = name.len() <= MAX_COUNT_NAME && (counts.len() < MOST_COUNTS || counts.contains_key(name));
    if is_named && name != OTHER {
        counts.insert(name.to_owned(), count);
        return;
    }
    let other = counts.entry(OTHER.to_owned()).or_default();
    *other = other.saturating_add(count);
}

/// An attribute of a resource or a scope.
pub(crate) fn own_attribute<'a>(
    attribute: &KeyValue<'a>,
    dictionary: &Dictionary<'a>,
) -> Result<Attribute<'a>, IngestError> {
    let key = match attribute.key {
        [] => dictionary.string(attribute.key_strindex, "a resource attribute's key_strindex")?,
        key => text(key)?,
    };
    attributes::read(key, attribute.value, |index| {
        dictionary.string(index, "a resource attribute's value")
    })
}

pub(crate) fn part_id(context: &ResourceContext<'_>, header: Option<&BatchId>) -> Result<Option<BatchId>, IngestError> {
    let own = match (context.instance, context.number) {
        (Some(instance), Some(number)) => Some(BatchId {
            instance: instance.to_owned(),
            number,
        }),
        (None, None) => None,
        _ => {
            return Err(IngestError::Invalid(
                "of the resource attributes stakeout.instance and stakeout.batch only one is there; give both or none"
                    .to_owned(),
            ));
        }
    };
    match (header, own) {
        (Some(header), Some(own)) if *header != own => Err(IngestError::Invalid(format!(
            "the headers name batch {} of instance {}, the resource attributes batch {} of instance {}",
            header.number, header.instance, own.number, own.instance
        ))),
        (Some(header), _) => Ok(Some(header.clone())),
        (None, Some(own)) => check_id(&own).map(|()| Some(own)),
        (None, None) => Ok(None),
    }
}

pub(crate) fn check_id(id: &BatchId) -> Result<(), IngestError> {
    let printable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    if id.instance.is_empty() || id.instance.len() > MAX_INSTANCE_BYTES || !id.instance.bytes().all(printable) {
        return Err(IngestError::Invalid(
            "the instance id must be a UUID or up to 128 letters, digits and -_.:".to_owned(),
        ));
    }
    if id.number < 1 {
        return Err(IngestError::Invalid(format!(
            "the batch number is {}; numbers count from 1 up",
            id.number
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Context, MAX_COUNT_NAME, MOST_COUNTS, add_count, cpu_list};
    use std::collections::BTreeMap;

    #[test]
    fn a_list_of_cpus_is_bounded_and_nothing_else() {
        for (text, wanted) in [("2-3,7", "2-3,7"), ("", ""), ("1<b>", "1"), ("ä", "")] {
            assert_eq!(cpu_list(text), wanted);
        }
        let long: String = (0..1000).map(|cpu| format!("{},", cpu * 2)).collect();
        let kept = cpu_list(&long);
        assert!(
            (1000..=1024).contains(&kept.len()) && long[kept.len()..].starts_with(','),
            "{kept}"
        );
        assert_eq!(cpu_list(&"1".repeat(2000)), "");
    }

    #[test]
    fn causes_of_loss_are_bounded_and_their_sum_is_right() {
        let mut counts = BTreeMap::new();
        for at in 0..5_000 {
            add_count(&mut counts, &format!("cause_{at}"), 1);
        }
        add_count(&mut counts, &"x".repeat(MAX_COUNT_NAME + 1), 10);
        add_count(&mut counts, "cause_0", 7);
        assert_eq!(counts.len(), MOST_COUNTS + 1);
        assert_eq!(counts.values().sum::<i64>(), 5_000 + 10 + 6);
        assert_eq!(counts["cause_0"], 7);
    }

    #[test]
    fn a_process_is_called_by_its_executable_and_a_kernel_thread_by_all_of_its_name() {
        for (executable_name, executable_path, wanted) in [
            ("kworker/u8:0", "", "kworker/u8:0"),
            ("kubelet", "/usr/bin/kubelet", "kubelet"),
            ("/usr/bin/kubelet", "", "kubelet"),
            ("./run", "", "run"),
            ("", "bin/agent", "agent"),
            ("", "/opt/agent/", "/opt/agent/"),
        ] {
            let context = Context {
                executable_name,
                executable_path,
                ..Context::default()
            };
            assert_eq!(context.process(), wanted);
        }
    }

    #[test]
    fn a_node_has_the_best_of_its_names_whatever_their_order() {
        use crate::ingest::rows::attributes::Attribute as A;
        let names = [A::NodeId("4c8b"), A::Node("node-a"), A::NodeOfCluster("worker-1")];
        for (known, wanted) in [
            (&names[..], "node-a"),
            (&[names[2], names[0]], "worker-1"),
            (&[names[0], names[2]], "worker-1"),
            (&names[..1], "4c8b"),
            (&[], "unknown"),
        ] {
            let mut context = Context::default();
            known.iter().for_each(|name| context.apply(*name));
            assert_eq!(context.node(), wanted);
        }
    }

    #[test]
    fn the_limits_are_documented() {
        use crate::ingest::rows::{convert, labels};
        crate::documented(&[
            ("MOST_COUNTS", MOST_COUNTS as u64),
            ("MAX_COUNT_NAME", MAX_COUNT_NAME as u64),
            ("MOST_BATCHES", convert::MOST_BATCHES as u64),
            ("MOST_HOURS", convert::MOST_HOURS as u64),
            ("MAX_TYPES", labels::MAX_TYPES as u64),
        ]);
    }
}
