//! Answers of the API, compressed as the asker accepts it: a large flamegraph is megabytes of JSON.

use super::{ApiError, AppState, body, tags};
use crate::query::{Account, QueryError};
use crate::render::Writer;
use axum::body::{Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use std::io::Write;

/// A smaller answer fits a packet or two as it is.
const MIN_BYTES: u64 = 1024;

/// Cheap levels: above them the CPU time of the server grows faster than the answer shrinks.
const ZSTD_LEVEL: i32 = 1;
const GZIP_LEVEL: u32 = 1;

/// Whether the asker accepts an encoding: it names it, or everything, and not with the quality 0.
pub(super) fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING);
    let parts = || {
        let values = values.iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(|part| {
            let (name, quality) = part.split_once(';').unwrap_or((part, "q=1"));
            let quality = quality.trim().strip_prefix("q=").and_then(|number| number.parse().ok());
            (name.trim(), quality.unwrap_or(1.0_f32))
        })
    };
    let find = |wanted: &str| parts().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    find(encoding)
        .or_else(|| find("*"))
        .is_some_and(|(_, quality)| quality > 0.0)
}

/// A way to compress that the asker accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Zstd,
    Gzip,
}

impl Encoding {
    fn choose(headers: &HeaderMap) -> Option<Self> {
        let known = [("zstd", Self::Zstd), ("gzip", Self::Gzip)];
        known
            .into_iter()
            .find(|(name, _)| accepts(headers, name))
            .map(|(_, encoding)| encoding)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Pieces are dropped as they are written: what they take is free for what they become.
    fn compress(self, pieces: Vec<Bytes>, to: &mut Writer) -> std::io::Result<()> {
        match self {
            Self::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(to, ZSTD_LEVEL)?;
                let bytes: usize = pieces.iter().map(Bytes::len).sum();
                encoder.set_pledged_src_size(Some(bytes as u64))?;
                for piece in pieces {
                    encoder.write_all(&piece)?;
                }
                encoder.finish().map(drop)
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(to, flate2::Compression::new(GZIP_LEVEL));
                for piece in pieces {
                    encoder.write_all(&piece)?;
                }
                encoder.finish().map(drop)
            }
        }
    }
}

/// How an answer of some size to who asks so is packed.
pub(super) fn encoding_of(headers: &HeaderMap) -> Option<&'static str> {
    Encoding::choose(headers).map(Encoding::name)
}

/// Compresses text of some size. Other content (pprof is gzip already) and answers without an end pass as they are.
pub(super) async fn answers(State(state): State<AppState>, request: Request, next: Next) -> Response {
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
            let account = Account::new(&state.store.snapshot(), "answers as they are compressed");
            compressed(response, encoding, account)
                .await
                .unwrap_or_else(IntoResponse::into_response)
        }
        _ => response,
    }
}

async fn compressed(response: Response, encoding: Encoding, account: Account) -> Result<Response, ApiError> {
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
