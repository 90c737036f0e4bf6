//! An S3 server that is not ours, in one stated version: what the tests of a data root on a bucket run against.
//!
//! In: Go on the search path, and the cache folder. Out: the program. It is built once, into the target folder.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::{repo, run};

const PROGRAM: &str = "versitygw";
const MODULE: &str = "github.com/versity/versitygw/cmd/versitygw";
const VERSION: &str = "v1.7.0";

/// The first Go that gets the Go which a module asks for; one before it can't read such a module.
const LEAST_GO: (u32, u32) = (1, 21);

/// Where the tests look for the path of the program.
pub(crate) const VARIABLE: &str = "STAKEOUT_S3_SERVER";

/// One build at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// Begins to build it where it is missing, in the time that others leave of the CPUs. Where that fails, whoever asks
/// for it tries again, and tells.
pub(crate) fn build_meanwhile() {
    thread::spawn(|| drop(ready()));
}

/// The program, built now where it is missing.
pub(crate) fn ready() -> Result<PathBuf> {
    let _turn = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = repo::cache_dir("tools")?.join("bin");
    let program = folder.join(PROGRAM);
    // The program itself tells no version where Go installs it.
    let stamp = folder.join(format!("{PROGRAM}.version"));
    if program.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|version| version == VERSION) {
        return Ok(program);
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let go = repo::find_program("go").context("there is no go")?;
    let said = run::output(Command::new(&go).args(["env", "GOVERSION"]))?;
    ensure!(
        go_version(&said).is_some_and(|version| version >= LEAST_GO),
        "{} is too old: {PROGRAM} needs Go {}.{} or newer",
        said.trim(),
        LEAST_GO.0,
        LEAST_GO.1
    );
    // Standard output may be held by a step that shows what its runner says.
    eprintln!("{PROGRAM} {VERSION} is built once, which takes minutes");
    let fresh = folder.join(format!("{PROGRAM}.fresh"));
    let mut build = Command::new(go);
    build
        .args(["install", &format!("{MODULE}@{VERSION}")])
        .env("GOBIN", &fresh)
        .env("GOWORK", "off")
        .env("GOFLAGS", "-trimpath")
        .env("CGO_ENABLED", "0");
    run::run(&mut run::behind_others(&build))?;
    std::fs::rename(fresh.join(PROGRAM), &program)
        .and_then(|()| std::fs::write(&stamp, VERSION))
        .with_context(|| format!("can't put {PROGRAM} into {}", folder.display()))?;
    std::fs::remove_dir_all(&fresh).ok();
    Ok(program)
}

/// Tells a step's tests where the program is. Where it can't be had they are skipped, each in words.
pub(crate) fn tell(test: &mut Command) {
    match ready() {
        Ok(program) => {
            test.env(VARIABLE, program);
        }
        Err(error) => eprintln!("no S3 server: {error:#}; the tests that need one are SKIPPED, each says so"),
    }
}

/// `go1.26.8`: the first two numbers.
fn go_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.trim().strip_prefix("go")?.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_go_says() {
        assert_eq!(go_version("go1.26.8\n"), Some((1, 26)));
        assert_eq!(go_version("go1.21rc2"), Some((1, 21)));
        assert!(go_version("go1.19.8") < Some(LEAST_GO));
        assert_eq!(go_version("devel +0123"), None);
    }
}
