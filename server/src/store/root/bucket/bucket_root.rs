//! The data root in a bucket.

use crate::store::root::bucket::bucket_incoming::{BucketIncoming, LARGE_BYTES};
use crate::store::root::bucket::bucket_reader::BucketReader;
use crate::store::root::bucket::counted::Counted;
use crate::store::root::bucket::exchange;
use crate::store::root::bucket::guarded::Guarded;
use crate::store::root::bucket::io_threads::IoThreads;
use crate::store::root::bucket::lease::{Holding, Lease};
use crate::store::root::bucket::membership;
use crate::store::root::bucket::pages::Pages;
use crate::store::root::bucket::place::{self, Place, SCHEMES};
use crate::store::root::contract::{Incoming, Lock, LogRoot, Named, Root, Stamp, Version};
use crate::store::root::error::RootError;
use crate::store::root::reader::RangeReader;
use crate::store::root::traffic::Traffic;
use crate::store::root::whole_lists::WholeLists;
use bytes::Bytes;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutResult, UpdateVersion};
use std::io::ErrorKind;
use std::sync::Arc;
use url::Url;

/// The object that its holder renews.
const LEASE: &str = "lease";

/// Where a start tries whether it can write.
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
    pages: Arc<Pages>,
    traffic: Arc<Traffic>,
    is_shared: bool,
}

impl BucketRoot {
    /// The same bucket for several servers at once.
    pub(crate) fn shared(self) -> Self {
        Self {
            is_shared: true,
            ..self
        }
    }

    /// Whether a URL's scheme is one of a bucket.
    pub(crate) fn knows(scheme: &str) -> bool {
        SCHEMES.contains(&scheme)
    }

    /// Sends no request. An error's object is the scheme and the bucket.
    pub(crate) fn open(url: &Url) -> Result<Self, RootError> {
        // The URL may hold a password.
        let name = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
        let threads = Arc::new(IoThreads::start().map_err(|cause| RootError::new(&name, cause))?);
        let traffic = Arc::new(Traffic::default());
        let connector = Counted {
            traffic: traffic.clone(),
            runtime: threads.handle().clone(),
        };
        let place = place::of(url, connector).map_err(|cause| RootError::new(&name, cause))?;
        Ok(Self::over(place, threads, traffic))
    }

