//! An interpreter's or a virtual machine's own C functions between the functions that it runs. Pure.
//!
//! Between two functions of Python stand those of the interpreter that call one from the other. They are part of what
//! they run: what they take is counted to it, unless they are asked for. What such functions do for their callers, at
//! the end of a stack, is no call: it stays.

use crate::query::tree::frame::{Kind, Name};

/// What a frame is to those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A function of this language.
    Language(Kind),
    /// Of the file that has this language's runtime.
    Runtime(Kind),
    /// Neither.
    Other,
}

impl Role {
    pub(crate) fn of(name: &Name) -> Role {
        match name.kind {
            Kind::Native => runtime_of(&name.module).map_or(Role::Other, Role::Runtime),
            kind if kind.language().is_empty() => Role::Other,
            kind => Role::Language(kind),
        }
    }
}

/// Whose runtime a file has, by its base name: a program called by the language's name, with or without a version, or
/// the library.
fn runtime_of(module: &str) -> Option<Kind> {
    let program = |stem: &str| {
        let rest = module.strip_prefix(stem);
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    let library = |stem: &str| {
        let rest = module.strip_prefix("lib").and_then(|module| module.strip_prefix(stem));
        rest.is_some_and(|rest| rest.contains(".so") && !rest.starts_with(|byte: char| byte.is_ascii_alphabetic()))
    };
    Some(match () {
        () if library("jvm") => Kind::Jvm,
        () if program("python") || library("python") => Kind::Cpython,
        () if program("node") || program("nodejs") || library("node") || library("v8") => Kind::V8js,
        () if program("ruby") || library("ruby") => Kind::Ruby,
        () if program("php") || program("php-fpm") || program("php-cgi") || library("php") => Kind::Php,
        () if library("coreclr") => Kind::Dotnet,
        () if module == "beam.smp" => Kind::Beam,
        () if program("perl") || library("perl") => Kind::Perl,
        () => return None,
    })
}

/// The stack without a runtime's frames that lead to one of its language, leaf first as it was given; nothing where it
/// has none. The outermost frame stays: it says where the thread began.
pub(crate) fn folded<T: Copy>(frames: &[T], role: impl Fn(T) -> Role) -> Option<Vec<T>> {
    let mut leads_to = None;
    let mut kept = Vec::new();
    let mut has_folded = false;
    for (depth, frame) in frames.iter().enumerate() {
        let role = role(*frame);
        let is_outermost = depth + 1 == frames.len();
        match role {
            Role::Runtime(kind) if leads_to == Some(kind) && !is_outermost => {
                if !has_folded {
                    has_folded = true;
                    kept = frames[..depth].to_vec();
                }
                continue;
            }
            Role::Language(kind) => leads_to = Some(kind),
            Role::Runtime(_) | Role::Other => leads_to = None,
        }
        if has_folded {
            kept.push(*frame);
        }
    }
    has_folded.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::tree::frame::Frame;

    fn folded_text(stack: &str) -> String {
        let frames: Vec<Name> = stack
            .split(' ')
            .map(|frame| {
                let (kind, module) = frame.split_once(':').unwrap();
                Frame::new(Kind::of_frame(kind), module, "", "f", None).name
            })
            .collect();
        let places: Vec<usize> = (0..frames.len()).collect();
        let kept = folded(&places, |place| Role::of(&frames[place])).unwrap_or(places);
        let words: Vec<&str> = stack.split(' ').collect();
        kept.into_iter().map(|place| words[place]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_leads_to_a_function_of_the_language_is_part_of_it() {
        for (leaf_first, expected) in [
            // Calls between two functions; what the inner one calls stays, and where the thread began.
            (
                "native:libpython3.11.so.1.0 cpython:/a.py native:/usr/bin/python3.11 native:/usr/bin/python3.11 \
                 cpython:/b.py native:/usr/bin/python3.11 native:libc.so.6 native:/usr/bin/python3.11",
                "native:libpython3.11.so.1.0 cpython:/a.py cpython:/b.py native:libc.so.6 native:/usr/bin/python3.11",
            ),
            // A library in C calls back: it stands between them, without the calls on either side.
            (
                "cpython:/a.py native:/usr/lib/libpython3.11.so.1.0 native:_sort.cpython-311.so cpython:/b.py",
                "cpython:/a.py native:_sort.cpython-311.so cpython:/b.py",
            ),
            (
                "jvm:a.jar native:/opt/jdk/lib/server/libjvm.so native:libjli.so native:libc.so.6",
                "jvm:a.jar native:libjli.so native:libc.so.6",
            ),
            // Another language's runtime is no part of it, and neither is a program called alike.
            (
                "cpython:/a.py native:libruby.so.3.1",
                "cpython:/a.py native:libruby.so.3.1",
            ),
            (
                "v8js:/a.js native:node_exporter native:libc.so.6",
                "v8js:/a.js native:node_exporter native:libc.so.6",
            ),
            (
                "v8js:/a.js native:/usr/bin/node native:libnode.so.108 kernel:[kernel] native:libc.so.6",
                "v8js:/a.js kernel:[kernel] native:libc.so.6",
            ),
            (
                "php:/a.php native:php-fpm8.2 native:php-fpm8.2",
                "php:/a.php native:php-fpm8.2",
            ),
            (
                "native:ruby native:ruby native:ruby",
                "native:ruby native:ruby native:ruby",
            ),
            ("cpython:/a.py", "cpython:/a.py"),
        ] {
            assert_eq!(folded_text(leaf_first), expected);
        }
    }
}
