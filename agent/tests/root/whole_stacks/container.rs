//! A container as a container engine starts it: by runc, from a bundle, with nothing of this machine's file system in
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::{Workshop, find_program};

/// A bundle's settings (OCI runtime specification 1.0): namespaces of its own, and a shell that works beside the
/// program. When the shell ends, everything in its process namespace does.
const CONFIG: &str = r#"{
    "ociVersion": "1.0.2",
    "process": {
        "user": {"uid": 0, "gid": 0},
        "args": ["/bin/busybox", "sh", "-c", "/bin/busybox md5sum /dev/zero & /PROGRAM CPU_SECONDS"],
        "cwd": "/",
        "noNewPrivileges": true
    },
    "root": {"path": "rootfs", "readonly": true},
    "hostname": "contained",
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]}
    ],
    "linux": {
        "namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}]
    }
}"#;

impl Workshop {
    /// Puts the program, busybox, and what both are linked with into a bundle.
    pub(super) fn bundle(&self, cpu_seconds: &str) {
        let root = self.path("rootfs");
        for folder in ["bin", "proc", "dev"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let busybox = find_program("busybox").unwrap();
        fs::copy(&busybox, root.join("bin/busybox")).unwrap();
        for library in [self.program(), busybox].iter().flat_map(|program| libraries(program)) {
            let copy = root.join(library.strip_prefix("/").unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(&library, copy).unwrap();
        }
        // Outside of the container there is none at this path.
        fs::rename(self.program(), root.join(&self.name)).unwrap();
        let config = CONFIG
            .replace("PROGRAM", &self.name)
            .replace("CPU_SECONDS", cpu_seconds);
        fs::write(self.path("config.json"), config).unwrap();
    }

    /// Runs the bundle until its program ends.
    pub(super) fn run_bundle(&self) -> Command {
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(self.path("runc")).arg("run");
        runc.arg("--bundle").arg(&self.directory).arg(&self.name);
        runc
    }
}

/// The loader among them; none of a static program.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let said = Command::new("ldd").arg(program).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let words = said.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}
