//! What a profile's type may be: the same where profiles are taken in and where they are asked for.

/// Longest type, in bytes.
pub(crate) const MAX_BYTES: usize = 128;

/// In words.
pub(crate) const ALLOWED: &str = "a text of 1 to 128 bytes without control characters, such as cpu or off-cpu";

/// Types are compared and shown, never made a part of a path or a statement: all that can be read and shown on one line is allowed.
pub(crate) fn is_allowed(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
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
}
