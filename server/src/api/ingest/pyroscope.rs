//! `POST /ingest`: pprof as Pyroscope's clients send it.
//!
//! What a profile is of stands in the address: `name` with labels in braces, `from` and `until` in nanoseconds,
//! seconds or milliseconds since the epoch, `spyName`. The body is the profile itself, gzipped or not, or a form with
//! the profile as the part `profile` and a description of its types of values as `sample_type_config`.

use super::request::{Arrived, arrive, content_encoding, refuse};
use crate::api::error::{ApiError, Code};
use crate::api::state::AppState;
use crate::ingest::{About, Form};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use std::collections::HashMap;

pub(super) const PATH: &str = "/ingest";

/// Labels of a name, parts of a form, and types of values that are described: more than any client has.
const MAX_LABELS: usize = 256;
const MAX_PARTS: usize = 16;
const MAX_CONFIG_BYTES: usize = 64 << 10;

pub(super) async fn ingest(State(state): State<AppState>, request: Request) -> Result<Response, ApiError> {
    let read = async {
        let mut about = about(request.uri().query().unwrap_or(""))?;
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or("")
            .to_owned();
        let encoding = content_encoding(request.headers())?;
        let Arrived {
            body,
            id,
            body_permit,
            sender,
            ..
        } = arrive(&state, request, encoding).await?;
        let body = match boundary(&content_type) {
            Some(boundary) => of_form(&body, boundary, &mut about)?,
            None => body,
        };
        Ok::<_, ApiError>((body, encoding, id, body_permit, sender, about))
    };
    let (body, encoding, id, body_permit, sender, about) = read.await.inspect_err(|error| refuse(&state, error))?;
    let outcome = state
        .ingest
        .ingest_form(body, encoding, Form::Pprof(about), id, body_permit, sender)
        .await?;
    // Clients of Pyroscope know no partial success: what is left out is told in the answer's text all the same.
    Ok(outcome.message.into_response())
}

fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::BadProfile, message).hint("see \"pprof: POST /ingest\" in server/docs/wire.md")
}

/// What an address says of a profile.
fn about(query: &str) -> Result<About, ApiError> {
    let mut about = About::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "name" => {
                let (service, labels) = split_name(&value).ok_or_else(|| {
                    let shown: String = value.chars().take(80).collect();
                    bad(format!(
                        "`name` is {shown:?}: it must be a name, or one with labels as in app{{a=b,c=d}}"
                    ))
                })?;
                (about.service, about.attributes) = (service, labels);
            }
            "from" => about.from_ns = nanoseconds(&value).ok_or_else(|| bad("`from` is no time since the epoch"))?,
            "until" => about.until_ns = nanoseconds(&value).ok_or_else(|| bad("`until` is no time since the epoch"))?,
            "spyName" => about.frame_type = frame_type(&value),
            "format" if !matches!(&*value, "" | "pprof") => {
                let shown: String = value.chars().take(40).collect();
                return Err(bad(format!("`format` is {shown:?}: pprof alone is read here")));
            }
            _ => {}
        }
    }
    if about.service.is_empty() {
        return Err(bad("`name` is missing: it says of what program the profile is"));
    }
    Ok(about)
}

/// Clients send nanoseconds, older ones seconds; by size, since nobody says which.
fn nanoseconds(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    let factor = match number {
        0..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    number.checked_mul(factor)
}

/// Frames' language by the client that took them.
fn frame_type(spy: &str) -> &'static str {
    match spy {
        "gospy" => "go",
        "pyspy" => "cpython",
        "rbspy" => "ruby",
        "phpspy" => "php",
        "nodespy" => "v8js",
        "dotnetspy" => "dotnet",
        "javaspy" => "jvm",
        "pyroscope-rs" | "rustspy" => "rust",
        "ebpfspy" => "native",
        _ => "",
    }
}

