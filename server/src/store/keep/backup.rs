//! Backups of a store, several in one place: each has logs and notes of its own, and the data files are there once.

use crate::store::keep::copy::{begin, into_store, sum, tables};
use crate::store::keep::error::KeepError;
use crate::store::keep::mark::{self, Mark, State};
use crate::store::keep::pins::Pins;
use crate::store::keep::place::{BACKUPS, Place, open_to_read, open_to_write, release, waiting};
use crate::store::keep::tally::{Copied, Tally, Tell};
use crate::store::keep::transfer::{Way, prune, put};
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Beside a backup's logs, as soon as it is whole.
const WHOLE: &str = "backup.json";

/// What a person may want to know of a backup.
#[derive(Debug, Serialize, Deserialize)]
struct Whole {
    /// When it had been looked at, UTC.
    taken: String,
    from: String,
    files: u64,
    bytes: u64,
    samples: u64,
}

/// Where a backup is not what it says of itself, how.
pub(super) async fn differs(place: &Arc<Place>, pins: &Pins) -> Result<Option<String>, KeepError> {
    let (of, path) = (place.clone(), place.beside_logs(WHOLE));
    let (files, samples) = (pins.files().count() as u64, pins.samples());
    waiting(move || {
        let root = of.root.as_ref();
        let text = root.reader().whole(&path).map_err(KeepError::of_root(root))?;
        let whole: Whole = match serde_json::from_slice(&text) {
            Ok(whole) => whole,
            Err(error) => return Ok(Some(format!("{WHOLE} is not what was written: {error}"))),
        };
        let differs = (whole.files, whole.samples) != (files, samples);
        Ok(differs.then(|| {
            let (all, of_samples) = (whole.files, whole.samples);
            format!("its logs name {files} files and {samples} samples, {all} and {of_samples} were copied")
        }))
    })
    .await
}

/// Makes a backup of a store, which may be written meanwhile, beside those that are there, of which the newest `keep`
/// stay. What an earlier one has is not copied again; with `compare` it is compared as a whole.
pub async fn backup(from: &Path, to: &Path, keep: usize, compare: bool, tell: Tell) -> Result<Copied, KeepError> {
    let source = Arc::new(Place::store(open_to_read(from).await?));
    let store = Pins::of(&source).await?.id(&source)?;
    let (root, lock) = open_to_write(to).await?;
    let mark = Mark {
        state: State::Backups,
        store,
        from: source.name(),
    };
    let name = chrono::Utc::now().format("%Y%m%dT%H%M%S%.3fZ").to_string();
    let way = Way {
        from: source,
        to: Arc::new(Place::backup(root, &name)),
        compare,
        tally: Arc::new(Tally::new(tell)),
    };
    let made = one(&way, mark, keep).await;
    release(lock).await;
    made
}

async fn one(way: &Way, mark: Mark, keep: usize) -> Result<Copied, KeepError> {
    begin(&way.to, mark).await?;
    // What was cut off has no logs that anybody reads; its data files are taken for this one.
    let cut_off = names(&way.to.root, false).await?;
    discard(&way.to.root, cut_off).await?;
    let (pins, rounds) = tables(way).await?;
    way.notes().await?;
    let whole = Whole {
        taken: chrono::Utc::now().to_rfc3339(),
        from: way.from.name(),
        files: pins.files().count() as u64,
        bytes: pins.files().map(|(_, file)| file.size_bytes).sum(),
        samples: pins.samples(),
    };
    let to = way.to.clone();
    waiting(move || {
        let (root, path) = (to.root.as_ref(), to.beside_logs(WHOLE));
        let text = serde_json::to_vec(&whole).map_err(|error| RootError::new(&path, error));
        let written = text.and_then(|text| put(root, &path, text.into()));
        written.map_err(KeepError::of_root(root))
    })
    .await?;
    // From here on it is whole, whatever happens to the older ones.
    let mut kept = names(&way.to.root, true).await?;
    let stay = keep.max(1).min(kept.len());
    let older = kept.split_off(stay);
    discard(&way.to.root, older).await?;
    let mut files = HashSet::new();
    for name in kept {
        let place = Place::backup(way.to.root.clone(), &name);
        let of_one = Pins::of(&place).await?;
        files.extend(of_one.files().map(|(table, file)| place.file(table, &file.path)));
    }
    let removed_files = prune(&way.to, files).await?;
    Ok(Copied {
        removed_files,
        ..sum(way, &pins, rounds)
    })
}

/// Names of backups that are whole, or that are not, the newest first.
async fn names(root: &Arc<dyn Root>, whole: bool) -> Result<Vec<String>, KeepError> {
    let root = root.clone();
    waiting(move || {
        let listed = root.names(BACKUPS, &|_| true);
        let listed = listed.map_err(KeepError::of_root(root.as_ref()))?;
        let reader = root.reader();
        let mut names = Vec::new();
        for named in listed {
            let is_whole = match reader.length(&format!("{BACKUPS}/{}/{WHOLE}", named.name)) {
                Ok(_) => true,
                Err(RootError::NotFound(_)) => false,
                Err(error) => return Err(KeepError::of_root(root.as_ref())(error)),
            };
            if is_whole == whole {
                names.push(named.name);
            }
        }
        names.sort_by(|a, b| b.cmp(a));
        Ok(names)
    })
    .await
}

/// Removes backups; first what says that they are whole.
async fn discard(root: &Arc<dyn Root>, names: Vec<String>) -> Result<(), KeepError> {
    use object_store::ObjectStoreExt as _;
    let objects = root.objects();
    for name in names {
        let folder = format!("{BACKUPS}/{name}");
        let said = object_store::path::Path::from(format!("{folder}/{WHOLE}"));
        match objects.delete(&said).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(KeepError::of_root(root.as_ref())(RootError::new(said.as_ref(), error))),
        }
        let of = root.clone();
        waiting(move || of.discard(&folder).map_err(KeepError::of_root(of.as_ref()))).await?;
    }
    Ok(())
}

/// A backup in a root that holds such: the newest that is whole, or the one of this name.
pub(super) async fn find(root: &Arc<dyn Root>, name: Option<&str>) -> Result<Arc<Place>, KeepError> {
    let whole = names(root, true).await?;
    let refused = |problem: String| KeepError::refused(root.reader().name_of(""), problem);
    let found = match name {
        None => whole.first().cloned(),
        Some(name) => whole.iter().find(|whole| *whole == name).cloned(),
    };
    match found {
        Some(found) => Ok(Arc::new(Place::backup(root.clone(), &found))),
        None if whole.is_empty() => Err(refused("it has no whole backup".to_owned())),
        None => Err(refused(format!(
            "it has no such backup: {} are there",
            whole.join(", ")
        ))),
    }
}

/// Makes a store of a backup, the newest or the one of this name, in a place where nothing is, or where this was begun
/// before. With `compare` what is there already is compared as a whole.
pub async fn restore(
    from: &Path,
    to: &Path,
    name: Option<&str>,
    compare: bool,
    tell: Tell,
) -> Result<Copied, KeepError> {
    let root = open_to_read(from).await?;
    let of = root.clone();
    let mark = waiting(move || mark::read(of.as_ref()).map_err(KeepError::of_format(of.as_ref()))).await?;
    if mark.is_none_or(|mark| mark.state != State::Backups) {
        let place = root.reader().name_of("");
        return Err(KeepError::refused(
            place,
            "it holds no backups; a store is copied by stakeout-server copy",
        ));
    }
    let source = find(&root, name).await?;
    into_store(source, to, compare, tell).await
}
