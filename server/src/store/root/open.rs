//! Finds the data root that a person named.

use crate::store::root::bucket::BucketRoot;
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use crate::store::root::local::LocalRoot;
use std::path::Path;
use std::sync::Arc;

/// Why a root cannot be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// A URL of a place that the server cannot use.
    Unsupported { url: String },
    /// The error's object is the root itself.
    Failed(RootError),
}

/// Opens a folder, or what a URL names, creating a folder where it is missing. Waits for the disk. `is_shared` makes it
/// one of several servers.
pub(crate) fn open_as(place: &Path, is_shared: bool) -> Result<Arc<dyn Root>, OpenError> {
    named(place, LocalRoot::open, is_shared)
}

/// As [`open_as`], for one process alone.
pub(crate) fn open(place: &Path) -> Result<Arc<dyn Root>, OpenError> {
    open_as(place, false)
}

/// Opens a folder that is there, or what a URL names, for whoever only reads. Makes and changes nothing.
pub(crate) fn open_to_read(place: &Path) -> Result<Arc<dyn Root>, OpenError> {
    named(place, LocalRoot::existing, false)
}

fn named(
    place: &Path,
    local: fn(&Path) -> Result<LocalRoot, RootError>,
    is_shared: bool,
) -> Result<Arc<dyn Root>, OpenError> {
    let text = place.to_string_lossy();
    if let Some((scheme, _)) = text.split_once("://") {
        let url = url::Url::parse(&text);
        if let Some(url) = url.as_ref().ok().filter(|_| BucketRoot::knows(scheme)) {
            let root = BucketRoot::open(url).map_err(OpenError::Failed)?;
            return Ok(match is_shared {
                true => Arc::new(root.shared()),
                false => Arc::new(root),
            });
        }
        let url = url.ok().filter(|_| scheme == "file");
        return match url.and_then(|url| url.to_file_path().ok()) {
            Some(path) => named(&path, local, is_shared),
            // A URL that was not understood may hold a password.
            None => Err(OpenError::Unsupported {
                url: format!("{scheme}://…"),
            }),
        };
    }
    let root = local(place).map_err(OpenError::Failed)?;
    Ok(match is_shared {
        true => Arc::new(root.shared()),
        false => Arc::new(root),
    })
}
