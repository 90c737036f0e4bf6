//! A relay before an S3 server: each request comes later by a while, is counted, and can be caught.
//!
//! In: HTTP/1.1 on a port of loopback, as it was signed. Out: the same requests; how many, with how many bytes, and how
//! many of them followed one another; and, where one is caught, which.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Bytes of a head of a request or an answer, beyond which it is none.
const MAX_HEAD: u64 = 64 << 10;
/// Requests whose times are kept for one look; what comes beyond is told.
const MOST_SPANS: usize = 1_000_000;
/// How often whoever is caught looks whether it may go.
const LOOK: Duration = Duration::from_millis(2);

/// Requests, and bytes of their bodies, but for what comes by time: renewals of leases, and signs of life.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    /// Of them those that change something.
    pub(crate) writes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// Requests that come by time.
    pub(crate) by_time: u64,
}

impl Traffic {
    /// What came after an earlier look.
    pub(crate) fn since(self, before: Traffic) -> Traffic {
        Traffic {
            requests: self.requests - before.requests,
            writes: self.writes - before.writes,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
            by_time: self.by_time - before.by_time,
        }
    }
}

/// What was asked of data files while that was timed. A question reads these alone: whoever follows other servers, or
/// looks for notes, reads none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timed {
    pub(crate) requests: u64,
    pub(crate) received_bytes: u64,
    /// The most requests of which each began after the one before had ended: no more of them waited for one another.
    pub(crate) chain: u64,
}

/// When a request is caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It never arrives.
    Before,
    /// It is done, and nobody hears of it.
    After,
}

/// Waits for the n-th request of a kind that changes something.
#[derive(Debug)]
struct Trap {
    /// As [`Head::step`] names it.
    step: String,
    left: u64,
    moment: Moment,
    caught: Option<String>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: AtomicU64,
    writes: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    by_time: AtomicU64,
    is_closed: AtomicBool,
    trap: Mutex<Option<Trap>>,
    /// How often each step was done, by its name.
    steps: Mutex<BTreeMap<String, u64>>,
    /// While requests are timed: those of data files.
    spans: Mutex<Option<Vec<Span>>>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    begin: Instant,
    end: Instant,
    received_bytes: u64,
}

/// What is guarded is changed in single steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries requests on to a server, each after a while, and answers back at once. Dropping it ends it for new
/// connections.
#[derive(Debug)]
pub(crate) struct Relay {
    address: String,
    shared: Arc<Shared>,
}

impl Relay {
    pub(crate) fn to(target: &str, latency: Duration) -> Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0").context("can't listen for the relay")?;
        let address = listener.local_addr()?.to_string();
        let shared = Arc::new(Shared::default());
        let (of_threads, target) = (Arc::clone(&shared), target.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if of_threads.is_closed.load(Relaxed) {
                    return;
                }
                let (shared, target) = (Arc::clone(&of_threads), target.clone());
                // An error ends the connection, of which the client learns by that.
                thread::spawn(move || carry(&client, &target, latency, &shared).ok());
            }
        });
        Ok(Relay { address, shared })
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What went through since the start.
    pub(crate) fn traffic(&self) -> Traffic {
        let Shared {
            requests,
            writes,
            sent_bytes,
            received_bytes,
            by_time,
            ..
        } = &*self.shared;
        Traffic {
            requests: requests.load(Relaxed),
            writes: writes.load(Relaxed),
            sent_bytes: sent_bytes.load(Relaxed),
            received_bytes: received_bytes.load(Relaxed),
            by_time: by_time.load(Relaxed),
        }
    }

    /// From now on times are kept of requests for data files.
    pub(crate) fn begin_timing(&self) {
        *lock(&self.shared.spans) = Some(Vec::new());
    }

    /// Those since [`Relay::begin_timing`]. None where there were too many to keep.
    pub(crate) fn end_timing(&self) -> Option<Timed> {
        // The last one is counted a moment after whoever asked has its answer.
        thread::sleep(LOOK * 5);
        let spans = lock(&self.shared.spans).take().unwrap_or_default();
        (spans.len() < MOST_SPANS).then(|| Timed {
            requests: spans.len() as u64,
            received_bytes: spans.iter().map(|span| span.received_bytes).sum(),
            chain: longest_chain(spans),
        })
    }

    /// How often each step was done since the start, or since the last look: requests that change something and do not
    /// come by time.
    pub(crate) fn take_steps(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *lock(&self.shared.steps))
    }

    /// Catches the n-th request from now on that is this step. From then on nothing is changed through this relay.
    pub(crate) fn catch(&self, step: &str, nth: u64, moment: Moment) {
        *lock(&self.shared.trap) = Some(Trap {
            step: step.to_owned(),
            left: nth,
            moment,
            caught: None,
        });
    }

    /// The request that was caught, in words.
    pub(crate) fn caught(&self) -> Option<String> {
        lock(&self.shared.trap).as_ref()?.caught.clone()
    }

    /// Catches nothing any more. What was held ends without an answer.
    pub(crate) fn release(&self) {
        *lock(&self.shared.trap) = None;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(&self.address);
    }
}

