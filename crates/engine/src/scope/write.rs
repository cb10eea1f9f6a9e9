//! The way in which each operation of a scope changes the store.

use domain::idempotency::CallOutcome;
use domain::ids::SubscriberId;
use domain::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::{HostTransaction, Step};

use super::Scope;
use crate::Result;
use crate::heal::healed;
use crate::idempotency::{Earlier, KeyedCall, json, read};
use crate::resources::cascade::Deleting;
use crate::resources::environments;
use crate::tx::Tx;

/// A call of an operation that writes, at the time that all of its transactions have.
///
/// In an idempotent scope, the answer is stored with the changes of the last transaction, or the refusal
/// instead of them. If an equal call was made before, its answer comes back and no body is run.
pub(crate) struct Write<'s> {
    scope: &'s Scope,
    now: Timestamp,
    /// `None` if the caller gave no idempotency key.
    call: Option<KeyedCall<'s>>,
}

/// Function that is called between two transactions: it returns the state from which the operation
/// goes on, or ends it. The answer of an operation that it has ended is not stored.
pub(crate) type Between<'f, S, T> = &'f mut dyn FnMut(S) -> Result<Step<S, T>>;

// Answer of a call about one subscriber, who is named in it. Version 2 of the format has answers that name
// nobody, as those about a subscriber who is not known do.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AnswerOf<T> {
    Subscriber(SubscriberId, T),
    Bare(T),
}