    fn over(place: Place, threads: Arc<IoThreads>, traffic: Arc<Traffic>) -> Self {
        let place = Place {
            store: Arc::new(WholeLists {
                inner: place.store,
                traffic: traffic.clone(),
            }),
            ..place
        };
        let pages = Arc::new(Pages::new(traffic.clone()));
        let holding = Arc::new(Holding::default());
        let guarded: Arc<dyn ObjectStore> = Arc::new(Guarded {
            inner: place.store.clone(),
            holding: holding.clone(),
        });
        let objects: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(guarded, place.prefix.clone()));
        let reader = Arc::new(BucketReader {
            objects: objects.clone(),
            threads: threads.clone(),
            pages: pages.clone(),
            name: place.url.to_string(),
        });
        Self {
            place,
            threads,
            holding,
            objects,
            reader,
            pages,
            traffic,
            is_shared: false,
        }
    }

    /// Below a prefix of a store that is at hand.
    #[cfg(test)]
    pub(crate) fn of_store(store: Arc<dyn ObjectStore>) -> Self {
        let place = Place {
            store,
            url: Url::parse("s3://bucket/some/prefix").unwrap(),
            prefix: Path::from("some/prefix"),
        };
        Self::over(place, Arc::new(IoThreads::start().unwrap()), Arc::default())
    }

    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<(), RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        let put = async move { objects.put_opts(&at, bytes.into(), PutOptions::from(mode)).await };
        self.threads.wait(path, put).map(drop)
    }

    /// A put on a condition. One that succeeded is tried again when its answer is lost, and refused then: what is there
    /// is what was put.
    fn put_if(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<(), RootError> {
        match self.put(path, bytes.clone(), mode) {
            // Stores differ in what they call a condition on an object that is not there.
            Err(RootError::Exists(failure) | RootError::NotFound(failure)) => {
                let is_ours = self.reader.whole(path).is_ok_and(|found| found == bytes);
                if is_ours {
                    Ok(())
                } else {
                    Err(RootError::Exists(failure))
                }
            }
            put => put,
        }
    }

    /// The lease, by which this server has the bucket alone or is one of those that share it.
    fn lease(&self, is_shared: bool) -> Result<Lease, RootError> {
        let store: Arc<dyn ObjectStore> =
            Arc::new(PrefixStore::new(self.place.store.clone(), self.place.prefix.clone()));
        self.needs_conditional_puts(store.clone())?;
        let (holding, threads) = (self.holding.clone(), self.threads.clone());
        let taking = async move {
            match is_shared {
                true => membership::join(store, Path::from(LEASE), holding, threads).await,
                false => Lease::take(store, Path::from(LEASE), holding, threads).await,
            }
        };
        self.threads.wait(LEASE, taking)?.ok_or_else(|| {
            let held = std::io::Error::new(ErrorKind::AlreadyExists, "another server renews the lease");
            RootError::new(LEASE, held)
        })
    }

    /// Moves one object. Not in one step: what is cut off leaves both.
    fn rename(&self, from: &str, to: &str) -> Result<(), RootError> {
        let (objects, at, to) = (self.objects.clone(), Path::from(from), Path::from(to));
        self.threads.wait(from, async move {
            objects.copy(&at, &to).await?;
            objects.delete(&at).await
        })
    }

    /// A large object goes in parts, on no condition: a look says whether it is there already. Nobody else puts the
    /// same one meanwhile: the lease keeps others away, and where several servers write, each gives large objects names
    /// of its own.
    fn upload(&self, path: &str, bytes: Bytes) -> Result<(), RootError> {
        match self.reader.length(path) {
            Ok(_) => return Err(RootError::new(path, std::io::Error::from(ErrorKind::AlreadyExists))),
            Err(RootError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let mut incoming = Box::new(BucketIncoming::new(self.reader.clone(), path));
        incoming.add(bytes)?;
        incoming.finish()
    }

    /// Of two puts where nothing is the second must be refused, and so must one over another version than is there:
    /// without that two servers could write the same commit, or both have the lease.
    fn needs_conditional_puts(&self, objects: Arc<dyn ObjectStore>) -> Result<(), RootError> {
        let path = format!("{PROBE}/{}", uuid::Uuid::new_v4());
        let at = Path::from(path.as_str());
        let honoured = self.threads.wait(&path, async move {
            let put = |text: &'static str, mode: PutMode| objects.put_opts(&at, text.into(), mode.into());
            let first = match put("probe", PutMode::Create).await {
                Ok(done) => Some(UpdateVersion::from(done)),
                // The answer of a try that succeeded was lost.
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => None,
                Err(error) => return Err(error),
            };
            let create = is_refused(put("probe", PutMode::Create).await)?;
            put("changed", PutMode::Overwrite).await?;
            let update = match first {
                Some(first) => is_refused(put("probe", PutMode::Update(first)).await)?,
                None => true,
            };
            objects.delete(&at).await?;
            Ok((create, update))
        })?;
        let lacks = match honoured {
            (true, true) => return Ok(()),
            (false, _) => "If-None-Match",
            (true, false) => "If-Match",
        };
        let words = format!("this object store does not honour conditional puts ({lacks}): it cannot hold the data");
        Err(RootError::new("", words))
    }
}

fn is_refused(put: object_store::Result<PutResult>) -> object_store::Result<bool> {
    match put {
        Ok(_) => Ok(false),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(true),
        Err(error) => Err(error),
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
        let lease = self.lease(false)?;
        let objects = self.objects.clone();
        self.threads.wait("", async move { exchange::resume(&objects).await })?;
        Ok(Box::new(lease))
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn join(&self) -> Result<Lock, RootError> {
        let lease = self.lease(true)?;
        let objects = self.objects.clone();
        // Whoever ends it must be alone.
        if self
            .threads
            .wait("", async move { exchange::is_begun(&objects).await })?
        {
            let words = "an exchange of two folders was cut off: start one server alone first, which ends it";
            return Err(RootError::new("", words));
        }
        Ok(Box::new(lease))
    }

    fn free_bytes(&self) -> Result<Option<u64>, RootError> {
        Ok(None)
    }

    /// The lease is renewed by writing: as long as it is held nothing more has to be tried.
    fn probe(&self, _prefixes: &[&str]) -> Result<(), RootError> {
        let held = self.holding.until().map(drop);
        held.map_err(|cause| RootError::ours(LEASE, cause))
    }

    fn stamp(&self, path: &str) -> Result<Stamp, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        let meta = self.threads.wait(path, async move { objects.head(&at).await })?;
        Ok(Stamp {
            bytes: meta.size,
            modified: Some(meta.last_modified.into()),
            version: Version::Object {
                etag: meta.e_tag,
                generation: meta.version,
            },
        })
    }

    fn create(&self, path: &str, bytes: Bytes) -> Result<(), RootError> {
        if bytes.len() > LARGE_BYTES {
            return self.upload(path, bytes);
        }
        self.put_if(path, bytes, PutMode::Create)
    }

    fn replace(&self, path: &str, bytes: Bytes) -> Result<(), RootError> {
        self.put(path, bytes, PutMode::Overwrite)
    }

    fn replace_if(&self, path: &str, stamp: &Stamp, bytes: Bytes) -> Result<(), RootError> {
        let mode = match &stamp.version {
            Version::None => PutMode::Create,
            Version::Object { etag, generation } => PutMode::Update(UpdateVersion {
                e_tag: etag.clone(),
                version: generation.clone(),
            }),
            Version::Inode { .. } => return Err(RootError::new(path, "a file's stamp is none of a bucket's object")),
        };
        self.put_if(path, bytes, mode)
    }

    fn receive(&self, path: &str) -> Result<Box<dyn Incoming>, RootError> {
        Ok(Box::new(BucketIncoming::new(self.reader.clone(), path)))
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

    fn names_below(
        &self,
        prefix: &str,
        folders: &dyn Fn(&str) -> bool,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Named>, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(prefix));
        let listed = async move { objects.list(Some(&at)).try_collect::<Vec<_>>().await };
        let listed = self.threads.wait(prefix, listed)?;
        let below = format!("{prefix}/");
        let named = listed.into_iter().filter_map(|meta| {
            let location: &str = meta.location.as_ref();
            let name = location.strip_prefix(below.as_str())?;
            let (folder, file) = name.split_once('/')?;
            let is_wanted = !file.contains('/') && folders(folder) && wanted(name);
            let name = name.to_owned();
            is_wanted.then_some(Named { name, bytes: meta.size })
        });
        Ok(named.collect())
    }

    fn looks_cost(&self) -> bool {
        true
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

    fn exchange(&self, new: &str, old: &str) -> Result<(), RootError> {
        let (objects, new, object) = (self.objects.clone(), new.to_owned(), old);
        let old = old.to_owned();
        self.threads
            .wait(object, async move { exchange::exchange(&objects, &new, &old).await })
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

    fn keeps(&self, most_bytes: usize) -> usize {
        self.pages.limit(most_bytes);
        most_bytes
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        Some(self.traffic.clone())
    }
}
