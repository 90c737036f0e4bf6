use std::collections::BTreeSet;

use super::*;
use crate::frames::{SampleKind, Stack, WaitClass, WaitState};
use crate::metadata::Metadata;
use crate::ship::{Report, RunQueues, Sample};

fn identity() -> Identity {
    Identity {
        node: "node-1".into(),
        arch: "amd64".into(),
        kernel_release: "6.1".into(),
        boot_id: "boot".into(),
        agent_version: "0.1.0".into(),
    }
}

fn frame(kind: FrameKind, module: &str, function: Option<&str>, inlined: bool) -> Frame {
    Frame {
        kind,
        module: module.into(),
        build_id: (module == "/bin/a").then(|| "abcd".into()),
        function: function.map(Into::into),
        file: None,
        line: 7,
        inlined,
        offset: function.is_none().then_some(0x1234),
    }
}

/// Two threads of one process and a kernel thread; kernel, native, inlined, interpreted and unnamed frames.
fn batch() -> Batch {
    let frames = vec![
        frame(FrameKind::Kernel, "[kernel]", Some("do_syscall_64"), false),
        frame(FrameKind::Native, "/bin/a", Some("inner"), true),
        frame(FrameKind::Native, "/bin/a", Some("middle"), true),
        frame(FrameKind::Native, "/bin/a", Some("outer"), false),
        frame(FrameKind::Native, "/bin/a", None, false),
        frame(FrameKind::Interpreted("cpython"), "", Some("main.py:run"), false),
        frame(FrameKind::Unknown, "", None, false),
        frame(FrameKind::Jit, "[anon]", Some("lambda"), true),
    ];
    let stacks = vec![
        Stack {
            frames: vec![0, 1, 2, 3, 4],
            truncated: false,
        },
        Stack {
            frames: vec![5, 6],
            truncated: true,
        },
        Stack {
            frames: vec![7, 3],
            truncated: false,
        },
        Stack {
            frames: vec![],
            truncated: false,
        },
    ];
    let metadata = Metadata {
        service: "shop".into(),
        version: Some("14".into()),
        image: Some("shop:14-rc".into()),
        cgroup: "/x".into(),
        ..Metadata::default()
    };
    let processes = vec![
        Process {
            tgid: 10,
            start_ticks: 5,
            executable: "a".into(),
            metadata: Arc::new(metadata),
            ..Process::default()
        },
        Process {
            tgid: 2,
            executable: "kthreadd".into(),
            ..Process::default()
        },
    ];
    let sample = |ts_unix_ns, cpu, tid, thread: &str, process, stack| Sample {
        kind: SampleKind::Cpu,
        value_ns: 0,
        wait_ns: 0,
        wait_class: None,
        woken: None,
        ts_unix_ns,
        cpu,
        tid,
        thread: thread.into(),
        process,
        stack,
    };
    let samples = vec![
        sample(1_030, 0, 10, "main", 0, 0),
        sample(1_010, 0, 10, "main", 0, 0),
        sample(1_020, 1, 10, "main", 0, 0),
        sample(1_015, 0, 11, "worker", 0, 0),
        sample(1_016, 0, 11, "renamed", 0, 0),
        sample(1_040, 0, 11, "worker", 0, 1),
        sample(1_050, 0, 11, "worker", 0, 2),
        sample(1_060, 0, 2, "kthreadd", 1, 3),
    ];
    let report = Report {
        cpus: 2,
        ticks: 200,
        idle_ticks: 192,
        missed_ticks: 5,
        waits_observed_ns: Some(130),
        cpus_offline: "2-3,7".into(),
        samples_taken: 11,
        limits: BTreeMap::from([("tables_late".into(), 6)]),
        ..Report::default()
    };
    Batch {
        from_unix_ns: 1_000,
        until_unix_ns: 2_000,
        period_ns: 50,
        frequency_hz: 20,
        report,
        frames,
        stacks,
        processes,
        samples,
        run_queues: RunQueues::default(),
    }
}

/// A decoded request with every index looked up.
struct Decoded {
    resource: BTreeMap<String, Value>,
    samples: Vec<Looked>,
    profile: otlp::Profile,
    dictionary: otlp::ProfilesDictionary,
}

#[derive(Debug, Clone, PartialEq)]
struct Looked {
    timestamps: Vec<u64>,
    attributes: BTreeMap<String, String>,
    /// Locations, leaf first, each as its lines' functions or its address, with kind and module.
    places: Vec<(Vec<String>, u64, String, String)>,
}

