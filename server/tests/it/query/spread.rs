//! A question that several servers count has the answer that one gives, byte for byte, whatever becomes of the others.

use super::{PERIOD_NS, Random, S, Server, filled_with, ms, recent, samples};
use crate::wire::Batch;
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use stakeout_server::api::{AppState, app};
use stakeout_server::query::{Exchange, ExchangeError, Limits, ShareCounter, Spread, SpreadCounters};
use stakeout_server::store::{Store, StoreConfig};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;

/// What becomes of a share on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Counted,
    /// The server is gone.
    Failed,
    /// It never answers.
    Silent,
    /// It answers with something else.
    Garbage,
    /// With a part of it.
    Cut,
    Refused,
}

/// Other servers of this process.
#[derive(Debug)]
struct Others {
    counters: BTreeMap<String, ShareCounter>,
    /// Whichever of them comes next.
    fates: Mutex<(Random, Vec<Fate>)>,
    asked: AtomicU64,
}

#[async_trait]
impl Exchange for Others {
    fn own(&self) -> String {
        "a".to_owned()
    }

    fn servers(&self) -> Vec<String> {
        self.counters.keys().cloned().collect()
    }

    async fn count(&self, server: &str, share: Bytes) -> Result<Bytes, ExchangeError> {
        self.asked.fetch_add(1, Relaxed);
        let fate = {
            let mut fates = self.fates.lock().unwrap();
            let count = fates.1.len() as u64;
            let at = fates.0.below(count) as usize;
            fates.1[at]
        };
        let counted = self.counters[server].count(share).await;
        let counted = counted.map_err(|error| ExchangeError::Refused(error.to_string()))?;
        match fate {
            Fate::Counted => Ok(counted.into()),
            Fate::Failed => Err(ExchangeError::Failed("it is gone".to_owned())),
            Fate::Silent => std::future::pending().await,
            Fate::Garbage => Ok(Bytes::from_static(b"\x01\xff\xff\xff\xff\xff\xff")),
            Fate::Cut => Ok(Bytes::from(counted).slice(..1)),
            Fate::Refused => Err(ExchangeError::Refused("it has another version".to_owned())),
        }
    }
}

impl Others {
    fn will(&self, fates: &[Fate]) {
        self.fates.lock().unwrap().1 = fates.to_vec();
    }
}

/// Three servers on one directory, of which the first is asked: alone, and with the others.
struct Fleet {
    server: Server,
    together: Router,
    others: Arc<Others>,
    counters: Arc<SpreadCounters>,
    stores: [Arc<Store>; 2],
    from: i64,
}

fn shared(config: StoreConfig) -> StoreConfig {
    StoreConfig {
        is_shared: true,
        // They look when they have to.
        look_interval: Duration::from_secs(3_600),
        ..config
    }
}

impl Fleet {
    async fn start() -> Fleet {
        let from = recent();
        let (server, _) = filled_with(from, shared).await;
        let dir = server.store_dir();
        let open = async || Store::open(shared(StoreConfig::new(dir))).await.unwrap();
        let stores = [open().await, open().await];
        // What was committed since then others have not seen: they have to look, for series too.
        let mut random = Random(0xfee1);
        for number in 3..=9 {
            let start = from + number * 60 * S;
            let mut taken = samples(&mut random, start, 60, 300);
            taken.iter_mut().step_by(3).for_each(|sample| sample.service = "late");
            let batch = Batch {
                node: "a",
                instance: "00000000-0000-4000-8000-00000000000a",
                number,
                from_ns: start,
                until_ns: start + 60 * S,
                // Weights differ, as after a change of rate.
                period_ns: if number > 6 { PERIOD_NS / 4 } else { PERIOD_NS },
                missed_ticks: 0,
                samples: taken,
            };
            server.ingest(&batch).await;
            if number < 9 {
                server.store.flush().await.unwrap();
            }
        }
        let counters = Arc::<SpreadCounters>::default();
        let counter = |store: &Arc<Store>| ShareCounter::new(store.clone(), Limits::default(), counters.clone());
        let others = Arc::new(Others {
            counters: ["b", "c"]
                .map(str::to_owned)
                .into_iter()
                .zip(stores.iter().map(counter))
                .collect(),
            fates: Mutex::new((Random(0xfa7e), vec![Fate::Counted])),
            asked: AtomicU64::new(0),
        });
        let spread = Spread::default().over(others.clone(), 1);
        let state = AppState {
            spread: spread.clone(),
            ..AppState::new(server.store.clone())
        };
        Fleet {
            together: app(state),
            others,
            counters: spread.counters,
            stores,
            from,
            server,
        }
    }

