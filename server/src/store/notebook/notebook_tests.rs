//! What is kept is there again, and what is corrupt is set aside.

use super::*;
use crate::store::root::open::open;

#[tokio::test]
async fn what_is_corrupt_is_set_aside_and_what_was_kept_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = open(dir.path()).unwrap();
    // Whoever writes has it locked, which makes room for what is begun.
    let _lock = root.lock().unwrap();
    let notebook = Notebook::<u32>::open(&root, "numbers").await.unwrap();
    let put = |name: &'static str, number| {
        notebook.change(move |notes| {
            notes.insert(name.to_owned(), number);
            Ok(())
        })
    };
    put("a", 1).await.unwrap();
    put("b", 2).await.unwrap();
    let refused = notebook.change(|notes| {
        notes.clear();
        Err::<(), _>(Refused::Absent)
    });
    assert!(matches!(refused.await, Err(Refused::Absent)));
    let again = Notebook::<u32>::open(&root, "numbers").await.unwrap();
    assert_eq!(*again.all(), [("a".to_owned(), 1), ("b".to_owned(), 2)].into());
    std::fs::write(dir.path().join("notes/numbers.json"), b"{\"a\":").unwrap();
    let begun = Notebook::<u32>::open(&root, "numbers").await.unwrap();
    assert!(begun.all().is_empty());
    let aside = std::fs::read_dir(dir.path().join("damaged"))
        .unwrap()
        .flatten()
        .next()
        .unwrap();
    assert_eq!(std::fs::read(aside.path()).unwrap(), b"{\"a\":");
}
