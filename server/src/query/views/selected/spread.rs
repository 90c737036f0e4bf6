//! Counting on several servers: each counts its share, and the asked server adds up what they counted.
//!
//! A share whose server fails is asked of another one, and at last counted here: the asked server can read all of it.
//! One that is still not there a while after this server has counted its own part is asked of another beside, and what
//! comes first counts. So an answer is the one that this server would give alone, or an error that it would give alone.
//! There is no scheduler: each share is asked of the server that the cut names, and the others are there for its sake.

use crate::query::ask::question::Question;
use crate::query::count::partial::{Partial, decode_within};
use crate::query::count::scan::scan;
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::blocking;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::read_plan::ReadPlan;
use crate::query::plan::scope::ResolvedSelector;
use crate::query::plan::shares::counting::Counting;
use crate::query::plan::shares::share::Share;
use crate::query::plan::shares::{Part, Shares, committed_rows, cut};
use crate::query::views::selected::exchange::{Exchange, ExchangeError, Spread, SpreadCounters};
use crate::store::Snapshot;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};

/// Shares that are asked of a server at a time, on average.
const AT_A_TIME: usize = 2;

/// A share is not asked again before so long, unless its server failed.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);

/// Nor before so many times the time that the asked server took for as many rows of its own part.
const PATIENCE: u32 = 3;

/// The same where it had none.
const USUAL_PATIENCE: Duration = Duration::from_secs(10);

/// What partial counts take until they are merged.
const PARTIAL_COUNTS: &str = "counts of other servers";

/// Hands every selected sample to an accumulator, of this server or of others. `counting`: what the accumulator is, for
/// them. The reservation holds what it takes.
pub(crate) async fn count_spread<C, N>(
    spread: &Spread,
    snapshot: &Snapshot,
    question: &Question,
    scope: &ResolvedSelector,
    counting: Counting,
    new: N,
) -> Result<(C, Reservation), QueryError>
where
    C: Partial,
    N: Fn() -> C + Send + Sync,
{
    let mut plan = ReadPlan::of(snapshot, question, scope, new().needs()).await?;
    let Some((exchange, servers)) = spread.servers_for(committed_rows(&plan.units)) else {
        return scan(plan, new).await;
    };
    let Shares {
        own: units,
        others: parts,
    } = cut(std::mem::take(&mut plan.units), &exchange.own(), &servers);
    spread.counters.spread.fetch_add(1, Ordering::Relaxed);
    let (pace, paces) = watch::channel(None);
    let asking = Asking {
        exchange,
        counters: &spread.counters,
        at_once: AT_A_TIME * servers.len(),
        servers,
        snapshot,
        question,
        counting,
        plan: &plan,
        new: &new,
        pace: paces,
        here: Mutex::new(()),
    };
    let own = async {
        let (begun, rows) = (Instant::now(), committed_rows(&units));
        let counted = scan(plan.with_units(units), &new).await?;
        let took = begun.elapsed();
        pace.send_replace(Some(Pace { took, rows }));
        Ok::<_, QueryError>(counted)
    };
    let (own, others) = tokio::try_join!(own, asking.all(parts))?;
    match others {
        Some(others) => merged(own, others),
        None => Ok(own),
    }
}

/// Both together. However many come, they take no more memory than a few that have counted the same.
fn merged<C: Partial>(
    (mut whole, held): (C, Reservation),
    (part, of_part): (C, Reservation),
) -> Result<(C, Reservation), QueryError> {
    whole.merge(part)?;
    whole.pack();
    drop(of_part);
    held.resize(whole.bytes())?;
    Ok((whole, held))
}

/// How fast the asked server counted its own part.
#[derive(Debug, Clone, Copy)]
struct Pace {
    took: Duration,
    rows: usize,
}

