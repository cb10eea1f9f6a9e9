//! Operations on layouts.

use domain::ids::LayoutIdentifier;
use domain::layout::{Layout, LayoutQuery, LayoutUpsert};
use domain::page::Page;
use domain::time::Timestamp;
use domain::translation::Resource;
use store::{List, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::resources::cascade::Cascade;
use crate::resources::translations;
use crate::{Entity, Error, Result, Scope};

/// The layouts of an environment. A layout is named by its identifier or its id.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_value, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// let plain = json!({ "layoutId": "plain", "name": "Plain", "isTranslationEnabled": true });
/// let plain = env.layouts().upsert(from_value(plain)?)?;
/// assert_eq!(env.layouts().get("plain")?, plain);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Layouts<'s> {
    pub(crate) scope: &'s Scope,
}

impl Layouts<'_> {
    /// Creates a layout, or gives the one of that identifier what is said here.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the name is empty or longer than 128 characters.
    pub fn upsert(&self, upsert: LayoutUpsert) -> Result<Layout> {
        self.scope.write("layouts.upsert", &upsert, |txn, now| {
            upsert.check()?;
            let (id, home) = (&upsert.layout_id, &self.scope.home);
            let layout = if let Some(before) = find_by_identifier(self.scope, &*txn, id)? {
                let after = before.updated(upsert.clone(), now);
                txn.replace(&before, &after)?;
                after
            } else {
                let layout = Layout::new(self.scope.id(now), home, upsert.clone(), now);
                txn.insert(&layout)?;
                layout
            };
            if layout.is_translation_enabled {
                let resource = Resource::layout(&layout.layout_id);
                translations::ensure_group(&self.scope.home, txn, resource, now)?;
            }
            Ok(layout)
        })
    }

    /// The layout of that name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, name: &str) -> Result<Layout> {
        self.scope.read(|snapshot| get(self.scope, snapshot, name))
    }

    /// A page of the layouts, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &LayoutQuery) -> Result<Page<Layout>> {
        let request = query.page.check(self.scope.list_id(Table::Layouts), LayoutQuery::ORDERS)?;
        let prefix = layout::layout_ids(self.scope.environment_id());
        let shows = |layout: &Layout| query.shows(layout);
        let list = List::new(Table::LayoutIds, [prefix]).of_records(query.is_narrow(), &shows);
        self.scope.read(|snapshot| Ok(snapshot.page(&list, &request)?))
    }

    /// Deletes a layout, with its translations.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such layout.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.scope.write_in_steps("layouts.delete", name, (), |txn, _, ()| {
            let layout = get(self.scope, &*txn, name)?;
            let mut cascade = Cascade::new(txn);
            let resource = Resource::layout(&layout.layout_id);
            translations::remove_group(&mut cascade, layout.environment_id, &resource)?;
            cascade.then(|txn| Ok(txn.remove(&layout)?))
        })
    }
}

/// The layout of that name.
pub(crate) fn get(scope: &Scope, snapshot: &dyn Snapshot, name: &str) -> Result<Layout> {
    find(scope, snapshot, name)?.ok_or_else(|| Error::not_found(Entity::Layout, name))
}

/// Notes that a layout is not translated any more.
pub(crate) fn stop_translating(
    scope: &Scope,
    txn: &mut dyn Transaction,
    name: &str,
    now: Timestamp,
) -> Result<()> {
    let before = get(scope, &*txn, name)?;
    Ok(txn.replace(&before, &before.untranslated(now))?)
}

// An identifier that looks like an id is an identifier first.
fn find(scope: &Scope, snapshot: &dyn Snapshot, name: &str) -> Result<Option<Layout>> {
    if let Ok(identifier) = LayoutIdentifier::new(name)
        && let Some(layout) = find_by_identifier(scope, snapshot, &identifier)?
    {
        return Ok(Some(layout));
    }
    let Ok(id) = name.parse() else { return Ok(None) };
    let key = layout::layout_id(scope.environment_id(), id);
    Ok(snapshot.find_by(Table::LayoutIds, &key)?)
}

fn find_by_identifier(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    identifier: &LayoutIdentifier,
) -> Result<Option<Layout>> {
    Ok(snapshot.find(&layout::layout(scope.environment_id(), identifier))?)
}
