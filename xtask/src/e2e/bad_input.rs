//! Bad input gets a clear error and does no harm: the server answers as before, stores nothing of it, and stays small.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::outage::load_program;
use super::scene::Scene;
use crate::artifacts::Profile;
use crate::http::{Answer, connect, path};
use crate::proc::size_bytes;
use crate::run;
use crate::service::{Service, within};
use crate::stack::{self, Alone, Options, free_address, start_agent, start_server};

/// A server alone, for tests that need no agent.
fn server(scene: &Scene<'_>, dir: &std::path::Path) -> Result<Alone> {
    Alone::start(scene.options(dir, 20), &[], scene.stop)
}

/// The answer is this status with `{"error":{"code","message","hint"}}`, and the message names what was wrong.
pub(super) fn refused(what: &str, answer: &Answer, status: u16, code: &str, names: &str) -> Result<()> {
    let said = answer.text();
    ensure!(
        answer.status == status,
        "{what}: {} instead of {status}: {said}",
        answer.status
    );
    // To who sent protobuf it is told in protobuf, with the code in a header.
    if let Some(found) = answer.header("stakeout-error") {
        ensure!(found == code, "{what}: code `{found}` instead of `{code}`: {said}");
        ensure!(said.contains(names), "{what}: doesn't name `{names}`: {said}");
        println!("  {what}: {status} {code}: {said}");
        return Ok(());
    }
    let error = answer.json().with_context(|| what.to_owned())?["error"].take();
    let (found, message) = (
        error["code"].as_str().unwrap_or(""),
        error["message"].as_str().unwrap_or(""),
    );
    ensure!(found == code, "{what}: code `{found}` instead of `{code}`: {said}");
    let hint = error["hint"].as_str().unwrap_or("");
    ensure!(
        !message.is_empty() && format!("{message} {hint}").contains(names),
        "{what}: doesn't name `{names}`: {said}"
    );
    println!("  {what}: {status} {code}: {message}");
    Ok(())
}

/// Queries that can't be answered.
pub(crate) fn queries(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut alone = server(scene, dir.path())?;
    let client = &alone.client;
    let long = format!("{{service=~\"{}\"}}", "(a|b){50}".repeat(2000));
    let repeated = "{service=~\"((a{1000}){1000}){1000}\"}";
    /// What is wrong, path, parameters, the error's code, what its message or hint must name.
    type Wrong<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: &[Wrong<'_>] = &[
        (
            "selector syntax",
            "/api/v1/flamegraph",
            &[("query", "{service=kubelet}")],
            "bad_query",
            "\"",
        ),
        (
            "selector without end",
            "/api/v1/flamegraph",
            &[("query", "{service=\"a\"")],
            "bad_query",
            "}",
        ),
        (
            "unknown label",
            "/api/v1/flamegraph",
            &[("query", "{servce=\"a\"}")],
            "bad_query",
            "service",
        ),
        (
            "regex too large",
            "/api/v1/flamegraph",
            &[("query", repeated)],
            "bad_query",
            "large",
        ),
        (
            "regex of 18 KB",
            "/api/v1/flamegraph",
            &[("query", &long)],
            "bad_query",
            "",
        ),
        (
            "regex syntax",
            "/api/v1/flamegraph",
            &[("query", "{service=~\"(\"}")],
            "bad_query",
            "malformed",
        ),
        (
            "from after until",
            "/api/v1/flamegraph",
            &[("from", "now-1m"), ("until", "now-1h")],
            "bad_time",
            "until",
        ),
        (
            "no time",
            "/api/v1/flamegraph",
            &[("from", "yesterday")],
            "bad_time",
            "yesterday",
        ),
        (
            "unknown format",
            "/api/v1/flamegraph",
            &[("format", "gif")],
            "bad_parameter",
            "svg",
        ),
        (
            "unknown parameter",
            "/api/v1/flamegraph",
            &[("quer", "{}")],
            "bad_parameter",
            "quer",
        ),
        (
            "diff by an unknown measure",
            "/api/v1/diff",
            &[
                ("base_from", "now-3h"),
                ("base_until", "now-2h"),
                ("normalize", "maybe"),
            ],
            "bad_parameter",
            "share",
        ),
        (
            "top by nothing",
            "/api/v1/top",
            &[("by", "colour")],
            "bad_parameter",
            "colour",
        ),
        (
            "series without step",
            "/api/v1/series",
            &[("step", "-5s")],
            "bad_parameter",
            "step",
        ),
    ];
    let mut bad = vec![];
    for (what, at, query, code, names) in cases {
        let answer = client.get(&path(at, query))?;
        if let Err(error) = refused(what, &answer, 400, code, names) {
            bad.push(format!("{error:#}"));
        }
    }
    let sql = |query: &str| {
        let body = serde_json::json!({ "query": query }).to_string();
        client.send(
            "POST",
            "/api/v1/sql",
            &[("content-type", "application/json")],
            body.as_bytes(),
        )
    };
    for query in [
        "DROP TABLE samples",
        "CREATE TABLE x (a INT)",
        "INSERT INTO samples VALUES (1)",
        "SELEC 1",
        "COPY samples TO 'x'",
    ] {
        let answer = sql(query)?;
        if let Err(error) = refused(query, &answer, 400, "bad_query", "") {
            bad.push(format!("{error:#}"));
        }
    }
    // No data is no error.
    let empty = client.get(&path("/api/v1/flamegraph", &[("from", "now-3h"), ("until", "now-2h")]))?;
    ensure!(
        empty.status == 200 && empty.json()?["samples"] == 0,
        "a window without data answers {}",
        empty.text()
    );
    let nowhere = client.get("/api/v1/nothing")?;
    ensure!(nowhere.status == 404, "an unknown path answers {}", nowhere.status);
    ensure!(bad.is_empty(), "{}", bad.join("\n"));
    alone.stop()
}

