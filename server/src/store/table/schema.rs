//! The tables: names, partitions, columns. `docs/tables.md` is the reference.

use crate::label::SERIES_LABELS;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::{Arc, LazyLock};

/// A table of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Every sample, by the hour of its time.
    Samples,
    /// Sets of labels, each once a day.
    Series,
    /// Stacks as lists of frames, each once a day.
    Stacks,
    /// Frames with their names, each once a day.
    Frames,
    /// Programs that processes ran, each once a day.
    Processes,
    /// Agents' reports of their batches.
    Batches,
    /// Samples of one minute, series, mode, stack and value, counted.
    SamplesMinute,
    /// The same by the hour.
    SamplesHour,
    /// Samples of ten seconds, series, mode and value, counted: without their stacks.
    SamplesTenSeconds,
    /// Which profile types there are, in which unit.
    Types,
}

impl Table {
    /// In the order of [`Table::index`].
    pub const ALL: [Table; 10] = [
        Table::Samples,
        Table::Series,
        Table::Stacks,
        Table::Frames,
        Table::Processes,
        Table::Batches,
        Table::SamplesMinute,
        Table::SamplesHour,
        Table::SamplesTenSeconds,
        Table::Types,
    ];
    /// Each stands before what its rows refer to, and roll-ups behind the samples that they are made of: whoever looks
    /// at one table after another in this order finds what a row refers to, also while others write. A commit goes the
    /// other way.
    pub(crate) const REFERRERS_FIRST: [Table; 10] = [
        Table::Samples,
        Table::SamplesMinute,
        Table::SamplesHour,
        Table::SamplesTenSeconds,
        Table::Batches,
        Table::Stacks,
        Table::Frames,
        Table::Series,
        Table::Processes,
        Table::Types,
    ];
    /// Roll-ups of `samples`.
    pub const ROLLUPS: [Table; 3] = [Table::SamplesMinute, Table::SamplesHour, Table::SamplesTenSeconds];
    /// How many tables there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Where a file is below the data root, of its path below the table's folder.
    pub(crate) fn path_of(self, file: &str) -> String {
        format!("{}/{file}", self.name())
    }

    /// Its name in SQL and its folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Series => "series",
            Self::Stacks => "stacks",
            Self::Frames => "frames",
            Self::Processes => "processes",
            Self::Batches => "batches",
            Self::SamplesMinute => "samples_minute",
            Self::SamplesHour => "samples_hour",
            Self::SamplesTenSeconds => "samples_10s",
            Self::Types => "types",
        }
    }

    /// Position in [`Table::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The partition column: always the last column of the schema, a string, in the file's path and not in the file.
    pub fn partition_column(self) -> &'static str {
        match self {
            Self::Samples | Self::SamplesMinute | Self::SamplesHour | Self::SamplesTenSeconds => "hour",
            _ => "day",
        }
    }

    /// Columns that make a row the same row as another: one of them is kept. Empty for `samples` and its roll-ups:
    /// every row counts.
    pub fn key(self) -> &'static [&'static str] {
        match self {
            Self::Samples | Self::SamplesMinute | Self::SamplesHour | Self::SamplesTenSeconds => &[],
            Self::Series => &["series_id"],
            Self::Stacks => &["stack_id"],
            Self::Frames => &["frame_id"],
            Self::Processes => &["process_id"],
            Self::Types => &["type_id"],
            Self::Batches => &["instance", "number"],
        }
    }

    /// Columns by which files are sorted.
    pub fn sort_columns(self) -> &'static [&'static str] {
        match self {
            Self::Samples => &["type", "service", "series_id", "tid", "ts_ns"],
            Self::SamplesMinute | Self::SamplesHour => {
                // And before the series by its stack, in whatever order stacks came: within a row group.
                &["type", "service", "mode", "value", "series_id", "ts_ns"]
            }
            Self::SamplesTenSeconds => &["type", "service", "series_id", "mode", "value", "ts_ns"],
            Self::Batches => &["node", "instance", "number"],
            Self::Frames => &["module", "function", "file", "frame_id"],
            // And before that by its frames, root first.
            Self::Stacks => &["stack_id"],
            Self::Series | Self::Processes | Self::Types => self.key(),
        }
    }

    /// Columns that have come since the first version, of tables that are read without Delta: files of older servers
    /// lack them.
    pub fn newer_columns(self) -> &'static [&'static str] {
        match self {
            Self::Samples => &["wait_ns", "woken_tid"],
            _ => &[],
        }
    }

    /// Whether each of its rows is of one stack: of `samples` and those of its roll-ups that tell stacks apart.
    pub fn has_stacks(self) -> bool {
        matches!(self, Self::Samples | Self::SamplesMinute | Self::SamplesHour)
    }

    /// All columns; the partition column is last.
    pub fn schema(self) -> SchemaRef {
        SCHEMAS[self.index()].clone()
    }

    /// The columns that stand in the data files: all but the partition.
    pub fn file_schema(self) -> SchemaRef {
        FILE_SCHEMAS[self.index()].clone()
    }
}

static SCHEMAS: LazyLock<[SchemaRef; Table::COUNT]> =
    LazyLock::new(|| Table::ALL.map(|table| Arc::new(columns(table))));

