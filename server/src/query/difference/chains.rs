//! Which nodes of a tree are judged by themselves. Pure.

/// Nodes of a tree that are judged by themselves. A node with the same counts on both sides as its parent is in its
/// parent's chain and shares its judgement: the same samples are tested once.
#[derive(Debug, Clone)]
pub(crate) struct Chains {
    /// One node of each chain, its topmost.
    pub(crate) heads: Vec<u32>,
    /// The chain above each; smaller than the chain itself. The first one's means nothing. Empty where chains are
    /// single nodes.
    pub(crate) parent: Vec<u32>,
    /// Chain of each node.
    pub(crate) chain_of: Vec<u32>,
}

impl Chains {
    /// `parent` of nodes whose parents come before them; `base` and `comparison` are inclusive counts.
    pub(crate) fn of(parent: &[u32], base: &[u64], comparison: &[u64]) -> Chains {
        let (mut heads, mut above_heads) = (vec![0; parent.len()], vec![0; parent.len()]);
        let mut chain_of: Vec<u32> = Vec::with_capacity(parent.len());
        let mut count = 0;
        let counts = parent.iter().zip(base.iter().zip(comparison));
        for (node, (above, (a, b))) in counts.enumerate() {
            let above = *above as usize;
            // Of the root, which has none above it.
            let (base_above, comparison_above, chain_above) = match node {
                0 => (u64::MAX, u64::MAX, u32::MAX),
                _ => (base[above], comparison[above], chain_of[above]),
            };
            // A node without samples is not part of this tree, and needs no judgement of its own.
            let is_same = (*a == base_above) & (*b == comparison_above) | (node > 0) & (*a | *b == 0);
            // Written in any case, and stays where it is one: whether the next is the begin of a chain cannot be
            // foretold.
            heads[count] = node as u32;
            above_heads[count] = chain_above;
            chain_of.push(if is_same { chain_above } else { count as u32 });
            count += usize::from(!is_same);
        }
        heads.truncate(count);
        above_heads.truncate(count);
        Chains {
            heads,
            parent: above_heads,
            chain_of,
        }
    }

    /// Every node at which samples end is judged by itself, the others are in no chain. `base` and `comparison` are
    /// own counts.
    pub(crate) fn of_own(base: &[u64], comparison: &[u64]) -> Chains {
        let mut heads = Vec::new();
        let chain_of = base.iter().zip(comparison).enumerate().map(|(node, counts)| {
            if counts == (&0, &0) {
                return u32::MAX;
            }
            heads.push(node as u32);
            heads.len() as u32 - 1
        });
        let chain_of = chain_of.collect();
        Chains {
            heads,
            parent: Vec::new(),
            chain_of,
        }
    }

    /// The counts of the heads.
    pub(crate) fn pick(&self, totals: &[u64]) -> Vec<u64> {
        self.heads.iter().map(|head| totals[*head as usize]).collect()
    }

    /// The chain of the node at which a stack ends; no node is in no chain.
    pub(crate) fn of_leaf(&self, leaf: u32) -> u32 {
        self.chain_of.get(leaf as usize).copied().unwrap_or(u32::MAX)
    }
}
