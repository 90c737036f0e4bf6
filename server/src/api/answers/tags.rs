//! Entity tags of answers: who has an answer whose window is over is told that it still holds, and nothing is counted
//! again.
//!
//! A tag is made of all that an answer is: what is asked for, how it is packed, this process with its flags, and what
//! the tables have for its windows. Where any of its times is relative to now, or not over yet, or a damaged file was
//! left out, an answer has none.

use crate::api::answers::accepts::encoding_of;
use crate::api::state::AppState;
use crate::clock::DAY_NS;
use crate::query;
use crate::query::time::{Window, parse_duration};
use crate::store::Snapshot;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::LazyLock;
use xxhash_rust::xxh3::Xxh3;

/// Of every answer to a question: only this user's browser keeps it, and asks before it shows it again.
pub(crate) const CACHING: &str = "private, no-cache";

/// The header of answers that lack damaged files.
pub(crate) const DAMAGED: &str = "stakeout-damaged-files";

/// All parameters that are times.
const TIMES: [&str; 8] = [
    "from",
    "until",
    "except_from",
    "except_until",
    "base_from",
    "base_until",
    "base_except_from",
    "base_except_until",
];

/// No other process has it, whatever its version and flags.
static PROCESS: LazyLock<[u8; 16]> = LazyLock::new(|| uuid::Uuid::new_v4().into_bytes());

/// The tables that a question is answered from: those whose state is in the answer's tag.
pub(crate) struct Tables(pub(crate) Snapshot);

impl FromRequestParts<AppState> for Tables {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        let tagged = parts.extensions.get::<Snapshot>().cloned();
        Ok(Self(tagged.unwrap_or_else(|| state.store.snapshot())))
    }
}

/// Around questions.
pub(crate) async fn answers(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let tables = state.store.snapshot();
    let now_ns = chrono::Utc::now().timestamp_nanos_opt().unwrap_or(0);
    let tag = tag(&request, &tables, now_ns);
    if let Some(tag) = &tag
        && let Some(known) = known(request.headers(), tag)
    {
        let headers = [
            (header::ETAG, known.as_str()),
            (header::CACHE_CONTROL, CACHING),
            (header::VARY, "accept-encoding"),
        ];
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    request.extensions_mut().insert(tables);
    let mut response = next.run(request).await;
    let is_whole = response.status() == StatusCode::OK && !response.headers().contains_key(DAMAGED);
    if let Some(tag) = tag
        .filter(|_| is_whole)
        .and_then(|tag| HeaderValue::from_str(&quoted(&tag, None)).ok())
    {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// As it stands in headers. An answer that is packed is another one than the same as it is.
fn quoted(tag: &str, encoding: Option<&str>) -> String {
    match encoding {
        Some(encoding) => format!("\"{tag}-{encoding}\""),
        None => format!("\"{tag}\""),
    }
}

/// What is packed has the tag of what is packed so.
pub(crate) fn packed(headers: &mut HeaderMap, encoding: &str) {
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let tag = tag.map(|tag| quoted(tag.trim_matches('"'), Some(encoding)));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        headers.insert(header::ETAG, tag);
    }
}

/// The tag that the asker says to have of this answer, as it is or packed as he would get it. `*`, which is any, is
/// not taken for it.
fn known(headers: &HeaderMap, tag: &str) -> Option<String> {
    let values = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let mine = [quoted(tag, None), quoted(tag, encoding_of(headers))];
    // A proxy that packs an answer anew makes its tag a weak one.
    tags.find_map(|known| {
        let known = known.trim().trim_start_matches("W/");
        mine.iter().find(|tag| *tag == known).cloned()
    })
}

fn tag(request: &Request, tables: &Snapshot, now_ns: i64) -> Option<String> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or(""));
    let mut parameters = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        // An empty one is none; what is given twice is an error.
        if !value.is_empty() && parameters.insert(name.into_owned(), value.into_owned()).is_some() {
            return None;
        }
    }
    let windows = windows(path, &parameters)?;
    if windows.iter().any(|window| window.until_ns > now_ns) {
        return None;
    }
    let mut hash = Xxh3::new();
    let mut push = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    push(&*PROCESS);
    push(path.as_bytes());
    for (name, value) in &parameters {
        push(name.as_bytes());
        push(value.as_bytes());
    }
    for window in windows {
        push(&query::state(tables, of_lists(path, window)).to_le_bytes());
    }
    Some(format!("{:032x}", hash.digest128()))
}

