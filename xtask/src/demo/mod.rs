//! `cargo xtask demo`: incidents played with real programs on this machine, to be looked at on the page.
//!
//! Each scene starts its programs, waits until the server has their samples, prints what the server says of them, which
//! has to be what was played, and the links that open it.

mod jobs;
mod kubelet;
mod link;
mod programs;
mod shop;
mod stalls;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

pub(crate) use self::kubelet::{Frame, Windows, diff_path, frames, play, query, walk};
use crate::http::{Client, integer};
use crate::signals::Stop;
use crate::stack::{self, Options, Stack};
use crate::{artifacts, up};
use link::{Link, Times};

/// What is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scene {
    /// A walk over a folder that grows by itself: two windows of one program
    Kubelet,
    /// A Java service and its Python clients, beside a file system that nobody uses: one window, user and system time
    Shop,
    /// The same jobs on machines and in pods, in Python: two selections of one window
    Jobs,
    /// Packets that wait for a slow reader's CPU, which is looked at 999 times a second: what ran before, and what
    /// waited
    Stalls,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to play
    #[arg(value_enum, default_value_t = Scene::Kubelet)]
    scene: Scene,
    /// Length of the window before the jump, or of the time in which a service starts
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    before: u64,
    /// Length of the window after the jump, or of the only one
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    after: u64,
    /// A running server to use, if an agent of this machine ships to it; otherwise both are started there
    #[arg(long, default_value = "http://127.0.0.1:7373", value_name = "URL")]
    url: String,
    /// Folder for the samples and logs, if server and agent are started [default: .stakeout in the clone]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Samples per second and CPU, if the agent is started
    #[arg(long, default_value_t = 20, value_name = "HZ")]
    frequency: u32,
    #[command(flatten)]
    build: artifacts::Choice,
    /// End after printing the link, also where server and agent were started for the demo
    #[arg(long)]
    no_wait: bool,
}

/// Plays a scene, prints its links and figures.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut own = None;
    let (stop, client) = if let Some(running) = running(&args.url)? {
        println!("using the server at {}", running.base());
        (Stop::install()?, running)
    } else {
        println!("no server at {}: starting one with an agent", args.url);
        let listen = args.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        stack::free_address(&listen)?;
        let binaries = artifacts::all(args.build.profile())?;
        let state_dir = stack::state_dir(args.state_dir.as_deref())?;
        let options = Options {
            binaries,
            state_dir,
            listen,
            frequency_hz: args.frequency,
        };
        let stop = Stop::install()?;
        let mut stack = Stack::start(&options, &stop)?;
        stack.wait_samples(stack::FIRST_SAMPLES, &stop)?;
        let client = stack.client.clone();
        own = Some(stack);
        (stop, client)
    };
    let times = Times {
        before: args.before,
        after: args.after,
    };
    let show = match args.scene {
        Scene::Kubelet => kubelet::show,
        Scene::Shop => shop::show,
        Scene::Jobs => jobs::show,
        Scene::Stalls => stalls::show,
    };
    let played = show(&client, times, &stop).and_then(|(links, outcome)| {
        for Link { about, path } in links {
            println!("\n  {about}:\n  {}{path}", client.base());
        }
        println!();
        outcome
    });
    if let Some(stack) = &mut own {
        if played.is_ok() && !args.no_wait {
            println!("Ctrl-C stops the server and the agent");
            up::stay(stack, &stop)?;
        }
        stack.stop()?;
    }
    played
}

/// The server at this URL, if it is one and an agent has shipped to it in the last half minute.
fn running(url: &str) -> Result<Option<Client>> {
    let client = Client::new(url);
    let Ok(answer) = client.get("/api/v1/nodes") else {
        return Ok(None);
    };
    ensure!(
        answer.status == 200,
        "{url} answers, but not as a Stakeout server: {} for /api/v1/nodes",
        answer.status
    );
    let nodes = answer
        .json()
        .with_context(|| format!("{url} answers, but not as a Stakeout server"))?;
    let since = stack::now_ms() - 30_000;
    let alive = nodes["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|node| integer(&node["last_seen"]) > since);
    ensure!(
        alive,
        "there is a server at {url}, but no agent has shipped to it in the last 30 s: start one, or use --url"
    );
    Ok(Some(client))
}
