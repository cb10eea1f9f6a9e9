//! Upkeep that makes rows of an environment, in many transactions.

use std::time::SystemTime;

use domain::ids::EnvironmentId;
use store::{Decision, Listener, ReadBody, Result, Store, Transaction, WriteBody, WriteScope};

use crate::resources::environments;
use crate::{Engine, Entity, Error};

/// Runs `upkeep` of an environment on a store whose transactions look whether the environment is still
/// there. A deletion would not see the rows that are put behind it.
///
/// # Errors
///
/// [`Error::NotFound`], if the environment is deleted meanwhile; otherwise the error of `upkeep`.
pub(crate) fn guarded<T>(
    engine: &Engine,
    environment: EnvironmentId,
    upkeep: impl FnOnce(&dyn Store) -> Result<T>,
) -> crate::Result<T> {
    let store = Guarded { engine: engine.clone(), environment };
    upkeep(&store).map_err(|error| {
        let exists =
            engine.read(|snapshot| Ok(environments::exists(engine, snapshot, environment)?));
        match exists {
            Ok(false) => Error::not_found(Entity::Environment, environment),
            Ok(true) | Err(_) => error.into(),
        }
    })
}

/// The store of an engine, whose transactions do nothing if an environment is deleted.
#[derive(Debug)]
struct Guarded {
    engine: Engine,
    environment: EnvironmentId,
}

impl Guarded {
    fn run(&self, txn: &mut dyn Transaction, body: &mut WriteBody<'_>) -> Result<Decision> {
        if environments::exists(&self.engine, txn, self.environment)? {
            return body(txn);
        }
        Ok(Decision::Abort)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Store for Guarded {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.engine.store().read(body)
    }

    fn read_pure(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.engine.store().read_pure(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.write_within(WriteScope::Everything, body)
    }

    fn write_within(&self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
        self.engine.store().write_within(scope, &mut |txn| self.run(txn, body))
    }

    fn runs_side_by_side(&self) -> bool {
        self.engine.store().runs_side_by_side()
    }

    fn now(&self) -> Option<SystemTime> {
        self.engine.store().now()
    }

    fn listen(&self, listener: Listener) {
        self.engine.store().listen(listener);
    }

    fn forget_history(&self, scope: WriteScope) -> Result<()> {
        self.engine.store().forget_history(scope)
    }
}
