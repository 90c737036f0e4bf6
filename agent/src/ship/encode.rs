//! A batch as an `ExportProfilesServiceRequest`: the agent's only knowledge of OTLP. The attributes are those of
//! `server/docs/wire.md`. Every table's entry 0 stands for "none", as OTLP asks.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use uuid::Uuid;

use super::batch::{Batch, Process, Sample, Woken};
use super::config::Identity;
pub(super) use super::packing::{Packer, compress, decompress};
use super::run_queues;
use crate::frames::{Frame, FrameKind, SampleKind};
use crate::hash::FastMap;
use crate::metadata::Metadata;

const BATCH: &str = "stakeout.batch";
const LOST: &str = "stakeout.lost.";
const LIMIT: &str = "stakeout.limit.";
/// Lengths of waits for a CPU.
const RUN_QUEUES: &str = "stakeout.run_queues";
const FROM: &str = "stakeout.from_unix_nano";
const UNTIL: &str = "stakeout.until_unix_nano";
/// Attributes that count something in the interval: zero in a report of no interval.
const OF_THE_INTERVAL: [&str; 4] = [
    "stakeout.ticks",
    "stakeout.idle_ticks",
    "stakeout.missed_ticks",
    "stakeout.waits_observed_ns",
];

/// The request that carries `batch` as number `number` of `instance`. `lost` replaces the report's causes.
pub(super) fn request(
    identity: &Identity,
    instance: Uuid,
    number: u64,
    batch: &Batch,
    lost: &BTreeMap<&'static str, u64>,
) -> Vec<u8> {
    let mut tables = Tables::new(batch);
    let profiles = tables.profiles();
    wrap(
        resource(identity, instance, number, batch, lost),
        identity,
        profiles,
        tables.dictionary,
    )
    .encode_to_vec()
}

/// The same without samples and dictionary: the base of [`closing`].
pub(super) fn report(
    identity: &Identity,
    instance: Uuid,
    number: u64,
    batch: &Batch,
    lost: &BTreeMap<&'static str, u64>,
) -> Vec<u8> {
    let empty = Batch {
        from_unix_ns: batch.from_unix_ns,
        until_unix_ns: batch.until_unix_ns,
        period_ns: batch.period_ns,
        frequency_hz: batch.frequency_hz,
        report: batch.report.clone(),
        ..Batch::default()
    };
    request(identity, instance, number, &empty, lost)
}

/// A last word of an instance: `base` (any of its requests) as number `number`, without samples and covering no time,
/// with `more` added to its causes of loss. `None` when `base` is not a request.
pub(super) fn closing(base: &[u8], number: u64, more: &BTreeMap<&'static str, u64>) -> Option<Vec<u8>> {
    let mut request = ExportProfilesServiceRequest::decode(base).ok()?;
    let scopes = request.resource_profiles.first_mut()?;
    let profiles = &mut scopes.scope_profiles.first_mut()?.profiles;
    let profile = profiles.first()?;
    let until_unix_ns = profile.time_unix_nano.saturating_add(profile.duration_nano);
    let period_ns = u64::try_from(profile.period).ok()?;
    let silence = Batch {
        from_unix_ns: until_unix_ns,
        until_unix_ns,
        period_ns,
        ..Batch::default()
    };
    let mut tables = Tables::new(&silence);
    *profiles = tables.profiles();
    request.dictionary = Some(tables.dictionary);

    let attributes = &mut scopes.resource.as_mut()?.attributes;
    attributes.retain(|attribute| attribute.key != RUN_QUEUES);
    let until = attributes.iter().find(|a| a.key == UNTIL)?.value.clone();
    let mut more: BTreeMap<&str, u64> = more.iter().map(|(cause, n)| (*cause, *n)).collect();
    for attribute in attributes.iter_mut() {
        match attribute.key.as_str() {
            BATCH => attribute.value = int(number),
            FROM => attribute.value.clone_from(&until),
            key if OF_THE_INTERVAL.contains(&key) => attribute.value = int(0),
            key => {
                let Some(add) = key.strip_prefix(LOST).and_then(|cause| more.remove(cause)) else {
                    continue;
                };
                let Some(Value::IntValue(before)) = attribute.value.as_ref().and_then(|v| v.value.as_ref()) else {
                    return None;
                };
                attribute.value = int(before.cast_unsigned().saturating_add(add));
            }
        }
    }
    attributes.extend(
        more.into_iter()
            .map(|(cause, n)| key_value(format!("{LOST}{cause}"), int(n))),
    );
    Some(request.encode_to_vec())
}

