//! Which files the kernel reads by itself, and for which it asks a server that may never answer.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

/// What is read of /proc/PID/mountinfo; what comes behind is taken for a server's.
const MAX_BYTES: u64 = 1 << 20;
/// Filesystems that are remembered, and for how long: a number may be given to another one.
const MAX_KNOWN: usize = 256;
const KNOWN_NS: u64 = 10_000_000_000;

/// Filesystems that need nobody outside the kernel.
const LOCAL: [&str; 26] = [
    "bcachefs",
    "btrfs",
    "devtmpfs",
    "ecryptfs",
    "erofs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hugetlbfs",
    "iso9660",
    "jfs",
    "minix",
    "msdos",
    "ntfs3",
    "overlay",
    "ramfs",
    "reiserfs",
    "rootfs",
    "squashfs",
    "tmpfs",
    "udf",
    "vfat",
    "xfs",
    "zfs",
];

/// By device, whether it is local, and since when that is known.
static KNOWN: Mutex<Option<HashMap<u64, (bool, u64)>>> = Mutex::new(None);

/// True where a filesystem that the process has mounted, or nobody has, such as that of memory files, needs no server.
pub(super) fn is_local(tgid: u32, device: u64, now_ns: u64) -> bool {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(HashMap::new);
    if let Some((local, since_ns)) = known.get(&device)
        && now_ns.saturating_sub(*since_ns) < KNOWN_NS
    {
        return *local;
    }
    let local = is_local_mount(&text_of(tgid), device);
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(device, (local, now_ns));
    local
}

fn text_of(tgid: u32) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(format!("/proc/{tgid}/mountinfo")) {
        // What was read until it failed counts.
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A mount, as far as it matters.
struct Mount<'a> {
    device: u64,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELDS] - KIND SOURCE SUPER-OPTIONS`
/// (Documentation/filesystems/proc.rst, 3.5).
fn parse(line: &str) -> Option<Mount<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(2);
    let (major, minor) = fields.next()?.split_once(':')?;
    let point = fields.nth(1)?;
    let mut after = after.splitn(3, ' ');
    let kind = after.next()?;
    Some(Mount {
        device: major.parse::<u64>().ok()? << 32 | minor.parse::<u64>().ok()?,
        point,
        kind,
        options: after.nth(1).unwrap_or_default(),
    })
}

/// Judges by what is mounted. An overlay is as good as what it lies on: what is mounted without privileges may lie on
/// anything.
fn is_local_mount(mountinfo: &str, device: u64) -> bool {
    let mounts = || mountinfo.lines().filter_map(parse);
    let Some(mount) = mounts().find(|mount| mount.device == device) else {
        // An overlay's files have numbers of the filesystems below, which nobody has mounted under that number; so
        // have subvolumes.
        return !mounts().any(|mount| is_served(&mount));
    };
    if mount.kind != "overlay" {
        return LOCAL.contains(&mount.kind);
    }
    let lies_on = |point: &str| point.len() > 1 && mount.options.contains(point);
    let options = mount.options.split(',');
    !options.clone().any(|option| option == "userxattr")
        && !mounts().any(|other| lies_on(other.point) && is_served(&other))
}

/// True for filesystems of servers, in this machine or another.
fn is_served(mount: &Mount<'_>) -> bool {
    let kind = mount.kind.split('.').next().unwrap_or_default();
    let served = [
        "fuse",
        "fuseblk",
        "virtiofs",
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "9p",
        "ceph",
        "afs",
        "lustre",
        "gpfs",
        "orangefs",
        "glusterfs",
        "beegfs",
        "coda",
        "ocfs2",
        "gfs2",
    ];
    served.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
25 24 0:23 / /proc rw,nosuid - proc proc rw
26 24 0:40 / /mnt/far rw,nosuid - fuse.sshfs far rw,user_id=0
27 24 0:41 / /c/one rw - overlay overlay rw,lowerdir=/var/a:/var/b,upperdir=/u
28 24 0:42 / /c/two rw - overlay overlay rw,lowerdir=/var/a:/mnt/far/layer
29 24 0:43 / /c/three rw - overlay overlay rw,lowerdir=/var/a,userxattr
30 24 0:44 / /n rw - nfs4 server:/x rw
31 24 0:45 / /t rw - tmpfs none rw
nonsense
";

    #[test]
    fn what_needs_a_server_is_known_by_its_mount() {
        let local = |minor: u64| is_local_mount(TEXT, minor);
        assert!(is_local_mount(TEXT, 254 << 32) && local(41) && local(45));
        for (minor, what) in [
            (40, "FUSE"),
            (42, "an overlay on it"),
            (43, "of a user's own"),
            (44, "NFS"),
        ] {
            assert!(!local(minor), "{what}");
        }
        assert!(!local(99), "nobody's, where something served is mounted");
        let without: String = TEXT
            .lines()
            .filter(|line| !line.contains("fuse") && !line.contains("nfs4"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(
            is_local_mount(&without, 99),
            "a filesystem below an overlay, or of memory files"
        );
    }
}
