//! The table against this process's own /proc.

use super::*;
use crate::process::{Executed, NewCode, proc_files};
use crate::sys::monotonic_ns;

fn table() -> Table {
    Table::new(100, ModuleTable::new(100, 100), Resolver::default(), CommandLines::Cut)
}

/// A sample of that program at that time, as the kernel side tells it.
fn seen(key: ProgramKey, comm: &str, time_ns: u64) -> Sighting<'_> {
    Sighting {
        key,
        proc_tgid: key.tgid,
        image: 0,
        cgroup_id: 0,
        time_ns,
        kernel_thread: false,
        comm,
    }
}

impl Table {
    fn sample(&mut self, key: ProgramKey, comm: &str, now_ns: u64) -> Arc<Program> {
        self.program(&seen(key, comm, now_ns), now_ns).program
    }
}

/// News of a mapping where none is known.
fn mapped(time_ns: u64) -> [NewCode; 1] {
    [NewCode {
        start: 0,
        end: 0,
        is_made: true,
        time_ns,
    }]
}

fn executed(key: ProgramKey, path: &str) -> Executed {
    Executed {
        tgid: key.tgid,
        start_ticks: key.start_ticks,
        exec_id: key.exec_id,
        time_ns: 1,
        proc_tgid: key.tgid,
        image: 0,
        cgroup_id: 0,
        name: path.rsplit('/').next().unwrap().into(),
        path: path.into(),
    }
}

/// The program of the exec count, in a process that is no more.
fn gone(exec_id: u32) -> ProgramKey {
    ProgramKey {
        tgid: 1_000_000_000,
        start_ticks: 5,
        exec_id,
    }
}

fn own_key() -> ProgramKey {
    let tgid = std::process::id();
    ProgramKey {
        tgid,
        start_ticks: proc_files::stat(tgid).unwrap().start_ticks,
        exec_id: 7,
    }
}

#[test]
fn an_address_of_this_program_is_found_in_its_own_file() {
    let mut table = table();
    let key = own_key();
    let program = table.sample(key, "x", 1);
    let path = std::env::current_exe().unwrap();
    assert_eq!(*program.executable_path, *path.to_str().unwrap());
    assert_eq!(*program.executable, *path.file_name().unwrap().to_str().unwrap());
    let function: fn() -> ProgramKey = own_key;
    let location = table.location(key, function as usize as u64, true, 2);
    let Some(Source::Module(module)) = table.source(key, location.source, 2) else {
        panic!("no module")
    };
    assert_eq!(*module.path, *path.to_str().unwrap());
    assert!(location.offset < module.bytes);
    assert!(module.is_open());
}

#[test]
fn a_reused_process_id_is_another_process() {
    let mut table = table();
    let key = own_key();
    let old = ProgramKey {
        start_ticks: key.start_ticks - 1,
        ..key
    };
    let gone = table.sample(old, "old", 1);
    assert_eq!(
        &*gone.executable, "old",
        "what /proc says now is not about the old process"
    );
    let present = table.sample(key, "new", 1);
    assert_ne!(gone.executable, present.executable);
}

#[test]
fn a_program_may_wait_for_a_part_of_its_age_until_it_is_known() {
    let mut table = table();
    let key = own_key();
    let born_ns = key.start_ticks * TICK_NS;
    let waits = |table: &Table, age_ns| {
        table
            .opens_by_ns(key, born_ns + age_ns)
            .map(|by_ns| by_ns - born_ns - age_ns)
    };
    let second = 1_000_000_000;
    assert_eq!(waits(&table, second), Some(second / 4));
    assert_eq!(waits(&table, 3600 * second), Some(5 * second));
    let before_the_start = table.opens_by_ns(key, born_ns - second);
    assert_eq!(before_the_start, Some(born_ns - second), "not at all");
    table.sample(key, "x", born_ns + second);
    assert_eq!(waits(&table, second), None);
}

#[test]
fn samples_from_before_an_exec_are_not_given_the_new_program() {
    let mut table = table();
    let key = own_key();
    table.on_exec(&executed(key, "/x/y"), true, 1);
    let before = ProgramKey {
        exec_id: key.exec_id - 1,
        ..key
    };
    assert_eq!(&*table.sample(before, "sh", 2).executable, "sh");
    assert_ne!(&*table.sample(key, "sh", 2).executable, "sh");
}

