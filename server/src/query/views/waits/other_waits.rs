//! Waits of the same threads that a question leaves out: who ended one of them ended none that was told later.
//!
//! In: selected samples of waits by thread, and all samples of waits of these nodes. Out: of each selected sample that
//! has others of its thread between it and the selected one before, when the last of these was. So a waking is not
//! taken for the end of a later wait that was as long by chance.

use crate::column::coded::{CodedColumn, Projection};
use crate::hash::MixState;
use crate::label::Label;
use crate::query::ask::question::Question;
use crate::query::ask::time::Window;
use crate::query::ask::unit::Unit;
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::columns::{TIMES, codes};
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::scope::scope;
use crate::query::views::selected::count_selected;
use crate::query::views::waits::of_series::{ASLEEP, of_type};
use crate::store::Snapshot;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Selected samples by node and thread.
pub(super) trait Selected: Debug + Send + Sync + 'static {
    /// The samples of one thread.
    type OfThread;

    /// Those of a node, by the ids of its threads.
    fn of_node(&self, node: &str) -> Option<&HashMap<i64, Self::OfThread, MixState>>;

    /// The number of a thread's first sample behind a moment; none where one is of that moment.
    fn first_behind(&self, of_thread: &Self::OfThread, ts_ns: i64) -> Option<u32>;
}

/// When the last sample that is not selected was before each one that is, by its number. Most have none.
#[derive(Debug, Default)]
pub(super) struct OtherWaits(HashMap<u32, i64, MixState>);

impl OtherWaits {
    fn take(&mut self, sample: u32, ts_ns: i64) {
        let known = self.0.entry(sample).or_insert(ts_ns);
        *known = ts_ns.max(*known);
    }

    /// Whether all of them were told before a waking of the thread whose next sample of those selected this is.
    pub(super) fn are_before(&self, sample: u32, woken_ns: i64) -> bool {
        self.0.get(&sample).is_none_or(|told_ns| *told_ns < woken_ns)
    }
}

/// Finds them.
#[derive(Debug)]
struct Others<S> {
    selected: Arc<S>,
    found: OtherWaits,
}

impl<S: Selected> Accumulator for Others<S> {
    fn columns(&self) -> Vec<Projection> {
        vec![codes("node"), codes("tid"), TIMES]
    }

