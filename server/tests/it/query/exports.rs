//! Exports are read by the tools that they are for.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_read_by_the_tools_that_they_are_for() {
    let from = recent();
    let (server, all) = filled(from).await;
    let (begin, end) = (ms(from), ms(from + 120 * S));
    let window = |format| [("from", begin.as_str()), ("until", end.as_str()), ("format", format)];

    let folded = server.text("flamegraph", &window("collapsed")).await;
    let mut drawn = Vec::new();
    inferno::flamegraph::from_lines(&mut Default::default(), folded.lines(), &mut drawn).unwrap();
    assert!(String::from_utf8(drawn).unwrap().contains("(1,600 samples, 100%)"));

    let (_, headers, svg) = server.get("flamegraph", &window("svg")).await;
    assert_eq!(headers["content-type"], "image/svg+xml");
    assert!(headers["content-disposition"].starts_with("attachment; filename=\"stakeout-flamegraph-cpu-2"));
    assert!(String::from_utf8(svg).unwrap().contains("all (1,600 samples, 100%)"));

    let scope: Value = server.json("flamegraph", &window("speedscope")).await;
    let profile = &scope["profiles"][0];
    let names = scope["shared"]["frames"].as_array().unwrap();
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let weights = profile["weights"].as_array().unwrap();
    for (sample, weight) in profile["samples"].as_array().unwrap().iter().zip(weights) {
        let path: Vec<&str> = sample
            .as_array()
            .unwrap()
            .iter()
            .map(|f| names[f.as_u64().unwrap() as usize]["name"].as_str().unwrap())
            .collect();
        counted.insert(
            path.join(";"),
            (weight.as_f64().unwrap() / PERIOD_NS as f64).round() as u64,
        );
    }
    let truth: BTreeMap<String, u64> = all.iter().fold(BTreeMap::new(), |mut truth, (_, sample)| {
        *truth.entry(frames(sample.stack).join(";")).or_default() += 1;
        truth
    });
    assert_eq!(counted, truth);
    assert_eq!(profile["endValue"].as_f64().unwrap(), 1_600.0 * PERIOD_NS as f64);

    let pprof = server.bytes("flamegraph", &window("pprof")).await;
    read_by_pprof(&pprof, &all);
}

/// `go tool pprof -top` is the judge where there is Go.
fn read_by_pprof(profile: &[u8], all: &[(&str, Sample)]) {
    let go = ["go", "/usr/local/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok());
    let Some(go) = go else {
        eprintln!("no go: `go tool pprof` has not read the export");
        return;
    };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(profile).unwrap();
    let output = Command::new(go)
        .args(["tool", "pprof", "-top", "-sample_index=samples"])
        .arg(file.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let stat = all.iter().filter(|(_, s)| s.stack.ends_with("stat")).count();
    let line = text
        .lines()
        .find(|line| line.split_whitespace().last() == Some("stat"))
        .unwrap_or_else(|| panic!("{text}"));
    assert_eq!(
        line.split_whitespace().next(),
        Some(stat.to_string().as_str()),
        "{text}"
    );
    assert!(text.contains("of 1600 total"), "{text}");
}

/// Each export says where stacks were cut, as the answer for the page does: by the frame that its sender put there.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_is_marked_in_every_export() {
    let from = recent();
    let server = Server::start().await;
    let taken = accounting::minute(
        from,
        &[
            ("web", "main;hot", 60),
            ("web", "~[cut];hot;work", 20),
            ("web", "~main;[… 512 frames];hot", 30),
            ("web", "~main;[cut];lost", 5),
        ],
    );
    server.ingest(&accounting::batch(1, from, PERIOD_NS, taken)).await;
    let truth: BTreeMap<String, u64> = [
        ("main;hot", 60),
        ("[cut];hot;work", 20),
        ("main;[… 512 frames];hot", 30),
        ("main;[cut];lost", 5),
    ]
    .map(|(stack, count)| (stack.to_owned(), count))
    .into();
    let (begin, end) = (ms(from), ms(from + 60 * S));
    let window = |format| [("from", begin.as_str()), ("until", end.as_str()), ("format", format)];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let page = server.json("flamegraph", &window("json")).await;
        let shown = paths(&page, "total", "self").into_iter();
        let own = shown.filter(|(_, (_, own))| *own > 0);
        let own: BTreeMap<String, u64> = own.map(|(path, (_, own))| (path[1..].to_owned(), own)).collect();
        assert_eq!(own, truth);
        assert_eq!(page["quality"]["truncated_samples"], 55);
        let folded = server.text("flamegraph", &window("collapsed")).await;
        let lines = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
        let lines: BTreeMap<String, u64> = lines.map(|(path, n)| (path.to_owned(), n.parse().unwrap())).collect();
        assert_eq!(lines, truth);
        let scope = server.json("flamegraph", &window("speedscope")).await.to_string();
        let svg = server.text("flamegraph", &window("svg")).await;
        let pprof = server.bytes("flamegraph", &window("pprof")).await;
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&pprof[..]), &mut unpacked).unwrap();
        let pprof = String::from_utf8_lossy(&unpacked);
        for mark in ["[cut]", "[… 512 frames]"] {
            assert!(
                scope.contains(mark) && svg.contains(mark) && pprof.contains(mark),
                "{mark}"
            );
        }
        // 20 above `hot`, 5 below `main`.
        assert!(svg.contains("[cut] (20 samples, ") && svg.contains("[cut] (5 samples, "));
        let csv = server
            .text("top", &[&window("csv")[..], &[("by", "function")]].concat())
            .await;
        let row = |name: &str| {
            csv.lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_else(|| panic!("{csv}"))
        };
        assert!(row("[cut],").contains(",25,"), "{}", row("[cut],"));
        assert!(row("[… 512 frames],").contains(",30,"));
    }
}

