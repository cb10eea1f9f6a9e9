//! Operations on contexts.

use domain::context::{
    Context, ContextCreate, ContextKey, ContextPart, ContextPayload, ContextQuery, ContextSet,
    ContextUpdate, NamedContext,
};
use domain::page::Page;
use domain::time::Timestamp;
use store::{List, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::{Entity, Error, Result, Scope};

/// The contexts of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{from_str, json};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// let create = r#"{ "type": "tenant", "id": "acme", "data": { "plan": "free" } }"#;
/// let acme = env.contexts().create(&from_str(create)?)?;
///
/// let update = from_str(r#"{ "data": { "seats": 5 } }"#)?;
/// let acme = env.contexts().update(&acme.key, &update)?;
/// assert_eq!(acme.data, json!({ "seats": 5 }).try_into()?);
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
    /// [`Error::Conflict`], if there is one of that key; [`Error::Invalid`], if its data takes
    /// more than 64 KiB.
    pub fn create(&self, create: &ContextCreate) -> Result<Context> {
        self.scope.write("contexts.create", create, |txn, now| {
            Context::check_data(&create.data)?;
            let ContextCreate { key, data } = create.clone();
            if find(self.scope, &*txn, &key)?.is_some() {
                return Err(Error::conflict(Entity::Context, key));
            }
            let context = Context::new(self.scope.id(now), &self.scope.home, key, data, now);
            txn.insert(&context)?;
            Ok(context)
        })
    }

    /// The context of that key.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, key: &ContextKey) -> Result<Context> {
        self.scope.read(|snapshot| get(self.scope, snapshot, key))
    }

    /// A page of the contexts, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &ContextQuery) -> Result<Page<Context>> {
        let request =
            query.page.check(self.scope.list_id(Table::Contexts), ContextQuery::ORDERS)?;
        let kind = query.kind.as_ref().map(ContextPart::as_str);
        let prefix = layout::context_list(self.scope.environment_id(), kind, request.order_by);
        let shows = |context: &Context| query.shows(context);
        let list = List::new(Table::ContextLists, [prefix]).of_records(query.is_narrow(), &shows);
        self.scope.read(|snapshot| Ok(snapshot.page(&list, &request)?))
    }

    /// Replaces the data of a context. Nothing else about it changes.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such context; [`Error::Invalid`], if the data takes
    /// more than 64 KiB.
    pub fn update(&self, key: &ContextKey, update: &ContextUpdate) -> Result<Context> {
        self.scope.write("contexts.update", (key, update), |txn, now| {
            Context::check_data(&update.data)?;
            let before = get(self.scope, &*txn, key)?;
            let after = before.with_data(update.data.clone(), now);
            txn.replace(&before, &after)?;
            Ok(after)
        })
    }

    /// Deletes a context. What carries its key keeps it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such context.
    pub fn delete(&self, key: &ContextKey) -> Result<()> {
        self.scope.write("contexts.delete", key, |txn, _| {
            let context = get(self.scope, &*txn, key)?;
            Ok(txn.remove(&context)?)
        })
    }
}

/// What becomes of a context that exists when a call names it with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedData {
    /// Its data is replaced.
    Replaces,
    /// It stays as it is.
    IsIgnored,
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
pub(crate) fn known(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    set: &ContextSet,
) -> Result<Vec<Context>> {
    let found = set.keys().map(|key| find(scope, snapshot, key));
    Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The contexts that a call names, created if need be.
pub(crate) fn ensure(
    scope: &Scope,
    txn: &mut dyn Transaction,
    named: &[NamedContext],
    data: NamedData,
    now: Timestamp,
) -> Result<Vec<Context>> {
    named.iter().map(|context| ensure_one(scope, txn, context, data, now)).collect()
}

fn ensure_one(
    scope: &Scope,
    txn: &mut dyn Transaction,
    named: &NamedContext,
    named_data: NamedData,
    now: Timestamp,
) -> Result<Context> {
    let Some(before) = find(scope, &*txn, &named.key)? else {
        let (key, data) = (named.key.clone(), named.data.clone().unwrap_or_default());
        let context = Context::new(scope.id(now), &scope.home, key, data, now);
        txn.insert(&context)?;
        return Ok(context);
    };
    match (named_data, &named.data) {
        (NamedData::Replaces, Some(data)) => {
            let after = before.with_data(data.clone(), now);
            txn.replace(&before, &after)?;
            Ok(after)
        }
        (NamedData::Replaces, None) | (NamedData::IsIgnored, _) => Ok(before),
    }
}

fn get(scope: &Scope, snapshot: &dyn Snapshot, key: &ContextKey) -> Result<Context> {
    find(scope, snapshot, key)?.ok_or_else(|| Error::not_found(Entity::Context, key))
}

fn find(scope: &Scope, snapshot: &dyn Snapshot, key: &ContextKey) -> Result<Option<Context>> {
    Ok(snapshot.find(&layout::context(scope.environment_id(), key))?)
}
