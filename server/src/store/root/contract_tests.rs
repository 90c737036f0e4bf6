//! What every data root does, and that each one does it.

use crate::store::root::bucket::BucketRoot;
use crate::store::root::contract::{Named, Root, Stamp};
use crate::store::root::error::RootError;
use crate::store::root::local::LocalRoot;
use crate::store::root::open::{OpenError, open, open_as, open_to_read};
use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use std::path::Path as FsPath;
use std::sync::Arc;

fn text(root: &dyn Root, path: &str) -> String {
    let bytes = root.reader().whole(path).unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn names(root: &dyn Root, prefix: &str) -> Vec<String> {
    let mut names = root.names(prefix, &|_| true).unwrap();
    names.sort();
    names.into_iter().map(|named| named.name).collect()
}

/// Of a root that is empty and locked.
pub(super) fn keeps_the_contract(root: &dyn Root) {
    objects_are_created_replaced_and_told_apart(root);
    names_are_those_directly_below(root);
    objects_are_replaced_on_a_condition(root);
    what_comes_in_pieces_is_whole_or_not_there(root);
    things_move(root);
    empty_folders_go(root);
    assert!(root.free_bytes().unwrap().is_none_or(|bytes| bytes > 0));
    root.probe(&["a", "b"]).unwrap();
}

fn objects_are_created_replaced_and_told_apart(root: &dyn Root) {
    root.create("a/b/one", "1".into()).unwrap();
    let exists = root.create("a/b/one", "2".into()).unwrap_err();
    assert!(matches!(exists, RootError::Exists(_)), "{exists:?}");
    assert_eq!((exists.object(), text(root, "a/b/one")), ("a/b/one", "1".to_owned()));
    let stamp = root.stamp("a/b/one").unwrap();
    assert_eq!((stamp.bytes, &stamp), (1, &root.stamp("a/b/one").unwrap()));
    assert!(stamp != Stamp::default() && stamp.modified.is_some());
    root.replace("a/b/one", "3".into()).unwrap();
    assert_eq!(text(root, "a/b/one"), "3");
    assert_ne!(
        stamp,
        root.stamp("a/b/one").unwrap(),
        "of the same size, and perhaps of the same time"
    );
    root.replace("a/b/two", "22".into()).unwrap();
    let missing = root.stamp("a/b/three").unwrap_err();
    assert!(matches!(missing, RootError::NotFound(_)), "{missing:?}");
    assert!(missing.to_string().starts_with("a/b/three: "), "{missing}");
}

fn objects_are_replaced_on_a_condition(root: &dyn Root) {
    let replace = |stamp: &Stamp, with: &'static str| root.replace_if("e/one", stamp, with.into());
    replace(&Stamp::default(), "1").unwrap();
    let taken = replace(&Stamp::default(), "2").unwrap_err();
    assert!(matches!(taken, RootError::Exists(_)), "{taken:?}");
    let first = root.stamp("e/one").unwrap();
    replace(&first, "3").unwrap();
    let stale = replace(&first, "4").unwrap_err();
    assert!(matches!(stale, RootError::Exists(_)), "{stale:?}");
    assert_eq!(text(root, "e/one"), "3");
    root.discard("e").unwrap();
    let gone = replace(&first, "5").unwrap_err();
    assert!(matches!(gone, RootError::Exists(_)), "{gone:?}");
}

fn names_are_those_directly_below(root: &dyn Root) {
    assert_eq!(
        (names(root, "a"), names(root, "a/b")),
        (vec!["b".to_owned()], vec!["one".to_owned(), "two".to_owned()])
    );
    assert_eq!(names(root, "none/at/all"), [""; 0]);
    let (name, bytes) = ("two".to_owned(), 2);
    assert_eq!(
        root.names("a/b", &|name| name != "one").unwrap(),
        [Named { name, bytes }]
    );
    root.settle("a/b").unwrap();
}

fn what_comes_in_pieces_is_whole_or_not_there(root: &dyn Root) {
    let pieces = |count: u8| (0..count).map(|at| Bytes::from(vec![at; 3 << 20]));
    // Of a few bytes, of none, and of more than goes to a bucket in one request.
    for count in [0, 1, 7] {
        let mut incoming = root.receive("in/pieces").unwrap();
        for piece in pieces(count) {
            incoming.add(piece).unwrap();
        }
        incoming.finish().unwrap();
        let (mut whole, mut most) = (Vec::new(), 0);
        let read = root.reader().pieces("in/pieces", &mut |piece| {
            most = most.max(piece.len());
            whole.extend_from_slice(&piece);
            Ok(())
        });
        read.unwrap();
        let expected: Vec<u8> = pieces(count).flatten().collect();
        assert!(
            whole == expected && most <= 8 << 20,
            "{count} pieces, in the place of what was there"
        );
    }
    for count in [1, 7] {
        let mut incoming = root.receive("in/part").unwrap();
        pieces(count).for_each(|piece| incoming.add(piece).unwrap());
        drop(incoming);
        let missing = root.stamp("in/part").unwrap_err();
        assert!(matches!(missing, RootError::NotFound(_)), "{missing:?}");
    }
    root.discard("in").unwrap();
}

fn things_move(root: &dyn Root) {
    root.prepare("aside/now").unwrap();
    root.prepare("aside/now").unwrap();
    root.set_aside("a/b/two", "aside/now/two").unwrap();
    assert_eq!(
        (names(root, "a/b"), text(root, "aside/now/two")),
        (vec!["one".to_owned()], "22".to_owned())
    );
    let missing = root.set_aside("a/b/two", "aside/now/three").unwrap_err();
    assert!(matches!(missing, RootError::NotFound(_)), "{missing:?}");
    root.exchange("aside/now", "a/b").unwrap();
    assert_eq!(
        (names(root, "a/b"), names(root, "aside/now")),
        (vec!["two".to_owned()], vec!["one".to_owned()])
    );
    // Where nothing is.
    root.exchange("a/b", "c/d").unwrap();
    assert_eq!(
        (names(root, "c/d"), names(root, "a/b")),
        (vec!["two".to_owned()], vec![])
    );
}

fn empty_folders_go(root: &dyn Root) {
    root.prune("c/d").unwrap();
    assert_eq!(names(root, "c/d"), ["two"]);
    root.prune("a/b").unwrap();
    root.prune("a/b").unwrap();
    assert_eq!(names(root, "a"), [""; 0]);
    root.discard("aside").unwrap();
    root.discard("aside").unwrap();
    assert_eq!(names(root, "aside/now"), [""; 0]);
    root.prepare("b").unwrap();
}

#[test]
fn a_folder_is_a_root() {
    let dir = tempfile::tempdir().unwrap();
    let root = LocalRoot::open(&dir.path().join("data")).unwrap();
    let lock = root.lock().unwrap();
    keeps_the_contract(&root);
    assert_eq!(names(&root, "tmp"), [""; 0], "nothing is left where files are begun");
    drop(lock);
}

#[test]
fn a_bucket_is_a_root_for_who_has_its_lease() {
    let store = Arc::new(object_store::memory::InMemory::new());
    let root = BucketRoot::of_store(store.clone());
    let refused = |root: &BucketRoot| root.replace("a", "1".into()).unwrap_err().to_string();
    assert!(refused(&root).contains("does not hold the bucket's lease"));
    let lock = root.lock().unwrap();
    keeps_the_contract(&root);
    root.replace("kept", "1".into()).unwrap();
    drop(lock);
    assert!(refused(&root).contains("does not hold the bucket's lease"));
    // It was released, so the next one has it at once.
    let next = BucketRoot::of_store(store);
    let _lock = next.lock().unwrap();
    assert_eq!((text(&next, "kept"), names(&next, "probe")), ("1".to_owned(), vec![]));
    assert!(refused(&root).contains("does not hold the bucket's lease"));
    next.probe(&[]).unwrap();
    assert!(root.probe(&[]).is_err());
}

#[test]
fn a_bucket_is_a_root_for_servers_that_share_it() {
    let store = Arc::new(object_store::memory::InMemory::new());
    let shared = || BucketRoot::of_store(store.clone()).shared();
    let (one, other) = (shared(), shared());
    assert!(one.is_shared() && !BucketRoot::of_store(store.clone()).is_shared());
    let joined = [one.join().unwrap(), other.join().unwrap()];
    keeps_the_contract(&one);
    other.replace("kept", "1".into()).unwrap();
    assert_eq!(text(&one, "kept"), "1");
    // Whoever ends an exchange has to be alone.
    let begun = r#"{"new":"a","old":"b","step":"put"}"#;
    one.create("exchange.json", begun.into()).unwrap();
    let refused = shared().join().unwrap_err().to_string();
    assert!(refused.contains("was cut off"), "{refused}");
    drop(joined);
    let refused = other.replace("a", "1".into()).unwrap_err().to_string();
    assert!(refused.contains("does not hold the bucket's lease"), "{refused}");
}

#[test]
fn names_below_are_those_of_the_folders_that_are_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = BucketRoot::of_store(Arc::new(object_store::memory::InMemory::new()));
    let roots: [&dyn Root; 2] = [&LocalRoot::open(dir.path()).unwrap(), &bucket];
    for root in roots {
        let _lock = root.lock().unwrap();
        for path in [
            "t/day=1/a.parquet",
            "t/day=2/b.parquet",
            "t/day=2/c.txt",
            "t/_log/d.parquet",
            "u/day=1/e.parquet",
        ] {
            root.create(path, "12".into()).unwrap();
        }
        let found = root.names_below("t", &|name| name.starts_with("day="), &|path| {
            path.ends_with(".parquet")
        });
        let mut found = found.unwrap();
        found.sort();
        let (a, b) = ("day=1/a.parquet".to_owned(), "day=2/b.parquet".to_owned());
        assert_eq!(found, [a, b].map(|name| Named { name, bytes: 2 }));
        assert!(root.names_below("v", &|_| true, &|_| true).unwrap().is_empty());
    }
}

