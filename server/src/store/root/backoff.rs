//! How long to wait before something is tried again.

use std::time::Duration;

/// The first pause, about.
const FIRST: Duration = Duration::from_millis(20);

/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(2);

/// Pauses that grow, each of a length that is no other server's: two that met once do not meet again.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// How long the next pause is: between half of what it is by now and all of that.
    pub(crate) fn length(&mut self) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        let share = (uuid::Uuid::new_v4().as_u128() & 0xffff) as u32;
        whole / 2 + (whole / 2).mul_f64(f64::from(share) / 65_536.0)
    }

    /// Waits for the next pause.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.length()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_differ() {
        let (mut one, mut other) = (Backoff::default(), Backoff::default());
        let pauses: Vec<Duration> = (0..20).map(|_| one.length()).collect();
        assert!(pauses[0] >= FIRST / 2 && pauses[0] <= FIRST);
        assert!(pauses[19] >= LONGEST / 2 && pauses[19] <= LONGEST);
        assert_ne!(pauses, (0..20).map(|_| other.length()).collect::<Vec<_>>());
    }
}
