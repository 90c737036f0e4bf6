use std::cell::Cell;

use super::made::{
    BASE, FREE_COPIES, FREE_VERSIONS, INTERPRETER, Kind, LOOP, Made, RARE, RUNTIME, THREADS, TYPES, VERSIONS,
};
use super::*;

fn error(made: &Made) -> String {
    made.layout().unwrap_err().to_string()
}

fn named(made: &Made, code: u64, instruction: u32) -> Result<PythonFrame, Unreadable> {
    let python = made.python().unwrap();
    let hash = python.hash_of(&made.memory, code).unwrap();
    python.frame(&made.memory, code, instruction, hash)
}

#[test]
fn each_version_has_its_layout() {
    let walked = VERSIONS.map(|minor| {
        let (made, _) = Made::sample(minor);
        let python = made.python().unwrap();
        assert_eq!(python.layout().version, Version { major: 3, minor });
        let walked = python.walked();
        assert_eq!((walked.runtime, walked.code_type), (RUNTIME, TYPES[1]));
        walked
    });
    use FrameForm::{Entries, Objects, Shims};
    let forms = walked.each_ref().map(|walked| walked.form);
    assert_eq!(forms, [Objects, Objects, Objects, Entries, Shims, Shims, Shims, Shims]);
    let ids = walked.each_ref().map(|walked| walked.thread_id);
    assert_eq!(ids, [176, 176, 176, 152, 136, 152, 152, 176]);
    let heads = walked
        .each_ref()
        .map(|walked| (walked.interpreters_head, walked.threads_head));
    let expected = [
        (32, 8),
        (32, 8),
        (32, 8),
        (40, 16),
        (40, 72),
        (632, 7344),
        (808, 7344),
        (936, 7336),
    ];
    assert_eq!(heads, expected);
    let last = walked
        .each_ref()
        .map(|walked| (walked.is_last_in_runtime, walked.last_thread));
    let expected = [
        (true, 1368),
        (true, 568),
        (true, 568),
        (true, 576),
        (false, 1048),
        (false, 7760),
        (false, 7792),
        (false, 7744),
    ];
    assert_eq!(last, expected);
    let marks = walked.each_ref().map(|walked| walked.frame_mark);
    assert_eq!(marks, [0, 0, 0, 68, 70, 70, 74, 74]);
    let begins = walked.each_ref().map(|walked| walked.code_begin);
    assert_eq!(begins, [0, 0, 0, 184, 192, 200, 208, 208]);
    let instructions = walked
        .each_ref()
        .map(|walked| (walked.frame_instruction, walked.instruction_shift));
    assert_eq!(
        instructions,
        [(104, 1), (104, 1), (96, 0), (56, 0), (56, 0), (56, 0), (56, 0), (56, 0)]
    );
}

#[test]
fn versions_that_are_not_known_are_named() {
    let mut made = Made::new(14);
    made.memory.put(BASE + 8, &0x0310_00f0_u32.to_le_bytes());
    assert_eq!(error(&made), "Python 3.16: unknown layout");
    let mut made = Made::new(8);
    made.symbols.remove("PyConfig_InitPythonConfig");
    assert_eq!(error(&made), "Python 3.7 or older: unknown layout");
    let mut made = Made::new(13);
    made.memory.word(RUNTIME + 16, 1);
    assert_eq!(
        error(&made),
        "Python 3.13: the layout of objects contradicts",
        "it says that it is without the lock, and has the objects of one with it"
    );
}

