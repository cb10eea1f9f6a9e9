//! A proxy in front of a PostgreSQL server: connections are slow, each in its own way, and end in the
//! middle of what they say.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// Name of the socket of a server in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// A proxy behind a socket in a folder of its own. Its threads end with the process.
#[derive(Debug)]
pub struct Proxy {
    folder: TempDir,
    wires: Arc<Wires>,
}

#[derive(Debug, Default)]
struct Wires {
    /// Connections by their numbers.
    all: Mutex<Vec<(u64, [UnixStream; 2])>>,
    /// Number of connections so far.
    count: AtomicU64,
    /// Number of pieces that clients have sent so far.
    sent: AtomicU64,
    /// Number of bytes that the server has sent so far.
    answered: AtomicU64,
    /// Number of the connection on which a client has sent the last piece.
    last: AtomicU64,
    /// Connections are without the settings of their clients.
    loses_settings: AtomicBool,
    /// What the server says is lost.
    is_deaf: AtomicBool,
    /// Number of connections, of the first ones, to which the server says nothing.
    silent: AtomicU64,
}

impl Proxy {
    /// A proxy in front of the server in `folder`.
    ///
    /// # Panics
    ///
    /// If there is no room for a socket.
    pub fn before(folder: &Path) -> Self {
        let own = tempfile::Builder::new().prefix("px").tempdir_in("/tmp").unwrap();
        let listener = UnixListener::bind(own.path().join(SOCKET)).unwrap();
        let (wires, server) = (Arc::<Wires>::default(), folder.join(SOCKET));
        let accepting = Arc::clone(&wires);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Without a server, the client finds its connection closed.
                drop(accepting.join(client, &server));
            }
        });
        Self { folder: own, wires }
    }

    /// How to connect.
    pub fn url(&self) -> String {
        format!("host={} user=postgres dbname=postgres", self.folder.path().display())
    }

    /// Number of pieces that clients have sent so far: one for each round trip.
    pub fn sent(&self) -> u64 {
        self.wires.sent.load(Ordering::Relaxed)
    }

    /// Number of bytes that the server has sent so far.
    pub fn answered(&self) -> u64 {
        self.wires.answered.load(Ordering::Relaxed)
    }

    /// Loses the search paths that clients set from now on, as a pooler does that gives each transaction
    /// another connection.
    pub fn lose_settings(&self) {
        self.wires.loses_settings.store(true, Ordering::Relaxed);
    }

    /// Loses what the server says from now on, or carries it again. What is lost does not come later.
    pub fn lose_answers(&self, is_deaf: bool) {
        self.wires.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    /// Loses what the server says on the connections that are there. Nobody closes them.
    pub fn silence(&self) {
        let all = self.wires.count.load(Ordering::Relaxed);
        self.wires.silent.store(all, Ordering::Relaxed);
    }

    /// Ends all connections, with what is under way.
    ///
    /// # Panics
    ///
    /// If a thread of the proxy has panicked.
    pub fn cut(&self) {
        for (_, streams) in self.wires.all.lock().unwrap().drain(..) {
            end(&streams);
        }
    }

    /// Ends the connection on which a client has sent the last piece.
    ///
    /// # Panics
    ///
    /// If a thread of the proxy has panicked.
    pub fn cut_last(&self) {
        let last = self.wires.last.load(Ordering::Relaxed);
        let mut all = self.wires.all.lock().unwrap();
        for (_, streams) in all.extract_if(.., |(number, _)| *number == last) {
            end(&streams);
        }
    }
}

impl Wires {
    fn join(self: &Arc<Self>, client: UnixStream, server: &PathBuf) -> io::Result<()> {
        let server = UnixStream::connect(server)?;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        // From 0 to 3 milliseconds, so that what is said later on one wire may arrive earlier.
        let delay = Duration::from_millis(number % 4);
        for (from, to, is_client) in [(&client, &server, true), (&server, &client, false)] {
            let (from, to, wires) = (from.try_clone()?, to.try_clone()?, Arc::clone(self));
            let arrives = move |piece: &mut [u8]| wires.arrives(number, is_client, piece);
            thread::spawn(move || carry(from, to, delay, arrives));
        }
        self.all.lock().unwrap().push((number, [client, server]));
        Ok(())
    }

    // Counts a piece. Returns `false` if it is lost.
    fn arrives(&self, number: u64, is_of_client: bool, piece: &mut [u8]) -> bool {
        if is_of_client {
            self.sent.fetch_add(1, Ordering::Relaxed);
            self.last.store(number, Ordering::Relaxed);
            if self.loses_settings.load(Ordering::Relaxed) {
                lose_search_path(piece);
            }
        } else {
            self.answered.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        let is_silent = number < self.silent.load(Ordering::Relaxed);
        is_of_client || !is_silent && !self.is_deaf.load(Ordering::Relaxed)
    }
}

// A setting of as many bytes takes its place, which means nothing to the server.
fn lose_search_path(piece: &mut [u8]) {
    let [before, after] = [b"SET search_path", b"SET pooler.path"];
    if let Some(at) = piece.windows(before.len()).position(|bytes| bytes == before) {
        piece[at..at + after.len()].copy_from_slice(after);
    }
}

fn end(streams: &[UnixStream; 2]) {
    for stream in streams {
        drop(stream.shutdown(Shutdown::Both));
    }
}

fn carry(
    mut from: UnixStream,
    mut to: UnixStream,
    delay: Duration,
    arrives: impl Fn(&mut [u8]) -> bool,
) {
    let mut piece = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let arrives = arrives(&mut piece[..length]);
        thread::sleep(delay / 4);
        if arrives && to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}
