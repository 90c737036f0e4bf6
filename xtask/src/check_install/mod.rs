//! The install script in a clean Debian: the `install` step of `cargo xtask test`.
//!
//! In: the built binaries. A minimal Debian 12 is made by debootstrap once and kept as an archive in the target
//! folder; every run unpacks it into a temporary folder. A real server hands out the script and the agent; the script
//! runs in a chroot, in a mount namespace of its own, so that nothing has to be unmounted afterwards.

mod debian;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::artifacts::Binaries;
use crate::http::{Client, integer};
use crate::service::{Service, make_dir, within};
use crate::signals::Stop;
use crate::stack::{self, Options};
use crate::tally::Tally;
use crate::{packages, repo, run};
use debian::clean_debian;
pub(crate) use debian::make_debian_meanwhile;

const TOKEN: &str = "install-check-token";
const LIMIT: Duration = Duration::from_secs(90);

/// Mounts what a container would have (`bare`: without /sys), then runs its first argument in the root at $ROOT.
const ENTER: &str = r#"
set -e
mount -t proc proc "$ROOT/proc"
[ "$2" = bare ] || mount --rbind /sys "$ROOT/sys"
mount --bind /dev "$ROOT/dev"
exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -c "$1"
"#;

type Case = fn(&mut Scene) -> Result<()>;

/// In order: what must change nothing comes before what installs.
const CASES: &[(&str, Case)] = &[
    ("a_missing_token_is_refused", missing_token),
    ("a_wrong_token_is_refused", wrong_token),
    ("a_wrong_checksum_is_refused", wrong_checksum),
    ("a_service_without_systemd_is_refused", no_systemd),
    ("a_kernel_without_btf_is_refused", no_btf),
    ("an_agent_is_installed_and_samples_arrive", installs),
    ("the_token_is_for_root_only", token_is_private),
    ("a_second_run_changes_nothing", second_run),
    ("uninstalling_leaves_nothing", uninstalls),
    ("uninstalling_again_says_so", uninstalls_again),
    ("an_agent_ships_over_tls_by_an_authority_of_its_own", over_tls),
    ("the_unit_file_is_valid", unit_file),
];

/// Runs all cases one after the other.
pub(crate) fn run(binaries: &Binaries) -> Result<Tally> {
    if !packages::is_root() {
        ensure!(
            env::var_os("CI").is_none(),
            "the install test needs root: it makes a chroot"
        );
        println!("install: NOT CHECKED, it needs root to make a chroot; run `sudo -E cargo xtask test --only install`");
        return Ok(Tally::default());
    }
    let stop = Stop::install()?;
    let mut scene = Scene::new(binaries, &stop)?;
    let mut tally = Tally::default();
    for (name, case) in CASES {
        stop.check()?;
        match case(&mut scene) {
            Ok(()) => {
                println!("test install::{name} ... ok");
                tally.passed += 1;
            }
            Err(error) => tally.fail(&format!("test install::{name} ... FAILED\n{error:#}")),
        }
    }
    Ok(tally)
}

/// What a script said and how it ended.
#[derive(Debug)]
struct Said {
    ok: bool,
    text: String,
}

impl Said {
    fn fails_with(&self, words: &str) -> Result<()> {
        ensure!(!self.ok, "the script succeeded:\n{}", self.text);
        self.contains(words)
    }

    fn contains(&self, words: &str) -> Result<()> {
        ensure!(
            self.text.contains(words),
            "the script didn't say `{words}`:\n{}",
            self.text
        );
        Ok(())
    }
}

/// Type, mode, owner, size and modification time of a file: whatever an installation could change.
type Trace = (u32, u32, u64, i64, i64);

struct Scene {
    /// Holds the root file system, the server's data and the logs.
    dir: TempDir,
    /// Stopped when the scene ends.
    _server: Service,
    options: Options,
    client: Client,
    /// The installed agent, from `installs` to `uninstalls`.
    foreground: Option<Service>,
    /// The root file system as it was unpacked.
    clean: BTreeMap<PathBuf, Trace>,
}

