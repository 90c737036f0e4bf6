//! Stack and frame ids to stacks and frames, kept from one query to the next.
//!
//! Entries never change (ids are hashes of content), so that what is kept is never stale. The memory is bounded by two
//! generations: what is used moves to the young one, and when that is full, the old one goes.

use super::error::QueryError;
use super::select::{Days, collect_rows};
use super::tree::{Frame, Kind, MixState, Stack, Stacks};
use crate::store::Snapshot;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::prelude::{Expr, col, lit};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Up to so many ids are asked for by name, so that files can be left out; of more, whole days are read.
const MAX_LISTED_IDS: usize = 500;

/// Frames of a stack by id, leaf first.
#[derive(Debug)]
struct StackEntry {
    frames: Box<[i64]>,
    truncated: bool,
}

type Entries<T> = HashMap<i64, Arc<T>, MixState>;

#[derive(Debug)]
struct Generations<T> {
    young: Entries<T>,
    old: Entries<T>,
    young_bytes: usize,
    /// Of one generation.
    limit_bytes: usize,
}

impl<T> Generations<T> {
    fn new(limit_bytes: usize) -> Self {
        Generations {
            young: HashMap::default(),
            old: HashMap::default(),
            young_bytes: 0,
            limit_bytes,
        }
    }

    fn get(&mut self, id: i64, size: impl Fn(&T) -> usize) -> Option<Arc<T>> {
        if let Some(entry) = self.young.get(&id) {
            return Some(entry.clone());
        }
        let entry = self.old.remove(&id)?;
        self.insert(id, entry.clone(), size);
        Some(entry)
    }

