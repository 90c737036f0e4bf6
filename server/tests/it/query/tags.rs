//! Entity tags: an answer that still holds is not counted again, and one that doesn't has another tag.

use super::*;

/// Status, headers and body, for who has the answer of a tag already.
async fn asked(server: &Server, path: &str, more: &[(&str, &str)]) -> (u16, BTreeMap<String, String>, Vec<u8>) {
    let mut request = Request::get(format!("/api/v1/{path}"));
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    let (status, headers, body) = server.send(request.body(Body::empty()).unwrap()).await;
    (status.as_u16(), headers, body)
}

async fn tag_of(server: &Server, path: &str) -> String {
    let (status, headers, body) = asked(server, path, &[]).await;
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    assert_eq!(headers["cache-control"], "private, no-cache", "{path}");
    let tag = headers.get("etag").unwrap_or_else(|| panic!("{path} has no tag"));
    assert!(tag.starts_with('"') && tag.len() == 34, "{tag}");
    tag.clone()
}

fn batch(number: i64, from_ns: i64, service: &'static str) -> Batch<'static> {
    let mut taken = samples(&mut Random(number as u64), from_ns, 60, 60);
    for sample in &mut taken {
        (sample.service, sample.tgid, sample.tid) = (service, 7, 7);
        (sample.thread, sample.stack) = ("main", STACKS[0]);
    }
    Batch {
        node: "a",
        instance: "00000000-0000-4000-8000-00000000000a",
        number,
        from_ns,
        until_ns: from_ns + 60 * S,
        period_ns: PERIOD_NS,
        missed_ticks: 0,
        samples: taken,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_still_holds_is_not_counted_again() {
    let (server, from) = (Server::start().await, recent_of_one_day(1_320));
    server.ingest(&batch(1, from, "db")).await;
    server.store.flush().await.unwrap();
    let window = format!("from={}&until={}", ms(from), ms(from + 60 * S));
    let base = format!("base_from={}&base_until={}", ms(from), ms(from + 30 * S));
    let mut paths: Vec<String> = [
        "flamegraph",
        "top",
        "series",
        "heatmap",
        "timeline",
        "labels",
        "labels/service/values",
    ]
    .map(|path| format!("{path}?{window}"))
    .into();
    for (path, more) in [
        ("flamegraph", "format=svg"),
        ("flamegraph", "format=collapsed"),
        ("flamegraph", "format=pprof"),
        ("flamegraph", "format=speedscope"),
        ("flamegraph", "query={service=\"db\"}"),
        ("flamegraph", "query={service=\"web\"}"),
        ("top", "format=csv"),
        ("top", "by=thread"),
        ("series", "step=10s"),
        ("labels/service/values", "search=d"),
        ("search", "search=main"),
        ("facets", "by=service,thread"),
        ("flamegraph", "group=service"),
        ("timeline", "before=50ms&match=work"),
        ("diff", &*base),
        ("diff", &*format!("{base}&format=svg")),
        ("top", &*base),
    ] {
        let more = more.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
        paths.push(format!("{path}?{window}&{more}"));
    }
    let (mut tags, mut packed) = (BTreeMap::new(), 0);
    for path in &paths {
        let tag = tag_of(&server, path).await;
        assert_eq!(tag_of(&server, path).await, tag, "{path}");
        let (status, headers, body) = asked(&server, path, &[("if-none-match", &tag)]).await;
        assert_eq!((status, body.len(), &headers["etag"]), (304, 0, &tag), "{path}");
        assert_eq!(
            (&*headers["cache-control"], &*headers["vary"]),
            ("private, no-cache", "accept-encoding")
        );
        let known = format!("\"0\", W/{tag}");
        assert_eq!(
            asked(&server, path, &[("if-none-match", &known)]).await.0,
            304,
            "{path}"
        );
        assert_eq!(asked(&server, path, &[("if-none-match", "*")]).await.0, 200, "{path}");
        for (known, status) in [(&*tag, 304), ("\"0\"", 200)] {
            let request = Request::head(format!("/api/v1/{path}")).header("if-none-match", known);
            let (found, headers, body) = server.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(
                (found.as_u16(), body.len(), &headers["etag"]),
                (status, 0, &tag),
                "{path}"
            );
        }
        // Packed it is another one, and of use to nobody who does not take it so.
        let gzip = ("accept-encoding", "gzip");
        let (_, headers, _) = asked(&server, path, &[gzip]).await;
        if headers.contains_key("content-encoding") {
            packed += 1;
            let known = ("if-none-match", &*headers["etag"]);
            assert_eq!(known.1, format!("{}-gzip\"", tag.trim_end_matches('"')), "{path}");
            assert_eq!(asked(&server, path, &[gzip, known]).await.0, 304, "{path}");
            assert_eq!(asked(&server, path, &[known]).await.0, 200, "{path}");
        } else {
            assert_eq!(headers["etag"], tag, "{path}");
        }
        assert!(tags.insert(tag, path.clone()).is_none(), "{path} has another's tag");
    }
    assert!((3..paths.len()).contains(&packed), "{packed}");
    // The order of parameters, and empty ones, are of no account.
    let turned = format!("top?query=&until={}&from={}", ms(from + 60 * S), ms(from));
    assert_eq!(tags[&tag_of(&server, &turned).await], paths[1]);

    let unlike = async |what: &str, known: &BTreeMap<String, String>| {
        let mut now = BTreeMap::new();
        for (tag, path) in known {
            let (status, headers, _) = asked(&server, path, &[("if-none-match", tag)]).await;
            assert_eq!(status, 200, "{path} after {what}");
            assert!(!tags.contains_key(&headers["etag"]), "{path} after {what}");
            now.insert(headers["etag"].clone(), path.clone());
        }
        now
    };
    // Long behind the window and of no new series or type: nothing of it is anything to the window, except to lists
    // of the day.
    server.ingest(&batch(2, from + 1_200 * S, "db")).await;
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let is_list = |path: &str| path.starts_with("labels") || path.starts_with("search");
        for (tag, path) in tags.iter().filter(|(_, path)| !is_list(path)) {
            let (status, ..) = asked(&server, path, &[("if-none-match", tag)]).await;
            assert_eq!(status, 304, "{path} {committed}");
        }
    }
    // Late, within the window: once it waits for its commit, and once it has its file.
    server.ingest(&batch(3, from, "db")).await;
    let tags_then = unlike("a late batch", &tags).await;
    server.store.flush().await.unwrap();
    let tags_then = unlike("its commit", &tags_then).await;
    let graph = server
        .json("flamegraph", &[("from", &ms(from)), ("until", &ms(from + 60 * S))])
        .await;
    assert_eq!(graph["samples"], 120);
    // A new series of the same day has new labels.
    server.ingest(&batch(4, from + 1_260 * S, "web")).await;
    unlike("a new series", &tags_then).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_change_by_itself_has_no_tag() {
    let (server, from) = (Server::start().await, recent());
    server.ingest(&batch(1, from, "db")).await;
    let (begin, end) = (ms(from), ms(from + 60 * S));
    let later = ms(from + 86_400 * S);
    for query in [
        String::new(),
        format!("?from={begin}"),
        format!("?from={begin}&until=now"),
        format!("?from={begin}&until={later}"),
        format!("?from={begin}&until={end}&except_from=now-10m&except_until={end}"),
    ] {
        let (status, headers, _) = asked(&server, &format!("flamegraph{query}"), &[]).await;
        assert!(
            matches!(status, 200 | 400) && !headers.contains_key("etag"),
            "{query}: {status} {headers:?}"
        );
    }
    for path in [
        format!("flamegraph?from={begin}&until={end}&format=x"),
        "nodes".to_owned(),
    ] {
        assert!(!asked(&server, &path, &[]).await.1.contains_key("etag"), "{path}");
    }
}
