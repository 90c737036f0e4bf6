//! The kernel side's walk of user stacks, compiled for the host: the same code, without a kernel.

mod above;
mod arm64;
mod chain;
#[cfg(target_arch = "x86_64")]
mod search;
#[cfg(target_arch = "x86_64")]
mod stepped;
#[cfg(target_arch = "x86_64")]
mod tracee;
