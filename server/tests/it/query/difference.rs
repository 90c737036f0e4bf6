//! The difference of two windows has both sides' counts.

use super::*;

/// Before: hot 600, cold 600, old 300. After: hot 600, cold 1,200, fresh 300 in the same time.
async fn jump(from: i64) -> Server {
    let server = Server::start().await;
    let sides = [
        (1, [("main;hot;work", 600), ("main;cold", 600), ("main;old", 300)]),
        (2, [("main;hot;work", 600), ("main;cold", 1_200), ("main;fresh", 300)]),
    ];
    for (number, stacks) in sides {
        let start = from + (number - 1) * 60 * S;
        let mut taken = Vec::new();
        for (stack, count) in stacks {
            taken.extend((0..count).map(|i| Sample {
                ts_ns: start + i * 60 * S / count,
                service: if stack == "main;cold" { "db" } else { "web" },
                tgid: 1,
                tid: 1,
                thread: "main",
                cpu: 0,
                stack,
            }));
        }
        let instance = "00000000-0000-4000-8000-00000000000a";
        let batch = Batch {
            node: "a",
            instance,
            number,
            from_ns: start,
            until_ns: start + 60 * S,
            period_ns: PERIOD_NS,
            missed_ticks: 0,
            samples: taken,
        };
        server.ingest(&batch).await;
    }
    server.store.flush().await.unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_has_both_sides_counts_and_marks_what_changed() {
    let from = recent();
    let server = jump(from).await;
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    let parameters = [
        ("base_from", times[0].as_str()),
        ("base_until", &times[1]),
        ("from", &times[1]),
        ("until", &times[2]),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&parameters[..], more].concat();
    let answer = server.json("diff", &parameters).await;
    let base = paths(&answer, "base_total", "base_self");
    let comparison = paths(&answer, "total", "self");
    assert_eq!((base[""].0, comparison[""].0), (1_500, 2_100));
    for (path, before, after, state) in [
        (";main", 1_500, 2_100, "grew"),
        (";main;hot;work", 600, 600, "same"),
        (";main;cold", 600, 1_200, "grew"),
        (";main;old", 300, 0, "gone"),
        (";main;fresh", 0, 300, "new"),
    ] {
        assert_eq!((base[path].0, comparison[path].0), (before, after), "{path}");
        let node = comparison_node(&answer, path);
        let column = |name: &str| answer["nodes"][name][node].as_f64().unwrap();
        let states = answer["states"].as_array().unwrap();
        assert_eq!(states[column("state") as usize], state, "{path}");
        let cores = |count: u64| count as f64 * 0.05 / 60.0;
        assert!((column("base_norm") - cores(before)).abs() < 1e-9 && (column("norm") - cores(after)).abs() < 1e-9);
        assert!((column("delta") - (column("norm") - column("base_norm"))).abs() < 1e-9);
        assert!(column("low") <= column("delta") && column("delta") <= column("high"));
        assert_eq!(column("strength") > 0.0, state != "same");
    }
    assert_eq!(
        (answer["normalize"].as_str(), answer["unit"].as_str()),
        (Some("rate"), Some("cores"))
    );

    let folded = server.text("diff", &with(&[("format", "collapsed")])).await;
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "main;cold 600 1200",
            "main;fresh 0 300",
            "main;hot;work 600 600",
            "main;old 300 0"
        ]
    );
    let mut drawn = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut options, folded.lines(), &mut drawn).unwrap();
    assert!(
        String::from_utf8(drawn).unwrap().contains("fresh"),
        "inferno reads the differential form"
    );

    let svg = server.text("diff", &with(&[("format", "svg")])).await;
    assert!(svg.contains("cold (app) | grew | before 600 samples, 0.5000 cores | after 1200 samples, 1.0000 cores"));
    assert!(svg.contains("old (app) | gone | before 300 samples"));

    let top = server.json("top", &with(&[("by", "function")])).await;
    for (name, state) in [("cold", "grew"), ("work", "same"), ("old", "gone"), ("fresh", "new")] {
        let row = top["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == name)
            .unwrap();
        assert_eq!(row["state"], state, "{name}");
    }
    let services = server.json("top", &with(&[("by", "service")])).await;
    let state = |name: &str| {
        services["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["name"] == name)
            .unwrap()["state"]
            .clone()
    };
    assert_eq!((state("db"), state("web")), (json!("grew"), json!("same")));

    let selectors = [
        ("query", "{service=\"db\"}"),
        ("base_query", "{service=\"web\"}"),
        ("from", &times[0]),
        ("until", &times[2]),
    ];
    assert_eq!(
        server.json("diff", &selectors).await["normalize"],
        "share",
        "two selectors are compared by shares"
    );
    let itself = [
        ("from", times[0].as_str()),
        ("until", &times[1]),
        ("base_from", &times[0]),
        ("base_until", &times[1]),
    ];
    for normalize in ["rate", "share", "absolute"] {
        let answer = server
            .json("diff", &[&itself[..], &[("normalize", normalize)]].concat())
            .await;
        assert_eq!(answer["significant"], 0, "nothing differs from itself ({normalize})");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn confidence_and_measure_decide_what_is_judged_and_how() {
    let from = recent();
    let server = jump(from).await;
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    let with = |more: &[(&'static str, &'static str)]| {
        let windows = [
            ("base_from", times[0].clone()),
            ("base_until", times[1].clone()),
            ("from", times[1].clone()),
            ("until", times[2].clone()),
        ];
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        windows.into_iter().chain(more).collect::<Vec<_>>()
    };
    let ask = async |path: &str, more: &[(&'static str, &'static str)]| {
        let parameters = with(more);
        let parameters: Vec<(&str, &str)> = parameters.iter().map(|(n, v)| (*n, v.as_str())).collect();
        server.json(path, &parameters).await
    };
    let number = |answer: &Value, path: &str, column: &str| {
        answer["nodes"][column][comparison_node(answer, path)].as_f64().unwrap()
    };

    let mut widths = Vec::new();
    for (confidence, rate) in [("0.8", 0.2), ("0.95", 0.05), ("0.999", 0.001)] {
        let answer = ask("diff", &[("confidence", confidence)]).await;
        assert_eq!(answer["confidence"], confidence.parse::<f64>().unwrap());
        assert_eq!(answer["false_discovery_rate"], rate);
        widths.push(number(&answer, ";main;cold", "high") - number(&answer, ";main;cold", "low"));
        let top = ask("top", &[("confidence", confidence)]).await;
        assert_eq!(top["confidence"], answer["confidence"]);
    }
    assert!(widths[0] < widths[1] && widths[1] < widths[2], "{widths:?}");
    assert_eq!(
        ask("diff", &[]).await,
        ask("diff", &[("confidence", "0.95"), ("measure", "total")]).await,
        "these are the defaults"
    );

    // `main` has no time of its own: it only calls what grew. Widths stay those of all its samples.
    let own = ask("diff", &[("measure", "self")]).await;
    assert_eq!((&own["measure"], own["tested"].as_u64()), (&json!("self"), Some(4)));
    assert_eq!(number(&own, ";main", "state"), 0.0);
    assert_eq!(number(&own, ";main", "delta"), 0.0);
    assert!((number(&own, ";main", "norm") - 2_100.0 * 0.05 / 60.0).abs() < 1e-9);
    assert_eq!(number(&own, ";main;hot", "state"), 0.0);
    let states = own["states"].as_array().unwrap();
    for (path, state) in [
        (";main;cold", "grew"),
        (";main;old", "gone"),
        (";main;fresh", "new"),
        (";main;hot;work", "same"),
    ] {
        assert_eq!(states[number(&own, path, "state") as usize], state, "{path}");
    }
    let svg = with(&[("measure", "self"), ("format", "svg")]);
    let svg: Vec<(&str, &str)> = svg.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert!(server.text("diff", &svg).await.contains("change of self"));

    let state_of = |top: &Value, name: &str| {
        let rows = top["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["state"].clone(), row["norm"].as_f64().unwrap())
    };
    assert_eq!(state_of(&ask("top", &[]).await, "main").0, "grew");
    let own = ask("top", &[("measure", "self")]).await;
    assert_eq!(state_of(&own, "main"), (json!("same"), 0.0));
    assert_eq!(state_of(&own, "cold").0, "grew");
}

fn comparison_node(answer: &Value, wanted: &str) -> usize {
    let nodes = &answer["nodes"];
    let mut paths: Vec<String> = Vec::new();
    for node in 0..nodes["parent"].as_array().unwrap().len() {
        let name = answer["strings"][nodes["name"][node].as_u64().unwrap() as usize]
            .as_str()
            .unwrap();
        paths.push(match nodes["parent"][node].as_i64().unwrap() {
            -1 => String::new(),
            parent => format!("{};{name}", paths[parent as usize]),
        });
    }
    paths
        .iter()
        .position(|path| path == wanted)
        .unwrap_or_else(|| panic!("{wanted} is not in {paths:?}"))
}
