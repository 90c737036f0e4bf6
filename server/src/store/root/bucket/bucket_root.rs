//! The data root in a bucket.

use crate::store::root::bucket::bucket_reader::BucketReader;
use crate::store::root::bucket::guarded::Guarded;
use crate::store::root::bucket::io_threads::IoThreads;
use crate::store::root::bucket::lease::{Holding, Lease};
use crate::store::root::bucket::place::{self, Place, SCHEMES};
use crate::store::root::contract::{Lock, LogRoot, Named, Root, Stamp, Version};
use crate::store::root::error::RootError;
use crate::store::root::reader::RangeReader;
use bytes::Bytes;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use std::sync::Arc;
use url::Url;

/// The object that its holder renews.
const LEASE: &str = "lease";

/// Where a start and a probe try whether they can write.
const PROBE: &str = "probe";

/// See the module.
#[derive(Debug)]
pub(crate) struct BucketRoot {
    place: Place,
    threads: Arc<IoThreads>,
    holding: Arc<Holding>,
    /// Relative to the root, guarded.
    objects: Arc<dyn ObjectStore>,
    reader: Arc<BucketReader>,
}

impl BucketRoot {
    /// Whether a URL's scheme is one of a bucket.
    pub(crate) fn knows(scheme: &str) -> bool {
        SCHEMES.contains(&scheme)
    }

    /// Sends no request. An error's object is the scheme and the bucket.
    pub(crate) fn open(url: &Url) -> Result<Self, RootError> {
        // The URL may hold a password.
        let name = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
        let place = place::of(url).map_err(|cause| RootError::new(&name, cause))?;
        let threads = Arc::new(IoThreads::start().map_err(|cause| RootError::new(&name, cause))?);
        let holding = Arc::new(Holding::default());
        let guarded: Arc<dyn ObjectStore> = Arc::new(Guarded {
            inner: place.store.clone(),
            holding: holding.clone(),
        });
        let objects: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(guarded, place.prefix.clone()));
        let reader = Arc::new(BucketReader {
            objects: objects.clone(),
            threads: threads.clone(),
            name: place.url.to_string(),
        });
        Ok(Self {
            place,
            threads,
            holding,
            objects,
            reader,
        })
    }

    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<(), RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        let put = async move { objects.put_opts(&at, bytes.into(), PutOptions::from(mode)).await };
        self.threads.wait(path, put).map(drop)
    }

    /// Moves one object. Not in one step: what is cut off leaves both.
    fn rename(&self, from: &str, to: &str) -> Result<(), RootError> {
        let (objects, at, to) = (self.objects.clone(), Path::from(from), Path::from(to));
        self.threads.wait(from, async move {
            objects.copy(&at, &to).await?;
            objects.delete(&at).await
        })
    }

    /// Moves all that is below a prefix.
    fn rename_all(&self, from: &str, to: &str) -> Result<(), RootError> {
        let (objects, at, to) = (self.objects.clone(), Path::from(from), Path::from(to));
        self.threads.wait(from, async move {
            let found: Vec<_> = objects.list(Some(&at)).try_collect().await?;
            for meta in &found {
                let below = meta.location.prefix_match(&at).into_iter().flatten();
                let target: Path = to.parts().chain(below).collect();
                objects.copy(&meta.location, &target).await?;
            }
            for meta in found {
                objects.delete(&meta.location).await?;
            }
            Ok(())
        })
    }

    /// Of two puts where nothing is, the second must be refused: without that two servers could write the same commit.
    fn needs_conditional_puts(&self, objects: Arc<dyn ObjectStore>) -> Result<(), RootError> {
        let path = format!("{PROBE}/{}", uuid::Uuid::new_v4());
        let at = Path::from(path.as_str());
        let is_refused = self.threads.wait(&path, async move {
            let create = || objects.put_opts(&at, "probe".into(), PutOptions::from(PutMode::Create));
            match create().await {
                // The answer of a try that succeeded was lost.
                Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
                Err(error) => return Err(error),
            }
            let second = create().await;
            objects.delete(&at).await?;
            match second {
                Ok(_) => Ok(false),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(true),
                Err(error) => Err(error),
            }
        })?;
        let words = "this object store does not honour conditional puts (If-None-Match): it cannot hold the data";
        is_refused.then_some(()).ok_or_else(|| RootError::new("", words))
    }
}

