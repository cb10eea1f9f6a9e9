//! What rustdoc writes about a crate, as JSON.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Result;

/// The documentation of a crate.
pub struct Document(Value);

/// An item of a module: one of its own, or one that it re-exports.
pub struct Member<'d> {
    pub id: &'d Value,
    /// The name in the module. `None` for all items of a module (`module::*`).
    pub name: Option<&'d str>,
    /// The path that the module has written in a `use`.
    pub source: Option<&'d str>,
}

impl Document {
    pub fn read(json: &Path) -> Result<Self> {
        Ok(Self(serde_json::from_slice(&fs::read(json)?)?))
    }

    pub fn write(&self, json: &Path) -> Result<()> {
        Ok(fs::write(json, serde_json::to_vec(&self.0)?)?)
    }

    /// The id of the crate itself.
    pub fn root(&self) -> &Value {
        &self.0["root"]
    }

    pub fn name(&self) -> &str {
        self.item(self.root())["name"].as_str().unwrap_or_default()
    }

    /// The path at which an item is defined, through private modules, too. It is the same in the
    /// documents of all crates, other than the id.
    pub fn definition(&self, id: &Value) -> Option<String> {
        let path = self.0["paths"][id.to_string()]["path"].as_array()?;
        let parts: Vec<_> = path.iter().filter_map(Value::as_str).collect();
        Some(parts.join("::"))
    }

    /// The ids of the items of this crate that are defined at `definition`: a module and a function may
    /// share one.
    pub fn defined_at(&self, definition: &str) -> Vec<Value> {
        let ids = self.0["index"].as_object().into_iter().flat_map(|index| index.values());
        let ids = ids.map(|item| &item["id"]);
        ids.filter(|id| self.definition(id).as_deref() == Some(definition)).cloned().collect()
    }

    /// Whether an item is a module of this crate.
    pub fn is_module(&self, id: &Value) -> bool {
        self.item(id)["inner"]["module"].is_object()
    }

    /// The items of a module. Those that the document leaves out are not among them.
    pub fn members(&self, module: &Value) -> impl Iterator<Item = Member<'_>> {
        let items = self.item(module)["inner"]["module"]["items"].as_array();
        items.into_iter().flatten().filter_map(|id| {
            let item = self.item(id);
            let export = &item["inner"]["use"];
            if export.is_object() {
                let name = export["name"].as_str().filter(|_| export["is_glob"] != true);
                return Some(Member { id: &export["id"], name, source: export["source"].as_str() });
            }
            let name = Some(item["name"].as_str()?);
            Some(Member { id, name, source: None })
        })
    }

    /// Leaves out what is hidden, and its re-exports and traits, but not the way to the items that are
    /// defined at one of `exported`.
    pub fn prune(&mut self, exported: &BTreeSet<String>) {
        let all = self.0["index"].as_object().into_iter().flatten();
        let is_out = |item: &Value| is_hidden(item) && !self.leads_to(&item["id"], exported);
        let out: BTreeSet<_> =
            all.filter(|(_, item)| is_out(item)).map(|(id, _)| id.clone()).collect();
        let Some(index) = self.0["index"].as_object_mut() else { return };
        index.retain(|id, item| {
            let inner = &item["inner"];
            !out.contains(id)
                && !mentions(&inner["use"], &out)
                && !mentions(&inner["impl"]["trait"], &out)
        });
    }

    fn leads_to(&self, module: &Value, exported: &BTreeSet<String>) -> bool {
        self.members(module).any(|member| {
            self.definition(member.id).is_some_and(|definition| exported.contains(&definition))
                || (member.source.is_none() && self.leads_to(member.id, exported))
        })
    }

    fn item(&self, id: &Value) -> &Value {
        &self.0["index"][id.to_string()]
    }
}

/// Whether `value` has the id of one of these items.
fn mentions(value: &Value, items: &BTreeSet<String>) -> bool {
    match value {
        Value::Object(parts) => parts.iter().any(|(name, part)| {
            (name == "id" && items.contains(&part.to_string())) || mentions(part, items)
        }),
        Value::Array(parts) => parts.iter().any(|part| mentions(part, items)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_hidden(item: &Value) -> bool {
    let attributes = item["attrs"].as_array().into_iter().flatten();
    attributes.filter_map(|one| one["other"].as_str()).any(|one| one.contains("doc(hidden)"))
}
