//! Bodies of requests that ask: JSON alone, of a bounded length, within a bounded time.

use crate::api::error::{ApiError, Code};
use axum::body::{Body, Bytes};
use axum::extract::FromRequest;
use axum::http::{HeaderMap, Request, StatusCode, header};
use std::time::Duration;

/// A request's body must have come within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// A page of another site can send any text without being asked, but not JSON.
pub(in crate::api) fn is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or("").trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let kind: String = kind.chars().take(80).collect();
    Err(
        ApiError::new(Code::UnsupportedMediaType, format!("the content type is {kind:?}"))
            .hint("send JSON, with `Content-Type: application/json`"),
    )
}

/// The body of a request that may have so many bytes, as its route has it.
pub(in crate::api) async fn body_of(asked: Request<Body>, most: usize) -> Result<Bytes, ApiError> {
    let body = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(asked, &()))
        .await
        .map_err(|_| {
            ApiError::new(
                Code::BadParameter,
                format!("the body did not come within {} s", BODY_TIMEOUT.as_secs()),
            )
            .status(StatusCode::REQUEST_TIMEOUT)
            .hint("send it at once")
        })?;
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
            Code::TooLarge,
            format!("the body has more than {most} bytes, the most that such a request may have"),
        )
        .hint("shorten it"),
        _ => ApiError::new(Code::BadParameter, format!("the body cannot be read: {rejection}")).hint("send it again"),
    })
}
