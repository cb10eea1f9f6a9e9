//! What every handler shares.

use std::panic::resume_unwind;

use tidings::integration::IntegrationCreate;
use tidings::workflow::WorkflowSync;
use tidings::{Engine, Result, Scope};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::workflows;

/// The environment of the shop. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Shop {
    env: Scope,
    stopping: watch::Receiver<bool>,
}

impl Shop {
    /// Opens the environment, and brings its account and its workflows in line with the code. Once
    /// they are, a restart writes nothing.
    pub(crate) fn open(
        engine: &Engine,
        mail: &IntegrationCreate,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self> {
        let env = engine.organization("shop")?.production()?;
        env.integrations().upsert(mail)?;
        env.workflows().sync(&WorkflowSync::new(workflows::all()?))?;
        Ok(Self { env, stopping })
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

    /// The environment, for futures of the engine. Their polls read two records of the file.
    pub(crate) fn env(&self) -> &Scope {
        &self.env
    }

    /// Is ready when the shop stops.
    pub(crate) async fn stopped(&self) {
        // Fails if the server is gone, and then the shop has stopped.
        let _ = self.stopping.clone().wait_for(|stopping| *stopping).await;
    }
}
