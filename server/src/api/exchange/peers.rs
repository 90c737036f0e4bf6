//! Asks the other servers on the same data.

use super::SERVER;
use super::codec::ShareCodec;
use crate::api::serve::MAX_STREAMS;
use crate::lock::lock_mutex;
use crate::query::{Exchange, ExchangeError, ShareExec, partial_counts};
use crate::store::{Member, Store};
use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::prelude::SessionConfig;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    CoordinatorToWorkerMsg, DistributedConfig, DistributedExt, ExecuteTaskRequest, MaybeEncoded, ProducerHead,
    SetPlanRequest, TaskKey,
};
use futures::StreamExt;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};
use url::Url;

/// Another server answers a connection within this time, or is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// It is asked this often whether it is still there, and given as long to answer.
const PING_INTERVAL: Duration = Duration::from_secs(3);

/// One that failed is not asked for so long.
const AVOIDED: Duration = Duration::from_secs(5);

/// Shares that one server is asked for at the same time; others wait for their turn. Each takes two streams of the
/// connection to it: if as many as there may be were the first ones of shares, none would get its second.
const SHARES_AT_ONCE: usize = 32;

const _: () = assert!(2 * SHARES_AT_ONCE <= MAX_STREAMS as usize);

/// Longest partial counts, in bytes.
const MOST_PARTIAL_BYTES: usize = 256 << 20;

/// Largest file with a token, in bytes.
const MOST_TOKEN_BYTES: u64 = 1 << 20;

/// What the batches hold is packed already.
const COMPRESSION: &str = "x-datafusion-distributed-config-distributed.compression";

/// A server that was asked before.
#[derive(Debug, Clone)]
struct Peer {
    channel: Channel,
    url: Url,
    headers: HeaderMap,
    turns: Arc<Semaphore>,
}

/// The other servers on the same data, as they tell of themselves there.
pub struct Peers {
    store: Arc<Store>,
    token_file: Option<PathBuf>,
    tls: Option<Arc<ClientConfig>>,
    context: Arc<TaskContext>,
    /// By the names of the servers, those that are alive.
    known: Mutex<HashMap<String, Peer>>,
    /// When servers failed.
    failed: Mutex<HashMap<String, Instant>>,
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers")
            .field("known", &lock_mutex(&self.known).len())
            .finish_non_exhaustive()
    }
}

impl Peers {
    /// The others of a store. `token_file`: the first line is shown to them. What comes takes memory of this pool.
    ///
    /// # Errors
    /// The engine cannot be set up.
    pub fn new(
        store: Arc<Store>,
        token_file: Option<PathBuf>,
        tls: Option<Arc<ClientConfig>>,
        memory: Arc<dyn MemoryPool>,
    ) -> Result<Peers> {
        let config = SessionConfig::new()
            .with_distributed_option_extension(DistributedConfig::default())
            .with_distributed_user_codec(ShareCodec::default());
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory).build_arc()?;
        let session = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .build();
        Ok(Peers {
            store,
            token_file,
            tls,
            context: session.task_ctx(),
            known: Mutex::default(),
            failed: Mutex::default(),
        })
    }

    /// Those that count for others, and can be asked.
    fn members(&self) -> Vec<Member> {
        let failed = lock_mutex(&self.failed);
        let has_failed = |id: &str| failed.get(id).is_some_and(|at| at.elapsed() < AVOIDED);
        let mut members = self.store.servers();
        members.retain(|member| {
            member.is_alive
                && !member.is_own
                && !member.exchange.is_empty()
                && member.version == env!("CARGO_PKG_VERSION")
                && !has_failed(&member.id)
        });
        members
    }

    async fn peer(&self, server: &str) -> Result<Peer, ExchangeError> {
        if let Some(peer) = lock_mutex(&self.known).get(server) {
            return Ok(peer.clone());
        }
        let members = self.members();
        let gone = || ExchangeError::Failed("it is not there any more".to_owned());
        let member = members.iter().find(|member| member.id == server).ok_or_else(gone)?;
        let unusable = |cause: &dyn std::fmt::Display| {
            ExchangeError::Failed(format!("its address {:?} cannot be used: {cause}", member.exchange))
        };
        let address = format!("http://{}/", member.exchange);
        let url = Url::parse(&address).map_err(|error| unusable(&error))?;
        let channel = Endpoint::from_shared(address)
            .map_err(|error| unusable(&error))?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL)
            .keep_alive_while_idle(true)
            .connect_with_connector_lazy(tower::service_fn({
                let tls = self.tls.clone();
                move |uri: Uri| connected(uri, tls.clone())
            }));
        let peer = Peer {
            channel,
            url,
            headers: self
                .headers(server)
                .await
                .map_err(|error| ExchangeError::Failed(error.to_string()))?,
            turns: Arc::new(Semaphore::new(SHARES_AT_ONCE)),
        };
        let mut known = lock_mutex(&self.known);
        known.retain(|id, _| members.iter().any(|member| member.id == *id));
        known.insert(server.to_owned(), peer.clone());
        Ok(peer)
    }

    /// What a request shows.
    async fn headers(&self, server: &str) -> std::io::Result<HeaderMap> {
        let value = |text: &str| HeaderValue::from_str(text).map_err(std::io::Error::other);
        let mut headers = HeaderMap::new();
        headers.insert(SERVER, value(server)?);
        headers.insert(COMPRESSION, HeaderValue::from_static("none"));
        if let Some(path) = &self.token_file {
            let mut token = value(&format!("Bearer {}", first_token(path).await?))?;
            token.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, token);
        }
        Ok(headers)
    }

    async fn counted(&self, server: &str, share: Bytes) -> Result<Bytes, ExchangeError> {
        let peer = self.peer(server).await?;
        let turn = peer.turns.clone().acquire_owned().await;
        let _turn = turn.map_err(|error| ExchangeError::Failed(error.to_string()))?;
        let mut worker = create_worker_client(BoxCloneSyncChannel::new(peer.channel));
        let task_key = TaskKey {
            query_id: uuid::Uuid::new_v4(),
            stage_id: 0,
            task_number: 0,
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let plan = SetPlanRequest {
            task_key,
            task_count: 1,
            plan: MaybeEncoded::Decoded(Arc::new(ShareExec::new(share, None))),
            work_unit_feed_declarations: Vec::new(),
            target_worker_url: peer.url,
            query_start_time_ns: usize::try_from(since_epoch.as_nanos()).unwrap_or_default(),
        };
        // The task is over when this is dropped, at the end or before.
        let (_running, ended) = tokio::sync::oneshot::channel::<()>();
        let nothing = |_| std::future::ready(None::<CoordinatorToWorkerMsg>);
        let until_ended = futures::stream::once(ended).filter_map(nothing);
        let metrics = ExecutionPlanMetricsSet::new();
        let _told = worker
            .coordinator_channel(
                peer.headers.clone(),
                plan,
                until_ended.boxed(),
                metrics.clone(),
                &self.context,
            )
            .await
            .map_err(missed)?;
        let execute = ExecuteTaskRequest {
            task_key,
            target_partition_start: 0,
            target_partition_end: 1,
            producer_head: ProducerHead::None,
        };
        let partitions = worker.execute_task(peer.headers, execute, metrics, &self.context).await;
        let batches = partitions.map_err(missed)?.pop();
        let batches = batches.ok_or_else(|| ExchangeError::Failed("it answered with nothing".to_owned()))?;
        let counted = partial_counts(batches, MOST_PARTIAL_BYTES, self.context.memory_pool());
        counted.await.map_err(missed)
    }
}

