//! A server that forgets all of a program's functions at the end of each request, and puts those of the next one where
//! they lay.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::FrameKind;

use crate::recording::{Recording, possible};

const FREQUENCY_HZ: u32 = 499;
const SECONDS: u64 = 4;
const DEADLINE: Duration = Duration::from_secs(20);
/// Of its functions' frames so many have names, in percent: what is gone before it could be asked for has none.
const NAMED_PERCENT: usize = 90;

/// Two programs that differ by the names of their functions alone, which are as long.
fn program(name: &str) -> String {
    let leaf = format!(
        "function {name}_leaf($x) {{ for ($i = 0; $i < 20000; $i++) {{ $x = ($x * 31 + $i) & 0xFFFFFF; }} return $x; }}"
    );
    format!(
        "<?php\n{leaf}\nclass {name}_class {{\n    static function {name}_method($x) {{ return {name}_leaf($x) + 1; }}\n}}\n\
         function {name}_root($x) {{ return {name}_class::{name}_method($x) + 1; }}\necho {name}_root(1), \"\\n\";\n"
    )
}

fn ask(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn functions_of_one_request_never_have_the_names_of_another_ones() {
    if !possible() {
        return;
    }
    if Command::new("php").arg("-v").output().is_err() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true there must be PHP (Debian: apt install php-cli)"
        );
        println!("SKIPPED, since there is no PHP (Debian: apt install php-cli)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["alpha", "omega"] {
        std::fs::write(folder.path().join(format!("{name}.php")), program(name)).unwrap();
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let recording = Recording::start(AgentConfig {
        frequency_hz: FREQUENCY_HZ,
        cpu_limit: 1.0,
        memory_limit_bytes: 1 << 30,
        ..AgentConfig::default()
    });
    let mut server = Command::new("php")
        .args(["-n", "-S", &format!("127.0.0.1:{port}"), "-t"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while ask(port, "/alpha.php").is_err() {
        assert!(begun.elapsed() < DEADLINE, "the server does not answer");
        std::thread::yield_now();
    }
    let begun = Instant::now();
    let mut requests = 0;
    while begun.elapsed() < Duration::from_secs(SECONDS) {
        let path = if requests % 2 == 0 { "/alpha.php" } else { "/omega.php" };
        assert!(ask(port, path).unwrap().starts_with("HTTP/1.1 200"), "{path}");
        requests += 1;
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let recorded = recording.stop();
    let (mut of, mut named, mut all) = ([0, 0], 0, 0);
    for seen in recorded.of_tgid(server.id()) {
        let frames = seen
            .frames()
            .filter(|frame| frame.kind == FrameKind::Interpreted("php"));
        let frames: Vec<_> = frames.collect();
        all += frames.len();
        named += frames.iter().filter(|frame| frame.function.is_some()).count();
        let mut is_of = [false, false];
        for frame in frames {
            let (Some(function), Some(file)) = (&frame.function, &frame.file) else {
                continue;
            };
            for (name, is_of) in ["alpha", "omega"].iter().zip(&mut is_of) {
                let is_own = file.ends_with(&format!("{name}.php"));
                assert_eq!(
                    function.contains(name),
                    is_own && &**function != "{main}",
                    "{function} of {file}"
                );
                *is_of |= is_own;
            }
        }
        assert!(is_of != [true, true], "a stack of both programs");
        of = [of[0] + usize::from(is_of[0]), of[1] + usize::from(is_of[1])];
    }
    println!("{requests} requests, samples of each program {of:?}, {named} of {all} frames with names");
    assert!(of[0] > 50 && of[1] > 50, "samples of each program: {of:?}");
    assert!(named * 100 >= all * NAMED_PERCENT, "{named} of {all} frames have names");
}
