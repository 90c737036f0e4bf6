//! Who ended waits, as a tree: by construction it is known whose each of them is, and of which nobody is told.

use super::foreign::MINUTE;
use super::rolled::{HOUR, eager, quiet};
use super::*;
use crate::support::{eventually, now_ns};
use crate::wire::{Plain, plain_with};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use stakeout_server::store::{Table, hour};

const MS: i64 = 1_000_000;

/// A sample of a wait: service, thread id, stack, the time that it stands for, how long the wait was by then, when that
/// is told, and the collapsed stack of who ended it; in milliseconds.
type Wait = (
    &'static str,
    Option<i64>,
    &'static str,
    i64,
    i64,
    i64,
    Option<&'static str>,
);

const WRITER: Option<&str> = Some("main;unlock;futex_wake");
const READER: Option<&str> = Some("main;post;futex_wake");
const CLOCK: Option<&str> = Some("hrtimer_wakeup");

const WAITS: [Wait; 12] = [
    ("shop", Some(7), "main;take;wait", 40, 40, 1_000, WRITER),
    // A wait that stands for others, too.
    ("shop", Some(8), "main;take;wait", 60, 41, 1_010, READER),
    // Told of while it lasted, and at its end.
    ("shop", Some(7), "main;idle;wait", 500, 500, 2_000, CLOCK),
    ("shop", Some(7), "main;idle;wait", 400, 900, 2_450, CLOCK),
    // Whose end was not sampled, of a sender that does not say which thread it is, and one that goes on.
    ("shop", Some(7), "main;take;wait", 30, 30, 3_000, None),
    ("shop", None, "main;idle;wait", 20, 20, 3_100, None),
    ("shop", Some(8), "main;idle;wait", 200, 200, 4_000, None),
    ("other", Some(9), "main;take;wait", 70, 70, 3_500, WRITER),
    // Of two waits in a row that were as long one was ended by somebody who is known.
    ("shop", Some(10), "main;take;wait", 40, 40, 5_000, WRITER),
    ("shop", Some(10), "main;idle;wait", 40, 41, 5_100, None),
    // And of a long one it was told, while it lasted, when it was as long as the one before.
    ("shop", Some(11), "main;poll;wait", 1_000, 1_000, 6_000, WRITER),
    ("shop", Some(11), "main;idle;wait", 1_000, 1_000, 7_010, READER),
];

/// Who ended a wait: thread, stack, how long the wait was, who was woken, and when.
type Woke = (&'static str, &'static str, i64, i64, i64);

const WOKE: [Woke; 8] = [
    ("writer", "main;unlock;k:futex_wake", 40, 7, 995),
    ("reader", "main;post;k:futex_wake", 41, 8, 1_001),
    // That wait is not told.
    ("writer", "main;unlock;k:futex_wake", 70, 7, 1_400),
    ("[interrupt]", "k:hrtimer_wakeup", 896, 7, 2_400),
    ("writer", "main;unlock;k:futex_wake", 70, 9, 3_499),
    ("writer", "main;unlock;k:futex_wake", 40, 10, 4_998),
    ("writer", "main;unlock;k:futex_wake", 1_000, 11, 5_999),
    ("reader", "main;post;k:futex_wake", 2_495, 11, 8_500),
];
/// The same id of another node is another thread.
const ELSEWHERE: Woke = ("away", "main;elsewhere", 40, 8, 1_005);

fn of_waits(from: i64) -> Vec<u8> {
    let profile = Plain {
        node: "a",
        sample_type: ("off_cpu", "nanoseconds"),
        period_type: ("", ""),
        period: 0,
        time_ns: from,
        length_ns: MINUTE,
        samples: (WAITS.iter())
            .map(|(service, _, stack, value, _, at, _)| {
                (*service, "pool", *stack, vec![value * MS], vec![from + at * MS])
            })
            .collect(),
    };
    plain_with(&[profile], |_, at| {
        let (_, tid, _, _, length, _, _) = WAITS[at];
        let tid = tid.map(|tid| ("thread.id", Any::IntValue(tid)));
        tid.into_iter()
            .chain([("wait.length", Any::IntValue(length * MS))])
            .collect()
    })
}

