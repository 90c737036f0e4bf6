//! A bucket of a real S3 server behind a delay: where `bench store --bucket` has the store.
//!
//! In: a folder, the delay of a request. Out: where a server finds the bucket, and what went to it and came back.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::go_tools::VERSITYGW;
use crate::service::{POLL, Service};
use crate::stack::{Elsewhere, alive, free_address};

const BUCKET: &str = "profiles";
const KEY: &str = "bench";
const SECRET: &str = "bench-secret";
const REGION: &str = "us-east-1";
/// The S3 server listens by then.
const STARTS: Duration = Duration::from_secs(20);
/// Bytes of a head of a request or an answer, beyond which it is none.
const MAX_HEAD: u64 = 64 << 10;

/// The server and the relay before it. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Bucket {
    relay: Relay,
    _server: Service,
}

impl Bucket {
    /// Over a folder of `dir`, each request later by so much.
    pub(super) fn start(dir: &Path, latency: Duration) -> Result<Bucket> {
        let program = VERSITYGW.path()?;
        let objects = dir.join("objects");
        fs::create_dir_all(objects.join(BUCKET)).with_context(|| format!("can't make {}", objects.display()))?;
        let address = free_address("127.0.0.1:0")?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .args(["--access", KEY, "--secret", SECRET, "--region", REGION])
            .args(["--port", &address, "--keep-alive", "--quiet", "posix"])
            .arg(&objects);
        let mut server = Service::start("S3 server", &mut command, &dir.join("s3.log"))?;
        let deadline = Instant::now() + STARTS;
        while TcpStream::connect(&address).is_err() {
            alive(&mut server)?;
            ensure!(
                Instant::now() < deadline,
                "the S3 server does not listen:\n{}",
                server.last_lines(10)
            );
            thread::sleep(POLL);
        }
        Ok(Bucket {
            relay: Relay::to(&address, latency)?,
            _server: server,
        })
    }

    /// Where a server has its data here.
    pub(super) fn place(&self) -> Elsewhere {
        let environment = [
            ("AWS_ENDPOINT", format!("http://{}", self.relay.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", REGION.to_owned()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
        ];
        Elsewhere {
            data: format!("s3://{BUCKET}/bench"),
            environment: environment.to_vec(),
        }
    }

    /// What went through since the start, but for renewals of the lease: those come by time.
    pub(super) fn traffic(&self) -> Traffic {
        let counts = &self.relay.counts;
        Traffic {
            requests: counts.requests.load(Relaxed),
            sent_bytes: counts.sent_bytes.load(Relaxed),
            received_bytes: counts.received_bytes.load(Relaxed),
        }
    }
}

/// Requests, and bytes of their bodies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) requests: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
}

impl Traffic {
    /// What came after an earlier look.
    pub(super) fn since(self, before: Traffic) -> Traffic {
        Traffic {
            requests: self.requests - before.requests,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    is_closed: AtomicBool,
}

/// Carries requests on to a server, each after a while, and answers back at once.
#[derive(Debug)]
struct Relay {
    address: String,
    counts: Arc<Counts>,
}

impl Relay {
    fn to(target: &str, latency: Duration) -> Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0").context("can't listen for the relay")?;
        let address = listener.local_addr()?.to_string();
        let counts = Arc::new(Counts::default());
        let (shared, target) = (Arc::clone(&counts), target.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.is_closed.load(Relaxed) {
                    return;
                }
                let (shared, target) = (Arc::clone(&shared), target.clone());
                // An error ends the connection, of which the client learns by that.
                thread::spawn(move || carry(&client, &target, latency, &shared).ok());
            }
        });
        Ok(Relay { address, counts })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.counts.is_closed.store(true, Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(&self.address);
    }
}

/// One connection, until either end closes it.
fn carry(client: &TcpStream, target: &str, latency: Duration, counts: &Counts) -> Result<()> {
    let server = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut requests, mut answers) = (BufReader::new(client), BufReader::new(&server));
    while let Some(request) = Head::read(&mut requests)? {
        thread::sleep(latency);
        (&server).write_all(&request.bytes)?;
        let sent = copy(&mut requests, &server, request.length()?)?;
        let answer = Head::read(&mut answers)?.context("no answer")?;
        let mut to = client;
        to.write_all(&answer.bytes)?;
        let has_none = [" 204", " 304"].iter().any(|status| answer.line().contains(status));
        let is_empty = has_none || request.line().starts_with("HEAD ");
        let received = match answer.value("transfer-encoding") {
            _ if is_empty => 0,
            Some(_) => copy_chunks(&mut answers, client)?,
            None => copy(&mut answers, client, answer.length()?)?,
        };
        if !request.is_of_lease() {
            counts.requests.fetch_add(1, Relaxed);
            counts.sent_bytes.fetch_add(sent, Relaxed);
            counts.received_bytes.fetch_add(received, Relaxed);
        }
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

    fn is_of_lease(&self) -> bool {
        let path = self.line().split(' ').nth(1).unwrap_or_default();
        path.split('?').next().is_some_and(|path| path.ends_with("/lease"))
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
        let counts = &relay.counts;
        let counted = [&counts.requests, &counts.sent_bytes, &counts.received_bytes].map(|count| count.load(Relaxed));
        assert_eq!(counted, [3, 3, 8], "without the lease");
    }
}
