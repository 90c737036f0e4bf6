//! Samples whose stack has a frame that is looked for: how a frame is named, which stacks have it, and an accumulator
//! that leaves out the others.

use crate::column::coded::Projection;
use crate::hash::MixState;
use crate::query::ask::question::Question;
use crate::query::ask::unit::Unit;
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::count::stack_counts::StackCounts;
use crate::query::count::weighted::WeightedCounts;
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::blocking;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::columns::codes;
use crate::query::plan::days::Days;
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::plan::shares::counting::Counting;
use crate::query::plan::steps::Steps;
use crate::query::tree::leaves::Leaves;
use crate::query::tree::nodes::{Kind, Name, Shape, Tree};
use crate::query::tree::stack_cache::ONE_TREE;
use crate::query::views::engine::Engine;
use crate::query::views::selected::spread::count_spread;
use crate::store::Snapshot;
use regex::Regex;
use std::collections::HashSet;
use std::sync::Arc;

/// Ids of stacks.
pub(crate) type StackIds = HashSet<i64, MixState>;

/// Most frames of a path that is looked for.
pub const MOST_PATH: usize = 1_024;

/// Which frames are looked for.
#[derive(Debug, Clone)]
pub enum FrameMatch {
    /// Any whose function matches.
    Pattern(Regex),
    /// Those of this function: its namesakes in other modules, or of another kind, are others.
    Frame(Name),
    /// The one place below these frames, from the root on, the last of which it is.
    Path(Vec<Name>),
}

impl FrameMatch {
    /// `KIND,MODULE,FUNCTION`, where a language stands for the kind of what is of one; a backslash stands before a
    /// comma of the module, a semicolon and a backslash.
    pub fn frame(text: &str) -> Result<FrameMatch, String> {
        match <[Name; 1]>::try_from(named(text)?) {
            Ok([name]) => Ok(FrameMatch::Frame(name)),
            Err(_) => Err("more than one frame".to_owned()),
        }
    }

    /// Frames as [`FrameMatch::frame`] reads one, root first, with semicolons between.
    pub fn path(text: &str) -> Result<FrameMatch, String> {
        named(text).map(FrameMatch::Path)
    }

    /// For each node whether it or a node above it is looked for: a sample is then counted once.
    pub(crate) fn reached(&self, tree: &Tree) -> Vec<bool> {
        match self {
            FrameMatch::Pattern(pattern) => {
                tree.reached(|name| name.kind != Kind::Label && pattern.is_match(&name.function))
            }
            FrameMatch::Frame(frame) => tree.reached(|name| name == frame),
            FrameMatch::Path(path) => reached_by(tree, path),
        }
    }

    /// What is looked for, as it is given.
    pub fn text(&self) -> String {
        match self {
            FrameMatch::Pattern(pattern) => pattern.as_str().to_owned(),
            FrameMatch::Frame(name) => frame_text(name),
            FrameMatch::Path(path) => path.iter().map(frame_text).collect::<Vec<_>>().join(";"),
        }
    }
}

/// For each node whether it lies at the end of a path from the root on, or below.
fn reached_by(tree: &Tree, path: &[Name]) -> Vec<bool> {
    // How many frames of the path lead to a node, plus one; 0 where something else does.
    let mut along = vec![0_usize; tree.len()];
    if let Some(root) = along.first_mut() {
        *root = 1;
    }
    for node in 1..tree.len() {
        let above = along[tree.nodes.parent[node] as usize];
        let name = &tree.names.list[tree.nodes.name[node] as usize];
        along[node] = match above.checked_sub(1).map(|at| path.get(at)) {
            // Rows of labels stand above the frames of a stack, and are none.
            _ if name.kind == Kind::Label => above,
            // All of the path lies above it.
            Some(None) => above,
            Some(Some(wanted)) if wanted == name => above + 1,
            _ => 0,
        };
    }
    along.iter().map(|along| *along == path.len() + 1).collect()
}

