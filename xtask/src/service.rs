//! A program that runs in the background with its output in a log file.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{packages, run};

/// How often a background program is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// Looks every [`POLL`] whether something holds, until it does or `limit` is over: then the answer is false, and who
/// asked says what did not come. An error ends it at once.
pub(crate) fn within(limit: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<bool> {
    let deadline = Instant::now() + limit;
    while !holds()? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(POLL);
    }
    Ok(true)
}

/// A child process. Dropping it kills it: nothing outlives the command that started it.
#[derive(Debug)]
pub(crate) struct Service {
    name: &'static str,
    child: Child,
    log: PathBuf,
    log_start: u64,
    /// Closing it stops a program that runs under sudo, where a signal from this user would be refused.
    leash: Option<ChildStdin>,
}

/// Runs its arguments as a child and ends it when standard input ends, as it also does when the parent is killed.
const LEASH: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ read -r _ <&3; kill -TERM "$child"; } 2>/dev/null &
reader=$!
wait "$child"
status=$?
kill "$reader" 2>/dev/null
exit "$status"
"#;

impl Service {
    /// Starts the command in a process group of its own, so that Ctrl-C reaches this program first and the child is
    /// stopped in order.
    pub(crate) fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Service> {
        Service::spawn(name, command.stdin(Stdio::null()), log, false)
    }

    /// Starts the command as root: directly where this process is root, else on a leash under sudo.
    pub(crate) fn start_as_root(name: &'static str, command: &Command, log: &Path, why: &str) -> Result<Service> {
        let mut root = packages::as_root(why)?;
        if packages::is_root() {
            let mut plain = Command::new(command.get_program());
            plain
                .args(command.get_args())
                .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
            return Service::start(name, &mut plain, log);
        }
        // The password is asked for here, in the foreground.
        run::run(Command::new("sudo").arg("--validate"))?;
        root.args(["sh", "-c", LEASH, "sh", "env"]);
        root.args(command.get_envs().filter_map(|(key, value)| {
            let mut pair = key.to_owned();
            pair.push("=");
            pair.push(value?);
            Some(pair)
        }));
        root.arg(command.get_program()).args(command.get_args());
        Service::spawn(name, root.stdin(Stdio::piped()), log, true)
    }

    fn spawn(name: &'static str, command: &mut Command, log: &Path, leash: bool) -> Result<Service> {
        let open = || -> Result<(File, File, u64)> {
            let file = OpenOptions::new().create(true).append(true).open(log)?;
            let start = file.metadata()?.len();
            Ok((file.try_clone()?, file, start))
        };
        let (out, err, log_start) = open().with_context(|| format!("can't write {}", log.display()))?;
        let mut child = command
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
            .with_context(|| format!("can't start the {name} ({})", command.get_program().display()))?;
        let leash = if leash { child.stdin.take() } else { None };
        Ok(Service {
            name,
            child,
            log: log.to_owned(),
            log_start,
            leash,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The exit status if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What it has written since it was started.
    pub(crate) fn output(&self) -> String {
        let mut text = vec![];
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.log_start))?;
            file.read_to_end(&mut text)
        });
        match read {
            Ok(_) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => format!("(can't read {}: {error})", self.log.display()),
        }
    }

    /// Its last lines, indented, for an error message.
    pub(crate) fn last_lines(&self, count: usize) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        let last = &lines[lines.len().saturating_sub(count)..];
        last.iter()
            .map(|line| format!("    {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Asks it to end. A program that ended already is no error.
    pub(crate) fn ask_to_stop(&mut self) {
        if self.leash.take().is_none() {
            self.signal(Signal::SIGTERM);
        }
    }

    /// Sends a signal, unless it has ended (its number could belong to another program by then).
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.ended().is_none()
            && let Ok(pid) = i32::try_from(self.child.id())
        {
            // The only failure left is that it ended just now.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Waits for the end, at most so long.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(POLL);
        }
    }

    /// Asks it to end, waits, kills it if that takes longer than `limit`. The status, or none if it had to be killed.
    pub(crate) fn stop(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.ask_to_stop();
        let status = self.wait(limit);
        if status.is_none() {
            self.kill();
        }
        status
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        self.leash = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.ask_to_stop();
            if self.wait(Duration::from_secs(2)).is_none() {
                self.kill();
            }
        }
    }
}

/// Makes the folder for logs and state.
pub(crate) fn make_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("can't make the folder {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn what_holds_ends_a_wait_and_so_do_its_limit_and_an_error() {
        let mut looks = 0;
        let third = within(Duration::from_secs(60), || {
            looks += 1;
            Ok(looks == 3)
        });
        assert!(third.unwrap());
        assert_eq!(looks, 3);
        assert!(!within(Duration::ZERO, || Ok(false)).unwrap());
        let broken = within(Duration::from_secs(60), || bail!("it ended"));
        assert_eq!(broken.unwrap_err().to_string(), "it ended");
    }
}
