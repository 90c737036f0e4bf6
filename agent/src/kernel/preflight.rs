//! What the kernel must offer before the agent starts: found out first, said exactly.

use std::fmt;
use std::path::Path;

/// Linux that has everything that the programs use.
const OLDEST_KERNEL: (u32, u32) = (5, 10);

/// A capability, its bit in `CapEff`, what the agent needs it for, and whether it can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Capability {
    name: &'static str,
    bit: u32,
    purpose: &'static str,
    required: bool,
    /// CAP_SYS_ADMIN, which older kernels asked for instead, covers it.
    by_sys_admin: bool,
}

const SYS_ADMIN_BIT: u32 = 21;

/// The whole set that the agent runs with.
const CAPABILITIES: [Capability; 6] = [
    Capability {
        name: "CAP_BPF",
        bit: 39,
        purpose: "load the BPF programs",
        required: true,
        by_sys_admin: true,
    },
    Capability {
        name: "CAP_PERFMON",
        bit: 38,
        purpose: "sample every CPU",
        required: true,
        by_sys_admin: true,
    },
    Capability {
        name: "CAP_SYS_PTRACE",
        bit: 19,
        purpose: "read the mappings of other users' processes; without it their user frames have no names",
        required: false,
        by_sys_admin: false,
    },
    Capability {
        name: "CAP_CHECKPOINT_RESTORE",
        bit: 40,
        purpose: "open mapped files that were deleted or lie in containers; without it their frames have no names",
        required: false,
        by_sys_admin: true,
    },
    Capability {
        name: "CAP_DAC_READ_SEARCH",
        bit: 2,
        purpose: "read executables that only their owner may read; without it their frames have no names",
        required: false,
        by_sys_admin: false,
    },
    Capability {
        name: "CAP_SYSLOG",
        bit: 34,
        purpose: "read kernel addresses; without it kernel frames have no names",
        required: false,
        by_sys_admin: false,
    },
];

/// What is missing. Those that are not `fatal` only make the profiles poorer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The agent does not start.
    pub fatal: bool,
    /// What is missing, what for, and what to do: for people.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Checks architecture, kernel version, BTF and capabilities of this process.
pub fn check() -> Vec<Problem> {
    let mut problems = Vec::new();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    problems.extend(check_release(release.trim()));
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        problems.push(Problem {
            fatal: true,
            message: "this kernel has no type information (/sys/kernel/btf/vmlinux is missing); use a kernel built \
                      with CONFIG_DEBUG_INFO_BTF=y, and mount /sys in a container"
                .into(),
        });
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    problems.extend(check_capabilities(effective_capabilities(&status).unwrap_or(0)));
    if std::fs::read_to_string("/proc/sys/kernel/kptr_restrict").is_ok_and(|value| value.trim() == "2") {
        problems.push(Problem {
            fatal: false,
            message: "kernel.kptr_restrict is 2: the kernel hides its addresses from everyone, so kernel frames have \
                      no names; set it to 1 (sysctl kernel.kptr_restrict=1)"
                .into(),
        });
    }
    problems.extend(super::events::proc_namespace().map(|_| pid_namespace()));
    problems
}

/// What the agent's /proc does not show has the name that the kernel told at its exec, and nothing else.
fn pid_namespace() -> Problem {
    Problem {
        fatal: false,
        message: "the agent's /proc is that of a process id namespace of its own: processes outside of it have names, but no named \
                  user frames; start the container with the host's (docker run --pid=host, or hostPID: true)"
            .into(),
    }
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn check_capabilities(effective: u64) -> Vec<Problem> {
    let has = |bit: u32| effective & (1 << bit) != 0;
    let missing: Vec<&Capability> = CAPABILITIES
        .iter()
        .filter(|capability| !(has(capability.bit) || capability.by_sys_admin && has(SYS_ADMIN_BIT)))
        .collect();
    let mut problems = Vec::new();
    let required: Vec<String> = missing
        .iter()
        .filter(|c| c.required)
        .map(|c| format!("{} ({})", c.name, c.purpose))
        .collect();
    if !required.is_empty() {
        let all: Vec<&str> = missing.iter().map(|capability| capability.name).collect();
        problems.push(Problem {
            fatal: true,
            message: format!(
                "missing privileges: {}; run as root, or give the process all of {}",
                required.join(", "),
                all.join(" ")
            ),
        });
    }
    for capability in missing.iter().filter(|capability| !capability.required) {
        problems.push(Problem {
            fatal: false,
            message: format!("{} is missing: needed to {}", capability.name, capability.purpose),
        });
    }
    problems
}

fn check_release(release: &str) -> Option<Problem> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let version = (
        numbers.next()?.parse::<u32>().ok()?,
        numbers.next()?.parse::<u32>().ok()?,
    );
    (version < OLDEST_KERNEL).then(|| Problem {
        fatal: true,
        message: format!(
            "Linux {release} is too old: the agent needs {}.{} or newer",
            OLDEST_KERNEL.0, OLDEST_KERNEL.1
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(names: &[&str]) -> u64 {
        CAPABILITIES
            .iter()
            .filter(|c| names.contains(&c.name))
            .map(|c| 1u64 << c.bit)
            .sum()
    }

    #[test]
    fn the_message_names_exactly_what_is_missing() {
        let all = bits(&CAPABILITIES.map(|capability| capability.name));
        assert_eq!(check_capabilities(all), []);
        let problems = check_capabilities(all & !bits(&["CAP_BPF", "CAP_SYSLOG"]));
        assert!(
            problems[0].fatal && problems[0].message.contains("CAP_BPF") && !problems[0].message.contains("PERFMON")
        );
        assert!(
            problems[0].message.contains("CAP_SYSLOG"),
            "the whole of what to give: {}",
            problems[0]
        );
        assert!(!problems[1].fatal && problems[1].message.starts_with("CAP_SYSLOG"));
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn cap_sys_admin_stands_for_those_that_were_split_off_it() {
        let problems = check_capabilities(1 << SYS_ADMIN_BIT);
        assert!(problems.iter().all(|problem| !problem.fatal));
        assert_eq!(problems.len(), 3);
    }

    #[test]
    fn only_the_first_process_id_namespace_will_do() {
        assert!(!pid_namespace().fatal && pid_namespace().message.contains("namespace"));
    }

    #[test]
    fn effective_set_and_release() {
        assert_eq!(
            effective_capabilities("CapPrm:\t0\nCapEff:\t000001ffffffffff\n"),
            Some(0x1ff_ffff_ffff)
        );
        assert!(check_release("5.4.0-generic").is_some_and(|problem| problem.fatal));
        assert_eq!(check_release("5.10.0-8-amd64"), None);
        assert_eq!(check_release("6.18.44"), None);
    }
}
