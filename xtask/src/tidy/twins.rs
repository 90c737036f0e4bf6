//! Lists that stand in the agent and in the server, which share no code: both have the same.
//!
//! In: the repository's files. Out: what stands in one of two lists alone, or where one cannot be read.

use std::collections::BTreeSet;

use super::file::File;

/// Where a list is, and what it is called there.
type List = (&'static str, &'static str);

/// The labels that a burst can be of: what the server takes from a selector, and what the agent keeps to.
pub(super) const OF_BURSTS: [List; 2] = [
    ("agent/src/agent/bursts/conditions.rs", "BURST_LABELS"),
    ("server/src/api/bursts/asked.rs", "OF_PROCESSES"),
];

/// What is not the same in both.
pub(super) fn differing(files: &[File], lists: [List; 2]) -> Vec<String> {
    let texts = lists.map(|list| (list, texts_of(files, list)));
    let unread = texts.iter().filter(|(_, texts)| texts.is_none());
    let mut broken: Vec<String> = unread
        .map(|((path, name), _)| format!("{path} has no list {name} of texts that can be read"))
        .collect();
    if let [(one, Some(of_one)), (other, Some(of_other))] = &texts {
        for ((path, name), here, (elsewhere, _)) in [
            (one, of_one.difference(of_other), other),
            (other, of_other.difference(of_one), one),
        ] {
            broken.extend(here.map(|text| format!("{path}: `{text}` of {name} is not in {elsewhere}")));
        }
    }
    broken
}

/// The texts of a constant `[&str; N]`, which may be constants themselves.
fn texts_of(files: &[File], (path, name): List) -> Option<BTreeSet<String>> {
    let text = &files.iter().find(|file| file.path == path)?.text;
    let (_, list) = text.split_once(&format!("const {name}: ["))?;
    let (list, _) = list.split_once("= [")?.1.split_once("];")?;
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    let texts = parts.map(|part| {
        let named = || text.split_once(&format!("const {part}: &str = "))?.1.split_once(';');
        literal(part).or_else(|| literal(named()?.0)).map(str::to_owned)
    });
    texts.collect()
}

fn literal(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [List; 2] = [("a.rs", "HERE"), ("b.rs", "THERE")];

    fn between(one: &str, other: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        differing(&[file("a.rs", one), file("b.rs", other)], BOTH)
    }

    #[test]
    fn both_lists_have_the_same_texts_in_any_order() {
        let one = "const HERE: [&str; 3] = [\n    \"a\",\n    B,\n    \"c.d\",\n];\nconst B: &str = \"b\";\n";
        assert!(between(one, "pub const THERE: [&str; 3] = [\"c.d\", \"a\", \"b\"];").is_empty());
        assert_eq!(
            between(one, "const THERE: [&str; 3] = [\"a\", \"b\", \"e\"];"),
            [
                "a.rs: `c.d` of HERE is not in b.rs",
                "b.rs: `e` of THERE is not in a.rs"
            ]
        );
    }

    #[test]
    fn a_list_that_is_gone_or_made_otherwise_breaks_the_rule() {
        let one = "const HERE: [&str; 1] = [\"a\"];";
        for other in [
            "",
            "const THERE: [&str; 1] = [made()];",
            "static THERE: &[&str] = &[\"a\"];",
        ] {
            assert_eq!(
                between(one, other),
                ["b.rs has no list THERE of texts that can be read"],
                "{other}"
            );
        }
    }
}
