//! Stack ids to a tree, or to whole stacks with files and lines.
//!
//! What the tables say of stacks is read once and kept as one tree ([`CallingContextTree`]) from one query to the
//! next, within a limit of memory: a tree that has grown beyond it is left to the queries that use it, and the next
//! query begins a new one.

use crate::hash::MixState;
use crate::query::ask::question::RuntimeFrames;
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::{each_of, joined};
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::small_tables::collect_rows;
use crate::query::tree::calling_context::{CallingContextTree, Leaf};
use crate::query::tree::leaves::{Leaves, Shared, read, write};
use crate::query::tree::nodes::{Frame, Kind, Stack, Stacks};
use crate::query::tree::runtime_frames::{Role, folded};
use crate::store::{Snapshot, Table};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::prelude::{Expr, col, lit};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::task::JoinSet;

/// Up to so many ids are asked for by name, so that files can be left out; of more, whole days are read.
const MAX_LISTED_IDS: usize = 500;

/// Memory that a query takes for each node of its tree beside the tree that is kept, in bytes: columns of counts and
/// what orders them; of a difference those of both sides, with what they are judged by.
pub(crate) const NO_TREE: usize = 0;
pub(crate) const ONE_TREE: usize = 40;
pub(crate) const TWO_TREES: usize = 100;

/// Nodes of a tree of few stacks, for each of them: as deep as stacks are, without what they have in common.
const NODES_A_STACK: usize = 32;

/// Ids that are known to have been seen without hashing: as many as stay in the CPU's cache.
const SEEN_LATELY: usize = 1 << 14;

/// Memory of a frame while it is read, with a name of usual length, in bytes.
const FRAME_BYTES: usize = 160;
const USUAL_NAME_BYTES: usize = 48;

/// What whole stacks take beside what is read: of a frame its place and what it is shared by, of a stack itself and
/// where it is found.
const SHARED_FRAME_BYTES: usize = 160;
const WHOLE_STACK_BYTES: usize = 96;

fn empty(runtime_frames: RuntimeFrames) -> Shared {
    Arc::new(RwLock::new(CallingContextTree::new(runtime_frames)))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct StackCache {
    contexts: Mutex<Shared>,
    limit_bytes: usize,
    runtime_frames: RuntimeFrames,
}

/// Rows of `stacks`.
#[derive(Debug, Default)]
struct StackRows {
    ids: Vec<i64>,
    /// Where each stack's frames end.
    ends: Vec<usize>,
    truncated: Vec<bool>,
    /// Frame ids of all stacks, each leaf first.
    frames: Vec<i64>,
}

impl StackRows {
    fn read(&mut self, batch: &RecordBatch, wanted: &HashSet<i64, MixState>) {
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let lists = batch.column(1).as_list::<i32>();
        let frames = lists.values().as_primitive::<Int64Type>().values();
        let truncated = batch.column(2).as_boolean();
        for (row, ends) in lists.value_offsets().windows(2).enumerate() {
            if wanted.contains(&ids[row]) {
                self.ids.push(ids[row]);
                self.frames
                    .extend_from_slice(&frames[ends[0] as usize..ends[1] as usize]);
                self.ends.push(self.frames.len());
                self.truncated.push(truncated.value(row));
            }
        }
    }

    fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<i64>() + self.ids.capacity() * (size_of::<(i64, usize)>() + 1)
    }

    fn iter(&self) -> impl Iterator<Item = (i64, &[i64], bool)> {
        (0..self.ids.len()).map(|row| {
            let from = if row == 0 { 0 } else { self.ends[row - 1] };
            (self.ids[row], &self.frames[from..self.ends[row]], self.truncated[row])
        })
    }
}

impl StackCache {
    /// `limit_bytes` bounds what is kept, and what one query may need.
    pub(crate) fn new(limit_bytes: usize, runtime_frames: RuntimeFrames) -> StackCache {
        StackCache {
            contexts: Mutex::new(empty(runtime_frames)),
            limit_bytes,
            runtime_frames,
        }
    }

