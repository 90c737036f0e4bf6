//! Code that the kernel makes at run time, by address and time.
//!
//! In: BPF programs and what leads to them, as they come and go. Out: whose an address was at a time. The kernel gives
//! the place of one that is gone to the next; what stood there stays known for as long as samples of it may come.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::address_space::Source;
use crate::frames::{CodeLocation, SourceId};
use crate::process::CodeChange;

/// What is gone is kept in mind for so long: samples wait for their tables.
const GONE_NS: u64 = 60_000_000_000;
/// More than any machine has, and those that are gone among them.
const MAX_PIECES: usize = 32_768;

/// A function, and since when until when it was there.
#[derive(Debug)]
struct Piece {
    bytes: u32,
    name: Arc<str>,
    source: SourceId,
    from_ns: u64,
    until_ns: u64,
}

/// All pieces that are there or were there a moment ago.
#[derive(Debug, Default)]
pub(super) struct KernelCode {
    /// By where they begin, the oldest first.
    pieces: BTreeMap<u64, Vec<Piece>>,
    count: usize,
    longest: u32,
    /// All pieces lie in there: most of the kernel's code does not.
    range: std::ops::Range<u64>,
    forgotten: u64,
    /// Stands for what cannot be told.
    unknown: Option<SourceId>,
}

impl KernelCode {
    pub(super) fn on_change(&mut self, change: &CodeChange, mut take_id: impl FnMut() -> SourceId) {
        self.unknown.get_or_insert_with(&mut take_id);
        if change.is_gone {
            let last = self.pieces.get_mut(&change.start).and_then(|pieces| pieces.last_mut());
            match last.filter(|last| last.until_ns == u64::MAX && last.name.as_ref() == &*change.name) {
                Some(last) => last.until_ns = change.time_ns,
                // It was there before anybody looked.
                None => self.add(change, 0, change.time_ns, take_id()),
            }
            return;
        }
        // It was told before that, or the list had it already.
        let present = self.pieces.get(&change.start).and_then(|pieces| pieces.last());
        if present.is_some_and(|piece| is_same(piece, change) && piece.from_ns <= change.time_ns) {
            return;
        }
        self.end_overlapping(change);
        self.add(change, change.time_ns, u64::MAX, take_id());
    }

    /// What is there by a list of all, where some changes since `certain_ns` may be missing.
    pub(super) fn set(
        &mut self,
        all: &[CodeChange],
        certain_ns: u64,
        now_ns: u64,
        mut take_id: impl FnMut() -> SourceId,
    ) {
        let listed: BTreeMap<u64, &CodeChange> = all.iter().map(|code| (code.start, code)).collect();
        for (start, pieces) in &mut self.pieces {
            let Some(last) = pieces.last_mut().filter(|piece| piece.until_ns == u64::MAX) else {
                continue;
            };
            // The list has programs only, not what leads to them.
            let is_program = last.name.starts_with("bpf_prog_");
            let is_there = listed
                .get(start)
                .is_some_and(|code| is_same(last, code) && code.time_ns <= last.from_ns.max(certain_ns));
            if is_program && !is_there {
                last.until_ns = certain_ns.max(last.from_ns);
            }
        }
        for code in all {
            let last = self.pieces.get(&code.start).and_then(|pieces| pieces.last());
            let is_known = last.is_some_and(|piece| is_same(piece, code));
            if !is_known && code.time_ns <= now_ns {
                self.end_overlapping(code);
                self.add(code, code.time_ns, u64::MAX, take_id());
            }
        }
        self.unknown.get_or_insert_with(take_id);
    }

