//! A tree's shape, and counts added up along it. Pure.
//!
//! A node is a path of names from the root; a name is (kind, base name of the module, function). Counts are samples.

pub use crate::hash::MixState;
pub use crate::query::tree::frame::{Frame, Kind, Missing, Name, Stack, Stacks};
use regex::Regex;
use std::collections::HashMap;
use std::ops::AddAssign;
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

/// Names, each once, and their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// In the order in which they were met, which need not be their own.
    pub list: Vec<Name>,
    /// Place of each name in the order of names.
    pub(crate) ranks: Vec<u32>,
}

impl Names {
    /// Place of each in the order of names.
    pub(crate) fn ranked(&self) -> Vec<u32> {
        // Those that are in order already, and then the others, which come in stretches that are: a stable sort finds
        // them.
        let mut order = vec![0; self.ranks.len()];
        for (name, rank) in self.ranks.iter().enumerate() {
            order[*rank as usize] = name as u32;
        }
        order.extend(self.ranks.len() as u32..self.list.len() as u32);
        order.sort_by(|a, b| self.list[*a as usize].cmp(&self.list[*b as usize]));
        let mut ranks = vec![0; order.len()];
        for (rank, name) in order.into_iter().enumerate() {
            ranks[name as usize] = rank as u32;
        }
        ranks
    }
}

/// Nodes, column by column. A node's parent comes before the node, node 0 is the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// Parent of each node, [`NONE`] for the root.
    pub parent: Vec<u32>,
    /// Index into the names; the root's is [`NONE`].
    pub name: Vec<u32>,
    /// Every frame of this node, in whatever stack the server has met, was inlined into its parent.
    pub inlined: Vec<bool>,
    /// No node above has the same name.
    pub(crate) outermost: Vec<bool>,
}

/// The shape of a tree. It may be shared by many answers: nodes without samples are then not part of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// What the nodes' names index.
    pub names: Arc<Names>,
    /// The nodes; some may be of other answers.
    pub nodes: Arc<Nodes>,
    /// Node at which each stack ends, [`NONE`] for a stack that was left out.
    pub leaf_of: Vec<u32>,
}

impl Tree {
    /// The name of a node but the root.
    pub fn name_of(&self, node: usize) -> &Name {
        &self.names.list[self.nodes.name[node] as usize]
    }

    /// The same stacks in another shape.
    #[must_use]
    pub(crate) fn reshaped(self, shape: &Shape) -> Tree {
        if shape.root.is_none() && !shape.merge_recursion {
            return self;
        }
        let mut starts = shape
            .root
            .as_ref()
            .map(|root| Accepted::new(&self.names, |name: &Name| root.is_match(&name.function)));
        let nodes = &self.nodes;
        let mut draft = Draft::default();
        // Where each node is in the new tree; none: above the new root.
        let mut image = vec![NONE; self.len()];
        image[0] = if starts.is_some() { NONE } else { 0 };
        for node in 1..self.len() {
            let (above, name) = (image[nodes.parent[node] as usize], nodes.name[node]);
            image[node] = match above {
                NONE if starts.as_mut().is_some_and(|starts| !starts.has(name)) => NONE,
                NONE => draft.child(0, name, nodes.inlined[node]),
                above if shape.merge_recursion && draft.name[above as usize] == name => {
                    draft.inlined[above as usize] &= nodes.inlined[node];
                    above
                }
                above => draft.child(above, name, nodes.inlined[node]),
            };
        }
        let place = |leaf: &u32| image.get(*leaf as usize).copied().unwrap_or(NONE);
        let leaf_of = self.leaf_of.iter().map(place).collect();
        draft.finish(self.names.clone(), leaf_of)
    }

    /// Puts nodes into pre-order, siblings by name, and leaves only names that they have, in order. Returns where
    /// each node of the new order was.
    pub(crate) fn sort(&mut self) -> Vec<u32> {
        let children = Children::of(self, |_| true);
        let mut order = Vec::with_capacity(self.len());
        let mut place = vec![NONE; self.len()];
        let mut pending = vec![0_u32];
        while let Some(node) = pending.pop() {
            place[node as usize] = order.len() as u32;
            order.push(node);
            pending.extend(children.of_node(node as usize).iter().rev());
        }
        let (names, place_of_name) = self.own_names();
        let moved = |of: &[u32], to: &[u32]| -> Vec<u32> {
            of.iter()
                .map(|at| to.get(*at as usize).copied().unwrap_or(NONE))
                .collect()
        };
        let nodes = &self.nodes;
        self.nodes = Arc::new(Nodes {
            parent: moved(&picked(&nodes.parent, &order), &place),
            name: moved(&picked(&nodes.name, &order), &place_of_name),
            inlined: picked(&nodes.inlined, &order),
            outermost: picked(&nodes.outermost, &order),
        });
        self.names = Arc::new(names);
        self.leaf_of = moved(&self.leaf_of, &place);
        order
    }

