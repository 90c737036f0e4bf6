//! Programs to sample.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A C program of this directory, compiled with frame pointers under a name of its own.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Program {
    /// `name` is longer than the 15 characters that the kernel keeps of a thread's name, so that only the executable's
    /// own name can be right.
    pub(crate) fn burn(name: &str) -> Self {
        assert!(name.len() > 15);
        Self::compile("burn.c", name)
    }

    pub(crate) fn compile(source: &str, name: &str) -> Self {
        let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
        Self::compile_with(&flags, source, name)
    }

    /// The same with these flags.
    pub(crate) fn compile_with(flags: &[&str], source: &str, name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root").join(source);
        let done = Command::new("cc")
            .args(flags)
            .arg("-o")
            .arg(&path)
            .arg(source)
            .status()
            .expect("the root tests need a C compiler (Debian: apt install gcc)");
        assert!(done.success());
        Self {
            path,
            _directory: directory,
        }
    }

    /// Runs for so much CPU time, on one CPU where that is given.
    pub(crate) fn spawn(&self, cpu_milliseconds: u32, cpu: Option<u32>) -> Running {
        let mut command = Command::new(&self.path);
        command
            .arg(cpu_milliseconds.to_string())
            .args(cpu.map(|cpu| cpu.to_string()));
        Running(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// The same, before everything else that wants the CPUs: the fewer of its turns others take, the less its count of
    /// samples is a matter of chance.
    pub(crate) fn spawn_preferred(&self, cpu_milliseconds: u32) -> Running {
        let mut command = preferred(&self.path.to_string_lossy());
        command.arg(cpu_milliseconds.to_string());
        Running(command.stdout(Stdio::piped()).spawn().unwrap())
    }
}

/// Starts a program with the highest priority that is allowed; `nice` goes on where it is not.
pub(crate) fn preferred(program: &str) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "-19", program]).stderr(Stdio::null());
    command
}

/// The same program with the lowest priority: whoever else wants a CPU comes before it.
pub(crate) fn behind_others(command: &Command) -> Command {
    let mut behind = Command::new("nice");
    behind
        .args(["-n", "19"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => behind.env(name, value),
            None => behind.env_remove(name),
        };
    }
    behind
}

/// So many programs that follow each other in a test may as well run beside each other, one on each of two CPUs and
/// behind whoever else wants one: the agent's threads come before them, and of a program's time it has all the same
/// samples.
pub(crate) fn at_a_time() -> usize {
    stakeout_agent::kernel::online_cpus().unwrap().len().clamp(1, 2)
}

/// A child that does not outlive its test.
pub(crate) struct Running(Child);

/// CPU time as the kernel accounts it, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl Running {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(crate) fn tgid(&self) -> u32 {
        self.0.id()
    }

    /// Waits for the end of a [`Program`] and takes what it prints.
    pub(crate) fn finish(mut self) -> CpuTime {
        let mut text = String::new();
        std::io::Read::read_to_string(self.0.stdout.as_mut().unwrap(), &mut text).unwrap();
        assert!(self.0.wait().unwrap().success());
        let ticks: Vec<f64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
        CpuTime {
            user: ticks[0] / 100.0,
            system: ticks[1] / 100.0,
        }
    }

    /// Waits for a good end.
    pub(crate) fn wait(mut self) {
        assert!(self.0.wait().unwrap().success());
    }

    /// CPU time so far, from /proc.
    pub(crate) fn cpu_time(&self) -> CpuTime {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.tgid())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks = |field: usize| fields[field].parse::<f64>().unwrap() / 100.0;
        CpuTime {
            user: ticks(11),
            system: ticks(12),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
