//! Several servers have the bucket: the lease's object says so, and any of them renews it.
//!
//! Each looks at it as often as a holder renews, and renews it where nobody did since its last look. So it changes as
//! long as one of them lives, and a server that wants the bucket for itself, and waits until it stands still, does not
//! get it. As of a lease no clocks are compared: each writes as long as a holder would, from a moment that was before
//! the object was put as it is. That is the begin of its own renewal, or of its last look at what another's replaced.

use crate::store::root::bucket::io_threads::IoThreads;
use crate::store::root::bucket::lease::{
    Begun, Claim, Holding, LOOKS, Lease, Put, RENEWED_WITHIN, RENEWS, SHARED, name,
};
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, Result};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Becomes one of the servers that share the bucket. None: a server alone has it. May wait for more than half a minute.
pub(super) async fn join(
    store: Arc<dyn ObjectStore>,
    path: Path,
    holding: Arc<Holding>,
    threads: Arc<IoThreads>,
) -> Result<Option<Lease>> {
    let mut claim = Claim::new(store, path, format!("{SHARED}{}", name()));
    let Some((_, begun)) = claim.take().await? else {
        return Ok(None);
    };
    let held = holding.clone();
    let renewing = |stop| renew(claim, begun, held, stop);
    Ok(Some(Lease::kept(holding, begun, threads, renewing)))
}

/// What a look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// This server has renewed it.
    ByThis,
    /// Another one has, since the last look.
    ByAnother,
    /// A server has the bucket for itself now, or nobody has.
    Lost,
}

/// Looks, and renews what nobody renewed since it was `seen`.
async fn look(claim: &mut Claim, seen: &mut Vec<u8>) -> Result<Kept> {
    loop {
        let Some((text, version)) = claim.look().await? else {
            return Ok(Kept::Lost);
        };
        if !text.starts_with(SHARED.as_bytes()) {
            return Ok(Kept::Lost);
        }
        if text != *seen {
            *seen = text;
            return Ok(Kept::ByAnother);
        }
        match claim.put(PutMode::Update(version)).await? {
            Put::Done(_) => {
                *seen = claim.text().into_bytes();
                return Ok(Kept::ByThis);
            }
            // Another was first: the next look finds what it put.
            Put::Refused => {}
        }
    }
}

/// Until it is told to stop. What others renew stays as it is.
async fn renew(mut claim: Claim, taken: Begun, holding: Arc<Holding>, mut stop: watch::Receiver<bool>) {
    let mut seen = claim.text().into_bytes();
    // What is not as it was seen was put after this.
    let mut looked = taken;
    let mut pause = RENEWS;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            _ = stop.changed() => return,
        }
        let begun = Begun::now();
        pause = LOOKS;
        let since = match timeout(RENEWED_WITHIN, look(&mut claim, &mut seen)).await {
            Ok(Ok(Kept::ByThis)) => begun,
            Ok(Ok(Kept::ByAnother)) => looked,
            Ok(Ok(Kept::Lost)) => {
                holding.set(None);
                tracing::error!("a server has taken the bucket for itself: this one writes no more; restart it");
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot see whether the bucket is shared still; trying again");
                continue;
            }
            Err(_) => {
                tracing::warn!("it took too long to see whether the bucket is shared still; trying again");
                continue;
            }
        };
        looked = begun;
        pause = RENEWS;
        if !*stop.borrow() {
            holding.set(Some(since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt as _;
    use object_store::memory::InMemory;

    fn claim(store: &Arc<dyn ObjectStore>) -> Claim {
        Claim::new(store.clone(), Path::from("lease"), format!("{SHARED}{}", name()))
    }

    #[tokio::test]
    async fn whoever_finds_that_nobody_renewed_it_does() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let [mut one, mut other] = [claim(&store), claim(&store)];
        assert!(one.take().await.unwrap().is_some());
        assert!(other.take().await.unwrap().is_some(), "no need to wait for the first");
        let (mut seen_by_one, mut seen_by_other) = (one.text().into_bytes(), other.text().into_bytes());
        assert_eq!(
            look(&mut one, &mut seen_by_one).await.unwrap(),
            Kept::ByAnother,
            "it joined"
        );
        assert_eq!(look(&mut one, &mut seen_by_one).await.unwrap(), Kept::ByThis);
        assert_eq!(look(&mut one, &mut seen_by_one).await.unwrap(), Kept::ByThis);
        assert_eq!(look(&mut other, &mut seen_by_other).await.unwrap(), Kept::ByAnother);
        assert_eq!(look(&mut other, &mut seen_by_other).await.unwrap(), Kept::ByThis);
        assert_eq!(look(&mut one, &mut seen_by_one).await.unwrap(), Kept::ByAnother);
        store
            .put(&Path::from("lease"), "holder x\nrenewal 1\n".into())
            .await
            .unwrap();
        assert_eq!(look(&mut one, &mut seen_by_one).await.unwrap(), Kept::Lost);
        store.delete(&Path::from("lease")).await.unwrap();
        assert_eq!(look(&mut other, &mut seen_by_other).await.unwrap(), Kept::Lost);
    }

    #[test]
    fn servers_share_a_bucket_and_one_alone_does_not_get_it_meanwhile() {
        let threads = Arc::new(IoThreads::start().unwrap());
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let join = |holding: &Arc<Holding>| {
            let joining = join(store.clone(), Path::from("lease"), holding.clone(), threads.clone());
            threads.wait("lease", joining).unwrap()
        };
        let alone = |holding: &Arc<Holding>| {
            let taking = Lease::take(store.clone(), Path::from("lease"), holding.clone(), threads.clone());
            threads.wait("lease", taking).unwrap()
        };
        let [first, second, third] = [(); 3].map(|()| Arc::new(Holding::default()));
        let leases = [join(&first).unwrap(), join(&second).unwrap()];
        assert!(first.until().is_ok() && second.until().is_ok());
        // Waits until it is renewed by one of them.
        assert!(alone(&third).is_none() && third.until().is_err());
        assert!(first.until().is_ok() && second.until().is_ok());
        drop(leases);
        assert!(first.until().is_err() && second.until().is_err());
        // Nobody knows whether the last one has left: who shares needs not to wait.
        let lease = join(&third);
        assert!(lease.is_some() && third.until().is_ok());
    }

    #[test]
    fn a_server_alone_is_no_one_to_share_with() {
        let threads = Arc::new(IoThreads::start().unwrap());
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let [first, second] = [(); 2].map(|()| Arc::new(Holding::default()));
        let taking = Lease::take(store.clone(), Path::from("lease"), first.clone(), threads.clone());
        let lease = threads.wait("lease", taking).unwrap().unwrap();
        let joining = || join(store.clone(), Path::from("lease"), second.clone(), threads.clone());
        assert!(threads.wait("lease", joining()).unwrap().is_none() && second.until().is_err());
        drop(lease);
        let lease = threads.wait("lease", joining()).unwrap();
        assert!(lease.is_some() && second.until().is_ok(), "it was released");
    }
}
