//! Answers of the API, compressed as the asker accepts it: a large flamegraph is megabytes of JSON.

use super::ApiError;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
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

    fn compress(self, plain: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL),
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
                encoder.write_all(plain)?;
                encoder.finish()
            }
        }
    }
}

/// Compresses text of some size. Other content (pprof is gzip already) and answers without an end pass as they are.
pub(super) async fn answers(request: Request, next: Next) -> Response {
    let encoding = Encoding::choose(request.headers());
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if !is_text(headers) || headers.contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let size = response.body().size_hint().exact().unwrap_or(0);
    match encoding {
        Some(encoding) if size >= MIN_BYTES => compressed(response, encoding)
            .await
            .unwrap_or_else(|error| ApiError::internal(error).into_response()),
        _ => response,
    }
}

async fn compressed(
    response: Response,
    encoding: Encoding,
) -> Result<Response, Box<dyn std::error::Error + Send + Sync>> {
    let (mut parts, body) = response.into_parts();
    let plain = to_bytes(body, usize::MAX).await?;
    let body = tokio::task::spawn_blocking(move || encoding.compress(&plain)).await??;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts
        .headers
        .insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    Ok(Response::from_parts(parts, Body::from(body)))
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
