//! Who may send and who may look.
//!
//! Two kinds of tokens, kept apart: a sender's cannot read, a viewer's cannot write. A browser trades the viewer's token for a
//! cookie that holds a value derived from it.

use super::{ApiError, AppState, error::Code};
use axum::extract::{Form, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Router, routing};
use sha2::{Digest, Sha256};

const COOKIE: &str = "stakeout_view";

/// How long a browser stays signed in, seconds.
const COOKIE_SECONDS: u32 = 30 * 24 * 3600;

/// Tokens that are accepted; none means that everyone may.
#[derive(Clone, Default)]
pub struct Tokens(Option<Vec<[u8; 32]>>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(tokens) => write!(f, "Tokens({})", tokens.len()),
            None => f.write_str("Tokens(none needed)"),
        }
    }
}

fn digest(purpose: &str, token: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(purpose)
        .chain_update([0])
        .chain_update(token)
        .finalize()
        .into()
}

/// Takes the same time whatever the difference.
fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Tokens {
    /// One token a line, so that one can be replaced by another without a gap.
    pub fn from_lines(text: &str) -> Self {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(Some(lines.map(|token| digest("token", token)).collect()))
    }

    /// How many tokens there are; none when none is needed.
    pub fn count(&self) -> Option<usize> {
        self.0.as_ref().map(Vec::len)
    }

    fn accept(&self, token: Option<&str>) -> bool {
        let Some(tokens) = &self.0 else { return true };
        let Some(token) = token else { return false };
        let given = digest("token", token);
        tokens.iter().fold(false, |found, token| found | equal(token, &given))
    }

    fn accept_cookie(&self, cookie: Option<&str>) -> bool {
        let Some(tokens) = &self.0 else { return true };
        let Some(cookie) = cookie else { return false };
        let given = digest("compare", cookie);
        tokens.iter().fold(false, |found, token| {
            found | equal(&digest("compare", &Self::cookie_value(token)), &given)
        })
    }

    /// Says no more than that its owner once had the token.
    fn cookie_value(token: &[u8; 32]) -> String {
        hex(&digest("cookie", &hex(token)))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
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
#[derive(Debug, PartialEq, Eq)]
enum Door {
    /// Says nothing about samples.
    Open,
    Ingest,
    View,
}

fn door(path: &str) -> Door {
    match path {
        "/healthz" | "/readyz" | "/install.sh" | "/login" | "/favicon.ico" | "/favicon.svg" => Door::Open,
        "/v1development/profiles" | "/api/v1/ingest-check" => Door::Ingest,
        path if path.starts_with("/download/") => Door::Open,
        path if path.starts_with("/opentelemetry.proto.") => Door::Ingest,
        _ => Door::View,
    }
}

/// Lets through who may, before anything of the body is read.
pub(super) async fn guard(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let (allowed, what) = match door(request.uri().path()) {
        Door::Open => (true, ""),
        Door::Ingest => (state.ingest_tokens.accept(bearer(headers)), "an ingest token"),
        Door::View => {
            let tokens = &state.view_tokens;
            (
                tokens.accept(bearer(headers)) || tokens.accept_cookie(cookie(headers)),
                "a viewing token",
            )
        }
    };
    if allowed {
        if request.method() == Method::GET && request.uri().query().is_some_and(|query| query.contains("token=")) {
            // A link with a token, followed by someone who is signed in: the token leaves the address bar all the same.
            if let Some(response) = sign_in_by_link(&state, request.uri()) {
                return response;
            }
        }
        return next.run(request).await;
    }
    let wants_page = request.method() == Method::GET
        && headers
            .get(header::ACCEPT)
            .is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")));
    if what == "a viewing token" && request.method() == Method::GET {
        if let Some(response) = sign_in_by_link(&state, request.uri()) {
            return response;
        }
        if wants_page {
            let next = request.uri().path_and_query().map_or("/", |path| path.as_str());
            return Redirect::to(&format!("/login?next={}", encode(next))).into_response();
        }
    }
    let given = if bearer(headers).is_some() {
        "is not valid here"
    } else {
        "is needed"
    };
    ApiError::new(Code::Unauthorized, format!("{what} {given}"))
        .hint("send it as \"Authorization: Bearer TOKEN\"; tokens for sending and for viewing are not the same")
        .into_response()
}

fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// `?token=…` in a page's address: sets the cookie and takes the token out of the address.
fn sign_in_by_link(state: &AppState, uri: &Uri) -> Option<Response> {
    if door(uri.path()) != Door::View || uri.path().starts_with("/api/") {
        return None;
    }
    let query = uri.query()?;
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let token = pairs
        .iter()
        .find_map(|(name, value)| (name == "token").then_some(value))?;
    if !state.view_tokens.accept(Some(token)) {
        return None;
    }
    let rest: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs.iter().filter(|(name, _)| name != "token"))
        .finish();
    let target = if rest.is_empty() {
        uri.path().to_owned()
    } else {
        format!("{}?{rest}", uri.path())
    };
    Some(signed_in(state, token, &local(&target)))
}

fn signed_in(state: &AppState, token: &str, target: &str) -> Response {
    let secure = if state.tls { "; Secure" } else { "" };
    let value = Tokens::cookie_value(&digest("token", token));
    let cookie = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}{secure}");
    let mut response = Redirect::to(target).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
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

#[derive(serde::Deserialize)]
struct Login {
    token: String,
    #[serde(default)]
    next: String,
}

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/login", get(form).post(login)).route(
        "/api/v1/ingest-check",
        routing::get(|| async { StatusCode::NO_CONTENT }),
    )
}

async fn form(Query(query): Query<LoginQuery>) -> Response {
    login_page(StatusCode::OK, "", &query.next)
}

async fn login(State(state): State<AppState>, Form(login): Form<Login>) -> Response {
    let token = login.token.trim();
    if state.view_tokens.accept(Some(token)) {
        return signed_in(&state, token, &local(&login.next));
    }
    login_page(
        StatusCode::UNAUTHORIZED,
        "<p role=\"alert\">That is not a viewing token of this server.</p>",
        &login.next,
    )
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
    fn a_token_is_accepted_whole_and_as_nothing_else() {
        let tokens = Tokens::from_lines("# two tokens\n  alpha \n\nbeta\n");
        assert_eq!(tokens.count(), Some(2));
        assert!(tokens.accept(Some("alpha")) && tokens.accept(Some("beta")));
        for wrong in [None, Some(""), Some("alph"), Some("alphaa"), Some("# two tokens")] {
            assert!(!tokens.accept(wrong), "{wrong:?}");
        }
        let cookie = Tokens::cookie_value(&digest("token", "beta"));
        assert!(tokens.accept_cookie(Some(&cookie)));
        assert!(!tokens.accept_cookie(Some("beta")) && !tokens.accept(Some(&cookie)));
        assert!(Tokens::default().accept(None));
        assert!(!Tokens::from_lines("").accept(Some("")));
    }

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
    fn every_path_that_is_not_named_needs_a_viewing_token() {
        assert_eq!(door("/api/v1/sql"), Door::View);
        assert_eq!(door("/"), Door::View);
        assert_eq!(door("/metrics"), Door::View);
        assert_eq!(door("/v1development/profiles"), Door::Ingest);
        assert_eq!(door("/v1development/profiles/"), Door::View);
    }
}
