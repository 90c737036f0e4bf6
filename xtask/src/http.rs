//! A small HTTP/1.1 client for loopback: one connection a request, bodies by length, by chunk or until the end.
//!
//! The development commands speak to a server that they started themselves; a client library with TLS, pools and
//! redirects would only make the first build longer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// An answer: the status, the header lines (names in lower case) and the whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("not JSON: {}", clip(&self.text())))
    }

    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// One server by its base URL, such as `http://127.0.0.1:7373`.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    base: String,
}

impl Client {
    pub(crate) fn new(base: &str) -> Client {
        Client {
            base: base.trim_end_matches('/').to_owned(),
        }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// `GET path`, with its query already encoded (see [`path`]).
    pub(crate) fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, &[], b"")
    }

    /// `GET path`; anything but 200 is an error that carries what the server said.
    pub(crate) fn get_ok(&self, path: &str) -> Result<Answer> {
        let answer = self.get(path)?;
        ensure!(
            answer.status == 200,
            "GET {path} answered {}: {}",
            answer.status,
            clip(&answer.text())
        );
        Ok(answer)
    }

    /// `GET path` as JSON.
    pub(crate) fn get_json(&self, path: &str) -> Result<Value> {
        self.get_ok(path)?.json()
    }

    /// The rows of a read-only SQL query.
    pub(crate) fn sql(&self, query: &str) -> Result<Vec<Vec<Value>>> {
        let body = serde_json::json!({ "query": query }).to_string();
        let answer = self.send(
            "POST",
            "/api/v1/sql",
            &[("content-type", "application/json")],
            body.as_bytes(),
        )?;
        ensure!(
            answer.status == 200,
            "SQL `{query}` answered {}: {}",
            answer.status,
            clip(&answer.text())
        );
        let rows = answer.json()?["rows"].take();
        serde_json::from_value(rows).context("the SQL answer has no rows")
    }

    /// The single number that a SQL query yields; no row and null count as 0.
    pub(crate) fn sql_number(&self, query: &str) -> Result<i64> {
        let rows = self.sql(query)?;
        Ok(rows.first().and_then(|row| row.first()).map_or(0, integer))
    }

    /// Rows of the tables of samples and of waits that match: an agent's account is of both.
    pub(crate) fn stored_rows(&self, condition: &str) -> Result<i64> {
        let of = |table| self.sql_number(&format!("SELECT count(*) FROM {table} WHERE {condition}"));
        Ok(of("samples")? + of("waits")?)
    }

    /// As [`Client::stored_rows`], each once. A wait may end at the instant at which another one begins, or a tick
    /// comes; a CPU has one sample of a thread and type at an instant.
    pub(crate) fn distinct_rows(&self, condition: &str) -> Result<i64> {
        let of = |table| {
            let rows = format!("SELECT DISTINCT node, type, cpu, tid, ts_ns FROM {table} WHERE {condition}");
            self.sql_number(&format!("SELECT count(*) FROM ({rows})"))
        };
        Ok(of("samples")? + of("waits")?)
    }

    /// Any request. Errors are those of the connection; every status is an answer.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
        let authority = self
            .base
            .strip_prefix("http://")
            .with_context(|| format!("{} is not an http URL", self.base))?;
        let mut stream = connect(authority)?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method != "GET" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        // A server may answer before it has read the whole body and close: then writing fails and reading still works.
        let written = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        read_answer(&mut BufReader::new(stream))
            .with_context(|| format!("no answer from {}{path}", self.base))
            .or_else(|error| written.map_err(anyhow::Error::from).and(Err(error)))
    }
}

/// A connection to `HOST:PORT` that gives up after two minutes of silence.
pub(crate) fn connect(authority: &str) -> Result<TcpStream> {
    let unreachable = || format!("can't connect to {authority}");
    let address = authority
        .to_socket_addrs()
        .with_context(unreachable)?
        .next()
        .with_context(unreachable)?;
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10)).with_context(unreachable)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    stream.set_write_timeout(Some(Duration::from_secs(120)))?;
    Ok(stream)
}

/// Reads status, headers and body.
pub(crate) fn read_answer(from: &mut impl BufRead) -> Result<Answer> {
    let status_line = line(from)?;
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("not an HTTP answer: {}", clip(&status_line)))?;
    let mut headers = vec![];
    loop {
        let line = line(from)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line
            .split_once(':')
            .with_context(|| format!("not a header: {}", clip(&line)))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer {
        status,
        headers,
        body: vec![],
    };
    if answer
        .header("transfer-encoding")
        .is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked"))
    {
        loop {
            let size = line(from)?;
            let size = u64::from_str_radix(size.split(';').next().unwrap_or(""), 16).context("not a chunk's size")?;
            let read = from.by_ref().take(size).read_to_end(&mut answer.body)?;
            ensure!(read as u64 == size, "the answer ends within a chunk");
            line(from)?;
            if size == 0 {
                return Ok(answer);
            }
        }
    }
    match answer.header("content-length").map(str::parse::<u64>) {
        Some(Ok(length)) => {
            let read = from.by_ref().take(length).read_to_end(&mut answer.body)?;
            ensure!(read as u64 == length, "the answer ends after {read} of {length} bytes");
        }
        Some(Err(error)) => bail!("not a content-length: {error}"),
        None => {
            from.read_to_end(&mut answer.body)?;
        }
    }
    Ok(answer)
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut text = String::new();
    ensure!(
        from.by_ref().take(65_536).read_line(&mut text)? > 0,
        "the connection ended early"
    );
    Ok(text.trim_end().to_owned())
}

/// A path with its query, percent-encoded: `path("/api/v1/top", &[("by", "function")])`.
pub(crate) fn path(path: &str, query: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = query
        .iter()
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    if pairs.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3).
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// A JSON number, or one that came as a string because it is beyond 2^53; 0 for anything else.
pub(crate) fn integer(value: &Value) -> i64 {
    match value {
        Value::Number(number) => number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or(0.0) as i64),
        Value::String(text) => text.parse().unwrap_or(0),
        _ => 0,
    }
}

/// Of a row of `/api/v1/nodes`: all samples that its agent lost, of any cause.
pub(crate) fn samples_lost(node: &Value) -> i64 {
    let causes = node["samples_lost"].as_object().into_iter().flatten();
    causes.map(|(_, count)| integer(count)).sum()
}

fn clip(text: &str) -> String {
    text.chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_bodies_by_length_by_chunk_and_to_the_end() {
        for (text, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more", "hello"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
                "hello",
            ),
            ("HTTP/1.1 200 OK\r\n\r\nhello", "hello"),
        ] {
            let answer = read_answer(&mut text.as_bytes()).unwrap();
            assert_eq!((answer.status, answer.text().as_str()), (200, body));
        }
    }

    #[test]
    fn a_cut_answer_is_an_error() {
        for text in [
            "",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
            "HTTP/1.1 200 OK\r\n",
            "garbage\r\n\r\n",
        ] {
            assert!(read_answer(&mut text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn encodes_a_selector() {
        assert_eq!(
            path("/a", &[("query", "{b=\"c d\"}")]),
            "/a?query=%7Bb%3D%22c%20d%22%7D"
        );
    }
}
