//! One attempt to hand a batch to the server, and what its answer means.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};

use super::answer::{Answer, answer, refusal};
use super::config::{ShipConfig, ShipError, Token};
use super::spool::SpooledBatch;

const PATH: &str = "/v1development/profiles";
const PROTOBUF: &str = "application/x-protobuf";
/// Answer: samples of the batch that were left out of what was stored.
const REFUSED_SAMPLES: &str = "stakeout-rejected-samples";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What is read of an answer: enough for its message.
const ANSWER_LIMIT_BYTES: usize = 64 << 10;
/// What is shown of a server's message.
const MESSAGE_LIMIT_CHARS: usize = 300;
/// A server that asks for more is asked again anyway.
const RETRY_AFTER_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Taken, but for `refused` samples, of which `message` tells.
    Acknowledged { refused: u64, message: String },
    /// Never to be sent again: `why` names it for the dead letters, `message` is the server's.
    Refused { why: String, message: String },
    /// To be sent again, not before `after`.
    Failed {
        reason: String,
        after: Option<Duration>,
        /// No waiting mends it: the configuration is wrong.
        needs_person: bool,
    },
}

#[derive(Debug)]
pub(super) struct Sender {
    client: Client,
    url: Url,
}

impl Sender {
    pub(super) fn new(config: &ShipConfig) -> Result<Self, ShipError> {
        let url = url_of(&config.server, PATH)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("zstd"));
        let client = client(config, &url, headers)?;
        Ok(Self { client, url })
    }

    pub(super) async fn send(&self, spooled: &SpooledBatch) -> Outcome {
        let request = self
            .client
            .post(self.url.clone())
            .header("stakeout-instance", spooled.instance.to_string())
            .header("stakeout-batch", spooled.number)
            .body(spooled.body.clone());
        match request.send().await {
            Ok(response) => self.outcome_of(response).await,
            Err(error) => self.unreached(&error),
        }
    }

    fn unreached(&self, error: &reqwest::Error) -> Outcome {
        let cause = root_cause(error);
        let certificate = cause.contains("certificate");
        let reason = if error.is_timeout() {
            format!("{} did not answer in time", self.url)
        } else if certificate {
            format!(
                "{} cannot be trusted: {cause}; --ca-file names further certificates to trust",
                self.url
            )
        } else {
            format!("{} cannot be reached: {cause}", self.url)
        };
        Outcome::Failed {
            reason,
            after: None,
            needs_person: certificate,
        }
    }

    async fn outcome_of(&self, mut response: Response) -> Outcome {
        let status = response.status();
        let after = seconds(response.headers()).map(|s| Duration::from_secs(s).min(RETRY_AFTER_LIMIT));
        let refused = number(response.headers(), REFUSED_SAMPLES);
        let protobuf = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|t| t.as_bytes().starts_with(PROTOBUF.as_bytes()));
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk[..chunk.len().min(ANSWER_LIMIT_BYTES - body.len())]),
                Ok(None) => break,
                // Without the whole answer a success is not known to be one; of anything else the status is enough.
                Err(error) if status.is_success() => return self.unreached(&error),
                Err(_) => break,
            }
            if body.len() == ANSWER_LIMIT_BYTES {
                break;
            }
        }
        verdict(
            &self.url,
            Reply {
                status,
                after,
                refused,
                protobuf,
                body: &body,
            },
        )
    }
}

/// Asks the server with these headers and the token.
pub(super) fn client(config: &ShipConfig, url: &Url, mut headers: HeaderMap) -> Result<Client, ShipError> {
    if let Some(Token(token)) = &config.token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| ShipError::Token("it holds characters that an HTTP header cannot carry".into()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let mut client = Client::builder()
        .user_agent(format!("stakeout-agent/{}", config.identity.agent_version))
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(config.request_timeout)
        // A redirected POST arrives as GET: better to say that the URL is wrong.
        .redirect(redirect::Policy::none());
    if url.scheme() == "http" {
        // Reading the system's certificates takes time and memory.
        client = client.tls_built_in_root_certs(false);
    }
    for certificate in config
        .ca_file
        .as_deref()
        .map(certificates)
        .transpose()?
        .unwrap_or_default()
    {
        client = client.add_root_certificate(certificate);
    }
    client.build().map_err(|error| ShipError::Tls(root_cause(&error)))
}

/// What is looked at of an answer.
struct Reply<'a> {
    status: StatusCode,
    after: Option<Duration>,
    /// Samples that the server left out, where it says so.
    refused: Option<u64>,
    /// By its content type.
    protobuf: bool,
    body: &'a [u8],
}