#[test]
fn one_process_has_a_folder_and_removes_what_another_began() {
    let dir = tempfile::tempdir().unwrap();
    let opened = || LocalRoot::open(dir.path()).unwrap();
    let first = opened();
    let lock = first.lock().unwrap();
    std::fs::write(dir.path().join("tmp/begun"), "x").unwrap();
    let second = opened();
    let refused = second.lock().unwrap_err();
    assert!(matches!(refused, RootError::Exists(_)), "{refused:?}");
    assert_eq!(names(&first, "tmp"), ["begun"], "it is the first one's");
    drop(lock);
    let _lock = second.lock().unwrap();
    assert_eq!(names(&second, "tmp"), [""; 0]);
}

#[test]
fn servers_share_a_folder_and_one_alone_has_it_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let shared = || LocalRoot::open(dir.path()).unwrap().shared();
    let (one, other, alone) = (shared(), shared(), LocalRoot::open(dir.path()).unwrap());
    assert!(one.is_shared() && !alone.is_shared());
    let joined = [one.join().unwrap(), other.join().unwrap()];
    std::fs::write(dir.path().join("tmp/begun"), "x").unwrap();
    let refused = alone.lock().unwrap_err();
    assert!(matches!(refused, RootError::Exists(_)), "{refused:?}");
    assert_eq!(names(&one, "tmp"), ["begun"], "it is another server's");
    drop(joined);
    let lock = alone.lock().unwrap();
    assert!(matches!(one.join().unwrap_err(), RootError::Exists(_)));
    drop(lock);
}

