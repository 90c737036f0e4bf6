//! A server is killed at every step of what it does to a bucket: each request that changes something is caught once
//! before it arrives, and once after it is done and before its answer.
//!
//! In: what is done (a commit, a rewrite with its roll-ups, a retention, a copy), and how often. Out: whether another
//! server, whose clock is a minute ahead, and the killed one after its next start have every acknowledged sample once.
//!
//! Files that were replaced are deleted ten minutes later, which no round waits for.

mod stage;
mod works;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};

use super::scene::Scene;
use crate::bucket::Moment;
use stage::{Catch, Stage};
use works::Work;

/// Rounds of each work in CI.
const SHORT: u32 = 1;
/// By this step samples come to count.
const HARDEST: &str = "put samples: an entry of its log";
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
    // One that nobody disturbs says which steps there are.
    let whole = work.round(&stage, 0, None, false).context("without a kill")?;
    let plan = plan(&whole.steps);
    ensure!(!plan.is_empty(), "nothing changed the bucket: this test tests nothing");
    let chosen = chosen(&plan, scene.rounds(SHORT, u32::MAX));
    let rounds = chosen.len() as u64;
    let (mut killed, mut missed) = (BTreeMap::<String, u64>::new(), 0);
    for (round, catch) in (1_u64..).zip(&chosen) {
        scene.stop.check()?;
        let is_finished = scene.faults.is_some() && (round.is_multiple_of(FINISHED_EVERY) || round == rounds);
        let outcome = work.round(&stage, round, Some(catch), is_finished).with_context(|| {
            format!(
                "{work:?}, killed {}, time {}",
                named(catch.moment, &catch.step),
                catch.nth
            )
        })?;
        match outcome.killed_at {
            Some(step) => *killed.entry(named(catch.moment, &step)).or_default() += 1,
            None => missed += 1,
        }
    }
    println!(
        "  {} writes, {rounds} rounds, of which {missed} were done before the step came",
        plan.len() / 2
    );
    for (at, count) in &killed {
        println!("  {count:>4} killed {at}");
    }
    ensure!(
        missed * 2 <= rounds,
        "most rounds were done before the step came: this test tests little"
    );
    if chosen.len() == plan.len() {
        let never = plan.iter().map(|catch| named(catch.moment, &catch.step));
        let never: BTreeSet<String> = never.filter(|at| !killed.contains_key(at)).collect();
        ensure!(never.is_empty(), "it was never killed {never:?}");
    }
    Ok(())
}

fn named(moment: Moment, step: &str) -> String {
    format!("{moment:?} {step}")
}

/// Each request of a round that nobody disturbed, before it arrives and after it is done.
fn plan(steps: &BTreeMap<String, u64>) -> Vec<Catch> {
    let each = |(step, times): (&String, &u64)| -> Vec<Catch> {
        let moments = (1..=*times).flat_map(|nth| [(nth, Moment::Before), (nth, Moment::After)]);
        moments
            .map(|(nth, moment)| Catch {
                step: step.clone(),
                nth,
                moment,
            })
            .collect()
    };
    steps.iter().flat_map(each).collect()
}

/// So many of them, evenly. Of one round alone the one that is the hardest: what it wrote counts, and nobody heard of
/// it.
fn chosen(plan: &[Catch], rounds: u32) -> Vec<Catch> {
    let is_hardest = |catch: &&Catch| catch.step == HARDEST && catch.moment == Moment::After;
    if rounds == 1
        && let Some(hardest) = plan.iter().find(is_hardest)
    {
        return vec![hardest.clone()];
    }
    let rounds = usize::try_from(rounds).unwrap_or(usize::MAX).min(plan.len());
    let at = |round: usize| (2 * round + 1) * plan.len() / (2 * rounds);
    (0..rounds).map(|round| plan[at(round)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_in_the_plan_before_and_after_and_few_rounds_are_spread_over_it() {
        let steps = [("put a", 2), ("put b", 1), (HARDEST, 1)].map(|(step, times)| (step.to_owned(), times));
        let plan = plan(&BTreeMap::from(steps));
        let told = |catches: &[Catch]| -> Vec<String> {
            let told = |catch: &Catch| format!("{} {}", named(catch.moment, &catch.step), catch.nth);
            catches.iter().map(told).collect()
        };
        assert_eq!(
            told(&plan)[..4],
            ["Before put a 1", "After put a 1", "Before put a 2", "After put a 2"]
        );
        assert_eq!(plan.len(), 8);
        assert_eq!(told(&chosen(&plan, u32::MAX)), told(&plan));
        assert_eq!(told(&chosen(&plan, 2)), ["Before put a 2", told(&plan)[6].as_str()]);
        assert_eq!(told(&chosen(&plan, 1)), [format!("After {HARDEST} 1")]);
    }
}
