//! A server and an agent of this machine, side by side: what `up` shows, what the demo and the tests run on.

use std::fs;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::artifacts::Binaries;
use crate::http::{Client, integer};
use crate::service::{Service, make_dir, within};
use crate::signals::Stop;

/// How long the first samples may take. On an idle machine they wait for the unwinding tables of large programs, such
/// as the server itself, which the agent makes within its small CPU budget.
pub(crate) const FIRST_SAMPLES: Duration = Duration::from_secs(180);

/// Where and how to run.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) binaries: Binaries,
    /// Holds `data`, `agent` and the logs.
    pub(crate) state_dir: PathBuf,
    /// `HOST:PORT`; port 0 takes a free one.
    pub(crate) listen: String,
    pub(crate) frequency_hz: u32,
}

/// Where a server has its data, if not in its state folder.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    /// As `--data` names it.
    pub(crate) data: String,
    /// What the server needs to reach it.
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// The running pair.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) server: Service,
    pub(crate) agent: Service,
    pub(crate) client: Client,
    started_ms: i64,
}

impl Stack {
    /// Starts the server, waits until it is ready, starts the agent.
    pub(crate) fn start(options: &Options, stop: &Stop) -> Result<Stack> {
        Stack::start_with(options, [&[], &[]], stop)
    }

    /// The same with more arguments for the server, and for the agent.
    pub(crate) fn start_with(options: &Options, [more, of_agent]: [&[&str]; 2], stop: &Stop) -> Result<Stack> {
        make_dir(&options.state_dir)?;
        let listen = free_address(&options.listen)?;
        let client = Client::new(&format!("http://{listen}"));
        let downloads = downloads(options)?;
        let downloads = downloads.to_string_lossy();
        let mut server = start_server(options, &listen, &[&["--agent-dir", &downloads], more].concat())?;
        wait_ready(&mut server, &client, stop)?;
        let started_ms = now_ms();
        let agent = start_agent(options, client.base(), of_agent)?;
        Ok(Stack {
            server,
            agent,
            client,
            started_ms,
        })
    }

    /// Waits until samples of this agent are stored.
    pub(crate) fn wait_samples(&mut self, limit: Duration, stop: &Stop) -> Result<()> {
        let arrived = within(limit, || {
            stop.check()?;
            self.check()?;
            let nodes = self.client.get_json("/api/v1/nodes")?;
            let mut nodes = nodes["nodes"].as_array().into_iter().flatten();
            let is_new = |node: &Value| integer(&node["last_seen"]) >= self.started_ms;
            Ok(nodes.any(|node| is_new(node) && integer(&node["samples_stored"]) > 0))
        })?;
        ensure!(
            arrived,
            "no samples arrived within {} s; the agent's last lines ({}):\n{}",
            limit.as_secs(),
            self.agent.log().display(),
            self.agent.last_lines(10)
        );
        Ok(())
    }

    /// An error, with the last lines of its log, if one of the two has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        alive(&mut self.server)?;
        alive(&mut self.agent)
    }

    /// Stops the agent first, so that its last samples still reach the server. Says how each one ended; an error if one
    /// had to be killed or reported a failure.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let mut bad = vec![];
        for service in [&mut self.agent, &mut self.server] {
            match service.stop(Duration::from_secs(20)) {
                Some(status) if status.success() => println!("{} stopped", service.name()),
                Some(status) => bad.push(format!("the {} ended with {status}", service.name())),
                None => bad.push(format!("the {} didn't stop within 20 s and was killed", service.name())),
            }
        }
        ensure!(bad.is_empty(), "{}", bad.join("; "));
        Ok(())
    }
}

/// A server without an agent.
#[derive(Debug)]
pub(crate) struct Alone {
    pub(crate) options: Options,
    pub(crate) server: Service,
    pub(crate) client: Client,
    elsewhere: Option<Elsewhere>,
    more: Vec<String>,
}

impl Alone {
    /// Starts it, with more arguments than the usual, and waits until it is ready.
    pub(crate) fn start(options: Options, more: &[&str], stop: &Stop) -> Result<Alone> {
        Alone::start_on(options, None, more, stop)
    }

    /// The same, with its data where this says.
    pub(crate) fn start_on(
        options: Options,
        elsewhere: Option<Elsewhere>,
        more: &[&str],
        stop: &Stop,
    ) -> Result<Alone> {
        let listen = free_address(&options.listen)?;
        let options = Options { listen, ..options };
        let client = Client::new(&format!("http://{}", options.listen));
        let mut server = start_server_on(&options, elsewhere.as_ref(), &options.listen, more)?;
        wait_ready(&mut server, &client, stop)?;
        let more = more.iter().map(|word| (*word).to_owned()).collect();
        Ok(Alone {
            options,
            server,
            client,
            elsewhere,
            more,
        })
    }

    /// Starts it again in the same place, once the one before has ended.
    pub(crate) fn restart(&mut self, stop: &Stop) -> Result<()> {
        let ended = self.server.wait(Duration::from_secs(30));
        ensure!(ended.is_some(), "the server does not end");
        let more: Vec<&str> = self.more.iter().map(String::as_str).collect();
        self.server = start_server_on(&self.options, self.elsewhere.as_ref(), &self.options.listen, &more)?;
        wait_ready(&mut self.server, &self.client, stop)
    }

