//! A batch of the fleet as an OTLP request, by the conventions of `server/docs/wire.md`.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use uuid::Uuid;

use crate::fleet::{Fleet, Program, Rng};

/// Samples a second and CPU that the fleet claims to take; a sample stands for 1/20 s.
const FREQUENCY_HZ: i64 = 20;
const PERIOD_NS: i64 = 1_000_000_000 / FREQUENCY_HZ;
const CPUS: u32 = 16;

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// How late a timer's interrupt may come: times without noise would take less room than those of real machines.
const LATE_NS: u32 = 20_000;

/// What differs from batch to batch.
pub(crate) struct Batch<'a> {
    pub(crate) node: &'a str,
    pub(crate) instance: Uuid,
    pub(crate) number: u64,
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    pub(crate) samples: u32,
    /// Samples of the instance so far, this batch included.
    pub(crate) taken: u64,
}

/// The encoded request. Each sample has a time stamp of its own, so that a stored sample can be told from every other
/// one of its node.
pub(crate) fn request(batch: &Batch<'_>, fleet: &Fleet, services: &[u32], rng: &mut Rng) -> Vec<u8> {
    let mut tables = Tables::default();
    let mut groups: BTreeMap<(u32, u32, u32, u32), Vec<u64>> = BTreeMap::new();
    let step = (batch.until_ns - batch.from_ns) / u64::from(batch.samples.max(1));
    for index in 0..batch.samples {
        let service = services[rng.below(services.len() as u32) as usize];
        let stack = fleet.pick(rng);
        // A stack runs on few threads, a thread on few CPUs.
        let thread = stack % 6;
        let cpu = (service + thread + rng.below(2)) % CPUS;
        let late = u64::from(rng.below(LATE_NS)) % step.max(1);
        let time = batch.from_ns + u64::from(index) * step + late;
        groups.entry((service, stack, thread, cpu)).or_default().push(time);
    }
    let samples = groups
        .into_iter()
        .map(|((service, stack, thread, cpu), times)| otlp::Sample {
            stack_index: tables.stack(fleet, service, stack),
            attribute_indices: tables.sample_attributes(service, thread, cpu),
            timestamps_unix_nano: times,
            ..otlp::Sample::default()
        })
        .collect();
    let profile = otlp::Profile {
        sample_type: Some(tables.value_type("samples", "count")),
        period_type: Some(tables.value_type("cpu", "nanoseconds")),
        period: PERIOD_NS,
        time_unix_nano: batch.from_ns,
        duration_nano: batch.until_ns - batch.from_ns,
        samples,
        ..otlp::Profile::default()
    };
    let request = ExportProfilesServiceRequest {
        resource_profiles: vec![otlp::ResourceProfiles {
            resource: Some(Resource {
                attributes: resource(batch),
                ..Resource::default()
            }),
            scope_profiles: vec![otlp::ScopeProfiles {
                profiles: vec![profile],
                ..otlp::ScopeProfiles::default()
            }],
            ..otlp::ResourceProfiles::default()
        }],
        dictionary: Some(tables.dictionary()),
    };
    request.encode_to_vec()
}

fn resource(batch: &Batch<'_>) -> Vec<KeyValue> {
    let int = |value: u64| Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX));
    let text = |value: &str| Value::StringValue(value.to_owned());
    let ticks = (batch.until_ns - batch.from_ns) / 1_000_000_000 * u64::from(CPUS) * FREQUENCY_HZ as u64;
    [
        ("host.name", text(batch.node)),
        ("host.arch", text("amd64")),
        ("os.version", text("6.1.0-load")),
        ("stakeout.instance", text(&batch.instance.to_string())),
        ("stakeout.batch", int(batch.number)),
        ("stakeout.agent.version", text("0.0.0-load")),
        ("stakeout.boot_id", text("00000000-0000-0000-0000-000000000000")),
        ("stakeout.frequency_hz", Value::IntValue(FREQUENCY_HZ)),
        ("stakeout.from_unix_nano", int(batch.from_ns)),
        ("stakeout.until_unix_nano", int(batch.until_ns)),
        ("stakeout.cpus", int(u64::from(CPUS))),
        ("stakeout.ticks", int(ticks.max(u64::from(batch.samples)))),
        (
            "stakeout.idle_ticks",
            int(ticks.saturating_sub(u64::from(batch.samples))),
        ),
        ("stakeout.samples_taken", int(batch.taken)),
        ("stakeout.lost.ring_full", int(0)),
        ("stakeout.cpu_seconds", Value::DoubleValue(batch.number as f64 * 0.005)),
        ("stakeout.bpf_seconds", Value::DoubleValue(batch.number as f64 * 0.002)),
        ("stakeout.rss_bytes", int(30 << 20)),
        ("stakeout.bpf_map_bytes", int(8 << 20)),
    ]
    .into_iter()
    .map(|(key, value)| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    })
    .collect()
}

/// The dictionary as it grows. Entry 0 of every table means "none".
#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_at: HashMap<String, i32>,
    functions: Vec<otlp::Function>,
    locations: Vec<otlp::Location>,
    /// By name: all services run on one kernel.
    kernel_at: HashMap<String, i32>,
    placed: HashMap<u32, Placed>,
    mappings: Vec<otlp::Mapping>,
    mapping_at: HashMap<String, i32>,
    attributes: Vec<otlp::KeyValueAndUnit>,
    attribute_at: HashMap<(&'static str, String), i32>,
    /// By service, thread and CPU.
    attributes_of: HashMap<(u32, u32, u32), Vec<i32>>,
    stacks: Vec<otlp::Stack>,
}

