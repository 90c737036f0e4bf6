//! News of processes, control groups and the kernel's own code.

use super::records::read_record;
use super::skeletons::lifecycle::types::so_event;
use super::skeletons::{lifecycle, sampler};
use crate::process::{CodeChange, Executed, NewCode};
use crate::sys::clock_ticks_per_second;

/// What happened. Times are `CLOCK_MONOTONIC`'s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A process became another program.
    Exec(Executed),
    /// A process was made, as a copy of another.
    Fork {
        /// Its process id, as the machine's first process id namespace has it.
        tgid: u32,
        /// Its start, in clock ticks since boot.
        start_ticks: u64,
        /// The kernel's count of the execs that led to its program, which is that of its parent.
        exec_id: u32,
        /// Its id in the agent's /proc; 0 where it is not seen there.
        proc_tgid: u32,
        /// Process id of its parent, in the same namespace.
        parent_tgid: u32,
        /// Start of its parent, in clock ticks since boot.
        parent_start_ticks: u64,
    },
    /// A process ended, with the last of its threads.
    Exit {
        /// Its process id, as the machine's first process id namespace has it.
        tgid: u32,
        /// Its start, in clock ticks since boot.
        start_ticks: u64,
    },
    /// A process or one of its threads was moved to another control group of version 1.
    Move {
        /// Its process id, as the machine's first process id namespace has it.
        tgid: u32,
        /// Its start, in clock ticks since boot.
        start_ticks: u64,
        /// When, in nanoseconds.
        time_ns: u64,
    },
    /// A control group of version 2 was made.
    Group {
        /// The number by which samples name it.
        id: u64,
        /// Its path from the tree's root, beginning with `/`.
        path: Box<str>,
    },
    /// An executable mapping was made. It may come before the exec or fork that began its process, and after the exit
    /// that ended it. The process id is that of the agent's own namespace.
    Map {
        /// Whose mapping it is.
        tgid: u32,
        /// Several where they follow each other.
        new: Vec<NewCode>,
    },
    /// Code that the kernel makes at run time came or went.
    Code(CodeChange),
}

pub(super) fn parse_event(bytes: &[u8]) -> Option<Event> {
    let event: so_event = read_record(bytes)?;
    let text = bytes.get(size_of::<so_event>()..)?.get(..event.text_bytes as usize)?;
    let mut texts = text.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut text = move || texts.next().unwrap_or_default().into_owned().into_boxed_str();
    let tick_ns = 1_000_000_000 / clock_ticks_per_second();
    let (tgid, exec_id, start_ticks) = (event.tgid, event.exec_id, event.start_boottime_ns / tick_ns);
    let (time_ns, proc_tgid) = (event.time_ns, event.proc_tgid);
    Some(match event.kind {
        1 => Event::Exec(Executed {
            tgid,
            start_ticks,
            exec_id,
            time_ns,
            proc_tgid,
            image: event.image,
            cgroup_id: event.cgroup_id,
            name: text(),
            path: text(),
        }),
        2 => Event::Fork {
            tgid,
            start_ticks,
            exec_id,
            proc_tgid,
            parent_tgid: event.parent_tgid,
            parent_start_ticks: event.parent_start_boottime_ns / tick_ns,
        },
        3 => Event::Exit { tgid, start_ticks },
        4 => Event::Group {
            id: event.cgroup_id,
            path: text(),
        },
        5 => Event::Move {
            tgid,
            start_ticks,
            time_ns,
        },
        _ => return None,
    })
}

/// The process id namespace of the /proc that the agent reads: its inode. None where it is the machine's first one.
pub(super) fn proc_namespace() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    /// `PROC_PID_INIT_INO` (include/linux/proc_ns.h).
    const FIRST: u64 = 0xEFFF_FFFC;
    // The first process there is in its namespace; without the right to look at it, most likely the agent's own one is
    // meant.
    let look = |path| std::fs::metadata(path).map(|namespace| namespace.ino());
    let inode = look("/proc/1/ns/pid").or_else(|_| look("/proc/self/ns/pid")).ok()?;
    (inode != FIRST).then_some(inode as u32)
}

