//! The `stakeout-server` binary: reads the command line, opens the store, serves until it is told to stop.
#![forbid(unsafe_code)]

use anyhow::Context;
use stakeout_server::api::exchange::{self, MOST_PEER_CONNECTIONS, Peers};
use stakeout_server::api::{self, Agents, AppState, Hosts, Tokens};
use stakeout_server::command::{self, Command};
use stakeout_server::config::{Config, LogFormat};
use stakeout_server::ingest::{Ingest, IngestConfig};
use stakeout_server::memory::{self, Shares};
use stakeout_server::panics;
use stakeout_server::query::{Limits, ShareCounter, Spread};
use stakeout_server::reload::{self, Certificate, Sources, Unusable, exchange_tls};
use stakeout_server::settings::{self, Unusable as UnusableSettings};
use stakeout_server::store::{Store, StoreConfig};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Requests and rows of many sizes come and go on many threads: the C library's allocator asks the kernel for fresh
/// pages all the time, which takes more than reading a request does.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Descriptors that the server needs beside its connections: data files, the listener, the log.
const SPARE_DESCRIPTORS: u64 = 512;

fn main() -> ExitCode {
    match command::read(std::env::args_os()) {
        Some(Ok(command)) => return instead(command),
        Some(Err(error)) => {
            let file = None;
            return UnusableSettings::Arguments { error, file }.tell("stakeout-server");
        }
        None => {}
    }
    let (config, settings) = match settings::read::<Config>(std::env::args_os()) {
        Ok(read) => read,
        Err(unusable) => return unusable.tell("stakeout-server"),
    };
    if config.print_config {
        return print(&settings);
    }
    let filter = match tracing_subscriber::EnvFilter::try_new(&config.log) {
        Ok(filter) => filter,
        Err(error) => {
            eprintln!("stakeout-server: --log {:?}: {error}", config.log);
            return ExitCode::from(2);
        }
    };
    let is_json = config.log_format == LogFormat::Json;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !is_json);
    if is_json {
        log.json().flatten_event(true).init();
    } else {
        log.init();
    }
    panics::watch();
    // What it writes is its user's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(run(config)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if is_json {
                tracing::error!(cause = format!("{error:#}"), "the server ends");
            } else {
                eprintln!("stakeout-server: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Does something else than to serve. Ends with 1 where that fails, or finds something wrong.
fn instead(command: Command) -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new("warn"))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    panics::watch();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime
        .context("cannot start the runtime")
        .and_then(|runtime| Ok(runtime.block_on(command::run(command))?));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("stakeout-server: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the settings that count.
fn print(settings: &settings::Settings) -> ExitCode {
    match write!(std::io::stdout(), "{settings}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stakeout-server: --print-config: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(config: Config) -> anyhow::Result<()> {
    config.check()?;
    stakeout_server::label::attribute::name_attributes(config.label.clone());
    let certificate = match (&config.tls_cert, &config.tls_key) {
        (Some(cert), Some(key)) => Some(Certificate::read(cert, key)?),
        _ => None,
    };
    let tls = certificate.clone().map(tls_config).transpose()?;
    let among_servers = match (&certificate, &config.exchange_ca) {
        (Some(certificate), Some(signers)) => Some(exchange_tls(certificate, signers)?),
        _ => None,
    };
    let mut sources = Sources {
        certificate,
        ..Sources::default()
    };
    let ingest = (&config.ingest_token_file, "--ingest-token-file");
    let ingest_tokens = tokens(ingest, reload::sender_tokens, &mut sources)?;
    let view = (&config.view_token_file, "--view-token-file");
    let view_tokens = tokens(view, reload::tokens, &mut sources)?;
    let burst = (&config.burst_token_file, "--burst-token-file");
    let burst_tokens = tokens(burst, reload::tokens, &mut sources)?;
    let among = (&config.exchange_token_file, "--exchange-token-file");
    let exchange_tokens = tokens(among, reload::tokens, &mut sources)?;
    let max_connections = raise_descriptor_limit(config.max_connections);
    // Before the store is opened: a port in use is the more frequent mistake, and costs less to find.
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; is it in use? choose another with --listen",
            config.listen
        )
    })?;
    let exchange_listener =
        match config.exchange_listen {
            None => None,
            Some(at) => Some(TcpListener::bind(at).await.with_context(|| {
                format!("cannot listen on {at}; is it in use? choose another with --exchange-listen")
            })?),
        };
    let exchange_address = match (&config.exchange_address, &exchange_listener) {
        (_, None) => String::new(),
        (Some(address), _) => address.clone(),
        (None, Some(listener)) => listener.local_addr().map(|at| at.to_string()).unwrap_or_default(),
    };
    // Signals from here on end in an orderly stop.
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    tokio::spawn(sources.watch(signal(SignalKind::hangup()).context("cannot catch SIGHUP")?));
    let memory_limit = config.memory_limit.unwrap_or_else(memory::default_limit_bytes);
    let shares = Shares::of(memory_limit, IngestConfig::decoding());
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let store = Store::open(StoreConfig {
        commit_interval: config.commit_interval,
        max_pending_bytes: config.max_pending.unwrap_or(shares.pending),
        min_free_bytes: config.min_free,
        query_memory_bytes: bytes(config.query_memory.unwrap_or(shares.queries)),
        quiet_query_memory_bytes: bytes(config.query_memory.unwrap_or(shares.quiet_queries)),
        retention_samples: config.retention_samples,
        retention_minutes: config.retention_minutes,
        retention_hours: config.retention_hours,
        retention_bytes: config.retention_bytes,
        fits_disk: true,
        settle: config.settle,
        is_shared: config.shared,
        address: match &config.public_url {
            Some(url) => url.clone(),
            None => listener.local_addr().map(|at| at.to_string()).unwrap_or_default(),
        },
        exchange: exchange_address,
        ..StoreConfig::new(&config.data)
    })
    .await?;
    let (stopping, stopped) = watch::channel(false);
    let (spread, counting) = match exchange_listener {
        None => (Spread::default(), None),
        Some(listener) => {
            let among = Among {
                listener,
                tls: among_servers,
                tokens: exchange_tokens,
                token_file: config.exchange_token_file.clone(),
                spread_rows: config.spread_rows,
            };
            let (spread, counting) = among.count(&store, stopped)?;
            (spread, Some(counting))
        }
    };
    let state = AppState {
        spread,
        ingest: Arc::new(Ingest::new(
            store.clone(),
            IngestConfig {
                clock_wait: config.clock_wait,
                ..IngestConfig::within(&shares)
            },
        )),
        agents: Arc::new(Agents::new(config.agent_dir.clone())),
        ingest_tokens,
        view_tokens,
        burst_tokens,
        senders_may_burst: config.listen.ip().to_canonical().is_loopback(),
        tls: tls.is_some(),
        hosts: Hosts::new(config.listen, config.public_url.as_deref(), &config.allow_host),
        public_url: config
            .public_url
            .as_deref()
            .map(|url| url.trim_end_matches('/').to_owned()),
        ..AppState::new(store.clone())
    };
    let address = listener.local_addr().context("cannot read the listening address")?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!(
        data = %config.data.display(),
        url = format!("{scheme}://{address}/"),
        memory_limit_bytes = memory_limit,
        "listening"
    );
    tokio::spawn(state.burst_agents.clone().share(store.clone()));
    let (closing, burst_agents) = (store.clone(), state.burst_agents.clone());
    let stop = async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping: committing what is pending");
        burst_agents.stop();
        stopping.send_replace(true);
        // Requests that wait for their commit get it now, and their answers while connections drain.
        tokio::spawn(async move { closing.close().await });
    };
    api::serve(listener, api::app(state), tls, max_connections, stop).await;
    if let Some(counting) = counting {
        counting.await.context("what counts for other servers failed")?;
    }
    store.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// This server among others on the same data.
