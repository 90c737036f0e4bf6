//! What is read for a question: row groups of samples and of roll-ups, and the conditions on their rows.
//!
//! Files and row groups are left out by what is known of their hour, time, type, service and series.

use crate::column::bounds::Statistics;
use crate::column::coded::Projection;
use crate::query::ask::question::Question;
use crate::query::limits::error::QueryError;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::row_test::RowTest;
use crate::query::plan::scope::ResolvedSelector;
use crate::query::plan::sources::Sources;
use crate::store::format::read::groups::RowGroupTask;
use crate::store::{RangeReader, Snapshot, Table};
use datafusion::execution::memory_pool::MemoryPool;
use std::sync::Arc;

/// What an accumulator has to know of samples.
#[derive(Debug)]
pub(crate) struct Needs {
    pub(crate) columns: Vec<Projection>,
    /// How well it has to know times.
    pub(crate) when: TimeResolution,
    /// Times of the window at which it has to tell samples apart, beside its steps.
    pub(crate) cuts: Vec<i64>,
}

/// See the module. It needs no snapshot any more: whoever has it can read.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    pub(crate) units: Vec<RowGroupTask>,
    pub(crate) test: Arc<RowTest>,
    pub(crate) reader: Arc<dyn RangeReader>,
    /// The account of queries' memory.
    pub(crate) pool: Arc<dyn MemoryPool>,
}

impl ReadPlan {
    pub(crate) async fn of(
        snapshot: &Snapshot,
        question: &Question,
        scope: &ResolvedSelector,
        needs: Needs,
    ) -> Result<ReadPlan, QueryError> {
        let test = Arc::new(RowTest::new(question, scope));
        let mut units = Vec::new();
        if !scope.is_empty() {
            let used = test.uses(&needs.columns);
            let sources = Sources::plan(snapshot, question, &used, needs.when, needs.cuts).await?;
            for table in [Table::Samples].into_iter().chain(Table::ROLLUPS) {
                let may = |known: Statistics<'_>| sources.may(table, known) && test.may(known);
                let found = snapshot.units(table, may).await;
                units.extend(found.map_err(|error| QueryError::internal("read samples", error))?);
            }
        }
        Ok(ReadPlan {
            units,
            test,
            reader: snapshot.reader.clone(),
            pool: snapshot.memory_pool().clone(),
        })
    }

    /// Of row groups that another server has found.
    pub(crate) fn of_units(
        snapshot: &Snapshot,
        question: &Question,
        scope: &ResolvedSelector,
        units: Vec<RowGroupTask>,
    ) -> ReadPlan {
        ReadPlan {
            units,
            test: Arc::new(RowTest::new(question, scope)),
            reader: snapshot.reader.clone(),
            pool: snapshot.memory_pool().clone(),
        }
    }

    /// The same for other row groups.
    pub(crate) fn with_units(&self, units: Vec<RowGroupTask>) -> ReadPlan {
        ReadPlan {
            units,
            test: self.test.clone(),
            reader: self.reader.clone(),
            pool: self.pool.clone(),
        }
    }
}
