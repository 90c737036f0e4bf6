//! Object store over a local directory whose writes survive a power cut.
//!
//! The library's own local store renames without syncing. Here a write is: temporary file, fsync, link (create) or
//! rename (replace), fsync of the directory. Reading and listing are the library's, which does both on threads of its
//! own.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

const STORE: &str = "local";

/// Who may read and change what is stored: the server's user.
const DIR_MODE: u32 = 0o700;

pub(crate) const FILE_MODE: u32 = 0o600;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct DurableStore {
    inner: Arc<LocalFileSystem>,
    /// Folder for unfinished files, on the same file system.
    staging: PathBuf,
}

impl DurableStore {
    /// `root`: the folder that is `/` of this store, or none for the file system's own. `staging` must exist.
    pub(crate) fn new(root: Option<&FsPath>, staging: PathBuf) -> Result<Self> {
        let inner = match root {
            Some(root) => LocalFileSystem::new_with_prefix(root)?,
            None => LocalFileSystem::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
            staging,
        })
    }
}

impl std::fmt::Display for DurableStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DurableStore({})", self.inner)
    }
}

/// Why a file could not be written, as an object store says it.
pub(crate) fn put_error(path: &str, source: std::io::Error) -> object_store::Error {
    let (path, source) = (path.to_owned(), Box::new(source));
    match source.kind() {
        std::io::ErrorKind::AlreadyExists => object_store::Error::AlreadyExists { path, source },
        _ => object_store::Error::Generic { store: STORE, source },
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(dir: &FsPath) -> std::io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a folder and those above it, each durable.
pub(crate) fn create_dir_durably(dir: &FsPath) -> std::io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let Some(parent) = dir.parent() else { return Ok(()) };
    create_dir_durably(parent)?;
    match fs::DirBuilder::new().mode(DIR_MODE).create(dir) {
        Ok(()) => sync_dir(parent),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes a folder, and all in it, from everybody but its user, where an older server or somebody else left it open.
/// What is not ours stays, and is told.
pub(crate) fn make_private(dir: &FsPath) {
    let is_open = |path: &FsPath| fs::symlink_metadata(path).is_ok_and(|meta| meta.mode() & 0o077 != 0);
    if !dir.is_dir() || !is_open(dir) {
        // Nobody gets to what is in it.
        return;
    }
    let (mut mended, mut failed, mut dirs) = (0_u64, None, vec![dir.to_owned()]);
    let mut mend = |path: &FsPath, mode: u32| {
        if is_open(path) {
            match fs::set_permissions(path, fs::Permissions::from_mode(mode)) {
                Ok(()) => mended += 1,
                Err(error) => failed = Some(format!("{}: {error}", path.display())),
            }
        }
    };
    while let Some(dir) = dirs.pop() {
        mend(&dir, DIR_MODE);
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(entry.path()),
                Ok(kind) if kind.is_file() => mend(&entry.path(), FILE_MODE),
                _ => {}
            }
        }
    }
    if mended > 0 {
        tracing::info!(dir = %dir.display(), mended, "others could read the data directory, or files in it: they can no more");
    }
    if let Some(failed) = failed {
        tracing::warn!(failed, "others can still read parts of the data directory");
    }
}

/// Writes a little to where files are begun, and takes it away again: whether anything can be stored.
pub(crate) fn probe(staging: &FsPath) -> std::io::Result<()> {
    let path = staging.join("probe");
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(&path)?;
    file.write_all(b"probe")?;
    file.sync_all()?;
    drop(file);
    fs::remove_file(&path)
}

/// Whether names can be added to a folder.
pub(crate) fn may_write(dir: &FsPath) -> std::io::Result<()> {
    Ok(rustix::fs::access(
        dir,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    )?)
}

/// Writes a file that is whole and durable when this returns well; `replace`: in place of one that may be there.
pub(crate) fn write_durably(
    staging: &FsPath,
    target: &FsPath,
    payload: &PutPayload,
    replace: bool,
) -> std::io::Result<()> {
    let dir = target
        .parent()
        .ok_or_else(|| std::io::Error::other("a file needs a folder"))?;
    create_dir_durably(dir)?;
    let temporary = staging.join(uuid::Uuid::new_v4().simple().to_string());
    let written = (|| {
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&temporary)?;
        for chunk in payload.iter() {
            file.write_all(chunk)?;
        }
        file.sync_all()?;
        drop(file);
        if replace {
            fs::rename(&temporary, target)
        } else {
            fs::hard_link(&temporary, target)
        }
    })();
    if written.is_err() || !replace {
        // After a link the temporary name is only a second name; after a failure it is waste.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    // After an error here the file is there, and is perhaps lost at a power cut: the caller looks, and writes it again.
    sync_dir(dir)
}

#[async_trait]
impl ObjectStore for DurableStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let replace = match opts.mode {
            PutMode::Overwrite => true,
            PutMode::Create => false,
            PutMode::Update(_) => {
                return Err(object_store::Error::NotSupported {
                    source: "conditional update of a local file".into(),
                });
            }
        };
        let target = self.inner.path_to_filesystem(location)?;
        let staging = self.staging.clone();
        let written = tokio::task::spawn_blocking(move || write_durably(&staging, &target, &payload, replace))
            .await
            .map_err(|source| object_store::Error::JoinError { source })?;
        match written {
            Ok(()) => Ok(PutResult {
                e_tag: None,
                version: None,
            }),
            Err(source) => Err(put_error(location.as_ref(), source)),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(GatheredUpload {
            store: self.clone(),
            location: location.clone(),
            parts: Vec::new(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

/// An upload in parts, kept in memory until it is whole: only checkpoints of the Delta log come this way.
#[derive(Debug)]
struct GatheredUpload {
    store: DurableStore,
    location: Path,
    parts: Vec<PutPayload>,
}

#[async_trait]
impl MultipartUpload for GatheredUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts.push(data);
        Box::pin(std::future::ready(Ok(())))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let payload: PutPayload = std::mem::take(&mut self.parts)
            .into_iter()
            .flat_map(|part| part.into_iter())
            .collect();
        self.store
            .put_opts(&self.location, payload, PutOptions::default())
            .await
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt as _;

    #[tokio::test]
    async fn what_is_stored_is_its_users_alone_and_what_was_open_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("data");
        create_dir_durably(&root).unwrap();
        let store = DurableStore::new(Some(&root), root.clone()).unwrap();
        store.put(&Path::from("a/b/c"), "one".into()).await.unwrap();
        let paths = [root.clone(), root.join("a"), root.join("a/b"), root.join("a/b/c")];
        let modes = || paths.clone().map(|path| fs::metadata(path).unwrap().mode() & 0o777);
        assert_eq!(modes(), [0o700, 0o700, 0o700, 0o600]);
        for path in &paths {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        make_private(&root);
        assert_eq!(modes(), [0o700, 0o700, 0o700, 0o600]);
        probe(&root).and_then(|()| may_write(&root.join("a"))).unwrap();
        assert!(may_write(&root.join("none")).is_err() && probe(&root.join("none")).is_err());
        assert!(!root.join("probe").exists());
    }

    #[tokio::test]
    async fn create_refuses_what_exists_and_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let staging = dir.path().join("tmp");
        fs::create_dir(&staging).unwrap();
        let store = DurableStore::new(Some(dir.path()), staging.clone()).unwrap();
        let path = Path::from("a/b/c");
        let create = || PutOptions {
            mode: PutMode::Create,
            ..Default::default()
        };
        store.put_opts(&path, "one".into(), create()).await.unwrap();
        let again = store.put_opts(&path, "two".into(), create()).await.unwrap_err();
        assert!(matches!(again, object_store::Error::AlreadyExists { .. }), "{again}");
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "one");
        store.put(&path, "three".into()).await.unwrap();
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "three");
        let mut upload = store.put_multipart(&Path::from("parts")).await.unwrap();
        upload.put_part("12".into()).await.unwrap();
        upload.put_part("34".into()).await.unwrap();
        upload.complete().await.unwrap();
        assert_eq!(
            store.get(&Path::from("parts")).await.unwrap().bytes().await.unwrap(),
            "1234"
        );
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
    }
}