fn decode(bytes: &[u8]) -> Decoded {
    let mut request = ExportProfilesServiceRequest::decode(bytes).unwrap();
    let dictionary = request.dictionary.unwrap();
    let mut resource_profiles = request.resource_profiles.remove(0);
    let resource = resource_profiles.resource.unwrap().attributes;
    let resource = resource
        .into_iter()
        .map(|a| (a.key, a.value.unwrap().value.unwrap()))
        .collect();
    let profile = resource_profiles.scope_profiles.remove(0).profiles.remove(0);
    let text = |index: i32| dictionary.string_table[index as usize].clone();
    let attribute = |index: &i32| {
        let attribute = &dictionary.attribute_table[*index as usize];
        let value = match attribute.value.clone().unwrap().value.unwrap() {
            Value::StringValue(text) => text,
            Value::IntValue(number) => number.to_string(),
            Value::BoolValue(flag) => flag.to_string(),
            other => panic!("{other:?}"),
        };
        (text(attribute.key_strindex), value)
    };
    let place = |index: &i32| {
        let location = &dictionary.location_table[*index as usize];
        let functions = location
            .lines
            .iter()
            .map(|line| text(dictionary.function_table[line.function_index as usize].name_strindex))
            .collect();
        let kind = location
            .attribute_indices
            .iter()
            .map(attribute)
            .map(|(_, value)| value)
            .collect();
        let module = text(dictionary.mapping_table[location.mapping_index as usize].filename_strindex);
        (functions, location.address, kind, module)
    };
    let samples = profile
        .samples
        .iter()
        .map(|sample| Looked {
            timestamps: sample.timestamps_unix_nano.clone(),
            attributes: sample.attribute_indices.iter().map(attribute).collect(),
            places: dictionary.stack_table[sample.stack_index as usize]
                .location_indices
                .iter()
                .map(place)
                .collect(),
        })
        .collect();
    Decoded {
        resource,
        samples,
        profile,
        dictionary,
    }
}

fn encoded() -> Decoded {
    let lost = BTreeMap::from([("ring_full", 3)]);
    decode(&request(&identity(), Uuid::from_u128(1), 4, &batch(), &lost))
}