fn wrap(
    resource: Resource,
    identity: &Identity,
    profiles: Vec<otlp::Profile>,
    dictionary: otlp::ProfilesDictionary,
) -> ExportProfilesServiceRequest {
    let scope = InstrumentationScope {
        name: "stakeout-agent".into(),
        version: identity.agent_version.clone(),
        ..InstrumentationScope::default()
    };
    let scope_profiles = otlp::ScopeProfiles {
        scope: Some(scope),
        profiles,
        ..otlp::ScopeProfiles::default()
    };
    let resource_profiles = otlp::ResourceProfiles {
        resource: Some(resource),
        scope_profiles: vec![scope_profiles],
        ..otlp::ResourceProfiles::default()
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![resource_profiles],
        dictionary: Some(dictionary),
    }
}

fn resource(
    identity: &Identity,
    instance: Uuid,
    number: u64,
    batch: &Batch,
    lost: &BTreeMap<&'static str, u64>,
) -> Resource {
    let report = &batch.report;
    let mut attributes = vec![
        key_value("host.name", string(&identity.node)),
        key_value("host.arch", string(&identity.arch)),
        key_value("os.version", string(&identity.kernel_release)),
        key_value("stakeout.agent.version", string(&identity.agent_version)),
        key_value("stakeout.boot_id", string(&identity.boot_id)),
        key_value("stakeout.instance", string(&instance.to_string())),
        key_value(BATCH, int(number)),
        key_value("stakeout.frequency_hz", int(u64::from(batch.frequency_hz))),
        key_value(FROM, int(batch.from_unix_ns)),
        key_value(UNTIL, int(batch.until_unix_ns)),
        key_value("stakeout.cpus", int(u64::from(report.cpus))),
        key_value(OF_THE_INTERVAL[0], int(report.ticks)),
        key_value(OF_THE_INTERVAL[1], int(report.idle_ticks)),
        key_value(OF_THE_INTERVAL[2], int(report.missed_ticks)),
        key_value("stakeout.cpus_offline", string(&report.cpus_offline)),
        key_value("stakeout.samples_taken", int(report.samples_taken)),
        key_value("stakeout.cpu_seconds", double(report.cpu_seconds)),
        key_value("stakeout.bpf_seconds", double(report.bpf_seconds)),
        key_value("stakeout.rss_bytes", int(report.rss_bytes)),
        key_value("stakeout.bpf_map_bytes", int(report.bpf_map_bytes)),
    ];
    attributes.extend(
        lost.iter()
            .map(|(cause, n)| key_value(format!("{LOST}{cause}"), int(*n))),
    );
    let waits_ns = report.waits_observed_ns;
    attributes.extend(waits_ns.map(|ns| key_value(OF_THE_INTERVAL[3], int(ns))));
    attributes.extend(run_queues::json(&batch.run_queues).map(|json| key_value(RUN_QUEUES, string(&json))));
    let limits = report.limits.iter();
    attributes.extend(limits.map(|(name, n)| key_value(format!("{LIMIT}{name}"), int(*n))));
    Resource {
        attributes,
        ..Resource::default()
    }
}

fn key_value(key: impl Into<String>, value: Option<AnyValue>) -> KeyValue {
    KeyValue {
        key: key.into(),
        value,
        ..KeyValue::default()
    }
}

fn string(value: &str) -> Option<AnyValue> {
    Some(AnyValue {
        value: Some(Value::StringValue(value.into())),
    })
}

/// OTLP has no unsigned integers; a count past `i64::MAX` does not occur.
fn int(value: u64) -> Option<AnyValue> {
    Some(AnyValue {
        value: Some(Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX))),
    })
}

fn double(value: f64) -> Option<AnyValue> {
    Some(AnyValue {
        value: Some(Value::DoubleValue(value)),
    })
}

/// An attribute's value before it has a place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Attribute<'a> {
    Text(&'a str),
    Number(u64),
    Flag(bool),
}

/// The dictionary while it grows, with the indices of what is already in it. Borrows its keys from the batch.
struct Tables<'a> {
    batch: &'a Batch,
    dictionary: otlp::ProfilesDictionary,
    strings: FastMap<&'a str, i32>,
    attributes: FastMap<(&'static str, Attribute<'a>), i32>,
    functions: FastMap<(i32, i32), i32>,
    mappings: FastMap<(&'a str, Option<&'a str>), i32>,
    /// By the frames (indices into the batch) that the location stands for.
    locations: FastMap<&'a [u32], i32>,
    /// By their numbers in the batch.
    stacks: Vec<Option<i32>>,
    /// Attributes, by the same.
    processes: Vec<Option<Vec<i32>>>,
}

