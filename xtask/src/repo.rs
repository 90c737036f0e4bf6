//! Where things are: the clone's root, cargo's target folder, the folders for state and caches.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// The clone's root folder. As `cargo run` tells it: where clones share a target folder, this program may be another
/// one's build.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let told =
            env::var_os("CARGO_MANIFEST_DIR").filter(|_| env::var_os("CARGO_PKG_NAME").is_some_and(|n| n == "xtask"));
        let own = told.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        own.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
    })
}

/// The cargo that runs this command, else the one on the path.
///
/// Without what `cargo run` tells this program about its own package: build scripts that look at such variables
/// (ring's does) would take a build from here and one from the shell for different ones, and compile all that depends
/// on them again.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let own = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_PACKAGE",
        "OUT_DIR",
    ];
    for (name, _) in env::vars_os() {
        if own.iter().any(|own| name.to_string_lossy().starts_with(own)) {
            command.env_remove(name);
        }
    }
    command.current_dir(root());
    command
}

/// Cargo's target folder, as cargo itself sees it (environment and configuration included).
pub(crate) fn target_dir() -> Result<&'static Path> {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    if let Some(dir) = DIR.get() {
        return Ok(dir);
    }
    let output = cargo()
        .args(["metadata", "--format-version=1", "--no-deps"])
        .output()
        .context("can't run cargo")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let dir = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target folder")?;
    Ok(DIR.get_or_init(|| PathBuf::from(dir)))
}

/// Tools and files that are dear to make and belong to no commit: inside the target folder, so that CI keeps them
/// with it.
pub(crate) fn cache_dir(name: &str) -> Result<PathBuf> {
    let dir = target_dir()?.join("xtask").join(name);
    std::fs::create_dir_all(&dir).with_context(|| format!("can't make {}", dir.display()))?;
    Ok(dir)
}

/// Makes something, unless it is there and was made of the same: the file `stamp` says of what, and is written last.
pub(crate) fn make_once(what: &Path, stamp: &Path, of: &str, make: impl FnOnce() -> Result<()>) -> Result<()> {
    if what.exists() && std::fs::read_to_string(stamp).is_ok_and(|made_of| made_of == of) {
        return Ok(());
    }
    make()?;
    std::fs::write(stamp, of).with_context(|| format!("can't write {}", stamp.display()))
}

/// The program `name` on the search path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // Administrators' folders are often missing from a user's search path; Go's own installer uses the last one.
    let more = ["/usr/sbin", "/sbin", "/usr/local/go/bin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(more)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn what_is_there_is_made_again_of_something_else_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (what, stamp) = (dir.path().join("what"), dir.path().join("stamp"));
        let made = |of: &str| {
            let mut is_made = false;
            make_once(&what, &stamp, of, || {
                is_made = true;
                std::fs::write(&what, of)?;
                Ok(())
            })
            .unwrap();
            is_made
        };
        assert_eq!(["a", "a", "b", "b"].map(made), [true, false, true, false]);
        std::fs::remove_file(&what).unwrap();
        assert!(made("b"), "it was removed");
        assert!(make_once(&what, &stamp, "c", || bail!("cut off")).is_err());
        assert!(!made("b"), "the stamp is of what is there");
    }
}
