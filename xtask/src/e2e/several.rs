//! Three servers on one data root die at random moments under load, whose batches go to one and are sent again to
//! another: what was acknowledged is stored, once, and every server answers the same.

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::outage::{Load, check_load, until};
use super::scene::Scene;
use crate::http::{Client, integer};
use crate::service::Service;
use crate::stack::{self, Options, free_address, start_server_on, wait_ready};

const SERVERS: usize = 3;

const LOAD: [&str; 12] = [
    "--agents",
    "5",
    "--batches",
    "0",
    "--samples",
    "200",
    "--in-flight",
    "4",
    "--pace-ms",
    "100",
    "--interval-ms",
    "1000",
];

/// A server lives for as long as this, at least and at most, before one of them is killed.
const LIFE_MS: (u64, u64) = (50, 4_000);

/// One of the servers, with a folder of its own for its log.
struct Member {
    options: Options,
    data: OsString,
    more: Vec<&'static str>,
    server: Service,
    client: Client,
}

impl Member {
    fn start(scene: &Scene<'_>, state_dir: PathBuf, data: OsString, more: Vec<&'static str>) -> Result<Member> {
        std::fs::create_dir_all(&state_dir)?;
        let options = scene.options(&state_dir, 20);
        let listen = free_address(&options.listen)?;
        let options = Options { listen, ..options };
        let client = Client::new(&format!("http://{}", options.listen));
        let mut server = start_server_on(&options, &data, &options.listen, &more)?;
        wait_ready(&mut server, &client, scene.stop)?;
        Ok(Member {
            options,
            data,
            more,
            server,
            client,
        })
    }

    fn kill(&mut self, scene: &Scene<'_>) -> Result<()> {
        self.server.signal(Signal::SIGKILL);
        ensure!(self.server.wait(Duration::from_secs(30)).is_some(), "the server does not end");
        self.server = start_server_on(&self.options, &self.data, &self.options.listen, &self.more)?;
        wait_ready(&mut self.server, &self.client, scene.stop)
    }

    fn stored(&self) -> Result<i64> {
        self.client.sql_number("SELECT count(*) FROM samples")
    }
}

/// Numbers that look random, the same ones for the same seed (Knuth 3.3.4, the multiplier of MMIX).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// kill -9, one of three at a time.
pub(crate) fn killed_at_random_moments(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let bucket = scene.faults.as_ref().and_then(|faults| faults.bucket.clone());
    let seed = scene.faults.as_ref().and_then(|faults| faults.seed);
    let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("  seed {seed}");
    let mut more = vec!["--commit-interval", "300ms", "--min-free", "1MiB"];
    let data = match bucket {
        Some(url) => OsString::from(url),
        None => {
            more.push("--shared-directory");
            dir.path().join("data").into_os_string()
        }
    };
    let mut members = Vec::new();
    for number in 0..SERVERS {
        let state_dir = dir.path().join(format!("server-{number}"));
        members.push(Member::start(scene, state_dir, data.clone(), more.clone())?);
    }
    let urls: Vec<&str> = members.iter().map(|member| member.client.base()).collect();
    let load = Load::start(&urls.join(","), &LOAD)?;
    let mut chance = Chance(seed);
    let rounds = scene.rounds(6, 100);
    for round in 0..rounds {
        let victim = chance.below(SERVERS as u64) as usize;
        if round % 2 == 1 {
            let before = members[victim].stored()?;
            until("more samples are stored", || Ok(members[victim].stored()? > before))?;
        }
        let (least, most) = LIFE_MS;
        let end = Instant::now() + Duration::from_millis(least + chance.below(most - least));
        while Instant::now() < end {
            scene.stop.check()?;
            for member in &mut members {
                stack::alive(&mut member.server)?;
            }
            thread::sleep(Duration::from_millis(10));
        }
        members[victim].kill(scene)?;
    }
    println!("  {rounds} kills");
    let report = load.finish()?;
    let sent: i64 = report.iter().map(|agent| integer(&agent["samples"])).sum();
    for member in &members {
        until("every server has all that was acknowledged", || Ok(member.stored()? >= sent))?;
        check_load(&member.client, &report)?;
        // The ledger: what each batch says that it has, each batch once.
        let told = member.client.sql_number("SELECT sum(samples) FROM batches")?;
        ensure!(told == sent, "{sent} samples acknowledged, {told} by the batches' accounts");
    }
    for member in &mut members {
        let status = member.server.stop(Duration::from_secs(30));
        ensure!(
            status.is_some_and(|status| status.success()),
            "a server ended badly:\n{}",
            member.server.last_lines(10)
        );
    }
    Ok(())
}
