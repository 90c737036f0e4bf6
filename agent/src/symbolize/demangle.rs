//! Names as people write them.

use std::fmt::{self, Write};

/// Longer names are cut: a demangled name can be exponentially longer than the mangled one.
const MAX_BYTES: usize = 4096;
/// How deep the demangler of C++ may go; its own limit would need more stack than a thread has.
const MAX_DEPTH: u32 = 96;

/// Text of bounded length; writing more is an error, which ends the demangler's work.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_BYTES - self.0.len();
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The name in the source's language, without the version that a symbol may carry (`@GLIBC_2.34`), cut at 4 KiB.
pub(super) fn demangle(symbol: &str) -> String {
    let plain = match symbol.find('@') {
        Some(at) if at > 0 => &symbol[..at],
        _ => symbol,
    };
    let mut text = Bounded(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(plain) {
        // Without the hash. An error says that it was cut.
        let _ = write!(text, "{rust:#}");
        return text.0;
    }
    if plain.starts_with("_Z") || plain.starts_with("__Z") {
        let parse = cpp_demangle::ParseOptions::default().recursion_limit(MAX_DEPTH);
        let options = cpp_demangle::DemangleOptions::default().recursion_limit(MAX_DEPTH);
        if let Ok(parsed) = cpp_demangle::Symbol::new_with_options(plain, &parse)
            && (parsed.structured_demangle(&mut text, &options).is_ok() || text.0.len() > MAX_BYTES / 2)
        {
            return text.0;
        }
    }
    plain[..plain.floor_char_boundary(MAX_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_languages() {
        assert_eq!(demangle("_ZN5space3fooEibc"), "space::foo(int, bool, char)");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("__libc_start_main@@GLIBC_2.34"), "__libc_start_main");
        assert_eq!(demangle("main.(*T).Method-fm"), "main.(*T).Method-fm");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
        assert_eq!(demangle("@"), "@");
    }

    #[test]
    fn a_name_that_explodes_is_cut() {
        // Each pair is twice the one before it.
        let mut symbol = String::from("_Z1fSt4pairIiiE");
        for level in 0..30 {
            let last = char::from_digit(level, 36).unwrap().to_ascii_uppercase();
            symbol.push_str(&format!("St4pairIS{last}_S{last}_E"));
        }
        assert!(demangle(&symbol).len() <= MAX_BYTES);
        assert_eq!(demangle(&"x".repeat(1 << 20)).len(), MAX_BYTES);
        assert!(demangle(&format!("_Z{}", "N".repeat(100_000))).len() <= MAX_BYTES);
    }
}
