//! From a decoded request to rows: labels, identity, times, values.

use super::IngestError;
use super::attributes::{self, Attribute};
use super::dictionary::Dictionary;
use super::rows::{ProcessRow, RowBuilder, SampleRow, push_text};
use crate::store::{BatchId, BatchRow, Rows};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::profiles::v1development::{Profile, ProfilesDictionary, ResourceProfiles, Sample};
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// An instance id is a UUID; a little more room does no harm, a megabyte would.
const MAX_INSTANCE_BYTES: usize = 128;

/// What times are taken in, nanoseconds since the Unix epoch. A sample outside is left out and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    pub earliest_ns: i64,
    pub latest_ns: i64,
    /// Stands in for a profile without any time.
    pub now_ns: i64,
}

/// The rows of one batch.
#[derive(Debug)]
pub struct Part {
    pub id: Option<BatchId>,
    pub rows: Rows,
    pub samples: i64,
}

/// A converted request.
#[derive(Debug)]
pub struct Converted {
    /// One a batch: a Collector may join several agents' batches in one request.
    pub parts: Vec<Part>,
    /// Samples that were left out for their time or a negative value.
    pub rejected_samples: u64,
    /// Profiles of which at least one sample was left out.
    pub rejected_profiles: i64,
    /// Says what was left out and why; empty when nothing was.
    pub message: String,
}

/// Converts. `id`: the batch's identity by its headers.
pub fn convert(
    request: &ExportProfilesServiceRequest,
    id: Option<BatchId>,
    window: TimeWindow,
) -> Result<Converted, IngestError> {
    if let Some(id) = &id {
        check_id(id)?;
    }
    let empty = ProfilesDictionary::default();
    let mut dictionary = Dictionary::new(request.dictionary.as_ref().unwrap_or(&empty))?;
    let mut parts: Vec<Building> = Vec::new();
    let mut by_id: HashMap<Option<BatchId>, usize> = HashMap::new();
    let mut rejected = Rejected::default();
    for resource in &request.resource_profiles {
        let context = resource_context(resource, &dictionary)?;
        let part_id = part_id(&context, id.as_ref())?;
        let at = *by_id.entry(part_id.clone()).or_insert_with(|| {
            parts.push(Building {
                id: part_id,
                rows: RowBuilder::default(),
                account: None,
            });
            parts.len() - 1
        });
        let part = &mut parts[at];
        let mut period_ns = 0;
        for profile in resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
            let unit = Unit::of(profile, &dictionary)?;
            if period_ns == 0 {
                period_ns = unit.period;
            }
            let before = rejected.samples();
            for sample in &profile.samples {
                add_sample(
                    sample,
                    profile,
                    &unit,
                    &context,
                    &mut dictionary,
                    window,
                    part,
                    &mut rejected,
                )?;
            }
            rejected.profiles += i64::from(rejected.samples() > before);
        }
        if let (Some(id), Some(account)) = (&part.id, context.account(period_ns)) {
            part.account = Some(BatchRow {
                instance: id.instance.clone(),
                number: id.number,
                ..account
            });
        }
    }
    // A request without any resource is still the batch that its headers name.
    if parts.is_empty() && id.is_some() {
        parts.push(Building {
            id,
            rows: RowBuilder::default(),
            account: None,
        });
    }
    let parts = parts.into_iter().map(Building::finish).collect::<Result<_, _>>()?;
    Ok(Converted {
        parts,
        rejected_samples: rejected.samples(),
        rejected_profiles: rejected.profiles,
        message: rejected.message(window),
    })
}

struct Building {
    id: Option<BatchId>,
    rows: RowBuilder,
    account: Option<BatchRow>,
}

impl Building {
    fn finish(self) -> Result<Part, IngestError> {
        let samples = self.rows.samples();
        let mut rows = self
            .rows
            .finish()
            .map_err(|error| IngestError::Invalid(error.to_string()))?;
        rows.batch = self.account.map(|account| BatchRow { samples, ..account });
        Ok(Part {
            id: self.id,
            rows,
            samples,
        })
    }
}

#[derive(Debug, Default)]
struct Rejected {
    future: u64,
    past: u64,
    negative: u64,
    profiles: i64,
}

impl Rejected {
    fn samples(&self) -> u64 {
        self.future + self.past + self.negative
    }

    fn message(&self, window: TimeWindow) -> String {
        let time = |ns| chrono::DateTime::from_timestamp_nanos(ns).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let mut reasons = Vec::new();
        if self.future > 0 {
            reasons.push(format!(
                "{} samples are later than {}, a day from now",
                self.future,
                time(window.latest_ns)
            ));
        }
        if self.past > 0 {
            let earliest = time(window.earliest_ns);
            reasons.push(format!(
                "{} samples are older than the retention, which begins at {earliest}",
                self.past
            ));
        }
        if self.negative > 0 {
            reasons.push(format!("{} samples have a negative value", self.negative));
        }
        if reasons.is_empty() {
            String::new()
        } else {
            format!("left out: {}", reasons.join("; "))
        }
    }
}

