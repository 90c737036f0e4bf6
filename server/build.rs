//! Embeds the web page and the agent's install script, where they have been built.
//!
//! `web/dist` comes from `npm run build` in `web/`; without it the server builds all the same and its page says what
//! to do.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Set by `cargo xtask dist`. With packed relocations the server is a sixteenth smaller; such a program needs glibc
/// 2.36, so it is not for those who build and run on an older system.
const PACK_RELOCATIONS: &str = "STAKEOUT_PACK_RELOCATIONS";

fn main() -> io::Result<()> {
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = here.parent().unwrap_or(&here);
    let dist = root.join("web/dist");
    let install = root.join("agent/packaging/install.sh");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", existing(&dist).display());
    println!("cargo:rerun-if-changed={}", existing(&install).display());
    println!("cargo:rerun-if-env-changed={PACK_RELOCATIONS}");
    if env::var_os(PACK_RELOCATIONS).is_some() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }

    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        collect(&dist, &mut files)?;
    }
    files.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rustc-env=STAKEOUT_BUILD_PROFILE={}", profile(&out));
    let mut code = String::from("static FILES: &[Embedded] = &[\n");
    for file in &files {
        if matches!(file.extension().and_then(|e| e.to_str()), Some("gz" | "br")) {
            continue;
        }
        println!("cargo:rerun-if-changed={}", file.display());
        let sibling = |suffix: &str| -> io::Result<String> {
            let mut name = file.clone().into_os_string();
            name.push(suffix);
            let name = PathBuf::from(name);
            Ok(if files.contains(&name) {
                format!("Some({})", included(&name, &dist, &out)?)
            } else {
                "None".to_owned()
            })
        };
        let path = file
            .strip_prefix(&dist)
            .unwrap_or(file)
            .to_string_lossy()
            .replace('\\', "/");
        let _ = writeln!(
            code,
            "Embedded {{ path: {path:?}, plain: {}, gzip: {}, brotli: {} }},",
            included(file, &dist, &out)?,
            sibling(".gz")?,
            sibling(".br")?
        );
    }
    code.push_str("];\n");
    let script = if install.is_file() {
        let copy = out.join("install.sh");
        fs::copy(&install, &copy)?;
        format!("Some(include_str!({copy:?}))")
    } else {
        "None".to_owned()
    };
    let _ = writeln!(code, "static INSTALL_SCRIPT: Option<&str> = {script};");
    fs::write(out.join("embedded.rs"), code)
}

/// The profile by whose rules the server is compiled. Cargo tells a build script only whether that is derived from
/// `release` or `dev`; the profile's own name is that of the folder: `PROFILE/build/PACKAGE-HASH/out`.
fn profile(out: &Path) -> String {
    let folder = out.ancestors().nth(3).and_then(Path::file_name);
    folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The expression that includes a copy of the file. A copy, since several clones may share a target folder, and the
/// one that this was run for may be gone when another compiles.
fn included(file: &Path, dist: &Path, out: &Path) -> io::Result<String> {
    let copy = out.join("page").join(file.strip_prefix(dist).unwrap_or(file));
    if let Some(folder) = copy.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(file, &copy)?;
    Ok(format!("include_bytes!({copy:?})"))
}

/// The path, or the nearest folder above it that exists: cargo reruns forever for a path that does not.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
