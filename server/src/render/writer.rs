//! An answer as it is written: in pieces, each on the account of queries until it was sent or nobody waits for it any
//! more.

use crate::query::{QueryError, Reservation};
use crate::render::error::RenderError;
use bytes::Bytes;
use std::collections::VecDeque;
use std::{fmt, io};

/// A piece: what a reader holds who takes nothing, and the least that is reserved. Growing by pieces copies nothing.
const PIECE_BYTES: usize = 64 << 10;

/// See the module. Takes bytes and text.
#[derive(Debug)]
pub struct Writer {
    account: Reservation,
    /// For what is made beside the answer while it is written.
    beside_bytes: usize,
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    /// Why no more was taken.
    refused: Option<QueryError>,
}

impl Writer {
    /// Nothing yet; what is written is taken from the account.
    pub fn new(account: Reservation) -> Writer {
        Writer {
            account,
            beside_bytes: 0,
            full: Vec::new(),
            last: Vec::new(),
            refused: None,
        }
    }

    /// Takes room for what is made beside the answer: so many bytes in all until it is finished.
    pub(super) fn beside(&mut self, bytes: usize) -> Result<(), RenderError> {
        self.beside_bytes = bytes;
        let pieces = self.full.len() + usize::from(self.last.capacity() > 0);
        self.reserve(pieces).map_err(|error| RenderError::new("answer", error))
    }

    fn reserve(&mut self, pieces: usize) -> io::Result<()> {
        let bytes = self.beside_bytes.saturating_add(pieces * PIECE_BYTES);
        self.account.resize(bytes).map_err(|refused| {
            let error = io::Error::new(io::ErrorKind::OutOfMemory, refused.to_string());
            self.refused = Some(refused);
            error
        })
    }

    fn turn(&mut self) -> io::Result<()> {
        let has_last = self.last.capacity() > 0;
        self.reserve(self.full.len() + usize::from(has_last) + 1)?;
        let full = std::mem::replace(&mut self.last, Vec::with_capacity(PIECE_BYTES));
        if has_last {
            self.full.push(full);
        }
        Ok(())
    }

    /// What was written; `done`: how writing ended.
    ///
    /// # Errors
    /// Where there was no room, and what went wrong with writing.
    pub fn finish(mut self, done: Result<(), impl fmt::Display>) -> Result<Answer, QueryError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        done.map_err(|error| QueryError::internal("write the answer", error))?;
        self.last.shrink_to_fit();
        if !self.last.is_empty() {
            self.full.push(self.last);
        }
        let account = self.account;
        account.resize(self.full.iter().map(Vec::capacity).sum())?;
        let bytes = self.full.iter().map(Vec::len).sum();
        let pieces = self.full.into_iter().map(|bytes| {
            let _held = account.split(bytes.capacity());
            Bytes::from_owner(Piece { bytes, _held })
        });
        Ok(Answer {
            pieces: pieces.collect(),
            bytes,
        })
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.capacity() == 0 || self.last.len() >= PIECE_BYTES {
            self.turn()?;
        }
        let fitting = bytes.len().min(PIECE_BYTES - self.last.len());
        self.last.extend_from_slice(&bytes[..fitting]);
        Ok(fitting)
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        // Nearly always: many writes are a few bytes.
        if self.last.capacity() > 0 && self.last.len() + bytes.len() <= PIECE_BYTES {
            self.last.extend_from_slice(bytes);
            return Ok(());
        }
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        io::Write::write_all(self, text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// A part of an answer with what it takes.
struct Piece {
    bytes: Vec<u8>,
    _held: Reservation,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer, whole. Its pieces give back what they take when they are dropped.
#[derive(Debug, Default)]
pub struct Answer {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl Answer {
    /// Bytes that are left of it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next piece.
    pub fn take(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.len();
        Some(piece)
    }

    /// The same with `head` instead of the first byte.
    #[must_use]
    pub fn with_head(mut self, head: Vec<u8>) -> Answer {
        if let Some(first) = self.take() {
            let rest = first.slice(1..);
            self.bytes += rest.len();
            self.pieces.push_front(rest);
        }
        self.bytes += head.len();
        self.pieces.push_front(head.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use std::io::Write;
    use std::sync::Arc;

    fn writer(limit_bytes: usize) -> (Arc<dyn MemoryPool>, Writer) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(limit_bytes));
        (pool.clone(), Writer::new(Reservation::of_pool(pool, "answers")))
    }

    #[test]
    fn pieces_are_held_until_each_is_dropped() {
        let (pool, mut to) = writer(1 << 20);
        to.beside(300_000).unwrap();
        let text: Vec<u8> = (0..200_001_u32).map(|at| (at % 251) as u8).collect();
        for part in text.chunks(777) {
            to.write_all(part).unwrap();
        }
        assert!(pool.reserved() >= 500_000);
        let mut answer = to.finish(Ok::<(), RenderError>(())).unwrap();
        assert_eq!((answer.bytes(), pool.reserved()), (text.len(), text.len()));
        let mut read = Vec::new();
        while let Some(piece) = answer.take() {
            read.extend_from_slice(&piece);
            assert!(pool.reserved() >= piece.len());
            drop(piece);
            assert_eq!(pool.reserved(), answer.bytes());
        }
        assert_eq!(read, text);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn what_there_is_no_room_for_is_refused_and_given_back() {
        let (pool, mut to) = writer(256 << 10);
        let done = to
            .write_all(&vec![0; 1 << 20])
            .map_err(|error| RenderError::new("x", error));
        let refused = to.finish(done).unwrap_err();
        assert!(matches!(refused, QueryError::NoMemory { .. }), "{refused}");
        assert_eq!(pool.reserved(), 0);
        let (pool, mut to) = writer(256 << 10);
        assert!(to.beside(1 << 20).is_err());
        assert!(matches!(
            to.finish(Ok::<(), RenderError>(())),
            Err(QueryError::NoMemory { .. })
        ));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn a_head_takes_the_place_of_the_first_byte() {
        let (_, mut to) = writer(1 << 20);
        to.write_all(b"{\"a\":1}").unwrap();
        let mut answer = to
            .finish(Ok::<(), RenderError>(()))
            .unwrap()
            .with_head(b"{\"b\":2,".to_vec());
        assert_eq!(answer.bytes(), 13);
        let read: Vec<u8> = std::iter::from_fn(|| answer.take()).flatten().collect();
        assert_eq!(read, b"{\"b\":2,\"a\":1}");
    }
}
