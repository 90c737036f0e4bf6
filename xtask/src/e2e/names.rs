//! Soon after the start, the machine's services are there with named frames of both worlds.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::Scene;
use crate::http::path;
use crate::stack::Stack;

/// Within 20 s of the agent's start there are services, and a flamegraph whose kernel and user frames carry names.
pub(crate) fn within_20_seconds(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stack = Stack::start(&scene.options(dir.path(), 20), scene.stop)?;
    let begin = Instant::now();
    stack.wait_samples(Duration::from_secs(20), scene.stop)?;
    let arrived = begin.elapsed();
    // Enough samples to judge by: three batches.
    let wait = Duration::from_secs(20)
        .saturating_sub(arrived)
        .min(Duration::from_secs(12));
    std::thread::sleep(wait);
    let services = stack.client.get_json("/api/v1/labels/service/values")?;
    let count = services["values"].as_array().map_or(0, Vec::len);
    let graph = stack
        .client
        .get_json(&path("/api/v1/flamegraph", &[("from", "now-1m")]))?;
    let nodes = &graph["nodes"];
    let kinds: Vec<&str> = graph["kinds"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|kind| kind.as_str())
        .collect();
    let mut named = std::collections::BTreeMap::new();
    for (kind, name) in nodes["kind"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(nodes["name"].as_array().into_iter().flatten())
    {
        let kind = kind
            .as_u64()
            .and_then(|kind| kinds.get(usize::try_from(kind).ok()?))
            .copied()
            .unwrap_or("?");
        let name = name
            .as_u64()
            .and_then(|name| graph["strings"].get(usize::try_from(name).ok()?)?.as_str())
            .unwrap_or("");
        let entry = named.entry(kind).or_insert((0_u32, 0_u32));
        entry.0 += u32::from(!name.is_empty() && !name.contains("+0x") && !name.starts_with('['));
        entry.1 += 1;
    }
    println!(
        "first samples after {:.1} s; {count} services; named of all nodes by kind: {named:?}",
        arrived.as_secs_f64()
    );
    ensure!(count > 0, "no service after 20 s");
    for kind in ["kernel", "native"] {
        let (names, all) = named.get(kind).copied().unwrap_or_default();
        ensure!(
            names > 0 && names * 2 > all,
            "of {all} {kind} nodes only {names} carry a name"
        );
    }
    stack.stop()
}
