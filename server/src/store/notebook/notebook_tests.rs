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

#[tokio::test]
async fn what_two_servers_change_at_once_is_all_kept() {
    use crate::store::root::open::open_as;
    let dir = tempfile::tempdir().unwrap();
    let roots = [0, 1].map(|_| open_as(dir.path(), true).unwrap());
    let _locks = [roots[0].join().unwrap(), roots[1].join().unwrap()];
    let one = Notebook::<u32>::open(&roots[0], "numbers").await.unwrap();
    let other = Notebook::<u32>::open(&roots[1], "numbers").await.unwrap();
    let put = |notebook: &Notebook<u32>, name: String, number| {
        let notebook = Notebook {
            root: notebook.root.clone(),
            path: notebook.path.clone(),
            notes: notebook.notes.clone(),
            stamp: notebook.stamp.clone(),
            changing: notebook.changing.clone(),
        };
        async move {
            let change = move |notes: &mut BTreeMap<String, u32>| {
                notes.insert(name.clone(), number);
                Ok(())
            };
            notebook.change(change).await
        }
    };
    for number in 0..10 {
        let both = tokio::join!(
            put(&one, format!("a{number}"), number),
            put(&other, format!("b{number}"), number)
        );
        both.0.unwrap();
        both.1.unwrap();
    }
    for notebook in [&one, &other] {
        notebook.refresh().await.unwrap();
        assert_eq!(notebook.all().len(), 20);
    }
    // Whoever comes second sees what the first made of it.
    put(&one, "a0".to_owned(), 7).await.unwrap();
    let seen = other.change(|notes| Ok(notes["a0"])).await.unwrap();
    assert_eq!(seen, 7);
}
