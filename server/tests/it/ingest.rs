//! Ingest over HTTP and gRPC: what is accepted, and every kind of bad input.

use crate::support::{Answer, Dictionary, Sender, attributes, get, now_ns, post, post_batch, request, text};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use opentelemetry_proto::tonic::profiles::v1development::{Profile, Sample};
use prost::Message;
use stakeout_server::api::{self, AppState};
use stakeout_server::ingest::{Ingest, IngestConfig, IngestError, Senders, TimeWindow, convert, read};
use stakeout_server::store::{Store, StoreConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The application on a port of its own.
pub(crate) struct App {
    pub(crate) address: String,
    store: Arc<Store>,
    _dir: tempfile::TempDir,
}

impl App {
    pub(crate) async fn start() -> Self {
        Self::start_with(IngestConfig::default()).await
    }

    pub(crate) async fn start_with(ingest: IngestConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig {
            commit_interval: Duration::from_millis(30),
            min_free_bytes: 0,
            ..StoreConfig::new(dir.path())
        };
        let store = Store::open(config).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let app = api::app(AppState {
            ingest: Arc::new(Ingest::new(store.clone(), ingest)),
            ..AppState::new(store.clone())
        });
        tokio::spawn(api::serve(listener, app, None, 1000, std::future::pending()));
        Self {
            address,
            store,
            _dir: dir,
        }
    }

    pub(crate) fn stored(&self) -> u64 {
        use stakeout_server::store::Table;
        self.store
            .snapshot()
            .files(Table::Samples)
            .iter()
            .map(|file| file.rows)
            .sum()
    }

    async fn metrics_have(&self, lines: &[impl AsRef<str>]) {
        let metrics = get(&self.address, "/metrics").await;
        let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
        for line in lines.iter().map(AsRef::as_ref) {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
    }

    pub(crate) async fn post_plain(&self, request: &ExportProfilesServiceRequest) -> Answer {
        post(&self.address, request.encode_to_vec(), &[]).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_encoding_is_taken_and_acknowledged_once() {
    let app = App::start().await;
    let mut sender = Sender::new("node-a", 25);
    let plain = sender.batch(1, now_ns()).encode_to_vec();
    let answer = post(&app.address, plain.clone(), &[]).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.headers["content-type"], "application/x-protobuf");
    let response = ExportProfilesServiceResponse::decode(answer.body).unwrap();
    assert_eq!(response.partial_success, None);
    assert_eq!(app.stored(), 25);
    // The same again, otherwise compressed and named by headers too.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    let headers = [
        ("content-encoding", "gzip"),
        ("stakeout-instance", sender.instance.as_str()),
        ("stakeout-batch", "1"),
    ];
    assert_eq!(
        post(&app.address, gzip.finish().unwrap(), &headers)
            .await
            .unwrap()
            .status,
        200
    );
    assert_eq!(app.stored(), 25);
    let second = sender.batch(2, now_ns());
    assert_eq!(post_batch(&app.address, &sender, 2, &second).await.unwrap().status, 200);
    assert_eq!(app.stored(), 50);
    let nodes = get(&app.address, "/api/v1/nodes").await.json();
    let node = &nodes["nodes"][0];
    assert_eq!(
        (node["node"].as_str(), node["samples_stored"].as_i64()),
        (Some("node-a"), Some(50))
    );
    assert_eq!(node["samples_taken"].as_i64(), Some(50 + 3), "stored and lost");
    assert_eq!(node["samples_lost"]["ring_full"].as_i64(), Some(3));
    assert_eq!(node["limits"], serde_json::json!({"tables_late": 2}));
    let shares = (node["idle_share"].as_f64(), node["missed_share"].as_f64());
    assert_eq!(shares, (Some(0.2), Some(0.2)), "of the ticks that were due");
    assert_eq!(node["cpus_offline"], "3,5-6");
    assert_eq!(node["late"], false);
    let agent = format!("node=\"node-a\",instance=\"{}\"", sender.instance);
    app.metrics_have(&[
        "stakeout_store_samples_total 50".to_owned(),
        "stakeout_store_duplicate_batches_total 1".to_owned(),
        format!("stakeout_agent_taken_samples_total{{{agent}}} 53"),
        format!("stakeout_agent_stored_samples_total{{{agent}}} 50"),
        format!("stakeout_agent_lost_samples_total{{{agent},cause=\"ring_full\"}} 3"),
        format!("stakeout_agent_limits_reached_total{{{agent},limit=\"tables_late\"}} 2"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_is_taken_on_the_same_port() {
    let app = App::start().await;
    let mut sender = Sender::new("node-a", 25);
    let plain = sender.batch(1, now_ns()).encode_to_vec();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    let zstd = zstd::stream::encode_all(plain.as_slice(), 1).unwrap();
    for (headers, message) in [
        (&[][..], plain),
        (&[("grpc-encoding", "zstd")], zstd),
        (&[("grpc-encoding", "gzip")], gzip.finish().unwrap()),
    ] {
        let (status, body) = grpc(&app.address, headers, &message).await;
        assert_eq!(status, "0", "{headers:?}");
        assert_eq!(
            ExportProfilesServiceResponse::decode(&body[5..])
                .unwrap()
                .partial_success,
            None
        );
        assert_eq!(app.stored(), 25);
    }
    let mut bad = sender.batch(2, now_ns());
    bad.dictionary.as_mut().unwrap().stack_table.truncate(1);
    let invalid_argument = "3";
    assert_eq!(grpc(&app.address, &[], &bad.encode_to_vec()).await.0, invalid_argument);
    assert_eq!(
        grpc(&app.address, &[("grpc-encoding", "zstd")], &bomb()).await.1.len(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_install_line_names_the_host_over_both_versions_of_http() {
    let app = App::start().await;
    let expected = format!("curl -fsSL http://{}/install.sh | sudo sh", app.address);
    assert_eq!(
        get(&app.address, "/api/v1/info").await.json()["install_command"],
        expected
    );
    let stream = tokio::net::TcpStream::connect(&app.address).await.unwrap();
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::get(format!("http://{}/api/v1/info", app.address))
        .body(Full::<Bytes>::default())
        .unwrap();
    let body = client
        .send_request(request)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap()
        .to_bytes();
    let info: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(info["install_command"], expected);
}

/// A gigabyte of zeros in less than 100 KB.
fn bomb() -> Vec<u8> {
    let bomb = zstd::stream::encode_all(std::io::Read::take(std::io::repeat(0), 1 << 30), 1).unwrap();
    assert!(bomb.len() < 100_000);
    bomb
}

/// One unary call, as the gRPC specification frames it; returns `grpc-status` and the body. `headers`: with
/// `grpc-encoding` the message is compressed so.
pub(crate) async fn grpc(address: &str, headers: &[(&str, &str)], message: &[u8]) -> (String, Bytes) {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let is_compressed = headers.iter().any(|(name, _)| *name == "grpc-encoding");
    let mut framed = vec![u8::from(is_compressed)];
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(message);
    let path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
    let mut request = Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = client
        .send_request(request.body(Full::new(Bytes::from(framed))).unwrap())
        .await
        .unwrap();
    let head = response.headers().get("grpc-status").cloned();
    let collected = response.into_body().collect().await.unwrap();
    let status = head
        .or_else(|| collected.trailers()?.get("grpc-status").cloned())
        .unwrap();
    (status.to_str().unwrap().to_owned(), collected.to_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_get_an_error_that_says_what_is_wrong() {
    let app = App::start().await;
    let mut sender = Sender::new("node-a", 5);
    let good = sender.batch(1, now_ns());
    let plain = good.encode_to_vec();
    let bomb = bomb();
    let cut = &plain[..plain.len() - 7];
    /// What it is, body, headers, expected status and code.
    type Case<'a> = (&'a str, &'a [u8], &'a [(&'a str, &'a str)], u16, &'a str);
    let cases: [Case<'_>; 12] = [
        ("garbage", b"\xff\xfenot protobuf", &[], 400, "bad_profile"),
        ("cut in the middle", cut, &[], 400, "bad_profile"),
        (
            "text",
            b"{}",
            &[("content-type", "text/plain")],
            415,
            "unsupported_media_type",
        ),
        (
            "no content type",
            &plain,
            &[("content-type", "")],
            415,
            "unsupported_media_type",
        ),
        (
            "unknown encoding",
            &plain,
            &[("content-encoding", "br")],
            415,
            "unsupported_media_type",
        ),
        ("not zstd", &plain, &[("content-encoding", "zstd")], 400, "bad_profile"),
        ("not gzip", &plain, &[("content-encoding", "gzip")], 400, "bad_profile"),
        ("zstd bomb", &bomb, &[("content-encoding", "zstd")], 413, "too_large"),
        (
            "half an identity",
            &plain,
            &[("stakeout-instance", "a")],
            400,
            "bad_profile",
        ),
        (
            "another identity",
            &plain,
            &[("stakeout-instance", "a"), ("stakeout-batch", "1")],
            400,
            "bad_profile",
        ),
        (
            "number 0",
            b"",
            &[("stakeout-instance", "a"), ("stakeout-batch", "0")],
            400,
            "bad_profile",
        ),
        (
            "a word for a number",
            b"",
            &[("stakeout-instance", "a"), ("stakeout-batch", "x")],
            400,
            "bad_profile",
        ),
    ];
    for (what, body, headers, status, code) in cases {
        let answer = post(&app.address, body.to_vec(), headers).await.unwrap();
        assert_eq!(answer.status.as_u16(), status, "{what}: {answer:?}");
        let told = match what {
            "no content type" | "text" => answer.error_code(),
            _ => answer.refusal().0,
        };
        assert_eq!(told, code, "{what}");
    }
    assert_eq!(get(&app.address, "/api/v1/nothing").await.error_code(), "not_found");
    // None of it did harm.
    assert_eq!(app.post_plain(&good).await.status, 200);
    assert_eq!(app.stored(), 5);
}

/// A request of this profile and nothing else.
fn profile_alone(profile: Profile) -> Vec<u8> {
    request(Vec::new(), profile, Dictionary::new()).encode_to_vec()
}

#[test]
fn rows_are_counted_before_they_take_memory() {
    // Two bytes each: a row has eighty and more.
    let samples = profile_alone(Profile {
        samples: vec![Sample::default(); 20_000],
        ..Default::default()
    });
    // Nothing but times, all of another day.
    let times = profile_alone(Profile {
        samples: vec![Sample {
            timestamps_unix_nano: (0..2_000).map(|day| day * 86_400_000_000_000).collect(),
            ..Default::default()
        }],
        ..Default::default()
    });
    let window = TimeWindow {
        earliest_ns: 0,
        latest_ns: i64::MAX,
        now_ns: now_ns(),
    };
    for (what, wire) in [("samples", samples), ("times", times)] {
        let converted = |limit| {
            let request = read(&wire, limit).unwrap();
            convert(
                &request,
                None,
                window,
                &|_, _, ids| vec![false; ids.len()],
                &Senders::default(),
            )
        };
        let error = converted(1 << 20).unwrap_err();
        assert!(matches!(error, IngestError::TooLarge { .. }), "{what}: {error}");
        // With enough memory it is its hours that are too many.
        match (what, converted(64 << 20)) {
            ("times", Err(IngestError::Invalid(why))) => assert!(why.contains("2000 hours"), "{why}"),
            ("samples", Ok(_)) => {}
            (what, other) => panic!("{what}: {:?}", other.map(|_| ())),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn indices_out_of_range_are_named() {
    let app = App::start().await;
    type Break = fn(&mut ExportProfilesServiceRequest);
    fn profile(request: &mut ExportProfilesServiceRequest) -> &mut Profile {
        &mut request.resource_profiles[0].scope_profiles[0].profiles[0]
    }
    fn tables(
        request: &mut ExportProfilesServiceRequest,
    ) -> &mut opentelemetry_proto::tonic::profiles::v1development::ProfilesDictionary {
        request.dictionary.as_mut().unwrap()
    }
    let cases: [(&str, Break); 12] = [
        ("stack_table[999]", |r| profile(r).samples[0].stack_index = 999),
        ("stack_table[-1]", |r| profile(r).samples[0].stack_index = -1),
        ("attribute_table[999]", |r| {
            profile(r).samples[0].attribute_indices.push(999)
        }),
        ("location_table[999]", |r| {
            tables(r).stack_table[1].location_indices[0] = 999
        }),
        ("mapping_table[999]", |r| {
            tables(r).location_table[1].mapping_index = 999
        }),
        ("attribute_table[-5]", |r| {
            tables(r).location_table[1].attribute_indices = vec![-5]
        }),
        ("function_table[999]", |r| {
            tables(r).location_table[1].lines[0].function_index = 999
        }),
        ("string_table[999]", |r| tables(r).function_table[1].name_strindex = 999),
        ("string_table[998]", |r| {
            tables(r).mapping_table[1].filename_strindex = 998
        }),
        ("string_table[997]", |r| tables(r).attribute_table[1].key_strindex = 997),
        ("string_table[996]", |r| {
            profile(r).sample_type.as_mut().unwrap().type_strindex = 996
        }),
        ("stack_table[1]", |r| r.dictionary = None),
    ];
    for (named, break_it) in cases {
        let mut request = Sender::new("node-a", 3).batch(1, now_ns());
        break_it(&mut request);
        let answer = app.post_plain(&request).await;
        assert_eq!(answer.status, 400, "{named}: {answer:?}");
        let message = answer.refusal().1;
        if named == "stack_table[1]" {
            assert!(message.contains("has 0 entries"), "{message}");
        } else {
            assert!(message.contains(named), "{named}: {message}");
        }
    }
    assert_eq!(app.stored(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_from_far_away_times_are_left_out_and_said_so() {
    let app = App::start_with(IngestConfig {
        clock_wait: Duration::ZERO,
        ..IngestConfig::default()
    })
    .await;
    let mut sender = Sender::new("node-a", 4);
    let mut request = sender.batch(1, now_ns());
    let samples = &mut request.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    samples[0].timestamps_unix_nano = vec![(now_ns() + 48 * 3_600_000_000_000) as u64];
    samples[1].timestamps_unix_nano = vec![1];
    samples[2].timestamps_unix_nano = vec![u64::MAX];
    let answer = app.post_plain(&request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let partial = ExportProfilesServiceResponse::decode(answer.body)
        .unwrap()
        .partial_success
        .unwrap();
    assert_eq!(partial.rejected_profiles, 1);
    assert!(
        partial.error_message.contains("2 samples are later"),
        "{}",
        partial.error_message
    );
    assert!(
        partial.error_message.contains("1 samples are older"),
        "{}",
        partial.error_message
    );
    assert_eq!(app.stored(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn until_the_clock_may_be_set_nothing_is_left_out_for_being_ahead() {
    let app = App::start().await;
    let mut sender = Sender::new("node-a", 4);
    let ahead_ns = now_ns() + 48 * 3_600_000_000_000;
    // Also where there is no sample: what was observed would be cut to the day that the clock says.
    let (all, mut none, present) = (
        sender.batch(1, ahead_ns),
        sender.batch(2, ahead_ns),
        sender.batch(3, now_ns()),
    );
    none.resource_profiles[0].scope_profiles.clear();
    for request in [&all, &none] {
        let answer = app.post_plain(request).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.headers["retry-after"], "10");
        let (code, said) = answer.refusal();
        assert!(code == "overloaded" && said.contains("--clock-wait"), "{said}");
    }
    assert_eq!(app.post_plain(&present).await.status, 200);
    assert_eq!(app.stored(), 4);
    app.metrics_have(&[
        "stakeout_ingest_busy_requests_total 2",
        "stakeout_ingest_rejected_samples_total 0",
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_samples_without_times_is_a_repeat() {
    let app = App::start().await;
    let mut request = Sender::new("node-a", 4).batch(1, now_ns());
    let profile = &mut request.resource_profiles[0].scope_profiles[0].profiles[0];
    profile.time_unix_nano = 0;
    for sample in &mut profile.samples[..2] {
        sample.timestamps_unix_nano.clear();
    }
    for _ in 0..2 {
        let answer = app.post_plain(&request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let response = ExportProfilesServiceResponse::decode(answer.body).unwrap();
        assert_eq!(response.partial_success, None);
    }
    // Others in their place are none.
    request.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index ^= 1;
    let answer = app.post_plain(&request).await;
    assert_eq!(answer.headers["stakeout-rejected-samples"], "4");
    assert_eq!(app.stored(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_was_split_on_the_way_is_said_to_be_incomplete() {
    let app = App::start().await;
    let whole = Sender::new("node-a", 10).batch(1, now_ns());
    let part = |range: std::ops::Range<usize>| {
        let mut part = whole.clone();
        let samples = &mut part.resource_profiles[0].scope_profiles[0].profiles[0].samples;
        *samples = samples[range].to_vec();
        part
    };
    let partial = |answer: Answer| {
        assert_eq!(answer.status, 200, "{answer:?}");
        ExportProfilesServiceResponse::decode(answer.body)
            .unwrap()
            .partial_success
    };
    let (first, mut reordered, rest) = (part(0..6), part(0..6), part(6..10));
    reordered.resource_profiles[0].scope_profiles[0].profiles[0]
        .samples
        .reverse();
    assert_eq!(partial(app.post_plain(&first).await), None);
    // A repeat may be sorted otherwise; the rest is no repeat.
    assert_eq!(partial(app.post_plain(&reordered).await), None);
    let answer = app.post_plain(&rest).await;
    assert_eq!(answer.headers["stakeout-rejected-samples"], "4");
    let left_out = partial(answer).unwrap();
    assert_eq!(left_out.rejected_profiles, 1);
    assert!(
        left_out.error_message.contains("4 samples are left out: batch 1"),
        "{left_out:?}"
    );
    assert_eq!(app.stored(), 6);
    app.metrics_have(&[
        "stakeout_store_conflicting_batches_total 1",
        "stakeout_store_duplicate_batches_total 1",
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_without_our_attributes_is_welcome() {
    let app = App::start().await;
    let mut dictionary = Dictionary::new();
    let value_type = |dictionary: &mut Dictionary, kind, unit| Some(dictionary.value_type(kind, unit));
    let stack = dictionary.stack(&[("cpython", "app.py", "handle"), ("native", "/usr/bin/python3", "main")]);
    let profile = Profile {
        sample_type: value_type(&mut dictionary, "cpu", "nanoseconds"),
        time_unix_nano: now_ns() as u64,
        samples: vec![
            Sample {
                stack_index: stack,
                values: vec![70],
                ..Default::default()
            },
            Sample {
                stack_index: stack,
                values: vec![1, 2],
                ..Default::default()
            },
        ],
        ..Default::default()
    };
    let resource = attributes([
        ("service.name", text("shop")),
        ("k8s.deployment.name", text("shop-web")),
    ]);
    let answer = app.post_plain(&request(resource, profile, dictionary)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(app.stored(), 2);
    let session = app.store.snapshot().session();
    let query = "SELECT CAST(s.type AS VARCHAR), CAST(s.service AS VARCHAR), e.workload, f.kind, CAST(sum(s.value) AS VARCHAR) \
         FROM samples s JOIN series e ON s.series_id = e.series_id JOIN stacks t ON t.stack_id = s.stack_id \
         JOIN frames f ON array_has(t.frames, f.frame_id) WHERE f.function = 'handle' \
         GROUP BY s.type, s.service, e.workload, f.kind";
    let batches = session.sql(query).await.unwrap().collect().await.unwrap();
    let row: Vec<String> = batches[0]
        .columns()
        .iter()
        .map(|column| arrow::util::display::array_value_to_string(column, 0).unwrap())
        .collect();
    assert_eq!(row, ["cpu", "shop", "shop-web", "cpython", "73"]);
    // No instance: no account. Who sends is shown all the same.
    let nodes = get(&app.address, "/api/v1/nodes").await.json()["nodes"].take();
    assert_eq!(nodes.as_array().unwrap().len(), 1, "{nodes}");
    assert_eq!(
        (&nodes[0]["has_account"], &nodes[0]["instance"]),
        (&false.into(), &"".into()),
        "{nodes}"
    );
}
