//! The query endpoints.

use super::AppState;
use axum::Router;

/// Routes of everything that reads.
pub fn router() -> Router<AppState> {
    Router::new()
}
