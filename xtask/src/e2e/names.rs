//! Soon after the start, the machine's services are there with named frames of both worlds.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::scene::Scene;
use crate::http::path;
use crate::service::POLL;
use crate::stack::Stack;

/// A program that spends its time in the kernel, so that there is something to see on an idle machine too.
struct Load(Child);

impl Load {
    fn start() -> Result<Load> {
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/urandom", "of=/dev/null", "bs=64k"])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        Ok(Load(dd.spawn().context("can't start dd")?))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Within 20 s of the agent's start there are services, and a flamegraph whose kernel and user frames carry names.
pub(crate) fn within_20_seconds(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let _load = Load::start()?;
    let mut stack = Stack::start(&scene.options(dir.path(), 20), scene.stop)?;
    let begin = Instant::now();
    let limit = Duration::from_secs(20);
    stack.wait_samples(limit, scene.stop)?;
    println!("first samples after {:.1} s", begin.elapsed().as_secs_f64());
    loop {
        scene.stop.check()?;
        let services = stack.client.get_json("/api/v1/labels/service/values")?;
        let count = services["values"].as_array().map_or(0, Vec::len);
        let graph = stack
            .client
            .get_json(&path("/api/v1/flamegraph", &[("from", "now-1m")]))?;
        let named = named_by_kind(&graph);
        let enough = ["kernel", "native"].iter().all(|kind| {
            let (names, all) = named.get(*kind).copied().unwrap_or_default();
            names > 0 && names * 2 > all
        });
        if count > 0 && enough {
            println!(
                "after {:.1} s: {count} services; named of all nodes by kind: {named:?}",
                begin.elapsed().as_secs_f64()
            );
            return stack.stop();
        }
        ensure!(
            begin.elapsed() < limit,
            "after 20 s: {count} services; named of all nodes by kind: {named:?}; more than half of the kernel's and of the native must be"
        );
        thread::sleep(POLL);
    }
}

/// How many nodes of a flamegraph carry a name, of how many, by the kind of their frame.
fn named_by_kind(graph: &Value) -> BTreeMap<&str, (u32, u32)> {
    let text = |table: &'static str, index: &Value| {
        let index = usize::try_from(index.as_u64()?).ok()?;
        graph[table].get(index)?.as_str()
    };
    let column = |name: &'static str| graph["nodes"][name].as_array().into_iter().flatten();
    let mut named = BTreeMap::new();
    for (kind, name) in column("kind").zip(column("name")) {
        let name = text("strings", name).unwrap_or("");
        let entry = named
            .entry(text("kinds", kind).unwrap_or("?"))
            .or_insert((0_u32, 0_u32));
        entry.0 += u32::from(!name.is_empty() && !name.contains("+0x") && !name.starts_with('['));
        entry.1 += 1;
    }
    named
}