/// Each object is longer there, nobody has the lock, and since 3.14 each thread runs a copy of the instructions.
#[test]
fn builds_without_the_interpreter_s_lock_are_read() {
    for minor in FREE_VERSIONS {
        let (mut made, code) = Made::free_sample(minor);
        let python = made.python().unwrap();
        assert_eq!(python.layout().version, Version { major: 3, minor });
        let walked = python.walked();
        assert_eq!((walked.object_type, walked.code_size), (24, 32), "{minor}");
        assert_eq!(walked.last_thread, walked.threads_head);
        let copies = if minor < 14 { (0, 0) } else { FREE_COPIES };
        assert_eq!((walked.frame_copy, walked.code_copies), copies, "{minor}");
        let frame = named(&made, code, 0).unwrap();
        let named_as = (&*frame.function, &*frame.file, frame.line);
        assert_eq!(named_as, ("Queue.get", "/usr/lib/queue.py", 10), "{minor}");
        let queue = made.module("queue", Some("/usr/lib/queue.py"));
        made.modules(&[queue]);
        let module = python.module(&made.memory, &mut Modules::default(), "/usr/lib/queue.py");
        assert_eq!(module.unwrap().as_deref(), Some("queue"), "{minor}");
        for text in ["/\u{e9}t\u{e9}.py", "/\u{672c}.py", "/\u{1f600}\u{672c}.py", ""] {
            for kind in [Kind::Compact, Kind::Apart] {
                let file = made.text(text, kind);
                made.memory.word(code + u64::from(made.offsets.code_filename), file);
                assert_eq!(named(&made, code, 0).unwrap().file, text, "{minor}");
            }
        }
    }
    // With the lock there are no copies, whatever the table has in their place.
    for minor in VERSIONS {
        let walked = Made::sample(minor).0.python().unwrap().walked();
        assert_eq!((walked.object_type, walked.frame_copy, walked.code_copies), (8, 0, 0));
    }
    // A frame that says so where a walk does not look.
    let (mut made, _) = Made::free_sample(14);
    made.memory.word(RUNTIME + 8 * 38, 80);
    assert_eq!(error(&made), "Python 3.14: the reach of a structure contradicts");
}

#[test]
fn tables_that_contradict_are_named() {
    for (word, value, what) in [
        (0, 0, "the table's cookie"),
        (1, 0x030d_00f0, "the table's version"),
        (3, 1 << 40, "the runtime's layout"),
        (9, 200_000, "an interpreter's layout"),
        (24, 300, "the reach of a structure"),
        (24, 305, "a thread's layout"),
        (30, 500, "a frame's layout"),
        (35, 208, "a code object's layout"),
        (66, 40, "the layout of objects"),
    ] {
        let mut made = Made::new(13);
        made.memory.word(RUNTIME + 8 * word, value);
        assert_eq!(error(&made), format!("Python 3.13: {what} contradicts"), "{word}");
    }
}

#[test]
fn symbols_that_lack_are_named() {
    for name in [
        "_PyRuntime",
        "_PyEval_EvalFrameDefault",
        "PyCode_Type",
        "PyUnicode_Type",
        "PyBytes_Type",
    ] {
        let mut made = Made::new(11);
        made.symbols.remove(name);
        assert!(error(&made).contains(name), "{name}");
    }
    // One that leads to another type.
    let mut made = Made::new(11);
    made.symbols.insert("PyCode_Type", TYPES[4]);
    assert_eq!(error(&made), "Python 3.11: PyCode_Type contradicts");
    made.symbols.insert("PyCode_Type", 0x10);
    assert_eq!(made.layout().unwrap_err(), Unreadable::Memory { address: 0x18 }.into());
}

#[test]
fn an_interpreter_that_begins_is_not_ready() {
    for minor in VERSIONS {
        let mut made = Made::new(minor);
        assert!(made.python().is_ok(), "{minor}");
        let threads = INTERPRETER + u64::from(made.offsets.threads_head);
        made.memory.word(threads, 0);
        let version = Version { major: 3, minor };
        assert_eq!(made.python().unwrap_err(), NotReady::Yet { version });
        let ready = Made::new(minor).python().unwrap();
        made.memory.word(RUNTIME + u64::from(made.offsets.interpreters_head), 0);
        assert_eq!(made.python().unwrap_err(), NotReady::Yet { version });
        // What a walk is told is of the file alone.
        let unchecked = Python::unchecked(&made.memory, made.layout().unwrap(), &super::made::function);
        assert_eq!(unchecked.unwrap().walked(), ready.walked());
    }
}