    /// Stops it; an error if it did not end well.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let status = self.server.stop(Duration::from_secs(30));
        ensure!(
            status.is_some_and(|status| status.success()),
            "the server ended badly:\n{}",
            self.server.last_lines(10)
        );
        Ok(())
    }
}

/// A folder with the agent under the name by which the server hands it out to other machines.
fn downloads(options: &Options) -> Result<PathBuf> {
    let dir = options.state_dir.join("download");
    make_dir(&dir)?;
    let name = dir.join(format!("stakeout-agent-linux-{}", std::env::consts::ARCH));
    // A link of its own name first: a server that runs may be reading the old one.
    let fresh = dir.join(".fresh");
    let _ = fs::remove_file(&fresh);
    fs::hard_link(&options.binaries.agent, &fresh)
        .or_else(|_| fs::copy(&options.binaries.agent, &fresh).map(drop))
        .and_then(|()| fs::rename(&fresh, &name))
        .with_context(|| format!("can't put the agent into {}", dir.display()))?;
    // Renaming a link over another link of the same file leaves both.
    let _ = fs::remove_file(&fresh);
    Ok(dir)
}

/// Starts a server with more arguments than the usual.
pub(crate) fn start_server(options: &Options, listen: &str, more: &[&str]) -> Result<Service> {
    start_server_on(options, None, listen, more)
}

fn start_server_on(options: &Options, elsewhere: Option<&Elsewhere>, listen: &str, more: &[&str]) -> Result<Service> {
    let mut command = Command::new(&options.binaries.server);
    command.args(["--listen", listen, "--data"]);
    match elsewhere {
        Some(Elsewhere { data, environment }) => command.arg(data).envs(environment.iter().map(|(k, v)| (k, v))),
        None => command.arg(options.state_dir.join("data")),
    };
    command.args(more);
    Service::start("server", &mut command, &options.state_dir.join("server.log"))
}

/// Starts an agent that ships to `url`, with more arguments than the usual.
pub(crate) fn start_agent(options: &Options, url: &str, more: &[&str]) -> Result<Service> {
    let mut command = Command::new(&options.binaries.agent);
    command.args([
        "--server",
        url,
        "--frequency",
        &options.frequency_hz.to_string(),
        "--state-dir",
    ]);
    command.arg(options.state_dir.join("agent")).args(more);
    // Unoptimised it takes several times the CPU time, and would lower its rate where nobody expects it.
    if options
        .binaries
        .agent
        .parent()
        .is_some_and(|dir| dir.ends_with("debug"))
    {
        command.args(["--cpu-limit", "100"]);
    }
    let why = "the agent samples every process through eBPF, which only root may do";
    Service::start_as_root("agent", &command, &options.state_dir.join("agent.log"), why)
}

/// Waits for `/readyz`.
pub(crate) fn wait_ready(server: &mut Service, client: &Client, stop: &Stop) -> Result<()> {
    let mut said = String::new();
    let is_ready = within(Duration::from_secs(60), || {
        stop.check()?;
        alive(server)?;
        let answer = client.get("/readyz");
        let is_ready = answer.as_ref().is_ok_and(|answer| answer.status == 200);
        said = answer.map_or_else(|error| format!("{error:#}"), |answer| answer.text());
        Ok(is_ready)
    })?;
    ensure!(
        is_ready,
        "the server is not ready after 60 s: {said}\n{}",
        server.last_lines(10)
    );
    Ok(())
}

/// Until when the server has what the agent of a measurement saw, in Unix milliseconds; 0 before its first batch.
pub(crate) fn stored_ms(client: &Client) -> Result<i64> {
    Ok(client.sql_number("SELECT max(until_ns) FROM batches")? / 1_000_000)
}

/// Waits until the server has what this agent saw up to then.
pub(crate) fn wait_stored(client: &Client, until_ms: i64, agent: &mut Service, stop: &Stop) -> Result<()> {
    let is_stored = within(Duration::from_secs(120), || {
        stop.check()?;
        alive(agent)?;
        Ok(stored_ms(client)? >= until_ms)
    })?;
    ensure!(is_stored, "the agent has shipped nothing for 120 s");
    Ok(())
}

/// An error, with its last lines, if the program has ended.
pub(crate) fn alive(service: &mut Service) -> Result<()> {
    if let Some(status) = service.ended() {
        bail!(
            "the {} ended by itself ({status}); its last lines ({}):\n{}",
            service.name(),
            service.log().display(),
            service.last_lines(10)
        );
    }
    Ok(())
}

/// The address with its port free right now; port 0 becomes a free one.
pub(crate) fn free_address(listen: &str) -> Result<String> {
    let address = listen
        .to_socket_addrs()
        .with_context(|| format!("--listen {listen} is not HOST:PORT, such as 127.0.0.1:7373"))?
        .next()
        .with_context(|| format!("--listen {listen} names no address"))?;
    let socket = TcpListener::bind(address).with_context(|| {
        format!(
            "can't listen on {listen}; if another program holds it, choose another port with --listen 127.0.0.1:PORT"
        )
    })?;
    Ok(socket.local_addr()?.to_string())
}

/// The folder for state: as given, else `.stakeout` in the clone, which git ignores.
pub(crate) fn state_dir(given: Option<&Path>) -> Result<PathBuf> {
    let dir = given.map_or_else(|| crate::repo::root().join(".stakeout"), Path::to_owned);
    std::path::absolute(&dir).with_context(|| format!("{} is not a folder", dir.display()))
}

/// Wall time in Unix milliseconds.
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
