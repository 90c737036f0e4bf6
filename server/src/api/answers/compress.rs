//! Answers of the API, compressed as the asker accepts it: a large flamegraph is megabytes of JSON.

use crate::api::answers::accepts::Encoding;
use crate::api::answers::{body, tags};
use crate::api::error::ApiError;
use crate::api::state::AppState;
use crate::query::{QueryError, Reservation};
use crate::render::Writer;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;

/// A smaller answer fits a packet or two as it is.
const MIN_BYTES: u64 = 1024;

/// Compresses text of some size. Other content (pprof is gzip already) and answers without an end pass as they are.
pub(crate) async fn answers(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let encoding = Encoding::choose(request.headers());
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if !is_text(headers) || headers.contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let size = response.body().size_hint().exact().unwrap_or(0);
    match encoding {
        Some(encoding) if size >= MIN_BYTES => {
            let account = Reservation::new(&state.store.snapshot(), "answers as they are compressed");
            compressed(response, encoding, account)
                .await
                .unwrap_or_else(IntoResponse::into_response)
        }
        _ => response,
    }
}

async fn compressed(response: Response, encoding: Encoding, account: Reservation) -> Result<Response, ApiError> {
    let (mut parts, mut plain) = response.into_parts();
    let mut pieces = Vec::new();
    while let Some(frame) = plain.frame().await {
        pieces.extend(frame.map_err(ApiError::internal)?.into_data().ok());
    }
    let compress = move || -> Result<_, QueryError> {
        let mut to = Writer::new(account);
        let done = encoding.compress(pieces, &mut to);
        to.finish(done)
    };
    let answer = tokio::task::spawn_blocking(compress)
        .await
        .map_err(ApiError::internal)??;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts
        .headers
        .insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    tags::packed(&mut parts.headers, encoding.name());
    Ok(Response::from_parts(parts, body::body(answer)))
}

fn is_text(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| {
        value.starts_with("text/")
            || ["application/json", "image/svg+xml"]
                .iter()
                .any(|text| value.starts_with(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_is_chosen_and_zstd_first() {
        for (accepted, chosen) in [
            ("gzip, deflate, br, zstd", Some(Encoding::Zstd)),
            ("gzip, deflate", Some(Encoding::Gzip)),
            ("zstd;q=0, GZIP;q=0.5", Some(Encoding::Gzip)),
            ("zstd; q=0.0, gzip; q=0.000", None),
            ("*", Some(Encoding::Zstd)),
            ("*;q=0, gzip", Some(Encoding::Gzip)),
            ("identity", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            assert_eq!(Encoding::choose(&headers), chosen, "{accepted:?}");
        }
        assert_eq!(Encoding::choose(&HeaderMap::new()), None);
    }
}