    /// What is kept, on the account of queries: one that was given up while it added something could not see to that.
    fn current(&self, pool: &Arc<dyn MemoryPool>) -> Shared {
        let mut current = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, is_held) = {
            let contexts = read(&current);
            let held_bytes = contexts.held.as_ref().map_or(0, Reservation::bytes);
            (
                contexts.bytes(),
                contexts.nodes() == 1 || held_bytes == contexts.bytes(),
            )
        };
        if bytes > self.limit_bytes || !(is_held || hold(pool, &current).is_ok()) {
            *current = empty(self.runtime_frames);
        }
        current.clone()
    }

    /// Keeps nothing: queries that run go on with what they have.
    pub(crate) fn clear(&self) {
        let mut current = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if read(&current).nodes() > 1 {
            *current = empty(self.runtime_frames);
        }
    }

    /// The next query begins another tree.
    fn forget(&self, contexts: &Shared) {
        let mut current = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, contexts) {
            *current = empty(self.runtime_frames);
        }
    }

    /// Where the stacks of these ids end, in that order. An id that the tables don't know is a stack of one unknown
    /// frame, so that no sample is hidden. `node_bytes`: what is made of each node.
    pub(crate) async fn leaves(
        &self,
        snapshot: &Snapshot,
        days: &Days,
        ids: &[i64],
        node_bytes: usize,
    ) -> Result<Leaves, QueryError> {
        let contexts = self.current(snapshot.memory_pool());
        let find = || {
            let known = read(&contexts);
            each_of(ids.len(), |place| known.leaf(ids[place]))
        };
        let mut found = find();
        let lacking = ids.iter().zip(&found).filter(|(_, leaf)| leaf.is_none());
        let missing: HashSet<i64, MixState> = lacking.map(|(id, _)| *id).collect();
        if !missing.is_empty() {
            let reading = Reservation::new(snapshot, "stacks and their names");
            let (rows, frames) = self
                .rows_and_frames(snapshot, days, &contexts, &missing, &reading)
                .await?;
            let (to, limit) = (contexts.clone(), self.limit_bytes);
            let added =
                crate::query::limits::parallel::blocking(move || add(&mut write(&to), &frames.list, &rows, limit))
                    .await?;
            drop(reading);
            // What there is no room for is not kept either.
            let lacking = added
                .and_then(|lacking| hold(snapshot.memory_pool(), &contexts).map(|()| lacking))
                .inspect_err(|_| self.forget(&contexts))?;
            found = find();
            for (id, leaf) in ids.iter().zip(&mut found).filter(|(_, leaf)| leaf.is_none()) {
                *leaf = lacking.get(id).copied();
            }
        }
        let held = Reservation::new(snapshot, "trees of the selected samples");
        let nodes = read(&contexts).nodes().min(ids.len().saturating_mul(NODES_A_STACK));
        held.resize(nodes * node_bytes + ids.len() * size_of::<Leaf>())?;
        let unknown = if found.iter().all(Option::is_some) {
            None
        } else {
            let mut known = write(&contexts);
            let leaf = known.unknown();
            known.rank();
            Some(leaf)
        };
        let leaves = found.into_iter().filter_map(|leaf| leaf.or(unknown)).collect();
        let held = Arc::new(held);
        Ok(Leaves {
            contexts,
            leaves,
            held,
            rows: None,
            node_bytes,
        })
    }

    /// The rows of these stacks, and the frames that the tree lacks of them. What is read takes what the account has.
    async fn rows_and_frames(
        &self,
        snapshot: &Snapshot,
        days: &Days,
        contexts: &Shared,
        missing: &HashSet<i64, MixState>,
        reading: &Reservation,
    ) -> Result<(StackRows, Frames), QueryError> {
        let stored = |table| -> u64 {
            let files = snapshot.files(table).iter();
            files
                .filter(|file| days.has(&file.partition))
                .map(|file| file.rows)
                .sum()
        };
        // Where most stacks are asked for, most frames are: these need not wait for those.
        let all_bytes = stored(Table::Frames) as usize * FRAME_BYTES;
        let most = missing.len() as u64 > stored(Table::Stacks) / 2 && missing.len() > MAX_LISTED_IDS;
        if most && reading.resize(all_bytes).is_ok() {
            let mut reading_frames = JoinSet::new();
            let (snapshot_of_frames, days_of_frames, contexts) = (snapshot.clone(), days.clone(), contexts.clone());
            reading_frames.spawn(async move {
                let is_new = |id: i64| !read(&contexts).has_frame(id);
                frames(&snapshot_of_frames, &days_of_frames, lit(true), is_new).await
            });
            let rows = self.stack_rows(snapshot, days, missing, (reading, all_bytes)).await?;
            let frames = match reading_frames.join_next().await {
                Some(frames) => frames.map_err(|error| QueryError::internal("read frames", error))??,
                None => Frames::new(snapshot),
            };
            return Ok((rows, frames));
        }
        let rows = self.stack_rows(snapshot, days, missing, (reading, 0)).await?;
        let unknown: HashSet<i64, MixState> = {
            let known = read(contexts);
            let mut distinct = distinct(&rows.frames);
            distinct.retain(|id| !known.has_frame(*id));
            distinct
        };
        reading.resize(rows.bytes() + unknown.len() * FRAME_BYTES)?;
        let frames = frames_of(snapshot, days, &unknown).await?;
        Ok((rows, frames))
    }

    /// The account has what is read, and so many bytes beside.
    async fn stack_rows(
        &self,
        snapshot: &Snapshot,
        days: &Days,
        wanted: &HashSet<i64, MixState>,
        (reading, beside_bytes): (&Reservation, usize),
    ) -> Result<StackRows, QueryError> {
        let (mut rows, mut reserved) = (StackRows::default(), Ok(()));
        let filter = days.filter().and(id_filter("stack_id", wanted));
        let columns = ["stack_id", "frames", "truncated"];
        collect_rows(snapshot, "stacks", filter, &columns, |batch| {
            if reserved.is_ok() && rows.frames.len() * size_of::<i64>() <= self.limit_bytes {
                rows.read(batch, wanted);
                reserved = reading.resize(beside_bytes + rows.bytes());
            }
        })
        .await?;
        reserved?;
        if rows.frames.len() * size_of::<i64>() > self.limit_bytes {
            return Err(too_many(self.limit_bytes));
        }
        Ok(rows)
    }

    /// The stacks of these ids, in that order, with all that is known of their frames; unknown ids as in
    /// [`StackCache::leaves`]. They take what they need of the memory of queries, at first for what they are read
    /// into too.
    pub(crate) async fn stacks(&self, snapshot: &Snapshot, days: &Days, ids: &[i64]) -> Result<Stacks, QueryError> {
        let held = Reservation::new(snapshot, "whole stacks with files and lines");
        let stacks_bytes = ids.len() * WHOLE_STACK_BYTES;
        held.resize(stacks_bytes)?;
        let wanted = ids.iter().copied().collect();
        let rows = self.stack_rows(snapshot, days, &wanted, (&held, stacks_bytes)).await?;
        let frames = distinct(&rows.frames);
        let each = FRAME_BYTES + SHARED_FRAME_BYTES;
        let bytes = stacks_bytes + rows.bytes() + rows.frames.len() * size_of::<u32>() + frames.len() * each;
        held.resize(bytes)?;
        let frames = frames_of(snapshot, days, &frames).await?;
        let (list, names_bytes) = (frames.list, frames.names_bytes);
        drop(frames.names);
        held.resize(bytes + names_bytes)?;
        let mut stacks = Stacks {
            _held: Some(Arc::new(held)),
            ..Stacks::default()
        };
        let mut place_of: HashMap<i64, u32, MixState> = HashMap::default();
        for (id, frame) in list {
            place_of.insert(id, stacks.frames.len() as u32);
            stacks.frames.push(Arc::new(frame));
        }
        let unknown = stacks.frames.len() as u32;
        stacks
            .frames
            .push(Arc::new(Frame::new(Kind::Unknown, "", "", "", None)));
        let row_of: HashMap<i64, (&[i64], bool), MixState> = rows
            .iter()
            .map(|(id, frames, truncated)| (id, (frames, truncated)))
            .collect();
        let roles: Vec<Role> = stacks.frames.iter().map(|frame| Role::of(&frame.name)).collect();
        for id in ids {
            stacks.stacks.push(match row_of.get(id) {
                Some((frames, truncated)) => {
                    let places = frames.iter().map(|id| place_of.get(id).copied().unwrap_or(unknown));
                    let places: Vec<u32> = places.collect();
                    let told = match self.runtime_frames {
                        RuntimeFrames::Fold => folded(&places, |place| roles[place as usize]),
                        RuntimeFrames::Show => None,
                    };
                    Stack {
                        frames: told.unwrap_or(places).into(),
                        truncated: *truncated,
                    }
                }
                None => Stack {
                    frames: Box::new([unknown]),
                    truncated: false,
                },
            });
        }
        Ok(stacks)
    }
}

