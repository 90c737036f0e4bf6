//! Whole stacks of a thread that never waits twice at the same place.

use super::{config, run, tells_its_stack};
use crate::recording::possible;
use stakeout_agent::frames::SampleKind;
use std::collections::HashSet;

/// What a sample stands for.
const PERIOD: f64 = 0.01;

/// Its next switch is in another function, where its stack is another one: it has to be taken as the thread comes back.
#[test]
fn stacks_of_waits_at_changing_places_are_whole() {
    if !possible() {
        return;
    }
    let (recorded, tgid, _) = run("places", 8.0, config(PERIOD));
    let seen = recorded.all_of_tgid(tgid);
    let waits = || {
        let of_thread = seen.iter().filter(|seen| &*seen.sample.thread == "places");
        of_thread.filter(|seen| matches!(seen.sample.kind, SampleKind::OffCpu(_)))
    };
    let all = waits().count();
    let whole = || waits().filter(|seen| !seen.stack.truncated && seen.has("wait_at_each_in_turn"));
    let of_place = |place: &str| whole().filter(|seen| seen.has(place)).count();
    let places = ["sleep_there", "poll_there", "lock_there"].map(of_place);
    println!(
        "{} of {all} waits are whole, {places:?} by place; {:?}",
        whole().count(),
        recorded.totals.kernel.waits
    );
    // On an emulated processor most of the time is not observed.
    assert!(all >= 20, "{all} waits");
    // What keeps the agent's own hook is no part of them: it has no name where its making was not seen, or another's.
    let leaves: HashSet<&str> = waits()
        .filter_map(|seen| seen.frames().next())
        .map(|leaf| leaf.function.as_deref().unwrap_or("unnamed"))
        .collect();
    let is_own = |leaf: &&str| *leaf == "unnamed" || leaf.starts_with("bpf_");
    assert!(!leaves.iter().any(is_own), "{leaves:?}");
    if !tells_its_stack() {
        println!("no thread tells its stack here: NOT CHECKED");
        return;
    }
    assert!(whole().count() + 1 >= all * 95 / 100, "{} of {all}", whole().count());
    // Each is whole at its own place, and at no other.
    assert_eq!(places.iter().sum::<usize>(), whole().count());
    assert!(places.iter().all(|count| *count >= all / 6), "{places:?} of {all}");
}
