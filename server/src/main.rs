//! The `stakeout-server` binary: reads the command line, opens the store, serves until it is told to stop.
#![forbid(unsafe_code)]

use anyhow::{Context, bail};
use clap::Parser;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use stakeout_server::api::{self, Agents, AppState, Tokens};
use stakeout_server::config::Config;
use stakeout_server::ingest::{Ingest, IngestConfig};
use stakeout_server::memory::{self, Shares};
use stakeout_server::store::{Store, StoreConfig};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Requests and rows of many sizes come and go on many threads: the C library's allocator asks the kernel for fresh pages all the
/// time, which takes more than reading a request does.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Descriptors that the server needs beside its connections: data files, the listener, the log.
const SPARE_DESCRIPTORS: u64 = 512;

fn main() -> ExitCode {
    let config = Config::parse();
    let filter = match tracing_subscriber::EnvFilter::try_new(&config.log) {
        Ok(filter) => filter,
        Err(error) => {
            eprintln!("stakeout-server: --log {:?}: {error}", config.log);
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(run(config)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stakeout-server: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(config: Config) -> anyhow::Result<()> {
    config.check()?;
    let tls = match (&config.tls_cert, &config.tls_key) {
        (Some(cert), Some(key)) => Some(tls_config(cert, key)?),
        _ => None,
    };
    let ingest_tokens = tokens(config.ingest_token_file.as_deref(), "--ingest-token-file")?;
    let view_tokens = tokens(config.view_token_file.as_deref(), "--view-token-file")?;
    let max_connections = raise_descriptor_limit(config.max_connections);
    // Before the store is opened: a port in use is the more frequent mistake, and costs less to find.
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; is it in use? choose another with --listen",
            config.listen
        )
    })?;
    // Signals from here on end in an orderly stop.
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
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
        settle: config.settle,
        ..StoreConfig::new(&config.data)
    })
    .await?;
    let state = AppState {
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
        tls: tls.is_some(),
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
    let closing = store.clone();
    let stop = async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping: committing what is pending");
        // Requests that wait for their commit get it now, and their answers while connections drain.
        tokio::spawn(async move { closing.close().await });
    };
    api::serve(listener, api::app(state), tls, max_connections, stop).await;
    store.close().await;
    tracing::info!("stopped");
    Ok(())
}

fn tls_config(cert: &Path, key: &Path) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("--tls-cert {}: not a readable PEM certificate chain", cert.display()))?;
    if chain.is_empty() {
        bail!("--tls-cert {}: no PEM certificate in it", cert.display());
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("--tls-key {}: not a readable PEM private key", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS versions")?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("{} and {} do not belong together", cert.display(), key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn tokens(path: Option<&Path>, flag: &str) -> anyhow::Result<Tokens> {
    let Some(path) = path else { return Ok(Tokens::default()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("{flag} {}: cannot be read", path.display()))?;
    let tokens = Tokens::from_lines(&text);
    if tokens.count() == Some(0) {
        bail!(
            "{flag} {}: no token in it; write one a line, such as from `openssl rand -hex 32`",
            path.display()
        );
    }
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
