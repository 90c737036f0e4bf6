//! Charts and tables by several labels at once are those that each label has by itself.

use super::*;
use stakeout_server::api::query::router_with;
use stakeout_server::query::{Engine, Limits};

/// The answer that the parts have in common with single ones, as text: each part as it stands there.
async fn single(server: &Server, path: &str, asked: &[(&str, &str)], by: &str) -> String {
    server.text(path, &[asked, &[("by", by)]].concat()).await
}

async fn holds(server: &Server, asked: &[(&str, &str)], labels: &[&str]) {
    let by = labels.join(",");
    // A step is of charts alone.
    let of_tables: Vec<(&str, &str)> = asked.iter().filter(|(name, _)| *name != "step").copied().collect();
    let limited = |given: &[(&str, &str)]| given.iter().any(|(name, _)| *name == "limit");
    let usual = [("limit", "20")];
    let usual: &[(&str, &str)] = if limited(asked) { &[] } else { &usual };
    let of_tables = [&of_tables[..], usual].concat();
    for parts in ["both", "series", "top"] {
        let text = server
            .text("facets", &[asked, &[("by", &*by), ("parts", parts)]].concat())
            .await;
        let mut expected = String::new();
        for label in labels {
            let comma = if expected.is_empty() { "" } else { "," };
            expected += &format!("{comma}{{\"by\":{label:?}");
            if parts != "top" {
                expected += &format!(",\"series\":{}", single(server, "series", asked, label).await);
            }
            if parts != "series" {
                expected += &format!(",\"top\":{}", single(server, "top", &of_tables, label).await);
            }
            expected += "}";
        }
        let (head, facets) = text.split_once(",\"facets\":").unwrap();
        assert_eq!(facets, format!("[{expected}]}}"), "{asked:?} {parts}");
        let head: Value = serde_json::from_str(&format!("{head}}}")).unwrap();
        let from = asked.iter().find(|(name, _)| *name == "from").unwrap().1;
        assert_eq!(
            (&head["type"], head["from"].to_string()),
            (&json!("cpu"), from.to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_the_bytes_of_single_answers() {
    let from = recent();
    let (server, _) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let window = [("from", &*begin), ("until", &*end)];
    let labels = [
        "service",
        "process",
        "pod",
        "node",
        "thread",
        "tgid",
        "mode",
        "service.version",
    ];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for more in [
            &[][..],
            &[("step", "10s"), ("limit", "2")],
            &[("step", "7s"), ("query", "{service=~\"db|nginx\",mode=\"kernel\"}")],
            &[("match", "walk"), ("limit", "1")],
            &[("match_path", "native,app,main;native,app,hot")],
            &[("match", "nowhere")],
        ] {
            holds(&server, &[&window[..], more].concat(), &labels).await;
        }
    }
    let empty = [("from", &*ms(from - 86_400 * S)), ("until", &*ms(from - 80_000 * S))];
    holds(&server, &empty, &["service", "cpu"]).await;
}

/// A chart of many values in many steps counts the busiest of them apart: its answer is the same.
#[tokio::test(flavor = "multi_thread")]
async fn more_values_than_fit_in_steps_are_charted_all_the_same() {
    let from = recent();
    let (mut server, _) = filled(from).await;
    server.store.flush().await.unwrap();
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let window = [("from", &*begin), ("until", &*end)];
    let asked = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();
    let questions = [
        ("series", asked(&[("by", "thread"), ("step", "1s"), ("limit", "1")])),
        ("series", asked(&[("by", "service"), ("step", "1s"), ("limit", "1")])),
        (
            "series",
            asked(&[("by", "thread"), ("step", "1s"), ("limit", "1"), ("match", "walk")]),
        ),
        (
            "facets",
            asked(&[
                ("by", "service,thread"),
                ("step", "1s"),
                ("limit", "1"),
                ("parts", "both"),
            ]),
        ),
    ];
    let mut expected = Vec::new();
    for (path, asked) in &questions {
        let answer = server.text(path, asked).await;
        assert!(answer.contains("\"other\":{"), "{path} {asked:?}: {answer}");
        expected.push(answer);
    }
    // A line and that of the others, in 120 steps each.
    let engine = Engine::new(Limits {
        cells: 2 * 120,
        ..Limits::default()
    });
    server.app = router_with(engine).with_state(AppState::new(server.store.clone()));
    for ((path, asked), expected) in questions.iter().zip(expected) {
        assert_eq!(server.text(path, asked).await, expected, "{path} {asked:?}");
    }
    // More lines than fit are still refused, by name.
    let (status, code, text) = server
        .error("series", &asked(&[("by", "thread"), ("step", "1s"), ("limit", "2")]))
        .await;
    assert_eq!((status, &*code), (413, "too_large"), "{text}");
    assert!(text.contains("2 groups of 120 steps"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_few_and_each_is_named_once() {
    let from = recent();
    let (server, _) = filled(from).await;
    for by in [
        "function",
        "service,service",
        "node,service,process,tgid,thread,tid,cpu,mode,pod",
    ] {
        let (status, code, text) = server.error("facets", &[("by", by)]).await;
        assert_eq!((status, &*code), (400, "bad_parameter"), "{text}");
    }
    let answer = server.json("facets", &[]).await;
    assert_eq!(answer["facets"][0]["by"], "service");
    let (status, _, text) = server.error("facets", &[("step", "1ms")]).await;
    assert_eq!(status, 400, "{text}");
}