impl Pace {
    /// How long a share of so many rows may take.
    fn patience(self, rows: usize) -> Duration {
        match rows.div_ceil(self.rows.max(1)) {
            _ if self.rows == 0 => USUAL_PATIENCE,
            times => {
                let times = u32::try_from(times).unwrap_or(u32::MAX);
                LEAST_PATIENCE.max(self.took.saturating_mul(times.saturating_mul(PATIENCE)))
            }
        }
    }
}

/// Why an attempt gave no counts.
enum Missed {
    /// Another may do better.
    Failed(String),
    /// Only the asked server can say what is wrong: it counts the share itself.
    Refused(String),
    /// It would be the same anywhere.
    Error(QueryError),
}

/// What is asked of others for one question.
struct Asking<'q, N> {
    exchange: &'q Arc<dyn Exchange>,
    counters: &'q SpreadCounters,
    /// Shares at a time.
    at_once: usize,
    servers: Vec<String>,
    snapshot: &'q Snapshot,
    question: &'q Question,
    counting: Counting,
    /// Without row groups.
    plan: &'q ReadPlan,
    new: &'q N,
    /// Once the own part is counted.
    pace: watch::Receiver<Option<Pace>>,
    /// Held by the one share that this server counts itself at a time.
    here: Mutex<()>,
}

type Attempt<'a, C> = BoxFuture<'a, Result<(C, Reservation), Missed>>;

impl<C, N> Asking<'_, N>
where
    C: Partial,
    N: Fn() -> C + Send + Sync,
{
    /// The counts of all shares together, each added up when it comes; none where there are no shares.
    async fn all(&self, parts: Vec<Part>) -> Result<Option<(C, Reservation)>, QueryError> {
        let counts = futures::stream::iter(in_turns(parts)).map(|part| self.counted(part));
        let mut counts = std::pin::pin!(counts.buffer_unordered(self.at_once.max(1)));
        let mut all = None;
        while let Some(of_part) = counts.try_next().await? {
            all = Some(match all {
                Some(whole) => merged(whole, of_part)?,
                None => of_part,
            });
        }
        Ok(all)
    }

    /// The counts of a share, whoever counts it.
    async fn counted(&self, part: Part) -> Result<(C, Reservation), QueryError> {
        let turn = self.counters.shares.fetch_add(1, Ordering::Relaxed) as usize;
        add(&self.counters.rows, part.rows as u64);
        let share = Share::new(self.snapshot, self.question, self.counting.clone(), &part.units).encode();
        let share = share.map(Bytes::from);
        // Those who may be asked still, from the end: the one that the share is for, then the others, in turns.
        let mut left: Vec<&str> = self.servers.iter().map(String::as_str).collect();
        left.rotate_left(turn % self.servers.len().max(1));
        left.sort_by_key(|server| *server == part.server);
        if share.is_none() {
            left.clear();
        }
        let (mut asked, mut here) = (0, false);
        let mut attempts: FuturesUnordered<Attempt<'_, C>> = FuturesUnordered::new();
        loop {
            let is_waiting = !attempts.is_empty();
            let missed = tokio::select! {
                Some(done) = attempts.next() => match done {
                    Ok(counts) => return Ok(counts),
                    Err(Missed::Error(error)) => return Err(error),
                    Err(missed) => Some(missed),
                },
                () = self.patience(asked, part.rows), if is_waiting && !here => None,
                () = std::future::ready(()), if !is_waiting => None,
            };
            match &missed {
                Some(Missed::Refused(why)) => {
                    tracing::warn!(%why, "another server does not count a share; this one does");
                    left.clear();
                }
                Some(Missed::Failed(why)) => tracing::warn!(%why, "a share is asked of another server"),
                Some(Missed::Error(_)) | None => {}
            }
            if here {
                continue;
            }
            add(&self.counters.retries, u64::from(asked > 0));
            asked += 1;
            match (left.pop(), &share) {
                (Some(server), Some(share)) => attempts.push(Box::pin(self.by(server, share.clone()))),
                _ => {
                    add(&self.counters.taken_back, 1);
                    here = true;
                    attempts.push(Box::pin(self.by_this(&part)));
                }
            }
        }
    }

    /// Passes when a share has taken too long: the first time by the pace of this server.
    async fn patience(&self, asked: usize, rows: usize) {
        let (mut pace, begun) = (self.pace.clone(), Instant::now());
        let Ok(Some(pace)) = pace.wait_for(Option::is_some).await.map(|pace| *pace) else {
            // The question ends.
            return std::future::pending().await;
        };
        let longest = if asked == 1 {
            pace.patience(rows)
        } else {
            LEAST_PATIENCE
        };
        tokio::time::sleep(longest.saturating_sub(begun.elapsed())).await;
    }

    /// The counts of another server.
    async fn by(&self, server: &str, share: Bytes) -> Result<(C, Reservation), Missed> {
        add(&self.counters.sent_bytes, share.len() as u64);
        let counted = self.exchange.count(server, share).await.map_err(|error| match error {
            ExchangeError::Refused(why) => Missed::Refused(format!("{server}: {why}")),
            ExchangeError::Failed(why) => Missed::Failed(format!("{server}: {why}")),
        })?;
        add(&self.counters.received_bytes, counted.len() as u64);
        let held = Reservation::of_pool(self.plan.pool.clone(), PARTIAL_COUNTS);
        let empty = (self.new)();
        let read = move || {
            let mut no_room = None;
            let mut room = |bytes: usize| held.resize(bytes).map_err(|error| no_room = Some(error)).is_ok();
            let counts = decode_within(empty, &counted, &mut room);
            match no_room {
                Some(error) => Err(error),
                None => Ok((counts, held)),
            }
        };
        let read = blocking(read).await.map_err(Missed::Error)?;
        let (counts, held) = read.map_err(Missed::Error)?;
        let counts = counts.map_err(|malformed| Missed::Refused(format!("{server}: {malformed}")))?;
        held.resize(counts.bytes()).map_err(Missed::Error)?;
        Ok((counts, held))
    }

    /// The counts of the server that was asked, one share after another.
    async fn by_this(&self, part: &Part) -> Result<(C, Reservation), Missed> {
        let _turn = self.here.lock().await;
        let plan = self.plan.with_units(part.units.clone());
        scan(plan, self.new).await.map_err(Missed::Error)
    }
}

