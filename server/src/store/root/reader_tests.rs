//! What every reader of the data root does, and that each one does it.

use crate::store::root::bucket::BucketRoot;
use crate::store::root::contract::Root as _;
use crate::store::root::durable::DurableStore;
use crate::store::root::error::RootError;
use crate::store::root::in_memory::InMemory;
use crate::store::root::local_reader::LocalReader;
use crate::store::root::reader::RangeReader;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) const CONTENT: &str = "0123456789";

/// With an object `a/b` that has [`CONTENT`], and no other.
pub(super) fn keeps_the_contract(reader: &dyn RangeReader) {
    let ranges = [7..10, 0..2, 3..4, 5..5];
    assert_eq!(reader.ranges("a/b", &ranges).unwrap(), ["789", "01", "3", ""]);
    assert_eq!(
        (reader.length("a/b").unwrap(), reader.whole("a/b").unwrap()),
        (10, CONTENT.into())
    );
    let digest = reader.digest("a/b").unwrap();
    assert_eq!(
        (digest.bytes, digest.hash),
        (10, xxhash_rust::xxh3::xxh3_64(CONTENT.as_bytes()))
    );
    let mut whole = Vec::new();
    let read = reader.pieces("a/b", &mut |piece| {
        whole.extend_from_slice(&piece);
        Ok(())
    });
    read.unwrap();
    assert_eq!(whole, CONTENT.as_bytes());
    let stopped = reader.pieces("a/b", &mut |_| Err(RootError::new("x", "enough")));
    assert_eq!(stopped.unwrap_err().to_string(), "x: enough");
    assert!(reader.name_of("a/b").ends_with("a/b"));
    let cut = reader.ranges("a/b", &[0..2, 5..11]).unwrap_err();
    assert!(matches!(cut, RootError::Other(_)), "{cut:?}");
    assert!(
        cut.to_string().starts_with("a/b: ") && cut.to_string().contains("ends at 10"),
        "{cut}"
    );
    let open = reader.open("a/b").unwrap();
    assert_eq!((open.length(), open.range(7..10).unwrap()), (10, "789".into()));
    let cut = open.range(5..11).unwrap_err();
    assert!(
        cut.to_string().starts_with("a/b: ") && cut.to_string().contains("ends at 10"),
        "{cut}"
    );
    let missing = [
        reader.open("a/c").map(drop).unwrap_err(),
        reader.ranges("a/c", &ranges).unwrap_err(),
        reader.length("a/c").unwrap_err(),
        reader.digest("a/c").unwrap_err(),
        reader.pieces("a/c", &mut |_| Ok(())).unwrap_err(),
    ];
    for error in missing {
        assert!(matches!(error, RootError::NotFound(_)), "{error:?}");
        assert!(error.to_string().starts_with("a/c: "), "{error}");
    }
}

#[test]
fn objects_in_memory_are_read_by_the_contract() {
    keeps_the_contract(&InMemory(HashMap::from([("a/b".to_owned(), CONTENT.into())])));
}

#[test]
fn objects_in_a_bucket_are_read_by_the_contract_and_data_files_by_pages() {
    let root = BucketRoot::of_store(Arc::new(object_store::memory::InMemory::new()));
    let _lock = root.lock().unwrap();
    root.create("a/b", CONTENT.into()).unwrap();
    keeps_the_contract(root.reader().as_ref());
    // Larger than what one request puts, and longer than two pages.
    let bytes: Vec<u8> = (0..18_000_000_u32).map(|at| (at >> 8) as u8).collect();
    let (path, bytes) = ("t/day=1/x.parquet", Bytes::from(bytes));
    root.create(path, bytes.clone()).unwrap();
    let exists = root.create(path, bytes.clone()).unwrap_err();
    assert!(matches!(exists, RootError::Exists(_)), "{exists:?}");
    let (reader, length) = (root.reader(), bytes.len() as u64);
    let ranges = [5..9, 1_048_570..3_145_730, length - 3..length, 7..7];
    let read = reader.ranges(path, &ranges).unwrap();
    for (range, read) in ranges.iter().zip(&read) {
        assert_eq!(*read, bytes[range.start as usize..range.end as usize], "{range:?}");
    }
    let open = reader.open(path).unwrap();
    for at in (0..length - 1000).step_by(700_001) {
        let range = at as usize..at as usize + 1000;
        assert_eq!(open.range(at..at + 1000).unwrap(), bytes[range]);
    }
    let cut = reader.ranges(path, &[0..2, length - 1..length + 1]).unwrap_err();
    assert!(cut.to_string().contains(&format!("ends at {length}")), "{cut}");
    assert_eq!(reader.digest(path).unwrap().hash, xxhash_rust::xxh3::xxh3_64(&bytes));
}

#[tokio::test]
async fn a_thread_that_may_wait_reads_the_same_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableStore::new(Some(dir.path()), dir.path().to_owned()).unwrap();
    let path = Path::from("a/b");
    store.put(&path, CONTENT.into()).await.unwrap();
    let reader = LocalReader::new(dir.path());
    keeps_the_contract(&reader);
    let ranges = [7..10, 0..2, 3..4];
    assert_eq!(
        reader.ranges("a/b", &ranges).unwrap(),
        store.get_ranges(&path, &ranges).await.unwrap()
    );
    for path in ["../a", "/a", "a/../../b"] {
        let error = reader.length(path).unwrap_err();
        assert!(error.to_string().contains("no path below"), "{error}");
    }
}
