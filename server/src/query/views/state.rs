//! What the answers about a window are counted on, as one number: another one whenever that changes.
//!
//! It is made of names of files and numbers of pending rows, of which none is ever given twice, and reads no file. In
//! it are: files of samples, and pending ones, of which any may lie in the window; all roll-ups of the window's
//! hours; reports of batches from ten minutes before the window to half a minute behind it; all series of its days;
//! all types. Stacks, frames and processes are not: their rows are named by their content, and come with the first
//! sample that has them. So the number also changes where what is there is only written anew, and where a new series
//! or type comes in the same days.

use crate::query::ask::time::Window;
use crate::query::count::observed_time::{LATE_NS, LOOK_BACK_NS};
use crate::query::plan::days::Days;
use crate::query::plan::sources::in_whole_hours;
use crate::store::{DataFile, Pending, Snapshot, Table};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use xxhash_rust::xxh3::Xxh3;

const DAY_NS: i64 = 86_400_000_000_000;

/// See the module.
pub fn state(snapshot: &Snapshot, window: Window) -> u128 {
    let window = in_whole_hours(snapshot, window);
    let mut hash = Xxh3::new();
    of_samples(snapshot, window, &mut hash);
    of_accounts(snapshot, window, &mut hash);
    of_days(snapshot, &Days::of(window), &mut hash);
    hash.digest128()
}

/// Two lists of texts never look the same.
fn push(hash: &mut Xxh3, text: &str) {
    hash.update(&(text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

fn of_samples(snapshot: &Snapshot, window: Window, hash: &mut Xxh3) {
    let (first, last) = Days::of(window).hours();
    let has = |hour: &str| (first.as_str()..=last.as_str()).contains(&hour);
    let may_lie_within = |file: &DataFile| {
        let times = file.int_range("ts_ns");
        times.is_none_or(|times| times.min < window.until_ns && times.max >= window.from_ns)
    };
    for table in [Table::Samples].into_iter().chain(Table::ROLLUPS) {
        push(hash, table.name());
        let files = snapshot.files(table).iter().filter(|file| has(&file.partition));
        let mut hour = None;
        for file in files {
            // Where any samples of an hour are left, they answer for it, and not its roll-ups.
            if hour != Some(&file.partition) {
                hour = Some(&file.partition);
                push(hash, &file.partition);
            }
            if table != Table::Samples || may_lie_within(file) {
                push(hash, &file.path);
            }
        }
    }
    for pending in snapshot.pending(Table::Samples) {
        if let Pending::Samples(samples) = pending
            && samples.any_within(window.from_ns, window.until_ns)
        {
            hash.update(&samples.number().to_le_bytes());
        }
    }
}

/// Answers look at these times of reports.
fn of_accounts(snapshot: &Snapshot, window: Window, hash: &mut Xxh3) {
    let (after_ns, before_ns) = (
        window.from_ns.saturating_sub(LOOK_BACK_NS),
        window.until_ns.saturating_add(LATE_NS),
    );
    let days = Days::of(window).widened(DAY_NS);
    push(hash, Table::Batches.name());
    for file in snapshot
        .files(Table::Batches)
        .iter()
        .filter(|file| days.has(&file.partition))
    {
        let ends_after = file.int_range("until_ns").is_none_or(|range| range.max > after_ns);
        let begins_before = file.int_range("from_ns").is_none_or(|range| range.min < before_ns);
        if ends_after && begins_before {
            push(hash, &file.path);
        }
    }
    for pending in snapshot.pending(Table::Batches) {
        if let Pending::Report(report) = pending
            && report.until_ns > after_ns
            && report.from_ns < before_ns
        {
            // All that it says.
            push(hash, &format!("{report:?}"));
        }
    }
}

fn of_days(snapshot: &Snapshot, days: &Days, hash: &mut Xxh3) {
    for table in [Table::Series, Table::Types] {
        push(hash, table.name());
        // Which units of a type were there first is seen in all days.
        let has = |day: &str| table == Table::Types || days.has(day);
        for file in snapshot.files(table).iter().filter(|file| has(&file.partition)) {
            push(hash, &file.path);
        }
        for pending in snapshot.pending(table) {
            let of_days = pending.partition().is_some_and(|day| has(&day));
            if let Pending::Rows(rows) = pending
                && of_days
                && let Some(ids) = rows.column(0).as_primitive_opt::<Int64Type>()
            {
                ids.values().iter().for_each(|id| hash.update(&id.to_le_bytes()));
            }
        }
    }
}
