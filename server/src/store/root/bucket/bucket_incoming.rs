//! An object of a bucket that comes piece by piece.

use crate::store::root::bucket::bucket_reader::BucketReader;
use crate::store::root::contract::Incoming;
use crate::store::root::error::RootError;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload, Result, WriteMultipart};
use std::sync::Arc;

/// Larger objects are put in parts: a request has to end within its time.
pub(super) const LARGE_BYTES: usize = 16 << 20;

const PART_BYTES: usize = 8 << 20;

/// Parts that are on their way at the same time.
const PARTS_AT_ONCE: usize = 4;

/// Its pieces are held until there is more than goes in one request; then they go in parts.
#[derive(Debug)]
pub(super) struct BucketIncoming {
    reader: Arc<BucketReader>,
    /// Below the root.
    path: String,
    held: Vec<Bytes>,
    held_bytes: usize,
    upload: Option<WriteMultipart>,
}

impl BucketIncoming {
    /// Sends nothing yet.
    pub(super) fn new(reader: Arc<BucketReader>, path: &str) -> Self {
        Self {
            reader,
            path: path.to_owned(),
            held: Vec::new(),
            held_bytes: 0,
            upload: None,
        }
    }

    fn begin(&self) -> Result<WriteMultipart, RootError> {
        let (objects, at) = (self.reader.objects.clone(), Path::from(self.path.as_str()));
        self.reader.threads.wait(&self.path, async move {
            let upload = objects.put_multipart(&at).await?;
            Ok(WriteMultipart::new_with_chunk_size(upload, PART_BYTES))
        })
    }
}

/// Sends pieces. What was sent before an error is waste that costs: it is removed, if that can be done.
async fn send(mut upload: WriteMultipart, pieces: Vec<Bytes>) -> Result<WriteMultipart> {
    for mut rest in pieces {
        while !rest.is_empty() {
            if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE).await {
                let _ = upload.abort().await;
                return Err(error);
            }
            upload.put(rest.split_to(rest.len().min(PART_BYTES)));
        }
    }
    Ok(upload)
}

impl Incoming for BucketIncoming {
    fn add(&mut self, piece: Bytes) -> Result<(), RootError> {
        self.held_bytes += piece.len();
        self.held.push(piece);
        if self.upload.is_none() && self.held_bytes <= LARGE_BYTES {
            return Ok(());
        }
        let upload = match self.upload.take() {
            Some(upload) => upload,
            None => self.begin()?,
        };
        self.held_bytes = 0;
        let sending = send(upload, std::mem::take(&mut self.held));
        self.upload = Some(self.reader.threads.wait(&self.path, sending)?);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), RootError> {
        if let Some(upload) = self.upload.take() {
            return self.reader.threads.wait(&self.path, upload.finish()).map(drop);
        }
        let whole: PutPayload = std::mem::take(&mut self.held).into_iter().collect();
        let (objects, at) = (self.reader.objects.clone(), Path::from(self.path.as_str()));
        let put = async move { objects.put(&at, whole).await };
        self.reader.threads.wait(&self.path, put).map(drop)
    }
}

impl Drop for BucketIncoming {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            let _ = self.reader.threads.wait(&self.path, upload.abort());
        }
    }
}
