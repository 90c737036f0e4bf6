//! Markers of moments, and addresses of the page with names.

use super::AppState;
use super::bodies::asked::{body_of, is_json};
use super::bursts;
use super::error::{ApiError, Code};
use super::openapi::operation::{DELETE_VIEW, GET_MARKERS, GET_VIEW, GET_VIEWS, POST_MARKERS, PUT_VIEW};
use super::parameters::Parameters;
use super::query::answered;
use crate::api::answers::tags::{CACHING, Tables};
use crate::label::Label;
use crate::query::time::Window;
use crate::query::{self, Change, Engine, Moment, Newest, QueryError, Question, Steps, least_step, of_whole_hours};
use crate::store::{Expected, Marker, Put, Refused, Snapshot, View};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Bytes of a body: the longest texts of a marker, and the longest address, with every byte escaped.
const MAX_BODY_BYTES: usize = 128 << 10;

/// Bytes of a marker's id, title and text, and how many labels it has.
const MOST_ID_BYTES: usize = 128;
const MOST_TITLE_BYTES: usize = 200;
const MOST_TEXT_BYTES: usize = 4_096;
const MOST_MARKER_LABELS: usize = 16;

/// Bytes of the value of a marker's label.
const MOST_VALUE_BYTES: usize = 1_024;

/// Bytes of a view's name and of its address.
const MOST_NAME_BYTES: usize = 200;
const MOST_ADDRESS_BYTES: usize = 16_384;

/// Markers that one answer tells one by one; it counts the others.
const MOST_ANSWERED: usize = 2_000;

pub(super) fn router() -> Router<AppState> {
    let bounded = || DefaultBodyLimit::max(MAX_BODY_BYTES);
    Router::new()
        .route("/api/v1/markers", get(markers).post(put_marker).layer(bounded()))
        .route("/api/v1/views", get(views))
        .route(
            "/api/v1/views/{name}",
            get(view).put(put_view).delete(remove_view).layer(bounded()),
        )
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Limit(message) => ApiError::new(Code::TooLarge, message).hint("remove one that nobody needs"),
            Refused::Changed => ApiError::new(Code::Changed, "it is not as `If-Match` or `If-None-Match` says")
                .hint("read it again: somebody else has changed it, made it, or removed it"),
            Refused::Absent => ApiError::new(Code::NotFound, "there is no view of this name").hint("it may be removed"),
            Refused::Failed(error) => ApiError::new(Code::DiskFull, "it could not be written")
                .hint("the server's log has the cause; nothing was changed")
                .cause(error),
        }
    }
}

fn json_answer(answer: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, CACHING),
    ];
    (headers, answer.to_string()).into_response()
}

async fn read<T: DeserializeOwned>(asked: Request<Body>, example: &str) -> Result<T, ApiError> {
    is_json(asked.headers())?;
    let body = body_of(asked, MAX_BODY_BYTES).await?;
    serde_json::from_slice(&body).map_err(|error| {
        ApiError::new(Code::BadParameter, format!("the body cannot be read: {error}"))
            .hint(format!("send JSON such as {example}"))
    })
}

fn bad(message: impl Into<String>, hint: impl Into<String>) -> ApiError {
    ApiError::new(Code::BadParameter, message).hint(hint)
}

/// A text within its bounds, without what would break a line.
fn bounded(name: &str, text: &str, most: usize, lines: bool) -> Result<(), ApiError> {
    let is_control = |c: char| c.is_control() && !(lines && matches!(c, '\n' | '\t'));
    if text.len() > most || text.contains(is_control) {
        let hint = format!("`{name}` has at most {most} bytes and no control characters");
        return Err(bad(
            format!("`{name}` cannot be this text of {} bytes", text.len()),
            hint,
        ));
    }
    Ok(())
}

const MARKER: &str = "{\"title\":\"shop 15 is out\",\"labels\":{\"service\":\"shop\",\"version\":\"15\"}}";

