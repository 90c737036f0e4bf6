//! Three servers on one data root die at random moments under load, whose batches go to one and are sent again to
//! another: what was acknowledged is stored, once, and every server answers the same.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::outage::{FIVE_AGENTS, Load, check_load, until};
use super::scene::Scene;
use crate::http::integer;
use crate::service::make_dir;
use crate::stack::{self, Alone, Elsewhere};

const SERVERS: usize = 3;

/// A server lives for as long as this, at least and at most, before one of them is killed.
const LIFE_MS: (u64, u64) = (50, 4_000);

/// One of the servers, with a folder of its own for its log.
fn member(scene: &Scene<'_>, state_dir: &Path, data: &str, more: &[&str]) -> Result<Alone> {
    make_dir(state_dir)?;
    let elsewhere = Elsewhere {
        data: data.to_owned(),
        environment: Vec::new(),
    };
    Alone::start_on(scene.options(state_dir, 20), Some(elsewhere), more, scene.stop)
}

fn stored(member: &Alone) -> Result<i64> {
    member.client.sql_number("SELECT count(*) FROM samples")
}

/// Numbers that look random, the same ones for the same seed (Knuth 3.3.4, the multiplier of MMIX).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// kill -9, one of three at a time.
pub(crate) fn killed_at_random_moments(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let bucket = scene.faults.as_ref().and_then(|faults| faults.bucket.clone());
    let seed = scene.faults.as_ref().and_then(|faults| faults.seed);
    let any = || RandomState::new().build_hasher().finish();
    let seed = seed.unwrap_or_else(any);
    println!("  seed {seed}");
    let more = ["--shared", "--commit-interval", "300ms", "--min-free", "1MiB"];
    let data = match bucket {
        // What an earlier run has left there is none of this one's.
        Some(url) => format!("{}/{:016x}", url.trim_end_matches('/'), any()),
        None => dir.path().join("data").to_string_lossy().into_owned(),
    };
    let mut members = Vec::new();
    for number in 0..SERVERS {
        let state_dir = dir.path().join(format!("server-{number}"));
        members.push(member(scene, &state_dir, &data, &more)?);
    }
    let urls: Vec<&str> = members.iter().map(|member| member.client.base()).collect();
    let load = Load::start(&urls.join(","), &FIVE_AGENTS)?;
    let mut chance = Chance(seed);
    let rounds = scene.rounds(6, 100);
    for round in 0..rounds {
        let victim = chance.below(SERVERS as u64) as usize;
        if round % 2 == 1 {
            let before = stored(&members[victim])?;
            until("more samples are stored", || Ok(stored(&members[victim])? > before))?;
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
        members[victim].server.signal(Signal::SIGKILL);
        members[victim].restart(scene.stop)?;
    }
    println!("  {rounds} kills");
    let report = load.finish()?;
    let sent: i64 = report.iter().map(|agent| integer(&agent["samples"])).sum();
    for member in &members {
        until("every server has all that was acknowledged", || {
            Ok(stored(member)? >= sent)
        })?;
        check_load(&member.client, &report)?;
        // The ledger: what each batch says that it has, each batch once.
        let told = member.client.sql_number("SELECT sum(samples) FROM batches")?;
        ensure!(
            told == sent,
            "{sent} samples acknowledged, {told} by the batches' accounts"
        );
    }
    for member in &mut members {
        member.stop()?;
    }
    Ok(())
}
