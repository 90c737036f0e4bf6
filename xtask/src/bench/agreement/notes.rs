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

/// Each was seen in what the other one wrote, or in what Ruby itself says.
pub(super) fn verified(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &[],
        Language::Java => &[
            "async-profiler shows the machine's stubs as native code, and the agent as Java's of libjvm: neither is compared",
        ],
        Language::Node => &[
            "V8's profiler leaves out a function while it is in a routine of V8 that loads or stores a property without a \
             frame of its own, and all that was inlined into that function; the caller has its time. known.js shows it. The \
             agent's stacks are compared without that function too",
            "V8's profiler has no stack of a collection: samples in the collector are compared in neither",
            "functions without a name are compared by their file, methods without their class",
        ],
        Language::Ruby => &[
            "stackprof calls blocks as it calls their method, and the agent as Ruby's own traces do: compared without \
             `block in`",
            "stackprof has a second frame of the main program, and of a method in C that C calls back (each_with_index, \
             each, each_with_index); Ruby's own `caller` has neither: left out",
            "stackprof has no stack of a collection; in the agent's it counts for the method that allocates, since Debian's \
             libruby names none of the collector's functions",
        ],
        Language::Php => &[
            "Excimer looks where the interpreter looks for interrupts, at calls and jumps back: what runs straight on counts \
             for the function that is called next. known.php shows it. So self shares are judged there alone",
            "Excimer never sees an internal function as the innermost one: the agent's are folded into what called them",
        ],
    }
}
