//! A synthetic fleet: agents that never ran ship samples whose number and content are known by construction.
//!
//! In: a server's URL and the fleet's size. Out: one JSON line an agent on standard output, with what the server has
//! acknowledged. Every batch is sent until it is acknowledged, under the same instance and number, as the real agent
//! does; so the server must hold each sample exactly once, whatever happened on the way.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Parser;
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use uuid::Uuid;

mod describe;
mod encode;
mod fleet;
mod spoil;

use encode::Batch;
use fleet::{Fleet, Rng};

/// Batches are made on as many threads as there are CPUs, of thousands of small pieces: with the C library's
/// allocator half of the time goes there.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Clone, Debug, Parser)]
#[command(about = "A synthetic fleet that ships to a Stakeout server", max_term_width = 110)]
struct Args {
    /// The server, such as http://127.0.0.1:7373; of several with commas each batch goes to another, and so does each
    /// try of it
    #[arg(long, default_value = "http://127.0.0.1:7373", value_delimiter = ',')]
    url: Vec<String>,
    /// Agents, one a node, each with an instance of its own
    #[arg(long, default_value_t = 10)]
    agents: u32,
    /// Batches an agent; 0: until standard input ends
    #[arg(long, default_value_t = 10)]
    batches: u64,
    /// Samples a batch
    #[arg(long, default_value_t = 1000)]
    samples: u32,
    /// Time that a batch covers, in milliseconds
    #[arg(long, default_value_t = 5000)]
    interval_ms: u64,
    /// Pause after each batch, in milliseconds
    #[arg(long, default_value_t = 0)]
    pace_ms: u64,
    /// Batches of one agent that wait for their acknowledgement at the same time; at most 32
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=32))]
    in_flight: u64,
    /// Make batches while none is on the way: all agents make as many as one may have in flight, then send them, and
    /// so on. So what it takes to make them does not take the processors' caches from a server on the same machine
    #[arg(long, conflicts_with = "pace_ms")]
    by_turns: bool,
    /// When the first batch begins, in Unix milliseconds [default: so that the last one ends about now]
    #[arg(long)]
    start_ms: Option<u64>,
    /// Services of the whole fleet
    #[arg(long, default_value_t = 100)]
    services: u32,
    /// Services that run on one node
    #[arg(long, default_value_t = 10)]
    services_per_node: u32,
    /// Distinct stacks of a service
    #[arg(long, default_value_t = 5000)]
    stacks: u32,
    /// Beginning of the nodes' names
    #[arg(long, default_value = "load")]
    node_prefix: String,
    /// Bearer token
    #[arg(long, env = "STAKEOUT_TOKEN")]
    token: Option<String>,
    /// Send nothing; write one request, spoilt in this way, to standard output
    #[arg(long, value_enum, value_name = "HOW")]
    spoil: Option<spoil::Spoil>,
    /// Send nothing; print what one batch consists of, as JSON, to be held against a real agent's
    #[arg(long, conflicts_with = "spoil")]
    describe: bool,
    /// Give up when one batch is not acknowledged for so long, in seconds
    #[arg(long, default_value_t = 300)]
    patience: u64,
}

/// How far a batch may be above the oldest one that is not acknowledged: as of the agent.
const NUMBER_SPAN: u64 = 48;

/// What one agent can say about itself at the end.
#[derive(Debug, Default)]
struct Outcome {
    node: String,
    instance: Uuid,
    batches: u64,
    samples: u64,
    attempts: u64,
    sent_bytes: u64,
    /// Numbers of batches that are on the way.
    unacknowledged: BTreeSet<u64>,
}

impl Outcome {
    /// Waits until at most so many batches are on the way.
    async fn gather(&mut self, sending: &mut JoinSet<Result<(u64, u64)>>, most: usize) -> Result<()> {
        while (sending.len() > most || self.is_far_ahead())
            && let Some(sent) = sending.join_next().await
        {
            let (number, attempts) = sent.context("a sender panicked")??;
            self.unacknowledged.remove(&number);
            self.attempts += attempts;
        }
        Ok(())
    }