impl<'a> Tables<'a> {
    fn new(batch: &'a Batch) -> Self {
        let dictionary = otlp::ProfilesDictionary {
            mapping_table: vec![otlp::Mapping::default()],
            location_table: vec![otlp::Location::default()],
            function_table: vec![otlp::Function::default()],
            link_table: vec![otlp::Link::default()],
            string_table: vec![String::new()],
            attribute_table: vec![otlp::KeyValueAndUnit::default()],
            stack_table: vec![otlp::Stack::default()],
        };
        Self {
            batch,
            dictionary,
            strings: std::iter::once(("", 0)).collect(),
            attributes: FastMap::default(),
            functions: FastMap::default(),
            mappings: FastMap::default(),
            locations: FastMap::default(),
            stacks: vec![None; batch.stacks.len()],
            processes: vec![None; batch.processes.len()],
        }
    }

    /// The batch's profiles: that of CPU time always, since it carries the period and the interval; one more for each
    /// period of bursts, and those of waits, where there were any. Samples of the same stack, thread, process and CPU
    /// become one with several time stamps.
    fn profiles(&mut self) -> Vec<otlp::Profile> {
        let period_ns = self.batch.period_ns;
        let is_cpu = |sample: &Sample| sample.kind == SampleKind::Cpu;
        let mut profiles = vec![self.profile("cpu", period_ns, |sample| is_cpu(sample) && sample.value_ns == 0)];
        // The server takes the period of the first for that of the whole.
        let samples = self.batch.samples.iter();
        let of_bursts = samples.filter(|sample| is_cpu(sample) && sample.value_ns != 0);
        let periods: BTreeSet<u64> = of_bursts.map(|sample| sample.value_ns).collect();
        for period_ns in periods {
            profiles.push(self.profile("cpu", period_ns, |sample| {
                is_cpu(sample) && sample.value_ns == period_ns
            }));
        }
        let of_waits = [
            self.profile("off_cpu", 0, |sample| matches!(sample.kind, SampleKind::OffCpu(_))),
            self.profile("run_queue", 0, |sample| matches!(sample.kind, SampleKind::RunQueue(_))),
            self.profile("wake_up", 0, |sample| matches!(sample.kind, SampleKind::WakeUp(_))),
        ];
        profiles.extend(of_waits.into_iter().filter(|profile| !profile.samples.is_empty()));
        profiles
    }

    /// Samples of a thread that ran are counted, by the period; those of waits have their own nanoseconds.
    fn profile(&mut self, name: &'static str, period_ns: u64, is_of: impl Fn(&Sample) -> bool) -> otlp::Profile {
        let batch = self.batch;
        let is_of_waits = name != "cpu";
        let time = otlp::ValueType {
            type_strindex: self.string(name),
            unit_strindex: self.string("nanoseconds"),
        };
        let count = otlp::ValueType {
            type_strindex: self.string("samples"),
            unit_strindex: self.string("count"),
        };

        let mut order: Vec<&Sample> = batch.samples.iter().filter(|sample| is_of(sample)).collect();
        order.sort_unstable_by(|a, b| {
            same_sample(a)
                .cmp(&same_sample(b))
                .then(a.ts_unix_ns.cmp(&b.ts_unix_ns))
        });
        let mut samples = Vec::new();
        for group in order.chunk_by(|a, b| same_sample(a) == same_sample(b)) {
            let first = group[0];
            let stack = first.stack as usize;
            let stack_index = self.stack(stack);
            let mut attribute_indices = self.process(first.process as usize);
            attribute_indices.push(self.attribute("thread.id", Attribute::Number(u64::from(first.tid))));
            attribute_indices.push(self.attribute("thread.name", Attribute::Text(&first.thread)));
            attribute_indices.push(self.attribute("cpu.logical_number", Attribute::Number(u64::from(first.cpu))));
            if batch.stacks[stack].truncated {
                attribute_indices.push(self.attribute("stakeout.stack.truncated", Attribute::Flag(true)));
            }
            if let Some(state) = first.kind.state() {
                attribute_indices.push(self.attribute("wait.state", Attribute::Text(state.name())));
            }
            if let Some(class) = first.wait_class {
                attribute_indices.push(self.attribute("wait.class", Attribute::Text(class.name())));
            }
            if first.wait_ns > 0 {
                let length = Attribute::Number(three_digits(first.wait_ns));
                attribute_indices.push(self.attribute("wait.length", length));
            }
            if let Some(woken) = &first.woken {
                let process = &batch.processes[woken.process as usize];
                let texts = [
                    ("woken.service", &process.metadata.service),
                    ("woken.process", &process.executable),
                    ("woken.thread", &woken.thread),
                ];
                attribute_indices.extend(texts.map(|(key, text)| self.attribute(key, Attribute::Text(text))));
                // By which the server finds the wait that was ended.
                attribute_indices.push(self.attribute("woken.tid", Attribute::Number(u64::from(woken.tid))));
            }
            samples.push(otlp::Sample {
                stack_index,
                attribute_indices,
                values: if is_of_waits {
                    group.iter().map(|sample| value(sample)).collect()
                } else {
                    Vec::new()
                },
                timestamps_unix_nano: group.iter().map(|sample| sample.ts_unix_ns).collect(),
                ..otlp::Sample::default()
            });
        }
        otlp::Profile {
            sample_type: Some(if is_of_waits { time } else { count }),
            samples,
            time_unix_nano: batch.from_unix_ns,
            duration_nano: batch.until_unix_ns.saturating_sub(batch.from_unix_ns),
            period_type: (!is_of_waits).then_some(time),
            period: i64::try_from(period_ns).unwrap_or(i64::MAX),
            ..otlp::Profile::default()
        }
    }

