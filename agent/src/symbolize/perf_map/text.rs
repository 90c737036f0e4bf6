//! A file that says what code is called, at present, and what it says of a place.

pub(super) const MAX_NAME_BYTES: usize = 512;

/// Fills a buffer from an offset with what there is, at least a byte, and says how much; none at the end, or where it
/// fails.
pub(in crate::symbolize) type ReadSome<'a> = &'a dyn Fn(u64, &mut [u8]) -> Option<usize>;

/// A map's file at present.
#[derive(Clone, Copy)]
pub(in crate::symbolize) struct MapText<'a> {
    pub(in crate::symbolize) read: ReadSome<'a>,
    pub(in crate::symbolize) bytes: u64,
    /// Another number where it is another file.
    pub(in crate::symbolize) inode: u64,
}

/// What code is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::symbolize) struct Named {
    pub(in crate::symbolize) name: Box<str>,
    /// Where a jitdump has lines.
    pub(in crate::symbolize) file: Option<Box<str>>,
    pub(in crate::symbolize) line: u32,
}

/// Fills a buffer as far as the file goes. None at its end, or where it can't be read.
pub(super) fn read_whole(text: MapText<'_>, offset: u64, into: &mut [u8]) -> Option<usize> {
    let mut done = 0;
    while done < into.len() {
        match (text.read)(offset + done as u64, &mut into[done..]) {
            Some(got) if got > 0 => done += got,
            Some(_) => break,
            None => return None,
        }
    }
    (done > 0).then_some(done)
}
