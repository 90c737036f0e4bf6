//! Every stack that was met, as one tree of names that grows and is kept from one query to the next. Does no I/O.
//!
//! A stack is then the node at which it ends: a query adds counts to nodes, and neither looks at frames nor hashes
//! them. What is kept never becomes stale, since ids are hashes of content.

use crate::hash::MixState;
use crate::query::ask::question::RuntimeFrames;
use crate::query::limits::reservation::Reservation;
use crate::query::tree::frame::{Frame, Kind, Missing, Name};
use crate::query::tree::nodes::{NONE, Names, Nodes, Shape, Tree, picked};
use crate::query::tree::runtime_frames::{Role, folded};
use std::collections::HashMap;
use std::sync::Arc;

/// What is kept of a frame.
#[derive(Debug, Clone, Copy)]
struct FrameEntry {
    name: u32,
    inlined: bool,
    named: bool,
    role: Role,
}

/// Where a stack ends, and what it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    node: u32,
    pub(crate) missing: Missing,
}

/// A frame on the way to where a stack ends.
#[derive(Debug, Clone, Copy)]
struct Step {
    frame_id: i64,
    name: u32,
    node: u32,
    /// It has no name, or one above has none.
    unnamed: bool,
    /// It was not added, or one above was not.
    lacks: bool,
}

/// See the module. A node's parent has a smaller index than the node; node 0 is the root.
#[derive(Debug)]
pub(crate) struct CallingContextTree {
    names: Arc<Names>,
    index: HashMap<Name, u32, foldhash::fast::RandomState>,
    frames: HashMap<i64, FrameEntry, MixState>,
    stacks: HashMap<i64, Leaf, MixState>,
    nodes: Arc<Nodes>,
    /// By parent and name.
    children: HashMap<u64, u32, MixState>,
    /// The stack that was added last, root first: many stacks begin as the one before.
    path: Vec<Step>,
    text_bytes: usize,
    runtime_frames: RuntimeFrames,
    /// It has frames of a language, so that stacks may have frames to fold.
    has_languages: bool,
    /// What it takes of the memory of queries.
    pub(crate) held: Option<Reservation>,
}

impl CallingContextTree {
    /// Without any stack.
    pub(crate) fn new(runtime_frames: RuntimeFrames) -> Self {
        CallingContextTree {
            names: Arc::default(),
            index: HashMap::default(),
            frames: HashMap::default(),
            stacks: HashMap::default(),
            nodes: Arc::new(Nodes {
                parent: vec![NONE],
                name: vec![NONE],
                inlined: vec![false],
                outermost: vec![true],
            }),
            children: HashMap::default(),
            path: Vec::new(),
            text_bytes: 0,
            runtime_frames,
            has_languages: false,
            held: None,
        }
    }

    /// Memory that it takes, in bytes: capacities, with a byte an entry for what a hash table needs itself.
    pub(crate) fn bytes(&self) -> usize {
        self.names.list.capacity() * (size_of::<Name>() + size_of::<u32>())
            + self.index.capacity() * (size_of::<(Name, u32)>() + 1)
            + self.text_bytes
            + self.frames.capacity() * (size_of::<(i64, FrameEntry)>() + 1)
            + self.stacks.capacity() * (size_of::<(i64, Leaf)>() + 1)
            + self.nodes.parent.capacity() * 10
            + self.children.capacity() * (size_of::<(u64, u32)>() + 1)
    }

