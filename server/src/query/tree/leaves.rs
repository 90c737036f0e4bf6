//! Where stacks end in the tree that is kept, and the trees that are made of them. Does no I/O.

use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::tree::calling_context::{CallingContextTree, Leaf};
use crate::query::tree::label_rows::{self, LabelRows};
use crate::query::tree::nodes::{Name, Shape, Tree};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The tree that is kept, as many queries look at it at once.
pub(super) type Shared = Arc<RwLock<CallingContextTree>>;

pub(super) fn read(contexts: &Shared) -> RwLockReadGuard<'_, CallingContextTree> {
    contexts.read().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn write(contexts: &Shared) -> RwLockWriteGuard<'_, CallingContextTree> {
    contexts.write().unwrap_or_else(PoisonError::into_inner)
}

/// Where stacks end.
#[derive(Debug)]
pub(crate) struct Leaves {
    pub(super) contexts: Shared,
    /// Parallel to the ids that were asked for.
    pub(crate) leaves: Vec<Leaf>,
    /// What is made of them takes so much.
    pub(crate) held: Arc<Reservation>,
    /// What stands above them.
    pub(crate) rows: Option<Arc<LabelRows>>,
    /// Memory of each node of what is made of them.
    pub(super) node_bytes: usize,
}

impl Leaves {
    /// The tree of these stacks; see [`CallingContextTree::tree`].
    pub(crate) fn tree(&self, shape: &Shape, alone: bool) -> Tree {
        read(&self.contexts).tree(&self.leaves, shape, alone)
    }

    /// Puts a stack among them that no table has: it is one frame of this name, in the place of all that it lacks. For
    /// threads that may block.
    pub(crate) fn insert(&mut self, place: usize, name: &Name) {
        let mut known = write(&self.contexts);
        let leaf = known.stand_in(name);
        known.rank();
        drop(known);
        self.leaves.insert(place, leaf);
    }

    /// The same with the rows of labels that stand above them.
    pub(crate) fn labelled_tree(&self, shape: &Shape, alone: bool) -> Result<Tree, QueryError> {
        let Some(rows) = &self.rows else {
            return Ok(self.tree(shape, alone));
        };
        let (held, each) = (self.held.bytes(), self.node_bytes + label_rows::NODE_BYTES);
        rows.above(&self.tree(shape, true), |nodes| self.held.resize(held + nodes * each))
    }
}
