//! Compiles the BPF programs and generates their skeletons into OUT_DIR.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};
use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").context("cargo sets OUT_DIR for build scripts")?);
    for name in ["sampler", "lifecycle", "waits"] {
        let source = format!("bpf/{name}.bpf.c");
        SkeletonBuilder::new()
            .source(&source)
            .clang_args(["-Wall", "-Werror", "-mcpu=v3"])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .with_context(|| {
                format!("building {source}: it needs clang with the BPF back end (Debian: apt install clang)")
            })?;
    }
    // Set by `cargo xtask fuzz` alone: the walk in C then tells which of its branches an input reaches, and traps
    // where a shift or an index is undefined. That takes clang, which is there for the BPF programs.
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    let fuzzing = env::var_os("CARGO_CFG_FUZZING").is_some();
    // The walk on the host is compiled for both architectures' stacks, whichever this one is: tests need the other.
    for arch in ["x86", "arm64"] {
        let mut build = cc::Build::new();
        if fuzzing {
            build
                .compiler("clang")
                .flag("-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp")
                .flag("-fsanitize=undefined")
                .flag("-fsanitize-trap=undefined");
        }
        build
            .file("bpf/walk_host.c")
            .define(&format!("__TARGET_ARCH_{arch}"), None)
            .define("so_walk_on", format!("so_walk_on_{arch}").as_str())
            .std("gnu2x")
            .flag("-Wall")
            .flag("-Wextra")
            .flag("-Werror")
            .opt_level(2)
            .try_compile(&format!("stakeout_walk_{arch}"))
            .context("building bpf/walk_host.c: it needs a C compiler (Debian: apt install gcc)")?;
    }
    cc::Build::new()
        .file("bpf/clock_host.c")
        .std("gnu2x")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .try_compile("stakeout_clock")
        .context("building bpf/clock_host.c: it needs a C compiler (Debian: apt install gcc)")?;
    // For the test that compiles the programs for the other architecture.
    let headers = env::var("DEP_BPF_INCLUDE").context("libbpf-sys says where libbpf's headers are")?;
    println!("cargo::rustc-env=STAKEOUT_LIBBPF_HEADERS={headers}");
    println!("cargo::rerun-if-changed=bpf");
    Ok(())
}