    /// Asks both ways.
    async fn answers_alike(&self, path: &str, parameters: &[(&str, &str)]) {
        let (status, _, alone) = self.server.get(path, parameters).await;
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        let request = Request::get(format!("/api/v1/{path}?{query}"))
            .body(Body::empty())
            .unwrap();
        let response = self.together.clone().oneshot(request).await.unwrap();
        let status_together = response.status();
        let together = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(
            status_together,
            status,
            "{path} {parameters:?}: {}",
            String::from_utf8_lossy(&together)
        );
        assert!(
            together == alone,
            "{path} {parameters:?}:\n{}\n{}",
            text(&alone),
            text(&together)
        );
    }

    /// Every kind of question, in a window of some minutes.
    async fn every_question_is_answered_alike(&self, random: &mut Random) {
        let minute = |at: u64| ms(self.from + at as i64 * 60 * S + 1_234_000_000);
        let first = random.below(6);
        let [from, until, later] = [first, first + 3, first + 6].map(minute);
        let selectors = [
            "{}",
            "{service=\"late\"}",
            "{service=~\"kubelet|db\",thread!=\"gc\"}",
            "{tgid=\"1002\"}",
            "{node=\"a\",cpu=\"1\"}",
            "{node=\"nobody\"}",
        ];
        let selector = selectors[random.below(selectors.len() as u64) as usize];
        let window = [("from", from.as_str()), ("until", until.as_str()), ("query", selector)];
        let with = |more: &[(&'static str, &'static str)]| [&window[..], more].concat();
        self.answers_alike("flamegraph", &with(&[])).await;
        self.answers_alike("flamegraph", &with(&[("format", "collapsed")]))
            .await;
        self.answers_alike("flamegraph", &with(&[("group", "service,thread")]))
            .await;
        self.answers_alike("series", &with(&[("by", "service"), ("step", "10s")]))
            .await;
        self.answers_alike("series", &with(&[("by", "thread"), ("step", "7s"), ("limit", "2")]))
            .await;
        for by in ["function", "service", "tid"] {
            self.answers_alike("top", &with(&[("by", by)])).await;
        }
        self.answers_alike("facets", &with(&[])).await;
        self.answers_alike("heatmap", &with(&[("step", "1s"), ("rows", "20")]))
            .await;
        for limit in ["17", "100000"] {
            self.answers_alike("timeline", &with(&[("limit", limit)])).await;
        }
        let both = [
            ("base_from", from.as_str()),
            ("base_until", until.as_str()),
            ("from", until.as_str()),
            ("until", later.as_str()),
            ("query", selector),
        ];
        self.answers_alike("diff", &both).await;
        self.answers_alike("diff", &[&both[..], &[("group", "service")]].concat())
            .await;
        self.answers_alike("top", &[&both[..], &[("by", "function")]].concat())
            .await;
        self.answers_alike("top", &[&both[..], &[("by", "service")]].concat())
            .await;
    }

    async fn stop(self) {
        for store in &self.stores {
            store.close().await;
        }
        self.server.store.close().await;
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(4_000)])
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_answer_as_one() {
    let fleet = Fleet::start().await;
    let mut random = Random(0x5eed);
    for _ in 0..8 {
        fleet.every_question_is_answered_alike(&mut random).await;
    }
    let counters = &fleet.counters;
    assert!(counters.shares.load(Relaxed) > 50, "{counters:?}");
    assert_eq!(
        (counters.retries.load(Relaxed), counters.taken_back.load(Relaxed)),
        (0, 0),
        "{counters:?}"
    );
    assert!(counters.received_bytes.load(Relaxed) > 0, "{counters:?}");
    fleet.stop().await;
}

