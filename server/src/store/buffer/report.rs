//! One row of `batches`: an agent's report of one batch.

use crate::store::table::schema::Table;
use arrow::array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the table `batches` in `docs/tables.md`. Times are nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchRow {
    /// The sender's label `node`.
    pub node: String,
    /// Which run of the agent: the id that it made up when it started.
    pub instance: String,
    /// Which batch of the instance, from 1 up.
    pub number: i64,
    /// Begin of the interval.
    pub from_ns: i64,
    /// End of the interval, exclusive.
    pub until_ns: i64,
    /// CPU time that a sample stands for, in nanoseconds.
    pub period_ns: i64,
    /// Samples that a busy CPU gives in a second.
    pub frequency_hz: Option<i64>,
    /// CPUs that were observed in the interval.
    pub cpus: Option<i64>,
    /// Timer ticks of all CPUs in the interval.
    pub ticks: Option<i64>,
    /// Those that met an idle CPU.
    pub idle_ticks: Option<i64>,
    /// That were due and did not come, on CPUs that were not idle; older agents do not tell.
    pub missed_ticks: Option<i64>,
    /// CPUs that were not sampled at any time of the interval, such as `2-3,7`.
    pub cpus_offline: String,
    /// Rows of `samples` that came with this batch.
    pub samples: i64,
    /// Cumulative over the instance, as are `lost` and `limits`.
    pub samples_taken: Option<i64>,
    /// Samples lost, by cause.
    pub lost: BTreeMap<String, i64>,
    /// How often which limit of the agent was reached.
    pub limits: BTreeMap<String, i64>,
    /// Lengths of waits for a CPU that ended in the interval, as [`crate::run_queue`] has them; empty without any.
    pub run_queues: String,
    /// How long of the interval waits were observed; nothing where they are not seen, and of older agents.
    pub waits_observed_ns: Option<i64>,
    /// The sender's label `cluster`; empty without one.
    pub cluster: String,
    /// What the sender says of itself beyond the fixed labels: a JSON object by attributes' names; empty without any.
    pub labels: String,
    /// CPU time of the agent's process since its start.
    pub cpu_seconds: Option<f64>,
    /// CPU time of its BPF programs since their load.
    pub bpf_seconds: Option<f64>,
    /// Resident memory of the agent at the interval's end.
    pub rss_bytes: Option<i64>,
    /// Kernel memory of its BPF maps, at the same time.
    pub bpf_map_bytes: Option<i64>,
    /// Version of the agent; empty where it is not told.
    pub agent_version: String,
    /// Release of the node's kernel; empty where it is not told.
    pub kernel: String,
    /// Machine as OTLP names it, such as `amd64`; empty where it is not told.
    pub arch: String,
}

impl BatchRow {
    /// The partition of its row.
    pub(crate) fn day(&self) -> String {
        crate::store::table::partition::day(self.from_ns)
    }

    /// Memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [
            &self.node,
            &self.instance,
            &self.agent_version,
            &self.kernel,
            &self.arch,
            &self.cpus_offline,
            &self.run_queues,
            &self.cluster,
            &self.labels,
        ];
        let counts = self.lost.keys().chain(self.limits.keys());
        let texts: usize = texts.into_iter().chain(counts).map(String::len).sum();
        size_of::<Self>() + texts + (self.lost.len() + self.limits.len()) * size_of::<(String, i64)>()
    }

    /// Rows with the table's whole schema.
    pub(crate) fn to_record_batch(rows: &[Arc<Self>]) -> Result<RecordBatch, ArrowError> {
        let text = |value: fn(&Self) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| value(row))))
        };
        let int = |value: fn(&Self) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| value(row))))
        };
        let maybe = |value: fn(&Self) -> Option<i64>| -> ArrayRef {
            Arc::new(rows.iter().map(|row| value(row)).collect::<Int64Array>())
        };
        let real = |value: fn(&Self) -> Option<f64>| -> ArrayRef {
            Arc::new(rows.iter().map(|row| value(row)).collect::<Float64Array>())
        };
        let json = |counts: fn(&Self) -> &BTreeMap<String, i64>| -> ArrayRef {
            let texts = rows
                .iter()
                .map(|row| serde_json::to_string(counts(row)).unwrap_or_else(|_| "{}".to_owned()));
            Arc::new(StringArray::from_iter_values(texts))
        };
        let days: Vec<String> = rows.iter().map(|row| row.day()).collect();
        let day: DictionaryArray<Int32Type> = days.iter().map(String::as_str).collect();
        RecordBatch::try_new(
            Table::Batches.schema(),
            vec![
                text(|row| &row.node),
                text(|row| &row.instance),
                int(|row| row.number),
                int(|row| row.from_ns),
                int(|row| row.until_ns),
                int(|row| row.period_ns),
                maybe(|row| row.frequency_hz),
                maybe(|row| row.cpus),
                maybe(|row| row.ticks),
                maybe(|row| row.idle_ticks),
                maybe(|row| row.missed_ticks),
                text(|row| &row.cpus_offline),
                int(|row| row.samples),
                maybe(|row| row.samples_taken),
                json(|row| &row.lost),
                json(|row| &row.limits),
                real(|row| row.cpu_seconds),
                real(|row| row.bpf_seconds),
                maybe(|row| row.rss_bytes),
                maybe(|row| row.bpf_map_bytes),
                text(|row| &row.agent_version),
                text(|row| &row.kernel),
                text(|row| &row.arch),
                text(|row| &row.run_queues),
                maybe(|row| row.waits_observed_ns),
                text(|row| &row.cluster),
                text(|row| &row.labels),
                Arc::new(day),
            ],
        )
    }
}
