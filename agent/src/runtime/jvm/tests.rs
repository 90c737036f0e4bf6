use std::cell::Cell;

use super::made::{ALL, HEAP, JDK_8, JDK_17, JDK_25, Memory, Scopes, Vm, tables};
use super::*;

fn layout(vm: &Vm) -> Result<Layout, LayoutError> {
    Layout::read(&vm.memory, &|name| vm.symbols.get(name).copied())
}

/// Class and method, line, and whether it was inlined.
fn shown(frames: Result<Vec<JavaFrame>, Unreadable>) -> Vec<(String, u32, bool)> {
    let frames = frames.unwrap();
    let name = |frame: &JavaFrame| format!("{}.{}", frame.class, frame.method);
    frames
        .iter()
        .map(|frame| (name(frame), frame.line, frame.inlined))
        .collect()
}

fn one(name: &str, line: u32, inlined: bool) -> (String, u32, bool) {
    (format!("java.util.HashMap.{name}"), line, inlined)
}

#[test]
fn each_release_has_its_layout() {
    for (text, java, encoding) in [
        (JDK_8, 8, Encoding::Plain),
        (JDK_17, 17, Encoding::Plain),
        (JDK_25, 25, Encoding::NoZero),
    ] {
        let layout = layout(&Vm::new(text)).unwrap();
        assert_eq!((layout.java, layout.encoding), (java, encoding));
    }
}

#[test]
fn a_walker_gets_each_release_s_places() {
    let place = |offset, width, is_signed| NumberField {
        offset,
        width,
        is_signed,
    };
    let [old, middle, new] = ALL.map(|text| Vm::new(text).jvm().walked());
    assert_eq!(
        [old.code_begin, middle.code_begin, new.code_begin],
        [place(32, 4, true), place(32, 8, false), place(36, 4, true)]
    );
    assert_eq!(
        [old.deopt, middle.deopt, new.deopt],
        [place(148, 4, true), place(128, 8, false), place(176, 4, true)]
    );
    assert_eq!(
        [old.frame_complete, middle.frame_complete, new.frame_complete],
        [place(36, 4, true), place(20, 4, true), place(54, 2, true)]
    );
    assert_eq!(
        [old.compile_id.offset, middle.compile_id.offset, new.compile_id.offset],
        [204, 304, 212]
    );
    assert_eq!([old.frame.method, middle.frame.method, new.frame.method], [-24; 3]);
    assert_eq!([old.frame.bcp, middle.frame.bcp, new.frame.bcp], [-56, -64, -64]);
    assert_eq!(
        [
            old.nmethod_header_bytes,
            middle.nmethod_header_bytes,
            new.nmethod_header_bytes
        ],
        [296, 352, 224]
    );
    assert_eq!(
        [old.kind, middle.kind, new.kind],
        [None, None, Some(place(56, 1, false))]
    );
    for walked in [old, middle, new] {
        assert_eq!(walked.heaps.len(), 1);
        let heap = walked.heaps[0];
        assert_eq!((heap.begin, heap.first_segment, heap.segment_shift), (HEAP, HEAP, 7));
        assert_eq!(walked.interpreter_end - walked.interpreter_begin, 256);
    }
}

#[test]
fn what_the_tables_lack_is_named() {
    let error = |name: &str| {
        let lines = JDK_25.lines().filter(|line| !line.contains(name));
        let text = lines.collect::<Vec<_>>().join("\n");
        let (memory, symbols) = tables(&text);
        let layout = Layout::read(&memory, &|name| symbols.get(name).copied());
        layout.unwrap_err().to_string()
    };
    for (line, message) in [
        ("nmethod _compile_id", "HotSpot 25: no field nmethod::_compile_id"),
        ("size PcDesc", "HotSpot 25: no size of PcDesc"),
        ("CodeHeap _segmap", "HotSpot 25: no field CodeHeap::_segmap"),
        (
            "linenumber",
            "HotSpot 25: no field ConstMethodFlags::_misc_has_linenumber_table",
        ),
    ] {
        assert_eq!(error(line), message);
    }
}

