//! Calls with an idempotency key: their outcomes are stored, and returned when the call is made again.

mod name;
mod refusal;

use domain::idempotency::{CallOutcome, Replay, StoredAnswer};
use domain::ids::{IdempotencyKey, TransactionId};
use domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::{ReadRecords, Referent, Table, WriteRecords, layout};

pub(crate) use self::refusal::StoredRefusal;
use crate::error::Reason;
use crate::resources::environments::{self, hash};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// A call of an operation, with the key that its caller gave it.
pub(crate) struct KeyedCall<'s> {
    scope: &'s Scope,
    key: &'s IdempotencyKey,
    hash: String,
    now: Timestamp,
}

/// Result of an earlier equal call.
pub(crate) type Earlier = Result<Value>;

impl<'s> KeyedCall<'s> {
    /// Returns the call, or `None` if its caller gave it no key.
    pub(crate) fn new(
        scope: &'s Scope,
        operation: &'static str,
        now: Timestamp,
        arguments: impl Serialize,
    ) -> Result<Option<Self>> {
        let Some(key) = &scope.idempotency_key else { return Ok(None) };
        let arguments = serde_json::to_value((name::stored(operation), arguments));
        let hash = hash(&arguments.map_err(|reason| unwritable(&reason))?.to_string());
        Ok(Some(Self { scope, key, hash, now }))
    }

    /// Begins a bulk of events. Returns the ids of its events that come without one: those of an equal
    /// call that has begun before, or else `ids`.
    pub(crate) fn begin_with_ids(&self, ids: &[TransactionId]) -> Result<Vec<TransactionId>> {
        let Self { scope, now, .. } = self;
        scope.engine.write_in(&scope.home, *now, |tx| {
            environments::check_there(tx)?;
            let stored = self.find(tx)?;
            match stored.as_ref().map(|stored| stored.replay(&self.hash, *now)) {
                None | Some(Replay::Expired) => {
                    self.keep(tx, CallOutcome::BegunAs(ids.to_vec()))?;
                }
                Some(Replay::Same(CallOutcome::BegunAs(ids))) => return Ok(ids.clone()),
                // The first step of the call returns its answer, or refuses it.
                Some(Replay::Same(_) | Replay::Other) => {}
            }
            Ok(ids.to_vec())
        })
    }

    /// Returns `true` if an equal call has begun as a bulk of events, and is not done.
    pub(crate) fn has_begun_with_ids(&self, view: &dyn View) -> Result<bool> {
        let stored = self.find(view)?;
        let replay = stored.as_ref().map(|stored| stored.replay(&self.hash, self.now));
        Ok(matches!(replay, Some(Replay::Same(CallOutcome::BegunAs(_)))))
    }

    /// Returns the id of the record that an equal call has begun to delete. Returns `None` if none has, or if
    /// it is done.
    pub(crate) fn begun_on<I: DeserializeOwned>(&self, view: &dyn View) -> Result<Option<I>> {
        let stored = self.find(view)?;
        match stored.as_ref().map(|stored| stored.replay(&self.hash, self.now)) {
            Some(Replay::Same(CallOutcome::BegunOn(id))) => read(id).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the result of an earlier equal call. A refusal if another call has the key.
    pub(crate) fn replay(&self, view: &dyn View) -> Result<Option<Earlier>> {
        let Some(stored) = self.find(view)? else { return Ok(None) };
        match stored.replay(&self.hash, self.now) {
            // A call that was begun continues.
            Replay::Expired
            | Replay::Same(
                CallOutcome::Begun | CallOutcome::BegunOn(_) | CallOutcome::BegunAs(_),
            ) => Ok(None),
            Replay::Same(CallOutcome::Done(answer)) => Ok(Some(Ok(answer.clone()))),
            Replay::Same(CallOutcome::Refused(refusal)) => {
                Ok(Some(Err(read::<StoredRefusal>(refusal)?.into())))
            }
            Replay::Other => Ok(Some(Err(Error::conflict(Entity::IdempotencyKey, self.key)))),
        }
    }

    /// Stores the outcome of the call, and removes expired ones. A call begins once.
    pub(crate) fn keep(&self, tx: &mut Tx<'_>, outcome: CallOutcome) -> Result<()> {
        // Largest number of expired outcomes that a call removes. A call stores one outcome, so the
        // number of expired ones falls.
        const AT_A_TIME: usize = 4;
        let environment_id = tx.environment_id();
        let range = layout::expired_answers(environment_id, self.now);
        for entry in store::index_entries(tx, &range, AT_A_TIME, layout::answer_of)? {
            match &entry.referent {
                Referent::Record(answer) => tx.remove(answer)?,
                // What has expired needs no quarantine.
                Referent::Other(_) | Referent::Unreadable(_) | Referent::Missing => {
                    entry.take_out(tx, &range)?;
                }
            }
        }
        if let Some(answer) = self.find(tx)? {
            let before = answer.replay(&self.hash, self.now);
            let has_begun = matches!(before, Replay::Same(before) if !before.is_over());
            if has_begun && !outcome.is_over() {
                return Ok(());
            }
            tx.remove(&answer)?;
        }
        let (key, call) = (self.key.clone(), self.hash.clone());
        let created_at = self.now;
        Ok(tx.insert(&StoredAnswer { environment_id, key, call, created_at, outcome })?)
    }

    /// Keeps the refusal of the call, whose own transaction has left nothing behind.
    pub(crate) fn refuse(&self, refusal: Error) -> Result<Earlier> {
        let Some(stored) = StoredRefusal::of(&refusal) else { return Err(refusal) };
        let scope = self.scope;
        let earlier = scope.engine.write_in(&scope.home, self.now, |tx| {
            environments::check_there(tx)?;
            // Another thread may have been quicker. A bulk that has begun goes on when it is repeated.
            let earlier = self.replay(tx)?;
            if earlier.is_none() && !self.has_begun_with_ids(tx)? {
                self.keep(tx, CallOutcome::Refused(json(&stored)?))?;
            }
            Ok(earlier)
        })?;
        Ok(earlier.unwrap_or(Err(refusal)))
    }

    fn find(&self, view: &dyn View) -> Result<Option<StoredAnswer>> {
        Ok(view.find(&layout::stored_answer(view.environment_id(), self.key))?)
    }
}

/// Returns the form in which an answer is stored.
pub(crate) fn json(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(corrupt)
}

/// Reads a stored answer.
pub(crate) fn read<T: DeserializeOwned>(answer: &Value) -> Result<T> {
    T::deserialize(answer).map_err(corrupt)
}

// The refusal of arguments that have no JSON, and so are equal to no others. They are too deep, or too many.
fn unwritable(reason: &serde_json::Error) -> Error {
    let expected = format!("a request that can be written as JSON: {reason}").into();
    Error::invalid("body", Reason::Malformed { expected })
}

fn corrupt(source: serde_json::Error) -> Error {
    let (table, source) = (Table::StoredAnswers.name(), source.into());
    store::Error::Corrupt { table, source }.into()
}
