//! Lets only the holder of the lease write.

use crate::store::root::bucket::lease::Holding;
use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::sync::Arc;

/// Reads go through; a write is refused without the lease, and given up when the lease would end before it.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    pub(super) inner: Arc<dyn ObjectStore>,
    pub(super) holding: Arc<Holding>,
}

impl std::fmt::Display for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guarded({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Guarded {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let put = self.inner.put_opts(location, payload, opts);
        self.holding.while_held(put).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let begun = self.inner.put_multipart_opts(location, opts);
        Ok(Box::new(GuardedUpload {
            inner: self.holding.while_held(begun).await?,
            holding: self.holding.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let holding = self.holding.clone();
        let guarded = locations.map(move |location| holding.until().and(location));
        self.inner.delete_stream(guarded.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let copied = self.inner.copy_opts(from, to, options);
        self.holding.while_held(copied).await
    }
}

#[derive(Debug)]
struct GuardedUpload {
    inner: Box<dyn MultipartUpload>,
    holding: Arc<Holding>,
}

#[async_trait]
impl MultipartUpload for GuardedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, holding) = (self.inner.put_part(data), self.holding.clone());
        Box::pin(async move { holding.while_held(part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let completed = self.inner.complete();
        self.holding.while_held(completed).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
