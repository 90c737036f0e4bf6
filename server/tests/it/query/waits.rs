//! Waits: where threads' time goes, over time and one by one; samples by their value.

use super::accounting::{batch, minute, near};
use super::foreign::MINUTE;
use super::*;
use crate::wire::{Plain, plain_with};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;

const MS: i64 = 1_000_000;

/// Type, service, thread, class, state, value and the time at which it ended, in milliseconds from the window's start.
type Told = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    i64,
    i64,
);

const TOLD: [Told; 10] = [
    ("cpu", "shop", "main", "", "", 50, 1_000),
    ("cpu", "shop", "main", "", "", 50, 2_000),
    ("cpu", "shop", "pool", "", "", 50, 3_000),
    ("cpu", "db", "io", "", "", 50, 3_500),
    ("off_cpu", "shop", "main", "lock", "sleeping", 180, 1_500),
    ("off_cpu", "shop", "pool", "lock", "sleeping", 20, 2_100),
    ("off_cpu", "shop", "main", "timer", "sleeping", 4_000, 8_000),
    ("off_cpu", "db", "io", "io", "uninterruptible", 300, 4_100),
    ("off_cpu", "[kernel]", "kworker", "other", "idle", 5_000, 9_000),
    ("run_queue", "shop", "main", "", "woken", 99, 5_250),
];

/// How long the wait itself was, where its sender says so.
fn length(told: &Told) -> Option<i64> {
    (told.0 != "cpu" && told.3 != "timer").then_some(told.5 * MS - 1)
}

async fn filled_with_waits(from: i64) -> Server {
    let server = Server::start().await;
    let types = ["cpu", "off_cpu", "run_queue"];
    let of = |kind: &'static str| TOLD.iter().filter(move |(of, ..)| *of == kind);
    let profiles = types.map(|kind| Plain {
        node: "a",
        sample_type: (kind, "nanoseconds"),
        period_type: ("", ""),
        period: 0,
        time_ns: from,
        length_ns: MINUTE,
        samples: of(kind)
            .map(|(_, service, thread, _, _, value, at)| {
                (*service, *thread, "main;leaf", vec![value * MS], vec![from + at * MS])
            })
            .collect(),
    });
    let attributes = |profile: usize, sample: usize| {
        let told = of(types[profile]).nth(sample).unwrap();
        let texts = [("wait.class", told.3), ("wait.state", told.4)];
        let texts = texts.into_iter().filter(|(_, value)| !value.is_empty());
        let texts = texts.map(|(key, value)| (key, Any::StringValue(value.to_owned())));
        let length = length(told).map(|ns| ("wait.length", Any::IntValue(ns)));
        texts.chain(length).collect()
    };
    server.ingest_bytes(plain_with(&profiles, attributes), TOLD.len()).await;
    server
}

/// Milliseconds by row and part.
fn rows(answer: &Value) -> BTreeMap<(String, String), i64> {
    let parts: Vec<String> = (answer["parts"].as_array().unwrap().iter())
        .map(|part| match part["type"].as_str().unwrap() {
            "off_cpu" => part["class"].as_str().unwrap().to_owned(),
            kind => kind.to_owned(),
        })
        .collect();
    let mut told = BTreeMap::new();
    for row in answer["rows"].as_array().unwrap() {
        let seconds = row["seconds"].as_array().unwrap();
        assert_eq!(seconds.len(), parts.len());
        for (part, seconds) in parts.iter().zip(seconds) {
            let ms = (seconds.as_f64().unwrap() * 1e3).round() as i64;
            if ms > 0 {
                told.insert((row["name"].as_str().unwrap().to_owned(), part.clone()), ms);
            }
        }
    }
    told
}

