//! Stacks to one tree. Pure: stacks and their frames in, a tree's shape out, counts added up along it.
//!
//! A node is a path of names from the root; a name is (kind, base name of the module, function). The shape does not depend on
//! the order in which stacks come. Counts are samples.

pub use super::frame::{Frame, Kind, Missing, Name, Stack, Stacks};
pub use crate::hash::MixState;
use regex::Regex;
use std::collections::HashMap;
use std::sync::Arc;

/// How stacks become paths.
#[derive(Debug, Default)]
pub struct Shape {
    /// Paths begin at the outermost frame whose function matches; stacks without one are left out.
    pub root: Option<Regex>,
    /// A function that calls itself directly counts as one frame.
    pub merge_recursion: bool,
}

/// Stands for "no node" in [`Tree::leaf_of`] and for the root's parent.
pub const NONE: u32 = u32::MAX;

/// The shape of a tree: nodes in pre-order, siblings by name, node 0 the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Sorted; names\[0\] is not special.
    pub names: Vec<Name>,
    /// Parent of each node, [`NONE`] for the root.
    pub parent: Vec<u32>,
    /// Index into `names`; the root's is [`NONE`].
    pub name: Vec<u32>,
    /// Every frame of this node was inlined into its parent.
    pub inlined: Vec<bool>,
    /// Node at which each stack ends, [`NONE`] for a stack that was left out.
    pub leaf_of: Vec<u32>,
}

impl Tree {
    /// The union of all paths.
    pub fn build(stacks: &Stacks, shape: &Shape) -> Tree {
        let paths = Paths::new(stacks, shape);
        let mut draft = Draft::default();
        let mut leaf_of = Vec::with_capacity(stacks.stacks.len());
        let mut path = Vec::new();
        for stack in &stacks.stacks {
            if !paths.of(stack, &mut path) {
                leaf_of.push(NONE);
                continue;
            }
            let mut node = 0;
            for frame in path.iter().rev() {
                let name = paths.name_of_frame[*frame as usize];
                node = draft.child(node, name, stacks.frames[*frame as usize].inlined);
            }
            leaf_of.push(node);
        }
        draft.finish(paths.names, leaf_of)
    }

    /// Nodes, the root included.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether it has no node but the root.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// Adds counts of stacks to the nodes where they end. `counts` is parallel to the stacks that the tree was built of.
    pub fn own_counts(&self, counts: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut own = vec![0; self.len()];
        for (leaf, count) in self.leaf_of.iter().zip(counts) {
            if *leaf != NONE {
                own[*leaf as usize] += count;
            }
        }
        own
    }

    /// Inclusive counts from own counts of nodes.
    pub fn totals(&self, own: &[u64]) -> Vec<u64> {
        let mut totals = own.to_vec();
        for node in (1..self.len()).rev() {
            totals[self.parent[node] as usize] += totals[node];
        }
        totals
    }

    /// The end (exclusive) of each node's subtree in pre-order.
    pub fn ends(&self) -> Vec<u32> {
        let mut ends: Vec<u32> = (1..=self.len() as u32).collect();
        for node in (1..self.len()).rev() {
            let parent = self.parent[node] as usize;
            ends[parent] = ends[parent].max(ends[node]);
        }
        ends
    }

    /// For each node whether it or a node above it has a name that `test` accepts: a sample is then counted once.
    pub fn reached(&self, test: impl Fn(&Name) -> bool) -> Vec<bool> {
        let accepted: Vec<bool> = self.names.iter().map(test).collect();
        let mut reached = vec![false; self.len()];
        for node in 1..self.len() {
            reached[node] = reached[self.parent[node] as usize] || accepted[self.name[node] as usize];
        }
        reached
    }

    /// For each name the samples with at least one frame of it, and the samples that end in it: (total, self). `totals` and
    /// `own` are those of the nodes.
    pub fn by_name(&self, totals: &[u64], own: &[u64]) -> Vec<(u64, u64)> {
        let mut result = vec![(0, 0); self.names.len()];
        self.outermost(|node, name, is_outermost| {
            result[name].1 += own[node];
            if is_outermost {
                result[name].0 += totals[node];
            }
        });
        result
    }

    /// Calls back for each node but the root in pre-order: node, its name, and whether no node above has the same name.
    pub fn outermost(&self, mut visit: impl FnMut(usize, usize, bool)) {
        let ends = self.ends();
        // The end of the subtree in which a name is already open.
        let mut open_until = vec![0_u32; self.names.len()];
        for (node, end) in ends.iter().enumerate().skip(1) {
            let name = self.name[node] as usize;
            let is_outermost = node as u32 >= open_until[name];
            if is_outermost {
                open_until[name] = *end;
            }
            visit(node, name, is_outermost);
        }
    }
}

