//! Files and memory of other processes: which is whose, how long they are held, and who may not make the agent wait
//! or read too much.

mod held;
mod hostile;
mod made;
mod whose;

use std::os::unix::fs::MetadataExt;
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

    /// False where it is busy, unless another process is at fault: there may be other profilers on the machine.
    fn unmount(&self) -> bool {
        let done = Command::new("umount").arg(&self.0).output();
        done.is_ok_and(|done| done.status.success()) || self.is_held_by_others()
    }

    fn is_held_by_others(&self) -> bool {
        let Ok(device) = std::fs::metadata(&self.0).map(|state| state.dev()) else {
            return false;
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let mut others = processes
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_number(name) && *name != std::process::id().to_string());
        others.any(|id| is_held_by(&id, device))
    }
}

/// True where a process, by its id or as `self`, has a file of that filesystem open.
fn is_held_by(process: &str, device: u64) -> bool {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd"));
    let descriptors = descriptors.into_iter().flatten().flatten();
    let mut states = descriptors.filter_map(|descriptor| std::fs::metadata(descriptor.path()).ok());
    states.any(|state| state.dev() == device)
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
