//! A request with profiles: its headers, its body, and its answer over HTTP.

use crate::api::error::{ApiError, Code};
use crate::api::state::AppState;
use crate::ingest::{Encoding, Form, IngestError, Outcome};
use crate::store::{BatchId, Sender, StoreError};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceResponse,
};
use prost::Message;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

pub(crate) const PROTOBUF: &str = "application/x-protobuf";

pub(crate) const JSON: &str = "application/json";

/// Where profiles are taken over HTTP.
pub(crate) const HTTP_PATH: &str = "/v1development/profiles";

/// Identity of a batch, as headers and as gRPC metadata.
pub(crate) const INSTANCE_HEADER: &str = "stakeout-instance";

pub(crate) const BATCH_HEADER: &str = "stakeout-batch";

/// The version of the profiles' schema, as OTLP numbers it while that may still change. Who says none speaks the first.
pub(crate) const VERSION_HEADER: &str = "otlp-profiles-development-version";

pub(crate) const VERSION: &str = "1";

/// Samples that were left out: OTLP's own answer counts profiles only, and an agent's account is exact.
pub(crate) const REJECTED_HEADER: &str = "stakeout-rejected-samples";

/// A body must have arrived in this time.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Room that is kept for a body or message that does not say its length: more than an agent's, less than the largest.
pub(crate) const UNKNOWN_LENGTH_BYTES: usize = 8 << 20;

/// Of a header that is refused so many values, and characters, are shown.
pub(crate) const MOST_SHOWN: usize = 60;

/// What a sender is asked to wait before it tries again, seconds.
pub(crate) const RETRY_SECONDS: u32 = 2;

pub(crate) const DISK_FULL_RETRY_SECONDS: u32 = 15;

pub(crate) const CLOCK_RETRY_SECONDS: u32 = 10;

pub(crate) async fn http(State(state): State<AppState>, request: Request) -> Result<Response, ApiError> {
    let read = async {
        let form = content_type(request.headers())?;
        check_version(request.headers())?;
        let encoding = content_encoding(request.headers())?;
        Ok::<_, ApiError>((form, arrive(&state, request, encoding).await?))
    };
    let (form, arrived) = read.await.inspect_err(|error| refuse(&state, error))?;
    let content_type = if form == Form::Json { JSON } else { PROTOBUF };
    let Arrived {
        body,
        encoding,
        id,
        body_permit,
        sender,
    } = arrived;
    let outcome = state
        .ingest
        .ingest_form(body, encoding, form, id, body_permit, sender)
        .await?;
    let rejected = outcome.rejected_samples;
    let body = match content_type {
        JSON => json_response(outcome),
        _ => response(outcome).encode_to_vec(),
    };
    let mut answer = ([(header::CONTENT_TYPE, content_type)], body).into_response();
    if rejected > 0 {
        answer.headers_mut().insert(REJECTED_HEADER, rejected.into());
    }
    Ok(answer)
}

/// A body with what its headers say of it.
pub(crate) struct Arrived {
    pub(crate) body: Bytes,
    pub(crate) encoding: Encoding,
    pub(crate) id: Option<BatchId>,
    pub(crate) body_permit: OwnedSemaphorePermit,
    pub(crate) sender: Sender,
}

pub(crate) async fn arrive(state: &AppState, request: Request, encoding: Encoding) -> Result<Arrived, ApiError> {
    let (parts, body) = request.into_parts();
    let id = batch_id(&parts.headers)?;
    let limit = state.ingest.config().max_body_bytes;
    let announced = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let body_permit = state
        .ingest
        .reserve(announced.unwrap_or(UNKNOWN_LENGTH_BYTES.min(limit)))
        .await?;
    let body = receive(body, limit).await?;
    Ok(Arrived {
        body,
        encoding,
        id,
        body_permit,
        sender: sender(&parts.extensions),
    })
}

/// Remembers what is refused for good before anything is known of its sender.
pub(crate) fn refuse(state: &AppState, error: &ApiError) {
    if !matches!(error.code(), Code::Overloaded | Code::Timeout) {
        let now_ns = chrono::Utc::now().timestamp_nanos_opt().unwrap_or_default();
        state
            .ingest
            .senders
            .refused("", error.code().as_str(), &error.to_string(), now_ns);
    }
}

/// Whose token the request came with.
pub(crate) fn sender(extensions: &Extensions) -> Sender {
    extensions.get().cloned().unwrap_or_default()
}

pub(crate) fn content_type(headers: &HeaderMap) -> Result<Form, ApiError> {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let essence = value.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case(PROTOBUF) {
        return Ok(Form::Protobuf);
    }
    if essence.eq_ignore_ascii_case(JSON) {
        return Ok(Form::Json);
    }
    let message = match essence {
        "" => "the request has no content type".to_owned(),
        other => format!("content type {other:?} is not supported"),
    };
    Err(ApiError::new(Code::UnsupportedMediaType, message)
        .hint("send OTLP profiles as application/x-protobuf or application/json, or as gRPC to the same port"))
}

pub(crate) fn content_encoding(headers: &HeaderMap) -> Result<Encoding, ApiError> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else {
        return Ok(Encoding::Identity);
    };
    let value = value.to_str().unwrap_or("?");
    Encoding::from_header(value).ok_or_else(|| {
        ApiError::new(
            Code::UnsupportedMediaType,
            format!("content encoding {value:?} is not supported"),
        )
        .hint("allowed: identity, gzip, zstd")
    })
}

