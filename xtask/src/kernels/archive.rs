//! An initramfs: a cpio archive in the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst of
//! Linux).

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// Debian's root folder: these are links into /usr.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Writes entries one after the other; each path at most once, its folders before it.
pub(super) struct Archive<W> {
    out: W,
    written: BTreeSet<PathBuf>,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Result<Archive<W>> {
        let mut archive = Archive {
            out,
            written: BTreeSet::new(),
        };
        for name in MERGED {
            archive.folder(&Path::new("usr").join(name))?;
            archive.entry(Path::new(name), LINK, format!("usr/{name}").as_bytes())?;
        }
        Ok(archive)
    }

    /// An empty folder, and those above it.
    pub(super) fn folder(&mut self, path: &Path) -> Result<()> {
        let path = place(path);
        let mut folders: Vec<_> = path.ancestors().filter(|path| *path != Path::new("")).collect();
        folders.reverse();
        folders
            .into_iter()
            .try_for_each(|folder| self.entry(folder, FOLDER, &[]))
    }

    pub(super) fn file(&mut self, path: &Path, content: &[u8]) -> Result<()> {
        let path = place(path);
        if let Some(folder) = path.parent() {
            self.folder(folder)?;
        }
        self.entry(&path, PROGRAM, content)
    }

    /// This machine's file under the same path; where that is a link, the file that it leads to.
    pub(super) fn copy(&mut self, path: &Path) -> Result<()> {
        if self.written.contains(&place(path)) {
            return Ok(());
        }
        let content = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
        self.file(path, &content)
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.entry(Path::new("TRAILER!!!"), 0, &[])?;
        self.out.flush().context("can't write the initramfs")
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) -> Result<()> {
        if !self.written.insert(path.to_owned()) {
            return Ok(());
        }
        let name = path.as_os_str().as_encoded_bytes();
        let size = u32::try_from(content.len()).with_context(|| format!("{} is too large", path.display()))?;
        ensure!(!name.is_empty(), "a file of the initramfs has no name");
        let head = header(self.written.len() as u32, mode, size, name.len() as u32 + 1);
        let pad = |length: usize| &[0u8; 4][..length.next_multiple_of(4) - length];
        let parts = [
            head.as_bytes(),
            name,
            b"\0",
            pad(head.len() + name.len() + 1),
            content,
            pad(content.len()),
        ];
        parts
            .into_iter()
            .try_for_each(|part| self.out.write_all(part))
            .context("can't write the initramfs")
    }
}

/// Number, mode, owner, group, links, time, size, four device numbers, length of the name with its zero, no checksum.
fn header(inode: u32, mode: u32, size: u32, name_bytes: u32) -> String {
    let fields = [inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_bytes, 0];
    let fields = fields.map(|field| format!("{field:08x}"));
    format!("070701{}", fields.concat())
}

/// From the root, without `..` and links, and below /usr what Debian has there.
fn place(path: &Path) -> PathBuf {
    let mut place = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if place.as_os_str().is_empty() && MERGED.iter().any(|merged| name == *merged) => {
                place = Path::new("usr").join(name);
            }
            Component::Normal(name) => place.push(name),
            Component::ParentDir => {
                place.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_padded_and_written_once_below_their_folders() {
        let mut bytes = vec![];
        let mut archive = Archive::new(&mut bytes).unwrap();
        archive.file(Path::new("/lib/x/../a"), b"12345").unwrap();
        archive.file(Path::new("/usr/lib/a"), b"again").unwrap();
        archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let mut names = vec![];
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let field =
                |at: usize| usize::from_str_radix(std::str::from_utf8(&rest[6 + 8 * at..][..8]).unwrap(), 16).unwrap();
            assert_eq!(&rest[..6], b"070701");
            let (size, name_bytes) = (field(6), field(11));
            let name = std::str::from_utf8(&rest[110..][..name_bytes - 1]).unwrap();
            let begin = (110 + name_bytes).next_multiple_of(4);
            if name == "usr/lib/a" {
                assert_eq!(&rest[begin..][..size], b"12345");
            }
            names.push(name.to_owned());
            rest = &rest[(begin + size).next_multiple_of(4)..];
        }
        let expected = [
            "usr",
            "usr/bin",
            "bin",
            "usr/lib",
            "lib",
            "usr/lib64",
            "lib64",
            "usr/sbin",
            "sbin",
            "usr/lib/a",
            "TRAILER!!!",
        ];
        assert_eq!(names, expected);
    }
}
