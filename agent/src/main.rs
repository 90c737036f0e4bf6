//! The agent's program: flags, checks, start, clean stop.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use stakeout_agent::agent::{Agent, AgentConfig, BURST_LABELS};
use stakeout_agent::config::{Arguments, LogFormat};
use stakeout_agent::kernel::{self, preflight};
use stakeout_agent::metadata::Resolver;
use stakeout_agent::ship::{About, BurstDesk, BurstPolls, ShipConfig, Shipper, Submitted};
use stakeout_agent::sys;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// How long a stop may wait for the server, and for one that did not answer before; what is not sent by then stays in
/// the spool.
const FLUSH_DEADLINE: Duration = Duration::from_secs(10);
const FLUSH_DEADLINE_IN_TROUBLE: Duration = Duration::from_secs(1);

/// Of the list of CPUs that the server is told.
const MAX_CPU_LIST_BYTES: usize = 1024;

fn main() -> ExitCode {
    // Before any thread has a heap of its own.
    sys::tune_allocator();
    let arguments = Arguments::parse();
    if let Err(error) = begin_log(&arguments) {
        eprintln!("stakeout-agent: {error:#}");
        return ExitCode::FAILURE;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if arguments.log_format == LogFormat::Json => {
            tracing::error!(cause = format!("{error:#}"), "the agent ends");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("stakeout-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn begin_log(arguments: &Arguments) -> Result<()> {
    let filter = EnvFilter::try_new(&arguments.log)
        .with_context(|| format!("--log {:?} is no log filter; write a level such as info", arguments.log))?;
    let is_json = arguments.log_format == LogFormat::Json;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !is_json);
    if is_json {
        log.json().flatten_event(true).init();
    } else {
        log.init();
    }
    Ok(())
}

fn run(arguments: &Arguments) -> Result<()> {
    let ship = arguments.ship()?;
    let problems = preflight::check();
    let fatal: Vec<String> = problems.iter().filter(|p| p.fatal).map(ToString::to_string).collect();
    if !fatal.is_empty() {
        bail!("{}", fatal.join("; "));
    }
    for problem in &problems {
        tracing::warn!("{problem}");
    }
    // One thread is enough: it only waits for signals.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        // Before anything starts, so that an early signal also ends in a clean stop.
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        let shipper = Arc::new(Shipper::start(ship.clone())?);
        let desk = Arc::new(BurstDesk::default());
        let polls = polls(arguments, &ship, shipper.instance().to_string())?;
        let sink = {
            let shipper = Arc::clone(&shipper);
            move |batch| {
                if shipper.submit(batch) == Submitted::Dropped {
                    tracing::error!("a batch was dropped: the shipper is stuck");
                }
            }
        };
        let config = AgentConfig {
            bursts: polls.is_some().then(|| Arc::clone(&desk)),
            ..arguments.agent()
        };
        let mut agent = Agent::start(config, Resolver::default(), sink)?;
        tracing::info!(
            server = arguments.server,
            frequency_hz = arguments.frequency,
            instance = %shipper.instance(),
            "sampling"
        );
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = agent.failed() => {}
            () = ask(polls.as_ref(), &desk) => {}
        }
        tracing::info!("stopping");
        let totals = tokio::task::spawn_blocking(move || agent.stop())
            .await
            .context("the stop did not run")?;
        if let Some(polls) = &polls {
            polls.tell_last(&desk).await;
        }
        let shipper = Arc::into_inner(shipper).context("the shipper is still in use")?;
        let in_trouble = shipper.stats().trouble.is_some();
        let deadline = if in_trouble {
            FLUSH_DEADLINE_IN_TROUBLE
        } else {
            FLUSH_DEADLINE
        };
        let shipped = shipper.shutdown(deadline).await;
        let totals = totals?;
        tracing::info!(
            samples_taken = totals.kernel.all_taken(),
            samples_batched = totals.batched,
            samples_acknowledged = shipped.acknowledged_samples,
            batches_waiting = shipped.spooled_batches,
            "stopped"
        );
        Ok(())
    })
}

/// What asks the server whether somebody wants a closer look; none where nobody may.
fn polls(arguments: &Arguments, ship: &ShipConfig, instance: String) -> Result<Option<BurstPolls>> {
    let burst_limit_hz = arguments.burst_limit_hz();
    if burst_limit_hz == 0 {
        return Ok(None);
    }
    let (identity, has_pmu) = (ship.identity.clone(), kernel::has_pmu());
    let about = move || About {
        node: identity.node.clone(),
        instance: instance.clone(),
        agent_version: identity.agent_version.clone(),
        burst_limit_hz,
        cpus: kernel::format_cpu_list(kernel::online_cpus().unwrap_or_default(), MAX_CPU_LIST_BYTES),
        has_pmu,
        selects: &BURST_LABELS,
    };
    Ok(Some(BurstPolls::new(ship, about)?))
}

/// Never ends.
async fn ask(polls: Option<&BurstPolls>, desk: &BurstDesk) {
    match polls {
        Some(polls) => polls.run(desk).await,
        None => std::future::pending().await,
    }
}
