//! The same as prost reads, from requests of every shape; errors for what is broken.

use super::*;
use crate::ingest::wire::tables::Stack;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as ProstValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue as ProstKeyValue};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1::Resource as ProstResource;
use prost::Message;

/// xorshift64*
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    /// Small and large, negative too.
    fn int(&mut self) -> i64 {
        let bits = self.below(64);
        let value = (self.below(1 << 31) << 31 | self.below(1 << 31)) as i64;
        if self.below(4) == 0 {
            -(value >> bits)
        } else {
            value >> bits
        }
    }

    fn many<T>(&mut self, most: u64, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }

    fn text(&mut self) -> String {
        self.many(9, |rng| ['a', 'ü', '/', '\u{1f525}'][rng.below(4) as usize])
            .into_iter()
            .collect()
    }

    fn value(&mut self) -> Option<AnyValue> {
        let value = match self.below(9) {
            0 => return None,
            1 => None,
            2 => Some(ProstValue::StringValue(self.text())),
            3 => Some(ProstValue::BoolValue(self.below(2) == 1)),
            4 => Some(ProstValue::IntValue(self.int())),
            5 => Some(ProstValue::DoubleValue(self.int() as f64 / 3.0)),
            6 => Some(ProstValue::BytesValue(vec![1, 2])),
            7 => Some(ProstValue::StringValueStrindex(self.int() as i32)),
            _ => Some(ProstValue::ArrayValue(ArrayValue {
                values: self.many(2, |rng| AnyValue {
                    value: Some(ProstValue::IntValue(rng.int())),
                }),
            })),
        };
        Some(AnyValue { value })
    }

    fn value_type(&mut self) -> Option<otlp::ValueType> {
        (self.below(3) > 0).then(|| otlp::ValueType {
            type_strindex: self.int() as i32,
            unit_strindex: self.int() as i32,
        })
    }

    fn sample(&mut self) -> otlp::Sample {
        otlp::Sample {
            stack_index: self.int() as i32,
            attribute_indices: self.many(5, |rng| rng.int() as i32),
            link_index: self.int() as i32,
            values: self.many(3, Self::int),
            timestamps_unix_nano: self.many(3, |rng| rng.int() as u64),
        }
    }

    fn profile(&mut self) -> otlp::Profile {
        otlp::Profile {
            sample_type: self.value_type(),
            samples: self.many(6, Self::sample),
            time_unix_nano: self.int() as u64,
            duration_nano: self.int() as u64,
            period_type: self.value_type(),
            period: self.int(),
            profile_id: vec![7; self.below(17) as usize],
            dropped_attributes_count: self.int() as u32,
            original_payload_format: self.text(),
            original_payload: vec![0x0a; self.below(9) as usize],
            attribute_indices: self.many(3, |rng| rng.int() as i32),
        }
    }

    fn resource(&mut self) -> otlp::ResourceProfiles {
        let attributes = self.many(4, |rng| ProstKeyValue {
            key: rng.text(),
            value: rng.value(),
            key_strindex: rng.int() as i32,
        });
        otlp::ResourceProfiles {
            resource: (self.below(4) > 0).then(|| ProstResource {
                attributes,
                ..Default::default()
            }),
            scope_profiles: self.many(2, |rng| otlp::ScopeProfiles {
                profiles: rng.many(3, Self::profile),
                schema_url: rng.text(),
                ..Default::default()
            }),
            schema_url: self.text(),
        }
    }

    fn dictionary(&mut self) -> otlp::ProfilesDictionary {
        let index = |rng: &mut Self| rng.int() as i32;
        otlp::ProfilesDictionary {
            mapping_table: self.many(4, |rng| otlp::Mapping {
                memory_start: rng.int() as u64,
                memory_limit: rng.int() as u64,
                file_offset: rng.int() as u64,
                filename_strindex: index(rng),
                attribute_indices: rng.many(3, index),
            }),
            location_table: self.many(9, |rng| otlp::Location {
                mapping_index: index(rng),
                address: rng.int() as u64,
                lines: rng.many(3, |rng| otlp::Line {
                    function_index: index(rng),
                    line: rng.int(),
                    column: rng.int(),
                }),
                attribute_indices: rng.many(3, index),
            }),
            function_table: self.many(9, |rng| otlp::Function {
                name_strindex: index(rng),
                system_name_strindex: index(rng),
                filename_strindex: index(rng),
                start_line: rng.int(),
            }),
            link_table: self.many(2, |_| otlp::Link::default()),
            string_table: self.many(9, Self::text),
            attribute_table: self.many(5, |rng| otlp::KeyValueAndUnit {
                key_strindex: index(rng),
                value: rng.value(),
                unit_strindex: index(rng),
            }),
            stack_table: self.many(9, |rng| otlp::Stack {
                location_indices: rng.many(40, index),
            }),
        }
    }

    fn request(&mut self) -> ExportProfilesServiceRequest {
        ExportProfilesServiceRequest {
            resource_profiles: self.many(3, Self::resource),
            dictionary: (self.below(5) > 0).then(|| self.dictionary()),
        }
    }
}

