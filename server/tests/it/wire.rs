//! OTLP requests from a few words, by the conventions of `docs/wire.md`.

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// CPU time that a sample stands for: 50 ms.
pub(crate) const PERIOD_NS: i64 = 50_000_000;
pub(crate) const CPUS: i64 = 2;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) ts_ns: i64,
    pub(crate) service: &'static str,
    pub(crate) tgid: i64,
    pub(crate) tid: i64,
    pub(crate) thread: &'static str,
    pub(crate) cpu: i64,
    /// Root first, such as `main;work;k:sys_read`: `k:` marks kernel frames, `?` a frame without a name; `~` before
    /// the whole that it was cut.
    pub(crate) stack: &'static str,
}

/// One agent's samples of one interval.
#[derive(Debug, Clone)]
pub(crate) struct Batch<'a> {
    pub(crate) node: &'a str,
    pub(crate) instance: &'a str,
    pub(crate) number: i64,
    pub(crate) from_ns: i64,
    pub(crate) until_ns: i64,
    pub(crate) period_ns: i64,
    /// Of what the timers of all CPUs should have had.
    pub(crate) missed_ticks: i64,
    pub(crate) samples: Vec<Sample>,
}

/// Waits for a CPU of each batch.
const RUN_QUEUES: &str = r#"[{"cpu":0,"ticks":100,"idle_ticks":25,"total_ns":5000,"longest_ns":3000,"lengths":[[1024,1],[3072,1]]},{"service":"s","total_ns":5000,"longest_ns":3000,"lengths":[[1024,1],[3072,1]]}]"#;

/// The first place of an equal entry, which is added if there is none.
fn place<T: PartialEq>(table: &mut Vec<T>, entry: T) -> i32 {
    let at = table.iter().position(|known| *known == entry).unwrap_or_else(|| {
        table.push(entry);
        table.len() - 1
    });
    at as i32
}

struct Dictionary(otlp::ProfilesDictionary);

impl Dictionary {
    fn new() -> Self {
        Dictionary(otlp::ProfilesDictionary {
            mapping_table: vec![Default::default()],
            location_table: vec![Default::default()],
            function_table: vec![Default::default()],
            link_table: vec![Default::default()],
            string_table: vec![String::new()],
            attribute_table: vec![Default::default()],
            stack_table: vec![Default::default()],
        })
    }

    fn value_type(&mut self, (kind, unit): (&str, &str)) -> otlp::ValueType {
        otlp::ValueType {
            type_strindex: self.text(kind),
            unit_strindex: self.text(unit),
        }
    }

    fn text(&mut self, text: &str) -> i32 {
        place(&mut self.0.string_table, text.to_owned())
    }

    fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let key_strindex = self.text(key);
        let entry = otlp::KeyValueAndUnit {
            key_strindex,
            value: Some(AnyValue { value: Some(value) }),
            ..Default::default()
        };
        place(&mut self.0.attribute_table, entry)
    }

    fn location(&mut self, frame: &str) -> i32 {
        let is_mark = frame == "[cut]" || frame.starts_with("[… ");
        let (kind, module, function) = match frame.strip_prefix("k:") {
            None if is_mark => ("", "", frame),
            Some(function) => ("kernel", "[kernel]", function),
            None => ("native", "/usr/bin/app", frame),
        };
        let filename_strindex = self.text(module);
        let mapping_index = place(
            &mut self.0.mapping_table,
            otlp::Mapping {
                filename_strindex,
                ..Default::default()
            },
        );
        let kind = self.attribute("profile.frame.type", Value::StringValue(kind.to_owned()));
        let mut location = otlp::Location {
            mapping_index,
            attribute_indices: vec![kind],
            ..Default::default()
        };
        if function == "?" {
            location.address = 0x1f20;
        } else {
            let name_strindex = self.text(function);
            let filename_strindex = self.text("/src/app.c");
            let function = otlp::Function {
                name_strindex,
                filename_strindex,
                ..Default::default()
            };
            let function_index = place(&mut self.0.function_table, function);
            location.lines = vec![otlp::Line {
                function_index,
                line: 7,
                ..Default::default()
            }];
        }
        place(&mut self.0.location_table, location)
    }

    fn stack(&mut self, stack: &str) -> i32 {
        let location_indices = stack.split(';').rev().map(|frame| self.location(frame)).collect();
        place(&mut self.0.stack_table, otlp::Stack { location_indices })
    }
}

/// What a profile of another sender has: values, time stamps, or both.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    pub(crate) node: &'static str,
    /// Kind and unit.
    pub(crate) sample_type: (&'static str, &'static str),
    pub(crate) period_type: (&'static str, &'static str),
    pub(crate) period: i64,
    pub(crate) time_ns: i64,
    pub(crate) length_ns: i64,
    /// Service, thread, stack, values and time stamps.
    pub(crate) samples: Vec<PlainSample>,
}

