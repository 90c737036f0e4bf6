//! The agent's stacks in the form that both are compared in.
//!
//! In: the server's answer. Out: a profile of the language's own frames. Does no input or output.

use super::profile::Profile;
use super::theirs::{anonymous, last_word};
use crate::bench::languages::Language;
use crate::bench::stacks::{Frame, Stacks};

/// What V8's collector is called below the function that called for it.
const COLLECTS: [&str; 2] = [
    "v8::internal::Heap::CollectGarbage",
    "v8::internal::Heap::PerformGarbageCollection",
];

/// V8's routines that load and store properties: they work without a frame of their own, and its profiler, which goes
/// from frame to frame, leaves out the function that is in one, with all that was inlined into it.
const FRAMELESS: [&str; 4] = [
    "Builtins_LoadIC",
    "Builtins_KeyedLoadIC",
    "Builtins_StoreIC",
    "Builtins_KeyedStoreIC",
];

pub(super) fn profile(language: Language, stacks: &Stacks) -> Profile {
    let mut profile = Profile::default();
    stacks.each(|frames, samples| take(&mut profile, language, frames, samples));
    profile
}

/// All of the language's frames as they are.
pub(super) fn unchanged(language: Language, stacks: &Stacks) -> Profile {
    let mut profile = Profile::default();
    stacks.each(|frames, samples| {
        let own = frames.iter().filter(|frame| frame.kind == language.kind());
        profile.add(own.map(|frame| name(language, frame)).collect(), samples);
    });
    profile
}