    /// Whether the next batch would be too far above the oldest that is not acknowledged: as the agent, which sends
    /// none that the server's window of numbers might leave behind.
    fn is_far_ahead(&self) -> bool {
        let oldest = self.unacknowledged.first();
        oldest.is_some_and(|oldest| self.batches + 1 >= oldest + NUMBER_SPAN)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(
        args.services_per_node >= 1 && args.services >= 1 && args.stacks >= 1,
        "a fleet without services has no samples"
    );
    ensure!(
        !args.by_turns || args.batches > 0,
        "--by-turns needs a number of --batches: agents that end by themselves would wait for each other"
    );
    let fleet = Arc::new(Fleet::new(args.services.max(3), args.stacks));
    if args.describe || args.spoil.is_some() {
        let now_ns = now_ns()?;
        let batch = Batch {
            node: "spoilt",
            instance: Uuid::new_v4(),
            number: 1,
            from_ns: now_ns - args.interval_ms * 1_000_000,
            until_ns: now_ns,
            samples: args.samples,
            taken: u64::from(args.samples),
        };
        let request = |services: &[u32]| encode::request(&batch, &fleet, services, &mut Rng::new(1));
        if let Some(spoil) = args.spoil {
            return Ok(std::io::stdout().write_all(&spoil::body(&request(&[0, 1, 2]), spoil)?)?);
        }
        let services: Vec<u32> = (0..args.services_per_node.min(args.services)).collect();
        println!("{}", describe::batch(&request(&services))?);
        return Ok(());
    }
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(60))
        .pool_idle_timeout(Duration::from_secs(5))
        .build()
        .context("can't make an HTTP client")?;
    let over = Arc::new(AtomicBool::new(false));
    if args.batches == 0 {
        let over = Arc::clone(&over);
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut vec![]);
            over.store(true, Ordering::Relaxed);
        });
    }
    let start_ns = match args.start_ms {
        Some(start_ms) => start_ms
            .checked_mul(1_000_000)
            .context("--start-ms is too far in the future")?,
        None => now_ns()? - args.batches * args.interval_ms * 1_000_000,
    };
    let turn = Arc::new(Barrier::new(args.agents as usize));
    let mut agents = JoinSet::new();
    for number in 0..args.agents {
        let agent = Agent {
            args: args.clone(),
            fleet: Arc::clone(&fleet),
            client: client.clone(),
            over: Arc::clone(&over),
            turn: Arc::clone(&turn),
            number,
            start_ns,
        };
        agents.spawn(agent.run());
    }
    while let Some(outcome) = agents.join_next().await {
        let outcome = outcome.context("an agent panicked")??;
        println!(
            "{}",
            json!({"node": outcome.node, "instance": outcome.instance.to_string(), "batches": outcome.batches,
                   "samples": outcome.samples, "attempts": outcome.attempts, "sent_bytes": outcome.sent_bytes})
        );
    }
    Ok(())
}

fn now_ns() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?)
}

struct Agent {
    args: Args,
    fleet: Arc<Fleet>,
    client: reqwest::Client,
    over: Arc<AtomicBool>,
    /// Where agents wait for each other, with `--by-turns`.
    turn: Arc<Barrier>,
    number: u32,
    start_ns: u64,
}