/// Refuses another version than is read here: its fields would be taken for others. OTLP asks for the exact number,
/// given once.
pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    let given: Vec<_> = headers.get_all(VERSION_HEADER).iter().take(MOST_SHOWN).collect();
    if matches!(given[..], []) || matches!(given[..], [one] if one == VERSION) {
        return Ok(());
    }
    let given: Vec<_> = given
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    let given: String = given.join(", ").chars().take(MOST_SHOWN).collect();
    Err(ApiError::new(
        Code::BadProfile,
        format!("{VERSION_HEADER} is {given:?}; only version {VERSION} is read, given once or not at all"),
    )
    .hint("have the sender's version of OpenTelemetry profiles match the server's, or update the server"))
}

pub(crate) fn batch_id(headers: &HeaderMap) -> Result<Option<BatchId>, ApiError> {
    let bad = |message: String| {
        ApiError::new(Code::BadProfile, message)
            .hint("stakeout-instance is a UUID, stakeout-batch a number from 1 up; give both or none")
    };
    match (headers.get(INSTANCE_HEADER), headers.get(BATCH_HEADER)) {
        (None, None) => Ok(None),
        (Some(instance), Some(number)) => {
            let instance = instance
                .to_str()
                .map_err(|_| bad(format!("{INSTANCE_HEADER} is not text")))?;
            let number = number
                .to_str()
                .ok()
                .and_then(|number| number.parse().ok())
                .ok_or_else(|| bad(format!("{BATCH_HEADER} is not a number")))?;
            Ok(Some(BatchId {
                instance: instance.to_owned(),
                number,
            }))
        }
        _ => Err(bad(format!(
            "of the headers {INSTANCE_HEADER} and {BATCH_HEADER} only one is there"
        ))),
    }
}

pub(crate) async fn receive(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(IngestError::TooLarge {
            what: "the body",
            limit_bytes: limit,
        }
        .into()),
        Ok(Err(error)) => Err(ApiError::new(Code::BadProfile, "the body broke off")
            .hint("send the batch again")
            .cause(error)),
        Err(_) => Err(ApiError::new(
            Code::Timeout,
            format!("the body did not arrive within {BODY_TIMEOUT:?}"),
        )
        .status(StatusCode::REQUEST_TIMEOUT)
        .hint("send the batch again")),
    }
}

pub(crate) fn response(outcome: Outcome) -> ExportProfilesServiceResponse {
    let partial_success = (!outcome.message.is_empty()).then_some(ExportProfilesPartialSuccess {
        rejected_profiles: outcome.rejected_profiles,
        error_message: outcome.message,
    });
    ExportProfilesServiceResponse { partial_success }
}

/// The same in JSON, where a number of 64 bits is a text.
pub(crate) fn json_response(outcome: Outcome) -> Vec<u8> {
    let answer = match outcome.message.is_empty() {
        true => serde_json::json!({}),
        false => serde_json::json!({"partialSuccess": {
            "rejectedProfiles": outcome.rejected_profiles.to_string(),
            "errorMessage": outcome.message,
        }}),
    };
    answer.to_string().into_bytes()
}

impl From<IngestError> for ApiError {
    fn from(error: IngestError) -> Self {
        let message = error.to_string();
        match error {
            IngestError::TooLarge { .. } => {
                Self::new(Code::TooLarge, message).hint("send the samples in several smaller batches")
            }
            IngestError::Compression { .. } => Self::new(Code::BadProfile, message)
                .hint("the body must be compressed as Content-Encoding says: identity, gzip or zstd"),
            IngestError::Protobuf { .. } | IngestError::Text { .. } => {
                Self::new(Code::BadProfile, message).hint("the format is OTLP profiles, v1development")
            }
            IngestError::Layout { .. } => Self::new(Code::BadProfile, message).hint(
                "let the sender use a version of its SDK, profiler or Collector whose opentelemetry-proto is read here",
            ),
            IngestError::Index { .. } => {
                Self::new(Code::BadProfile, message).hint("an index must be at least 0 and below the table's size")
            }
            IngestError::Invalid(_) => {
                Self::new(Code::BadProfile, message).hint("server/docs/wire.md says what a request has to carry")
            }
            IngestError::Busy => Self::new(Code::Overloaded, message)
                .hint("try again shortly")
                .retry_after(RETRY_SECONDS),
            IngestError::Ahead { .. } => Self::new(Code::Overloaded, message)
                .hint(
                    "send it again; samples that are ahead are left out only some time after the start (--clock-wait)",
                )
                .retry_after(CLOCK_RETRY_SECONDS),
            IngestError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::DiskFull { .. } => Self::new(Code::DiskFull, error.to_string())
                .hint("keep the batch and send it again; queries go on")
                .retry_after(DISK_FULL_RETRY_SECONDS),
            StoreError::QuotaUsedUp { retry_seconds, .. } => Self::new(Code::QuotaExceeded, error.to_string())
                .hint("keep the batch and send it again; the quota stands in the server's --ingest-token-file")
                .retry_after(*retry_seconds),
            StoreError::Overloaded { .. }
            | StoreError::TooManyInstances { .. }
            | StoreError::HourGone
            | StoreError::Stopping
            | StoreError::Forgotten => Self::new(Code::Overloaded, error.to_string())
                .hint("try again shortly")
                .retry_after(RETRY_SECONDS),
            _ => Self::new(Code::Internal, "the samples could not be stored")
                .hint("keep the batch and send it again; the server's log has the cause")
                .retry_after(RETRY_SECONDS)
                .cause(error),
        }
    }
}