/// Of spans of time the most that follow each other without an overlap: whoever ends first is taken first.
fn longest_chain(mut spans: Vec<Span>) -> u64 {
    spans.sort_by_key(|span| span.end);
    let (mut length, mut last) = (0, None);
    for span in spans {
        if last.is_none_or(|last| span.begin >= last) {
            (length, last) = (length + 1, Some(span.end));
        }
    }
    length
}

impl Shared {
    /// Whether a request that changes something is the one to be caught, and when.
    fn meets(&self, request: &Head) -> Option<Moment> {
        let mut trap = lock(&self.trap);
        let trap = trap.as_mut()?;
        if trap.left == 0 {
            return Some(Moment::Before);
        }
        if request.step() != trap.step {
            return None;
        }
        trap.left -= 1;
        if trap.left > 0 {
            return None;
        }
        if trap.moment == Moment::Before {
            trap.caught = Some(request.step());
        }
        Some(trap.moment)
    }

    /// The request is done, of which nobody hears.
    fn caught_after(&self, request: &Head) {
        if let Some(trap) = lock(&self.trap).as_mut() {
            trap.caught = Some(request.step());
        }
    }

    /// Until nothing is caught any more.
    fn hold(&self) {
        while !self.is_closed.load(Relaxed) && lock(&self.trap).is_some() {
            thread::sleep(LOOK);
        }
    }

    fn count(&self, request: &Head, [sent, received]: [u64; 2], begun: Instant) {
        if request.is_by_time() {
            self.by_time.fetch_add(1, Relaxed);
            return;
        }
        self.requests.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(sent, Relaxed);
        self.received_bytes.fetch_add(received, Relaxed);
        if request.is_write() {
            *lock(&self.steps).entry(request.step()).or_default() += 1;
            self.writes.fetch_add(1, Relaxed);
        }
        if request.is_of_data()
            && let Some(spans) = lock(&self.spans).as_mut().filter(|spans| spans.len() < MOST_SPANS)
        {
            spans.push(Span {
                begin: begun,
                end: Instant::now(),
                received_bytes: received,
            });
        }
    }
}

/// One connection, until either end closes it.
fn carry(client: &TcpStream, target: &str, latency: Duration, shared: &Shared) -> Result<()> {
    let server = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut requests, mut answers) = (BufReader::new(client), BufReader::new(&server));
    while let Some(request) = Head::read(&mut requests)? {
        let begun = Instant::now();
        let is_step = request.is_write() && !request.is_by_time();
        let caught = if is_step { shared.meets(&request) } else { None };
        if caught == Some(Moment::Before) {
            shared.hold();
            bail!("caught before it arrives");
        }
        thread::sleep(latency);
        (&server).write_all(&request.bytes)?;
        let sent = copy(&mut requests, &server, request.length()?)?;
        let answer = Head::read(&mut answers)?.context("no answer")?;
        if caught == Some(Moment::After) {
            shared.caught_after(&request);
            shared.hold();
            bail!("caught before its answer");
        }
        let mut to = client;
        to.write_all(&answer.bytes)?;
        let has_none = [" 204", " 304"].iter().any(|status| answer.line().contains(status));
        let is_empty = has_none || request.line().starts_with("HEAD ");
        let received = match answer.value("transfer-encoding") {
            _ if is_empty => 0,
            Some(_) => copy_chunks(&mut answers, client)?,
            None => copy(&mut answers, client, answer.length()?)?,
        };
        shared.count(&request, [sent, received], begun);
        if answer
            .value("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
        {
            break;
        }
    }
    Ok(())
}

/// Of a request or an answer: its first line, its headers and the empty line.
struct Head {
    bytes: Vec<u8>,
    text: String,
}