/// Ids without repeats. Neighbouring stacks have most of their frames in common: what was seen lately is known by a
/// look into an array.
fn distinct(ids: &[i64]) -> HashSet<i64, MixState> {
    let mut distinct = HashSet::default();
    let mut lately = vec![None; SEEN_LATELY];
    for id in ids {
        // Ids are hashes: their last bits are as good as any.
        let seen = &mut lately[*id as usize % SEEN_LATELY];
        if *seen != Some(*id) {
            *seen = Some(*id);
            distinct.insert(*id);
        }
    }
    distinct
}

/// Accounts for a tree as it is now.
fn hold(pool: &Arc<dyn MemoryPool>, contexts: &Shared) -> Result<(), QueryError> {
    let mut contexts = write(contexts);
    let bytes = contexts.bytes();
    let held = contexts
        .held
        .get_or_insert_with(|| Reservation::of_pool(pool.clone(), "the stacks that are kept"));
    held.resize(bytes)
}

fn too_many(limit_bytes: usize) -> QueryError {
    QueryError::too_large(
        format!("the stacks of the selection take more than {} MiB", limit_bytes >> 20),
        "ask for a shorter window or a narrower selector",
    )
}

/// Looks at the size now and then, since one query may bring a million stacks. Returns where those end that are not
/// kept, since a frame of theirs is nowhere.
fn add(
    contexts: &mut CallingContextTree,
    frames: &[(i64, Frame)],
    rows: &StackRows,
    limit_bytes: usize,
) -> Result<HashMap<i64, Leaf, MixState>, QueryError> {
    contexts.reserve(frames.len(), rows.ids.len());
    for (id, frame) in frames {
        contexts.add_frame(*id, frame);
    }
    let before = contexts.bytes();
    let names = contexts.unranked();
    let (added, ranks) = std::thread::scope(|scope| {
        // Names are put in order while stacks find their places.
        let ranking = names.map(|names| scope.spawn(move || names.ranked()));
        let (mut added, mut lacking) = (Ok(()), HashMap::default());
        for (row, (id, frames, truncated)) in rows.iter().enumerate() {
            lacking.extend(contexts.add_stack(id, frames, truncated).map(|leaf| (id, leaf)));
            if row % 1024 == 0 && contexts.bytes() > before.saturating_add(limit_bytes) {
                added = Err(too_many(limit_bytes));
                break;
            }
        }
        (added.map(|()| lacking), ranking.map(joined))
    });
    if let Some(ranks) = ranks {
        contexts.set_ranks(ranks);
    }
    // A stack may have brought a name of its own: that of what is unknown.
    contexts.rank();
    added
}

