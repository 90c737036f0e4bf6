//! One row of `batches`: an agent's account of one batch.

use super::schema::Table;
use arrow::array::{ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::error::ArrowError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the README's table `batches`. Times are nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchRow {
    pub node: String,
    pub instance: String,
    pub number: i64,
    pub from_ns: i64,
    pub until_ns: i64,
    pub period_ns: i64,
    pub frequency_hz: Option<i64>,
    pub cpus: Option<i64>,
    pub ticks: Option<i64>,
    pub idle_ticks: Option<i64>,
    /// Rows of `samples` that came with this batch.
    pub samples: i64,
    /// Cumulative over the instance, as are `lost` and `limits`.
    pub samples_taken: Option<i64>,
    pub lost: BTreeMap<String, i64>,
    /// How often which limit of the agent was reached.
    pub limits: BTreeMap<String, i64>,
    pub cpu_seconds: Option<f64>,
    pub bpf_seconds: Option<f64>,
    pub rss_bytes: Option<i64>,
    pub bpf_map_bytes: Option<i64>,
    pub agent_version: String,
    pub kernel: String,
    pub arch: String,
}

impl BatchRow {
    /// The row with the table's whole schema; its day is that of `from_ns`.
    pub(super) fn to_record_batch(&self) -> Result<RecordBatch, ArrowError> {
        let text = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value])) };
        let int = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        let maybe = |value: Option<i64>| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        let real = |value: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
        let json = |counts| serde_json::to_string(counts).unwrap_or_else(|_| "{}".to_owned());
        let day = DictionaryArray::try_new(
            Int32Array::from(vec![0]),
            Arc::new(StringArray::from(vec![super::schema::day(self.from_ns)])),
        )?;
        RecordBatch::try_new(
            Table::Batches.schema(),
            vec![
                text(&self.node),
                text(&self.instance),
                int(self.number),
                int(self.from_ns),
                int(self.until_ns),
                int(self.period_ns),
                maybe(self.frequency_hz),
                maybe(self.cpus),
                maybe(self.ticks),
                maybe(self.idle_ticks),
                int(self.samples),
                maybe(self.samples_taken),
                text(&json(&self.lost)),
                text(&json(&self.limits)),
                real(self.cpu_seconds),
                real(self.bpf_seconds),
                maybe(self.rss_bytes),
                maybe(self.bpf_map_bytes),
                text(&self.agent_version),
                text(&self.kernel),
                text(&self.arch),
                Arc::new(day),
            ],
        )
    }
}