    fn when(&self) -> TimeResolution {
        TimeResolution::Exact
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let selected = self.selected.clone();
        let [node, tid] = [rows.codes(0)?, rows.codes(1)?];
        let of_nodes: Vec<_> = (0..node.distinct())
            .map(|code| selected.of_node(&node.text(code)))
            .collect();
        for (row, ts_ns) in rows.numbers(2)?.iter().enumerate() {
            let number = |codes: &CodedColumn| codes.number(codes.codes.at(row) as usize);
            let of_node = of_nodes[node.codes.at(row) as usize];
            let of_thread = of_node.zip(number(tid)).and_then(|(threads, tid)| threads.get(&tid));
            let behind = of_thread.and_then(|of_thread| selected.first_behind(of_thread, *ts_ns));
            if let Some(sample) = behind {
                self.found.take(sample, *ts_ns);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.found.0.capacity() * (size_of::<(u32, i64)>() + 1)
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        for (sample, ts_ns) in other.found.0 {
            self.found.take(sample, ts_ns);
        }
        Ok(())
    }
}

/// The part of a span in which samples can be that a question about waits leaves out. Where it selects all waits of its
/// nodes, they are before its window.
pub(super) fn where_others_are(question: &Question, (from_ns, until_ns): (i64, i64)) -> Option<Window> {
    let Question {
        selector, except, unit, ..
    } = question;
    let selects_all = selector.matchers().iter().all(|matcher| matcher.label() == Label::Node)
        && except.is_none()
        && unit.as_ref().is_none_or(Unit::is_time)
        && question.values.is_all()
        && question.lengths.is_all();
    let until_ns = if selects_all {
        until_ns.min(question.window.from_ns)
    } else {
        until_ns
    };
    (from_ns < until_ns).then_some(Window { from_ns, until_ns })
}

/// Looks for them in a part of the time in which those are looked for who ended the selected waits: `asked` is the
/// question about these.
pub(super) async fn other_waits<S: Selected>(
    snapshot: &Snapshot,
    asked: &Question,
    within: Option<Window>,
    selected: &Arc<S>,
) -> Result<(Arc<OtherWaits>, Option<Reservation>), QueryError> {
    let Some(window) = within else {
        return Ok((Arc::default(), None));
    };
    let all = Question {
        window,
        ..of_type(asked, ASLEEP)
    };
    let of_all = scope(snapshot, &all).await?;
    let new = || Others {
        selected: selected.clone(),
        found: OtherWaits::default(),
    };
    let (others, held) = count_selected(snapshot, &all, &of_all, new).await?;
    Ok((Arc::new(others.found), Some(held)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::coded::{Column, Values};
    use crate::query::ask::question::{RuntimeFrames, ValueRange};
    use crate::query::ask::selector::Selector;

    /// Times of selected samples, by node and thread; a sample's number is its place.
    #[derive(Debug)]
    struct Times(HashMap<i64, Vec<(i64, u32)>, MixState>);

    impl Selected for Times {
        type OfThread = Vec<(i64, u32)>;

        fn of_node(&self, node: &str) -> Option<&HashMap<i64, Self::OfThread, MixState>> {
            (node == "a").then_some(&self.0)
        }

        fn first_behind(&self, of_thread: &Self::OfThread, ts_ns: i64) -> Option<u32> {
            if of_thread.iter().any(|(at_ns, _)| *at_ns == ts_ns) {
                return None;
            }
            let behind = of_thread.iter().find(|(at_ns, _)| *at_ns > ts_ns)?;
            Some(behind.1)
        }
    }

    #[test]
    fn who_selects_all_waits_of_a_window_leaves_out_those_before_it() {
        let (window, span) = (
            Window {
                from_ns: 100,
                until_ns: 200,
            },
            (40, 180),
        );
        let of = |selector: &str| Question {
            profile: ASLEEP.to_owned(),
            selector: Selector::parse(selector).unwrap(),
            window,
            except: None,
            unit: None,
            runtime_frames: RuntimeFrames::default(),
            values: ValueRange::default(),
            lengths: ValueRange::default(),
        };
        let are = |question: &Question, span| {
            where_others_are(question, span).map(|Window { from_ns, until_ns }| (from_ns, until_ns))
        };
        for selector in ["", "{node=\"a\"}"] {
            assert_eq!(are(&of(selector), span), Some((40, 100)), "{selector}");
            assert_eq!(are(&of(selector), (100, 180)), None, "{selector}");
        }
        let length = ValueRange {
            least: 5,
            ..ValueRange::default()
        };
        let in_part = [
            of("{node=\"a\",service=\"shop\"}"),
            Question {
                lengths: length,
                ..of("")
            },
            Question {
                values: length,
                ..of("")
            },
            Question {
                except: Some(window),
                ..of("")
            },
            Question {
                unit: Some(Unit::named("bytes")),
                ..of("")
            },
        ];
        for question in in_part {
            assert_eq!(are(&question, span), Some((40, 180)), "{question:?}");
            assert_eq!(are(&question, (180, 180)), None);
        }
    }

    #[test]
    fn what_was_told_right_before_a_selected_sample_is_remembered() {
        let threads = [(7, vec![(100, 0), (500, 1)]), (8, vec![(300, 2)])];
        let selected = Arc::new(Times(threads.into_iter().collect()));
        let others_of = |told: &[(&str, i64, i64)]| {
            let mut others = Others {
                selected: selected.clone(),
                found: OtherWaits::default(),
            };
            let names = ["a", "b"];
            let of_name = |(node, ..): &(&str, i64, i64)| u32::from(*node == "b");
            let node = CodedColumn {
                codes: told.iter().map(of_name).collect::<Vec<u32>>().into(),
                values: Values::Texts(names.map(str::to_owned).into()),
            };
            let tid = CodedColumn::of_numbers(told.iter().map(|(_, tid, _)| Some(*tid)));
            let times = told.iter().map(|(.., at_ns)| *at_ns).collect();
            let columns = vec![Column::Codes(node), Column::Codes(tid), Column::Numbers(times)];
            others.add(&Rows::new(columns, None)).unwrap();
            others
        };
        // All samples of both threads, in two parts; the same id of another node is another thread.
        let mut one = others_of(&[("a", 7, 100), ("a", 7, 200), ("a", 8, 300), ("b", 8, 250)]);
        let other = others_of(&[("a", 7, 150), ("a", 7, 500), ("a", 7, 600), ("a", 9, 450)]);
        one.merge(other).unwrap();
        let found: Vec<(u32, i64)> = one.found.0.iter().map(|(sample, ts_ns)| (*sample, *ts_ns)).collect();
        assert_eq!(found, [(1, 200)]);
        // Woken up to then it was another wait that ended.
        let are_before = |sample, woken_ns| one.found.are_before(sample, woken_ns);
        assert_eq!([199, 200, 201].map(|ns| are_before(1, ns)), [false, false, true]);
        assert_eq!([0, 2].map(|sample| are_before(sample, 1)), [true, true]);
    }
}
