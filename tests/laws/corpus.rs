//! What the fuzzer has found once stays found.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz::{facade, history};

#[test]
fn histories_of_transactions() {
    replay("history", |bytes| history::run(&fuzz::decode(bytes)));
}

#[test]
fn histories_of_operations() {
    replay("facade", |bytes| facade::run(&fuzz::decode(bytes)));
}

/// Runs every history in `fuzz/corpus/` that was made for `target`.
fn replay(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    assert!(!files.is_empty(), "nothing is in {}", folder.display());
    for file in files {
        println!("{}", file.display());
        run(&fs::read(file).unwrap());
    }
}
