//! What holds of the files of the spool, which lie on a disk, and of what a server answers.

use std::collections::BTreeMap;

use super::{bursts, encode, send, spool};
use crate::fuzz::Input;

/// What a spool file is refused for is never sent; what is written is read.
pub(crate) fn spool(bytes: &[u8]) {
    spool::check(bytes);
    let mut input = Input(bytes);
    let number = input.number::<2>();
    let request = input.0;
    let unpacked = encode::decompress(request);
    let request = unpacked.as_deref().unwrap_or(request);
    // A batch that another run has left is opened to tell its losses.
    let more = BTreeMap::from([("ring_full", number)]);
    if let Some(closing) = encode::closing(request, number, &more) {
        let again = encode::closing(&closing, number, &BTreeMap::new());
        assert!(again.is_some(), "a closing batch is a request");
    }
}

/// Any status with any body.
pub(crate) fn answer(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (kind, status) = (input.byte(), input.number::<2>());
    send::check(
        status as u16 % 1000,
        kind & 1 != 0,
        (kind & 2 != 0).then_some(7),
        input.0,
    );
    bursts::check_answer(input.0);
}
