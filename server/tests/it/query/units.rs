//! Types whose senders don't agree on their unit, and senders with very many types.

use super::foreign::{MINUTE, profile};
use super::*;
use crate::wire::{Plain, plain};

const WINDOW: [&str; 2] = ["from", "until"];

fn of(node: &'static str, from: i64, sample_type: (&'static str, &'static str), value: i64) -> Plain {
    Plain {
        sample_type,
        period_type: ("", ""),
        period: 0,
        ..profile(node, from, vec![("s", node, "main;leaf", vec![value], Vec::new())])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_different_units_are_never_added_up_and_answers_say_of_which_they_are() {
    let (server, from) = (Server::start().await, recent());
    // One name, three units. The agreeing two come first and last.
    for (node, unit, value) in [
        ("a", "By", 4_096),
        ("b", "widgets", 70),
        ("c", "s", 3),
        ("d", "bytes", 1_000),
    ] {
        server
            .ingest_bytes(plain(&[of(node, from, ("held", unit), value)]), 1)
            .await;
    }
    server
        .ingest_bytes(plain(&[of("a", from, ("alone", "widgets"), 5)]), 1)
        .await;
    let times = [ms(from), ms(from + MINUTE), ms(from + MINUTE / 2)];
    let window = [(WINDOW[0], &*times[0]), (WINDOW[1], &*times[1]), ("type", "held")];
    let sides = [("base_from", &*times[0]), ("base_until", &*times[2])];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (asked, unit, total, nodes) in [
            (None, "nanoseconds", 3_000_000_000_i64, &["c"][..]),
            (Some("ms"), "nanoseconds", 3_000_000_000, &["c"]),
            (Some("B"), "bytes", 5_096, &["a", "d"]),
            (Some("widgets"), "widgets", 70, &["b"]),
        ] {
            let asked: Vec<_> = asked.iter().map(|unit| ("unit", *unit)).collect();
            let with = |more: &[(&'static str, &'static str)]| [&window[..], &asked, more].concat();
            let says = |answer: &Value| {
                let words = answer["unit_choice"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{answer}"))
                    .to_owned();
                assert!(words.contains(&format!("those in {unit} alone")), "{words}");
                for other in ["bytes", "nanoseconds", "widgets"] {
                    assert_eq!(words.matches(other).count(), 1, "{words}");
                }
            };
            let graph = server.json("flamegraph", &with(&[])).await;
            says(&graph);
            let counted = graph["nodes"]["total"][0].as_i64().unwrap() * graph["period_ns"].as_i64().unwrap().max(1);
            assert_eq!(counted, total, "{graph}");
            assert_eq!(graph["query"], "{}");
            let top = server.json("top", &with(&[("by", "node")])).await;
            says(&top);
            let mut found: Vec<_> = top["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["name"].as_str().unwrap())
                .collect();
            found.sort_unstable();
            assert_eq!(found, nodes, "{top}");
            let series = server.json("series", &with(&[("by", "node"), ("step", "60s")])).await;
            says(&series);
            let sum: i64 = series["series"]
                .as_array()
                .unwrap()
                .iter()
                .map(|line| line["total"].as_i64().unwrap())
                .sum();
            assert_eq!(
                (sum, series["series"].as_array().unwrap().len()),
                (total, nodes.len()),
                "{series}"
            );
            says(&server.json("heatmap", &with(&[])).await);
            says(&server.json("timeline", &with(&[])).await);
            for path in ["diff", "top"] {
                let sides: Vec<_> = with(&[]).into_iter().chain(sides).collect();
                says(&server.json(path, &sides).await);
            }
            let (_, headers, csv) = server.get("top", &with(&[("format", "csv"), ("by", "node")])).await;
            assert!(headers["stakeout-unit-choice"].contains(unit), "{headers:?}");
            assert_eq!(String::from_utf8(csv).unwrap().lines().count(), 1 + nodes.len());
        }
        let more = [&window[..], &[("unit", "sheep")]].concat();
        let (status, code, said) = server.error("flamegraph", &more).await;
        assert_eq!((status, &*code), (400, "bad_parameter"), "{said}");
        assert!(
            said.contains("sheep") && said.contains("nanoseconds, bytes, widgets"),
            "{said}"
        );
        // Where there is one, nothing is chosen.
        let alone = [window[0], window[1], ("type", "alone")];
        let graph = server.json("flamegraph", &alone).await;
        assert!(
            graph.get("unit_choice").is_none() && graph["unit"] == "widgets",
            "{graph}"
        );
        assert_eq!(graph["nodes"]["total"][0], 5);
        let types = server.json("labels", &window[..2]).await["types"].take();
        let held = types
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["type"] == "held")
            .unwrap();
        assert_eq!(
            (&held["unit"], &held["units"]),
            (&json!("nanoseconds"), &json!(["nanoseconds", "bytes", "widgets"]))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_has_so_many_types_and_what_is_more_is_told() {
    let (server, from) = (Server::start().await, recent());
    let names: Vec<&'static str> = (0..130).map(|at| &*format!("kind-{at:03}").leak()).collect();
    let many: Vec<Plain> = names.iter().map(|kind| of("many", from, (kind, "count"), 7)).collect();
    let request = Request::post("/v1development/profiles")
        .header("content-type", "application/json")
        .body(Body::from(crate::wire::json_of(&plain(&many))));
    let (app, store) = (server.app.clone(), server.store.clone());
    let answered = tokio::spawn(async move { app.oneshot(request.unwrap()).await.unwrap() });
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while server.pending().await < 100 {
        assert!(tokio::time::Instant::now() < deadline, "nothing is visible");
        tokio::task::yield_now().await;
    }
    store.flush().await.unwrap();
    let answer = answered.await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    let told: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(told["partialSuccess"]["rejectedProfiles"], "30", "{told}");
    let words = told["partialSuccess"]["errorMessage"].as_str().unwrap();
    assert!(words.contains("kind-100") && words.contains("100 others"), "{words}");
    assert!(!words.contains("labels"), "{words}");
    // Another sender has its own.
    server
        .ingest_bytes(plain(&[of("other", from, ("more", "count"), 7)]), 1)
        .await;
    let nodes = server.json("nodes", &[]).await["nodes"].take();
    let row = |name: &str| {
        nodes
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["node"] == name)
            .unwrap()
    };
    assert_eq!(row("many")["label_limits"], json!({"profile_types": 30}));
    assert_eq!(row("many")["refusals"][0]["reason"], "bad_profile");
    assert_eq!(row("other")["label_limits"], json!({}));
    let times = [ms(from), ms(from + MINUTE)];
    let types = server
        .json("labels", &[("from", &*times[0]), ("until", &*times[1])])
        .await["types"]
        .take();
    assert_eq!(types.as_array().unwrap().len(), 101);
}
