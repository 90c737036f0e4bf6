//! Ctrl-C and SIGTERM as a flag, looked at wherever a command waits. Every wait and every stop has a limit, so that
//! once is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Set once a person or the system asked this program to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over both signals.
    pub(crate) fn install() -> Result<Stop> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&stop)).context("can't handle Ctrl-C")?;
        }
        Ok(Stop(stop))
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error once asked to stop, for use inside of waits.
    pub(crate) fn check(&self) -> Result<()> {
        if self.asked() {
            bail!("stopped by Ctrl-C or SIGTERM");
        }
        Ok(())
    }
}
