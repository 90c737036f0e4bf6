//! What is done to the bucket while a server is killed, and what has to hold then.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::stage::{Catch, Hour, Round, Stage, Told, folder};
use crate::bucket::Relay;
use crate::e2e::outage::until;
use crate::run;
use crate::service::Service;
use crate::stack::Alone;

/// Maintenance has ended when nothing was changed for so long.
const QUIET: Duration = Duration::from_secs(4);
/// The server that lives on is there before maintenance begins.
const SETTLE: [&str; 2] = ["--settle", "6s"];
/// Samples of the hour are older.
const RETENTION: [&str; 2] = ["--retention-samples", "1h"];

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Commit,
    Rewrite,
    Retention,
    Copy,
}

impl Work {
    /// One round, in a folder of the bucket of its own. `is_finished`: it is waited for until another server has done
    /// what the killed one began.
    pub(super) fn round(
        self,
        stage: &Stage<'_>,
        round: u64,
        catch: Option<&Catch>,
        is_finished: bool,
    ) -> Result<Round> {
        match self {
            Work::Commit => commit(stage, round, catch),
            Work::Rewrite | Work::Retention => self.maintenance(stage, round, catch, is_finished),
            Work::Copy => copy(stage, round, catch),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Work::Commit => "commit",
            Work::Rewrite => "rewrite",
            Work::Retention => "retention",
            Work::Copy => "copy",
        }
    }

    fn maintenance(self, stage: &Stage<'_>, round: u64, catch: Option<&Catch>, is_finished: bool) -> Result<Round> {
        let hour = Hour::past();
        let (folder, _) = folder(self.name(), round);
        let [filling, victim, other] = names(self, round);
        let samples = stage.fill(&filling, &folder, hour)?;
        let more = match self {
            Work::Retention => [&SETTLE[..], &RETENTION].concat(),
            _ => SETTLE.to_vec(),
        };
        let relay = stage.bucket.another_way()?;
        let mut victim = stage.server(&victim, &folder, &relay, &more)?;
        arm(&relay, catch);
        // It has the lease of maintenance before there is another one.
        until("the first server does the maintenance", || {
            Ok(victim.client.get_json("/api/v1/servers")?["maintains"] == true)
        })?;
        let mut other = stage.server_ahead(&other, &folder, &more)?;
        let mut writes = Quiet::of(&relay);
        let killed_at = stage.caught(&relay, || Ok(self.is_done(&victim)? && writes.are_quiet(&relay)))?;
        let check = |server: &Alone, when: &str| -> Result<()> {
            let told = Told::by(server, hour)?;
            let has_all = match self {
                Work::Retention => told.has_all_in_short(samples) && told.rows == told.distinct,
                _ => told.has_all(samples),
            };
            ensure!(has_all, "{when}: of {samples} samples there are {told:?}");
            Ok(())
        };
        check(&other, "the other server, while the step is held")?;
        let steps = relay.take_steps();
        if killed_at.is_some() {
            victim.server.kill();
            check(&other, "the other server, after the kill")?;
        }
        relay.release();
        if killed_at.is_some() {
            victim.restart(stage.scene.stop)?;
            check(&victim, "the killed server, started again")?;
            if is_finished {
                until("another server does what was begun", || self.is_done(&other))?;
                check(&other, "the other server, when all is done")?;
                until("every server knows of it", || self.is_done(&victim))?;
                check(&victim, "the killed server, when all is done")?;
            }
        }
        victim.stop()?;
        other.stop()?;
        Ok(Round { steps, killed_at })
    }

    /// Whether a server's maintenance of the hour has come to its end, as this one knows.
    fn is_done(self, server: &Alone) -> Result<bool> {
        let rows = |table: &str| server.client.sql_number(&format!("SELECT count(*) FROM {table}"));
        Ok(rows("samples_hour")? > 0 && (self != Work::Retention || rows("samples")? == 0))
    }
}

/// Of a round's servers.
fn names(work: Work, round: u64) -> [String; 3] {
    ["filling", "victim", "other"].map(|role| format!("{}-{round}-{role}", work.name()))
}

/// From now on steps are counted, and the one that is to be caught is.
fn arm(relay: &Relay, catch: Option<&Catch>) {
    relay.take_steps();
    if let Some(Catch { step, nth, moment }) = catch {
        relay.catch(step, *nth, *moment);
    }
}

/// Whether anything was changed lately.
struct Quiet {
    writes: u64,
    since: Instant,
}

