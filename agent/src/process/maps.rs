//! The text of /proc/PID/maps.

use std::ops::Range;

/// One executable mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapLine {
    /// Address of the first byte.
    pub start: u64,
    /// Exclusive.
    pub end: u64,
    /// Where in the file the mapping begins.
    pub file_offset: u64,
    /// What lies there.
    pub backing: Backing,
    /// Of the whole line: where that is the same, so is the mapping.
    pub(super) hash: u64,
    pub(super) executable: bool,
    shared: bool,
}

/// What a mapping shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// A file, perhaps one that has been deleted.
    File {
        /// Device and inode as the kernel prints them; only good for comparing.
        device: u64,
        /// Its number on that device.
        inode: u64,
        /// As the process sees it, without the mark of deleted files.
        path: String,
    },
    /// The image that the kernel maps into each process.
    Vdso,
    /// Memory without a file: code made at run time.
    Anonymous,
    /// Another name in brackets, such as `[vsyscall]` or `[uprobes]`.
    Special(String),
}

/// The executable mappings, in ascending order. Lines that are not understood are left out; more than `limit` are cut.
pub fn parse_maps(text: &str, limit: usize) -> Vec<MapLine> {
    let executable = text.lines().filter_map(|line| parse_line(line, true));
    executable.take(limit).collect()
}

/// Memory without a file that is shared with other processes, executable or not.
pub(super) fn shared_unnamed(text: &str) -> Vec<Range<u64>> {
    const MAX_RANGES: usize = 64;
    let lines = text.lines().filter_map(|line| parse_line(line, false));
    let shared = lines.filter(|line| line.shared && line.backing == Backing::Anonymous);
    shared.take(MAX_RANGES).map(|line| line.start..line.end).collect()
}

/// Ranges of memory without a file that have code in them, with what lies right before and behind and may become code.
pub(super) fn set_aside(text: &str) -> Vec<Range<u64>> {
    const MAX_RANGES: usize = 64;
    const MAX_BEFORE_BYTES: u64 = 1 << 24;
    const MAX_BEHIND_BYTES: u64 = 1 << 29;
    let mut found: Vec<Range<u64>> = Vec::new();
    // The range without gaps, and that of the code in it.
    let mut run: Option<(Range<u64>, Option<Range<u64>>)> = None;
    let mut end = |run: Option<(Range<u64>, Option<Range<u64>>)>| {
        if let Some((whole, Some(code))) = run {
            let start = whole.start.max(code.start.saturating_sub(MAX_BEFORE_BYTES));
            found.push(start..whole.end.min(code.end.saturating_add(MAX_BEHIND_BYTES)));
        }
        found.len() < MAX_RANGES
    };
    for line in text.lines().filter_map(|line| parse_line(line, false)) {
        let is_made = line.backing == Backing::Anonymous && !line.shared;
        let goes_on = is_made && run.as_ref().is_some_and(|(whole, _)| whole.end == line.start);
        if !goes_on {
            if !end(run.take()) {
                return found;
            }
            if !is_made {
                continue;
            }
        }
        let (whole, code) = run.get_or_insert((line.start..line.end, None));
        whole.end = line.end;
        if line.executable {
            code.get_or_insert(line.start..line.end).end = line.end;
        }
    }
    end(run);
    found
}

/// Around each of `lines` that shows no program's file, the mappings of files right before and behind it, at most so
/// far away: where their file says that it is code there, it is that file's code, which was copied into other memory.
pub(super) fn neighbours(text: &str, lines: &[MapLine]) -> Vec<MapLine> {
    const NEAR_BYTES: u64 = 1 << 30;
    let is_made = |line: &&MapLine| line.backing.may_be_made();
    let mut made = lines.iter().filter(is_made).peekable();
    let mut around: Vec<MapLine> = Vec::new();
    let mut before: Option<MapLine> = None;
    let mut last_made: Option<u64> = None;
    for line in text.lines().filter_map(|line| parse_line(line, false)) {
        if made.peek().is_none() && last_made.is_none() {
            break;
        }
        while let Some(next) = made.next_if(|next| next.start <= line.start) {
            last_made = Some(next.end);
            let near = before.take_if(|before| next.start - before.end <= NEAR_BYTES);
            around.extend(near.filter(|near| around.last() != Some(near)));
        }
        if !matches!(line.backing, Backing::File { .. }) || line.backing.may_be_made() {
            continue;
        }
        if let Some(end) = last_made.take()
            && line.start.saturating_sub(end) <= NEAR_BYTES
        {
            around.push(line.clone());
        }
        before = Some(line);
    }
    around
}

