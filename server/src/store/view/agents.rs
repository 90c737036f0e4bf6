//! The latest report of every agent, kept in memory.

use crate::store::buffer::report::BatchRow;
use crate::store::table::schema::Table;
use crate::store::view::snapshot::Snapshot;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};
use std::collections::HashMap;

/// Reports that are read together, about: those of all days may be more than there is memory for.
const ROWS_AT_ONCE: u64 = 2_000_000;

/// Most instances whose reports are kept. Beyond them those go that were silent for longest.
const MOST_INSTANCES: usize = 20_000;

/// What is read of a report, beside its instance and its samples.
const COLUMNS: &str = "node, number, from_ns, until_ns, period_ns, frequency_hz, cpus, ticks, idle_ticks, \
     missed_ticks, cpus_offline, \
     samples_taken, lost, limits, cpu_seconds, bpf_seconds, rss_bytes, bpf_map_bytes, agent_version, kernel, arch, \
     waits_observed_ns, \"cluster\"";

/// An agent instance as its last committed batch describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeInfo {
    /// Its report of its newest batch.
    pub last: BatchRow,
    /// CPU seconds that it and its BPF programs took for each second of the newest interval; none before there are
    /// two of them since the start.
    pub cores: Option<f64>,
    /// Rows of `samples` over all its committed batches that are still within retention or came since the start.
    pub samples_stored: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Nodes {
    instances: HashMap<String, NodeInfo>,
    /// The newest number of each instance, and which of the 64 below it came: where several servers write, a report may
    /// come twice.
    counted: HashMap<String, (i64, u64)>,
}

impl Nodes {
    pub(crate) fn add(&mut self, row: &BatchRow) {
        if self.counts(row) {
            self.put(row);
        }
    }

    /// What was stored of each instance when the reports were loaded: highest number, and window of those below it.
    /// Where another server repeats one of these reports later it does not count again.
    pub(crate) fn know<'w>(&mut self, windows: impl Iterator<Item = (&'w str, i64, u64)>) {
        for (instance, newest, below) in windows {
            if self.instances.contains_key(instance) {
                self.counted.insert(instance.to_owned(), (newest, below));
            }
        }
    }

    fn put(&mut self, row: &BatchRow) {
        match self.instances.get_mut(&row.instance) {
            Some(info) => {
                info.samples_stored += row.samples;
                if row.number > info.last.number {
                    info.cores = cores_between(&info.last, row).or(info.cores);
                    info.last = of_node(row);
                }
            }
            None => {
                let info = NodeInfo {
                    last: of_node(row),
                    cores: None,
                    samples_stored: row.samples,
                };
                if self.instances.len() >= MOST_INSTANCES {
                    self.forget_silent(MOST_INSTANCES / 8);
                }
                self.instances.insert(row.instance.clone(), info);
            }
        }
    }

    /// Whether a report is no repeat.
    fn counts(&mut self, row: &BatchRow) -> bool {
        let Some((newest, below)) = self.counted.get_mut(&row.instance) else {
            self.counted.insert(row.instance.clone(), (row.number, 0));
            return true;
        };
        match row.number - *newest {
            0 => false,
            ahead @ 1..=63 => {
                (*newest, *below) = (row.number, *below << ahead | 1 << (ahead - 1));
                true
            }
            64.. => {
                (*newest, *below) = (row.number, 0);
                true
            }
            behind @ -64..=-1 => {
                let bit = 1 << (-behind - 1);
                let is_new = *below & bit == 0;
                *below |= bit;
                is_new
            }
            _ => true,
        }
    }

    /// So many of those that were silent for longest.
    fn forget_silent(&mut self, count: usize) {
        let mut untils: Vec<i64> = self.instances.values().map(|info| info.last.until_ns).collect();
        let at = count.min(untils.len()).saturating_sub(1);
        let (_, cutoff_ns, _) = untils.select_nth_unstable(at);
        let (cutoff_ns, mut left) = (*cutoff_ns, count);
        self.instances.retain(|_, info| {
            let goes = left > 0 && info.last.until_ns <= cutoff_ns;
            left -= usize::from(goes);
            !goes
        });
        self.counted.retain(|instance, _| self.instances.contains_key(instance));
    }

    /// Newest first.
    pub(crate) fn list(&self) -> Vec<NodeInfo> {
        let mut list: Vec<_> = self.instances.values().cloned().collect();
        list.sort_by(|a, b| (b.last.until_ns, &a.last.instance).cmp(&(a.last.until_ns, &b.last.instance)));
        list
    }

    pub(crate) fn forget_older(&mut self, cutoff_ns: i64) {
        self.instances.retain(|_, info| info.last.until_ns >= cutoff_ns);
        self.counted.retain(|instance, _| self.instances.contains_key(instance));
    }

    /// All reports of a few files, in their order.
    pub(crate) async fn rows(snapshot: &Snapshot) -> datafusion::common::Result<Vec<BatchRow>> {
        let query = format!("SELECT instance, samples, {COLUMNS} FROM batches ORDER BY number");
        let batches = snapshot.session().sql(&query).await?.collect().await?;
        let rows = batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).filter_map(move |row| read_row(batch, row)));
        Ok(rows.collect())
    }

    /// From the table `batches`, once at the start.
    pub(crate) async fn load(snapshot: &Snapshot) -> datafusion::common::Result<Self> {
        let last: Vec<String> = COLUMNS
            .split(", ")
            .map(|name| format!("last_value({name} ORDER BY number) AS {name}"))
            .collect();
        let query = format!(
            "SELECT instance, sum(samples) AS samples, {} FROM batches",
            last.join(", ")
        );
        let mut nodes = Self::default();
        for days in snapshot.days_of_rows(Table::Batches, ROWS_AT_ONCE, |_| true) {
            let (first, behind) = (days.start, days.end);
            let query = format!("{query} WHERE day >= '{first}' AND day < '{behind}' GROUP BY instance");
            for batch in snapshot.session().sql(&query).await?.collect().await? {
                for last in (0..batch.num_rows()).filter_map(|row| read_row(&batch, row)) {
                    nodes.put(&last);
                }
            }
        }
        // How far apart the newest of two times are says nothing of what it took.
        nodes.instances.values_mut().for_each(|info| info.cores = None);
        Ok(nodes)
    }
}

