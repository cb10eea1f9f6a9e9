//! Running bodies on a store, which return a result.

use domain::ids::EnvironmentId;

use crate::{Decision, Error, Result, Snapshot, Store, Transaction, WriteBody, WriteScope};

/// Runs `body` on a snapshot of `store`, and returns its result.
pub fn read<T, E: From<Error>>(
    store: &dyn Store,
    mut body: impl FnMut(&dyn Snapshot) -> Result<T, E>,
) -> Result<T, E> {
    let mut outcome = None;
    store.read(&mut |snapshot| {
        outcome = Some(body(snapshot));
        Ok(())
    })?;
    outcome.unwrap_or_else(|| Err(not_run().into()))
}

/// Runs `body` in a transaction on `store`, and commits the changes unless `body` fails.
pub fn write<T, E: From<Error>>(
    store: &dyn Store,
    body: impl FnMut(&mut dyn Transaction) -> Result<T, E>,
) -> Result<T, E> {
    write_within(store, WriteScope::Everything, body)
}

/// Runs `body` in a transaction on `store`, as [`write()`] does. It touches keys of an environment only.
pub fn write_in<T, E: From<Error>>(
    store: &dyn Store,
    environment: EnvironmentId,
    body: impl FnMut(&mut dyn Transaction) -> Result<T, E>,
) -> Result<T, E> {
    write_within(store, WriteScope::Environment(environment), body)
}

/// Runs `body` in a transaction on `store`, as [`write()`] does. It touches only what is in `scope`.
pub fn write_within<T, E: From<Error>>(
    store: &dyn Store,
    scope: WriteScope,
    body: impl FnMut(&mut dyn Transaction) -> Result<T, E>,
) -> Result<T, E> {
    write_by(|body| store.write_within(scope, body), body)
}

/// Runs `body` in the transaction that `run` makes, which commits the changes unless `body` fails.
pub fn write_by<T, E: From<Error>>(
    run: impl FnOnce(&mut WriteBody<'_>) -> Result<()>,
    mut body: impl FnMut(&mut dyn Transaction) -> Result<T, E>,
) -> Result<T, E> {
    let mut outcome = None;
    run(&mut |transaction| {
        let result = body(transaction);
        let decision = if result.is_ok() { Decision::Commit } else { Decision::Abort };
        outcome = Some(result);
        Ok(decision)
    })?;
    outcome.unwrap_or_else(|| Err(not_run().into()))
}

/// Returns the error of a store that has not run the body of a transaction.
pub fn not_run() -> Error {
    let source = "it returned without running the body".into();
    Error::Refused { backend: "store", action: "run a transaction", source }
}
