//! Read-only SQL over the tables.

use crate::query::limits::admission::Admission;
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::small_tables::engine_error;
use crate::query::sql::bounds::{OF_ANY_SIZE, ROWS, bounded, few_references};
use crate::query::sql::shape;
use crate::query::sql::tables;
use crate::store::Snapshot;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use serde_json::Value;

/// Longest statement, in bytes.
const MAX_STATEMENT_BYTES: usize = 64 * 1024;
/// Longest message of the engine's that is passed on, in characters: some hold the whole statement.
const MAX_MESSAGE: usize = 600;

/// The rows of an answer.
#[derive(Debug)]
pub struct Rows {
    /// Name and type of each column.
    pub columns: Vec<(String, String)>,
    /// Values of each row, in the order of the columns.
    pub rows: Vec<Vec<Value>>,
    /// No row was cut off.
    pub complete: bool,
    /// What they take.
    pub(crate) held: Reservation,
}

/// Answers a statement that reads. For a thread with a large stack, as those of [`Admission::run`] are: plans are
/// walked with a call a level.
///
/// # Errors
/// `bad_query` for what is no SQL, what would write, and what fails because of its data.
pub async fn sql(admission: &Admission, snapshot: &Snapshot, statement: &str) -> Result<Rows, QueryError> {
    if statement.len() > MAX_STATEMENT_BYTES {
        return Err(QueryError::bad_query(
            format!("the statement is longer than {MAX_STATEMENT_BYTES} bytes"),
            "shorten it",
        ));
    }
    let options = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    let context = snapshot.session_with(
        SessionConfig::new()
            .with_information_schema(true)
            .with_batch_size(ROWS)
            .set_bool("datafusion.execution.enable_recursive_ctes", false),
    );
    for name in OF_ANY_SIZE {
        context.deregister_udf(name);
        context.deregister_udtf(name);
    }
    shape::of_text(statement)?;
    tables::split_waits(&context).map_err(statement_error)?;
    let state = context.state();
    let dialect = state.config_options().sql_parser.dialect;
    let statement = state.sql_to_statement(statement, &dialect).map_err(statement_error)?;
    // Bounds first: whoever looks at a plan looks at a part as often as it is referred to.
    shape::of_tree(&statement)?;
    few_references(&statement)?;
    tables::waits_where_they_are(&statement)?;
    let plan = state.statement_to_plan(statement).await.map_err(statement_error)?;
    let plan = bounded(plan)?.map_err(statement_error)?;
    options.verify_plan(&plan).map_err(statement_error)?;
    let frame = context.execute_logical_plan(plan).await.map_err(statement_error)?;
    if !matches!(frame.logical_plan(), LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) {
        // One row more than is shown tells whether there are more.
        let limited = frame
            .limit(0, Some(admission.limits.sql_rows + 1))
            .map_err(statement_error)?;
        return read(admission, snapshot, &context, limited).await;
    }
    read(admission, snapshot, &context, frame).await
}

async fn read(
    admission: &Admission,
    snapshot: &Snapshot,
    context: &SessionContext,
    frame: datafusion::prelude::DataFrame,
) -> Result<Rows, QueryError> {
    let failed = |error: DataFusionError| match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => engine_error("run SQL", context)(error),
        _ => statement_error(error),
    };
    let fields = frame.schema().fields().clone();
    let columns = fields
        .iter()
        .map(|field| (field.name().clone(), type_name(field.data_type())))
        .collect();
    let mut answer = Rows {
        columns,
        rows: Vec::new(),
        complete: true,
        held: Reservation::new(snapshot, "rows of an answer"),
    };
    let mut bytes = 0;
    let mut stream = frame.execute_stream().await.map_err(failed)?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(failed)?;
        for row in 0..batch.num_rows() {
            if answer.rows.len() == admission.limits.sql_rows || bytes > admission.limits.sql_bytes {
                answer.complete = false;
                return Ok(answer);
            }
            let values = batch
                .columns()
                .iter()
                .map(|column| value(column, row))
                .collect::<Result<Vec<_>, _>>()?;
            bytes += size_of::<Vec<Value>>() + values.iter().map(size).sum::<usize>();
            answer.held.resize(bytes)?;
            answer.rows.push(values);
        }
    }
    Ok(answer)
}

fn size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(size).sum(),
            _ => 0,
        }
}

/// A column's type as SQL users know it.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, value) => type_name(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Float32 | DataType::Float64 => "double".into(),
        DataType::List(field) | DataType::LargeList(field) => format!("list of {}", type_name(field.data_type())),
        integer if integer.is_integer() => "long".into(),
        other => other.to_string().to_lowercase(),
    }
}

fn value(column: &ArrayRef, row: usize) -> Result<Value, QueryError> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float32 => f64::from(column.as_primitive::<Float32Type>().value(row)).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            Value::Array(
                (0..items.len())
                    .map(|item| value(&items, item))
                    .collect::<Result<_, _>>()?,
            )
        }
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            return value(dictionary.values(), key);
        }
        _ => {
            let options = FormatOptions::default();
            let formatter =
                ArrayFormatter::try_new(column, &options).map_err(crate::query::plan::small_tables::arrow_error)?;
            Value::String(formatter.value(row).to_string())
        }
    })
}

/// What is wrong with a statement is its author's business, unless the disk or we are to blame.
fn statement_error(error: DataFusionError) -> QueryError {
    match error.find_root() {
        DataFusionError::ObjectStore(_)
        | DataFusionError::IoError(_)
        | DataFusionError::ParquetError(_)
        | DataFusionError::Internal(_)
        | DataFusionError::ExecutionJoin(_) => QueryError::internal("run SQL", error),
        _ => {
            let mut message = format!("SQL: {}", error.strip_backtrace());
            if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE) {
                message.truncate(end);
                message.push('…');
            }
            let tables = tables::names().join(", ");
            QueryError::bad_query(
                message,
                format!("statements read: SELECT, EXPLAIN, or a query of information_schema; tables are {tables}"),
            )
        }
    }
}
