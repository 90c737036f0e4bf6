//! Sizes as people write them.

/// A number and a unit, such as `256MiB`, `2GiB`; bytes without a unit.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err("give a number with KiB, MiB, GiB or TiB, such as 256MiB".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "the number must be whole and not negative".to_owned())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "that is more than can be counted".to_owned())
}

/// The digits that a text begins with, and what follows them.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}