/// What the attributes of a resource, and then of a sample, add up to.
#[derive(Debug, Clone, Default)]
struct Context<'a> {
    node: &'a str,
    node_fallback: &'a str,
    arch: &'a str,
    kernel: &'a str,
    service: &'a str,
    executable_name: &'a str,
    executable_path: &'a str,
    command_line: &'a str,
    build_id: &'a str,
    tgid: Option<i64>,
    tid: Option<i64>,
    thread: &'a str,
    cpu: Option<i64>,
    start_ticks: Option<i64>,
    exec_count: Option<i64>,
    cgroup: &'a str,
    container_id: &'a str,
    container_name: &'a str,
    pod: &'a str,
    namespace: &'a str,
    workload: &'a str,
    cluster: &'a str,
    unit: &'a str,
    truncated: bool,
}

/// What only a resource says.
#[derive(Debug, Clone, Default)]
struct ResourceContext<'a> {
    labels: Context<'a>,
    boot_id: &'a str,
    instance: Option<&'a str>,
    number: Option<i64>,
    account: BatchRow,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
}

impl<'a> Context<'a> {
    fn apply(&mut self, attribute: Attribute<'a>) {
        use Attribute as A;
        match attribute {
            A::Node(value) => self.node = value,
            A::NodeFallback(value) => self.node_fallback = value,
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
            _ => {}
        }
    }

    fn node(&self) -> &'a str {
        first_of([self.node, self.node_fallback])
    }

    /// The executable's base name, whole.
    fn process(&self) -> &'a str {
        let name = first_of([self.executable_name, self.executable_path]);
        name.rsplit_once('/').map_or(name, |(_, base)| first_of([base, name]))
    }

    fn service(&self) -> &'a str {
        first_of([self.service, self.process(), "unknown"])
    }

    /// In the order of the table's columns.
    fn series(&self) -> [&'a str; 10] {
        [
            self.node(),
            self.service(),
            self.process(),
            first_of([self.container_name, self.container_id]),
            self.pod,
            self.namespace,
            self.workload,
            self.cluster,
            self.unit,
            self.cgroup,
        ]
    }

    /// Identity of the program that ran. Without a start time, the executable's name stands in for it.
    fn process_id(&self, boot_id: &str, content: &mut Vec<u8>) -> i64 {
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

fn first_of<const N: usize>(candidates: [&str; N]) -> &str {
    candidates.into_iter().find(|text| !text.is_empty()).unwrap_or("")
}

impl ResourceContext<'_> {
    /// The agent's account, where it is one: samples are counted later.
    fn account(&self, period_ns: i64) -> Option<BatchRow> {
        let (from_ns, until_ns) = (self.from_ns?, self.until_ns?);
        Some(BatchRow {
            node: self.labels.node().to_owned(),
            kernel: self.labels.kernel.to_owned(),
            arch: self.labels.arch.to_owned(),
            from_ns,
            until_ns,
            period_ns,
            ..self.account.clone()
        })
    }
}

fn resource_context<'a>(
    resource: &'a ResourceProfiles,
    dictionary: &Dictionary<'a>,
) -> Result<ResourceContext<'a>, IngestError> {
    use Attribute as A;
    let mut context = ResourceContext::default();
    for attribute in resource.resource.iter().flat_map(|resource| &resource.attributes) {
        let key = match attribute.key.as_str() {
            "" => dictionary.string(attribute.key_strindex, "a resource attribute's key_strindex")?,
            key => key,
        };
        let attribute = attributes::read(key, attribute.value.as_ref(), |index| {
            dictionary.string(index, "a resource attribute's value")
        })?;
        match attribute {
            A::Instance(value) => context.instance = Some(value),
            A::Batch(value) => context.number = Some(value),
            A::BootId(value) => context.boot_id = value,
            A::From(value) => context.from_ns = Some(value),
            A::Until(value) => context.until_ns = Some(value),
            A::AgentVersion(value) => context.account.agent_version = value.to_owned(),
            A::FrequencyHz(value) => context.account.frequency_hz = Some(value),
            A::Cpus(value) => context.account.cpus = Some(value),
            A::Ticks(value) => context.account.ticks = Some(value),
            A::IdleTicks(value) => context.account.idle_ticks = Some(value),
            A::SamplesTaken(value) => context.account.samples_taken = Some(value),
            A::Lost(cause, count) => drop(context.account.lost.insert(cause.to_owned(), count)),
            A::Limit(limit, count) => drop(context.account.limits.insert(limit.to_owned(), count)),
            A::CpuSeconds(value) => context.account.cpu_seconds = Some(value),
            A::BpfSeconds(value) => context.account.bpf_seconds = Some(value),
            A::RssBytes(value) => context.account.rss_bytes = Some(value),
            A::BpfMapBytes(value) => context.account.bpf_map_bytes = Some(value),
            other => context.labels.apply(other),
        }
    }
    Ok(context)
}

