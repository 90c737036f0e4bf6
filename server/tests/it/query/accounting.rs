//! What samples stand for, and how complete their stacks are, against what was sent.

use super::*;

const INSTANCE: &str = "00000000-0000-4000-8000-00000000000a";

/// So many samples of each service and stack, spread over a minute.
pub(super) fn minute(start: i64, stacks: &[(&'static str, &'static str, i64)]) -> Vec<Sample> {
    let mut taken = Vec::new();
    for (service, stack, count) in stacks {
        taken.extend((0..*count).map(|i| Sample {
            ts_ns: start + i * 60 * S / count,
            service,
            tgid: 1,
            tid: 1,
            thread: "main",
            cpu: 0,
            stack,
        }));
    }
    taken
}

pub(super) fn batch(number: i64, from: i64, period_ns: i64, samples: Vec<Sample>) -> Batch<'static> {
    let from_ns = from + (number - 1) * 60 * S;
    Batch {
        node: "a",
        instance: INSTANCE,
        number,
        from_ns,
        until_ns: from_ns + 60 * S,
        period_ns,
        missed_ticks: 0,
        samples,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_of_which_no_tick_came_is_neither_idle_nor_busy() {
    let from = recent();
    let server = Server::start().await;
    // One of two CPUs is busy all the time, of the other no tick comes; then a tenth of the time is busy, a tenth
    // without ticks.
    for (number, busy, missed_ticks) in [(1, 1_200, 1_200), (2, 240, 240)] {
        let samples = minute(from + (number - 1) * 60 * S, &[("web", "main;hot", busy)]);
        let batch = Batch {
            missed_ticks,
            ..batch(number, from, 50_000_000, samples)
        };
        server.ingest(&batch).await;
        server.store.flush().await.unwrap();
    }
    let at = |minutes: i64| ms(from + minutes * 60 * S);
    for (window, idle, missed) in [((0, 1), 0.0, 0.5), ((1, 2), 0.8, 0.1), ((0, 2), 0.4, 0.3)] {
        let (from, until) = (at(window.0), at(window.1));
        let answer = server.json("flamegraph", &[("from", &from), ("until", &until)]).await;
        let exposure = &answer["exposure"];
        assert!(near(&exposure["idle_share"], idle), "{exposure}");
        assert!(near(&exposure["missed_share"], missed), "{exposure}");
    }
    let window = [
        ("from", at(0)),
        ("until", at(2)),
        ("step", "60s".to_owned()),
        ("by", "service".to_owned()),
    ];
    let series = server
        .json(
            "series",
            &window.each_ref().map(|(name, value)| (*name, value.as_str())),
        )
        .await;
    assert!(
        near(&series["idle"][0], 0.0) && near(&series["idle"][1], 1.6),
        "{series}"
    );
    let nodes = server.json("nodes", &[]).await;
    let node = &nodes["nodes"][0];
    assert!(
        near(&node["idle_share"], 0.8) && near(&node["missed_share"], 0.1),
        "{node}"
    );
}

pub(super) fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9)
}

fn row<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

