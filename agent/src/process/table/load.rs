//! Reading a program from /proc: only what surely is about this one.

use std::sync::Arc;

use super::replaced::Reading;
use super::{Knowledge, Table};
use crate::frames::ProgramKey;
use crate::process::address_space::Source;
use crate::process::proc_files;
use crate::sys::{guarded_for, monotonic_ns};

impl Table {
    /// Reads a live process into the entry of its program. False where it is gone, its id was given to another, or it
    /// runs another program by now.
    pub(super) fn load(&mut self, key: ProgramKey, now_ns: u64) -> bool {
        let Some(entry) = self.entry_mut(key) else { return false };
        entry.knowledge = Knowledge::Missed;
        entry.read_ns = now_ns;
        let (proc_tgid, image) = (entry.proc_tgid, entry.image);
        let begun_ns = monotonic_ns();
        if proc_tgid == 0 {
            return false;
        }
        let Some((read_id, path)) = proc_files::readable(proc_tgid) else {
            return false;
        };
        // It lies in the process's own memory, which may be a file that nobody serves.
        let how = self.command_lines;
        let command_line = guarded_for(read_id, move || proc_files::command_line(read_id, how)).unwrap_or_default();
        let Some((mappings, sources)) = self.sources.read(read_id, &Arc::default(), &[]) else {
            return false;
        };
        let reading = Reading::since(begun_ns);
        let surroundings = self.resolver.surroundings(read_id);
        // Asked after everything was read: who has the id now, and what it runs, was the same all the while, or all of
        // it would be another's.
        if !is_still(proc_tgid, read_id, key, image) {
            return false;
        }
        let build_id = sources.iter().find_map(|(_, source)| match source {
            Source::Module(module) if *module.path == *path => module.build_id.clone(),
            _ => None,
        });
        let process = self.processes.get(&(key.tgid, key.start_ticks));
        let moves = process.map_or(0, |process| process.moves_until(u64::MAX));
        let Some(entry) = self.entry_mut(key) else { return false };
        entry.labels.read(&path, &command_line, build_id, surroundings, moves);
        entry.knowledge = Knowledge::Read;
        entry.read_id = read_id;
        entry.begin_generation();
        entry.set_code(mappings, sources, reading);
        self.changes.changed.push(key);
        true
    }

    /// Reads the mappings of the process's present program again. False where that is not the one meant, or it is gone.
    pub(super) fn reread(&mut self, key: ProgramKey, now_ns: u64) -> bool {
        let Some(process) = self.processes.get_mut(&(key.tgid, key.start_ticks)) else {
            return false;
        };
        let exited = process.exited_ns.is_some();
        let Some(entry) = process.programs.last_mut().filter(|entry| entry.labels.key() == key) else {
            return false;
        };
        entry.read_ns = now_ns;
        if exited || entry.knowledge != Knowledge::Read {
            return false;
        }
        let (proc_tgid, image, mut read_id) = (entry.proc_tgid, entry.image, entry.read_id);
        let begun_ns = monotonic_ns();
        let (old_mappings, old_sources) = (Arc::clone(&entry.mappings), Arc::clone(&entry.sources));
        let mut read = self
            .sources
            .read(read_id, &old_mappings, &old_sources)
            .filter(|(mappings, _)| !mappings.is_empty());
        if read.is_none()
            && let Some((other, _)) = proc_files::readable(proc_tgid).filter(|(other, _)| *other != read_id)
        {
            read_id = other;
            read = self
                .sources
                .read(read_id, &old_mappings, &old_sources)
                .filter(|(mappings, _)| !mappings.is_empty());
        }
        // The mappings of a process that is exiting are empty: what was known before is better.
        let Some((mappings, sources)) = read else { return false };
        let reading = Reading::since(begun_ns);
        // As in `load`.
        if !is_still(proc_tgid, read_id, key, image) {
            return false;
        }
        let Some(entry) = self.entry_mut(key) else { return false };
        entry.read_id = read_id;
        let is_new = mappings != *entry.mappings;
        // What was replaced before this reading is known now, also where it looks the same.
        if is_new || entry.replaced.is_known() {
            entry.begin_generation();
        }
        entry.set_code(mappings, sources, reading);
        if is_new {
            self.changes.changed.push(key);
            // Something may be mapped no longer.
            self.held.one_ended();
        }
        true
    }
}

/// True where /proc tells of this process and this program.
fn is_still(proc_tgid: u32, read_id: u32, key: ProgramKey, image: u64) -> bool {
    let Some(first) = proc_files::stat(proc_tgid) else {
        return false;
    };
    let program = if read_id == proc_tgid {
        Some(first)
    } else {
        proc_files::stat(read_id)
    };
    let Some(program) = program else { return false };
    let is_same_image = match program.image {
        // In the middle of an exec, whose files were read: the next program's. Without the right to know, only the
        // start time tells.
        0 => !proc_files::tells_images(),
        now => image == 0 || now == image,
    };
    first.start_ticks == key.start_ticks && is_same_image
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// Ends it with the test.
    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            // It may have ended by itself.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn run(program: &str, argument: &str) -> Ended {
        Ended(Command::new(program).arg(argument).spawn().unwrap())
    }

    fn wait_for(id: u32, is_there: impl Fn(proc_files::Stat) -> bool) -> proc_files::Stat {
        for _ in 0..1000 {
            if let Some(stat) = proc_files::stat(id).filter(|stat| is_there(*stat)) {
                return stat;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{:?}", proc_files::stat(id));
    }

    /// A process whose memory is gone tells of no stack, as one does that is between two programs: files that were read
    /// until then may be the next one's.
    #[test]
    fn files_of_a_process_without_a_stack_are_nobodys() {
        let (runs, ended) = (run("sleep", "60"), run("true", ""));
        let (runs_id, ended_id) = (runs.0.id(), ended.0.id());
        let key = |tgid, stat: proc_files::Stat| ProgramKey {
            tgid,
            start_ticks: stat.start_ticks,
            exec_id: 1,
        };
        // The kernel tells this process of others' stacks.
        let stat = wait_for(runs_id, |stat| stat.image != 0);
        assert!(is_still(runs_id, runs_id, key(runs_id, stat), stat.image));
        assert!(is_still(runs_id, runs_id, key(runs_id, stat), 0));
        assert!(!is_still(runs_id, runs_id, key(runs_id, stat), stat.image + 16));
        let image = stat.image;
        let stat = wait_for(ended_id, |stat| stat.image == 0);
        assert!(!is_still(ended_id, ended_id, key(ended_id, stat), image));
        assert!(!is_still(ended_id, ended_id, key(ended_id, stat), 0));
    }
}
