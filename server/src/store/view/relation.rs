//! A snapshot's tables for DataFusion.
//!
//! A scan leaves out files by partition and statistics and those that are damaged, reads the rest with the filters
//! pushed into Parquet, and adds the pending rows. Tables with a key answer with one row a key: filters apply before
//! that, so that "of this day" keeps its meaning.

use crate::memory::query_pool::SessionPool;
use crate::store::buffer::arriving::Pending;
use crate::store::table::data_file::DataFile;
use crate::store::table::schema::Table;
use crate::store::view::first_per_key::DedupExec;
use crate::store::view::snapshot::Snapshot;
use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray, UInt64Array};
use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Where the data directory is registered in the runtime's object stores.
pub(crate) const STORE_URL: &str = "stakeout://data";

/// Pending rows, of which columns are made one batch after another.
#[derive(Debug)]
struct PendingRows {
    /// The columns that are wanted.
    schema: SchemaRef,
    rows: Vec<Pending>,
}

impl PartitionStream for PendingRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = self.schema.clone();
        let batches = self.rows.clone().into_iter().map({
            let schema = schema.clone();
            move |rows| Ok(rows.columns(&schema)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
    }
}

/// One table of one snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotTable {
    table: Table,
    snapshot: Snapshot,
}

impl SnapshotTable {
    pub(crate) fn new(table: Table, snapshot: Snapshot) -> Self {
        Self { table, snapshot }
    }

    /// Files and pending rows, `columns` of the whole schema in that order, in as many partitions as the session wants.
    fn rows(
        &self,
        state: &dyn Session,
        columns: &[usize],
        files: &[Arc<DataFile>],
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
        if !files.is_empty() {
            inputs.push(self.parquet(state, files, columns, predicate)?);
        }
        let pending = self.snapshot.pending(self.table);
        if !pending.is_empty() {
            let schema = Arc::new(self.table.schema().project(columns)?);
            let rows: Arc<dyn PartitionStream> = Arc::new(PendingRows {
                schema: schema.clone(),
                rows: pending.to_vec(),
            });
            inputs.push(Arc::new(StreamingTableExec::try_new(
                schema,
                vec![rows],
                None,
                [],
                false,
                None,
            )?));
        }
        if inputs.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(
                self.table.schema().project(columns)?,
            ))));
        }
        UnionExec::try_new(inputs)
    }

    fn parquet(
        &self,
        state: &dyn Session,
        files: &[Arc<DataFile>],
        columns: &[usize],
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let whole = self.table.schema();
        let partition_field = whole.field(whole.fields().len() - 1);
        let table_schema = TableSchema::builder(self.table.file_schema())
            .with_table_partition_cols(vec![Arc::new(partition_field.clone())])
            .build();
        let url = ObjectStoreUrl::parse(STORE_URL)?;
        let runtime = state.runtime_env();
        let reader = CachedParquetFileReaderFactory::new(
            runtime.object_store(&url)?,
            runtime.cache_manager.get_file_metadata_cache(),
        );
        let mut source = ParquetSource::new(table_schema)
            .with_parquet_file_reader_factory(Arc::new(reader))
            .with_pushdown_filters(true)
            .with_reorder_filters(true)
            .with_enable_page_index(true);
        if let Some(predicate) = predicate {
            source = source.with_predicate(predicate.clone());
        }
        let files = files.iter().map(|file| self.partitioned_file(file)).collect();
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(FileGroup::new(files).split_files(state.config().target_partitions()))
            .with_projection_indices(Some(columns.to_vec()))?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn partitioned_file(&self, file: &DataFile) -> PartitionedFile {
        let partition = ScalarValue::Dictionary(
            Box::new(DataType::Int32),
            Box::new(ScalarValue::Utf8(Some(file.partition.clone()))),
        );
        let modified = chrono::DateTime::from_timestamp_millis(file.modified_ms).unwrap_or_default();
        let mut partitioned = PartitionedFile::new(format!("{}/{}", self.table.name(), file.path), file.size_bytes)
            .with_partition_values(vec![partition]);
        // A file never changes, so the time of its making identifies what the cache knows of it.
        partitioned.object_meta.last_modified = modified;
        partitioned
    }

    /// The files that may hold rows that satisfy the predicate.
    fn files(&self, predicate: Option<&Arc<dyn PhysicalExpr>>) -> Result<Vec<Arc<DataFile>>> {
        let files = self.snapshot.files(self.table);
        let Some(predicate) = predicate else {
            return Ok(files.to_vec());
        };
        let Ok(pruning) = PruningPredicateBuilder::new()
            .with_file_schema(self.table.schema())
            .try_build(predicate.clone())
        else {
            return Ok(files.to_vec());
        };
        let keep = pruning.prune(&FileStatistics {
            table: self.table,
            files,
        })?;
        Ok(files
            .iter()
            .zip(keep)
            .filter(|(_, keep)| *keep)
            .map(|(file, _)| file.clone())
            .collect())
    }

    /// One row a key: filter, then drop repeats, then leave only what was asked for.
    fn distinct_rows(
        &self,
        state: &dyn Session,
        projection: &[usize],
        files: &[Arc<DataFile>],
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.table.schema();
        let mut columns: BTreeSet<usize> = projection.iter().copied().collect();
        for name in self.table.key() {
            columns.insert(schema.index_of(name)?);
        }
        if let Some(predicate) = predicate {
            columns.extend(collect_columns(predicate).iter().map(PhysicalColumn::index));
        }
        let columns: Vec<usize> = columns.into_iter().collect();
        let mut plan = self.rows(state, &columns, files, predicate)?;
        if let Some(predicate) = predicate {
            let predicate = datafusion::physical_expr::utils::reassign_expr_columns(predicate.clone(), &plan.schema())?;
            plan = Arc::new(FilterExec::try_new(predicate, plan)?);
        }
        if plan.output_partitioning().partition_count() > 1 {
            plan = Arc::new(CoalescePartitionsExec::new(plan));
        }
        let key = self
            .table
            .key()
            .iter()
            .map(|name| plan.schema().index_of(name))
            .collect::<Result<Vec<_>, _>>()?;
        plan = Arc::new(DedupExec::new(plan, key));
        let inner = plan.schema();
        let wanted = projection
            .iter()
            .map(|column| {
                let name = schema.field(*column).name();
                let expression: Arc<dyn PhysicalExpr> = Arc::new(PhysicalColumn::new(name, inner.index_of(name)?));
                Ok((expression, name.clone()))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(wanted, plan)?))
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = if self.table.key().is_empty() {
            TableProviderFilterPushDown::Inexact
        } else {
            TableProviderFilterPushDown::Exact
        };
        Ok(vec![support; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.table.schema();
        let every: Vec<usize> = (0..schema.fields().len()).collect();
        let projection = projection.unwrap_or(&every);
        let predicate = match conjunction(filters.iter().cloned()) {
            Some(filter) => Some(state.create_physical_expr(filter, &DFSchema::try_from(schema.as_ref().clone())?)?),
            None => None,
        };
        let files = self.files(predicate.as_ref())?;
        let intact = self.snapshot.intact(self.table, files).await;
        let files = intact.map_err(|error| DataFusionError::External(Box::new(error)))?;
        if self.table.key().is_empty() {
            self.rows(state, projection, &files, predicate.as_ref())
        } else {
            self.distinct_rows(state, projection, &files, predicate.as_ref())
        }
    }
}

/// What the log says about files, in the form in which DataFusion rules them out.
struct FileStatistics<'a> {
    table: Table,
    files: &'a [Arc<DataFile>],
}

impl FileStatistics<'_> {
    fn bound(&self, column: &str, min: bool) -> Option<ArrayRef> {
        if column == self.table.partition_column() {
            return Some(Arc::new(StringArray::from_iter_values(
                self.files.iter().map(|file| &file.partition),
            )));
        }
        let field = self.table.schema().field_with_name(column).ok()?.clone();
        match field.data_type() {
            DataType::Int64 => Some(Arc::new(
                self.files
                    .iter()
                    .map(|file| {
                        file.int_range(column)
                            .map(|range| if min { range.min } else { range.max })
                    })
                    .collect::<Int64Array>(),
            )),
            DataType::Dictionary(..) => Some(Arc::new(
                self.files
                    .iter()
                    .map(|file| {
                        file.string_range(column)
                            .map(|range| if min { range.min.as_str() } else { range.max.as_str() })
                    })
                    .collect::<StringArray>(),
            )),
            _ => None,
        }
    }
}