/// A minute at 20 Hz, then one at 5 Hz. Cores: web 0.5 and 0.5, db 0.25 and 0.25, late 0 and 0.2.
async fn slowed(from: i64) -> Server {
    let server = Server::start().await;
    let first = minute(from, &[("web", "main;hot", 600), ("db", "main;cold", 300)]);
    server.ingest(&batch(1, from, 50_000_000, first)).await;
    server.store.flush().await.unwrap();
    let stacks = [
        ("web", "main;hot", 150),
        ("db", "main;cold", 75),
        ("late", "main;late", 60),
    ];
    server
        .ingest(&batch(2, from, 200_000_000, minute(from + 60 * S, &stacks)))
        .await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_count_by_the_time_that_they_stand_for() {
    let from = recent();
    let server = slowed(from).await;
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    let window = [("from", times[0].as_str()), ("until", times[2].as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();

    let graph = server.json("flamegraph", &window).await;
    let nodes = paths(&graph, "total", "self");
    // Counts of 50 ms, of which a sample at 5 Hz is four.
    for (path, cpu_seconds) in [("", 102), (";main;hot", 60), (";main;cold", 30), (";main;late", 12)] {
        assert_eq!(nodes[path].0, cpu_seconds * 20, "{path}");
    }
    assert_eq!(
        (&graph["samples"], &graph["period_ns"]),
        (&json!(2_040), &json!(50_000_000))
    );
    let periods = json!([{"period_ns": 50_000_000, "samples": 900}, {"period_ns": 200_000_000, "samples": 285}]);
    assert_eq!(graph["periods"], periods, "and this many were taken");
    assert!(
        near(&graph["cpu_seconds"], 102.0) && near(&graph["cores"], 0.85),
        "{graph}"
    );
    let exposure = &graph["exposure"];
    assert!(near(&exposure["observed_seconds"], 120.0) && near(&exposure["observed_cpu_seconds"], 240.0));
    // Ticks: 2,400 with 900 busy, then 600 with 285 busy.
    assert!(
        near(&exposure["idle_share"], (1_500.0 / 2_400.0 + 315.0 / 600.0) / 2.0),
        "{exposure}"
    );
    let rooted = server.json("flamegraph", &with(&[("root", "^late$")])).await;
    assert!(near(&rooted["cpu_seconds"], 12.0), "{rooted}");
    let folded = collapsed_answer(&server.text("flamegraph", &with(&[("format", "collapsed")])).await);
    assert_eq!(folded["main;late"], 240);

    let series = server
        .json("series", &with(&[("by", "service"), ("step", "60s")]))
        .await;
    let lines = series["series"].as_array().unwrap();
    for (line, (name, samples, cores)) in lines.iter().zip([
        ("web", 750, [0.5, 0.5]),
        ("db", 375, [0.25, 0.25]),
        ("late", 60, [0.0, 0.2]),
    ]) {
        assert_eq!((&line["value"], &line["samples"]), (&json!(name), &json!(samples)));
        assert!(
            near(&line["cores"][0], cores[0]) && near(&line["cores"][1], cores[1]),
            "{line}"
        );
    }

    for (by, names) in [
        ("function", ["hot", "cold", "late"]),
        ("service", ["web", "db", "late"]),
    ] {
        let top = server.json("top", &with(&[("by", by)])).await;
        for (name, cpu_seconds) in names.into_iter().zip([60.0, 30.0, 12.0]) {
            let row = row(&top, name);
            assert!(
                near(&row["cpu_seconds"], cpu_seconds) && near(&row["cores"], cpu_seconds / 120.0),
                "{row}"
            );
            assert!(near(&row["total_share"], cpu_seconds / 102.0), "{row}");
        }
    }
    server.store.flush().await.unwrap();
    let nodes = server.json("nodes", &[]).await;
    assert_eq!(nodes["nodes"][0]["frequency_hz"], 5, "the present rate");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_is_one_of_time_and_not_of_samples() {
    let from = recent();
    let server = slowed(from).await;
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    // Against the minute of the lower rate, and against both minutes.
    for (begin, late) in [(&times[1], 0.2), (&times[0], 0.1)] {
        let parameters = [
            ("base_from", times[0].as_str()),
            ("base_until", &times[1]),
            ("from", begin),
            ("until", &times[2]),
        ];
        let answer = server.json("diff", &parameters).await;
        let names: Vec<&str> = answer["nodes"]["name"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| answer["strings"][name.as_u64().unwrap() as usize].as_str().unwrap())
            .collect();
        let column = |name: &str, of: &str| &answer["nodes"][name][names.iter().position(|n| *n == of).unwrap()];
        for (name, before, after, state) in [
            ("hot", 0.5, 0.5, "same"),
            ("cold", 0.25, 0.25, "same"),
            ("late", 0.0, late, "new"),
        ] {
            assert!(
                near(column("base_norm", name), before) && near(column("norm", name), after),
                "{name} {answer}"
            );
            assert_eq!(
                answer["states"][column("state", name).as_u64().unwrap() as usize],
                state,
                "{name}"
            );
        }
        let top = server
            .json("top", &[&parameters[..], &[("by", "service")]].concat())
            .await;
        for (name, after, state) in [("web", 0.5, "same"), ("late", late, "new")] {
            let row = row(&top, name);
            assert!(near(&row["norm"], after), "{row}");
            assert_eq!(row["state"], state, "{row}");
        }
        let absolute = [&parameters[..], &[("by", "service"), ("normalize", "absolute")]].concat();
        let web = row(&server.json("top", &absolute).await, "web").clone();
        assert!(near(&web["base_norm"], 600.0), "{web}");
        assert_eq!(
            (web["norm"].as_f64() > Some(600.0), web["state"] == "same"),
            (begin == &times[0], begin == &times[1])
        );
        // A sample of another weight spreads more than one count would.
        let dispersion = answer["dispersion"].as_f64().unwrap();
        let mixed = (900.0 + 285.0 * 16.0) / (900.0 + 285.0 * 4.0);
        assert!(begin != &times[0] || dispersion >= mixed, "{dispersion}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_group_says_how_complete_its_stacks_are() {
    let from = recent();
    let server = Server::start().await;
    let taken = minute(
        from,
        &[
            ("web", "main;hot", 60),
            ("web", "~hot;work", 20),
            ("web", "main;?", 15),
            ("web", "~?;work", 5),
            ("kernel", "k:kthread;k:flush", 40),
            ("old", "~?", 10),
        ],
    );
    server.ingest(&batch(1, from, PERIOD_NS, taken)).await;
    let (begin, end) = (ms(from), ms(from + 60 * S));
    let window = [("from", begin.as_str()), ("until", end.as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let top = server.json("top", &with(&[("by", "service")])).await;
        for (name, [complete, cut, unnamed]) in [
            // Five stacks are both.
            ("web", [0.6, 0.25, 0.2]),
            ("kernel", [1.0, 0.0, 0.0]),
            ("old", [0.0, 1.0, 1.0]),
        ] {
            let row = row(&top, name);
            assert!(near(&row["complete_share"], complete), "{row}");
            assert!(
                near(&row["truncated_share"], cut) && near(&row["unnamed_share"], unnamed),
                "{row}"
            );
            // The flamegraph of the same selection says the same.
            let query = format!("{{service=\"{name}\"}}");
            let graph = server
                .json("flamegraph", &[&window[..], &[("query", &query)]].concat())
                .await;
            let samples = graph["samples"].as_f64().unwrap();
            let share = |count: &str| json!(graph["quality"][count].as_f64().unwrap() / samples);
            assert!(near(&share("complete_samples"), complete), "{}", graph["quality"]);
            assert!(near(&share("truncated_samples"), cut) && near(&share("unnamed_samples"), unnamed));
        }
        for by in ["process", "tgid", "thread", "tid", "cpu", "node", "container"] {
            let top = server.json("top", &with(&[("by", by)])).await;
            let rows = top["rows"].as_array().unwrap();
            assert_eq!(rows.len(), 1, "{by}");
            assert!(near(&rows[0]["truncated_share"], 35.0 / 150.0), "{by}: {}", rows[0]);
        }
    }
    let csv = server.text("top", &with(&[("by", "service"), ("format", "csv")])).await;
    let header = csv.lines().next().unwrap();
    assert!(
        header.ends_with("user_share,complete_share,truncated_share,unnamed_share"),
        "{header}"
    );
    assert!(csv.contains(",0.6,0.25,0.2\r\n"), "{csv}");
    let functions = server.json("top", &with(&[("by", "function")])).await;
    assert!(row(&functions, "hot").get("unnamed_share").is_none());
}
