//! Counts a share.

use crate::query::ask::question::Question;
use crate::query::count::partial::{Partial, encode};
use crate::query::count::scan::scan;
use crate::query::count::stack_counts::StackCounts;
use crate::query::limits::admission::{Admission, Limits};
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::blocking;
use crate::query::plan::days::Days;
use crate::query::plan::read_plan::ReadPlan;
use crate::query::plan::scope::scope;
use crate::query::plan::shares::counting::{Counting, GroupsOf, labels};
use crate::query::plan::shares::share::{Share, Unusable};
use crate::query::views::by_label::{GroupsBy, ToldApart};
use crate::query::views::grouping::{GroupedStacks, Grouping};
use crate::query::views::heatmap::{Grid, HeatmapCounts};
use crate::query::views::selected::exchange::SpreadCounters;
use crate::query::views::timeline::{Earliest, MAX_SAMPLES};
use crate::store::{Snapshot, Store, StoreError};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What fails, in errors.
const WHAT: &str = "count a share";

/// Why a share was not counted.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// It is none of this version's, or asks for what is not there.
    #[error("{0}")]
    Unusable(String),
    /// This server cannot see what the asked one sees.
    #[error("this server cannot see what others have committed: {0}")]
    Behind(#[from] StoreError),
    /// Counting failed.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl ShareError {
    /// Whether another server may do better.
    pub fn is_temporary(&self) -> bool {
        match self {
            ShareError::Unusable(_) => false,
            ShareError::Behind(_) | ShareError::Query(QueryError::Internal { .. } | QueryError::Timeout { .. }) => true,
            ShareError::Query(error) => error.is_temporary(),
        }
    }
}

impl From<Unusable> for ShareError {
    fn from(unusable: Unusable) -> ShareError {
        ShareError::Unusable(unusable.to_string())
    }
}

/// Counts shares for other servers. They have turns of their own: a server that waits for others must not keep them
/// from those that wait for it.
#[derive(Debug)]
pub struct ShareCounter {
    store: Arc<Store>,
    admission: Admission,
    counters: Arc<SpreadCounters>,
}

impl ShareCounter {
    /// Of the data of a store, within these limits.
    pub fn new(store: Arc<Store>, limits: Limits, counters: Arc<SpreadCounters>) -> ShareCounter {
        ShareCounter {
            store,
            admission: Admission::new(limits),
            counters,
        }
    }

