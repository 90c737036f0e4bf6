//! Who may come in: names and pages ([`hosts`]), connections ([`crowd`]), tokens and sessions.
//!
//! In: connections and the headers of requests. Out: requests that may go on, with who asks; the others are refused
//! before anything is done for them.
//!
//! Three kinds of tokens, kept apart: a sender's cannot read, a viewer's cannot write, and one for bursts has agents
//! sample more, and nothing else. A browser trades the viewer's token for a cookie of its own. Who has shown no token
//! may send a few kilobytes, and few of them: `server/docs/threats.md` has all limits.

pub(super) mod crowd;
mod guesses;
pub(super) mod hosts;
mod sessions;
mod tokens;

pub use guesses::Guesses;
pub use sessions::Sessions;
pub use tokens::Tokens;

use self::crowd::Visitor;
use self::sessions::SESSION_SECONDS;
use self::tokens::{Holder, digest};
use super::{ApiError, AppState, error::Code};
use crate::store::{Owner, Sender};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Router, routing};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub(super) const COOKIE: &str = "stakeout_view";

/// Largest body that somebody may send who has shown no token.
const STRANGER_BODY_BYTES: usize = 8 << 10;

/// And the time within which it must have come.
const STRANGER_BODY_SECONDS: u64 = 10;

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The token as the password of HTTP's basic authentication, as Pyroscope's clients send it; the user's name says
/// nothing here.
fn basic(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, pair) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    // What cannot be read is a wrong token, and no missing one.
    let pair = base64(pair.trim()).and_then(|pair| String::from_utf8(pair).ok());
    let pair = pair.unwrap_or_default();
    let (_, password) = pair.split_once(':').unwrap_or_default();
    Some(password.trim().to_owned())
}

/// Reads base64 (RFC 4648), with or without `=` at its end.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(digits.len()), 0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        (bits, held) = (bits << 6 | u32::from(value), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    (digits.len() % 4 != 1).then_some(bytes)
}

/// The token that a request shows by itself.
fn token_in(headers: &HeaderMap, door: Door) -> Option<Cow<'_, str>> {
    let bearer = bearer(headers).map(Cow::Borrowed);
    let with_password = || basic(headers).filter(|_| door == Door::Ingest).map(Cow::Owned);
    bearer.or_else(with_password)
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE).then_some(value))
}

/// Who a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Says nothing about samples.
    Open,
    Ingest,
    View,
    /// Has agents do something.
    Burst,
}

/// The same of a method: senders tell of moments that viewers read of.
pub(super) fn door_of(method: &str, path: &str) -> Door {
    match (method, path) {
        ("POST", "/api/v1/markers") => Door::Ingest,
        ("POST", "/api/v1/bursts") => Door::Burst,
        ("DELETE", path) if path.starts_with("/api/v1/bursts/") => Door::Burst,
        _ => door(path),
    }
}

pub(super) fn door(path: &str) -> Door {
    match path {
        "/healthz" | "/readyz" | "/install.sh" | "/login" | "/logout" | "/favicon.ico" | "/favicon.svg" => Door::Open,
        "/v1development/profiles" | "/ingest" | "/api/v1/ingest-check" | "/api/v1/agent/bursts" => Door::Ingest,
        path if path.starts_with("/download/") => Door::Open,
        path if path.starts_with("/opentelemetry.proto.") => Door::Ingest,
        _ => Door::View,
    }
}

