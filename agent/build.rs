//! Compiles the BPF programs and generates their skeletons into OUT_DIR.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};
use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").context("cargo sets OUT_DIR for build scripts")?);
    for name in ["sampler", "lifecycle"] {
        let source = format!("bpf/{name}.bpf.c");
        SkeletonBuilder::new()
            .source(&source)
            .clang_args(["-Wall", "-Werror", "-mcpu=v3"])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .with_context(|| {
                format!("building {source}: it needs clang with the BPF back end (Debian: apt install clang)")
            })?;
    }
    cc::Build::new()
        .file("bpf/walk_host.c")
        .std("gnu2x")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .opt_level(2)
        .try_compile("stakeout_walk")
        .context("building bpf/walk_host.c: it needs a C compiler (Debian: apt install gcc)")?;
    println!("cargo::rerun-if-changed=bpf");
    Ok(())
}
