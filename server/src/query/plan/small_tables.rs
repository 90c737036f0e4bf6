//! Reads tables that are small, such as those of series, by the library.

use crate::memory::query_pool::{Refusal, SessionPool};
use crate::query::limits::error::QueryError;
use crate::store::Snapshot;
use arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::{Expr, SessionConfig, SessionContext};
use futures::StreamExt;

/// Errors of the engine in a session, as the user is told them.
pub(crate) fn engine_error<'c>(
    what: &'static str,
    context: &'c SessionContext,
) -> impl Fn(DataFusionError) -> QueryError + 'c {
    move |error| match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => no_room(context),
        _ => QueryError::internal(what, error),
    }
}

/// Why a session was refused memory: whether others have it, or it needs too much itself.
fn no_room(context: &SessionContext) -> QueryError {
    let pool = &context.runtime_env().memory_pool;
    match pool.downcast_ref::<SessionPool>().and_then(SessionPool::refused) {
        Some(Refusal { what, needed_bytes }) => QueryError::no_memory(what, needed_bytes, pool.as_ref()),
        None => QueryError::too_large(
            "the query needs more memory than queries may have",
            "ask for a shorter window, a narrower selector, or fewer groups",
        ),
    }
}

/// A session for our own plans: batches of a size that keeps a column in the CPU's cache.
pub(crate) fn session(snapshot: &Snapshot) -> SessionContext {
    snapshot.session_with(SessionConfig::new().with_batch_size(16 * 1024))
}

/// Reads columns of a small table, batch by batch.
pub(crate) async fn collect_rows(
    snapshot: &Snapshot,
    table: &'static str,
    filter: Expr,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch),
) -> Result<(), QueryError> {
    let context = session(snapshot);
    let read = async {
        let frame = context.table(table).await?.filter(filter)?;
        frame.select_columns(columns)?.execute_stream().await
    };
    let failed = engine_error(table, &context);
    let mut stream: SendableRecordBatchStream = read.await.map_err(&failed)?;
    while let Some(batch) = stream.next().await {
        each(&batch.map_err(&failed)?);
    }
    Ok(())
}

pub(crate) fn arrow_error(error: arrow::error::ArrowError) -> QueryError {
    QueryError::internal("read rows", error)
}