/// Lets through who may, before anything of the body is read.
pub(super) async fn guard(state: &AppState, mut request: Request, next: Next) -> Response {
    let door = door_of(request.method().as_str(), request.uri().path());
    if door == Door::Open {
        return next.run(request).await;
    }
    if door == Door::Burst && !state.has_bursts() {
        return ApiError::new(Code::Forbidden, "bursts are off at this server")
            .hint("give it --burst-token-file: beyond loopback nobody may have a node looked at without a token for it")
            .into_response();
    }
    let visitor = request.extensions().get::<Arc<Visitor>>().cloned();
    let address = visitor.as_ref().map(|visitor| visitor.address);
    let holder = match shown(state, door, request.headers(), address) {
        Ok(holder) => holder,
        Err(error) => return error.into_response(),
    };
    if let Some(holder) = holder {
        if let Some(visitor) = visitor {
            visitor.let_in();
        }
        // A link with a token, followed by someone who is signed in: the token leaves the address bar all the same.
        if let Some(response) = sign_in_by_link(state, &request, address) {
            return response;
        }
        if door == Door::Ingest {
            request.extensions_mut().insert(Sender {
                owner: Owner {
                    token: holder.name(),
                    node: 0,
                },
                tokens: state.ingest_tokens.names(),
                quota: state.ingest_tokens.quota(holder),
            });
        }
        return next.run(request).await;
    }
    if door == Door::View
        && let Some(response) = sign_in_by_link(state, &request, address)
    {
        return response;
    }
    let headers = request.headers();
    let wants_page = request.method() == Method::GET
        && headers
            .get(header::ACCEPT)
            .is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")));
    if door == Door::View && wants_page {
        let next = request.uri().path_and_query().map_or("/", |path| path.as_str());
        return Redirect::to(&format!("/login?next={}", encode(next))).into_response();
    }
    let what = match door {
        Door::Burst if state.burst_tokens.count().is_some() => "a token for bursts",
        Door::Ingest | Door::Burst => "an ingest token",
        _ => "a viewing token",
    };
    let given = if token_in(headers, door).is_some() {
        "is not valid here"
    } else {
        "is needed"
    };
    let how = if door == Door::Ingest {
        "send it as \"Authorization: Bearer TOKEN\", or as the password of basic authentication; tokens for sending and for \
         viewing are not the same"
    } else {
        "send it as \"Authorization: Bearer TOKEN\"; tokens for sending, for viewing and for bursts are not the same"
    };
    ApiError::new(Code::Unauthorized, format!("{what} {given}"))
        .hint(how)
        .into_response()
}

/// Who asks, by what the headers show; an error for who has shown too much that was wrong.
fn shown(
    state: &AppState,
    door: Door,
    headers: &HeaderMap,
    address: Option<IpAddr>,
) -> Result<Option<Holder>, ApiError> {
    let tokens = match door {
        Door::Ingest => &state.ingest_tokens,
        // As markers, where nobody has said who may.
        Door::Burst if state.burst_tokens.count().is_none() => &state.ingest_tokens,
        Door::Burst => &state.burst_tokens,
        _ => &state.view_tokens,
    };
    if let Some(token) = token_in(headers, door) {
        return tried(state, tokens, true, &token, address);
    }
    if let Some(holder) = tokens.holder(None) {
        return Ok(Some(holder));
    }
    let cookie = cookie(headers).filter(|_| door == Door::View);
    Ok(cookie.and_then(|cookie| state.sessions.holder(cookie, tokens)))
}

/// Whose token it is. One that is none counts as a guess, unless it belongs to the other door; who has guessed too
/// often is not answered.
fn tried(
    state: &AppState,
    tokens: &Tokens,
    may_be_of_others: bool,
    token: &str,
    address: Option<IpAddr>,
) -> Result<Option<Holder>, ApiError> {
    if tokens.count().is_none() {
        return Ok(tokens.holder(Some(token)));
    }
    let hash = digest("token", token);
    if let Some(seconds) = address.and_then(|address| state.guesses.wait(address, &hash)) {
        return Err(ApiError::new(
            Code::TooManyRequests,
            "too many tokens that are not valid came from this address",
        )
        .hint("wait; a token that was right before from here is let in meanwhile")
        .retry_after(seconds));
    }
    let holder = tokens.holder_of(&hash);
    if let Some(address) = address {
        match holder {
            Some(_) => state.guesses.succeeded(address, hash),
            None if may_be_of_others && is_of_any(state, &hash) => {}
            None => state.guesses.failed(address),
        }
    }
    Ok(holder)
}

/// Whether it is a token of any door.
fn is_of_any(state: &AppState, hash: &tokens::Hash) -> bool {
    let all = [&state.ingest_tokens, &state.view_tokens, &state.burst_tokens];
    all.into_iter()
        .any(|tokens| tokens.count().is_some() && tokens.holder_of(hash).is_some())
}

fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// `?token=…` in a page's address: sets the cookie and takes the token out of the address.
fn sign_in_by_link(state: &AppState, request: &Request, address: Option<IpAddr>) -> Option<Response> {
    let uri: &Uri = request.uri();
    let is_page = request.method() == Method::GET && door(uri.path()) == Door::View && !uri.path().starts_with("/api/");
    let query = uri.query().filter(|query| is_page && query.contains("token="))?;
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let token = pairs
        .iter()
        .find_map(|(name, value)| (name == "token").then_some(value))?;
    let holder = match tried(state, &state.view_tokens, false, token, address) {
        Ok(holder) => holder?,
        Err(error) => return Some(error.into_response()),
    };
    let rest: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs.iter().filter(|(name, _)| name != "token"))
        .finish();
    let target = if rest.is_empty() {
        uri.path().to_owned()
    } else {
        format!("{}?{rest}", uri.path())
    };
    Some(signed_in(state, holder, &local(&target)))
}

