//! What a sample costs now and what it did in an older build: both agents sample one load at the same time, and each
//! ships to the server of its own build. So whatever the machine does it does to both, and each is the other's load.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Args, BpfStatistics, Counters, Figures, counters, lost};
use crate::artifacts::Binaries;
use crate::bench::mixed::Mixed;
use crate::bench::receiver::Receiver;
use crate::http::Client;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{Options, alive, free_address, now_ms, start_agent, start_server, wait_ready};

/// Sampling, unwinding and shipping cost at most so much more than before.
const MOST: f64 = 1.03;

/// One build's programs while they run.
struct Build {
    name: &'static str,
    options: Options,
    client: Client,
    server: Service,
    agent: Option<Service>,
    started_ms: i64,
}

/// What each sample of a window cost, in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    bpf_us: f64,
    user_us: f64,
}

impl Cost {
    fn all(self) -> f64 {
        self.bpf_us + self.user_us
    }

    fn of(before: &Counters, after: &Counters) -> Result<Cost> {
        let delivered = after.delivered - before.delivered;
        ensure!(delivered > 0, "an agent delivered no sample: is a window too short?");
        let micros = |seconds: f64| seconds * 1e6 / delivered as f64;
        Ok(Cost {
            bpf_us: micros(after.bpf.seconds - before.bpf.seconds),
            user_us: micros(after.cpu_seconds - before.cpu_seconds),
        })
    }
}

impl Build {
    fn new(name: &'static str, options: Options, client: Client, server: Service) -> Build {
        Build {
            name,
            options,
            client,
            server,
            agent: None,
            started_ms: 0,
        }
    }

    /// The older build of a folder, whose server has a folder of data of its own.
    fn of_folder(folder: &Path, newer: &Options, dir: &Path, stop: &Stop) -> Result<Build> {
        let binaries = Binaries {
            agent: folder.join("stakeout-agent"),
            server: folder.join("stakeout-server"),
        };
        for program in [&binaries.agent, &binaries.server] {
            ensure!(program.is_file(), "there is no {}", program.display());
        }
        let options = Options {
            binaries,
            state_dir: dir.to_owned(),
            listen: free_address("127.0.0.1:0")?,
            frequency_hz: newer.frequency_hz,
        };
        let client = Client::new(&format!("http://{}", options.listen));
        let mut server = start_server(&options, &options.listen, &[])?;
        wait_ready(&mut server, &client, stop)?;
        Ok(Build::new("before", options, client, server))
    }

    fn start(&mut self, frequency_hz: u32) -> Result<()> {
        self.options.frequency_hz = frequency_hz;
        self.agent = Some(start_agent(&self.options, self.client.base(), &[])?);
        self.started_ms = now_ms();
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.agent.iter_mut().try_for_each(alive)
    }

    fn counters(&self) -> Result<Counters> {
        let Some(agent) = &self.agent else {
            anyhow::bail!("the agent of {} does not run", self.name);
        };
        counters(agent, &self.client, self.started_ms)
    }

    fn end_agent(&mut self) -> Result<()> {
        let ended = self.agent.take().map(|mut agent| agent.stop(Duration::from_secs(30)));
        ensure!(
            ended.flatten().is_some_and(|status| status.success()),
            "the agent of {} ended badly",
            self.name
        );
        Ok(())
    }
}

pub(super) fn run(args: &Args, folder: &Path, figures: &mut Figures) -> Result<()> {
    let Receiver {
        options,
        client,
        server,
        stop,
        dir,
    } = Receiver::start(20)?;
    let older_dir = tempfile::tempdir()?;
    let older = Build::of_folder(folder, &options, older_dir.path(), &stop)?;
    let mut builds = [older, Build::new("now", options, client, server)];
    let mut load = Mixed::start(dir.path())?;
    let _statistics = BpfStatistics::on()?;
    figures.print_note(format!(
        "before: programs of another folder; both agents at once on {}; windows of {} s after {} s",
        load.names(),
        args.seconds,
        args.warm_up
    ));
    println!(
        "{:>4} {:>10} {:>30} {:>30} {:>30}",
        "Hz", "window", "us a sample: before, now, ratio", "BPF", "user space"
    );
    figures.table("A sample now and before");
    for &frequency_hz in &args.frequency {
        for build in &mut builds {
            build.start(frequency_hz)?;
        }
        sleep(args.warm_up, &mut builds, &mut load, &stop)?;
        let begin = read(&builds)?;
        let mut last = begin;
        for window in 1..=args.windows {
            sleep(args.seconds, &mut builds, &mut load, &stop)?;
            let now = read(&builds)?;
            row(frequency_hz, &window.to_string(), costs(&last, &now)?);
            last = now;
        }
        let all = costs(&begin, &last)?;
        row(frequency_hz, "all", all);
        let [before, now] = all;
        figures.row(&format!("{frequency_hz} Hz"));
        figures.add("before", "us", before.all());
        figures.add("now", "us", now.all());
        figures.add("now to before", "", now.all() / before.all()).at_most(MOST);
        figures.add("BPF, now to before", "", now.bpf_us / before.bpf_us);
        figures.add("user space, now to before", "", now.user_us / before.user_us);
        for build in &mut builds {
            figures.add(
                &format!("lost, {}", build.name),
                "",
                lost(&build.client, build.started_ms)? as f64,
            );
            build.end_agent()?;
        }
    }
    println!("\ntarget: now to before at most {MOST}");
    drop(load);
    for build in &mut builds {
        build.server.stop(Duration::from_secs(20));
    }
    Ok(())
}

fn read(builds: &[Build; 2]) -> Result<[Counters; 2]> {
    Ok([builds[0].counters()?, builds[1].counters()?])
}

fn costs(before: &[Counters; 2], after: &[Counters; 2]) -> Result<[Cost; 2]> {
    Ok([Cost::of(&before[0], &after[0])?, Cost::of(&before[1], &after[1])?])
}

fn row(frequency_hz: u32, window: &str, [before, now]: [Cost; 2]) {
    let pair = |before: f64, now: f64| format!("{before:.1} {now:.1} {:.3}", now / before);
    println!(
        "{frequency_hz:>4} {window:>10} {:>30} {:>30} {:>30}",
        pair(before.all(), now.all()),
        pair(before.bpf_us, now.bpf_us),
        pair(before.user_us, now.user_us)
    );
}

fn sleep(seconds: u64, builds: &mut [Build; 2], load: &mut Mixed, stop: &Stop) -> Result<()> {
    for _ in 0..seconds {
        thread::sleep(Duration::from_secs(1));
        stop.check()?;
        builds.iter_mut().try_for_each(Build::check)?;
        load.check()?;
    }
    Ok(())
}