/// The windows of a question, if all of its times are absolute.
fn windows(path: &str, parameters: &BTreeMap<String, String>) -> Option<Vec<Window>> {
    // Markers come without a change of the tables.
    if path == "/api/v1/markers" {
        return None;
    }
    let get = |name: &str| parameters.get(name).map(String::as_str);
    let is_absolute = |name: &&str| get(name).is_none_or(|time| !time.trim_start().starts_with("now"));
    if !TIMES.iter().all(is_absolute) {
        return None;
    }
    let (from, until) = (get("from")?, get("until")?);
    let parse = |from, until| Window::parse(from, until, ["from", "until"], 0).ok();
    let mut windows = vec![parse(from, until)?];
    if TIMES
        .iter()
        .chain(&["base_query"])
        .any(|name| name.starts_with("base_") && get(name).is_some())
    {
        windows.push(parse(
            get("base_from").unwrap_or(from),
            get("base_until").unwrap_or(until),
        )?);
    }
    if let Some(before) = get("before").filter(|_| path.ends_with("/timeline")) {
        let before_ns = parse_duration(before, "before").ok()?;
        let from_ns = windows[0].from_ns.saturating_sub(before_ns).max(0);
        windows.push(Window { from_ns, ..windows[0] });
    }
    // Who ended waits may have been told shortly before the window.
    if get("stacks") == Some("wakers") || get("waits") == Some("true") {
        windows.push(query::around_waits(windows[0]));
    }
    Some(windows)
}

/// Lists of labels and types are of whole days.
fn of_lists(path: &str, window: Window) -> Window {
    if !path.starts_with("/api/v1/labels") && path != "/api/v1/search" {
        return window;
    }
    Window {
        from_ns: window.from_ns.div_euclid(DAY_NS) * DAY_NS,
        until_ns: (window.until_ns - 1)
            .div_euclid(DAY_NS)
            .saturating_add(1)
            .saturating_mul(DAY_NS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, query: &str) -> Option<Vec<(i64, i64)>> {
        let parameters = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let windows = windows(path, &parameters)?;
        Some(windows.iter().map(|window| (window.from_ns, window.until_ns)).collect())
    }

    #[test]
    fn only_absolute_times_have_tags() {
        const MS: i64 = 1_000_000;
        let (a, b) = ((5 * MS, 9 * MS), (MS, 9 * MS));
        assert_eq!(of("/api/v1/top", "from=5&until=9"), Some(vec![a]));
        assert_eq!(of("/api/v1/diff", "from=5&until=9&base_from=1"), Some(vec![a, b]));
        assert_eq!(of("/api/v1/diff", "from=5&until=9&base_query={}"), Some(vec![a, a]));
        assert_eq!(of("/api/v1/timeline", "from=5&until=9&before=4ms"), Some(vec![a, b]));
        // Wakers of a window are looked for in the second before it, too.
        let late = ((3_005 * MS, 3_009 * MS), (2_005 * MS, 3_009 * MS));
        for with_wakers in ["flamegraph?stacks=wakers", "timeline?waits=true"] {
            let (path, more) = with_wakers.split_once('?').unwrap();
            let asked = format!("from=3005&until=3009&{more}");
            assert_eq!(of(&format!("/api/v1/{path}"), &asked), Some(vec![late.0, late.1]));
        }
        let own = of("/api/v1/flamegraph", "from=3005&until=3009&stacks=own");
        assert_eq!(own, Some(vec![late.0]));
        for relative in [
            "",
            "from=5",
            "until=9",
            "from=5&until=now",
            "from=5&until=9&except_from=5&except_until=%20now-1h",
            "from=5&until=9&base_from=now-1h",
            "from=9&until=5",
            "from=x&until=9",
        ] {
            assert_eq!(of("/api/v1/diff", relative), None, "{relative}");
        }
    }

    #[test]
    fn a_tag_is_known_in_a_list_and_as_a_weak_one() {
        let known = |text: &'static str| {
            let given = [(header::IF_NONE_MATCH, text), (header::ACCEPT_ENCODING, "gzip")];
            let headers = given.map(|(name, value)| (name, HeaderValue::from_static(value)));
            known(&headers.into_iter().collect(), "ab")
        };
        for text in ["\"ab\"", "\"x\", \"ab\"", "W/\"ab\""] {
            assert_eq!(known(text).as_deref(), Some("\"ab\""), "{text}");
        }
        assert_eq!(known("\"ab-gzip\"").as_deref(), Some("\"ab-gzip\""));
        for text in ["*", "ab", "\"abc\"", "\"a\"", "\"ab-zstd\""] {
            assert_eq!(known(text), None, "{text}");
        }
    }
}
