//! Names that the specification does not have, in requests.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use domain::json;
use domain::preference::GlobalPreferenceUpdate;
use domain::workflow::WorkflowCreate;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The names. Each is in a file of `own/`.
const NAMES: [&str; 7] = [
    "dynamicKey",
    "extendToSchedule",
    "missingVariables",
    "onPast",
    "outside",
    "runIf",
    "windowType",
];

#[test]
fn names_of_our_own_are_read_and_written() {
    let mut names = BTreeSet::new();
    read_and_written::<WorkflowCreate>("workflow.json", &mut names);
    read_and_written::<GlobalPreferenceUpdate>("global_preference.json", &mut names);
    let missing: Vec<_> = NAMES.iter().filter(|name| !names.contains(**name)).collect();
    assert_eq!(missing, [&""; 0]);
}

fn read_and_written<T>(file: &str, names: &mut BTreeSet<String>)
where
    T: Serialize + DeserializeOwned + json::Shaped + fmt::Debug,
{
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/own"));
    let text = fs::read(folder.join(file)).unwrap();
    let request: T = json::read(&text).unwrap_or_else(|refused| panic!("{file}: {refused}"));
    let written = serde_json::to_value(&request).unwrap();
    assert_eq!(written, serde_json::from_slice::<Value>(&text).unwrap(), "{file}: {request:?}");
    collect(&written, names);
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            collect(value, names);
        }),
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
