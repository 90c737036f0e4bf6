//! Counts shares that other servers ask for.

use super::codec::ShareCodec;
use super::door::{Door, check};
use crate::api::door::{Guesses, Tokens};
use crate::query::{SHARE_NODE, ShareCounter, ShareExec};
use axum::{Router, middleware};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion_distributed::{
    DistributedExt, Worker, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerQueryContext,
};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use std::sync::Arc;
use tonic::service::Routes;

/// Longest message, in bytes: a share, and what stands around it.
pub(super) const MOST_MESSAGE_BYTES: usize = 5 << 20;

/// The service, for a server that is called so among the others.
///
/// # Errors
/// The engine cannot be set up.
pub fn router(counter: Arc<ShareCounter>, own: String, tokens: Tokens, memory: Arc<dyn MemoryPool>) -> Result<Router> {
    // Nothing of the data is registered in it: a share is counted by this server's own reader.
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory).build_arc()?;
    let codec: Arc<dyn PhysicalExtensionCodec> = Arc::new(ShareCodec { counter: Some(counter) });
    let session = move |context: WorkerQueryContext| {
        let builder = context.builder.with_distributed_user_codec_arc(codec.clone());
        let builder = builder.with_distributed_worker_plan_rewrite_handler(only_shares);
        async move { Ok::<_, DataFusionError>(builder.build()) }
    };
    let worker = Worker::from_session_builder(session)
        .with_runtime_env(runtime)
        .with_version(env!("CARGO_PKG_VERSION"));
    let service = worker
        .into_worker_server()
        .max_decoding_message_size(MOST_MESSAGE_BYTES);
    let door = Arc::new(Door {
        own,
        tokens,
        guesses: Guesses::default(),
    });
    Ok(Routes::new(service)
        .into_axum_router()
        .layer(middleware::from_fn_with_state(door, check)))
}

/// A plan of anything else is refused before it runs.
fn only_shares(event: WorkerPlanRewriteEvent<'_>) -> Result<WorkerPlanRewriteEventResponse> {
    if event.plan.downcast_ref::<ShareExec>().is_none() {
        let what = format!("{} is not run here, only {SHARE_NODE} is", event.plan.name());
        return Err(DataFusionError::Plan(what));
    }
    Ok(WorkerPlanRewriteEventResponse::new(event.plan))
}
