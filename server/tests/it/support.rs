//! What the tests share: a made-up sender whose stacks are known, a small HTTP client, the real binary as a child.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Location, Mapping, Profile, ProfilesDictionary, ResourceProfiles, Sample,
    ScopeProfiles, Stack, ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One sample stands for this much CPU time: 20 Hz.
pub(crate) const PERIOD_NS: i64 = 50_000_000;

pub(crate) fn now_ns() -> i64 {
    chrono::Utc::now().timestamp_nanos_opt().unwrap()
}

/// Builds requests as an agent does: a dictionary, one resource, one profile.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) instance: String,
    pub(crate) node: String,
    pub(crate) samples: usize,
    taken: i64,
}

impl Sender {
    pub(crate) fn new(node: &str, samples: usize) -> Self {
        Self {
            instance: uuid::Uuid::new_v4().to_string(),
            node: node.to_owned(),
            samples,
            taken: 0,
        }
    }

    /// A batch of `samples` samples that end at `until_ns`, 1 ms apart. Sample i runs `service-{i % 3}` with the stack
    /// `main;work-{i % 5};vfs_read`, of which the last is a kernel frame.
    pub(crate) fn batch(&mut self, number: i64, until_ns: i64) -> ExportProfilesServiceRequest {
        self.taken += self.samples as i64;
        let mut dictionary = Dictionary::new();
        let truncated = dictionary.attribute("stakeout.stack.truncated", Value::BoolValue(true));
        let samples = (0..self.samples)
            .map(|i| {
                let service = format!("service-{}", i % 3);
                let mut attribute_indices = vec![
                    dictionary.attribute("service.name", text(&service)),
                    dictionary.attribute("process.executable.name", text("worker")),
                    dictionary.attribute("process.executable.path", text("/usr/bin/worker")),
                    dictionary.attribute("process.pid", Value::IntValue(100 + (i % 3) as i64)),
                    dictionary.attribute("stakeout.process.start_ticks", Value::IntValue(7)),
                    dictionary.attribute("stakeout.process.exec_count", Value::IntValue(1)),
                    dictionary.attribute("thread.id", Value::IntValue(100 + i as i64)),
                    dictionary.attribute("thread.name", text(&format!("thread-{}", i % 4))),
                    dictionary.attribute("cpu.logical_number", Value::IntValue((i % 2) as i64)),
                ];
                if i % 10 == 0 {
                    attribute_indices.push(truncated);
                }
                Sample {
                    stack_index: dictionary.stack(&[
                        ("kernel", "[kernel]", "vfs_read"),
                        ("native", "/usr/bin/worker", &format!("work-{}", i % 5)),
                        ("native", "/usr/bin/worker", "main"),
                    ]),
                    attribute_indices,
                    timestamps_unix_nano: vec![(until_ns - 1_000_000 * (i as i64 + 1)) as u64],
                    ..Default::default()
                }
            })
            .collect();
        let profile = Profile {
            sample_type: Some(dictionary.value_type("samples", "count")),
            period_type: Some(dictionary.value_type("cpu", "nanoseconds")),
            period: PERIOD_NS,
            samples,
            ..Default::default()
        };
        let int = Value::IntValue;
        let resource = attributes([
            ("host.name", text(&self.node)),
            ("host.arch", text("amd64")),
            ("os.version", text("6.1.0")),
            ("stakeout.instance", text(&self.instance)),
            ("stakeout.batch", int(number)),
            ("stakeout.agent.version", text("0.1.0")),
            ("stakeout.boot_id", text("boot")),
            ("stakeout.frequency_hz", int(20)),
            ("stakeout.from_unix_nano", int(until_ns - 5_000_000_000)),
            ("stakeout.until_unix_nano", int(until_ns)),
            ("stakeout.cpus", int(2)),
            ("stakeout.ticks", int(200)),
            ("stakeout.idle_ticks", int(50)),
            ("stakeout.missed_ticks", int(50)),
            ("stakeout.cpus_offline", text("3,5-6")),
            ("stakeout.samples_taken", int(self.taken + 3)),
            ("stakeout.lost.ring_full", int(3)),
            ("stakeout.limit.tables_late", int(2)),
            ("stakeout.cpu_seconds", Value::DoubleValue(0.5)),
        ]);
        request(resource, profile, dictionary)
    }
}

pub(crate) fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

pub(crate) fn attributes<const N: usize>(pairs: [(&str, Value); N]) -> Vec<KeyValue> {
    pairs
        .into_iter()
        .map(|(key, value)| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..Default::default()
        })
        .collect()
}

pub(crate) fn request(
    resource: Vec<KeyValue>,
    profile: Profile,
    dictionary: Dictionary,
) -> ExportProfilesServiceRequest {
    let scope = ScopeProfiles {
        profiles: vec![profile],
        ..Default::default()
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: resource,
                ..Default::default()
            }),
            scope_profiles: vec![scope],
            ..Default::default()
        }],
        dictionary: Some(dictionary.raw),
    }
}

/// A dictionary in the making; entry 0 of each table is the empty one, as OTLP wants.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    pub(crate) raw: ProfilesDictionary,
}

