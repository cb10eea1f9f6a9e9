//! The names that items of sibling crates have in the facade.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Result;

/// What the facade re-exports from its siblings: where it is, and what the facade calls it.
pub struct Exports(Vec<(String, String)>);

/// The place in a listed item at which its own path stands.
pub struct OwnPath(String);

impl Exports {
    /// Reads the re-exports of the crate that `json` documents.
    pub fn read(json: &Path) -> Result<Self> {
        let document: Value = serde_json::from_slice(&fs::read(json)?)?;
        let mut exports = Vec::new();
        let root = &document["index"][document["root"].to_string()];
        collect(&document, root, root["name"].as_str().unwrap_or_default(), &mut exports);
        // The longest path is the most specific one.
        exports.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Ok(Self(exports))
    }

    /// Whether `item` is a line that only says that something is re-exported.
    pub fn is_one_of(&self, item: &str) -> bool {
        let name = item.strip_prefix("pub use ");
        self.0.iter().any(|(_, facade)| name == Some(facade))
    }

    /// The item of a sibling under its name in the facade. Returns `None` if the facade does not
    /// re-export it.
    pub fn reached(&self, item: &str, own: &OwnPath) -> Option<String> {
        let path = own.of(item)?;
        let exported = |(from, _): &&(String, String)| is_within(path, from);
        self.0.iter().find(exported).map(|_| self.rename(item))
    }

    /// `item` with the facade's name for each path in it that the facade re-exports.
    pub fn rename(&self, item: &str) -> String {
        let mut renamed = String::new();
        let mut rest = item;
        while let Some(next) = rest.chars().next() {
            if let Some((from, facade)) = self.0.iter().find(|(from, _)| is_within(rest, from)) {
                renamed.push_str(facade);
                rest = &rest[from.len()..];
            } else {
                renamed.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        renamed
    }
}

impl OwnPath {
    /// The paths of items in the crate `name`.
    pub fn in_crate(name: &str) -> Self {
        Self(name.to_owned())
    }

    fn of<'i>(&self, item: &'i str) -> Option<&'i str> {
        // `impl Trait for Type` belongs to its type.
        let item = item.split_once(" for ").map_or(item, |(_, of)| of);
        item.find(&self.0).map(|start| &item[start..])
    }
}

// Whether `path` is `outer`, or in it.
fn is_within(path: &str, outer: &str) -> bool {
    let after = path.strip_prefix(outer).and_then(|rest| rest.chars().next());
    path == outer || after.is_some_and(|after| !after.is_alphanumeric() && after != '_')
}

fn collect(document: &Value, module: &Value, place: &str, exports: &mut Vec<(String, String)>) {
    let items = module["inner"]["module"]["items"].as_array();
    for id in items.into_iter().flatten() {
        let item = &document["index"][id.to_string()];
        let export = &item["inner"]["use"];
        let target = &document["paths"][export["id"].to_string()];
        if item["inner"]["module"].is_object() {
            let name = item["name"].as_str().unwrap_or_default();
            collect(document, item, &format!("{place}::{name}"), exports);
        } else if target["crate_id"].as_u64().is_some_and(|krate| krate != 0) {
            let name = export["name"].as_str().unwrap_or_default();
            exports.push((path(export, target), format!("{place}::{name}")));
        }
    }
}

// The path of a re-exported item as its crate has it: what the facade calls the crate may differ.
fn path(export: &Value, target: &Value) -> String {
    let source = export["source"].as_str().unwrap_or_default().trim_start_matches("::");
    let krate = target["path"][0].as_str().unwrap_or_default();
    source.split_once("::").map_or(krate.to_owned(), |(_, path)| format!("{krate}::{path}"))
}
