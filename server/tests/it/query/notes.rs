//! Markers and views: what people keep beside samples, over HTTP.

use super::*;
use stakeout_server::api::Tokens;
use std::time::Instant;

async fn sent(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> (u16, BTreeMap<String, String>, Value) {
    let mut request = Request::builder().method(method).uri(format!("/api/v1/{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = request
        .header("content-type", "application/json")
        .body(Body::from(text));
    let (status, headers, body) = server.send(request.unwrap()).await;
    let answer = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap()
    };
    (status.as_u16(), headers, answer)
}

async fn titles(server: &Server, asked: &[(&str, &str)]) -> Vec<String> {
    let answer = server.json("markers", asked).await;
    assert_eq!(answer["complete"], true, "{answer}");
    let markers = answer["markers"].as_array().unwrap().iter();
    markers
        .map(|marker| marker["title"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn markers_are_kept_once_and_selected_by_their_labels() {
    let server = Server::start().await;
    let from = recent();
    let marker = |id: &str, seconds: i64, title: &str, labels: Value| json!({"id": id, "time": (from + seconds * S) / 1_000_000, "title": title, "labels": labels});
    let put = async |marker: &Value| sent(&server, "POST", "markers", &[], marker).await;
    let deploy = marker("deploy-1", 10, "shop 15", json!({"service": "shop", "version": "15"}));
    let (status, _, answer) = put(&deploy).await;
    assert_eq!(
        (status, answer),
        (200, json!({"id": "deploy-1", "state": "stored", "removed": 0}))
    );
    assert_eq!(put(&deploy).await.2["state"], "known");
    put(&marker("note", 20, "cable pulled", json!({"node": "a"}))).await;
    put(&marker("deploy-1", 12, "shop 15 again", json!({"service": "shop"}))).await;
    let unnamed = json!({"title": "x", "time": "2026-11-21T08:00:00+02:00"});
    let ids = [put(&unnamed).await.2, put(&unnamed).await.2];
    assert_eq!((&ids[0]["id"], &ids[1]["state"]), (&ids[1]["id"], &json!("known")));
    let (begin, end) = (ms(from), ms(from + 60 * S));
    let window = [("from", &*begin), ("until", &*end)];
    let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();
    assert_eq!(titles(&server, &window).await, ["shop 15 again", "cable pulled"]);
    // What a marker does not say, no selector is asked of.
    let of = |query| with(&[("query", query), ("kinds", "note")]);
    assert_eq!(
        titles(&server, &of("{service=\"shop\",node=\"b\"}")).await,
        ["shop 15 again"]
    );
    assert_eq!(titles(&server, &of("{service=\"db\"}")).await, ["cable pulled"]);
    assert_eq!(
        titles(&server, &of("{\"host.name\"=\"a\",service=\"db\"}")).await,
        ["cable pulled"]
    );
    assert_eq!(titles(&server, &with(&[("kinds", "agent")])).await, [""; 0]);
    // An answer that changes without the tables has no tag.
    let (_, headers, _) = server.get("markers", &window).await;
    assert!(!headers.contains_key("etag"));
    for (wrong, said) in [
        (json!({"title": ""}), "`title` is empty"),
        (json!({"title": "x".repeat(201)}), "at most 200 bytes"),
        (json!({"title": "a\nb"}), "no control characters"),
        (json!({"title": "x", "text": "x".repeat(4_097)}), "at most 4096 bytes"),
        (json!({"title": "x", "time": "yesterday"}), "`time` is none"),
        (json!({"title": "x", "time": 32_503_680_000_000_i64}), "`time` is none"),
        (json!({"title": "x", "labels": {"colour": "red"}}), "no label"),
        (json!({"title": "x", "colour": "red"}), "unknown field"),
        (json!({"text": "x"}), "missing field `title`"),
    ] {
        let (status, _, answer) = put(&wrong).await;
        assert_eq!(status, 400, "{wrong}");
        let text = answer["error"].to_string();
        assert!(text.contains(said), "{text}");
    }
    let plain = Request::post("/api/v1/markers")
        .body(Body::from("{\"title\":\"x\"}"))
        .unwrap();
    assert_eq!(server.send(plain).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_tell_of_moments_and_viewers_read_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let (viewer, sender) = ("a-viewing-token-of-32-characters", "a-sending-token-of-32-characters");
    let store = Store::open(StoreConfig::new(dir.path())).await.unwrap();
    let state = AppState {
        view_tokens: Tokens::from_lines(viewer),
        ingest_tokens: Tokens::from_lines(sender),
        ..AppState::new(store.clone())
    };
    let server = Server {
        app: app(state),
        store,
        _dir: dir,
    };
    let marker = json!({"title": "x"});
    let view = json!({"address": "/explore"});
    for (token, marks, reads, keeps) in [(viewer, 401, 200, 201), (sender, 200, 401, 401)] {
        let token = format!("Bearer {token}");
        let authorized = [("authorization", &*token)];
        let status =
            async |method: &str, path: &str, body: &Value| sent(&server, method, path, &authorized, body).await.0;
        assert_eq!(status("POST", "markers", &marker).await, marks);
        assert_eq!(status("GET", "markers", &Value::Null).await, reads);
        assert_eq!(status("PUT", "views/v", &view).await, keeps);
        assert_eq!(status("GET", "views", &Value::Null).await, reads);
    }
    // A page of another site keeps nothing with a viewer's cookie.
    let token = format!("Bearer {viewer}");
    let foreign = [("authorization", &*token), ("origin", "https://example.com")];
    assert_eq!(sent(&server, "PUT", "views/w", &foreign, &view).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_that_come_and_agents_that_begin_are_told() {
    let server = Server::start().await;
    let from = recent();
    // Of each service's program a build id; the first instance goes on, and another one begins.
    let of_version = |number: i64, start: i64, build_id: &str| {
        let taken = accounting::minute(start, &[("web", "main;hot", 60), ("db", "main", 60)]);
        crate::wire::request_of_builds(&accounting::batch(number, from, PERIOD_NS, taken), &[("web", build_id)])
    };
    for (number, build_id) in [
        (1, "aaaaaaaaaaaaaaaa"),
        (2, "bbbbbbbbbbbbbbbb"),
        (3, "bbbbbbbbbbbbbbbb"),
    ] {
        let start = from + (number - 1) * 60 * S;
        server.ingest_bytes(of_version(number, start, build_id), 120).await;
    }
    server.store.flush().await.unwrap();
    let (begin, end) = (ms(from), ms(from + 180 * S));
    let window = [("from", &*begin), ("until", &*end)];
    let answer = server.json("markers", &window).await;
    let shown: Vec<(&str, &str, i64)> = answer["markers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|marker| {
            let text = |name: &str| marker[name].as_str().unwrap();
            (
                text("kind"),
                text("title"),
                marker["time"].as_i64().unwrap() - from / 1_000_000,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("agent", "a: agent 0.1.0-test started", 0),
            ("version", "web: version bbbbbbbbbbbb", 60_000)
        ],
        "{answer}"
    );
    assert_eq!(
        answer["markers"][1]["labels"],
        json!({"service": "web", "process": "app", "version": "bbbbbbbbbbbb"})
    );
    // The label can be asked for, selected by and compared by.
    let by_version = server
        .json(
            "top",
            &[&window[..], &[("by", "version"), ("query", "{service=\"web\"}")]].concat(),
        )
        .await;
    let rows: BTreeMap<&str, u64> = by_version["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["total"].as_u64().unwrap()))
        .collect();
    assert_eq!(rows, [("aaaaaaaaaaaa", 60), ("bbbbbbbbbbbb", 120)].into());
    let only = [&window[..], &[("kinds", "version"), ("query", "{service=\"db\"}")]].concat();
    assert_eq!(titles(&server, &only).await, [""; 0]);
}

/// Start, end and notes of each step whose markers are counted only.
fn counted(answer: &Value) -> Vec<(i64, i64, u64)> {
    let steps = answer["older"].as_array().unwrap().iter();
    steps
        .map(|step| {
            let number = |name: &str| step[name].as_i64().unwrap();
            (
                number("from"),
                number("until"),
                step["counts"]["note"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn markers_that_are_not_told_are_counted_in_the_steps_of_the_chart() {
    let server = Server::start().await;
    let from = recent();
    let from_ms = from / 1_000_000;
    // One each 720 ms: 5,000 in an hour, of which the last 2,000 are told.
    let at = |number: i64| from_ms + number * 720;
    let of = |number: i64| json!({"time_ms": at(number), "title": format!("note {number}")});
    let all: BTreeMap<String, Value> = (0..5_000).map(|number| (format!("n{number}"), of(number))).collect();
    let server = server
        .reopened(|dir: &Path| {
            std::fs::write(dir.join("notes/markers.json"), serde_json::to_vec(&all).unwrap()).unwrap();
            StoreConfig::new(dir)
        })
        .await;
    let (begin, end) = (ms(from), ms(from + 3_600 * S));
    let answer = server
        .json("markers", &[("from", &*begin), ("until", &*end), ("kinds", "note")])
        .await;
    assert_eq!(answer["complete"], false);
    assert_eq!(answer["uncounted"], json!([]));
    let told = answer["markers"].as_array().unwrap();
    assert_eq!((told.len(), &told[0]["title"]), (2_000, &json!("note 3000")));
    let older = counted(&answer);
    assert_eq!(older.iter().map(|(_, _, notes)| notes).sum::<u64>(), 3_000);
    // Each step has those of its time, and what follows the last one is told.
    for (from, until, notes) in &older {
        let here = (0..3_000).filter(|number| (*from..*until).contains(&at(*number)));
        assert_eq!(here.count() as u64, *notes, "{from} to {until}");
    }
    // The chart over the same window has these steps.
    let series = server.json("series", &[("from", &*begin), ("until", &*end)]).await;
    let times = series["times"].as_array().unwrap().iter();
    let times: Vec<i64> = times.map(|time| time.as_i64().unwrap()).collect();
    for (from, _, _) in &older {
        assert!(times.contains(from), "{from} is no step of {times:?}");
    }
    // Who asks for the time of some of them is told all that were counted there.
    let mut sum = 0_u64;
    let some: Vec<&(i64, i64, u64)> = older
        .iter()
        .take_while(|(_, _, notes)| {
            sum += *notes;
            sum <= 2_000
        })
        .collect();
    let until = some.last().unwrap().1.to_string();
    let zoomed = server
        .json("markers", &[("from", &*begin), ("until", &*until), ("kinds", "note")])
        .await;
    assert_eq!((&zoomed["complete"], &zoomed["older"]), (&json!(true), &json!([])));
    let expected: u64 = some.iter().map(|(_, _, notes)| notes).sum();
    assert_eq!(zoomed["markers"].as_array().unwrap().len() as u64, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_markers_are_read_and_added_fast() {
    let server = Server::start().await;
    let from = recent();
    // As they lie on the disk.
    let labels = json!({"service": "shop", "version": "15"});
    let of = |at: i64| json!({"time_ms": from / 1_000_000 + at, "title": format!("deploy {at}"), "labels": labels});
    let all: BTreeMap<String, Value> = (0..10_000).map(|at| (format!("deploy-{at}"), of(at))).collect();
    let with_markers = |dir: &Path| {
        std::fs::write(dir.join("notes/markers.json"), serde_json::to_vec(&all).unwrap()).unwrap();
        StoreConfig::new(dir)
    };
    let server = server.reopened(with_markers).await;
    let begun = Instant::now();
    let (begin, end) = (ms(from), ms(from + 3_600 * S));
    let asked = [
        ("from", &*begin),
        ("until", &*end),
        ("kinds", "note"),
        ("query", "{service=\"shop\"}"),
    ];
    let answer = server.json("markers", &asked).await;
    let list = answer["markers"].as_array().unwrap();
    assert_eq!((list.len(), &answer["complete"]), (2_000, &json!(false)));
    assert_eq!(list[1_999]["title"], "deploy 9999", "the newest are told");
    let older: u64 = counted(&answer).iter().map(|(_, _, notes)| notes).sum();
    assert_eq!(older, 8_000, "the others are counted");
    let more = json!({"id": "one-more", "title": "x", "time": from / 1_000_000 + 20_000});
    let (status, _, answer) = sent(&server, "POST", "markers", &[], &more).await;
    assert_eq!((status, &answer["removed"]), (200, &json!(1)));
    // A bound that holds on a busy machine without optimisation; it is tens of milliseconds.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_shared_and_nobody_overwrites_anothers() {
    let server = Server::start().await;
    let address = |address: &str| json!({ "address": address });
    let (status, headers, made) = sent(&server, "PUT", "views/walks%20of%20a", &[], &address("/explore?a=1")).await;
    assert_eq!(
        (status, &made["name"], &made["tag"]),
        (201, &json!("walks of a"), &json!(headers["etag"]))
    );
    let first = headers["etag"].clone();
    // Who does not know that it is there is told.
    let (status, _, answer) = sent(&server, "PUT", "views/walks%20of%20a", &[], &address("/explore?a=2")).await;
    assert_eq!((status, &answer["error"]["code"]), (412, &json!("changed")));
    let known = [("if-match", &*first)];
    let (status, headers, _) = sent(&server, "PUT", "views/walks%20of%20a", &known, &address("/explore?a=2")).await;
    assert_eq!(status, 200);
    assert_ne!(headers["etag"], first);
    // The other one of two has the old tag.
    assert_eq!(
        sent(&server, "PUT", "views/walks%20of%20a", &known, &address("/explore?a=3"))
            .await
            .0,
        412
    );
    assert_eq!(
        sent(&server, "DELETE", "views/walks%20of%20a", &known, &Value::Null)
            .await
            .0,
        412
    );
    let all = server.json("views", &[]).await;
    assert_eq!(all["views"].as_array().unwrap().len(), 1);
    assert_eq!(all["views"][0]["address"], "/explore?a=2");
    let (status, headers, one) = sent(&server, "GET", "views/walks%20of%20a", &[], &Value::Null).await;
    assert_eq!(
        (status, &one, &headers["etag"]),
        (200, &all["views"][0], &one["tag"].as_str().unwrap().to_owned())
    );
    for wrong in [
        "https://example.com/",
        "//example.com",
        "explore",
        "/x?token=secret",
        "/a b",
    ] {
        assert_eq!(
            sent(&server, "PUT", "views/x", &[], &address(wrong)).await.0,
            400,
            "{wrong}"
        );
    }
    assert_eq!(sent(&server, "PUT", "views/%20x", &[], &address("/")).await.0, 400);
    let long = format!("views/{}", "x".repeat(201));
    assert_eq!(sent(&server, "PUT", &long, &[], &address("/")).await.0, 400);
    assert_eq!(
        sent(&server, "PUT", "views/x", &[("if-match", "\"0\"")], &address("/"))
            .await
            .0,
        412
    );
    assert_eq!(sent(&server, "DELETE", "views/x", &[], &Value::Null).await.0, 404);
    // It is there again after a restart.
    let server = server.reopened(|dir| StoreConfig::new(dir)).await;
    assert_eq!(server.json("views", &[]).await, all);
    let known = [("if-match", one["tag"].as_str().unwrap())];
    assert_eq!(
        sent(&server, "DELETE", "views/walks%20of%20a", &known, &Value::Null)
            .await
            .0,
        204
    );
    assert_eq!(server.json("views", &[]).await["views"], json!([]));
}
