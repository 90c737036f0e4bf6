//! Holds a program's samples against what is known of it.

use std::collections::BTreeMap;

use stakeout_agent::frames::{Frame, FrameKind};

use super::rows::{ANY, Exclusion, Feature, Row, Truth};
use crate::recording::Seen;

/// Functions that nothing calls, as symbol tables name them.
const STARTS: &[&str] = &[
    "_start",
    "_dl_start_user",
    "_dlstart",
    "start_thread",
    "__clone",
    "clone",
    "__clone3",
    "clone3",
    "_rt0_amd64_linux",
    "_rt0_arm64_linux",
    "runtime.rt0_go",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.mcall",
    "runtime.morestack",
    "runtime.systemstack",
];

/// What was found of one program.
#[derive(Default)]
pub(super) struct Found {
    pub(super) samples: usize,
    /// Without any user frame: the program was being put in place, or taken down.
    pub(super) without_user: usize,
    pub(super) whole: usize,
    pub(super) frames: usize,
    pub(super) named: usize,
    /// Those without a name, by their file.
    pub(super) unnamed: BTreeMap<String, usize>,
    /// Of those in the program's own executable.
    pub(super) own_frames: usize,
    pub(super) own_named: usize,
    /// Samples that the row excludes.
    pub(super) excluded: usize,
    /// Samples with functions that the truth speaks of, and those that agree.
    pub(super) spoken_of: usize,
    pub(super) agree: usize,
    pub(super) shows: usize,
    /// Stacks that are not whole or don't agree, with why and how often.
    pub(super) failing: BTreeMap<String, usize>,
}

/// A share in percent; all of nothing.
pub(super) fn percent(part: usize, all: usize) -> f64 {
    if all == 0 {
        100.0
    } else {
        part as f64 * 100.0 / all as f64
    }
}

/// A sample's user frames, leaf first.
struct UserStack<'a> {
    seen: Seen<'a>,
    frames: Vec<&'a Frame>,
}

impl Found {
    pub(super) fn judge<'a>(row: &Row, truth: &Truth, samples: impl Iterator<Item = Seen<'a>>) -> Self {
        let mut found = Self::default();
        for seen in samples {
            let stack = UserStack {
                seen,
                frames: seen.frames().filter(|frame| frame.kind != FrameKind::Kernel).collect(),
            };
            if stack.frames.is_empty() {
                found.without_user += 1;
            } else {
                found.take(row, truth, &stack);
            }
        }
        found
    }

    fn take(&mut self, row: &Row, truth: &Truth, stack: &UserStack<'_>) {
        let agrees = stack.agrees(truth);
        let whole = match truth {
            // Cut is what it has to be, and it says so.
            Truth::Recursion { .. } => stack.is_whole() || agrees == Some(true),
            Truth::Chains(_) => stack.is_whole(),
        };
        if (!whole || agrees == Some(false)) && row.excludes.is_some_and(|why| stack.is_excluded(why, truth)) {
            self.excluded += 1;
            return;
        }
        self.samples += 1;
        for frame in &stack.frames {
            let named = usize::from(frame.function.is_some());
            let own = usize::from(*frame.module == *stack.seen.process.executable_path);
            self.frames += 1;
            self.named += named;
            if named == 0 {
                let module = frame.module.rsplit('/').next().filter(|name| !name.is_empty());
                *self
                    .unnamed
                    .entry(module.unwrap_or("code made at run time").to_owned())
                    .or_default() += 1;
            }
            self.own_frames += own;
            self.own_named += own * named;
        }
        self.whole += usize::from(whole);
        self.spoken_of += usize::from(agrees.is_some());
        self.agree += usize::from(agrees == Some(true));
        self.shows += usize::from(row.shows.is_some_and(|(feature, _)| stack.shows(feature, truth)));
        if !whole || agrees == Some(false) {
            let why = format!(
                "{}{}{}",
                if whole { "" } else { "not whole, " },
                if agrees == Some(false) { "does not agree, " } else { "" },
                if stack.seen.stack.truncated { "cut: " } else { "" }
            );
            *self.failing.entry(why + &stack.text()).or_default() += 1;
        }
    }
}

