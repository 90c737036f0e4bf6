//! A machine of qemu's that runs one kernel to its end.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::debs::Kernel;
use super::guest::{self, END};
use crate::service::{POLL, Service};
use crate::signals::Stop;

const MEMORY_MIB: u32 = 3072;
/// Boot and tests; an emulated processor is ten times as slow.
const LIMIT: Duration = Duration::from_secs(300);
const LIMIT_EMULATED: Duration = Duration::from_secs(1200);
/// Within this the kernel says its first word.
const FIRST_WORD: Duration = Duration::from_secs(20);
/// The same without KVM, on a machine that has other work too.
const FIRST_WORD_EMULATED: Duration = Duration::from_secs(180);
const KERNEL_LINES: usize = 30;

/// What a guest said.
pub(super) struct Said {
    /// On the second serial port: the tests' output.
    pub(super) text: String,
    /// On the first one: the kernel's last lines.
    pub(super) kernel_log: String,
    /// It got to the end.
    pub(super) complete: bool,
}

/// How guests run here.
pub(super) struct Machine {
    emulated: bool,
}

impl Machine {
    /// KVM where this processor has it and the device may be opened.
    pub(super) fn of_this_host(emulate: bool) -> Machine {
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has = processor.split_whitespace().any(|flag| flag == "vmx" || flag == "svm");
        let kvm = has && fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
        Machine {
            emulated: emulate || !kvm,
        }
    }

    /// Boots the kernel and waits until it is done. A kernel that says nothing under KVM (which may be there in name
    /// only) is emulated, and all that follow.
    pub(super) fn boot(&mut self, kernel: &Kernel, initramfs: &Path, dir: &Path, stop: &Stop) -> Result<Said> {
        if !self.emulated {
            match self.attempt(kernel, initramfs, dir, stop)? {
                Some(said) => return Ok(said),
                None => println!("this machine's KVM doesn't boot it: from here on without KVM"),
            }
            self.emulated = true;
        }
        self.attempt(kernel, initramfs, dir, stop)?.with_context(|| {
            format!(
                "{} says nothing within {} s",
                kernel.package,
                FIRST_WORD_EMULATED.as_secs()
            )
        })
    }

    /// None where the kernel said nothing.
    fn attempt(&self, kernel: &Kernel, initramfs: &Path, dir: &Path, stop: &Stop) -> Result<Option<Said>> {
        let (limit, first_word) = if self.emulated {
            (LIMIT_EMULATED, FIRST_WORD_EMULATED)
        } else {
            (LIMIT, FIRST_WORD)
        };
        let console = dir.join("console");
        let output = dir.join("output");
        for file in [&console, &output] {
            fs::write(file, "").with_context(|| format!("can't write {}", file.display()))?;
        }
        let mut qemu = Service::start(
            "qemu",
            &mut self.command(kernel, initramfs, &console, &output),
            &dir.join("qemu.log"),
        )?;
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).replace('\r', "");
        let begin = Instant::now();
        while qemu.ended().is_none() && begin.elapsed() < limit {
            stop.check()?;
            if begin.elapsed() > first_word && !read(&console).contains("Linux version") {
                return Ok(None);
            }
            thread::sleep(POLL);
        }
        let in_time = qemu.ended().is_some();
        let text = read(&output);
        let console = read(&console);
        if !console.contains("Linux version") {
            println!("{}", qemu.last_lines(KERNEL_LINES));
            return Ok(None);
        }
        if !in_time {
            println!("{}: stopped after {} s", kernel.package, limit.as_secs());
        }
        let lines: Vec<&str> = console.lines().collect();
        Ok(Some(Said {
            complete: text.lines().any(|line| line == END),
            text,
            kernel_log: lines[lines.len().saturating_sub(KERNEL_LINES)..].join("\n"),
        }))
    }

    fn command(&self, kernel: &Kernel, initramfs: &Path, console: &Path, output: &Path) -> Command {
        // It ends with this program, also where that is killed.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        guest::say_what_no_guest_has();
        if self.emulated {
            guest::say_what_is_skipped();
            // More processors than the tests keep busy: a slow one that is kept busy would starve the agent.
            qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "4"]);
        } else {
            qemu.args(["-accel", "kvm", "-cpu", "host", "-smp", "2"]);
        }
        let file = |path: &Path| format!("file:{}", path.display());
        qemu.args(["-m", &MEMORY_MIB.to_string()]);
        qemu.args(["-nodefaults", "-no-reboot", "-nographic", "-nic", "none"]);
        qemu.args(["-serial", &file(console), "-serial", &file(output)]);
        qemu.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(initramfs);
        let emulated = if self.emulated { " EMULATED=1" } else { "" };
        qemu.args(["-append", &format!("console=ttyS0 panic=-1 oops=panic{emulated}")]);
        qemu
    }
}