    /// The names that nodes have, in order, and the place of each name among them.
    fn own_names(&self) -> (Names, Vec<u32>) {
        let mut place_of_name = vec![NONE; self.names.list.len()];
        for name in &self.nodes.name[1..] {
            place_of_name[*name as usize] = 0;
        }
        let mut order: Vec<u32> = (0..place_of_name.len() as u32)
            .filter(|name| place_of_name[*name as usize] != NONE)
            .collect();
        order.sort_unstable_by_key(|name| self.names.ranks[*name as usize]);
        for (place, name) in order.iter().enumerate() {
            place_of_name[*name as usize] = place as u32;
        }
        let list = order.iter().map(|name| self.names.list[*name as usize].clone());
        let names = Names {
            list: list.collect(),
            ranks: (0..order.len() as u32).collect(),
        };
        (names, place_of_name)
    }

    /// Nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.parent.len()
    }

    /// Whether it has no node but the root.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// Adds counts of stacks to the nodes where they end. `counts` is parallel to the stacks that the tree was built
    /// of.
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
    pub fn totals<T: Copy + AddAssign>(&self, own: &[T]) -> Vec<T> {
        let mut totals = own.to_vec();
        add_up(&self.nodes.parent, &mut totals);
        totals
    }

    /// For each node whether it or a node above it has a name that `test` accepts: a sample is then counted once.
    pub fn reached(&self, test: impl Fn(&Name) -> bool) -> Vec<bool> {
        let mut accepted = Accepted::new(&self.names, test);
        let mut reached = vec![false; self.len()];
        for node in 1..self.len() {
            reached[node] = reached[self.nodes.parent[node] as usize] || accepted.has(self.nodes.name[node]);
        }
        reached
    }

    /// For each name the samples with at least one frame of it, and the samples that end in it: (total, self).
    /// `totals` and `own` are those of the nodes.
    pub fn by_name<T: Copy + Default + AddAssign>(&self, totals: &[T], own: &[T]) -> Vec<(T, T)> {
        let nodes = &self.nodes;
        let mut result = vec![(T::default(), T::default()); self.names.list.len()];
        for node in 1..self.len() {
            let (total, itself) = &mut result[nodes.name[node] as usize];
            *itself += own[node];
            if nodes.outermost[node] {
                *total += totals[node];
            }
        }
        result
    }
}

/// Names that a test accepts, each looked at when it is asked for first.
struct Accepted<'a, T> {
    names: &'a Names,
    test: T,
    known: Vec<Option<bool>>,
}

impl<'a, T: Fn(&Name) -> bool> Accepted<'a, T> {
    fn new(names: &'a Names, test: T) -> Self {
        Accepted {
            names,
            test,
            known: vec![None; names.list.len()],
        }
    }

    fn has(&mut self, name: u32) -> bool {
        let name = name as usize;
        *self.known[name].get_or_insert_with(|| (self.test)(&self.names.list[name]))
    }
}

/// Adds to each node's value those of all nodes below it. Parents come before their children.
pub(crate) fn add_up<T: Copy + AddAssign>(parent: &[u32], values: &mut [T]) {
    for node in (1..parent.len()).rev() {
        let value = values[node];
        values[parent[node] as usize] += value;
    }
}

/// What stood at each of these places.
pub(crate) fn picked<T: Copy>(from: &[T], places: &[u32]) -> Vec<T> {
    places.iter().map(|place| from[*place as usize]).collect()
}

/// Children by parent, siblings by name.
#[derive(Debug)]
pub(crate) struct Children {
    nodes: Vec<u32>,
    /// Where each node's children begin; one more at the end.
    first: Vec<u32>,
}

