//! One server has the bucket: an object that its holder renews by conditional puts. Or several share it, which renew
//! the same object: see `membership`.
//!
//! No clocks are compared. Whoever wants the lease watches the object's tag by its own monotonic clock, and takes over
//! when it has stood still for [`EXPIRES`]. The holder writes no longer than [`HELD`] after it began its last renewal.
//! Only of a process of its own machine does a server know more: that it has ended.

use crate::lock::lock_mutex;
use crate::store::root::bucket::holder::Holder;
use crate::store::root::bucket::io_threads::IoThreads;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, Result, UpdateVersion};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Time from one renewal to the next.
pub(super) const RENEWS: Duration = Duration::from_secs(5);

/// A renewal that takes longer is begun anew: two of them fit between the first and the end of [`HELD`].
pub(super) const RENEWED_WITHIN: Duration = Duration::from_secs(4);

/// As long as this after the begin of a renewal its holder may write.
const HELD: Duration = Duration::from_secs(15);

/// A lease that stands still for this long is nobody's. What the holder began before [`HELD`] was over has this much
/// more to arrive, and a request is given up before that.
const EXPIRES: Duration = Duration::from_secs(30);

/// What a process sent just before it ended arrives within this time.
const ARRIVES: Duration = Duration::from_secs(1);

/// Time between looks at a lease that another has, and after a renewal that failed.
pub(super) const LOOKS: Duration = Duration::from_secs(1);

/// An end waits this long until the lease is released.
const RELEASES: Duration = Duration::from_secs(5);

/// What the object says when its holder has gone.
const RELEASED: &[u8] = b"released\n";

/// How it begins where several servers have the bucket.
pub(super) const SHARED: &str = "shared\n";

/// When a renewal began. Of a machine that was suspended the one clock stood still, and the other went on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    at: Instant,
    wall: SystemTime,
}

impl Begun {
    pub(super) fn now() -> Self {
        Self {
            at: Instant::now(),
            wall: SystemTime::now(),
        }
    }
}

/// Until when this process may write.
#[derive(Debug, Default)]
pub(super) struct Holding {
    renewed: Mutex<Option<Begun>>,
}

impl Holding {
    pub(super) fn set(&self, renewed: Option<Begun>) {
        *lock_mutex(&self.renewed) = renewed;
    }

    /// An error where that is over. A wall's clock that was set ahead ends it until the next renewal.
    pub(super) fn until(&self) -> Result<Instant> {
        let renewed = *lock_mutex(&self.renewed);
        let is_over = |begun: &Begun| begun.wall.elapsed().is_ok_and(|elapsed| elapsed >= HELD);
        let until = renewed.filter(|begun| !is_over(begun)).map(|begun| begun.at + HELD);
        until.filter(|until| Instant::now() < *until).ok_or_else(not_held)
    }

    /// Does something that writes, as long as that is allowed.
    pub(super) async fn while_held<T>(&self, write: impl Future<Output = Result<T>> + Send) -> Result<T> {
        tokio::pin!(write);
        loop {
            if let Ok(done) = timeout_at(self.until()?, &mut write).await {
                return done;
            }
            // What takes longer goes on where the lease was renewed meanwhile.
        }
    }
}

fn not_held() -> Error {
    Error::Generic {
        store: "bucket",
        source: "this server does not hold the bucket's lease (any more): it may not write".into(),
    }
}

/// Where the lease is, and what of it is ours.
pub(super) struct Claim {
    store: Arc<dyn ObjectStore>,
    path: Path,
    holder: Holder,
    /// Of this process alone; begins with [`SHARED`] where it shares the bucket.
    name: String,
    renewals: u64,
}

/// What a conditional put came to.
pub(super) enum Put {
    Done(UpdateVersion),
    /// Somebody else's object is there.
    Refused,
}

impl Claim {
    /// Of this process, as it is called in the object.
    pub(super) fn new(store: Arc<dyn ObjectStore>, path: Path, name: String) -> Self {
        Self {
            store,
            path,
            holder: Holder::this(),
            name,
            renewals: 0,
        }
    }

    /// What was put last.
    pub(super) fn text(&self) -> String {
        format!("{}\nrenewal {}\n", self.name, self.renewals)
    }

