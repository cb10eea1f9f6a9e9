//! What every handler shares.

use std::panic::resume_unwind;

use tidings::{Engine, Result, Scope};
use tokio::task::spawn_blocking;

use crate::sender::Waker;
use crate::workflows;

/// The environment of the shop, and the way to wake its sender. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Shop {
    env: Scope,
    waker: Waker,
}

impl Shop {
    /// Opens the environment, and brings its account and its workflows in line with the code. Once
    /// they are, a restart writes nothing.
    pub(crate) fn open(engine: &Engine, waker: Waker) -> Result<Self> {
        let env = engine.organization("shop")?.production()?;
        env.integrations().upsert(&workflows::mail_account()?)?;
        env.workflows().sync(&workflows::all()?)?;
        Ok(Self { env, waker })
    }

    /// Calls the engine on a thread that may wait for the disk. A handler never calls it on a
    /// thread of the runtime.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Scope) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let env = self.env.clone();
        let task = spawn_blocking(move || call(&env));
        task.await.unwrap_or_else(|stopped| resume_unwind(stopped.into_panic()))
    }

    /// Calls the engine as [`run`](Self::run) does, and sends at once what the call triggered.
    pub(crate) async fn trigger<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Scope) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = self.run(call).await?;
        self.waker.wake();
        Ok(answer)
    }
}
