//! Which names of a stack are wrong, where names tell who calls whom.
//!
//! In: stacks of programs of `programs/`. Out: counts. A generation's number and level stand in each name; callers that
//! stay have the remainder of the numbers that they may call. Does no input or output.

use std::collections::BTreeMap;

use super::super::stacks::Frame;

/// Callers that stay, in each program.
const CALLERS: u32 = 8;
/// PHP's own functions that call back, by what they call: of a request's functions none stays.
const PHP_CALLERS: [&str; CALLERS as usize] = [
    "array_map",
    "array_filter",
    "array_walk",
    "usort",
    "uasort",
    "array_reduce",
    "preg_replace_callback",
    "array_udiff",
];
/// Wrong stacks that are kept to be shown, and frames of one.
const SHOWN: usize = 5;
const SHOWN_FRAMES: usize = 8;

/// What one language's frames are called by in a row, and the kind that answers give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tongue {
    pub(super) tag: &'static str,
    pub(super) kind: &'static str,
    /// The machine's own helpers have names too, below what calls them.
    pub(super) has_helpers: bool,
}

/// What a name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told<'a> {
    tag: &'a str,
    /// 0 is a caller that stays; 1 to 4 are a to d.
    level: u32,
    /// Of a caller, the remainder.
    number: u32,
}

/// Why a stack is wrong, or lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// Caller and callee are of different generations.
    Generation,
    /// A function stands below one that it calls, or beside itself.
    Order,
    /// A function of another program or language.
    Foreign,
    /// Between two functions a third one is missing, and no nameless frame stands for it.
    Missing,
}

impl Fault {
    pub(super) fn title(self) -> &'static str {
        match self {
            Fault::Generation => "another generation",
            Fault::Order => "out of order",
            Fault::Foreign => "foreign",
            Fault::Missing => "a frame is missing",
        }
    }
}

/// What was counted, in samples; frames are weighted by them.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) samples: u64,
    /// With a function of a generation, or its caller.
    pub(super) judged: u64,
    pub(super) frames: u64,
    pub(super) unnamed: u64,
    /// Some name is wrong.
    pub(super) wrong: u64,
    /// No name is wrong, but a frame is missing.
    pub(super) missing: u64,
    /// The first of them, to be shown.
    pub(super) examples: BTreeMap<String, u64>,
}

impl Counts {
    /// One distinct stack, root first.
    pub(super) fn take(&mut self, tongues: &[Tongue], frames: &[Frame<'_>], samples: u64) {
        self.samples += samples;
        let mut of_stack = OfStack::default();
        for frame in frames {
            of_stack.take(tongues, frame);
        }
        self.judged += samples * u64::from(of_stack.is_judged);
        self.frames += of_stack.frames * samples;
        self.unnamed += of_stack.unnamed * samples;
        let Some(fault) = of_stack.fault else {
            return;
        };
        if fault == Fault::Missing {
            self.missing += samples;
        } else {
            self.wrong += samples;
        }
        let text = format!("{}: {}", fault.title(), shown(tongues, frames));
        if self.examples.len() < SHOWN || self.examples.contains_key(&text) {
            *self.examples.entry(text).or_default() += samples;
        }
    }
}

/// The innermost frames of the languages, leaf first.
fn shown(tongues: &[Tongue], frames: &[Frame<'_>]) -> String {
    let is_own = |frame: &&Frame<'_>| tongues.iter().any(|tongue| tongue.kind == frame.kind);
    let names: Vec<&str> = frames
        .iter()
        .rev()
        .filter(is_own)
        .take(SHOWN_FRAMES)
        .map(|frame| frame.name)
        .collect();
    names.join(" < ")
}

#[derive(Default)]
struct OfStack<'a> {
    is_judged: bool,
    frames: u64,
    unnamed: u64,
    /// The gravest one.
    fault: Option<Fault>,
    last: Option<Told<'a>>,
    /// Since then frames may be missing.
    has_gap: bool,
    /// Since then there was a function that is none of the known ones.
    has_other: bool,
}

impl<'a> OfStack<'a> {
    fn take(&mut self, tongues: &[Tongue], frame: &Frame<'a>) {
        let own = tongues.iter().find(|tongue| tongue.kind == frame.kind);
        // What stands for missing frames, and code of which nothing is known.
        if own.is_none() && ["unknown", "jit"].contains(&frame.kind) {
            self.has_gap = true;
        }
        let Some(own) = own else {
            return;
        };
        self.frames += 1;
        if !frame.is_named() {
            self.unnamed += 1;
            self.has_gap = true;
            return;
        }
        let Some(told) = told(frame.name, own.tag) else {
            // Before the chain stands what called it. Behind it stands nothing, but for a virtual machine's helpers.
            self.has_other = self.last.is_some();
            if self.has_other && !own.has_helpers {
                self.blame(Some(Fault::Foreign));
            }
            return;
        };
        self.is_judged = true;
        let fault = if told.tag == own.tag {
            self.step(told)
        } else {
            Some(Fault::Foreign)
        };
        self.blame(fault);
        (self.last, self.has_gap, self.has_other) = (Some(told), false, false);
    }