impl Agent {
    async fn run(self) -> Result<Outcome> {
        let agent = Arc::new(self);
        let args = &agent.args;
        let node = format!("{}-{:03}", args.node_prefix, agent.number);
        let mut outcome = Outcome {
            node,
            instance: Uuid::new_v4(),
            ..Outcome::default()
        };
        let mut rng = Rng::new(u64::from(agent.number) + 1);
        let services: Vec<u32> = (0..args.services_per_node)
            .map(|index| (agent.number * args.services_per_node + index) % args.services)
            .collect();
        let interval_ns = args.interval_ms * 1_000_000;
        let mut sending: JoinSet<Result<(u64, u64)>> = JoinSet::new();
        let mut made: Vec<(u64, Bytes)> = Vec::new();
        for done in 0.. {
            let enough = if args.batches == 0 {
                agent.over.load(Ordering::Relaxed)
            } else {
                done == args.batches
            };
            if args.by_turns && (enough || made.len() as u64 == args.in_flight) {
                agent.turn.wait().await;
                for (number, body) in made.drain(..) {
                    let (sender, instance) = (Arc::clone(&agent), outcome.instance);
                    sending.spawn(async move { Ok((number, sender.send(instance, number, body).await?)) });
                }
                outcome.gather(&mut sending, 0).await?;
                agent.turn.wait().await;
            }
            let most = if enough { 0 } else { args.in_flight as usize - 1 };
            outcome.gather(&mut sending, most).await?;
            if enough {
                break;
            }
            let batch = Batch {
                node: &outcome.node,
                instance: outcome.instance,
                number: done + 1,
                from_ns: agent.start_ns + done * interval_ns,
                until_ns: agent.start_ns + (done + 1) * interval_ns,
                samples: args.samples,
                taken: (done + 1) * u64::from(args.samples),
            };
            let request = encode::request(&batch, &agent.fleet, &services, &mut rng);
            // As the agent does it: at the usual level, and with its length in the header.
            let body: Bytes = zstd::bulk::compress(&request, 0).context("can't compress")?.into();
            outcome.batches += 1;
            outcome.unacknowledged.insert(done + 1);
            outcome.samples += u64::from(args.samples);
            outcome.sent_bytes += body.len() as u64;
            if args.by_turns {
                made.push((done + 1, body));
                continue;
            }
            let (sender, instance) = (Arc::clone(&agent), outcome.instance);
            sending.spawn(async move { Ok((done + 1, sender.send(instance, done + 1, body).await?)) });
            if args.pace_ms > 0 {
                tokio::time::sleep(Duration::from_millis(args.pace_ms)).await;
            }
        }
        Ok(outcome)
    }

    /// Sends one batch until it is acknowledged; returns the number of attempts.
    async fn send(&self, instance: Uuid, number: u64, body: Bytes) -> Result<u64> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(self.args.patience);
        for attempt in 1.. {
            let servers = &self.args.url;
            let server = &servers[((number + attempt) % servers.len() as u64) as usize];
            let url = format!("{}/v1development/profiles", server.trim_end_matches('/'));
            let mut request = self
                .client
                .post(&url)
                .header("content-type", "application/x-protobuf")
                .header("content-encoding", "zstd")
                .header("stakeout-instance", instance.to_string())
                .header("stakeout-batch", number.to_string());
            if let Some(token) = &self.args.token {
                request = request.bearer_auth(token);
            }
            let answer = request.body(body.clone()).send().await;
            let said = match answer {
                Ok(answer) if answer.status().is_success() => {
                    // Only a whole answer is an acknowledgement.
                    if answer.bytes().await.is_ok() {
                        return Ok(attempt);
                    }
                    "the answer was cut off".to_owned()
                }
                Ok(answer) => {
                    let status = answer.status();
                    let said = answer.text().await.unwrap_or_default();
                    ensure!(
                        status.as_u16() != 400 && status.as_u16() != 413,
                        "batch {number} refused: {status} {said}"
                    );
                    format!("{status} {said}")
                }
                Err(error) => format!("{error:#}"),
            };
            ensure!(
                tokio::time::Instant::now() < deadline,
                "batch {number} not acknowledged: {said}"
            );
            tokio::time::sleep(Duration::from_millis(50 << attempt.min(4))).await;
        }
        Ok(0)
    }
}
