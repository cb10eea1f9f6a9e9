//! What reaches the disk, as Linux counts it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise, major, minor};

// A system is at rest when it has written nothing for that long.
const REST: Duration = Duration::from_millis(30);

/// Reads the counters.
pub(crate) struct Meter {
    // Counters of the device, which other processes share.
    device: Option<PathBuf>,
    counts_bytes: bool,
}

/// Counters at some moment.
#[derive(Clone, Copy)]
pub(crate) struct Counters {
    /// Bytes that this process has handed to the operating system, to be written.
    pub(crate) bytes: Option<u64>,
    /// Flushes of the device. A sync of a file is one of them.
    pub(crate) syncs: Option<u64>,
}

impl Meter {
    /// Returns a meter for the device of a folder.
    pub(crate) fn new(folder: &Path) -> Self {
        let device = folder.metadata().unwrap().dev();
        let device = format!("/sys/dev/block/{}:{}", major(device), minor(device));
        let mut device = fs::canonicalize(device).ok();
        // The flushes of a partition are counted for its disk.
        if let Some(path) = device.as_mut().filter(|path| path.join("partition").exists()) {
            path.pop();
        }
        Self { device: device.map(|path| path.join("stat")), counts_bytes: true }
    }

    /// Returns a meter that counts nothing.
    #[cfg(feature = "postgres")]
    pub(crate) fn none() -> Self {
        Self { device: None, counts_bytes: false }
    }

    pub(crate) fn now(&self) -> Counters {
        let bytes = self.counts_bytes.then(|| of_process("wchar")).flatten();
        Counters { bytes, syncs: self.syncs() }
    }

    // The sixteenth field.
    fn syncs(&self) -> Option<u64> {
        let stat = fs::read_to_string(self.device.as_ref()?).ok()?;
        stat.split_whitespace().nth(15)?.parse().ok()
    }
}

/// Waits until this process writes no more to files. Returns the time of the last write after `start`, or
/// `start`.
pub(crate) fn rest(start: Instant) -> Instant {
    // What is sent to a server does not count, such as the call of other processes behind a commit.
    let written = || of_process("write_bytes");
    let (mut last, mut bytes) = (start, written());
    let mut looked = Instant::now();
    while looked.duration_since(last) < REST {
        thread::sleep(Duration::from_millis(1));
        looked = Instant::now();
        let now = written();
        if now != bytes {
            (last, bytes) = (looked, now);
        }
    }
    last
}

// A counter of this process, by the name that Linux gives it.
fn of_process(counter: &str) -> Option<u64> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    let mut counters = io.lines().filter_map(|line| line.split_once(": "));
    counters.find(|(name, _)| *name == counter)?.1.parse().ok()
}

/// Drops the pages of a file from the cache of the operating system.
pub(crate) fn forget(path: &Path) {
    let file = fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}
