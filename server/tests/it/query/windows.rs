//! A window holds exactly the samples that were sent for it.

use super::*;

type Accept = fn(&str, &Sample) -> bool;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ingested_is_what_is_queried() {
    let from = recent();
    let (server, all) = filled(from).await;
    let cases: [(&str, Accept); 12] = [
        ("{}", |_, _| true),
        ("{service=\"kubelet\"}", |_, s| s.service == "kubelet"),
        ("{service!=\"kubelet\",node=\"a\"}", |node, s| {
            s.service != "kubelet" && node == "a"
        }),
        ("{service=~\"k.*|db\"}", |_, s| s.service != "nginx"),
        ("{node!~\"a\"}", |node, _| node != "a"),
        ("{thread=\"gc\"}", |_, s| s.thread == "gc"),
        ("{tid=\"10070\",cpu=\"1\"}", |_, s| s.tid == 10_070 && s.cpu == 1),
        ("{tgid=~\"100[25]\"}", |_, s| s.tgid == 1_002 || s.tgid == 1_005),
        ("{mode=\"kernel\"}", |_, s| {
            s.stack.rsplit(';').next().unwrap().starts_with("k:")
        }),
        ("{mode=\"user\",thread!=\"main\"}", |_, s| {
            !s.stack.rsplit(';').next().unwrap().starts_with("k:") && s.thread != "main"
        }),
        ("{pod=\"\"}", |_, _| true),
        ("{service=\"nothing\"}", |_, _| false),
    ];
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        for (query, accept) in cases {
            for (since, until) in [(0, 120), (10, 75), (59, 61)] {
                let (begin, end) = (from + since * S, from + until * S);
                let truth = collapsed_truth(
                    all.iter()
                        .filter(|(n, s)| accept(n, s) && s.ts_ns >= begin && s.ts_ns < end)
                        .map(|(_, s)| s),
                );
                let window = [
                    ("query", query),
                    ("from", &ms(begin)),
                    ("until", &ms(end)),
                    ("format", "collapsed"),
                ];
                let answer = collapsed_answer(&server.text("flamegraph", &window).await);
                assert_eq!(answer, truth, "{query} {since} to {until}, committed: {committed}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_across_midnight_finds_both_days() {
    let server = Server::start().await;
    let midnight = recent() / (86_400 * S) * 86_400 * S;
    let mut random = Random(0x5eed);
    let taken = samples(&mut random, midnight - 30 * S, 60, 300);
    let instance = "00000000-0000-4000-8000-00000000000a";
    let (from_ns, until_ns) = (midnight - 30 * S, midnight + 30 * S);
    server
        .ingest(&Batch {
            node: "a",
            instance,
            number: 1,
            from_ns,
            until_ns,
            period_ns: PERIOD_NS,
            missed_ticks: 0,
            samples: taken.clone(),
        })
        .await;
    server.store.flush().await.unwrap();
    for (begin, end) in [(from_ns, until_ns), (from_ns, midnight), (midnight, until_ns)] {
        let window = [
            ("from", &*ms(begin)),
            ("until", &*ms(end)),
            ("query", "{service=~\".+\",tgid=~\".+\"}"),
        ];
        let truth = collapsed_truth(taken.iter().filter(|s| s.ts_ns >= begin && s.ts_ns < end));
        let answer = server
            .text("flamegraph", &[&window[..], &[("format", "collapsed")]].concat())
            .await;
        assert_eq!(collapsed_answer(&answer), truth);
        let graph = server.json("flamegraph", &window).await;
        let seconds = (end - begin) as f64 / S as f64;
        assert_eq!(
            graph["exposure"]["observed_seconds"], seconds,
            "the batch of the day before covers this one too"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_window_and_what_was_left_out_are_the_whole() {
    let from = recent();
    let (server, all) = filled(from).await;
    let times = [0, 120, 55, 70].map(|seconds| ms(from + seconds * S));
    let whole = [("from", &*times[0]), ("until", &times[1])];
    let except = [("except_from", &*times[2]), ("except_until", &times[3])];
    let is_left_out = |sample: &Sample| (from + 55 * S..from + 70 * S).contains(&sample.ts_ns);
    for committed in [false, true] {
        if committed {
            server.store.flush().await.unwrap();
        }
        let asked = [&whole[..], &except, &[("format", "collapsed")]].concat();
        let truth = collapsed_truth(
            all.iter()
                .map(|(_, sample)| sample)
                .filter(|sample| !is_left_out(sample)),
        );
        assert_eq!(collapsed_answer(&server.text("flamegraph", &asked).await), truth);
    }

    let graph = server.json("flamegraph", &[&whole[..], &except].concat()).await;
    assert_eq!(
        graph["except"],
        json!([from / 1_000_000 + 55_000, from / 1_000_000 + 70_000])
    );
    assert_eq!(graph["exposure"]["observed_seconds"], 105.0);
    assert_eq!(graph["exposure"]["gaps"], json!([]));
    // What lies around the window is not left out of it, and is no gap.
    let around = [("except_from", &*times[1]), ("except_until", "now")];
    let graph = server.json("flamegraph", &[&whole[..], &around].concat()).await;
    assert_eq!(
        (&graph["except"], &graph["exposure"]["gaps"]),
        (&json!(null), &json!([]))
    );

    // Side A is the part, side B the rest; and the other way round.
    let inside = all.iter().filter(|(_, sample)| is_left_out(sample)).count();
    let outside = all.len() - inside;
    let part = [("base_from", &*times[2]), ("base_until", &times[3])];
    let part_first = [&whole[..], &except, &part].concat();
    let rest_first = [
        ("from", &*times[2]),
        ("until", &times[3]),
        ("base_from", &times[0]),
        ("base_until", &times[1]),
        ("base_except_from", &times[2]),
        ("base_except_until", &times[3]),
    ];
    for (asked, base, comparison) in [(&part_first[..], inside, outside), (&rest_first, outside, inside)] {
        let answer = server.json("diff", asked).await;
        assert_eq!(
            (&answer["base"]["samples"], &answer["comparison"]["samples"]),
            (&json!(base), &json!(comparison))
        );
        let top = server.json("top", asked).await;
        assert_eq!(
            (&top["base_samples"], &top["samples"]),
            (&json!(base), &json!(comparison))
        );
    }
}