/// What a thread was called may be the next program's name: who has kept the program does not ask for it then.
#[test]
fn a_program_is_known_by_its_exec_and_not_by_what_a_thread_was_called() {
    let mut table = table();
    assert!(!table.knows(gone(1)));
    assert_eq!(&*table.sample(gone(1), "next", 1).executable, "next");
    assert!(!table.knows(gone(1)));
    table.on_exec(&executed(gone(2), "/bin/second"), true, 2);
    assert!(table.knows(gone(2)));
    let own = own_key();
    table.sample(own, "a-test", 3);
    assert!(table.knows(own), "its files were read");
}

#[test]
fn a_child_is_its_parents_program_even_after_it_ended() {
    let mut table = table();
    let parent = own_key();
    let program = table.sample(parent, "x", 1);
    let child = ProgramKey {
        tgid: 1_000_000_000,
        start_ticks: 5,
        exec_id: parent.exec_id,
    };
    table.on_fork(child, child.tgid, parent, 2);
    table.on_exit(child.tgid, child.start_ticks, 3);
    let inherited = table.sample(child, "x", 4);
    assert_eq!((&inherited.executable, inherited.key), (&program.executable, child));
    let function: fn() -> ProgramKey = own_key;
    assert_ne!(
        table.location(child, function as usize as u64, true, 5).source,
        SourceId::UNKNOWN
    );
    table.tick(4 + EXIT_GRACE_NS);
    assert_eq!(table.stats().processes, 1);
}

#[test]
fn new_mappings_are_looked_at_once_unless_they_were_read_since() {
    let mut table = table();
    let key = own_key();
    let looks = |table: &mut Table, now| {
        table.tick(now);
        table.stats().mapping_looks
    };
    table.sample(key, "x", 100);
    table.on_map(key.tgid, &mapped(99), 101);
    table.on_map(1_000_000_000, &mapped(101), 101);
    assert_eq!(looks(&mut table, 101), 0, "read since, and unknown");
    table.on_map(key.tgid, &mapped(102), 103);
    table.on_map(key.tgid, &mapped(103), 103);
    assert_eq!(looks(&mut table, 104), 1);
    assert_eq!((looks(&mut table, 105), table.next_look_ns()), (1, None));
    let child = ProgramKey {
        tgid: 1_000_000_000,
        ..key
    };
    table.on_map(key.tgid, &mapped(106), 106);
    table.on_fork(child, child.tgid, key, 107);
    assert_eq!(looks(&mut table, 108), 2, "the child's, which is due at once");
    table.on_exit(key.tgid, key.start_ticks, 109);
    assert_eq!(looks(&mut table, 109 + SECOND_LOOK_NS), 2, "it is gone");
}

#[test]
fn where_mappings_are_not_told_a_new_program_is_looked_at_again() {
    for told in [true, false] {
        let mut table = table();
        table.on_exec(&executed(own_key(), "/x/y"), told, 100);
        table.tick(101);
        assert_eq!(table.stats().mapping_looks, 0);
        table.tick(100 + SECOND_LOOK_NS);
        assert_eq!(table.stats().mapping_looks, u64::from(!told));
    }
}

#[test]
fn kernel_threads_and_the_idle_task_have_no_files() {
    let mut table = table();
    let key = ProgramKey {
        tgid: 2,
        start_ticks: 1,
        exec_id: 0,
    };
    let kernel = |key, comm| Sighting {
        kernel_thread: true,
        ..seen(key, comm, 1)
    };
    let name = |table: &mut Table, sighting| table.program(&sighting, 1).program.executable.to_string();
    assert_eq!(name(&mut table, kernel(key, "kthreadd")), "kthreadd");
    let idle = ProgramKey {
        tgid: 0,
        start_ticks: 0,
        exec_id: 0,
    };
    assert_eq!(name(&mut table, kernel(idle, "swapper/3")), "swapper");
}

