//! What the rounds share: a bucket, servers on it, one with another clock, and samples in an hour that is over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::artifacts::Profile;
use crate::bucket::{Bucket, Moment, Relay, environment, url};
use crate::e2e::crash::preloaded;
use crate::e2e::outage::load_program;
use crate::e2e::scene::Scene;
use crate::http::{integer, path};
use crate::run;
use crate::service::make_dir;
use crate::stack::{Alone, now_ms};
use crate::tools::{Ready, S3_SERVER};

/// By how much the clock of the server that lives on is ahead.
const AHEAD_S: i64 = 60;
const HOUR_MS: i64 = 3_600_000;
/// A step that is to come has come by then.
const STEP: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);
/// How servers are started.
const SERVER: [&str; 3] = ["--shared", "--commit-interval", "200ms"];
/// A small fleet: what is tested are steps, not amounts.
const FLEET: [&str; 12] = [
    "--samples",
    "50",
    "--interval-ms",
    "1000",
    "--services",
    "5",
    "--services-per-node",
    "2",
    "--stacks",
    "50",
    "--patience",
    "120",
];

/// A request that is caught: the n-th of a step, before or after it is done.
#[derive(Clone, Debug)]
pub(super) struct Catch {
    pub(super) step: String,
    pub(super) nth: u64,
    pub(super) moment: Moment,
}

/// What came of a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// How often each step was done.
    pub(super) steps: BTreeMap<String, u64>,
    /// The step at which the server was killed; none where it was done before.
    pub(super) killed_at: Option<String>,
}

/// See the module.
pub(super) struct Stage<'a> {
    pub(super) scene: &'a Scene<'a>,
    pub(super) bucket: Bucket,
    load: PathBuf,
    /// The server with another clock.
    ahead: PathBuf,
    dir: tempfile::TempDir,
}

/// Samples of an hour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hour {
    /// Unix milliseconds of its begin.
    pub(super) begin_ms: i64,
}

impl Hour {
    /// One that is over for two hours.
    pub(super) fn past() -> Hour {
        Hour {
            begin_ms: now_ms() / HOUR_MS * HOUR_MS - 3 * HOUR_MS,
        }
    }
}

