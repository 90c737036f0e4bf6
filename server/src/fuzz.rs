//! What holds of each of the server's decoders whatever it is given: targets for `cargo xtask fuzz`, and for unit
//! tests.
//!
//! In: bytes, as a sender or a person could make them up. A target panics where its decoder does more work, takes
//! more room or says more than it may. No I/O.

use crate::ingest::{About, Decompressor, Encoding, Senders, TimeWindow, convert, json_to_otlp, pprof_to_otlp, read};
use crate::query::selector::Selector;
use crate::query::time::{Window, parse_duration};
use crate::store::FreshSamples;
use crate::{api, query};

/// One decoder, or some that read the same thing.
#[derive(Debug)]
pub struct Target {
    /// As the command line has it.
    pub name: &'static str,
    /// Bytes that it may hold at a time, the input not counted.
    pub memory_bytes: usize,
    /// Panics where something does not hold.
    pub run: fn(&[u8]),
}

const MIB: usize = 1 << 20;
/// What a request may be decompressed to here, and what may be made of it.
const PLAIN_BYTES: usize = MIB;
const ROOM_BYTES: usize = 8 * MIB;
const NOW_NS: i64 = 1_795_248_000_000_000_000;

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "otlp",
        memory_bytes: 64 * MIB,
        run: otlp,
    },
    Target {
        name: "otlp-json",
        memory_bytes: 64 * MIB,
        run: otlp_json,
    },
    Target {
        name: "pprof",
        memory_bytes: 64 * MIB,
        run: pprof,
    },
    Target {
        name: "body",
        memory_bytes: 64 * MIB,
        run: body,
    },
    Target {
        name: "selector",
        memory_bytes: 64 * MIB,
        run: selector,
    },
    Target {
        name: "sql",
        memory_bytes: 128 * MIB,
        run: query::fuzz_sql,
    },
    Target {
        name: "share",
        memory_bytes: 64 * MIB,
        run: query::fuzz_share,
    },
    Target {
        name: "partial",
        memory_bytes: 64 * MIB,
        run: query::fuzz_partial,
    },
    Target {
        name: "time",
        memory_bytes: MIB,
        run: time,
    },
    Target {
        name: "parameters",
        memory_bytes: 64 * MIB,
        run: api::fuzz_parameters,
    },
];

/// A request becomes rows that are as many as its samples, or an error.
fn otlp(bytes: &[u8]) {
    let Ok(request) = read(bytes, ROOM_BYTES) else { return };
    let window = TimeWindow {
        earliest_ns: 0,
        latest_ns: i64::MAX,
        now_ns: NOW_NS,
    };
    let nothing_is_known: crate::ingest::IsKnown<'_> = &|_, _, ids| vec![false; ids.len()];
    let Ok(converted) = convert(&request, None, window, nothing_is_known, &Senders::default()) else {
        return;
    };
    for part in converted.parts {
        let rows: usize = part.rows.samples.iter().map(FreshSamples::num_rows).sum();
        assert_eq!(i64::try_from(rows), Ok(part.samples), "rows of samples");
    }
}

/// What JSON says in protobuf is a request that can be read, and not much longer than it was.
fn otlp_json(bytes: &[u8]) {
    let Ok(wire) = json_to_otlp(bytes) else { return };
    // The shortest text of a number has two characters, and its field eleven bytes at most.
    assert!(
        wire.len() <= 11 * bytes.len() + 16,
        "{} bytes made {}",
        bytes.len(),
        wire.len()
    );
    otlp(&wire);
}

/// So is what is made of a profile.
fn pprof(bytes: &[u8]) {
    let about = About {
        service: "fuzz".to_owned(),
        frame_type: "go",
        ..About::default()
    };
    let Ok(wire) = pprof_to_otlp(bytes, &about, ROOM_BYTES) else {
        return;
    };
    otlp(&wire);
}

/// What is decompressed is never more than was allowed, and the same whatever was decompressed before.
fn body(bytes: &[u8]) {
    let mut used = Decompressor::default();
    for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
        let mut fresh = Decompressor::default();
        let plain = fresh.decompress(bytes, encoding, PLAIN_BYTES).ok();
        assert!(
            plain.is_none_or(|plain| plain.len() <= PLAIN_BYTES),
            "{encoding:?} made too much"
        );
        let again = used.decompress(bytes, encoding, PLAIN_BYTES).ok();
        assert!(plain == again, "{encoding:?} depends on the body before");
    }
}

/// A selector that is written out is read as the same one.
fn selector(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(selector) = Selector::parse(&text) else { return };
    let written = selector.to_string();
    match Selector::parse(&written) {
        Ok(again) => assert_eq!(again.to_string(), written),
        Err(error) => panic!("`{text}` is written as `{written}`, which is refused: {error}"),
    }
}

/// Both ends of a window, a line each, and the first as a duration.
fn time(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (from, until) = text.split_once('\n').unwrap_or((&text, "now"));
    if let Ok(window) = Window::parse(from, until, ["from", "until"], NOW_NS) {
        assert!(0 <= window.from_ns && window.from_ns < window.until_ns);
        let written = [window.from_ms(), window.until_ms()].map(|ms| ms.to_string());
        // Windows within one millisecond cannot be written so.
        if written[0] != written[1] {
            assert!(
                Window::parse(&written[0], &written[1], ["from", "until"], 0).is_ok(),
                "{written:?}"
            );
        }
    }
    if let Ok(ns) = parse_duration(from, "step") {
        assert!(ns >= 1_000_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that a change which breaks a target is not seen by the fuzzer first.
    #[test]
    fn every_target_takes_everything() {
        let texts = [
            "",
            "{service=\"a\\\"b\",node=~\"db-.*\",cpu!=\"\"}",
            "now-1h\nnow",
            "select a::int, case when b then [1, 2][1] end from (select 1 as a) t union all select 2, interval '1' day",
            "2026-11-21T08:00:00Z\n1795248000000",
            "query={}&from=now-1h&base_from=now-2h&match=a%20b&min_share=0.1&by=thread&step=10s&limit=7",
        ];
        for target in TARGETS {
            for bytes in texts.map(str::as_bytes).into_iter().chain([&[0xff; 300][..]]) {
                (target.run)(bytes);
            }
        }
    }
}