/// What is known of an agent; waits for a CPU are asked for by time, and its attributes with them.
fn of_node(row: &BatchRow) -> BatchRow {
    BatchRow {
        run_queues: String::new(),
        labels: String::new(),
        ..row.clone()
    }
}

fn cores_between(before: &BatchRow, last: &BatchRow) -> Option<f64> {
    let taken = |row: &BatchRow| Some(row.cpu_seconds? + row.bpf_seconds.unwrap_or(0.0));
    let seconds = last.until_ns.saturating_sub(before.until_ns) as f64 / 1e9;
    let cores = (taken(last)? - taken(before)?) / seconds;
    (seconds > 0.0 && cores >= 0.0).then_some(cores)
}

fn read_row(batch: &RecordBatch, row: usize) -> Option<BatchRow> {
    let int = |name: &str| {
        let column = batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
        column.is_valid(row).then(|| column.value(row))
    };
    let real = |name: &str| {
        let column = batch.column_by_name(name)?.as_primitive_opt::<Float64Type>()?;
        column.is_valid(row).then(|| column.value(row))
    };
    let text = |name: &str| {
        let column = batch.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let counts = |name: &str| text(name).and_then(|json| serde_json::from_str(&json).ok());
    Some(BatchRow {
        node: text("node")?,
        instance: text("instance")?,
        number: int("number")?,
        from_ns: int("from_ns")?,
        until_ns: int("until_ns")?,
        period_ns: int("period_ns")?,
        frequency_hz: int("frequency_hz"),
        cpus: int("cpus"),
        ticks: int("ticks"),
        idle_ticks: int("idle_ticks"),
        // Absent where an older server wrote the row.
        missed_ticks: int("missed_ticks"),
        cpus_offline: text("cpus_offline").unwrap_or_default(),
        samples: int("samples")?,
        samples_taken: int("samples_taken"),
        lost: counts("lost").unwrap_or_default(),
        // Absent where an older server wrote the row.
        limits: counts("limits").unwrap_or_default(),
        run_queues: String::new(),
        waits_observed_ns: int("waits_observed_ns"),
        cluster: text("cluster").unwrap_or_default(),
        labels: String::new(),
        cpu_seconds: real("cpu_seconds"),
        bpf_seconds: real("bpf_seconds"),
        rss_bytes: int("rss_bytes"),
        bpf_map_bytes: int("bpf_map_bytes"),
        agent_version: text("agent_version")?,
        kernel: text("kernel")?,
        arch: text("arch")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_instances_are_bounded_and_the_oldest_go() {
        let mut nodes = Nodes::default();
        for number in 0..=MOST_INSTANCES as i64 {
            nodes.add(&BatchRow {
                instance: number.to_string(),
                until_ns: number,
                ..BatchRow::default()
            });
        }
        let list = nodes.list();
        assert_eq!(list.len(), MOST_INSTANCES - MOST_INSTANCES / 8 + 1);
        assert_eq!(list[0].last.until_ns, MOST_INSTANCES as i64);
        assert_eq!(list[list.len() - 1].last.until_ns, MOST_INSTANCES as i64 / 8);
    }

    #[test]
    fn a_report_that_comes_again_counts_once() {
        let row = |number: i64| BatchRow {
            instance: "a".to_owned(),
            number,
            until_ns: number,
            samples: 10,
            ..BatchRow::default()
        };
        let mut nodes = Nodes::default();
        // As they are loaded: 5, 6 and 8.
        nodes.put(&row(8));
        nodes.know([("a", 8, 0b110), ("unknown", 3, 0)].into_iter());
        let mut stored_after = |number: i64| {
            nodes.add(&row(number));
            nodes.list()[0].samples_stored
        };
        let counts = [8, 6, 5, 7, 7, 9, 9, 200, 9, 200].map(&mut stored_after);
        assert_eq!(
            counts,
            [10, 10, 10, 20, 20, 30, 30, 40, 50, 50],
            "9 is below the window of 200"
        );
        assert!(!nodes.counted.contains_key("unknown"));
    }

    #[test]
    fn what_an_agent_takes_is_of_its_newest_interval() {
        let row = |number: i64, until_s: i64, cpu_seconds: Option<f64>| BatchRow {
            instance: "a".to_owned(),
            number,
            until_ns: until_s * 1_000_000_000,
            cpu_seconds,
            bpf_seconds: cpu_seconds.map(|seconds| seconds / 4.0),
            ..BatchRow::default()
        };
        let mut nodes = Nodes::default();
        let mut cores_after = |row: &BatchRow| {
            nodes.add(row);
            nodes.list()[0].cores
        };
        assert_eq!(cores_after(&row(7, 100, Some(8.0))), None);
        // 0.4 seconds of the process and 0.1 of its BPF programs in ten.
        let cores = cores_after(&row(8, 110, Some(8.4))).unwrap();
        assert!((cores - 0.05).abs() < 1e-9, "{cores}");
        // What comes late, again, or without a report changes nothing.
        for other in [row(6, 90, Some(7.0)), row(8, 110, Some(8.4)), row(9, 120, None)] {
            assert_eq!(cores_after(&other), Some(cores), "{other:?}");
        }
    }
}
