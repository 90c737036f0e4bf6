//! Reads tables that are small, such as those of series, by the library.

use crate::query::limits::error::QueryError;
use crate::store::Snapshot;
use arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::{Expr, SessionConfig, SessionContext};
use futures::StreamExt;

/// Errors of the engine, as the user is told them.
pub(crate) fn engine_error(what: &'static str) -> impl Fn(DataFusionError) -> QueryError {
    move |error| match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => QueryError::too_large(
            "the query needs more memory than queries may have",
            "ask for a shorter window, a narrower selector, or fewer groups",
        ),
        _ => QueryError::internal(what, error),
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
    let read = async {
        let frame = session(snapshot).table(table).await?.filter(filter)?;
        frame.select_columns(columns)?.execute_stream().await
    };
    let mut stream: SendableRecordBatchStream = read.await.map_err(engine_error(table))?;
    while let Some(batch) = stream.next().await {
        each(&batch.map_err(engine_error(table))?);
    }
    Ok(())
}

pub(crate) fn arrow_error(error: arrow::error::ArrowError) -> QueryError {
    QueryError::internal("read rows", error)
}
