//! Rows of labels above the stacks of a tree. Pure.

use crate::hash::MixState;
use crate::query::tree::frame::{Kind, Name};
use crate::query::tree::nodes::{NONE, Names, Nodes, Tree};
use std::collections::HashMap;
use std::sync::Arc;

/// Memory of a node while rows are put above it, in bytes: its columns, and where its image is.
pub(crate) const NODE_BYTES: usize = 24;

/// The values of some labels above each of some stacks.
#[derive(Debug, Clone, Default)]
pub struct LabelRows {
    /// Names of the labels, outermost first.
    pub labels: Vec<Arc<str>>,
    /// Of each group a value of each label; one that samples lack is empty.
    pub groups: Vec<Vec<Arc<str>>>,
    /// The group of each stack.
    pub group_of: Vec<u32>,
}

impl LabelRows {
    /// The tree with a node for each value above the stacks that have it. A stack stands below its group's values
    /// only, in the shape that it has in `base`. `hold` is told now and then how many nodes there are.
    pub(crate) fn above<E>(&self, base: &Tree, mut hold: impl FnMut(usize) -> Result<(), E>) -> Result<Tree, E> {
        let (names, name_of) = self.names(&base.names);
        let mut nodes = Nodes {
            parent: vec![NONE],
            name: vec![NONE],
            inlined: vec![false],
            outermost: vec![true],
        };
        let mut heads = HashMap::default();
        let mut leaf_of = vec![NONE; base.leaf_of.len()];
        // Of each node of the base its image below the group that was there last.
        let mut image = vec![(NONE, NONE); base.len()];
        let mut order: Vec<u32> = (0..leaf_of.len() as u32).collect();
        order.sort_by_key(|stack| self.group_of[*stack as usize]);
        let (mut path, mut told) = (Vec::new(), 0);
        for stack in order {
            let (group, leaf) = (self.group_of[stack as usize], base.leaf_of[stack as usize]);
            if leaf == NONE {
                continue;
            }
            if image[0].0 != group {
                image[0] = (group, head(&mut nodes, &mut heads, &name_of[group as usize]));
            }
            let mut at = leaf;
            while image[at as usize].0 != group {
                path.push(at);
                at = base.nodes.parent[at as usize];
            }
            let mut above = image[at as usize].1;
            while let Some(node) = path.pop() {
                let of = node as usize;
                let next = nodes.parent.len() as u32;
                nodes.parent.push(above);
                nodes.name.push(base.nodes.name[of]);
                nodes.inlined.push(base.nodes.inlined[of]);
                nodes.outermost.push(base.nodes.outermost[of]);
                image[of] = (group, next);
                above = next;
            }
            leaf_of[stack as usize] = above;
            if nodes.parent.len() > told + 4_096 {
                told = nodes.parent.len();
                hold(told)?;
            }
        }
        hold(nodes.parent.len())?;
        let mut tree = Tree {
            names: Arc::new(names),
            nodes: Arc::new(nodes),
            leaf_of,
        };
        // The order of groups is that in which threads met them.
        tree.sort();
        Ok(tree)
    }

    /// The names of frames and, behind them, those of rows; and of each group the names of its rows.
    fn names(&self, frames: &Names) -> (Names, Vec<Vec<u32>>) {
        let mut names = frames.clone();
        let mut known: Vec<HashMap<&str, u32, foldhash::fast::RandomState>> =
            vec![HashMap::default(); self.labels.len()];
        let mut name_of = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let rows = group.iter().enumerate().map(|(level, value)| {
                *known[level].entry(value).or_insert_with(|| {
                    names.list.push(Name {
                        function: value.clone(),
                        module: self.labels[level].clone(),
                        kind: Kind::Label,
                    });
                    names.list.len() as u32 - 1
                })
            });
            name_of.push(rows.collect());
        }
        names.ranks = names.ranked();
        (names, name_of)
    }
}

