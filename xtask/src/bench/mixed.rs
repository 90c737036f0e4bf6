//! A mixed load that keeps every CPU busy: compiled programs with and without frame pointers, an interpreter, system
//! calls, cryptography, compression in a pipe.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::repo;
use crate::run;

/// The running programs; dropping it ends them.
#[derive(Debug)]
pub(crate) struct Mixed {
    children: Vec<Child>,
    names: Vec<&'static str>,
}

/// Recursion 30 deep and back, with different work on the way.
const DEEP: &str = r"
#include <cstdint>
static volatile std::uint64_t sink;
template <int LEVEL> __attribute__((noinline)) std::uint64_t level(std::uint64_t x) {
    for (int i = 0; i < 20 * LEVEL; i++) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    std::uint64_t y = level<LEVEL - 1>(x ^ LEVEL);
    sink = y;
    return y + (x >> 7);
}
template <> __attribute__((noinline)) std::uint64_t level<0>(std::uint64_t x) {
    for (int i = 0; i < 400; i++) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}
int main() { for (;;) sink = level<30>(sink); }
";

const LOOP: &str = "
def leaf(n):
    return sum(i * i % 7 for i in range(n))
def middle(n):
    return [leaf(n) for _ in range(10)]
def top():
    while True:
        middle(200)
top()
";

impl Mixed {
    /// Starts everything that this machine has the programs for.
    pub(crate) fn start(dir: &Path) -> Result<Mixed> {
        let source = dir.join("deep.cpp");
        fs::write(&source, DEEP)?;
        let mut mixed = Mixed {
            children: vec![],
            names: vec![],
        };
        for (name, frames) in [
            ("deep-fp", "-fno-omit-frame-pointer"),
            ("deep-nofp", "-fomit-frame-pointer"),
        ] {
            let program = dir.join(name);
            run::output(
                Command::new("c++")
                    .args(["-O1", "-g", frames, "-o"])
                    .arg(&program)
                    .arg(&source),
            )?;
            mixed.spawn(name, &mut Command::new(program))?;
        }
        if repo::find_program("python3").is_some() {
            mixed.spawn("python3", Command::new("python3").args(["-c", LOOP]))?;
            mixed.spawn("python3", Command::new("python3").args(["-c", LOOP]))?;
        }
        if repo::find_program("openssl").is_some() {
            let forever = "while :; do openssl speed -seconds 60 -evp sha256; done";
            mixed.spawn("openssl", Command::new("sh").args(["-c", forever]))?;
        }
        mixed.spawn(
            "dd",
            Command::new("dd").args(["if=/dev/urandom", "of=/dev/null", "bs=1M"]),
        )?;
        mixed.spawn(
            "cat | gzip",
            Command::new("sh").args(["-c", "cat /dev/urandom | gzip -1 >/dev/null"]),
        )?;
        Ok(mixed)
    }

    fn spawn(&mut self, name: &'static str, command: &mut Command) -> Result<()> {
        use std::os::unix::process::CommandExt;
        // A group of its own: a shell's children end with it.
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        self.children
            .push(command.spawn().with_context(|| format!("can't start {name}"))?);
        self.names.push(name);
        Ok(())
    }

    /// What runs, for the heading of a table.
    pub(crate) fn names(&self) -> String {
        self.names.join(", ")
    }

    /// An error if one of them has ended: then the load is not what the heading says.
    pub(crate) fn check(&mut self) -> Result<()> {
        for (child, name) in self.children.iter_mut().zip(&self.names) {
            ensure!(child.try_wait()?.is_none(), "{name} ended during the measurement");
        }
        Ok(())
    }
}

impl Drop for Mixed {
    fn drop(&mut self) {
        for child in &mut self.children {
            if let Ok(group) = i32::try_from(child.id()) {
                let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
            }
            let _ = child.wait();
        }
    }
}
