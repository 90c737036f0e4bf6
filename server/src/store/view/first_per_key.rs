//! A plan node that lets the first row of each key through.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements, PlanProperties,
};
use futures::StreamExt;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// See the module. The input must be a single partition. Keys are integers or strings; those of several columns are
/// hashed to 64 bits.
#[derive(Debug)]
pub(crate) struct DedupExec {
    input: Arc<dyn ExecutionPlan>,
    /// Columns of the input that make up the key.
    key: Vec<usize>,
    properties: Arc<PlanProperties>,
}

impl DedupExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, key: Vec<usize>) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        ));
        Self { input, key, properties }
    }
}

impl DisplayAs for DedupExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DedupExec: key={:?}", self.key)
    }
}

impl ExecutionPlan for DedupExec {
    fn name(&self) -> &str {
        "DedupExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|_| DataFusionError::Internal("DedupExec has one input".to_owned()))?;
        Ok(Arc::new(Self::new(input, self.key.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let held = MemoryConsumer::new("keys of rows that came").register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        let key = self.key.clone();
        let mut seen = Seen::default();
        let rows = input.map(move |batch| {
            let batch = batch?;
            let keep = seen.first_rows(&batch, &key)?;
            held.try_resize(seen.bytes())?;
            Ok(filter_record_batch(&batch, &keep)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), rows)))
    }
}

/// Keys are hashes or hashed already: no second hash.
#[derive(Debug, Default, Clone, Copy)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64(bytes);
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[derive(Debug, Default)]
struct Seen {
    keys: HashSet<u64, BuildHasherDefault<Identity>>,
}

impl Seen {
    /// Memory that it takes, about: a key and a tag in each of a power of two of places, of which seven eighths are
    /// used at most.
    fn bytes(&self) -> usize {
        self.keys.capacity() * 8 / 7 * (size_of::<u64>() + 1)
    }

    fn first_rows(&mut self, batch: &RecordBatch, key: &[usize]) -> Result<BooleanArray> {
        let columns: Vec<&ArrayRef> = key.iter().map(|column| batch.column(*column)).collect();
        let mut keep = Vec::with_capacity(batch.num_rows());
        if let [column] = columns.as_slice()
            && let Some(ids) = column.as_primitive_opt::<Int64Type>()
        {
            keep.extend(ids.values().iter().map(|id| self.keys.insert(*id as u64)));
            return Ok(keep.into());
        }
        let mut bytes = Vec::new();
        for row in 0..batch.num_rows() {
            bytes.clear();
            for column in &columns {
                match column.data_type() {
                    DataType::Int64 => {
                        bytes.extend_from_slice(&column.as_primitive::<Int64Type>().value(row).to_le_bytes());
                    }
                    DataType::Utf8 => {
                        let value = column.as_string::<i32>().value(row);
                        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
                        bytes.extend_from_slice(value.as_bytes());
                    }
                    other => return Err(DataFusionError::Internal(format!("a key column of type {other}"))),
                }
            }
            keep.push(self.keys.insert(xxhash_rust::xxh3::xxh3_64(&bytes)));
        }
        Ok(keep.into())
    }
}
