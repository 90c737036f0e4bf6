//! Made-up interpreters of each version, and what is said of them.

use std::cell::Cell;

use super::layout::LayoutError;
use super::made::{CALLER, CONTEXT, LOCAL, LOOP, Made, NAMES, THREAD, THREAD_BASE, VERSIONS, VM_POINTER};
use super::offsets::{T_CLASS, USER_SHIFT};
use super::{ReadMemory, RubyFrame, Unreadable, field, word};

fn named(made: &Made, iseq: u64, method: u64, instruction: u64) -> Result<RubyFrame, Unreadable> {
    let ruby = made.ruby().unwrap();
    let (value, detail) = ruby.word_of(&made.memory, iseq, method, instruction)?;
    ruby.frame(&made.memory, value, detail)
}

#[test]
fn each_version_is_found_without_symbols_of_its_structures() {
    for version in VERSIONS {
        let (made, _) = Made::new(version);
        let ruby = made.ruby().unwrap();
        assert_eq!((ruby.version().major, ruby.version().minor), version);
        let walked = ruby.walked();
        assert_eq!(walked.loops, [LOOP, LOOP], "{version:?}");
        assert_eq!(walked.callers, [CALLER, CALLER], "{version:?}");
        assert_eq!(walked.is_current_local, version != (2, 7));
        assert_eq!(walked.current == LOCAL, version != (2, 7));
    }
}

#[test]
fn a_symbol_is_believed_only_where_it_leads_to_what_it_says() {
    let (mut made, _) = Made::new((3, 1));
    made.symbols.insert("ruby_current_vm_ptr", VM_POINTER);
    made.symbols.insert("ruby_global_symbols", NAMES);
    assert!(made.ruby().is_ok());
    made.symbols.insert("ruby_current_vm_ptr", VM_POINTER + 8);
    assert_eq!(made.ruby().unwrap_err().to_string(), "Ruby 3.1: no virtual machine yet");
}

#[test]
fn what_is_not_there_yet_is_told() {
    for version in VERSIONS {
        let without = |address: u64| {
            let (mut made, _) = Made::new(version);
            made.memory.word(address, 0);
            made.ruby().unwrap_err()
        };
        let offsets = Made::new(version).0.offsets;
        for (address, what) in [
            (VM_POINTER, "virtual machine"),
            (field(THREAD, offsets.thread_context), "virtual machine"),
            (NAMES, "table of names"),
            (CONTEXT + 16, "code that runs"),
        ] {
            let error = without(address);
            assert!(
                matches!(error, LayoutError::Yet { what: found, .. } if found == what),
                "{error} {what}"
            );
        }
    }
}

#[test]
fn versions_that_are_not_known_are_named() {
    let (mut made, _) = Made::new((3, 4));
    let version = made.symbols["ruby_api_version"];
    made.memory.put(version, &9_u32.to_le_bytes());
    assert_eq!(made.ruby().unwrap_err().to_string(), "Ruby 9.4: unknown layout");
    made.symbols.remove("ruby_api_version");
    assert!(made.ruby().unwrap_err().to_string().contains("ruby_api_version"));
}

#[test]
fn a_context_at_two_places_of_a_thread_s_storage_is_at_none() {
    let (mut made, _) = Made::new((3, 3));
    made.memory.word(THREAD_BASE - 0x100, CONTEXT);
    let walked = made.ruby().unwrap().walked();
    assert_eq!((walked.current, walked.is_current_local), (0, false));
}

