//! The only HTTP room: routes, errors, limits.
//!
//! In: HTTP requests. Out: JSON, protobuf and files. Never computes: it calls `ingest`, `store`, `query` and `render`.

pub mod error;
mod ingest;
pub mod query;

pub use error::ApiError;

use crate::ingest::Ingest;
use crate::store::Store;
use axum::Router;
use std::sync::Arc;

/// What every handler can reach.
#[derive(Debug, Clone)]
pub struct AppState {
    pub store: Arc<Store>,
    pub ingest: Arc<Ingest>,
}

/// The whole application.
pub fn app(state: AppState) -> Router {
    Router::new()
        .merge(ingest::router())
        .merge(query::router())
        .with_state(state)
}