#[test]
fn symbols_that_lack_are_named() {
    let vm = Vm::new(JDK_17);
    let error = Layout::read(&vm.memory, &|_| None).unwrap_err();
    assert!(
        error.to_string().contains("gHotSpotVMStructEntryArrayStride"),
        "{error}"
    );
    let error = Layout::read(&vm.memory, &|_| Some(0x10)).unwrap_err();
    assert_eq!(error, LayoutError::Unreadable(Unreadable::Memory { address: 0x10 }));
}

#[test]
fn a_vm_that_begins_is_not_ready() {
    let mut vm = Vm::new(JDK_25);
    let interpreter = vm.address_of("AbstractInterpreter::_code");
    vm.memory.word(interpreter, 0);
    assert_eq!(Jvm::read(&vm.memory, vm.layout.clone()), Err(NotReady::Yet));
    let mut vm = Vm::new(JDK_17);
    let heaps = vm.address_of("CodeCache::_heaps");
    vm.memory.word(heaps, 0);
    assert_eq!(Jvm::read(&vm.memory, vm.layout.clone()), Err(NotReady::Yet));
    let mut vm = Vm::new(JDK_25);
    let version = vm.address_of("Abstract_VM_Version::_vm_major_version");
    vm.memory.word(version, 0);
    assert_eq!(layout(&vm), Err(LayoutError::NotReady));
    // As before the dynamic linker's work.
    let mut vm = Vm::new(JDK_25);
    let stride = vm.symbols["gHotSpotVMStructEntryArrayStride"];
    vm.memory.word(stride, 0);
    assert_eq!(layout(&vm), Err(LayoutError::NotReady));
    let mut vm = Vm::new(JDK_8);
    let flag = vm.layout.stubs.is_complete.unwrap();
    vm.memory.put(flag, &[0]);
    assert_eq!(Jvm::read(&vm.memory, vm.layout.clone()), Err(NotReady::Yet));
}

#[test]
fn a_release_that_contradicts_its_heaps_is_refused() {
    let mut vm = Vm::new(JDK_17);
    let version = vm.address_of("JDK_Version::_current");
    vm.memory.word(version, 8);
    assert!(matches!(layout(&vm), Err(LayoutError::Contradiction { java: 8, .. })));
}

#[test]
fn blobs_are_found_from_any_of_their_addresses() {
    for text in ALL {
        let (mut vm, sample) = Vm::sample(text);
        // As large that the map counts its segments more than once.
        let large = vm.blob("large", 200, 64, 0);
        let jvm = vm.jvm();
        for (address, kind) in [
            (sample.nmethod, BlobKind::Nmethod),
            (sample.native, BlobKind::NativeNmethod),
            (sample.stub, BlobKind::StubRoutines),
            (large, BlobKind::Buffer),
        ] {
            let first = jvm.blob_at(&vm.memory, address).unwrap();
            assert_eq!((first.address, first.kind), (address, kind));
            for distance in [1, u64::from(first.bytes) / 2, u64::from(first.bytes) - 1] {
                assert_eq!(jvm.blob_at(&vm.memory, address + distance).as_ref(), Some(&first));
            }
        }
        assert_eq!(jvm.blob_at(&vm.memory, large + (201 << 7)), None);
        assert_eq!(jvm.blob_at(&vm.memory, HEAP - 1), None);
        assert_eq!(jvm.blob_at(&vm.memory, u64::MAX), None);
        let interpreter = jvm.walked().interpreter_begin;
        assert_eq!(
            jvm.blob_at(&vm.memory, interpreter).unwrap().kind,
            BlobKind::Interpreter
        );
        assert_eq!(
            jvm.stub_name(&vm.memory, sample.stub).as_deref(),
            Some("StubRoutines (1)")
        );
        assert_eq!(jvm.stub_name(&vm.memory, sample.nmethod), None);
    }
}