impl Quiet {
    fn of(relay: &Relay) -> Quiet {
        Quiet {
            writes: relay.traffic().writes,
            since: Instant::now(),
        }
    }

    fn are_quiet(&mut self, relay: &Relay) -> bool {
        let writes = relay.traffic().writes;
        if writes != self.writes {
            *self = Quiet::of(relay);
        }
        self.since.elapsed() >= QUIET
    }
}

/// Batches come to a server that is killed while it commits them, and then to its next process.
fn commit(stage: &Stage<'_>, round: u64, catch: Option<&Catch>) -> Result<Round> {
    let hour = Hour::past();
    let (folder, _) = folder("commit", round);
    let [_, victim, other] = names(Work::Commit, round);
    let relay = stage.bucket.another_way()?;
    let unsettled = ["--settle", "1h"];
    let mut victim = stage.server(&victim, &folder, &relay, &unsettled)?;
    let mut other = stage.server_ahead(&other, &folder, &unsettled)?;
    let both = format!("{},{}", victim.client.base(), other.client.base());
    let base = stage.ship(&both, "base", 2, hour)?;
    arm(&relay, catch);
    let to = victim.client.base().to_owned();
    let (killed_at, sent) = thread::scope(|scope| -> Result<_> {
        let sending = scope.spawn(|| stage.ship(&to, "load", 2, hour));
        let killed_at = stage.caught(&relay, || Ok(sending.is_finished()));
        // Whatever became of that, nobody is held any longer than this.
        if matches!(killed_at, Ok(Some(_))) {
            victim.server.kill();
        }
        relay.release();
        let killed_at = killed_at?;
        if killed_at.is_some() {
            let told = Told::by(&other, hour)?;
            ensure!(
                told.rows >= base && told.rows == told.distinct,
                "after the kill: of {base} samples that were acknowledged before there are {told:?}"
            );
            victim.restart(stage.scene.stop)?;
        }
        let sent = sending.join().map_err(|_| anyhow::anyhow!("the load panicked"))??;
        Ok((killed_at, sent))
    })?;
    let steps = relay.take_steps();
    let samples = base + sent;
    for server in [&victim, &other] {
        until("every server has all that was acknowledged, once", || {
            let told = Told::by(server, hour)?;
            ensure!(told.has_all(samples), "of {samples} samples there are {told:?}");
            Ok(true)
        })?;
    }
    victim.stop()?;
    other.stop()?;
    Ok(Round { steps, killed_at })
}

/// A copy is killed, while its store goes on; it is begun again, and what it made is a whole store.
fn copy(stage: &Stage<'_>, round: u64, catch: Option<&Catch>) -> Result<Round> {
    let hour = Hour::past();
    let [(from, from_url), (to, to_url)] = ["copied", "copy"].map(|work| folder(work, round));
    let [filling, copying, started] = names(Work::Copy, round);
    let all_relay = stage.bucket.relay();
    let mut server = stage.server(&filling, &from, all_relay, &["--settle", "1h"])?;
    let mut samples = stage.ship(server.client.base(), "old", 4, hour)?;
    let relay = stage.bucket.another_way()?;
    arm(&relay, catch);
    let arguments = ["copy", from_url.as_str(), to_url.as_str()];
    let mut copying = Service::start("copy", &mut stage.command(&arguments, &relay), &stage.log(&copying))?;
    let killed_at = stage.caught(&relay, || Ok(copying.ended().is_some()))?;
    let steps = relay.take_steps();
    copying.kill();
    relay.release();
    if killed_at.is_some() {
        samples += stage.ship(server.client.base(), "new", 2, hour)?;
        run::output(&mut stage.command(&arguments, all_relay))?;
    } else {
        let status = copying.ended();
        ensure!(
            status.is_some_and(|status| status.success()),
            "the copy failed; is there a `stakeout-server copy`?\n{}",
            copying.last_lines(10)
        );
    }
    run::output(&mut stage.command(&["check", to_url.as_str()], all_relay))?;
    let mut copied = stage.server(&started, &to, all_relay, &["--settle", "1h"])?;
    for (server, what) in [(&server, "the store"), (&copied, "its copy")] {
        let told = Told::by(server, hour)?;
        ensure!(told.has_all(samples), "{what}: of {samples} samples there are {told:?}");
    }
    copied.stop()?;
    server.stop()?;
    Ok(Round { steps, killed_at })
}
