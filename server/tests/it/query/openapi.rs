//! The OpenAPI document against the real application: methods, parameters with their ranges and usual values, answers.

use super::foreign::profile;
use super::*;
use crate::wire::{Plain, plain};
use document::{Document, Judge};
use stakeout_server::api::Tokens;
use std::collections::BTreeSet;

mod document;

#[tokio::test]
async fn every_documented_path_takes_the_documented_methods_and_no_others() {
    let server = Server::start().await;
    let document = Document::of(&server).await;
    let mut by_path: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, method, _) in document.operations() {
        let methods = by_path.entry(path).or_default();
        methods.insert(method.to_uppercase());
        if method == "get" {
            methods.insert("HEAD".to_owned());
        }
    }
    for (path, methods) in by_path {
        let path = path.replace("{name}", "node").replace("{id}", "x");
        let request = Request::builder()
            .method("TRACE")
            .uri(&*path)
            .body(Body::empty())
            .unwrap();
        let (status, headers, _) = server.send(request).await;
        // gRPC answers in its own way whatever the method is.
        if path.ends_with("/Export") {
            continue;
        }
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        let allowed: BTreeSet<String> = headers["allow"].split(',').map(|one| one.trim().to_owned()).collect();
        assert_eq!(allowed, methods, "{path}");
    }
}

/// What a parameter needs beside itself, by its name and the endpoint's.
fn beside(path: &str, name: &str) -> Vec<(&'static str, &'static str)> {
    let mut more = Vec::new();
    if path == "timeline" {
        match name {
            "min_share" | "root" | "transform" | "before" => more.push(("match", "work")),
            _ => {}
        }
        if name.starts_with("match") || more.len() == 1 && name != "before" {
            more.push(("before", "1s"));
        }
    }
    // Waits alone are ended by somebody.
    if name == "stacks" {
        more.push(("type", "off_cpu"));
    }
    // A million cells at the most.
    if (path, name) == ("heatmap", "rows") {
        more.push(("step", "60s"));
    }
    more
}