fn id_filter(column: &str, ids: &HashSet<i64, MixState>) -> Expr {
    if ids.len() > MAX_LISTED_IDS {
        return lit(true);
    }
    let mut sorted: Vec<i64> = ids.iter().copied().collect();
    sorted.sort_unstable();
    col(column).in_list(sorted.into_iter().map(lit).collect(), false)
}

/// The frames of these ids, as far as they are known.
async fn frames_of(snapshot: &Snapshot, days: &Days, wanted: &HashSet<i64, MixState>) -> Result<Frames, QueryError> {
    if wanted.is_empty() {
        return Ok(Frames::new(snapshot));
    }
    frames(snapshot, days, id_filter("frame_id", wanted), |id| wanted.contains(&id)).await
}

/// The frames of these days that satisfy both conditions.
async fn frames(
    snapshot: &Snapshot,
    days: &Days,
    filter: Expr,
    is_wanted: impl Fn(i64) -> bool,
) -> Result<Frames, QueryError> {
    let (mut frames, mut texts, mut reserved) = (Frames::new(snapshot), Texts::default(), Ok(()));
    let columns = [
        "frame_id",
        "kind",
        "module",
        "function",
        "offset",
        "inlined",
        "file",
        "line",
        "build_id",
        "start_line",
    ];
    collect_rows(snapshot, "frames", days.filter().and(filter), &columns, |batch| {
        if reserved.is_ok() {
            let before = frames.list.len();
            read_frames(batch, &is_wanted, &mut texts, &mut frames.list);
            reserved = frames.hold(before, texts.bytes);
        }
    })
    .await?;
    reserved.map(|()| frames)
}

