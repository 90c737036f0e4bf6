//! Two prefixes change places, though a bucket moves nothing in one step.
//!
//! A marker says how far that is. Each step can be done again, and the next start does the rest, or undoes what has
//! changed nothing yet: before it reads anything. Who reads the second prefix meanwhile finds the old objects, or too
//! few of them to be a log, and never old ones beside new ones.

use futures::stream::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The marker.
const MARKER: &str = "exchange.json";

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// Copy the old objects aside.
    Keep,
    /// Remove the old objects, and copy the new ones into their place.
    Put,
    /// Copy the old ones to where the new ones were.
    Give,
    /// Remove the copies.
    End,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    new: String,
    old: String,
    step: Step,
}

/// Does it.
pub(super) async fn exchange(objects: &Arc<dyn ObjectStore>, new: &str, old: &str) -> Result<()> {
    resume(objects).await?;
    let marker = Marker {
        new: new.to_owned(),
        old: old.to_owned(),
        step: Step::Keep,
    };
    write(objects, &marker).await?;
    finish(objects, marker).await
}

/// Ends what an earlier process began.
pub(super) async fn resume(objects: &Arc<dyn ObjectStore>) -> Result<()> {
    let Some(marker) = read(objects).await? else {
        return Ok(());
    };
    let Marker { new, old, step } = &marker;
    tracing::warn!(new, old, ?step, "an exchange of two folders was cut off: ending it");
    if marker.step == Step::Keep {
        // Nothing has changed places: whoever began it begins anew.
        remove_all(objects, &kept(&marker)).await?;
        return objects.delete(&Path::from(MARKER)).await;
    }
    finish(objects, marker).await
}

/// Whether an earlier process began one and did not end it.
pub(super) async fn is_begun(objects: &Arc<dyn ObjectStore>) -> Result<bool> {
    Ok(read(objects).await?.is_some())
}

async fn finish(objects: &Arc<dyn ObjectStore>, mut marker: Marker) -> Result<()> {
    let (new, old, kept) = (
        Path::from(marker.new.as_str()),
        Path::from(marker.old.as_str()),
        kept(&marker),
    );
    loop {
        marker.step = match marker.step {
            Step::Keep => {
                copy_all(objects, &old, &kept).await?;
                Step::Put
            }
            Step::Put => {
                remove_all(objects, &old).await?;
                copy_all(objects, &new, &old).await?;
                Step::Give
            }
            Step::Give => {
                remove_all(objects, &new).await?;
                copy_all(objects, &kept, &new).await?;
                Step::End
            }
            Step::End => {
                remove_all(objects, &kept).await?;
                return objects.delete(&Path::from(MARKER)).await;
            }
        };
        write(objects, &marker).await?;
    }
}

/// Where the old objects are meanwhile.
fn kept(marker: &Marker) -> Path {
    Path::from(format!("{}.old", marker.new))
}

async fn write(objects: &Arc<dyn ObjectStore>, marker: &Marker) -> Result<()> {
    let text = serde_json::to_vec(marker).map_err(unreadable)?;
    objects.put(&Path::from(MARKER), text.into()).await.map(drop)
}

async fn read(objects: &Arc<dyn ObjectStore>) -> Result<Option<Marker>> {
    let found = match objects.get(&Path::from(MARKER)).await {
        Ok(found) => found.bytes().await?,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    serde_json::from_slice(&found).map(Some).map_err(unreadable)
}

fn unreadable(cause: serde_json::Error) -> Error {
    Error::Generic {
        store: "bucket",
        source: format!("{MARKER} is not what a server writes: {cause}").into(),
    }
}

async fn list(objects: &Arc<dyn ObjectStore>, below: &Path) -> Result<Vec<Path>> {
    let found = objects.list(Some(below)).map_ok(|meta| meta.location);
    let mut found: Vec<Path> = found.try_collect().await?;
    found.sort();
    Ok(found)
}

/// Copies what is below a prefix, last names first: a log without its first entry, or the checkpoint that stands for
/// it, is read by nobody.
async fn copy_all(objects: &Arc<dyn ObjectStore>, from: &Path, to: &Path) -> Result<()> {
    for source in list(objects, from).await?.into_iter().rev() {
        let below = source.prefix_match(from).into_iter().flatten();
        let target: Path = to.parts().chain(below).collect();
        objects.copy(&source, &target).await?;
    }
    Ok(())
}

async fn remove_all(objects: &Arc<dyn ObjectStore>, below: &Path) -> Result<()> {
    let found = list(objects, below).await?.into_iter().map(Ok);
    let found = futures::stream::iter(found).boxed();
    objects.delete_stream(found).try_for_each(|_| async { Ok(()) }).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    async fn texts(objects: &Arc<dyn ObjectStore>, below: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for path in list(objects, &Path::from(below)).await.unwrap() {
            let bytes = objects.get(&path).await.unwrap().bytes().await.unwrap();
            texts.push(format!("{path} {}", String::from_utf8_lossy(&bytes)));
        }
        texts
    }

    async fn filled() -> Arc<dyn ObjectStore> {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        for (path, text) in [
            ("log/0", "old"),
            ("log/1", "old"),
            ("log/7", "old"),
            ("new/log/0", "new"),
        ] {
            objects.put(&Path::from(path), text.into()).await.unwrap();
        }
        objects
    }

    const DONE: [&str; 4] = ["log/0 new", "new/log/0 old", "new/log/1 old", "new/log/7 old"];

    #[tokio::test]
    async fn they_change_places_and_nothing_else_is_left() {
        let objects = filled().await;
        exchange(&objects, "new/log", "log").await.unwrap();
        assert_eq!(texts(&objects, "").await, DONE);
    }

    #[tokio::test]
    async fn a_start_ends_what_was_cut_off_at_any_step_and_also_in_the_middle_of_one() {
        for step in [Step::Put, Step::Give, Step::End] {
            let objects = filled().await;
            let marker = |step| Marker {
                new: "new/log".to_owned(),
                old: "log".to_owned(),
                step,
            };
            let (new, old) = (Path::from("new/log"), Path::from("log"));
            let kept = kept(&marker(step));
            copy_all(&objects, &old, &kept).await.unwrap();
            if step == Step::Put {
                objects.delete(&Path::from("log/1")).await.unwrap();
            } else {
                remove_all(&objects, &old).await.unwrap();
                copy_all(&objects, &new, &old).await.unwrap();
                remove_all(&objects, &new).await.unwrap();
                copy_all(&objects, &kept, &new).await.unwrap();
            }
            if step == Step::Give {
                objects.delete(&Path::from("new/log/1")).await.unwrap();
            } else if step == Step::End {
                objects.delete(&Path::from("new/log.old/1")).await.unwrap();
            }
            write(&objects, &marker(step)).await.unwrap();
            resume(&objects).await.unwrap();
            assert_eq!(texts(&objects, "").await, DONE, "{step:?}");
        }
    }

    #[tokio::test]
    async fn what_had_changed_nothing_yet_is_undone() {
        let objects = filled().await;
        let before = texts(&objects, "").await;
        objects.put(&Path::from("new/log.old/0"), "old".into()).await.unwrap();
        let marker = Marker {
            new: "new/log".to_owned(),
            old: "log".to_owned(),
            step: Step::Keep,
        };
        write(&objects, &marker).await.unwrap();
        resume(&objects).await.unwrap();
        assert_eq!(texts(&objects, "").await, before);
        resume(&objects).await.unwrap();
    }
}
