//! The only HTTP room: routes, errors, limits.
//!
//! In: HTTP requests. Out: JSON, protobuf and files. Never computes: it calls `ingest`, `store`, `query` and `render`.

mod agents;
mod answers;
mod around;
mod assets;
mod bodies;
mod bursts;
mod door;
pub mod error;
pub mod exchange;
mod ingest;
mod metrics;
mod notes;
mod openapi;
mod ops;
mod parameters;
mod patience;
pub mod query;
mod serve;
mod state;

pub use agents::Agents;
pub use bursts::BurstAgents;
pub use door::hosts::Hosts;
pub use door::{Guesses, Sessions, Tokens};
pub use error::ApiError;
pub use serve::serve;
pub use state::AppState;
pub(crate) use state::Times;

#[cfg(any(test, fuzzing))]
pub(crate) use parameters::fuzz_parameters;

use crate::query::Spread;
use axum::Router;
use axum::middleware;
use std::sync::Arc;

/// The whole application.
pub fn app(state: AppState) -> Router {
    let Routes {
        questions,
        texts,
        others,
    } = Routes::of(state.store.query_memory_bytes(), state.spread.clone());
    let texts = texts.merge(questions.layer(middleware::from_fn_with_state(state.clone(), answers::tags::answers)));
    let routes = texts
        .layer(middleware::from_fn_with_state(
            state.clone(),
            answers::compress::answers,
        ))
        .merge(others)
        .layer(middleware::from_fn_with_state(Arc::new(state.clone()), around::routes))
        .with_state(state);
    // Which methods a path takes is said only outside of all that is laid around it.
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(around::everything))
}

/// Every route, by what is laid around it.
struct Routes {
    /// Their answers are compressed, and tagged.
    questions: Router<AppState>,
    /// Their answers are compressed.
    texts: Router<AppState>,
    others: Router<AppState>,
}

impl Routes {
    /// Those of a store whose queries may take so much memory, and are counted by these servers.
    fn of(query_memory_bytes: usize, spread: Spread) -> Routes {
        Routes {
            questions: query::router(query_memory_bytes, spread, notes::router()),
            texts: Router::new()
                .merge(ops::router())
                .merge(openapi::router())
                .merge(bursts::router()),
            others: Router::new()
                .merge(ingest::router())
                .merge(bursts::agents_router())
                .merge(door::router())
                .merge(assets::router()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// axum names the paths of a router nowhere but here.
    fn paths(router: &Router<AppState>) -> Vec<String> {
        let shown = format!("{router:?}");
        // What stands behind is the page's, which answers whatever no route takes.
        let shown = shown.split("fallback_router").next().unwrap_or_default();
        let paths = regex::Regex::new(r#"RouteId\(\d+\): "([^"]+)""#).unwrap();
        paths.captures_iter(shown).map(|path| path[1].to_owned()).collect()
    }

    #[test]
    fn every_route_is_in_the_document_and_the_reverse() {
        let Routes {
            questions,
            texts,
            others,
        } = Routes::of(1 << 20, Spread::default());
        let mut routes: Vec<String> = [&questions, &texts, &others].into_iter().flat_map(paths).collect();
        routes.sort_unstable();
        assert_eq!(paths(&questions).len(), 16, "{questions:?}");
        assert_eq!(routes, openapi::paths());
    }
}
