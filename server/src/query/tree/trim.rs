//! Leaves small nodes out of an answer without losing their samples. Pure.

use crate::query::tree::nodes::{Kind, NONE, Name, Tree};

/// What stands at a place of a trimmed tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownNode {
    /// This node of the whole tree.
    Node(u32),
    /// These siblings and everything below them.
    Folded(Vec<u32>),
}

/// A tree with the small nodes of each parent folded into one.
#[derive(Debug)]
pub struct Trimmed {
    /// In pre-order; a folded node comes after its siblings.
    pub places: Vec<ShownNode>,
    /// Parent of each place, [`NONE`] for the root.
    pub parent: Vec<u32>,
    /// Names of folded nodes, by place; `None` for others.
    pub folded_names: Vec<Option<Name>>,
}

impl Trimmed {
    /// Of the nodes that `exists` accepts, keeps the root and those that `keep` accepts, in pre-order, siblings by
    /// name. Neither must accept a node below one that it refuses.
    pub fn new(tree: &Tree, exists: impl Fn(usize) -> bool, keep: impl Fn(usize) -> bool) -> Trimmed {
        let (parent, names) = (&tree.nodes.parent, &tree.nodes.name);
        // The nodes that are kept, parents first, and of each node which of them is the nearest at or above it.
        let mut kept = vec![0_u32];
        let mut above = vec![0_u32; tree.len()];
        // Of each one that is kept, how many nodes are folded below it; and with its place in `kept` those right
        // below it.
        let mut frames = vec![0_u32];
        let (mut below, mut folded) = (Vec::new(), Vec::new());
        for node in 1..tree.len() {
            let nearest = above[parent[node] as usize];
            above[node] = nearest;
            if !exists(node) {
                continue;
            }
            let is_right_below = kept[nearest as usize] == parent[node];
            if is_right_below && keep(node) {
                above[node] = kept.len() as u32;
                below.push((nearest, tree.names.ranks[names[node] as usize], above[node]));
                kept.push(node as u32);
                frames.push(0);
            } else {
                frames[nearest as usize] += 1;
                if is_right_below {
                    folded.push((nearest, node as u32));
                }
            }
        }
        below.sort_unstable();
        folded.sort_unstable();
        let mut result = Trimmed {
            places: Vec::new(),
            parent: Vec::new(),
            folded_names: Vec::new(),
        };
        // Those of one parent are neighbours.
        let of = |parent: u32| below.partition_point(|(above, ..)| *above < parent);
        let folded_of = |parent: u32| folded.partition_point(|(above, _)| *above < parent);
        // Nodes with the place of their parent; what is folded comes after its siblings.
        let mut pending = vec![(Some(0), 0, NONE)];
        while let Some((node, of_folded, parent)) = pending.pop() {
            let Some(index) = node else {
                let siblings = &folded[folded_of(of_folded)..folded_of(of_folded + 1)];
                let siblings = siblings.iter().map(|(_, node)| *node).collect();
                result.fold(siblings, frames[of_folded as usize], parent);
                continue;
            };
            let at = result.places.len() as u32;
            result.push(ShownNode::Node(kept[index as usize]), parent, None);
            if frames[index as usize] > 0 {
                pending.push((None, index, at));
            }
            let children = &below[of(index)..of(index + 1)];
            pending.extend(children.iter().rev().map(|(.., child)| (Some(*child), 0, at)));
        }
        result
    }

    /// As [`Trimmed::new`]; `hold` is told how many places there are at most, before there are any.
    pub fn held<E>(
        tree: &Tree,
        exists: impl Fn(usize) -> bool,
        keep: impl Fn(usize) -> bool,
        hold: impl FnOnce(usize) -> Result<(), E>,
    ) -> Result<Trimmed, E> {
        let kept = (0..tree.len()).filter(|node| exists(*node) && keep(*node)).count();
        // Below each that is kept one more for what is folded.
        hold(kept + kept.min(tree.len() - kept))?;
        Ok(Trimmed::new(tree, exists, keep))
    }

    /// As [`Trimmed::held`], of a tree of two sides: keeps what has this share of the samples of one of them.
    pub fn of_two<E>(
        tree: &Tree,
        totals: [&[u64]; 2],
        samples: [u64; 2],
        min_share: f64,
        hold: impl FnOnce(usize) -> Result<(), E>,
    ) -> Result<Trimmed, E> {
        let least = samples.map(|samples| min_share * samples as f64);
        let is_enough = |node: usize, side: usize| {
            let total = totals[side][node];
            total > 0 && total as f64 >= least[side]
        };
        let exists = |node: usize| totals[0][node] + totals[1][node] > 0;
        let keep = |node: usize| min_share <= 0.0 || is_enough(node, 0) || is_enough(node, 1);
        Trimmed::held(tree, exists, keep, hold)
    }

    fn fold(&mut self, siblings: Vec<u32>, frames: u32, parent: u32) {
        let plural = if frames == 1 { "frame" } else { "frames" };
        let function = format!("{frames} {plural} below the threshold").into();
        let name = Name {
            function,
            module: "".into(),
            kind: Kind::Trimmed,
        };
        self.push(ShownNode::Folded(siblings), parent, Some(name));
    }

    fn push(&mut self, place: ShownNode, parent: u32, name: Option<Name>) {
        self.places.push(place);
        self.parent.push(parent);
        self.folded_names.push(name);
    }

    /// Inclusive counts at each place.
    pub fn totals(&self, totals: &[u64]) -> Vec<u64> {
        self.sums(totals, totals)
    }

    /// Own counts at each place; a folded node's are all of its samples.
    pub fn own(&self, own: &[u64], totals: &[u64]) -> Vec<u64> {
        self.sums(own, totals)
    }

    fn sums(&self, of_node: &[u64], of_folded: &[u64]) -> Vec<u64> {
        let sum = |place: &ShownNode| match place {
            ShownNode::Node(node) => of_node[*node as usize],
            ShownNode::Folded(nodes) => nodes.iter().map(|node| of_folded[*node as usize]).sum(),
        };
        self.places.iter().map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::tree::nodes::Shape;
    use crate::query::tree::nodes::tests::{build, stacks};

    #[test]
    fn sums_stay_exact_at_any_threshold() {
        let lines = ["m;a;x", "m;a;y", "m;b;z;w", "m;b", "m", "n;o", "n;p", "m;c;d;e"];
        let tree = build(&stacks(&lines), &Shape::default());
        let own = tree.own_counts([1, 2, 3, 50, 7, 4, 90, 5]);
        let totals = tree.totals(&own);
        for threshold in [0, 2, 3, 4, 6, 60, 1_000] {
            let trimmed = Trimmed::new(&tree, |_| true, |node| totals[node] >= threshold);
            let (t, s) = (trimmed.totals(&totals), trimmed.own(&own, &totals));
            assert_eq!(t[0], 162);
            for place in 0..t.len() {
                let below: u64 = (0..t.len())
                    .filter(|p| trimmed.parent[*p] == place as u32)
                    .map(|p| t[p])
                    .sum();
                assert_eq!(t[place], s[place] + below, "threshold {threshold}, place {place}");
                assert!(place == 0 || trimmed.parent[place] < place as u32, "pre-order");
            }
        }
        let whole = Trimmed::new(&tree, |_| true, |_| true);
        assert_eq!(whole.places.len(), tree.len());
        let none = Trimmed::new(&tree, |_| true, |_| false);
        assert_eq!(none.places.len(), 2);
        assert_eq!(
            &*none.folded_names[1].as_ref().unwrap().function,
            "13 frames below the threshold"
        );
    }
}
