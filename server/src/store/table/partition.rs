//! Days and hours, by which tables are partitioned.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int32Type;

/// The day that a time belongs to, UTC, such as `2026-11-21`: the partition of the dictionaries and of `batches`.
pub fn day(ts_ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(ts_ns)
        .format("%Y-%m-%d")
        .to_string()
}

/// The hour that a time belongs to, UTC, such as `2026-11-21T08`: the partition of `samples` and its roll-ups.
pub fn hour(ts_ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(ts_ns)
        .format("%Y-%m-%dT%H")
        .to_string()
}

/// When an hour begins, such as `2026-11-21T08`.
pub(crate) fn hour_begin_ns(hour: &str) -> Option<i64> {
    let begin = chrono::NaiveDateTime::parse_from_str(&format!("{hour}:00"), "%Y-%m-%dT%H:%M").ok()?;
    begin.and_utc().timestamp_nanos_opt()
}

/// Nanoseconds of the times by which roll-ups count; the last is also that of a partition of `samples`.
pub(crate) const TEN_SECONDS_NS: i64 = 10_000_000_000;

pub(crate) const MINUTE_NS: i64 = 6 * TEN_SECONDS_NS;

pub(crate) const HOUR_NS: i64 = 60 * MINUTE_NS;

/// The end of an hour, such as `2026-11-21T08`.
pub(crate) fn hour_end_ns(hour: &str) -> Option<i64> {
    hour_begin_ns(hour)?.checked_add(HOUR_NS)
}

/// The partition that the rows of a batch belong to; none for an empty batch.
pub(crate) fn partition_of(batch: &RecordBatch) -> Option<&str> {
    let column = batch.columns().last()?.as_dictionary_opt::<Int32Type>()?;
    if column.is_empty() {
        return None;
    }
    let values = column.values().as_string_opt::<i32>()?;
    Some(values.value(column.key(0)?))
}
