//! Who may have this server count.

use super::SERVER;
use crate::api::door::Tokens;
use crate::api::door::crowd::Visitor;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use tonic::Status;

/// What requests have to show.
#[derive(Debug)]
pub(super) struct Door {
    /// What this server is called among the others.
    pub(super) own: String,
    pub(super) tokens: Tokens,
}

/// Around all that is asked here.
pub(super) async fn check(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    if let Some(refusal) = door.refusal(request.headers()) {
        return refusal.into_http();
    }
    if let Some(visitor) = request.extensions().get::<Arc<Visitor>>() {
        visitor.let_in();
    }
    next.run(request).await
}

impl Door {
    fn refusal(&self, headers: &HeaderMap) -> Option<Status> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let token = text(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        if !self.tokens.accept(token) {
            return Some(Status::unauthenticated("a token of --exchange-token-file is needed"));
        }
        let is_asked = text(SERVER) == Some(self.own.as_str());
        let other = || Status::failed_precondition("another server was asked, whose address this one has by now");
        (!is_asked).then(other)
    }
}
