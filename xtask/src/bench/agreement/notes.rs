//! What is compared in each language, and where the other profiler tells something else by its construction. Each note
//! was verified, as it says itself.

use crate::bench::languages::Language;

/// The program and how both watch it.
pub(super) fn what(language: Language) -> &'static str {
    match language {
        Language::Python => {
            "a FastAPI service (uvicorn, h11, pydantic, Jinja2, Markdown) under requests; py-spy record, which stops the \
             process for each sample"
        }
        Language::Java => "Lucene indexes and searches texts; async-profiler, event=ctimer",
        Language::Node => "TypeScript's compiler translates this repository's page; --cpu-prof",
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

pub(super) fn verified(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &[],
        Language::Java => &[],
        Language::Node => &[],
        Language::Ruby => &[],
        Language::Php => &[],
    }
}