/// A marker as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    id: Option<String>,
    time: Option<Value>,
    title: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Sent {
    fn time_ms(&self, now_ms: i64) -> Result<i64, ApiError> {
        let time_ms = match &self.time {
            None => Some(now_ms),
            Some(Value::String(text)) => chrono::DateTime::parse_from_rfc3339(text)
                .ok()
                .map(|time| time.timestamp_millis()),
            Some(number) => number.as_i64(),
        };
        // From 1970 to a day from now: what is ahead would never be too old.
        time_ms
            .filter(|ms| (0..=now_ms.saturating_add(86_400_000)).contains(ms))
            .ok_or_else(|| {
                bad(
                    "`time` is none",
                    "`time` is RFC 3339 or Unix milliseconds, at most a day ahead; without it, now",
                )
            })
    }

    fn check(&self) -> Result<(), ApiError> {
        if self.title.trim().is_empty() {
            return Err(bad("`title` is empty", "say in a few words what happened"));
        }
        bounded("title", &self.title, MOST_TITLE_BYTES, false)?;
        bounded("text", &self.text, MOST_TEXT_BYTES, true)?;
        if let Some(id) = &self.id {
            bounded("id", id, MOST_ID_BYTES, false)?;
        }
        if self.labels.len() > MOST_MARKER_LABELS {
            let message = format!("`labels` has {} entries", self.labels.len());
            return Err(bad(message, format!("at most {MOST_MARKER_LABELS} are kept")));
        }
        for (name, value) in &self.labels {
            if Label::parse(name).is_none() {
                let name: String = name.chars().take(80).collect();
                return Err(bad(
                    format!("`{name}` in `labels` is no label"),
                    format!("labels are {}", Label::names()),
                ));
            }
            bounded("labels", value, MOST_VALUE_BYTES, false)?;
        }
        Ok(())
    }
}

async fn put_marker(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    asked: Request<Body>,
) -> Result<Response, ApiError> {
    Parameters::read(query, POST_MARKERS.parameters)?;
    let sent: Sent = read(asked, MARKER).await?;
    sent.check()?;
    let now_ms = chrono::Utc::now().timestamp_millis();
    let has_time = sent.time.is_some();
    let marker = Marker {
        time_ms: sent.time_ms(now_ms)?,
        title: sent.title,
        text: sent.text,
        labels: sent.labels,
    };
    // Without an id the same text at the same time is the same marker.
    let id = sent.id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
        let time_ms = if has_time { marker.time_ms } else { now_ms };
        let of = format!("{time_ms}\0{}\0{}\0{:?}", marker.title, marker.text, marker.labels);
        format!("{:032x}", xxh3_128(of.as_bytes()))
    });
    let put = state.store.put_marker(id.clone(), marker, now_ms).await?;
    let (word, removed) = match put {
        Put::Stored { removed } => ("stored", removed),
        Put::Known => ("known", 0),
    };
    Ok(json_answer(&json!({"id": id, "state": word, "removed": removed})))
}

/// What a marker of an answer is about.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    /// Empty where it was found.
    id: String,
    marker: Marker,
    /// Of a burst, when it ended; null where that is not known.
    until_ms: Option<Option<i64>>,
}

fn moment(kind: &'static str, id: String, marker: Marker) -> Moment<Told> {
    Moment {
        time_ms: marker.time_ms,
        kind,
        about: Told {
            id,
            marker,
            until_ms: None,
        },
    }
}

/// A marker of what the server found itself.
fn found(kind: &'static str, change: Change) -> Moment<Told> {
    let marker = Marker {
        time_ms: change.at_ns.div_euclid(1_000_000),
        title: change.title,
        text: String::new(),
        labels: change.labels,
    };
    moment(kind, String::new(), marker)
}

fn told_value(Moment { time_ms, kind, about }: Moment<Told>) -> Value {
    let Told { id, marker, until_ms } = about;
    let (title, text, labels) = (marker.title, marker.text, marker.labels);
    let mut value = json!({"id": id, "kind": kind, "time": time_ms, "title": title, "text": text, "labels": labels});
    if let Some(until_ms) = until_ms {
        value["until"] = json!(until_ms);
    }
    value
}

/// Whether a selector, where it speaks of a label that a marker has, accepts its value: a deployment of a service is
/// one on each of its nodes.
fn is_selected(question: &Question, labels: &BTreeMap<String, String>) -> bool {
    question.selector.matchers().iter().all(|matcher| {
        let of_label = labels
            .iter()
            .filter(|(name, _)| Label::parse(name) == Some(matcher.label()));
        of_label.map(|(_, value)| value).all(|value| matcher.accepts(value))
    })
}

