//! The columns that a table's Delta log says it has: made with the table, and changed where another version of the
//! server made it.

use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use arrow::datatypes::DataType as ArrowType;
use deltalake_core::DeltaTable;
use deltalake_core::kernel::transaction::CommitBuilder;
use deltalake_core::kernel::{Action, ArrayType, DataType, MetadataExt, PrimitiveType, StructField, StructType};
use deltalake_core::logstore::LogStoreRef;
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::DeltaOperation;
use std::time::Duration;

/// What other writers are told of how long log entries stay. This server goes by their number.
const LOG_RETENTION: Duration = Duration::from_secs(2 * 3600);

/// How long the log names removed files.
const TOMBSTONE_RETENTION: Duration = Duration::from_secs(3600);

pub(crate) async fn create(table: Table, log_store: LogStoreRef) -> Result<(), StoreError> {
    let seconds = |duration: Duration| Some(format!("interval {} seconds", duration.as_secs()));
    let columns = table
        .schema()
        .fields()
        .iter()
        .map(|field| StructField::new(field.name(), delta_type(field.data_type()), field.is_nullable()))
        .collect::<Vec<_>>();
    CreateBuilder::new()
        .with_log_store(log_store)
        .with_table_name(table.name())
        .with_columns(columns)
        .with_partition_columns([table.partition_column()])
        .with_configuration([
            ("delta.logRetentionDuration", seconds(LOG_RETENTION)),
            ("delta.deletedFileRetentionDuration", seconds(TOMBSTONE_RETENTION)),
            ("delta.setTransactionRetentionDuration", seconds(TRANSACTION_RETENTION)),
        ])
        .await
        .map_err(StoreError::table(table, "create it"))?;
    Ok(())
}

/// Gives a table of an older server the columns that have come since; they are null in its rows.
pub(crate) async fn with_every_column(table: Table, delta: DeltaTable) -> Result<DeltaTable, StoreError> {
    let state = delta.snapshot().map_err(StoreError::table(table, "read its log"))?;
    let (schema, found) = (table.schema(), state.schema());
    let mut missing = Vec::new();
    for field in schema.fields() {
        let wanted = delta_type(field.data_type());
        let problem = match found.field(field.name()) {
            Some(there) if *there.data_type() == wanted => continue,
            Some(there) => format!("column {} is of type {}", field.name(), there.data_type()),
            None if field.is_nullable() => {
                missing.push(StructField::new(field.name(), wanted, true));
                continue;
            }
            None => format!("column {} is missing", field.name()),
        };
        return Err(StoreError::Table {
            table: table.name(),
            what: "compare its columns with this version's",
            cause: format!("{problem}; open it with the version that made it, or give another directory with --data"),
        });
    }
    let is_known = |field: &StructField| schema.column_with_name(field.name()).is_some();
    for field in found.fields().filter(|field| !is_known(field)) {
        let (table, column) = (table.name(), field.name());
        tracing::warn!(
            table,
            column,
            "a column that this version does not know: rows lose it when they are compacted, and new ones do not have it"
        );
    }
    // To other readers it is null in new rows, which must be allowed then.
    let allowed = found.fields().map(|field| {
        let nullable = field.is_nullable() || !is_known(field);
        StructField {
            nullable,
            ..field.clone()
        }
    });
    let allowed = StructType::try_new(allowed).map_err(StoreError::table(table, "change its columns"))?;
    let delta = if allowed == *found {
        delta
    } else {
        change_schema(table, delta, &allowed).await?
    };
    if missing.is_empty() {
        return Ok(delta);
    }
    let columns: Vec<_> = missing.iter().map(|field| field.name().as_str()).collect();
    tracing::info!(
        table = table.name(),
        ?columns,
        "a table of an older server gets new columns"
    );
    let add = delta.add_columns().with_fields(missing);
    add.await.map_err(StoreError::table(table, "add columns"))
}

/// Writes another schema into a table's log; the table as it is then.
async fn change_schema(table: Table, mut delta: DeltaTable, schema: &StructType) -> Result<DeltaTable, StoreError> {
    let change = async {
        let snapshot = delta.snapshot()?.snapshot();
        let metadata = snapshot.metadata().clone().with_schema(schema)?;
        let operation = DeltaOperation::UpdateFieldMetadata {
            fields: schema.fields().cloned().collect(),
        };
        CommitBuilder::default()
            .with_actions(vec![Action::Metadata(metadata)])
            .build(Some(snapshot), delta.log_store(), operation)
            .await?;
        delta.update_state().await
    };
    change.await.map_err(StoreError::table(table, "change its columns"))?;
    Ok(delta)
}

fn delta_type(arrow: &ArrowType) -> DataType {
    match arrow {
        ArrowType::Int32 => DataType::Primitive(PrimitiveType::Integer),
        ArrowType::Int64 => DataType::Primitive(PrimitiveType::Long),
        ArrowType::Float64 => DataType::Primitive(PrimitiveType::Double),
        ArrowType::Boolean => DataType::Primitive(PrimitiveType::Boolean),
        ArrowType::List(element) => DataType::Array(Box::new(ArrayType::new(
            delta_type(element.data_type()),
            element.is_nullable(),
        ))),
        _ => DataType::Primitive(PrimitiveType::String),
    }
}

/// How long an instance's highest number is remembered; longer than any agent's spool lives.
pub(crate) const TRANSACTION_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
