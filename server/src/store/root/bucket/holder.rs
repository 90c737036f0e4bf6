//! Who holds a lease: what a process says of itself, and whether one that said so is known to have ended.

use rustix::io::Errno;
use rustix::process::Pid;
use std::path::Path;

/// What tells a process from every other one, of this machine and of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    /// Of the machine's start; empty where nobody can tell.
    boot: String,
    /// The namespace in which the process has its number; empty where nobody can tell.
    namespace: String,
    tgid: i32,
    /// When the process started, in ticks since the machine's start: numbers are used again.
    started: u64,
}

impl Holder {
    /// This process.
    pub(super) fn this() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let tgid = i32::try_from(std::process::id()).unwrap_or_default();
        Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.display().to_string(),
            tgid,
            started: started(tgid).unwrap_or_default(),
        }
    }

    /// A process that this one started.
    #[cfg(test)]
    pub(super) fn of_child(id: u32) -> Self {
        let tgid = i32::try_from(id).unwrap();
        Self {
            tgid,
            started: started(tgid).unwrap(),
            ..Self::this()
        }
    }

    /// Lines of a lease.
    pub(super) fn text(&self) -> String {
        let Self {
            boot,
            namespace,
            tgid,
            started,
        } = self;
        format!("boot {boot}\nnamespace {namespace}\ntgid {tgid}\nstarted {started}")
    }

    /// Of a lease's lines; none where they lack something.
    fn of(lease: &str) -> Option<Self> {
        let value = |key: &str| {
            let mut values = lease
                .lines()
                .filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            values.next()
        };
        Some(Self {
            boot: value("boot")?.to_owned(),
            namespace: value("namespace")?.to_owned(),
            tgid: value("tgid")?.parse().ok()?,
            started: value("started")?.parse().ok()?,
        })
    }

    /// Whether the process of a lease was one of this machine, since its start, and is no more. False where nobody
    /// can tell: in another container, or on another machine.
    pub(super) fn has_ended(&self, lease: &[u8]) -> bool {
        let lease = std::str::from_utf8(lease).ok().and_then(Self::of);
        lease.is_some_and(|other| {
            let is_here = other.boot == self.boot && other.namespace == self.namespace;
            is_here && !self.boot.is_empty() && !self.namespace.is_empty() && !other.runs()
        })
    }

    fn runs(&self) -> bool {
        let Some(pid) = Some(self.tgid).filter(|tgid| *tgid > 0).and_then(Pid::from_raw) else {
            // No process has such a number: whoever wrote it is unknown.
            return true;
        };
        match rustix::process::test_kill_process(pid) {
            Err(Errno::SRCH) => false,
            // Where its times may not be read it counts as running.
            _ => started(self.tgid).is_none_or(|started| started == self.started),
        }
    }
}

/// When a process started. The 22nd word of its line, of which the second is a name in brackets that may hold anything.
fn started(tgid: i32) -> Option<u64> {
    let line = std::fs::read_to_string(Path::new("/proc").join(tgid.to_string()).join("stat")).ok()?;
    let (_, behind_name) = line.rsplit_once(')')?;
    behind_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_this_machine_that_is_no_more_has_ended() {
        let this = Holder::this();
        assert!(this.started > 0 && !this.boot.is_empty() && !this.namespace.is_empty());
        let has_ended = |lease: &Holder| this.has_ended(format!("holder x\n{}\nrenewal 7\n", lease.text()).as_bytes());
        assert!(!has_ended(&this), "this process runs");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let other = Holder::of_child(child.id());
        assert!(!has_ended(&other), "it runs");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended(&other), "it was killed");
        let reused = Holder {
            started: this.started + 1,
            ..this.clone()
        };
        assert!(has_ended(&reused), "its number is another process's now");
        for elsewhere in [
            Holder {
                boot: "another".to_owned(),
                ..other.clone()
            },
            Holder {
                namespace: "pid:[1]".to_owned(),
                ..other.clone()
            },
        ] {
            assert!(!has_ended(&elsewhere), "nobody can tell from here");
        }
        assert!(!this.has_ended(b"") && !this.has_ended(b"released\n") && !this.has_ended(&[0xff]));
    }
}