async fn markers(
    State(state): State<AppState>,
    Tables(tables): Tables,
    Extension(engine): Extension<Arc<Engine>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::read(query, GET_MARKERS.parameters)?;
    let (question, kinds) = (parameters.question()?, parameters.word("kinds")?);
    let wants = |kind: &str| kinds == "all" || kinds == kind;
    let window = question.window;
    // The newest are what a chart's reader is at; of older ones the chart has a count in each of its steps. They are
    // told to the millisecond where of samples only hours are left: so a zoom comes to all of them.
    let mut newest = Newest::of(MOST_ANSWERED, Steps::chart(window, query::usual_step(window)));
    if wants("note") {
        let found = state.store.markers((window.from_ms(), window.until_ms()), |marker| {
            is_selected(&question, &marker.labels)
        });
        for (id, marker) in found {
            newest.add(moment("note", id, marker));
        }
    }
    if wants("burst") {
        let bursts = state.store.bursts().all();
        for (id, marker) in bursts::markers(&bursts, (window.from_ms(), window.until_ms())) {
            if is_selected(&question, &marker.labels) {
                let mut moment = moment("burst", id, marker);
                moment.about.until_ms = Some(bursts::end_of(&bursts, &moment.about.id));
                newest.add(moment);
            }
        }
    }
    let (versions, agents) = (wants("version"), wants("agent"));
    let mut uncounted = Vec::new();
    if versions || agents {
        let about = question.clone();
        (newest, uncounted) = answered(&engine, &tables, move |engine, tables| async move {
            with_changes(&engine, &tables, &about, [versions, agents], newest).await
        })
        .await?;
    }
    let (told, older) = newest.told();
    let complete = older.is_empty() && uncounted.is_empty();
    let markers: Vec<Value> = told.into_iter().map(told_value).collect();
    let older: Vec<Value> = older
        .iter()
        .map(|step| json!({"from": step.from_ms, "until": step.until_ms, "counts": step.counts}))
        .collect();
    let answer = json!({
        "query": question.selector.to_string(),
        "from": window.from_ms(),
        "until": window.until_ms(),
        "markers": markers,
        "older": older,
        "uncounted": uncounted,
        "complete": complete,
    });
    Ok(json_answer(&answer))
}

/// The steps of a chart whose asker chose none.
fn usual_steps(tables: &Snapshot, window: Window) -> Steps {
    Steps::chart(window, query::usual_step(window).max(least_step(tables, window)))
}

/// Adds what the samples and batches of a window tell; returns the kinds of which there are too many to be told apart.
async fn with_changes(
    engine: &Engine,
    tables: &Snapshot,
    question: &Question,
    [versions, agents]: [bool; 2],
    mut newest: Newest<Told>,
) -> Result<(Newest<Told>, Vec<&'static str>), QueryError> {
    let mut uncounted = Vec::new();
    if versions {
        let of_versions = of_whole_hours(tables, question.clone());
        let steps = usual_steps(tables, of_versions.window);
        match query::version_changes(engine, tables, &of_versions, steps).await {
            Ok(changes) => {
                for change in changes {
                    newest.add(found("version", change));
                }
            }
            Err(QueryError::TooLarge { .. } | QueryError::TooManyGroups { .. }) => uncounted.push("version"),
            Err(error) => return Err(error),
        }
    }
    if agents {
        let tell = |change: Change| {
            if is_selected(question, &change.labels) {
                newest.add(found("agent", change));
            }
        };
        query::agent_starts(tables, question, tell).await?;
    }
    Ok((newest, uncounted))
}

fn view_value(name: &str, view: &View) -> Value {
    json!({"name": name, "address": view.address, "changed": view.changed_ms, "tag": view.tag()})
}