#[test]
fn a_segment_map_that_leads_nowhere_ends() {
    let (mut vm, sample) = Vm::sample(JDK_17);
    let jvm = vm.jvm();
    let heap = jvm.walked().heaps[0];
    let segment = (sample.stub - HEAP) >> heap.segment_shift;
    // Each one leads to the one before, and the first to before the map.
    let ones = vec![1; segment as usize + 1];
    vm.memory.put(heap.segment_map, &ones);
    assert_eq!(jvm.blob_at(&vm.memory, sample.stub), None);
    vm.memory.put(heap.segment_map, &vec![0xff; segment as usize + 1]);
    assert_eq!(jvm.blob_at(&vm.memory, sample.stub), None);
}

#[test]
fn interpreted_methods_have_their_line() {
    for text in ALL {
        let (vm, sample) = Vm::sample(text);
        let jvm = vm.jvm();
        let lines = [0, 4, 5, 19, 20, 39, 40, u16::MAX].map(|bci| {
            let frames = jvm.interpreted(&vm.memory, sample.get, bci).unwrap();
            frames[0].line
        });
        assert_eq!(lines, [10, 10, 12, 12, 300, 300, 0, 0]);
        let frame = jvm.interpreted(&vm.memory, sample.hash, 5).unwrap().remove(0);
        let expected = JavaFrame {
            class: "java.util.HashMap".to_owned(),
            method: "hash".to_owned(),
            signature: "(Ljava/lang/Object;)I".to_owned(),
            file: Some("HashMap.java".to_owned()),
            line: 12,
            inlined: false,
        };
        assert_eq!(frame, expected);
    }
}

#[test]
fn return_addresses_match_their_place_exactly() {
    for text in ALL {
        let (vm, sample) = Vm::sample(text);
        let jvm = vm.jvm();
        let begin = jvm.blob_at(&vm.memory, sample.nmethod).unwrap().code_begin;
        let at = |offset| shown(jvm.compiled(&vm.memory, sample.nmethod, 77, begin + offset, false));
        assert_eq!(at(16), [one("get", 10, false)]);
        assert_eq!(at(32), [one("get", 12, false)]);
        assert_eq!(at(48), [one("hash", 300, true), one("get", 12, false)]);
        // The scope's own one is the third, whose sender is the second.
        assert_eq!(at(64).len(), 3);
        for between in [0, 15, 17, 63, 65, 80, 90] {
            assert_eq!(at(between), [one("get", 0, false)], "{between}");
        }
    }
}

#[test]
fn an_interrupted_pc_belongs_to_the_place_behind_it() {
    for text in ALL {
        let (vm, sample) = Vm::sample(text);
        let jvm = vm.jvm();
        let begin = jvm.blob_at(&vm.memory, sample.nmethod).unwrap().code_begin;
        let at = |offset| shown(jvm.compiled(&vm.memory, sample.nmethod, 77, begin + offset, true));
        assert_eq!(at(0), [one("get", 10, false)]);
        assert_eq!(at(15), at(0));
        assert_eq!(at(16), [one("get", 12, false)]);
        assert_eq!(at(47), [one("hash", 300, true), one("get", 12, false)]);
        assert_eq!(at(63).len(), 3);
        // Nothing is known behind the last one.
        assert_eq!(at(64), [one("get", 0, false)]);
        assert_eq!(at(200), [one("get", 0, false)]);
    }
}

#[test]
fn other_forms_of_numbers_are_seen_by_the_method_they_lead_to() {
    let (mut vm, sample) = Vm::sample(JDK_17);
    let scopes = Scopes::of(Encoding::NoZero);
    vm.debug(
        sample.nmethod,
        &scopes.pc_descs(),
        &scopes.bytes,
        &[sample.get, sample.hash],
    );
    let jvm = vm.jvm();
    let begin = jvm.blob_at(&vm.memory, sample.nmethod).unwrap().code_begin;
    let frames = shown(jvm.compiled(&vm.memory, sample.nmethod, 77, begin + 48, false));
    assert_eq!(frames, [one("hash", 300, true), one("get", 12, false)]);
}