/// `app{a=b,c="d"}`. Labels that begin with two underscores are a client's own, such as one session's.
fn split_name(name: &str) -> Option<(String, Vec<(String, String)>)> {
    let Some((service, labels)) = name.split_once('{') else {
        return (!name.trim().is_empty()).then(|| (name.trim().to_owned(), Vec::new()));
    };
    let labels = labels.trim_end().strip_suffix('}')?;
    let mut attributes = Vec::new();
    for label in labels.split(',').filter(|label| !label.trim().is_empty()) {
        let (key, value) = label.split_once('=')?;
        let (key, value) = (key.trim(), value.trim().trim_matches('"'));
        if key.is_empty() || attributes.len() == MAX_LABELS {
            return None;
        }
        if !key.starts_with("__") {
            attributes.push((attribute(key).to_owned(), value.to_owned()));
        }
    }
    (!service.trim().is_empty()).then(|| (service.trim().to_owned(), attributes))
}

/// What OTLP calls a label that clients of Pyroscope give.
fn attribute(label: &str) -> &str {
    match label {
        "hostname" | "host" | "instance" => "host.name",
        "namespace" => "k8s.namespace.name",
        "pod" => "k8s.pod.name",
        "container" => "k8s.container.name",
        "service_version" | "version" => "service.version",
        "service_name" => "service.name",
        other => other,
    }
}

/// What separates a form's parts, of a content type of one.
fn boundary(content_type: &str) -> Option<&str> {
    let (essence, parameters) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let named = parameters
        .split(';')
        .find_map(|one| one.trim().strip_prefix("boundary="))?;
    Some(named.trim_matches('"')).filter(|boundary| !boundary.is_empty() && boundary.len() <= 70)
}

/// The profile of a form (RFC 7578), and what is said of its types of values.
fn of_form(body: &Bytes, boundary: &str, about: &mut About) -> Result<Bytes, ApiError> {
    let mut profile = None;
    for part in parts(body, boundary)? {
        match part.name.as_str() {
            "profile" => profile = Some(body.slice_ref(part.content)),
            "sample_type_config" => describe(part.content, about)?,
            "prev_profile" => {
                return Err(bad(
                    "`prev_profile`: profiles that are to be subtracted from one another are not read here",
                ));
            }
            "jfr" | "trie" | "tree" | "lines" => return Err(bad("pprof alone is read here")),
            _ => {}
        }
    }
    profile.ok_or_else(|| bad("the form has no part `profile`"))
}

struct FormPart<'b> {
    name: String,
    content: &'b [u8],
}

fn parts<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<FormPart<'b>>, ApiError> {
    let mark = [b"--", boundary.as_bytes()].concat();
    let find = |within: &[u8], what: &[u8]| within.windows(what.len()).position(|at| at == what);
    let broken = || bad("the form is not whole: a part of it has no end");
    let mut rest = &body[find(body, &mark).ok_or_else(broken)? + mark.len()..];
    let end = [b"\r\n".as_slice(), &mark].concat();
    let mut found = Vec::new();
    while !rest.starts_with(b"--") {
        let content = rest.strip_prefix(b"\r\n").ok_or_else(broken)?;
        let length = find(content, &end).ok_or_else(broken)?;
        let part = &content[..length];
        let head = find(part, b"\r\n\r\n").ok_or_else(broken)?;
        let name = part_name(&String::from_utf8_lossy(&part[..head]));
        if found.len() == MAX_PARTS {
            return Err(bad(format!("the form has more than {MAX_PARTS} parts")));
        }
        found.push(FormPart {
            name,
            content: &part[head + 4..],
        });
        rest = &content[length + end.len()..];
    }
    Ok(found)
}

/// The name that a part's head gives it.
fn part_name(head: &str) -> String {
    let lines = head
        .lines()
        .filter(|line| line.to_ascii_lowercase().starts_with("content-disposition:"));
    let names = lines
        .flat_map(|line| line.split(';'))
        .find_map(|one| one.trim().strip_prefix("name="));
    names.unwrap_or("").trim_matches('"').to_owned()
}