/// Requests to ingest that are wrong in every way, and a decompression bomb.
pub(crate) fn profiles(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    // What is ahead is left out at once: the clock of this machine is set.
    let more = ["--clock-wait", "1ms", "--commit-interval", "200ms"];
    let mut alone = Alone::start(scene.options(dir.path(), 20), &more, scene.stop)?;
    let client = &alone.client;
    let load = load_program(Profile::Debug)?;
    let spoilt = |how: &str| -> Result<Vec<u8>> {
        let output = Command::new(&load)
            .args(["--spoil", how])
            .output()
            .context("can't start the load")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    };
    let protobuf = ("content-type", "application/x-protobuf");
    let post = |headers: &[(&str, &str)], body: &[u8]| client.send("POST", "/v1development/profiles", headers, body);
    let good = spoilt("good")?;
    let mut bad = vec![];
    let mut expect = |what: &str, answer: Result<Answer>, status: u16, code: &str, names: &str| {
        if let Err(error) = answer.and_then(|answer| refused(what, &answer, status, code, names)) {
            bad.push(format!("{error:#}"));
        }
    };
    expect(
        "garbage",
        post(&[protobuf], &spoilt("garbage")?),
        400,
        "bad_profile",
        "",
    );
    expect(
        "truncated",
        post(&[protobuf], &spoilt("truncated")?),
        400,
        "bad_profile",
        "",
    );
    expect(
        "stack index",
        post(&[protobuf], &spoilt("stack")?),
        400,
        "bad_profile",
        "1000000",
    );
    expect(
        "mapping index",
        post(&[protobuf], &spoilt("mapping")?),
        400,
        "bad_profile",
        "-7",
    );
    expect(
        "string index",
        post(&[protobuf], &spoilt("string")?),
        400,
        "bad_profile",
        "2147483647",
    );
    let text = ("content-type", "text/plain");
    expect(
        "content type",
        post(&[text], &good),
        415,
        "unsupported_media_type",
        "application/x-protobuf",
    );
    let json = ("content-type", "application/json");
    expect("protobuf as JSON", post(&[json], &good), 400, "bad_profile", "as JSON");
    let brotli = ("content-encoding", "br");
    expect(
        "encoding",
        post(&[protobuf, brotli], &good),
        415,
        "unsupported_media_type",
        "zstd",
    );
    let zstd = ("content-encoding", "zstd");
    expect("not zstd", post(&[protobuf, zstd], &good), 400, "bad_profile", "zstd");
    let instance = ("stakeout-instance", "not-a-uuid");
    expect(
        "instance",
        post(&[protobuf, instance, ("stakeout-batch", "1")], &good),
        400,
        "bad_profile",
        "not-a-uuid",
    );
    let before = size_bytes(alone.server.pid(), "VmRSS")?;
    let bomb = spoilt("bomb")?;
    println!("  bomb: {} bytes stand for 1 GiB", bomb.len());
    expect("bomb", post(&[protobuf, zstd], &bomb), 413, "too_large", "");
    let grown = size_bytes(alone.server.pid(), "VmRSS")?.saturating_sub(before);
    ensure!(grown < 300 << 20, "the bomb made the server {} MiB larger", grown >> 20);
    for how in ["future", "past"] {
        let answer = post(&[protobuf], &spoilt(how)?)?;
        println!(
            "  {how}: {} {}",
            answer.status,
            answer.text().chars().filter(|c| !c.is_control()).collect::<String>()
        );
        ensure!(
            matches!(answer.status, 200 | 400),
            "time stamps of the {how} answer {}",
            answer.status
        );
    }
    let answer = post(&[protobuf], &good)?;
    ensure!(
        answer.status == 200,
        "after all this a good request is refused: {}",
        answer.text()
    );
    let stored = client.sql_number("SELECT count(*) FROM samples")?;
    ensure!(
        stored == 1000,
        "{stored} samples are stored instead of the good request's 1000"
    );
    ensure!(bad.is_empty(), "{}", bad.join("\n"));
    alone.stop()
}