    fn string(&mut self, text: &'a str) -> i32 {
        let table = &mut self.dictionary.string_table;
        *self.strings.entry(text).or_insert_with(|| push(table, text.to_owned()))
    }

    fn attribute(&mut self, key: &'static str, value: Attribute<'a>) -> i32 {
        if let Some(index) = self.attributes.get(&(key, value)) {
            return *index;
        }
        let any = match value {
            Attribute::Text(text) => string(text),
            Attribute::Number(number) => int(number),
            Attribute::Flag(flag) => Some(AnyValue {
                value: Some(Value::BoolValue(flag)),
            }),
        };
        let key_strindex = self.string(key);
        let entry = otlp::KeyValueAndUnit {
            key_strindex,
            value: any,
            unit_strindex: 0,
        };
        let index = push(&mut self.dictionary.attribute_table, entry);
        self.attributes.insert((key, value), index);
        index
    }

    /// Attributes that all samples of a process share. Empty texts are left out: absent says the same.
    fn process(&mut self, process: usize) -> Vec<i32> {
        if let Some(indices) = &self.processes[process] {
            return indices.clone();
        }
        let indices = self.attributes_of(&self.batch.processes[process]);
        self.processes[process] = Some(indices.clone());
        indices
    }

    fn attributes_of(&mut self, process: &'a Process) -> Vec<i32> {
        // All of both by their names: a field more does not compile until it is told, or said to be left out.
        let Process {
            tgid,
            start_ticks,
            exec_count,
            executable,
            executable_path,
            command_line,
            build_id,
            metadata,
        } = process;
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
        } = &**metadata;
        let mut indices = vec![
            self.attribute("process.pid", Attribute::Number(u64::from(*tgid))),
            self.attribute("stakeout.process.start_ticks", Attribute::Number(*start_ticks)),
            self.attribute("stakeout.process.exec_count", Attribute::Number(u64::from(*exec_count))),
        ];
        let texts = [
            ("service.name", Some(service)),
            ("service.version", version.as_ref()),
            ("process.executable.name", Some(executable)),
            ("process.executable.path", Some(executable_path)),
            ("process.command_line", Some(command_line)),
            ("process.executable.build_id.gnu", build_id.as_ref()),
            ("process.linux.cgroup", Some(cgroup)),
            ("container.id", container_id.as_ref()),
            ("container.name", container_name.as_ref()),
            ("container.image.name", image.as_ref()),
            ("k8s.pod.name", pod.as_ref()),
            ("k8s.namespace.name", namespace.as_ref()),
            ("k8s.workload.name", workload.as_ref()),
            ("systemd.unit", unit.as_ref()),
        ];
        for (key, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                indices.push(self.attribute(key, Attribute::Text(text)));
            }
        }
        indices
    }

    fn stack(&mut self, stack: usize) -> i32 {
        if let Some(index) = self.stacks[stack] {
            return index;
        }
        let frames: &'a [u32] = &self.batch.stacks[stack].frames;
        let mut location_indices = Vec::with_capacity(frames.len());
        let mut rest = frames;
        while !rest.is_empty() {
            let (place, further) = rest.split_at(self.inlined_run(rest));
            location_indices.push(self.location(place));
            rest = further;
        }
        let index = push(&mut self.dictionary.stack_table, otlp::Stack { location_indices });
        self.stacks[stack] = Some(index);
        index
    }

    /// How many of the first frames are one place in the code: inlined ones and the one that they were inlined into.
    fn inlined_run(&self, frames: &[u32]) -> usize {
        let frame = |index: usize| &self.batch.frames[frames[index] as usize];
        let mut length = 1;
        while length < frames.len() && frame(length - 1).inlined && belongs(frame(length - 1), frame(length)) {
            length += 1;
        }
        length
    }

    fn location(&mut self, place: &'a [u32]) -> i32 {
        if let Some(index) = self.locations.get(place) {
            return *index;
        }
        let batch = self.batch;
        let outer: &'a Frame = &batch.frames[place[place.len() - 1] as usize];
        let mapping_index = self.mapping(&outer.module, outer.build_id.as_deref());
        let mut lines = Vec::with_capacity(place.len());
        for frame in place.iter().map(|index| &batch.frames[*index as usize]) {
            if let Some(function) = &frame.function {
                let function_index = self.function(function, frame.file.as_ref());
                lines.push(otlp::Line {
                    function_index,
                    line: i64::from(frame.line),
                    column: 0,
                });
            }
        }
        let kind = match outer.kind {
            FrameKind::Kernel => Some("kernel"),
            FrameKind::Native => Some("native"),
            FrameKind::Interpreted(language) => Some(language),
            FrameKind::Jit => Some("jit"),
            FrameKind::Unknown => None,
        };
        let attribute_indices = kind
            .map(|kind| self.attribute("profile.frame.type", Attribute::Text(kind)))
            .into_iter()
            .collect();
        let address = if lines.is_empty() { outer.offset.unwrap_or(0) } else { 0 };
        let location = otlp::Location {
            mapping_index,
            address,
            lines,
            attribute_indices,
        };
        let index = push(&mut self.dictionary.location_table, location);
        self.locations.insert(place, index);
        index
    }

    fn function(&mut self, name: &'a Arc<str>, file: Option<&'a Arc<str>>) -> i32 {
        let name_strindex = self.string(name);
        let filename_strindex = file.map_or(0, |file| self.string(file));
        let table = &mut self.dictionary.function_table;
        *self
            .functions
            .entry((name_strindex, filename_strindex))
            .or_insert_with(|| {
                push(
                    table,
                    otlp::Function {
                        name_strindex,
                        filename_strindex,
                        ..otlp::Function::default()
                    },
                )
            })
    }

    /// 0, the empty mapping, for code that no file is known of.
    fn mapping(&mut self, module: &'a str, build_id: Option<&'a str>) -> i32 {
        if module.is_empty() && build_id.is_none() {
            return 0;
        }
        if let Some(index) = self.mappings.get(&(module, build_id)) {
            return *index;
        }
        let filename_strindex = self.string(module);
        let attribute_indices = build_id
            .map(|id| self.attribute("process.executable.build_id.gnu", Attribute::Text(id)))
            .into_iter()
            .collect();
        let mapping = otlp::Mapping {
            filename_strindex,
            attribute_indices,
            ..otlp::Mapping::default()
        };
        let index = push(&mut self.dictionary.mapping_table, mapping);
        self.mappings.insert((module, build_id), index);
        index
    }
}

