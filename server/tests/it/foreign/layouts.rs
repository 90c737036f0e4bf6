//! One profile in the layouts of opentelemetry-proto 1.7, 1.9 and 1.10, built field by field: 100 samples of `left`,
//! 300 of `right`.

use crate::ingest::App;
use crate::support::{get, now_ns, post};
use prost::encoding::{WireType, encode_key, encode_varint};

const PERIOD_NS: u64 = 50_000_000;

fn int(field: u32, value: u64) -> Vec<u8> {
    let mut wire = Vec::new();
    encode_key(field, WireType::Varint, &mut wire);
    encode_varint(value, &mut wire);
    wire
}

fn fixed(field: u32, value: u64) -> Vec<u8> {
    let mut wire = Vec::new();
    encode_key(field, WireType::SixtyFourBit, &mut wire);
    wire.extend_from_slice(&value.to_le_bytes());
    wire
}

fn bytes(field: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut wire = Vec::new();
    encode_key(field, WireType::LengthDelimited, &mut wire);
    encode_varint(content.as_ref().len() as u64, &mut wire);
    wire.extend_from_slice(content.as_ref());
    wire
}

fn packed(field: u32, values: &[u64]) -> Vec<u8> {
    let mut wire = Vec::new();
    values.iter().for_each(|value| encode_varint(*value, &mut wire));
    if values.is_empty() { wire } else { bytes(field, wire) }
}

fn packed_fixed(field: u32, values: &[u64]) -> Vec<u8> {
    let wire: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    if values.is_empty() { wire } else { bytes(field, wire) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1_7,
    V1_9,
    V1_10,
}

/// What samples have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A time each, as profilers send.
    Times,
    /// One time a sample, of one attribute each: as many as values.
    OneTime,
    /// Nanoseconds, without times.
    Values,
    /// Ticks of 5 s, so that values are as small as indices.
    Counts,
}