/// What is taken, and what is refused, of a parameter of this schema.
fn examples(document: &Document, parameter: &Value, times: &BTreeMap<String, String>) -> (Vec<String>, Vec<String>) {
    let (kind, schema) = document.schema(parameter);
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    let words = |schema: &Value| -> Vec<String> {
        let words = schema["enum"].as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let name = parameter["name"].as_str().unwrap();
    match (kind, schema["type"].as_str()) {
        ("Selector", _) => (
            owned(&["{}", "{service=\"nginx\",node=~\"a|b\"}"]),
            owned(&["{service}"]),
        ),
        ("Time", _) => (vec![times[name].clone()], owned(&["yesterday", "now-1y"])),
        ("Duration", _) => (owned(&["10s", "1m", "400d"]), owned(&["10", "0s", "401d", "1y"])),
        ("Pattern", _) => (owned(&["^work$"]), owned(&["("])),
        ("Frame", _) => (
            owned(&["native,/usr/bin/app,main", "v8js,app.js,main"]),
            owned(&["main"]),
        ),
        ("FramePath", _) => (
            owned(&["native,/usr/bin/app,main;native,/usr/bin/app,hot"]),
            owned(&["main;hot"]),
        ),
        ("Label", _) => {
            let mut labels = words(&schema["anyOf"][0]);
            labels.extend(owned(&["service.version", "attribute.team"]));
            (labels, owned(&["colour"]))
        }
        (_, Some("integer")) => {
            let (least, most) = (schema["minimum"].as_u64().unwrap(), schema["maximum"].as_u64().unwrap());
            let good = [least, schema["default"].as_u64().unwrap(), most];
            let bad = [least - 1, most + 1];
            let texts = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
            (texts(&good), [texts(&bad), owned(&["-1", "1.5", "many"])].concat())
        }
        (_, Some("number")) => {
            let least = schema["minimum"].as_f64().unwrap();
            let (good, bad) = match schema["exclusiveMaximum"].as_f64() {
                Some(end) => (end - 1e-9, end),
                None => (
                    schema["maximum"].as_f64().unwrap(),
                    schema["maximum"].as_f64().unwrap() + 1e-9,
                ),
            };
            let good = [least.to_string(), good.to_string()];
            (
                good.into(),
                vec![(least - 1e-9).to_string(), bad.to_string(), "NaN".to_owned()],
            )
        }
        (_, Some("string")) if schema.get("enum").is_some() => (words(schema), owned(&["nonsense"])),
        (_, Some("string")) => {
            let good = match name {
                "unit" => &["nanoseconds"][..],
                "group" | "by" => &["service", "node,thread", "service.version"],
                _ => &["cpu"],
            };
            // Any text can be looked for.
            let bad: &[&str] = if name == "search" { &[] } else { &["a\nb"] };
            (owned(good), owned(bad))
        }
        // A label, or a word of the endpoint's own.
        _ => (words(&schema["anyOf"][0]), owned(&["colour"])),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_parameters_are_taken_within_their_ranges_and_no_others() {
    let from = recent();
    let (server, _) = filled(from).await;
    let document = Document::of(&server).await;
    let mut judge = Judge::of(&document);
    let time = |seconds: i64| ms(from + seconds * S);
    let times: BTreeMap<String, String> = [
        ("from", 0),
        ("until", 120),
        ("except_from", 20),
        ("except_until", 30),
        ("base_from", 0),
        ("base_until", 60),
        ("base_except_from", 10),
        ("base_except_until", 15),
    ]
    .map(|(name, seconds)| (name.to_owned(), time(seconds)))
    .into();
    let mut tried = 0;
    for (path, parameters) in document.questions() {
        let asked = path.replace("{name}", "service");
        let names: Vec<&str> = parameters.iter().map(|one| one["name"].as_str().unwrap()).collect();
        let usual = |name: &str| -> Vec<(String, String)> {
            let mut given = vec![];
            let is_of_base = name.starts_with("base") || ["normalize", "measure", "confidence"].contains(&name);
            let mut add = |name: &str, value: &str| given.push((name.to_owned(), value.to_owned()));
            for (time, value) in &times {
                let is_pair = |part: &str| time.starts_with(part) && name.starts_with(part);
                let is_needed = match &**time {
                    "from" | "until" => true,
                    "base_from" | "base_until" => path == "diff" || path == "top" && is_of_base,
                    other if other.starts_with("base_except") => is_pair("base_except"),
                    _ => is_pair("except"),
                };
                if is_needed && time != name {
                    add(time, value);
                }
            }
            beside(path, name)
                .into_iter()
                .for_each(|(name, value)| add(name, value));
            given
        };
        for parameter in &parameters {
            let name = parameter["name"].as_str().unwrap();
            let given = usual(name);
            let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (&**name, &**value)).collect();
            let (good, bad) = examples(&document, parameter, &times);
            for value in &good {
                let with = [&given[..], &[(name, value)]].concat();
                let (status, headers, body) = server.get(&asked, &with).await;
                let text = String::from_utf8_lossy(&body);
                assert_eq!(status, StatusCode::OK, "{path} {with:?}: {text:.400}");
                // Every form of an answer is documented.
                let kind = &headers["content-type"];
                let pointer = format!(
                    "/paths/~1api~1v1~1{}/get/responses/200/content",
                    path.replace('/', "~1")
                );
                let kinds = document.0.pointer(&pointer).unwrap();
                assert!(kinds.get(kind).is_some(), "{path} {with:?}: {kind}, and {kinds}");
                tried += 1;
            }
            for value in &bad {
                let with = [&given[..], &[(name, value)]].concat();
                let (status, answer) = judge.ask(&server, path, &asked, &with).await;
                assert_eq!(status, 400, "{path} {with:?}: {answer}");
                if let Some(words) = document.schema(parameter).1["enum"].as_array() {
                    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                    let hint = answer["error"]["hint"].as_str().unwrap();
                    assert_eq!(hint, format!("`{name}` is one of {}", words.join(", ")), "{path}");
                }
                tried += 1;
            }
            // What it usually is says what is answered without it.
            let usual = &parameter["schema"]["default"];
            let usual = usual.as_str().map_or_else(|| usual.to_string(), str::to_owned);
            if usual != "null" && !["from", "until"].contains(&name) {
                let with = [&given[..], &[(name, &usual)]].concat();
                assert_eq!(
                    server.bytes(&asked, &given).await,
                    server.bytes(&asked, &with).await,
                    "{path} {name}={usual}"
                );
            }
        }
        let (status, answer) = judge.ask(&server, path, &asked, &[("colour", "red")]).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (400, &json!("bad_parameter")),
            "{path}"
        );
        let hint = format!("this endpoint takes {}", names.join(", "));
        assert_eq!(answer["error"]["hint"], hint, "{path}");
    }
    assert!(tried > 250, "{tried}");
    // The usual window is an hour that ends now.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let graph = server.json("flamegraph", &[]).await;
    let [from, until] = ["from", "until"].map(|name| graph[name].as_i64().unwrap());
    assert_eq!(until - from, 3_600_000);
    assert!((until - now).abs() < 60_000, "{until} {now}");
    // What tells of the server looks at no parameter.
    for (path, _, operation) in document.operations() {
        if operation["tags"] == json!(["server"]) {
            let request = Request::get(format!("{path}?colour=red")).body(Body::empty()).unwrap();
            assert_eq!(server.send(request).await.0, StatusCode::OK, "{path}");
        }
    }
}

#[tokio::test]
async fn patterns_of_times_and_durations_take_what_the_server_takes() {
    let server = Server::start().await;
    let document = Document::of(&server).await;
    let mut judge = Judge::of(&document);
    for (schema, name, good, bad) in [
        (
            "Time",
            "until",
            &[
                "now",
                "now-90s",
                "now+1h",
                "4102444800000",
                "2100-01-01T00:00:00Z",
                "2100-01-01T00:00:00+02:00",
            ][..],
            &["yesterday", "now-", "now-5", "2100-01-01", "-5", "now-1y"][..],
        ),
        (
            "Duration",
            "step",
            &["1000ms", "10s", "5m", "1h", "7d", "1w"],
            &["", "10", "s", "1.5s", "-1s", "1y", "1 hour"],
        ),
    ] {
        for (values, is_good) in [(good, true), (bad, false)] {
            for value in values {
                let fault = judge.fault(&format!("/components/schemas/{schema}"), &json!(value));
                assert_eq!(fault.is_none(), is_good, "{schema} {value:?}: {fault:?}");
                let from = match (name, value.get(..1)) {
                    ("until", Some("2" | "4")) => "2099-12-25T00:00:00Z",
                    ("until", _) => "now-350d",
                    _ => "now-1h",
                };
                let with = [("from", from), (name, value)];
                // What is empty is the same as nothing.
                if !value.is_empty() {
                    let (status, _, body) = server.get("series", &with).await;
                    let text = String::from_utf8_lossy(&body);
                    assert_eq!(status == StatusCode::OK, is_good, "{with:?}: {text}");
                }
            }
        }
    }
    for parameter in document.questions().flat_map(|(_, parameters)| parameters) {
        let (_, schema) = document.schema(parameter);
        let usual = &parameter["schema"]["default"];
        if !usual.is_null() && schema.get("anyOf").is_none() {
            let pattern = schema["pattern"]
                .as_str()
                .map(|pattern| regex::Regex::new(pattern).unwrap());
            let is_taken = pattern.is_none_or(|pattern| pattern.is_match(usual.as_str().unwrap()));
            assert!(is_taken, "{parameter}");
        }
    }
}

fn held(node: &'static str, from: i64, unit: &'static str) -> Plain {
    Plain {
        sample_type: ("held", unit),
        period_type: ("", ""),
        period: 0,
        ..profile(node, from, vec![("s", node, "main;leaf", vec![5_000], Vec::new())])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_as_their_schemas_say_with_no_field_more() {
    let from = recent();
    let (server, _) = filled(from).await;
    // A sender without an account, and a type of two units.
    for unit in ["bytes", "widgets"] {
        server.ingest_bytes(plain(&[held("c", from, unit)]), 1).await;
    }
    // A body that nobody can read has a row of its own.
    let broken = Request::post("/v1development/profiles")
        .header("content-type", "application/x-protobuf")
        .body(Body::from(vec![7_u8; 9]));
    assert_eq!(server.send(broken.unwrap()).await.0, StatusCode::BAD_REQUEST);
    let document = Document::of(&server).await;
    let mut judge = Judge::of(&document);
    let times = [ms(from), ms(from + 60 * S), ms(from + 120 * S)];
    let window = [("from", &*times[0]), ("until", &*times[2])];
    let sides = [("base_from", &*times[0]), ("base_until", &*times[1])];
    let except = [("except_from", &*times[0]), ("except_until", &*times[1])];
    let base: &[(&str, &str)] = &sides;
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("labels", &[]),
        ("labels/{name}/values", &[]),
        ("labels/{name}/values", &[("search", "a"), ("limit", "1")]),
        ("search", &[("search", "a"), ("limit", "3")]),
        ("search", &[]),
        ("markers", &[]),
        ("series", &[]),
        ("series", &[("by", "tid"), ("limit", "2"), ("match", "walk")]),
        ("series", &[("type", "held"), ("unit", "widgets")]),
        ("series", &[("type", "nothing")]),
        ("run_queue", &[]),
        ("run_queue", &[("by", "cpu"), ("limit", "1")]),
        ("run_queue", &[("by", "version"), ("query", "{cpu=\"0\",cluster=\"\"}")]),
        ("facets", &[("by", "service,thread"), ("limit", "2"), ("match", "walk")]),
        ("facets", &[("type", "held"), ("parts", "top")]),
        ("thread_time", &[]),
        (
            "thread_time",
            &[("by", "thread"), ("limit", "1"), ("query", "{node=\"a\"}")],
        ),
        ("flamegraph", &[]),
        ("flamegraph", &[("group", "service,pod")]),
        ("flamegraph", &[("match", "walk"), ("min_share", "0.2")]),
        ("flamegraph", &except),
        ("flamegraph", &[("type", "off_cpu"), ("stacks", "wakers")]),
        ("flamegraph", &[("format", "speedscope")]),
        ("flamegraph", &[("type", "held"), ("format", "speedscope")]),
        ("flamegraph", &[("type", "held")]),
        ("flamegraph", &[("type", "nothing")]),
        ("heatmap", &[]),
        ("heatmap", &[("type", "held")]),
        ("timeline", &[("limit", "7")]),
        ("timeline", &[("waits", "true"), ("limit", "7")]),
        ("timeline", &[("type", "held")]),
        ("timeline", &[("before", "1s"), ("match", "walk")]),
        ("diff", base),
        ("diff", &[sides[0], sides[1], ("match", "walk"), ("measure", "self")]),
        (
            "diff",
            &[sides[0], sides[1], ("type", "held"), ("normalize", "absolute")],
        ),
        ("top", &[]),
        ("top", &[("by", "service"), ("limit", "1")]),
        ("top", &[("match", "walk"), ("type", "held")]),
        ("top", &[sides[0], sides[1], ("by", "node")]),
        (
            "top",
            &[sides[0], sides[1], ("normalize", "share"), ("measure", "self")],
        ),
    ];
    for (path, given) in cases {
        let asked = path.replace("{name}", "thread");
        let (status, answer) = judge.ask(&server, path, &asked, &[&window, *given].concat()).await;
        assert_eq!(status, 200, "{path} {given:?}: {answer}");
        // A field that is gone, and one that is not named, are found.
        let mut names = answer.as_object().unwrap().keys();
        let lacking = names
            .find(|name| !name.starts_with("base_") && *name != "unit_choice")
            .unwrap();
        let (mut less, mut more) = (answer.clone(), answer.clone());
        less.as_object_mut().unwrap().remove(lacking);
        more["colour"] = json!("red");
        let pointer = format!(
            "/paths/~1api~1v1~1{}/get/responses/200/content/application~1json/schema",
            path.replace('/', "~1")
        );
        for (other, what) in [(less, lacking.as_str()), (more, "no colour")] {
            assert!(judge.fault(&pointer, &other).is_some(), "{path} without {what}");
        }
    }
    // What is kept beside samples.
    let note =
        json!({"id": "a", "title": "x", "time": "2026-11-21T08:00:00Z", "text": "y", "labels": {"service": "a"}});
    let view = json!({"address": "/explore"});
    for (method, path, shown, body, status) in [
        ("post", "markers", "/api/v1/markers", &note, 200),
        ("put", "views/a", "/api/v1/views/{name}", &view, 201),
        ("put", "views/a", "/api/v1/views/{name}", &view, 412),
        ("get", "views/a", "/api/v1/views/{name}", &Value::Null, 200),
        ("get", "views", "/api/v1/views", &Value::Null, 200),
    ] {
        let request = Request::builder()
            .method(&*method.to_uppercase())
            .uri(format!("/api/v1/{path}"))
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()));
        let (found, headers, body) = server.send(request.unwrap()).await;
        assert_eq!(
            found.as_u16(),
            status,
            "{method} {path}: {}",
            String::from_utf8_lossy(&body)
        );
        // One that is made is as one that is changed.
        let documented = if status == 201 { 200 } else { status };
        judge.holds((method, shown), documented, &body);
        assert_eq!(headers["content-type"], "application/json");
    }
    for (schema, body) in [("SentMarker", &note), ("SentView", &view)] {
        assert_eq!(judge.fault(&format!("/components/schemas/{schema}"), body), None);
    }
    let question = json!({"node": "looked-at", "instance": "i", "burst_limit_hz": 999, "cpus": "0", "bursts": []});
    let asked = json!({"node": "looked-at", "frequency_hz": 999, "seconds": 1});
    for (method, shown, body, status) in [
        ("post", "/api/v1/agent/bursts", &question, 200),
        ("post", "/api/v1/bursts", &asked, 201),
        ("post", "/api/v1/bursts", &asked, 429),
        ("post", "/api/v1/agent/bursts", &question, 200),
        ("get", "/api/v1/bursts", &Value::Null, 200),
    ] {
        let request = Request::builder()
            .method(&*method.to_uppercase())
            .uri(shown)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()));
        let (found, _, body) = server.send(request.unwrap()).await;
        let text = String::from_utf8_lossy(&body);
        assert_eq!(found.as_u16(), status, "{method} {shown}: {text}");
        judge.holds((method, shown), status, &body);
    }
    let list = server.json("bursts", &[]).await;
    let id = list["bursts"][0]["id"].as_str().unwrap();
    let ended = Request::delete(format!("/api/v1/bursts/{id}")).body(Body::empty());
    let (found, _, body) = server.send(ended.unwrap()).await;
    judge.holds(("delete", "/api/v1/bursts/{id}"), found.as_u16(), &body);
    for (schema, body) in [("BurstQuestion", &question), ("AskedBurst", &asked)] {
        assert_eq!(judge.fault(&format!("/components/schemas/{schema}"), body), None);
    }
    for path in ["nodes", "info", "servers"] {
        let (_, answer) = judge.ask(&server, path, path, &[]).await;
        if path == "nodes" {
            let accounts: Vec<bool> = answer["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|node| node["has_account"].as_bool().unwrap())
                .collect();
            assert_eq!(accounts, [true, true, false, false], "{answer}");
            let refused = answer["nodes"].to_string();
            assert!(refused.contains("\"refusals\":[{"), "{answer}");
        }
    }
    for (statement, status) in [
        (
            "SELECT s.service, s.value, frames, 1.5, true, NULL FROM samples s JOIN stacks ON s.stack_id = stacks.stack_id",
            200,
        ),
        ("EXPLAIN SELECT * FROM samples", 200),
        ("SELECT nothing FROM samples", 400),
    ] {
        let (found, body) = server.sql(statement).await;
        assert_eq!(found.as_u16(), status, "{statement}");
        judge.holds(("post", "/api/v1/sql"), status, &body);
    }
    let statement = json!({"query": "SELECT 1"});
    assert_eq!(judge.fault("/components/schemas/Statement", &statement), None);
    assert!(
        judge
            .fault("/components/schemas/Statement", &json!({"sql": "SELECT 1"}))
            .is_some()
    );
    let bare = Request::post("/api/v1/sql").body(Body::from("{}")).unwrap();
    let (status, _, body) = server.send(bare).await;
    judge.holds(("post", "/api/v1/sql"), status.as_u16(), &body);
    let (status, _) = judge
        .ask(&server, "labels/{name}/values", "labels/colour/values", &[])
        .await;
    assert_eq!(status, 404);
    let (status, _) = judge.ask(&server, "series", "series", &[("step", "1ms")]).await;
    assert_eq!(status, 400);
    let (found, body) = server.sql(&"x".repeat(600_000)).await;
    assert_eq!(found, StatusCode::PAYLOAD_TOO_LARGE);
    judge.holds(("post", "/api/v1/sql"), 413, &body);
    let refused = Request::post("/v1development/profiles")
        .header("content-type", "application/json")
        .body(Body::from("{"));
    let (status, _, body) = server.send(refused.unwrap()).await;
    judge.holds(("post", "/v1development/profiles"), status.as_u16(), &body);
    // Whatever says JSON in a success was looked at.
    let seen: BTreeSet<&str> = judge.seen.iter().filter_map(|one| one.strip_suffix(" 200")).collect();
    for (path, method, operation) in document.operations() {
        let has_schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            .as_object()
            .is_some_and(|schema| schema.contains_key("$ref") || schema.contains_key("anyOf"));
        assert_eq!(
            has_schema,
            seen.contains(&*format!("{method} {path}")),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn the_document_says_where_a_token_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let token = "a-token-of-thirty-two-characters";
    let store = Store::open(StoreConfig::new(dir.path())).await.unwrap();
    let state = AppState {
        view_tokens: Tokens::from_lines(token),
        ingest_tokens: Tokens::from_lines(token),
        ..AppState::new(store.clone())
    };
    let server = Server {
        app: app(state),
        store,
        _dir: dir,
    };
    let asked = Request::get("/api/v1/openapi.json").header("authorization", format!("Bearer {token}"));
    let (status, _, body) = server.send(asked.body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    let document = Document(serde_json::from_slice(&body).unwrap());
    let mut judge = Judge::of(&document);
    for (path, method, operation) in document.operations() {
        // A form without a token is refused, and is how one is shown.
        if path == "/login" && method == "post" {
            continue;
        }
        let uri = path.replace("{name}", "node");
        let request = Request::builder().method(&*method.to_uppercase()).uri(uri);
        let (status, headers, body) = server.send(request.body(Body::empty()).unwrap()).await;
        let is_open = operation["security"] == json!([]);
        // Senders of OTLP are told errors in their own way.
        let is_otlp = path.contains("v1development");
        assert_eq!(status != StatusCode::UNAUTHORIZED, is_open, "{method} {path}: {status}");
        if !is_open && headers["content-type"] == "application/json" && !is_otlp {
            judge.holds((method, path), 401, &body);
        }
    }
    assert!(judge.seen.len() > 10, "{:?}", judge.seen);
}
