//! What a place says of itself that is a copy, or that holds backups: one small object.
//!
//! A server does not start on what is not a whole store, and a copy goes only where nothing was, or where the same
//! store was copied to and no server has been since.

use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use crate::store::table::format_version::FormatError;
use serde::{Deserialize, Serialize};

/// Where it stands, below the root.
pub(crate) const OBJECT: &str = "copy.json";

/// A larger object is nothing of ours.
const MOST_BYTES: u64 = 64 << 10;

/// Names directly below a root that are no data.
const NO_DATA: [&str; 6] = ["format.json", "lease", "lock", "lost+found", "probe", "tmp"];

/// Names of other data that are told, at most.
const MOST_TOLD: usize = 5;

/// What a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// A copy that has begun and not ended.
    Unfinished,
    /// A whole copy, on which no server has been.
    Whole,
    /// A store like any other, that was a copy once.
    Served,
    /// No store, but backups of one.
    Backups,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) state: State,
    /// Which store was copied: the id of its table of samples.
    pub(crate) store: String,
    /// Where it was then.
    pub(crate) from: String,
}

/// What a root says; none where it says nothing. Waits for the root.
pub(crate) fn read(root: &dyn Root) -> Result<Option<Mark>, FormatError> {
    let reader = root.reader();
    let refused = |cause: String| FormatError::Refused(format!("{OBJECT} is not what a server writes: {cause}"));
    match reader.length(OBJECT) {
        Ok(length) if length > MOST_BYTES => return Err(refused(format!("it has {length} bytes"))),
        Ok(_) => {}
        Err(RootError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(FormatError::Failed(error)),
    }
    let bytes = reader.whole(OBJECT).map_err(FormatError::Failed)?;
    let mark = serde_json::from_slice(&bytes);
    mark.map(Some).map_err(|error| refused(error.to_string()))
}

/// Says it, durably. The root must be locked. Waits for the root.
pub(crate) fn write(root: &dyn Root, mark: &Mark) -> Result<(), RootError> {
    let text = serde_json::to_vec(mark).map_err(|error| RootError::new(OBJECT, error))?;
    root.replace(OBJECT, text.into())
}

/// A server starts on a root, which must be locked or joined: refused where that holds no whole store. Of several
/// servers each may say the same. Waits for the root.
pub(crate) fn serve(root: &dyn Root) -> Result<(), FormatError> {
    let Some(mark) = read(root)? else { return Ok(()) };
    match mark.state {
        State::Served => Ok(()),
        State::Unfinished => Err(FormatError::Refused(format!(
            "it is a copy of {} that was not finished; begin the copy again, or give another place",
            mark.from
        ))),
        State::Backups => Err(FormatError::Refused(format!(
            "it holds backups of {} and is no store; restore one to a place of its own, by stakeout-server restore",
            mark.from
        ))),
        State::Whole => {
            let state = State::Served;
            write(root, &Mark { state, ..mark }).map_err(FormatError::Failed)
        }
    }
}

/// Takes a root for a copy, or for backups, of a store. Refused where anything else is in it. The root must be locked.
/// Waits for the root.
pub(crate) fn claim(root: &dyn Root, mark: &Mark) -> Result<(), FormatError> {
    let refused = |problem: String| Err(FormatError::Refused(problem));
    let for_backups = mark.state == State::Backups;
    match read(root)? {
        None => {
            let is_data = |name: &str| !NO_DATA.contains(&name);
            let mut names = root.names("", &is_data).map_err(FormatError::Failed)?;
            names.sort();
            if !names.is_empty() {
                let told: Vec<&str> = names.iter().take(MOST_TOLD).map(|named| named.name.as_str()).collect();
                let more = if names.len() > told.len() { ", …" } else { "" };
                return refused(format!(
                    "it has other data ({}{more}), which nothing is written over; give an empty place",
                    told.join(", ")
                ));
            }
        }
        Some(before) if before.store != mark.store => {
            return refused(format!(
                "it has what was copied of another store, {}; give an empty place",
                before.from
            ));
        }
        Some(before) => match before.state {
            State::Backups if for_backups => return Ok(()),
            State::Unfinished | State::Whole if !for_backups => {}
            State::Backups => return refused("it holds backups; give an empty place".to_owned()),
            State::Served => {
                return refused(
                    "a server has been started on it, and may have stored more; give an empty place".to_owned(),
                );
            }
            State::Unfinished | State::Whole => {
                return refused("it is a copy, which backups cannot be kept in; give an empty place".to_owned());
            }
        },
    }
    write(root, mark).map_err(FormatError::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::local::LocalRoot;

    fn mark(state: State, store: &str) -> Mark {
        Mark {
            state,
            store: store.to_owned(),
            from: "elsewhere".to_owned(),
        }
    }

    fn refusal<T: std::fmt::Debug>(result: Result<T, FormatError>) -> String {
        match result {
            Err(FormatError::Refused(problem)) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_copy_goes_where_nothing_was_or_where_the_same_store_was_copied_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = LocalRoot::open(dir.path()).unwrap();
        let _lock = root.lock().unwrap();
        serve(&root).unwrap();
        root.create("samples/x", "1".into()).unwrap();
        let text = refusal(claim(&root, &mark(State::Unfinished, "a")));
        assert!(text.contains("other data (samples)"), "{text}");
        root.discard("samples").unwrap();
        claim(&root, &mark(State::Unfinished, "a")).unwrap();
        assert!(refusal(serve(&root)).contains("not finished"));
        assert!(refusal(claim(&root, &mark(State::Unfinished, "b"))).contains("another store"));
        assert!(refusal(claim(&root, &mark(State::Backups, "a"))).contains("is a copy"));
        root.create("samples/x", "1".into()).unwrap();
        claim(&root, &mark(State::Unfinished, "a")).unwrap();
        write(&root, &mark(State::Whole, "a")).unwrap();
        claim(&root, &mark(State::Unfinished, "a")).unwrap();
        write(&root, &mark(State::Whole, "a")).unwrap();
        serve(&root).unwrap();
        serve(&root).unwrap();
        assert_eq!(read(&root).unwrap(), Some(mark(State::Served, "a")));
        assert!(refusal(claim(&root, &mark(State::Unfinished, "a"))).contains("a server has been started"));
    }

    #[test]
    fn backups_are_no_store_and_stay_those_of_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = LocalRoot::open(dir.path()).unwrap();
        let _lock = root.lock().unwrap();
        claim(&root, &mark(State::Backups, "a")).unwrap();
        root.create("files/x", "1".into()).unwrap();
        claim(&root, &mark(State::Backups, "a")).unwrap();
        assert!(refusal(serve(&root)).contains("holds backups"));
        assert!(refusal(claim(&root, &mark(State::Unfinished, "a"))).contains("holds backups"));
        root.replace(OBJECT, "{".into()).unwrap();
        assert!(refusal(serve(&root)).contains(OBJECT));
    }
}
