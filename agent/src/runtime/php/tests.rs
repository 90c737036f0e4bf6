use super::made::{
    BASE, CALLERS, CODE, GLOBALS, IN_THREAD, INTERFACES, LOCAL, LOOP, MODULE, Made, REGISTRY, THREADS_CODE,
};
use super::*;

const NO_INSTRUCTION: u64 = 0xf_ffff;
const MAIN: u64 = 1 << 20;

fn error(made: &Made) -> String {
    made.layout().unwrap_err().to_string()
}

fn named(made: &Made, function: u64, low: u64) -> Result<PhpFrame, Unreadable> {
    let php = made.php().unwrap();
    let hash = php.hash_of(&made.memory, function).unwrap();
    php.frame(&made.memory, function, hash << 21 | low)
}

#[test]
fn each_version_has_its_layout() {
    let walked = INTERFACES.map(|interface| {
        let (made, _) = Made::sample(interface);
        made.php().unwrap().walked()
    });
    let currents = walked.each_ref().map(|walked| walked.current - GLOBALS);
    assert_eq!(currents, [488, 488, 488, 488, 488, 488, 512]);
    let fibers = walked
        .each_ref()
        .map(|walked| (walked.fiber.saturating_sub(GLOBALS), walked.fiber_stack));
    let expected = [
        (0, 0),
        (0, 0),
        (1664, 24),
        (1672, 32),
        (1656, 32),
        (1744, 32),
        (1768, 32),
    ];
    assert_eq!(fibers, expected);
    let files = walked
        .each_ref()
        .map(|walked| (walked.code, walked.code_count, walked.file, walked.lines));
    let expected = [
        (64, 60, 136, 144),
        (72, 68, 144, 152),
        (72, 68, 144, 152),
        (88, 80, 152, 160),
        (80, 76, 144, 152),
        (104, 96, 168, 176),
        (104, 96, 168, 176),
    ];
    assert_eq!(files, expected);
    for walked in walked {
        assert_eq!(walked.loops, [LOOP, LOOP]);
        assert_eq!(walked.callers, CALLERS);
        // Of two pieces of code without a file only the shared one is OPcache's.
        assert_eq!(walked.made, [CODE, 0..0]);
        assert!(LOOP.contains(&walked.loop_inside));
    }
}

/// What is of all in other builds is of each thread there, which its own storage leads to.
#[test]
fn builds_with_threads_have_globals_for_each() {
    for (interface, is_linked) in INTERFACES.into_iter().flat_map(|one| [(one, false), (one, true)]) {
        let walked = Made::with_threads(interface, is_linked).php().unwrap().walked();
        let plain = Made::sample(interface).0.php().unwrap().walked();
        assert_eq!((walked.local, plain.local), (Some(LOCAL), None));
        for (one, other) in [
            (walked.current, plain.current),
            (walked.exception_at, plain.exception_at),
            (walked.exception_code, plain.exception_code),
            (walked.fiber, plain.fiber),
        ] {
            let expected = if other == 0 { 0 } else { other - GLOBALS + IN_THREAD };
            assert_eq!(one, expected, "{interface}");
        }
    }
    let made = Made::with_threads(INTERFACES[4], true);
    // As of a C library that can't say where, of other code, and of a build that says that it has none.
    let mut nowhere = made.clone();
    nowhere.memory.put(THREADS_CODE + 3, &[0; 4]);
    assert_eq!(error(&nowhere), "PHP with threads (ZTS): unknown layout");
    let mut other = made.clone();
    other.memory.put(THREADS_CODE, &[0x31, 0xc0, 0xc3]);
    assert_eq!(error(&other), "PHP with threads (ZTS): unknown layout");
    let mut without = made;
    without.memory.put(MODULE + 9, &[0]);
    assert_eq!(error(&without), "PHP 8.3: a build with threads or for debugging");
}

#[test]
fn code_that_is_new_is_told_from_what_was_there() {
    let (made, _) = Made::sample(INTERFACES[3]);
    let php = made.php().unwrap();
    assert!(php.knows(&(BASE..BASE + 1)) && php.knows(&CODE));
    assert!(!php.knows(&(0x1000..0x2000)));
}

#[test]
fn versions_that_are_not_known_are_named() {
    let mut made = Made::new(INTERFACES[3]);
    made.memory.word(MODULE, 168 | 20_300_101 << 32);
    assert_eq!(error(&made), "PHP's interface 20300101: unknown layout");
    let mut made = Made::new(INTERFACES[3]);
    made.memory.put(MODULE + 9, &[1]);
    assert_eq!(error(&made), "PHP 8.2: a build with threads or for debugging");
}

#[test]
fn what_has_not_begun_is_named() {
    let mut made = Made::new(INTERFACES[5]);
    made.memory.word(REGISTRY + 24, 0);
    assert_eq!(made.layout().unwrap_err(), LayoutError::NoModules);
    let mut made = Made::new(INTERFACES[5]);
    made.memory.word(MODULE, 0);
    assert_eq!(made.layout().unwrap_err(), LayoutError::NoModules);
    for (name, error_has) in [
        ("execute_ex", "no symbol execute_ex"),
        ("executor_globals", "threads"),
        ("module_registry", "no symbol module_registry"),
    ] {
        let mut made = Made::new(INTERFACES[5]);
        made.symbols.remove(name);
        assert!(error(&made).contains(error_has), "{name}");
    }
}

