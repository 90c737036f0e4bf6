//! One program for all targets: libFuzzer's, with the target that `STAKEOUT_FUZZ_TARGET` names; with `list` it names
//! them all.
//!
//! In: libFuzzer's own command line. `cargo xtask fuzz` builds it with coverage and says what it found; the targets are
//! in the agent's rooms and in the server's `fuzz`, where unit tests run them too; a feature chooses whose.
#![no_main]

use std::alloc::System;
use std::sync::OnceLock;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
#[cfg(not(feature = "server"))]
use stakeout_agent::fuzz::{TARGETS, Target};
#[cfg(feature = "server")]
use stakeout_server::fuzz::{TARGETS, Target};

/// What a target may hold is told to the allocator: libFuzzer's own limits need a sanitizer's, or count its corpus too.
/// What goes beyond ends the program, which is a finding.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fn choose() {
    let name = std::env::var("STAKEOUT_FUZZ_TARGET").unwrap_or_default();
    if name == "list" {
        TARGETS.iter().for_each(|target| println!("{}", target.name));
        std::process::exit(0);
    }
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        eprintln!("STAKEOUT_FUZZ_TARGET must name a target; `cargo xtask fuzz` sets it");
        std::process::exit(2);
    };
    TARGET.get_or_init(|| target);
}

fuzz_target!(init: choose(), |bytes: &[u8]| {
    if let Some(target) = TARGET.get() {
        let limit = ALLOCATOR.allocated() + target.memory_bytes;
        let _ = ALLOCATOR.set_limit(limit);
        (target.run)(bytes);
        let _ = ALLOCATOR.set_limit(usize::MAX);
    }
});
