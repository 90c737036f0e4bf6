//! Which modules of a crate import each other, by their source.
//!
//! In: the text of every Rust file below a crate's `src`. Out: what each module imports, and the circles of that. A
//! path is followed through re-exports to the module that defines what it names, so that a face is part of a circle
//! only for what it defines itself. Tests and what is compiled for fuzzing do not count, nor do words in a macro.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

/// Modules by name, such as `store::log::recover`, and the modules that each imports from.
pub(super) type Imports = BTreeMap<String, BTreeSet<String>>;

/// By module path; the crate's own root is empty.
type Modules = BTreeMap<Vec<String>, Module>;

#[derive(Default)]
struct Module {
    /// Paths that its code names, as they are written.
    paths: BTreeSet<Vec<String>>,
    /// What it passes on under a name of its own, and whence.
    passes_on: BTreeMap<String, Vec<String>>,
}

/// What the modules of one crate import from each other, by its files with their paths below `src`. A file that does
/// not parse has no imports. The crate's root joins everything and is joined by nobody: it is none of them.
pub(super) fn imports<'f>(files: impl Iterator<Item = (&'f str, &'f str)>) -> Imports {
    let mut modules = Modules::new();
    for (path, text) in files {
        let Ok(parsed) = syn::parse_file(text) else { continue };
        let mut reader = Reader(Module::default());
        parsed.items.iter().for_each(|item| reader.visit_item(item));
        modules.insert(module_of(path), reader.0);
    }
    let mut imports = Imports::new();
    for (name, module) in modules.iter().filter(|(name, _)| !name.is_empty()) {
        let found = module.paths.iter().filter_map(|path| target(&modules, name, path));
        let found = found.filter(|found| *found != name && !found.is_empty());
        imports.insert(name.join("::"), found.map(|found| found.join("::")).collect());
    }
    imports
}

/// The modules that a circle of imports joins.
pub(super) fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|name| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![name.as_str()]);
            while let Some(module) = next.pop() {
                let targets = imports[module].iter().map(String::as_str);
                next.extend(targets.filter(|target| seen.insert(*target)));
            }
            (name.as_str(), seen)
        })
        .collect();
    let mut found = BTreeSet::new();
    for name in imports.keys() {
        let circle: Vec<String> = reached[name.as_str()]
            .iter()
            .filter(|other| reached[**other].contains(name.as_str()))
            .map(|module| (*module).to_owned())
            .collect();
        if !circle.is_empty() {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// `store/log/mod.rs` is `store::log`.
fn module_of(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        parts.pop();
    }
    parts
}

/// The module that defines what a path names in a module; none where it leads out of the crate.
fn target<'m>(modules: &'m Modules, within: &[String], path: &[String]) -> Option<&'m Vec<String>> {
    let mut full = absolute(modules, within, path)?;
    // A face may pass on what another face passes on.
    for _ in 0..8 {
        let length = (0..=full.len())
            .rev()
            .find(|length| modules.contains_key(&full[..*length]))?;
        let (name, module) = modules.get_key_value(&full[..length])?;
        let passed = full.get(length).and_then(|item| module.passes_on.get(item));
        let Some(whence) = passed else { return Some(name) };
        let mut next = absolute(modules, name, whence)?;
        next.extend_from_slice(&full[length + 1..]);
        full = next;
    }
    None
}

/// A path from the crate's root on; none where it leads out of the crate.
fn absolute(modules: &Modules, within: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = within.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            base.clear();
            rest = &path[1..];
        }
        "self" | "super" => {
            while let Some(first) = rest.first().filter(|first| ["self", "super"].contains(&first.as_str())) {
                if first == "super" {
                    base.pop()?;
                }
                rest = &rest[1..];
            }
        }
        first => {
            base.push(first.to_owned());
            if !modules.contains_key(&base) {
                return None;
            }
            base.pop();
        }
    }
    base.extend_from_slice(rest);
    Some(base)
}

/// Reads one file.
struct Reader(Module);

impl Reader {
    fn add_use(&mut self, tree: &syn::UseTree, before: &mut Vec<String>, is_passed_on: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_use(&path.tree, before, is_passed_on);
                before.pop();
            }
            syn::UseTree::Name(name) => self.add_leaf(&name.ident, &name.ident, before, is_passed_on),
            syn::UseTree::Rename(rename) => self.add_leaf(&rename.ident, &rename.rename, before, is_passed_on),
            syn::UseTree::Glob(_) => {
                self.0.paths.insert(before.clone());
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, before, is_passed_on);
                }
            }
        }
    }

    fn add_leaf(&mut self, name: &syn::Ident, known_as: &syn::Ident, before: &[String], is_passed_on: bool) {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        if is_passed_on {
            self.0.passes_on.insert(known_as.to_string(), path);
        } else {
            self.0.paths.insert(path);
        }
    }
}

/// Whether an item is compiled for tests or fuzzing alone.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            !condition.contains("not") && (condition.contains("test") || condition.contains("fuzzing"))
        }
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    /// Who may see something is no import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_passed_on = !matches!(item.vis, syn::Visibility::Inherited);
        self.add_use(&item.tree, &mut Vec::new(), is_passed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string());
            self.0.paths.insert(segments.collect());
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_through_faces_and_by_paths_in_code() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod one; mod two; pub use one::One; pub use two::Two;"),
            ("a/one.rs", "use super::Two; pub struct One(Two);"),
            ("a/two.rs", "pub struct Two; fn f() -> u8 { crate::b::g() }"),
            (
                "b.rs",
                "pub fn g() -> u8 { 1 } #[cfg(test)] mod tests { use crate::a::One; }",
            ),
        ];
        assert!(circles(&imports(files.into_iter())).is_empty());
        let closed = files.map(|(path, text)| match path {
            "b.rs" => (path, "use crate::a::One; pub fn g() -> u8 { 1 }"),
            _ => (path, text),
        });
        assert_eq!(circles(&imports(closed.into_iter())), [["a::one", "a::two", "b"]]);
    }
}
