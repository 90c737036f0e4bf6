//! The two profilers that take turns: this repository's agent, and OpenTelemetry's for eBPF.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::http::Client;
use crate::service::Service;
use crate::stack::{Options, start_agent};

/// Which one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Profiler<'a> {
    Ours,
    /// As its program lies there.
    Peer(&'a Path),
}

impl Profiler<'_> {
    pub(super) fn title(self) -> &'static str {
        match self {
            Profiler::Ours => "stakeout-agent",
            Profiler::Peer(_) => "OpenTelemetry",
        }
    }

    /// Starts it, with its defaults but for the rate, to ship to the server.
    pub(super) fn start(self, options: &Options, client: &Client) -> Result<Service> {
        match self {
            Profiler::Ours => start_agent(options, client.base(), &[]),
            Profiler::Peer(program) => start_peer(program, options, &[]),
        }
    }

    pub(super) fn stop(self, service: &mut Service) -> Result<()> {
        let ended = service.stop(Duration::from_secs(30));
        ensure!(
            ended.is_some_and(|status| status.success()),
            "{} ended badly:\n{}",
            self.title(),
            service.last_lines(10)
        );
        Ok(())
    }
}

/// Starts OpenTelemetry's profiler, with its defaults but for the rate and these arguments, to ship to the server.
pub(in crate::bench) fn start_peer(program: &Path, options: &Options, more: &[&str]) -> Result<Service> {
    let mut command = Command::new(program);
    command
        .args(["-collection-agent", &options.listen, "-disable-tls"])
        .args(["-samples-per-second", &options.frequency_hz.to_string()])
        .args(more);
    Service::start("peer", &mut command, &options.state_dir.join("peer.log"))
}
