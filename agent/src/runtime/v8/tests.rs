//! Made-up processes of each version, and what is said of them.

use std::cell::Cell;

use super::frame::word_of;
use super::function::Shared;
use super::made::{CALL, CODE, Made, Memory, RETURN, Sample, VERSIONS};
use super::{FrameSort, ReadMemory, ScriptFrame, Unreadable, V8, field};

const EXACT: bool = true;

fn each() -> impl Iterator<Item = (Made, Sample)> {
    VERSIONS.iter().map(|text| Made::new(text))
}

fn function(name: &str, line: u32, inlined: bool) -> ScriptFrame {
    ScriptFrame {
        sort: FrameSort::Function,
        function: name.to_owned(),
        file: Some("/srv/queue.js".to_owned()),
        line,
        inlined,
    }
}

fn interpreted(made: &Made, shared: u64, offset: u64) -> Result<Vec<ScriptFrame>, Unreadable> {
    let (value, detail) = word_of(0, offset, shared, made.hash(shared), 0);
    made.v8().frames(&made.memory, value, detail, false)
}

fn in_code_word(made: &Made, kind: u64, shared: Option<u64>, pc: u64, at: u64) -> (u64, u64) {
    let hash = shared.map_or(0, |shared| made.hash(shared));
    word_of(
        kind,
        pc,
        shared.unwrap_or(0),
        hash,
        super::word(&made.memory, at).unwrap(),
    )
}

fn in_code(made: &Made, shared: Option<u64>, pc: u64, innermost: bool) -> Result<Vec<ScriptFrame>, Unreadable> {
    let (value, detail) = in_code_word(made, 1, shared, pc, if innermost { pc } else { pc - 8 });
    made.v8().frames(&made.memory, value, detail, innermost)
}

#[test]
fn interpreted_functions_have_their_class_and_their_line() {
    for (made, sample) in each() {
        let line = |offset| interpreted(&made, sample.pop, offset);
        for offset in [0, 2, 3, 9] {
            // The call stands in the same line as `return`.
            assert_eq!(line(offset), Ok(vec![function("Queue.pop", 3, false)]));
        }
        // Without bytecodes a function has the line that it begins at.
        assert_eq!(interpreted(&made, sample.take, 3), Ok(vec![function("take", 6, false)]));
        assert_eq!(
            interpreted(&made, sample.nameless, 3),
            Ok(vec![function("<anonymous> (queue.js:1)", 1, false)])
        );
        const { assert!(CALL > RETURN) };
    }
}

#[test]
fn code_made_of_bytecodes_has_their_lines() {
    for (made, sample) in each() {
        for offset in [12, 30, 31, 60] {
            let frames = in_code(&made, Some(sample.pop), sample.baseline + offset, false);
            assert_eq!(frames, Ok(vec![function("Queue.pop", 3, false)]), "{offset}");
        }
        // Nobody says whose it is.
        let frames = in_code(&made, None, sample.baseline + 30, false);
        assert_eq!(frames, Err(Unreadable::Replaced));
    }
}

#[test]
fn inlined_functions_stand_before_the_one_that_they_were_inlined_into() {
    for (made, sample) in each() {
        let at = |offset, innermost| in_code(&made, Some(sample.pop), sample.optimised + offset, innermost);
        let pop = || vec![function("Queue.pop", 3, false)];
        let both = || vec![function("take", 6, true), function("Queue.pop", 3, false)];
        assert_eq!(at(9, EXACT), Ok(pop()));
        // What returns to 10 has called before it.
        assert_eq!(at(10, false), Ok(pop()));
        assert_eq!(at(10, EXACT), Ok(both()));
        assert_eq!(at(11, false), Ok(both()));
        assert_eq!(at(20, false), Ok(both()));
        assert_eq!(at(21, false), Ok(pop()));
        // At an exit it is not known what was inlined there: the line is that of the function's begin.
        assert_eq!(at(120, false), Ok(vec![function("Queue.pop", 2, false)]));
        // The same code may have been made of another function meanwhile.
        let pc = sample.optimised + 15;
        assert_eq!(in_code(&made, None, pc, EXACT), Err(Unreadable::Replaced));
        assert_eq!(
            in_code(&made, Some(sample.take), pc, EXACT),
            Ok(vec![function("take", 6, false)])
        );
        let (value, detail) = in_code_word(&made, 3, Some(sample.take), pc, pc);
        let late = made.v8().frames(&made.memory, value, detail, EXACT);
        assert_eq!(late, Err(Unreadable::Replaced));
    }
}

