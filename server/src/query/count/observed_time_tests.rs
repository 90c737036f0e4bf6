//! What intervals say of a window and its steps.

use super::*;

const S: i64 = 1_000_000_000;

fn interval(node: &str, number: i64, from_s: i64, until_s: i64, lost: i64) -> Interval {
    let lost = Arc::new(BTreeMap::from([("ring_full".to_owned(), lost)]));
    Interval {
        node: node.into(),
        instance: format!("i-{node}").into(),
        numbers: (number, number),
        from_ns: from_s * S,
        until_ns: until_s * S,
        cpus: 2,
        ticks: Some(
            Ticks {
                idle: 0.25,
                missed: 0.5,
            }
            .of((until_s - from_s) * S),
        ),
        waits_ns: None,
        lost: (lost.clone(), lost),
    }
}

fn steps(from_s: i64, until_s: i64, step_s: i64) -> Steps {
    Steps::of(
        Window {
            from_ns: from_s * S,
            until_ns: until_s * S,
        },
        step_s * S,
    )
}

#[test]
fn coverage_is_cut_to_the_window_and_observed_where_any_node_was_covered() {
    let intervals = vec![
        interval("a", 1, 0, 10, 0),
        interval("a", 2, 10, 20, 0),
        interval("b", 1, 15, 60, 0),
    ];
    let exposure = summarize(intervals, steps(5, 25, 10), None);
    assert_eq!(exposure.nodes, 2);
    // a covers 5 to 20, b 15 to 25: of the steps 5-15 and 15-25.
    assert_eq!(exposure.observed_s, [10.0, 10.0]);
    assert_eq!(exposure.by_node_s, [5.0, 7.5]);
    assert_eq!(exposure.node_share(), Some(0.625));
    assert_eq!(exposure.cpu_s, [20.0, 30.0]);
    assert_eq!(
        (exposure.idle_share(), exposure.missed_share()),
        (Some(0.25), Some(0.5))
    );
    assert!(exposure.gaps.is_empty());
}

#[test]
fn of_waits_the_share_counts_that_those_observed_who_say_so() {
    let told = |waits_s: i64, interval: Interval| Interval {
        waits_ns: Some(waits_s * S),
        ..interval
    };
    let silent = summarize(vec![interval("a", 1, 0, 20, 0)], steps(0, 20, 10), None);
    assert_eq!(silent.waits_share(), None);
    // Half of the first lies in the window; an old agent does not say.
    let intervals = vec![
        told(4, interval("a", 1, 0, 20, 0)),
        told(10, interval("a", 2, 20, 30, 0)),
        interval("b", 1, 10, 30, 0),
    ];
    let exposure = summarize(intervals, steps(10, 30, 10), None);
    assert_eq!(exposure.waits_share(), Some(0.6), "2 and 10 of 20");
}

/// What a chart of a long range says of a window, and what the window's own answer says.
#[test]
fn a_chart_and_its_windows_observe_the_same_where_agents_cover_differently() {
    // Each agent covers a half of the range; b's goes on behind it.
    let intervals = || {
        let a = (0..6).map(|i| interval("a", i + 1, i * 10, i * 10 + 10, 0));
        a.chain((6..30).map(|i| interval("b", i - 5, i * 10, i * 10 + 10, 0)))
    };
    let chart = summarize(intervals().collect(), steps(0, 120, 10), None);
    assert_eq!((chart.nodes, &chart.observed_s), (2, &vec![10.0; 12]));
    for (from, until, nodes) in [(0, 60, 1), (60, 120, 1), (30, 90, 2)] {
        let window = summarize(intervals().collect(), steps(from, until, until - from), None);
        let of_chart: f64 = chart.observed_s[from as usize / 10..until as usize / 10].iter().sum();
        assert_eq!((window.nodes, window.total_s()), (nodes, of_chart), "{from} to {until}");
    }
}

#[test]
fn what_is_still_on_its_way_is_not_observed_and_what_is_gone_is_not_awaited() {
    let late = vec![interval("a", 1, 0, 20, 0), interval("b", 1, 0, 15, 0)];
    // From 10 to 20 there are 15 of 20 seconds of both nodes.
    assert_eq!(summarize(late, steps(0, 20, 10), None).observed_s, [10.0, 7.5]);
    let gone = vec![interval("a", 1, 0, 60, 0), interval("b", 1, 0, 15, 0)];
    assert_eq!(summarize(gone, steps(0, 20, 10), None).observed_s, [10.0, 10.0]);
}

#[test]
fn overlapping_instances_of_a_node_count_once_and_gaps_are_listed() {
    let mut second = interval("a", 1, 8, 12, 0);
    second.instance = "other".into();
    let exposure = summarize(
        vec![interval("a", 7, 0, 10, 0), second, interval("a", 9, 14, 16, 0)],
        steps(0, 20, 20),
        None,
    );
    assert_eq!(exposure.total_s(), 14.0);
    assert_eq!(exposure.gaps, [(12 * S, 14 * S), (16 * S, 20 * S)]);
}

#[test]
fn without_any_account_only_samples_show_that_somebody_was_there() {
    let steps = steps(0, 25, 10);
    let nobody = summarize(Vec::new(), steps, None);
    assert_eq!((nobody.nodes, nobody.total_s()), (0, 0.0));
    assert_eq!((nobody.idle_share(), nobody.missed_share()), (None, None));
    assert_eq!(nobody.clone().with_samples(0, steps).total_s(), 0.0);
    assert_eq!(nobody.with_samples(1, steps).observed_s, [10.0, 10.0, 5.0]);
    let known = summarize(vec![interval("a", 1, 0, 10, 0)], steps, None);
    assert_eq!(known.clone().with_samples(1, steps), known);
}

#[test]
fn what_is_left_out_is_neither_observed_nor_a_gap() {
    let except = Some(Window {
        from_ns: 8 * S,
        until_ns: 12 * S,
    });
    let steps = steps(0, 20, 10);
    let known = summarize(vec![interval("a", 1, 0, 16, 0)], steps, except);
    assert_eq!(known.observed_s, [8.0, 4.0]);
    assert_eq!(known.cpu_s, [16.0, 8.0]);
    assert_eq!(known.gaps, [(16 * S, 20 * S)]);
    let nobody = summarize(Vec::new(), steps, except).with_samples(1, steps);
    assert_eq!((nobody.observed_s, nobody.gaps.len()), (vec![8.0, 8.0], 0));
}

#[test]
fn losses_are_those_of_the_window() {
    let known = vec![
        interval("a", 4, 0, 10, 100),
        interval("a", 5, 10, 20, 103),
        interval("a", 6, 20, 30, 110),
    ];
    assert_eq!(summarize(known, steps(10, 30, 20), None).lost["ring_full"], 10);
    assert_eq!(
        summarize(vec![interval("a", 1, 0, 10, 3)], steps(0, 30, 30), None).lost["ring_full"],
        3
    );
    assert_eq!(
        summarize(vec![interval("a", 5, 0, 10, 3)], steps(0, 30, 30), None).lost["ring_full"],
        0
    );
}
