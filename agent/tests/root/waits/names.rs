//! Whose a wait for a CPU was, where it is counted once the thread has gone on to the next program.

use std::io::Write;
use std::process::{Command, Stdio};

use stakeout_agent::kernel::{Sensor, Waits};

use crate::recording::{possible, take_turn};

const RING_BYTES: u64 = 16 << 20;

/// A thread holds its waits and counts them with the first of the next program, or as it ends: by then it has that
/// program's name.
#[test]
fn waits_from_before_an_exec_do_not_get_the_name_of_the_next_program() {
    if !possible() {
        return;
    }
    let _turn = take_turn();
    let mut sensor = Sensor::start(20, RING_BYTES, Waits::On, 50_000_000).unwrap();
    sensor.observe_waits(true).unwrap();
    for _ in 0..5 {
        // It waits for a CPU each time it is woken, and for one alone: whoever comes to another one counts its waits.
        let mut child = Command::new("taskset")
            .args(["--cpu-list", "0", "sh", "-c", "read line; exec sleep 0.05"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(child.wait().unwrap().success());
        let queued = sensor.queued().unwrap().programs;
        let mut of_child: Vec<_> = queued.iter().filter(|queued| queued.key.tgid == child.id()).collect();
        of_child.sort_by_key(|queued| queued.key.exec_id);
        let [.., shell, sleep] = &of_child[..] else {
            panic!("waits of two programs, not {of_child:?}");
        };
        assert_eq!(shell.key.exec_id + 1, sleep.key.exec_id);
        assert_eq!((shell.cpu, sleep.cpu), (Some(0), Some(0)));
        assert_eq!((&*shell.comm, &*sleep.comm), ("", "sleep"));
        // Where its stack began and its folder in /proc are the next program's as well.
        assert_eq!((shell.image, shell.proc_tgid), (0, 0));
        assert!(sleep.image != 0 && sleep.proc_tgid != 0, "{sleep:?}");
    }
}