fn tagged(name: &str, view: &View) -> Response {
    let mut response = json_answer(&view_value(name, view));
    if let Ok(tag) = HeaderValue::from_str(&view.tag()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

async fn views(State(state): State<AppState>, RawQuery(query): RawQuery) -> Result<Response, ApiError> {
    Parameters::read(query, GET_VIEWS.parameters)?;
    let all = state.store.views();
    let list: Vec<Value> = all.iter().map(|(name, view)| view_value(name, view)).collect();
    Ok(json_answer(&json!({ "views": list })))
}

async fn view(
    State(state): State<AppState>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    Parameters::read(query, GET_VIEW.parameters)?;
    let all = state.store.views();
    let view = all.get(&name).ok_or(Refused::Absent)?;
    Ok(tagged(&name, view))
}

/// What the asker takes to be there; without a word of it `otherwise`.
fn expected(headers: &HeaderMap, otherwise: Expected) -> Result<Expected, ApiError> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (None, None) => Ok(otherwise),
        (Some("*"), None) => Ok(Expected::Any),
        (Some(tags), None) => Ok(Expected::Tags(tags.to_owned())),
        (None, Some("*")) => Ok(Expected::None),
        _ => Err(bad(
            "`If-None-Match` is not `*`, or stands with `If-Match`",
            "`If-None-Match: *` makes a view, `If-Match: TAG` changes or removes the one that has this tag",
        )),
    }
}

/// A path of this server with its query. Which one is the page's own: one of another version is kept all the same.
fn is_address(address: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '"' | '<' | '>');
    address.starts_with('/')
        && !address.starts_with("//")
        && !address.contains("token=")
        && address.chars().all(is_plain)
        && address.len() <= MOST_ADDRESS_BYTES
}

async fn put_view(
    State(state): State<AppState>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    asked: Request<Body>,
) -> Result<Response, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sent {
        address: String,
    }
    Parameters::read(query, PUT_VIEW.parameters)?;
    // Who does not say what is there makes a new one, and overwrites nobody's.
    let expected = expected(asked.headers(), Expected::None)?;
    let sent: Sent = read(asked, "{\"address\":\"/explore?from=now-1h\"}").await?;
    if name.trim() != name || name.is_empty() {
        return Err(bad(
            "the name has space around it, or is empty",
            "give it a name in a few words",
        ));
    }
    bounded("name", &name, MOST_NAME_BYTES, false)?;
    if !is_address(&sent.address) {
        return Err(bad(
            "`address` is none of this server",
            format!(
                "it is a path of the page with its query, such as /explore?from=now-1h: ASCII, percent-encoded, without \
                 a token, at most {MOST_ADDRESS_BYTES} bytes"
            ),
        ));
    }
    let now_ms = chrono::Utc::now().timestamp_millis();
    let (view, is_new) = state
        .store
        .put_view(name.clone(), sent.address, expected, now_ms)
        .await?;
    let mut response = tagged(&name, &view);
    if is_new {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

async fn remove_view(
    State(state): State<AppState>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    Parameters::read(query, DELETE_VIEW.parameters)?;
    let expected = expected(&headers, Expected::Any)?;
    state.store.remove_view(name, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_of_this_server() {
        for (address, is_one) in [
            ("/", true),
            ("/explore?query=%7Bservice%3D%22a%22%7D&from=now-1h", true),
            ("/of-another-version?x=1#y", true),
            ("//example.com/", false),
            ("https://example.com/", false),
            ("explore", false),
            ("/\\example.com", false),
            ("/a b", false),
            ("/a\nb", false),
            ("/ä", false),
            ("/?token=secret", false),
            ("", false),
        ] {
            assert_eq!(is_address(address), is_one, "{address}");
        }
        assert!(!is_address(&format!("/{}", "a".repeat(MOST_ADDRESS_BYTES))));
    }

    #[test]
    fn the_limits_are_documented() {
        use crate::store::{MOST_MARKERS, MOST_MARKERS_BYTES, MOST_VIEWS};
        crate::documented(&[
            ("MOST_MARKERS", MOST_MARKERS as u64),
            ("MOST_MARKERS_BYTES", MOST_MARKERS_BYTES as u64),
            ("MOST_ANSWERED", MOST_ANSWERED as u64),
            ("MOST_ID_BYTES", MOST_ID_BYTES as u64),
            ("MOST_TITLE_BYTES", MOST_TITLE_BYTES as u64),
            ("MOST_TEXT_BYTES", MOST_TEXT_BYTES as u64),
            ("MOST_MARKER_LABELS", MOST_MARKER_LABELS as u64),
            ("MOST_VALUE_BYTES", MOST_VALUE_BYTES as u64),
            ("MOST_VIEWS", MOST_VIEWS as u64),
            ("MOST_NAME_BYTES", MOST_NAME_BYTES as u64),
            ("MOST_ADDRESS_BYTES", MOST_ADDRESS_BYTES as u64),
        ]);
    }
}
