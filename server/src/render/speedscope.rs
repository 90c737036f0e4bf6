//! speedscope's file format, an aggregated profile: <https://www.speedscope.app/file-format-schema.json>.

use super::RenderError;
use crate::query::Flamegraph;
use serde_json::json;

/// One weighted sample a distinct path; weights are nanoseconds of CPU time.
pub fn speedscope(graph: &Flamegraph, title: &str) -> Result<Vec<u8>, RenderError> {
    let tree = &graph.tree;
    let mut frames: Vec<_> = tree
        .names
        .list
        .iter()
        .map(|name| {
            if name.module.is_empty() {
                json!({"name": name.function})
            } else {
                json!({"name": name.function, "file": name.module})
            }
        })
        .collect();
    let period_ns = graph.summary.period_ns;
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    let mut end = 0.0;
    for node in 0..tree.len() {
        if graph.own[node] == 0 {
            continue;
        }
        let mut path = Vec::new();
        let mut at = node;
        while at != 0 {
            path.push(tree.nodes.name[at]);
            at = tree.nodes.parent[at] as usize;
        }
        path.reverse();
        if path.is_empty() {
            // A stack without any frame.
            frames.push(json!({"name": "[unknown]"}));
            path.push(frames.len() as u32 - 1);
        }
        let weight = (graph.own[node] as f64 * period_ns).round();
        end += weight;
        samples.push(path);
        weights.push(weight);
    }
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("stakeout-server@", env!("CARGO_PKG_VERSION")),
        "name": title,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": [{
            "type": "sampled",
            "name": title,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": end,
            "samples": samples,
            "weights": weights,
        }],
    });
    serde_json::to_vec(&file).map_err(|error| RenderError::new("speedscope JSON", error))
}