impl<'a> UserStack<'a> {
    fn outermost(&self) -> &'a Frame {
        self.frames[self.frames.len() - 1]
    }

    /// Not cut, and its last frame is a start by its name. Where that has no symbol: the walk ended as at a root, in
    /// the C library, in the loader, or above `main` or what calls it.
    fn is_whole(&self) -> bool {
        let outermost = self.outermost();
        !self.seen.stack.truncated
            && match outermost.function.as_deref() {
                Some(name) if STARTS.contains(&plain(name)) => true,
                _ => {
                    is_loader_or_libc(&outermost.module)
                        || self.names().any(|name| ["main", "__libc_start_main"].contains(&name))
                }
            }
    }

    fn is_excluded(&self, why: Exclusion, truth: &Truth) -> bool {
        match (why, truth) {
            (Exclusion::InsideMusl, Truth::Chains(chains)) => {
                let last = self.ended_at();
                self.seen.stack.truncated && chains.iter().flatten().all(|own| own != last)
            }
            (Exclusion::InstallsContext, _) => {
                let names: Vec<&str> = self.names().take(2).collect();
                let unwinder = ["_Unwind_Resume", "_Unwind_RaiseException"];
                self.frames[0].module.contains("/libgcc_s.") && names.iter().any(|name| unwinder.contains(name))
            }
            (Exclusion::OtherStack, _) => {
                let last = self.ended_at();
                self.seen.stack.truncated && ["runtime.asmcgocall", "runtime.cgocallback"].contains(&last)
            }
            _ => false,
        }
    }

    /// Where the walk ended: of a cut stack the frame below the mark.
    fn ended_at(&self) -> &'a str {
        let cut = self.names().position(|name| name == "[cut]");
        let last = cut.map_or(self.frames.len(), |at| at.max(1)) - 1;
        plain(self.frames[last].function.as_deref().unwrap_or("?"))
    }

    /// None where the truth says nothing of this stack.
    fn agrees(&self, truth: &Truth) -> Option<bool> {
        match truth {
            Truth::Chains(chains) => {
                let matches = chains.iter().map(|chain| self.matches(chain, chains));
                let matches: Vec<Option<bool>> = matches.collect();
                matches[..].iter().flatten().next()?;
                Some(matches.contains(&Some(true)))
            }
            Truth::Recursion { function } => {
                let own = self.names().filter(|name| *name == *function).count();
                (own > 0).then(|| {
                    let cut = self.seen.stack.truncated;
                    // The walked stack's leaf and root, with a frame between that stands for the rest.
                    let rest = self.names().filter(|name| name.starts_with("[… ")).count();
                    let is_rooted = self.names().rev().take(5).any(|name| name == "main");
                    cut && rest == 1 && is_rooted && self.frames.len() <= 1025 && own >= 1000 || !cut && self.is_whole()
                })
            }
        }
    }

    /// True where the functions that `chains` speak of are the beginning of `chain`, from the outermost on.
    fn matches(&self, chain: &[String], chains: &[Vec<String>]) -> Option<bool> {
        let known = |name: &&str| *name != ANY && chains.iter().flatten().any(|known| known == name);
        let places: Vec<(usize, &str)> = self.names().rev().enumerate().filter(|(_, name)| known(name)).collect();
        if places.is_empty() {
            return None;
        }
        let (mut expected, mut before, mut gap) = (chain.iter(), None, true);
        for (place, name) in places {
            let mut next = expected.next();
            if next.is_some_and(|next| next == ANY) {
                gap = true;
                next = expected.next();
            }
            let adjacent = gap || before.is_some_and(|before| before + 1 == place);
            if next.is_none_or(|next| next != name) || !adjacent {
                return Some(false);
            }
            (before, gap) = (Some(place), false);
        }
        Some(true)
    }

    fn shows(&self, feature: Feature, truth: &Truth) -> bool {
        match feature {
            Feature::Complete => match truth {
                Truth::Chains(chains) => chains.iter().any(|chain| {
                    let innermost = chain.last().unwrap();
                    self.names().any(|name| name == innermost) && self.matches(chain, chains) == Some(true)
                }),
                _ => false,
            },
            Feature::KernelAndUser => self.seen.in_kernel(),
            Feature::Vdso => self.frames.iter().any(|frame| &*frame.module == "[vdso]"),
            Feature::NamedJit => {
                let is_made = |kind| matches!(kind, FrameKind::Jit | FrameKind::Interpreted("v8js"));
                let mut jit = self.frames.iter().filter(|frame| is_made(frame.kind));
                jit.any(|frame| {
                    let name = frame.function.as_deref().unwrap_or_default();
                    ["burnInScript", "callBurn"].iter().any(|own| name.contains(own))
                })
            }
            Feature::Truncated => self.seen.stack.truncated,
        }
    }

    fn names(&self) -> impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator {
        self.frames
            .iter()
            .map(|frame| plain(frame.function.as_deref().unwrap_or("?")))
    }

    /// For a reader, outermost last; of long stacks the ends.
    fn text(&self) -> String {
        let show = |frame: &&Frame| match &frame.function {
            Some(name) => plain(name).to_owned(),
            None => {
                let file = frame.module.rsplit('/').next().unwrap_or_default();
                match frame.kind {
                    FrameKind::Jit => "(made at run time)".into(),
                    _ => format!("{file}+{:x}", frame.offset.unwrap_or(0)),
                }
            }
        };
        let frames: Vec<String> = self.frames.iter().map(show).collect();
        let kernel = if self.seen.in_kernel() { "kernel < " } else { "" };
        match frames.len() {
            0..=14 => format!("{kernel}{}", frames.join(" < ")),
            all => format!(
                "{kernel}{} < ({} more) < {}",
                frames[..9].join(" < "),
                all - 14,
                frames[all - 5..].join(" < ")
            ),
        }
    }
}

/// Without arguments, Rust's hash, symbol versions, and what the compiler adds for parts of functions.
fn plain(name: &str) -> &str {
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let name = name.strip_suffix(".abi0").unwrap_or(name);
    let name = name.split_once(".cold").map_or(name, |(name, _)| name);
    match name.rsplit_once("::h") {
        Some((plain, hash)) if hash.len() == 16 => plain,
        _ => name,
    }
}

fn is_loader_or_libc(module: &str) -> bool {
    let file = module.rsplit('/').next().unwrap_or_default();
    ["ld-", "libc.so", "libc-", "libpthread"]
        .iter()
        .any(|start| file.starts_with(start))
}