fn expected_value(value: Option<&AnyValue>) -> Value<'_> {
    match value.and_then(|value| value.value.as_ref()) {
        Some(ProstValue::StringValue(text)) => Value::Text(text),
        Some(ProstValue::BoolValue(value)) => Value::Bool(*value),
        Some(ProstValue::IntValue(value)) => Value::Int(*value),
        Some(ProstValue::DoubleValue(value)) => Value::Real(*value),
        Some(ProstValue::StringValueStrindex(index)) => Value::TextIndex(*index),
        Some(ProstValue::ArrayValue(list)) => {
            let texts = list.values.iter().filter_map(|value| match value.value.as_ref()? {
                ProstValue::StringValue(text) => Some(text.as_str()),
                _ => None,
            });
            Value::List(texts.into_iter().find(|text| !text.is_empty()).unwrap_or(""))
        }
        _ => Value::Other,
    }
}

fn expected_type(kind: Option<&otlp::ValueType>) -> Option<ValueType> {
    kind.map(|kind| ValueType {
        kind: kind.type_strindex,
        unit: kind.unit_strindex,
    })
}

/// Compares what was read to what prost makes of the same bytes; false where the samples are broken.
fn same(read: &Request<'_>, prost: &ExportProfilesServiceRequest) -> bool {
    let mut whole = true;
    assert_eq!(read.resources.len(), prost.resource_profiles.len());
    for (ours, theirs) in read.resources.iter().zip(&prost.resource_profiles) {
        let attributes = theirs.resource.iter().flat_map(|resource| &resource.attributes);
        let attributes: Vec<_> = attributes
            .map(|attribute| KeyValue {
                key: attribute.key.as_bytes(),
                key_strindex: attribute.key_strindex,
                value: expected_value(attribute.value.as_ref()),
            })
            .collect();
        assert_eq!(ours.attributes, attributes);
        let profiles: Vec<_> = theirs.scope_profiles.iter().flat_map(|scope| &scope.profiles).collect();
        assert_eq!(ours.profiles.len(), profiles.len());
        for (ours, theirs) in ours.profiles.iter().zip(profiles) {
            assert_eq!(ours.sample_type, expected_type(theirs.sample_type.as_ref()));
            assert_eq!(ours.period_type, expected_type(theirs.period_type.as_ref()));
            assert_eq!(
                (ours.period, ours.time_unix_nano, ours.duration_nano),
                (theirs.period, theirs.time_unix_nano, theirs.duration_nano)
            );
            let mut samples = Vec::new();
            let result = ours.each_sample(Layout::Newer, read.budget, |sample| {
                let attributes: Vec<i32> = sample.attributes.iter().collect();
                samples.push((sample.stack, attributes, sample.values.clone(), sample.times.clone()));
                Ok(())
            });
            whole &= result.is_ok();
            let expected = theirs.samples.iter().map(|sample| {
                let (values, times) = (sample.values.clone(), sample.timestamps_unix_nano.clone());
                (sample.stack_index, sample.attribute_indices.clone(), values, times)
            });
            assert_eq!(samples, expected.take(samples.len()).collect::<Vec<_>>());
            assert!(result.is_err() || samples.len() == theirs.samples.len());
        }
    }
    let (ours, theirs) = (&read.tables, prost.dictionary.clone().unwrap_or_default());
    assert!(
        ours.strings
            .iter()
            .copied()
            .eq(theirs.string_table.iter().map(String::as_bytes))
    );
    assert_eq!(ours.mappings.len(), theirs.mapping_table.len());
    for (ours, theirs) in ours.mappings.iter().zip(&theirs.mapping_table) {
        assert_eq!(ours.file, theirs.filename_strindex);
        assert_eq!(read.tables.indices(&ours.attributes), theirs.attribute_indices);
    }
    assert_eq!(ours.locations.len(), theirs.location_table.len());
    for (ours, theirs) in ours.locations.iter().zip(&theirs.location_table) {
        assert_eq!((ours.mapping, ours.address), (theirs.mapping_index, theirs.address));
        assert_eq!(read.tables.indices(&ours.attributes), theirs.attribute_indices);
        let lines: Vec<_> = read
            .tables
            .lines(&ours.lines)
            .iter()
            .map(|l| (l.function, l.line))
            .collect();
        let expected: Vec<_> = theirs.lines.iter().map(|l| (l.function_index, l.line)).collect();
        assert_eq!(lines, expected);
    }
    let functions: Vec<_> = ours.functions.iter().map(|f| (f.name, f.system_name, f.file)).collect();
    let expected = theirs.function_table.iter();
    let expected: Vec<_> = expected
        .map(|f| (f.name_strindex, f.system_name_strindex, f.filename_strindex))
        .collect();
    assert_eq!(functions, expected);
    let attributes = theirs.attribute_table.iter().map(|attribute| KeyValue {
        key: b"",
        key_strindex: attribute.key_strindex,
        value: expected_value(attribute.value.as_ref()),
    });
    assert_eq!(ours.attributes, attributes.collect::<Vec<_>>());
    assert_eq!(ours.stacks.len(), theirs.stack_table.len());
    for (ours, theirs) in ours.stacks.iter().zip(&theirs.stack_table) {
        assert_eq!(ours.locations().collect::<Vec<_>>(), theirs.location_indices);
    }
    whole
}