/// Shares of one server behind those of the others, so that all have something to do at once.
fn in_turns(parts: Vec<Part>) -> Vec<Part> {
    let servers: BTreeSet<String> = parts.iter().map(|part| part.server.clone()).collect();
    let mut numbered: Vec<(usize, Part)> = Vec::with_capacity(parts.len());
    let mut counts = vec![0; servers.len()];
    for part in parts {
        let at = servers.iter().position(|server| *server == part.server).unwrap_or(0);
        numbered.push((counts[at], part));
        counts[at] += 1;
    }
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, part)| part).collect()
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_with_what_is_asked_for() {
        let pace = |took_ms, rows| Pace {
            took: Duration::from_millis(took_ms),
            rows,
        };
        assert_eq!(pace(5, 1_000).patience(1_000), LEAST_PATIENCE);
        assert_eq!(pace(1_000, 1_000).patience(1_000), Duration::from_secs(3));
        assert_eq!(pace(1_000, 1_000).patience(4_000), Duration::from_secs(12));
        assert_eq!(pace(0, 0).patience(4_000), USUAL_PATIENCE);
        assert_eq!(pace(u64::MAX, 1).patience(usize::MAX), Duration::MAX);
    }

    #[test]
    fn shares_of_all_servers_are_asked_at_once() {
        let part = |server: &str, rows| Part {
            server: server.to_owned(),
            units: Vec::new(),
            rows,
        };
        let turns = in_turns(vec![
            part("b", 1),
            part("b", 2),
            part("b", 3),
            part("c", 4),
            part("c", 5),
        ]);
        let order: Vec<usize> = turns.iter().map(|part| part.rows).collect();
        assert_eq!(order, [1, 4, 2, 5, 3]);
    }
}