#[test]
fn frames_have_their_class_file_and_line() {
    for version in VERSIONS {
        let (mut made, sample) = Made::new(version);
        // An instruction's number is that of the next one.
        for (instruction, line) in [(0, 11), (1, 11), (4, 11), (5, 12), (0xffff, 10)] {
            let frame = named(&made, sample.iseq, sample.method, instruction).unwrap();
            assert_eq!(frame.function, "block in Queue#pop", "{version:?}");
            assert_eq!(frame.file.as_deref(), Some("/usr/lib/ruby/3.4.0/queue.rb"));
            assert_eq!(frame.line, line, "{version:?} {instruction}");
        }
        // Without a method, a class' own, and one in C.
        assert_eq!(named(&made, sample.iseq, 0, 0).unwrap().function, "block in pop");
        let singleton = made.singleton(sample.class);
        let id = made.name(312, "open");
        let method = made.method(singleton, id);
        let frame = named(&made, 0, method, 0).unwrap();
        assert_eq!(
            (&*frame.function, frame.file, frame.line),
            ("Queue.open", None, 0),
            "{version:?}"
        );
        // An operator's number is its serial number.
        made.name(b'+'.into(), "+");
        let at = word(&made.memory, NAMES + 16).unwrap();
        let list = word(&made.memory, word(&made.memory, at + 32).unwrap()).unwrap();
        let elements = word(&made.memory, list + 32).unwrap();
        made.memory
            .word(elements + u64::from(b'+') * 16 + 8, u64::from(b'+') << 8 | 0xc);
        let plus = made.method(sample.class, b'+'.into());
        assert_eq!(named(&made, 0, plus, 0).unwrap().function, "Queue#+");
    }
}

#[test]
fn classes_without_a_name_are_left_out() {
    for version in VERSIONS {
        let (mut made, _) = Made::new(version);
        let id = made.name(313, "call");
        let class = made.class("#<Class:0x00007f0000000000>::Inner", 314);
        let method = made.method(class, id);
        assert_eq!(named(&made, 0, method, 0).unwrap().function, "call");
        // The class of an object that is no class.
        let text = made.text("object");
        let singleton = made.singleton(text);
        let method = made.method(singleton, id);
        assert_eq!(named(&made, 0, method, 0).unwrap().function, "call", "{version:?}");
    }
}

#[test]
fn long_and_foreign_text_is_borne() {
    for version in VERSIONS {
        let (mut made, sample) = Made::new(version);
        let body = word(&made.memory, sample.iseq + 16).unwrap();
        for text in [
            "a.rb",
            "/\u{672c}/\u{e9}.rb",
            "/a/path/that/is/not/in/the/object/itself.rb",
        ] {
            let path = made.text(text);
            made.memory.word(body + 64, path);
            let frame = named(&made, sample.iseq, sample.method, 1).unwrap();
            assert_eq!(frame.file.as_deref(), Some(text));
        }
        let long = made.text(&"\u{672c}".repeat(3000));
        made.memory.word(body + 64, long);
        let frame = named(&made, sample.iseq, sample.method, 1).unwrap();
        assert_eq!(frame.file.unwrap().len(), 4095);
    }
}

#[test]
fn what_was_replaced_has_no_name() {
    for version in VERSIONS {
        let (made, sample) = Made::new(version);
        let ruby = made.ruby().unwrap();
        let (value, detail) = ruby.word_of(&made.memory, sample.iseq, sample.method, 3).unwrap();
        let body = word(&made.memory, sample.iseq + 16).unwrap();
        for (address, change) in [
            (sample.iseq, 5),
            (sample.method, T_CLASS),
            (body + 8, LOOP.start),
            (body + 80, LOOP.start),
            (sample.method + 24, 1 << USER_SHIFT),
            (sample.method + 32, LOOP.start),
        ] {
            let mut other = made.clone();
            other.memory.word(address, change);
            let found = ruby.frame(&other.memory, value, detail);
            assert_eq!(found, Err(Unreadable::Replaced), "{version:?} {address:x}");
        }
    }
}

#[test]
fn what_is_replaced_meanwhile_has_no_name() {
    /// From some read on, another method stands there.
    struct Changing<'a>(&'a Made, &'a Made, Cell<usize>);
    impl ReadMemory for Changing<'_> {
        fn read(&self, address: u64, to: &mut [u8]) -> bool {
            self.2.set(self.2.get() + 1);
            let made = if self.2.get() < 8 { self.0 } else { self.1 };
            made.memory.read(address, to)
        }
    }
    let (made, sample) = Made::new((3, 3));
    let ruby = made.ruby().unwrap();
    let (value, detail) = ruby.word_of(&made.memory, sample.iseq, sample.method, 3).unwrap();
    let mut other = made.clone();
    other.memory.word(sample.method + 24, 7);
    let changing = Changing(&made, &other, Cell::new(0));
    assert_eq!(ruby.frame(&changing, value, detail), Err(Unreadable::Replaced));
}
