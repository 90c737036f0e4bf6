//! A child process that is executed instruction by instruction.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use stakeout_agent::kernel::Registers;

pub(super) struct Tracee {
    child: Child,
    memory: File,
}

impl Tracee {
    /// Runs `program` up to where it stops itself by SIGSTOP.
    pub(super) fn start(program: &Path) -> Self {
        let child = Command::new(program).stdout(Stdio::null()).spawn().unwrap();
        let memory = File::open(format!("/proc/{}/mem", child.id())).unwrap();
        let tracee = Self { child, memory };
        let stopped = waitpid(tracee.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(
            matches!(stopped, WaitStatus::Stopped(_, Signal::SIGSTOP)),
            "{stopped:?}"
        );
        ptrace::attach(tracee.pid()).unwrap();
        let attached = waitpid(tracee.pid(), None).unwrap();
        assert!(matches!(attached, WaitStatus::Stopped(..)), "{attached:?}");
        tracee
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// One instruction on. False at the program's end.
    pub(super) fn step(&self) -> bool {
        ptrace::step(self.pid(), None).unwrap();
        matches!(waitpid(self.pid(), None).unwrap(), WaitStatus::Stopped(..))
    }

    pub(super) fn registers(&self) -> Registers {
        let all = ptrace::getregs(self.pid()).unwrap();
        let general = [
            all.rax, all.rdx, all.rcx, all.rbx, all.rsi, all.rdi, all.rbp, all.rsp, all.r8, all.r9, all.r10, all.r11,
            all.r12, all.r13, all.r14, all.r15,
        ];
        Registers {
            pc: all.rip,
            sp: all.rsp,
            fp: all.rbp,
            lr: 0,
            general,
        }
    }

    /// Up to `limit` bytes of memory.
    pub(super) fn read(&self, address: u64, limit: usize) -> Vec<u8> {
        let mut bytes = vec![0; limit];
        let mut filled = 0;
        while filled < limit {
            match self.memory.read_at(&mut bytes[filled..], address + filled as u64) {
                Ok(count) if count > 0 => filled += count,
                _ => break,
            }
        }
        bytes.truncate(filled);
        bytes
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
