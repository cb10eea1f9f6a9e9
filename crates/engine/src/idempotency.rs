//! Writing once: the one way in which an operation of a scope changes the store.

mod refusal;

use domain::idempotency::{CallOutcome, Replay, StoredAnswer};
use domain::ids::{IdempotencyKey, SubscriberId, TransactionId};
use domain::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{HostTransaction, Lead, ReadRecords, Record, WriteRecords, layout};

pub(crate) use self::refusal::StoredRefusal;
use crate::heal::healed;
use crate::resources::environments::{self, hash};
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};
pub(crate) use store::Step;

/// Function that is called between two transactions: it returns the state from which the operation
/// goes on, or ends it. The answer of an operation that it has ended is not stored.
pub(crate) type Between<'f, S, T> = &'f mut dyn FnMut(S) -> Result<Step<S, T>>;

/// A call of an operation, with the key that its caller gave it.
pub(crate) struct KeyedCall<'s> {
    scope: &'s Scope,
    key: &'s IdempotencyKey,
    hash: String,
    now: Timestamp,
}

// Answer of a call about one subscriber, who is named in it. Version 2 of the format has answers that name
// nobody.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Named<T> {
    Of(SubscriberId, T),
    Bare(T),
}

// Result of an earlier equal call.
type Earlier = Result<Value>;