    /// The partial counts of a share. Dropped, the future stops counting.
    ///
    /// # Errors
    /// [`ShareError`]; nothing was counted then.
    pub async fn count(&self, share: Bytes) -> Result<Vec<u8>, ShareError> {
        let counted = self.counted(share).await;
        let counter = match &counted {
            Ok(_) => &self.counters.counted,
            Err(_) => &self.counters.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        counted
    }

    /// All of it has a turn, on a thread for questions: a share may be long to read, and a look may wait for a commit.
    async fn counted(&self, share: Bytes) -> Result<Vec<u8>, ShareError> {
        let (store, limits) = (self.store.clone(), self.admission.limits.clone());
        let whole = async move {
            let counted = async {
                let share = Share::decode(&share)?;
                let question = share.question()?;
                let snapshot = view(&store, &share).await?;
                Ok::<_, ShareError>(partial_counts(snapshot, question, share, limits).await?)
            };
            Ok::<_, QueryError>(counted.await)
        };
        self.admission.run(whole).await?
    }
}

/// A view that knows every series and process that the asked server knows of. One that has all of its files does; one
/// that has looked since it was asked does too: what it lacks of them was rewritten.
async fn view(store: &Store, share: &Share) -> Result<Snapshot, ShareError> {
    let snapshot = store.snapshot();
    if share.known.is_in(&snapshot) {
        return Ok(snapshot);
    }
    store.look().await?;
    let snapshot = store.snapshot();
    match share.known.has_its_days_in(&snapshot) {
        true => Ok(snapshot),
        false => Err(Unusable::Gone.into()),
    }
}

async fn partial_counts(
    snapshot: Snapshot,
    question: Question,
    share: Share,
    limits: Limits,
) -> Result<Vec<u8>, QueryError> {
    let mut units = Vec::new();
    for of_file in &share.files {
        let table = of_file.table().ok_or_else(|| no_table(&of_file.table))?;
        let found = snapshot.units_of(table, of_file.file(), &of_file.groups).await;
        units.extend(found.map_err(|error| QueryError::internal(WHAT, error))?);
    }
    let selected = scope(&snapshot, &question).await?;
    let plan = ReadPlan::of_units(&snapshot, &question, &selected, units);
    let counts = match share.counting {
        Counting::Stacks { windows, limit } => {
            let limit = allowed(limit, limits.stacks)?;
            partial(plan, || StackCounts::of(&windows, limit)).await?
        }
        Counting::Pairs { windows, group, limit } => {
            let (limit, days) = (allowed(limit, limits.stacks)?, Days::of(question.window));
            let grouping = Grouping::new(&snapshot, &days, &labels(&group).unwrap_or_default(), limit).await?;
            let new = || GroupedStacks::new(StackCounts::of(&windows, limit), grouping.clone());
            partial(plan, new).await?
        }
        Counting::Groups(of) => {
            let by = groups(&snapshot, &question, &of, &limits).await?;
            match of.stacks {
                None => partial(plan, || by.alone()).await?,
                Some(stacks) => {
                    let stacks = allowed(stacks, limits.stacks)?;
                    partial(plan, || by.with_stacks(stacks)).await?
                }
            }
        }
        Counting::Heatmap { columns, rows } => partial(plan, || HeatmapCounts::new(Grid { columns, rows })).await?,
        Counting::Earliest { limit, profile } => {
            let limit = allowed(limit, MAX_SAMPLES)?;
            partial(plan, || Earliest::new(limit, profile)).await?
        }
    };
    // The asked server says itself what it leaves out of an answer: what is left out here it would not know of.
    match &snapshot.left_out()[..] {
        [] => Ok(counts),
        files => Err(QueryError::internal(
            WHAT,
            format!("corrupt files: {}", files.join(", ")),
        )),
    }
}

async fn groups(
    snapshot: &Snapshot,
    question: &Question,
    of: &GroupsOf,
    limits: &Limits,
) -> Result<GroupsBy, QueryError> {
    let apart = |names: &Vec<String>| -> ToldApart {
        let names = names.iter().map(|name| name.as_str().into());
        Arc::new(names.collect())
    };
    let told_apart: Option<Vec<ToldApart>> = of.told_apart.as_ref().map(|all| all.iter().map(apart).collect());
    let (labels, cells) = (labels(&of.labels).unwrap_or_default(), allowed(of.cells, limits.cells)?);
    GroupsBy::new(snapshot, question, &labels, (of.steps, cells), told_apart.as_deref()).await
}

/// What the asked server may count must not be more than this one may: its counts would be others.
fn allowed(asked: usize, most: usize) -> Result<usize, QueryError> {
    if asked > most {
        return Err(QueryError::too_large(
            format!("the asked server counts up to {asked}, this one {most}"),
            "give servers on the same data the same limits",
        ));
    }
    Ok(asked)
}

fn no_table(name: &str) -> QueryError {
    QueryError::internal(WHAT, format!("{name:?} is no table of samples"))
}

async fn partial<C: Partial>(plan: ReadPlan, new: impl Fn() -> C) -> Result<Vec<u8>, QueryError> {
    let (counted, _held) = scan(plan, new).await?;
    blocking(move || encode(counted)).await?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ask::question::{RuntimeFrames, ValueRange};
    use crate::query::ask::selector::Selector;
    use crate::query::ask::time::Window;
    use crate::store::{StoreConfig, Table};
    use std::time::Duration;

    /// A share of nothing, of a server that knows of more files than it can name.
    fn share(store: &Store) -> Bytes {
        let question = Question {
            profile: "cpu".to_owned(),
            selector: Selector::parse("{}").unwrap(),
            window: Window {
                from_ns: 1_795_248_000_000_000_000,
                until_ns: 1_795_251_600_000_000_000,
            },
            except: None,
            unit: None,
            runtime_frames: RuntimeFrames::default(),
            values: ValueRange::default(),
            lengths: ValueRange::default(),
        };
        let counting = Counting::Earliest { limit: 1, profile: 0 };
        let share = Share::new(&store.snapshot(), &question, counting, &[]);
        let mut told: serde_json::Value = serde_json::from_slice(&share.encode().unwrap()).unwrap();
        told["known"]["more"] = true.into();
        serde_json::to_vec(&told).unwrap().into()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_share_that_waits_for_a_look_has_a_turn_and_comes_to_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig {
            is_shared: true,
            look_interval: Duration::from_secs(3_600),
            ..StoreConfig::new(dir.path())
        };
        let store = Store::open(config).await.unwrap();
        let share = share(&store);
        let limits = |timeout| Limits {
            timeout,
            running: 1,
            waiting: 0,
            ..Limits::default()
        };
        let counter = |timeout| ShareCounter::new(store.clone(), limits(timeout), Arc::default());
        let counted = counter(Duration::from_secs(30)).count(share.clone()).await;
        assert!(counted.is_ok(), "{counted:?}");
        // A commit is under way.
        let log = store.logs[Table::Samples.index()].lock().await;
        let counter = counter(Duration::from_millis(300));
        let both = async { tokio::join!(counter.count(share.clone()), counter.count(share.clone())) };
        let (first, second) = tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
        assert!(
            matches!(&first, Err(ShareError::Query(QueryError::Timeout { .. }))),
            "{first:?}"
        );
        assert!(
            matches!(&second, Err(ShareError::Query(QueryError::Overloaded { .. }))),
            "{second:?}"
        );
        // Others may do better.
        assert!(
            [first, second]
                .into_iter()
                .all(|error| error.unwrap_err().is_temporary())
        );
        drop(log);
        store.close().await;
    }
}
