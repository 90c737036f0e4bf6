//! One profile by several ways: OTLP in protobuf and in JSON, pprof raw, gzipped and in a form. All answers agree.

use crate::ingest::App;
use crate::support::{get, now_ns, send};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;
use stakeout_server::ingest::{About, pprof_to_otlp};

async fn post(app: &App, path: &str, content_type: &str, body: Vec<u8>) -> crate::support::Answer {
    let request = Request::post(path)
        .header("host", &app.address)
        .header("content-type", content_type)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    send(&app.address, request).await.unwrap()
}

/// 7 ticks of `left` and 10 of `right`, 10 ms each.
fn pprof() -> Vec<u8> {
    crate::pprof::pprof(&[("left", "main;left", 7), ("right", "main;right", 10)], 10_000_000)
}

fn json(node: &str, begin_ns: i64) -> Vec<u8> {
    let stack = |function: usize| serde_json::json!({"locationIndices": [function, 1]});
    let request = serde_json::json!({
        "resourceProfiles": [{
            "resource": {"attributes": [
                {"key": "host.name", "value": {"stringValue": node}},
                {"key": "service.name", "value": {"stringValue": "shop"}},
            ]},
            "scopeProfiles": [{"profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                "periodType": {"typeStrindex": 1, "unitStrindex": 2},
                "period": "10000000",
                "timeUnixNano": begin_ns.to_string(),
                "durationNano": "10000000000",
                "samples": [
                    {"stackIndex": 1, "values": ["70000000"], "attributeIndices": [1]},
                    {"stackIndex": 2, "values": ["100000000"], "attributeIndices": [2]},
                ],
            }]}],
        }],
        "dictionary": {
            "stringTable": ["", "cpu", "nanoseconds", "main", "left", "right", "/bin/app", "thread.name", "profile.frame.type"],
            "mappingTable": [{}, {"filenameStrindex": 6}],
            "functionTable": [{}, {"nameStrindex": 3}, {"nameStrindex": 4}, {"nameStrindex": 5}],
            "locationTable": [{},
                {"mappingIndex": 1, "lines": [{"functionIndex": 1}], "attributeIndices": [3]},
                {"mappingIndex": 1, "lines": [{"functionIndex": 2}], "attributeIndices": [3]},
                {"mappingIndex": 1, "lines": [{"functionIndex": 3}], "attributeIndices": [3]},
            ],
            "attributeTable": [{},
                {"keyStrindex": 7, "value": {"stringValue": "left"}},
                {"keyStrindex": 7, "value": {"stringValue": "right"}},
                {"keyStrindex": 8, "value": {"stringValue": "go"}},
            ],
            "stackTable": [{}, stack(2), stack(3)],
        },
    });
    request.to_string().into_bytes()
}

/// A pprof export has what the profile had: functions with the lines at which they begin, which `go build -pgo`
/// needs, lines and values.
async fn exported_as_it_came(app: &App) {
    let path = "/api/v1/flamegraph?query=%7Bnode%3D%22raw%22%7D&from=now-5m&format=pprof";
    let answer = get(&app.address, path).await;
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(answer.body.as_ref()), &mut plain).unwrap();
    let read = pprof_to_otlp(&plain, &About::default(), 1 << 20).unwrap();
    let read = ExportProfilesServiceRequest::decode(read.as_slice()).unwrap();
    let tables = read.dictionary.unwrap();
    let mut functions: Vec<_> = tables.function_table[1..]
        .iter()
        .map(|function| {
            (
                tables.string_table[function.name_strindex as usize].as_str(),
                function.start_line,
            )
        })
        .collect();
    functions.sort_unstable();
    assert_eq!(functions, [("left", 30), ("main", 30), ("right", 30)]);
    assert!(
        tables.location_table[1..]
            .iter()
            .all(|location| location.lines[0].line == 33)
    );
    let profile = &read.resource_profiles[0].scope_profiles[0].profiles[0];
    let mut values: Vec<i64> = profile.samples.iter().map(|sample| sample.values[0]).collect();
    values.sort_unstable();
    assert_eq!(values.iter().sum::<i64>(), 170_000_000, "{values:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_profile_says_the_same() {
    let app = App::start().await;
    let begin_ns = now_ns() - 60_000_000_000;
    let about = |node: &str| {
        format!(
            "/ingest?name=shop%7Bhostname%3D{node}%2Cregion%3Deu%7D&from={begin_ns}&until={}&spyName=gospy&sampleRate=100\
             &units=samples&aggregationType=sum&format=pprof",
            begin_ns + 10_000_000_000
        )
    };
    let gzip = crate::pprof::gzip(&pprof());
    let form = [
        b"--b\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n\r\n".as_slice(),
        &gzip,
        b"\r\n--b\r\nContent-Disposition: form-data; name=\"sample_type_config\"; filename=\"c.json\"\r\n\r\n\
          {\"samples\":{\"units\":\"samples\",\"sampled\":true}}\r\n--b--\r\n",
    ]
    .concat();
    let octets = "application/octet-stream";
    for (node, path, content_type, body) in [
        ("raw", about("raw"), octets, pprof()),
        ("gzip", about("gzip"), octets, gzip),
        ("form", about("form"), "multipart/form-data; boundary=b", form),
        (
            "json",
            "/v1development/profiles".to_owned(),
            "application/json",
            json("json", begin_ns),
        ),
    ] {
        let answer = post(&app, &path, content_type, body).await;
        assert_eq!(answer.status, 200, "{node}: {answer:?}");
        if node == "json" {
            assert_eq!(
                (answer.json(), &answer.headers["content-type"]),
                (serde_json::json!({}), &"application/json".parse().unwrap())
            );
        }
        let of_node = format!("query=%7Bnode%3D%22{node}%22%7D&from=now-5m");
        let flame = get(&app.address, &format!("/api/v1/flamegraph?{of_node}")).await.json();
        assert!(
            (flame["cpu_seconds"].as_f64().unwrap() - 0.17).abs() < 1e-6,
            "{node}: {flame}"
        );
        let top = get(&app.address, &format!("/api/v1/top?by=thread&{of_node}"))
            .await
            .json();
        let rows = top["rows"].as_array().unwrap();
        let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["right", "left"], "{node}: {top}");
        if node != "json" {
            let regions = get(
                &app.address,
                &format!("/api/v1/labels/attribute.region/values?{of_node}"),
            )
            .await
            .json();
            assert_eq!(regions["values"], serde_json::json!(["eu"]), "{node}");
        }
    }
    exported_as_it_came(&app).await;
    for (path, content_type, body, status) in [
        (about("x").replace("format=pprof", "format=jfr"), octets, pprof(), 400),
        ("/ingest".to_owned(), octets, pprof(), 400),
        (about("x"), octets, b"\xff\xff".to_vec(), 400),
        (about("x"), "multipart/form-data; boundary=b", b"--b--".to_vec(), 400),
    ] {
        let answer = post(&app, &path, content_type, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error_code().as_str()),
            (status, "bad_profile"),
            "{path}"
        );
    }
    let refused = post(&app, "/v1development/profiles", "application/json", b"{]".to_vec()).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["code"]),
        (400, &3.into()),
        "{refused:?}"
    );
}