impl Dictionary {
    pub(crate) fn new() -> Self {
        let raw = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
            ..Default::default()
        };
        Self { raw }
    }

    pub(crate) fn string(&mut self, string: &str) -> i32 {
        entry(&mut self.raw.string_table, string.to_owned())
    }

    pub(crate) fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            type_strindex: self.string(kind),
            unit_strindex: self.string(unit),
        }
    }

    pub(crate) fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let key_strindex = self.string(key);
        let attribute = KeyValueAndUnit {
            key_strindex,
            value: Some(AnyValue { value: Some(value) }),
            ..Default::default()
        };
        entry(&mut self.raw.attribute_table, attribute)
    }

    /// Frames leaf first: kind, module, function.
    pub(crate) fn stack(&mut self, frames: &[(&str, &str, &str)]) -> i32 {
        let location_indices = frames
            .iter()
            .map(|(kind, module, function)| {
                let kind = self.attribute("profile.frame.type", text(kind));
                let filename_strindex = self.string(module);
                let mapping_index = entry(
                    &mut self.raw.mapping_table,
                    Mapping {
                        filename_strindex,
                        ..Default::default()
                    },
                );
                let name_strindex = self.string(function);
                let function_index = entry(
                    &mut self.raw.function_table,
                    Function {
                        name_strindex,
                        ..Default::default()
                    },
                );
                let location = Location {
                    mapping_index,
                    lines: vec![Line {
                        function_index,
                        ..Default::default()
                    }],
                    attribute_indices: vec![kind],
                    ..Default::default()
                };
                entry(&mut self.raw.location_table, location)
            })
            .collect();
        entry(&mut self.raw.stack_table, Stack { location_indices })
    }
}

fn entry<T: PartialEq>(table: &mut Vec<T>, value: T) -> i32 {
    let at = table.iter().position(|other| *other == value).unwrap_or_else(|| {
        table.push(value);
        table.len() - 1
    });
    at as i32
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Code and message of a refusal in protobuf: the API's code, and what `google.rpc.Status` says.
    pub(crate) fn refusal(&self) -> (String, String) {
        assert_eq!(self.headers["content-type"], "application/x-protobuf", "{self:?}");
        // Its code and message have these numbers and types.
        let status = ExportProfilesPartialSuccess::decode(self.body.as_ref()).unwrap();
        assert!(
            status.rejected_profiles > 0 && !status.error_message.is_empty(),
            "{status:?}"
        );
        let code = self.headers["stakeout-error"].to_str().unwrap();
        (code.to_owned(), status.error_message)
    }

    /// The code of an error answer, after a look at its form.
    pub(crate) fn error_code(&self) -> String {
        let json = self.json();
        assert!(!json["error"]["message"].as_str().unwrap().is_empty(), "{json}");
        assert!(json["error"]["hint"].is_string(), "{json}");
        json["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// One request on a connection of its own. `address`: host and port.
pub(crate) async fn send(address: &str, request: Request<Full<Bytes>>) -> Result<Answer, String> {
    let exchange = async {
        let stream = tokio::net::TcpStream::connect(address)
            .await
            .map_err(|error| error.to_string())?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    };
    tokio::time::timeout(Duration::from_secs(60), exchange)
        .await
        .map_err(|_| "no answer in 60 s".to_owned())?
}

pub(crate) async fn get(address: &str, path: &str) -> Answer {
    let request = Request::get(path)
        .header("host", address)
        .body(Full::default())
        .unwrap();
    send(address, request).await.unwrap()
}

/// `POST /v1development/profiles` with these headers beside the content type.
pub(crate) async fn post(address: &str, body: impl Into<Bytes>, headers: &[(&str, &str)]) -> Result<Answer, String> {
    let mut request = Request::post("/v1development/profiles").header("host", address);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/x-protobuf");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(address, request.body(Full::new(body.into())).unwrap()).await
}

/// Sends a batch as the agent does: zstd, identity as headers.
pub(crate) async fn post_batch(
    address: &str,
    sender: &Sender,
    number: i64,
    request: &ExportProfilesServiceRequest,
) -> Result<Answer, String> {
    let body = zstd::stream::encode_all(request.encode_to_vec().as_slice(), 1).unwrap();
    let number = number.to_string();
    let headers = [
        ("content-encoding", "zstd"),
        ("stakeout-instance", sender.instance.as_str()),
        ("stakeout-batch", &number),
    ];
    post(address, body, &headers).await
}

/// The real binary.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts it on a port of its choice and returns when it answers.
    pub(crate) fn start(data: &Path, arguments: &[&str]) -> Self {
        Self::start_in(data, arguments, &[]).unwrap()
    }

    /// The same in an environment that has these too. An error, with what it said, where it ended before it listened.
    pub(crate) fn start_in(data: &Path, arguments: &[&str], more: &[(&str, String)]) -> Result<Self, String> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stakeout-server"))
            .args([
                "--listen",
                "127.0.0.1:0",
                "--commit-interval",
                "200ms",
                "--min-free",
                "1MiB",
                "--data",
            ])
            .arg(data)
            .args(arguments)
            .envs(more.iter().map(|(name, value)| (name, value)))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut seen = String::new();
        let address = loop {
            let mut line = String::new();
            if log.read_line(&mut line).unwrap() == 0 {
                child.wait().unwrap();
                return Err(format!("the server ended before it listened:\n{seen}"));
            }
            seen.push_str(&line);
            // The place of the data may be a URL too.
            let url = line.split_once("url=\"").filter(|_| line.contains("listening"));
            if let Some((_, rest)) = url.and_then(|(_, url)| url.split_once("://")) {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        // The rest of the log must be read, or the server would wait for it.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                eprintln!("server: {line}");
            }
        });
        Ok(Self { child, address })
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGHUP.
    pub(crate) fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// SIGTERM; returns whether it ended well.
    pub(crate) fn stop(&mut self) -> bool {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
