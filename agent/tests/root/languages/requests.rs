//! A server that forgets all of a program's functions at the end of each request, and puts those of the next one where
//! they lay.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::FrameKind;

use crate::program::{at_a_time, behind_others};
use crate::recording::{Recording, possible};

const FREQUENCY_HZ: u32 = 499;
const SECONDS: u64 = 4;
/// Before, names are learned: what is gone before it could be asked for has none until it was met once.
const LEARNING_SECONDS: u64 = 6;
const DEADLINE: Duration = Duration::from_secs(20);
/// Of its functions' frames so many have names, in percent.
const NAMED_PERCENT: usize = 90;

/// Two programs that differ by the names of their functions alone, which are as long.
fn program(name: &str) -> String {
    let leaf = format!(
        "function {name}_leaf($x) {{\n    for ($i = 0; $i < 20000; $i++) {{ $x = ($x * 31 + $i) & 0xFFFFFF; }}\n    \
         return $x;\n}}"
    );
    let class =
        format!("class {name}_class {{\n    static function {name}_method($x) {{ return {name}_leaf($x) + 1; }}\n}}");
    let root = format!("function {name}_root($x) {{ return {name}_class::{name}_method($x) + 1; }}");
    format!("<?php\n{leaf}\n{class}\n{root}\necho {name}_root(1), \"\\n\";\n")
}

fn ask(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    // At once: the server takes a part of a request for all of it now and then.
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Ends a server and its workers.
fn end(server: &mut Child) {
    let group = format!("-{}", server.id());
    assert!(
        Command::new("kill")
            .args(["-KILL", "--", &group])
            .status()
            .unwrap()
            .success()
    );
    server.wait().unwrap();
}

/// Asks a server for both programs by turns; gives the moment from which on their names are known, in nanoseconds.
fn serve(folder: &Path, workers: &str, arguments: &[&str]) -> u64 {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut php = Command::new("php");
    php.arg("-n")
        .args(arguments)
        .args(["-S", &format!("127.0.0.1:{port}"), "-t"])
        .arg(folder)
        .env("PHP_CLI_SERVER_WORKERS", workers);
    let mut server = behind_others(&php)
        .process_group(0)
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
    let learned = SystemTime::now() + Duration::from_secs(LEARNING_SECONDS);
    for path in ["/alpha.php", "/omega.php"].iter().cycle() {
        let answer = ask(port, path).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer:?}");
        if begun.elapsed() >= Duration::from_secs(LEARNING_SECONDS + SECONDS) {
            break;
        }
    }
    end(&mut server);
    let learned = learned.duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(learned.as_nanos()).unwrap()
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
    let recording = Recording::start(AgentConfig {
        frequency_hz: FREQUENCY_HZ,
        cpu_limit: 1.0,
        memory_limit_bytes: 1 << 30,
        ..AgentConfig::default()
    });
    // All of a request's memory is forgotten; and functions are shared among workers, in OPcache's memory.
    let mut known: Vec<std::ops::Range<u64>> = Vec::new();
    let shared: &[&str] = &["-dzend_extension=opcache", "-dopcache.enable_cli=1"];
    let folder = folder.path();
    for together in [("1", &[][..]), ("3", shared)].chunks(at_a_time()) {
        let learned_ns = std::thread::scope(|scope| {
            let begin = |(workers, arguments)| scope.spawn(move || serve(folder, workers, arguments));
            let served: Vec<_> = together.iter().copied().map(begin).collect();
            served.into_iter().map(|served| served.join().unwrap()).max().unwrap()
        });
        known.push(learned_ns..u64::MAX);
        if let [.., before, last] = &mut known[..] {
            before.end = last.start - LEARNING_SECONDS * 1_000_000_000;
        }
    }
    let recorded = recording.stop();
    let (mut of, mut named, mut all) = ([0, 0], 0, 0);
    for seen in recorded.samples() {
        let frames: Vec<_> = seen
            .frames()
            .filter(|frame| frame.kind == FrameKind::Interpreted("php"))
            .collect();
        if known.iter().any(|times| times.contains(&seen.sample.ts_unix_ns)) {
            all += frames.len();
            named += frames.iter().filter(|frame| frame.function.is_some()).count();
        }
        let mut is_of = [false, false];
        for frame in frames {
            let (Some(function), Some(file)) = (&frame.function, &frame.file) else {
                continue;
            };
            for (name, is_of) in ["alpha", "omega"].iter().zip(&mut is_of) {
                let is_own = file.ends_with(&format!("{name}.php"));
                let is_called_so = function.contains(name);
                assert_eq!(is_called_so, is_own && &**function != "{main}", "{function} of {file}");
                *is_of |= is_own;
            }
        }
        assert!(is_of != [true, true], "a stack of both programs");
        of = [of[0] + usize::from(is_of[0]), of[1] + usize::from(is_of[1])];
    }
    println!("samples of each program {of:?}, {named} of {all} frames with names");
    assert!(of[0] > 50 && of[1] > 50, "samples of each program: {of:?}");
    assert!(named * 100 >= all * NAMED_PERCENT, "{named} of {all} frames have names");
}
