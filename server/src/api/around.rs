//! What is done around each request, whatever it asks for.
//!
//! Two layers and no more: a layer of axum copies for each request all that lies inside of it. Ten of them took about
//! a fortieth of the CPU time in which batches of 800 samples are taken in.

use super::bodies::unread;
use super::error::{ApiError, Code};
use super::{AppState, Times, bursts, door, ingest};
use crate::durations::Durations;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

/// Says in the asker's way what the routes have answered, and reads what they left unread.
pub(super) async fn everything(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let refused = ingest::Refused::of(&request);
    let call = ingest::Call::of(&request);
    let is_open = door::door(uri.path()) == door::Door::Open;
    let response = unread::read_rest(request, is_open, |request| next.run(request)).await;
    let response = method_error(&method, &uri, response);
    call.told(&uri, refused.told(response))
}

/// Lets in who may, and says what holds for each answer.
pub(super) async fn routes(State(state): State<Arc<AppState>>, mut request: Request, next: Next) -> Response {
    name_host(&mut request);
    let is_login = request.uri().path() == "/login";
    let of_door = duration_of(&state.times, request.uri().path());
    let begun = Instant::now();
    let answer = async {
        // Before anything else is looked at.
        match state.hosts.check(request.headers()) {
            Ok(()) => door::guard(&state, request, next).await,
            Err(error) => error.into_response(),
        }
    };
    // A panic ends one request, with an answer.
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    let mut response =
        answer.unwrap_or_else(|_| ApiError::internal("it panicked, as the log says above").into_response());
    if let Some(of_door) = of_door {
        of_door.add(begun.elapsed());
    }
    secure(is_login, &mut response);
    response
}

/// HTTP/2 names the host in the request's URI; the rooms behind read the header of HTTP/1.1.
fn name_host(request: &mut Request) {
    if let Some(authority) = request.uri().authority()
        && !request.headers().contains_key(header::HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(header::HOST, host);
    }
}

/// None of questions that are held until there is something to say.
fn duration_of<'a>(times: &'a Times, path: &str) -> Option<&'a Durations> {
    match door::door(path) {
        _ if path == bursts::AGENTS_PATH => None,
        door::Door::Open => Some(&times.open),
        door::Door::Ingest => Some(&times.ingest),
        door::Door::View | door::Door::Burst => Some(&times.view),
    }
}

/// A wrong method is an error like others, with the methods that are right.
fn method_error(method: &Method, uri: &Uri, mut response: Response) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return response;
    }
    let headers = std::mem::take(response.headers_mut());
    let allow = headers.get(header::ALLOW).and_then(|allow| allow.to_str().ok());
    let allowed = allow.unwrap_or("other methods").replace(',', ", ");
    let path: String = uri.path().chars().take(80).collect();
    let error = ApiError::new(Code::MethodNotAllowed, format!("`{path}` does not take {method}"));
    let mut told = error.hint(format!("it takes {allowed}")).into_response();
    for (name, value) in &headers {
        if !matches!(*name, header::CONTENT_LENGTH | header::CONTENT_TYPE) {
            told.headers_mut().insert(name, value.clone());
        }
    }
    told
}

/// Nothing but this server's own files runs or is shown on its pages, and nobody frames them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The login page's form goes to this server.
const LOGIN_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

fn secure(is_login: bool, response: &mut Response) {
    let headers = response.headers_mut();
    let policy = if is_login { LOGIN_POLICY } else { POLICY };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // A form would not tell its origin either under `no-referrer`.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
