//! The page, the install script and the agent's binaries.

use super::agents::{ARCHITECTURES, MOST_DOWNLOADS, hex};
use super::{ApiError, AppState, error::Code};
use crate::api::answers::accepts::accepts;
use crate::api::answers::body::Held;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A file of the built page, with its compressed forms.
struct Embedded {
    path: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

/// The time within which a download must have ended.
pub(super) const DOWNLOAD_SECONDS: u64 = 600;

static TAGS: LazyLock<HashMap<&'static str, String>> = LazyLock::new(|| {
    FILES
        .iter()
        .map(|file| (file.path, format!("\"{}\"", &hex(&Sha256::digest(file.plain))[..32])))
        .collect()
});

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/install.sh", get(install_script))
        .route("/download/{name}", get(download))
        .fallback(page)
}

/// A file of the page, which itself is at `/` only: its state is in the query. What is not there is not found,
/// whatever the method.
async fn page(method: Method, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let path = match uri.path().trim_start_matches('/') {
        "" if uri.path() == "/" => "index.html",
        path => path,
    };
    let is_read = matches!(method, Method::GET | Method::HEAD);
    let Some(file) = FILES
        .iter()
        .find(|file| file.path == path && !uri.path().starts_with("//"))
    else {
        if uri.path() == "/" && is_read {
            return Ok((StatusCode::OK, Html(NOT_BUILT)).into_response());
        }
        let path: String = uri.path().chars().take(80).collect();
        return Err(ApiError::new(Code::NotFound, format!("there is nothing at {path}"))
            .hint("GET /api/v1/openapi.json and server/docs/api.md list the paths"));
    };
    if !is_read {
        return Ok((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET,HEAD")]).into_response());
    }
    let mut response = serve(file, &headers);
    if file.path == "index.html"
        && let Some(parts) = uri.query().and_then(view_of).and_then(|view| PRELOADS.get(view))
    {
        response.headers_mut().insert(header::LINK, parts.clone());
    }
    Ok(response)
}

/// The view that a link to the page opens.
fn view_of(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("view="))
}

/// Where the build lists what each view needs beside the page's first script: its own file, what that imports, and the
/// styles of later parts.
const VIEWS: &str = "views.json";

/// The `Link` header of each view that needs more, so that the browser fetches it at the same time as the first script.
static PRELOADS: LazyLock<HashMap<String, HeaderValue>> = LazyLock::new(|| preloads(FILES));

fn preloads(files: &[Embedded]) -> HashMap<String, HeaderValue> {
    let listed = files.iter().find(|file| file.path == VIEWS);
    let views: HashMap<String, Vec<String>> = listed
        .and_then(|file| serde_json::from_slice(file.plain).ok())
        .unwrap_or_default();
    let link = |part: &String| {
        let how = if part.ends_with(".css") {
            "preload; as=style"
        } else {
            "modulepreload"
        };
        format!("</{part}>; rel={how}")
    };
    let header = |parts: &[String]| HeaderValue::from_str(&parts.iter().map(link).collect::<Vec<_>>().join(", ")).ok();
    views
        .into_iter()
        .filter_map(|(view, parts)| Some((view, header(&parts)?)))
        .collect()
}

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><title>Stakeout</title><h1>Stakeout</h1>\
    <p>This server was built without its page. Run <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code>, \
    then build the server again; <code>cargo xtask up</code> does both. The API works all the same.</p></html>";

fn serve(file: &'static Embedded, headers: &HeaderMap) -> Response {
    let tag = TAGS.get(file.path).map_or("\"\"", String::as_str);
    // The build names files in assets/ by their content.
    let caching = if file.path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let mut response = if headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes())
    {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let (bytes, encoding) = match (file.brotli, file.gzip) {
            (Some(brotli), _) if accepts(headers, "br") => (brotli, Some("br")),
            (_, Some(gzip)) if accepts(headers, "gzip") => (gzip, Some("gzip")),
            _ => (file.plain, None),
        };
        let mut response = Body::from(bytes).into_response();
        if let Some(encoding) = encoding {
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        response
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(file.path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

async fn download(State(state): State<AppState>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let (file, checksum) = match name.strip_suffix(".sha256") {
        Some(file) => (file, true),
        None => (name.as_str(), false),
    };
    let architecture = file
        .strip_prefix("stakeout-agent-linux-")
        .filter(|arch| ARCHITECTURES.contains(arch));
    let Some(architecture) = architecture else {
        return Err(ApiError::new(Code::NotFound, format!("there is no download {name:?}"))
            .hint("stakeout-agent-linux-x86_64 and stakeout-agent-linux-aarch64, each also with .sha256"));
    };
    let agent = state.agents.find(architecture).await.ok_or_else(|| {
        ApiError::new(Code::NotFound, format!("this server has no agent for {architecture}"))
            .hint("put the binary beside the server's, or name its folder with --agent-dir")
    })?;
    if checksum {
        return Ok(format!("{}  {file}\n", agent.sha256).into_response());
    }
    let turn = state.agents.downloads.clone().try_acquire_owned().map_err(|_| {
        ApiError::new(
            Code::Overloaded,
            format!("{MOST_DOWNLOADS} downloads run, the most at a time"),
        )
        .hint("try again shortly")
        .retry_after(5)
    })?;
    let content = tokio::fs::File::open(&agent.path).await.map_err(ApiError::internal)?;
    let ends = Instant::now() + Duration::from_secs(DOWNLOAD_SECONDS);
    let stream = futures::stream::try_unfold(content, move |mut content| async move {
        if Instant::now() > ends {
            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut));
        }
        let mut buffer = vec![0; 256 * 1024];
        let read = content.read(&mut buffer).await?;
        buffer.truncate(read);
        Ok::<_, std::io::Error>((read > 0).then_some((buffer, content)))
    });
    let held = Held::new(Body::from_stream(stream), turn);
    let mut response = Body::new(held).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(agent.bytes));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

async fn install_script(State(state): State<AppState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let Some(template) = INSTALL_SCRIPT else {
        return Err(
            ApiError::new(Code::NotFound, "this server was built without the install script")
                .hint("build it in a checkout that has agent/packaging/install.sh"),
        );
    };
    let url = state
        .base_url(&uri, &headers)
        .filter(|url| is_plain_url(url))
        .ok_or_else(|| {
            ApiError::new(Code::BadParameter, "the request's Host header is no plain host name")
                .hint("start the server with --public-url")
        })?;
    let mut script = template
        .replace("@SERVER_URL@", &url)
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    for architecture in ARCHITECTURES {
        let sha256 = state
            .agents
            .find(architecture)
            .await
            .map_or_else(String::new, |agent| agent.sha256);
        script = script.replace(&format!("@SHA256_{}@", architecture.to_ascii_uppercase()), &sha256);
    }
    let headers = [
        (header::CONTENT_TYPE, "text/x-shellscript; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, script).into_response())
}

/// Only characters that mean nothing to a shell: the URL becomes part of a script that runs as root.
fn is_plain_url(url: &str) -> bool {
    url.len() < 512
        && url
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b":/.-_[]".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_view_names_the_parts_that_it_needs() {
        let listed = br#"{"compare":["assets/Compare-a1.js","assets/parts-b2.js","assets/later-c3.css"],"nodes":[]}"#;
        let file = |path, plain: &'static [u8]| Embedded {
            path,
            plain,
            gzip: None,
            brotli: None,
        };
        let links = preloads(&[file("index.html", b""), file(VIEWS, listed)]);
        let of = |query| {
            let header = links.get(view_of(query)?)?;
            header.to_str().ok().map(str::to_owned)
        };
        let all = "</assets/Compare-a1.js>; rel=modulepreload, </assets/parts-b2.js>; rel=modulepreload, \
                   </assets/later-c3.css>; rel=preload; as=style";
        assert_eq!(of("from=now-1h&view=compare&by=node").as_deref(), Some(all));
        // The first view is in the first script; what is no view has no parts.
        for other in ["", "view=", "view=explore", "view=..%2f", "view=%C3%A9", "by=view"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(preloads(&[file(VIEWS, b"no JSON")]).is_empty());
    }

    /// Of a server with its page: what the headers name is there.
    #[test]
    fn what_links_name_is_embedded() {
        if !FILES.iter().any(|file| file.path == "index.html") {
            eprintln!("the page was not built: its links were not looked at");
            return;
        }
        for view in ["compare", "heatmap", "timeline", "threads", "nodes"] {
            let header = PRELOADS.get(view).and_then(|links| links.to_str().ok());
            let links = header.unwrap_or_else(|| panic!("{view} has no parts: build the page anew"));
            assert!(links.contains(".css>; rel=preload; as=style"), "{view}: {links}");
            for link in links.split(", ") {
                let path = link.trim_start_matches("</").split('>').next();
                assert!(FILES.iter().any(|file| Some(file.path) == path), "{view}: {link}");
            }
        }
    }

    #[test]
    fn a_url_with_shell_characters_is_refused() {
        assert!(is_plain_url("https://stakeout.example.com:7373"));
        assert!(is_plain_url("http://[::1]:7373"));
        for bad in [
            "http://a$(id)",
            "http://a\"b",
            "http://a b",
            "http://a;b",
            "http://a'b",
            "http://a`b`",
        ] {
            assert!(!is_plain_url(bad), "{bad}");
        }
    }
}