impl Scene {
    fn new(binaries: &Binaries, stop: &Stop) -> Result<Scene> {
        let dir = TempDir::new().context("can't make a temporary folder")?;
        let root = dir.path().join("root");
        make_dir(&root)?;
        let archive = clean_debian()?;
        run::run(Command::new("tar").arg("-xpf").arg(&archive).arg("-C").arg(&root))?;

        let offered = dir.path().join("offered");
        make_dir(&offered)?;
        let name = format!("stakeout-agent-linux-{}", env::consts::ARCH);
        fs::copy(&binaries.agent, offered.join(name)).context("can't copy the agent")?;
        let token_file = dir.path().join("tokens");
        fs::write(&token_file, format!("{TOKEN}\n"))?;

        let listen = stack::free_address("127.0.0.1:0")?;
        let options = Options {
            binaries: binaries.clone(),
            state_dir: dir.path().to_owned(),
            listen: listen.clone(),
            frequency_hz: 99,
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let more = [
            "--ingest-token-file",
            &text(&token_file),
            "--agent-dir",
            &text(&offered),
        ];
        let mut server = stack::start_server(&options, &listen, &more)?;
        let client = Client::new(&format!("http://{listen}"));
        stack::wait_ready(&mut server, &client, stop)?;
        let clean = traces(&root)?;
        Ok(Scene {
            dir,
            _server: server,
            options,
            client,
            foreground: None,
            clean,
        })
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// The folder with the agent to hand out.
    fn offered(&self) -> String {
        self.dir.path().join("offered").to_string_lossy().into_owned()
    }

    /// A command that runs `script` by the clean system's own shell. `mounts` is `whole` or `bare`, see [`ENTER`].
    fn inside(&self, script: &str, mounts: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            ENTER,
            "sh",
            script,
            mounts,
        ]);
        command.env("ROOT", self.root());
        command
    }

    fn say(&self, script: &str) -> Result<Said> {
        said(&mut self.inside(script, "whole"))
    }

    /// As the page tells people to: fetched and piped into a shell.
    fn piped(&self, before: &str, arguments: &str) -> String {
        format!(
            "{before} curl -fsSL {}/install.sh | sh -s -- {arguments}",
            self.client.base()
        )
    }

    fn is_untouched(&self) -> Result<()> {
        same(&self.clean, &traces(&self.root())?)
    }
}

fn said(command: &mut Command) -> Result<Said> {
    let output = command.stdin(Stdio::null()).output().context("can't start unshare")?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Said {
        ok: output.status.success(),
        text,
    })
}

fn missing_token(scene: &mut Scene) -> Result<()> {
    scene
        .say(&scene.piped("", "--no-service"))?
        .fails_with("asks for a token")?;
    scene.is_untouched()
}

fn wrong_token(scene: &mut Scene) -> Result<()> {
    let script = scene.piped("export STAKEOUT_TOKEN=guessed;", "--no-service");
    scene.say(&script)?.fails_with("refuses the token")?;
    scene.is_untouched()
}

/// The script announces one sum, the download has another.
fn wrong_checksum(scene: &mut Scene) -> Result<()> {
    let change = r#"sed "/^SHA256_/ s/'[0-9a-f]\{8\}/'00000000/""#;
    let fetched = format!("curl -fsSL {}/install.sh | {change}", scene.client.base());
    let said = scene.say(&format!(
        "export STAKEOUT_TOKEN={TOKEN}; {fetched} | sh -s -- --no-service"
    ))?;
    said.fails_with("the download's SHA-256 is not")?;
    scene.is_untouched()
}

fn no_systemd(scene: &mut Scene) -> Result<()> {
    let script = scene.piped(&format!("export STAKEOUT_TOKEN={TOKEN};"), "");
    scene.say(&script)?.fails_with("--no-service")?;
    scene.is_untouched()
}

fn no_btf(scene: &mut Scene) -> Result<()> {
    let script = scene.piped("", "--no-service");
    said(&mut scene.inside(&script, "bare"))?.fails_with("/sys/kernel/btf/vmlinux")?;
    scene.is_untouched()
}

fn installs(scene: &mut Scene) -> Result<()> {
    let log = scene.dir.path().join("foreground.log");
    let script = scene.piped(&format!("export STAKEOUT_TOKEN={TOKEN};"), "--no-service");
    let mut agent = Service::start("installed agent", &mut scene.inside(&script, "whole"), &log)?;
    let arrived = within(LIMIT, || {
        stack::alive(&mut agent)?;
        Ok(has_samples(&scene.client.get_json("/api/v1/nodes")?))
    })?;
    ensure!(
        arrived,
        "no samples arrived within {} s:\n{}",
        LIMIT.as_secs(),
        agent.last_lines(20)
    );
    scene.foreground = Some(agent);
    Ok(())
}

