//! Asks the server whether somebody wants a closer look: a request that it answers once there is something to say.

use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Url};

use super::desk::BurstDesk;
use super::wire::{About, Answer, Question, parse_answer};
use crate::random::Random;
use crate::ship::config::{ShipConfig, ShipError};
use crate::ship::send::{client, url_of};

const PATH: &str = "/api/v1/agent/bursts";
/// How long the server may hold a question; while a burst runs, so that the loss of the server is noticed.
const HOLD: Duration = Duration::from_secs(20);
const HOLD_WHILE_RUNNING: Duration = Duration::from_secs(2);
/// How much longer an answer may take than it was to be held.
const GRACE: Duration = Duration::from_secs(5);
/// A burst that nobody can end, since the server has not answered for so long, is ended.
const LOST_AFTER: Duration = Duration::from_secs(6);
/// After an answer that says nothing: never two questions at once.
const LEAST_APART: Duration = Duration::from_millis(200);
/// After a failure: the first wait, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// Pauses are up to this share longer or shorter: agents do not come in step.
const JITTER: f64 = 0.25;
/// A server that knows of no bursts, or does not let this agent ask, is asked again so seldom.
const SELDOM: Duration = Duration::from_secs(300);
/// An answer is read so far.
const ANSWER_LIMIT_BYTES: usize = 256 << 10;

enum Heard {
    Answer(Answer),
    /// It does not know what is asked, or does not let in who asks.
    Stranger(u16),
    Failed(String),
}

/// Asks for as long as it is polled.
pub struct BurstPolls {
    client: Client,
    url: Url,
    about: Box<dyn Fn() -> About>,
}

impl std::fmt::Debug for BurstPolls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BurstPolls({})", self.url)
    }
}

impl BurstPolls {
    /// Asks the server of `config` as `about` says at each time.
    pub fn new(config: &ShipConfig, about: impl Fn() -> About + 'static) -> Result<Self, ShipError> {
        let url = url_of(&config.server, PATH)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = client(config, &url, headers)?;
        let about = Box::new(about);
        Ok(Self { client, url, about })
    }

    /// Asks again and again, and puts what the server wants on the desk. Never ends by itself.
    pub async fn run(&self, desk: &BurstDesk) {
        let mut random = Random::from_system();
        let (mut wait, mut answered) = (RETRY.0, Instant::now());
        loop {
            let begun = Instant::now();
            // Something to tell ends the wait: the next question tells it.
            let heard = tokio::select! {
                heard = self.ask(desk) => heard,
                () = desk.news() => continue,
            };
            let pause = match heard {
                Heard::Answer(answer) => {
                    (wait, answered) = (RETRY.0, Instant::now());
                    let again = Duration::from_millis(answer.again_ms).min(SELDOM);
                    take(answer, desk);
                    again.max(LEAST_APART.saturating_sub(begun.elapsed()))
                }
                Heard::Stranger(status) => {
                    tracing::info!(status, url = %self.url, "the server takes no questions for bursts from here");
                    desk.end_all("the server takes no questions any more");
                    SELDOM
                }
                Heard::Failed(cause) => {
                    tracing::debug!(cause, "the server does not say whether somebody asks for a burst");
                    if answered.elapsed() >= LOST_AFTER {
                        desk.end_all("the server could not be reached");
                    }
                    let longest = if desk.is_running() {
                        Duration::from_secs(1)
                    } else {
                        RETRY.1
                    };
                    let pause = wait.min(longest);
                    wait = (wait * 2).min(RETRY.1);
                    pause
                }
            };
            let pause = random.about(pause.as_nanos() as u64, JITTER);
            tokio::time::sleep(Duration::from_nanos(pause)).await;
        }
    }

    /// Tells the server that the agent stops, and what became of the last burst.
    pub async fn tell_last(&self, desk: &BurstDesk) {
        // Where that fails, the server finds out by the agent's silence.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.question(desk, Duration::ZERO, true)).await;
    }

    async fn ask(&self, desk: &BurstDesk) -> Heard {
        let hold = if desk.is_running() { HOLD_WHILE_RUNNING } else { HOLD };
        self.question(desk, hold, false).await
    }

    async fn question(&self, desk: &BurstDesk, hold: Duration, stops: bool) -> Heard {
        let about = (self.about)();
        let question = Question {
            about: &about,
            wait_ms: hold.as_millis() as u64,
            stops,
            bursts: desk.reports(),
        };
        let body = match serde_json::to_vec(&question) {
            Ok(body) => body,
            Err(error) => return Heard::Failed(error.to_string()),
        };
        let request = self.client.post(self.url.clone()).timeout(hold + GRACE).body(body);
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Heard::Failed(error.to_string()),
        };
        let status = response.status().as_u16();
        match status {
            200 => {}
            // 401 also of a server that is older than bursts: it takes the path for one of the page's.
            300..=399 | 401 | 403 | 404 | 405 => return Heard::Stranger(status),
            _ => return Heard::Failed(format!("status {status}")),
        }
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= ANSWER_LIMIT_BYTES => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Ok(Some(_)) => return Heard::Stranger(status),
                Err(error) => return Heard::Failed(error.to_string()),
            }
        }
        parse_answer(&body).map_or(Heard::Stranger(status), Heard::Answer)
    }
}

fn take(answer: Answer, desk: &BurstDesk) {
    answer.told.iter().for_each(|id| desk.told(id));
    for id in &answer.cancel {
        desk.end(id, "it was cancelled");
    }
    answer.begin.into_iter().for_each(|order| desk.order(order));
}