    fn blame(&mut self, fault: Option<Fault>) {
        self.fault = self.fault.into_iter().chain(fault).min();
    }

    /// What is wrong between the last known frame and the one that it called.
    fn step(&self, callee: Told<'_>) -> Option<Fault> {
        let (above, numbers_fit) = match self.last {
            // A cut stack may begin anywhere, and says so before.
            None if self.has_gap => return None,
            None => return (callee.level > 0).then_some(Fault::Missing),
            Some(caller) if caller.level == 0 => (0, callee.level == 0 || callee.number % CALLERS == caller.number),
            Some(caller) => (caller.level, callee.number == caller.number),
        };
        if callee.level <= above {
            Some(Fault::Order)
        } else if !numbers_fit {
            Some(Fault::Generation)
        } else if self.has_other {
            Some(Fault::Foreign)
        } else if callee.level > above + 1 && !self.has_gap {
            Some(Fault::Missing)
        } else {
            None
        }
    }
}

/// `py_a_00000017`, within whatever a language writes around it; `jv_00000017.a`; `array_map`, which is PHP's caller of
/// the remainder 0.
fn told<'a>(name: &'a str, tag: &'a str) -> Option<Told<'a>> {
    if tag == "ph"
        && let Some(number) = PHP_CALLERS.iter().position(|caller| *caller == name)
    {
        let number = u32::try_from(number).ok()?;
        return Some(Told { tag, level: 0, number });
    }
    let mut words = name
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .peekable();
    while let Some(word) = words.next() {
        let parts: Vec<&str> = word.split('_').collect();
        match parts[..] {
            [tag, level, number] if tag.len() == 2 => {
                if let (Some(level), Ok(number)) = (level_of(level), number.parse()) {
                    return Some(Told { tag, level, number });
                }
            }
            ["jv" | "jw", number] => {
                let level = words
                    .peek()
                    .and_then(|method| level_of(method))
                    .filter(|level| *level > 0);
                if let (Some(level), Ok(number)) = (level, number.parse()) {
                    return Some(Told {
                        tag: "jv",
                        level,
                        number,
                    });
                }
            }
            _ => {}
        }
    }
    None
}

fn level_of(name: &str) -> Option<u32> {
    let level = ["s", "a", "b", "c", "d"].iter().position(|level| *level == name)?;
    u32::try_from(level).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: Tongue = Tongue {
        tag: "py",
        kind: "cpython",
        has_helpers: false,
    };
    const JAVA: Tongue = Tongue {
        tag: "jv",
        kind: "jvm",
        has_helpers: true,
    };
    const PHP: Tongue = Tongue {
        tag: "ph",
        kind: "php",
        has_helpers: false,
    };

    fn judged(tongues: &[Tongue], names: &[(&'static str, &'static str)]) -> Counts {
        let frames: Vec<Frame<'_>> = names
            .iter()
            .map(|(kind, name)| Frame {
                kind,
                module: "",
                name,
                is_inlined: false,
            })
            .collect();
        let mut counts = Counts::default();
        counts.take(tongues, &frames, 3);
        counts
    }

    /// Wrong and missing, of a stack of one language.
    fn faults(tongue: Tongue, names: &[&'static str]) -> (u64, u64) {
        let frames: Vec<_> = names.iter().map(|name| (tongue.kind, *name)).collect();
        let counts = judged(&[tongue], &frames);
        (counts.wrong, counts.missing)
    }

    #[test]
    fn a_chain_of_one_generation_below_its_caller_is_right() {
        for names in [
            &[
                "<module>",
                "run",
                "py_s_1",
                "py_a_00000017",
                "py_b_00000017",
                "py_c_00000017",
                "py_d_00000017",
            ][..],
            &["<module>", "run", "py_s_1"],
            &["<module>"],
            &["py_s_1", "[made]", "py_b_00000017"],
            &["py_s_1", "py_a_00000017", "[made]", "[made]", "py_d_00000017"],
        ] {
            assert_eq!(faults(PYTHON, names), (0, 0), "{names:?}");
        }
        let names = [
            "Forever.main",
            "Forever.call",
            "Forever.jv_s_1",
            "jv_00000017.a",
            "jw_00000017.b",
            "stub",
        ];
        assert_eq!(faults(JAVA, &names), (0, 0));
        assert_eq!(
            faults(PHP, &["{main}", "uasort", "Made::ph_a_00000012", "Made::ph_b_00000012"]),
            (0, 0)
        );
    }

    #[test]
    fn any_other_pair_is_wrong() {
        for names in [
            // Of another generation, at each place.
            &["py_s_2", "py_a_00000017"][..],
            &["py_s_1", "py_a_00000017", "py_b_00000018"],
            &["py_s_1", "[made]", "py_b_00000018"],
            &["py_s_1", "py_a_00000017", "py_b_00000017", "[made]", "py_d_00000025"],
            // Out of order.
            &["py_s_1", "py_b_00000017", "py_a_00000017"],
            &["py_s_1", "py_s_1"],
            &["py_s_1", "py_a_00000017", "py_a_00000017"],
            // Of somebody else.
            &["py_s_1", "rb_a_00000017"],
            &["py_s_1", "py_a_00000017", "other", "py_b_00000017"],
            &["py_s_1", "py_a_00000017", "py_b_00000017", "other"],
        ] {
            assert_eq!(faults(PYTHON, names), (3, 0), "{names:?}");
        }
        assert_eq!(faults(PHP, &["{main}", "usort", "Made::ph_a_00000012"]), (3, 0));
        assert_eq!(
            faults(JAVA, &["Forever.jv_s_1", "jv_00000017.a", "jv_00000018.b"]),
            (3, 0)
        );
    }

    #[test]
    fn a_frame_that_is_not_there_is_no_wrong_name() {
        assert_eq!(faults(PYTHON, &["py_s_1", "py_b_00000017"]), (0, 3));
        assert_eq!(faults(PYTHON, &["py_a_00000017"]), (0, 3));
        let cut = [("unknown", "[cut]"), ("cpython", "py_c_00000017")];
        assert_eq!(judged(&[PYTHON], &cut).missing, 0);
    }

    #[test]
    fn frames_of_other_kinds_are_not_looked_at_and_nameless_ones_are_counted() {
        let names = [
            ("native", "py_b_00000018"),
            ("cpython", "py_s_1"),
            ("native", "[libpython.so]"),
            ("cpython", "[made]"),
            ("kernel", "py_a_00000001"),
        ];
        let counts = judged(&[PYTHON], &names);
        assert_eq!(
            (counts.samples, counts.judged, counts.frames, counts.unnamed),
            (3, 3, 6, 3)
        );
        assert_eq!((counts.wrong, counts.missing), (0, 0));
    }

    #[test]
    fn a_row_may_have_programs_of_several_languages() {
        let names = [("jvm", "Forever.jv_s_1"), ("jvm", "jv_00000009.a")];
        assert_eq!(judged(&[PYTHON, JAVA], &names).wrong, 0);
        let names = [("jvm", "Forever.jv_s_1"), ("jvm", "py_a_00000009")];
        assert_eq!(judged(&[PYTHON, JAVA], &names).wrong, 3);
    }
}