    /// How many nodes it has.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.parent.len()
    }

    /// Where the stack of this id ends, if it was added.
    pub(crate) fn leaf(&self, stack_id: i64) -> Option<Leaf> {
        self.stacks.get(&stack_id).copied()
    }

    /// Whether the frame of this id was added.
    pub(crate) fn has_frame(&self, frame_id: i64) -> bool {
        self.frames.contains_key(&frame_id)
    }

    /// Adds a frame; stacks that have it come later.
    pub(crate) fn add_frame(&mut self, frame_id: i64, frame: &Frame) {
        let name = self.name(&frame.name);
        let (inlined, named, role) = (frame.inlined, frame.named, Role::of(&frame.name));
        self.has_languages |= matches!(role, Role::Language(_));
        // It may have been met before it was known.
        self.path.clear();
        self.frames.insert(
            frame_id,
            FrameEntry {
                name,
                inlined,
                named,
                role,
            },
        );
    }

    fn name(&mut self, name: &Name) -> u32 {
        if let Some(known) = self.index.get(name) {
            return *known;
        }
        let index = self.names.list.len() as u32;
        self.text_bytes += name.function.len() + name.module.len() + 32;
        Arc::make_mut(&mut self.names).list.push(name.clone());
        self.index.insert(name.clone(), index);
        index
    }

    /// Adds a stack: its frames leaf first. A frame that was not added is an unknown one, so that no sample is
    /// hidden; where such a stack ends comes back, since it is not kept: its frames may be known later.
    pub(crate) fn add_stack(&mut self, stack_id: i64, frames: &[i64], truncated: bool) -> Option<Leaf> {
        let told = self.folded(frames);
        let (leaf, lacks) = self.leaf_of(told.as_deref().unwrap_or(frames), truncated);
        if lacks {
            return Some(leaf);
        }
        self.stacks.insert(stack_id, leaf);
        None
    }

    fn folded(&self, frames: &[i64]) -> Option<Vec<i64>> {
        let folds = self.has_languages && self.runtime_frames == RuntimeFrames::Fold;
        let role = |id: i64| self.frames.get(&id).map_or(Role::Other, |frame| frame.role);
        folds.then(|| folded(frames, role)).flatten()
    }

    /// Where a stack ends of which nothing is known: at one unknown frame. It is not kept: it may be known later.
    pub(crate) fn unknown(&mut self) -> Leaf {
        self.leaf_of(&[0], false).0
    }

    /// Where a stack ends that is one frame in the place of all that it lacks.
    pub(crate) fn stand_in(&mut self, name: &Name) -> Leaf {
        self.path.clear();
        let frame = FrameEntry {
            name: self.name(name),
            inlined: false,
            named: true,
            role: Role::Other,
        };
        let node = self.child(0, frame);
        if self.nodes.inlined[node as usize] {
            Arc::make_mut(&mut self.nodes).inlined[node as usize] = false;
        }
        let missing = Missing {
            root: true,
            name: false,
        };
        Leaf { node, missing }
    }

    /// And whether a frame of it was not added.
    fn leaf_of(&mut self, frames: &[i64], truncated: bool) -> (Leaf, bool) {
        let mut missing = Missing {
            root: truncated || frames.is_empty(),
            name: false,
        };
        let roots_first = || frames.iter().rev();
        // The very frames of the one before are not even looked up.
        let known = roots_first().zip(&self.path);
        let known = known.take_while(|(id, step)| **id == step.frame_id).count();
        let (mut node, mut lacks) = (0, false);
        if let Some(step) = known.checked_sub(1).map(|last| self.path[last]) {
            (node, missing.name, lacks) = (step.node, step.unnamed, step.lacks);
        }
        let mut is_common = true;
        for (depth, frame_id) in roots_first().enumerate().skip(known) {
            let frame = match self.frames.get(frame_id) {
                Some(frame) => *frame,
                None => {
                    lacks = true;
                    FrameEntry {
                        name: self.name(&Frame::new(Kind::Unknown, "", "", "", None).name),
                        inlined: false,
                        named: false,
                        role: Role::Other,
                    }
                }
            };
            missing.name |= !frame.named;
            let step = self
                .path
                .get(depth)
                .copied()
                .filter(|step| is_common && step.name == frame.name);
            is_common = step.is_some();
            node = match step {
                Some(step) => step.node,
                None => {
                    self.path.truncate(depth);
                    self.child(node, frame)
                }
            };
            let step = Step {
                frame_id: *frame_id,
                name: frame.name,
                node,
                unnamed: missing.name,
                lacks,
            };
            match self.path.get_mut(depth) {
                // What is below it goes on being said of the same names.
                Some(place) if (place.unnamed, place.lacks) == (step.unnamed, step.lacks) => *place = step,
                _ => {
                    self.path.truncate(depth);
                    self.path.push(step);
                }
            }
            if !frame.inlined && self.nodes.inlined[node as usize] {
                Arc::make_mut(&mut self.nodes).inlined[node as usize] = false;
            }
        }
        (Leaf { node, missing }, lacks)
    }

    /// The child of the path's last node.
    fn child(&mut self, parent: u32, frame: FrameEntry) -> u32 {
        let next = self.nodes.parent.len() as u32;
        let key = u64::from(parent) << 32 | u64::from(frame.name);
        let node = *self.children.entry(key).or_insert(next);
        if node == next {
            let nodes = Arc::make_mut(&mut self.nodes);
            nodes.parent.push(parent);
            nodes.name.push(frame.name);
            nodes.inlined.push(true);
            nodes
                .outermost
                .push(self.path.iter().all(|step| step.name != frame.name));
        }
        node
    }

    /// Makes room for so many more frames and stacks.
    pub(crate) fn reserve(&mut self, frames: usize, stacks: usize) {
        self.index.reserve(frames);
        self.frames.reserve(frames);
        self.stacks.reserve(stacks);
    }

    /// Puts names in order; to be called when frames were added.
    pub(crate) fn rank(&mut self) {
        if let Some(names) = self.unranked() {
            let ranks = names.ranked();
            drop(names);
            self.set_ranks(ranks);
        }
    }

    /// Names of which some are not in order yet.
    pub(crate) fn unranked(&self) -> Option<Arc<Names>> {
        (self.names.ranks.len() != self.names.list.len()).then(|| self.names.clone())
    }

    /// Takes what [`Names::ranked`] said of [`CallingContextTree::unranked`].
    pub(crate) fn set_ranks(&mut self, ranks: Vec<u32>) {
        Arc::make_mut(&mut self.names).ranks = ranks;
    }

    /// The tree of these stacks. `alone`: it has no other nodes. Otherwise it may share all nodes with others, which
    /// costs nothing.
    pub(crate) fn tree(&self, leaves: &[Leaf], shape: &Shape, alone: bool) -> Tree {
        let is_plain = shape.root.is_none() && !shape.merge_recursion;
        if is_plain && !alone && leaves.len() >= self.stacks.len() / 8 {
            return Tree {
                names: self.names.clone(),
                nodes: self.nodes.clone(),
                leaf_of: leaves.iter().map(|leaf| leaf.node).collect(),
            };
        }
        let all = &self.nodes;
        let mut used = vec![false; all.parent.len()];
        used[0] = true;
        for leaf in leaves {
            let mut node = leaf.node as usize;
            while !used[node] {
                used[node] = true;
                node = all.parent[node] as usize;
            }
        }
        let order: Vec<u32> = (0..used.len() as u32).filter(|node| used[*node as usize]).collect();
        let mut places = vec![NONE; used.len()];
        for (place, node) in order.iter().enumerate() {
            places[*node as usize] = place as u32;
        }
        let mut parent = picked(&all.parent, &order);
        for parent in &mut parent[1..] {
            *parent = places[*parent as usize];
        }
        let tree = Tree {
            names: self.names.clone(),
            nodes: Arc::new(Nodes {
                parent,
                name: picked(&all.name, &order),
                inlined: picked(&all.inlined, &order),
                outermost: picked(&all.outermost, &order),
            }),
            leaf_of: leaves.iter().map(|leaf| places[leaf.node as usize]).collect(),
        };
        tree.reshaped(shape)
    }
}