#[test]
fn every_request_reads_as_prost_reads_it() {
    let mut rng = Rng(0x5eed);
    for _ in 0..2_000 {
        let request = rng.request();
        let wire = request.encode_to_vec();
        assert!(same(&read(&wire, 1 << 20).unwrap(), &request));
    }
}

#[test]
fn usual_locations_and_functions_read_as_prost_reads_them_damaged_too() {
    let mut rng = Rng(0xbeef);
    for _ in 0..3_000 {
        // A mapping, a line and an attribute, and a name: of one byte and two, around where one more begins; some
        // have a field more, or less.
        let small = |rng: &mut Rng| rng.below(160) as i32;
        let large = |rng: &mut Rng| (120 + rng.below(16_300)) as i32;
        let seldom = |rng: &mut Rng, number: i64| if rng.below(8) == 0 { number } else { 0 };
        let dictionary = otlp::ProfilesDictionary {
            location_table: rng.many(9, |rng| otlp::Location {
                mapping_index: small(rng),
                address: seldom(rng, 7) as u64,
                lines: vec![
                    otlp::Line {
                        function_index: large(rng),
                        line: seldom(rng, 300),
                        ..Default::default()
                    };
                    1 + seldom(rng, 1) as usize
                ],
                attribute_indices: vec![small(rng); 1 + seldom(rng, 1) as usize],
            }),
            function_table: rng.many(9, |rng| otlp::Function {
                name_strindex: large(rng),
                filename_strindex: seldom(rng, 9) as i32,
                ..Default::default()
            }),
            ..Default::default()
        };
        let request = ExportProfilesServiceRequest {
            dictionary: Some(dictionary),
            ..Default::default()
        };
        let mut wire = request.encode_to_vec();
        assert!(same(&read(&wire, 1 << 20).unwrap(), &request));
        let at = rng.below(wire.len() as u64) as usize;
        wire[at] = rng.below(256) as u8;
        if let (Ok(ours), Ok(theirs)) = (
            read(&wire, 1 << 20),
            ExportProfilesServiceRequest::decode(wire.as_slice()),
        ) {
            same(&ours, &theirs);
        }
    }
}

