//! A server is killed at every step of what it does to a bucket: each request that changes something is caught once
//! before it arrives, and once after it is done and before its answer.
//!
//! In: what is done (a commit, a rewrite with its roll-ups, a retention, a copy), and how often. Out: whether another
//! server, whose clock is a minute ahead, and the killed one after its next start have every acknowledged sample once.
//!
//! Files that were replaced are deleted ten minutes later, which no round waits for.

mod stage;
mod works;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::scene::Scene;
use crate::bucket::Moment;
use stage::Stage;
use works::Work;

/// Rounds of each work in CI.
const SHORT: u32 = 1;
/// Of so many rounds of maintenance one waits until another server has done what the killed one began: half a minute
/// after its last sign of life.
const FINISHED_EVERY: u64 = 6;

/// Batches to a server that commits them.
pub(crate) fn of_a_commit(scene: &Scene<'_>) -> Result<()> {
    walk(scene, Work::Commit)
}

/// An hour that is over: its files become one, and it is rolled up.
pub(crate) fn of_a_rewrite(scene: &Scene<'_>) -> Result<()> {
    walk(scene, Work::Rewrite)
}

/// An hour whose samples are too old.
pub(crate) fn of_a_retention(scene: &Scene<'_>) -> Result<()> {
    walk(scene, Work::Retention)
}

/// A store to another place in the bucket.
pub(crate) fn of_a_copy(scene: &Scene<'_>) -> Result<()> {
    walk(scene, Work::Copy)
}

/// All steps, each before and after; or as many rounds as are asked for, evenly over all steps.
fn walk(scene: &Scene<'_>, work: Work) -> Result<()> {
    let Some(stage) = Stage::ready(scene)? else {
        return Ok(());
    };
    // One that nobody disturbs says how many steps there are.
    let whole = work.round(&stage, 0, None, false).context("without a kill")?;
    let all = whole.writes * 2;
    ensure!(all > 0, "nothing changed the bucket: this test tests nothing");
    let rounds = u64::from(scene.rounds(SHORT, u32::MAX)).min(all);
    let (mut killed, mut missed) = (BTreeMap::<String, u64>::new(), 0);
    for round in 0..rounds {
        scene.stop.check()?;
        let at = (2 * round + 1) * all / (2 * rounds);
        let (step, moment) = (
            at / 2 + 1,
            if at.is_multiple_of(2) {
                Moment::Before
            } else {
                Moment::After
            },
        );
        let is_finished =
            scene.faults.is_some() && (round % FINISHED_EVERY == FINISHED_EVERY - 1 || round + 1 == rounds);
        let outcome = work
            .round(&stage, round + 1, Some((step, moment)), is_finished)
            .with_context(|| format!("{work:?}, killed {moment:?} write {step} of {}", whole.writes))?;
        match outcome.killed_at {
            Some(at) => *killed.entry(format!("{moment:?} {at}")).or_default() += 1,
            None => missed += 1,
        }
    }
    println!(
        "  {} writes, {rounds} rounds, of which {missed} were done before the step came",
        whole.writes
    );
    for (at, count) in &killed {
        println!("  {count:>4} killed {at}");
    }
    ensure!(
        missed * 2 <= rounds,
        "most rounds were done before the step came: this test tests little"
    );
    Ok(())
}