/// By the answer of `/api/v1/nodes`.
fn has_samples(nodes: &Value) -> bool {
    let mut nodes = nodes["nodes"].as_array().into_iter().flatten();
    nodes.any(|node| integer(&node["samples_stored"]) > 0)
}

fn token_is_private(scene: &mut Scene) -> Result<()> {
    let token = fs::metadata(scene.root().join("etc/stakeout-agent/token")).context("there is no token file")?;
    let (mode, owner) = (token.mode() & 0o7777, token.uid());
    ensure!(
        (mode, owner) == (0o600, 0),
        "the token file has mode {mode:o} and owner {owner}"
    );
    for process in fs::read_dir("/proc")?.flatten() {
        // A process may end while it is looked at.
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let exports = line.contains("export STAKEOUT_TOKEN");
        ensure!(
            exports || !line.contains(TOKEN),
            "the token stands on a command line: {line}"
        );
    }
    Ok(())
}

fn second_run(scene: &mut Scene) -> Result<()> {
    let installed = |scene: &Scene| -> Result<_> {
        let mut files = traces(&scene.root())?;
        // The running agent works here.
        files.retain(|path, _| !path.starts_with("var/lib/stakeout-agent"));
        Ok(files)
    };
    let before = installed(scene)?;
    let said = scene.say(&scene.piped("", "--no-service"))?;
    ensure!(said.ok, "the second run failed:\n{}", said.text);
    said.contains("nothing to change")?;
    same(&before, &installed(scene)?)?;
    let agent = scene.foreground.as_mut().context("no agent was installed")?;
    stack::alive(agent)
}

fn uninstalls(scene: &mut Scene) -> Result<()> {
    let said = scene.say(&scene.piped("", "--uninstall"))?;
    ensure!(said.ok, "uninstalling failed:\n{}", said.text);
    let mut agent = scene.foreground.take().context("no agent was installed")?;
    let status = agent.wait(Duration::from_secs(20)).context("the agent still runs")?;
    ensure!(
        status.success(),
        "the agent ended with {status}:\n{}",
        agent.last_lines(10)
    );
    scene.is_untouched()
}

fn uninstalls_again(scene: &mut Scene) -> Result<()> {
    let said = scene.say(&scene.piped("", "--uninstall"))?;
    ensure!(said.ok, "it failed:\n{}", said.text);
    said.contains("nothing to remove")
}

/// Certificates of an authority that no system knows, made by the clean system's own openssl.
const CERTIFICATES: &str = r#"
set -e
mkdir /tmp/tls
cd /tmp/tls
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 $new -keyout ca.key -out ca.pem -days 1 -subj /CN=authority -addext basicConstraints=critical,CA:TRUE
openssl req $new -keyout key.pem -out request.pem -subj /CN=server -addext subjectAltName=IP:127.0.0.1
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -days 1 -out cert.pem -copy_extensions copy
"#;

/// A second server with TLS: without its authority nothing is installed, with it script and agent trust it.
fn over_tls(scene: &mut Scene) -> Result<()> {
    let said = scene.say(CERTIFICATES)?;
    ensure!(said.ok, "openssl made no certificates:\n{}", said.text);
    let tls = scene.root().join("tmp/tls");
    let text = |name: &str| tls.join(name).to_string_lossy().into_owned();
    let listen = stack::free_address("127.0.0.1:0")?;
    let options = Options {
        state_dir: scene.dir.path().join("tls"),
        listen: listen.clone(),
        ..scene.options.clone()
    };
    make_dir(&options.state_dir)?;
    let more = [
        "--tls-cert",
        &text("cert.pem"),
        "--tls-key",
        &text("key.pem"),
        "--agent-dir",
        &scene.offered(),
    ];
    let mut server = stack::start_server(&options, &listen, &more)?;
    let fetch = |path: &str| {
        format!(
            "curl -fsS --retry 60 --retry-delay 1 --retry-connrefused --cacert /tmp/tls/ca.pem https://{listen}{path}"
        )
    };
    let ready = scene.say(&fetch("/readyz"))?;
    ensure!(
        ready.ok,
        "the server doesn't answer over TLS:\n{}\n{}",
        ready.text,
        server.last_lines(10)
    );

    let script = |options: &str| format!("{} | sh -s -- {options}", fetch("/install.sh"));
    scene.say(&script("--no-service"))?.fails_with("cannot be reached")?;
    let log = scene.dir.path().join("tls.log");
    let install = script("--no-service --ca-file /tmp/tls/ca.pem");
    let mut agent = Service::start("agent over TLS", &mut scene.inside(&install, "whole"), &log)?;
    let arrived = within(LIMIT, || {
        stack::alive(&mut agent)?;
        stack::alive(&mut server)?;
        let told = scene.say(&fetch("/api/v1/nodes"))?.text;
        Ok(has_samples(&serde_json::from_str(&told)?))
    })?;
    ensure!(arrived, "no samples arrived over TLS:\n{}", agent.last_lines(20));
    let said = scene.say(&script("--uninstall"))?;
    ensure!(
        said.ok && agent.wait(Duration::from_secs(20)).is_some(),
        "uninstalling failed:\n{}",
        said.text
    );
    Ok(())
}

