//! Collapsed stacks, one a line, root first: `a;b;c N`; of a difference `a;b;c BASE N`, as `inferno-flamegraph` and
//! `flamegraph.pl` read them (<https://github.com/brendangregg/FlameGraph#2-fold-stacks>).

use crate::query::nodes::{Name, Tree};
use crate::query::{Difference, Flamegraph};
use crate::render::error::RenderError;
use crate::render::writer::Writer;
use std::fmt::{self, Write as _};

/// Stands for a name that is empty.
const UNKNOWN: &str = "[unknown]";
/// A count with a space before it and the end of the line after it.
const COUNT_BYTES: usize = 22;

/// Samples of one window.
pub fn collapsed(graph: &Flamegraph, to: &mut Writer) -> Result<(), RenderError> {
    to.beside(names_bytes(&graph.tree))?;
    lines(graph, to).map_err(|error| RenderError::new("folded stacks", error))
}

pub(super) fn lines(graph: &Flamegraph, to: &mut impl fmt::Write) -> fmt::Result {
    let shown = |node: usize| graph.own[node] > 0;
    write(&graph.tree, to, shown, |to, node| write!(to, " {}", graph.own[node]))
}

/// At most so many bytes are these lines, and what they are made of.
pub(super) fn lines_bytes(graph: &Flamegraph) -> usize {
    let tree = &graph.tree;
    let mut path_bytes = vec![0_usize; tree.len()];
    let mut bytes = 0;
    for node in 0..tree.len() {
        if node > 0 {
            let name = tree.name_of(node).text();
            path_bytes[node] = path_bytes[tree.nodes.parent[node] as usize] + name.len().max(UNKNOWN.len()) + 1;
        }
        if graph.own[node] > 0 {
            bytes += path_bytes[node] + UNKNOWN.len() + COUNT_BYTES;
        }
    }
    bytes + names_bytes(tree) + tree.len() * size_of::<usize>()
}

/// Of names as they are written.
fn names_bytes(tree: &Tree) -> usize {
    let bytes = |name: &Name| name.text().len().max(UNKNOWN.len()) + size_of::<String>();
    tree.names.list.iter().map(bytes).sum()
}

/// Samples of both sides of a difference, side A first.
pub fn differential(difference: &Difference, to: &mut Writer) -> Result<(), RenderError> {
    to.beside(names_bytes(&difference.tree))?;
    let shown = |node: usize| difference.own[node] > 0 || difference.base_own[node] > 0;
    write(&difference.tree, to, shown, |to, node| {
        write!(to, " {} {}", difference.base_own[node], difference.own[node])
    })
    .map_err(|error| RenderError::new("folded stacks", error))
}

/// Lines of the nodes that `shown` accepts; `counts` ends each.
fn write<W: fmt::Write>(
    tree: &Tree,
    to: &mut W,
    shown: impl Fn(usize) -> bool,
    counts: impl Fn(&mut W, usize) -> fmt::Result,
) -> fmt::Result {
    let names: Vec<String> = tree.names.list.iter().map(sanitized).collect();
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
            path.push(UNKNOWN);
        }
        for (index, name) in path.iter().rev().enumerate() {
            if index > 0 {
                to.write_char(';')?;
            }
            to.write_str(name)?;
        }
        counts(to, node)?;
        to.write_char('\n')?;
    }
    Ok(())
}

/// A name that cannot be taken for anything else in a line: without separators and control characters, and not ending
/// in a space and a number, which a reader would take for a count.
pub(super) fn sanitized(name: &Name) -> String {
    let mut clean: String = name
        .text()
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
    if clean.is_empty() { UNKNOWN.to_owned() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::nodes::Kind;

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
