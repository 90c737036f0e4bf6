//! A real S3 server that is not ours, versitygw, over a temporary folder, and test processes that are told of it.
//!
//! In: the program, which `cargo xtask test` builds and names in the environment. Out: an address, credentials for it,
//! one bucket. Where the program is not there, the test that wants it says so and looks at nothing.
//!
//! Credentials come from a process's environment, which a test cannot set for itself: what opens a root in the bucket
//! by itself is a test of its own, ignored but where another one begins it in a process that has them.

use object_store::aws::{AmazonS3, AmazonS3Builder};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The bucket that is there.
pub(crate) const BUCKET: &str = "profiles";
/// Where `cargo xtask test` says the program is.
const PROGRAM: &str = "STAKEOUT_S3_SERVER";
/// Where a test process finds the URL of its root.
const ROOT: &str = "STAKEOUT_TEST_ROOT";
const KEY: &str = "tests";
const SECRET: &str = "tests-secret";
const REGION: &str = "us-east-1";
/// It listens by then.
const STARTS: Duration = Duration::from_secs(20);
/// Another program may take the port that was free.
const TRIES: u32 = 5;

#[derive(Debug)]
pub(crate) struct Gateway {
    child: Child,
    address: String,
    _dir: tempfile::TempDir,
}

impl Gateway {
    /// Nothing where there is no such program: that is said past the runner, which keeps what passed tests print.
    pub(crate) fn start() -> Option<Self> {
        let program = match program() {
            Ok(program) => program,
            Err(why) => {
                let thread = std::thread::current();
                let test = thread.name().unwrap_or("a test");
                writeln!(std::io::stdout(), "\nSKIPPED: {test}: no S3 server: {why}").ok();
                return None;
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let [objects, metadata] = ["objects", "metadata"].map(|name| dir.path().join(name));
        std::fs::create_dir_all(objects.join(BUCKET)).unwrap();
        std::fs::create_dir(&metadata).unwrap();
        let log = dir.path().join("log");
        for _ in 0..TRIES {
            let address = free_address();
            let mut child = spawn(&program, &address, [&objects, &metadata], &log);
            if listens(&mut child, &address) {
                return Some(Self {
                    child,
                    address,
                    _dir: dir,
                });
            }
            child.kill().ok();
            child.wait().unwrap();
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        panic!("{} does not start:\n{said}", program.display());
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// As the environment names it, else where `cargo xtask test` builds it: beside this test's own program.
fn program() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(PROGRAM) {
        return Ok(PathBuf::from(named));
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    // TARGET/debug/deps/PROGRAM.
    let target = own.ancestors().nth(3).unwrap_or(Path::new("/"));
    let folder = target.join("xtask/tools/bin");
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    // Each version that was built has its file.
    let built = files.filter(|file| file.file_name().to_string_lossy().starts_with("versitygw-"));
    built.map(|file| file.path()).max().ok_or_else(|| {
        format!(
            "{PROGRAM} is not set and {} has no versitygw; cargo xtask test builds it where there is a Go",
            folder.display()
        )
    })
}

pub(crate) fn free_address() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().to_string()
}

fn spawn(program: &Path, address: &str, [objects, metadata]: [&Path; 2], log: &Path) -> Child {
    let log = std::fs::File::create(log).unwrap();
    let mut command = Command::new(program);
    command
        .env_clear()
        .args(["--access", KEY, "--secret", SECRET, "--region", REGION])
        .args(["--port", address, "--keep-alive", "--quiet", "posix"]);
    // Tags and types of objects are attributes of their files, where the file system has those.
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(objects, "user.stakeout", b"1", flags).is_err() {
        command.arg("--sidecar").arg(metadata);
    }
    command
        .arg(objects)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn listens(child: &mut Child, address: &str) -> bool {
    let start = Instant::now();
    while start.elapsed() < STARTS && child.try_wait().unwrap().is_none() {
        if TcpStream::connect(address).is_ok() {
            // Whoever answers may be another program that has taken the port: then this one ends.
            std::thread::sleep(Duration::from_millis(50));
            return child.try_wait().unwrap().is_none();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// The URL of a root in the bucket.
pub(crate) fn root(prefix: &str) -> String {
    format!("s3://{BUCKET}/{prefix}")
}

/// What a process needs to reach the bucket through this address: the server's own, or a relay's.
pub(crate) fn environment(address: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", REGION.to_owned()),
        ("NO_PROXY", "127.0.0.1".to_owned()),
    ]
}

/// The bucket as anybody sees it who may look.
pub(crate) fn bucket(address: &str) -> AmazonS3 {
    AmazonS3Builder::new()
        .with_endpoint(format!("http://{address}"))
        .with_allow_http(true)
        .with_access_key_id(KEY)
        .with_secret_access_key(SECRET)
        .with_region(REGION)
        .with_bucket_name(BUCKET)
        .build()
        .unwrap()
}

/// Runs the ignored test `name` of a module (as `module_path!` says it) in a process that reaches the bucket through
/// this address and finds this root. It must pass.
pub(crate) fn in_a_process(module: &str, name: &str, address: &str, root: &str) {
    let (_, module) = module.split_once("::").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", &format!("{module}::{name}")])
        .envs(environment(address))
        .env(ROOT, root)
        .output()
        .unwrap();
    let [printed, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    // A name that no test has would pass as well.
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{name}: {}\n{printed}\n{said}",
        output.status
    );
}

/// The root that this process was told of.
pub(crate) fn told_root() -> String {
    std::env::var(ROOT).expect("another test begins this one, in a process that is told of a bucket")
}