#[test]
fn what_is_there_must_fit_the_layout() {
    for minor in VERSIONS {
        let contradicts = |change: &dyn Fn(&mut Made, u64), what: &str| {
            let (mut made, code) = Made::sample(minor);
            change(&mut made, code);
            let error = made.python().unwrap_err().to_string();
            assert_eq!(error, format!("Python 3.{minor}: {what} contradicts"));
        };
        let owner = |made: &Made| THREADS[0] + u64::from(made.offsets.thread_interpreter);
        contradicts(&|made, _| made.memory.word(owner(made), BASE), "a thread's state");
        contradicts(&|made, code| made.memory.word(code + 8, TYPES[4]), "a frame's code");
        contradicts(
            &|made, code| made.memory.word(code + u64::from(made.offsets.code_lines), code),
            "a line table",
        );
    }
    let made = Made::new(11);
    let read = Python::read(&made.memory, made.layout().unwrap(), &|_| None);
    let version = Version { major: 3, minor: 11 };
    assert_eq!(read.unwrap_err(), NotReady::NoLoop { version });
}

#[test]
fn endless_chains_end() {
    struct Counted<'a>(&'a Made, Cell<usize>);
    impl ReadMemory for Counted<'_> {
        fn read(&self, address: u64, to: &mut [u8]) -> bool {
            self.1.set(self.1.get() + 1);
            self.0.memory.read(address, to)
        }
    }
    for minor in VERSIONS {
        let (mut made, code) = Made::sample(minor);
        let frame = made.take(128);
        // Frames without code, where there are such, and a thread, each of which leads to itself.
        made.frame(frame, code, frame);
        made.memory.put(frame + u64::from(made.offsets.frame_mark), &[4]);
        made.run(THREADS[0], frame);
        made.memory
            .word(THREADS[0] + u64::from(made.offsets.thread_next), THREADS[0]);
        let counted = Counted(&made, Cell::new(0));
        let read = Python::read(&counted, made.layout().unwrap(), &super::made::function);
        assert!(counted.1.get() < 20_000, "{minor} {read:?}");
    }
}

#[test]
fn frames_are_named() {
    for minor in VERSIONS {
        let (made, code) = Made::sample(minor);
        let frame = named(&made, code, 0).unwrap();
        let function = if minor < 11 { "get" } else { "Queue.get" };
        assert_eq!(
            (&*frame.function, &*frame.file),
            (function, "/usr/lib/queue.py"),
            "{minor}"
        );
        // 0x80, 0x01: 128 bytes from line 10 to line 11; a range of as many at line 11; an instruction at line 10.
        let lines = [0, 1, 63, 64].map(|instruction| named(&made, code, instruction).unwrap().line);
        let expected = match minor {
            8 | 9 => [10, 10, 10, 11],
            10 => [11, 11, 11, 0],
            _ => [10, 0, 0, 0],
        };
        assert_eq!(lines, expected, "{minor}");
        assert_eq!(named(&made, code, 0xf_ffff).unwrap().line, 10);
    }
}

#[test]
fn text_of_each_kind_is_read() {
    for minor in VERSIONS {
        let (mut made, code) = Made::sample(minor);
        for text in [
            "/a/b.py",
            "/\u{e9}t\u{e9}.py",
            "/\u{672c}.py",
            "/\u{1f600}\u{672c}.py",
            "",
        ] {
            for kind in [Kind::Compact, Kind::Apart] {
                let file = made.text(text, kind);
                // Of a subclass: a type of its own, whose flags say what it is.
                if matches!(kind, Kind::Apart) {
                    made.memory.word(file + 8, TYPES[4]);
                    made.memory.word(TYPES[4] + 168, 1 << 28);
                }
                made.memory.word(code + u64::from(made.offsets.code_filename), file);
                assert_eq!(named(&made, code, 0).unwrap().file, text, "{minor}");
            }
        }
        let long = made.text(&"\u{672c}".repeat(3000), Kind::Compact);
        made.memory.word(code + u64::from(made.offsets.code_filename), long);
        assert_eq!(named(&made, code, 0).unwrap().file, "\u{672c}".repeat(4096 / 3));
    }
}

