//! What is compared in each language, and where the other profiler tells something else by its construction. Each note
//! was verified, as it says itself.

use super::compare::Share;
use crate::bench::languages::Language;

/// The program and how both watch it.
pub(super) fn what(language: Language) -> &'static str {
    match language {
        Language::Python => {
            "a FastAPI service (uvicorn, h11, pydantic, Jinja2, Markdown) under requests; py-spy record, which stops the \
             process for each sample"
        }
        Language::Java => "Lucene indexes and searches texts; async-profiler, event=ctimer",
        Language::Node => "Marked and highlight.js turn texts into pages; --cpu-prof, of which the window is taken",
        Language::Ruby => "kramdown and Rouge turn texts into pages; stackprof, mode cpu",
        Language::Php => "PHP-Parser reads and writes its own sources; Excimer, EXCIMER_CPU",
    }
}

pub(super) fn profiler(language: Language) -> &'static str {
    match language {
        Language::Python => "py-spy",
        Language::Java => "async-profiler",
        Language::Node => "--cpu-prof",
        Language::Ruby => "stackprof",
        Language::Php => "Excimer",
    }
}

/// Whether the other profiler can tell such shares rightly. Where it can't, a program with a known share decides.
pub(super) fn is_judged(language: Language, share: Share) -> bool {
    language != Language::Php || share != Share::Own
}

/// The function whose share `programs/known.*` tells, and which share.
pub(super) fn known(language: Language) -> (&'static str, Share) {
    match language {
        Language::Php => ("straight", Share::Own),
        _ => ("leaf (known.js)", Share::Total),
    }
}

/// Each was seen in what the other one wrote.
pub(super) fn verified(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &[],
        Language::Java => &[
            "async-profiler gives the machine's stubs no mark of Java's, and the agent gives them libjvm as module: neither is compared",
        ],
        Language::Node => &[
            "V8's profiler leaves out a function that is in a routine which loads or stores a property without a frame of its own, with \
             all that was inlined into it, and gives its time to the caller: known.js, whose leaf does little else, shows that. So \
             the agent's stacks are compared without that function too",
            "V8's profiler has no stack of a collection, so that samples in the collector are compared in neither",
            "functions without a name are compared by their file",
        ],
        Language::Ruby => &[
            "stackprof calls blocks as it calls their method, and the agent as Ruby's own traces do: the agent's are compared without `block in`",
            "stackprof has a second frame of the main program, and of a method in C whose callee in C calls it back (each_with_index, each, \
             each_with_index); Ruby's own `caller` has neither, and they are left out",
            "stackprof has no stack of a collection and they are left out; the agent has what was called there, which counts for the method \
             that allocates, since Debian's libruby has no names of the collector's functions",
        ],
        Language::Php => &[
            "Excimer looks where the interpreter looks for interrupts, at calls and jumps back: what runs straight on counts for the function \
             that is called next. known.php shows that, and so its own shares are not judged, but the agent's of known.php are",
            "for the same reason Excimer never sees an internal function as the innermost one: the agent's are folded into what called them",
        ],
    }
}