/// A cookie with these contents, or one that is taken away.
fn set_cookie(state: &AppState, value: &str, seconds: u64) -> Option<HeaderValue> {
    let is_secure = state.tls || state.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&cookie).ok()
}

fn signed_in(state: &AppState, holder: Holder, target: &str) -> Response {
    let mut response = Redirect::to(target).into_response();
    // Where no token is needed there is nothing to sign in to.
    let Holder::Of(token) = holder else { return response };
    let Some(cookie) = state.sessions.begin(token) else {
        return ApiError::internal("no random numbers for a session").into_response();
    };
    if let Some(cookie) = set_cookie(state, &cookie, SESSION_SECONDS) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Ends the browser's session.
async fn logout(State(state): State<AppState>, headers: HeaderMap) -> Response {
    if let Some(cookie) = cookie(&headers) {
        state.sessions.end(cookie);
    }
    let mut response = Redirect::to("/login").into_response();
    if let Some(cookie) = set_cookie(&state, "", 0) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// A path on this server, whatever was asked for.
fn local(target: &str) -> String {
    let safe = target.starts_with('/')
        && !target.starts_with("//")
        && !target.contains('\\')
        && target.bytes().all(|byte| byte.is_ascii_graphic());
    if safe { target.to_owned() } else { "/".to_owned() }
}

#[derive(serde::Deserialize)]
struct LoginQuery {
    #[serde(default)]
    next: String,
}

#[derive(Default)]
struct Login {
    token: String,
    next: String,
}

pub(super) fn router() -> Router<AppState> {
    let login = get(form).merge(post(login).layer(DefaultBodyLimit::max(STRANGER_BODY_BYTES)));
    Router::new()
        .route("/login", login)
        .route("/logout", post(logout))
        .route(
            "/api/v1/ingest-check",
            routing::get(|| async { StatusCode::NO_CONTENT }),
        )
}

async fn form(Query(query): Query<LoginQuery>) -> Response {
    login_page(StatusCode::OK, "", &query.next)
}

/// The body of somebody who has shown no token.
async fn small_body(request: Request) -> Result<Bytes, ApiError> {
    let too_large = || {
        ApiError::new(
            Code::TooLarge,
            format!("the form has more than {STRANGER_BODY_BYTES} bytes"),
        )
        .hint("it takes a token and a path")
    };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > STRANGER_BODY_BYTES) {
        return Err(too_large());
    }
    let within = Duration::from_secs(STRANGER_BODY_SECONDS);
    match tokio::time::timeout(within, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(too_large()),
        Ok(Err(rejection)) => Err(ApiError::new(
            Code::BadParameter,
            format!("the form cannot be read: {rejection}"),
        )),
        Err(_) => Err(ApiError::new(
            Code::BadParameter,
            format!("the form did not come within {STRANGER_BODY_SECONDS} s"),
        )
        .status(StatusCode::REQUEST_TIMEOUT)),
    }
}

async fn login(State(state): State<AppState>, request: Request) -> Result<Response, ApiError> {
    let address = request
        .extensions()
        .get::<Arc<Visitor>>()
        .map(|visitor| visitor.address);
    let body = small_body(request).await?;
    let mut login = Login::default();
    for (name, value) in url::form_urlencoded::parse(&body) {
        match &*name {
            "token" => login.token = value.into_owned(),
            "next" => login.next = value.into_owned(),
            _ => {}
        }
    }
    if let Some(holder) = tried(&state, &state.view_tokens, false, login.token.trim(), address)? {
        return Ok(signed_in(&state, holder, &local(&login.next)));
    }
    Ok(login_page(
        StatusCode::UNAUTHORIZED,
        "<p role=\"alert\">That is not a viewing token of this server.</p>",
        &login.next,
    ))
}

fn login_page(status: StatusCode, note: &str, next: &str) -> Response {
    let next: String = local(next)
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Stakeout: sign in</title><main><h1>Stakeout</h1>{note}<form method=\"post\" action=\"/login\">\
         <input type=\"hidden\" name=\"next\" value=\"{next}\">\
         <label>Viewing token <input type=\"password\" name=\"token\" required autofocus autocomplete=\"current-password\"></label> \
         <button>Sign in</button></form><p>The token stands in the file that the server was given with \
         <code>--view-token-file</code>.</p></main></html>"
    );
    (status, Html(page)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_on_this_server() {
        assert_eq!(local("/?query={service=\"a\"}"), "/?query={service=\"a\"}");
        for elsewhere in [
            "https://example.com",
            "//example.com",
            "/\\example.com",
            "",
            "javascript:alert(1)",
        ] {
            assert_eq!(local(elsewhere), "/", "{elsewhere}");
        }
    }

    #[test]
    fn a_password_is_read_whatever_the_users_name_is() {
        let of = |value: &'static str| {
            let headers = [(header::AUTHORIZATION, HeaderValue::from_static(value))];
            token_in(&headers.into_iter().collect(), Door::Ingest).map(Cow::into_owned)
        };
        // user:pass, :pass, a user whose password has a colon and more than ASCII, and one without padding.
        assert_eq!(of("Basic dXNlcjpwYXNz").as_deref(), Some("pass"));
        assert_eq!(of("basic OnBhc3M=").as_deref(), Some("pass"));
        assert_eq!(of("Basic dTrDvDo+").as_deref(), Some("\u{fc}:>"));
        assert_eq!(of("Basic OnBhc3M").as_deref(), Some("pass"));
        assert_eq!(of("Bearer t").as_deref(), Some("t"));
        // What is no pair is a wrong token.
        for broken in ["Basic !", "Basic dXNlcg==", "Basic /w==", "Basic dXNlcjpwY"] {
            assert_eq!(of(broken).as_deref(), Some(""), "{broken}");
        }
        assert_eq!(of("Digest x"), None);
        let headers = [(header::AUTHORIZATION, HeaderValue::from_static("Basic OnBhc3M="))];
        assert_eq!(token_in(&headers.into_iter().collect(), Door::View), None);
    }

    #[test]
    fn every_path_that_is_not_named_needs_a_viewing_token() {
        assert_eq!(door("/api/v1/sql"), Door::View);
        assert_eq!(door("/"), Door::View);
        assert_eq!(door("/metrics"), Door::View);
        assert_eq!(door("/v1development/profiles"), Door::Ingest);
        assert_eq!(door("/v1development/profiles/"), Door::View);
    }

    #[test]
    fn the_limits_are_documented() {
        use crate::api::bodies::unread;
        use crate::api::{agents, assets, serve};
        crate::documented(&[
            ("STRANGER_BODY_BYTES", STRANGER_BODY_BYTES as u64),
            ("STRANGER_BODY_SECONDS", STRANGER_BODY_SECONDS),
            ("STRANGER_UNREAD_BYTES", unread::STRANGER_UNREAD_BYTES as u64),
            ("STRANGER_UNREAD_SECONDS", unread::STRANGER_UNREAD_SECONDS),
            ("UNREAD_BYTES", unread::UNREAD_BYTES as u64),
            ("UNREAD_SECONDS", unread::UNREAD_SECONDS),
            ("HEAD_TIMEOUT", serve::HEAD_TIMEOUT.as_secs()),
            ("BUFFER_BYTES", serve::BUFFER_BYTES as u64),
            ("MAX_STREAMS", serve::MAX_STREAMS.into()),
            ("STRANGERS_PART", crowd::STRANGERS_PART as u64),
            ("ADDRESS_PART", crowd::ADDRESS_PART as u64),
            ("STRANGER_IDLE_SECONDS", crowd::STRANGER_IDLE_SECONDS),
            ("IDLE_SECONDS", crowd::IDLE_SECONDS),
            ("MOST_DOWNLOADS", agents::MOST_DOWNLOADS as u64),
            ("DOWNLOAD_SECONDS", assets::DOWNLOAD_SECONDS),
            ("FAILURES", guesses::FAILURES as u64),
            ("SECONDS_EACH", guesses::SECONDS_EACH as u64),
            ("MOST_ADDRESSES", guesses::MOST_ADDRESSES as u64),
            ("COOKIE_BYTES", sessions::COOKIE_BYTES as u64),
            ("SESSION_SECONDS", SESSION_SECONDS),
            ("MOST_SESSIONS", sessions::MOST_SESSIONS as u64),
        ]);
    }
}
