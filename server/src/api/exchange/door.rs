//! Who may have this server count.

use super::SERVER;
use crate::api::door::crowd::Visitor;
use crate::api::door::{Guesses, Tokens};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use std::net::IpAddr;
use std::sync::Arc;
use tonic::Status;

/// What requests have to show.
#[derive(Debug)]
pub(super) struct Door {
    /// What this server is called among the others.
    pub(super) own: String,
    pub(super) tokens: Tokens,
    pub(super) guesses: Guesses,
}

/// Around all that is asked here.
pub(super) async fn check(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let visitor = request.extensions().get::<Arc<Visitor>>();
    if let Some(refusal) = door.refusal(request.headers(), visitor.map(|visitor| visitor.address())) {
        return refusal.into_http();
    }
    if let Some(visitor) = visitor {
        visitor.let_in();
    }
    next.run(request).await
}

impl Door {
    /// None for who may ask, from an address that is not known where a test asks.
    fn refusal(&self, headers: &HeaderMap, from: Option<IpAddr>) -> Option<Status> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let token = text(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        match self.guesses.accept(&self.tokens, token, from) {
            Ok(true) => {}
            Ok(false) => return Some(Status::unauthenticated("a token of --exchange-token-file is needed")),
            Err(seconds) => {
                let what = format!("too many tokens that are not valid came from this address: wait {seconds} s");
                return Some(Status::resource_exhausted(what));
            }
        }
        let is_asked = text(SERVER) == Some(self.own.as_str());
        let other = || Status::failed_precondition("another server was asked, whose address this one has by now");
        (!is_asked).then(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::door::crowd::Crowd;
    use axum::body::Body;
    use axum::{Router, middleware};
    use tower::ServiceExt;

    /// The status of the answer; nothing: it was let in.
    async fn asked(router: &Router, from: &Arc<Visitor>, token: &str, server: &str) -> Option<String> {
        let request = Request::post("/")
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(SERVER, server);
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(from.clone());
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.headers().get("grpc-status");
        status.map(|status| status.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn who_guesses_must_wait_and_nobody_is_let_in_for_another_server() {
        let door = Door {
            own: "a".to_owned(),
            tokens: Tokens::from_lines("right"),
            guesses: Guesses::default(),
        };
        let router = Router::new()
            .fallback(|| async { "in" })
            .layer(middleware::from_fn_with_state(Arc::new(door), check));
        let crowd = Crowd::new(64);
        let [one, other, knows] = [1, 2, 3].map(|last| crowd.enter(IpAddr::from([192, 0, 2, last])));
        // Unauthenticated; of another server; too many.
        let (unknown, not_here, too_many) = (Some("16".to_owned()), Some("9".to_owned()), Some("8".to_owned()));
        assert_eq!(asked(&router, &knows, "right", "a").await, None);
        assert_eq!(asked(&router, &one, "wrong", "a").await, unknown);
        assert_eq!(asked(&router, &other, "right", "b").await, not_here);
        for visitor in [&one, &knows] {
            for _ in 0..30 {
                asked(&router, visitor, "wrong", "a").await;
            }
            assert_eq!(asked(&router, visitor, "wrong", "a").await, too_many);
        }
        assert_eq!(asked(&router, &one, "right", "a").await, too_many);
        assert_eq!(asked(&router, &knows, "right", "a").await, None, "it was right before");
        assert_eq!(asked(&router, &other, "right", "a").await, None);
    }
}
