//! No operation that writes is missing where all of them are tested.
//!
//! The names of the operations are those in the engine's code. The one list of requests has each of
//! them: what is on it is fuzzed, fails at each store call, and meets power cuts. The table of
//! idempotent calls has each of them, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use testkit::requests::writing;

/// Calls with the name of an operation that writes, without white space.
const CALLS: [&str; 5] =
    [".write(\"", ".write_in_steps(\"", ".write_at(now,\"", ".edit(\"", ".change(\""];

#[test]
fn every_operation_that_writes_is_listed() {
    let operations = operations();
    assert!(operations.len() > 70, "only {} operations are found", operations.len());
    let requested: BTreeSet<String> = writing().map(|request| name(request[0].as_str())).collect();
    let missing: Vec<_> = operations.difference(&requested).collect();
    assert!(missing.is_empty(), "no request of {missing:?}");

    let table = fs::read_to_string(root().join("tests/operations/idempotency/writes.rs")).unwrap();
    let is_missing = |operation: &&String| {
        let named = if *operation == "links.unsubscribe" { "unsubscribe" } else { operation };
        // The call of it has another name.
        *operation != "integrations.ingest_receipt" && !table.contains(&format!("(\"{named}\""))
    };
    let missing: Vec<_> = operations.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?} are in no row of the idempotency table");
}

fn name(of: Option<&str>) -> String {
    of.unwrap_or_default().to_owned()
}

/// The operations that the engine's code names.
fn operations() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in sources(&root().join("crates/engine/src")) {
        let code = fs::read_to_string(path).unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = lines.flat_map(str::chars).filter(|it| !it.is_whitespace()).collect();
        for call in CALLS {
            let calls = code.match_indices(call).map(|(at, _)| &code[at + call.len()..]);
            let names = calls.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name);
            found.extend(names.filter(|name| name.contains('.') || *name == "unsubscribe").map(
                |name| if name == "unsubscribe" { "links.unsubscribe".into() } else { name.into() },
            ));
        }
    }
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
