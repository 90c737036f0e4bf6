//! speedscope's file format, an aggregated profile: <https://www.speedscope.app/file-format-schema.json>.

use crate::query::Flamegraph;
use crate::query::nodes::Name;
use crate::render::error::RenderError;
use crate::render::writer::Writer;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

#[derive(Serialize)]
struct File<'a, F, P> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared<F>,
    profiles: [P; 1],
}

#[derive(Serialize)]
struct Shared<F> {
    frames: F,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
}

#[derive(Serialize)]
struct Profile<'a, S, W> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    unit: &'a str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: S,
    weights: W,
}

const UNKNOWN: Frame<'_> = Frame {
    name: Cow::Borrowed("[unknown]"),
    file: "",
};

fn frame(name: &Name) -> Frame<'_> {
    Frame {
        name: name.text(),
        file: &name.module,
    }
}

/// A list that is made as it is written: there may be a million paths.
struct Lazy<F>(F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Lazy<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// One weighted sample a distinct path; weights are nanoseconds of CPU time, bytes, or what the format has no unit for.
pub fn speedscope(graph: &Flamegraph, title: &str, to: &mut Writer) -> Result<(), RenderError> {
    let (tree, names) = (&graph.tree, &graph.tree.names.list);
    let path = |node: usize| {
        let mut path = Vec::new();
        let mut at = node;
        while at != 0 {
            path.push(tree.nodes.name[at]);
            at = tree.nodes.parent[at] as usize;
        }
        path.reverse();
        if path.is_empty() {
            path.push(names.len() as u32);
        }
        path
    };
    let own = || (0..tree.len()).filter(|node| graph.own[*node] > 0);
    let counted = &graph.summary.counted;
    let weight = |node: usize| graph.own[node].saturating_mul(counted.one.max(0) as u64);
    let unit = match counted.unit.name() {
        known @ ("nanoseconds" | "bytes") => known,
        _ => "none",
    };
    let profile = Profile {
        kind: "sampled",
        name: title,
        unit,
        start: 0,
        end: own().map(weight).fold(0, u64::saturating_add),
        samples: Lazy(|| own().map(path)),
        weights: Lazy(|| own().map(weight)),
    };
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("stakeout-server@", env!("CARGO_PKG_VERSION")),
        name: title,
        active: 0,
        shared: Shared {
            // The last one is of stacks without any frame.
            frames: Lazy(|| names.iter().map(frame).chain([UNKNOWN])),
        },
        profiles: [profile],
    };
    serde_json::to_writer(to, &file).map_err(|error| RenderError::new("speedscope JSON", error))
}