/// What must be equal for two samples to be one OTLP sample with two time stamps: all that becomes its attributes, but
/// for what the rest decides.
type SameSample<'a> = (u32, u32, u32, u32, SampleKind, &'a str, Option<&'a Woken>, u64);

fn same_sample(sample: &Sample) -> SameSample<'_> {
    let Sample {
        kind,
        // Each time stamp has its own; of a burst it is the profile's period.
        value_ns: _,
        wait_ns,
        // The stack decides it.
        wait_class: _,
        ts_unix_ns: _,
        cpu,
        tid,
        ref thread,
        process,
        stack,
        ref woken,
    } = *sample;
    let wait_ns = three_digits(wait_ns);
    (stack, process, tid, cpu, kind, thread, woken.as_ref(), wait_ns)
}

/// Rounded to three digits, which is within half a percent: lengths of waits are few then, and pack well.
fn three_digits(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(2));
    number.saturating_add(unit / 2) / unit * unit
}

fn value(sample: &Sample) -> i64 {
    i64::try_from(sample.value_ns).unwrap_or(i64::MAX)
}

/// Whether `outer` is what the inlined frame before it was inlined into, and not the start of another place.
fn belongs(inlined: &Frame, outer: &Frame) -> bool {
    inlined.kind == outer.kind
        && inlined.module == outer.module
        && inlined.build_id == outer.build_id
        && inlined.function.is_some()
        && outer.function.is_some()
}

/// Appends and returns the index. A batch is far below 2^31 entries of anything.
fn push<T>(table: &mut Vec<T>, entry: T) -> i32 {
    table.push(entry);
    i32::try_from(table.len() - 1).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
