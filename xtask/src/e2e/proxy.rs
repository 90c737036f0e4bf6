//! A network path that can be cut: bytes go through while it is whole; while it is cut, nothing moves and nobody is
//! told, as when a cable is pulled. Connections that were open during a cut are reset when it ends.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// How often a stalled or idle direction looks at the state.
const LOOK: Duration = Duration::from_millis(50);

/// Dropping it ends the path for good.
#[derive(Debug)]
pub(crate) struct Path {
    address: String,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    cut: AtomicBool,
    closed: AtomicBool,
    /// Counts cuts: a connection knows whether it has seen one.
    cuts: AtomicU64,
    /// Connections that a cut has met.
    met: AtomicU64,
}

impl Path {
    /// A path from a new port of loopback to `target` (`HOST:PORT`).
    pub(crate) fn to(target: &str) -> Result<Path> {
        let listener = TcpListener::bind("127.0.0.1:0").context("can't listen for the proxy")?;
        let address = listener.local_addr()?.to_string();
        let state = Arc::new(State::default());
        let (shared, target) = (Arc::clone(&state), target.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.closed.load(Ordering::Relaxed) {
                    return;
                }
                let (shared, target) = (Arc::clone(&shared), target.clone());
                thread::spawn(move || carry(&client, &target, &shared));
            }
        });
        Ok(Path { address, state })
    }

    /// The near end as a URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Nothing moves any more.
    pub(crate) fn cut(&self) {
        self.state.cuts.fetch_add(1, Ordering::Relaxed);
        self.state.cut.store(true, Ordering::Relaxed);
    }

    /// New connections work again.
    pub(crate) fn mend(&self) {
        self.state.cut.store(false, Ordering::Relaxed);
    }

    /// Connections that were open while the path was cut.
    pub(crate) fn met(&self) -> u64 {
        self.state.met.load(Ordering::Relaxed)
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(&self.address);
    }
}

/// Carries one connection both ways until one end closes, a cut has passed, or the path is closed.
fn carry(client: &TcpStream, target: &str, state: &State) {
    let cuts = state.cuts.load(Ordering::Relaxed);
    // A connection that begins during a cut waits for its end like any other.
    let server = if wait_whole(state) {
        TcpStream::connect(target)
    } else {
        return;
    };
    let Ok(server) = server else { return };
    thread::scope(|scope| {
        scope.spawn(|| copy(client, &server, state, cuts));
        copy(&server, client, state, cuts);
    });
    if state.cuts.load(Ordering::Relaxed) != cuts {
        state.met.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits out a cut; false when the path is closed.
fn wait_whole(state: &State) -> bool {
    while state.cut.load(Ordering::Relaxed) {
        if state.closed.load(Ordering::Relaxed) {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, state: &State, cuts: u64) {
    let mut buffer = vec![0; 64 << 10];
    let _ = from.set_read_timeout(Some(LOOK));
    loop {
        let read = from.read(&mut buffer);
        // What was read before a cut but not yet passed on is lost with it.
        if state.cuts.load(Ordering::Relaxed) != cuts {
            wait_whole(state);
            break;
        }
        match read {
            Ok(0) => break,
            Ok(length) => {
                if to.write_all(buffer.get(..length).unwrap_or_default()).is_err() {
                    break;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if state.closed.load(Ordering::Relaxed) {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    // Half-closed connections don't occur in HTTP: the end of one direction is the end of both.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
