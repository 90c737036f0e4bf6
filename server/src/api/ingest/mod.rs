//! Profiles over HTTP and gRPC: OTLP's in protobuf and JSON, and pprof.
//!
//! In: requests with a sender's token. Out: rows for the store, and an answer once they are committed, or why not and
//! when to come again. Bodies are decoded by `ingest`.

mod grpc;
mod pyroscope;
mod request;
mod status;

pub(super) use grpc::Call;
pub(super) use status::Refused;

use super::AppState;
use axum::Router;
use axum::routing::post;
use request::{HTTP_PATH, http};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route(HTTP_PATH, post(http))
        .route(grpc::PATH, post(grpc::export))
        .route(pyroscope::PATH, post(pyroscope::ingest))
}
