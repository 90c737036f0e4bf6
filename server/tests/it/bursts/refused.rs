//! What no burst is begun for, and who may not begin one.

use super::*;

/// Something that is asked, and how it is answered.
struct Case {
    method: &'static str,
    path: &'static str,
    token: &'static str,
    body: Value,
    status: u16,
    /// They stand in the message or the hint.
    words: &'static str,
}

fn case(
    (method, path): (&'static str, &'static str),
    token: &'static str,
    body: &Value,
    status: u16,
    words: &'static str,
) -> Case {
    Case {
        method,
        path,
        token,
        body: body.clone(),
        status,
        words,
    }
}

/// A burst is to begin where nobody needs a token.
fn begun(body: Value, status: u16, words: &'static str) -> Case {
    case(("POST", "bursts"), "", &body, status, words)
}

/// A burst of a selector is to begin.
fn begun_of(query: &str, status: u16, words: &'static str) -> Case {
    let body = json!({"query": query, "frequency_hz": 999, "seconds": 1});
    begun(body, status, words)
}

/// Asks all of them, in their order, and says which is answered in another way.
async fn are_answered_so(server: &Server, cases: Vec<Case>) {
    for (number, case) in cases.iter().enumerate() {
        let (status, answer) = server.ask(case.method, case.path, case.token, &case.body).await;
        let which = format!(
            "case {number}: {} {} by {:?} of {}",
            case.method, case.path, case.token, case.body
        );
        assert_eq!(status, case.status, "{which}: {answer}");
        let said = message(&answer);
        assert!(said.contains(case.words), "{which}: {said}, without {:?}", case.words);
    }
}

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
    let cases = vec![
        begun(
            with(json!({"node": "nowhere"})),
            404,
            "no agent of a node `nowhere` is known",
        ),
        begun(with(json!({"node": "old-1"})), 400, "`old-1` does not ask for bursts"),
        begun(with(json!({"node": "old-1"})), 400, "older than bursts"),
        begun(
            with(json!({"node": "db-2"})),
            400,
            "999 Hz is above the limit of db-2, 200 Hz (--burst-limit)",
        ),
        begun(
            with(json!({"frequency_hz": 4999})),
            400,
            "4999 Hz is above the limit of db-1, 999 Hz",
        ),
        begun(with(json!({"frequency_hz": 5000})), 400, "from 1 to 4999"),
        begun(with(json!({"frequency_hz": 0})), 400, "`frequency_hz` is 0"),
        begun(with(json!({"frequency_hz": "many"})), 400, "cannot be read"),
        begun(with(json!({"seconds": 61})), 400, "from 1 to 60"),
        begun(with(json!({"seconds": 0})), 400, "`seconds` is 0"),
        begun(with(json!({"cpus": "a"})), 400, "a list of CPUs such as 0,2-3"),
        begun(
            with(json!({"cpus": "2-5"})),
            400,
            "CPU 4 is not online at db-1: online are 0-3",
        ),
        begun(with(json!({"process": "a\nb"})), 400, "no control characters"),
        // Agents take no longer texts: they would hear of nothing any more.
        begun_of(&long("service"), 400, "`service` cannot be this text of 1025 bytes"),
        begun_of(&long("process"), 400, "`process` cannot be this text of 1025 bytes"),
        begun_of("{service=\"a\\nb\"}", 400, "no control characters"),
        begun(with(json!({"colour": "red"})), 400, "unknown field"),
        begun(
            with(json!({"query": "{}"})),
            400,
            "neither a `node` nor a `query`, or both",
        ),
        begun(json!({"frequency_hz": 999, "seconds": 1}), 400, "neither a `node`"),
        begun_of("{mode=\"user\"}", 400, "speaks of `mode`"),
        begun_of(
            "{acme.team=\"a\"}",
            400,
            "of CPUs by `cpu`, and of processes and threads by service, process, tgid",
        ),
        // An attribute is no label of processes, whatever its name is.
        begun_of("{attribute.thread=\"a\"}", 400, "`query` speaks of `attribute.thread`"),
        begun_of(
            "{attribute.version=\"a\"}",
            400,
            "`query` speaks of `attribute.version`",
        ),
        begun_of(
            "{node=\"db-1\",container=\"a\"}",
            400,
            "the agent of db-1 is older, and selects by one service",
        ),
        begun_of("{container=~\"a.*\"}", 400, "`container` in `query` is a pattern"),
        begun_of(
            "{node=\"db-1\",cpu=\"9\"}",
            400,
            "`query` selects no CPU of db-1: online are 0-3",
        ),
        begun(
            json!({"query": "{cpu=\"1\"}", "cpus": "1", "frequency_hz": 999, "seconds": 1}),
            400,
            "it has `cpus`, and `cpu` in its `query`",
        ),
        begun_of("{node=~\"x.*\"}", 404, "selects no node"),
        begun_of("{node", 400, ""),
    ];
    are_answered_so(&server, cases).await;
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
    let says = |name: &str, value: Value| {
        let mut wrong = agent("db-1", "i").question(0, &[]);
        wrong[name] = value;
        case(("POST", "agent/bursts"), "", &wrong, 400, "")
    };
    let cases = vec![
        says("node", json!("")),
        says("node", json!("x".repeat(2_000))),
        says("bursts", json!(vec![said(&json!("a"), "ended"); 65])),
        says("bursts", json!([said(&json!("a"), "exploded")])),
    ];
    are_answered_so(&server, cases).await;
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
    let (polls, lists) = (("POST", "agent/bursts"), ("GET", "bursts"));
    let (begins, ends) = (("POST", "bursts"), ("DELETE", "bursts/x"));
    let (wish, nothing) = (burst("db-1"), Value::Null);
    let wrong = "a token for bursts is not valid here / send it as";
    let cases = vec![
        case(polls, "", &question, 401, ""),
        case(polls, "view", &question, 401, ""),
        case(polls, "burst", &question, 401, ""),
        case(polls, "ship", &question, 200, ""),
        case(lists, "", &nothing, 401, ""),
        case(lists, "ship", &nothing, 401, ""),
        case(lists, "burst", &nothing, 401, ""),
        case(lists, "view", &nothing, 200, ""),
        case(begins, "", &wish, 401, "a token for bursts is needed / send it as"),
        case(begins, "ship", &wish, 401, wrong),
        case(begins, "view", &wish, 401, wrong),
        case(begins, "wrong", &wish, 401, wrong),
        case(ends, "", &nothing, 401, ""),
        case(ends, "ship", &nothing, 401, ""),
        case(ends, "view", &nothing, 401, ""),
        case(ends, "wrong", &nothing, 401, ""),
    ];
    are_answered_so(&server, cases).await;
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
    let cases = vec![
        case(begins, "", &wish, 403, "--burst-token-file"),
        case(begins, "ship", &wish, 403, "--burst-token-file"),
    ];
    are_answered_so(&server, cases).await;
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
    let cases = vec![
        case(polls, "ship", &question, 200, ""),
        case(begins, "", &wish, 401, ""),
        case(begins, "ship", &wish, 201, ""),
    ];
    are_answered_so(&server, cases).await;
}