impl Scope {
    /// Runs an operation of one transaction: it is done as a whole, or refused as a whole.
    pub(crate) fn write<T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        self.operation(operation, || {
            Write::new(self, operation, self.engine.now(), arguments)?.once(body)
        })
    }

    /// Runs an operation of one transaction that is about one subscriber. A stored answer names it, so that
    /// an erasure finds the answer, also if the subscriber was deleted: a message has the id that the
    /// engine gave.
    pub(crate) fn write_of<T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        subscriber: &SubscriberId,
        arguments: impl Serialize,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        self.write_naming(operation, arguments, |tx| Ok((Some(subscriber.clone()), body(tx)?)))
    }

    /// Runs an operation as [`write_of`](Self::write_of) does, of which the body finds the subscriber.
    pub(crate) fn write_naming<T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<(Option<SubscriberId>, T)>,
    ) -> Result<T> {
        let answer = self.write(operation, arguments, |tx| {
            let (subscriber, answer) = body(tx)?;
            Ok(match subscriber {
                Some(subscriber) => AnswerOf::Subscriber(subscriber, answer),
                None => AnswerOf::Bare(answer),
            })
        })?;
        Ok(match answer {
            AnswerOf::Subscriber(_, answer) | AnswerOf::Bare(answer) => answer,
        })
    }

    /// Runs an operation that takes as many transactions as it has steps, starting at `start`.
    pub(crate) fn write_in_steps<S, T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        start: S,
        body: impl FnMut(&mut Tx<'_>, &S) -> Result<Step<S, T>>,
    ) -> Result<T> {
        let between: Between<'_, S, T> = &mut |next| Ok(Step::More(next));
        self.write_in_steps_with(operation, arguments, (start, between), body)
    }

    /// Runs an operation of several transactions, starting at `start`, which calls `between` between two of
    /// them.
    pub(crate) fn write_in_steps_with<S, T: Serialize + DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        (start, between): (S, Between<'_, S, T>),
        body: impl FnMut(&mut Tx<'_>, &S) -> Result<Step<S, T>>,
    ) -> Result<T> {
        self.operation(operation, || {
            Write::new(self, operation, self.engine.now(), arguments)?.steps(start, between, body)
        })
    }

    /// Runs a deletion of a record, which takes as many transactions as it has steps. A call with an
    /// idempotency key that was interrupted goes on with the record that it has begun with.
    pub(crate) fn write_deletion<I, T>(
        &self,
        operation: &'static str,
        arguments: impl Serialize,
        mut body: impl FnMut(&mut Tx<'_>, &Deleting<I>) -> Result<Step<Deleting<I>, T>>,
    ) -> Result<T>
    where
        I: Serialize + DeserializeOwned,
        T: Serialize + DeserializeOwned,
    {
        self.operation(operation, || {
            let write = Write::new(self, operation, self.engine.now(), arguments)?;
            let mut before = Deleting::default();
            loop {
                let step = write.step_as(Deleting::outcome, |tx| {
                    let begun = write.call.as_ref().filter(|_| before.is_new());
                    match begun.map_or(Ok(None), |call| call.begun_on(tx))? {
                        Some(id) => body(tx, &Deleting::of(id)),
                        None => body(tx, &before),
                    }
                })?;
                match step {
                    Step::More(next) => before = next,
                    Step::Done(answer) => return Ok(answer),
                }
            }
        })
    }
}

impl<'s> Write<'s> {
    pub(crate) fn new(
        scope: &'s Scope,
        operation: &'static str,
        now: Timestamp,
        arguments: impl Serialize,
    ) -> Result<Self> {
        Ok(Self { scope, now, call: KeyedCall::new(scope, operation, now, arguments)? })
    }

    /// The call, if its caller gave it an idempotency key.
    pub(crate) fn call(&self) -> Option<&KeyedCall<'s>> {
        self.call.as_ref()
    }

    /// Runs the operation in one transaction.
    pub(crate) fn once<T: Serialize + DeserializeOwned>(
        &self,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        self.steps((), &mut |()| Ok(Step::More(())), |tx, ()| body(tx).map(Step::Done))
    }

    /// Runs the operation in a transaction of the host, which may roll it back. A refusal is not stored.
    pub(crate) fn once_in_host<T: Serialize + DeserializeOwned>(
        &self,
        host: &mut dyn HostTransaction,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let Self { scope, now, call } = self;
        scope.engine.write_in_host(host, &scope.home, *now, |tx| {
            environments::check_there(tx)?;
            if let Some(earlier) = call.as_ref().map_or(Ok(None), |call| call.replay(tx))? {
                return read(&earlier?);
            }
            let answer = body(tx)?;
            if let Some(call) = call {
                call.keep(tx, CallOutcome::Done(json(&answer)?))?;
            }
            Ok(answer)
        })
    }

    fn steps<S, T: Serialize + DeserializeOwned>(
        &self,
        start: S,
        between: Between<'_, S, T>,
        mut body: impl FnMut(&mut Tx<'_>, &S) -> Result<Step<S, T>>,
    ) -> Result<T> {
        let mut state = start;
        loop {
            let step = match self.step(|tx| body(tx, &state))? {
                Step::More(next) => between(next)?,
                done @ Step::Done(_) => done,
            };
            match step {
                Step::More(next) => state = next,
                Step::Done(answer) => return Ok(answer),
            }
        }
    }

    /// Runs one transaction of the operation.
    pub(crate) fn step<S, T: Serialize + DeserializeOwned>(
        &self,
        body: impl FnMut(&mut Tx<'_>) -> Result<Step<S, T>>,
    ) -> Result<Step<S, T>> {
        self.step_as(|_| Ok(CallOutcome::Begun), body)
    }

    // Runs one transaction of the operation. `begun` is the outcome of a step that leaves more to do.
    fn step_as<S, T: Serialize + DeserializeOwned>(
        &self,
        begun: impl Fn(&S) -> Result<CallOutcome>,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<Step<S, T>>,
    ) -> Result<Step<S, T>> {
        let mut last = None;
        let earlier = self.run_step(&mut |tx| {
            let step = body(tx)?;
            let outcome = self.call.as_ref().map(|_| match &step {
                Step::More(state) => begun(state),
                Step::Done(answer) => json(answer).map(CallOutcome::Done),
            });
            let outcome = outcome.transpose()?;
            last = Some(step);
            Ok(outcome)
        })?;
        match earlier {
            Some(earlier) => Ok(Step::Done(read(&earlier?)?)),
            None => last.ok_or_else(|| store::not_run().into()),
        }
    }

    // Runs one transaction, unless an equal call was made before. `body` returns the outcome to keep, if the
    // call has a key. It is no generic function, so that it is compiled once.
    fn run_step(
        &self,
        body: &mut dyn FnMut(&mut Tx<'_>) -> Result<Option<CallOutcome>>,
    ) -> Result<Option<Earlier>> {
        let Self { scope, now, call } = self;
        let mut run = |tx: &mut Tx<'_>| {
            environments::check_there(tx)?;
            let earlier = call.as_ref().map_or(Ok(None), |call| call.replay(tx))?;
            if earlier.is_none() {
                let outcome = body(tx)?;
                if let Some((call, outcome)) = call.as_ref().zip(outcome) {
                    call.keep(tx, outcome)?;
                }
            }
            Ok(earlier)
        };
        let ran = healed(&scope.engine, scope.environment_id(), || {
            scope.engine.write_in(&scope.home, *now, &mut run)
        });
        match (ran, call) {
            (Err(refusal), Some(call)) => Ok(Some(call.refuse(refusal)?)),
            (ran, _) => ran,
        }
    }
}