/// 10,000 connections at once that send half a request and wait: the server goes on answering, and afterwards is as
/// before.
pub(crate) fn ten_thousand_connections(scene: &Scene<'_>) -> Result<()> {
    const WANTED: usize = 10_000;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted_files = WANTED as u64 + 1000;
    // Root may raise the limit; others get as far as they are allowed.
    if setrlimit(Resource::RLIMIT_NOFILE, wanted_files, hard.max(wanted_files)).is_err() {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    let count = WANTED.min(usize::try_from(getrlimit(Resource::RLIMIT_NOFILE)?.0)?.saturating_sub(500));
    let dir = tempfile::tempdir()?;
    let mut alone = server(scene, dir.path())?;
    let (options, client) = (&alone.options, &alone.client);
    let before = size_bytes(alone.server.pid(), "VmRSS")?;
    let mut open = vec![];
    let mut refused = 0;
    let begin = Instant::now();
    while open.len() + refused < count && begin.elapsed() < Duration::from_secs(60) {
        let connection = options.listen.parse().map_err(anyhow::Error::from).and_then(|address| {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
            stream.write_all(b"POST /v1development/profiles HTTP/1.1\r\nhost: localhost\r\n")?;
            Ok(stream)
        });
        match connection {
            Ok(stream) => open.push(stream),
            Err(_) => refused += 1,
        }
    }
    println!(
        "  {} connections open, {refused} refused, after {:.1} s",
        open.len(),
        begin.elapsed().as_secs_f64()
    );
    // A whole request either is served beside them or gets its turn when the server gives the silent ones up.
    let served = Instant::now();
    let mut answer = client.get("/healthz");
    while !answer.as_ref().is_ok_and(|answer| answer.status == 200) && served.elapsed() < Duration::from_secs(120) {
        scene.stop.check()?;
        stack::alive(&mut alone.server)?;
        std::thread::sleep(Duration::from_millis(200));
        answer = client.get("/healthz");
    }
    ensure!(
        answer?.status == 200,
        "no answer beside {} silent connections",
        open.len()
    );
    println!(
        "  /healthz answered after {:.1} s, server {} MiB larger",
        served.elapsed().as_secs_f64(),
        size_bytes(alone.server.pid(), "VmRSS")?.saturating_sub(before) >> 20
    );
    drop(open);
    let answer = client.get("/readyz")?;
    ensure!(answer.status == 200, "afterwards /readyz answers {}", answer.status);
    alone.stop()
}

/// Starts that can't work: each ends soon with a message that says why.
pub(crate) fn starts(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut alone = server(scene, dir.path())?;
    let (options, client) = (&alone.options, &alone.client);
    let other = tempfile::tempdir()?;
    let fails = |what: &str, mut service: Service, names: &[&str]| -> Result<()> {
        let status = service
            .wait(Duration::from_secs(20))
            .with_context(|| format!("{what}: still running after 20 s"))?;
        let said = service.output();
        ensure!(!status.success(), "{what}: ended with {status}: {said}");
        for name in names {
            ensure!(said.contains(name), "{what}: doesn't name `{name}`: {said}");
        }
        ensure!(
            !said.contains("panicked") && said.lines().count() <= 8,
            "{what}: not a clear message: {said}"
        );
        println!("  {what}: {}", said.trim().lines().last().unwrap_or(""));
        Ok(())
    };
    let elsewhere = Options {
        state_dir: other.path().to_owned(),
        ..options.clone()
    };
    fails(
        "port in use",
        start_server(&elsewhere, &options.listen, &[])?,
        &[&options.listen],
    )?;
    let free = free_address("127.0.0.1:0")?;
    fails("data in use", start_server(options, &free, &[])?, &["data"])?;
    // A file where a folder belongs stops root too, whom permissions don't.
    fs::write(other.path().join("data"), b"")?;
    fails(
        "unwritable data directory",
        start_server(&elsewhere, &free, &[])?,
        &["data"],
    )?;
    fs::remove_file(other.path().join("data"))?;
    fails(
        "address without tokens",
        start_server(&elsewhere, "0.0.0.0:0", &[])?,
        &["--"],
    )?;

    // The first batch is waited for.
    let agent = |url: &str| start_agent(&elsewhere, url, &["--interval", "1"]);
    fails("agent without a URL", agent("nonsense")?, &["nonsense"])?;
    fails("agent with another protocol", agent("ftp://127.0.0.1/")?, &["ftp"])?;
    // A URL that nobody listens on, and one where another path answers: the agent spools, and says so once.
    let nobody = format!("http://{}", free_address("127.0.0.1:0")?);
    for (what, url) in [
        ("nobody listens", nobody),
        ("wrong path", format!("{}/elsewhere", client.base())),
    ] {
        let mut service = agent(&url)?;
        let spool = elsewhere.state_dir.join("agent");
        let complaint = |said: &str| {
            let complains = |line: &&str| line.contains("WARN") || line.contains("ERROR");
            said.lines()
                .filter(complains)
                .find(|line| line.contains(&url))
                .map(str::to_owned)
        };
        let is_told = within(Duration::from_secs(60), || {
            scene.stop.check()?;
            stack::alive(&mut service)?;
            Ok(complaint(&service.output()).is_some() && has_files(&spool))
        })?;
        ensure!(is_told, "{what}: neither named nor spooled:\n{}", service.output());
        println!(
            "  agent, {what}: {}",
            complaint(&service.output()).unwrap_or_default().trim()
        );
        ensure!(
            service
                .stop(Duration::from_secs(30))
                .is_some_and(|status| status.success()),
            "{what}: ended badly:\n{}",
            service.last_lines(10)
        );
    }
    let still = client.get("/readyz")?;
    ensure!(
        still.status == 200,
        "the first server is no longer ready: {}",
        still.text()
    );
    alone.stop()
}

/// Whether there is any file below the folder.
fn has_files(dir: &std::path::Path) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    entries
        .flatten()
        .any(|entry| entry.path().is_file() || has_files(&entry.path()))
}

