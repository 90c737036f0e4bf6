//! The stacks of a flamegraph's answer, frame by frame: what the benches that know the truth judge.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::http::{self, Client, integer};

/// One frame as the page shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Such as `native`, or a language: `profile.frame.type`.
    pub(super) kind: &'a str,
    /// Base name of the file, where there is one.
    pub(super) module: &'a str,
    /// In brackets where the function has no name.
    pub(super) name: &'a str,
    /// Each time it stands here, it was inlined into its caller.
    pub(super) is_inlined: bool,
}

impl Frame<'_> {
    /// Whether its function is known.
    pub(super) fn is_named(&self) -> bool {
        !self.name.is_empty() && !self.name.starts_with('[')
    }
}

/// The tree of one window.
#[derive(Debug)]
pub(super) struct Stacks {
    truncated: u64,
    strings: Vec<String>,
    kinds: Vec<String>,
    nodes: Nodes,
}

/// Columns with an entry a node; a parent stands before its children.
#[derive(Debug, Deserialize)]
struct Nodes {
    parent: Vec<i64>,
    name: Vec<usize>,
    module: Vec<usize>,
    kind: Vec<usize>,
    inlined: Vec<u8>,
    #[serde(rename = "self")]
    own: Vec<u64>,
}

impl Stacks {
    /// Those of what the selector chooses in `[from_ms, until_ms)`.
    pub(super) fn get(client: &Client, query: &str, from_ms: i64, until_ms: i64) -> Result<Stacks> {
        let (from, until) = (from_ms.to_string(), until_ms.to_string());
        let path = http::path(
            "/api/v1/flamegraph",
            &[("query", query), ("from", &from), ("until", &until)],
        );
        Stacks::of(client.get_json(&path)?)
    }

    fn of(mut answer: Value) -> Result<Stacks> {
        let mut taken = |key: &str| {
            answer
                .get_mut(key)
                .map(Value::take)
                .with_context(|| format!("no {key}"))
        };
        let stacks = Stacks {
            truncated: integer(&taken("quality")?["truncated_samples"]).cast_unsigned(),
            strings: serde_json::from_value(taken("strings")?)?,
            kinds: serde_json::from_value(taken("kinds")?)?,
            nodes: serde_json::from_value(taken("nodes")?)?,
        };
        let nodes = &stacks.nodes;
        let count = nodes.parent.len();
        let lengths = [
            nodes.name.len(),
            nodes.module.len(),
            nodes.kind.len(),
            nodes.inlined.len(),
            nodes.own.len(),
        ];
        anyhow::ensure!(lengths == [count; 5], "the tree's columns have different lengths");
        Ok(stacks)
    }

    /// Samples whose stack was cut.
    pub(super) fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Hands over each distinct stack, root first, with its samples.
    pub(super) fn each(&self, mut take: impl FnMut(&[Frame<'_>], u64)) {
        let mut frames = Vec::new();
        for (node, own) in self.nodes.own.iter().enumerate() {
            if *own == 0 {
                continue;
            }
            frames.clear();
            let mut at = node;
            // The root is no frame.
            while at != 0 {
                frames.push(self.frame(at));
                at = usize::try_from(self.nodes.parent[at]).unwrap_or(0);
            }
            frames.reverse();
            take(&frames, *own);
        }
    }

    fn frame(&self, node: usize) -> Frame<'_> {
        Frame {
            kind: of(&self.kinds, self.nodes.kind[node]),
            module: of(&self.strings, self.nodes.module[node]),
            name: of(&self.strings, self.nodes.name[node]),
            is_inlined: self.nodes.inlined[node] != 0,
        }
    }
}

fn of(texts: &[String], at: usize) -> &str {
    texts.get(at).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_the_way_from_the_root_to_each_node_with_samples_of_its_own() {
        let answer = serde_json::json!({
            "quality": {"truncated_samples": 2},
            "strings": ["", "all", "main", "[libc.so.6]", "libc.so.6", "f"],
            "kinds": ["root", "native", "cpython"],
            "nodes": {"parent": [-1, 0, 1, 2], "name": [1, 2, 3, 5], "module": [0, 0, 4, 0], "kind": [0, 1, 1, 2],
                "inlined": [0, 0, 0, 1], "self": [0, 3, 0, 4]},
        });
        let stacks = Stacks::of(answer).unwrap();
        assert_eq!(stacks.truncated(), 2);
        let mut seen = vec![];
        stacks.each(|frames, samples| {
            let frames: Vec<_> = frames
                .iter()
                .map(|frame| (frame.kind, frame.name, frame.is_named(), frame.is_inlined))
                .collect();
            seen.push((format!("{frames:?}"), samples));
        });
        assert_eq!(
            seen,
            [
                ("[(\"native\", \"main\", true, false)]".to_owned(), 3),
                (
                    "[(\"native\", \"main\", true, false), (\"native\", \"[libc.so.6]\", false, false), \
                     (\"cpython\", \"f\", true, true)]"
                        .to_owned(),
                    4
                ),
            ]
        );
    }

    #[test]
    fn a_tree_whose_columns_do_not_fit_is_refused() {
        let answer = serde_json::json!({
            "quality": {}, "strings": [], "kinds": [],
            "nodes": {"parent": [-1, 0], "name": [1], "module": [0], "kind": [0], "self": [0]},
        });
        assert!(Stacks::of(answer).is_err());
    }
}
