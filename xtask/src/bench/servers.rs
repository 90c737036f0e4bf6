//! Several servers of this machine on one bucket, for benches of them together.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::metric;
use crate::artifacts::{Binaries, Profile};
use crate::bucket::{Bucket, Relay};
use crate::proc::{cpu_seconds, size_bytes};
use crate::service::{make_dir, within};
use crate::signals::Stop;
use crate::stack::{Alone, Options};
use crate::{artifacts, e2e};

/// By then each knows all others: signs of life come every few seconds, and those of a server that was killed are
/// looked at for a quarter of a minute.
const KNOW_EACH_OTHER: Duration = Duration::from_secs(60);

/// Maintenance comes each ten seconds: for so long nothing is read that nobody asked for.
const CALM: Duration = Duration::from_secs(12);
/// What servers read of each other is less.
const LITTLE_BYTES: u64 = 1 << 20;
/// A store of some gigabytes has been compared by then.
const CALM_BY: Duration = Duration::from_secs(300);

/// Waits until what comes through a relay is little. After its start whoever does the maintenance compares all files
/// with what was written, some each time: that is no cost of a question.
pub(super) fn until_calm(relay: &Relay, stop: &Stop) -> Result<()> {
    let is_calm = within(CALM_BY, || {
        let before = relay.traffic();
        within(CALM, || {
            stop.check()?;
            Ok(false)
        })?;
        Ok(relay.traffic().since(before).received_bytes < LITTLE_BYTES)
    })?;
    if !is_calm {
        println!(
            "(servers read still what nobody asks for, after {} s)",
            CALM_BY.as_secs()
        );
    }
    Ok(())
}

/// What servers are started from.
pub(super) struct Ground {
    pub(super) binaries: Binaries,
    pub(super) load: std::path::PathBuf,
    pub(super) bucket: Bucket,
    pub(super) stop: Stop,
    dir: tempfile::TempDir,
}

impl Ground {
    /// An empty bucket, each of whose requests takes so much longer.
    pub(super) fn prepare(latency: Duration) -> Result<Ground> {
        let binaries = artifacts::all(Profile::Release)?;
        let load = e2e::load_program(Profile::Release)?;
        let dir = tempfile::tempdir()?;
        Ok(Ground {
            binaries,
            load,
            bucket: Bucket::start(dir.path(), latency)?,
            stop: Stop::install()?,
            dir,
        })
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// The servers, in the order of their start. Dropping them ends them.
pub(super) struct Servers {
    pub(super) all: Vec<Alone>,
    /// CPU time of processes that have been killed.
    ended_cpu_s: f64,
    /// The largest of their memory.
    ended_peak_bytes: u64,
}

impl Servers {
    /// So many, each with these arguments, once each knows the others.
    pub(super) fn start(
        (binaries, bucket, dir, stop): (&Binaries, &Bucket, &Path, &Stop),
        count: usize,
        more: &[&str],
    ) -> Result<Servers> {
        let mut all = Vec::new();
        for number in 0..count {
            let state_dir = dir.join(format!("server-{number}"));
            make_dir(&state_dir)?;
            let options = Options {
                binaries: binaries.clone(),
                state_dir,
                listen: "127.0.0.1:0".to_owned(),
                frequency_hz: 20,
            };
            let more = [&["--shared"], more].concat();
            all.push(Alone::start_on(options, Some(bucket.place()), &more, stop)?);
        }
        let servers = Servers {
            all,
            ended_cpu_s: 0.0,
            ended_peak_bytes: 0,
        };
        servers.know_each_other(stop)?;
        Ok(servers)
    }

    /// On a ground that is empty, or has what others left there.
    pub(super) fn start_on(ground: &Ground, count: usize, more: &[&str]) -> Result<Servers> {
        let on = (&ground.binaries, &ground.bucket, ground.dir(), &ground.stop);
        Servers::start(on, count, more)
    }

    /// Waits until each knows all others, and no more.
    pub(super) fn know_each_other(&self, stop: &Stop) -> Result<()> {
        let know = within(KNOW_EACH_OTHER, || {
            stop.check()?;
            Ok(self
                .metrics("stakeout_store_servers")?
                .iter()
                .all(|known| *known as usize == self.all.len()))
        })?;
        ensure!(
            know,
            "the servers do not know each other after {} s",
            KNOW_EACH_OTHER.as_secs()
        );
        Ok(())
    }

    /// Of each server.
    pub(super) fn metrics(&self, name: &str) -> Result<Vec<f64>> {
        let of = |alone: &Alone| {
            let text = alone.client.get_ok("/metrics")?.text();
            metric(&text, name).with_context(|| format!("/metrics has no {name}"))
        };
        self.all.iter().map(of).collect()
    }

    /// Of all together; of counters, since their last starts.
    pub(super) fn metric(&self, name: &str) -> Result<f64> {
        Ok(self.metrics(name)?.iter().sum())
    }

    /// Of each process that runs.
    pub(super) fn cpu_seconds_of_each(&self) -> Result<Vec<f64>> {
        self.all.iter().map(|alone| cpu_seconds(alone.server.pid())).collect()
    }

    /// Of all together since the start, with those that were killed.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        Ok(self.cpu_seconds_of_each()?.iter().sum::<f64>() + self.ended_cpu_s)
    }

    /// The most that one of them has taken.
    pub(super) fn peak_bytes(&self) -> Result<u64> {
        let mut peak = self.ended_peak_bytes;
        for alone in &self.all {
            peak = peak.max(size_bytes(alone.server.pid(), "VmHWM")?);
        }
        Ok(peak)
    }

    /// With commas, as the load takes them.
    pub(super) fn urls(&self) -> String {
        let urls: Vec<&str> = self.all.iter().map(|alone| alone.client.base()).collect();
        urls.join(",")
    }

    /// kill -9. What it had taken until now is kept.
    pub(super) fn kill(&mut self, at: usize) -> Result<()> {
        let server = &mut self.all[at].server;
        self.ended_cpu_s += cpu_seconds(server.pid())?;
        self.ended_peak_bytes = self.ended_peak_bytes.max(size_bytes(server.pid(), "VmHWM")?);
        server.signal(Signal::SIGKILL);
        let ended = server.wait(Duration::from_secs(30));
        ensure!(ended.is_some(), "the server does not end");
        Ok(())
    }

    /// Stops them; an error if one did not end well.
    pub(super) fn stop(mut self) -> Result<()> {
        self.all.iter_mut().try_for_each(Alone::stop)
    }
}
