//! The node of a plan that counts a share: a leaf of one partition, whose batches have partial counts in one column.

use crate::query::views::shares::count::{ShareCounter, ShareError};
use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;
use std::sync::{Arc, LazyLock};

/// What the node is called in plans.
pub const SHARE_NODE: &str = "ShareExec";

/// What memory is taken for.
const PARTIAL_COUNTS: &str = "partial counts on their way";

/// Bytes of partial counts in a row.
const PIECE_BYTES: usize = 1 << 20;

static SCHEMA: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("partial_counts", DataType::Binary, false)])));

/// See the module. Whoever decodes it has a counter; one that is only sent has none.
#[derive(Debug)]
pub struct ShareExec {
    share: Bytes,
    counter: Option<Arc<ShareCounter>>,
    properties: Arc<PlanProperties>,
}

impl ShareExec {
    /// Of a share as bytes.
    pub fn new(share: Bytes, counter: Option<Arc<ShareCounter>>) -> ShareExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(SCHEMA.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        ShareExec {
            share,
            counter,
            properties: Arc::new(properties),
        }
    }

    /// The share as bytes.
    pub fn share(&self) -> &Bytes {
        &self.share
    }
}

impl DisplayAs for ShareExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{SHARE_NODE}: {} bytes", self.share.len())
    }
}

impl ExecutionPlan for ShareExec {
    fn name(&self) -> &str {
        SHARE_NODE
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return Err(DataFusionError::Internal(format!("{SHARE_NODE} has one partition")));
        }
        let (share, counter) = (self.share.clone(), self.counter.clone());
        let counter = counter.ok_or_else(|| DataFusionError::Internal(format!("{SHARE_NODE} has nothing to count")))?;
        let counted = async move {
            let counted = counter.count(share).await.map_err(error)?;
            let taken = MemoryConsumer::new(PARTIAL_COUNTS).register(context.memory_pool());
            taken.try_grow(counted.len())?;
            Ok::<_, DataFusionError>(futures::stream::iter(pieces(held(counted, taken))))
        };
        let batches = futures::stream::once(counted).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(SCHEMA.clone(), batches)))
    }
}

/// How it is told on the way: what may be asked of another server, and what may not.
fn error(error: ShareError) -> DataFusionError {
    let text = error.to_string();
    match error.is_temporary() {
        true => DataFusionError::ResourcesExhausted(text),
        false => DataFusionError::Plan(text),
    }
}

/// A batch a piece, made when it is sent.
fn pieces(counted: Bytes) -> impl Iterator<Item = Result<RecordBatch>> {
    let begins = (0..counted.len()).step_by(PIECE_BYTES);
    begins.map(move |begin| {
        let piece = &counted[begin..counted.len().min(begin + PIECE_BYTES)];
        let column: ArrayRef = Arc::new(BinaryArray::from_vec(vec![piece]));
        Ok(RecordBatch::try_new(SCHEMA.clone(), vec![column])?)
    })
}

/// Bytes with the memory that is taken for them.
struct Held {
    bytes: Vec<u8>,
    _taken: MemoryReservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that give memory back when the last of them are dropped.
fn held(bytes: Vec<u8>, taken: MemoryReservation) -> Bytes {
    Bytes::from_owner(Held { bytes, _taken: taken })
}

/// The partial counts of such batches, at most so many bytes of them, for which memory is taken of a pool as long as
/// they are there.
///
/// # Errors
/// Those of the stream; and where a batch has another form, or there are more bytes, or there is no memory for them.
pub async fn partial_counts(
    mut batches: impl futures::Stream<Item = Result<RecordBatch>> + Send + Unpin,
    most_bytes: usize,
    pool: &Arc<dyn MemoryPool>,
) -> Result<Bytes> {
    let (mut counted, taken) = (Vec::new(), MemoryConsumer::new(PARTIAL_COUNTS).register(pool));
    while let Some(batch) = batches.try_next().await? {
        let column = batch.columns().first().and_then(|column| column.as_binary_opt::<i32>());
        let column = column.ok_or_else(|| DataFusionError::Plan("partial counts have another form".to_owned()))?;
        for piece in column.iter().flatten() {
            if counted.len() + piece.len() > most_bytes {
                let what = format!("partial counts have more than {most_bytes} bytes");
                return Err(DataFusionError::Plan(what));
            }
            // The other server did its part: no other one would do better.
            let no_room = |error: DataFusionError| {
                DataFusionError::Plan(format!("they came, and there is no memory for them: {error}"))
            };
            taken.try_grow(piece.len()).map_err(no_room)?;
            counted.extend_from_slice(piece);
        }
    }
    Ok(held(counted, taken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use futures::StreamExt;

    fn pool(bytes: usize) -> Arc<dyn MemoryPool> {
        Arc::new(GreedyMemoryPool::new(bytes))
    }

    #[tokio::test]
    async fn what_comes_takes_memory_as_long_as_it_is_there() {
        let counted = vec![7_u8; 2 * PIECE_BYTES];
        let batches: Vec<RecordBatch> = pieces(counted.into()).map(Result::unwrap).collect();
        let stream = || futures::stream::iter(batches.clone()).map(Ok);
        let small = pool(2 * PIECE_BYTES - 1);
        let refused = partial_counts(stream(), usize::MAX, &small).await.unwrap_err();
        assert!(
            matches!(&refused, DataFusionError::Plan(why) if why.contains("no memory")),
            "{refused}"
        );
        assert_eq!(small.reserved(), 0);
        let large = pool(2 * PIECE_BYTES);
        let came = partial_counts(stream(), usize::MAX, &large).await.unwrap();
        let part = came.slice(1..2);
        drop(came);
        assert_eq!(large.reserved(), 2 * PIECE_BYTES);
        drop(part);
        assert_eq!(large.reserved(), 0);
    }

    #[tokio::test]
    async fn pieces_come_back_as_one_and_no_more_than_is_allowed() {
        for length in [0, 1, PIECE_BYTES, 3 * PIECE_BYTES + 7] {
            let counted: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let batches: Vec<RecordBatch> = pieces(counted.clone().into()).map(Result::unwrap).collect();
            assert_eq!(batches.len(), length.div_ceil(PIECE_BYTES));
            let stream = || futures::stream::iter(batches.clone()).map(Ok);
            assert_eq!(partial_counts(stream(), length, &pool(length)).await.unwrap(), counted);
            if length > 0 {
                assert!(partial_counts(stream(), length - 1, &pool(length)).await.is_err());
            }
        }
    }

    #[test]
    fn a_share_that_is_only_sent_is_not_counted() {
        let plan = ShareExec::new(Bytes::from_static(b"{}"), None);
        assert!(plan.execute(0, Arc::new(TaskContext::default())).is_err());
        assert_eq!(plan.share(), &b"{}"[..]);
    }
}