#[test]
fn the_table_is_bounded() {
    let mut table = table();
    for tgid in 0..1000 {
        let key = ProgramKey {
            tgid: 2_000_000_000 + tgid,
            start_ticks: 1,
            exec_id: 0,
        };
        table.sample(key, "kworker", u64::from(tgid));
    }
    assert!(table.stats().processes <= 100);
    assert!(table.stats().forgotten >= 900);
}

#[test]
fn a_program_that_was_gone_too_soon_has_the_name_of_its_exec() {
    let mut table = table();
    for (exec_id, path) in [(1, "/bin/first"), (2, "/bin/second"), (3, "third")] {
        table.on_exec(&executed(gone(exec_id), path), true, 1);
    }
    let link = Executed {
        name: "dash".into(),
        ..executed(gone(4), "/bin/sh")
    };
    table.on_exec(&link, true, 1);
    for (exec_id, name, path) in [
        (1, "first", "/bin/first"),
        (2, "second", "/bin/second"),
        (3, "third", ""),
        (4, "dash", ""),
    ] {
        let program = table.sample(gone(exec_id), "a-thread", 2);
        assert_eq!((&*program.executable, &*program.executable_path), (name, path));
    }
    // A child of one of them, and one before all that.
    let child = ProgramKey {
        tgid: 1_000_000_001,
        ..gone(2)
    };
    table.on_fork(child, child.tgid, gone(2), 2);
    assert_eq!(&*table.sample(child, "x", 3).executable, "second");
    assert_eq!(&*table.sample(gone(0), "before", 3).executable, "before");
}

#[test]
fn what_proc_says_of_another_program_of_the_process_is_not_taken() {
    let mut table = table();
    let key = own_key();
    let image = proc_files::stat(key.tgid).unwrap().image;
    let other = Executed {
        image: image + 16,
        ..executed(key, "/bin/before")
    };
    table.on_exec(&other, true, 1);
    let program = table.sample(key, "x", 2);
    assert_eq!((&*program.executable, &*program.command_line), ("before", ""));
    let function: fn() -> ProgramKey = own_key;
    assert_eq!(
        table
            .location(key, function as usize as u64, true, REREAD_NS + 3)
            .source,
        SourceId::UNKNOWN
    );
    // Nobody told of its exec: the first sample was taken in the middle of it.
    let mut table = self::table();
    let at = |image, time_ns| Sighting {
        image,
        ..seen(key, "x", time_ns)
    };
    assert_eq!(&*table.program(&at(image + 16, 1), 1).program.executable, "x");
    assert_ne!(&*table.program(&at(image, 2), 2).program.executable, "x");
}

#[test]
fn a_chain_of_execs_is_remembered_for_a_while_and_bounded() {
    let mut table = table();
    for exec_id in 0..2000 {
        table.on_exec(
            &executed(gone(exec_id), &format!("/bin/p{exec_id}")),
            true,
            u64::from(exec_id),
        );
    }
    for exec_id in [0, 1000, 1999] {
        assert_eq!(
            *table.sample(gone(exec_id), "x", 2000).executable,
            format!("p{exec_id}")
        );
    }
    table.tick(2000 + REPLACED_NS);
    assert_eq!(&*table.sample(gone(1000), "x", 2001 + REPLACED_NS).executable, "x");
    assert_eq!(
        &*table.sample(gone(1999), "x", 2001 + REPLACED_NS).executable,
        "p1999",
        "that it still runs"
    );
    for exec_id in 2000..2100 + MAX_REPLACED as u32 {
        table.on_exec(&executed(gone(exec_id), "/bin/x"), true, 3 * REPLACED_NS);
    }
    assert!(table.stats().programs_forgotten >= 100);
    assert!(
        table
            .processes
            .values()
            .map(|process| process.programs.len())
            .sum::<usize>()
            <= MAX_REPLACED + 1
    );
}

