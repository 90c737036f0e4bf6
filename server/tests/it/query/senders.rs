//! What other senders do not give: an account of what they observed, time as the unit, time stamps.

use super::foreign::{COUNT, CPU, MINUTE, numbers, profile, times};
use super::*;
use crate::wire::{Plain, plain};

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_without_an_account_is_there_all_the_time_whatever_others_tell_of_themselves() {
    let (server, from) = (Server::start().await, recent());
    // One busy core in each of two minutes, on a node of its own and beside an agent; the agent tells of two seconds
    // of the second.
    for minute in 0..2 {
        let begin = from + minute * MINUTE;
        for node in ["plain", "counted"] {
            let sample = ("foreign", "t", "main;steady", Vec::new(), times(begin, 1_200));
            server
                .ingest_bytes(plain(&[profile(node, begin, vec![sample])]), 1_200)
                .await;
        }
    }
    let at = from + MINUTE + 20 * S;
    let own = |at_ns| Sample {
        ts_ns: at_ns,
        service: "own",
        tgid: 1,
        tid: 1,
        thread: "t",
        cpu: 0,
        stack: "main;half",
    };
    let batch = Batch {
        node: "counted",
        instance: "00000000-0000-4000-8000-0000000000ab",
        number: 1,
        from_ns: at,
        until_ns: at + 2 * S,
        period_ns: PERIOD_NS,
        missed_ticks: 0,
        samples: (0..20).map(|n| own(at + n * 2 * PERIOD_NS)).collect(),
    };
    server.ingest(&batch).await;
    server.store.flush().await.unwrap();

    let moments = [0, 1, 2].map(|minute| ms(from + minute * MINUTE));
    let window = [("from", &*moments[1]), ("until", &*moments[2])];
    for (query, cores, other_senders) in [
        ("{node=\"plain\"}", 1.0, true),
        ("{service=\"foreign\"}", 2.0, true),
        ("{service=\"foreign\",node=\"counted\"}", 1.0, true),
        ("{service=\"own\"}", 0.5, false),
        ("{}", 2.0 + 1.0 / 60.0, true),
    ] {
        let with = |more: &[(&'static str, &'static str)]| [&window[..], &[("query", query)], more].concat();
        let graph = server.json("flamegraph", &with(&[])).await;
        let found = graph["cores"].as_f64().unwrap();
        assert!((found - cores).abs() < 1e-9, "{query}: {found} cores");
        assert_eq!(graph["exposure"]["other_senders"], other_senders, "{query}");
        let top = server.json("top", &with(&[("by", "service")])).await;
        let sum: f64 = numbers(&top["rows"], "name", "cores").values().sum();
        assert!((sum - cores).abs() < 1e-9, "{query}: {sum} cores in the table");
        let series = server
            .json("series", &with(&[("by", "service"), ("step", "60s")]))
            .await;
        let sum: f64 = series["series"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["cores"][0].as_f64().unwrap())
            .sum();
        assert!((sum - cores).abs() < 1e-9, "{query}: {sum} cores in the chart");
        let heatmap = server.json("heatmap", &with(&[])).await;
        assert_eq!(heatmap["exposure"], graph["exposure"], "{query}");
        if other_senders {
            // What the account tells is of its own time.
            let capacity = &series["capacity"][0];
            let right = if query.contains("plain") {
                Value::Null
            } else {
                json!(2.0)
            };
            assert_eq!(*capacity, right, "{query}");
        }
    }
    let sides = [("base_from", &*moments[0]), ("base_until", &*moments[1])];
    let with = [&window[..], &sides, &[("query", "{service=\"foreign\"}")]].concat();
    let diff = server.json("diff", &with).await;
    let nodes = &diff["nodes"];
    let near = |column: &str| (nodes[column][0].as_f64().unwrap() - 2.0).abs() < 1e-9;
    assert!(near("base_norm") && near("norm"), "{diff}");
    assert!(
        nodes["state"].as_array().unwrap().iter().all(|state| *state == 0),
        "{diff}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_time_keeps_its_unit_and_types_are_listed() {
    let (server, from) = (Server::start().await, recent());
    let of = |sample_type, value| Plain {
        sample_type,
        period_type: ("space", "bytes"),
        period: 524_288,
        ..profile("heap", from, vec![("s", "t", "main;leaf", vec![value], Vec::new())])
    };
    // A heap profile has several types of the same samples.
    let heap = [
        of(("alloc_objects", "count"), 4_321),
        of(("alloc_space", "bytes"), 123_456_789),
    ];
    server.ingest_bytes(plain(&heap), 2).await;
    // As some formats tell CPU time: each sample as a count of ticks and as their time. It is counted once.
    let cpu = |sample_type, value| Plain {
        sample_type,
        period: 10_000_000,
        ..profile("cpu", from, vec![("s", "t", "main;leaf", vec![value], Vec::new())])
    };
    let both = [cpu(COUNT, 150), cpu(("cpu", "us"), 1_500_000)];
    server.ingest_bytes(plain(&both), 2).await;
    server.store.flush().await.unwrap();

    let moments = [ms(from), ms(from + MINUTE)];
    let window = [("from", &*moments[0]), ("until", &*moments[1])];
    for (kind, unit, amount) in [("alloc_objects", "count", 4_321), ("alloc_space", "bytes", 123_456_789)] {
        let with = |more: &[(&'static str, &'static str)]| [&window[..], &[("type", kind)], more].concat();
        let graph = server.json("flamegraph", &with(&[])).await;
        assert_eq!(
            (&graph["unit"], &graph["nodes"]["total"][0]),
            (&json!(unit), &json!(amount)),
            "{graph}"
        );
        assert!(graph["cores"].is_null() && graph["cpu_seconds"].is_null(), "{graph}");
        assert!(
            (graph["rate"].as_f64().unwrap() - amount as f64 / 60.0).abs() < 1e-6,
            "{graph}"
        );
        let series = server.json("series", &with(&[("step", "60s")])).await;
        assert_eq!(series["unit"], format!("{unit} per second"));
        let line = &series["series"][0];
        assert!(line["cpu_seconds"].is_null() && line["total"] == amount, "{series}");
        let top = server.json("top", &with(&[("by", "service")])).await;
        assert_eq!(
            (&top["count_unit"], &top["rows"][0]["total"]),
            (&json!(unit), &json!(amount)),
            "{top}"
        );
        assert!(
            top["rows"][0]["cores"].is_null() && top["cpu_seconds"].is_null(),
            "{top}"
        );
        let csv = server.text("top", &with(&[("format", "csv")])).await;
        assert!(
            csv.lines().next().unwrap().contains(&format!(",{unit} per second")),
            "{csv}"
        );
        let svg = server.text("flamegraph", &with(&[("format", "svg")])).await;
        assert!(
            svg.contains(&format!("{amount} {unit}")) && !svg.contains("cores"),
            "{kind}"
        );
        let scope = server.json("flamegraph", &with(&[("format", "speedscope")])).await;
        let right = if unit == "bytes" { "bytes" } else { "none" };
        assert_eq!(
            (&scope["profiles"][0]["unit"], &scope["profiles"][0]["endValue"]),
            (&json!(right), &json!(amount))
        );
        let heatmap = server.json("heatmap", &with(&[])).await;
        assert_eq!(
            (&heatmap["unit"], &heatmap["samples"]),
            (&json!(unit), &json!(amount)),
            "{kind}"
        );
    }
    let graph = server.json("flamegraph", &window).await;
    assert!((graph["cpu_seconds"].as_f64().unwrap() - 1.5).abs() < 1e-9, "{graph}");

    let labels = server.json("labels", &window).await;
    let types = labels["types"].as_array().unwrap().iter();
    let types: Vec<_> = types
        .map(|of| (of["type"].as_str().unwrap(), of["unit"].as_str().unwrap()))
        .collect();
    let right = [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("cpu", "nanoseconds"),
        ("samples", "count"),
    ];
    assert_eq!(types, right);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_without_time_stamps_are_spread_over_their_duration_and_marked() {
    let (server, from) = (Server::start().await, recent());
    let length_ns = 20 * S;
    let counted = Plain {
        period: 10_000_000,
        length_ns,
        ..profile("n", from, vec![("s", "ticks", "main;ticks", vec![1_000], Vec::new())])
    };
    let valued = Plain {
        sample_type: CPU,
        period_type: ("", ""),
        period: 0,
        length_ns,
        ..profile(
            "n",
            from,
            vec![("s", "value", "main;value", vec![length_ns], Vec::new())],
        )
    };
    server.ingest_bytes(plain(&[counted, valued]), 40).await;
    server.store.flush().await.unwrap();

    let at = |seconds: i64| ms(from + seconds * S);
    let (begin, end) = (at(0), at(20));
    let asked = [("from", &*begin), ("until", &*end), ("by", "thread"), ("step", "1s")];
    let series = server.json("series", &asked).await;
    for line in series["series"].as_array().unwrap() {
        let right = if line["value"] == "ticks" { 0.5 } else { 1.0 };
        let cores = line["cores"].as_array().unwrap();
        assert!(
            cores.len() == 20 && cores.iter().all(|cores| (cores.as_f64().unwrap() - right).abs() < 1e-9),
            "{line}"
        );
    }
    for (first, last, seconds) in [(0, 20, 30.0), (5, 10, 7.5), (15, 20, 7.5), (20, 40, 0.0)] {
        let graph = server
            .json("flamegraph", &[("from", &at(first)), ("until", &at(last))])
            .await;
        assert!(
            (graph["cpu_seconds"].as_f64().unwrap() - seconds).abs() < 1e-9,
            "{first} to {last}: {graph}"
        );
        assert_eq!(graph["quality"]["spread_samples"], graph["samples"]);
    }
    // Samples with times are not marked.
    let timed = ("s", "timed", "main;timed", Vec::new(), times(from, 100));
    server
        .ingest_bytes(plain(&[profile("n", from, vec![timed])]), 100)
        .await;
    let graph = server.json("flamegraph", &[("from", &at(0)), ("until", &at(60))]).await;
    let period_ns = graph["period_ns"].as_i64().unwrap();
    assert_eq!(graph["quality"]["spread_samples"].as_i64().unwrap() * period_ns, 30 * S);
    assert_eq!(graph["samples"].as_i64().unwrap() * period_ns, 35 * S);
}
