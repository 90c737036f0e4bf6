//! A server on loopback that answers by a script and keeps the rules of the real one: of each instance it takes a
//! number once, and acknowledges without storing what is further below the highest than it remembers.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;

/// Longer than anything here takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// How far below the highest number of an instance the server knows which it has.
const WINDOW: u64 = 64;

/// What the peer does with one request. When the script is used up, it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Accept,
    /// Stores the batch, but the answer is lost.
    AcceptAndHangUp,
    /// Closes without having stored anything.
    HangUp,
    /// Stores the batch without its first samples, this many, and says so.
    AcceptWithout(u64),
    /// Never answers.
    Silence,
    /// Accepts, but answers only after [`Peer::release`].
    Stall,
    Status(u16),
    /// 503 with Retry-After in seconds.
    Later(u32),
    /// Answers 200 as any web server may.
    Welcome,
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) path: String,
    pub(crate) instance: String,
    pub(crate) number: u64,
    /// Time stamps of all samples, which the tests make unique.
    pub(crate) samples: Vec<u64>,
    /// `stakeout.*` resource attributes that are integers.
    pub(crate) report: BTreeMap<String, i64>,
}

impl Seen {
    /// The sum of all causes of loss.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.report.iter().filter(|(key, _)| key.starts_with("stakeout.lost."));
        lost.map(|(_, samples)| samples.cast_unsigned()).sum()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) script: VecDeque<Step>,
    /// What is done once the script is used up.
    pub(crate) otherwise: Option<Step>,
    pub(crate) attempts: Vec<Seen>,
    pub(crate) stored: Vec<Seen>,
    released: bool,
}

impl Log {
    /// Of the stored batches the one with the highest number.
    pub(crate) fn newest(&self) -> Option<&Seen> {
        self.stored.iter().max_by_key(|seen| seen.number)
    }

    /// All stored samples, sorted.
    pub(crate) fn samples(&self) -> Vec<u64> {
        let mut samples: Vec<u64> = self.stored.iter().flat_map(|seen| seen.samples.clone()).collect();
        samples.sort_unstable();
        samples
    }

    /// The stored numbers of an instance, sorted.
    pub(crate) fn numbers(&self, instance: &str) -> Vec<u64> {
        let of_instance = self.stored.iter().filter(|seen| seen.instance == instance);
        let mut numbers: Vec<u64> = of_instance.map(|seen| seen.number).collect();
        numbers.sort_unstable();
        numbers
    }
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    shared: Arc<(Mutex<Log>, Condvar)>,
}

impl Peer {
    pub(crate) fn start(script: &[Step]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Log {
            script: script.iter().copied().collect(),
            ..Log::default()
        };
        let shared = Arc::new((Mutex::new(log), Condvar::new()));
        let accepting = Arc::clone(&shared);
        // Ends with the test's process: nothing is left to clean up.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn otherwise(&self, step: Step) {
        self.shared.0.lock().unwrap().otherwise = Some(step);
    }

    pub(crate) fn log<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        read(&self.shared.0.lock().unwrap())
    }

    /// Lets the stalled requests go on.
    pub(crate) fn release(&self) {
        self.shared.0.lock().unwrap().released = true;
        self.shared.1.notify_all();
    }

    /// Waits until something is true that no request tells.
    pub(crate) fn wait_for(&self, what: &str, done: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done() {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            std::thread::yield_now();
        }
    }

    /// Waits until `done` is true of the log.
    pub(crate) fn wait(&self, what: &str, done: impl Fn(&Log) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut log = self.shared.0.lock().unwrap();
        while !done(&log) {
            let left = deadline.checked_duration_since(Instant::now());
            let left = left.unwrap_or_else(|| panic!("waited in vain: {what}\n{:#?}", log.attempts));
            log = self.shared.1.wait_timeout(log, left).unwrap().0;
        }
    }
}

fn serve(stream: TcpStream, shared: &(Mutex<Log>, Condvar)) {
    let mut reader = BufReader::new(stream);
    while let Some((path, headers, body)) = request(&mut reader) {
        let seen = seen(path, headers, &body);
        let step = {
            let mut log = shared.0.lock().unwrap();
            let mut step = log.script.pop_front().or(log.otherwise).unwrap_or(Step::Accept);
            let of_instance = || {
                log.stored
                    .iter()
                    .filter(|s| s.instance == seen.instance)
                    .map(|s| s.number)
            };
            let highest = of_instance().max().unwrap_or(0);
            let repeat = of_instance().any(|number| number == seen.number);
            if repeat || seen.number + WINDOW < highest {
                // A repeat of what is stored is not refused.
                if matches!(step, Step::Status(400 | 413)) {
                    step = Step::Accept;
                }
            } else if matches!(step, Step::Accept | Step::AcceptAndHangUp | Step::Stall) {
                log.stored.push(seen.clone());
            } else if let Step::AcceptWithout(samples) = step {
                let mut part = seen.clone();
                part.samples.sort_unstable();
                part.samples.drain(..samples as usize);
                log.stored.push(part);
            }
            log.attempts.push(seen);
            step
        };
        shared.1.notify_all();
        if step == Step::Stall {
            let log = shared.0.lock().unwrap();
            drop(shared.1.wait_while(log, |log| !log.released).unwrap());
        }
        let (status, extra, text) = match step {
            Step::Accept | Step::Stall => (200, "content-type: application/x-protobuf\r\n".to_owned(), ""),
            Step::AcceptWithout(samples) => (
                200,
                format!("content-type: application/x-protobuf\r\nstakeout-rejected-samples: {samples}\r\n"),
                // partial_success { rejected_profiles: 1 }
                "\n\x02\x08\x01",
            ),
            Step::Welcome => (200, "content-type: text/html\r\n".to_owned(), "<h1>It works!</h1>"),
            Step::Status(status) => (
                status,
                String::new(),
                r#"{"error":{"code":"x","message":"scripted","hint":""}}"#,
            ),
            Step::Later(seconds) => (503, format!("retry-after: {seconds}\r\n"), "busy"),
            Step::AcceptAndHangUp | Step::HangUp => return,
            Step::Silence => {
                // Until the other side gives up.
                let _ = reader.read(&mut [0]);
                return;
            }
        };
        let answer = format!(
            "HTTP/1.1 {status} Scripted\r\n{extra}content-length: {}\r\n\r\n{text}",
            text.len()
        );
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// One request of HTTP/1.1; `None` when the other side is gone.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, BTreeMap<String, String>, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((path, headers, body))
}

fn seen(path: String, headers: BTreeMap<String, String>, body: &[u8]) -> Seen {
    let request = ExportProfilesServiceRequest::decode(&zstd::decode_all(body).unwrap()[..]).unwrap();
    let resource = request.resource_profiles[0].resource.clone().unwrap();
    let report = resource
        .attributes
        .into_iter()
        .filter_map(|attribute| match attribute.value?.value? {
            Value::IntValue(value) => Some((attribute.key, value)),
            _ => None,
        })
        .collect();
    let profiles = &request.resource_profiles[0].scope_profiles[0].profiles;
    let samples = profiles
        .iter()
        .flat_map(|p| &p.samples)
        .flat_map(|s| s.timestamps_unix_nano.clone())
        .collect();
    let instance = headers["stakeout-instance"].clone();
    let number = headers["stakeout-batch"].parse().unwrap();
    Seen {
        headers,
        path,
        instance,
        number,
        samples,
        report,
    }
}
