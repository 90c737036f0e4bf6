//! Which version of the store's format a data root has, and which the server understands.

use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What this server writes, and the newest that it reads. Additions that an older server can leave alone do not raise
/// it.
pub(crate) const VERSION: u32 = 1;

/// Where a root says it. A store without this object is of version 1.
pub(crate) const OBJECT: &str = "format.json";

/// A larger object is none of the server's.
const MOST_BYTES: u64 = 64 << 10;

/// A newer server may say more: what is not known here is left alone.
#[derive(Debug, Serialize, Deserialize)]
struct Format {
    version: u32,
    /// The version of the server that wrote the object.
    #[serde(default)]
    product: String,
}

/// Why a server leaves a root alone.
#[derive(Debug)]
pub(crate) enum FormatError {
    /// In words, for whoever starts the server.
    Refused(String),
    /// The object could not be read or written.
    Failed(RootError),
}

/// Refuses a root of a newer format, before anything in it is looked at. Where the root does not say its version, it
/// does afterwards. The root must be locked. Waits for the root.
pub(crate) fn admit(root: &dyn Root) -> Result<(), FormatError> {
    match is_said(root)? {
        true => Ok(()),
        false => say(root),
    }
}

/// Refuses a root of a newer format, and changes nothing. False where the root does not say its version. Waits for the
/// root.
pub(crate) fn is_said(root: &dyn Root) -> Result<bool, FormatError> {
    let reader = root.reader();
    let bytes = match reader.length(OBJECT) {
        Ok(length) if length > MOST_BYTES => {
            let text = format!("{OBJECT} has {length} bytes, at most {MOST_BYTES} are allowed");
            return Err(FormatError::Refused(text));
        }
        Ok(_) => reader.whole(OBJECT).map_err(FormatError::Failed)?,
        Err(RootError::NotFound(_)) => return Ok(false),
        Err(error) => return Err(FormatError::Failed(error)),
    };
    let format: Format = serde_json::from_slice(&bytes).map_err(|error| {
        FormatError::Refused(format!(
            "{OBJECT} does not say the store's format ({error}); if no newer server wrote the store, remove that file"
        ))
    })?;
    if format.version > VERSION {
        let (version, product) = (format.version, format.product);
        return Err(FormatError::Refused(format!(
            "the store has format {version}, written by stakeout-server {product}, and this server knows formats up to \
             {VERSION}; start that version of the server or a later one"
        )));
    }
    Ok(true)
}

fn say(root: &dyn Root) -> Result<(), FormatError> {
    let format = Format {
        version: VERSION,
        product: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let failed = |error| FormatError::Failed(RootError::new(OBJECT, error));
    let text = serde_json::to_vec(&format).map_err(failed)?;
    match root.create(OBJECT, Bytes::from(text)) {
        // Another of several servers was first.
        Err(RootError::Exists(_)) if root.is_shared() => admit(root),
        said => said.map_err(FormatError::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::local::LocalRoot;

    fn refusal(root: &dyn Root) -> String {
        match admit(root) {
            Err(FormatError::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_root_says_its_format_and_a_newer_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = LocalRoot::open(dir.path()).unwrap();
        let _lock = root.lock().unwrap();
        admit(&root).unwrap();
        let said = root.reader().whole(OBJECT).unwrap();
        let format: Format = serde_json::from_slice(&said).unwrap();
        assert_eq!(format.version, VERSION);
        admit(&root).unwrap();
        assert_eq!(root.reader().whole(OBJECT).unwrap(), said, "it is written once");
        let newer = r#"{"version":2,"product":"9.1.0","more":[]}"#;
        root.replace(OBJECT, newer.into()).unwrap();
        let text = refusal(&root);
        assert!(text.contains("format 2") && text.contains("9.1.0"), "{text}");
        assert_eq!(root.reader().whole(OBJECT).unwrap(), newer, "it is left as it was");
        root.replace(OBJECT, "{".into()).unwrap();
        assert!(refusal(&root).contains(OBJECT));
    }
}
