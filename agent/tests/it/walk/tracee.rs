//! A child process that is executed instruction by instruction.
#![allow(unsafe_code, reason = "ptrace")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stakeout_agent::kernel::Registers;

pub(super) struct Tracee {
    child: Child,
    memory: File,
}

fn ptrace(request: libc::c_uint, pid: i32, data: *mut libc::c_void) {
    // SAFETY: `data` is what the request asks for: null, a number, or a struct of registers.
    let result = unsafe { libc::ptrace(request, pid, std::ptr::null_mut::<libc::c_void>(), data) };
    assert!(result >= 0, "ptrace {request}: {}", std::io::Error::last_os_error());
}

impl Tracee {
    /// Runs `program` up to where it stops itself by SIGSTOP.
    pub(super) fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.stdout(Stdio::null());
        // SAFETY: only system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let memory = File::open(format!("/proc/{}/mem", child.id())).unwrap();
        let tracee = Self { child, memory };
        while tracee.wait() != Some(libc::SIGSTOP) {
            ptrace(libc::PTRACE_CONT, tracee.pid(), std::ptr::null_mut());
        }
        tracee
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// The signal at which it stopped; none at its end.
    fn wait(&self) -> Option<i32> {
        let mut status = 0;
        // SAFETY: `status` is valid for the call.
        let pid = unsafe { libc::waitpid(self.pid(), &mut status, 0) };
        assert_eq!(pid, self.pid());
        libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status))
    }

    /// One instruction on. False at the program's end.
    pub(super) fn step(&self) -> bool {
        ptrace(libc::PTRACE_SINGLESTEP, self.pid(), std::ptr::null_mut());
        self.wait().is_some()
    }

    pub(super) fn registers(&self) -> Registers {
        // SAFETY: integers only.
        let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETREGS, self.pid(), std::ptr::from_mut(&mut all).cast());
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