impl Head {
    /// None where the connection has ended before one begins.
    fn read(from: &mut impl BufRead) -> Result<Option<Head>> {
        let (mut bytes, mut from) = (vec![], from.take(MAX_HEAD));
        loop {
            let begin = bytes.len();
            let read = from.read_until(b'\n', &mut bytes)?;
            match bytes.get(begin..) {
                Some(b"\r\n" | b"\n") if begin > 0 => break,
                _ if read == 0 && begin == 0 => return Ok(None),
                _ if read == 0 => bail!("a head ends early, or has more than {MAX_HEAD} bytes"),
                _ => {}
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(Head { bytes, text }))
    }

    fn line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.text.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Of the body.
    fn length(&self) -> Result<u64> {
        self.value("content-length").map_or(Ok(0), |value| {
            value.parse().with_context(|| format!("no length: {value}"))
        })
    }

    /// The object, or what is listed, and how.
    fn target(&self) -> &str {
        self.line().split(' ').nth(1).unwrap_or_default()
    }

    fn path(&self) -> &str {
        self.target().split('?').next().unwrap_or_default()
    }

    /// Renewals of leases, and servers' signs of life, also where these are listed.
    fn is_by_time(&self) -> bool {
        let is_of_servers = |folder: &&str| self.target().contains(*folder);
        self.path().ends_with("/lease") || ["/servers/", "%2Fservers%2F"].iter().any(is_of_servers)
    }

    /// Of a data file, not of a log.
    fn is_of_data(&self) -> bool {
        self.path().ends_with(".parquet") && !self.path().contains("/_delta_log/")
    }

    fn is_write(&self) -> bool {
        ["PUT ", "POST ", "DELETE "]
            .iter()
            .any(|method| self.line().starts_with(method))
    }

    /// What it does, as a step of something that is done again and again: numbers and hashes are left out.
    fn step(&self) -> String {
        let method = self.line().split(' ').next().unwrap_or_default();
        let query = self.target().split_once('?').map_or("", |(_, query)| query);
        let what = match method {
            "POST" if query.starts_with("uploads") => "begin an upload of",
            "POST" if query.contains("uploadId") => "end an upload of",
            "PUT" if query.contains("partNumber") => "put a part of",
            "PUT" if self.value("x-amz-copy-source").is_some() => "copy to",
            "PUT" => "put",
            _ => "delete",
        };
        // Behind the bucket and the store's own folder.
        let object: Vec<&str> = self.path().split('/').skip(3).collect();
        let name = object.last().copied().unwrap_or_default();
        let is_number = name
            .strip_suffix(".json")
            .is_some_and(|name| name.bytes().all(|c| c.is_ascii_digit()));
        let kind = match object.as_slice() {
            [_, "_delta_log", ..] if is_number => "an entry of its log",
            [_, "_delta_log", ..] if name.contains(".checkpoint.") => "a checkpoint of its log",
            [_, "_delta_log", ..] => name,
            [_, .., _] => "a file",
            _ => "an object",
        };
        let folder = object.first().copied().unwrap_or_default();
        format!("{what} {folder}: {kind}")
    }
}

/// So many bytes.
fn copy(from: &mut impl BufRead, mut to: &TcpStream, length: u64) -> Result<u64> {
    let copied = std::io::copy(&mut from.take(length), &mut to)?;
    ensure!(copied == length, "a body ends early");
    Ok(copied)
}

/// A body by chunks, as it is. Their bytes, without what is between them.
fn copy_chunks(from: &mut impl BufRead, mut to: &TcpStream) -> Result<u64> {
    let mut sum = 0;
    loop {
        let mut line = vec![];
        from.by_ref().take(MAX_HEAD).read_until(b'\n', &mut line)?;
        to.write_all(&line)?;
        let size = String::from_utf8_lossy(&line);
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).with_context(|| format!("not a chunk's size: {size}"))?;
        // With the end of its line; the last one is followed by an empty line alone.
        copy(from, to, size + 2)?;
        if size == 0 {
            return Ok(sum);
        }
        sum += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::within;

    #[test]
    fn a_relay_carries_requests_one_after_another_and_counts_them() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = server.local_addr().unwrap().to_string();
        let answers = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        ];
        let heads = thread::spawn(move || {
            let (stream, _) = server.accept().unwrap();
            let mut requests = BufReader::new(&stream);
            let mut lines = vec![];
            for answer in answers {
                let head = Head::read(&mut requests).unwrap().unwrap();
                let mut body = vec![0; usize::try_from(head.length().unwrap()).unwrap()];
                requests.read_exact(&mut body).unwrap();
                lines.push(format!("{} {}", head.line(), String::from_utf8(body).unwrap()));
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
            lines
        });
        let relay = Relay::to(&target, Duration::from_millis(1)).unwrap();
        let mut client = TcpStream::connect(&relay.address).unwrap();
        let requests = "PUT /b/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nput\
                        HEAD /b/a HTTP/1.1\r\nHost: x\r\n\r\n\
                        GET /b/a?list-type=2 HTTP/1.1\r\nHost: x\r\n\r\n\
                        PUT /b/lease HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1";
        client.write_all(requests.as_bytes()).unwrap();
        let mut told = String::new();
        client.read_to_string(&mut told).unwrap();
        assert_eq!(told, answers.concat());
        assert_eq!(
            heads.join().unwrap(),
            [
                "PUT /b/a HTTP/1.1 put",
                "HEAD /b/a HTTP/1.1 ",
                "GET /b/a?list-type=2 HTTP/1.1 ",
                "PUT /b/lease HTTP/1.1 1"
            ]
        );
        let told = relay.traffic();
        let counted = [
            told.requests,
            told.writes,
            told.sent_bytes,
            told.received_bytes,
            told.by_time,
        ];
        assert_eq!(counted, [3, 1, 3, 8, 1], "without the lease");
    }

