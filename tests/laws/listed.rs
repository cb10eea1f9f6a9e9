//! No operation is missing where all of them are tested.
//!
//! The names of the operations are those in the engine's code. The one list of requests has each of
//! them: what is on it is fuzzed, is made in one environment beside another, meets damage and fails
//! at each store call. The table of idempotent calls has each of those that write, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::requests::{sound, writing};

/// Calls with the name of an operation that writes, without white space.
const WRITING: [&str; 10] = [
    ".write(\"",
    ".write_in_steps(\"",
    ".write_in_steps_with(\"",
    ".write_deletion(\"",
    ".accept_as(\"",
    ".edit(\"",
    ".edit_matching(\"",
    ".clear(\"",
    ".write_naming(\"",
    ".write_of(\"",
];

/// Calls with the name of any other operation.
const READING: [&str; 4] = [".read(\"", ".feed(\"", ".counted(\"", "operation(\""];

/// Operations on a whole store, or a whole environment of it, which have laws of their own.
const OF_THE_WHOLE: [&str; 8] = [
    "delivery.run_until",
    "engine.backup",
    "engine.check",
    "engine.copy_to",
    "engine.repair",
    "engine.reseal",
    "organization.delete",
    "organization.delete_environment",
];

/// Needs a provider that reads reports, see `tests/operations/receipts.rs`.
const OF_A_PROVIDER: &str = "integrations.ingest_inbound";

#[test]
fn every_operation_that_writes_is_listed() {
    let operations = operations(&WRITING);
    assert!(operations.len() > 70, "only {} operations are found", operations.len());
    let requested: BTreeSet<String> = writing().flat_map(methods).collect();
    let missing: Vec<_> = operations.difference(&requested).collect();
    assert_eq!(missing, [OF_A_PROVIDER], "they have no request");

    let table = fs::read_to_string(root().join("tests/operations/idempotency/writes.rs")).unwrap();
    let is_missing = |operation: &&String| !table.contains(&format!("(\"{operation}\""));
    let missing: Vec<_> = operations.iter().filter(is_missing).collect();
    // Both are in the tests of receipts.
    let others = [OF_A_PROVIDER, "integrations.ingest_receipt"];
    assert_eq!(missing, others, "they are in no row of the idempotency table");
    println!("{} operations that write are listed", operations.len());
}

#[test]
fn every_operation_that_reads_is_listed() {
    let operations = operations(&READING);
    assert!(operations.len() > 70, "only {} operations are found", operations.len());
    let requested: BTreeSet<String> = sound().iter().flat_map(methods).collect();
    let missing: Vec<_> = operations.difference(&requested).collect();
    assert_eq!(missing, OF_THE_WHOLE, "they have no request");
    println!("{} operations that read are listed", operations.len());
}

/// The names of all operations in the engine's code.
pub fn all() -> BTreeSet<String> {
    const OTHERS: [&str; 2] = [".open(\"", "constNAME:&str=\""];
    operations(&[&WRITING[..], &READING, &OTHERS].concat())
}

/// The methods that requests of this name call. The files with the answers of earlier formats have other
/// names for some.
pub fn methods(request: &Value) -> Vec<String> {
    let words = request.as_array().unwrap();
    let words = if words[0] == "idempotent" { &words[2..] } else { words };
    let name = words[0].as_str().unwrap();
    let methods = match name {
        "keys.create" => vec!["api_keys.create"],
        "keys.list" => vec!["api_keys.list"],
        "keys.revoke" => vec!["api_keys.revoke"],
        "links.read" => vec!["scope.read_unsubscribe"],
        "links.unsubscribe" => vec!["scope.unsubscribe"],
        "links.url" => vec!["scope.unsubscribe_url"],
        "suppressions.clear" => vec!["suppressions.clear_channel", "suppressions.clear_all"],
        _ => vec![name],
    };
    methods.into_iter().map(str::to_owned).collect()
}

/// The operations that the engine's code names in these calls.
fn operations(calls: &[&str]) -> BTreeSet<String> {
    let (mut found, mut used) = (BTreeSet::new(), BTreeSet::new());
    for path in sources(&root().join("crates/engine/src")) {
        let code = fs::read_to_string(path).unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = lines.flat_map(str::chars).filter(|it| !it.is_whitespace()).collect();
        for call in calls {
            used.extend(code.contains(call).then_some(*call));
            let calls = code.match_indices(call).map(|(at, _)| &code[at + call.len()..]);
            let names = calls.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name);
            // The name of an operation has its group in front.
            found.extend(names.filter(|name| name.contains('.')).map(str::to_owned));
        }
    }
    assert_eq!(used, calls.iter().copied().collect(), "no code has some of the calls");
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let each = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    each.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
