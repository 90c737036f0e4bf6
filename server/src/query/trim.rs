//! Leaves small nodes out of an answer without losing their samples. Pure.

use super::tree::{Kind, NONE, Name, Tree};

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
    /// Keeps the root and the nodes that `keep` accepts; `keep` must not accept a node below one that it refuses.
    pub fn new(tree: &Tree, keep: impl Fn(usize) -> bool) -> Trimmed {
        let ends = tree.ends();
        let mut result = Trimmed {
            places: Vec::new(),
            parent: Vec::new(),
            folded_names: Vec::new(),
        };
        let mut place_of = vec![NONE; tree.len()];
        let mut folded: Vec<Vec<u32>> = vec![Vec::new(); tree.len()];
        // Parents whose subtree is not over yet: their folded node comes at its end.
        let mut open: Vec<usize> = Vec::new();
        let mut node = 0;
        while node <= tree.len() {
            while open.last().is_some_and(|parent| node >= ends[*parent] as usize) {
                let Some(parent) = open.pop() else { break };
                let siblings = std::mem::take(&mut folded[parent]);
                if !siblings.is_empty() {
                    let frames: u32 = siblings.iter().map(|s| ends[*s as usize] - s).sum();
                    result.fold(siblings, frames, place_of[parent]);
                }
            }
            if node == tree.len() {
                break;
            }
            if node == 0 || keep(node) {
                place_of[node] = result.places.len() as u32;
                let parent = if node == 0 {
                    NONE
                } else {
                    place_of[tree.parent[node] as usize]
                };
                result.push(Place::Node(node as u32), parent, None);
                open.push(node);
                node += 1;
            } else {
                folded[tree.parent[node] as usize].push(node as u32);
                node = ends[node] as usize;
            }
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
    use super::super::tree::tests::stacks;
    use super::*;

    #[test]
    fn sums_stay_exact_at_any_threshold() {
        let lines = ["m;a;x", "m;a;y", "m;b;z;w", "m;b", "m", "n;o", "n;p", "m;c;d;e"];
        let tree = Tree::build(&stacks(&lines), &Shape::default());
        let own = tree.own_counts([1, 2, 3, 50, 7, 4, 90, 5]);
        let totals = tree.totals(&own);
        for threshold in [0, 2, 3, 4, 6, 60, 1_000] {
            let trimmed = Trimmed::new(&tree, |node| totals[node] >= threshold);
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
        let whole = Trimmed::new(&tree, |_| true);
        assert_eq!(whole.places.len(), tree.len());
        let none = Trimmed::new(&tree, |_| false);
        assert_eq!(none.places.len(), 2);
        assert_eq!(
            &*none.folded_names[1].as_ref().unwrap().function,
            "13 frames below the threshold"
        );
    }
}
