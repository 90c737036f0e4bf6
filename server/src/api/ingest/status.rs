//! What a sender is told that is refused: `google.rpc.Status`, in the encoding in which it asked.
//!
//! In: an answer of the API that is an error. Out: the same with a body that OTLP's exporters read. Field numbers are
//! those of `google/rpc/status.proto` and `google/rpc/error_details.proto`.

use super::request::{HTTP_PATH, JSON, PROTOBUF};
use crate::api::error::Told;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use prost::encoding::{int32, string, uint32};
use tonic::Code;

/// The API's own code of an error, such as `bad_profile`.
const ERROR_HEADER: &str = "stakeout-error";

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// A `google.rpc.Status`, with the time to wait where it makes sense to send the same again.
pub(super) fn encode(code: i32, said: &str, retry_seconds: Option<u32>) -> Vec<u8> {
    let mut status = Vec::new();
    int32::encode(1, &code, &mut status);
    string::encode(2, &said.to_owned(), &mut status);
    if let Some(seconds) = retry_seconds {
        let mut duration = Vec::new();
        uint32::encode(1, &seconds, &mut duration);
        let mut info = Vec::new();
        prost::encoding::bytes::encode(1, &duration, &mut info);
        let mut any = Vec::new();
        string::encode(1, &RETRY_INFO.to_owned(), &mut any);
        prost::encoding::bytes::encode(2, &info, &mut any);
        prost::encoding::bytes::encode(3, &any, &mut status);
    }
    status
}

/// The code that says the same as a status of HTTP.
fn code_of(status: StatusCode) -> Code {
    match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::Unimplemented,
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        _ if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT => Code::InvalidArgument,
        _ => Code::Unavailable,
    }
}

/// How whoever sends profiles is told errors: in protobuf who sent protobuf, and in JSON as protobuf maps it who sent
/// that; none for all other requests.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Refused(Option<&'static str>);

impl Refused {
    pub(in super::super) fn of(request: &Request) -> Self {
        if request.uri().path() != HTTP_PATH {
            return Self(None);
        }
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|kind| kind.to_str().ok());
        let essence = content_type.map(|kind| kind.split(';').next().unwrap_or("").trim());
        let is_asked = |kind: &&&str| essence.is_some_and(|essence| essence.eq_ignore_ascii_case(kind));
        Self([PROTOBUF, JSON].iter().find(is_asked).copied())
    }

    pub(in super::super) fn told(self, response: Response) -> Response {
        match self.0 {
            Some(asked) => tell(asked, response),
            None => response,
        }
    }
}

fn tell(asked: &'static str, mut response: Response) -> Response {
    let Some(told) = response.extensions_mut().remove::<Told>() else {
        return response;
    };
    let code = code_of(response.status()) as i32;
    let body = if asked == PROTOBUF {
        encode(code, &told.said(), told.retry_after_seconds)
    } else {
        serde_json::json!({"code": code, "message": told.said()})
            .to_string()
            .into_bytes()
    };
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
        .headers_mut()
        .insert(ERROR_HEADER, HeaderValue::from_static(told.code));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(asked));
    *response.body_mut() = body.into();
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_the_bytes_that_protoc_makes() {
        // 08 code, 12 message, 1a details { 0a type_url, 12 value { 0a retry_delay { 08 seconds } } }
        assert_eq!(encode(3, "no", None), b"\x08\x03\x12\x02no");
        let told = encode(14, "later", Some(2));
        let any = [b"\x0a\x28", RETRY_INFO.as_bytes(), b"\x12\x04\x0a\x02\x08\x02"].concat();
        let right = [b"\x08\x0e\x12\x05later\x1a".as_slice(), &[any.len() as u8], &any].concat();
        assert_eq!(told, right);
    }
}