fn take(profile: &mut Profile, language: Language, frames: &[Frame<'_>], samples: u64) {
    let is_own = |frame: &Frame<'_>| frame.kind == language.kind();
    let below = frames.iter().rposition(is_own).map_or(0, |at| at + 1);
    let collects = |frame: &Frame<'_>| COLLECTS.iter().any(|name| frame.name.starts_with(name));
    if language == Language::Node && frames[below..].iter().any(collects) {
        profile.leave_out("in the garbage collector", samples);
        return;
    }
    // Regular expressions have no file in V8's profile, and are not compared.
    let is_compared = |frame: &&Frame<'_>| is_own(frame) && frame.name != "[regexp]";
    let mut own: Vec<&Frame<'_>> = frames[..below].iter().filter(is_compared).collect();
    let innermost = own.last().copied();
    match language {
        Language::Node if is_left_out(&frames[below..]) => while own.pop().is_some_and(|frame| frame.is_inlined) {},
        // The machine's own stubs are native code to the other profiler.
        Language::Java => own.retain(|frame| frame.module != "libjvm.so"),
        // The other profiler looks where the interpreter does: once the internal function has come back.
        Language::Php => {
            while own.last().is_some_and(|frame| !frame.module.ends_with(".php")) {
                own.pop();
            }
        }
        _ => {}
    }
    if own.last().copied() != innermost {
        profile.cut_back += samples;
    }
    let names = own.iter().map(|frame| name(language, frame)).collect();
    profile.add(names, samples);
}

/// Whether the function that called this is one that V8's profiler does not see.
fn is_left_out(below: &[Frame<'_>]) -> bool {
    matches!(below, [leaf] if FRAMELESS.iter().any(|name| leaf.name.starts_with(name)))
}

/// The function's normalised name.
fn name(language: Language, frame: &Frame<'_>) -> String {
    if !frame.is_named() {
        return frame.name.to_owned();
    }
    match language {
        Language::Python => format!("{} ({})", without_module(frame), frame.module),
        Language::Java => frame.name.to_owned(),
        Language::Node => {
            let file = frame.module.rsplit('/').next().unwrap_or_default();
            match frame.name.starts_with("<anonymous>") {
                true => anonymous(file),
                false => format!("{} ({file})", last_word(frame.name)),
            }
        }
        Language::Ruby => match frame
            .name
            .strip_prefix("block ")
            .and_then(|rest| rest.split_once("in "))
        {
            // The other profiler calls the blocks of a method as it calls the method.
            Some((_, method)) if !method.starts_with('<') => method.to_owned(),
            _ => frame.name.to_owned(),
        },
        Language::Php => match frame.name.ends_with("{closure}") {
            true => format!("{{closure}} ({})", frame.module),
            false => frame.name.to_owned(),
        },
    }
}

/// Python's function as its code knows it: the other profiler does not name its module, which is called as its file is.
fn without_module<'a>(frame: &Frame<'a>) -> &'a str {
    let frozen = frame
        .module
        .strip_prefix("<frozen ")
        .and_then(|rest| rest.strip_suffix('>'));
    let file = frame
        .module
        .strip_suffix("/__init__.py")
        .or(frame.module.strip_suffix(".py"));
    let last = frozen
        .or(file.and_then(|file| file.rsplit('/').next()))
        .unwrap_or_default();
    let ends = |module: &str| {
        let inner = frame.name.find(&format!(".{module}.")).map(|at| at + 1);
        let begin = if frame.name.starts_with(&format!("{module}.")) {
            Some(0)
        } else {
            inner
        };
        begin.map(|at| &frame.name[at + module.len() + 1..])
    };
    ends("__main__").or_else(|| ends(last)).unwrap_or(frame.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each with kind, module and name, which has a plus before it where it was inlined.
    fn taken(language: Language, frames: &[(&'static str, &'static str, &'static str)]) -> Profile {
        let frames: Vec<Frame<'_>> = frames
            .iter()
            .map(|(kind, module, name)| Frame {
                kind,
                module,
                name: name.trim_start_matches('+'),
                is_inlined: name.starts_with('+'),
            })
            .collect();
        let mut profile = Profile::default();
        take(&mut profile, language, &frames, 2);
        profile
    }

    fn names(language: Language, frames: &[(&'static str, &'static str, &'static str)]) -> Vec<String> {
        let profile = taken(language, frames);
        profile.stacks.into_keys().next().unwrap_or_default()
    }

    #[test]
    fn only_the_languages_frames_are_compared() {
        let frames = [
            ("native", "python3.11", "main"),
            ("cpython", "shop.py", "<module>"),
            ("native", "libc.so.6", "qsort"),
            ("cpython", "shop.py", "Shop.sell"),
            ("kernel", "[kernel]", "read"),
        ];
        assert_eq!(
            names(Language::Python, &frames),
            ["<module> (shop.py)", "Shop.sell (shop.py)"]
        );
        let of_modules = [
            ("cpython", "shop.py", "__main__.<module>"),
            ("cpython", "json/__init__.py", "json.dumps"),
            ("cpython", "routing.py", "fastapi.routing.run.<locals>.app"),
            ("cpython", "<frozen importlib._bootstrap>", "importlib._bootstrap.find"),
            ("cpython", "<string>", "made"),
        ];
        assert_eq!(
            names(Language::Python, &of_modules),
            [
                "<module> (shop.py)",
                "dumps (json/__init__.py)",
                "run.<locals>.app (routing.py)",
                "find (<frozen importlib._bootstrap>)",
                "made (<string>)",
            ]
        );
        let alone = taken(Language::Python, &frames[..1]);
        assert_eq!(alone.left_out["without a frame of the language"], 2);
    }

    #[test]
    fn what_the_other_profiler_never_shows_is_folded_into_what_called_it() {
        let java = [
            ("jvm", "libjvm.so", "StubRoutines (1)"),
            ("jvm", "org.app", "org.app.Main.main"),
            ("jvm", "libjvm.so", "vtable stub"),
        ];
        assert_eq!(names(Language::Java, &java), ["org.app.Main.main"]);
        let php = [
            ("php", "parse.php", "{main}"),
            ("php", "standard", "array_map"),
            ("php", "Php7.php", "A\\B::A\\{closure}"),
            ("php", "standard", "strlen"),
        ];
        assert_eq!(
            names(Language::Php, &php),
            ["{main}", "array_map", "{closure} (Php7.php)"]
        );
        let ruby = [
            ("ruby", "pages.rb", "<main>"),
            ("ruby", "<cfunc>", "Array#each"),
            ("ruby", "pages.rb", "block (2 levels) in Page#write"),
            ("ruby", "options.rb", "block in <module:Options>"),
        ];
        let told = ["<main>", "Array#each", "Page#write", "block in <module:Options>"];
        assert_eq!(names(Language::Ruby, &ruby), told);
    }

    #[test]
    fn functions_of_javascript_have_their_last_word_and_their_file() {
        let node = [
            ("v8js", "loader", "Module._load"),
            ("v8js", "compile.js", "<anonymous> (compile.js:12)"),
            ("v8js", "typescript.js", "new Scanner"),
            ("v8js", "typescript.js", "scan"),
        ];
        let told = [
            "_load (loader)",
            "<anonymous> (compile.js)",
            "Scanner (typescript.js)",
            "scan (typescript.js)",
        ];
        assert_eq!(names(Language::Node, &node), told);
        let collecting = [
            node[3],
            (
                "native",
                "node",
                "v8::internal::Heap::CollectGarbage(v8::internal::Space)",
            ),
        ];
        assert_eq!(
            taken(Language::Node, &collecting).left_out["in the garbage collector"],
            2
        );
    }
}