#[test]
fn whoever_only_reads_takes_no_lock_and_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("none");
    let missing = open_to_read(&none).unwrap_err();
    assert!(
        matches!(missing, OpenError::Failed(RootError::NotFound(_))) && !none.exists(),
        "{missing:?}"
    );
    let store = Arc::new(object_store::memory::InMemory::new());
    for is_shared in [false, true] {
        let folder = open_as(dir.path(), is_shared).unwrap();
        let bucket = BucketRoot::of_store(store.clone());
        let bucket: Arc<dyn Root> = match is_shared {
            true => Arc::new(bucket.shared()),
            false => Arc::new(bucket),
        };
        let read_in_folder = || open_to_read(dir.path()).unwrap();
        let read_in_bucket = || -> Arc<dyn Root> { Arc::new(BucketRoot::of_store(store.clone())) };
        let readers: [&dyn Fn() -> Arc<dyn Root>; 2] = [&read_in_folder, &read_in_bucket];
        for (root, reader) in [folder, bucket].iter().zip(readers) {
            let locked = if is_shared { root.join() } else { root.lock() };
            let lock = locked.unwrap();
            root.replace("kept", "1".into()).unwrap();
            let before = names(root.as_ref(), "");
            let reader = reader();
            assert_eq!(text(reader.as_ref(), "kept"), "1");
            assert_eq!(names(reader.as_ref(), ""), before);
            root.replace("kept", "2".into()).unwrap();
            assert_eq!(text(reader.as_ref(), "kept"), "2");
            drop(lock);
        }
    }
}

/// Of a root that is locked, and has `one` as samples/day=1/part.
pub(super) async fn objects_are_the_same_by_each_way(root: &dyn Root) {
    let (objects, path) = (root.objects(), Path::from("samples/day=1/part"));
    assert_eq!(objects.get(&path).await.unwrap().bytes().await.unwrap(), "one");
    objects.put(&path, "two".into()).await.unwrap();
    let log = root.table("samples").unwrap();
    let found = log.table.get(&Path::from("day=1/part")).await.unwrap();
    assert_eq!(found.bytes().await.unwrap(), "two");
    let whole = Path::from_url_path(log.url.path()).unwrap().join("day=1").join("part");
    assert_eq!(log.whole.get(&whole).await.unwrap().bytes().await.unwrap(), "two");
    let copy = Path::from("damaged/part");
    objects.copy(&path, &copy).await.unwrap();
    objects.delete(&path).await.unwrap();
    assert_eq!(objects.get(&copy).await.unwrap().bytes().await.unwrap(), "two");
    assert!(objects.get(&path).await.is_err());
}

#[tokio::test]
async fn objects_of_a_folder_are_the_same_by_each_way() {
    let dir = tempfile::tempdir().unwrap();
    let root = LocalRoot::open(dir.path()).unwrap();
    let _lock = root.lock().unwrap();
    root.create("samples/day=1/part", "one".into()).unwrap();
    objects_are_the_same_by_each_way(&root).await;
    assert_eq!(
        (text(&root, "damaged/part"), names(&root, "samples/day=1")),
        ("two".to_owned(), vec![])
    );
}

#[test]
fn a_root_is_named_as_a_folder_or_as_the_url_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let url = url::Url::from_directory_path(dir.path()).unwrap();
    let named = open(FsPath::new(url.as_str())).unwrap();
    let canonical = dir.path().canonicalize().unwrap();
    assert_eq!(named.reader().name_of(""), canonical.display().to_string());
    let refused = open(FsPath::new("ftp://bucket/prefix")).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Unsupported { url } if url == "ftp://…"),
        "{refused:?}"
    );
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let refused = open(&file.join("data")).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Failed(error) if error.to_string().contains("file/data: ")),
        "{refused:?}"
    );
}