#[test]
fn every_sample_comes_out_with_its_time_thread_and_cpu() {
    let batch = batch();
    let expected: BTreeSet<(u64, String, String, String, String)> = batch
        .samples
        .iter()
        .map(|s| {
            let tgid = batch.processes[s.process as usize].tgid;
            (
                s.ts_unix_ns,
                s.cpu.to_string(),
                s.tid.to_string(),
                s.thread.to_string(),
                tgid.to_string(),
            )
        })
        .collect();
    let mut found = BTreeSet::new();
    for sample in encoded().samples {
        assert!(sample.timestamps.is_sorted());
        for ts in &sample.timestamps {
            let get = |key: &str| sample.attributes[key].clone();
            found.insert((
                *ts,
                get("cpu.logical_number"),
                get("thread.id"),
                get("thread.name"),
                get("process.pid"),
            ));
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn samples_that_differ_only_in_time_are_one() {
    let decoded = encoded();
    assert_eq!(decoded.samples.len(), 7);
    assert!(decoded.samples.iter().any(|sample| sample.timestamps == [1_010, 1_030]));
    assert!(decoded.profile.samples.iter().all(|sample| sample.values.is_empty()));
}

#[test]
fn inlined_frames_are_lines_of_the_place_that_they_were_inlined_into() {
    let decoded = encoded();
    let stack = &decoded
        .samples
        .iter()
        .find(|s| s.timestamps == [1_010, 1_030])
        .unwrap()
        .places;
    let names = |functions: &[&str]| functions.iter().map(ToString::to_string).collect::<Vec<_>>();
    let native = || ("native".to_string(), "/bin/a".to_string());
    assert_eq!(
        stack[0],
        (names(&["do_syscall_64"]), 0, "kernel".into(), "[kernel]".into())
    );
    assert_eq!(
        stack[1],
        (names(&["inner", "middle", "outer"]), 0, native().0, native().1)
    );
    assert_eq!(stack[2], (names(&[]), 0x1234, native().0, native().1));
    assert_eq!(stack.len(), 3);
}

#[test]
fn an_inlined_frame_is_not_joined_with_another_module() {
    let decoded = encoded();
    let stack = &decoded.samples.iter().find(|s| s.timestamps == [1_050]).unwrap().places;
    assert_eq!(stack.len(), 2);
    assert_eq!(stack[0].2, "jit");
}

#[test]
fn cut_stacks_and_unknown_frames_say_so() {
    let decoded = encoded();
    let cut: Vec<_> = decoded
        .samples
        .iter()
        .filter(|s| s.attributes.contains_key("stakeout.stack.truncated"))
        .collect();
    assert_eq!(cut.len(), 1);
    assert_eq!(cut[0].attributes["stakeout.stack.truncated"], "true");
    assert_eq!(
        cut[0].places[0],
        (vec!["main.py:run".to_string()], 0, "cpython".into(), String::new())
    );
    assert_eq!(cut[0].places[1], (vec![], 0x1234, String::new(), String::new()));
}

#[test]
fn tables_begin_with_nothing_and_hold_nothing_twice() {
    let dictionary = encoded().dictionary;
    assert_eq!(dictionary.string_table[0], "");
    assert_eq!(dictionary.mapping_table[0], otlp::Mapping::default());
    assert_eq!(dictionary.location_table[0], otlp::Location::default());
    assert_eq!(dictionary.function_table[0], otlp::Function::default());
    assert_eq!(dictionary.link_table, [otlp::Link::default()]);
    assert_eq!(dictionary.attribute_table[0], otlp::KeyValueAndUnit::default());
    assert_eq!(dictionary.stack_table[0], otlp::Stack::default());
    let strings: BTreeSet<&String> = dictionary.string_table.iter().collect();
    assert_eq!(strings.len(), dictionary.string_table.len());
    for (at, attribute) in dictionary.attribute_table.iter().enumerate() {
        assert!(
            !dictionary.attribute_table[at + 1..].contains(attribute),
            "{attribute:?}"
        );
    }
    for (at, location) in dictionary.location_table.iter().enumerate() {
        assert!(!dictionary.location_table[at + 1..].contains(location), "{location:?}");
    }
    let build_ids: Vec<_> = dictionary
        .mapping_table
        .iter()
        .filter(|m| !m.attribute_indices.is_empty())
        .collect();
    assert_eq!(build_ids.len(), 1);
}

#[test]
fn the_resource_identifies_batch_and_losses() {
    let Decoded { resource, profile, .. } = encoded();
    assert_eq!(resource["host.name"], Value::StringValue("node-1".into()));
    assert_eq!(
        resource["stakeout.instance"],
        Value::StringValue(Uuid::from_u128(1).to_string())
    );
    for (key, value) in [
        ("stakeout.batch", 4),
        ("stakeout.from_unix_nano", 1_000),
        ("stakeout.until_unix_nano", 2_000),
        ("stakeout.cpus", 2),
        ("stakeout.ticks", 200),
        ("stakeout.idle_ticks", 192),
        ("stakeout.missed_ticks", 5),
        ("stakeout.waits_observed_ns", 130),
        ("stakeout.samples_taken", 11),
        ("stakeout.lost.ring_full", 3),
        ("stakeout.limit.tables_late", 6),
        ("stakeout.frequency_hz", 20),
    ] {
        assert_eq!(resource[key], Value::IntValue(value), "{key}");
    }
    assert_eq!(resource["stakeout.cpus_offline"], Value::StringValue("2-3,7".into()));
    assert_eq!(profile.period, 50);
    assert_eq!((profile.time_unix_nano, profile.duration_nano), (1_000, 1_000));
}

#[test]
fn empty_labels_are_left_out() {
    let decoded = encoded();
    let kernel = decoded
        .samples
        .iter()
        .find(|s| s.attributes["process.pid"] == "2")
        .unwrap();
    assert!(!kernel.attributes.contains_key("service.name"));
    assert!(!kernel.attributes.contains_key("container.id"));
    assert!(kernel.places.is_empty());
}

#[test]
fn a_closing_batch_adds_losses_and_covers_no_time() {
    let lost = BTreeMap::from([("ring_full", 3)]);
    let more = BTreeMap::from([("ring_full", 2), ("spool_dropped", 50)]);
    let identity = identity();
    for base in [
        request(&identity, Uuid::from_u128(1), 4, &batch(), &lost),
        report(&identity, Uuid::from_u128(1), 4, &batch(), &lost),
    ] {
        let decoded = decode(&closing(&base, 9, &more).unwrap());
        for (key, value) in [
            ("stakeout.batch", 9),
            ("stakeout.from_unix_nano", 2_000),
            ("stakeout.until_unix_nano", 2_000),
            ("stakeout.cpus", 2),
            ("stakeout.ticks", 0),
            ("stakeout.idle_ticks", 0),
            ("stakeout.missed_ticks", 0),
            ("stakeout.waits_observed_ns", 0),
            ("stakeout.samples_taken", 11),
            ("stakeout.lost.ring_full", 5),
            ("stakeout.lost.spool_dropped", 50),
            ("stakeout.limit.tables_late", 6),
        ] {
            assert_eq!(decoded.resource[key], Value::IntValue(value), "{key}");
        }
        assert!(decoded.samples.is_empty());
        assert_eq!(
            (decoded.profile.time_unix_nano, decoded.profile.duration_nano),
            (2_000, 0)
        );
        let text = |index: i32| decoded.dictionary.string_table[index as usize].as_str();
        assert_eq!(text(decoded.profile.period_type.unwrap().type_strindex), "cpu");
        assert_eq!(text(decoded.profile.sample_type.unwrap().type_strindex), "samples");
    }
    assert!(closing(b"\xff\xff", 9, &more).is_none());
    assert!(closing(b"", 9, &more).is_none());
}

#[test]
fn compression_is_undone_and_bounded() {
    let bytes = request(&identity(), Uuid::from_u128(1), 4, &batch(), &BTreeMap::new());
    let packed = compress(&bytes).unwrap();
    assert!(packed.len() < bytes.len());
    assert_eq!(decompress(&packed).unwrap(), bytes);
    assert!(decompress(b"not zstd").is_none());
    // A frame header that claims 2^60 bytes.
    assert!(decompress(&[0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10]).is_none());
}

#[test]
fn waits_have_profiles_of_their_own_with_a_value_for_each_time() {
    let mut batch = batch();
    let count = batch.samples.len();
    let wait = |ts_unix_ns, kind, (value_ns, wait_ns), wait_class| Sample {
        woken: None,
        ts_unix_ns,
        kind,
        value_ns,
        wait_ns,
        wait_class,
        ..batch.samples[0].clone()
    };
    let asleep = SampleKind::OffCpu(WaitState::Sleeping);
    let waits = [
        wait(1_300, asleep, (150, 99_149), Some(WaitClass::Lock)),
        wait(1_200, asleep, (50, 99_051), Some(WaitClass::Lock)),
        wait(1_100, asleep, (50, 7), Some(WaitClass::Lock)),
        wait(
            1_250,
            SampleKind::OffCpu(WaitState::Uninterruptible),
            (50, 99_951),
            Some(WaitClass::Io),
        ),
        wait(1_300, SampleKind::RunQueue(WaitState::Preempted), (100, 99), None),
    ];
    batch.samples.extend(waits);
    let bytes = request(&identity(), Uuid::from_u128(1), 4, &batch, &BTreeMap::new());
    // What there is of threads that ran is as before.
    let decoded = decode(&bytes);
    assert_eq!(decoded.samples.iter().map(|s| s.timestamps.len()).sum::<usize>(), count);
    assert!(decoded.samples.iter().all(|s| !s.attributes.contains_key("wait.state")));

    let mut request = ExportProfilesServiceRequest::decode(&*bytes).unwrap();
    let profiles = request.resource_profiles.remove(0).scope_profiles.remove(0).profiles;
    let table = &decoded.dictionary;
    let text = |index: i32| table.string_table[index as usize].as_str();
    let rows = profiles[1..].iter().flat_map(|profile| {
        let sample_type = profile.sample_type.as_ref().unwrap();
        assert_eq!((profile.time_unix_nano, profile.duration_nano), (1_000, 1_000));
        assert_eq!((profile.period, text(sample_type.unit_strindex)), (0, "nanoseconds"));
        profile.samples.iter().map(move |sample| {
            let attributes = sample.attribute_indices.iter().filter_map(|index| {
                let attribute = &table.attribute_table[*index as usize];
                let value = attribute.value.as_ref()?.value.as_ref()?;
                match value {
                    _ if !text(attribute.key_strindex).starts_with("wait.") => None,
                    Value::StringValue(value) => Some(value.clone()),
                    Value::IntValue(value) => Some(value.to_string()),
                    _ => None,
                }
            });
            let attributes: Vec<String> = attributes.collect();
            let name = text(sample_type.type_strindex);
            (
                name,
                attributes.join(" "),
                sample.timestamps_unix_nano.clone(),
                sample.values.clone(),
            )
        })
    });
    let rows: BTreeSet<_> = rows
        .map(|(name, rest, times, values)| (name.to_owned(), rest, times, values))
        .collect();
    let row =
        |name: &str, rest: &str, times: &[u64], values: &[i64]| (name.into(), rest.into(), times.into(), values.into());
    let expected = BTreeSet::from([
        // Lengths have three digits.
        row("off_cpu", "sleeping lock 99100", &[1_200, 1_300], &[50, 150]),
        row("off_cpu", "sleeping lock 7", &[1_100], &[50]),
        row("off_cpu", "uninterruptible io 100000", &[1_250], &[50]),
        row("run_queue", "preempted 99", &[1_300], &[100]),
    ]);
    assert_eq!(rows, expected);
}

#[test]
fn who_was_woken_is_told_by_service_process_and_thread() {
    let mut batch = batch();
    let woken = |tid| Woken {
        process: 0,
        tid,
        thread: "worker".into(),
    };
    let wake_up = |ts_unix_ns, tid| Sample {
        kind: SampleKind::WakeUp(WaitState::Sleeping),
        value_ns: 50,
        wait_ns: 70,
        woken: Some(woken(tid)),
        ts_unix_ns,
        ..batch.samples[7].clone()
    };
    // Threads of one name are told apart.
    let wake_ups = [wake_up(1_100, 11), wake_up(1_200, 12), wake_up(1_300, 11)];
    batch.samples = wake_ups.to_vec();
    let bytes = request(&identity(), Uuid::from_u128(1), 4, &batch, &BTreeMap::new());
    let mut request = ExportProfilesServiceRequest::decode(&*bytes).unwrap();
    // Only the last profile is looked at: that of CPU time is there always.
    let profiles = &mut request.resource_profiles[0].scope_profiles[0].profiles;
    assert_eq!(profiles.len(), 2);
    profiles.remove(0);
    let decoded = decode(&request.encode_to_vec());
    let told: Vec<(&[u64], [&str; 4])> = (decoded.samples.iter())
        .map(|sample| {
            let keys = ["woken.service", "woken.process", "woken.thread", "woken.tid"];
            (&sample.timestamps[..], keys.map(|key| &*sample.attributes[key]))
        })
        .collect();
    let expected: [(&[u64], _); 2] = [
        (&[1_100, 1_300], ["shop", "a", "worker", "11"]),
        (&[1_200], ["shop", "a", "worker", "12"]),
    ];
    assert_eq!(told, expected);
}

#[test]
fn samples_of_bursts_have_a_profile_for_each_period_behind_the_usual_one() {
    let mut batch = batch();
    let count = batch.samples.len();
    let of_burst = |ts_unix_ns, value_ns| Sample {
        ts_unix_ns,
        value_ns,
        ..batch.samples[0].clone()
    };
    let bursts = [of_burst(1_200, 7), of_burst(1_201, 3), of_burst(1_202, 7)];
    batch.samples.extend(bursts);
    let bytes = request(&identity(), Uuid::from_u128(1), 4, &batch, &BTreeMap::new());
    let mut request = ExportProfilesServiceRequest::decode(&*bytes).unwrap();
    let table = request.dictionary.unwrap().string_table;
    let profiles = request.resource_profiles.remove(0).scope_profiles.remove(0).profiles;
    let text = |index: i32| table[index as usize].as_str();
    let told: Vec<(i64, &str, usize)> = profiles
        .iter()
        .map(|profile| {
            let period_type = profile.period_type.as_ref().unwrap();
            let times = profile.samples.iter().map(|sample| sample.timestamps_unix_nano.len());
            assert!(profile.samples.iter().all(|sample| sample.values.is_empty()));
            (profile.period, text(period_type.type_strindex), times.sum())
        })
        .collect();
    // The server takes the first one's period for that of the account.
    let usual = batch.period_ns as i64;
    assert_eq!(told, [(usual, "cpu", count), (3, "cpu", 1), (7, "cpu", 2)]);
}