    /// The answer of a put that succeeded may be lost: then the object has our text.
    pub(super) async fn put(&mut self, mode: PutMode) -> Result<Put> {
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

    pub(super) async fn look(&self) -> Result<Option<(Vec<u8>, UpdateVersion)>> {
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

    /// Whether others have it that share it with this one.
    fn may_join(&self, text: &[u8]) -> bool {
        self.name.starts_with(SHARED) && text.starts_with(SHARED.as_bytes())
    }

    /// None: another server renews it.
    pub(super) async fn take(&mut self) -> Result<Option<(UpdateVersion, Begun)>> {
        let mut seen: Option<(UpdateVersion, Instant)> = None;
        loop {
            let begun = Begun::now();
            let mode = match self.look().await? {
                None => PutMode::Create,
                Some((text, version)) if text == RELEASED || self.may_join(&text) => PutMode::Update(version),
                Some((text, version)) if self.holder.has_ended(&text) => {
                    tracing::info!("the process that had the bucket's lease has ended on this machine: taking it over");
                    sleep(ARRIVES).await;
                    PutMode::Update(version)
                }
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
            match self.put(mode).await? {
                Put::Done(version) => return Ok(Some((version, begun))),
                // Of those that share it another one may have been first.
                Put::Refused if self.name.starts_with(SHARED) => {}
                Put::Refused => return Ok(None),
            }
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
        let name = format!("{}\n{}", name(), Holder::this().text());
        let mut claim = Claim::new(store, path, name);
        let Some((version, begun)) = claim.take().await? else {
            return Ok(None);
        };
        let held = holding.clone();
        let renewing = |stop| renew(claim, version, held, stop);
        Ok(Some(Self::kept(holding, begun, threads, renewing)))
    }

    /// One that was taken at some time, and that `renewing` renews until it is told to stop.
    pub(super) fn kept<F>(
        holding: Arc<Holding>,
        begun: Begun,
        threads: Arc<IoThreads>,
        renewing: impl FnOnce(watch::Receiver<bool>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        holding.set(Some(begun));
        let stop = watch::Sender::new(false);
        let (ended, released) = mpsc::channel();
        let renewing = renewing(stop.subscribe());
        threads.handle().spawn(async move {
            renewing.await;
            drop(ended);
        });
        Self {
            holding,
            stop,
            released: Mutex::new(released),
            _threads: threads,
        }
    }
}

/// What tells this process's objects from those of others.
pub(super) fn name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("holder {}\nhost {}", uuid::Uuid::new_v4(), host.trim())
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
        let begun = Begun::now();
        pause = LOOKS;
        match timeout(RENEWED_WITHIN, claim.put(PutMode::Update(version.clone()))).await {
            Ok(Ok(Put::Done(newer))) => {
                version = newer;
                pause = RENEWS;
                if !*stop.borrow() {
                    holding.set(Some(begun));
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

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn nobody_writes_longer_than_the_lease_by_either_clock() {
        let holding = Holding::default();
        assert!(holding.until().is_err());
        let now = Begun::now();
        holding.set(Some(now));
        assert_eq!(holding.until().unwrap(), now.at + HELD);
        let suspended = Begun {
            wall: now.wall - HELD,
            ..now
        };
        holding.set(Some(suspended));
        assert!(holding.until().is_err());
        let set_back = Begun {
            wall: now.wall + HELD,
            ..now
        };
        holding.set(Some(set_back));
        assert!(holding.until().is_ok());
        holding.set(now.at.checked_sub(HELD).map(|at| Begun { at, ..now }));
        assert!(holding.until().is_err());
    }

    #[test]
    fn a_lease_of_a_process_that_was_killed_is_taken_and_one_that_is_renewed_is_not() {
        let threads = Arc::new(IoThreads::start().unwrap());
        let (store, path): (Arc<dyn ObjectStore>, _) = (Arc::new(InMemory::new()), Path::from("lease"));
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let killed = Holder::of_child(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let text = format!("holder x\nhost y\n{}\nrenewal 3\n", killed.text());
        let (put, at) = (store.clone(), path.clone());
        let put = async move { put.put(&at, text.into()).await };
        threads.wait("lease", put).unwrap();
        let take = |holding: &Arc<Holding>| {
            let taking = Lease::take(store.clone(), path.clone(), holding.clone(), threads.clone());
            threads.wait("lease", taking).unwrap()
        };
        let (first, second) = (Arc::new(Holding::default()), Arc::new(Holding::default()));
        let lease = take(&first).unwrap();
        assert!(first.until().is_ok());
        // Its holder runs, and renews it while this one looks on.
        assert!(take(&second).is_none() && second.until().is_err());
        assert!(first.until().is_ok());
        drop(lease);
        assert!(first.until().is_err() && take(&second).is_some());
    }
}