#[test]
fn what_belongs_to_no_function_says_what_it_is() {
    for (made, _) in each() {
        let v8 = made.v8();
        let marked = |marker: u16| {
            let (value, detail) = word_of(2, CODE, u64::from(marker) << 3, 0, 0);
            let frames = v8.frames(&made.memory, value, detail, false).unwrap();
            (frames[0].sort, frames[0].function.clone())
        };
        let layout = &made.layout;
        assert_eq!(marked(layout.frame_wasm), (FrameSort::Wasm, "[wasm]".to_owned()));
        assert_eq!(
            marked(layout.frame_wasm_to_js),
            (FrameSort::Made, "[wasm-to-js]".to_owned())
        );
        assert_eq!(marked(250), (FrameSort::Made, "[stub]".to_owned()));
        // No code begins before it.
        let frames = in_code(&made, None, CODE + 0x20, EXACT).unwrap();
        assert_eq!(frames[0].function, "[stub]");
    }
}

#[test]
fn what_was_replaced_never_gives_a_name() {
    for (made, sample) in each() {
        let (value, detail) = word_of(0, 3, sample.pop, made.hash(sample.pop), 0);
        let v8 = made.v8();
        let layout = &made.layout;
        let of = |memory: &dyn ReadMemory| v8.frames(memory, value, detail, false);
        let places = [
            (layout.shared_name, 0x10),
            (layout.shared_script, 0x20),
            (layout.shared_length, 0x30),
            (layout.shared_flags + 4, 0x40),
            (0, 0x50),
        ];
        for (offset, other) in places {
            let mut changed = made.clone();
            let at = field(sample.pop, offset);
            let before = super::word(&changed.memory, at).unwrap();
            changed.memory.word(at, before ^ other);
            assert!(of(&changed.memory).is_err(), "{offset}");
        }
        // The same text again, with all that belongs to it where the one before lay.
        if let Some(id) = layout.script_id {
            let script = field(sample.pop, layout.shared_script);
            let script = super::word(&made.memory, script).unwrap();
            let mut changed = made.clone();
            changed.memory.word(field(script & !1, id), 78 << 32);
            assert!(of(&changed.memory).is_err());
        }
        assert!(layout.script_id.is_some() != layout.shared_unique.is_some());
        // It may be the last thing that is there.
        let there = |bytes| Until {
            memory: &made.memory,
            end: sample.pop + bytes,
        };
        let bytes = u64::from(layout.shared_bytes());
        assert!(Shared::read(&there(bytes), layout, sample.pop).is_ok());
        assert!(Shared::read(&there(bytes - 8), layout, sample.pop).is_err());
        // Between any two reads.
        let reads = Counted {
            memory: &made.memory,
            until: usize::MAX,
            done: Cell::new(0),
            place: (0, 0),
        };
        let expected = of(&reads);
        assert!(expected.is_ok());
        let script = field(sample.pop, layout.shared_script);
        for until in 0..reads.done.get() {
            let reads = Counted {
                memory: &made.memory,
                until,
                done: Cell::new(0),
                place: (script, sample.nameless | 1),
            };
            // Behind the last look at it, it may be what it wants.
            let found = of(&reads);
            assert!(found.is_err() || found == expected, "{until}");
        }
        // Other instructions.
        let pc = sample.optimised + 15;
        let mut changed = made.clone();
        changed.memory.put(pc + 3, &[0xc3]);
        let of = |kind| {
            let (value, detail) = in_code_word(&made, kind, Some(sample.pop), pc, pc);
            v8.frames(&changed.memory, value, detail, EXACT)
        };
        // The function is known, and what was inlined there is not; what was looked at later has to be whole.
        assert_eq!(of(1), Ok(vec![function("Queue.pop", 2, false)]));
        assert_eq!(of(3), Err(Unreadable::Replaced));
    }
}

/// What begins before an end cannot be read beyond it.
struct Until<'a> {
    memory: &'a Memory,
    end: u64,
}

impl ReadMemory for Until<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let is_beyond = address < self.end && address + to.len() as u64 > self.end;
        !is_beyond && self.memory.read(address, to)
    }
}

