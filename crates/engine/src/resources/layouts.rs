//! Operations on layouts.

use std::sync::Arc;

use domain::ids::LayoutRef;
use domain::layout::{Layout, LayoutChoice, LayoutQuery, LayoutUpsert};
use domain::page::{ListKind, Page};
use domain::translation::Resource;
use store::{List, ReadRecords, Step, WriteRecords, layout};

use crate::resources::cascade::{Cascade, Deleting};
use crate::resources::{references, translation_groups};
use crate::tx::{Tx, View};
use crate::{Result, Scope};

/// The layouts of an environment. A layout is named by its identifier or its id.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::layout::LayoutUpsert;
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// let plain = env.layouts().upsert(&LayoutUpsert::new("plain", "Plain")?.translated(true))?;
/// assert_eq!(env.layouts().get("plain")?, plain);
/// assert_eq!(env.layouts().get(&plain.identifier)?, plain);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Layouts<'s> {
    pub(crate) scope: &'s Scope,
}

impl Layouts<'_> {
    /// Creates a layout, or changes the one of that identifier. Absent fields keep their value. A default
    /// layout takes the place of the one that was the default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if the name is empty or longer than 128
    /// characters, or if the body is no template with `{{ content }}`.
    pub fn upsert(&self, upsert: &LayoutUpsert) -> Result<Layout> {
        self.scope.write("layouts.upsert", upsert, |tx| {
            upsert.check()?;
            let layout = put(tx, upsert)?;
            if layout.is_translation_enabled {
                translation_groups::ensure(tx, Resource::layout(&layout.identifier))?;
            }
            Ok(layout)
        })
    }

    /// The layout of that name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is none.
    pub fn get(&self, name: impl Into<LayoutRef>) -> Result<Layout> {
        let name = name.into();
        self.scope.read("layouts.get", |view| get(view, name.as_str()))
    }

    /// The layout of that name. Returns `None` if there is none.
    pub fn find(&self, name: impl Into<LayoutRef>) -> Result<Option<Layout>> {
        let name = name.into();
        self.scope.read("layouts.find", |view| find(view, name.as_str()))
    }

    /// A page of the layouts, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if the limit, the cursors or the order of the
    /// query cannot be used.
    pub fn list(&self, query: &LayoutQuery) -> Result<Page<Layout>> {
        let request =
            query.page.check(self.scope.list_id(ListKind::Layouts), LayoutQuery::ORDERS)?;
        let prefix = layout::layout_ids(self.scope.environment_id());
        let matches = |layout: &Layout| query.matches(layout);
        let list = List::new([prefix]).of_records(query.is_filtered(), &matches);
        self.scope.read("layouts.list", |view| Ok(view.page(&list, &request)?))
    }

    /// Deletes a layout, with its translations.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such layout.
    pub fn delete(&self, name: impl Into<LayoutRef>) -> Result<()> {
        self.delete_of(name.into().as_str())
    }

    fn delete_of(&self, name: &str) -> Result<()> {
        self.scope.write_deletion("layouts.delete", name, |tx, before| {
            let found = find(tx, name)?;
            if before.is_over(found.as_ref().map(|layout| layout.id)) {
                return Ok(Step::Done(()));
            }
            let layout = references::expect::<Layout, _>(tx, name, found)?;
            let mut cascade = Cascade::new(tx, before.removed());
            let resource = Resource::layout(&layout.identifier);
            translation_groups::remove(&mut cascade, layout.environment_id, &resource)?;
            Ok(Deleting::after(cascade.then(|tx| Ok(tx.remove(&layout)?))?, layout.id))
        })
    }
}

/// The layout of that name.
pub(crate) fn get(view: &dyn View, name: &str) -> Result<Layout> {
    references::expect::<Layout, _>(view, name, find(view, name)?)
}

/// Marks a layout as not translated.
pub(crate) fn stop_translating(tx: &mut Tx<'_>, name: &str) -> Result<()> {
    let before = get(tx, name)?;
    Ok(tx.replace(&before, &before.untranslated(tx.now()))?)
}

/// The layout of that name. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, name: &str) -> Result<Option<Layout>> {
    references::find(view.environment_id(), name, |key| Ok(view.find(key)?))
}

fn put(tx: &mut Tx<'_>, upsert: &LayoutUpsert) -> Result<Layout> {
    let key = layout::by_identifier(tx.environment_id(), &upsert.identifier);
    let Some(before) = tx.find::<Layout>(&key)? else {
        let layout = Layout::new(tx.id(), tx.home(), upsert.clone(), tx.now());
        layout.check()?;
        make_room(tx, &layout)?;
        tx.insert(&layout)?;
        return Ok(layout);
    };
    let after = before.updated(upsert.clone(), tx.now());
    after.check_changed_from(&before)?;
    make_room(tx, &after)?;
    tx.replace(&before, &after)?;
    Ok(after)
}

// Makes the default layout one of the others if `layout` is to be the default.
fn make_room(tx: &mut Tx<'_>, layout: &Layout) -> Result<()> {
    if !layout.is_default {
        return Ok(());
    }
    let present = tx.find(&layout::default_layout(layout.environment_id))?;
    match present.filter(|present| present.id != layout.id) {
        Some(present) => Ok(tx.replace(&present, &present.replaced(tx.now()))?),
        None => Ok(()),
    }
}

/// The layout that an e-mail wants, with its compiled template. Returns `None` if there is none.
pub(crate) fn chosen(view: &dyn View, choice: &LayoutChoice) -> Result<Option<Arc<Layout>>> {
    let (environment, layouts) = (view.environment_id(), &view.engine().parts.decoded.layouts);
    let name = match choice {
        LayoutChoice::None => return Ok(None),
        LayoutChoice::Default => {
            return Ok(layouts.find(view, &layout::default_layout(environment))?);
        }
        LayoutChoice::Named(name) => name,
    };
    references::find(environment, name.as_str(), |key| Ok(layouts.find(view, key)?))
}