impl Scope {
    /// Runs `body` in a transaction: it is done as a whole, or refused as a whole.
    ///
    /// In an idempotent scope the answer is stored with the changes, or the refusal instead of
    /// them; when the same call was made before, its answer comes back and `body` is not run.
    pub(crate) fn write<T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        self.write_in_steps(operation, arguments, (), |tx, ()| body(tx).map(Step::Done))
    }

    /// The same for one subscriber. A stored answer names it, so that an erasure finds the answer, also if
    /// the subscriber was deleted: a message has the id that the engine gave.
    pub(crate) fn write_of<T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        subscriber: &SubscriberId,
        arguments: impl Serialize,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let named =
            self.write(operation, arguments, |tx| Ok(Named::Of(subscriber.clone(), body(tx)?)))?;
        Ok(match named {
            Named::Of(_, answer) | Named::Bare(answer) => answer,
        })
    }

    /// The same within [`operation`](Self::operation), at a time that is known already.
    pub(crate) fn write_at<T: Serialize + DeserializeOwned>(
        &self,
        now: Timestamp,
        operation: &'static str,
        arguments: impl Serialize,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let between: Between<'_, (), T> = &mut |()| Ok(Step::More(()));
        self.write_steps_at(now, (operation, arguments), ((), between), |tx, ()| {
            body(tx).map(Step::Done)
        })
    }

    /// The same for an operation that takes as many transactions as it has steps, starting at
    /// `start`. The answer is stored with the changes of the last one.
    pub(crate) fn write_in_steps<S, T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        start: S,
        body: impl FnMut(&mut Tx<'_>, &S) -> Result<Step<S, T>>,
    ) -> Result<T> {
        self.write_in_steps_with(
            operation,
            arguments,
            (start, &mut |next| Ok(Step::More(next))),
            body,
        )
    }

    /// The same with a function that is called between two transactions.
    pub(crate) fn write_in_steps_with<S, T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        start: (S, Between<'_, S, T>),
        body: impl FnMut(&mut Tx<'_>, &S) -> Result<Step<S, T>>,
    ) -> Result<T> {
        self.operation(operation, || {
            self.write_steps_at(self.engine.now(), (operation, arguments), start, body)
        })
    }

    /// The same in a transaction of the host, which may roll it back. A refusal is not stored.
    pub(crate) fn write_in_host<T: Serialize + DeserializeOwned>(
        &self,
        host: &mut dyn HostTransaction,
        (operation, now): (&'static str, Timestamp),
        arguments: impl Serialize,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let call = self.call(operation, arguments, now)?;
        self.engine.write_in_host(host, &self.home, now, |tx| {
            environments::check_there(tx)?;
            if let Some(earlier) = call.as_ref().map_or(Ok(None), |call| call.replay(tx))? {
                return read(&earlier?);
            }
            let answer = body(tx)?;
            if let Some(call) = &call {
                call.keep(tx, CallOutcome::Done(json(&answer)?))?;
            }
            Ok(answer)
        })
    }

    fn write_steps_at<S, T: Serialize + DeserializeOwned>(
        &self,
        now: Timestamp,
        (operation, arguments): (&'static str, impl Serialize),
        (mut state, between): (S, Between<'_, S, T>),
        mut body: impl FnMut(&mut Tx<'_>, &S) -> Result<Step<S, T>>,
    ) -> Result<T> {
        let call = self.call(operation, arguments, now)?;
        loop {
            let step = match self.write_step(call.as_ref(), now, |tx| body(tx, &state))? {
                Step::More(next) => between(next)?,
                done @ Step::Done(_) => done,
            };
            match step {
                Step::More(next) => state = next,
                Step::Done(answer) => return Ok(answer),
            }
        }
    }

    /// Runs a transaction of a call. If an equal call was made before, its answer comes back and `body`
    /// is not run.
    pub(crate) fn write_step<S, T: Serialize + DeserializeOwned>(
        &self,
        call: Option<&KeyedCall<'_>>,
        now: Timestamp,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<Step<S, T>>,
    ) -> Result<Step<S, T>> {
        let mut last = None;
        let earlier = self.step(call, now, &mut |tx| {
            let step = body(tx)?;
            let outcome = call.map(|_| outcome(&step)).transpose()?;
            last = Some(step);
            Ok(outcome)
        })?;
        match earlier {
            Some(earlier) => Ok(Step::Done(read(&earlier?)?)),
            None => last.ok_or_else(|| store::not_run().into()),
        }
    }

    // Runs a transaction of a call, unless an equal call was made before. `body` returns the outcome to
    // keep, if the call has a key. It is no generic function, so that it is compiled once.
    fn step(
        &self,
        call: Option<&KeyedCall<'_>>,
        now: Timestamp,
        body: &mut dyn FnMut(&mut Tx<'_>) -> Result<Option<CallOutcome>>,
    ) -> Result<Option<Earlier>> {
        let mut run = |tx: &mut Tx<'_>| {
            environments::check_there(tx)?;
            let earlier = call.map_or(Ok(None), |call| call.replay(tx))?;
            if earlier.is_none() {
                let outcome = body(tx)?;
                if let Some((call, outcome)) = call.zip(outcome) {
                    call.keep(tx, outcome)?;
                }
            }
            Ok(earlier)
        };
        let ran = healed(&self.engine, self.home.environment_id, || {
            self.engine.write_in(&self.home, now, &mut run)
        });
        match (ran, call) {
            (Err(refusal), Some(call)) => Ok(Some(call.refuse(refusal)?)),
            (ran, _) => ran,
        }
    }

    /// A call of an operation, if its caller gave it a key.
    pub(crate) fn call(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        now: Timestamp,
    ) -> Result<Option<KeyedCall<'_>>> {
        let Some(key) = &self.idempotency_key else { return Ok(None) };
        let hash = hash(&json(&(operation, arguments))?.to_string());
        Ok(Some(KeyedCall { scope: self, key, hash, now }))
    }
}

// Stored outcome of a step.
fn outcome<S, T: Serialize>(step: &Step<S, T>) -> Result<CallOutcome> {
    Ok(match step {
        Step::More(_) => CallOutcome::Begun,
        Step::Done(answer) => CallOutcome::Done(json(answer)?),
    })
}

impl KeyedCall<'_> {
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

    // Result of an earlier equal call. A refusal if another call has the key.
    fn replay(&self, view: &dyn View) -> Result<Option<Earlier>> {
        let Some(stored) = self.find(view)? else { return Ok(None) };
        match stored.replay(&self.hash, self.now) {
            // A call that was begun continues.
            Replay::Expired | Replay::Same(CallOutcome::Begun | CallOutcome::BegunAs(_)) => {
                Ok(None)
            }
            Replay::Same(CallOutcome::Done(answer)) => Ok(Some(Ok(answer.clone()))),
            Replay::Same(CallOutcome::Refused(refusal)) => {
                Ok(Some(Err(read::<StoredRefusal>(refusal)?.into())))
            }
            Replay::Other => Ok(Some(Err(Error::conflict(Entity::IdempotencyKey, self.key)))),
        }
    }

    // Stores the outcome of the call, and removes expired ones. A call begins once.
    fn keep(&self, tx: &mut Tx<'_>, outcome: CallOutcome) -> Result<()> {
        // Largest number of expired outcomes that a call removes. A call stores one outcome, so the
        // number of expired ones falls.
        const AT_A_TIME: usize = 4;
        let environment_id = tx.environment_id();
        let range = layout::expired_answers(environment_id, self.now);
        for entry in store::leads(tx, &range, AT_A_TIME, layout::answer_of)? {
            match &entry.lead {
                Lead::Record(answer) => tx.remove(answer)?,
                // What has expired needs no quarantine.
                Lead::Other(_) | Lead::Unreadable(_) | Lead::Nowhere => {
                    entry.take_out(tx, &range)?;
                }
            }
        }
        if let Some(answer) = self.find(tx)? {
            let has_begun = matches!(
                answer.replay(&self.hash, self.now),
                Replay::Same(CallOutcome::Begun | CallOutcome::BegunAs(_))
            );
            if has_begun && outcome == CallOutcome::Begun {
                return Ok(());
            }
            tx.remove(&answer)?;
        }
        let (key, call) = (self.key.clone(), self.hash.clone());
        let created_at = self.now;
        Ok(tx.insert(&StoredAnswer { environment_id, key, call, created_at, outcome })?)
    }

    // Keeps the refusal of the call, whose own transaction has left nothing behind.
    fn refuse(&self, refusal: Error) -> Result<Earlier> {
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

fn json(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(corrupt)
}

fn read<T: DeserializeOwned>(answer: &Value) -> Result<T> {
    T::deserialize(answer).map_err(corrupt)
}

fn corrupt(source: serde_json::Error) -> Error {
    let (table, source) = (StoredAnswer::TABLE.name(), source.into());
    store::Error::Corrupt { table, source }.into()
}
