//! Keeps the agent's own CPU time within its limit, by sampling less often.

/// Time whose allowance may be saved up: what starting costs, and a burst of new programs, need not slow the sampling
/// down.
const SAVED_SECONDS: f64 = 60.0;
/// The rate is never divided by more.
const MAX_DIVISOR: u32 = 32;

/// An account of CPU time: the limit flows in, what the agent uses flows out.
#[derive(Debug, Clone)]
pub(in crate::agent) struct RateController {
    /// Share of the machine's CPU time, between 0 and 1.
    limit: f64,
    balance_seconds: Option<f64>,
    /// What may be saved up.
    most_seconds: f64,
    is_overdrawn: bool,
    /// The divisor before the last call.
    before: u32,
    divisor: u32,
}

impl RateController {
    pub(in crate::agent) fn new(limit: f64) -> Self {
        Self {
            limit,
            balance_seconds: None,
            most_seconds: 0.0,
            is_overdrawn: false,
            before: 1,
            divisor: 1,
        }
    }

    /// What the configured rate is to be divided by from now on. `used_seconds` of CPU time, in BPF and in user space,
    /// went into `seconds` of wall time on a machine with so many CPUs.
    pub(in crate::agent) fn after(&mut self, seconds: f64, cpus: u32, used_seconds: f64) -> u32 {
        let allowance = self.limit * f64::from(cpus);
        let most = allowance * SAVED_SECONDS;
        self.most_seconds = most;
        let balance = self.balance_seconds.unwrap_or(most) + allowance * seconds - used_seconds;
        let balance = balance.clamp(-most, most);
        (self.is_overdrawn, self.before) = (balance < 0.0, self.divisor);
        if balance < 0.0 {
            self.divisor = (self.divisor * 2).min(MAX_DIVISOR);
            // The lower rate gets a while to show what it saves.
            self.balance_seconds = Some(allowance * seconds);
        } else {
            if balance > most / 2.0 && self.divisor > 1 {
                self.divisor /= 2;
                self.balance_seconds = Some(most / 4.0);
                return self.divisor;
            }
            self.balance_seconds = Some(balance);
        }
        self.divisor
    }

    /// True where more was used than may be, by the last call.
    pub(in crate::agent) fn is_overdrawn(&self) -> bool {
        self.is_overdrawn
    }

    /// What was used more than may be went into something that does with less from now on: the rate stays.
    pub(in crate::agent) fn take_back(&mut self) {
        self.divisor = self.before;
    }

    /// True where a good part of what may be saved up is there.
    pub(in crate::agent) fn has_room(&self) -> bool {
        let most = self.most_seconds;
        self.balance_seconds.is_none_or(|balance| balance > most / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs intervals of five seconds on four CPUs whose cost is `cost` seconds at the full rate; returns the divisors.
    fn run(controller: &mut RateController, intervals: usize, cost: f64) -> Vec<u32> {
        let mut divisor = controller.divisor;
        (0..intervals)
            .map(|_| {
                divisor = controller.after(5.0, 4, cost / f64::from(divisor));
                divisor
            })
            .collect()
    }

    #[test]
    fn below_the_limit_nothing_happens_and_a_burst_is_forgiven() {
        let mut controller = RateController::new(0.01);
        assert!(run(&mut controller, 100, 0.19).iter().all(|divisor| *divisor == 1));
        // A minute's allowance at once.
        assert_eq!(run(&mut controller, 1, 2.4), [1]);
        assert!(run(&mut controller, 100, 0.15).iter().all(|divisor| *divisor == 1));
    }

    #[test]
    fn above_the_limit_the_rate_falls_until_the_cost_fits_and_comes_back_later() {
        let mut controller = RateController::new(0.01);
        let divisors = run(&mut controller, 2_000, 1.0);
        // 0.2 s are allowed in an interval: between a half and all of it must be used on average.
        let used: f64 = divisors[200..].iter().map(|divisor| 1.0 / f64::from(*divisor)).sum();
        let mean = used / divisors[200..].len() as f64;
        assert!((0.1..=0.22).contains(&mean), "{mean}");
        assert!(divisors.iter().all(|divisor| *divisor <= 16));
        let after = run(&mut controller, 100, 0.05);
        assert_eq!(after.last(), Some(&1), "{after:?}");
    }

    #[test]
    fn it_never_stops_sampling() {
        let mut controller = RateController::new(0.0001);
        assert_eq!(run(&mut controller, 1_000, 100.0).last(), Some(&MAX_DIVISOR));
    }
}
