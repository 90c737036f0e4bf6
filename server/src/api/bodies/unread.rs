//! What is left of a request's body when its answer is there.
//!
//! A refusal often comes before all of the body: it is too large, or its token is wrong. HTTP/1 can't go on then, and
//! whoever still sends finds the connection closed before he looks for an answer: a sender of OTLP takes that for a
//! fault of the network and sends the same again and again. So what is left is read, and thrown away, before the
//! answer: within bounds, and without memory. HTTP/2 ends one stream and needs none of it.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{StatusCode, Version, header};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Bytes, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// Of a body whose sender was let in: twice what one may have.
pub(in crate::api) const UNREAD_BYTES: usize = 64 << 20;
pub(in crate::api) const UNREAD_SECONDS: u64 = 60;

/// Of a body whose sender was not: most batches of profiles have less.
pub(in crate::api) const STRANGER_UNREAD_BYTES: usize = 4 << 20;
pub(in crate::api) const STRANGER_UNREAD_SECONDS: u64 = 10;

/// Answers a request, and reads what nobody wanted of it where it is refused. `is_strangers`: nobody was asked who he
/// is.
pub(in crate::api) async fn read_rest<F: Future<Output = Response>>(
    request: Request,
    is_strangers: bool,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
        return answer(request).await;
    }
    // Who waits to be told to send has not begun.
    let asks_first = request.headers().contains_key(header::EXPECT);
    let back = Arc::new(Mutex::new(None));
    let lend = |body| {
        Body::new(Lent {
            body,
            is_begun: false,
            back: back.clone(),
        })
    };
    let response = answer(request.map(lend)).await;
    let status = response.status();
    let rest = back.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((body, is_begun)) = rest
        && !status.is_success()
        && (is_begun || !asks_first)
        && let Some(bounds) = bounds(status, is_strangers)
    {
        throw_away(body, bounds).await;
    }
    response
}

/// How much is read of what is left, and for how many seconds; none where it was waited for already.
fn bounds(status: StatusCode, is_strangers: bool) -> Option<(usize, u64)> {
    let was_refused = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_MANY_REQUESTS
    );
    match status {
        StatusCode::REQUEST_TIMEOUT => None,
        _ if is_strangers || was_refused => Some((STRANGER_UNREAD_BYTES, STRANGER_UNREAD_SECONDS)),
        _ => Some((UNREAD_BYTES, UNREAD_SECONDS)),
    }
}

async fn throw_away(mut body: Body, (most, seconds): (usize, u64)) {
    // What says that it is larger is not worth a beginning.
    if body.size_hint().lower() > most as u64 {
        return;
    }
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > most {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(seconds), read).await;
}

/// A body that comes back when it is dropped, with whether anybody began to read it.
struct Lent {
    body: Body,
    is_begun: bool,
    back: Arc<Mutex<Option<(Body, bool)>>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_begun = true;
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let body = std::mem::take(&mut self.body);
        if !body.is_end_stream() {
            *self.back.lock().unwrap_or_else(PoisonError::into_inner) = Some((body, self.is_begun));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_waited_for_by_who_sends_it_and_once() {
        let seconds = |status, is_strangers| bounds(status, is_strangers).map(|(_, seconds)| seconds);
        assert_eq!(seconds(StatusCode::BAD_REQUEST, false), Some(UNREAD_SECONDS));
        assert_eq!(seconds(StatusCode::BAD_REQUEST, true), Some(STRANGER_UNREAD_SECONDS));
        assert_eq!(seconds(StatusCode::UNAUTHORIZED, false), Some(STRANGER_UNREAD_SECONDS));
        for is_strangers in [false, true] {
            assert_eq!(seconds(StatusCode::REQUEST_TIMEOUT, is_strangers), None);
        }
    }
}
