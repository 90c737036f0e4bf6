//! Links of documents to files of the repository and to headings in them.
//!
//! In: the repository's files. Out: the links that lead nowhere. A heading's anchor is what GitHub makes of it: its
//! text in small letters without punctuation, with hyphens for spaces, and a number from the second of its kind on.

use std::collections::{BTreeMap, BTreeSet};

use super::file::File;

/// Links that lead nowhere. `exists`: whether something has this path from the root; pictures are none of `files`.
pub(super) fn dead(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let documents = || files.iter().filter(|file| file.path.ends_with(".md"));
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        documents().map(|file| (&*file.path, anchors(&file.text))).collect();
    let mut broken = vec![];
    for file in documents() {
        let text = without_code(&file.text);
        for (at, mark) in text.match_indices("](") {
            // A title may follow the target.
            let rest = text[at + mark.len()..].trim_start();
            let target = rest.split([')', ' ', '\n']).next().unwrap_or("");
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if let Some(why) = why_dead(&file.path, target, &anchors, &exists) {
                let line = text[..at].matches('\n').count() + 1;
                broken.push(format!("{}:{line}: ({target}): {why}", file.path));
            }
        }
    }
    broken
}

/// What a link from a document lacks.
fn why_dead(
    from: &str,
    target: &str,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    exists: impl Fn(&str) -> bool,
) -> Option<String> {
    let (to, anchor) = match target.split_once('#') {
        Some((to, anchor)) => (to, Some(anchor)),
        None => (target, None),
    };
    let Some(to) = resolved(from, to) else {
        return Some("it leads out of the repository".to_owned());
    };
    if !exists(&to) {
        return Some(format!("there is no {to}"));
    }
    let anchor = anchor?;
    match anchors.get(&*to) {
        None => Some(format!("{to} is no document with headings")),
        Some(anchors) => (!anchors.contains(anchor)).then(|| format!("{to} has no heading #{anchor}")),
    }
}

/// The path from the root that a document names by its own; without one, itself.
fn resolved(from: &str, to: &str) -> Option<String> {
    if to.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a document's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut times = BTreeMap::<String, u32>::new();
    let mut found = BTreeSet::new();
    for line in without_blocks(text).lines() {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let slug = slug(heading.trim_end_matches('#').trim());
        let before = times.entry(slug.clone()).or_default();
        found.insert(match *before {
            0 => slug,
            before => format!("{slug}-{before}"),
        });
        *before += 1;
    }
    found
}

/// What GitHub makes of a heading. Of a link in it only the text counts.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// A document with its fenced blocks as empty lines.
fn without_blocks(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let begin = line.trim_start();
        let ticks = ['`', '~'].map(|mark| begin.len() - begin.trim_start_matches(mark).len());
        let length = ticks.into_iter().max().unwrap_or_default();
        match fence {
            // As many marks of its kind as it began with end it, or more.
            Some(open) if begin.starts_with(open) => fence = None,
            Some(_) => {}
            // What is told between three backticks on one line begins no block.
            None if length >= 3 && !begin[length..].contains('`') => fence = Some(&begin[..length]),
            None => kept.push_str(line),
        }
        kept.push('\n');
    }
    kept
}

/// A document with its code as blanks, in blocks and between backticks; lines stay where they are.
fn without_code(text: &str) -> String {
    let text = without_blocks(text);
    let paragraphs = text.split("\n\n").map(without_spans);
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// A paragraph without what stands between backticks: as many as a piece of code began with end it.
fn without_spans(paragraph: &str) -> String {
    let mut kept = String::with_capacity(paragraph.len());
    let mut rest = paragraph;
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let ticks = ticks(from);
        let inside = &from[ticks..];
        let Some(end) = end_of_span(inside, ticks) else {
            rest = inside;
            continue;
        };
        kept.extend(inside[..end].chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = &inside[end + ticks..];
    }
    kept.push_str(rest);
    kept
}

/// How many backticks a text begins with.
fn ticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// Where the next run of exactly so many backticks begins.
fn end_of_span(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        at += found;
        let run = ticks(&text[at..]);
        if run == length {
            return Some(at);
        }
        at += run;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::file::only;
    use super::*;

    /// Links of a document in `a/docs`, beside which there is another one.
    fn dead_in(text: &str) -> Vec<String> {
        let mut files = only("a/docs/one.md", text);
        files.extend(only(
            "a/other.md",
            "# Other\n\n## What `it` *costs*: much\n\n## Twice\n## Twice\n",
        ));
        let is_picture = |path: &str| path == "a/docs/picture.png";
        dead(&files, |path| {
            is_picture(path) || files.iter().any(|file| file.path == path)
        })
    }

    #[test]
    fn links_that_lead_somewhere_are_let_pass() {
        let text = "# One\n[a](../other.md), ![b](./picture.png), [c](#one), [two\nlines](../other.md#twice-1)\n\
            [d](https://a.b/none.md#x) [e](mailto:a@b) [f](../other.md \"with a title\")\n\
            [g](../other.md#what-it-costs-much)\n";
        assert_eq!(dead_in(text), Vec::<String>::new());
    }

    #[test]
    fn links_to_no_file_and_to_no_heading_are_dead() {
        let text = "\n[a](none.md)\n[b](../other.md#twice-2) and [c](#two)\n[d](../../../up.md) [e](picture.png#x)\n";
        assert_eq!(
            dead_in(text),
            [
                "a/docs/one.md:2: (none.md): there is no a/docs/none.md",
                "a/docs/one.md:3: (../other.md#twice-2): a/other.md has no heading #twice-2",
                "a/docs/one.md:3: (#two): a/docs/one.md has no heading #two",
                "a/docs/one.md:4: (../../../up.md): it leads out of the repository",
                "a/docs/one.md:4: (picture.png#x): a/docs/picture.png is no document with headings",
            ]
        );
    }

    #[test]
    fn code_has_neither_links_nor_headings() {
        let code =
            "```md\n# In a block\n[a](none.md)\n```\n`[b](none.md)` and ``[`c`](none.md)``, `over\ntwo](none.md)`\n";
        assert_eq!(dead_in(code), Vec::<String>::new());
        assert_eq!(dead_in(&format!("{code}\n~~~~\n```\n~~~~\n[d](none.md)\n")).len(), 1);
        assert_eq!(dead_in(&format!("{code}[e](#in-a-block)\n")).len(), 1);
        // A backtick that nothing ends is no code.
        assert_eq!(dead_in("one ` alone\n[f](none.md)\n\n` more\n").len(), 1);
    }

    #[test]
    fn anchors_are_made_as_github_makes_them() {
        let of = |heading: &str| anchors(&format!("## {heading}\n")).into_iter().collect::<String>();
        assert_eq!(of("Keep a year on 100 GB"), "keep-a-year-on-100-gb");
        assert_eq!(of("`GET /api/v1/top?by=LABEL`"), "get-apiv1topbylabel");
        assert_eq!(of("Who, when – and why? ##"), "who-when--and-why");
        assert_eq!(of("[Linked](a.md#b) snake_case"), "linked-snake_case");
        assert_eq!(of("Größe"), "größe");
        assert_eq!(anchors("#no heading\n####### nor this\n"), BTreeSet::new());
    }
}