/// Where the parts of one service's program stand in the dictionary; 0: not yet.
struct Placed {
    locations: Vec<i32>,
    stacks: Vec<i32>,
}

/// The index of the element that is about to be pushed; entry 0 is added with the dictionary.
fn next<T>(table: &[T]) -> i32 {
    i32::try_from(table.len() + 1).unwrap_or(i32::MAX)
}

impl Tables {
    fn string(&mut self, text: &str) -> i32 {
        if let Some(&at) = self.string_at.get(text) {
            return at;
        }
        let at = next(&self.strings);
        self.strings.push(text.to_owned());
        self.string_at.insert(text.to_owned(), at);
        at
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> otlp::ValueType {
        otlp::ValueType {
            type_strindex: self.string(kind),
            unit_strindex: self.string(unit),
        }
    }

    fn attribute(&mut self, key: &'static str, value: Value) -> i32 {
        let by = (key, format!("{value:?}"));
        if let Some(&at) = self.attribute_at.get(&by) {
            return at;
        }
        let key_strindex = self.string(key);
        let at = next(&self.attributes);
        self.attributes.push(otlp::KeyValueAndUnit {
            key_strindex,
            value: Some(AnyValue { value: Some(value) }),
            ..otlp::KeyValueAndUnit::default()
        });
        self.attribute_at.insert(by, at);
        at
    }

    fn sample_attributes(&mut self, service: u32, thread: u32, cpu: u32) -> Vec<i32> {
        if let Some(attributes) = self.attributes_of.get(&(service, thread, cpu)) {
            return attributes.clone();
        }
        let tgid = i64::from(1000 + service * 10);
        let name = format!("service-{service}");
        let attributes = vec![
            self.attribute("service.name", Value::StringValue(name.clone())),
            self.attribute("process.executable.name", Value::StringValue(name)),
            self.attribute("process.pid", Value::IntValue(tgid)),
            self.attribute("stakeout.process.start_ticks", Value::IntValue(tgid)),
            self.attribute("thread.id", Value::IntValue(tgid + i64::from(thread))),
            self.attribute("thread.name", Value::StringValue(format!("worker-{thread}"))),
            self.attribute("cpu.logical_number", Value::IntValue(i64::from(cpu))),
        ];
        self.attributes_of.insert((service, thread, cpu), attributes.clone());
        attributes
    }

    fn stack(&mut self, fleet: &Fleet, service: u32, stack: u32) -> i32 {
        let program = fleet.program(service);
        let mut placed = self.placed.remove(&service).unwrap_or_else(|| Placed {
            locations: vec![0; program.functions.len()],
            stacks: vec![0; fleet.stacks() as usize],
        });
        let at = &mut placed.stacks[stack as usize];
        if *at == 0 {
            let frames = program.stack(stack).iter();
            let location_indices = frames
                .map(|function| {
                    let location = &mut placed.locations[*function as usize];
                    if *location == 0 {
                        *location = self.add_location(service, program, *function);
                    }
                    *location
                })
                .collect();
            *at = next(&self.stacks);
            self.stacks.push(otlp::Stack { location_indices });
        }
        let at = *at;
        self.placed.insert(service, placed);
        at
    }

    fn add_location(&mut self, service: u32, program: &Program, function: u32) -> i32 {
        let function = &program.functions[function as usize];
        if let Some(at) = self.kernel_at.get(&function.name) {
            return *at;
        }
        let module = if function.kernel {
            "[kernel]".to_owned()
        } else {
            format!("/usr/bin/service-{service}")
        };
        let mapping_index = self.mapping(module);
        let kind = self.attribute(
            "profile.frame.type",
            Value::StringValue(if function.kernel { "kernel" } else { "native" }.to_owned()),
        );
        let name_strindex = self.string(&function.name);
        let function_index = next(&self.functions);
        self.functions.push(otlp::Function {
            name_strindex,
            ..otlp::Function::default()
        });
        let at = next(&self.locations);
        self.locations.push(otlp::Location {
            mapping_index,
            lines: vec![otlp::Line {
                function_index,
                ..otlp::Line::default()
            }],
            attribute_indices: vec![kind],
            ..otlp::Location::default()
        });
        if function.kernel {
            self.kernel_at.insert(function.name.clone(), at);
        }
        at
    }

    fn mapping(&mut self, module: String) -> i32 {
        if let Some(&at) = self.mapping_at.get(&module) {
            return at;
        }
        let filename_strindex = self.string(&module);
        let at = next(&self.mappings);
        self.mappings.push(otlp::Mapping {
            filename_strindex,
            ..otlp::Mapping::default()
        });
        self.mapping_at.insert(module, at);
        at
    }

    fn dictionary(self) -> otlp::ProfilesDictionary {
        fn with_none<T: Default>(table: Vec<T>) -> Vec<T> {
            std::iter::once(T::default()).chain(table).collect()
        }
        otlp::ProfilesDictionary {
            mapping_table: with_none(self.mappings),
            location_table: with_none(self.locations),
            function_table: with_none(self.functions),
            link_table: vec![otlp::Link::default()],
            string_table: with_none(self.strings),
            attribute_table: with_none(self.attributes),
            stack_table: with_none(self.stacks),
        }
    }
}
