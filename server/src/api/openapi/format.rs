//! Forms in which a tree is answered: the word of each, and what a file of it is.

/// A form of a flamegraph, or of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum TreeFormat {
    Json,
    Svg,
    Collapsed,
    Pprof,
    Speedscope,
}

/// Forms of the tree of one window: all.
pub(super) const OF_FLAMEGRAPH: [TreeFormat; 5] = [
    TreeFormat::Json,
    TreeFormat::Svg,
    TreeFormat::Collapsed,
    TreeFormat::Pprof,
    TreeFormat::Speedscope,
];

/// Forms of a difference.
pub(super) const OF_DIFFERENCE: [TreeFormat; 3] = [TreeFormat::Json, TreeFormat::Svg, TreeFormat::Collapsed];

/// Their words.
pub(super) const FLAMEGRAPH_WORDS: [&str; OF_FLAMEGRAPH.len()] = words(OF_FLAMEGRAPH);
pub(super) const DIFFERENCE_WORDS: [&str; OF_DIFFERENCE.len()] = words(OF_DIFFERENCE);

impl TreeFormat {
    /// As the parameter `format` has it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Svg => "svg",
            Self::Collapsed => "collapsed",
            Self::Pprof => "pprof",
            Self::Speedscope => "speedscope",
        }
    }

    /// None of another word.
    pub(in crate::api) fn of(word: &str) -> Option<Self> {
        OF_FLAMEGRAPH.into_iter().find(|format| format.word() == word)
    }

    /// The content type of a file of it, and how the file's name ends; none of JSON, which is read as it comes.
    pub(in crate::api) const fn file(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Json => return None,
            Self::Svg => ("image/svg+xml", "svg"),
            Self::Collapsed => ("text/plain; charset=utf-8", "collapsed.txt"),
            Self::Pprof => ("application/octet-stream", "pb.gz"),
            Self::Speedscope => ("application/json", "speedscope.json"),
        })
    }
}

const fn words<const N: usize>(formats: [TreeFormat; N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = formats[at].word();
        at += 1;
    }
    words
}