/// Frames that were read, with their ids.
struct Frames {
    list: Vec<(i64, Frame)>,
    /// Of functions.
    functions_bytes: usize,
    /// What names are longer than usual by, all together.
    names_bytes: usize,
    /// Takes that.
    names: Reservation,
}

impl Frames {
    fn new(snapshot: &Snapshot) -> Frames {
        Frames {
            list: Vec::new(),
            functions_bytes: 0,
            names_bytes: 0,
            names: Reservation::new(snapshot, "names of stacks"),
        }
    }

    /// `before`: how many there were before the last ones.
    fn hold(&mut self, before: usize, texts_bytes: usize) -> Result<(), QueryError> {
        let lengths = self.list[before..].iter().map(|(_, frame)| frame.name.function.len());
        self.functions_bytes += lengths.sum::<usize>();
        let usual = self.list.len() * USUAL_NAME_BYTES;
        self.names_bytes = (self.functions_bytes + texts_bytes).saturating_sub(usual);
        self.names.resize(self.names_bytes)
    }
}

/// One allocation for texts that many frames have.
#[derive(Default)]
struct Texts {
    known: HashSet<Arc<str>, foldhash::fast::RandomState>,
    bytes: usize,
}

impl Texts {
    fn of(&mut self, text: &str) -> Arc<str> {
        if text.is_empty() {
            return Arc::default();
        }
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.bytes += text.len();
        self.known.insert(new.clone());
        new
    }
}

fn read_frames(batch: &RecordBatch, is_wanted: &impl Fn(i64) -> bool, texts: &mut Texts, to: &mut Vec<(i64, Frame)>) {
    let ids = batch.column(0).as_primitive::<Int64Type>();
    let text = |column: usize| batch.column(column).as_string::<i32>();
    let (kind, module, function) = (text(1), text(2), text(3));
    let offset = batch.column(4).as_primitive::<Int64Type>();
    let inlined = batch.column(5).as_boolean();
    let (file, build_id) = (text(6), text(8));
    let line = batch.column(7).as_primitive::<Int64Type>();
    let start_line = batch.column(9).as_primitive::<Int64Type>();
    for row in 0..batch.num_rows() {
        if !is_wanted(ids.value(row)) {
            continue;
        }
        let at = (!offset.is_null(row)).then(|| offset.value(row) as u64);
        let mut frame = Frame::new(
            Kind::of_frame(kind.value(row)),
            module.value(row),
            build_id.value(row),
            function.value(row),
            at,
        );
        frame.name.module = texts.of(&frame.name.module);
        frame.inlined = inlined.value(row);
        frame.file = texts.of(file.value(row));
        frame.line = u32::try_from(line.value(row)).unwrap_or(0);
        frame.build_id = texts.of(build_id.value(row));
        // Absent where the sender does not say it, or an older server wrote the row.
        frame.start_line = match start_line.is_null(row) {
            true => 0,
            false => u32::try_from(start_line.value(row)).unwrap_or(0),
        };
        to.push((ids.value(row), frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    #[test]
    fn ids_that_take_each_others_place_are_all_found() {
        let clash = SEEN_LATELY as i64;
        let ids = [0, clash, 0, -clash, 5, 5, 5 + clash, i64::MIN, i64::MAX, 0];
        let expected: HashSet<i64, MixState> = ids.iter().copied().collect();
        assert_eq!(distinct(&ids), expected);
        assert!(distinct(&[]).is_empty());
    }

    #[test]
    fn what_a_query_added_that_was_given_up_is_on_the_account_of_the_next() {
        let pool = |bytes| Arc::new(GreedyMemoryPool::new(bytes)) as Arc<dyn MemoryPool>;
        for (pool_bytes, is_kept) in [(1 << 20, true), (16, false)] {
            let (pool, dictionary) = (pool(pool_bytes), StackCache::new(1 << 20, RuntimeFrames::Fold));
            let given_up = dictionary.current(&pool);
            assert_eq!(pool.reserved(), 0, "nothing is kept yet");
            write(&given_up).add_frame(1, &Frame::new(Kind::Native, "lib", "f", "", None));
            assert!(write(&given_up).add_stack(7, &[1], false).is_none());
            let next = dictionary.current(&pool);
            assert_eq!(read(&next).leaf(7).is_some(), is_kept);
            assert_eq!(pool.reserved(), if is_kept { read(&next).bytes() } else { 0 });
        }
    }
}
