//! Whole hours are answered from their roll-up, exactly as from the samples.

use super::*;
use crate::support::eventually;
use stakeout_server::store::{Table, hour};

pub(super) const HOUR: i64 = 3_600 * S;

pub(super) fn quiet(dir: &Path) -> StoreConfig {
    StoreConfig {
        commit_interval: Duration::from_secs(3_600),
        maintenance_interval: Duration::from_secs(3_600),
        ..StoreConfig::new(dir)
    }
}

/// Rolls hours up as soon as they are over.
pub(super) fn eager(dir: &Path) -> StoreConfig {
    StoreConfig {
        maintenance_interval: Duration::from_millis(50),
        settle: Duration::ZERO,
        ..quiet(dir)
    }
}

/// Three hours that are over, of which the first begins at the time that is returned, with two rates in the second.
async fn three_hours() -> (Server, i64) {
    let dir = tempfile::tempdir().unwrap();
    let config = quiet(dir.path());
    let server = Server::open(dir, config).await;
    let first = (recent() / HOUR - 4) * HOUR;
    let mut random = Random(0x5eed);
    for number in 0..9 {
        let start = first + number * HOUR / 3;
        let taken = samples(&mut random, start, 1_200, 300);
        let batch = Batch {
            node: "a",
            instance: "00000000-0000-4000-8000-00000000000a",
            number: number + 1,
            from_ns: start,
            until_ns: start + HOUR / 3,
            period_ns: if number == 4 { 4 * PERIOD_NS } else { PERIOD_NS },
            missed_ticks: 0,
            samples: taken,
        };
        server.ingest(&batch).await;
    }
    server.store.flush().await.unwrap();
    (server, first)
}

/// Answers to questions that a roll-up can answer, over so many hours and minutes from the first on.
async fn answers(server: &Server, from: i64, until: i64) -> Vec<String> {
    let mut answers = Vec::new();
    for query in ["{}", "{service=\"nginx\"}", "{mode=\"kernel\",service!=\"db\"}"] {
        let window = [("query", query), ("from", &ms(from)), ("until", &ms(until))];
        let with = |name, value| [&window[..], &[(name, value)]].concat();
        answers.push(server.text("flamegraph", &window).await);
        answers.push(server.text("flamegraph", &with("format", "collapsed")).await);
        answers.push(server.text("flamegraph", &with("group", "service,process,mode")).await);
        answers.push(server.text("top", &with("by", "service")).await);
        answers.push(server.text("top", &with("by", "mode")).await);
        answers.push(server.text("top", &with("by", "function")).await);
    }
    answers
}

/// Answers that tell minutes apart where the window's ends and its middle are whole minutes.
async fn stepped(server: &Server, from: i64, until: i64) -> Vec<String> {
    let mut answers = Vec::new();
    for query in ["{}", "{service=\"nginx\"}"] {
        let window = [("query", query), ("from", &ms(from)), ("until", &ms(until))];
        let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();
        answers.push(server.text("series", &with(&[("by", "service"), ("step", "1m")])).await);
        answers.push(server.text("series", &with(&[("by", "node"), ("step", "3m")])).await);
        let matching = with(&[("by", "mode"), ("step", "1m"), ("match", "walk")]);
        answers.push(server.text("series", &matching).await);
        // In two halves, the same samples of both sides; and two selectors, which are read apart.
        let half = ms(from + (until - from) / 2);
        let halves = [
            ("query", query),
            ("base_from", &ms(from)),
            ("base_until", &half),
            ("from", &half),
            ("until", &ms(until)),
        ];
        for normalize in ["rate", "share"] {
            let halves = [&halves[..], &[("normalize", normalize)]].concat();
            answers.push(server.text("diff", &halves).await);
            let rows = [&halves[..], &[("group", "process,mode")]].concat();
            answers.push(server.text("diff", &rows).await);
            answers.push(server.text("top", &[&halves[..], &[("by", "service")]].concat()).await);
            answers.push(server.text("top", &[&halves[..], &[("by", "function")]].concat()).await);
        }
        answers.push(server.text("diff", &with(&[("base_query", "{service=\"db\"}")])).await);
    }
    answers
}

/// In steps that only the roll-up without stacks tells apart.
async fn finely_stepped(server: &Server, from: i64, until: i64) -> Vec<String> {
    let mut answers = Vec::new();
    for (by, step) in [
        ("service", "10s"),
        ("mode", "30s"),
        ("node", "90s"),
        ("container", "20s"),
    ] {
        let window = [("from", ms(from)), ("until", ms(until))];
        let window = window.each_ref().map(|(name, value)| (*name, value.as_str()));
        for query in ["{}", "{service=\"db\"}"] {
            let more = [("query", query), ("by", by), ("step", step)];
            answers.push(server.text("series", &[&window[..], &more].concat()).await);
        }
    }
    answers
}