pub(crate) type PlainSample = (&'static str, &'static str, &'static str, Vec<i64>, Vec<i64>);

/// The encoded request of a sender without an account, of one profile or more of one node.
pub(crate) fn plain(profiles: &[Plain]) -> Vec<u8> {
    plain_with(profiles, |_, _| Vec::new())
}

/// The same with more attributes of samples, by the places of profile and sample.
pub(crate) fn plain_with(profiles: &[Plain], more: impl Fn(usize, usize) -> Vec<(&'static str, Value)>) -> Vec<u8> {
    let mut dictionary = Dictionary::new();
    let mut made = Vec::new();
    for (of, profile) in profiles.iter().enumerate() {
        let samples = profile.samples.iter().enumerate();
        let samples = samples.map(|(at, (service, thread, stack, values, times))| {
            let text = |text: &str| Value::StringValue(text.to_owned());
            let mut attributes = vec![("service.name", text(service)), ("thread.name", text(thread))];
            attributes.extend(more(of, at));
            otlp::Sample {
                stack_index: dictionary.stack(stack),
                attribute_indices: attributes
                    .into_iter()
                    .map(|(key, value)| dictionary.attribute(key, value))
                    .collect(),
                values: values.clone(),
                timestamps_unix_nano: times.iter().map(|ns| *ns as u64).collect(),
                ..Default::default()
            }
        });
        let samples = samples.collect();
        made.push(otlp::Profile {
            sample_type: Some(dictionary.value_type(profile.sample_type)),
            period_type: Some(dictionary.value_type(profile.period_type)),
            period: profile.period,
            time_unix_nano: profile.time_ns as u64,
            duration_nano: profile.length_ns as u64,
            samples,
            ..Default::default()
        });
    }
    let node = Value::StringValue(profiles[0].node.to_owned());
    let attributes = vec![key_value("host.name", node)];
    encoded(attributes, made, dictionary)
}

/// The encoded request.
pub(crate) fn request(batch: &Batch<'_>) -> Vec<u8> {
    let mut dictionary = Dictionary::new();
    let samples = batch
        .samples
        .iter()
        .map(|sample| {
            let text = |text: &str| Value::StringValue(text.to_owned());
            let attributes = [
                ("service.name", text(sample.service)),
                ("process.executable.name", text("app")),
                ("process.pid", Value::IntValue(sample.tgid)),
                ("stakeout.process.start_ticks", Value::IntValue(sample.tgid)),
                ("thread.id", Value::IntValue(sample.tid)),
                ("thread.name", text(sample.thread)),
                ("cpu.logical_number", Value::IntValue(sample.cpu)),
                (
                    "stakeout.stack.truncated",
                    Value::BoolValue(sample.stack.starts_with('~')),
                ),
            ];
            otlp::Sample {
                stack_index: dictionary.stack(sample.stack.trim_start_matches('~')),
                attribute_indices: attributes
                    .into_iter()
                    .map(|(key, value)| dictionary.attribute(key, value))
                    .collect(),
                timestamps_unix_nano: vec![sample.ts_ns as u64],
                ..Default::default()
            }
        })
        .collect();
    let profile = otlp::Profile {
        sample_type: Some(dictionary.value_type(("samples", "count"))),
        period_type: Some(dictionary.value_type(("cpu", "nanoseconds"))),
        period: batch.period_ns,
        time_unix_nano: batch.from_ns as u64,
        duration_nano: (batch.until_ns - batch.from_ns) as u64,
        samples,
        ..Default::default()
    };
    encoded(resource(batch), vec![profile], dictionary)
}

/// As [`request`], of an agent that says its version, and of some services the build id of their executables.
pub(crate) fn request_of_builds(batch: &Batch<'_>, builds: &[(&str, &str)]) -> Vec<u8> {
    let mut request = ExportProfilesServiceRequest::decode(request(batch).as_slice()).unwrap();
    let mut dictionary = Dictionary(request.dictionary.take().unwrap());
    let resource = &mut request.resource_profiles[0];
    let version = Value::StringValue("0.1.0-test".to_owned());
    let attributes = &mut resource.resource.as_mut().unwrap().attributes;
    attributes.push(key_value("stakeout.agent.version", version));
    for (service, build_id) in builds {
        let text = |text: &str| Value::StringValue(text.to_owned());
        let service = dictionary.attribute("service.name", text(service));
        let build_id = dictionary.attribute("process.executable.build_id.gnu", text(build_id));
        let samples = &mut resource.scope_profiles[0].profiles[0].samples;
        for sample in samples
            .iter_mut()
            .filter(|sample| sample.attribute_indices.contains(&service))
        {
            sample.attribute_indices.push(build_id);
        }
    }
    request.dictionary = Some(dictionary.0);
    request.encode_to_vec()
}

fn encoded(attributes: Vec<KeyValue>, profiles: Vec<otlp::Profile>, dictionary: Dictionary) -> Vec<u8> {
    ExportProfilesServiceRequest {
        resource_profiles: vec![otlp::ResourceProfiles {
            resource: Some(Resource {
                attributes,
                ..Default::default()
            }),
            scope_profiles: vec![otlp::ScopeProfiles {
                profiles,
                ..Default::default()
            }],
            ..Default::default()
        }],
        dictionary: Some(dictionary.0),
    }
    .encode_to_vec()
}

fn key_value(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    }
}

fn resource(batch: &Batch<'_>) -> Vec<KeyValue> {
    let ticks = (batch.until_ns - batch.from_ns) / batch.period_ns * CPUS - batch.missed_ticks;
    let text = |text: &str| Value::StringValue(text.to_owned());
    [
        ("host.name", text(batch.node)),
        ("stakeout.instance", text(batch.instance)),
        ("stakeout.batch", Value::IntValue(batch.number)),
        ("stakeout.boot_id", text("boot")),
        (
            "stakeout.frequency_hz",
            Value::IntValue(1_000_000_000 / batch.period_ns),
        ),
        ("stakeout.from_unix_nano", Value::IntValue(batch.from_ns)),
        ("stakeout.until_unix_nano", Value::IntValue(batch.until_ns)),
        ("stakeout.cpus", Value::IntValue(CPUS)),
        ("stakeout.run_queues", Value::StringValue(RUN_QUEUES.to_owned())),
        (
            "stakeout.waits_observed_ns",
            Value::IntValue((batch.until_ns - batch.from_ns) / 4),
        ),
        ("stakeout.ticks", Value::IntValue(ticks)),
        (
            "stakeout.idle_ticks",
            Value::IntValue(ticks - batch.samples.len() as i64),
        ),
        (
            "stakeout.samples_taken",
            Value::IntValue(batch.samples.len() as i64 + 3),
        ),
        ("stakeout.lost.ring_full", Value::IntValue(3)),
    ]
    .into_iter()
    .map(|(key, value)| key_value(key, value))
    .collect()
}

/// A request of a sender without an account as OTLP/JSON.
pub(crate) fn json_of(request: &[u8]) -> Vec<u8> {
    use serde_json::{Value as Json, json};
    let request = ExportProfilesServiceRequest::decode(request).unwrap();
    let dictionary = request.dictionary.unwrap();
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => json!({"stringValue": text}),
        None => json!({}),
        other => panic!("no text: {other:?}"),
    };
    let of_type = |of: &Option<otlp::ValueType>| {
        let of = of.unwrap_or_default();
        json!({"typeStrindex": of.type_strindex, "unitStrindex": of.unit_strindex})
    };
    let sample = |sample: &otlp::Sample| {
        json!({
            "stackIndex": sample.stack_index,
            "attributeIndices": sample.attribute_indices,
            "values": sample.values.iter().map(i64::to_string).collect::<Vec<_>>(),
            "timestampsUnixNano": sample.timestamps_unix_nano.iter().map(u64::to_string).collect::<Vec<_>>(),
        })
    };
    let profile = |profile: &otlp::Profile| {
        json!({
            "sampleType": of_type(&profile.sample_type),
            "periodType": of_type(&profile.period_type),
            "period": profile.period.to_string(),
            "timeUnixNano": profile.time_unix_nano.to_string(),
            "durationNano": profile.duration_nano.to_string(),
            "samples": profile.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    };
    let of_resource = |of: &otlp::ResourceProfiles| {
        let attributes = of.resource.iter().flat_map(|resource| &resource.attributes);
        let attributes = attributes.map(|one| json!({"key": one.key, "value": text(&one.value)}));
        let profiles = of.scope_profiles.iter().flat_map(|scope| &scope.profiles);
        json!({
            "resource": {"attributes": attributes.collect::<Vec<_>>()},
            "scopeProfiles": [{"profiles": profiles.map(profile).collect::<Vec<_>>()}],
        })
    };
    let location = |location: &otlp::Location| {
        let lines = location.lines.iter();
        let lines = lines.map(|line| json!({"functionIndex": line.function_index, "line": line.line.to_string()}));
        json!({
            "mappingIndex": location.mapping_index,
            "lines": lines.collect::<Vec<_>>(),
            "attributeIndices": location.attribute_indices,
        })
    };
    let function = |function: &otlp::Function| json!({"nameStrindex": function.name_strindex, "filenameStrindex": function.filename_strindex});
    fn table<T>(of: &[T], each: impl Fn(&T) -> Json) -> Vec<Json> {
        of.iter().map(each).collect()
    }
    let answer = json!({
        "resourceProfiles": table(&request.resource_profiles, of_resource),
        "dictionary": {
            "stringTable": dictionary.string_table,
            "mappingTable": table(&dictionary.mapping_table, |one| json!({"filenameStrindex": one.filename_strindex})),
            "functionTable": table(&dictionary.function_table, function),
            "locationTable": table(&dictionary.location_table, location),
            "attributeTable": table(&dictionary.attribute_table, |one| {
                json!({"keyStrindex": one.key_strindex, "value": text(&one.value)})
            }),
            "stackTable": table(&dictionary.stack_table, |one| json!({"locationIndices": one.location_indices})),
        },
    });
    answer.to_string().into_bytes()
}