fn of_wakers(node: &'static str, from: i64, woke: &[Woke]) -> Vec<u8> {
    let profile = Plain {
        node,
        sample_type: ("wake_up", "nanoseconds"),
        period_type: ("", ""),
        period: 0,
        time_ns: from,
        length_ns: MINUTE,
        samples: (woke.iter())
            .map(|(thread, stack, _, _, at)| ("db", *thread, *stack, vec![50 * MS], vec![from + at * MS]))
            .collect(),
    };
    plain_with(&[profile], |_, at| {
        let (_, _, length, woken, _) = woke[at];
        vec![
            ("wait.length", Any::IntValue(length * MS)),
            ("woken.tid", Any::IntValue(woken)),
        ]
    })
}

async fn filled_with_wakers(from: i64) -> Server {
    let server = Server::start().await;
    server.ingest_bytes(of_waits(from), WAITS.len()).await;
    server.ingest_bytes(of_wakers("a", from, &WOKE), WOKE.len()).await;
    server.ingest_bytes(of_wakers("b", from, &[ELSEWHERE]), 1).await;
    server
}

/// Milliseconds of the waits that count, by who ended them.
fn truth(counts: impl Fn(&Wait) -> bool) -> BTreeMap<String, u64> {
    let mut truth = BTreeMap::new();
    for wait in WAITS.iter().filter(|wait| counts(wait)) {
        let (.., value, _, _, waker) = *wait;
        *truth.entry(waker.unwrap_or("[no waker known]").to_owned()).or_insert(0) += value as u64;
    }
    truth
}

