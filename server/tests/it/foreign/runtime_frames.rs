//! C functions of an interpreter that lead to a function of its language: part of that function, in every answer, and
//! by themselves where that is asked for.

use crate::ingest::App;
use crate::support::{Dictionary, attributes, get, now_ns, request, text};
use opentelemetry_proto::tonic::profiles::v1development::{Profile, Sample};
use std::collections::BTreeMap;

const PYTHON: &str = "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0";

/// Folded stacks with their counts.
async fn folded(app: &App, path: &str) -> BTreeMap<String, u64> {
    let answer = get(&app.address, path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let lines = String::from_utf8(answer.body.to_vec()).unwrap();
    lines
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, count)| (stack.to_owned(), count.parse().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interpreters_own_frames_are_part_of_what_they_lead_to() {
    let app = App::start().await;
    let begin_ns = u64::try_from(now_ns()).unwrap() - 60_000_000_000;
    let mut dictionary = Dictionary::new();
    // Leaf first, as senders have them: two ways from `handle` to `work`, and what `work` itself does in C.
    let outer = [
        ("cpython", "/srv/shop/app.py", "handle"),
        ("native", PYTHON, "run_mod"),
        ("native", "/usr/bin/python3.11", "main"),
        ("native", "/usr/lib/libc.so.6", "__libc_start_main"),
    ];
    let work = ("cpython", "/srv/shop/app.py", "work");
    let mut stack = |inner: &[(&str, &str, &str)]| dictionary.stack(&[inner, &outer].concat());
    let stacks = [
        (3, stack(&[work, ("native", PYTHON, "method_vectorcall")])),
        (
            5,
            stack(&[
                work,
                ("native", PYTHON, "slot_tp_call"),
                ("native", PYTHON, "vectorcall"),
            ]),
        ),
        (
            7,
            stack(&[("native", PYTHON, "list_sort"), work, ("native", PYTHON, "vectorcall")]),
        ),
    ];
    let samples = stacks.map(|(samples, stack_index)| Sample {
        stack_index,
        timestamps_unix_nano: (0..samples).map(|at| begin_ns + at).collect(),
        ..Default::default()
    });
    let profile = Profile {
        period: 50_000_000,
        period_type: Some(dictionary.value_type("cpu", "nanoseconds")),
        sample_type: Some(dictionary.value_type("samples", "count")),
        samples: samples.into(),
        ..Default::default()
    };
    let own = attributes([("host.name", text("n"))]);
    assert_eq!(app.post_plain(&request(own, profile, dictionary)).await.status, 200);

    let path = "/api/v1/flamegraph?from=now-5m&format=collapsed";
    let told = folded(&app, path).await;
    let root = "__libc_start_main;handle;work";
    assert_eq!(
        told,
        BTreeMap::from([(root.to_owned(), 8), (format!("{root};list_sort"), 7)])
    );
    assert_eq!(folded(&app, &format!("{path}&runtime_frames=fold")).await, told);
    let whole = folded(&app, &format!("{path}&runtime_frames=show")).await;
    let root = "__libc_start_main;main;run_mod;handle";
    assert_eq!(
        whole,
        BTreeMap::from([
            (format!("{root};method_vectorcall;work"), 3),
            (format!("{root};vectorcall;slot_tp_call;work"), 5),
            (format!("{root};vectorcall;work;list_sort"), 7),
        ])
    );

    // Tables, charts, differences and exports with files and lines tell the same stacks.
    let json = async |path: &str| {
        let answer = get(&app.address, &format!("/api/v1/{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    };
    let base = "base_from=now-10m&base_until=now-5m";
    for path in ["top?from=now-5m&", &format!("top?from=now-5m&{base}&")] {
        for (words, is_told) in [("", false), ("runtime_frames=show", true)] {
            let rows = json(&format!("{path}{words}")).await["rows"].take();
            let has = |name: &str| rows.as_array().unwrap().iter().any(|row| row["name"] == name);
            assert_eq!(
                [has("work"), has("list_sort"), has("vectorcall")],
                [true, true, is_told],
                "{path}{words}"
            );
        }
    }
    for (words, samples) in [("", 0), ("&runtime_frames=show", 15)] {
        let answer = json(&format!("flamegraph?from=now-5m&match=vectorcall${words}")).await;
        assert_eq!(answer["match"]["samples"], samples, "{words}");
    }
    for format in ["speedscope", "svg"] {
        for (words, is_told) in [("", false), ("&runtime_frames=show", true)] {
            let path = format!("/api/v1/flamegraph?from=now-5m&format={format}{words}");
            let answer = get(&app.address, &path).await;
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(
                (body.contains("list_sort"), body.contains("slot_tp_call")),
                (true, is_told),
                "{path}"
            );
        }
    }
    let refused = get(&app.address, "/api/v1/flamegraph?runtime_frames=hide").await;
    assert_eq!(refused.status, 400);
    assert!(
        String::from_utf8_lossy(&refused.body).contains("one of fold, show"),
        "{refused:?}"
    );
}
