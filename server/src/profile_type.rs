//! What a profile's type and its unit may be: the same where profiles are taken in and where they are asked for.

/// Types of time that threads did not run: a sample is a wait, which ended at its time stamp.
pub(crate) const WAITS: [&str; 2] = ["off_cpu", "run_queue"];

/// Longest type, and longest unit, in bytes.
pub(crate) const MAX_BYTES: usize = 128;

/// Types that tell of waits: the waits themselves, and who ended them.
pub(crate) const OF_WAITS: [&str; 3] = ["off_cpu", "run_queue", "wake_up"];

/// Whether samples of a type have the length of a wait.
pub(crate) fn tells_of_waits(kind: &str) -> bool {
    OF_WAITS.contains(&kind)
}

/// In words.
pub(crate) const ALLOWED: &str = "a text of 1 to 128 bytes without control characters, such as cpu or off-cpu";

/// The same of a unit.
pub(crate) const ALLOWED_UNIT: &str = "a text of 1 to 128 bytes without control characters, such as bytes or count";

/// The unit of all types of time: values in other units of time are scaled to it.
pub(crate) const NANOSECONDS: &str = "nanoseconds";

/// The unit of what is only counted.
pub(crate) const COUNT: &str = "count";

/// The unit of sizes.
pub(crate) const BYTES: &str = "bytes";

/// Types that are time to everybody: counts and sizes under their names would be added to time.
const OF_TIME: [&str; 5] = ["cpu", "off_cpu", "run_queue", "wake_up", "wall"];

/// Types are compared and shown, never made a part of a path or a statement: all that can be read and shown on one
/// line is allowed.
pub(crate) fn is_allowed(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Whether a type of this name can only be time.
pub(crate) fn is_of_time(kind: &str) -> bool {
    OF_TIME.contains(&kind)
}

/// How many nanoseconds a unit is; nothing where it is no unit of time. As pprof, OTLP and UCUM write them, and in
/// words.
pub(crate) fn nanoseconds_of(unit: &str) -> Option<i64> {
    Some(match unit {
        NANOSECONDS | "nanosecond" | "nanos" | "ns" => 1,
        // The sign for micro is two characters in Unicode.
        "microseconds" | "microsecond" | "micros" | "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "milliseconds" | "millisecond" | "millis" | "ms" => 1_000_000,
        "seconds" | "second" | "secs" | "sec" | "s" => 1_000_000_000,
        "minutes" | "minute" | "mins" | "min" => 60_000_000_000,
        "hours" | "hour" | "hrs" | "hr" | "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The one name of a unit that is no time: some have several.
pub(crate) fn unit_name(unit: &str) -> &str {
    match unit {
        "" | "1" | COUNT | "counts" => COUNT,
        BYTES | "byte" | "By" | "B" => BYTES,
        _ => unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_shown_on_a_line_is_a_type() {
        let (longest, longer) = ("x".repeat(MAX_BYTES), "x".repeat(MAX_BYTES + 1));
        for allowed in ["cpu", "off-cpu", "process.cpu:µs", "../../etc", "' OR 1=1", &longest] {
            assert!(is_allowed(allowed), "{allowed:?}");
        }
        for not in ["", "a\nb", "a\0", "a\u{85}", &longer] {
            assert!(!is_allowed(not), "{not:?}");
        }
        assert!(ALLOWED.contains(&MAX_BYTES.to_string()));
    }

    #[test]
    fn units_of_time_are_known_by_all_their_names_and_others_are_no_time() {
        for (names, ns) in [
            (&["ns", "nanosecond", "nanoseconds"][..], 1),
            (&["us", "µs", "μs", "microseconds"], 1_000),
            (&["ms", "millisecond", "milliseconds"], 1_000_000),
            (&["s", "sec", "seconds"], 1_000_000_000),
            (&["min", "minutes"], 60_000_000_000),
            (&["h", "hours"], 3_600_000_000_000),
        ] {
            assert!(names.iter().all(|name| nanoseconds_of(name) == Some(ns)), "{names:?}");
        }
        for (unit, name) in [
            ("By", "bytes"),
            ("bytes", "bytes"),
            ("", "count"),
            ("1", "count"),
            ("objects", "objects"),
        ] {
            assert_eq!((nanoseconds_of(unit), unit_name(unit)), (None, name));
        }
    }
}