#[test]
fn what_is_no_text_is_told() {
    let (made, code) = Made::sample(12);
    let offsets = made.offsets;
    let python = made.python().unwrap();
    let hash = python.hash_of(&made.memory, code).unwrap();
    let name = word(&made.memory, code + u64::from(offsets.code_qualname)).unwrap();
    for (offset, value) in [
        (8, TYPES[1]),
        (16, u64::MAX),
        (16, 1 << 40),
        (32, 3 << 2),
        (32, 0),
        (16, 0),
    ] {
        let mut memory = made.memory.clone();
        memory.word(name + offset, value);
        let found = python.frame(&memory, code, 0, hash);
        assert!(
            matches!(found, Err(Unreadable::Nonsense { .. })),
            "{offset} {value} {found:?}"
        );
    }
    // Its characters are elsewhere, where nothing is.
    let mut memory = made.memory.clone();
    memory.word(name + 32, 1 << 2);
    assert!(matches!(
        python.frame(&memory, code, 0, hash),
        Err(Unreadable::Memory { .. })
    ));
}

#[test]
fn code_that_was_replaced_has_no_name() {
    for minor in VERSIONS {
        let (mut made, code) = Made::sample(minor);
        let python = made.python().unwrap();
        let hash = python.hash_of(&made.memory, code).unwrap();
        let offsets = made.offsets;
        let frame = |made: &Made| python.frame(&made.memory, code, 0, hash);
        assert!(frame(&made).is_ok());
        for offset in [
            8,
            offsets.code_size,
            offsets.code_name,
            offsets.code_qualname,
            offsets.code_filename,
            offsets.code_first_line,
        ] {
            let mut other = made.clone();
            other.memory.word(code + u64::from(offset), BASE + 16);
            assert_eq!(frame(&other), Err(Unreadable::Replaced), "{minor} {offset}");
        }
        made.memory.word(code + u64::from(offsets.code_lines), 7);
        assert!(matches!(frame(&made), Err(Unreadable::Nonsense { .. })));
        assert!(matches!(
            python.frame(&made.memory, code + 4, 0, hash),
            Err(Unreadable::Nonsense { .. })
        ));
    }
}

/// What is dropped and made anew again and again has each of its parts where the one before had it.
#[test]
fn code_made_anew_where_the_same_lay_is_told_by_what_its_names_say() {
    for minor in VERSIONS {
        let (made, code) = Made::sample(minor);
        let python = made.python().unwrap();
        let text = |offset: u16| {
            let mut word = [0; 8];
            assert!(made.memory.read(code + u64::from(offset), &mut word));
            u64::from_le_bytes(word)
        };
        let hash_with = |offset, text_hash: u64| {
            let mut made = made.clone();
            made.memory.word(text(offset) + 24, text_hash);
            python.hash_of(&made.memory, code).unwrap()
        };
        for offset in [made.offsets.code_name, made.offsets.code_qualname] {
            assert_ne!(hash_with(offset, 1234), hash_with(offset, 1235), "{minor}");
            // As long as it has none, the place stands for it.
            assert_eq!(hash_with(offset, u64::MAX), hash_with(offset, 0), "{minor}");
        }
    }
}

#[test]
fn code_that_is_replaced_meanwhile_has_no_name() {
    /// From its third read on, another code object stands there.
    struct Changing<'a>(&'a Made, &'a Made, Cell<usize>);
    impl ReadMemory for Changing<'_> {
        fn read(&self, address: u64, to: &mut [u8]) -> bool {
            self.2.set(self.2.get() + 1);
            let made = if self.2.get() < 3 { self.0 } else { self.1 };
            made.memory.read(address, to)
        }
    }
    let (made, code) = Made::sample(13);
    let python = made.python().unwrap();
    let hash = python.hash_of(&made.memory, code).unwrap();
    let mut other = made.clone();
    other.memory.word(code + u64::from(made.offsets.code_size), 78);
    let changing = Changing(&made, &other, Cell::new(0));
    assert_eq!(python.frame(&changing, code, 0, hash), Err(Unreadable::Replaced));
}

