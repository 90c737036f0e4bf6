//! One error type for every endpoint: what the caller is told, and apart from it what only the log gets.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The closed list of error codes of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A selector, a pattern or SQL cannot be read, or is refused: status 400.
    BadQuery,
    /// A time cannot be read, or a window is none or too long: status 400.
    BadTime,
    /// Another parameter, or a body, cannot be read: status 400.
    BadParameter,
    /// A token is missing or wrong: status 401.
    Unauthorized,
    /// A page of another site asks: status 403.
    Forbidden,
    /// Too many wrong tokens came from this address: status 429.
    TooManyRequests,
    /// What may come by a token in a day is used up: status 429. The same may be sent again, when `Retry-After` says.
    QuotaExceeded,
    /// The name by which the server is asked is not one of its own: status 421.
    Misdirected,
    /// There is no such path, label or file: status 404.
    NotFound,
    /// The path takes other methods, as `Allow` says: status 405.
    MethodNotAllowed,
    /// SQL is not sent as JSON: status 415.
    UnsupportedMediaType,
    /// What was to be replaced is no longer what the request expects: status 412.
    Changed,
    /// The request, its answer, or what that needs is beyond a limit: status 413.
    TooLarge,
    /// A profile cannot be read or breaks the conventions: status 400. It is not to be sent again.
    BadProfile,
    /// Too many requests run, or no memory is free now: status 503. The same may be asked again shortly.
    Overloaded,
    /// The query took longer than it may: status 504.
    Timeout,
    /// The disk of the data directory is full or cannot be written to: status 503. Queries go on.
    DiskFull,
    /// Something broke, and the log has the cause: status 500.
    Internal,
}

impl Code {
    /// The whole list, in the order of their numbers.
    pub(super) const ALL: [Code; 18] = [
        Self::BadQuery,
        Self::BadTime,
        Self::BadParameter,
        Self::Unauthorized,
        Self::Forbidden,
        Self::TooManyRequests,
        Self::QuotaExceeded,
        Self::Misdirected,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::UnsupportedMediaType,
        Self::Changed,
        Self::TooLarge,
        Self::BadProfile,
        Self::Overloaded,
        Self::Timeout,
        Self::DiskFull,
        Self::Internal,
    ];

    /// When a caller gets it.
    pub(super) fn when(self) -> &'static str {
        match self {
            Self::BadQuery => "a selector, a pattern or SQL cannot be read or is refused",
            Self::BadTime => "a time cannot be read, or a window is none or too long",
            Self::BadParameter => "any other parameter, or a body, cannot be read",
            Self::Unauthorized => "a token is missing or wrong",
            Self::Forbidden => "a page of another site asks, or bursts are off",
            Self::TooManyRequests => "too many wrong tokens came from this address, or a burst is under way there",
            Self::QuotaExceeded => "what may come by the token in a day is used up",
            Self::Misdirected => "the name is not this server's",
            Self::NotFound => "there is no such path, label or file",
            Self::MethodNotAllowed => "the path takes other methods, as `Allow` says",
            Self::UnsupportedMediaType => "what is JSON is not sent as such",
            Self::Changed => "what is there is not what `If-Match` or `If-None-Match` says",
            Self::TooLarge => "the request, its answer, or what that needs is beyond a limit",
            Self::BadProfile => "a profile cannot be read or breaks the conventions",
            Self::Overloaded => "too many requests run, or no memory is free now",
            Self::Timeout => "the query took longer than 30 s",
            Self::DiskFull => "the disk of the data directory is full or cannot be written to",
            Self::Internal => "something broke, and the log has the cause",
        }
    }

    /// The code as it stands in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadQuery => "bad_query",
            Self::BadTime => "bad_time",
            Self::BadParameter => "bad_parameter",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::TooManyRequests => "too_many_requests",
            Self::QuotaExceeded => "quota_exceeded",
            Self::Misdirected => "misdirected",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Changed => "changed",
            Self::TooLarge => "too_large",
            Self::BadProfile => "bad_profile",
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::DiskFull => "disk_full",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status that goes with the code.
    pub fn status(self) -> StatusCode {
        match self {
            Self::BadQuery | Self::BadTime | Self::BadParameter | Self::BadProfile => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::TooManyRequests | Self::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Overloaded | Self::DiskFull => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// An answer that is not a success: `{"error":{"code","message","hint"}}`.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    code: Code,
    message: String,
    hint: String,
    status: Option<StatusCode>,
    retry_after_seconds: Option<u32>,
    cause: Option<String>,
}

impl ApiError {
    /// `message` says what was wrong and where.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: String::new(),
            status: None,
            retry_after_seconds: None,
            cause: None,
        }
    }

    /// `hint` says what is allowed or what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Another status than the code's own.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds a `Retry-After` header, in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// The internal cause: logged, never shown.
    #[must_use]
    pub fn cause(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(format!("{cause:#}"));
        self
    }

    /// Something of ours broke: the caller learns no more than that, the log has the cause.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self::new(
            Code::Internal,
            "the server could not answer because of an internal error",
        )
        .hint("the server's log has the cause")
        .cause(cause)
    }

    /// What the caller is asked to wait before it tries again.
    pub(super) fn retry_after_seconds(&self) -> Option<u32> {
        self.retry_after_seconds
    }

    /// The error's code.
    pub fn code(&self) -> Code {
        self.code
    }
}

/// What an answer says, beside its body: for those that want it in another form.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: String,
    pub(super) retry_after_seconds: Option<u32>,
}

impl Told {
    /// In one text.
    pub(super) fn said(&self) -> String {
        match self.hint.as_str() {
            "" => self.message.clone(),
            hint => format!("{} ({hint})", self.message),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status.unwrap_or_else(|| self.code.status());
        if let Some(cause) = &self.cause {
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                tracing::error!(code = self.code.as_str(), cause, "request failed");
            } else {
                tracing::warn!(code = self.code.as_str(), cause, "request refused");
            }
        }
        let body = serde_json::json!({
            "error": {"code": self.code.as_str(), "message": self.message, "hint": self.hint}
        });
        let mut response = (status, Json(body)).into_response();
        response.extensions_mut().insert(Told {
            code: self.code.as_str(),
            message: self.message,
            hint: self.hint,
            retry_after_seconds: self.retry_after_seconds,
        });
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_and_documented() {
        let text = include_str!("../../docs/api.md");
        for (at, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at, "{code:?}");
            let row = format!("| `{}` | {} |", code.as_str(), code.status().as_u16());
            assert!(text.contains(&row), "docs/api.md has no row {row}");
        }
        assert_eq!(Code::ALL.len(), Code::Internal as usize + 1);
        let row = regex::Regex::new(r"(?m)^\| `[a-z_]+` \| [45]\d\d \|").unwrap();
        assert_eq!(
            row.find_iter(text).count(),
            Code::ALL.len(),
            "docs/api.md has a code that is none"
        );
    }
}
