//! An object of the data root as the Parquet library reads one.

use crate::store::root::error::RootError;
use crate::store::root::reader::{OpenObject, RangeReader};
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{BufReader, Read};
use std::sync::Arc;

/// An object of which pieces are read where they lie, on the thread that asks for them.
#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    object: Arc<dyn OpenObject>,
    /// What is read at least where the library does not say how much it will need.
    ahead_bytes: usize,
}

impl Pieces {
    pub(crate) fn open(reader: &dyn RangeReader, path: &str, ahead_bytes: usize) -> Result<Self, RootError> {
        let object = reader.open(path)?;
        Ok(Self { object, ahead_bytes })
    }
}

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.object.length()
    }
}

impl ChunkReader for Pieces {
    type T = BufReader<Rest>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let rest = Rest {
            pieces: self.clone(),
            at: start,
        };
        Ok(BufReader::with_capacity(self.ahead_bytes, rest))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let read = self.object.range(start..start.saturating_add(length as u64));
        // Whoever opened it names it in his errors.
        read.map_err(|error| ParquetError::External(error.into_cause()))
    }
}

/// What follows in an object.
#[derive(Debug)]
pub(crate) struct Rest {
    pieces: Pieces,
    at: u64,
}

impl Read for Rest {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let end = self.at.saturating_add(to.len() as u64).min(self.pieces.object.length());
        if end <= self.at {
            return Ok(0);
        }
        let read = self.pieces.object.range(self.at..end);
        let bytes = read.map_err(|error| std::io::Error::other(error.into_cause()))?;
        let (to, _) = to.split_at_mut(bytes.len());
        to.copy_from_slice(&bytes);
        self.at = end;
        Ok(bytes.len())
    }
}
