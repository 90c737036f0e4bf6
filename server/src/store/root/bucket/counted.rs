//! The client whose requests are counted where they leave: one that is tried again counts again.

use crate::store::root::traffic::{Operation, Outcome, Traffic};
use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    SpawnedReqwestConnector,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::runtime::Handle;

/// Of the method, the query, and whether an object is named to copy from.
fn operation(method: &str, query: &str, copies: bool) -> Operation {
    let has = |key: &str| query.split('&').any(|part| part.split('=').next() == Some(key));
    match method {
        "GET" if has("list-type") || has("delimiter") || has("prefix") || has("comp") => Operation::List,
        "GET" => Operation::Get,
        "HEAD" => Operation::Head,
        "PUT" if copies => Operation::Copy,
        "PUT" | "POST" if has("uploadId") || has("uploads") || has("comp") => Operation::Upload,
        "PUT" => Operation::Put,
        "DELETE" if has("uploadId") => Operation::Upload,
        "DELETE" => Operation::Delete,
        "POST" if has("delete") => Operation::Delete,
        _ => Operation::Other,
    }
}

fn outcome(status: u16) -> Outcome {
    match status {
        200..=399 => Outcome::Ok,
        404 => Outcome::Missing,
        409 | 412 => Outcome::Condition,
        429 | 503 => Outcome::Throttled,
        401 | 403 => Outcome::Denied,
        _ => Outcome::Error,
    }
}

/// Connects the client whose requests are counted, and carried by the threads of a runtime.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) traffic: Arc<Traffic>,
    pub(super) runtime: Handle,
}

impl HttpConnector for Counted {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = SpawnedReqwestConnector::new(self.runtime.clone()).connect(options)?;
        let traffic = self.traffic.clone();
        Ok(HttpClient::new(CountedService { inner, traffic }))
    }
}

#[derive(Debug)]
struct CountedService {
    inner: HttpClient,
    traffic: Arc<Traffic>,
}

#[async_trait]
impl HttpService for CountedService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let headers = request.headers();
        let copies = ["x-amz-copy-source", "x-goog-copy-source", "x-ms-copy-source"]
            .iter()
            .any(|name| headers.contains_key(*name));
        let query = request.uri().query().unwrap_or_default();
        let operation = operation(request.method().as_str(), query, copies);
        let sent = request.body().content_length() as u64;
        self.traffic.sent_bytes.fetch_add(sent, Ordering::Relaxed);
        let begun = Instant::now();
        let answered = self.inner.execute(request).await;
        let status = answered.as_ref().map(|response| response.status().as_u16());
        let outcome = status.map_or(Outcome::Broken, outcome);
        self.traffic.add(operation, outcome, begun.elapsed());
        let (parts, body) = answered?.into_parts();
        let traffic = self.traffic.clone();
        let counted = body.inspect_frame(move |frame| {
            let received = frame.data_ref().map_or(0, |data| data.len() as u64);
            traffic.received_bytes.fetch_add(received, Ordering::Relaxed);
        });
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(counted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_by_what_it_asks_for() {
        for (method, query, copies, expected) in [
            ("GET", "", false, Operation::Get),
            ("GET", "list-type=2&prefix=a%2F", false, Operation::List),
            ("HEAD", "", false, Operation::Head),
            ("PUT", "", false, Operation::Put),
            ("PUT", "", true, Operation::Copy),
            ("POST", "uploads", false, Operation::Upload),
            ("PUT", "partNumber=1&uploadId=x", false, Operation::Upload),
            ("DELETE", "uploadId=x", false, Operation::Upload),
            ("POST", "delete", false, Operation::Delete),
            ("DELETE", "", false, Operation::Delete),
            ("POST", "", false, Operation::Other),
        ] {
            assert_eq!(operation(method, query, copies), expected, "{method} {query}");
        }
    }
}
