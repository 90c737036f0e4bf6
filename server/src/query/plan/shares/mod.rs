//! A read plan in shares: what each of several servers on the same data counts of a question.
//!
//! In: the row groups that are read. Out: those that the asked server counts itself, and for others shares of about as
//! many rows, each with all that it takes to count it. The same row groups and servers give the same shares. Rows that
//! wait for their commit stay where they are.
//!
//! A piece of a file goes to the same server for each question, as long as the servers are the same: what one has read
//! of a bucket it need not fetch again. So pieces find their servers by rendezvous hashing (Thaler and Ravishankar,
//! 1998), each the first in its own order of servers that has room; no server has more than a quarter above its part.

pub(crate) mod counting;
pub(crate) mod share;

use crate::store::format::read::groups::RowGroupTask;
use std::cmp::Reverse;
use xxhash_rust::xxh3::xxh3_64;

/// Rows of a piece of a file, and a little more where row groups are larger: two of the largest row groups.
const PIECE_ROWS: usize = 1 << 20;

/// Rows that are asked of a server at a time, at most one piece more: what a server that dies had counted is counted
/// again.
const SHARE_ROWS: usize = 8 << 20;

/// Above its part a server takes at most so many hundredths.
const ABOVE_PERCENT: usize = 25;

/// Row groups that one server is to count.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Its id.
    pub(crate) server: String,
    pub(crate) units: Vec<RowGroupTask>,
    /// Of all row groups.
    pub(crate) rows: usize,
}

/// A read plan in shares.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// What the asked server counts itself.
    pub(crate) own: Vec<RowGroupTask>,
    pub(crate) others: Vec<Part>,
}

/// Rows that are committed: only these are worth a second server.
pub(crate) fn committed_rows(units: &[RowGroupTask]) -> usize {
    let committed = units.iter().filter(|unit| matches!(unit, RowGroupTask::File { .. }));
    committed.map(RowGroupTask::rows).sum()
}

/// Cuts row groups into shares for these servers, of which one was asked.
pub(crate) fn cut(units: Vec<RowGroupTask>, own: &str, others: &[String]) -> Shares {
    let mut servers: Vec<&str> = others.iter().map(String::as_str).chain([own]).collect();
    servers.sort_unstable();
    servers.dedup();
    let total = committed_rows(&units);
    let most = total.div_ceil(servers.len()) * (100 + ABOVE_PERCENT) / 100;
    let mut loads = vec![0; servers.len()];
    let mut shares = Shares::default();
    let mut of_servers: Vec<Vec<RowGroupTask>> = vec![Vec::new(); servers.len()];
    let mut open: Option<(String, usize)> = None;
    for unit in units {
        let Some(piece) = piece_of(&unit) else {
            shares.own.push(unit);
            continue;
        };
        let rows = unit.rows();
        let at = match &open {
            Some((known, at)) if *known == piece => *at,
            _ => place(&piece, rows, &servers, &loads, most),
        };
        open = Some((piece, at));
        loads[at] += rows;
        of_servers[at].push(unit);
    }
    for (server, units) in servers.into_iter().zip(of_servers) {
        if server == own {
            shares.own.extend(units);
        } else {
            shares.others.extend(parts(server, units));
        }
    }
    shares
}

/// The piece of a file in which a row group lies, whichever row groups a question reads.
fn piece_of(unit: &RowGroupTask) -> Option<String> {
    let RowGroupTask::File {
        table,
        file,
        footer,
        group,
    } = unit
    else {
        return None;
    };
    let before = footer.row_groups().iter().take(*group);
    let before: usize = before.map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).sum();
    Some(format!("{}/{}#{}", table.name(), file.path, before / PIECE_ROWS))
}

/// The server of a piece, of which these rows are the first that are read.
fn place(piece: &str, rows: usize, servers: &[&str], loads: &[usize], most: usize) -> usize {
    let mut order: Vec<(u64, usize)> = servers
        .iter()
        .enumerate()
        .map(|(at, server)| (xxh3_64(format!("{piece}@{server}").as_bytes()), at))
        .collect();
    order.sort_unstable_by_key(|placed| Reverse(*placed));
    let with_room = order.iter().find(|(_, at)| loads[*at] + rows <= most);
    let idlest = || order.iter().min_by_key(|(_, at)| loads[*at]);
    with_room.or_else(idlest).map_or(0, |(_, at)| *at)
}

/// What one server counts, in shares.
fn parts(server: &str, units: Vec<RowGroupTask>) -> Vec<Part> {
    let new = || Part {
        server: server.to_owned(),
        units: Vec::new(),
        rows: 0,
    };
    let mut all: Vec<Part> = Vec::new();
    for unit in units {
        if all.last().is_none_or(|part| part.rows >= SHARE_ROWS) {
            all.push(new());
        }
        if let Some(part) = all.last_mut() {
            part.rows += unit.rows();
            part.units.push(unit);
        }
    }
    all
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