/// The paths that stacks become in a shape.
#[derive(Debug)]
pub struct Paths {
    names: Vec<Name>,
    name_of_frame: Vec<u32>,
    /// For each name whether a path may begin with it; `None`: with any.
    starts: Option<Vec<bool>>,
    merge_recursion: bool,
}

impl Paths {
    pub fn new(stacks: &Stacks, shape: &Shape) -> Paths {
        let (names, name_of_frame) = intern(&stacks.frames);
        let starts = shape
            .root
            .as_ref()
            .map(|root| names.iter().map(|name| root.is_match(&name.function)).collect());
        Paths {
            names,
            name_of_frame,
            starts,
            merge_recursion: shape.merge_recursion,
        }
    }

    /// Writes the frames of a stack's path, leaf first; false when the stack is left out.
    pub fn of(&self, stack: &Stack, path: &mut Vec<u32>) -> bool {
        path.clear();
        let mut frames = &stack.frames[..];
        if let Some(starts) = &self.starts {
            match frames
                .iter()
                .rposition(|frame| starts[self.name_of_frame[*frame as usize] as usize])
            {
                Some(outermost) => frames = &frames[..=outermost],
                None => return false,
            }
        }
        path.extend_from_slice(frames);
        if self.merge_recursion {
            path.dedup_by_key(|frame| self.name_of_frame[*frame as usize]);
        }
        true
    }
}

/// Distinct names, sorted, and the name of each frame.
fn intern(frames: &[Arc<Frame>]) -> (Vec<Name>, Vec<u32>) {
    let mut order: Vec<u32> = (0..frames.len() as u32).collect();
    order.sort_by(|a, b| frames[*a as usize].name.cmp(&frames[*b as usize].name));
    let mut names: Vec<Name> = Vec::new();
    let mut name_of_frame = vec![0; frames.len()];
    for frame in order {
        let name = &frames[frame as usize].name;
        if names.last() != Some(name) {
            names.push(name.clone());
        }
        name_of_frame[frame as usize] = names.len() as u32 - 1;
    }
    (names, name_of_frame)
}

/// A tree in the order in which its nodes were met.
#[derive(Debug)]
struct Draft {
    children: HashMap<(u32, u32), u32, MixState>,
    parent: Vec<u32>,
    name: Vec<u32>,
    inlined: Vec<bool>,
}

impl Default for Draft {
    fn default() -> Self {
        Draft {
            children: HashMap::default(),
            parent: vec![NONE],
            name: vec![NONE],
            inlined: vec![false],
        }
    }
}

impl Draft {
    fn child(&mut self, parent: u32, name: u32, inlined: bool) -> u32 {
        let next = self.parent.len() as u32;
        let node = *self.children.entry((parent, name)).or_insert(next);
        if node == next {
            self.parent.push(parent);
            self.name.push(name);
            self.inlined.push(inlined);
        } else {
            self.inlined[node as usize] &= inlined;
        }
        node
    }

