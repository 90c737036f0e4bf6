//! One server has the bucket: an object that its holder renews by conditional puts.
//!
//! No clocks are compared. Whoever wants the lease watches the object's tag by its own monotonic clock, and takes over
//! when it has stood still for [`EXPIRES`]. The holder writes no longer than [`HELD`] after it began its last renewal.

use crate::store::root::bucket::io_threads::IoThreads;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, Result, UpdateVersion};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Time from one renewal to the next.
const RENEWS: Duration = Duration::from_secs(10);

/// As long as this after the begin of a renewal its holder may write.
const HELD: Duration = Duration::from_secs(30);

/// A lease that stands still for this long is nobody's. What the holder began before [`HELD`] was over has this much
/// more to arrive.
const EXPIRES: Duration = Duration::from_secs(60);

/// Time between looks at a lease that another has, and after a renewal that failed.
const LOOKS: Duration = Duration::from_secs(2);

/// An end waits this long until the lease is released.
const RELEASES: Duration = Duration::from_secs(3);

/// What the object says when its holder has gone.
const RELEASED: &[u8] = b"released\n";

/// Until when this process may write.
#[derive(Debug, Default)]
pub(super) struct Holding {
    until: Mutex<Option<Instant>>,
}

impl Holding {
    fn set(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// An error where that is over.
    pub(super) fn until(&self) -> Result<Instant> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.filter(|until| Instant::now() < *until).ok_or_else(not_held)
    }

    /// Does something that writes, as long as that is allowed.
    pub(super) async fn while_held<T>(&self, write: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let until = self.until()?;
        timeout_at(until, write).await.unwrap_or_else(|_| Err(not_held()))
    }
}

fn not_held() -> Error {
    Error::Generic {
        store: "bucket",
        source: "this server does not hold the bucket's lease (any more): it may not write".into(),
    }
}

/// Where the lease is, and what of it is ours.
struct Claim {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// Of this holder alone.
    name: String,
    renewals: u64,
}

/// What a conditional put came to.
enum Put {
    Done(UpdateVersion),
    /// Somebody else's object is there.
    Refused,
}

impl Claim {
    fn text(&self) -> String {
        format!("{}\nrenewal {}\n", self.name, self.renewals)
    }

    /// The answer of a put that succeeded may be lost: then the object has our text.
    async fn put(&mut self, mode: PutMode) -> Result<Put> {
        self.renewals += 1;
        let text = self.text();
        let mut mode = mode;
        loop {
            let opts = PutOptions::from(mode);
            match self.store.put_opts(&self.path, text.clone().into(), opts).await {
                Ok(done) => return Ok(Put::Done(done.into())),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.look().await? {
                Some((bytes, version)) if bytes == text.as_bytes() => return Ok(Put::Done(version)),
                // An earlier renewal of ours, given up before it was answered.
                Some((bytes, version)) if bytes.starts_with(self.name.as_bytes()) => mode = PutMode::Update(version),
                _ => return Ok(Put::Refused),
            }
        }
    }

    async fn look(&self) -> Result<Option<(Vec<u8>, UpdateVersion)>> {
        let found = match self.store.get(&self.path).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let version = UpdateVersion {
            e_tag: found.meta.e_tag.clone(),
            version: found.meta.version.clone(),
        };
        Ok(Some((found.bytes().await?.to_vec(), version)))
    }

    /// None: another server renews it.
    async fn take(&mut self) -> Result<Option<(UpdateVersion, Instant)>> {
        let mut seen: Option<(UpdateVersion, Instant)> = None;
        loop {
            let begun = Instant::now();
            let mode = match self.look().await? {
                None => PutMode::Create,
                Some((text, version)) if text == RELEASED => PutMode::Update(version),
                Some((_, version)) => match &seen {
                    Some((before, _)) if *before != version => return Ok(None),
                    Some((_, since)) if since.elapsed() >= EXPIRES => PutMode::Update(version),
                    _ => {
                        if seen.is_none() {
                            let seconds = EXPIRES.as_secs();
                            tracing::warn!(seconds, "the bucket has a lease: waiting whether its holder renews it");
                        }
                        // From after the look: the object stood so at the latest then.
                        seen.get_or_insert_with(|| (version, Instant::now()));
                        sleep(LOOKS).await;
                        continue;
                    }
                },
            };
            return match self.put(mode).await? {
                Put::Done(version) => Ok(Some((version, begun))),
                Put::Refused => Ok(None),
            };
        }
    }
}

/// The lease of this process. Released when it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    holding: Arc<Holding>,
    stop: watch::Sender<bool>,
    /// Ends when the lease is released, or lost.
    released: Mutex<mpsc::Receiver<()>>,
    /// Keeps the threads that renew.
    _threads: Arc<IoThreads>,
}

impl Lease {
    /// None: another server has it. May wait for more than [`EXPIRES`].
    pub(super) async fn take(
        store: Arc<dyn ObjectStore>,
        path: Path,
        holding: Arc<Holding>,
        threads: Arc<IoThreads>,
    ) -> Result<Option<Self>> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let started = chrono::Utc::now().to_rfc3339();
        let (host, process, id) = (host.trim(), std::process::id(), uuid::Uuid::new_v4());
        let mut claim = Claim {
            store,
            path,
            name: format!("holder {id}\nhost {host}\nprocess {process}\nstarted {started}"),
            renewals: 0,
        };
        let Some((version, begun)) = claim.take().await? else {
            return Ok(None);
        };
        holding.set(Some(begun + HELD));
        let stop = watch::Sender::new(false);
        let (ended, released) = mpsc::channel();
        let renewing = renew(claim, version, holding.clone(), stop.subscribe());
        threads.handle().spawn(async move {
            renewing.await;
            drop(ended);
        });
        Ok(Some(Self {
            holding,
            stop,
            released: Mutex::new(released),
            _threads: threads,
        }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.holding.set(None);
        let released = self.released.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = released.recv_timeout(RELEASES);
    }
}

async fn renew(mut claim: Claim, mut version: UpdateVersion, holding: Arc<Holding>, mut stop: watch::Receiver<bool>) {
    let mut pause = RENEWS;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            _ = stop.changed() => {
                let opts = PutOptions::from(PutMode::Update(version));
                // Where that fails the next server waits until the lease has expired.
                let _ = claim.store.put_opts(&claim.path, RELEASED.into(), opts).await;
                return;
            }
        }
        let begun = Instant::now();
        pause = LOOKS;
        match timeout(HELD / 2, claim.put(PutMode::Update(version.clone()))).await {
            Ok(Ok(Put::Done(newer))) => {
                version = newer;
                pause = RENEWS;
                if !*stop.borrow() {
                    holding.set(Some(begun + HELD));
                }
            }
            Ok(Ok(Put::Refused)) => {
                holding.set(None);
                tracing::error!("another server has taken the bucket's lease: this one writes no more; restart it");
                return;
            }
            Ok(Err(error)) => tracing::warn!(%error, "the bucket's lease could not be renewed; trying again"),
            Err(_) => tracing::warn!("the bucket's lease was not renewed in time; trying again"),
        }
    }
}