/// True where /proc tells of processes by the ids that the kernel gives this one in its events.
pub(super) fn events_have_ids_of_proc() -> bool {
    // Read through /proc, a process's own id is the one there.
    let there = std::fs::read_link("/proc/self").ok();
    let there = there.and_then(|link| link.to_str()?.parse::<u32>().ok());
    there.is_none_or(|there| there == std::process::id())
}

/// Tells the programs, before they are loaded, which ids the agent's /proc has.
pub(super) fn set_proc_namespace(
    sampler: &mut sampler::OpenSamplerSkel<'_>,
    lifecycle: &mut lifecycle::OpenLifecycleSkel<'_>,
) {
    let inode = proc_namespace().unwrap_or(0);
    if let Some(data) = sampler.maps.rodata_data.as_deref_mut() {
        data.proc_namespace = inode;
    }
    if let Some(data) = lifecycle.maps.rodata_data.as_deref_mut() {
        data.proc_namespace = inode;
    }
}

/// Attaches what tells of control groups. Kernels without them lack these tracepoints.
pub(super) fn follow_groups(lifecycle: &lifecycle::LifecycleSkel<'_>) -> Vec<libbpf_rs::Link> {
    let mut links = Vec::new();
    for (program, tracepoint) in [
        (&lifecycle.progs.on_group, "cgroup_mkdir"),
        (&lifecycle.progs.on_move, "cgroup_attach_task"),
    ] {
        match program.attach_raw_tracepoint(tracepoint) {
            Ok(link) => links.push(link),
            Err(error) => tracing::debug!(tracepoint, %error, "control groups are not followed"),
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a record: time, start, parent's start, image and group; kind, tgid, parent's tgid, exec id, tgid in
    /// /proc; text.
    pub(super) fn record(words: [u64; 5], halves: [u32; 5], text: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let halves = halves.into_iter().chain([text.len() as u32]);
        bytes.extend(halves.flat_map(u32::to_ne_bytes));
        bytes.extend(text);
        bytes
    }

    #[test]
    fn an_exec_names_its_program_and_a_group_its_path() {
        let exec = record([5, 20_000_000, 0, 77, 9], [1, 100, 0, 3, 40], b"dash\0/bin/sh\0");
        let Some(Event::Exec(executed)) = parse_event(&exec) else {
            panic!("no exec")
        };
        assert_eq!((&*executed.name, &*executed.path), ("dash", "/bin/sh"));
        assert_eq!((executed.tgid, executed.proc_tgid, executed.exec_id), (100, 40, 3));
        assert_eq!((executed.start_ticks, executed.image, executed.cgroup_id), (2, 77, 9));
        let group = record([5, 0, 0, 0, 12], [4, 0, 0, 0, 0], b"/a.slice/b.service\0");
        let path = "/a.slice/b.service".into();
        assert_eq!(parse_event(&group), Some(Event::Group { id: 12, path }));
        // Whatever was cut off is missing, not made up.
        assert_eq!(parse_event(&exec[..exec.len() - 1]), None);
        let nameless = record([5, 0, 0, 0, 0], [1, 100, 0, 3, 100], b"");
        assert!(matches!(parse_event(&nameless), Some(Event::Exec(executed)) if executed.name.is_empty()));
    }

    #[test]
    fn moves_forks_and_ends_are_told_apart() {
        let of = |kind| parse_event(&record([5, 20_000_000, 30_000_000, 0, 0], [kind, 7, 6, 1, 7], b""));
        assert!(matches!(
            of(2),
            Some(Event::Fork {
                tgid: 7,
                parent_tgid: 6,
                parent_start_ticks: 3,
                ..
            })
        ));
        assert_eq!(
            of(3),
            Some(Event::Exit {
                tgid: 7,
                start_ticks: 2
            })
        );
        let moved = Event::Move {
            tgid: 7,
            start_ticks: 2,
            time_ns: 5,
        };
        assert_eq!(of(5), Some(moved));
        assert_eq!(of(9), None);
    }
}