/// Names of types of values, and which are sums since the program's start.
fn describe(json: &[u8], about: &mut About) -> Result<(), ApiError> {
    #[derive(serde::Deserialize)]
    struct Described {
        #[serde(default, rename = "display-name")]
        display_name: String,
        #[serde(default)]
        cumulative: bool,
    }
    if json.len() > MAX_CONFIG_BYTES {
        return Err(bad(format!(
            "`sample_type_config` is larger than {MAX_CONFIG_BYTES} bytes"
        )));
    }
    let described: HashMap<String, Described> = serde_json::from_slice(json)
        .map_err(|error| bad(format!("`sample_type_config` is not as expected: {error}")))?;
    for (kind, described) in described {
        if described.cumulative {
            about.cumulative.push(kind.clone());
        }
        // Ticks and their time have a name of their own already.
        if !described.display_name.is_empty() && kind != "samples" && kind != "cpu" {
            about.names.insert(kind, described.display_name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_whose_profile_it_is() {
        let query = "name=shop%7Bregion%3Deu%2Chostname%3D%22n1%22%2C__session_id__%3Dff%7D&from=1700000000&until=1700000010000\
                     &spyName=gospy&sampleRate=100&units=samples&aggregationType=sum&format=pprof";
        let said = about(query).unwrap();
        assert_eq!(said.service, "shop");
        let pairs: Vec<_> = said
            .attributes
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("region", "eu"), ("host.name", "n1")]);
        assert_eq!(
            (said.from_ns, said.until_ns),
            (1_700_000_000_000_000_000, 1_700_000_010_000_000_000)
        );
        assert_eq!(said.frame_type, "go");
        for wrong in [
            "",
            "name=",
            "name=a{b",
            "name=a{=c}",
            "name=a&from=x",
            "name=a&format=jfr",
            "name={a=b}",
        ] {
            assert!(about(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_the_document_says_of_an_address_is_read_and_nothing_else() {
        use crate::api::openapi::parameter::{INGEST, Takes};
        let plain = about("name=a").unwrap();
        for parameter in INGEST {
            let name = parameter.name;
            let value = match (name, parameter.takes) {
                (_, Takes::Words(words)) => {
                    for word in words {
                        assert_eq!(about(&format!("name=a&{name}={word}")).unwrap(), plain, "{name}={word}");
                    }
                    assert!(about(&format!("name=a&{name}=nonsense")).is_err(), "{name}");
                    continue;
                }
                ("from" | "until", _) => "1700000000",
                ("spyName", _) => "gospy",
                _ => "b",
            };
            let said = about(&format!("name=a&{name}={value}")).unwrap();
            assert_ne!(said, plain, "{name}");
            assert_eq!(about(&format!("{name}={value}")).is_ok(), parameter.is_needed, "{name}");
        }
        assert_eq!(about("name=a&colour=red").unwrap(), plain);
    }

    #[test]
    fn a_form_has_the_profile_and_what_is_said_of_its_values() {
        let form = "--xyz\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n\
                    Content-Type: application/octet-stream\r\n\r\n\x1f\r\n--x\r\n--xyz\r\n\
                    Content-Disposition: form-data; name=\"sample_type_config\"; filename=\"c.json\"\r\n\r\n\
                    {\"goroutine\":{\"units\":\"goroutines\",\"display-name\":\"goroutines\"},\"alloc\":{\"cumulative\":true}}\
                    \r\n--xyz--\r\n";
        let body = Bytes::from(form);
        let mut said = About::default();
        assert_eq!(boundary("multipart/form-data; boundary=xyz"), Some("xyz"));
        assert_eq!(boundary("application/octet-stream"), None);
        assert_eq!(of_form(&body, "xyz", &mut said).unwrap(), b"\x1f\r\n--x"[..]);
        assert_eq!(
            (said.names["goroutine"].as_str(), said.cumulative),
            ("goroutines", vec!["alloc".to_owned()])
        );
        for cut in [3, 40, form.len() - 20] {
            assert!(
                of_form(&body.slice(..cut), "xyz", &mut About::default()).is_err(),
                "{cut}"
            );
        }
    }
}