struct Among {
    listener: TcpListener,
    tls: Option<(Arc<rustls::ServerConfig>, Arc<rustls::ClientConfig>)>,
    tokens: Tokens,
    token_file: Option<PathBuf>,
    spread_rows: usize,
}

impl Among {
    /// Counts for the others until it is stopped, and has them count for this one.
    fn count(self, store: &Arc<Store>, mut stopped: watch::Receiver<bool>) -> anyhow::Result<(Spread, JoinHandle<()>)> {
        let (server_tls, client_tls) = self.tls.unzip();
        let memory = store.snapshot().memory_pool().clone();
        let peers = Peers::new(store.clone(), self.token_file, client_tls, memory.clone())?;
        let spread = Spread::default().over(Arc::new(peers), self.spread_rows);
        let limits = Limits::within(store.query_memory_bytes());
        let counter = Arc::new(ShareCounter::new(store.clone(), limits, spread.counters.clone()));
        let own = store.server_id().unwrap_or_default().to_owned();
        let router = exchange::router(counter, own, self.tokens, memory)?;
        let address = self
            .listener
            .local_addr()
            .context("cannot read the address of the exchange")?;
        tracing::info!(%address, tls = server_tls.is_some(), "counting for other servers on the same data");
        let stop = async move {
            // Who could tell is gone: that is the end, too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let counting = api::serve(self.listener, router, server_tls, MOST_PEER_CONNECTIONS, stop);
        Ok((spread, tokio::spawn(counting)))
    }
}

fn tls_config(certificate: Arc<Certificate>) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS versions")?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The tokens of a file, which is looked at again while the server runs; where there is none, none is needed.
fn tokens(
    (path, flag): (&Option<PathBuf>, &'static str),
    read: fn(&'static str, &Path) -> Result<Tokens, Unusable>,
    sources: &mut Sources,
) -> anyhow::Result<Tokens> {
    let Some(path) = path else { return Ok(Tokens::default()) };
    let tokens = read(flag, path)?;
    sources.tokens.push((flag, path.clone(), tokens.clone()));
    Ok(tokens)
}

/// Makes room for the connections, and says how many there is room for.
fn raise_descriptor_limit(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let target = wanted as u64 + SPARE_DESCRIPTORS;
    let Some(soft) = limit.current else { return wanted };
    if soft >= target {
        return wanted;
    }
    let raised = limit.maximum.map_or(target, |hard| target.min(hard));
    let soft = match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(raised),
            maximum: limit.maximum,
        },
    ) {
        Ok(()) => raised,
        Err(_) => soft,
    };
    let room = usize::try_from(soft.saturating_sub(SPARE_DESCRIPTORS).max(64))
        .unwrap_or(wanted)
        .min(wanted);
    if room < wanted {
        tracing::warn!(
            wanted,
            room,
            "fewer connections than wanted: the limit of open files is low"
        );
    }
    room
}