impl PruningStatistics for FileStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(&column.name, true)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(&column.name, false)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, _column: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from_iter_values(
            self.files.iter().map(|file| file.rows),
        )))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

impl Snapshot {
    /// A SQL session over this view, with every table under its name. Rows of all tables but `samples` come once a key.
    /// Sessions share one memory limit and one cache of file footers.
    pub fn session(&self) -> SessionContext {
        self.session_with(SessionConfig::new().with_information_schema(true))
    }

    /// The runtime that all sessions share, but for who keeps this one's memory in mind.
    fn session_runtime(&self) -> Arc<RuntimeEnv> {
        let pool = SessionPool::of(self.memory_pool().clone());
        let builder = RuntimeEnvBuilder::from_runtime_env(&self.runtime).with_memory_pool(Arc::new(pool));
        // It has all its parts already; where it could not be put together, only a refusal says less.
        builder.build_arc().unwrap_or_else(|_| self.runtime.clone())
    }

    /// As [`Snapshot::session`], with the caller's options.
    pub fn session_with(&self, config: SessionConfig) -> SessionContext {
        let mut config = config;
        let options = config.options_mut();
        options.execution.parquet.pushdown_filters = true;
        options.execution.parquet.reorder_filters = true;
        let context = SessionContext::new_with_config_rt(config, self.session_runtime());
        for table in Table::ALL {
            let provider = Arc::new(SnapshotTable::new(table, self.clone()));
            if let Err(error) = context.register_table(table.name(), provider) {
                // Cannot happen with a fresh catalog; a query would then say that the table is missing.
                tracing::error!(table = table.name(), %error, "registering a table failed");
            }
        }
        context
    }
}
