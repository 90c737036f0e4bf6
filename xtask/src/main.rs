//! Stakeout's development commands: `cargo xtask COMMAND`.
//!
//! One file a command; what several commands need stands beside them (`repo`, `run`, `packages`, `artifacts`, `tools`,
//! `service`, `bucket`, `http`, `tally`, `test_programs`). Nothing here is part of the product: the agent and the
//! server never depend on it, and it talks to them only as a user does, by their command line and their HTTP interface.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]

mod artifacts;
mod bench;
mod bucket;
mod check_install;
mod demo;
mod dist;
mod e2e;
mod faults;
mod fuzz;
mod http;
mod kernels;
mod packages;
mod proc;
mod progress;
mod repo;
mod run;
mod service;
mod signals;
mod stack;
mod stacks;
mod tally;
mod test;
mod test_programs;
mod tidy;
mod tools;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Stakeout's development commands",
    max_term_width = 110
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build everything, start a server and an agent on this machine, print the page's URL, stop both on Ctrl-C.
    Up(up::Args),
    /// Play an incident with real programs on this machine and print links to it: a walk that grows, a Java service
    /// beside a file system that nobody uses, the same jobs on machines and in pods, packets that wait for a CPU.
    Demo(demo::Args),
    /// Run every check that CI runs; the last line is `N passed, N failed`.
    Test(test::Args),
    /// Check the rules that a tool can see: who may use what, circles of imports, links and names in documents. `test`
    /// does this too.
    Tidy,
    /// Run the agent's tests on Debian's kernels 6.1 and 6.12, booted by qemu, and on the running one.
    Kernels(kernels::Args),
    /// Feed the decoders of agent and server made-up bytes, guided by coverage (libFuzzer), and print what broke.
    /// `test` does this with the server's.
    Fuzz(fuzz::Args),
    /// Kill servers, cut the disk's power, fill the disk, many times each: what was acknowledged must be stored, once.
    Faults(faults::Args),
    /// Measure agent, server or page on release builds and print the figures beside their targets.
    Bench(bench::Args),
    /// Run programs of many kinds under the agent and print the share of their stacks that are whole, named and as
    /// known.
    Stacks(stacks::Args),
    /// Build release binaries with the embedded page into a folder, with SHA-256 sums.
    Dist(dist::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Up(args) => up::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Tidy => tidy::run(),
        Command::Kernels(args) => kernels::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Faults(args) => faults::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Stacks(args) => stacks::run(&args),
        Command::Dist(args) => dist::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