/// What an answer means. Pure, so that every status can be tested.
fn verdict(url: &Url, reply: Reply<'_>) -> Outcome {
    let Reply {
        status,
        after,
        refused,
        protobuf,
        body,
    } = reply;
    let failed = |reason: String, needs_person| Outcome::Failed {
        reason,
        after,
        needs_person,
    };
    let not_a_server = || {
        let reason = format!("{url} answered {status}: no Stakeout server takes profiles there; check the server URL");
        failed(reason, true)
    };
    match status.as_u16() {
        200..=299 if protobuf || body.is_empty() => match answer(body) {
            Answer::Taken => Outcome::Acknowledged {
                refused: 0,
                message: String::new(),
            },
            Answer::Rejected { message, .. } => match refused {
                Some(refused) => Outcome::Acknowledged {
                    refused,
                    message: printable(&message),
                },
                // OTLP counts profiles, and a batch is one.
                None => Outcome::Refused {
                    why: "rejected".into(),
                    message: printable(&message),
                },
            },
            Answer::Foreign => not_a_server(),
        },
        400 | 413 => Outcome::Refused {
            why: status.as_u16().to_string(),
            message: message(protobuf, body),
        },
        401 | 403 => {
            let reason = format!("{url} answered {status}: the token is missing or wrong; check the token file");
            failed(reason, true)
        }
        408 | 429 | 500..=599 => failed(format!("{url} answered {status}: {}", message(protobuf, body)), false),
        _ => not_a_server(),
    }
}

/// Retry-After in seconds; dates need clocks that agree.
fn seconds(headers: &HeaderMap) -> Option<u64> {
    number(headers, RETRY_AFTER.as_str())
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// The message of a status in protobuf or of our own error format, else the text itself, fit for a log.
fn message(protobuf: bool, body: &[u8]) -> String {
    if let Some(told) = protobuf.then(|| refusal(body)).flatten() {
        return printable(&told);
    }
    let json = serde_json::from_slice::<serde_json::Value>(body).ok();
    let told = json
        .as_ref()
        .and_then(|json| json.get("error")?.get("message")?.as_str());
    printable(told.unwrap_or(&String::from_utf8_lossy(body)))
}

fn printable(text: &str) -> String {
    let shown: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MESSAGE_LIMIT_CHARS)
        .collect();
    if shown.trim().is_empty() {
        "no message".into()
    } else {
        shown.trim().into()
    }
}

/// What went wrong in the end: reqwest's own text names the URL and nothing else.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// An address of the server, below the base URL.
pub(super) fn url_of(server: &str, path: &str) -> Result<Url, ShipError> {
    let wrong = |reason: &str| ShipError::Url {
        url: server.into(),
        reason: reason.into(),
    };
    let mut url = Url::parse(server).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user or password; tokens are given apart"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it holds a query or fragment"));
    }
    let path = format!("{}{path}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, ShipError> {
    let wrong = |reason: String| ShipError::Ca {
        path: path.into(),
        reason,
    };
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(root_cause(&error)))?;
    if found.is_empty() {
        Err(wrong("it holds no certificate".into()))
    } else {
        Ok(found)
    }
}

/// What an answer without headers means; nothing where there is no such status.
#[cfg(any(test, fuzzing))]
fn outcome_of_status(status: u16, protobuf: bool, refused: Option<u64>, body: &[u8]) -> Option<Outcome> {
    let reply = Reply {
        status: StatusCode::from_u16(status).ok()?,
        after: None,
        refused,
        protobuf,
        body,
    };
    Some(verdict(&url_of("http://server:7373", PATH).ok()?, reply))
}