/// An answer that one server counts alone would be alike, too.
#[tokio::test(flavor = "multi_thread")]
async fn no_kind_of_question_is_left_to_one_server() {
    let fleet = Fleet::start().await;
    let [from, middle, until] = [0, 300, 600].map(|second| ms(fleet.from + second * S));
    let window = [("from", from.as_str()), ("until", until.as_str())];
    let both = [
        ("base_from", from.as_str()),
        ("base_until", middle.as_str()),
        ("from", middle.as_str()),
        ("until", until.as_str()),
    ];
    let kinds: [(&str, Vec<(&str, &str)>); 10] = [
        ("flamegraph", window.to_vec()),
        ("flamegraph", [&window[..], &[("group", "service,thread")]].concat()),
        ("series", [&window[..], &[("by", "service"), ("step", "10s")]].concat()),
        ("top", [&window[..], &[("by", "function")]].concat()),
        ("top", [&window[..], &[("by", "service")]].concat()),
        ("facets", window.to_vec()),
        ("heatmap", [&window[..], &[("step", "1s"), ("rows", "20")]].concat()),
        ("timeline", [&window[..], &[("limit", "17")]].concat()),
        ("diff", both.to_vec()),
        ("diff", [&both[..], &[("group", "service")]].concat()),
    ];
    let came = || fleet.counters.received_bytes.load(Relaxed);
    for (path, parameters) in kinds {
        let before = came();
        fleet.answers_alike(path, &parameters).await;
        assert!(came() > before, "{path} {parameters:?}: others counted nothing");
    }
    let counters = &fleet.counters;
    assert_eq!(
        (counters.retries.load(Relaxed), counters.taken_back.load(Relaxed)),
        (0, 0),
        "{counters:?}"
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_becomes_of_a_share_it_is_counted_once() {
    let fleet = Fleet::start().await;
    let mut random = Random(0xdead);
    for fates in [
        &[Fate::Failed][..],
        &[Fate::Garbage],
        &[Fate::Cut],
        &[Fate::Refused],
        &[Fate::Counted, Fate::Failed, Fate::Garbage, Fate::Cut, Fate::Refused],
    ] {
        fleet.others.will(fates);
        fleet.every_question_is_answered_alike(&mut random).await;
    }
    let counters = &fleet.counters;
    assert!(
        counters.retries.load(Relaxed) > 0 && counters.taken_back.load(Relaxed) > 0,
        "{counters:?}"
    );
    // A server that never answers costs patience, and no sample.
    fleet.others.will(&[Fate::Silent]);
    let window = [("from", ms(fleet.from)), ("until", ms(fleet.from + 600 * S))];
    let window: Vec<(&str, &str)> = window.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fleet.answers_alike("flamegraph", &window).await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_given_up_gives_its_shares_up() {
    let fleet = Fleet::start().await;
    fleet.others.will(&[Fate::Silent]);
    let window = format!("from={}&until={}", ms(fleet.from), ms(fleet.from + 600 * S));
    let request = Request::get(format!("/api/v1/flamegraph?{window}"))
        .body(Body::empty())
        .unwrap();
    let asked = tokio::time::timeout(Duration::from_millis(500), fleet.together.clone().oneshot(request)).await;
    assert!(
        asked.is_err(),
        "others are silent, and there is patience for two seconds"
    );
    // Nothing of it is left that holds memory.
    crate::support::eventually("memory is given back", async || {
        fleet.server.store.snapshot().memory_pool().reserved() == 0
    })
    .await;
    let status = fleet
        .server
        .get("flamegraph", &[("from", "now-1h"), ("until", "now")])
        .await
        .0;
    assert_eq!(status, StatusCode::OK);
    fleet.stop().await;
}
