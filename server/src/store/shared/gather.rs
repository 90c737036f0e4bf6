//! Commits of many servers, gathered: with more of them each waits longer, so that they do not make as many times the
//! commits of one.

use crate::lock::lock_mutex;
use crate::store::members::heartbeat::{AGENTS, Member};
use crate::store::state::Store;
use bytes::Bytes;
use std::time::Duration;

/// No server waits longer than that for the sake of others. With a commit of two seconds and a look a second later
/// what one has taken in is in the answers of all within ten seconds.
const MOST_GATHERED: Duration = Duration::from_secs(7);

/// How old answers of this server may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Servers that are alive, with this one.
    pub servers: usize,
    /// Time from one of its commits to the next.
    pub commit_pause: Duration,
    /// How long ago it last knew all that others had committed; nothing where there are no others.
    pub behind: Duration,
}

impl Store {
    /// Time from one commit to the next.
    pub(crate) fn commit_pause(&self) -> Duration {
        let alone = self.config.commit_interval;
        match &self.members {
            None => alone,
            Some(members) => gathered(alone, members.heartbeats.alive()),
        }
    }

    /// How old answers may be: what this server has taken in is in them at once, what others have within their pause,
    /// their commit, and the look of this one.
    pub fn freshness(&self) -> Freshness {
        let alive = self.members.as_ref().map(|members| members.heartbeats.alive());
        Freshness {
            servers: alive.unwrap_or(1),
            commit_pause: self.commit_pause(),
            behind: match alive {
                Some(_) => lock_mutex(&self.followed).elapsed(),
                None => Duration::ZERO,
            },
        }
    }

    /// The servers that write to the same data root; none where this one has it for itself.
    pub fn servers(&self) -> Vec<Member> {
        let members = self.members.as_ref();
        members.map(|members| members.heartbeats.list()).unwrap_or_default()
    }

    /// What this server is called among those on the same data; none where it has them for itself.
    pub fn server_id(&self) -> Option<&str> {
        self.members.as_ref().map(|members| members.heartbeats.id())
    }

    /// Tells the other servers which agents ask this one, in whatever form they read.
    pub(crate) async fn tell_agents(&self, agents: Bytes) {
        let Some(members) = &self.members else { return };
        if let Err(error) = members.heartbeats.tell(AGENTS, agents).await {
            tracing::warn!(%error, "cannot tell other servers which agents ask this one; trying again");
        }
    }

    /// What each of the other servers told so.
    pub(crate) async fn agents_of_others(&self) -> Vec<Bytes> {
        match &self.members {
            Some(members) => members.heartbeats.told(AGENTS).await,
            None => Vec::new(),
        }
    }

    /// Whether this server does the maintenance.
    pub fn maintains(&self) -> bool {
        self.members.as_ref().is_none_or(|members| members.lease.is_held())
    }
}

fn gathered(alone: Duration, servers: usize) -> Duration {
    let servers = u32::try_from(servers).unwrap_or(u32::MAX);
    alone.saturating_mul(servers).min(MOST_GATHERED.max(alone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_servers_commit_less_than_as_many_times_as_one() {
        let pause = |servers| gathered(Duration::from_secs(2), servers);
        assert_eq!([1, 2, 3].map(pause), [2, 4, 6].map(Duration::from_secs));
        // Ten make three times the commits of one.
        assert_eq!(pause(10), MOST_GATHERED);
        assert_eq!(gathered(Duration::from_secs(60), 10), Duration::from_secs(60));
    }
}