#[test]
fn the_control_group_is_that_of_the_sample() {
    let mut table = table();
    for (id, path) in [(1 << 50, "/a/one.service"), (2 << 50, "/a/two.service")] {
        table.on_group(id, path);
    }
    table.on_exec(&executed(gone(1), "/bin/first"), true, 1);
    let mut group = |cgroup_id| {
        let sighting = Sighting {
            cgroup_id,
            ..seen(gone(1), "x", 2)
        };
        let metadata = Arc::clone(&table.program(&sighting, 2).program.metadata);
        (
            metadata.cgroup.to_string(),
            metadata.unit.as_deref().unwrap_or("").to_owned(),
        )
    };
    assert_eq!(group(1 << 50), ("/a/one.service".into(), "one.service".into()));
    assert_eq!(group(2 << 50), ("/a/two.service".into(), "two.service".into()));
    assert_eq!(group(1 << 50).0, "/a/one.service", "a sample of before that came later");
    assert_eq!(group(3 << 50).0, "", "gone before anybody knew it");
}

#[test]
fn a_process_that_proc_does_not_show_is_not_taken_for_another() {
    let mut table = table();
    let key = own_key();
    let hidden = Sighting {
        proc_tgid: 0,
        ..seen(key, "outside", 1)
    };
    assert_eq!(&*table.program(&hidden, 1).program.executable, "outside");
    // The same process under another id than samples have.
    let inside = ProgramKey {
        tgid: 1_000_000_000,
        ..key
    };
    let shown = Sighting {
        proc_tgid: key.tgid,
        ..seen(inside, "inside", 1)
    };
    assert_ne!(&*table.program(&shown, 1).program.executable, "inside");
    table.on_map(key.tgid, &mapped(2), 2);
    table.tick(3);
    assert_eq!(
        table.stats().mapping_looks,
        1,
        "mappings are told under the id in /proc"
    );
}

#[test]
fn processes_whose_end_was_not_told_are_asked_after_and_sooner_where_words_were_lost() {
    let mut table = table();
    let second = 1_000_000_000;
    for number in 0..40 {
        let key = ProgramKey {
            tgid: gone(1).tgid + number,
            ..gone(1)
        };
        table.sample(key, "unseen", second);
    }
    let living_at = |table: &mut Table, at_s: u64| {
        table.tick(at_s * second);
        let living = table.processes.values().filter(|process| process.exited_ns.is_none());
        living.count()
    };
    assert_eq!(living_at(&mut table, 10), 40, "seen lately");
    assert_eq!([11, 12].map(|at_s| living_at(&mut table, at_s)), [39, 38]);
    table.note_lost_events(3);
    assert_eq!([13, 14, 15].map(|at_s| living_at(&mut table, at_s)), [22, 6, 0]);
}

#[test]
fn an_address_that_something_else_was_mapped_at_has_no_name_before_or_after() {
    let mut table = table();
    let key = own_key();
    let function: fn() -> ProgramKey = own_key;
    let address = function as usize as u64;
    let begun_ns = monotonic_ns();
    let generation = |table: &mut Table, at| table.program(&seen(key, "x", at), monotonic_ns()).generation;
    let first = generation(&mut table, begun_ns);
    // This program's file may have been made a moment ago.
    let read_ns = monotonic_ns();
    let source = table.location(key, address, true, read_ns).source;
    let source_at = |table: &mut Table, at, address| table.location_at(key, address, at, true, monotonic_ns()).source;
    assert_eq!(source_at(&mut table, read_ns, address), source);
    let mapped_ns = monotonic_ns();
    let page = address & !4095;
    let new = |start, is_made| NewCode {
        start,
        end: start + 4096,
        is_made,
        time_ns: mapped_ns,
    };
    table.on_map(key.tgid, &[new(0x1000, false), new(page, true)], mapped_ns);
    assert_eq!(source_at(&mut table, read_ns, address), source);
    assert_eq!(source_at(&mut table, mapped_ns, address), SourceId::REPLACED);
    assert_eq!(
        source_at(&mut table, mapped_ns, page + 4096),
        source_at(&mut table, read_ns, page + 4096)
    );
    // Also where nothing is known: something may have been there when no look told of it.
    assert_eq!(generation(&mut table, mapped_ns), generation(&mut table, read_ns) + 2);
    table.tick(monotonic_ns() + 1);
    assert_eq!(table.stats().mapping_looks, 1);
    assert_eq!(source_at(&mut table, mapped_ns, address), source);
    assert_eq!(source_at(&mut table, mapped_ns - 1, address), SourceId::REPLACED);
    assert!(generation(&mut table, mapped_ns) > first + 1 && table.stats().code_replaced == 2);
}