    fn finish(self, names: Vec<Name>, mut leaf_of: Vec<u32>) -> Tree {
        let count = self.parent.len();
        // Children of one parent stand together, by name: names are sorted, so their index is their rank.
        let mut by_parent: Vec<u32> = (1..count as u32).collect();
        by_parent.sort_unstable_by_key(|node| (self.parent[*node as usize], self.name[*node as usize]));
        let mut first = vec![0_usize; count + 1];
        for node in 1..count {
            first[self.parent[node] as usize + 1] += 1;
        }
        for node in 0..count {
            first[node + 1] += first[node];
        }
        let mut tree = Tree {
            names,
            parent: Vec::with_capacity(count),
            name: Vec::with_capacity(count),
            inlined: Vec::with_capacity(count),
            leaf_of: Vec::new(),
        };
        let mut place = vec![NONE; count];
        let mut pending = vec![0_u32];
        while let Some(node) = pending.pop() {
            let node = node as usize;
            place[node] = tree.parent.len() as u32;
            let parent = self.parent[node];
            tree.parent
                .push(if parent == NONE { NONE } else { place[parent as usize] });
            tree.name.push(self.name[node]);
            tree.inlined.push(self.inlined[node]);
            pending.extend(by_parent[first[node]..first[node + 1]].iter().rev());
        }
        for leaf in leaf_of.iter_mut().filter(|leaf| **leaf != NONE) {
            *leaf = place[*leaf as usize];
        }
        tree.leaf_of = leaf_of;
        tree
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Stacks from text such as `main;a;b`, root first; a frame `k:x` is a kernel frame.
    pub(crate) fn stacks(lines: &[&str]) -> Stacks {
        let mut result = Stacks::default();
        for line in lines {
            let mut frames = Vec::new();
            for part in line.split(';').rev() {
                let frame = match part.strip_prefix("k:") {
                    Some(rest) => Frame::new(Kind::Kernel, "[kernel]", rest, None),
                    None => Frame::new(Kind::Native, "/usr/bin/app", part, None),
                };
                let index = result.frames.iter().position(|f| **f == frame).unwrap_or_else(|| {
                    result.frames.push(Arc::new(frame));
                    result.frames.len() - 1
                });
                frames.push(index as u32);
            }
            result.stacks.push(Stack {
                frames: frames.into(),
                truncated: false,
            });
        }
        result
    }

    /// Every node as `path total self`, in order.
    fn listing(tree: &Tree, own: &[u64]) -> Vec<String> {
        let totals = tree.totals(own);
        let mut paths: Vec<String> = vec!["all".into()];
        for node in 1..tree.len() {
            let above = &paths[tree.parent[node] as usize];
            paths.push(format!("{above};{}", tree.names[tree.name[node] as usize].function));
        }
        (0..tree.len())
            .map(|n| format!("{} {} {}", paths[n], totals[n], own[n]))
            .collect()
    }

    #[test]
    fn a_tree_has_the_paths_and_sums_of_its_stacks() {
        let tree = Tree::build(&stacks(&["main;b", "main;a;k:x", "main", "main;a"]), &Shape::default());
        let own = tree.own_counts([4, 3, 2, 1]);
        assert_eq!(
            listing(&tree, &own),
            [
                "all 10 0",
                "all;main 10 2",
                "all;main;a 4 1",
                "all;main;a;x 3 3",
                "all;main;b 4 4"
            ]
        );
        assert_eq!(tree.ends(), [5, 5, 4, 4, 5]);
    }

    #[test]
    fn recursion_is_one_frame_on_request_and_never_counted_twice() {
        let input = stacks(&["main;f;f;f;g", "main;f;g;f"]);
        let tree = Tree::build(&input, &Shape::default());
        let own = tree.own_counts([5, 2]);
        let totals = tree.totals(&own);
        let counts = tree.by_name(&totals, &own);
        let of = |function: &str| counts[tree.names.iter().position(|n| &*n.function == function).unwrap()];
        assert_eq!(of("f"), (7, 2), "a sample with three frames of f is one sample in f");
        assert_eq!(of("g"), (7, 5));
        let merged = Tree::build(
            &input,
            &Shape {
                merge_recursion: true,
                root: None,
            },
        );
        let own = merged.own_counts([5, 2]);
        assert_eq!(
            listing(&merged, &own),
            [
                "all 7 0",
                "all;main 7 0",
                "all;main;f 7 0",
                "all;main;f;g 7 5",
                "all;main;f;g;f 2 2"
            ]
        );
    }

    #[test]
    fn a_new_root_takes_the_outermost_match_and_leaves_others_out() {
        let shape = Shape {
            root: Some(Regex::new("^f").unwrap()),
            merge_recursion: false,
        };
        let tree = Tree::build(&stacks(&["main;f1;a;f2", "main;x", "other;f2"]), &shape);
        let own = tree.own_counts([1, 10, 100]);
        assert_eq!(
            listing(&tree, &own),
            [
                "all 101 0",
                "all;f1 1 0",
                "all;f1;a 1 0",
                "all;f1;a;f2 1 1",
                "all;f2 100 100"
            ]
        );
        assert_eq!(tree.leaf_of[1], NONE);
    }

    #[test]
    fn a_match_counts_each_sample_once() {
        let tree = Tree::build(&stacks(&["main;f;f", "main;f", "main;g"]), &Shape::default());
        let reached = tree.reached(|name| &*name.function == "f");
        let own = tree.own_counts([1, 10, 100]);
        assert_eq!(
            own.iter()
                .zip(&reached)
                .filter(|(_, r)| **r)
                .map(|(c, _)| c)
                .sum::<u64>(),
            11
        );
    }

    #[test]
    fn a_node_is_inlined_when_all_its_frames_are() {
        let mut input = stacks(&["main;a", "main;b"]);
        let frames = input.frames.clone();
        let inlined = |f: &Arc<Frame>| {
            Arc::new(Frame {
                inlined: true,
                ..(**f).clone()
            })
        };
        input.frames.push(inlined(&frames[0]));
        let index = input.frames.len() as u32 - 1;
        let mut second = input.stacks[0].clone();
        second.frames[0] = index;
        let both = Stacks {
            stacks: vec![input.stacks[0].clone(), second.clone()],
            ..input.clone()
        };
        assert_eq!(Tree::build(&both, &Shape::default()).inlined, [false, false, false]);
        let only = Stacks {
            stacks: vec![second],
            ..input
        };
        assert_eq!(Tree::build(&only, &Shape::default()).inlined, [false, false, true]);
    }
}