fn frame_text(Name { function, module, kind }: &Name) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace(';', "\\;");
    let module = escaped(module).replace(',', "\\,");
    format!("{},{module},{}", kind.name(), escaped(function))
}

/// The frames that a text names, each `KIND,MODULE,FUNCTION`.
fn named(text: &str) -> Result<Vec<Name>, String> {
    let mut frames = vec![vec![String::new()]];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == ';' {
            if frames.len() >= MOST_PATH {
                return Err(format!("more than {MOST_PATH} frames"));
            }
            frames.push(vec![String::new()]);
            continue;
        }
        let Some(parts) = frames.last_mut() else { break };
        match c {
            // What follows the second comma is the function, with its commas.
            ',' if parts.len() < 3 => parts.push(String::new()),
            _ => {
                let plain = if c == '\\' {
                    chars.next().ok_or("a backslash at the end")?
                } else {
                    c
                };
                if let Some(part) = parts.last_mut() {
                    part.push(plain);
                }
            }
        }
    }
    frames.into_iter().map(name_of).collect()
}

fn name_of(parts: Vec<String>) -> Result<Name, String> {
    let [kind, module, function] =
        <[String; 3]>::try_from(parts).map_err(|_| "a frame is KIND,MODULE,FUNCTION".to_owned())?;
    let known = Kind::ALL.into_iter().find(|one| one.name() == kind);
    match known.filter(|kind| kind.is_of_stacks()) {
        Some(kind) => Ok(Name {
            function: function.into(),
            module: module.into(),
            kind,
        }),
        None => {
            let known = Kind::ALL.into_iter().filter(|kind| kind.is_of_stacks());
            let known: Vec<&str> = known.map(Kind::name).collect();
            Err(format!("no stack has frames of this kind, but of {}", known.join(", ")))
        }
    }
}

/// Which of the stacks have a frame that is looked for.
pub(crate) fn has_match(leaves: &Leaves, wanted: &FrameMatch) -> Vec<bool> {
    let tree = leaves.tree(&Shape::default(), true);
    let reached = wanted.reached(&tree);
    tree.leaf_of.iter().map(|leaf| reached[*leaf as usize]).collect()
}

/// Stacks of a selection.
pub(crate) struct Matched {
    pub stacks: Arc<StackIds>,
    /// Samples of the whole selection, whatever their stacks.
    pub samples: u64,
    /// The memory that the ids take.
    _held: Reservation,
}

/// The stacks of the selection that have a frame that is looked for.
pub(crate) async fn matching_stacks(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    wanted: FrameMatch,
) -> Result<Matched, QueryError> {
    let selected = scope(snapshot, question).await?;
    let (steps, limit) = (Steps::one(question.window), engine.limits().stacks);
    let windows = vec![(steps, question.except)];
    let (counting, spread) = (Counting::Stacks { windows, limit }, &engine.spread);
    let new = || StackCounts::new(steps, question.except, limit);
    let (counts, held) = count_spread(spread, snapshot, question, &selected, counting, new).await?;
    let WeightedCounts { ids, periods, .. } = counts.weighed(&Unit::time());
    let leaves = engine
        .dictionary(question)
        .leaves(snapshot, &Days::of(question.window), &ids, ONE_TREE)
        .await?;
    let stacks: Arc<StackIds> = blocking(move || {
        let matches = has_match(&leaves, &wanted);
        let found = ids.iter().copied().zip(matches).filter(|(_, is_match)| *is_match);
        Arc::new(found.map(|(id, _)| id).collect())
    })
    .await?;
    held.resize(stacks.capacity() * (size_of::<i64>() + 1))?;
    Ok(Matched {
        stacks,
        samples: periods.samples,
        _held: held,
    })
}

/// Hands on the rows of some stacks.
#[derive(Debug, Clone)]
pub(crate) struct OnlyStacks<C> {
    pub counts: C,
    pub stacks: Arc<StackIds>,
}

