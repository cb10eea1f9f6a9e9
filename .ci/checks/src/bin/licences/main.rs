//! Checks what the packages of this repository are made of: `cargo run --manifest-path
//! .ci/checks/Cargo.toml --bin licences`.
//!
//! * The licence of every dependency allows permissive use.
//! * Every dependency comes from crates.io or from this repository.
//! * The library links no foreign code: what `tidings` is built from is Rust.

mod expression;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::str;

use serde_json::Value;

const WORKSPACES: [&str; 3] = [".", ".ci/checks", "fuzz"];
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
// Other platforms have dependencies of their own, which nothing here builds.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
const LIBRARY: &str = "tidings";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut problems = BTreeSet::new();
    for workspace in WORKSPACES {
        let metadata = metadata(&root.join(workspace))?;
        let packages = metadata["packages"].as_array().ok_or("no packages")?;
        problems.extend(packages.iter().filter_map(problem));
        if workspace == "." {
            problems.extend(foreign(&metadata));
        }
        println!("{workspace}: {} packages", packages.len());
    }
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() { Ok(()) } else { Err("see above".into()) }
}

fn metadata(workspace: &Path) -> Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--all-features", "--format-version", "1"])
        .args(["--filter-platform", PLATFORM])
        .current_dir(workspace)
        .output()?;
    if !output.status.success() {
        return Err(str::from_utf8(&output.stderr)?.into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn problem(package: &Value) -> Option<String> {
    let licence = package["license"].as_str().unwrap_or_default();
    let (name, source) = (&package["name"], package["source"].as_str());
    if !expression::is_allowed(licence) {
        Some(format!("{name} has the licence `{licence}`"))
    } else if source.is_some_and(|source| source != CRATES_IO) {
        Some(format!("{name} comes from {}", source.unwrap_or_default()))
    } else {
        None
    }
}

/// What the library is built from and links something else.
fn foreign(metadata: &Value) -> Vec<String> {
    let packages = |id: &Value| list(&metadata["packages"]).find(|package| package["id"] == *id);
    let nodes = |id: &Value| list(&metadata["resolve"]["nodes"]).find(|node| node["id"] == *id);
    let library = list(&metadata["packages"]).find(|package| package["name"] == LIBRARY);
    let mut reached: Vec<&Value> = library.into_iter().map(|library| &library["id"]).collect();
    let mut next = 0;
    while let Some(node) = reached.get(next).and_then(|id| nodes(id)) {
        next += 1;
        for dependency in list(&node["deps"]).filter(|dependency| is_linked(dependency)) {
            if !reached.contains(&&dependency["pkg"]) {
                reached.push(&dependency["pkg"]);
            }
        }
    }
    let links = reached.into_iter().filter_map(packages).filter(|found| !found["links"].is_null());
    links.map(|package| format!("{} links {}", package["name"], package["links"])).collect()
}

// A dependency of the tests or of a build script is not linked.
fn is_linked(dependency: &Value) -> bool {
    list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
