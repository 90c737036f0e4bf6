//! Stakeout's agent: samples the stacks of everything that runs on a node, names them and ships them.

pub mod metadata;
pub mod ship;
