//! Lists the public API of `tidings`, and compares it with the listing that is checked in:
//! `cargo run --manifest-path .ci/checks/Cargo.toml --bin public_api`. With `TIDINGS_BLESS=1` it writes the
//! listing instead.
//!
//! The facade re-exports items and modules of its sibling crates, also from hidden modules. They are listed
//! under the names that they have in the facade, wherever they are defined. A line with another name of a
//! sibling is an error: the facade shows a type that nobody can name. Left out are blanket, derived and auto-trait implementations, the
//! functions of a trait's implementation, which the trait lists, and the heads of inherent ones.

mod document;
mod names;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use document::Document;
use names::{Exports, Names, SIBLING};
use public_api::Builder;

const FACADE: &str = "tidings";
const SIBLINGS: [&str; 4] =
    ["tidings-domain", "tidings-store", "tidings-activity", "tidings-bench-data"];
const LISTING: &str = "tests/golden/public-api.txt";
const OPTIONS: &str = "-Zunstable-options --output-format=json --document-hidden-items -Dwarnings";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let documents = rustdoc(&root)?;
    let facade = documents.join(FACADE).with_extension("pruned.json");
    let mut document = Document::read(&documents.join(FACADE).with_extension("json"))?;
    document.prune(&BTreeSet::new());
    document.write(&facade)?;
    let exports = Exports::read(&document);
    let mut names = Names::default();
    let mut siblings = Vec::new();
    for sibling in SIBLINGS {
        let json = documents.join(sibling.replace('-', "_")).with_extension("json");
        let mut document = Document::read(&json)?;
        // An item that is hidden has a name, too, but no line.
        exports.name(&document, &mut names);
        document.prune(&exports.definitions());
        let json = json.with_extension("pruned.json");
        document.write(&json)?;
        siblings.push((document, json));
    }
    let mut lines = Vec::new();
    for item in items(&facade)? {
        // A re-exported item is listed itself, further down.
        if !exports.is_one_of(&item) {
            lines.push(names.rename(&item));
        }
    }
    for (document, json) in siblings {
        let items = items(&json)?;
        lines.extend(items.iter().filter_map(|item| names.reached(item, document.name())));
    }
    lines.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
    lines.dedup();
    let items = lines.iter().filter(|line| is_named(line)).count();
    println!("{} lines, {items} of them without fields, variants and implementations", lines.len());
    let inner: Vec<_> = lines.iter().filter(|line| has_inner_name(line)).cloned().collect();
    if !inner.is_empty() {
        return Err(format!("the facade does not re-export:\n{}", inner.join("\n")).into());
    }
    compare(&root.join(LISTING), &(lines.join("\n") + "\n"))
}

/// Documents all packages as JSON. Their features are those of the other steps, so no crate is checked anew.
fn rustdoc(root: &Path) -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let status = Command::new(env!("CARGO"))
        .args(["doc", "--quiet", "--locked", "--workspace", "--no-deps", "--all-features", "--lib"])
        .args(["--target-dir".as_ref(), target.as_os_str()])
        .env("RUSTDOC", root.join(".ci/unstable"))
        .env("RUSTDOCFLAGS", OPTIONS)
        .current_dir(root)
        .status()?;
    if !status.success() {
        return Err("the packages cannot be documented".into());
    }
    Ok(target.join("doc"))
}

fn items(json: &Path) -> Result<Vec<String>> {
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    let mut items: Vec<_> = api.items().map(ToString::to_string).collect();
    let mut implementor = None;
    items.retain(|item| {
        let ours = implementor.as_ref().is_some_and(|of: &String| item.contains(of));
        if item.starts_with("impl") {
            implementor = item.split_once(" for ").map(|(_, of)| format!(" {}::", plain(of)));
        }
        if item.starts_with("impl") { implementor.is_some() } else { !ours }
    });
    Ok(items)
}

/// A type without its bounds.
fn plain(of: &str) -> &str {
    of.split_once(" where ").map_or(of, |(of, _)| of)
}

/// Items follow their module or type, whatever their kind.
fn sort_key(line: &str) -> (&str, &str) {
    (line.find(FACADE).map_or(line, |start| &line[start..]), line)
}

/// Whether `line` is more than an implementation, a field or a variant.
fn is_named(line: &str) -> bool {
    !line.starts_with("impl") && !line.contains("pub tidings::")
}

/// Whether `line` has a name that no host can write.
fn has_inner_name(line: &str) -> bool {
    line.contains(SIBLING) || line.contains("crate::")
}

fn compare(listing: &Path, lines: &str) -> Result<()> {
    if env::var_os("TIDINGS_BLESS").is_some() {
        return Ok(fs::write(listing, lines)?);
    }
    let before = fs::read_to_string(listing).unwrap_or_default();
    if before == lines {
        return Ok(());
    }
    let only_in = |one: &str, other: &str, sign: &str| {
        let other: Vec<_> = other.lines().collect();
        one.lines().filter(|line| !other.contains(line)).for_each(|line| println!("{sign} {line}"));
    };
    only_in(&before, lines, "-");
    only_in(lines, &before, "+");
    Err(format!("the public API is not that of {LISTING}; TIDINGS_BLESS=1 accepts it").into())
}
