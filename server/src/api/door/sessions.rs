//! Browsers that are signed in. Each has a cookie of its own that says nothing; what it stands for is kept here only.

use super::tokens::{Hash, Holder, Tokens, digest};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a browser stays signed in.
pub(super) const SESSION_SECONDS: u64 = 30 * 24 * 3600;

/// Most browsers that are signed in; then the one goes that would go first.
pub(super) const MOST_SESSIONS: usize = 10_000;

/// Bytes of a cookie, before they are written as text.
pub(super) const COOKIE_BYTES: usize = 32;

/// See the module.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<Hash, Session>>);

#[derive(Debug)]
struct Session {
    /// By which token it was begun, and ends with it.
    token: Hash,
    until: Instant,
}

fn key(cookie: &str) -> Hash {
    digest("session", cookie)
}

impl Sessions {
    fn all<T>(&self, of: impl FnOnce(&mut HashMap<Hash, Session>) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins one; none where the machine has no random numbers.
    pub(super) fn begin(&self, token: Hash) -> Option<String> {
        let mut bytes = [0; COOKIE_BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).ok()?;
        let cookie: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (now, lasts) = (Instant::now(), Duration::from_secs(SESSION_SECONDS));
        self.all(|all| {
            if all.len() >= MOST_SESSIONS {
                all.retain(|_, session| session.until > now);
            }
            if all.len() >= MOST_SESSIONS
                && let Some(first) = all.iter().min_by_key(|(_, session)| session.until).map(|(key, _)| *key)
            {
                all.remove(&first);
            }
            let until = now + lasts;
            all.insert(key(&cookie), Session { token, until });
        });
        Some(cookie)
    }

    /// Whose session it is, as long as its token is one.
    pub(super) fn holder(&self, cookie: &str, tokens: &Tokens) -> Option<Holder> {
        self.holder_at(cookie, tokens, Instant::now())
    }

    fn holder_at(&self, cookie: &str, tokens: &Tokens, now: Instant) -> Option<Holder> {
        let token = self.all(|all| {
            all.get(&key(cookie))
                .filter(|session| session.until > now)
                .map(|s| s.token)
        })?;
        tokens.holder_of(&token)
    }

    pub(super) fn end(&self, cookie: &str) {
        self.all(|all| all.remove(&key(cookie)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_random_and_ends_with_its_time_its_token_or_when_it_is_told_to() {
        let (sessions, tokens) = (Sessions::default(), Tokens::from_lines("a\nb"));
        let begin = |token| sessions.begin(digest("token", token)).unwrap();
        let (of_a, again, of_b) = (begin("a"), begin("a"), begin("b"));
        assert!(of_a != again && of_a.len() == 2 * COOKIE_BYTES);
        let is_in = |cookie: &str| sessions.holder(cookie, &tokens).is_some();
        assert!(is_in(&of_a) && is_in(&again) && is_in(&of_b) && !is_in("") && !is_in("a"));
        sessions.end(&again);
        assert!(is_in(&of_a) && !is_in(&again));
        tokens.replace("b").unwrap();
        assert!(!is_in(&of_a) && is_in(&of_b));
        let late = Instant::now() + Duration::from_secs(SESSION_SECONDS + 1);
        assert_eq!(sessions.holder_at(&of_b, &tokens, late), None);
    }

    #[test]
    fn sessions_are_bounded() {
        let sessions = Sessions::default();
        let first = sessions.begin([1; 32]).unwrap();
        for _ in 0..MOST_SESSIONS {
            sessions.begin([1; 32]).unwrap();
        }
        assert_eq!(sessions.all(|all| all.len()), MOST_SESSIONS);
        assert!(!sessions.all(|all| all.contains_key(&key(&first))));
    }
}
