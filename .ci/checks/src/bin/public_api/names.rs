//! The names that items of sibling crates have in the facade.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::document::{Document, Member};

/// The beginning of the names of its siblings.
pub const SIBLING: &str = "tidings_";

/// What the facade re-exports from its siblings.
pub struct Exports(Vec<Export>);

/// The names of these items, by the paths of their definition and those in their own crate.
#[derive(Default)]
pub struct Names(BTreeMap<String, Name>);

struct Export {
    definition: String,
    /// The path in its crate that the facade has written.
    path: String,
    facade: String,
}

enum Name {
    /// Its items have names of their own.
    Module(String),
    /// Its fields, variants and functions are named behind it.
    Item(String),
}

impl Exports {
    /// Reads the re-exports of the crate that `document` describes.
    pub fn read(document: &Document) -> Self {
        let mut exports = Vec::new();
        collect(document, document.root(), document.name(), &mut exports);
        Self(exports)
    }

    /// Whether `item` is a line that only says that something is re-exported.
    pub fn is_one_of(&self, item: &str) -> bool {
        let name = item.strip_prefix("pub use ");
        self.0.iter().any(|export| name == Some(&export.facade))
    }

    /// The paths at which the re-exported items are defined.
    pub fn definitions(&self) -> BTreeSet<String> {
        self.0.iter().map(|export| export.definition.clone()).collect()
    }

    /// Adds the names of what the facade re-exports from a sibling, and of what is in these modules.
    pub fn name(&self, sibling: &Document, names: &mut Names) {
        for export in self.0.iter().filter(|one| krate(&one.definition) == sibling.name()) {
            for id in sibling.defined_at(&export.definition) {
                names.add(sibling, &id, &export.path, &export.facade);
            }
        }
    }
}

impl Names {
    /// The item of the crate `krate` under its name in the facade. Returns `None` if the facade does
    /// not re-export it.
    pub fn reached(&self, item: &str, krate: &str) -> Option<String> {
        // `impl Trait for Type` belongs to its type.
        let own = item.split_once(" for ").map_or(item, |(_, of)| of);
        let own = &own[own.find(krate)?..];
        self.of(path_at(own)).map(|_| self.rename(item))
    }

    /// `item` with the facade's name for each path in it that the facade re-exports.
    pub fn rename(&self, item: &str) -> String {
        let mut renamed = String::new();
        let mut rest = item;
        // A bound of an associated type has no space before its path.
        while let Some(start) = rest.find(SIBLING) {
            let (before, from) = rest.split_at(start);
            let path = path_at(from);
            renamed.push_str(before);
            renamed.push_str(self.of(path).as_deref().unwrap_or(path));
            rest = &from[path.len()..];
        }
        renamed + rest
    }

    // The name of a path, or of the item that it is a part of.
    fn of(&self, path: &str) -> Option<String> {
        if let Some(Name::Module(name)) = self.0.get(path) {
            return Some(name.clone());
        }
        let ends = path.match_indices("::").map(|(end, _)| end).chain([path.len()]);
        let mut outer: Vec<_> = ends.map(|end| path.split_at(end)).collect();
        outer.reverse();
        outer.into_iter().find_map(|(item, part)| match self.0.get(item)? {
            Name::Item(name) => Some(format!("{name}{part}")),
            Name::Module(_) => None,
        })
    }

    fn add(&mut self, document: &Document, id: &Value, path: &str, facade: &str) {
        let definition = document.definition(id);
        if !document.is_module(id) {
            for path in definition.into_iter().chain([path.to_owned()]) {
                self.0.entry(path).or_insert_with(|| Name::Item(facade.to_owned()));
            }
            return;
        }
        for path in definition.into_iter().chain([path.to_owned()]) {
            self.0.entry(path).or_insert_with(|| Name::Module(facade.to_owned()));
        }
        for member in document.members(id) {
            self.add(document, member.id, &within(path, &member), &within(facade, &member));
        }
    }
}

fn collect(document: &Document, module: &Value, place: &str, exports: &mut Vec<Export>) {
    for member in document.members(module) {
        let facade = within(place, &member);
        if document.is_module(member.id) {
            collect(document, member.id, &facade, exports);
        } else if let (Some(source), Some(definition)) =
            (member.source, document.definition(member.id))
            && krate(&definition) != document.name()
        {
            let path = source_path(source, krate(&definition));
            exports.push(Export { definition, path, facade });
        }
    }
}

fn within(module: &str, member: &Member<'_>) -> String {
    member.name.map_or(module.to_owned(), |name| format!("{module}::{name}"))
}

fn krate(definition: &str) -> &str {
    definition.split_once("::").map_or(definition, |(krate, _)| krate)
}

// The path of a re-exported item as its crate has it: what the facade calls the crate may differ.
fn source_path(source: &str, krate: &str) -> String {
    let source = source.trim_start_matches("::");
    source.split_once("::").map_or(krate.to_owned(), |(_, path)| format!("{krate}::{path}"))
}

// The path with which `text` begins. Empty if it begins with another character.
fn path_at(text: &str) -> &str {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    let mut end = 0;
    loop {
        let part = text[end..].find(|one| !is_part(one)).unwrap_or(text.len() - end);
        end += part;
        match text[end..].strip_prefix("::") {
            Some(rest) if part > 0 && rest.starts_with(is_part) => end += "::".len(),
            _ => return &text[..end],
        }
    }
}