#[async_trait]
impl Exchange for Peers {
    fn own(&self) -> String {
        self.store.server_id().unwrap_or_default().to_owned()
    }

    fn servers(&self) -> Vec<String> {
        self.members().into_iter().map(|member| member.id).collect()
    }

    async fn count(&self, server: &str, share: Bytes) -> Result<Bytes, ExchangeError> {
        let counted = self.counted(server, share).await;
        if let Err(ExchangeError::Failed(_)) = &counted {
            // Its connection, and the token that it was shown, are made anew.
            lock_mutex(&self.known).remove(server);
            let mut failed = lock_mutex(&self.failed);
            failed.retain(|_, at| at.elapsed() < AVOIDED);
            failed.insert(server.to_owned(), Instant::now());
        }
        counted
    }
}

/// A server that says what is wrong with a share says it for good; anything else may be better elsewhere.
fn missed(error: DataFusionError) -> ExchangeError {
    match error.find_root() {
        DataFusionError::Plan(why) => ExchangeError::Refused(why.clone()),
        other => ExchangeError::Failed(other.to_string()),
    }
}

/// The first token of a file.
async fn first_token(path: &Path) -> std::io::Result<String> {
    let failed = |what: &str| std::io::Error::other(format!("--exchange-token-file {}: {what}", path.display()));
    if tokio::fs::metadata(path).await?.len() > MOST_TOKEN_BYTES {
        return Err(failed("it has more than a megabyte"));
    }
    let text = tokio::fs::read_to_string(path).await?;
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().map(str::to_owned).ok_or_else(|| failed("no token in it"))
}

/// A connection, with TLS or without.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Unpin> Connection for C {}

async fn connected(uri: Uri, tls: Option<Arc<ClientConfig>>) -> std::io::Result<TokioIo<Box<dyn Connection>>> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let stream = TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(443))).await?;
    stream.set_nodelay(true)?;
    let connection: Box<dyn Connection> = match tls {
        None => Box::new(stream),
        Some(tls) => {
            let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
            Box::new(TlsConnector::from(tls).connect(name, stream).await?)
        }
    };
    Ok(TokioIo::new(connection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_know_the_limits() {
        crate::documented(&[
            ("MOST_PARTIAL_BYTES", MOST_PARTIAL_BYTES as u64),
            ("MOST_TOKEN_BYTES", MOST_TOKEN_BYTES),
            ("SHARES_AT_ONCE", SHARES_AT_ONCE as u64),
            ("MOST_PEER_CONNECTIONS", super::super::MOST_PEER_CONNECTIONS as u64),
            ("MOST_MESSAGE_BYTES", super::super::worker::MOST_MESSAGE_BYTES as u64),
        ]);
    }

    #[test]
    fn what_a_server_says_is_wrong_is_told_apart_from_what_may_be_better_elsewhere() {
        let wrong = DataFusionError::Plan("another version".to_owned()).context("of a task");
        assert!(matches!(missed(wrong), ExchangeError::Refused(why) if why == "another version"));
        let busy = DataFusionError::ResourcesExhausted("too many".to_owned());
        assert!(matches!(missed(busy), ExchangeError::Failed(_)));
    }

    #[tokio::test]
    async fn the_first_token_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "\n# old ones below\n new \nold\n").unwrap();
        assert_eq!(first_token(&path).await.unwrap(), "new");
        std::fs::write(&path, "# none\n").unwrap();
        assert!(first_token(&path).await.unwrap_err().to_string().contains("no token"));
    }
}