fn part_id(context: &ResourceContext<'_>, header: Option<&BatchId>) -> Result<Option<BatchId>, IngestError> {
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

fn check_id(id: &BatchId) -> Result<(), IngestError> {
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

/// What a profile's values are.
struct Unit<'a> {
    /// The profile type in queries.
    kind: &'a str,
    /// What one occurrence without a value stands for.
    per_occurrence: i64,
    /// What a value is multiplied with.
    factor: i64,
    /// The profile's period, 0 when it has none.
    period: i64,
}

impl<'a> Unit<'a> {
    fn of(profile: &Profile, dictionary: &Dictionary<'a>) -> Result<Self, IngestError> {
        let name = |index: i32| dictionary.string(index, "a profile's value type");
        let (sample, unit) = match &profile.sample_type {
            Some(sample) => (name(sample.type_strindex)?, name(sample.unit_strindex)?),
            None => ("", ""),
        };
        let period_kind = match &profile.period_type {
            Some(kind) => name(kind.type_strindex)?,
            None => "",
        };
        let period = profile.period.max(0);
        Ok(match (sample, unit) {
            // Counted ticks of a clock: each stands for one period of it.
            (_, "count" | "") if !period_kind.is_empty() && period > 0 => Self {
                kind: period_kind,
                per_occurrence: period,
                factor: period,
                period,
            },
            // What the OpenTelemetry eBPF profiler calls time off the CPU.
            ("events", "nanoseconds") => Self {
                kind: "off_cpu",
                per_occurrence: period.max(1),
                factor: 1,
                period,
            },
            (kind, _) => Self {
                kind: if kind.is_empty() { "samples" } else { kind },
                per_occurrence: if unit == "nanoseconds" { period.max(1) } else { 1 },
                factor: 1,
                period,
            },
        })
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "one call, and a struct of these would have no name of its own"
)]
fn add_sample<'a>(
    sample: &'a Sample,
    profile: &Profile,
    unit: &Unit<'a>,
    resource: &ResourceContext<'a>,
    dictionary: &mut Dictionary<'a>,
    window: TimeWindow,
    part: &mut Building,
    rejected: &mut Rejected,
) -> Result<(), IngestError> {
    let mut context = resource.labels.clone();
    for index in &sample.attribute_indices {
        context.apply(dictionary.attribute(*index, "a sample's attribute_indices")?);
    }
    let stack = dictionary.stack(sample.stack_index, context.truncated)?;
    let labels = context.series();
    let mut content = Vec::with_capacity(256);
    for label in labels {
        push_text(&mut content, label);
    }
    let series_id = xxh3_64(&content) as i64;
    let process_id = context.process_id(resource.boot_id, &mut content);
    let process = ProcessRow {
        node: labels[0],
        tgid: context.tgid,
        start_ticks: context.start_ticks,
        exec_count: context.exec_count,
        executable: first_of([context.executable_path, context.executable_name]),
        command_line: context.command_line,
        build_id: context.build_id,
    };
    for (ts_ns, value) in occurrences(sample, profile, unit, window)? {
        if value < 0 {
            rejected.negative += 1;
        } else if ts_ns > window.latest_ns {
            rejected.future += 1;
        } else if ts_ns < window.earliest_ns {
            rejected.past += 1;
        } else {
            let row = SampleRow {
                ts_ns,
                kind: unit.kind,
                node: labels[0],
                service: labels[1],
                series_id,
                process_id,
                thread: context.thread,
                tid: context.tid,
                cpu: context.cpu.and_then(|cpu| i32::try_from(cpu).ok()),
                mode: if stack.in_kernel { "kernel" } else { "user" },
                stack_id: stack.id,
                value,
            };
            part.rows.add(&row, &labels, &process, &stack, dictionary)?;
        }
    }
    Ok(())
}

/// Time and value of each time that the sample was seen.
fn occurrences(
    sample: &Sample,
    profile: &Profile,
    unit: &Unit<'_>,
    window: TimeWindow,
) -> Result<Vec<(i64, i64)>, IngestError> {
    let time = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let scaled = |value: &i64| value.saturating_mul(unit.factor);
    match (sample.timestamps_unix_nano.as_slice(), sample.values.as_slice()) {
        ([], values) => {
            let ts_ns = if profile.time_unix_nano == 0 {
                window.now_ns
            } else {
                time(profile.time_unix_nano)
            };
            // Without times all values are of the profile's: one row says the same as many.
            let value = match values {
                [] => unit.per_occurrence,
                values => values.iter().map(scaled).fold(0_i64, i64::saturating_add),
            };
            Ok(vec![(ts_ns, value)])
        }
        (times, []) => Ok(times.iter().map(|ns| (time(*ns), unit.per_occurrence)).collect()),
        (times, values) if times.len() == values.len() => Ok(times
            .iter()
            .zip(values)
            .map(|(ns, value)| (time(*ns), scaled(value)))
            .collect()),
        (times, values) => Err(IngestError::Invalid(format!(
            "a sample has {} time stamps and {} values; give as many of both, or only one of them",
            times.len(),
            values.len()
        ))),
    }
}
