//! Operations on contexts.

use std::sync::Arc;

use domain::context::{
    Context, ContextChange, ContextCreate, ContextKey, ContextPart, ContextPayload, ContextQuery,
    ContextSet, ContextUpdate, NamedContext,
};
use domain::convert::IntoChecked;
use domain::json::Object;
use domain::page::{ListKind, Page};
use store::layout::CountedList;
use store::{List, ReadKept, ReadRecords, WriteRecords, layout};
use uuid::Uuid;

use crate::pipeline::planned::ReadContext;
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// The contexts of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::context::{ContextCreate, ContextUpdate};
/// use serde_json::json;
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// let acme = ContextCreate::new("tenant", "acme")?.data(json!({ "plan": "free" }))?;
/// env.contexts().create(&acme)?;
///
/// let update = ContextUpdate::new(json!({ "seats": 5 }))?;
/// let acme = env.contexts().update("tenant:acme", &update)?;
/// assert_eq!(acme.data["seats"], 5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Contexts<'s> {
    pub(crate) scope: &'s Scope,
}

impl Contexts<'_> {
    /// Creates a context. Those that a call names are created by it, too.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], if the key is in use; [`Error::Invalid`], if its data takes more than
    /// 64 KiB.
    pub fn create(&self, create: &ContextCreate) -> Result<Context> {
        self.scope.write("contexts.create", create, |tx| {
            Context::check_data(&create.data)?;
            tx.expect_change(CountedList::Contexts(tx.environment_id()))?;
            if find(tx, &create.key)?.is_some() {
                return Err(Error::conflict(Entity::Context, &create.key));
            }
            insert(tx, &create.key, create.data.clone())
        })
    }

    /// The context of that key, `type:id`.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, key: impl IntoChecked<ContextKey>) -> Result<Context> {
        let key = key.into_checked()?;
        self.scope.read("contexts.get", |view| get(view, &key))
    }

    /// The context of that key, `type:id`. Returns `None` if there is none.
    pub fn find(&self, key: impl IntoChecked<ContextKey>) -> Result<Option<Context>> {
        let key = key.into_checked()?;
        self.scope.read("contexts.find", |view| find(view, &key))
    }

    /// A page of the contexts, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used.
    pub fn list(&self, query: &ContextQuery) -> Result<Page<Context>> {
        let request =
            query.page.check(self.scope.list_id(ListKind::Contexts), ContextQuery::ORDERS)?;
        let kind = query.kind.as_ref().map(ContextPart::as_str);
        let environment = self.scope.environment_id();
        let prefix = layout::context_list(environment, kind, request.order_by);
        let matches = |context: &Context| query.matches(context);
        let list = List::new([prefix]).of_records(query.is_filtered(), &matches);
        let list = match kind {
            Some(_) => list,
            None => list.counted_as(CountedList::Contexts(environment)),
        };
        self.scope.read("contexts.list", |view| Ok(view.page(&list, &request)?))
    }

    /// Replaces the data of a context. Its other fields stay.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such context; [`Error::Invalid`], if the data takes
    /// more than 64 KiB.
    pub fn update(
        &self,
        key: impl IntoChecked<ContextKey>,
        update: &ContextUpdate,
    ) -> Result<Context> {
        self.update_of(&key.into_checked()?, update)
    }

    fn update_of(&self, key: &ContextKey, update: &ContextUpdate) -> Result<Context> {
        self.scope.write("contexts.update", (key, update), |tx| {
            Context::check_data(&update.data)?;
            let before = get(tx, key)?;
            let after = before.with_data(update.data.clone(), tx.now());
            tx.replace(&before, &after)?;
            Ok(after)
        })
    }

    /// Deletes a context. Records that carry its key keep it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such context.
    pub fn delete(&self, key: impl IntoChecked<ContextKey>) -> Result<()> {
        self.delete_of(&key.into_checked()?)
    }

    fn delete_of(&self, key: &ContextKey) -> Result<()> {
        self.scope.write("contexts.delete", key, |tx| {
            tx.expect_change(CountedList::Contexts(tx.environment_id()))?;
            let context = get(tx, key)?;
            Ok(tx.remove(&context)?)
        })
    }
}

/// The contexts that `payload` names, if it names any.
pub(crate) fn named(payload: Option<&ContextPayload>) -> Result<Vec<NamedContext>> {
    Ok(payload.map(ContextPayload::check).transpose()?.unwrap_or_default())
}

/// The keys of `named`.
pub(crate) fn keys(named: &[NamedContext]) -> ContextSet {
    named.iter().map(|context| context.key.clone()).collect()
}

/// The contexts of a set that are there.
pub(crate) fn known(view: &dyn View, set: &ContextSet) -> Result<Vec<Context>> {
    let found = set.keys().map(|key| find(view, key));
    Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The contexts that a call names, as a trigger would store them. One that is not there has no id yet.
pub(crate) fn as_stored(view: &dyn View, named: &[NamedContext]) -> Result<Vec<Context>> {
    let now = view.engine().now();
    let as_stored = |named: &NamedContext| {
        let stored = find(view, &named.key)?;
        Ok(named.change(stored, view.home(), || Uuid::nil().into(), now).into_after())
    };
    named.iter().map(as_stored).collect()
}

/// Creates the contexts that a call names and that are not there. The others stay as they are.
pub(crate) fn ensure(tx: &mut Tx<'_>, named: &[NamedContext]) -> Result<()> {
    for context in named {
        if !tx.contains(&layout::context(tx.environment_id(), &context.key))? {
            insert(tx, &context.key, context.data.clone().unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Stores the contexts that a trigger names, with their data if the trigger has some. Each is as it was
/// read, or as the call has changed it.
pub(crate) fn store_named(
    tx: &mut Tx<'_>,
    contexts: &[ReadContext],
    is_changed: impl Fn(&ContextKey) -> bool,
) -> Result<Vec<Context>> {
    contexts.iter().map(|context| store_one(tx, context, &is_changed)).collect()
}

fn store_one(
    tx: &mut Tx<'_>,
    ReadContext { named, read }: &ReadContext,
    is_changed: impl Fn(&ContextKey) -> bool,
) -> Result<Context> {
    let before = if is_changed(&named.key) {
        tx.find_again(&layout::context(tx.environment_id(), &named.key), read.as_deref())?
    } else {
        read.as_ref().map(|read| Arc::clone(read.record()))
    };
    match named.change(before, tx.home(), || tx.id(), tx.now()) {
        ContextChange::Kept(context) => Ok(Arc::unwrap_or_clone(context)),
        ContextChange::Replaced { before, after } => {
            tx.replace(&*before, &after)?;
            Ok(after)
        }
        ContextChange::Created(context) => {
            tx.insert(&context)?;
            Ok(context)
        }
    }
}

fn get(view: &dyn View, key: &ContextKey) -> Result<Context> {
    find(view, key)?.ok_or_else(|| missing(key))
}

/// The context of that key. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, key: &ContextKey) -> Result<Option<Context>> {
    Ok(view.find(&layout::context(view.environment_id(), key))?)
}

fn insert(tx: &mut Tx<'_>, key: &ContextKey, data: Object) -> Result<Context> {
    let context = Context::new(tx.id(), tx.home(), key.clone(), data, tx.now());
    tx.insert(&context)?;
    Ok(context)
}

fn missing(key: &ContextKey) -> Error {
    Error::not_found(Entity::Context, key)
}
