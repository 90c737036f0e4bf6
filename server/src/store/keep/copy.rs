//! A store as a store somewhere else.

use crate::store::keep::error::KeepError;
use crate::store::keep::mark::{self, Mark, State};
use crate::store::keep::pins::Pins;
use crate::store::keep::place::{Place, open_to_read, open_to_write, release, waiting};
use crate::store::keep::tally::{Copied, Tally, Tell};
use crate::store::keep::transfer::{Way, prune};
use crate::store::table::format_version;
use crate::store::table::integrity::MISSING;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Looks at the source, at most: each copies what has come since the one before, and is so much shorter.
const MOST_ROUNDS: u64 = 10;

/// Copies a store, which may be written meanwhile, to a place where nothing is, or where it was copied to before and no
/// server has been since. What is there already is not copied again. With `compare` it is compared as a whole.
pub async fn copy(from: &Path, to: &Path, compare: bool, tell: Tell) -> Result<Copied, KeepError> {
    let source = Arc::new(Place::store(open_to_read(from).await?));
    let of = source.clone();
    let mark = waiting(move || mark::read(of.root.as_ref()).map_err(KeepError::of_format(of.root.as_ref()))).await?;
    match mark.map(|mark| mark.state) {
        Some(State::Backups) => {
            return Err(KeepError::refused(source.name(), "it holds backups: restore one"));
        }
        Some(State::Unfinished) => {
            return Err(KeepError::refused(source.name(), "it is a copy that was not finished"));
        }
        None | Some(State::Whole | State::Served) => {}
    }
    into_store(source, to, compare, tell).await
}

/// Copies a store or a backup to a place of its own.
pub(super) async fn into_store(source: Arc<Place>, to: &Path, compare: bool, tell: Tell) -> Result<Copied, KeepError> {
    // Before anything is made: where no store is, nothing is to be copied.
    let store = Pins::of(&source).await?.id(&source)?;
    let (root, lock) = open_to_write(to).await?;
    let way = Way {
        from: source,
        to: Arc::new(Place::store(root)),
        compare,
        tally: Arc::new(Tally::new(tell)),
    };
    let copied = whole(&way, store).await;
    release(lock).await;
    copied
}

async fn whole(way: &Way, store: String) -> Result<Copied, KeepError> {
    let mark = Mark {
        state: State::Unfinished,
        store,
        from: way.from.name(),
    };
    begin(&way.to, mark.clone()).await?;
    let (pins, rounds) = tables(way).await?;
    way.notes().await?;
    let kept = pins.files().map(|(table, file)| way.to.file(table, &file.path));
    let removed_files = prune(&way.to, kept.collect()).await?;
    let (of, state) = (way.to.clone(), State::Whole);
    waiting(move || {
        let root = of.root.as_ref();
        mark::write(root, &Mark { state, ..mark }).map_err(KeepError::of_root(root))
    })
    .await?;
    Ok(Copied {
        removed_files,
        ..sum(way, &pins, rounds)
    })
}

/// Takes a place for what is copied there, and makes it say its format.
pub(super) async fn begin(to: &Arc<Place>, mark: Mark) -> Result<(), KeepError> {
    let of = to.clone();
    waiting(move || {
        let root = of.root.as_ref();
        mark::claim(root, &mark).map_err(KeepError::of_format(root))?;
        format_version::admit(root).map_err(KeepError::of_format(root))
    })
    .await
}

/// Copies data files, and then the logs that name them. Files that went meanwhile make it look anew: what has taken
/// their place is copied then. Gives what was copied, and how often was looked.
pub(super) async fn tables(way: &Way) -> Result<(Pins, u64), KeepError> {
    let mut pins = Pins::of(&way.from).await?;
    // By path below the source's root.
    let mut done = HashSet::new();
    for round in 1..=MOST_ROUNDS {
        let gone = way.files(&pins, &mut done).await?;
        if gone.is_empty() && way.logs(&pins).await? {
            return Ok((pins, round));
        }
        let newer = Pins::of(&way.from).await?;
        let named = paths(way, &newer);
        for path in gone {
            if named.contains(&path) {
                // Its log still has it: it is no file that was replaced.
                way.tally.fault(&path, MISSING);
                done.insert(path);
            }
        }
        way.tally.tell("files were replaced meanwhile: looking anew");
        pins = newer;
    }
    Err(KeepError::refused(
        way.from.name(),
        format!("its files were replaced faster than they were copied, {MOST_ROUNDS} times; begin again"),
    ))
}

fn paths(way: &Way, pins: &Pins) -> HashSet<String> {
    let files = pins.files();
    files.map(|(table, file)| way.from.file(table, &file.path)).collect()
}

/// What it came to.
pub(super) fn sum(way: &Way, pins: &Pins, rounds: u64) -> Copied {
    let (named, reader) = (paths(way, pins), way.from.root.reader());
    Copied {
        to: way.to.name(),
        samples: pins.samples(),
        rounds,
        ..way
            .tally
            .copied(|path| named.contains(path), |path| reader.name_of(path))
    }
}
