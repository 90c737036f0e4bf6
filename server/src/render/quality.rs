//! Names of the parts of a group by the quality of its stacks.

/// Parts of a group's CPU time by the quality of its stacks, in the order of `Shares::quality`.
pub(crate) const QUALITY_SHARES: [&str; 3] = ["complete_share", "truncated_share", "unnamed_share"];