    /// None where no such code ever was, as far as anybody told.
    pub(super) fn find(&self, address: u64, time_ns: u64) -> Option<(CodeLocation, Source)> {
        if !self.range.contains(&address) {
            return None;
        }
        let first = address.saturating_sub(u64::from(self.longest));
        let mut is_told = false;
        for (start, pieces) in self.pieces.range(first..=address).rev() {
            for piece in pieces
                .iter()
                .rev()
                .filter(|piece| address - start < u64::from(piece.bytes))
            {
                is_told = true;
                if (piece.from_ns..piece.until_ns).contains(&time_ns) {
                    let location = CodeLocation {
                        source: piece.source,
                        offset: 0,
                    };
                    return Some((location, Source::Kernel(Some(Arc::clone(&piece.name)))));
                }
            }
        }
        let location = CodeLocation {
            source: self.unknown.unwrap_or(SourceId::UNKNOWN),
            offset: 0,
        };
        is_told.then_some((location, Source::Kernel(None)))
    }

    /// Forgets what is gone for long enough.
    pub(super) fn forget_old(&mut self, now_ns: u64) {
        let before = self.count;
        self.pieces.retain(|_, pieces| {
            pieces.retain(|piece| piece.until_ns == u64::MAX || now_ns.saturating_sub(piece.until_ns) < GONE_NS);
            !pieces.is_empty()
        });
        self.count = self.pieces.values().map(Vec::len).sum();
        if self.count < before {
            self.longest = self
                .pieces
                .values()
                .flatten()
                .map(|piece| piece.bytes)
                .max()
                .unwrap_or(0);
            let begin = self.pieces.keys().next().copied().unwrap_or(0);
            let last = self.pieces.keys().next_back().copied().unwrap_or(0);
            self.range = begin..last.saturating_add(u64::from(self.longest));
        }
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// What is new stands where nothing else can be any more.
    fn end_overlapping(&mut self, new: &CodeChange) {
        let first = new.start.saturating_sub(u64::from(self.longest));
        let end = new.start.saturating_add(u64::from(new.bytes));
        for (start, pieces) in self.pieces.range_mut(first..end) {
            for piece in pieces.iter_mut().filter(|piece| piece.until_ns > new.time_ns) {
                if start.saturating_add(u64::from(piece.bytes)) > new.start {
                    piece.until_ns = new.time_ns.max(piece.from_ns);
                }
            }
        }
    }

    fn add(&mut self, code: &CodeChange, from_ns: u64, until_ns: u64, source: SourceId) {
        if self.count >= MAX_PIECES {
            self.forgotten += 1;
            return;
        }
        self.count += 1;
        self.longest = self.longest.max(code.bytes);
        let end = code.start.saturating_add(u64::from(code.bytes));
        self.range = if self.range.is_empty() {
            code.start..end
        } else {
            self.range.start.min(code.start)..self.range.end.max(end)
        };
        let pieces = self.pieces.entry(code.start).or_default();
        pieces.push(Piece {
            bytes: code.bytes,
            name: (*code.name).into(),
            source,
            from_ns,
            until_ns,
        });
        pieces.sort_by_key(|piece| piece.from_ns);
    }
}

fn is_same(piece: &Piece, code: &CodeChange) -> bool {
    piece.until_ns == u64::MAX && piece.bytes == code.bytes && *piece.name == *code.name
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0xffff_ffff_c000_1000;

    fn change(start: u64, name: &str, time_ns: u64, is_gone: bool) -> CodeChange {
        CodeChange {
            start,
            bytes: 0x100,
            name: name.into(),
            time_ns,
            is_gone,
        }
    }

    struct Code(KernelCode, u32);

    impl Code {
        fn new() -> Self {
            Self(KernelCode::default(), 0)
        }

        fn on(&mut self, start: u64, name: &str, time_ns: u64, is_gone: bool) {
            let (code, next) = (&mut self.0, &mut self.1);
            code.on_change(&change(start, name, time_ns, is_gone), || SourceId::take(next));
        }

        fn set(&mut self, all: &[CodeChange], certain_ns: u64, now_ns: u64) {
            let (code, next) = (&mut self.0, &mut self.1);
            code.set(all, certain_ns, now_ns, || SourceId::take(next));
        }

        /// `?` where nobody can say, nothing where none was.
        fn name(&self, address: u64, time_ns: u64) -> String {
            match self.0.find(address, time_ns) {
                Some((_, Source::Kernel(name))) => name.as_deref().unwrap_or("?").to_owned(),
                Some((_, other)) => panic!("{other:?}"),
                None => String::new(),
            }
        }
    }

    #[test]
    fn a_place_is_named_by_who_was_there_at_the_time() {
        let mut code = Code::new();
        code.on(AT, "bpf_prog_1_first", 100, false);
        code.on(AT, "bpf_prog_1_first", 200, true);
        code.on(AT + 0x40, "bpf_prog_2_second", 300, false);
        assert_eq!(code.name(AT + 0x50, 99), "?", "before it was there");
        assert_eq!(code.name(AT + 0x50, 100), "bpf_prog_1_first");
        assert_eq!(code.name(AT + 0x50, 250), "?", "between both");
        assert_eq!(code.name(AT + 0x50, 300), "bpf_prog_2_second");
        assert_eq!(code.name(AT + 0x140, 300), "", "behind its end");
        assert_eq!(
            (code.name(AT - 1, 300), code.name(AT + 0x13f, 300)),
            (String::new(), "bpf_prog_2_second".into())
        );
        let locations = [100, 300].map(|at| code.0.find(AT + 0x50, at).map(|(location, _)| location));
        assert_ne!(
            locations[0], locations[1],
            "another one each, so that no name is remembered for the other"
        );
    }

    #[test]
    fn what_was_there_before_is_told_by_its_end_or_by_the_list() {
        let mut code = Code::new();
        code.on(AT, "bpf_prog_1_first", 200, true);
        assert_eq!(
            (code.name(AT, 50), code.name(AT, 200)),
            ("bpf_prog_1_first".into(), "?".into())
        );
        let listed = [change(AT + 0x1000, "bpf_prog_3_third", 20, false)];
        code.set(&listed, 0, 210);
        assert_eq!(code.name(AT + 0x1000, 20), "bpf_prog_3_third");
        code.on(AT + 0x1000, "bpf_prog_3_third", 20, false);
        assert_eq!(code.0.count, 2, "told twice is there once");
    }

    #[test]
    fn where_changes_were_lost_the_list_counts_and_between_nobody_knows() {
        let mut code = Code::new();
        code.on(AT, "bpf_prog_1_first", 100, false);
        code.on(AT + 0x1000, "bpf_prog_4_stays", 100, false);
        code.on(AT + 0x2000, "bpf_trampoline_9", 100, false);
        // Until 150 all changes were told; the list is of 500.
        let listed = [
            change(AT, "bpf_prog_2_second", 400, false),
            change(AT + 0x1000, "bpf_prog_4_stays", 100, false),
        ];
        code.set(&listed, 150, 500);
        assert_eq!(
            (code.name(AT, 149), code.name(AT, 399)),
            ("bpf_prog_1_first".into(), "?".into())
        );
        assert_eq!(
            (code.name(AT, 400), code.name(AT + 0x1000, 300)),
            ("bpf_prog_2_second".into(), "bpf_prog_4_stays".into())
        );
        assert_eq!(code.name(AT + 0x2000, 450), "bpf_trampoline_9", "no list has those");
    }

    #[test]
    fn what_is_gone_is_forgotten_and_all_is_bounded() {
        let mut code = Code::new();
        for number in 0..MAX_PIECES as u64 + 10 {
            code.on(AT + number * 0x1000, "bpf_prog_1_x", number, false);
        }
        assert_eq!((code.0.count, code.0.forgotten()), (MAX_PIECES, 10));
        code.on(AT, "bpf_prog_1_x", 1000, true);
        code.0.forget_old(1000 + GONE_NS - 1);
        assert_eq!(code.0.count, MAX_PIECES);
        code.0.forget_old(1000 + GONE_NS);
        assert_eq!((code.0.count, code.name(AT, 1)), (MAX_PIECES - 1, String::new()));
    }
}