    fn insert(&mut self, id: i64, entry: Arc<T>, size: impl Fn(&T) -> usize) {
        let bytes = size(&entry) + 48;
        if self.young_bytes + bytes > self.limit_bytes {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(id, entry).is_none() {
            self.young_bytes += bytes;
        }
    }
}

fn stack_size(stack: &StackEntry) -> usize {
    size_of::<StackEntry>() + stack.frames.len() * 8
}

fn frame_size(frame: &Frame) -> usize {
    // Modules and files are shared by many frames.
    size_of::<Frame>() + frame.name.function.len() + 32
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dictionary {
    stacks: Mutex<Generations<StackEntry>>,
    frames: Mutex<Generations<Frame>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Dictionary {
    /// `limit_bytes` bounds both generations of stacks and of frames together.
    pub(super) fn new(limit_bytes: usize) -> Dictionary {
        Dictionary {
            stacks: Mutex::new(Generations::new(limit_bytes / 4)),
            frames: Mutex::new(Generations::new(limit_bytes / 4)),
        }
    }

    /// The stacks of these ids, in that order. An id that the tables don't know is a stack of one unknown frame, so that no
    /// sample is hidden.
    pub(super) async fn resolve(&self, snapshot: &Snapshot, days: &Days, ids: &[i64]) -> Result<Stacks, QueryError> {
        let entries = self.stack_entries(snapshot, days, ids).await?;
        let mut index: HashMap<i64, u32, MixState> = HashMap::default();
        let mut frame_ids = Vec::new();
        let mut stacks = Vec::with_capacity(ids.len());
        for entry in &entries {
            let Some(entry) = entry else {
                // Filled in below, when it is known how many frames there are.
                stacks.push(Stack::default());
                continue;
            };
            let frames = entry
                .frames
                .iter()
                .map(|id| {
                    *index.entry(*id).or_insert_with(|| {
                        frame_ids.push(*id);
                        frame_ids.len() as u32 - 1
                    })
                })
                .collect();
            stacks.push(Stack {
                frames,
                truncated: entry.truncated,
            });
        }
        let found = self.frame_entries(snapshot, days, &frame_ids).await?;
        let unknown = Arc::new(Frame::new(Kind::Unknown, "", "", None));
        let mut frames: Vec<Arc<Frame>> = found
            .into_iter()
            .map(|f| f.unwrap_or_else(|| unknown.clone()))
            .collect();
        let missing = frames.len() as u32;
        frames.push(unknown);
        for (stack, entry) in stacks.iter_mut().zip(&entries) {
            if entry.is_none() {
                stack.frames = Box::new([missing]);
            }
        }
        Ok(Stacks { frames, stacks })
    }

    async fn stack_entries(
        &self,
        snapshot: &Snapshot,
        days: &Days,
        ids: &[i64],
    ) -> Result<Vec<Option<Arc<StackEntry>>>, QueryError> {
        let mut entries: Vec<_> = {
            let mut kept = lock(&self.stacks);
            ids.iter().map(|id| kept.get(*id, stack_size)).collect()
        };
        let missing = missing(ids, &entries);
        if missing.is_empty() {
            return Ok(entries);
        }
        let mut fetched: Entries<StackEntry> = HashMap::default();
        let columns = ["stack_id", "frames", "truncated"];
        collect_rows(
            snapshot,
            "stacks",
            days.filter().and(id_filter("stack_id", &missing)),
            &columns,
            |batch| {
                let ids = batch.column(0).as_primitive::<Int64Type>();
                let lists = batch.column(1).as_list::<i32>();
                let truncated = batch.column(2).as_boolean();
                for row in 0..batch.num_rows() {
                    if missing.contains(&ids.value(row)) {
                        let frames = lists.value(row).as_primitive::<Int64Type>().values().as_ref().into();
                        let entry = StackEntry {
                            frames,
                            truncated: truncated.value(row),
                        };
                        fetched.insert(ids.value(row), Arc::new(entry));
                    }
                }
            },
        )
        .await?;
        fill(&mut entries, ids, &fetched);
        let mut kept = lock(&self.stacks);
        for (id, entry) in fetched {
            kept.insert(id, entry, stack_size);
        }
        Ok(entries)
    }

    async fn frame_entries(
        &self,
        snapshot: &Snapshot,
        days: &Days,
        ids: &[i64],
    ) -> Result<Vec<Option<Arc<Frame>>>, QueryError> {
        let mut entries: Vec<_> = {
            let mut kept = lock(&self.frames);
            ids.iter().map(|id| kept.get(*id, frame_size)).collect()
        };
        let missing = missing(ids, &entries);
        if missing.is_empty() {
            return Ok(entries);
        }
        let mut fetched: Entries<Frame> = HashMap::default();
        let mut shared = Shared::default();
        let columns = [
            "frame_id", "kind", "module", "function", "offset", "inlined", "file", "line", "build_id",
        ];
        collect_rows(
            snapshot,
            "frames",
            days.filter().and(id_filter("frame_id", &missing)),
            &columns,
            |batch| {
                read_frames(batch, &missing, &mut shared, &mut fetched);
            },
        )
        .await?;
        fill(&mut entries, ids, &fetched);
        let mut kept = lock(&self.frames);
        for (id, entry) in fetched {
            kept.insert(id, entry, frame_size);
        }
        Ok(entries)
    }
}

fn missing<T>(ids: &[i64], entries: &[Option<Arc<T>>]) -> HashSet<i64, MixState> {
    ids.iter()
        .zip(entries)
        .filter(|(_, entry)| entry.is_none())
        .map(|(id, _)| *id)
        .collect()
}

fn fill<T>(entries: &mut [Option<Arc<T>>], ids: &[i64], fetched: &Entries<T>) {
    for (entry, id) in entries.iter_mut().zip(ids).filter(|(entry, _)| entry.is_none()) {
        *entry = fetched.get(id).cloned();
    }
}

fn id_filter(column: &str, ids: &HashSet<i64, MixState>) -> Expr {
    if ids.len() > MAX_LISTED_IDS {
        return lit(true);
    }
    let mut sorted: Vec<i64> = ids.iter().copied().collect();
    sorted.sort_unstable();
    col(column).in_list(sorted.into_iter().map(lit).collect(), false)
}

/// One allocation for texts that many frames have.
#[derive(Default)]
struct Shared(HashSet<Arc<str>>);

impl Shared {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.0.insert(new.clone());
        new
    }
}

fn read_frames(batch: &RecordBatch, wanted: &HashSet<i64, MixState>, shared: &mut Shared, to: &mut Entries<Frame>) {
    let ids = batch.column(0).as_primitive::<Int64Type>();
    let text = |column: usize| batch.column(column).as_string::<i32>();
    let (kind, module, function) = (text(1), text(2), text(3));
    let offset = batch.column(4).as_primitive::<Int64Type>();
    let inlined = batch.column(5).as_boolean();
    let (file, build_id) = (text(6), text(8));
    let line = batch.column(7).as_primitive::<Int64Type>();
    for row in 0..batch.num_rows() {
        if !wanted.contains(&ids.value(row)) {
            continue;
        }
        let at = (!offset.is_null(row)).then(|| offset.value(row) as u64);
        let mut frame = Frame::new(
            Kind::of_frame(kind.value(row)),
            module.value(row),
            function.value(row),
            at,
        );
        frame.name.module = shared.text(&frame.name.module);
        frame.inlined = inlined.value(row);
        frame.file = shared.text(file.value(row));
        frame.line = u32::try_from(line.value(row)).unwrap_or(0);
        frame.build_id = shared.text(build_id.value(row));
        to.insert(ids.value(row), Arc::new(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_memory_is_bounded() {
        let mut kept: Generations<StackEntry> = Generations::new(10_000);
        let entry = || {
            Arc::new(StackEntry {
                frames: vec![0; 10].into(),
                truncated: false,
            })
        };
        kept.insert(-1, entry(), stack_size);
        for id in 0..1_000 {
            kept.insert(id, entry(), stack_size);
            assert!(kept.get(-1, stack_size).is_some(), "an entry that is always used");
            assert!(kept.young_bytes <= 10_000);
            assert!(kept.young.len() + kept.old.len() < 200);
        }
        assert!(kept.get(0, stack_size).is_none(), "an entry that was not used again");
    }
}