impl<'a> Stage<'a> {
    /// None, which is told, where there is no S3 server.
    pub(super) fn ready(scene: &'a Scene<'a>) -> Result<Option<Stage<'a>>> {
        if let Ready::Missing(why) = S3_SERVER.ready_or_missing()? {
            println!("  SKIPPED: there is no S3 server: {why}");
            return Ok(None);
        }
        let dir = tempfile::tempdir()?;
        let define = format!("-DAHEAD_S={AHEAD_S}");
        Ok(Some(Stage {
            scene,
            bucket: Bucket::start(dir.path(), Duration::ZERO)?,
            load: load_program(Profile::Debug)?,
            ahead: preloaded(&scene.binaries.server, dir.path(), "other_clock.c", &[&define])?,
            dir,
        }))
    }

    /// A server on a folder of the bucket, which it reaches through this relay.
    pub(super) fn server(&self, name: &str, folder: &str, relay: &Relay, more: &[&str]) -> Result<Alone> {
        self.start(&self.scene.binaries.server, name, folder, relay, more)
    }

    /// One whose clock is ahead.
    pub(super) fn server_ahead(&self, name: &str, folder: &str, more: &[&str]) -> Result<Alone> {
        let alone = self.start(&self.ahead, name, folder, self.bucket.relay(), more)?;
        let servers = alone.client.get_json("/api/v1/servers")?;
        let mut servers = servers["servers"].as_array().into_iter().flatten();
        let own = servers
            .find(|server| server["own"] == true)
            .context("a server does not name itself")?;
        let ahead_ms = integer(&own["started"]) - now_ms();
        ensure!(
            ahead_ms > AHEAD_S * 1000 / 2,
            "the server's clock is {ahead_ms} ms ahead, and was to be {AHEAD_S} s"
        );
        Ok(alone)
    }

    fn start(&self, program: &Path, name: &str, folder: &str, relay: &Relay, more: &[&str]) -> Result<Alone> {
        let state_dir = self.dir.path().join(name);
        make_dir(&state_dir)?;
        let mut options = self.scene.options(&state_dir, 20);
        options.binaries.server = program.to_owned();
        let place = self.bucket.place_at(folder, relay);
        Alone::start_on(options, Some(place), &[&SERVER[..], more].concat(), self.scene.stop)
    }

    /// Ships batches of an hour until all are acknowledged. Samples that were.
    pub(super) fn ship(&self, to: &str, prefix: &str, batches: u64, hour: Hour) -> Result<i64> {
        let mut command = Command::new(&self.load);
        command
            .args(["--url", to, "--node-prefix", prefix, "--agents", "3"])
            .args(["--batches", &batches.to_string()])
            .args(["--start-ms", &(hour.begin_ms + HOUR_MS / 4).to_string()])
            .args(FLEET);
        let mut samples = 0;
        for line in run::output(&mut command)?.lines() {
            let agent: Value = serde_json::from_str(line).context("the load's report is not JSON")?;
            samples += integer(&agent["samples"]);
        }
        Ok(samples)
    }

    /// Fills a folder of the bucket by a server that rewrites nothing. Samples that are in it.
    pub(super) fn fill(&self, name: &str, folder: &str, hour: Hour) -> Result<i64> {
        let mut server = self.server(name, folder, self.bucket.relay(), &["--settle", "1h"])?;
        let samples = self.ship(server.client.base(), "old", 6, hour)?;
        server.stop()?;
        Ok(samples)
    }

    /// A command of the server's program, with the bucket through this relay.
    pub(super) fn command(&self, arguments: &[&str], relay: &Relay) -> Command {
        let mut command = Command::new(&self.scene.binaries.server);
        command.args(arguments).envs(environment(relay.address()));
        command
    }

    /// Where such a command's output goes.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    /// Waits until a request is caught, or all is done: then none is.
    pub(super) fn caught(&self, relay: &Relay, mut is_done: impl FnMut() -> Result<bool>) -> Result<Option<String>> {
        let begun = Instant::now();
        let mut last_look = None::<Instant>;
        while begun.elapsed() < STEP {
            self.scene.stop.check()?;
            if let Some(step) = relay.caught() {
                return Ok(Some(step));
            }
            // To look costs a query.
            if last_look.is_none_or(|last| last.elapsed() > LOOK * 10) {
                if is_done()? {
                    return Ok(relay.caught());
                }
                last_look = Some(Instant::now());
            }
            thread::sleep(LOOK);
        }
        bail!("neither was a request caught nor all done after {} s", STEP.as_secs());
    }
}

/// What a server says of an hour at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Rows of samples.
    pub(super) rows: i64,
    /// Rows that can be told apart: each sample of a node has a time of its own.
    pub(super) distinct: i64,
    /// By the agents' ledger.
    pub(super) ledger: i64,
    /// In a flamegraph of the hour.
    pub(super) graph: i64,
}

impl Told {
    pub(super) fn by(server: &Alone, hour: Hour) -> Result<Told> {
        let client = &server.client;
        let (from, until) = (hour.begin_ms.to_string(), (hour.begin_ms + HOUR_MS).to_string());
        let graph = client.get_json(&path("/api/v1/flamegraph", &[("from", &*from), ("until", &*until)]))?;
        let rows = client.sql("SELECT count(*), count(DISTINCT concat(node, '/', ts_ns)) FROM samples")?;
        let rows = rows.first().context("no count")?;
        let number = |at: usize| rows.get(at).map_or(0, integer);
        Ok(Told {
            rows: number(0),
            distinct: number(1),
            ledger: client.sql_number("SELECT sum(samples) FROM batches")?,
            graph: integer(&graph["samples"]),
        })
    }

    /// All of so many samples, once.
    pub(super) fn has_all(self, samples: i64) -> bool {
        self.rows == samples && self.distinct == samples && self.has_all_in_short(samples)
    }

    /// The same where samples may be too old, and only their roll-ups are left.
    pub(super) fn has_all_in_short(self, samples: i64) -> bool {
        self.ledger == samples && self.graph == samples
    }
}

/// The folder of a round, and its URL.
pub(super) fn folder(work: &str, round: u64) -> (String, String) {
    let folder = format!("{work}-{round}");
    let place = url(&folder);
    (folder, place)
}
