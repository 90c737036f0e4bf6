//! Damaged files: no panic, and no more work than the file's size asks for.
