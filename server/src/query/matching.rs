//! Samples whose stack has a frame with a matching name: which stacks these are, and a collector that leaves out the others.

use super::account::Account;
use super::counts::StackCounts;
use super::dictionary::{Leaves, ONE_TREE};
use super::engine::Engine;
use super::error::QueryError;
use super::flamegraph::blocking;
use super::scan::{Collector, Rows, When, codes, scan};
use super::select::{Days, Question, scope};
use super::steps::Steps;
use super::tree::{MixState, Shape};
use super::weighed::Weighed;
use crate::store::Snapshot;
use crate::store::columns::Wanted;
use regex::Regex;
use std::collections::HashSet;
use std::sync::Arc;

/// Ids of stacks.
pub(super) type StackIds = HashSet<i64, MixState>;

/// Which of the stacks have a frame whose function matches.
pub(super) fn has_match(leaves: &Leaves, pattern: &Regex) -> Vec<bool> {
    let tree = leaves.tree(&Shape::default(), true);
    let reached = tree.reached(|name| pattern.is_match(&name.function));
    tree.leaf_of.iter().map(|leaf| reached[*leaf as usize]).collect()
}

/// Stacks of a selection.
pub(super) struct Matched {
    pub stacks: Arc<StackIds>,
    /// Samples of the whole selection, whatever their stacks.
    pub samples: u64,
    /// The memory that the ids take.
    _held: Account,
}

/// The stacks of the selection that have a frame whose function matches.
pub(super) async fn matching_stacks(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    pattern: Regex,
) -> Result<Matched, QueryError> {
    let selected = scope(snapshot, question).await?;
    let (steps, limit) = (Steps::one(question.window), engine.limits.stacks);
    let (counts, held) = scan(snapshot, question, &selected, || {
        StackCounts::new(steps, question.except, limit)
    })
    .await?;
    let Weighed { ids, periods, .. } = counts.weighed();
    let leaves = engine
        .dictionary
        .leaves(snapshot, &Days::of(question.window), &ids, ONE_TREE)
        .await?;
    let stacks: Arc<StackIds> = blocking(move || {
        let matches = has_match(&leaves, &pattern);
        let found = ids.iter().copied().zip(matches).filter(|(_, is_match)| *is_match);
        Arc::new(found.map(|(id, _)| id).collect())
    })
    .await?;
    held.resize(stacks.capacity() * (size_of::<i64>() + 1))?;
    Ok(Matched {
        stacks,
        samples: periods.samples,
        _held: held,
    })
}

/// Hands on the rows of some stacks.
#[derive(Debug, Clone)]
pub(super) struct OnlyStacks<C> {
    pub counts: C,
    pub stacks: Arc<StackIds>,
}

impl<C: Collector> Collector for OnlyStacks<C> {
    fn columns(&self) -> Vec<Wanted> {
        let mut columns = self.counts.columns();
        columns.push(codes("stack_id"));
        columns
    }

    fn when(&self) -> When {
        self.counts.when()
    }

    fn cuts(&self) -> Vec<i64> {
        self.counts.cuts()
    }

    fn checks_times(&self) -> bool {
        self.counts.checks_times()
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let stack = rows.codes(self.counts.columns().len())?;
        let wanted: Vec<bool> = (0..stack.distinct())
            .map(|code| stack.number(code).is_some_and(|id| self.stacks.contains(&id)))
            .collect();
        if !wanted.contains(&true) {
            return Ok(());
        }
        self.counts.add(&rows.only(&stack.codes.map(&wanted)))
    }

    fn bytes(&self) -> usize {
        self.counts.bytes()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.counts.merge(other.counts)
    }
}
