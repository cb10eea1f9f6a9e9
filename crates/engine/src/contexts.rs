//! Operations on contexts.

use domain::context::{Context, ContextKey, ContextPayload, ContextSet, NamedContext};
use domain::json::Object;
use domain::time::Timestamp;
use store::{ReadRecords, Snapshot, Transaction, WriteRecords, layout};

use crate::{Entity, Error, Result, Scope};

/// The contexts of an environment.
#[derive(Debug)]
pub struct Contexts<'s> {
    pub(crate) scope: &'s Scope,
}

impl Contexts<'_> {
    /// The context of that key.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, key: &ContextKey) -> Result<Context> {
        self.scope.read(|snapshot| {
            find(self.scope, snapshot, key)?.ok_or_else(|| Error::not_found(Entity::Context, key))
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
        let data = named.data.clone().unwrap_or_default();
        let context = new(scope, named.key.clone(), data, now);
        txn.insert(&context)?;
        return Ok(context);
    };
    match (named_data, &named.data) {
        (NamedData::Replaces, Some(data)) if *data != before.data => {
            let after = Context { data: data.clone(), updated_at: now, ..before.clone() };
            txn.replace(&before, &after)?;
            Ok(after)
        }
        (NamedData::Replaces | NamedData::IsIgnored, _) => Ok(before),
    }
}

fn find(scope: &Scope, snapshot: &dyn Snapshot, key: &ContextKey) -> Result<Option<Context>> {
    Ok(snapshot.find(&layout::context(scope.environment_id(), key))?)
}

fn new(scope: &Scope, key: ContextKey, data: Object, now: Timestamp) -> Context {
    Context {
        organization_id: scope.home.organization_id.clone(),
        environment_id: scope.home.environment_id,
        key,
        data,
        created_at: now,
        updated_at: now,
    }
}