    #[test]
    fn the_longest_chain_is_of_requests_that_followed_each_other() {
        let at = Instant::now();
        let span = |(from, until): (u64, u64)| Span {
            begin: at + Duration::from_millis(from),
            end: at + Duration::from_millis(until),
            received_bytes: 0,
        };
        assert_eq!(longest_chain(vec![]), 0);
        // Two at once, then one, then three at once, of which one is long.
        let spans = [(0, 10), (1, 11), (12, 20), (21, 40), (22, 30), (31, 39)];
        assert_eq!(longest_chain(spans.map(span).to_vec()), 4);
    }

    #[test]
    fn a_step_is_named_without_what_differs_each_time() {
        let step = |line: &str| {
            let text = format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n");
            Head::read(&mut text.as_bytes()).unwrap().unwrap().step()
        };
        for (line, told) in [
            (
                "PUT /b/p/samples/_delta_log/00000000000000000007.json",
                "put samples: an entry of its log",
            ),
            (
                "PUT /b/p/samples/_delta_log/_stakeout_sums",
                "put samples: _stakeout_sums",
            ),
            (
                "PUT /b/p/samples/hour%3D2026-11-21T08/part-1.parquet",
                "put samples: a file",
            ),
            (
                "POST /b/p/samples/hour%3D2026-11-21T08/x.parquet?uploads=",
                "begin an upload of samples: a file",
            ),
            (
                "PUT /b/p/samples/hour%3D1/x.parquet?partNumber=2&uploadId=7",
                "put a part of samples: a file",
            ),
            (
                "POST /b/p/samples/hour%3D1/x.parquet?uploadId=7",
                "end an upload of samples: a file",
            ),
            ("PUT /b/p/format.json", "put format.json: an object"),
            ("POST /b?delete=", "delete : an object"),
        ] {
            assert_eq!(step(line), told, "{line}");
        }
    }

    #[test]
    fn what_is_caught_arrives_or_not_and_nothing_is_changed_after_it() {
        for (moment, arrived) in [(Moment::Before, 2), (Moment::After, 3)] {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let target = server.local_addr().unwrap().to_string();
            let answers = thread::spawn(move || {
                let mut heads = 0;
                for _ in 0..2 {
                    let (stream, _) = server.accept().unwrap();
                    let mut requests = BufReader::new(&stream);
                    while let Ok(Some(_)) = Head::read(&mut requests) {
                        heads += 1;
                        (&stream)
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                            .unwrap();
                    }
                }
                heads
            });
            let relay = Relay::to(&target, Duration::ZERO).unwrap();
            relay.catch("put samples: a file", 2, moment);
            let put = "PUT /b/p/samples/x HTTP/1.1\r\nHost: x\r\n\r\n";
            let mut first = TcpStream::connect(&relay.address).unwrap();
            // Of another kind, it is none of those that are waited for.
            let other = put.replace("samples", "stacks");
            let three = [put, other.as_str(), put].concat();
            first.write_all(three.as_bytes()).unwrap();
            assert!(within(Duration::from_secs(60), || Ok(relay.caught().is_some())).unwrap());
            let mut second = TcpStream::connect(&relay.address).unwrap();
            second.write_all(put.as_bytes()).unwrap();
            // It is held, too, by the time that its connection has been taken.
            thread::sleep(Duration::from_millis(50));
            relay.release();
            let mut told = String::new();
            first.read_to_string(&mut told).unwrap_or_default();
            drop((first, second));
            assert_eq!(told.matches("200 OK").count(), 2);
            let steps = relay.take_steps();
            assert_eq!((steps["put samples: a file"], steps["put stacks: a file"]), (1, 1));
            let heads = answers.join().unwrap();
            assert!(heads == arrived || heads == arrived + 1, "{heads}");
        }
    }
}