#[test]
fn the_loop_s_rare_part_is_where_it_jumps_to() {
    let mut made = Made::new(14);
    let parts = |made: &Made| made.python().unwrap().walked().loops;
    assert_eq!(parts(&made), [LOOP, LOOP]);
    let jump = |made: &mut Made, at: u64, code: &[u8], target: u64| {
        let next = LOOP.start + at + code.len() as u64 + 4;
        let distance = target.wrapping_sub(next) as u32;
        made.memory
            .put(LOOP.start + at, &[code, &distance.to_le_bytes()].concat());
    };
    // Within itself, to nowhere, and to the begin of another function, which may be its last call.
    jump(&mut made, 0x100, &[0xe9], LOOP.start + 7);
    jump(&mut made, 0x110, &[0xe9], BASE + 0x100);
    jump(&mut made, 0x120, &[0xe9], RARE.start);
    jump(&mut made, 0x130, &[0x0f, 0x84], RARE.start + 0x20);
    assert_eq!(parts(&made), [LOOP, LOOP]);
    jump(&mut made, 0xfff - 5, &[0x0f, 0x85], RARE.start + 0x30);
    assert_eq!(parts(&made), [LOOP, RARE]);
    // A symbol says so, too.
    let mut made = Made::new(12);
    made.symbols.insert("_PyEval_EvalFrameDefault.cold", RARE.start);
    assert_eq!(parts(&made), [LOOP, RARE]);
}

#[test]
fn a_function_s_module_is_the_one_of_its_file() {
    for minor in VERSIONS {
        let (mut made, _) = Made::sample(minor);
        let main = made.module("__main__", None);
        let queue = made.module("queue", Some("/usr/lib/queue.py"));
        // A file under two names, one module that is known by two keys, and what is no module.
        let again = ["shop", "__shop__"].map(|name| made.module(name, Some("/srv/shop.py")));
        let other = made.text("no module", Kind::Compact);
        made.modules(&[main, 0, queue, queue, again[0], again[1], other]);
        let python = made.python().unwrap();
        let mut known = Modules::default();
        let mut module = |made: &Made, file: &str| python.module(&made.memory, &mut known, file).unwrap();
        if minor < 11 {
            assert_eq!(module(&made, "/usr/lib/queue.py"), None, "code does not know its class");
            continue;
        }
        assert_eq!(module(&made, "/usr/lib/queue.py").as_deref(), Some("queue"), "{minor}");
        let frozen = module(&made, "<frozen importlib._bootstrap>");
        assert_eq!(frozen.as_deref(), Some("importlib._bootstrap"));
        for file in ["/srv/shop.py", "/srv/main.py", "<string>", "<frozen >", "", "no module"] {
            assert_eq!(module(&made, file), None, "{minor} {file}");
        }
        // A script that is imported as well.
        let twice = made.module("queue_2", Some("/usr/lib/queue.py"));
        made.modules(&[queue, twice]);
        assert_eq!(module(&made, "/usr/lib/queue.py"), None, "{minor}");
        // The main module gets its file once it has a name; another one comes, and one goes.
        let main = made.module("__main__", Some("/srv/main.py"));
        let jobs = made.module("app.jobs", Some("/srv/app/jobs.py"));
        made.modules(&[main, queue, jobs]);
        assert_eq!(module(&made, "/srv/main.py").as_deref(), Some("__main__"), "{minor}");
        assert_eq!(module(&made, "/srv/app/jobs.py").as_deref(), Some("app.jobs"));
        let last = made.module("pods", Some("/srv/pods.py"));
        let (dict, gone) = (word(&made.memory, last + 16).unwrap(), jobs);
        made.memory.word(gone + 16, dict);
        assert_eq!(module(&made, "/srv/app/jobs.py"), None, "another one lies there");
        assert_eq!(module(&made, "/srv/pods.py").as_deref(), Some("pods"));
    }
}

/// The main module is there before it has its file, and its table stays the same.
#[test]
fn the_main_module_gets_its_file_late() {
    for minor in 11..=15 {
        let (mut made, _) = Made::sample(minor);
        let main = made.module("__main__", None);
        made.modules(&[main]);
        let python = made.python().unwrap();
        let mut known = Modules::default();
        assert_eq!(python.module(&made.memory, &mut known, "/srv/main.py"), Ok(None));
        let whole = made.module("__main__", Some("/srv/main.py"));
        let dict = word(&made.memory, whole + 16).unwrap();
        made.memory.word(main + 16, dict);
        let module = python.module(&made.memory, &mut known, "/srv/main.py").unwrap();
        assert_eq!(module.as_deref(), Some("__main__"), "{minor}");
    }
}

