//! Files and memory of other processes: which is whose, how long they are held, and who may not make the agent wait or read too much.

mod held;
mod hostile;
mod made;
mod whose;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A filesystem that is mounted for a test and unmounted at its end.
struct Mount(PathBuf);

impl Mount {
    fn new(kind: &str, options: &str, point: &Path) -> Self {
        std::fs::create_dir_all(point).unwrap();
        let done = Command::new("mount")
            .args(["-t", kind, "-o", options, "none"])
            .arg(point)
            .output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Self(point.into())
    }

    fn unmount(&self) -> bool {
        let done = Command::new("umount").arg(&self.0).output();
        done.is_ok_and(|done| done.status.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // It may be unmounted already.
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// False, with a word of why, where nothing may be mounted: the tests may run with some capabilities only.
fn may_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new("mount")
        .args(["-t", "tmpfs", "none"])
        .arg(folder.path())
        .output();
    let may = done.is_ok_and(|done| done.status.success());
    if may {
        let _ = Command::new("umount").arg(folder.path()).output();
    } else {
        println!("SKIPPED, since nothing may be mounted here");
    }
    may
}

/// Waits until something is so.
fn wait_until(what: &str, seconds: u64, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {seconds} s");
        std::thread::yield_now();
    }
}