#[test]
fn native_methods_have_their_name() {
    for text in ALL {
        let (mut vm, sample) = Vm::sample(text);
        vm.memory.put(sample.hash + u64::from(sample.access_flags) + 1, &[1]);
        let jvm = vm.jvm();
        let blob = jvm.blob_at(&vm.memory, sample.native).unwrap();
        let frames = jvm.compiled(&vm.memory, sample.native, 78, blob.code_begin + 30, false);
        assert_eq!(shown(frames), [one("hash", 0, false)]);
    }
}

#[test]
fn replaced_code_never_gives_a_name() {
    for text in ALL {
        let (mut vm, sample) = Vm::sample(text);
        let jvm = vm.jvm();
        let begin = jvm.blob_at(&vm.memory, sample.nmethod).unwrap().code_begin;
        let compiled = |memory: &dyn ReadMemory, id| jvm.compiled(memory, sample.nmethod, id, begin + 48, false);
        assert_eq!(compiled(&vm.memory, 76), Err(Unreadable::Replaced));
        // Replaced between any two reads, but for the last one: its number is looked at just before its method.
        let reads = Counted {
            memory: &vm.memory,
            until: usize::MAX,
            done: Cell::new(0),
            place: (0, 0),
        };
        compiled(&reads, 77).unwrap();
        let id = vm.layout.blob.compile_id;
        for until in 0..reads.done.get() - 1 {
            let reads = Counted {
                memory: &vm.memory,
                until,
                done: Cell::new(0),
                place: (sample.nmethod + u64::from(id.offset), 79),
            };
            assert_eq!(compiled(&reads, 77), Err(Unreadable::Replaced), "{until}");
        }
        // What remains of unloaded code has no method.
        let mut unloaded = vm.memory.clone();
        unloaded.word(sample.nmethod + u64::from(vm.layout.blob.method), 0);
        for until in 0..reads.done.get() {
            let changing = Changing {
                before: &vm.memory,
                after: &unloaded,
                until,
                done: Cell::new(0),
            };
            assert_eq!(compiled(&changing, 77), Err(Unreadable::Replaced), "{until}");
        }
        // Freed.
        let header = sample.nmethod - u64::from(vm.layout.heap.header_bytes);
        vm.memory.put(header + u64::from(vm.layout.heap.header_used), &[0]);
        assert_eq!(compiled(&vm.memory, 77), Err(Unreadable::Replaced));
        // A stub stands there.
        assert_eq!(
            jvm.compiled(&vm.memory, sample.stub, 0, begin, false),
            Err(Unreadable::Replaced)
        );
    }
}

/// A class that is unloaded leaves all of its structures to the next one.
#[test]
fn a_method_made_anew_where_another_class_lay_is_told_by_its_class_name() {
    for text in ALL {
        let prints = ["made/Generation17", "made/Generation18", "made/Generation178", "A", "B"].map(|class| {
            let mut vm = Vm::new(text);
            let method = vm.method(class, "run", "()V", "Generation.java");
            vm.jvm().print_of(&vm.memory, method).unwrap()
        });
        let distinct: std::collections::BTreeSet<u64> = prints.into_iter().collect();
        assert_eq!(distinct.len(), prints.len(), "{prints:x?}");
    }
}

/// A memory that holds another number at a place from some read on.
struct Counted<'a> {
    memory: &'a Memory,
    until: usize,
    done: Cell<usize>,
    place: (u64, u32),
}

impl ReadMemory for Counted<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.done.set(self.done.get() + 1);
        if self.done.get() > self.until && address == self.place.0 {
            to.copy_from_slice(&self.place.1.to_le_bytes());
            return true;
        }
        self.memory.read(address, to)
    }
}

/// A memory that becomes another one at some read.
struct Changing<'a> {
    before: &'a Memory,
    after: &'a Memory,
    until: usize,
    done: Cell<usize>,
}

impl ReadMemory for Changing<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.done.set(self.done.get() + 1);
        let memory = if self.done.get() > self.until {
            self.after
        } else {
            self.before
        };
        memory.read(address, to)
    }
}

