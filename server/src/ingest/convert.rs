//! From a decoded request to rows: labels, identity, times, values.

use super::IngestError;
use super::attributes::{self, Attribute};
use super::dictionary::Dictionary;
use super::rows::{IsKnown, Labels, Origin, ProcessRow, RowBuilder, SampleRow, push_text};
use super::wire::{Profile, Request, Resource, Sample};
use crate::store::{BatchId, BatchRow, Rows};
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

/// Converts. `id`: the batch's identity by its headers. Rows that `is_known` are left out.
pub fn convert(
    request: &Request<'_>,
    id: Option<BatchId>,
    window: TimeWindow,
    is_known: IsKnown<'_>,
) -> Result<Converted, IngestError> {
    if let Some(id) = &id {
        check_id(id)?;
    }
    let mut samples = Samples {
        dictionary: Dictionary::new(&request.tables, request.room)?,
        window,
        rejected: Rejected::default(),
        content: Vec::new(),
        origins: Vec::new(),
        by_attributes: HashMap::default(),
        of_thread: Vec::new(),
    };
    let mut parts: Vec<Building<'_>> = Vec::new();
    let mut by_id: HashMap<Option<BatchId>, usize> = HashMap::new();
    for resource in &request.resources {
        samples.by_attributes.clear();
        let context = resource_context(resource, &samples.dictionary)?;
        let part_id = part_id(&context, id.as_ref())?;
        let at = *by_id.entry(part_id.clone()).or_insert_with(|| {
            parts.push(Building::new(part_id));
            parts.len() - 1
        });
        let part = &mut parts[at];
        let mut period_ns = 0;
        for profile in &resource.profiles {
            let unit = Unit::of(profile, &samples.dictionary)?;
            if period_ns == 0 {
                period_ns = unit.period;
            }
            let before = samples.rejected.samples();
            part.rows.expect(profile.samples);
            profile.each_sample(request.room, |sample| {
                samples.add(sample, profile, &unit, &context, &mut part.rows)
            })?;
            samples.rejected.profiles += i64::from(samples.rejected.samples() > before);
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
        parts.push(Building::new(id));
    }
    let finish = |part: Building<'_>| part.finish(&samples, is_known);
    let parts = parts.into_iter().map(finish).collect::<Result<_, _>>()?;
    Ok(Converted {
        parts,
        rejected_samples: samples.rejected.samples(),
        rejected_profiles: samples.rejected.profiles,
        message: samples.rejected.message(window),
    })
}

struct Building<'a> {
    id: Option<BatchId>,
    rows: RowBuilder<'a>,
    account: Option<BatchRow>,
}

impl<'a> Building<'a> {
    fn new(id: Option<BatchId>) -> Self {
        Self {
            id,
            rows: RowBuilder::default(),
            account: None,
        }
    }