impl<C: Accumulator> Accumulator for OnlyStacks<C> {
    fn columns(&self) -> Vec<Projection> {
        let mut columns = self.counts.columns();
        columns.push(codes("stack_id"));
        columns
    }

    fn when(&self) -> TimeResolution {
        self.counts.when()
    }

    fn cuts(&self) -> Vec<i64> {
        self.counts.cuts()
    }

    fn checks_times(&self) -> bool {
        self.counts.checks_times()
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let stack = rows.codes(self.counts.columns().len())?;
        let wanted: Vec<bool> = (0..stack.distinct())
            .map(|code| stack.number(code).is_some_and(|id| self.stacks.contains(&id)))
            .collect();
        if !wanted.contains(&true) {
            return Ok(());
        }
        self.counts.add(&rows.only(&stack.codes.map(&wanted)))
    }

    fn bytes(&self) -> usize {
        self.counts.bytes()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.counts.merge(other.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::tree::nodes::Frame;
    use crate::query::tree::nodes::tests::{build, stacks};

    fn name(kind: Kind, module: &str, function: &str) -> Name {
        Name {
            function: function.into(),
            module: module.into(),
            kind,
        }
    }

    #[test]
    fn frames_are_read_as_they_are_written() {
        let path = vec![
            name(Kind::Native, "a,b;c\\d", "main"),
            name(Kind::Jit, "", "f(int, char*); \\x"),
            name(Kind::Unknown, "m", ""),
        ];
        let text = FrameMatch::Path(path.clone()).text();
        assert!(
            matches!(FrameMatch::path(&text), Ok(FrameMatch::Path(read)) if read == path),
            "{text}"
        );
        let one = FrameMatch::frame("kernel,[kernel],read, or not");
        assert!(matches!(one, Ok(FrameMatch::Frame(read)) if read == name(Kind::Kernel, "[kernel]", "read, or not")));
    }

    #[test]
    fn what_names_no_frame_is_refused() {
        let long = "native,m,f;".repeat(MOST_PATH) + "native,m,f";
        for text in [
            "",
            "main",
            "native,main",
            "root,,all",
            "trimmed,,x",
            "c++,m,f",
            "native,m,f;",
            "native,m,f\\",
            &long,
        ] {
            assert!(FrameMatch::path(text).is_err(), "{text:.20}");
        }
        assert!(FrameMatch::frame("native,m,f;native,m,g").is_err());
    }

    #[test]
    fn a_path_is_one_place_and_a_frame_any_place_of_its_module() {
        let mut input = stacks(&["main;f;g", "main;g", "f;g;g", "main"]);
        let own = [1, 10, 100, 1_000];
        let name = |function: &str| Name {
            function: function.into(),
            ..input.frames[0].name.clone()
        };
        let path = [name("main"), name("f"), name("g")];
        let frame = name("f");
        // Another program's function of the same name.
        let other = Frame {
            name: Name {
                module: "other".into(),
                ..name("f")
            },
            ..(*input.frames[0]).clone()
        };
        input.frames.push(Arc::new(other));
        let mut stack = input.stacks[3].clone();
        stack.frames[0] = input.frames.len() as u32 - 1;
        input.stacks[3] = stack;
        let tree = build(&input, &Shape::default());
        let sum = |reached: Vec<bool>| -> u64 {
            (tree.leaf_of.iter().zip(own))
                .filter(|(leaf, _)| reached[**leaf as usize])
                .map(|(_, own)| own)
                .sum()
        };
        assert_eq!(sum(reached_by(&tree, &path)), 1);
        assert_eq!(sum(reached_by(&tree, &path[..2])), 1);
        assert_eq!(sum(reached_by(&tree, &path[..1])), 11);
        assert_eq!(sum(reached_by(&tree, std::slice::from_ref(&frame))), 100);
        assert_eq!(sum(tree.reached(|name| *name == frame)), 101);
        assert_eq!(sum(tree.reached(|name| *name.function == *"f")), 1_101);
    }
}