#[test]
fn what_comes_in_two_parts_is_put_together() {
    let mut rng = Rng(0xabc);
    for _ in 0..200 {
        // Concatenated messages are merged, as protobuf says.
        let wire = [rng.request().encode_to_vec(), rng.request().encode_to_vec()].concat();
        let merged = ExportProfilesServiceRequest::decode(wire.as_slice()).unwrap();
        assert!(same(&read(&wire, 1 << 20).unwrap(), &merged));
    }
}

#[test]
fn indices_unpack_to_what_they_are_read_as_one_by_one() {
    let mut rng = Rng(0xf00d);
    for round in 0..5_000 {
        // Of two bytes mostly, as a large request's, and of one, three and ten.
        let indices = rng.many(60, |rng| match rng.below(round / 100 + 2) {
            0 => rng.int() as i32,
            _ => 128 + rng.below(16_256) as i32,
        });
        let stack = otlp::Stack {
            location_indices: indices.clone(),
        };
        let wire = stack.encode_to_vec();
        let (most, mut unpacked) = (rng.below(70) as usize, vec![7]);
        Stack(&wire).unpack(most, &mut unpacked);
        assert_eq!(unpacked, indices[..most.min(indices.len())]);
    }
}

/// A field with this content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut field);
    [&field, content].concat()
}

/// A field that holds all of these, one after another: protobuf merges the later ones into the first.
fn merged<M: Message>(number: u8, parts: &[M]) -> Vec<u8> {
    let content: Vec<u8> = parts.iter().flat_map(Message::encode_to_vec).collect();
    field(number, &content)
}

#[test]
fn entries_that_come_in_two_parts_are_put_together() {
    let mut rng = Rng(0xface);
    let index = |rng: &mut Rng| rng.int() as i32;
    for _ in 0..5_000 {
        let wire = {
            let attributes = [(); 2].map(|()| otlp::KeyValueAndUnit {
                key_strindex: index(&mut rng),
                value: rng.value(),
                unit_strindex: index(&mut rng),
            });
            let locations = [(); 2].map(|()| otlp::Location {
                mapping_index: index(&mut rng),
                lines: rng.many(2, |rng| otlp::Line {
                    line: rng.int(),
                    ..Default::default()
                }),
                attribute_indices: rng.many(2, index),
                ..Default::default()
            });
            let profiles = [(); 2].map(|()| rng.profile());
            let keys = [(); 2].map(|()| ProstKeyValue {
                key: rng.text(),
                value: rng.value(),
                key_strindex: index(&mut rng),
            });
            let resource = field(1, &merged(1, &keys));
            let scope = field(2, &merged(2, &profiles));
            let dictionary = [merged(6, &attributes), merged(2, &locations)].concat();
            [field(1, &[resource, scope].concat()), field(2, &dictionary)].concat()
        };
        let merged = ExportProfilesServiceRequest::decode(wire.as_slice()).unwrap();
        assert!(same(&read(&wire, 1 << 20).unwrap(), &merged));
    }
}

/// What is not looked at: there prost may find something broken.
const NOT_LOOKED_AT: [&str; 22] = [
    "ArrayValue.",
    "EntityRef.",
    "Function.start_line",
    "InstrumentationScope.",
    "KeyValueAndUnit.unit_strindex",
    "KeyValueList.",
    "Line.column",
    "Link.",
    "Mapping.file_offset",
    "Mapping.memory_limit",
    "Mapping.memory_start",
    "Profile.attribute_indices",
    "Profile.dropped_attributes_count",
    "Profile.duration_nano",
    "Profile.original_payload",
    "Profile.profile_id",
    "ProfilesDictionary.link_table",
    "Resource.dropped_attributes_count",
    "Resource.entity_refs",
    "Sample.link_index",
    "ScopeProfiles.scope",
    ".schema_url",
];

