//! The only HTTP room: routes, errors, limits.
//!
//! In: HTTP requests. Out: JSON, protobuf and files. Never computes: it calls `ingest`, `store`, `query` and `render`.

mod agents;
mod answers;
mod around;
mod assets;
mod door;
pub mod error;
mod ingest;
mod ops;
mod parameters;
mod patience;
pub mod query;
mod serve;
mod state;
mod unread;

pub use agents::Agents;
pub use door::hosts::Hosts;
pub use door::{Guesses, Sessions, Tokens};
pub use error::ApiError;
pub use serve::serve;
pub use state::AppState;
pub(crate) use state::Times;

#[cfg(any(test, fuzzing))]
pub(crate) use parameters::fuzz_parameters;

use axum::Router;
use axum::middleware;
use std::sync::Arc;

/// The whole application.
pub fn app(state: AppState) -> Router {
    let questions = query::router(state.store.query_memory_bytes());
    let answers = Router::new()
        .merge(ops::router())
        .merge(questions.layer(middleware::from_fn_with_state(state.clone(), answers::tags::answers)));
    let routes = Router::new()
        .merge(answers.layer(middleware::from_fn_with_state(
            state.clone(),
            answers::compress::answers,
        )))
        .merge(ingest::router())
        .merge(door::router())
        .merge(assets::router())
        .layer(middleware::from_fn_with_state(Arc::new(state.clone()), around::routes))
        .with_state(state);
    // Which methods a path takes is said only outside of all that is laid around it.
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(around::everything))
}
