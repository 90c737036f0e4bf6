//! Tokens that are none, by the address that they come from: after some it must wait. What is right, and was right
//! before from there, is let in all the same: behind one address there may be many.

use super::tokens::{Hash, Tokens, digest};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures of an address in a row before it must wait.
pub(super) const FAILURES: f64 = 20.0;

/// Another one is allowed after this time.
pub(super) const SECONDS_EACH: f64 = 3.0;

/// Most addresses that are remembered, and tokens of one that were right.
pub(super) const MOST_ADDRESSES: usize = 10_000;
const MOST_RIGHT: usize = 16;

/// From one line in the log to the next about an address.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug, Default)]
pub struct Guesses(Mutex<HashMap<IpAddr, Address>>);

#[derive(Debug)]
struct Address {
    /// Failures that are not forgiven, at that time.
    failures: f64,
    at: Instant,
    right: Vec<Hash>,
    told: Option<Instant>,
    /// Since the last line in the log.
    untold: u64,
}

impl Address {
    fn new(now: Instant) -> Self {
        Self {
            failures: 0.0,
            at: now,
            right: Vec::new(),
            told: None,
            untold: 0,
        }
    }

    fn failures(&self, now: Instant) -> f64 {
        let forgiven = now.saturating_duration_since(self.at).as_secs_f64() / SECONDS_EACH;
        (self.failures - forgiven).max(0.0)
    }
}

/// A household's or a machine's, where there are many.
fn of_one(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

impl Guesses {
    fn all<T>(&self, of: impl FnOnce(&mut HashMap<IpAddr, Address>) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a token is accepted, whosever it is; where the address has guessed too often, the seconds that it must
    /// wait instead. To show none is no guess.
    pub(in crate::api) fn accept(
        &self,
        tokens: &Tokens,
        token: Option<&str>,
        address: Option<IpAddr>,
    ) -> Result<bool, u32> {
        let Some(token) = token.filter(|_| tokens.count().is_some()) else {
            return Ok(tokens.holder(token).is_some());
        };
        let hash = digest("token", token);
        if let Some(seconds) = address.and_then(|address| self.wait(address, &hash)) {
            return Err(seconds);
        }
        let is_right = tokens.holder_of(&hash).is_some();
        match address {
            Some(address) if is_right => self.succeeded(address, hash),
            Some(address) => self.failed(address),
            None => {}
        }
        Ok(is_right)
    }

    /// Seconds that this address must wait before it shows another token.
    pub(super) fn wait(&self, address: IpAddr, token: &Hash) -> Option<u32> {
        self.wait_at(address, token, Instant::now())
    }

    fn wait_at(&self, address: IpAddr, token: &Hash, now: Instant) -> Option<u32> {
        let left = self.all(|all| {
            let address = all.get(&of_one(address))?;
            let is_let_in = address.right.contains(token);
            (!is_let_in).then(|| address.failures(now) - FAILURES + 1.0)
        })?;
        (left > 0.0).then(|| (left * SECONDS_EACH).ceil().max(1.0) as u32)
    }

    /// A token was none.
    pub(super) fn failed(&self, address: IpAddr) {
        self.failed_at(address, Instant::now());
    }

    fn failed_at(&self, address: IpAddr, now: Instant) {
        let failures = self.all(|all| {
            make_room(all, now);
            let one = all.entry(of_one(address)).or_insert_with(|| Address::new(now));
            one.failures = one.failures(now) + 1.0;
            (one.at, one.untold) = (now, one.untold + 1);
            let is_due = one
                .told
                .is_none_or(|told| now.saturating_duration_since(told) >= TOLD_EVERY);
            is_due.then(|| {
                one.told = Some(now);
                std::mem::take(&mut one.untold)
            })
        });
        if let Some(failures) = failures {
            tracing::warn!(%address, failures, "somebody showed a token that is not valid");
        }
    }

    /// A token was right.
    pub(super) fn succeeded(&self, address: IpAddr, token: Hash) {
        let now = Instant::now();
        self.all(|all| {
            if let Some(address) = all.get(&of_one(address))
                && address.right.contains(&token)
            {
                return;
            }
            make_room(all, now);
            let address = all.entry(of_one(address)).or_insert_with(|| Address::new(now));
            if address.right.len() == MOST_RIGHT {
                address.right.remove(0);
            }
            address.right.push(token);
        });
    }
}

/// For one address more. Those that have failed least, or not for long, go.
fn make_room(all: &mut HashMap<IpAddr, Address>, now: Instant) {
    if all.len() < MOST_ADDRESSES {
        return;
    }
    all.retain(|_, address| address.failures(now) > 0.0);
    if all.len() >= MOST_ADDRESSES
        && let Some(least) = all
            .iter()
            .min_by(|a, b| a.1.failures(now).total_cmp(&b.1.failures(now)))
            .map(|(address, _)| *address)
    {
        all.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_must_wait_and_who_was_right_need_not() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        let (there, here): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        guesses.succeeded(there, [7; 32]);
        for _ in 0..20 {
            assert_eq!(guesses.wait_at(there, &[1; 32], now), None);
            guesses.failed_at(there, now);
        }
        assert_eq!(guesses.wait_at(there, &[1; 32], now), Some(3));
        assert_eq!(guesses.wait_at(there, &[7; 32], now), None, "it was right before");
        assert_eq!(guesses.wait_at(here, &[1; 32], now), None);
        let later = now + Duration::from_secs(4);
        assert_eq!(guesses.wait_at(there, &[1; 32], later), None);
        guesses.failed_at(there, later);
        assert!(guesses.wait_at(there, &[1; 32], later).is_some());
        assert_eq!(guesses.wait_at(there, &[1; 32], now + Duration::from_secs(70)), None);
    }

    #[test]
    fn addresses_are_bounded_and_those_of_one_network_are_one() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for address in 0..MOST_ADDRESSES as u32 + 100 {
            guesses.failed_at(IpAddr::V4(address.into()), now);
        }
        assert!(guesses.all(|all| all.len()) <= MOST_ADDRESSES);
        let six = |last: u16| format!("2001:db8::{last:x}").parse().unwrap();
        for last in 0..20 {
            guesses.failed_at(six(last), now);
        }
        assert!(guesses.wait_at(six(99), &[1; 32], now).is_some());
    }
}
