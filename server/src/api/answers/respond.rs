//! Answers to responses: JSON that names what was left out, files to be saved, and what renders them.

use crate::api::answers::body::body;
use crate::api::answers::tags::{CACHING, DAMAGED};
use crate::api::error::ApiError;
use crate::query::{QueryError, Question, Reservation};
use crate::render::{Answer, RenderError, Writer};
use crate::store::Snapshot;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// Most damaged files that an answer names.
const MAX_DAMAGED: usize = 100;

fn json(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, CACHING),
    ];
    (headers, body).into_response()
}

/// An answer from tables whose damaged files were left out says so: in a header, and JSON with their names.
pub(in crate::api) fn json_of(tables: &Snapshot, answer: Answer) -> Result<Response, ApiError> {
    json_of_unit(tables, (answer, None))
}

/// The same of an answer that says which of several units it is of.
pub(in crate::api) fn json_of_unit(
    tables: &Snapshot,
    (answer, choice): (Answer, Option<String>),
) -> Result<Response, ApiError> {
    let mut left_out = tables.left_out();
    if left_out.is_empty() && choice.is_none() {
        return Ok(json(body(answer)));
    }
    // Every answer is an object with fields: these are put before them, whoever has written them.
    let mut head = String::from("{");
    if !left_out.is_empty() {
        left_out.truncate(MAX_DAMAGED);
        let names = serde_json::to_string(&left_out).map_err(ApiError::internal)?;
        head.push_str(&format!("\"damaged_files\":{names},"));
    }
    if let Some(words) = &choice {
        let words = serde_json::to_string(words).map_err(ApiError::internal)?;
        head.push_str(&format!("\"unit_choice\":{words},"));
    }
    Ok(marked(tables, choice, json(body(answer.with_head(head.into_bytes())))))
}

/// The headers of an answer from which damaged files were left out (how many), and of one of several units (in words).
pub(in crate::api) fn marked(tables: &Snapshot, choice: Option<String>, mut response: Response) -> Response {
    if let Some(words) = choice.and_then(|words| HeaderValue::from_bytes(words.as_bytes()).ok()) {
        response.headers_mut().insert("stakeout-unit-choice", words);
    }
    let count = tables.left_out().len();
    if count > 0 {
        response.headers_mut().insert(DAMAGED, HeaderValue::from(count));
    }
    response
}

/// A file to be saved under a name that says what it holds.
pub(in crate::api) fn attachment(
    answer: Answer,
    content_type: &'static str,
    name: &str,
    question: &Question,
    extension: &str,
) -> Response {
    let time = |ns: i64| {
        chrono::DateTime::from_timestamp_nanos(ns)
            .format("%Y%m%dT%H%M%SZ")
            .to_string()
    };
    let window = question.window;
    // A type may have what a header or a file's name must not.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let profile = question.profile.replace(|c| !is_plain(c), "_");
    let disposition = format!(
        "attachment; filename=\"stakeout-{name}-{}-{}-{}.{extension}\"",
        profile,
        time(window.from_ns),
        time(window.until_ns)
    );
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, CACHING.to_owned()),
    ];
    (headers, body(answer)).into_response()
}

/// Rendering large answers is work too, apart from the threads that serve requests, and a part of the query: it is
/// done in the query's turn, and on the account of queries.
pub(in crate::api) async fn rendered(
    tables: &Snapshot,
    work: impl FnOnce(&mut Writer) -> Result<(), RenderError> + Send + 'static,
) -> Result<Answer, QueryError> {
    let mut to = Writer::new(Reservation::new(tables, "answers as they are written"));
    let written = tokio::task::spawn_blocking(move || {
        let done = work(&mut to);
        to.finish(done)
    });
    written
        .await
        .map_err(|error| QueryError::internal("write the answer", error))?
}
