use std::sync::atomic::{AtomicU64, Ordering};

use super::language::Reader;
use super::*;
use crate::kernel::RuntimeWord;

/// A program that has ended can't be asked for what it ran last.
#[test]
fn another_place_of_a_known_function_has_its_name_after_the_program_s_end() {
    let key = ProgramKey {
        tgid: 7,
        start_ticks: 1,
        exec_id: 0,
    };
    let place = |instruction: u64, hash: u64| RuntimePlace {
        frame: RuntimeWord::Python(0x7f00_0000_1000),
        detail: Some(instruction | hash << 20),
        innermost: false,
    };
    let mut runtimes = Runtimes::default();
    let frame = runtimes.known.intern(Frame {
        kind: FrameKind::Interpreted("cpython"),
        function: Some("queue.Queue.get".into()),
        line: 12,
        ..Frame::unknown()
    });
    let frames = Frames::from([frame]);
    runtimes.known.remember((key, place(3, 77)), Arc::clone(&frames));
    runtimes.remember_function(key, place(3, 77), &frames);
    let mut told = |place| {
        let known = runtimes.frames(key, place, None, 1);
        assert!(known.is_final);
        let frame = &known.frames[0];
        (frame.function.as_deref().map(str::to_owned), frame.line)
    };
    let name = || Some("queue.Queue.get".to_owned());
    assert_eq!(told(place(3, 77)), (name(), 12));
    assert_eq!(told(place(9, 77)), (name(), 0), "its line is not known");
    assert_eq!(told(place(9, 78)), (None, 0), "another function where it lay");
    assert_eq!(runtimes.stats().unreadable, 1);
}

/// Its module is not known yet: until then, and where it ends meanwhile, its name is what there is.
#[test]
fn a_name_in_part_holds_until_there_is_a_whole_one() {
    let key = ProgramKey {
        tgid: 7,
        start_ticks: 1,
        exec_id: 0,
    };
    let place = |instruction: u64| RuntimePlace {
        frame: RuntimeWord::Python(0x7f00_0000_1000),
        detail: Some(instruction | 77 << 20),
        innermost: false,
    };
    let mut runtimes = Runtimes::default();
    let named = |runtimes: &mut Runtimes, name: &str| {
        let frame = runtimes.known.intern(Frame {
            kind: FrameKind::Interpreted("cpython"),
            function: Some(name.into()),
            line: 12,
            ..Frame::unknown()
        });
        Frames::from([frame])
    };
    let told = |known: NamedPlace| {
        let name = known.frames[0].function.as_deref().map(str::to_owned);
        (name, known.is_final)
    };
    let name = |name: &str| Some(name.to_owned());
    let part = named(&mut runtimes, "Queue.get");
    assert_eq!(
        told(runtimes.in_part(key, place(3), &part, 1)),
        (name("Queue.get"), false)
    );
    let soon = runtimes.frames(key, place(3), None, 2);
    assert_eq!(told(soon), (name("Queue.get"), false), "it is not asked for yet");
    let later = runtimes.frames(key, place(3), None, 1 + late::TRY_AGAIN_NS);
    assert_eq!(told(later), (name("Queue.get"), true), "it is gone");
    // What is known of another place of the function is better.
    let whole = named(&mut runtimes, "queue.Queue.get");
    runtimes.remember_function(key, place(9), &whole);
    let later = runtimes.frames(key, place(3), None, 1 + late::TRY_AGAIN_NS);
    assert_eq!(told(later), (name("queue.Queue.get"), true));
    // And it is not asked for ever.
    let tries = (0..u64::from(late::MAX_TRIES)).map(|_| runtimes.in_part(key, place(5), &part, 1).is_final);
    assert_eq!(tries.filter(|is_final| *is_final).count(), 1);
    assert_eq!(told(runtimes.frames(key, place(5), None, 2)), (name("Queue.get"), true));
}

/// Has learned tables of so many bytes.
#[derive(Debug)]
struct Learned(AtomicU64);

impl Reader for Learned {
    fn describe(&self, _to: &mut so_runtime) {}

    fn table_bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn forget_tables(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn named(&self, _memory: &ProcessMemory, _place: RuntimePlace) -> Result<Vec<Frame>, Nameless> {
        Err(Nameless::Unreadable)
    }
}

#[test]
fn tables_of_all_programs_stay_within_their_memory() {
    const LIMIT_BYTES: u64 = 100_000;
    let mut runtimes = Runtimes::within(TABLES_PART * LIMIT_BYTES);
    let readers: Vec<Arc<Learned>> = (0..10).map(|_| Arc::new(Learned(AtomicU64::new(0)))).collect();
    for (tgid, reader) in (1..).zip(&readers) {
        let key = ProgramKey {
            tgid,
            start_ticks: 1,
            exec_id: 0,
        };
        let reader: Arc<dyn Reader> = Arc::<Learned>::clone(reader);
        runtimes.programs.know(key, 1, reader);
    }
    let learn = |bytes: u64| {
        readers
            .iter()
            .for_each(|reader| reader.0.store(bytes, Ordering::Relaxed))
    };
    let learned = || readers.iter().map(|reader| reader.table_bytes()).sum::<u64>();
    learn(LIMIT_BYTES / 10);
    runtimes.keep_tables(TABLES_READS);
    assert_eq!((learned(), runtimes.stats().tables_forgotten), (LIMIT_BYTES, 0));
    learn(LIMIT_BYTES / 10 + 1);
    runtimes.keep_tables(TABLES_READS - 1);
    assert_eq!(learned(), LIMIT_BYTES + 10, "not added up each time");
    runtimes.keep_tables(1);
    assert_eq!((learned(), runtimes.stats().tables_forgotten), (0, 10));
    learn(7);
    runtimes.age();
    assert_eq!(learned(), 0, "memory is short");
}