#[test]
fn scopes_that_lead_in_circles_are_refused() {
    let (mut vm, sample) = Vm::sample(JDK_17);
    // One that was inlined into itself, one into a later one, one of no method, and one of a method that is none of
    // the table's.
    for scopes in [
        [0xff, 1, 1, 1, 0],
        [0xff, 9, 1, 1, 0],
        [0xff, 0, 0, 1, 0],
        [0xff, 0, 9, 1, 0],
    ] {
        vm.debug(sample.nmethod, &[(16, 1)], &scopes, &[sample.get]);
        let jvm = vm.jvm();
        let begin = jvm.blob_at(&vm.memory, sample.nmethod).unwrap().code_begin;
        let frames = jvm.compiled(&vm.memory, sample.nmethod, 77, begin + 16, false);
        assert!(matches!(frames, Err(Unreadable::Nonsense { .. })), "{frames:?}");
    }
}

#[test]
fn scopes_have_a_depth() {
    let (mut vm, sample) = Vm::sample(JDK_17);
    // Each is inlined into the one before: four bytes each, offsets below 192.
    for (depth, is_read) in [(40, true), (130, false)] {
        let mut scopes = vec![0xff];
        let mut sender = 0u32;
        for _ in 0..depth {
            let at = scopes.len() as u32;
            match sender {
                low @ 0..192 => scopes.push(low as u8),
                high => scopes.extend([192 + ((high - 192) % 64) as u8, ((high - 192) / 64) as u8]),
            }
            scopes.extend([1, 3]);
            sender = at;
        }
        vm.debug(sample.nmethod, &[(16, sender as i32)], &scopes, &[sample.get]);
        let jvm = vm.jvm();
        let begin = jvm.blob_at(&vm.memory, sample.nmethod).unwrap().code_begin;
        let frames = jvm.compiled(&vm.memory, sample.nmethod, 77, begin + 16, false);
        assert_eq!(frames.map(|frames| frames.len()).ok(), is_read.then_some(depth));
    }
}

#[test]
fn pointers_that_lead_nowhere_are_refused() {
    for text in ALL {
        let (vm, sample) = Vm::sample(text);
        let jvm = vm.jvm();
        let begin = jvm.blob_at(&vm.memory, sample.nmethod).unwrap().code_begin;
        for method in [
            0,
            1,
            8,
            HEAP + 4,
            u64::MAX,
            u64::MAX - 7,
            1 << 47,
            0xffff_8000_0000_0000,
        ] {
            assert!(jvm.interpreted(&vm.memory, method, 0).is_err(), "{method:#x}");
            assert!(
                jvm.compiled(&vm.memory, method, 77, begin, true).is_err(),
                "{method:#x}"
            );
        }
        let name = u64::from(vm.layout.method.const_method);
        for wrong in [0, 5, sample.get, u64::MAX - 7] {
            let mut vm = Vm::sample(text).0;
            vm.memory.word(sample.get + name, wrong);
            assert!(jvm.interpreted(&vm.memory, sample.get, 0).is_err(), "{wrong:#x}");
        }
        // Not an address of this code.
        for pc in [0, begin - 1, begin + 5000, u64::MAX] {
            let frames = jvm.compiled(&vm.memory, sample.nmethod, 77, pc, true);
            assert!(matches!(frames, Err(Unreadable::Nonsense { .. })), "{pc:#x}");
        }
    }
}

#[test]
fn long_names_are_cut() {
    let mut vm = Vm::new(JDK_25);
    let long = "x".repeat(30_000);
    let method = vm.method("A", &long, "()V", "A.java");
    let frames = vm.jvm().interpreted(&vm.memory, method, 0).unwrap();
    assert_eq!(frames[0].method.len(), 4096);
}

#[test]
fn strings_end_at_a_limit() {
    let vm = Vm::new(JDK_25);
    let mut memory = vm.memory.clone();
    memory.put(HEAP + 5, &[b'a'; 1000]);
    assert_eq!(c_string(&memory, HEAP + 5, 100).unwrap(), "a".repeat(100));
    memory.put(HEAP + 5, b"ab\0");
    assert_eq!(c_string(&memory, HEAP + 5, 100).unwrap(), "ab");
}
