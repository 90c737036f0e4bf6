//! How much of a known mix a profiler shows. Does no input or output.

use crate::bench::stacks::{Frame, Stacks};

/// The chains of the mix: a1 to a12, b1 to b12.
const LEVELS: u32 = 12;
/// What a thread starts in, where the C library has no symbols a frame of it.
const STARTS: [&str; 6] = [
    "_start",
    "__libc_start_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone3",
];
const C_LIBRARY: &str = "libc.so";
/// So many frames at the root are looked at: a program's `_start` may have no name, and stands above the C library.
const AT_ROOT: usize = 3;

/// What was counted of one program, in samples; frames are weighted by them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    pub(super) samples: u64,
    truncated: u64,
    rooted: u64,
    frames: u64,
    named: u64,
    whole: u64,
    in_order: u64,
}

impl Shown {
    /// `kind`: of the language's own frames; of native code those in the program's own file, which `module` names.
    pub(super) fn of(stacks: &Stacks, kind: &str, module: &str) -> Shown {
        let mut shown = Shown {
            truncated: stacks.truncated(),
            ..Shown::default()
        };
        stacks.each(|frames, samples| shown.take(frames, samples, kind, module));
        shown
    }

    fn take(&mut self, frames: &[Frame<'_>], samples: u64, kind: &str, module: &str) {
        self.samples += samples;
        let user = || frames.iter().filter(|frame| frame.kind != "kernel");
        self.rooted += samples * u64::from(user().take(AT_ROOT).any(is_start));
        let is_own = |frame: &&Frame<'_>| match kind {
            "native" => frame.kind == kind && frame.module == module,
            _ => [kind, "jit"].contains(&frame.kind),
        };
        self.frames += samples * user().filter(is_own).count() as u64;
        self.named += samples * user().filter(is_own).filter(|frame| frame.is_named()).count() as u64;
        let chain: Vec<(u8, u32)> = user().filter_map(|frame| level(frame.name)).collect();
        let is_right = chain
            .iter()
            .zip(1..)
            .all(|((of, level), expected)| *of == chain[0].0 && *level == expected);
        self.in_order += samples * u64::from(is_right && !chain.is_empty());
        self.whole += samples * u64::from(is_right && chain.len() == LEVELS as usize);
    }

    /// Stacks that nobody calls cut and that begin where threads do, in percent.
    pub(super) fn complete(&self) -> f64 {
        percent(
            self.rooted.min(self.samples - self.truncated.min(self.samples)),
            self.samples,
        )
    }

    /// Named frames among the language's own. A profiler that has none of them names none.
    pub(super) fn named(&self) -> f64 {
        percent(self.named, self.frames)
    }

    /// Stacks with all twelve functions of a chain by name.
    pub(super) fn whole(&self) -> f64 {
        percent(self.whole, self.samples)
    }

    /// Those and stacks of its beginning, as far as it had come, but without a gap.
    pub(super) fn in_order(&self) -> f64 {
        percent(self.in_order, self.samples)
    }
}

fn percent(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}

fn is_start(frame: &Frame<'_>) -> bool {
    let name = frame.name.split('@').next().unwrap_or_default();
    STARTS.contains(&name) || frame.module.starts_with(C_LIBRARY)
}

/// Chain and level of `Mix$Plain.a1`, `Plain#a1`, `Mix\a1`, `long Mix$Plain.a1(long)`, `a1(unsigned long)`.
fn level(name: &str) -> Option<(u8, u32)> {
    let name = name.split('(').next()?;
    let name = name.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    let (of, level) = name.split_at_checked(1)?;
    let level = level.parse().ok()?;
    ["a", "b"].contains(&of).then_some((of.as_bytes()[0], level))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: &str, frames: &[(&'static str, &'static str, &'static str)]) -> Shown {
        let frames: Vec<Frame<'_>> = frames
            .iter()
            .map(|(kind, module, name)| Frame {
                kind,
                module,
                name,
                is_inlined: false,
            })
            .collect();
        let mut shown = Shown::default();
        shown.take(&frames, 2, kind, "mix-cpp");
        shown
    }

    #[test]
    fn a_level_is_told_by_a_name_in_each_languages_writing() {
        for name in [
            "Mix$Plain.a12",
            "Plain#a12",
            "Mix\\a12",
            "long Mix$Plain.a12(long)",
            "a12(unsigned long)",
            "a12",
        ] {
            assert_eq!(level(name), Some((b'a', 12)), "{name}");
        }
        for name in ["main", "[a12]", "a", "a12_called", "c12", ""] {
            assert_eq!(level(name), None, "{name}");
        }
    }

    #[test]
    fn a_stack_is_complete_where_it_begins_at_a_threads_start() {
        let complete = |frames: &[(&'static str, &'static str, &'static str)]| shown("cpython", frames).complete();
        let python = ("cpython", "mix.py", "a1");
        assert!(complete(&[("native", "python3", "_start"), python]) > 99.0);
        assert!(
            complete(&[
                ("native", "python3", "[python3]"),
                ("native", "libc.so.6", "[libc.so.6]"),
                python
            ]) > 99.0
        );
        assert!(complete(&[python]) < 1.0);
    }

    #[test]
    fn a_chain_is_whole_with_all_its_levels_by_name_in_their_order() {
        let names = [
            "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11", "a12",
        ];
        let frames: Vec<_> = names.iter().map(|name| ("php", "mix.php", *name)).collect();
        let all = shown("php", &frames);
        assert!(all.whole() > 99.0 && all.in_order() > 99.0 && all.named() > 99.0);
        let begun = shown("php", &frames[..5]);
        assert!(begun.whole() < 1.0 && begun.in_order() > 99.0);
        let with_gap = shown("php", &[&frames[..5], &frames[6..]].concat());
        assert!(with_gap.whole() < 1.0 && with_gap.in_order() < 1.0);
        let none = shown("php", &[("native", "php", "main")]);
        assert!(none.whole() < 1.0 && none.in_order() < 1.0 && none.named() < 1.0);
    }

    #[test]
    fn native_frames_count_in_the_programs_own_file_alone() {
        let frames = [
            ("native", "libc.so.6", "[libc.so.6]"),
            ("native", "mix-cpp", "main"),
            ("native", "mix-cpp", "[mix-cpp]"),
        ];
        assert!((shown("native", &frames).named() - 50.0).abs() < 0.1);
    }
}