/// A memory that holds another word at a place from some read on.
struct Counted<'a> {
    memory: &'a dyn ReadMemory,
    until: usize,
    done: Cell<usize>,
    place: (u64, u64),
}

impl ReadMemory for Counted<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.done.set(self.done.get() + 1);
        if !self.memory.read(address, to) {
            return false;
        }
        let (place, value) = self.place;
        let first = place.checked_sub(address).map(|first| first as usize);
        if self.done.get() > self.until
            && let Some(to) = first.and_then(|first| to.get_mut(first..first + 8))
        {
            to.copy_from_slice(&value.to_le_bytes());
        }
        true
    }
}

#[test]
fn what_a_version_lacks_is_named() {
    for (made, _) in each() {
        let without = |missing: &str| {
            let mut made = made.clone();
            made.symbols.retain(|name, _| !name.contains(missing));
            made.layout_in(&made.memory).unwrap_err().to_string()
        };
        let version = made.layout.version();
        assert_eq!(
            without("ScopeInfo__SCOPE_INFO_TYPE"),
            format!("{version}: no type_ScopeInfo__SCOPE_INFO_TYPE")
        );
        assert!(without("Script__source").contains("no class_Script__source__Object"));
        if version.major == 11 {
            assert_eq!(without("instruction_start"), format!("{version}: unknown layout"));
        }
    }
}

#[test]
fn texts_are_read_in_all_the_ways_that_they_are_kept() {
    let (mut made, _) = Made::new(VERSIONS[2]);
    let (one, two, empty) = (made.text("Que"), made.text("ue.pop"), made.text(""));
    let length = |made: &mut Made, of: u64, length: u32| made.memory.put(field(of, 12), &length.to_le_bytes());
    let cons = made.object(0x29, 32);
    length(&mut made, cons, 9);
    made.set(cons, 16, one);
    made.set(cons, 24, two);
    let flat = made.object(0x29, 32);
    length(&mut made, flat, 6);
    made.set(flat, 16, two);
    made.set(flat, 24, empty);
    let thin = made.object(0x2d, 24);
    length(&mut made, thin, 6);
    made.set(thin, 16, two);
    let sliced = made.object(0x2b, 32);
    length(&mut made, sliced, 3);
    made.set(sliced, 16, thin);
    made.memory.word(field(sliced, 24), 3 << 32);
    let external = made.object(0x2a, 32);
    length(&mut made, external, 2);
    made.memory.word(field(external, 24), field(one, 17));
    let wide = made.object(0x20, 24);
    length(&mut made, wide, 2);
    made.memory.put(field(wide, 16), &[0xe9, 0, 0x42, 0x04]);
    let name = |object| super::text::name(&made.memory, object);
    let expected = [
        (cons, "Queue.pop"),
        (flat, "ue.pop"),
        (thin, "ue.pop"),
        (sliced, "pop"),
        (external, "ue"),
        (wide, "éт"),
    ];
    for (object, text) in expected {
        assert_eq!(name(object).as_deref(), Ok(text));
    }
    // Behind its end; itself; what is no text.
    made.memory.word(field(sliced, 24), 4 << 32);
    made.set(thin, 16, thin);
    for object in [sliced, thin] {
        assert!(super::text::name(&made.memory, object).is_err());
    }
    let script = made.object(made.layout.type_script, 64);
    assert!(super::text::name(&made.memory, script).is_err());
}

#[test]
fn evaluated_scripts_say_where_that_was() {
    for (mut made, sample) in each() {
        let layout = made.layout.clone();
        let script = made.object(layout.type_script, 128);
        made.set(script, layout.script_eval_from, sample.pop);
        let file = |made: &Made, script| super::lines::file(&made.memory, &layout, script);
        assert_eq!(file(&made, script), Ok(Some("eval at /srv/queue.js".to_owned())));
        let url = made.text("template.js");
        made.set(script, layout.script_source_url, url);
        assert_eq!(file(&made, script), Ok(Some("template.js".to_owned())));
    }
}

#[test]
fn room_for_code_is_known() {
    let (made, _) = Made::new(VERSIONS[0]);
    let v8: V8 = made.v8();
    assert!(v8.knows(&(CODE + 16..CODE + 32)) && !v8.knows(&(CODE + 0x1000..CODE + 0x2000)));
    let walked = v8.walked();
    assert_eq!((walked.made.len(), walked.function_shared), (1, 24));
    assert_eq!(v8.version().to_string(), "V8 10.2");
}
