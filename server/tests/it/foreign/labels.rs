//! What senders say of themselves: attributes that are no fixed labels, kinds of frames, entries for nothing,
//! nameless modules.

use super::recorded::rows;
use crate::ingest::App;
use crate::support::{Dictionary, attributes, get, now_ns, request, text};
use opentelemetry_proto::tonic::profiles::v1development::{Location, Profile, Sample, Stack};

async fn ask(app: &App, path: &str) -> serde_json::Value {
    let answer = get(&app.address, path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_labels_by_their_own_and_by_short_names() {
    let app = App::start().await;
    let begin_ns = u64::try_from(now_ns()).unwrap() - 60_000_000_000;
    for (version, team, route, samples) in [("1.4.2", "red", "/cart", 1_u64), ("1.5.0", "blue", "/pay", 3)] {
        let mut dictionary = Dictionary::new();
        let profile = Profile {
            period: 50_000_000,
            period_type: Some(dictionary.value_type("cpu", "nanoseconds")),
            sample_type: Some(dictionary.value_type("samples", "count")),
            samples: vec![Sample {
                stack_index: dictionary.stack(&[("native", "/bin/app", "main")]),
                attribute_indices: vec![
                    dictionary.attribute("http.route", text(route)),
                    dictionary.attribute("plain", text("x")),
                ],
                timestamps_unix_nano: (0..samples).map(|at| begin_ns + at).collect(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let own = attributes([
            ("host.name", text("n")),
            ("service.version", text(version)),
            ("acme.team", text(team)),
        ]);
        assert_eq!(app.post_plain(&request(own, profile, dictionary)).await.status, 200);
    }
    let labels = ask(&app, "/api/v1/labels?from=now-5m").await["labels"].take();
    let labels: Vec<&str> = labels
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|label| label.as_str())
        .collect();
    for label in [
        "node",
        "acme.team",
        "http.route",
        "service.version",
        "version",
        "attribute.plain",
    ] {
        assert!(labels.contains(&label), "{label}: {labels:?}");
    }
    assert!(!labels.contains(&"environment"), "nobody says it: {labels:?}");
    for (label, values) in [
        ("acme.team", ["blue", "red"]),
        ("version", ["1.4.2", "1.5.0"]),
        ("http.route", ["/cart", "/pay"]),
    ] {
        let found = ask(&app, &format!("/api/v1/labels/{label}/values?from=now-5m")).await;
        assert_eq!(found["values"], serde_json::json!(values), "{label}");
        let top = ask(&app, &format!("/api/v1/top?by={label}&from=now-5m")).await;
        assert_eq!(top["rows"].as_array().unwrap().len(), 2, "{label}: {top}");
    }
    for (query, samples) in [
        ("{acme.team=\"red\"}", 1),
        ("{\"acme.team\"=\"blue\"}", 3),
        ("{version=~\"1[.]5.*\",http.route!=\"/cart\"}", 3),
        ("{\"plain\"=\"x\"}", 4),
        ("{host.name=\"n\",acme.team=\"\"}", 0),
    ] {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let flame = ask(&app, &format!("/api/v1/flamegraph?query={query}&from=now-5m")).await;
        assert_eq!(flame["samples"], samples, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_the_services_own_or_the_tag_of_its_image() {
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, any_value::Value};
    let app = App::start().await;
    let begin_ns = u64::try_from(now_ns()).unwrap() - 60_000_000_000;
    let of_value = |value| AnyValue { value: Some(value) };
    let list = Value::ArrayValue(ArrayValue {
        values: vec![of_value(text("2.1")), of_value(text("latest"))],
    });
    for (service, attribute, value) in [
        ("own", "service.version", text("1.0")),
        ("tag", "container.image.tag", text("2.0")),
        ("tags", "container.image.tags", list),
        ("name", "container.image.name", text("registry:5000/shop/web:2.2")),
        ("none", "container.image.name", text("registry:5000/shop/web")),
    ] {
        let mut dictionary = Dictionary::new();
        let profile = Profile {
            period: 50_000_000,
            period_type: Some(dictionary.value_type("cpu", "nanoseconds")),
            sample_type: Some(dictionary.value_type("samples", "count")),
            samples: vec![Sample {
                stack_index: dictionary.stack(&[("native", "/bin/app", "main")]),
                timestamps_unix_nano: vec![begin_ns],
                ..Default::default()
            }],
            ..Default::default()
        };
        let own = attributes([
            ("host.name", text("n")),
            ("service.name", text(service)),
            (attribute, value),
        ]);
        assert_eq!(app.post_plain(&request(own, profile, dictionary)).await.status, 200);
    }
    let json = serde_json::json!({
        "resourceProfiles": [{
            "resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": "json"}},
                {"key": "container.image.tags", "value": {"arrayValue": {"values": [{"stringValue": "2.3"}, {"intValue": "7"}]}}},
            ]},
            "scopeProfiles": [{"profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                "timeUnixNano": begin_ns.to_string(),
                "samples": [{"values": ["50000000"]}],
            }]}],
        }],
        "dictionary": {"stringTable": ["", "cpu", "nanoseconds"], "stackTable": [{}]},
    });
    let headers = [("content-type", "application/json")];
    let answer = crate::support::post(&app.address, json.to_string(), &headers)
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let top = ask(&app, "/api/v1/top?by=version&from=now-5m").await;
    let mut versions: Vec<_> = top["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, ["", "1.0", "2.0", "2.1", "2.2", "2.3"]);
    let values = ask(&app, "/api/v1/labels/version/values?from=now-5m").await;
    assert_eq!(values["values"], serde_json::json!(["1.0", "2.0", "2.1", "2.2", "2.3"]));
    let query: String = url::form_urlencoded::byte_serialize(b"{version=~\"2.*\"}").collect();
    let flame = ask(&app, &format!("/api/v1/flamegraph?query={query}&from=now-5m")).await;
    assert_eq!(
        (&flame["samples"], &flame["query"]),
        (&4.into(), &"{version=~\"2.*\"}".into())
    );
    // By its own name an attribute is what was sent.
    let query: String = url::form_urlencoded::byte_serialize(b"{service.version!=\"\"}").collect();
    let flame = ask(&app, &format!("/api/v1/flamegraph?query={query}&from=now-5m")).await;
    assert_eq!(flame["samples"], 1);
    let labels = ask(&app, "/api/v1/labels?from=now-5m").await["labels"].take();
    let names = labels.as_array().unwrap().iter();
    assert_eq!(names.filter(|name| **name == "version").count(), 1, "{labels}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_what_their_senders_call_them() {
    let app = App::start().await;
    let begin_ns = u64::try_from(now_ns()).unwrap() - 60_000_000_000;
    let mut dictionary = Dictionary::new();
    let kinds = [
        ("go", "native", ""),
        ("rust", "native", ""),
        ("cuda", "unknown", ""),
        ("unknown", "unknown", ""),
        ("cpython", "interpreted", "cpython"),
        ("kernel", "kernel", ""),
        ("native", "native", ""),
        ("java", "interpreted", "jvm"),
        ("nodejs", "interpreted", "v8js"),
        ("ruby", "interpreted", "ruby"),
        ("php", "interpreted", "php"),
        ("luajit", "interpreted", "lua"),
        ("jit", "jit", ""),
        ("label", "unknown", ""),
    ];
    let mut samples: Vec<Sample> = kinds
        .iter()
        .map(|(kind, ..)| Sample {
            stack_index: dictionary.stack(&[(kind, "/bin/app", &format!("in_{kind}"))]),
            timestamps_unix_nano: vec![begin_ns],
            ..Default::default()
        })
        .collect();
    // A walk that broke: its marker is no frame. And addresses of one module without names, and a location that is
    // none.
    let broken = dictionary.stack(&[("native", "/bin/app", "deep"), ("abort-marker", "", "")]);
    let bare = dictionary.raw.location_table.len() as i32;
    for at in 0..40 {
        dictionary.raw.location_table.push(Location {
            mapping_index: 1,
            address: 0x1000 + at,
            ..Default::default()
        });
    }
    let mut stack = |location: i32| {
        let location_indices = vec![location, 1];
        dictionary.raw.stack_table.push(Stack { location_indices });
        dictionary.raw.stack_table.len() as i32 - 1
    };
    let mut stacks: Vec<i32> = (0..40).map(|at| stack(bare + at)).collect();
    stacks.extend([stack(0), broken]);
    samples.extend(stacks.into_iter().map(|stack_index| Sample {
        stack_index,
        timestamps_unix_nano: vec![begin_ns],
        ..Default::default()
    }));
    let profile = Profile {
        period: 50_000_000,
        period_type: Some(dictionary.value_type("cpu", "nanoseconds")),
        sample_type: Some(dictionary.value_type("samples", "count")),
        samples,
        ..Default::default()
    };
    let own = attributes([("host.name", text("n"))]);
    assert_eq!(app.post_plain(&request(own, profile, dictionary)).await.status, 200);
    let flame = ask(&app, "/api/v1/flamegraph?from=now-5m").await;
    let column = |list: &str| flame["nodes"][list].as_array().unwrap().iter();
    let names = column("name").map(|at| flame["strings"][at.as_u64().unwrap() as usize].as_str().unwrap());
    let seen: Vec<(&str, u64)> = names
        .zip(column("total").map(|total| total.as_u64().unwrap()))
        .collect();
    assert!(seen.contains(&("[app]", 40)), "{seen:?}");
    assert!(seen.contains(&("[unknown]", 1)), "{seen:?}");
    assert_eq!(flame["quality"]["truncated_samples"], 1, "{flame}");

    // Every answer with frames says kind and language apart.
    let base = "base_from=now-10m&base_until=now-5m&from=now-5m";
    let trees = [
        "flamegraph?from=now-5m",
        "timeline?from=now-5m",
        &format!("diff?{base}"),
    ]
    .map(str::to_owned);
    for path in trees {
        let told = of_nodes(&ask(&app, &format!("/api/v1/{path}")).await);
        for (sent, kind, language) in kinds {
            let right = [&format!("in_{sent}"), kind, language].map(str::to_owned);
            assert!(told.contains(&right), "{path}: {right:?} of {told:?}");
        }
    }
    let tables = [
        "top?from=now-5m",
        &format!("top?{base}"),
        "search?search=in_&from=now-5m",
    ]
    .map(str::to_owned);
    for path in tables {
        let told = ask(&app, &format!("/api/v1/{path}")).await;
        let rows = told["rows"].as_array().or(told["hits"].as_array()).unwrap();
        for (sent, kind, language) in kinds {
            let name = format!("in_{sent}");
            let row = rows
                .iter()
                .find(|row| row["name"] == name.as_str() || row["value"] == name.as_str());
            let row = row.unwrap_or_else(|| panic!("{path}: no {name} in {told}"));
            assert_eq!(
                (&row["kind"], &row["language"]),
                (&kind.into(), &language.into()),
                "{path}: {row}"
            );
        }
    }
    let csv = get(&app.address, "/api/v1/top?from=now-5m&format=csv").await.body;
    let csv = std::str::from_utf8(&csv).unwrap();
    let head = csv.lines().next().unwrap();
    assert!(head.starts_with("name,module,kind,language,self,"), "{head}");
    for (sent, kind, language) in kinds {
        let line = format!("in_{sent},app,{kind},{language},1,");
        assert!(csv.lines().any(|own| own.starts_with(&line)), "{line} in {csv}");
    }
    // Who asks for a frame gives the language where there is one; the table has that alone.
    for (sent, kind, language) in kinds {
        let samples = async |word: &str| {
            let path = format!("/api/v1/top?from=now-5m&match_frame={word},app,in_{sent}");
            ask(&app, &path).await["samples"].as_u64().unwrap()
        };
        let word = if language.is_empty() { kind } else { language };
        assert!(samples(word).await > 0, "{word} of {sent}");
        assert!(language.is_empty() || samples(kind).await == 0, "{kind} of {sent}");
        let query = format!("SELECT kind FROM frames WHERE function = 'in_{sent}'");
        assert_eq!(rows(&app, &query).await, [serde_json::json!([word])], "{sent}");
    }
}

/// Name, kind and language of each node of an answer.
fn of_nodes(answer: &serde_json::Value) -> Vec<[String; 3]> {
    let text = |list: &str, column: &str, node: usize| {
        let at = answer["nodes"][column][node].as_u64().unwrap() as usize;
        answer[list][at].as_str().unwrap().to_owned()
    };
    (0..answer["nodes"]["name"].as_array().unwrap().len())
        .map(|node| {
            [
                text("strings", "name", node),
                text("kinds", "kind", node),
                text("languages", "kind", node),
            ]
        })
        .collect()
}
