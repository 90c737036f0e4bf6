//! The table against this process's own /proc.

use super::*;

fn table() -> Table {
    let labeller: Labeller = Box::new(|subject| Metadata {
        service: subject.executable.into(),
        ..Metadata::default()
    });
    Table::new(100, ModuleTable::new(100, 100), labeller)
}

fn own_key() -> ProgramKey {
    let tgid = std::process::id();
    ProgramKey {
        tgid,
        start_ticks: proc_files::start_ticks(tgid).unwrap(),
        exec_id: 7,
    }
}

#[test]
fn an_address_of_this_program_is_found_in_its_own_file() {
    let mut table = table();
    let key = own_key();
    let (program, _) = table.program(key, false, "x", 1);
    let path = std::env::current_exe().unwrap();
    assert_eq!(*program.executable_path, *path.to_str().unwrap());
    assert_eq!(*program.executable, *path.file_name().unwrap().to_str().unwrap());
    let function: fn() -> ProgramKey = own_key;
    let place = table.place(key, function as usize as u64, true, 2);
    let Some(Source::Module(module)) = table.source(key, place.source, 2) else {
        panic!("no module")
    };
    assert_eq!(*module.path, *path.to_str().unwrap());
    assert!(place.offset < module.bytes);
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
    let (gone, _) = table.program(old, false, "old", 1);
    assert_eq!(
        &*gone.executable, "old",
        "what /proc says now is not about the old process"
    );
    let (present, _) = table.program(key, false, "new", 1);
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
    table.program(key, false, "x", born_ns + second);
    assert_eq!(waits(&table, second), None);
}

#[test]
fn samples_from_before_an_exec_are_not_given_the_new_program() {
    let mut table = table();
    let key = own_key();
    table.on_exec(key, true, 1);
    let before = ProgramKey {
        exec_id: key.exec_id - 1,
        ..key
    };
    assert_eq!(&*table.program(before, false, "sh", 2).0.executable, "sh");
    assert_ne!(&*table.program(key, false, "sh", 2).0.executable, "sh");
}

#[test]
fn a_child_is_its_parents_program_even_after_it_ended() {
    let mut table = table();
    let parent = own_key();
    let (program, _) = table.program(parent, false, "x", 1);
    let child = ProgramKey {
        tgid: 1_000_000_000,
        start_ticks: 5,
        exec_id: parent.exec_id,
    };
    table.on_fork(child, parent, 2);
    table.on_exit(child.tgid, child.start_ticks, 3);
    let (inherited, _) = table.program(child, false, "x", 4);
    assert_eq!((&inherited.executable, inherited.key), (&program.executable, child));
    let function: fn() -> ProgramKey = own_key;
    assert_ne!(
        table.place(child, function as usize as u64, true, 5).source,
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
    table.program(key, false, "x", 100);
    table.on_map(key.tgid, 99, 101);
    table.on_map(1_000_000_000, 101, 101);
    assert_eq!(looks(&mut table, 101), 0, "read since, and unknown");
    table.on_map(key.tgid, 102, 103);
    table.on_map(key.tgid, 103, 103);
    assert_eq!(looks(&mut table, 104), 1);
    assert_eq!((looks(&mut table, 105), table.next_look_ns()), (1, None));
    let child = ProgramKey {
        tgid: 1_000_000_000,
        ..key
    };
    table.on_map(key.tgid, 106, 106);
    table.on_fork(child, key, 107);
    assert_eq!(looks(&mut table, 108), 2, "the child's, which is due at once");
    table.on_exit(key.tgid, key.start_ticks, 109);
    assert_eq!(looks(&mut table, 109 + SECOND_LOOK_NS), 2, "it is gone");
}

#[test]
fn where_mappings_are_not_told_a_new_program_is_looked_at_again() {
    for told in [true, false] {
        let mut table = table();
        table.on_exec(own_key(), told, 100);
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
    assert_eq!(&*table.program(key, true, "kthreadd", 1).0.executable, "kthreadd");
    let idle = ProgramKey {
        tgid: 0,
        start_ticks: 0,
        exec_id: 0,
    };
    assert_eq!(&*table.program(idle, true, "swapper/3", 1).0.executable, "swapper");
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
        table.program(key, true, "kworker", u64::from(tgid));
    }
    assert!(table.stats().processes <= 100);
    assert!(table.stats().forgotten >= 900);
}