#[test]
fn modules_of_all_interpreters_are_looked_at() {
    let (mut made, _) = Made::sample(13);
    let [first, second] = [0, 0].map(|_| made.module("queue", Some("/usr/lib/queue.py")));
    let only = made.module("sub", Some("/srv/sub.py"));
    made.modules(&[second, only]);
    // The other one, of the same layout, has its table.
    let (offset, other) = (u64::from(made.offsets.modules.unwrap()), made.take(8192));
    let table = word(&made.memory, INTERPRETER + offset).unwrap();
    made.memory.word(other + offset, table);
    made.memory
        .word(INTERPRETER + u64::from(made.offsets.interpreter_next), other);
    made.modules(&[first]);
    let python = made.python().unwrap();
    let mut known = Modules::default();
    let mut module = |file: &str| python.module(&made.memory, &mut known, file).unwrap();
    assert_eq!(module("/srv/sub.py").as_deref(), Some("sub"));
    assert_eq!(module("/usr/lib/queue.py").as_deref(), Some("queue"), "of each its own");
}

/// A table is looked through once, and then what is new in it.
#[test]
fn modules_are_read_once() {
    let (mut made, _) = Made::sample(14);
    let modules: Vec<u64> = (0..24)
        .map(|number| made.module(&format!("m{number}"), Some(&format!("/srv/m{number}.py"))))
        .collect();
    made.modules(&modules);
    let python = made.python().unwrap();
    let mut known = Modules::default();
    let counted = crate::runtime::reading::Counted::new(&made.memory);
    let mut module = |file: &str| {
        let module = python.module(&counted, &mut known, file).unwrap();
        (module, counted.reads.replace(0))
    };
    let (name, first) = module("/srv/m7.py");
    assert_eq!(name.as_deref(), Some("m7"));
    assert!(first > 24 * 5, "{first}");
    let (name, then) = module("/srv/m23.py");
    assert_eq!(name.as_deref(), Some("m23"));
    assert!(then < 16, "{then}");
    let (name, unknown) = module("/srv/none.py");
    assert!(name.is_none() && unknown < 12, "{unknown}");
    let bytes = known.bytes();
    assert!((24 * 24..4096).contains(&bytes), "{bytes}");
    known.forget();
    assert_eq!(known.bytes(), 0);
    let name = python.module(&made.memory, &mut known, "/srv/m7.py").unwrap();
    assert_eq!((name.as_deref(), known.bytes()), (Some("m7"), bytes));
}

/// A memory of which only so many reads succeed.
struct Until<'a>(&'a Made, Cell<usize>);

impl ReadMemory for Until<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let left = self.1.get();
        self.1.set(left.saturating_sub(1));
        left > 0 && self.0.memory.read(address, to)
    }
}

/// Wherever the reading ends, no file is said to be of no module; and what is of none is told as that in the end.
#[test]
fn what_could_not_be_read_leaves_the_module_open() {
    let (mut made, _) = Made::sample(13);
    let queue = made.module("queue", Some("/usr/lib/queue.py"));
    let jobs = made.module("app.jobs", Some("/srv/app/jobs.py"));
    made.modules(&[queue, jobs]);
    let python = made.python().unwrap();
    let mut open = 0;
    for reads in 0..200 {
        for (file, name) in [("/srv/app/jobs.py", Some("app.jobs")), ("/srv/none.py", None)] {
            let mut known = Modules::default();
            let module = python.module(&Until(&made, Cell::new(reads)), &mut known, file);
            assert!(
                module.is_err() || module == Ok(name.map(str::to_owned)),
                "{reads}: {module:?}"
            );
            open += usize::from(module.is_err());
            // The next one goes on from there.
            let module = python.module(&made.memory, &mut known, file);
            assert_eq!(module, Ok(name.map(str::to_owned)), "{reads}");
        }
    }
    assert!((20..380).contains(&open), "{open}");
    // The table is being made anew.
    let offset = u64::from(made.offsets.modules.unwrap());
    let table = word(&made.memory, INTERPRETER + offset).unwrap();
    let keys = word(&made.memory, table + 32).unwrap();
    let mut known = Modules::default();
    made.memory.word(table + 32, 0);
    assert_eq!(python.module(&made.memory, &mut known, "/usr/lib/queue.py"), Err(Late));
    made.memory.word(table + 32, keys);
    let module = python.module(&made.memory, &mut known, "/usr/lib/queue.py").unwrap();
    assert_eq!(module.as_deref(), Some("queue"));
}
