//! Points in time and windows, as users write them.
//!
//! RFC 3339, Unix milliseconds, or relative to now (`now`, `now-90s`, `now-1h`) in; nanoseconds since the Unix epoch
//! out. The caller says what time it is. Does no I/O.

use crate::clock::DAY_NS;
use crate::query::limits::error::QueryError;
use serde::{Deserialize, Serialize};

const NS_PER_MS: i64 = 1_000_000;
const NS_PER_S: i64 = 1_000_000_000;
/// Longest window that one query may span.
const MAX_WINDOW_DAYS: i64 = 400;
const MAX_WINDOW_NS: i64 = MAX_WINDOW_DAYS * DAY_NS;

const HINT: &str = "a time is RFC 3339 (2026-11-21T08:00:00Z), Unix milliseconds (1795248000000), or now, now-90s, now-15m, now-1h, now-7d";

/// A half-open span of time: `from_ns` belongs to it, `until_ns` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window {
    /// Nanoseconds since the Unix epoch.
    pub from_ns: i64,
    /// Nanoseconds since the Unix epoch, later than `from_ns`.
    pub until_ns: i64,
}

impl Window {
    /// Reads both ends; `names` are the parameters' names, for messages.
    ///
    /// # Errors
    /// `bad_time` when an end cannot be read, when they are not in order, or when they lie too far apart.
    pub fn parse(from: &str, until: &str, names: [&str; 2], now_ns: i64) -> Result<Window, QueryError> {
        let from_ns = parse_instant(from, names[0], now_ns)?;
        let until_ns = parse_instant(until, names[1], now_ns)?;
        if from_ns >= until_ns {
            let order = if from_ns == until_ns {
                "is the same as"
            } else {
                "is after"
            };
            return Err(QueryError::bad_time(
                format!(
                    "`{}` ({}) {order} `{}` ({})",
                    names[0],
                    rfc3339(from_ns),
                    names[1],
                    rfc3339(until_ns)
                ),
                "the window's start has to lie before its end",
            ));
        }
        if until_ns.saturating_sub(from_ns) > MAX_WINDOW_NS {
            return Err(QueryError::bad_time(
                format!("the window spans more than {MAX_WINDOW_DAYS} days"),
                "ask for a shorter one",
            ));
        }
        Ok(Window { from_ns, until_ns })
    }

    /// Its length in nanoseconds.
    pub fn length_ns(&self) -> i64 {
        self.until_ns - self.from_ns
    }

    /// What of a span lies before and behind this window; parts without length are left out.
    pub fn around(&self, (from_ns, until_ns): (i64, i64)) -> impl Iterator<Item = (i64, i64)> + use<> {
        let parts = [
            (from_ns, until_ns.min(self.from_ns)),
            (from_ns.max(self.until_ns), until_ns),
        ];
        parts.into_iter().filter(|(from, until)| from < until)
    }

    /// Start in Unix milliseconds.
    pub fn from_ms(&self) -> i64 {
        self.from_ns.div_euclid(NS_PER_MS)
    }

    /// End in Unix milliseconds.
    pub fn until_ms(&self) -> i64 {
        self.until_ns.div_euclid(NS_PER_MS)
    }
}

/// RFC 3339 text of a time, in UTC, to the millisecond.
pub fn rfc3339(ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(ns).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Reads a duration such as `10s`, `250ms`, `5m`, `1h`, `7d`; nanoseconds, from one millisecond to the longest window.
///
/// # Errors
/// `bad_parameter`, naming the parameter.
pub fn parse_duration(text: &str, name: &str) -> Result<i64, QueryError> {
    let duration = duration_ns(text.trim()).filter(|ns| (NS_PER_MS..=MAX_WINDOW_NS).contains(ns));
    duration.ok_or_else(|| {
        QueryError::bad_parameter(
            format!(
                "`{name}` is no duration of 1ms to {MAX_WINDOW_DAYS}d: `{}`",
                shortened(text)
            ),
            "write such as 500ms, 10s, 5m, 1h or 7d",
        )
    })
}

fn parse_instant(text: &str, name: &str, now_ns: i64) -> Result<i64, QueryError> {
    let text = text.trim();
    let bad = |why: &str| QueryError::bad_time(format!("`{name}` {why}: `{}`", shortened(text)), HINT);
    let ns = if let Some(rest) = text.strip_prefix("now") {
        let rest = rest.trim();
        if rest.is_empty() {
            Some(now_ns)
        } else if let Some(back) = rest.strip_prefix('-') {
            let back = duration_ns(back.trim()).ok_or_else(|| bad("has no duration after now-"))?;
            now_ns.checked_sub(back)
        } else if let Some(ahead) = rest.strip_prefix('+') {
            let ahead = duration_ns(ahead.trim()).ok_or_else(|| bad("has no duration after now+"))?;
            now_ns.checked_add(ahead)
        } else {
            return Err(bad("is no time"));
        }
    } else if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse::<i64>().ok().and_then(|ms| ms.checked_mul(NS_PER_MS))
    } else {
        let time = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| bad("is no time"))?;
        time.timestamp_nanos_opt()
    };
    // Before 1970 nothing was sampled, and past 2262 nanoseconds no longer fit.
    ns.filter(|ns| *ns >= 0)
        .ok_or_else(|| bad("is out of range (1970 to 2262)"))
}

fn duration_ns(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => NS_PER_MS,
        "s" => NS_PER_S,
        "m" => 60 * NS_PER_S,
        "h" => 3_600 * NS_PER_S,
        "d" => DAY_NS,
        "w" => 7 * DAY_NS,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(scale)
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_248_000 * NS_PER_S;

    fn window(from: &str, until: &str) -> Result<Window, String> {
        Window::parse(from, until, ["from", "until"], NOW).map_err(|e| e.to_string())
    }

    #[test]
    fn all_ways_of_writing_a_time_agree() {
        let expected = Window {
            from_ns: NOW - 3_600 * NS_PER_S,
            until_ns: NOW,
        };
        for (from, until) in [
            ("now-1h", "now"),
            ("now-60m", " now "),
            ("1795244400000", "1795248000000"),
            (rfc3339(NOW - 3_600 * NS_PER_S).as_str(), rfc3339(NOW).as_str()),
            ("now - 3600s", "now-0s"),
        ] {
            assert_eq!(window(from, until).unwrap(), expected, "{from} {until}");
        }
        assert_eq!(
            window("2026-11-21T09:00:00.250+01:00", "now+7d").unwrap().from_ms() % 1_000,
            250
        );
    }

    #[test]
    fn the_order_and_the_range_are_checked() {
        assert!(window("now", "now-1h").unwrap_err().contains("is after `until`"));
        assert!(window("now", "now").unwrap_err().contains("is the same as"));
        assert!(window("0", "now").unwrap_err().contains("more than 400 days"));
        assert!(window("now-9999w", "now").unwrap_err().contains("out of range"));
        assert!(
            window("99999999999999999999", "now")
                .unwrap_err()
                .contains("out of range")
        );
        for bad in ["", "yesterday", "now-", "now-1y", "nowish", "-5", "2026-11-21", "now-1"] {
            assert!(window(bad, "now").unwrap_err().contains("`from`"), "{bad}");
        }
    }

    #[test]
    fn durations_are_positive() {
        assert_eq!(parse_duration("250ms", "step").unwrap(), 250 * NS_PER_MS);
        assert!(parse_duration("0s", "step").is_err());
        assert!(parse_duration("10", "step").is_err());
        assert!(parse_duration("99999999999d", "step").is_err());
    }
}
