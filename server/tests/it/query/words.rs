//! A word among the values of labels, and among functions.

use super::*;

/// One sample of each of so many services, which have a version, and of a function in each of two modules.
async fn crowded(services: usize) -> (Server, String, String) {
    let server = Server::start().await;
    let from = recent();
    for (part, first) in (0..services).step_by(2_000).enumerate() {
        let until = services.min(first + 2_000);
        let names: Vec<&'static str> = (first..until).map(|at| &*format!("svc-{at:05}").leak()).collect();
        let taken = names.iter().enumerate().map(|(at, service)| Sample {
            ts_ns: from + at as i64 * 1_000_000,
            service,
            tgid: 7_000 + at as i64 % 3,
            tid: 1,
            thread: if at % 2 == 0 { "walker" } else { "main" },
            cpu: 0,
            stack: ["main;filepath.Walk", "main;sidewalk", "k:kthread;k:walk"][at % 3],
        });
        let batch = Batch {
            node: &*format!("node-{part}").leak(),
            instance: &*format!("00000000-0000-4000-8000-{part:012}").leak(),
            number: 1,
            from_ns: from,
            until_ns: from + 60 * S,
            period_ns: PERIOD_NS,
            missed_ticks: 0,
            samples: taken.collect(),
        };
        server.ingest(&batch).await;
    }
    (server, ms(from), ms(from + 60 * S))
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_found_by_a_word_the_best_first_and_all_counted() {
    let (server, begin, end) = crowded(12_000).await;
    let window = [("from", &*begin), ("until", &*end)];
    let values = async |label: &str, more: &[(&'static str, &'static str)]| {
        let answer = server
            .json(&format!("labels/{label}/values"), &[&window[..], more].concat())
            .await;
        let values: Vec<String> = serde_json::from_value(answer["values"].clone()).unwrap();
        (
            values,
            answer["count"].as_u64().unwrap(),
            answer["complete"].as_bool().unwrap(),
        )
    };
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let (all, count, complete) = values("service", &[]).await;
        assert_eq!((all.len(), count, complete), (10_000, 12_000, false));
        // Beyond the first ten thousand too.
        let (found, count, complete) = values("service", &[("search", "C-1199"), ("limit", "3")]).await;
        assert_eq!(
            (&found[..], count, complete),
            (
                &["svc-11990", "svc-11991", "svc-11992"].map(String::from)[..],
                10,
                false
            )
        );
        assert_eq!(
            values("service", &[("search", "svc-00007")]).await,
            (vec!["svc-00007".to_owned()], 1, true)
        );
        assert_eq!(values("service", &[("search", "nothing")]).await, (vec![], 0, true));
        // Of samples, with a selector.
        let query = ("query", "{service=\"svc-00000\"}");
        assert_eq!(values("thread", &[("search", "WALK"), query]).await.0, ["walker"]);
        assert_eq!(values("thread", &[("search", "main"), query]).await.1, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_word_is_looked_for_everywhere() {
    let (server, begin, end) = crowded(60).await;
    let window = [("from", &*begin), ("until", &*end)];
    let found = async |word: &'static str, more: &[(&'static str, &'static str)]| {
        server
            .json("search", &[&window[..], &[("search", word)], more].concat())
            .await
    };
    let hits = |answer: &Value| -> Vec<(String, String, String)> {
        let text = |hit: &Value, name: &str| hit[name].as_str().unwrap().to_owned();
        let hits = answer["hits"].as_array().unwrap().iter();
        hits.map(|hit| (text(hit, "label"), text(hit, "value"), text(hit, "rank")))
            .collect()
    };
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let answer = found("walk", &[]).await;
        let expected = [
            ("function", "walk", "exact"),
            ("thread", "walker", "prefix"),
            ("function", "filepath.Walk", "word"),
            ("function", "sidewalk", "inside"),
        ];
        let expected = expected.map(|(label, value, rank)| (label.to_owned(), value.to_owned(), rank.to_owned()));
        assert_eq!(hits(&answer), expected);
        assert_eq!(answer["counts"], json!({"function": 3, "thread": 1}));
        assert_eq!(
            (&answer["count"], &answer["complete"], &answer["left_out"]),
            (&json!(4), &json!(true), &json!([]))
        );
        let function = &answer["hits"][2];
        assert_eq!(
            (&function["module"], &function["kind"], &function["language"]),
            (&json!("app"), &json!("native"), &json!(""))
        );
        let services = found("svc-", &[("limit", "2")]).await;
        assert_eq!(services["count"], 60);
        assert_eq!(
            hits(&services)[0],
            ("service".to_owned(), "svc-00000".to_owned(), "prefix".to_owned())
        );
        assert_eq!(hits(&services).len(), 2);
        assert_eq!(
            hits(&found("7001", &[]).await),
            [("tgid".to_owned(), "7001".to_owned(), "exact".to_owned())]
        );
        // The CPU's mode is no value of any table, and can be selected all the same.
        let mode = ("mode".to_owned(), "kernel".to_owned(), "exact".to_owned());
        assert_eq!(hits(&found("Kernel", &[]).await), [mode]);
        assert_eq!(found("", &[]).await["count"], 0);
        // What is found can be selected.
        let node = found("node-0", &[]).await;
        assert_eq!(node["hits"][0]["label"], "node");
    }
    // Names of threads stand with samples alone.
    let long = server.json("search", &[("search", "walk"), ("from", "now-7h")]).await;
    assert_eq!(
        (&long["left_out"], &long["counts"]),
        (&json!(["thread"]), &json!({"function": 3}))
    );
}
