//! Collapsed stacks, one a line, root first: `a;b;c N`; of a difference `a;b;c BASE N`, as `inferno-flamegraph` and
//! `flamegraph.pl` read them (<https://github.com/brendangregg/FlameGraph#2-fold-stacks>).

use crate::query::tree::{Name, Tree};
use crate::query::{Difference, Flamegraph};
use std::fmt::Write;

/// Samples of one window.
pub fn collapsed(graph: &Flamegraph) -> String {
    write(
        &graph.tree,
        |node| graph.own[node] > 0,
        |line, node| {
            let _ = write!(line, " {}", graph.own[node]);
        },
    )
}

/// Samples of both sides of a difference, side A first.
pub fn differential(difference: &Difference) -> String {
    let shown = |node: usize| difference.own[node] > 0 || difference.base_own[node] > 0;
    write(&difference.tree, shown, |line, node| {
        let _ = write!(line, " {} {}", difference.base_own[node], difference.own[node]);
    })
}

/// Lines of the nodes that `shown` accepts; `counts` ends each.
fn write(tree: &Tree, shown: impl Fn(usize) -> bool, counts: impl Fn(&mut String, usize)) -> String {
    let names: Vec<String> = tree.names.list.iter().map(sanitized).collect();
    let mut text = String::new();
    let mut path = Vec::new();
    for node in 0..tree.len() {
        if !shown(node) {
            continue;
        }
        path.clear();
        let mut at = node;
        while at != 0 {
            path.push(names[tree.nodes.name[at] as usize].as_str());
            at = tree.nodes.parent[at] as usize;
        }
        // A stack without any frame.
        if path.is_empty() {
            path.push("[unknown]");
        }
        for (index, name) in path.iter().rev().enumerate() {
            if index > 0 {
                text.push(';');
            }
            text.push_str(name);
        }
        counts(&mut text, node);
        text.push('\n');
    }
    text
}

/// A name that cannot be taken for anything else in a line: without separators and control characters, and not ending in a
/// space and a number, which a reader would take for a count.
pub(super) fn sanitized(name: &Name) -> String {
    let mut clean: String = name
        .function
        .trim()
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    if let Some((_, last)) = clean.rsplit_once(' ')
        && last.parse::<f64>().is_ok()
    {
        let space = clean.len() - last.len() - 1;
        clean.replace_range(space..=space, "_");
    }
    if clean.starts_with("# ") {
        clean.replace_range(1..2, "_");
    }
    if clean.is_empty() {
        "[unknown]".to_owned()
    } else {
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::tree::Kind;

    #[test]
    fn names_cannot_break_lines() {
        let clean = |function: &str| {
            sanitized(&Name {
                function: function.into(),
                module: "".into(),
                kind: Kind::Native,
            })
        };
        assert_eq!(clean("a;b\nc\td"), "a:b c d");
        assert_eq!(clean("operator() 5"), "operator()_5");
        assert_eq!(clean("f<int, 4>"), "f<int, 4>");
        assert_eq!(clean("# comment"), "#_comment");
        assert_eq!(clean("  "), "[unknown]");
    }
}
