//! `cargo xtask up`: from a clone to a page with this machine's flamegraph.

use std::path::PathBuf;
use std::thread;

use anyhow::Result;

use crate::artifacts;
use crate::service::POLL;
use crate::signals::Stop;
use crate::stack::{self, Options, Stack};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the samples, the agent's spool and the logs [default: .stakeout in the clone]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Address of the page and the API
    #[arg(long, default_value = "127.0.0.1:7373", value_name = "HOST:PORT")]
    listen: String,
    /// Samples per second and CPU
    #[arg(long, default_value_t = 20, value_name = "HZ")]
    frequency: u32,
    #[command(flatten)]
    build: artifacts::Choice,
}

/// Builds, starts, shows the URL and stays until Ctrl-C.
pub(crate) fn run(args: &Args) -> Result<()> {
    // Before a build of minutes, not after it.
    stack::free_address(&args.listen)?;
    let state_dir = stack::state_dir(args.state_dir.as_deref())?;
    let binaries = artifacts::all(args.build.profile())?;
    let stop = Stop::install()?;
    let options = Options {
        binaries,
        state_dir,
        listen: args.listen.clone(),
        frequency_hz: args.frequency,
    };
    let mut stack = Stack::start(&options, &stop)?;
    println!("\n  Stakeout: {}\n", stack.client.base());
    println!("state and logs: {}", options.state_dir.display());
    println!(
        "sampling every CPU {} times a second, waiting for the first samples ...",
        args.frequency
    );
    let outcome = stack.wait_samples(stack::FIRST_SAMPLES, &stop).and_then(|()| {
        println!("first samples arrived; Ctrl-C stops both");
        stay(&mut stack, &stop)
    });
    if stop.asked() {
        println!("\nstopping ...");
        return stack.stop();
    }
    // The first error is the one to tell; whether the other one stops in order matters less.
    if let Err(error) = stack.stop() {
        eprintln!("{error:#}");
    }
    outcome
}

/// Returns when asked to stop; an error when one of the two ends by itself.
pub(crate) fn stay(stack: &mut Stack, stop: &Stop) -> Result<()> {
    while !stop.asked() {
        stack.check()?;
        thread::sleep(POLL);
    }
    Ok(())
}