#[test]
fn damaged_requests_are_errors_or_read_as_prost_reads_them() {
    let mut rng = Rng(0xdead);
    let (mut errors, mut both) = (0, 0);
    for _ in 0..20_000 {
        let mut wire = rng.request().encode_to_vec();
        if wire.is_empty() {
            continue;
        }
        for _ in 0..=rng.below(3) {
            let at = rng.below(wire.len() as u64) as usize;
            match rng.below(3) {
                0 => wire[at] ^= 1 << rng.below(8),
                1 => wire.truncate(at.max(1)),
                _ => wire[at] = rng.below(256) as u8,
            }
        }
        let prost = ExportProfilesServiceRequest::decode(wire.as_slice());
        match (read(&wire, 1 << 20), prost) {
            (Ok(read), Ok(prost)) => {
                // Groups in a sample are the only thing that prost skips and this does not.
                same(&read, &prost);
                both += 1;
            }
            (Err(error), Ok(_)) => {
                // Nor does it know which fields older versions had.
                let error = error.to_string();
                assert!(
                    error.contains("wire type 3") || error.contains("1.7 or older"),
                    "{error}"
                );
                errors += 1;
            }
            (Err(_), Err(_)) => errors += 1,
            (Ok(read), Err(error)) => {
                let mut profiles = read.resources.iter().flat_map(|resource| &resource.profiles);
                let whole = profiles.all(|profile| profile.each_sample(Layout::Newer, read.budget, |_| Ok(())).is_ok());
                // Strings are looked at where they are asked for.
                let whole = whole
                    && read
                        .tables
                        .strings
                        .iter()
                        .all(|string| std::str::from_utf8(string).is_ok());
                // So are keys and values of attributes.
                let of_resources = read
                    .resources
                    .iter()
                    .flat_map(|one| one.attributes.iter().chain(&one.scope_attributes));
                let mut attributes = of_resources.chain(&read.tables.attributes);
                let is_text = |one: &KeyValue<'_>| std::str::from_utf8(one.key).is_ok() && one.value != Value::NotText;
                let whole = whole && attributes.all(is_text);
                let error = error.to_string();
                // In a list, and not that text or a number is broken.
                let in_list = error.contains("AnyValue.value: Key")
                    && !["UTF-8", "(expected"].iter().any(|broken| error.contains(broken));
                assert!(
                    !whole || in_list || NOT_LOOKED_AT.iter().any(|field| error.contains(field)),
                    "{error}"
                );
                errors += 1;
            }
        }
    }
    assert!(both > 1_000 && errors > 1_000, "{both} {errors}");
}

fn with_samples(count: usize) -> Vec<u8> {
    let profile = otlp::Profile {
        samples: vec![otlp::Sample::default(); count],
        ..Default::default()
    };
    let scope = otlp::ScopeProfiles {
        profiles: vec![profile],
        ..Default::default()
    };
    let resource = otlp::ResourceProfiles {
        scope_profiles: vec![scope],
        ..Default::default()
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![resource],
        dictionary: None,
    }
    .encode_to_vec()
}

#[test]
fn garbage_and_cut_messages_are_errors() {
    let wire = with_samples(10);
    for cut in 1..wire.len() {
        assert!(read(&wire[..cut], 1 << 20).is_err(), "cut at {cut}");
    }
    assert!(read(b"not a protobuf message at all", 1 << 20).is_err());
    assert!(read(&[0xff; 11], 1 << 20).is_err());
}

#[test]
fn many_small_entries_are_refused_before_they_take_memory() {
    let dictionary = otlp::ProfilesDictionary {
        location_table: vec![otlp::Location::default(); 100_000],
        ..Default::default()
    };
    let request = ExportProfilesServiceRequest {
        resource_profiles: vec![],
        dictionary: Some(dictionary),
    };
    let wire = request.encode_to_vec();
    assert!(wire.len() < 300_000);
    assert!(read(&wire, 100 << 20).is_ok());
    let error = read(&wire, 1 << 20).unwrap_err();
    assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
    // So are the numbers of one sample.
    let sample = otlp::Sample {
        values: vec![1; 1 << 20],
        ..Default::default()
    };
    let wire = otlp::Profile {
        samples: vec![sample],
        ..Default::default()
    }
    .encode_to_vec();
    let profile = profile(&wire, &mut AllocationBudget::new(1 << 20)).unwrap();
    assert!(
        profile
            .each_sample(Layout::Newer, AllocationBudget::new(32 << 20), |_| Ok(()))
            .is_ok()
    );
    let error = profile
        .each_sample(Layout::Newer, AllocationBudget::new(1 << 20), |_| Ok(()))
        .unwrap_err();
    assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
}

#[test]
fn a_node_is_known_that_a_collector_names_by_indices() {
    let recorded = include_bytes!("../../../tests/data/opentelemetry/collector.binpb");
    assert_eq!(read(recorded, 1 << 20).unwrap().node(), "node-a");
}