impl Backing {
    /// True for memory that run-time compilers write their code to: it has no file, or one that was made for it.
    pub(super) fn may_be_made(&self) -> bool {
        match self {
            Self::Anonymous => true,
            Self::File { path, .. } => is_memory_file(path),
            Self::Vdso | Self::Special(_) => false,
        }
    }
}

/// `START-END PERMISSIONS OFFSET MAJOR:MINOR INODE   PATH`
fn parse_line(text: &str, only_executable: bool) -> Option<MapLine> {
    let (range, rest) = text.split_once(' ')?;
    let (permissions, rest) = rest.split_once(' ')?;
    let executable = permissions.as_bytes().get(2) == Some(&b'x');
    if only_executable && !executable {
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
        _ if is_unnamed_memory(path) => Backing::Anonymous,
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
        hash: xxhash_rust::xxh3::xxh3_64(text.as_bytes()),
        executable,
        shared: permissions.contains('s'),
    })
}

/// The kernel writes a line feed in a path as `\012`.
fn unescape(path: &str) -> String {
    path.replace("\\012", "\n")
}

/// Whether the kernel names memory so that has no file: shared anonymous memory is one that nobody named, and so are
/// large pages and System V's segments.
pub fn is_unnamed_memory(path: &str) -> bool {
    let is_segment = || path.starts_with("/SYSV") && path.ends_with(" (deleted)");
    matches!(path, "/dev/zero (deleted)" | "//anon" | "/anon_hugepage (deleted)") || is_segment()
}

/// Whether a file is one that no disk has.
pub fn is_memory_file(path: &str) -> bool {
    path.starts_with("/memfd:") || path.starts_with("/dev/")
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
    fn memory_without_a_file_that_anybody_named() {
        for path in [
            "/dev/zero (deleted)",
            "/SYSV00000000 (deleted)",
            "/anon_hugepage (deleted)",
            "[anon_shmem:x]",
        ] {
            let maps = parse_maps(&format!("1000-2000 rwxs 00000000 00:01 77   {path}"), 1);
            assert_eq!(maps[0].backing, Backing::Anonymous, "{path}");
        }
        let text =
            "1000-2000 rw-s 0 00:01 77  /dev/zero (deleted)\n2000-3000 rwxp 0 00:00 0 \n3000-4000 r--s 0 fe:00 9 /a\n";
        let shared = 0x1000..0x2000;
        assert_eq!(shared_unnamed(text), [shared]);
        let memory_file = parse_maps("1000-2000 r-xs 00000000 00:01 77   /memfd:code (deleted)", 1);
        assert!(matches!(&memory_file[0].backing, Backing::File { path, .. } if path == "/memfd:code"));
        assert!(memory_file[0].backing.may_be_made(), "but a library may lie in one");
    }

    #[test]
    fn around_what_was_made_lie_the_files_that_it_may_have_come_from() {
        let text = "\
00400000-00401000 r--p 00000000 fe:00 7 /bin/big
00401000-00800000 rwxp 00000000 00:00 0 
00800000-00900000 r--p 00400000 fe:00 7 /bin/big
00900000-00901000 rw-p 00500000 fe:00 7 /bin/big
10000000-10001000 r-xp 00000000 fe:00 8 /lib/far
90000000-90001000 rwxp 00000000 00:00 0 
90001000-90002000 rwxp 00000000 00:00 0 
90003000-90004000 r-xp 00000000 fe:00 9 /lib/next
";
        let around = neighbours(text, &parse_maps(text, 100));
        let starts: Vec<u64> = around.iter().map(|line| line.start).collect();
        assert_eq!(starts, [0x40_0000, 0x80_0000, 0x9000_3000]);
        assert!(neighbours(TEXT, &parse_maps(&TEXT[..70], 100)).is_empty());
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

    #[test]
    fn what_is_set_aside_for_code_is_found_around_it() {
        let text = "00400000-00500000 r-xp 00000000 fe:00 7                  /usr/bin/node\n\
                    05215000-05238000 rw-p 00000000 00:00 0 \n\
                    05238000-05243000 ---p 00000000 00:00 0 \n\
                    05243000-05272000 r-xp 00000000 00:00 0 \n\
                    05272000-0d238000 ---p 00000000 00:00 0 \n\
                    1000000000-1000001000 rw-p 00000000 00:00 0 \n\
                    7f00000000-7f00001000 rwxp 00000000 00:00 0 \n\
                    7f00001000-7f40000000 ---p 00000000 00:00 0 \n";
        let expected = [0x521_5000..0xd23_8000, 0x7f_0000_0000..0x7f_2000_1000];
        assert_eq!(set_aside(text), expected);
        assert_eq!(set_aside(""), []);
    }
}