/// The innermost row of a group.
fn head(nodes: &mut Nodes, heads: &mut HashMap<(u32, u32), u32, MixState>, rows: &[u32]) -> u32 {
    let mut above = 0;
    for name in rows {
        let next = nodes.parent.len() as u32;
        above = *heads.entry((above, *name)).or_insert_with(|| {
            nodes.parent.push(above);
            nodes.name.push(*name);
            nodes.inlined.push(false);
            nodes.outermost.push(true);
            next
        });
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::tree::nodes::Shape;
    use crate::query::tree::nodes::tests::{build, stacks};
    use regex::Regex;

    /// Three stacks of two services, one of them of both.
    fn rows(groups: &[&[&str]], group_of: &[u32]) -> LabelRows {
        LabelRows {
            labels: vec!["service".into(), "process".into()],
            groups: (groups.iter())
                .map(|group| group.iter().map(|value| Arc::from(*value)).collect())
                .collect(),
            group_of: group_of.to_vec(),
        }
    }

    fn listing(tree: &Tree, own: &[u64]) -> Vec<String> {
        let totals = tree.totals(own);
        let mut paths: Vec<String> = vec!["all".into()];
        for node in 1..tree.len() {
            let name = tree.name_of(node);
            let shown = match name.kind {
                Kind::Label => format!("{}={}", name.module, name.function),
                _ => name.function.to_string(),
            };
            paths.push(format!("{};{shown}", paths[tree.nodes.parent[node] as usize]));
        }
        (0..tree.len())
            .map(|node| format!("{} {} {}", paths[node], totals[node], own[node]))
            .collect()
    }

    fn above(shape: &Shape, rows: &LabelRows, lines: &[&str]) -> Tree {
        let mut all = stacks(lines);
        all.stacks.iter_mut().for_each(|stack| stack.truncated = false);
        rows.above(&build(&all, shape), |_| Ok::<_, ()>(())).unwrap()
    }

    #[test]
    fn stacks_stand_below_the_values_of_their_group_alone() {
        let groups: &[&[&str]] = &[&["web", "b"], &["db", ""], &["web", "a"]];
        let rows = rows(groups, &[0, 1, 2, 0]);
        let tree = above(&Shape::default(), &rows, &["main;f", "main;f", "main;f;g", "main"]);
        let own = tree.own_counts([1, 10, 100, 1_000]);
        assert_eq!(
            listing(&tree, &own),
            [
                "all 1111 0",
                "all;service=db 10 0",
                "all;service=db;process= 10 0",
                "all;service=db;process=;main 10 0",
                "all;service=db;process=;main;f 10 10",
                "all;service=web 1101 0",
                "all;service=web;process=a 100 0",
                "all;service=web;process=a;main 100 0",
                "all;service=web;process=a;main;f 100 0",
                "all;service=web;process=a;main;f;g 100 100",
                "all;service=web;process=b 1001 0",
                "all;service=web;process=b;main 1001 1000",
                "all;service=web;process=b;main;f 1 1",
            ]
        );
    }

    #[test]
    fn a_group_without_a_stack_below_a_new_root_has_no_row() {
        let shape = Shape {
            root: Some(Regex::new("^f$").unwrap()),
            merge_recursion: false,
        };
        let groups: &[&[&str]] = &[&["web", "a"], &["db", "b"]];
        let tree = above(&shape, &rows(groups, &[0, 1]), &["main;f;g", "main;h"]);
        let own = tree.own_counts([3, 4]);
        assert_eq!(
            listing(&tree, &own),
            [
                "all 3 0",
                "all;service=web 3 0",
                "all;service=web;process=a 3 0",
                "all;service=web;process=a;f 3 0",
                "all;service=web;process=a;f;g 3 3",
            ]
        );
        assert_eq!(tree.leaf_of[1], NONE);
    }

    #[test]
    fn a_value_that_is_named_as_a_function_is_another_name() {
        let groups: &[&[&str]] = &[&["main", "main"]];
        let tree = above(&Shape::default(), &rows(groups, &[0]), &["main;main"]);
        let own = tree.own_counts([5]);
        let counts = tree.by_name(&tree.totals(&own), &own);
        let of = |kind: Kind| -> Vec<(u64, u64)> {
            (tree.names.list.iter().zip(&counts))
                .filter(|(name, _)| name.kind == kind)
                .map(|(_, counts)| *counts)
                .collect()
        };
        assert_eq!(of(Kind::Native), [(5, 5)]);
        assert_eq!(of(Kind::Label), [(5, 0), (5, 0)]);
    }

    #[test]
    fn what_there_is_no_room_for_ends_it() {
        let groups: &[&[&str]] = &[&["web", "a"]];
        let tree = build(&stacks(&["main;f"]), &Shape::default());
        assert_eq!(rows(groups, &[0]).above(&tree, Err).err(), Some(5));
    }
}