#[test]
fn what_is_there_must_fit_the_layout() {
    for interface in INTERFACES {
        let contradicts = |change: &dyn Fn(&mut Made, [u64; 2]), what: &str| {
            let (mut made, functions) = Made::sample(interface);
            change(&mut made, functions);
            let error = match made.layout() {
                Ok(_) => made.php().unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(error.ends_with(&format!("{what} contradicts")), "{error}");
        };
        contradicts(
            &|made, _| {
                let at = GLOBALS + u64::from(made.offsets.exception_code) + 28;
                made.memory.put(at, &[0]);
            },
            "the instruction that handles exceptions",
        );
        contradicts(
            &|made, _| made.memory.word(GLOBALS + u64::from(made.offsets.current), 3),
            "a frame",
        );
        contradicts(&|made, [method, _]| made.memory.put(method, &[7]), "a function's type");
        contradicts(
            &|made, [method, _]| made.memory.word(method + u64::from(made.offsets.file), 5),
            "a function's code",
        );
    }
}

#[test]
fn methods_have_their_class_their_file_and_their_line() {
    for interface in INTERFACES {
        let (made, [method, internal]) = Made::sample(interface);
        for (instruction, line) in [(0, 10), (1, 11), (2, 13), (3, 10), (NO_INSTRUCTION, 10)] {
            let frame = named(&made, method, instruction).unwrap();
            assert_eq!(frame.function, "App\\Queue::get");
            assert_eq!((frame.file.as_str(), frame.line), ("/srv/queue.php", line));
        }
        let frame = named(&made, internal, NO_INSTRUCTION).unwrap();
        assert_eq!((frame.function.as_str(), frame.extension.as_str()), ("usort", "Core"));
        assert_eq!((frame.file.as_str(), frame.line), ("", 0));
    }
}

#[test]
fn a_files_own_code_is_called_main_or_like_the_file() {
    let (mut made, _) = Made::sample(INTERFACES[3]);
    let code = made.method("", None, "/srv/index.php", [1, 9], &[1, 3]);
    assert_eq!(named(&made, code, MAIN | 1).unwrap().function, "{main}");
    let frame = named(&made, code, 1).unwrap();
    assert_eq!((frame.function.as_str(), frame.line), ("/srv/index.php", 3));
}

#[test]
fn lines_beyond_a_function_are_not_believed() {
    let (mut made, _) = Made::sample(INTERFACES[3]);
    let code = made.method("run", None, "/srv/run.php", [5, 9], &[4, 10, 9, u32::MAX]);
    let lines = [0, 1, 2, 3].map(|number| named(&made, code, number).unwrap().line);
    assert_eq!(lines, [5, 5, 9, 5]);
}

#[test]
fn what_stands_there_by_now_is_not_named() {
    let (mut made, [method, _]) = Made::sample(INTERFACES[3]);
    let php = made.php().unwrap();
    let hash = php.hash_of(&made.memory, method).unwrap();
    let other = made.text(b"other");
    made.memory.word(method + 8, other);
    assert_eq!(php.frame(&made.memory, method, hash << 21), Err(Unreadable::Replaced));
    let hash = php.hash_of(&made.memory, method).unwrap();
    let frame = php.frame(&made.memory, method, hash << 21).unwrap();
    assert_eq!(frame.function, "App\\Queue::other");
    // What was named once is known by its hash, whatever its memory has become.
    made.memory.put(method, &[0; 24]);
    assert_eq!(php.frame(&made.memory, method, hash << 21).unwrap(), frame);
}

#[test]
fn who_stands_where_another_one_was_asked_for_is_known_from_then_on() {
    let (mut made, [method, _]) = Made::sample(INTERFACES[3]);
    let php = made.php().unwrap();
    let asked = php.hash_of(&made.memory, method).unwrap();
    let other = made.text(b"other");
    made.memory.word(method + 8, other);
    let there = php.hash_of(&made.memory, method).unwrap();
    assert!(!php.remembers(there << 21));
    assert_eq!(php.frame(&made.memory, method, asked << 21), Err(Unreadable::Replaced));
    assert!(php.remembers(there << 21) && !php.remembers(asked << 21));
    made.memory.put(method, &[0; 24]);
    let frame = php.frame(&made.memory, method, there << 21).unwrap();
    assert_eq!(frame.function, "App\\Queue::other");
}

#[test]
fn a_text_that_its_hash_does_not_fit_is_no_name() {
    let (mut made, [method, _]) = Made::sample(INTERFACES[3]);
    let php = made.php().unwrap();
    let hash = php.hash_of(&made.memory, method).unwrap();
    let name = word(&made.memory, method + 8).unwrap();
    made.memory.put(name + 24, b"set");
    assert!(matches!(
        php.frame(&made.memory, method, hash << 21),
        Err(Unreadable::Nonsense { what: "a text", .. })
    ));
}

#[test]
fn long_names_are_cut() {
    let (mut made, _) = Made::sample(INTERFACES[3]);
    let long = "n".repeat(MAX_NAME_BYTES + 10);
    let code = made.method(&long, Some("A"), "/srv/a.php", [1, 1], &[1]);
    let frame = named(&made, code, 0).unwrap();
    assert_eq!(frame.function.len(), MAX_NAME_BYTES);
}
