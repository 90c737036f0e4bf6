//! What the API takes and answers, once: the endpoints check their parameters by it, and it is served as an OpenAPI
//! document.
//!
//! In: nothing but this crate's own tables. Out: parameters with their ranges, and the document as JSON. Never reads
//! the store, and knows no handler.

mod all;
mod answers;
mod document;
pub(super) mod format;
pub(super) mod operation;
pub(super) mod parameter;
mod schema;
mod tag;
#[cfg(test)]
mod tests;

use super::AppState;
use super::answers::tags::CACHING;
use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::LazyLock;

/// It is the same for everybody as long as the process lives.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| document::document().to_string());

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/api/v1/openapi.json", get(openapi))
}

async fn openapi() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, CACHING),
    ];
    (headers, DOCUMENT.as_str()).into_response()
}

/// Every path that is documented, in the order of their names.
#[cfg(test)]
pub(super) fn paths() -> Vec<&'static str> {
    let paths: std::collections::BTreeSet<&str> = all::ALL.iter().map(|operation| operation.path).collect();
    paths.into_iter().collect()
}