static FILE_SCHEMAS: LazyLock<[SchemaRef; Table::COUNT]> = LazyLock::new(|| {
    Table::ALL.map(|table| {
        let schema = columns(table);
        let fields: Vec<_> = schema
            .fields()
            .iter()
            .take(schema.fields().len() - 1)
            .cloned()
            .collect();
        Arc::new(Schema::new(fields))
    })
});

/// A string column of few distinct values: a dictionary in memory, an ordinary string to Delta.
fn name() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn columns(table: Table) -> Schema {
    use DataType::{Boolean, Float64, Int32, Int64, Utf8};
    let must = |name: &str, data_type: DataType| Field::new(name, data_type, false);
    let may = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    let fields = match table {
        Table::Samples => vec![
            must("ts_ns", Int64),
            must("type", name()),
            must("node", name()),
            must("service", name()),
            must("series_id", Int64),
            must("process_id", Int64),
            must("thread", name()),
            may("tid", Int64),
            may("cpu", Int32),
            must("mode", name()),
            must("stack_id", Int64),
            must("value", Int64),
            // Null where the sender does not say, and in rows of servers that did not have it.
            may("wait_ns", Int64),
            may("woken_tid", Int64),
            must("hour", name()),
        ],
        Table::SamplesMinute | Table::SamplesHour | Table::SamplesTenSeconds => {
            let mut fields = vec![
                must("ts_ns", Int64),
                must("type", name()),
                must("service", name()),
                must("series_id", Int64),
                must("mode", name()),
            ];
            fields.extend(table.has_stacks().then(|| must("stack_id", Int64)));
            fields.extend([must("value", Int64), must("count", Int64), must("hour", name())]);
            fields
        }
        Table::Series => {
            let mut fields = vec![must("series_id", Int64)];
            fields.extend(SERIES_LABELS.iter().map(|label| must(label, Utf8)));
            // Null in rows of servers that did not have them.
            fields.extend([may("accounted", Boolean), may("spread", Boolean)]);
            fields.extend([may("labels", Utf8), must("day", name())]);
            fields
        }
        Table::Stacks => vec![
            must("stack_id", Int64),
            must("frames", DataType::List(Arc::new(Field::new("element", Int64, false)))),
            must("truncated", Boolean),
            must("day", name()),
        ],
        Table::Frames => vec![
            must("frame_id", Int64),
            must("kind", Utf8),
            must("module", Utf8),
            must("build_id", Utf8),
            must("function", Utf8),
            must("file", Utf8),
            must("line", Int64),
            must("inlined", Boolean),
            may("offset", Int64),
            may("start_line", Int64),
            must("day", name()),
        ],
        Table::Types => vec![
            must("type_id", Int64),
            must("type", Utf8),
            must("unit", Utf8),
            must("accounted", Boolean),
            must("spread", Boolean),
            must("day", name()),
        ],
        Table::Processes => vec![
            must("process_id", Int64),
            must("node", Utf8),
            may("tgid", Int64),
            may("start_ticks", Int64),
            may("exec_count", Int64),
            must("executable", Utf8),
            must("command_line", Utf8),
            must("build_id", Utf8),
            must("day", name()),
        ],
        Table::Batches => vec![
            must("node", Utf8),
            must("instance", Utf8),
            must("number", Int64),
            must("from_ns", Int64),
            must("until_ns", Int64),
            must("period_ns", Int64),
            may("frequency_hz", Int64),
            may("cpus", Int64),
            may("ticks", Int64),
            may("idle_ticks", Int64),
            may("missed_ticks", Int64),
            may("cpus_offline", Utf8),
            must("samples", Int64),
            may("samples_taken", Int64),
            must("lost", Utf8),
            may("limits", Utf8),
            may("cpu_seconds", Float64),
            may("bpf_seconds", Float64),
            may("rss_bytes", Int64),
            may("bpf_map_bytes", Int64),
            must("agent_version", Utf8),
            must("kernel", Utf8),
            must("arch", Utf8),
            may("run_queues", Utf8),
            may("waits_observed_ns", Int64),
            may("cluster", Utf8),
            may("labels", Utf8),
            must("day", name()),
        ],
    };
    Schema::new(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_ends_with_its_partition_and_has_its_key_columns() {
        for table in Table::ALL {
            let schema = table.schema();
            assert_eq!(schema.fields().last().unwrap().name(), table.partition_column());
            for column in table.key().iter().chain(table.sort_columns()) {
                assert!(schema.column_with_name(column).is_some(), "{table:?} lacks {column}");
            }
            assert_eq!(table.file_schema().fields().len() + 1, schema.fields().len());
            assert_eq!(Table::ALL[table.index()], table);
        }
    }

    #[test]
    fn what_a_row_refers_to_is_read_after_it() {
        let at = |table: Table| Table::REFERRERS_FIRST.iter().position(|of| *of == table).unwrap();
        let dictionaries = [Table::Stacks, Table::Series, Table::Processes, Table::Types];
        for samples in Table::ROLLUPS.into_iter().chain([Table::Samples]) {
            for dictionary in dictionaries {
                assert!(at(samples) < at(dictionary), "{samples:?} {dictionary:?}");
            }
            assert!(at(Table::Samples) <= at(samples), "roll-ups are made of samples");
        }
        assert!(
            at(Table::Samples) < at(Table::Batches),
            "samples decide which batches are stored"
        );
        assert!(at(Table::Stacks) < at(Table::Frames), "stacks are lists of frames");
        assert!(Table::ALL.into_iter().all(|table| at(table) < Table::COUNT));
    }
}
