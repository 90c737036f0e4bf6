//! OTLP's gRPC service.

use super::request::{UNKNOWN_LENGTH_BYTES, batch_id, check_version, refuse, response, sender};
use super::status;
use crate::api::error::{ApiError, Code};
use crate::api::state::AppState;
use crate::ingest::{Encoding, IngestError};
use crate::store::Sender;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use bytes::{Buf, Bytes};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use prost::Message;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code as GrpcCode, Status};

pub(super) const PATH: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

/// A call, its wait for the commit included, ends after this.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) async fn export(State(state): State<AppState>, request: Request) -> Response {
    let most = state.ingest.config().max_body_bytes;
    let body_permit = match state.ingest.reserve(UNKNOWN_LENGTH_BYTES.min(most)).await {
        Ok(body_permit) => body_permit,
        Err(error) => return status_of(&error.into()).into_http(),
    };
    let mut grpc = tonic::server::Grpc::new(RawCodec)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd)
        .apply_max_message_size_config(Some(most), None);
    let call = grpc.unary(
        Export {
            state: state.clone(),
            body_permit: Some(body_permit),
            sender: sender(request.extensions()),
        },
        request,
    );
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(response) => for_good(&state, response.map(Body::new)),
        Err(_) => Status::unavailable("the call took too long; send the batch again").into_http(),
    }
}

struct Export {
    state: AppState,
    /// Kept for the message while it is received and decoded.
    body_permit: Option<OwnedSemaphorePermit>,
    sender: Sender,
}

impl tonic::server::UnaryService<Bytes> for Export {
    type Response = ExportProfilesServiceResponse;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Self::Response>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let state = self.state.clone();
        let body_permit = self.body_permit.take();
        let sender = self.sender.clone();
        Box::pin(async move {
            let (metadata, _, message) = request.into_parts();
            let headers = metadata.into_headers();
            let id = check_version(&headers).and_then(|()| batch_id(&headers));
            let id = id.map_err(|error| {
                refuse(&state, &error);
                status_of(&error)
            })?;
            let body_permit = body_permit.ok_or_else(|| Status::internal("a unary call has one message"))?;
            match state
                .ingest
                .ingest(message, Encoding::Identity, id, body_permit, sender)
                .await
            {
                Ok(outcome) => Ok(tonic::Response::new(response(outcome))),
                Err(error) => Err(status_of(&error.into())),
            }
        })
    }
}

/// As the OTLP specification maps them: what a sender may repeat is UNAVAILABLE and says when, all else is for good.
fn status_of(error: &ApiError) -> Status {
    let code = match error.code() {
        Code::Overloaded | Code::DiskFull | Code::Timeout | Code::Internal => GrpcCode::Unavailable,
        Code::Unauthorized => GrpcCode::Unauthenticated,
        Code::NotFound | Code::MethodNotAllowed => GrpcCode::Unimplemented,
        // Without a time to wait it is for good, and with one it may be repeated.
        Code::TooLarge | Code::QuotaExceeded => GrpcCode::ResourceExhausted,
        _ => GrpcCode::InvalidArgument,
    };
    match (code, error.retry_after_seconds()) {
        (GrpcCode::Unavailable | GrpcCode::ResourceExhausted, Some(seconds)) => {
            let details = status::encode(code as i32, &error.to_string(), Some(seconds));
            Status::with_details(code, error.to_string(), details.into())
        }
        _ => Status::new(code, error.to_string()),
    }
}

/// The codec says OUT_OF_RANGE of a message that is too large, which exporters repeat: it stays too large.
fn for_good(state: &AppState, response: Response) -> Response {
    const CODE: &str = "grpc-status";
    let code = response.headers().get(CODE).map(HeaderValue::as_bytes);
    if code == Some(b"11") {
        let error = IngestError::TooLarge {
            what: "the message",
            limit_bytes: state.ingest.config().max_body_bytes,
        };
        let error = ApiError::from(error);
        refuse(state, &error);
        return status_of(&error).into_http();
    }
    response
}

/// Whether a request is a call of gRPC, whatever its path is.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Call(bool);

impl Call {
    pub(in super::super) fn of(request: &Request) -> Self {
        let content_type = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        Self(content_type.is_some_and(|kind| kind.starts_with(b"application/grpc")))
    }

    /// Of a method or service that is not there gRPC has its own word, and it is not an error of HTTP.
    pub(in super::super) fn told(self, uri: &Uri, response: Response) -> Response {
        if !self.0 {
            return response;
        }
        match response.status() {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                let path: String = uri.path().chars().take(120).collect();
                Status::unimplemented(format!("there is no method {path} here; profiles go to {PATH}")).into_http()
            }
            StatusCode::UNAUTHORIZED => Status::unauthenticated("the token is missing or wrong").into_http(),
            _ => response,
        }
    }
}

/// Hands the message over undecoded: `ingest` decodes, with its own limits.
#[derive(Debug, Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = ExportProfilesServiceResponse;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = ExportProfilesServiceResponse;
    type Error = Status;

    fn encode(&mut self, item: Self::Item, dst: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(dst).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, src: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = src.remaining();
        Ok(Some(src.copy_to_bytes(length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_is_used_up_says_when_to_repeat_and_what_is_too_large_does_not() {
        let used_up = status_of(&ApiError::new(Code::QuotaExceeded, "used up").retry_after(300));
        assert_eq!(used_up.code(), GrpcCode::ResourceExhausted);
        let told = status::encode(GrpcCode::ResourceExhausted as i32, "used up", Some(300));
        assert_eq!(used_up.details(), told);
        let too_large = status_of(&ApiError::new(Code::TooLarge, "too large"));
        assert_eq!(too_large.code(), GrpcCode::ResourceExhausted);
        assert!(too_large.details().is_empty());
    }
}
