//! Leaves small nodes out of an answer without losing their samples. Pure.

use super::tree::{Children, Kind, NONE, Name, Tree};

/// What stands at a place of a trimmed tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// This node of the whole tree.
    Node(u32),
    /// These siblings and everything below them.
    Folded(Vec<u32>),
}

/// A tree with the small nodes of each parent folded into one.
#[derive(Debug)]
pub struct Trimmed {
    /// In pre-order; a folded node comes after its siblings.
    pub places: Vec<Place>,
    /// Parent of each place, [`NONE`] for the root.
    pub parent: Vec<u32>,
    /// Names of folded nodes, by place; `None` for others.
    pub folded_names: Vec<Option<Name>>,
}

impl Trimmed {
    /// Of the nodes that `exists` accepts, keeps the root and those that `keep` accepts, in pre-order, siblings by name. Neither must accept a
    /// node below one that it refuses.
    pub fn new(tree: &Tree, exists: impl Fn(usize) -> bool, keep: impl Fn(usize) -> bool) -> Trimmed {
        let parent = &tree.nodes.parent;
        let kept: Vec<bool> = (0..tree.len())
            .map(|node| node == 0 || (exists(node) && keep(node)))
            .collect();
        // The nearest node above each that is kept, and how many nodes are folded below it.
        let mut above = vec![0_u32; tree.len()];
        let mut frames = vec![0_u32; tree.len()];
        for node in 1..tree.len() {
            if kept[node] {
                above[node] = node as u32;
            } else if exists(node) {
                above[node] = above[parent[node] as usize];
                frames[above[node] as usize] += 1;
            }
        }
        let children = Children::of(tree, |node| kept[parent[node] as usize] && (kept[node] || exists(node)));
        let mut result = Trimmed {
            places: Vec::new(),
            parent: Vec::new(),
            folded_names: Vec::new(),
        };
        // Nodes with the place of their parent, and how many are folded into one; what is folded comes after its siblings.
        let mut pending = vec![(Place::Node(0), NONE, 0)];
        while let Some((place, parent, folded)) = pending.pop() {
            let Place::Node(node) = place else {
                if let Place::Folded(siblings) = place {
                    result.fold(siblings, folded, parent);
                }
                continue;
            };
            let at = result.places.len() as u32;
            result.push(Place::Node(node), parent, None);
            let (below, folded): (Vec<u32>, Vec<u32>) = children
                .of_node(node as usize)
                .iter()
                .partition(|child| kept[**child as usize]);
            if !folded.is_empty() {
                pending.push((Place::Folded(folded), at, frames[node as usize]));
            }
            pending.extend(below.into_iter().rev().map(|child| (Place::Node(child), at, 0)));
        }
        result
    }

    fn fold(&mut self, siblings: Vec<u32>, frames: u32, parent: u32) {
        let plural = if frames == 1 { "frame" } else { "frames" };
        let function = format!("{frames} {plural} below the threshold").into();
        let name = Name {
            function,
            module: "".into(),
            kind: Kind::Trimmed,
        };
        self.push(Place::Folded(siblings), parent, Some(name));
    }

    fn push(&mut self, place: Place, parent: u32, name: Option<Name>) {
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
        let sum = |place: &Place| match place {
            Place::Node(node) => of_node[*node as usize],
            Place::Folded(nodes) => nodes.iter().map(|node| of_folded[*node as usize]).sum(),
        };
        self.places.iter().map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Shape;
    use super::super::tree::tests::{build, stacks};
    use super::*;

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
