//! Application transactions: what a table's log says of them, in its checkpoint and in the commits after it.

use crate::store::table::transaction::Txn;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use bytes::Bytes;
use deltalake_core::kernel::Transaction;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::HashMap;
use std::sync::Arc;

/// All application transactions of a table at `version`: those of the last checkpoint, then those of the commits
/// after it. The library answers only for one application at a time, and does not say which there are.
pub(crate) async fn read_txns(store: Arc<dyn ObjectStore>, version: u64) -> Result<Vec<Txn>, String> {
    let mut checkpoint: Option<(u64, Path)> = None;
    let mut commits: Vec<(u64, Path)> = Vec::new();
    let mut entries = store.list(Some(&Path::from("_delta_log")));
    while let Some(entry) = entries.try_next().await.map_err(|error| error.to_string())? {
        let Some(name) = entry.location.filename() else {
            continue;
        };
        let Some((digits, kind)) = name.split_once('.') else {
            continue;
        };
        let Ok(at) = digits.parse::<u64>() else { continue };
        if at > version {
            continue;
        }
        match kind {
            "json" => commits.push((at, entry.location)),
            "checkpoint.parquet" if checkpoint.as_ref().is_none_or(|(newest, _)| at > *newest) => {
                checkpoint = Some((at, entry.location));
            }
            _ => {}
        }
    }
    let mut txns: HashMap<String, Txn> = HashMap::new();
    let mut after = None;
    if let Some((at, path)) = checkpoint {
        after = Some(at);
        let bytes = fetch(store.as_ref(), &path).await?;
        for txn in checkpoint_txns(bytes).map_err(|error| format!("{path}: {error}"))? {
            txns.insert(txn.app_id.clone(), txn);
        }
    }
    commits.retain(|(at, _)| after.is_none_or(|after| *at > after));
    commits.sort();
    for (_, path) in commits {
        let bytes = fetch(store.as_ref(), &path).await?;
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| line.starts_with(b"{\"txn\""))
        {
            #[derive(serde::Deserialize)]
            struct Line {
                txn: Transaction,
            }
            let line: Line = serde_json::from_slice(line).map_err(|error| format!("{path}: {error}"))?;
            let updated_ms = line.txn.last_updated.unwrap_or_default();
            let txn = Txn {
                app_id: line.txn.app_id,
                version: line.txn.version,
                updated_ms,
            };
            txns.insert(txn.app_id.clone(), txn);
        }
    }
    Ok(txns.into_values().collect())
}

async fn fetch(store: &dyn ObjectStore, path: &Path) -> Result<Bytes, String> {
    let bytes = async { store.get(path).await?.bytes().await };
    bytes
        .await
        .map_err(|error: object_store::Error| format!("{path}: {error}"))
}

pub(crate) fn checkpoint_txns(bytes: Bytes) -> Result<Vec<Txn>, Box<dyn std::error::Error + Send + Sync>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    let roots = builder.parquet_schema().root_schema().get_fields();
    let Some(column) = roots.iter().position(|field| field.name() == "txn") else {
        return Ok(Vec::new());
    };
    let mask = ProjectionMask::roots(builder.parquet_schema(), [column]);
    let mut txns = Vec::new();
    for batch in builder.with_projection(mask).build()? {
        let batch = batch?;
        let column = batch.column(0).as_struct();
        let part = |name: &str| {
            column
                .column_by_name(name)
                .ok_or_else(|| format!("txn has no field {name}"))
        };
        let app_id = part("appId")?.clone();
        let app_id = arrow::compute::cast(&app_id, &ArrowType::Utf8)?;
        let app_id = app_id.as_string::<i32>();
        let number = part("version")?.as_primitive::<Int64Type>();
        let updated = part("lastUpdated")?.as_primitive::<Int64Type>();
        for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
            let updated_ms = if updated.is_valid(row) { updated.value(row) } else { 0 };
            txns.push(Txn {
                app_id: app_id.value(row).to_owned(),
                version: number.value(row),
                updated_ms,
            });
        }
    }
    Ok(txns)
}
