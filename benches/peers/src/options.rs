//! What is asked for: sizes, servers, files.

use std::env;
use std::path::PathBuf;

/// How many notifications there are in a segment of Tidings' index.
pub(crate) const SEGMENT: u64 = 61_440;

/// What is asked for.
pub(crate) struct Options {
    /// How many notifications, each in a run of its own.
    pub(crate) sizes: Vec<u64>,
    /// Where a PostgreSQL server is.
    pub(crate) postgres: Option<String>,
    /// The file whose section between the marks is replaced.
    pub(crate) markdown: Option<PathBuf>,
    /// Where the plot goes, if there are several sizes.
    pub(crate) plot: PathBuf,
}

impl Options {
    /// From the environment and the arguments.
    pub(crate) fn read() -> Self {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let sizes = env::var("TIDINGS_BENCH_SIZES").unwrap_or("1000000".into());
        let mut options = Self {
            sizes: sizes.split(',').map(|size| full(size.trim().parse().unwrap())).collect(),
            postgres: env::var("TIDINGS_BENCH_POSTGRES").ok(),
            markdown: None,
            plot: here.join("latency.svg"),
        };
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            assert_eq!(argument, "--markdown", "there is one option: --markdown <file>");
            options.markdown = Some(arguments.next().expect("--markdown needs a file").into());
        }
        options
    }
}

// The size nearest to that one with which Tidings has as much unsealed as there can be, its worst
// case, unless that is far off.
fn full(size: u64) -> u64 {
    let full = ((size + SEGMENT / 2) / SEGMENT * SEGMENT).saturating_sub(1);
    if full.abs_diff(size) * 20 < size { full } else { size }
}
