//! The text of /proc/PID/maps.

/// One executable mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapLine {
    pub start: u64,
    /// Exclusive.
    pub end: u64,
    /// Where in the file the mapping begins.
    pub file_offset: u64,
    pub backing: Backing,
}

/// What a mapping shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    File {
        /// Device and inode as the kernel prints them; only good for comparing.
        device: u64,
        inode: u64,
        /// As the process sees it, without the mark of deleted files.
        path: String,
    },
    Vdso,
    /// Memory without a file: code made at run time.
    Anonymous,
    /// Another name in brackets, such as `[vsyscall]` or `[uprobes]`.
    Special(String),
}

/// The executable mappings, in ascending order. Lines that are not understood are left out; more than `limit` are cut.
pub fn parse_maps(text: &str, limit: usize) -> Vec<MapLine> {
    text.lines().filter_map(parse_line).take(limit).collect()
}

/// `START-END PERMISSIONS OFFSET MAJOR:MINOR INODE   PATH`
fn parse_line(line: &str) -> Option<MapLine> {
    let (range, rest) = line.split_once(' ')?;
    let (permissions, rest) = rest.split_once(' ')?;
    if permissions.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (device, rest) = rest.split_once(' ')?;
    let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
    let (major, minor) = device.split_once(':')?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    if end <= start {
        return None;
    }
    let inode: u64 = inode.parse().ok()?;
    let path = path.trim_start();
    let backing = match path {
        "" | "[heap]" | "[stack]" => Backing::Anonymous,
        "[vdso]" => Backing::Vdso,
        _ if path.starts_with("[anon") => Backing::Anonymous,
        _ if path.starts_with('[') => Backing::Special(path.to_owned()),
        // Shared anonymous memory is a file that nobody named.
        "/dev/zero (deleted)" | "//anon" => Backing::Anonymous,
        _ if inode == 0 => Backing::Anonymous,
        _ => Backing::File {
            device: hex(major)? << 32 | hex(minor)?,
            inode,
            path: unescape(path.strip_suffix(" (deleted)").unwrap_or(path)),
        },
    };
    Some(MapLine {
        start,
        end,
        file_offset: hex(offset)?,
        backing,
    })
}

/// The kernel writes a line feed in a path as `\012`.
fn unescape(path: &str) -> String {
    path.replace("\\012", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0c8a00000-55d0c8a02000 r--p 00000000 fe:00 1234                       /usr/bin/cat
55d0c8a02000-55d0c8a07000 r-xp 00002000 fe:00 1234                       /usr/bin/cat
7f00a0000000-7f00a0021000 rwxp 00000000 00:00 0 
7f3ea5a28000-7f3ea5bbd000 r-xp 00028000 fe:00 77                         /opt/with space/lib.so.6 (deleted)
7ffd3a5f6000-7ffd3a5f8000 r-xp 00000000 00:00 0                          [vdso]
7ffd3a5f9000-7ffd3a5fa000 r-xp 00000000 00:00 0                          [anon:jit]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn only_executable_lines_with_their_backing() {
        let maps = parse_maps(TEXT, 100);
        assert_eq!(maps.len(), 6);
        assert_eq!(maps[0].start, 0x55d0c8a02000);
        assert_eq!(maps[0].file_offset, 0x2000);
        assert_eq!(
            maps[0].backing,
            Backing::File {
                device: 0xfe << 32,
                inode: 1234,
                path: "/usr/bin/cat".into()
            }
        );
        assert_eq!(maps[1].backing, Backing::Anonymous);
        assert!(matches!(&maps[2].backing, Backing::File { path, .. } if path == "/opt/with space/lib.so.6"));
        assert_eq!(maps[3].backing, Backing::Vdso);
        assert_eq!(maps[4].backing, Backing::Anonymous);
        assert_eq!(maps[5].backing, Backing::Special("[vsyscall]".into()));
    }

    #[test]
    fn nonsense_is_left_out_and_the_limit_holds() {
        for line in [
            "",
            "x",
            "1-2 r-xp",
            "zz-yy r-xp 0 0:0 0",
            "2000-1000 r-xp 00000000 00:00 0",
            "1-2 r-xp 0 0 0 /a",
        ] {
            assert_eq!(parse_maps(line, 100), [], "{line:?}");
        }
        assert_eq!(parse_maps(TEXT, 2).len(), 2);
    }
}