/// Without a minute of an hour; and in steps of less than a minute where the window is not long.
async fn without_a_minute(server: &Server, from: i64, until: i64) -> [String; 2] {
    let times = [from, until, from + 40 * 60 * S, from + 41 * 60 * S].map(ms);
    let names = ["from", "until", "except_from", "except_until"];
    let parameters: Vec<(&str, &str)> = names.into_iter().zip(times.iter().map(String::as_str)).collect();
    let by = [&parameters[..2], &[("by", "service")]].concat();
    [
        server.text("flamegraph", &parameters).await,
        server.text("series", &by).await,
    ]
}

async fn rolled_up(server: &Server, first: i64) {
    eventually("the hours are rolled up", async || {
        let snapshot = server.store.snapshot();
        let is_in = |table, hours| snapshot.is_rolled_up(table, &hour(first + hours * HOUR));
        (0..3).all(|hours| Table::ROLLUPS.into_iter().all(|table| is_in(table, hours)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_hours_are_answered_from_rollups_and_edges_from_samples() {
    let (server, first) = three_hours().await;
    let windows = [
        (first, first + 3 * HOUR),
        (first + HOUR / 2 + 7 * S, first + 3 * HOUR - 5 * S),
        (first + HOUR, first + 2 * HOUR),
        // Cut at minutes: by the minute; cut within one: from samples.
        (first + HOUR / 4, first + 2 * HOUR + 60 * S),
        (first + HOUR + 60 * S, first + HOUR + 2_700 * S),
        (first + HOUR + 61 * S, first + HOUR + 2_700 * S),
        // Cut at ten seconds: charts by those, all else from samples.
        (first + HOUR + 70 * S, first + HOUR + 2_710 * S),
    ];
    let mut truth = Vec::new();
    let mut steps = Vec::new();
    let mut parts = Vec::new();
    let mut fine = Vec::new();
    for (from, until) in windows {
        truth.push(answers(&server, from, until).await);
        steps.push(stepped(&server, from, until).await);
        parts.push(without_a_minute(&server, from, until).await);
        fine.push(finely_stepped(&server, from, until).await);
    }
    let server = server.reopened(eager).await;
    rolled_up(&server, first).await;
    let server = server.reopened(quiet).await;
    for ((from, until), truth) in windows.into_iter().zip(&truth) {
        assert_eq!(&answers(&server, from, until).await, truth);
    }
    for ((from, until), truth) in windows.into_iter().zip(&steps) {
        assert_eq!(&stepped(&server, from, until).await, truth);
    }
    for ((from, until), truth) in windows.into_iter().zip(&parts) {
        assert_eq!(&without_a_minute(&server, from, until).await, truth);
    }
    for ((from, until), truth) in windows.into_iter().zip(&fine) {
        assert_eq!(&finely_stepped(&server, from, until).await, truth);
    }

    // A roll-up that is damaged is not needed where the samples are.
    let snapshot = server.store.snapshot();
    let third = snapshot.files(Table::SamplesHour).last().unwrap();
    let path = server._dir.path().join("samples_hour").join(&third.path);
    let sound = std::fs::read(&path).unwrap();
    let mut damaged = sound.clone();
    damaged[sound.len() / 2] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    let (from, until) = windows[0];
    assert_eq!(answers(&server, from, until).await, truth[0]);
    std::fs::write(&path, sound).unwrap();

    // The second hour's samples can't be read any more: what is answered from its roll-up is still answered.
    let snapshot = server.store.snapshot();
    let second = hour(first + HOUR);
    for file in snapshot
        .files(Table::Samples)
        .iter()
        .filter(|file| file.partition == second)
    {
        std::fs::remove_file(server._dir.path().join("samples").join(&file.path)).unwrap();
    }
    for ((from, until), truth) in windows.into_iter().zip(&truth).take(5) {
        assert_eq!(&answers(&server, from, until).await, truth);
    }
    // So is what tells minutes apart, where they are whole.
    for which in [0, 2, 3, 4] {
        let (from, until) = windows[which];
        assert_eq!(stepped(&server, from, until).await, steps[which]);
    }
    // And what tells ten seconds apart, where those are whole and stacks don't matter.
    for which in [0, 2, 3, 4, 6] {
        let (from, until) = windows[which];
        assert_eq!(finely_stepped(&server, from, until).await, fine[which]);
    }
    let late = [("from", ms(first + HOUR + S)), ("until", ms(first + 2 * HOUR))];
    let late = late.each_ref().map(|(name, value)| (*name, value.as_str()));
    // Half of the hour needs its samples: it must not look as if they had never been.
    let (status, headers, _) = server.get("flamegraph", &late).await;
    assert!(status != StatusCode::OK || headers.contains_key("stakeout-damaged-files"));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_rollups_are_left_they_answer_what_they_can() {
    let (server, first) = three_hours().await;
    let server = server.reopened(eager).await;
    rolled_up(&server, first).await;
    let server = server.reopened(quiet).await;
    let (from, until) = (first, first + 3 * HOUR);
    let truth = answers(&server, from, until).await;
    let tag = async |server: &Server| {
        let (from, until) = (ms(from), ms(until));
        let (_, headers, _) = server.get("flamegraph", &[("from", &from), ("until", &until)]).await;
        headers["etag"].clone()
    };
    let whole = tag(&server).await;
    let server = server.reopened(quiet).await;
    assert_eq!(tag(&server).await, whole, "of the same files");
    let server = server
        .reopened(|dir| StoreConfig {
            retention_samples: Duration::from_secs(3_600),
            ..eager(dir)
        })
        .await;
    eventually("the samples are gone", async || {
        server.store.snapshot().files(Table::Samples).is_empty()
    })
    .await;
    assert_eq!(answers(&server, from, until).await, truth);
    assert_ne!(tag(&server).await, whole);
    // By the minute, where the hour is cut.
    let (from, until) = (ms(first + HOUR / 2), ms(first + HOUR));
    let window = [("from", from.as_str()), ("until", until.as_str())];
    let half = server.json("flamegraph", &window).await["samples"].as_u64().unwrap();
    assert!((300..600).contains(&half), "{half} of 900 samples in half an hour");
    for (path, more) in [
        ("top", ("by", "thread")),
        ("flamegraph", ("query", "{cpu=\"1\"}")),
        ("timeline", ("limit", "5")),
    ] {
        let (status, code, said) = server.error(path, &[&window[..], &[more]].concat()).await;
        assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
        assert!(said.contains("only roll-ups are left"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_hours_are_left_windows_are_of_whole_hours() {
    let (server, first) = three_hours().await;
    let server = server.reopened(eager).await;
    rolled_up(&server, first).await;
    let hour_of = |hours: i64| ms(first + hours * HOUR);
    let (from, until) = (hour_of(0), hour_of(3));
    let whole = [("from", from.as_str()), ("until", until.as_str())];
    let truth = server
        .text("flamegraph", &[&whole[..], &[("format", "collapsed")]].concat())
        .await;
    let server = server
        .reopened(|dir| StoreConfig {
            retention_samples: Duration::from_secs(3_600),
            retention_minutes: Duration::from_secs(3_600),
            ..eager(dir)
        })
        .await;
    eventually("samples and minutes are gone", async || {
        let snapshot = server.store.snapshot();
        [Table::Samples, Table::SamplesMinute]
            .iter()
            .all(|table| snapshot.files(*table).is_empty())
    })
    .await;
    let now = server
        .text("flamegraph", &[&whole[..], &[("format", "collapsed")]].concat())
        .await;
    assert_eq!(now, truth);

    // Twenty minutes of the second hour: the answer is of the hour, and says so.
    let (from, until) = (ms(first + HOUR + HOUR / 3), ms(first + HOUR + 2 * HOUR / 3));
    let part = [("from", from.as_str()), ("until", until.as_str())];
    let graph = server.json("flamegraph", &part).await;
    let hour_ms = [1, 2].map(|hours| (first + hours * HOUR) / 1_000_000);
    assert_eq!(json!([graph["from"], graph["until"]]), json!(hour_ms));
    assert_eq!(graph["samples"], server.json("top", &part).await["samples"]);
    let exact = [("from", &*hour_of(1)), ("until", &*hour_of(2))].map(|(name, time)| (name, time.to_owned()));
    let exact = exact.each_ref().map(|(name, time)| (*name, time.as_str()));
    assert_eq!(graph["samples"], server.json("flamegraph", &exact).await["samples"]);

    // A chart has steps of hours, and is refused in shorter ones.
    let chart = server.json("series", &whole).await;
    assert_eq!(
        (&chart["step_ms"], chart["times"].as_array().unwrap().len()),
        (&json!(3_600_000), 3)
    );
    let cpu: f64 = chart["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["cpu_seconds"].as_f64().unwrap())
        .sum();
    let all = server.json("flamegraph", &whole).await;
    assert!((cpu - all["cpu_seconds"].as_f64().unwrap()).abs() < 1e-6);
    let (status, code, said) = server.error("series", &[&whole[..], &[("step", "5m")]].concat()).await;
    assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
    assert!(said.contains("only the whole is left"), "{said}");

    // A difference is of whole hours, too.
    let times = [0, 1, 2].map(hour_of);
    let sides = [
        ("base_from", times[0].as_str()),
        ("base_until", &times[1]),
        ("from", part[0].1),
        ("until", part[1].1),
    ];
    let difference = server.json("diff", &sides).await;
    assert_eq!(difference["comparison"]["samples"], graph["samples"]);
    assert_eq!(difference["base"]["samples"], 900);
    let top = server.json("top", &[&sides[..], &[("by", "service")]].concat()).await;
    assert_eq!(
        (&top["samples"], &top["base_samples"]),
        (&graph["samples"], &json!(900))
    );
}