/// Holds of every answer: only an OTLP one acknowledges, and what goes to the log is short and has no control
/// characters.
#[cfg(any(test, fuzzing))]
pub(super) fn check(status: u16, protobuf: bool, refused: Option<u64>, body: &[u8]) {
    let text = match outcome_of_status(status, protobuf, refused, body) {
        Some(Outcome::Acknowledged { message, .. }) => {
            assert!((200..300).contains(&status) && (protobuf || body.is_empty()));
            message
        }
        Some(Outcome::Refused { message, .. }) => message,
        Some(Outcome::Failed { reason, .. }) => reason,
        None => return,
    };
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.chars().count() <= MESSAGE_LIMIT_CHARS + 200);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, protobuf: bool, body: &[u8]) -> Outcome {
        outcome_of_status(status, protobuf, None, body).unwrap()
    }

    fn taken() -> Outcome {
        Outcome::Acknowledged {
            refused: 0,
            message: String::new(),
        }
    }

    fn reason(outcome: Outcome) -> (String, bool) {
        match outcome {
            Outcome::Failed {
                reason, needs_person, ..
            } => (reason, needs_person),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn urls_are_completed_or_refused() {
        assert_eq!(
            url_of("http://a:7373", PATH).unwrap().as_str(),
            "http://a:7373/v1development/profiles"
        );
        assert_eq!(
            url_of("https://a/x/", PATH).unwrap().as_str(),
            "https://a/x/v1development/profiles"
        );
        for bad in [
            "",
            "a:7373",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a?x=1",
            "http://a#f",
        ] {
            assert!(url_of(bad, PATH).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_an_otlp_answer_is_an_acknowledgement() {
        assert_eq!(judged(200, true, b""), taken());
        assert_eq!(judged(204, false, b""), taken());
        let (reason, needs_person) = reason(judged(200, false, b"<html>welcome</html>"));
        assert!(
            reason.contains("http://server:7373") && reason.contains("server URL"),
            "{reason}"
        );
        assert!(needs_person);
    }

    #[test]
    fn refusals_are_final_and_carry_the_message() {
        let body = br#"{"error":{"code":"bad_profile","message":"stack 7 of 3","hint":""}}"#;
        assert_eq!(
            judged(400, false, body),
            Outcome::Refused {
                why: "400".into(),
                message: "stack 7 of 3".into()
            }
        );
        // google.rpc.Status { code: 3, message: "bad" }
        assert_eq!(
            judged(400, true, b"\x08\x03\x12\x03bad"),
            Outcome::Refused {
                why: "400".into(),
                message: "bad".into()
            }
        );
        assert_eq!(
            judged(413, false, b""),
            Outcome::Refused {
                why: "413".into(),
                message: "no message".into()
            }
        );
        // partial_success { rejected_profiles: 1, error_message: "no" }
        let partial = [0x0a, 0x06, 0x08, 0x01, 0x12, 0x02, b'n', b'o'];
        assert_eq!(
            judged(200, true, &partial),
            Outcome::Refused {
                why: "rejected".into(),
                message: "no".into()
            }
        );
    }

    #[test]
    fn a_batch_may_be_taken_in_part() {
        let url = url_of("http://server:7373", PATH).unwrap();
        let partial = [0x0a, 0x06, 0x08, 0x01, 0x12, 0x02, b'n', b'o'];
        let reply = Reply {
            status: StatusCode::OK,
            after: None,
            refused: Some(3),
            protobuf: true,
            body: &partial,
        };
        assert_eq!(
            verdict(&url, reply),
            Outcome::Acknowledged {
                refused: 3,
                message: "no".into()
            }
        );
    }

    #[test]
    fn the_rest_is_tried_again() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(!reason(judged(status, false, b"busy\n\x1b[31m")).1, "{status}");
        }
        for status in [301, 302, 307, 401, 403, 404, 405, 415] {
            assert!(reason(judged(status, false, b"")).1, "{status}");
        }
        assert!(reason(judged(401, false, b"")).0.contains("token"));
        assert!(!reason(judged(503, false, b"a\x1b[31mb")).0.contains('\x1b'));
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        let after = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            seconds(&headers)
        };
        assert_eq!(after("7"), Some(7));
        assert_eq!(after("-1"), None);
        assert_eq!(after("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }
}
