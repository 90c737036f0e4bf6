//! Under which names the server is asked, and by whose pages.
//!
//! A browser lets any page send requests to this machine's loopback, and a page whose name was bound to 127.0.0.1
//! read the answers. So on loopback `Host` must be a name of this server, and what a page of another origin asks is
//! refused everywhere.

use crate::api::error::{ApiError, Code};
use axum::http::{HeaderMap, header};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The names of a server.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// Whether a request under another name is refused.
    are_checked: bool,
    /// In lower case, without ports.
    names: Arc<[String]>,
}

impl Hosts {
    /// Of a server that listens there, has this URL, and may be called by these names. Beyond loopback names are
    /// checked only where some are given: others reach it by names that it cannot know, and tokens keep strangers
    /// out.
    pub fn new(listen: SocketAddr, public_url: Option<&str>, allowed: &[String]) -> Self {
        let of_url = public_url.and_then(|url| Some(url.split_once("://")?.1.split('/').next()?.to_owned()));
        let names = allowed.iter().cloned().chain(of_url);
        Self {
            are_checked: listen.ip().to_canonical().is_loopback() || !allowed.is_empty(),
            names: names.map(|name| without_port(&name)).collect(),
        }
    }

    /// Whether it is a name of this server. An address is nobody's name.
    fn has(&self, authority: &str) -> bool {
        let name = without_port(authority);
        name == "localhost"
            || name.ends_with(".localhost")
            || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
            || self.names.contains(&name)
    }

    pub(in crate::api) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = text(header::HOST);
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(ApiError::new(Code::BadParameter, "there is more than one Host header").hint("send one"));
        }
        if let Some(host) = host.filter(|_| self.are_checked)
            && !self.has(host)
        {
            let shown: String = host.chars().take(80).collect();
            return Err(
                ApiError::new(Code::Misdirected, format!("this server is not called {shown:?}"))
                    .hint("--allow-host NAME, or --public-url URL, tells it another name of its own"),
            );
        }
        let site = text(header::HeaderName::from_static("sec-fetch-site"));
        let mode = text(header::HeaderName::from_static("sec-fetch-mode"));
        let is_foreign = match text(header::ORIGIN) {
            // A form of a page that tells nobody where it comes from.
            Some("null") => site != Some("same-origin"),
            Some(origin) => !self.is_own(origin, host),
            None => site == Some("cross-site") && mode.is_some_and(|mode| mode != "navigate"),
        };
        if is_foreign {
            let origin: String = text(header::ORIGIN)
                .unwrap_or("another site")
                .chars()
                .take(80)
                .collect();
            return Err(
                ApiError::new(Code::Forbidden, format!("a page of {origin} may not ask this server"))
                    .hint("pages of this server may; programs send no Origin header"),
            );
        }
        Ok(())
    }

    fn is_own(&self, origin: &str, host: Option<&str>) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else {
            return false;
        };
        let usual = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return false,
        };
        let plain = |authority: &str| authority.to_ascii_lowercase().trim_end_matches(usual).to_owned();
        host.is_some_and(|host| plain(host) == plain(authority)) || self.names.contains(&without_port(authority))
    }
}

/// In lower case, without the dot at the end.
fn without_port(authority: &str) -> String {
    let end = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name.len(),
        _ => authority.len(),
    };
    authority[..end].trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    fn asked(hosts: &Hosts, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                header::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        let status = |error: ApiError| error.into_response().status();
        hosts.check(&map).map_or_else(status, |()| StatusCode::OK).as_u16()
    }

    #[test]
    fn on_loopback_only_own_names_are_answered() {
        let listen = "127.0.0.1:7373".parse().unwrap();
        let hosts = Hosts::new(
            listen,
            Some("https://Profiles.example:8443/x"),
            &["db.internal".to_owned()],
        );
        for own in [
            "127.0.0.1:7373",
            "localhost:7373",
            "localhost",
            "LOCALHOST.:1",
            "[::1]:7373",
            "a.localhost",
            "10.0.0.7",
            "profiles.example",
            "profiles.example:8443",
            "db.internal:1",
        ] {
            assert_eq!(asked(&hosts, &[("host", own)]), 200, "{own}");
        }
        for foreign in [
            "evil.example:7373",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert_eq!(asked(&hosts, &[("host", foreign)]), 421, "{foreign}");
        }
        assert_eq!(asked(&hosts, &[]), 200, "HTTP/1.0 has no name");
        assert_eq!(asked(&hosts, &[("host", "localhost"), ("host", "evil.example")]), 400);
        let open = Hosts::new("0.0.0.0:7373".parse().unwrap(), None, &[]);
        assert_eq!(asked(&open, &[("host", "any.example")]), 200);
        let named = Hosts::new("0.0.0.0:7373".parse().unwrap(), None, &["own.example".to_owned()]);
        assert_eq!(asked(&named, &[("host", "any.example")]), 421);
    }

    #[test]
    fn pages_of_other_origins_are_refused_under_every_name() {
        let hosts = Hosts::new("0.0.0.0:7373".parse().unwrap(), Some("https://profiles.example"), &[]);
        let host = ("host", "box:7373");
        for (headers, status) in [
            (&[host, ("origin", "http://box:7373")][..], 200),
            (&[host, ("origin", "https://profiles.example")], 200),
            (&[("host", "box"), ("origin", "http://box:80")], 200),
            (&[host, ("origin", "http://box:3000")], 403),
            (&[host, ("origin", "http://evil.example")], 403),
            (&[host, ("origin", "null")], 403),
            (&[host, ("origin", "null"), ("sec-fetch-site", "same-origin")], 200),
            (&[host, ("origin", "chrome-extension://abc")], 403),
            (
                &[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
                403,
            ),
            (
                &[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
                200,
            ),
        ] {
            assert_eq!(asked(&hosts, headers), status, "{headers:?}");
        }
    }
}