/// The units, the program of each, and the most exposure that each may have, as systemd counts it from 0 to 10.
const UNITS: [(&str, &str, f64); 2] = [
    (
        "agent/packaging/stakeout-agent.service",
        "/usr/local/bin/stakeout-agent",
        4.0,
    ),
    (
        "server/packaging/stakeout-server.service",
        "/usr/local/bin/stakeout-server",
        1.5,
    ),
];

/// By systemd's own checks, where systemd is installed; the program that a unit starts must exist, so another one
/// stands in.
fn unit_file(scene: &mut Scene) -> Result<()> {
    if repo::find_program("systemd-analyze").is_none() {
        println!("systemd is not installed here: the unit files are NOT CHECKED");
        return Ok(());
    }
    for (path, program, most) in UNITS {
        let unit = fs::read_to_string(repo::root().join(path))?;
        let name = Path::new(path).file_name().context("a unit has a name")?;
        let file = scene.dir.path().join(name);
        fs::write(&file, unit.replace(program, "/bin/true"))?;
        let output = Command::new("systemd-analyze").arg("verify").arg(&file).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() && !said.contains(&*name.to_string_lossy()),
            "systemd-analyze says:\n{said}"
        );
        let output = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager"])
            .arg(&file)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let exposure = said.lines().rev().find(|line| line.contains("Overall exposure level"));
        let Some(exposure) = exposure.and_then(|line| line.rsplit_once(": ")?.1.split(' ').next()?.parse::<f64>().ok())
        else {
            println!("{path}: systemd-analyze security cannot look at files here: NOT CHECKED");
            continue;
        };
        println!("{path}: exposure {exposure} of 10, at most {most}");
        ensure!(exposure <= most, "{path} is more open than it was:\n{said}");
    }
    Ok(())
}

/// Every file below `root` by its path from there.
fn traces(root: &Path) -> Result<BTreeMap<PathBuf, Trace>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("can't read {}", dir.display()))? {
            let entry = entry?;
            let path = entry.path();
            let data = entry.metadata()?;
            let trace = if data.is_dir() {
                open.push(path.clone());
                // Its time changes with every temporary file in it.
                (data.mode(), data.uid(), 0, 0, 0)
            } else {
                (data.mode(), data.uid(), data.size(), data.mtime(), data.mtime_nsec())
            };
            found.insert(path.strip_prefix(root)?.to_owned(), trace);
        }
    }
    Ok(found)
}

/// An error that names what is different.
fn same(before: &BTreeMap<PathBuf, Trace>, after: &BTreeMap<PathBuf, Trace>) -> Result<()> {
    let paths = before.keys().chain(after.keys());
    let changed: Vec<_> = paths.filter(|path| before.get(*path) != after.get(*path)).collect();
    ensure!(changed.is_empty(), "these changed: {changed:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_named() {
        let trace = |size| (0o644, 0, size, 0, 0);
        let before = BTreeMap::from([("a".into(), trace(1)), ("b".into(), trace(1))]);
        assert!(same(&before, &before.clone()).is_ok());
        for after in [
            BTreeMap::from([("a".into(), trace(1))]),
            BTreeMap::from([("a".into(), trace(1)), ("b".into(), trace(2))]),
            BTreeMap::from([("a".into(), trace(1)), ("b".into(), trace(1)), ("c".into(), trace(1))]),
        ] {
            assert!(same(&before, &after).is_err());
        }
    }
}
