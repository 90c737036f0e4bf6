//! Requests packed with zstd, and the reverse.

/// So that a damaged file cannot ask for all memory.
const LARGEST_REQUEST_BYTES: usize = 256 << 20;

/// Packs requests, one after the other in the same memory: some hundred pages that would be got anew for each.
pub(super) struct Packer(zstd::bulk::Compressor<'static>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self(zstd::bulk::Compressor::new(0)?))
    }

    pub(super) fn pack(&mut self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        self.0.compress(request)
    }
}

/// One request, packed.
pub(super) fn compress(request: &[u8]) -> std::io::Result<Vec<u8>> {
    Packer::new()?.pack(request)
}

/// The reverse of [`compress`]; `None` when the bytes are something else or larger than any request of ours.
pub(super) fn decompress(body: &[u8]) -> Option<Vec<u8>> {
    let size = zstd::zstd_safe::get_frame_content_size(body).ok()??;
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size <= LARGEST_REQUEST_BYTES)?;
    zstd::bulk::decompress(body, size).ok()
}