fn truth(name: fn(&Told) -> &'static str, counts: impl Fn(&Told) -> bool) -> BTreeMap<(String, String), i64> {
    let mut truth = BTreeMap::new();
    for told in TOLD.iter().filter(|told| counts(told)) {
        let part = if told.0 == "off_cpu" { told.3 } else { told.0 };
        *truth.entry((name(told).to_owned(), part.to_owned())).or_insert(0) += told.5;
    }
    truth
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_time_has_every_part_of_every_row() {
    let from = recent();
    let server = filled_with_waits(from).await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    let window = [("from", &*begin), ("until", &*end)];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let asked = async |more: &[(&'static str, &'static str)]| {
            server.json("thread_time", &[&window[..], more].concat()).await
        };
        let by_service = asked(&[]).await;
        assert_eq!(rows(&by_service), truth(|told| told.1, |_| true));
        assert_eq!(
            (&by_service["count"], &by_service["complete"]),
            (&json!(3), &json!(true))
        );
        // The kernel's thread has most time, then the shop.
        let first = asked(&[("limit", "1")]).await;
        assert_eq!(first["rows"].as_array().unwrap().len(), 1);
        assert_eq!(first["rows"][0]["name"], json!("[kernel]"));
        assert_eq!((&first["count"], &first["complete"]), (&json!(3), &json!(false)));
        let by_thread = asked(&[("by", "thread")]).await;
        assert_eq!(rows(&by_thread), truth(|told| told.2, |_| true));
        let busy = asked(&[("query", "{wait.state!=\"idle\",wait.class!=\"timer\"}")]).await;
        let is_busy = |told: &Told| told.4 != "idle" && told.3 != "timer";
        assert_eq!(rows(&busy), truth(|told| told.1, is_busy));
        let long = asked(&[("min_value", "100000000"), ("max_value", "4000000000")]).await;
        assert_eq!(
            rows(&long),
            truth(|told| told.1, |told| (100..=4_000).contains(&told.5))
        );
        // Four seconds that ended at the eighth: a thread in each of four steps.
        let steps = asked(&[("step", "1s"), ("query", "{service=\"shop\"}")]).await;
        let timer = steps["parts"]
            .as_array()
            .unwrap()
            .iter()
            .find(|part| part["class"] == json!("timer"));
        let rates: Vec<f64> = (timer.unwrap()["rates"].as_array().unwrap().iter())
            .map(|rate| rate.as_f64().unwrap())
            .collect();
        assert_eq!(rates, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
        // A chart spreads waits in the same way, and CPU time not at all.
        let chart = async |kind: &'static str, query: &'static str| {
            let more = [("type", kind), ("query", query), ("step", "1s"), ("by", "service")];
            server.json("series", &[&window[..], &more].concat()).await["series"][0]["cores"].clone()
        };
        assert_eq!(chart("off_cpu", "{wait.class=\"timer\"}").await, json!(rates));
        let cpu = json!([0.0, 0.05, 0.05, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(chart("cpu", "{service=\"shop\"}").await, cpu);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_by_their_value_are_the_same_in_every_answer() {
    let from = recent();
    let server = filled_with_waits(from).await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (least, most) in [
            (None, None),
            (Some(180), None),
            (None, Some(300)),
            (Some(21), Some(4_000)),
        ] {
            let texts = [least, most].map(|one: Option<i64>| one.map(|ms| (ms * MS).to_string()));
            let mut asked = vec![("from", &*begin), ("until", &*end), ("type", "off_cpu")];
            for (name, text) in ["min_value", "max_value"].into_iter().zip(&texts) {
                asked.extend(text.as_deref().map(|text| (name, text)));
            }
            let counts = |value: i64| least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
            let chosen: Vec<i64> = (TOLD.iter())
                .filter(|told| told.0 == "off_cpu" && counts(told.5))
                .map(|told| told.5)
                .collect();
            let seconds = chosen.iter().sum::<i64>() as f64 / 1e3;
            for path in ["flamegraph", "top"] {
                let answer = server.json(path, &asked).await;
                assert_eq!(answer["cpu_seconds"], json!(seconds), "{path} {least:?} {most:?}");
            }
            let series = server.json("series", &asked).await;
            let lines = series["series"].as_array().unwrap().iter();
            let total: i64 = lines.map(|line| line["total"].as_i64().unwrap()).sum();
            assert_eq!(total, chosen.iter().sum::<i64>() * MS);
            let timeline = server.json("timeline", &asked).await;
            assert_eq!(timeline["samples"]["value_ns"].as_array().unwrap().len(), chosen.len());
        }
    }
    let wrong = [("min_value", "5"), ("max_value", "4")];
    let (status, code, said) = server.error("flamegraph", &wrong).await;
    assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_by_their_own_length_are_the_same_in_every_answer() {
    let from = recent();
    let server = filled_with_waits(from).await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    // Where a sender does not say it, the value is taken for it.
    let own = |told: &Told| length(told).unwrap_or(told.5 * MS);
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (least, most) in [
            (None, None),
            (Some(180 * MS), None),
            (Some(180 * MS - 1), None),
            (None, Some(300 * MS - 2)),
            (None, Some(300 * MS - 1)),
            (Some(4_000 * MS), Some(4_000 * MS)),
        ] {
            let texts = [least, most].map(|one: Option<i64>| one.map(|ns| ns.to_string()));
            let mut window = vec![("from", &*begin), ("until", &*end)];
            for (name, text) in ["min_wait", "max_wait"].into_iter().zip(&texts) {
                window.extend(text.as_deref().map(|text| (name, text)));
            }
            let asked = [&window[..], &[("type", "off_cpu")]].concat();
            let counts = |told: &Told| {
                let ns = own(told);
                least.is_none_or(|least| ns >= least) && most.is_none_or(|most| ns <= most)
            };
            let of_type = TOLD.iter().filter(|told| told.0 == "off_cpu");
            let chosen: Vec<i64> = of_type.filter(|told| counts(told)).map(|told| told.5).collect();
            let sum_ms: i64 = chosen.iter().sum();
            for path in ["flamegraph", "top"] {
                let answer = server.json(path, &asked).await;
                assert_eq!(
                    answer["cpu_seconds"],
                    json!(sum_ms as f64 / 1e3),
                    "{path} {least:?} {most:?}"
                );
            }
            let series = server.json("series", &asked).await;
            let lines = series["series"].as_array().unwrap().iter();
            let total: i64 = lines.map(|line| line["total"].as_i64().unwrap()).sum();
            assert_eq!(total, sum_ms * MS);
            let timeline = server.json("timeline", &asked).await;
            assert_eq!(timeline["samples"]["value_ns"].as_array().unwrap().len(), chosen.len());
            // What ran has no length, and stays.
            let by_service = server.json("thread_time", &window).await;
            assert_eq!(
                rows(&by_service),
                truth(|told| told.1, |told| told.0 == "cpu" || counts(told))
            );
        }
    }
    let wrong = [("type", "off_cpu"), ("min_wait", "5"), ("max_wait", "4")];
    let (status, code, said) = server.error("flamegraph", &wrong).await;
    assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_has_waits_among_its_samples_where_they_are_asked_for() {
    let from = recent();
    let server = filled_with_waits(from).await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    let window = [("from", &*begin), ("until", &*end), ("query", "{thread=\"main\"}")];
    let bare = server.json("timeline", &window).await;
    assert!(
        bare.get("types").is_none()
            && bare.get("wakers").is_none()
            && ["wait_class", "wait_ns", "waker"]
                .iter()
                .all(|column| bare["samples"].get(column).is_none()),
        "{bare}"
    );
    assert_eq!(bare["samples"]["value_ns"], json!([50 * MS, 50 * MS]));
    let answer = server
        .json("timeline", &[&window[..], &[("waits", "true")]].concat())
        .await;
    assert_eq!(answer["types"], json!(["cpu", "off_cpu", "run_queue"]));
    let mut truth: Vec<&Told> = TOLD.iter().filter(|told| told.2 == "main").collect();
    truth.sort_by_key(|told| told.6);
    let samples = &answer["samples"];
    let column = |of: &dyn Fn(&Told) -> Value| Value::Array(truth.iter().map(|told| of(told)).collect());
    assert_eq!(samples["offset_ns"], column(&|told| json!(told.6 * MS)));
    assert_eq!(samples["value_ns"], column(&|told| json!(told.5 * MS)));
    assert_eq!(samples["wait_class"], column(&|told| json!(told.3)));
    assert_eq!(samples["wait_state"], column(&|told| json!(told.4)));
    // While they wait for their commit, and in a file.
    assert_eq!(samples["wait_ns"], column(&|told| json!(length(told))));
    server.store.flush().await.unwrap();
    let asked = [&window[..], &[("waits", "true")]].concat();
    assert_eq!(server.json("timeline", &asked).await["samples"], *samples);
    let sql = "SELECT wait_ns FROM waits WHERE thread = 'main' ORDER BY ts_ns";
    let lengths = truth.iter().filter(|told| told.0 != "cpu");
    let lengths: Vec<Value> = lengths.map(|told| json!([length(told)])).collect();
    let (_, answer) = server.sql(sql).await;
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["rows"], json!(lengths));
    let types = ["cpu", "off_cpu", "run_queue"];
    let place = |told: &Told| json!(types.iter().position(|kind| *kind == told.0));
    assert_eq!(samples["sample_type"], column(&place));
    let first = server
        .json(
            "timeline",
            &[&window[..], &[("waits", "true"), ("limit", "2")]].concat(),
        )
        .await;
    assert_eq!(first["complete"], json!(false));
    assert_eq!(first["samples"]["offset_ns"], json!([1_000 * MS, 1_500 * MS]));
    let both = [&window[..], &[("waits", "true"), ("before", "1s"), ("match", "leaf")]].concat();
    let (status, code, said) = server.error("timeline", &both).await;
    assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_about_waits_say_for_how_much_of_the_time_they_were_observed() {
    let from = recent();
    let server = filled_with_waits(from).await;
    let (begin, end) = (ms(from), ms(from + MINUTE));
    let asked = async |path: &str, more: &[(&'static str, &'static str)]| {
        let window = [("from", &*begin), ("until", &*end)];
        server.json(path, &[&window[..], more].concat()).await["exposure"].clone()
    };
    // Nobody keeps an account.
    assert_eq!(asked("thread_time", &[]).await["waits_share"], json!(null));
    let samples = minute(from, &[("web", "main;hot", 60)]);
    server.ingest(&batch(1, from, 50_000_000, samples)).await;
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for of_waits in [
            asked("thread_time", &[]).await,
            asked("flamegraph", &[("type", "off_cpu")]).await,
            asked("heatmap", &[("type", "run_queue")]).await,
        ] {
            assert!(near(&of_waits["waits_share"], 0.25), "{of_waits}");
        }
        let of_cpu = asked("flamegraph", &[]).await;
        assert!(of_cpu.get("waits_share").is_none(), "{of_cpu}");
        let (_, answer) = server.sql("SELECT waits_observed_ns FROM batches").await;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["rows"], json!([[MINUTE / 4]]));
    }
}

/// A sample of a wait, or of who ended one: service, thread, its id, stack, how long the wait was, the id of the thread
/// that was woken, and the time, in milliseconds.
type Ending = (&'static str, &'static str, i64, &'static str, i64, Option<i64>, i64);

const ASLEEP: [Ending; 6] = [
    ("shop", "pool", 7, "main;wait", 40, None, 1_000),
    ("shop", "pool", 8, "main;wait", 40, None, 1_010),
    // It went on, and ended later.
    ("shop", "pool", 7, "main;wait", 500, None, 2_000),
    ("shop", "pool", 7, "main;wait", 900, None, 2_450),
    ("other", "pool", 9, "main;wait", 40, None, 3_000),
    // As long as the one before, and nobody is known to have ended it.
    ("other", "pool", 9, "main;wait", 40, None, 3_400),
];
const WOKE: [Ending; 5] = [
    ("db", "writer", 21, "main;unlock;k:futex_wake", 40, Some(7), 995),
    // Of two threads of one name each has its own waker.
    ("db", "reader", 22, "main;post;k:futex_wake", 41, Some(8), 1_001),
    // That wait is not told.
    ("db", "writer", 21, "main;unlock;k:futex_wake", 70, Some(7), 1_400),
    ("[kernel]", "[interrupt]", 0, "k:hrtimer_wakeup", 896, Some(7), 2_400),
    ("db", "writer", 21, "main;unlock;k:futex_wake", 40, Some(9), 2_999),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_a_timeline_has_who_ended_it() {
    let from = recent();
    let server = Server::start().await;
    let profile = |node, kind, told: &[Ending]| Plain {
        node,
        sample_type: (kind, "nanoseconds"),
        period_type: ("", ""),
        period: 0,
        time_ns: from,
        length_ns: MINUTE,
        samples: (told.iter())
            .map(|(service, thread, _, stack, _, _, at)| {
                (*service, *thread, *stack, vec![50 * MS], vec![from + at * MS])
            })
            .collect(),
    };
    let attributes = |(_, thread, tid, _, length, woken, _): Ending| -> Vec<(&'static str, Any)> {
        let name = ("process.executable.name", Any::StringValue(format!("{thread}d")));
        let woken = woken.map(|tid| ("woken.tid", Any::IntValue(tid)));
        let numbers = [
            ("thread.id", Any::IntValue(tid)),
            ("wait.length", Any::IntValue(length * MS)),
        ];
        numbers.into_iter().chain(woken).chain([name]).collect()
    };
    let of_a = [profile("a", "off_cpu", &ASLEEP), profile("a", "wake_up", &WOKE)];
    let told: [&[Ending]; 2] = [&ASLEEP, &WOKE];
    let of_profile = |of: usize, at: usize| attributes(told[of][at]);
    server.ingest_bytes(plain_with(&of_a, of_profile), 11).await;
    // The same ids of another node are other threads.
    let elsewhere: Ending = ("far", "away", 23, "main;elsewhere", 40, Some(8), 1_005);
    let of_b = [profile("b", "wake_up", &[elsewhere])];
    server
        .ingest_bytes(plain_with(&of_b, |_, _| attributes(elsewhere)), 1)
        .await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    let asked = [
        ("from", &*begin),
        ("until", &*end),
        ("query", "{service=\"shop\"}"),
        ("waits", "true"),
    ];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let answer = server.json("timeline", &asked).await;
        assert_eq!(answer["samples"]["waker"], json!([0, 1, null, 2]), "{answer}");
        let wakers = &answer["wakers"];
        assert_eq!(wakers["service"], json!(["db", "db", "[kernel]"]));
        assert_eq!(wakers["process"], json!(["writerd", "readerd", "[interrupt]d"]));
        assert_eq!(wakers["thread"], json!(["writer", "reader", "[interrupt]"]));
        assert_eq!(wakers["tid"], json!([21, 22, 0]));
        // Their stacks are of the tree, and count nothing there.
        let nodes = &answer["nodes"];
        let at = |column: &Value, place: usize| column[place].as_u64().unwrap() as usize;
        let name = |node: usize| answer["strings"][at(&nodes["name"], node)].as_str().unwrap().to_owned();
        let leaves = [0, 1, 2].map(|waker| at(&wakers["stack"], waker));
        assert_eq!(leaves.map(name), ["futex_wake", "futex_wake", "hrtimer_wakeup"]);
        let callers = [0, 1].map(|waker| at(&nodes["parent"], leaves[waker]));
        assert_eq!(callers.map(name), ["unlock", "post"]);
        assert!(leaves.iter().all(|node| nodes["total"][*node] == json!(0)), "{nodes}");
        assert_eq!(nodes["total"][0], json!(4));
        // A thread that was woken before the window had a CPU in it.
        let late = ms(from + 2_430 * MS);
        let rest = server
            .json("timeline", &[&[("from", &*late)][..], &asked[1..]].concat())
            .await;
        assert_eq!(rest["samples"]["waker"], json!([0]), "{rest}");
        assert_eq!(rest["wakers"]["thread"], json!(["[interrupt]"]));
        // Where all waits are selected, those before the window alone are others.
        for (begin, right) in [
            (from, json!([0, 1, null, 2, 3, null])),
            (from + 2_950 * MS, json!([0, null])),
            (from + 3_100 * MS, json!([null])),
        ] {
            let begin = ms(begin);
            let all = [("from", &*begin), ("until", &*end), ("waits", "true")];
            assert_eq!(server.json("timeline", &all).await["samples"]["waker"], right);
        }
    }
    // It is a number of each sample, not a label of series.
    let labels = server.json("labels", &asked[..2]).await;
    assert!(!labels.to_string().contains("woken.tid"), "{labels}");
}

/// Who counts rows of `samples` means what ran.
#[tokio::test(flavor = "multi_thread")]
async fn sql_reads_waits_from_tables_of_their_own() {
    let server = filled_with_waits(recent()).await;
    let count = |is_wait: bool| TOLD.iter().filter(|told| (told.0 != "cpu") == is_wait).count();
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (statement, right) in [
            ("SELECT count(*) FROM samples", json!([[count(false)]])),
            ("SELECT count(*) FROM waits", json!([[count(true)]])),
            ("SELECT DISTINCT type FROM samples", json!([["cpu"]])),
            (
                "SELECT type, count(*) FROM waits GROUP BY type ORDER BY type",
                json!([["off_cpu", 5], ["run_queue", 1]]),
            ),
            // Both at once, and a type that is left out where there is none.
            (
                "SELECT s.n, w.n FROM (SELECT count(*) AS n FROM samples WHERE type <> 'off_cpu') s \
                 CROSS JOIN (SELECT count(*) AS n FROM waits w WHERE w.type = 'run_queue') w",
                json!([[count(false), 1]]),
            ),
            (
                "SELECT count(*) FROM waits_minute UNION ALL SELECT count(*) FROM samples_10s",
                json!([[0], [0]]),
            ),
        ] {
            let (status, answer) = server.sql(statement).await;
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(
                (status.as_u16(), &answer["rows"]),
                (200, &right),
                "{statement}: {answer}"
            );
        }
    }
    let columns = |table: &str| {
        format!("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{table}' ORDER BY 1")
    };
    for (samples, waits) in [
        ("samples", "waits"),
        ("samples_hour", "waits_hour"),
        ("samples_10s", "waits_10s"),
    ] {
        assert_eq!(server.sql(&columns(samples)).await, server.sql(&columns(waits)).await);
    }
    // No row would be found, and that without a word.
    for (statement, table) in [
        ("SELECT count(*) FROM samples WHERE type = 'off_cpu'", "waits"),
        ("SELECT s.tid FROM samples AS s WHERE 'run_queue' = s.type", "waits"),
        (
            "EXPLAIN SELECT * FROM samples_hour WHERE type IN ('off_cpu', 'wake_up')",
            "waits_hour",
        ),
    ] {
        let (status, body) = server.sql(statement).await;
        let (status, code, said) = error_of(status, &body);
        assert_eq!((status, code.as_str()), (400, "bad_query"), "{statement}");
        assert!(said.contains(&format!("stand in {table}, not in samples")), "{said}");
    }
    // A pattern may mean a type of a sender's own, such as off-cpu.
    let (status, body) = server.sql("SELECT count(*) FROM samples WHERE type LIKE 'off%'").await;
    assert_eq!(status, 200, "{body:?}");
}
