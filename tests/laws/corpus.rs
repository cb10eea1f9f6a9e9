//! What the fuzzer has found once stays found.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::{facade, filters, history, keys, reads, records, requests, rules, templates};

use crate::seeded;

#[test]
fn histories_of_transactions() {
    replay("history", |bytes| history::run(&testkit::decode(bytes)));
}

#[test]
fn histories_of_operations() {
    replay("facade", |bytes| facade::run(&testkit::decode(bytes)));
}

#[test]
fn any_cursor() {
    replay("keys", |bytes| keys::run(&testkit::step(bytes)));
}

#[test]
fn any_condition() {
    replay("rules", |bytes| rules::run(&rules::decode(bytes)));
}

#[test]
fn any_filters() {
    replay("filters", |bytes| filters::run(&filters::decode(bytes)));
}

#[test]
fn any_template() {
    replay("templates", templates::run);
}

#[test]
fn any_stored_bytes() {
    replay("records", |bytes| records::run(records::decode(bytes)));
}

#[test]
fn any_text_as_a_request() {
    replay("reads", reads::run);
}

#[test]
fn any_request() {
    replay("requests", |bytes| requests::run(&requests::decode(bytes)));
}

#[test]
fn every_sound_request_is_done() {
    for request in requests::sound() {
        let world = seeded::copy();
        let answer = requests::call(&world.engine, &world.env, request);
        assert!(answer.is_ok(), "{request} is answered with {answer:?}");
    }
}

/// Runs everything in `fuzz/corpus/` that was made for `target`.
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