/// Requests that are no HTTP, and an agent's port scanner's usual fare: an answer or a closed connection, never a
/// crash.
pub(crate) fn no_http(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut alone = server(scene, dir.path())?;
    let (options, client) = (&alone.options, &alone.client);
    let endless = [b"GET /".as_slice(), &vec![b'a'; 200_000], b" HTTP/1.1\r\n\r\n"].concat();
    let headers = [b"GET / HTTP/1.1\r\n".as_slice(), &b"x: y\r\n".repeat(50_000), b"\r\n"].concat();
    for (what, bytes) in [
        ("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice()),
        ("zeros", &[0; 4096]),
        ("endless path", &endless),
        ("endless headers", &headers),
        (
            "path upwards",
            b"GET /../../../../etc/passwd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        ),
        (
            "encoded path upwards",
            b"GET /download/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        ),
    ] {
        let mut stream = connect(&options.listen)?;
        // The server may close before it has read all.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut said = vec![];
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said).into_owned();
        ensure!(!said.contains("root:"), "{what}: served a file of the system");
        ensure!(!said.starts_with("HTTP/1.1 5"), "{what}: {said}");
        stack::alive(&mut alone.server)?;
        ensure!(
            client.get("/healthz")?.status == 200,
            "{what}: the server no longer answers"
        );
        println!("  {what}: {}", said.lines().next().unwrap_or("closed"));
    }
    alone.stop()
}

/// A data directory that the server's user may not write to, where the test itself is root and can step down.
pub(crate) fn unwritable_as_user(scene: &Scene<'_>) -> Result<()> {
    if !crate::packages::is_root() || crate::repo::find_program("setpriv").is_none() {
        println!("  skipped: needs root and setpriv to become somebody else");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    let program = dir.path().join("stakeout-server");
    fs::copy(&scene.binaries.server, &program)?;
    let data = dir.path().join("data");
    fs::create_dir(&data)?;
    fs::set_permissions(&data, fs::Permissions::from_mode(0o555))?;
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program);
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(&data);
    let failed = run::output(&mut command)
        .err()
        .context("the server started on a folder that it can't write to")?;
    let said = format!("{failed:#}");
    println!("  {}", said.lines().last().unwrap_or(""));
    ensure!(
        said.contains("data") && !said.contains("panicked"),
        "not a clear message: {said}"
    );
    Ok(())
}
