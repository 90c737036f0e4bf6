//! Text that is hashed.

/// Adds a string to hashed content, so that no two lists of strings look the same.
pub(crate) fn push_text(content: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    content.extend_from_slice(&(text.len() as u64).to_le_bytes());
    content.extend_from_slice(text);
}