    fn finish(self, all: &Samples<'a>, is_known: IsKnown<'_>) -> Result<Part, IngestError> {
        let samples = self.rows.samples();
        let mut rows = self.rows.finish(&all.dictionary, &all.origins, is_known)?;
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

    /// The executable's base name, whole. A name that is no path keeps its slash: the kernel's thread `kworker/u8:0` is no file.
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
    fn series(&self) -> Labels<'a> {
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
    resource: &Resource<'a>,
    dictionary: &Dictionary<'a>,
) -> Result<ResourceContext<'a>, IngestError> {
    use Attribute as A;
    let mut context = ResourceContext::default();
    for attribute in &resource.attributes {
        let key = match attribute.key {
            "" => dictionary.string(attribute.key_strindex, "a resource attribute's key_strindex")?,
            key => key,
        };
        let attribute = attributes::read(key, attribute.value, |index| {
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
    fn of(profile: &Profile<'_>, dictionary: &Dictionary<'a>) -> Result<Self, IngestError> {
        let name = |index: i32| dictionary.string(index, "a profile's value type");
        let (sample, unit) = match &profile.sample_type {
            Some(sample) => (name(sample.kind)?, name(sample.unit)?),
            None => ("", ""),
        };
        let period_kind = match &profile.period_type {
            Some(kind) => name(kind.kind)?,
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

/// What all samples of a request have in common.
struct Samples<'a> {
    dictionary: Dictionary<'a>,
    window: TimeWindow,
    rejected: Rejected,
    /// What is hashed, made anew for each.
    content: Vec<u8>,
    origins: Vec<Origin<'a>>,
    /// By the attributes of a sample but for its CPU, of one resource: threads are sampled again and again.
    by_attributes: HashMap<Vec<i32>, u32, foldhash::fast::RandomState>,
    /// Those of the sample that is looked at.
    of_thread: Vec<i32>,
}

/// Attributes of one sample that are remembered, for the next with the same.
const MAX_ORIGIN_ATTRIBUTES: usize = 64;

impl<'a> Samples<'a> {
    /// Where a sample with these attributes comes from.
    fn origin(&mut self, attributes: &[i32], resource: &ResourceContext<'a>) -> Result<u32, IngestError> {
        if let Some(origin) = self.by_attributes.get(attributes) {
            return Ok(*origin);
        }
        let mut context = resource.labels.clone();
        for index in attributes {
            context.apply(self.dictionary.attribute(*index, ATTRIBUTE)?);
        }
        let labels = context.series();
        self.content.clear();
        for label in labels {
            push_text(&mut self.content, label);
        }
        // Both grow by doubling.
        let remembered = attributes.len() <= MAX_ORIGIN_ATTRIBUTES;
        let entry = size_of::<(Vec<i32>, u32)>() + size_of_val(attributes);
        let entry = if remembered { entry } else { 0 };
        self.dictionary.room().take(2 * (size_of::<Origin<'_>>() + entry))?;
        let origin = self.origins.len() as u32;
        self.origins.push(Origin {
            series_id: xxh3_64(&self.content) as i64,
            process_id: context.process_id(resource.boot_id, &mut self.content),
            process: ProcessRow {
                node: labels[0],
                tgid: context.tgid,
                start_ticks: context.start_ticks,
                exec_count: context.exec_count,
                executable: first_of([context.executable_path, context.executable_name]),
                command_line: context.command_line,
                build_id: context.build_id,
            },
            labels,
            thread: context.thread,
            tid: context.tid,
            truncated: context.truncated,
        });
        if remembered {
            self.by_attributes.insert(attributes.to_vec(), origin);
        }
        Ok(origin)
    }

    fn add(
        &mut self,
        sample: &Sample,
        profile: &Profile<'a>,
        unit: &Unit<'a>,
        resource: &ResourceContext<'a>,
        rows: &mut RowBuilder<'a>,
    ) -> Result<(), IngestError> {
        let (mut cpu, mut of_thread) = (resource.labels.cpu, std::mem::take(&mut self.of_thread));
        of_thread.clear();
        for index in &sample.attributes {
            match self.dictionary.attribute(*index, ATTRIBUTE)? {
                Attribute::Cpu(of_sample) => cpu = Some(of_sample),
                _ => of_thread.push(*index),
            }
        }
        let origin = self.origin(&of_thread, resource)?;
        self.of_thread = of_thread;
        let truncated = self.origins[origin as usize].truncated;
        let stack = self.dictionary.stack(sample.stack, truncated)?;
        let row = SampleRow {
            ts_ns: 0,
            kind: unit.kind,
            origin,
            cpu: cpu.and_then(|cpu| i32::try_from(cpu).ok()),
            value: 0,
        };
        let (window, rejected, room) = (self.window, &mut self.rejected, self.dictionary.room());
        each_occurrence(sample, profile, unit, window, |ts_ns, value| {
            if value < 0 {
                rejected.negative += 1;
            } else if ts_ns > window.latest_ns {
                rejected.future += 1;
            } else if ts_ns < window.earliest_ns {
                rejected.past += 1;
            } else {
                rows.add(&SampleRow { ts_ns, value, ..row }, &stack, room)?;
            }
            Ok(())
        })
    }
}

/// Who names an attribute, for messages.
const ATTRIBUTE: &str = "a sample's attribute_indices";

/// Time and value of each time that the sample was seen.
fn each_occurrence(
    sample: &Sample,
    profile: &Profile<'_>,
    unit: &Unit<'_>,
    window: TimeWindow,
    mut each: impl FnMut(i64, i64) -> Result<(), IngestError>,
) -> Result<(), IngestError> {
    let time = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let scaled = |value: &i64| value.saturating_mul(unit.factor);
    match (sample.times.as_slice(), sample.values.as_slice()) {
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
            each(ts_ns, value)
        }
        (times, []) => times.iter().try_for_each(|ns| each(time(*ns), unit.per_occurrence)),
        (times, values) if times.len() == values.len() => {
            let mut both = times.iter().zip(values);
            both.try_for_each(|(ns, value)| each(time(*ns), scaled(value)))
        }
        (times, values) => Err(IngestError::Invalid(format!(
            "a sample has {} time stamps and {} values; give as many of both, or only one of them",
            times.len(),
            values.len()
        ))),
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