impl Children {
    /// Of the nodes that `keep` accepts.
    pub(crate) fn of(tree: &Tree, keep: impl Fn(usize) -> bool) -> Children {
        let kept: Vec<u32> = (1..tree.len() as u32).filter(|node| keep(*node as usize)).collect();
        let mut first = vec![0_u32; tree.len() + 1];
        for node in &kept {
            first[tree.nodes.parent[*node as usize] as usize + 1] += 1;
        }
        for node in 0..tree.len() {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut nodes = vec![0; kept.len()];
        for node in kept {
            let at = &mut next[tree.nodes.parent[node as usize] as usize];
            nodes[*at as usize] = node;
            *at += 1;
        }
        for parent in 0..tree.len() {
            let siblings = &mut nodes[first[parent] as usize..first[parent + 1] as usize];
            if siblings.len() > 1 {
                siblings.sort_unstable_by_key(|node| tree.names.ranks[tree.nodes.name[*node as usize] as usize]);
            }
        }
        Children { nodes, first }
    }

    pub(crate) fn of_node(&self, node: usize) -> &[u32] {
        &self.nodes[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

/// The paths that stacks become in a shape.
#[derive(Debug)]
pub struct Paths {
    name_of_frame: Vec<u32>,
    /// For each name whether a path may begin with it; `None`: with any.
    starts: Option<Vec<bool>>,
    merge_recursion: bool,
}

impl Paths {
    /// Numbers the names of all frames, and makes ready to find the path of each stack.
    pub fn new(stacks: &Stacks, shape: &Shape) -> Paths {
        let (names, name_of_frame) = intern(&stacks.frames);
        let starts = shape
            .root
            .as_ref()
            .map(|root| names.iter().map(|name| root.is_match(&name.function)).collect());
        Paths {
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

/// A tree that grows.
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

    fn finish(self, names: Arc<Names>, leaf_of: Vec<u32>) -> Tree {
        let Draft {
            parent, name, inlined, ..
        } = self;
        let outermost = (0..parent.len()).map(|node| is_outermost(&parent, &name, node));
        Tree {
            names,
            nodes: Arc::new(Nodes {
                outermost: outermost.collect(),
                parent,
                name,
                inlined,
            }),
            leaf_of,
        }
    }
}

fn is_outermost(parent: &[u32], name: &[u32], node: usize) -> bool {
    let mut above = parent[node];
    while above != NONE && name[above as usize] != name[node] {
        above = parent[above as usize];
    }
    above == NONE
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::query::ask::question::RuntimeFrames;
    use crate::query::tree::calling_context::CallingContextTree;

    /// Stacks from text such as `main;a;b`, root first; a frame `k:x` is a kernel frame.
    pub(crate) fn stacks(lines: &[&str]) -> Stacks {
        let mut result = Stacks::default();
        for line in lines {
            let mut frames = Vec::new();
            for part in line.split(';').rev() {
                let frame = match part.strip_prefix("k:") {
                    Some(rest) => Frame::new(Kind::Kernel, "[kernel]", "", rest, None),
                    None => Frame::new(Kind::Native, "/usr/bin/app", "", part, None),
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

    /// The tree of stacks.
    pub(crate) fn build(stacks: &Stacks, shape: &Shape) -> Tree {
        let mut contexts = CallingContextTree::new(RuntimeFrames::Fold);
        for (id, frame) in (1..).zip(&stacks.frames) {
            contexts.add_frame(id, frame);
        }
        let mut leaves = Vec::new();
        for (id, stack) in (0..).zip(&stacks.stacks) {
            let frames: Vec<i64> = stack.frames.iter().map(|index| i64::from(*index) + 1).collect();
            contexts.add_stack(id, &frames, stack.truncated);
            leaves.extend(contexts.leaf(id));
        }
        contexts.rank();
        contexts.tree(&leaves, shape, false)
    }

    /// Every node as `path total self`, in order.
    fn listing(tree: &Tree, own: &[u64]) -> Vec<String> {
        let mut tree = tree.clone();
        let own = &picked(own, &tree.sort());
        let totals = tree.totals(own);
        let mut paths: Vec<String> = vec!["all".into()];
        for node in 1..tree.len() {
            let above = &paths[tree.nodes.parent[node] as usize];
            paths.push(format!("{above};{}", tree.name_of(node).function));
        }
        (0..tree.len())
            .map(|n| format!("{} {} {}", paths[n], totals[n], own[n]))
            .collect()
    }

    #[test]
    fn a_tree_has_the_paths_and_sums_of_its_stacks() {
        let tree = build(&stacks(&["main;b", "main;a;k:x", "main", "main;a"]), &Shape::default());
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
        assert_eq!(tree.len(), 5);
    }

    #[test]
    fn recursion_is_one_frame_on_request_and_never_counted_twice() {
        let input = stacks(&["main;f;f;f;g", "main;f;g;f"]);
        let tree = build(&input, &Shape::default());
        let own = tree.own_counts([5, 2]);
        let totals = tree.totals(&own);
        let counts = tree.by_name(&totals, &own);
        let of = |function: &str| counts[tree.names.list.iter().position(|n| &*n.function == function).unwrap()];
        assert_eq!(of("f"), (7, 2), "a sample with three frames of f is one sample in f");
        assert_eq!(of("g"), (7, 5));
        let merged = build(
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
        let tree = build(&stacks(&["main;f1;a;f2", "main;x", "other;f2"]), &shape);
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
        let tree = build(&stacks(&["main;f;f", "main;f", "main;g"]), &Shape::default());
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
        assert_eq!(build(&both, &Shape::default()).nodes.inlined, [false, false, false]);
        let only = Stacks {
            stacks: vec![second],
            ..input
        };
        assert_eq!(build(&only, &Shape::default()).nodes.inlined, [false, false, true]);
    }
}
