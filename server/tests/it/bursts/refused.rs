//! What no burst is begun for, and who may not begin one.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path(), |state| state).await;
    // An agent that ships and does not ask.
    let mut old = Sender::new("old-1", 10);
    let body = old.batch(1, crate::support::now_ns()).encode_to_vec();
    let sent = Request::post("/v1development/profiles")
        .header("content-type", "application/x-protobuf")
        .body(Body::from(body));
    assert_eq!(server.app.clone().oneshot(sent.unwrap()).await.unwrap().status(), 200);
    server.poll(&agent("db-1", "i"), 0, &[]).await;
    let lower = Agent {
        limit_hz: 200,
        ..agent("db-2", "k")
    };
    server.poll(&lower, 0, &[]).await;
    let with = |more: Value| {
        let mut body = burst("db-1");
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let long = |label: &str| format!("{{{label}=\"{}\"}}", "x".repeat(1_025));
    for (body, status, words) in [
        (
            with(json!({"node": "nowhere"})),
            404,
            "no agent of a node `nowhere` is known",
        ),
        (with(json!({"node": "old-1"})), 400, "`old-1` does not ask for bursts"),
        (with(json!({"node": "old-1"})), 400, "older than bursts"),
        (
            with(json!({"node": "db-2"})),
            400,
            "999 Hz is above the limit of db-2, 200 Hz (--burst-limit)",
        ),
        (
            with(json!({"frequency_hz": 4999})),
            400,
            "4999 Hz is above the limit of db-1, 999 Hz",
        ),
        (with(json!({"frequency_hz": 5000})), 400, "from 1 to 4999"),
        (with(json!({"frequency_hz": 0})), 400, "`frequency_hz` is 0"),
        (with(json!({"frequency_hz": "many"})), 400, "cannot be read"),
        (with(json!({"seconds": 61})), 400, "from 1 to 60"),
        (with(json!({"seconds": 0})), 400, "`seconds` is 0"),
        (with(json!({"cpus": "a"})), 400, "a list of CPUs such as 0,2-3"),
        (
            with(json!({"cpus": "2-5"})),
            400,
            "CPU 4 is not online at db-1: online are 0-3",
        ),
        (with(json!({"process": "a\nb"})), 400, "no control characters"),
        // Agents take no longer texts: they would hear of nothing any more.
        (
            json!({"query": long("service"), "frequency_hz": 999, "seconds": 1}),
            400,
            "`service` cannot be this text of 1025 bytes",
        ),
        (
            json!({"query": long("process"), "frequency_hz": 999, "seconds": 1}),
            400,
            "`process` cannot be this text of 1025 bytes",
        ),
        (
            json!({"query": "{service=\"a\\nb\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "no control characters",
        ),
        (with(json!({"colour": "red"})), 400, "unknown field"),
        (
            with(json!({"query": "{}"})),
            400,
            "neither a `node` nor a `query`, or both",
        ),
        (json!({"frequency_hz": 999, "seconds": 1}), 400, "neither a `node`"),
        (
            json!({"query": "{mode=\"user\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "speaks of `mode`",
        ),
        (
            json!({"query": "{acme.team=\"a\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "of CPUs by `cpu`, and of processes and threads by service, process, tgid",
        ),
        // An attribute is no label of processes, whatever its name is.
        (
            json!({"query": "{attribute.thread=\"a\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "`query` speaks of `attribute.thread`",
        ),
        (
            json!({"query": "{attribute.version=\"a\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "`query` speaks of `attribute.version`",
        ),
        (
            json!({"query": "{node=\"db-1\",container=\"a\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "the agent of db-1 is older, and selects by one service",
        ),
        (
            json!({"query": "{container=~\"a.*\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "`container` in `query` is a pattern",
        ),
        (
            json!({"query": "{node=\"db-1\",cpu=\"9\"}", "frequency_hz": 999, "seconds": 1}),
            400,
            "`query` selects no CPU of db-1: online are 0-3",
        ),
        (
            json!({"query": "{cpu=\"1\"}", "cpus": "1", "frequency_hz": 999, "seconds": 1}),
            400,
            "it has `cpus`, and `cpu` in its `query`",
        ),
        (
            json!({"query": "{node=~\"x.*\"}", "frequency_hz": 999, "seconds": 1}),
            404,
            "selects no node",
        ),
        (json!({"query": "{node", "frequency_hz": 999, "seconds": 1}), 400, ""),
    ] {
        let (got, answer) = server.begin(&body).await;
        assert_eq!(got, status, "{body}: {answer}");
        assert!(message(&answer).contains(words), "{body}: {}", message(&answer));
    }
    assert_eq!(server.list().await.len(), 0);
    // Several at once, of which one cannot.
    let (status, made) = server
        .begin(&json!({"query": "{node=~\"db-.*\"}", "frequency_hz": 999, "seconds": 5}))
        .await;
    let states: Vec<(&str, &str)> = made["bursts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|burst| (burst["node"].as_str().unwrap(), burst["state"].as_str().unwrap()))
        .collect();
    assert_eq!((status, states), (201, vec![("db-1", "waiting"), ("db-2", "refused")]));
    // What agents may not say.
    let question = agent("db-1", "i").question(0, &[]);
    for (name, value) in [
        ("node", json!("")),
        ("node", json!("x".repeat(2_000))),
        ("bursts", json!(vec![said(&json!("a"), "ended"); 65])),
        ("bursts", json!([said(&json!("a"), "exploded")])),
    ] {
        let mut wrong = question.clone();
        wrong[name] = value;
        let (status, answer) = server.ask("POST", "agent/bursts", "", &wrong).await;
        assert_eq!(status, 400, "{name}: {answer}");
    }
    // Where the processor counts events, more may be asked for.
    let fast = Agent {
        has_pmu: true,
        limit_hz: 4_999,
        ..agent("db-3", "m")
    };
    server.poll(&fast, 0, &[]).await;
    let (status, answer) = server
        .begin(&json!({"node": "db-3", "frequency_hz": 4_999, "seconds": 5}))
        .await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bursts_need_a_token_of_their_own_kind() {
    let dir = tempfile::tempdir().unwrap();
    let kinds = |state| AppState {
        ingest_tokens: Tokens::from_lines("ship"),
        view_tokens: Tokens::from_lines("view"),
        burst_tokens: Tokens::from_lines("burst"),
        senders_may_burst: false,
        ..state
    };
    let server = Server::open(dir.path(), kinds).await;
    let question = agent("db-1", "i").question(0, &[]);
    for (token, status) in [("", 401), ("view", 401), ("burst", 401), ("ship", 200)] {
        assert_eq!(
            server.ask("POST", "agent/bursts", token, &question).await.0,
            status,
            "{token}"
        );
    }
    for (token, status) in [("", 401), ("ship", 401), ("burst", 401), ("view", 200)] {
        assert_eq!(
            server.ask("GET", "bursts", token, &Value::Null).await.0,
            status,
            "{token}"
        );
    }
    for token in ["", "ship", "view", "wrong"] {
        let (status, answer) = server.ask("POST", "bursts", token, &burst("db-1")).await;
        assert_eq!(status, 401, "{token}");
        assert!(message(&answer).starts_with("a token for bursts"), "{answer}");
        assert_eq!(
            server.ask("DELETE", "bursts/x", token, &Value::Null).await.0,
            401,
            "{token}"
        );
    }
    let (status, made) = server.ask("POST", "bursts", "burst", &burst("db-1")).await;
    assert_eq!(status, 201, "{made}");
    let id = made["bursts"][0]["id"].as_str().unwrap();
    assert_eq!(
        server
            .ask("DELETE", &format!("bursts/{id}"), "burst", &Value::Null)
            .await
            .0,
        200
    );
    server.store.close().await;

    // Beyond loopback without tokens for it there are none, whoever asks; and no agent is kept waiting.
    let dir = tempfile::tempdir().unwrap();
    let off = |state| AppState {
        ingest_tokens: Tokens::from_lines("ship"),
        senders_may_burst: false,
        ..state
    };
    let server = Server::open(dir.path(), off).await;
    for token in ["", "ship"] {
        let (status, answer) = server.ask("POST", "bursts", token, &burst("db-1")).await;
        assert_eq!(status, 403);
        assert!(message(&answer).contains("--burst-token-file"), "{answer}");
    }
    let (status, answer) = server
        .ask(
            "POST",
            "agent/bursts",
            "ship",
            &agent("db-1", "i").question(20_000, &[]),
        )
        .await;
    assert_eq!((status, &answer["again_ms"]), (200, &json!(60_000)));
    server.store.close().await;

    // On loopback who may send may.
    let dir = tempfile::tempdir().unwrap();
    let loopback = |state| AppState {
        ingest_tokens: Tokens::from_lines("ship"),
        ..state
    };
    let server = Server::open(dir.path(), loopback).await;
    server.ask("POST", "agent/bursts", "ship", &question).await;
    assert_eq!(server.ask("POST", "bursts", "", &burst("db-1")).await.0, 401);
    assert_eq!(server.ask("POST", "bursts", "ship", &burst("db-1")).await.0, 201);
}
