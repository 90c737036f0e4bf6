//! Files of a table, in order of partition.

use crate::store::table::data_file::DataFile;
use std::sync::Arc;

/// Adds files in order of partition.
pub(crate) fn add_files(files: &mut Arc<Vec<Arc<DataFile>>>, new: Vec<Arc<DataFile>>) {
    if new.is_empty() {
        return;
    }
    let files = Arc::make_mut(files);
    for file in new {
        let at = files.partition_point(|other| other.partition <= file.partition);
        files.insert(at, file);
    }
}

/// The files of a partition, of files in order of partition.
pub(crate) fn of_partition<'f>(files: &'f [Arc<DataFile>], partition: &str) -> &'f [Arc<DataFile>] {
    let start = files.partition_point(|file| file.partition.as_str() < partition);
    let end = files.partition_point(|file| file.partition.as_str() <= partition);
    &files[start..end]
}

/// Whether a roll-up counts these samples, no more and no less. Where the samples are gone by retention, what there
/// is counts.
pub(crate) fn is_current(samples: &[Arc<DataFile>], rollup: &[Arc<DataFile>]) -> bool {
    if samples.is_empty() {
        return !rollup.is_empty();
    }
    let name = rollup_file_name(samples);
    !rollup.is_empty()
        && rollup
            .iter()
            .all(|file| file.path.rsplit('/').next().is_some_and(|file| file.starts_with(&name)))
}

/// How the name of a roll-up's file begins that was made of these files.
pub(crate) fn rollup_file_name(sources: &[Arc<DataFile>]) -> String {
    let mut paths: Vec<&str> = sources.iter().map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    format!(
        "rollup-{:016x}",
        xxhash_rust::xxh3::xxh3_64(paths.join("\n").as_bytes())
    )
}