impl Root for BucketRoot {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    fn table(&self, path: &str) -> Result<LogRoot, RootError> {
        let mut url = self.place.url.clone();
        let folder = format!("{}/{path}/", url.path().trim_end_matches('/'));
        url.set_path(&folder);
        Ok(LogRoot {
            table: Arc::new(PrefixStore::new(self.objects.clone(), path)),
            whole: Arc::new(Guarded {
                inner: self.place.store.clone(),
                holding: self.holding.clone(),
            }),
            url,
        })
    }

    fn lock(&self) -> Result<Lock, RootError> {
        let store: Arc<dyn ObjectStore> =
            Arc::new(PrefixStore::new(self.place.store.clone(), self.place.prefix.clone()));
        self.needs_conditional_puts(store.clone())?;
        let taking = Lease::take(store, Path::from(LEASE), self.holding.clone(), self.threads.clone());
        match self.threads.wait(LEASE, taking)? {
            Some(lease) => Ok(Box::new(lease)),
            None => {
                let held = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "another server renews the lease");
                Err(RootError::new(LEASE, held))
            }
        }
    }

    fn free_bytes(&self) -> Result<Option<u64>, RootError> {
        Ok(None)
    }

    fn probe(&self, _prefixes: &[&str]) -> Result<(), RootError> {
        let path = format!("{PROBE}/{}", uuid::Uuid::new_v4());
        self.put(&path, "probe".into(), PutMode::Overwrite)?;
        self.reader.whole(&path)?;
        let (objects, at) = (self.objects.clone(), Path::from(path.as_str()));
        self.threads.wait(&path, async move { objects.delete(&at).await })
    }

    fn stamp(&self, path: &str) -> Result<Stamp, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        let meta = self.threads.wait(path, async move { objects.head(&at).await })?;
        Ok(Stamp {
            bytes: meta.size,
            modified: Some(meta.last_modified.into()),
            version: Version::Etag(meta.e_tag),
        })
    }

    fn create(&self, path: &str, bytes: Bytes) -> Result<(), RootError> {
        match self.put(path, bytes.clone(), PutMode::Create) {
            Err(RootError::Exists(failure)) => {
                // A put that succeeded is tried again when its answer is lost, and refused then.
                let is_ours = self.reader.whole(path).is_ok_and(|found| found == bytes);
                if is_ours { Ok(()) } else { Err(RootError::Exists(failure)) }
            }
            put => put,
        }
    }

    fn replace(&self, path: &str, bytes: Bytes) -> Result<(), RootError> {
        self.put(path, bytes, PutMode::Overwrite)
    }

    fn names(&self, prefix: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Named>, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(prefix));
        let listed = async move { objects.list_with_delimiter(Some(&at)).await };
        let listed = self.threads.wait(prefix, listed)?;
        let folders = listed.common_prefixes.iter().map(|path| (path, 0));
        let files = listed.objects.iter().map(|meta| (&meta.location, meta.size));
        let named = folders.chain(files).filter_map(|(path, bytes)| {
            let name = path.filename().filter(|name| wanted(name))?.to_owned();
            Some(Named { name, bytes })
        });
        Ok(named.collect())
    }

    fn prepare(&self, _prefix: &str) -> Result<(), RootError> {
        Ok(())
    }

    fn settle(&self, _prefix: &str) -> Result<(), RootError> {
        Ok(())
    }

    fn set_aside(&self, path: &str, to: &str) -> Result<(), RootError> {
        self.rename(path, to)
    }

    /// Not in one step: a start that finds no log makes it anew, from the files.
    fn exchange(&self, new: &str, old: &str) -> Result<(), RootError> {
        let kept = format!("{new}.old");
        self.rename_all(old, &kept)?;
        self.rename_all(new, old)?;
        self.rename_all(&kept, new)
    }

    fn prune(&self, _prefix: &str) -> Result<(), RootError> {
        Ok(())
    }

    fn discard(&self, prefix: &str) -> Result<(), RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(prefix));
        self.threads.wait(prefix, async move {
            let found = objects.list(Some(&at)).map_ok(|meta| meta.location).boxed();
            objects.delete_stream(found).try_for_each(|_| async { Ok(()) }).await
        })
    }

    fn reader(&self) -> Arc<dyn RangeReader> {
        self.reader.clone()
    }
}