#[tokio::test(flavor = "multi_thread")]
async fn wakers_have_the_time_of_the_waits_that_they_ended() {
    let from = recent();
    let server = filled_with_wakers(from).await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    let window = [
        ("type", "off_cpu"),
        ("from", &*begin),
        ("until", &*end),
        ("query", "{service=\"shop\"}"),
    ];
    let of_wakers = ("stacks", "wakers");
    let (except_from, except_until) = (ms(from + 1_990 * MS), ms(from + 2_010 * MS));
    let late = ms(from + 2_430 * MS);
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a dyn Fn(&Wait) -> bool);
    let shop = |wait: &Wait| wait.0 == "shop";
    let cases: &[Case<'_>] = &[
        (&[], &shop),
        (&[("match", "^take$")], &|wait| shop(wait) && wait.2.contains("take")),
        (&[("match_frame", "native,app,idle")], &|wait| {
            shop(wait) && wait.2.contains("idle")
        }),
        (&[("match_path", "native,app,main;native,app,idle")], &|wait| {
            shop(wait) && wait.2.contains("idle")
        }),
        (&[("match", "nothing")], &|_| false),
        (&[("min_wait", "41000000")], &|wait| shop(wait) && wait.4 >= 41),
        // Of a longer wait what was told until then is chosen, and who ended it later is known all the same.
        (&[("max_wait", "600000000")], &|wait| shop(wait) && wait.4 <= 600),
        (&[("min_value", "100000000")], &|wait| shop(wait) && wait.3 >= 100),
        (
            &[("except_from", &*except_from), ("except_until", &*except_until)],
            &|wait| shop(wait) && wait.5 != 2_000,
        ),
    ];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (more, counts) in cases {
            let asked = [&window[..], &[of_wakers], *more].concat();
            let answer = server.json("flamegraph", &asked).await;
            let truth = truth(counts);
            let whole: u64 = truth.values().sum();
            let one = answer["period_ns"].as_u64().unwrap() / MS as u64;
            let unknown = truth.get("[no waker known]").copied().unwrap_or(0);
            let in_ms = |count: &Value| count.as_u64().unwrap() * one.max(1);
            assert_eq!(in_ms(&answer["samples"]), whole, "{more:?}: {answer}");
            assert_eq!(in_ms(&answer["nodes"]["total"][0]), whole, "{more:?}");
            assert_eq!(in_ms(&answer["wakers"]["known"]), whole - unknown, "{more:?}");
            assert_eq!(in_ms(&answer["wakers"]["unknown"]), unknown, "{more:?}");
            assert_eq!((&answer["type"], &answer["match"]), (&json!("off_cpu"), &json!(null)));
            let text = [&asked[..], &[("format", "collapsed")]].concat();
            let folded = collapsed_answer(&server.text("flamegraph", &text).await);
            let folded: BTreeMap<String, u64> = folded.into_iter().map(|(stack, n)| (stack, n * one)).collect();
            assert_eq!(folded, truth, "{more:?}");
        }
        // All of the time is that of the waits' own flamegraph, which says nothing of wakers.
        let own = server.json("flamegraph", &window).await;
        let woken = server.json("flamegraph", &[&window[..], &[of_wakers]].concat()).await;
        for head in ["samples", "unit", "period_ns", "cpu_seconds", "periods", "exposure"] {
            assert_eq!(own[head], woken[head], "{head}");
        }
        assert!(own.get("wakers").is_none(), "{own}");
        // A thread that was woken before the window had a CPU in it.
        let rest = [&[("from", &*late)][..], &window[..1], &window[2..], &[of_wakers]].concat();
        let rest = server
            .text("flamegraph", &[&rest[..], &[("format", "collapsed")]].concat())
            .await;
        assert!(rest.contains("hrtimer_wakeup "), "{rest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ended_a_wait_that_a_timeline_leaves_out_ended_no_other_one() {
    let from = recent();
    let server = filled_with_wakers(from).await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    let asked = [
        ("type", "off_cpu"),
        ("from", &*begin),
        ("until", &*end),
        ("query", "{service=\"shop\"}"),
        ("waits", "true"),
        ("min_wait", "41000000"),
    ];
    // Thread 10 has one of 40 ms before.
    let truth = [
        (1_010, Some("reader")),
        (2_000, None),
        (2_450, Some("[interrupt]")),
        (4_000, None),
        (5_100, None),
        (6_000, Some("writer")),
        (7_010, None),
    ];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let answer = server.json("timeline", &asked).await;
        let samples = &answer["samples"];
        let told: Vec<(i64, Option<&str>)> = (samples["offset_ns"].as_array().unwrap().iter())
            .zip(samples["waker"].as_array().unwrap())
            .map(|(offset, waker)| {
                let thread = waker.as_u64().map(|place| &answer["wakers"]["thread"][place as usize]);
                (offset.as_i64().unwrap() / MS, thread.and_then(Value::as_str))
            })
            .collect();
        assert_eq!(told, truth, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_above_wakers_are_theirs_and_every_form_has_them() {
    let from = recent();
    let server = filled_with_wakers(from).await;
    let (begin, end) = (ms(from), ms(from + 10 * S));
    let asked = |more: &[(&'static str, &'static str)]| {
        let mut asked = vec![("type", "off_cpu"), ("stacks", "wakers"), ("query", "{node=\"a\"}")];
        asked.extend(more);
        asked
    };
    let window = [("from", &*begin), ("until", &*end)];
    let folded = [
        &window[..],
        &asked(&[("group", "service,thread"), ("format", "collapsed")]),
    ]
    .concat();
    let folded = collapsed_answer(&server.text("flamegraph", &folded).await);
    // In tens of milliseconds, which all of them have in common.
    let truth = [
        ("db;writer;main;unlock;futex_wake", 115),
        ("db;reader;main;post;futex_wake", 106),
        ("db;[interrupt];hrtimer_wakeup", 90),
        ("[no service];[no thread];[no waker known]", 29),
    ];
    let truth: BTreeMap<String, u64> = truth.into_iter().map(|(stack, n)| (stack.to_owned(), n)).collect();
    assert_eq!(folded, truth);
    // What is drawn begins at a frame of a waker; what has none is left out of it, and counted all the same.
    let rooted = server
        .json("flamegraph", &[&window[..], &asked(&[("root", "unlock")])].concat())
        .await;
    assert_eq!(
        (&rooted["samples"], &rooted["wakers"]),
        (&json!(115), &json!({"known": 311, "unknown": 29}))
    );
    for (format, has) in [
        ("svg", "who ended it is known of 91.5 %"),
        ("speedscope", "[no waker known]"),
    ] {
        let text = server
            .text("flamegraph", &[&window[..], &asked(&[("format", format)])].concat())
            .await;
        assert!(text.contains(has), "{format}: {text}");
    }
    let (status, headers, _) = server
        .get("flamegraph", &[&window[..], &asked(&[("format", "pprof")])].concat())
        .await;
    assert_eq!(status, 200);
    assert!(
        headers["content-disposition"].contains("stakeout-wakers-off_cpu-"),
        "{headers:?}"
    );
    // Nothing but waits is ended by somebody.
    for other in ["cpu", "run_queue", "wake_up"] {
        let asked = [&window[..], &[("type", other), ("stacks", "wakers")]].concat();
        let (status, code, said) = server.error("flamegraph", &asked).await;
        assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{said}");
        assert!(said.contains("type=off_cpu"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_hour_that_has_samples_has_wakers_too() {
    let dir = tempfile::tempdir().unwrap();
    let config = quiet(dir.path());
    let server = Server::open(dir, config).await;
    let first = (recent() / HOUR - 3) * HOUR;
    let second = first + HOUR;
    for from in [first, second] {
        server.ingest_bytes(of_waits(from), WAITS.len()).await;
        server.ingest_bytes(of_wakers("a", from, &WOKE), WOKE.len()).await;
    }
    server.store.flush().await.unwrap();
    let asked = async |server: &Server, from: i64| {
        let (from, until) = (ms(from), ms(second + 10 * S));
        let window = [("type", "off_cpu"), ("from", &*from), ("until", &*until)];
        let tree = [&window[..], &[("stacks", "wakers"), ("format", "collapsed")]].concat();
        let (status, _, tree) = server.get("flamegraph", &tree).await;
        let one_by_one = [&window[..], &[("waits", "true")]].concat();
        let (of_timeline, _, timeline) = server.get("timeline", &one_by_one).await;
        let tree = String::from_utf8(tree).unwrap();
        let timeline: Value = serde_json::from_slice(&timeline).unwrap();
        let of_samples = [&timeline["samples"]["waker"], &timeline["wakers"]["thread"]].map(Value::clone);
        ([status.as_u16(), of_timeline.as_u16()], tree, of_samples)
    };
    let (status, tree, of_samples) = asked(&server, second).await;
    assert_eq!(status, [200, 200], "{tree}");
    let in_tens = truth(|_| true).into_iter().map(|(stack, sum_ms)| (stack, sum_ms / 10));
    assert_eq!(collapsed_answer(&tree), in_tens.collect::<BTreeMap<String, u64>>());
    assert_eq!(of_samples[1].as_array().unwrap().len(), 6, "{of_samples:?}");
    // Until the middle of the second hour all is too old.
    let age_ns = now_ns() - second - HOUR / 2;
    let server = server
        .reopened(|dir| StoreConfig {
            retention_samples: Duration::from_nanos(age_ns as u64),
            ..eager(dir)
        })
        .await;
    eventually("the samples of the first hour are gone", async || {
        let snapshot = server.store.snapshot();
        let mut files = snapshot.files(Table::Samples).iter();
        files.all(|file| file.partition != hour(first))
    })
    .await;
    let snapshot = server.store.snapshot();
    let hours = |table| -> Vec<String> {
        let files = snapshot.files(table).iter();
        files.map(|file| file.partition.clone()).collect()
    };
    assert!(hours(Table::SamplesHour).contains(&hour(first)));
    assert!(hours(Table::Samples).contains(&hour(second)));
    let (status, tree_then, of_samples_then) = asked(&server, second).await;
    assert_eq!(status, [200, 200], "{tree_then}");
    assert_eq!(collapsed_answer(&tree_then), collapsed_answer(&tree));
    assert_eq!(of_samples_then, of_samples);
    // Whoever asks for more hears that it is gone.
    let (status, tree, _) = asked(&server, second - MS).await;
    assert_eq!(status, [400, 400]);
    assert!(tree.contains("only roll-ups are left"), "{tree}");
}