/// `attributes`: samples name their threads.
fn request(version: Version, shape: Shape, attributes: bool, node: &str, begin_ns: u64) -> Vec<u8> {
    let strings = [
        "",
        "cpu",
        "nanoseconds",
        "samples",
        "count",
        "left",
        "right",
        "thread.name",
        "profile.frame.type",
        "app",
    ];
    let texts = |value: &str| bytes(2, bytes(1, value));
    let key = |index: u64, text: &str| match version {
        Version::V1_7 => bytes(1, text),
        _ => int(1, index),
    };
    // 1 and 2 are threads, 3 and 4 kinds of frames: counts are indices of something.
    let table = [
        Vec::new(),
        [key(7, "thread.name"), texts("left")].concat(),
        [key(7, "thread.name"), texts("right")].concat(),
        [key(8, "profile.frame.type"), texts("native")].concat(),
        [key(8, "profile.frame.type"), texts("kernel")].concat(),
    ];
    let table: Vec<_> = if attributes {
        table.to_vec()
    } else {
        // Only what frames name.
        [&table[..1], &table[3..], &table[3..4]].concat()
    };
    let of_frame = if attributes { 3 } else { 1 };
    let of_locations = if version == Version::V1_7 { 5 } else { 4 };
    let location = |function: u64| {
        let line = bytes(3, int(1, function));
        bytes(2, [int(1, 1), line, packed(of_locations, &[of_frame])].concat())
    };
    let mut dictionary = [
        bytes(1, []),
        bytes(1, int(4, 9)),
        bytes(2, []),
        location(1),
        location(2),
    ]
    .concat();
    dictionary.extend([bytes(3, []), bytes(3, int(1, 5)), bytes(3, int(1, 6))].concat());
    dictionary.extend(strings.iter().flat_map(|text| bytes(5, text)));
    dictionary.extend(table.iter().flat_map(|entry| bytes(6, entry)));
    if version != Version::V1_7 {
        dictionary.extend([bytes(7, []), bytes(7, packed(1, &[1])), bytes(7, packed(1, &[2]))].concat());
    }
    let mut samples = Vec::new();
    for (stack, quarters) in [(1, 1), (2, 3)] {
        let of_sample: &[u64] = if attributes { &[stack] } else { &[] };
        let times: Vec<u64> = (0..100 * quarters).map(|at| begin_ns + at * PERIOD_NS).collect();
        let mut add = |values: &[u64], times: &[u64]| {
            samples.extend(bytes(
                2,
                match version {
                    Version::V1_7 => {
                        let stack = [int(1, stack - 1), int(2, 1)].concat();
                        [stack, packed(3, values), packed(4, of_sample), packed(6, times)].concat()
                    }
                    Version::V1_9 => [
                        int(1, stack),
                        packed(2, values),
                        packed(3, of_sample),
                        packed_fixed(5, times),
                    ]
                    .concat(),
                    Version::V1_10 => [
                        int(1, stack),
                        packed(2, of_sample),
                        packed(4, values),
                        packed_fixed(5, times),
                    ]
                    .concat(),
                },
            ));
        };
        match shape {
            Shape::Times => add(&[], &times),
            Shape::OneTime => {
                let values: &[u64] = if attributes { &[] } else { &[1] };
                times.iter().for_each(|time| add(values, &[*time]));
            }
            Shape::Values => add(&[quarters * 5_000_000_000], &[]),
            Shape::Counts => add(&[quarters], &[]),
        }
    }
    let period = if shape == Shape::Counts {
        5_000_000_000
    } else {
        PERIOD_NS
    };
    let kind = if shape == Shape::Values {
        [int(1, 1), int(2, 2)]
    } else {
        [int(1, 3), int(2, 4)]
    }
    .concat();
    let of_period = [int(1, 1), int(2, 2)].concat();
    let profile = match version {
        Version::V1_7 => {
            let rest = [
                packed(3, &[1, 2]),
                int(4, begin_ns),
                int(5, 20_000_000_000),
                bytes(6, of_period),
                int(7, period),
            ];
            [bytes(1, kind), samples, rest.concat()].concat()
        }
        _ => {
            let rest = [
                fixed(3, begin_ns),
                int(4, 20_000_000_000),
                bytes(5, of_period),
                int(6, period),
            ];
            [bytes(1, kind), samples, rest.concat()].concat()
        }
    };
    let resource = bytes(1, bytes(1, [bytes(1, "host.name"), texts(node)].concat()));
    [
        bytes(1, [resource, bytes(2, bytes(2, profile))].concat()),
        bytes(2, dictionary),
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_layout_is_read_rightly_or_refused_by_name() {
    let app = App::start().await;
    let begin_ns = u64::try_from(now_ns()).unwrap() - 60_000_000_000;
    for (version, shape, attributes) in [
        (Version::V1_10, Shape::Times, true),
        (Version::V1_10, Shape::Times, false),
        (Version::V1_10, Shape::OneTime, true),
        (Version::V1_10, Shape::Values, true),
        (Version::V1_10, Shape::Values, false),
        (Version::V1_10, Shape::Counts, true),
        (Version::V1_9, Shape::Times, true),
        (Version::V1_9, Shape::Times, false),
        (Version::V1_9, Shape::OneTime, true),
        (Version::V1_9, Shape::OneTime, false),
        (Version::V1_9, Shape::Values, true),
        (Version::V1_9, Shape::Values, false),
        (Version::V1_9, Shape::Counts, true),
        (Version::V1_9, Shape::Counts, false),
        (Version::V1_7, Shape::Times, true),
        (Version::V1_7, Shape::Values, true),
        (Version::V1_7, Shape::Counts, false),
    ] {
        let what = format!("{version:?} {shape:?} {attributes}");
        let node = what.replace([' ', '_'], "-");
        let answer = post(&app.address, request(version, shape, attributes, &node, begin_ns), &[])
            .await
            .unwrap();
        if version == Version::V1_7 {
            let (code, said) = answer.refusal();
            assert_eq!((answer.status.as_u16(), code.as_str()), (400, "bad_profile"), "{what}");
            assert!(said.contains("opentelemetry-proto 1.7 or older"), "{what}: {said}");
            continue;
        }
        assert_eq!(
            (answer.status.as_u16(), answer.body.len()),
            (200, 0),
            "{what}: {answer:?}"
        );
        let of_node = format!("query=%7Bnode%3D%22{node}%22%7D&from=now-5m");
        let flame = get(&app.address, &format!("/api/v1/flamegraph?{of_node}&format=collapsed")).await;
        let text = String::from_utf8(flame.body.to_vec()).unwrap();
        let of = |name: &str| -> f64 {
            let line = text
                .lines()
                .find(|line| line.split([';', ' ']).any(|part| part == name))
                .unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert_eq!(of("right") / of("left"), 3.0, "{what}: {text}");
        let told = get(&app.address, &format!("/api/v1/flamegraph?{of_node}")).await.json();
        assert!(
            (told["cpu_seconds"].as_f64().unwrap() - 20.0).abs() < 0.02,
            "{what}: {told}"
        );
        let threads = get(&app.address, &format!("/api/v1/labels/thread/values?{of_node}"))
            .await
            .json();
        let right = if attributes {
            serde_json::json!(["left", "right"])
        } else {
            serde_json::json!([])
        };
        assert_eq!(threads["values"], right, "{what}");
    }
}