/// Sends one sample of this type, in nanoseconds.
async fn send_typed(server: &Server, kind: &str, ts_ns: i64) -> StatusCode {
    use opentelemetry_proto::tonic::profiles::v1development::{Profile, Sample};
    let mut dictionary = crate::support::Dictionary::new();
    let sample = Sample {
        stack_index: dictionary.stack(&[("native", "/usr/bin/app", "main")]),
        values: vec![1_000],
        timestamps_unix_nano: vec![ts_ns as u64],
        ..Default::default()
    };
    let profile = Profile {
        sample_type: Some(dictionary.value_type(kind, "nanoseconds")),
        samples: vec![sample],
        ..Default::default()
    };
    let resource = crate::support::attributes([("host.name", crate::support::text("a"))]);
    let request = crate::support::request(resource, profile, dictionary);
    let request = Request::post("/v1development/profiles")
        .header("content-type", "application/x-protobuf")
        .body(Body::from(prost::Message::encode_to_vec(&request)))
        .unwrap();
    server.send(request).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_that_is_taken_in_can_be_asked_for() {
    let server = Server::start_with(|config| StoreConfig {
        commit_interval: Duration::from_millis(50),
        ..config
    })
    .await;
    let from = recent();
    let longest = "x".repeat(128);
    for kind in ["off-cpu", "process.cpu:µs", "../../x", "a\"b; c", "' OR ''='", &longest] {
        assert_eq!(send_typed(&server, kind, from).await, StatusCode::OK, "{kind:?}");
        for format in ["json", "svg", "collapsed", "pprof", "speedscope"] {
            let (status, headers, _) = server.get("flamegraph", &[("type", kind), ("format", format)]).await;
            assert_eq!(status, StatusCode::OK, "{kind:?} as {format}");
            let Some(name) = headers.get("content-disposition") else {
                continue;
            };
            let name = name
                .strip_prefix("attachment; filename=\"")
                .and_then(|name| name.strip_suffix('"'))
                .unwrap();
            assert!(
                name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)),
                "{name}"
            );
        }
        let answer = server.json("flamegraph", &[("type", kind)]).await;
        assert_eq!((&answer["samples"], &answer["type"]), (&json!(1), &json!(kind)));
    }
    for kind in ["a\nb", &format!("{longest}x")] {
        assert_eq!(
            send_typed(&server, kind, from).await,
            StatusCode::BAD_REQUEST,
            "{kind:?}"
        );
        assert_eq!(server.error("flamegraph", &[("type", kind)]).await.0, 400, "{kind:?}");
    }
}
