//! The server: connections, and waiting for its answers.
//!
//! A thread of the store drives the connections. A call waits for it, so that a caller may itself be
//! a thread of a runtime.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use crate::PostgresOptions;
use crate::calls::{Connect, Ears, connect_by, keep};
use crate::failure::Failure;
use crate::schema::quoted;

/// A connection of the pool.
pub(crate) type Client = Arc<Object>;

/// How much longer than a statement may run a call waits for the answer.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) struct Server {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    pool: Pool,
    patience: Duration,
    round_trips: AtomicU64,
    connect: Arc<Connect>,
    /// Tells the others of commits of this process.
    commits: Arc<Notify>,
}

impl Server {
    pub(crate) fn new<T>(config: Config, tls: T, options: &PostgresOptions) -> Result<Self, Failure>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tidings-postgres")
            .enable_all()
            .build()
            .map_err(|error| Failure::refused("start a thread", error))?;
        let connect = Arc::new(connect_by(config.clone(), tls.clone()));
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config, tls, manager_config);
        let settings = settings(options);
        let prepare = Hook::async_fn(move |client, _| {
            let settings = settings.clone();
            Box::pin(
                async move { client.batch_execute(&settings).await.map_err(HookError::Backend) },
            )
        });
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(2))
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .wait_timeout(Some(options.timeout))
            .create_timeout(Some(options.timeout))
            .post_create(prepare)
            .build()
            .map_err(|error| Failure::refused("make a pool", error))?;
        let patience = options.timeout.saturating_add(GRACE);
        Ok(Self {
            runtime: Some(runtime),
            pool,
            patience,
            round_trips: AtomicU64::new(0),
            connect,
            commits: Arc::default(),
        })
    }

    /// Listens to other processes from now on, and calls them.
    pub(crate) fn listen(&self, ears: Ears) {
        let (connect, commits) = (Arc::clone(&self.connect), Arc::clone(&self.commits));
        if let Some(runtime) = &self.runtime {
            runtime.spawn(keep(connect, commits, ears));
        }
    }

    /// Calls other processes, soon.
    pub(crate) fn call(&self) {
        self.commits.notify_one();
    }

    /// Takes a connection from the pool.
    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        let pool = self.pool.clone();
        self.wait(async move { pool.get().await.map(Arc::new).map_err(Failure::of_pool) })
    }

    /// Waits for the answer to `question`.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        action: &'static str,
        question: impl Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.wait(async move { question.await.map_err(|error| Failure::of(action, error)) })
    }

    /// Number of questions so far.
    pub(crate) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }

    /// Ends the transaction of `client` without its changes. Nobody waits for that.
    pub(crate) fn end(&self, client: Client) {
        let Some(runtime) = &self.runtime else { return };
        let patience = self.patience;
        runtime.spawn(async move {
            let ended = tokio::time::timeout(patience, client.batch_execute("ROLLBACK")).await;
            // Otherwise the pool has it again.
            if !matches!(ended, Ok(Ok(())))
                && let Ok(client) = Arc::try_unwrap(client)
            {
                drop(Object::take(client));
            }
        });
    }

    fn wait<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let runtime = self.runtime.as_ref().ok_or_else(Failure::closed)?;
        let (tell, told) = mpsc::sync_channel(1);
        let patience = self.patience;
        runtime.spawn(async move {
            let answer = tokio::time::timeout(patience, question).await;
            let answer = answer.unwrap_or_else(|_| Err(Failure::no_answer()));
            // The caller waits for it.
            drop(tell.send(answer));
        });
        told.recv().unwrap_or_else(|_| Err(Failure::closed()))
    }
}

/// The settings of a new connection.
fn settings(options: &PostgresOptions) -> String {
    let millis = options.timeout.as_millis();
    format!(
        "SET search_path = {}; SET statement_timeout = {millis}; SET lock_timeout = {millis}; \
         SET idle_in_transaction_session_timeout = {}",
        quoted(&options.schema),
        millis.saturating_mul(10),
    )
}

impl Drop for Server {
    fn drop(&mut self) {
        // A caller may be a thread of another runtime, where nothing may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// The configuration has a password.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}
