//! What an end-to-end test gets: the binaries, a way to be stopped, how often a fault is repeated.

use std::path::Path;

use crate::artifacts::Binaries;
use crate::signals::Stop;
use crate::stack::Options;

/// What a test gets.
pub(crate) struct Scene<'a> {
    pub(crate) binaries: &'a Binaries,
    pub(crate) stop: &'a Stop,
    /// How often a fault is repeated; none: a few times, as CI does.
    pub(crate) faults: Option<Faults>,
}

/// As many rounds as a test has in its long form, or as many as are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) rounds: Option<u32>,
    /// Where several servers have their data; none: in a folder that they share.
    pub(crate) bucket: Option<String>,
    /// What decides which server is killed when; none: chance.
    pub(crate) seed: Option<u64>,
}

impl Scene<'_> {
    /// How often: in CI, and in the long form unless a number is given.
    pub(super) fn rounds(&self, short: u32, long: u32) -> u32 {
        self.faults
            .as_ref()
            .map_or(short, |faults| faults.rounds.unwrap_or(long))
    }

    /// Options with a state folder of its own and a free port.
    pub(crate) fn options(&self, state_dir: &Path, frequency_hz: u32) -> Options {
        Options {
            binaries: self.binaries.clone(),
            state_dir: state_dir.to_owned(),
            listen: "127.0.0.1:0".to_owned(),
            frequency_hz,
        }
    }
}
